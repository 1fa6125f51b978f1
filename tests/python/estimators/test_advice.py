"""What a fit advises: fewer components than features, and one unit for all features."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import orthobcd as ob

pytestmark = pytest.mark.usefixtures("short_searches")

ESTIMATORS = {
    "SparsePCA": lambda r=None, **k: ob.SparsePCA(r, random_state=0, **k),
    "n_nonzero": lambda r=None, **k: ob.SparsePCA(r, n_nonzero=12, random_state=0, **k),
    "NonnegativePCA": lambda r=None, **k: ob.NonnegativePCA(r, random_state=0, **k),
    "SparsePCACV": lambda r=None, **k: ob.SparsePCACV(r, n_alphas=2, cv=2, random_state=0, **k),
}


def advice(fit) -> list[str]:
    """Messages of the warnings of a fit; each points at this file."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit()
    assert all(one.filename == __file__ for one in found)
    return [str(one.message) for one in found]


def normal(m: int = 40, n: int = 12) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((m, n))


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize(
    ("m", "n", "r"), [(40, 12, 6), (40, 30, 10), (40, 5, 2), (6, 30, 6), (40, 2, 1), (40, 3, 1)]
)
def test_the_default_number_of_components_is_half_of_the_features_or_less(kind, m, n, r):
    pca = ESTIMATORS[kind]()
    if kind == "n_nonzero":
        pca.set_params(n_nonzero=r)
    assert advice(lambda: pca.fit(normal(m, n))) == []
    assert pca.n_components_ == r == len(pca.components_)


def test_the_default_number_of_clusters():
    nmf = ob.OrthogonalNMF(random_state=0).fit(np.abs(normal(40, 12)))
    assert nmf.n_components_ == len(nmf.components_) == 6


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("n", [2, 5])
def test_as_many_components_as_features_are_told(kind, n):
    pca = ESTIMATORS[kind](n)
    if kind == "n_nonzero":
        pca.set_params(n_nonzero=n)
    (message,) = advice(lambda: pca.fit(normal(n=n)))
    assert f"n_components={n} is the number of features" in message
    fewer = ESTIMATORS[kind](n - 1)
    if kind == "n_nonzero":
        fewer.set_params(n_nonzero=n)
    assert advice(lambda: fewer.fit(normal(n=n))) == []


def fits(pca, X):
    """The ways to fit to all samples at once."""
    yield lambda: pca.fit(X)
    yield lambda: pca.fit_transform(X)
    if hasattr(pca, "partial_fit"):
        yield lambda: pca.partial_fit(X)
        yield lambda: pca.fit([X[:20], X[20:]])
        yield lambda: pca.fit_covariance(np.cov(X, rowvar=False), len(X))


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("large", [1, 4, 8])
@pytest.mark.parametrize(("ratio", "told"), [(9.0, False), (11.0, True)])
def test_features_of_different_units_are_told_once(kind, large, ratio, told):
    """A factor 10 of deviations is one of 100 in variances; three quarters share the unit."""
    X = normal()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X[:, :large] *= ratio
    for fit in fits(ESTIMATORS[kind](2), X):
        messages = advice(fit)
        assert len(messages) == told
        assert all("scale=True" in message for message in messages)
    assert advice(lambda: ESTIMATORS[kind](2, scale=True).fit(X)) == []


def test_few_features_of_small_variance_are_no_other_unit():
    """Pixels at the border, and constant features."""
    X = normal()
    X[:, 0] *= 1e-3
    X[:, 1:6] = 1.0 / 3.0
    assert advice(lambda: ESTIMATORS["SparsePCA"](2).fit(X)) == []


def test_subsamples_do_not_repeat_the_advice():
    X = normal() * np.geomspace(1.0, 1e4, 12)
    pca = ESTIMATORS["n_nonzero"](2)
    messages = advice(lambda: ob.support_stability(pca, X, n_subsamples=3, random_state=0))
    assert len(messages) == 1
