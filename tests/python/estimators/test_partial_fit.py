"""`partial_fit`: a fit in parts is the fit of the whole."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

import orthobcd as ob
from orthobcd._core import Moments
from orthobcd.data import (
    DENSE_COVARIANCE_LIMIT,
    EXACT_WORK,
    SCALING,
    Gram,
)

pytestmark = pytest.mark.usefixtures("short_searches")


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("load", [load_digits, load_breast_cancer])
def test_partial_fit_is_fit(load, scale):
    X = load().data
    make = lambda: ob.SparsePCA(4, alpha=0.05, scale=scale, random_state=0)  # noqa: E731
    whole, parts = make().fit(X), make()
    for part in np.array_split(X, 20):
        parts.partial_fit(part, update=False)
    assert not hasattr(parts, "components_")
    parts.partial_fit(X[:1])
    again = make().fit(np.vstack([X, X[:1]]))
    np.testing.assert_array_equal(parts.components_, again.components_)
    np.testing.assert_array_equal(parts.mean_, again.mean_)
    np.testing.assert_array_equal(make().fit(X[::-1]).components_, whole.components_)


def test_partial_fit_updates_and_fit_forgets():
    X = load_iris().data
    pca = ob.SparsePCA(2, random_state=0).partial_fit(X[:100])
    np.testing.assert_allclose(pca.mean_, X[:100].mean(axis=0))
    pca.partial_fit(X[100:])
    np.testing.assert_allclose(pca.mean_, X.mean(axis=0))
    pca.fit(X[:50])
    pca.partial_fit(X[50:100])
    np.testing.assert_allclose(pca.mean_, X[50:100].mean(axis=0))
    with pytest.raises(ValueError, match="features"):
        pca.partial_fit(X[:, :3])
    with pytest.raises(ValueError, match="two samples"):
        ob.SparsePCA(2).partial_fit(X[:1])


WRONG = [
    {"n_components": 99},
    {"n_components": 1.5},
    {"tol": -1.0},
    {"max_time": -1.0},
    {"solver": "auto"},
    {"n_jobs": 0},
    {"precision": "double"},
    {"n_nonzero": 1},
    {"n_nonzero": 1000},
    {"include": ["no such feature"], "n_nonzero": 9},
    {"exclude": [0], "n_nonzero": None},
]


@pytest.mark.parametrize("wrong", [*WRONG, {"alpha": -1.0}, {"penalty": "l2"}], ids=str)
@pytest.mark.parametrize("make", [ob.SparsePCA, ob.NonnegativePCA])
@pytest.mark.parametrize("update", [False, True])
def test_a_call_that_raises_changes_nothing(make, wrong, update):
    """Neither what is summed nor what is fitted."""
    right = make(3, random_state=0).get_params()
    if not set(wrong) <= set(right):
        pytest.skip("it has no such parameter")
    X = load_breast_cancer().data[:, :12]
    pca = make(**right).partial_fit(X[:200])
    before = {k: v for k, v in vars(pca).items() if k.endswith("_") and k != "result_"}
    for fit in (
        lambda: pca.partial_fit(X[200:300], update=update),
        lambda: pca.fit(X[5:]),
        lambda: pca.fit_covariance(np.eye(12)),
    ):
        pca.set_params(**wrong)
        with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
            fit()
        pca.set_params(**right)
    for bad in (X[:, :3], np.full((2, 12), np.nan), np.full((2, 12), 1e60)):
        with pytest.raises(ValueError, match="X"):
            pca.partial_fit(bad, update=update)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(pca, name), value, name)
    pca.partial_fit(X[200:])
    np.testing.assert_array_equal(pca.mean_, make(**right).fit(X).mean_)
    np.testing.assert_array_equal(pca.components_, make(**right).fit(X).components_)


@pytest.mark.parametrize("whole", [np.asarray, lambda X: [X]], ids=["array", "blocks"])
def test_the_fewest_samples(whole):
    """Two samples, or a weight above 1 in ``fit``; one sample is kept for later samples."""
    X = load_iris().data
    make = lambda: ob.SparsePCA(1, random_state=0)  # noqa: E731
    assert make().fit(whole(X[:2])).n_iter_ > 0
    assert make().partial_fit(whole(X[:2])).n_iter_ > 0
    for how in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=r"at least two samples|minimum of 2"):
            getattr(make(), how)(whole(X[:1]))
    one = make().partial_fit(whole(X[:1]), update=False)
    np.testing.assert_array_equal(one.partial_fit(whole(X[1:2])).mean_, make().fit(X[:2]).mean_)
    for total in (1.0, 0.5):
        with pytest.raises(ValueError, match="sample_weight must sum to more than 1"):
            make().fit(whole(X[:2]), sample_weight=[total / 2, total / 2])
    assert make().fit(whole(X[:2]), sample_weight=[0.75, 0.75]).n_iter_ > 0
    assert make().partial_fit(whole(X[:2]), sample_weight=[1.0, 1.0]).n_iter_ > 0
    light = {"sample_weight": [0.75, 0.0]}
    with pytest.raises(ValueError, match="at least two samples"):
        make().partial_fit(whole(X[:2]), **light)
    pca = make().partial_fit(whole(X[:2]), update=False, **light)
    assert pca.partial_fit(whole(X[2:4])).n_iter_ > 0


def test_limits_on_samples_and_features():
    """Sums are exact up to a limit on the work; memory is checked where moments are formed."""
    assert EXACT_WORK == 50_000 * 200 * (200 + SCALING)
    rows = sparse.csr_array(([1.0, 1.0], ([0, 1], [0, 1])), shape=(9000, DENSE_COVARIANCE_LIMIT))
    with pytest.raises(ValueError, match="max_memory"):
        ob.SparsePCA(1, max_memory="1MB").fit(rows)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [20, 60])
def test_wide_samples_in_blocks_are_fitted_as_in_memory(scale, weighted, m):
    """Second moments of 400 features are not formed for 20 samples, which are still buffered."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 400)) + 3.0 * rng.standard_normal((m, 1)) * (np.arange(400) < 9)
    weights = rng.integers(1, 4, m).astype(float) if weighted else None

    def of(rows: slice) -> np.ndarray | None:
        return None if weights is None else weights[rows]

    def make() -> ob.SparsePCA:
        return ob.SparsePCA(2, n_nonzero=12, scale=scale, precision="fast", random_state=0)

    whole = make().fit(X, sample_weight=weights)
    blocks = make().fit([X[:7], X[7:]], sample_weight=weights)
    parts = make()
    for k in range(0, m, 5):
        rows = slice(k, k + 5)
        parts.partial_fit(X[rows], sample_weight=of(rows), update=k + 5 == m)
    for other in (blocks, parts):
        same = np.testing.assert_array_equal if m == 20 else np.testing.assert_allclose
        for name in ("mean_", "components_", "explained_variance_", "objective_"):
            same(getattr(other, name), getattr(whole, name), **({} if m == 20 else {"atol": 1e-8}))
    sums = Moments(400, "fast")
    sums.add(X, weights)
    gram = Gram.of_sums(sums, True, scale, keep=True)
    assert (gram.negative is None) == (m == 20)
    assert (sums.buffered() is None) == (m != 20)
