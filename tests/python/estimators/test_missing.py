"""`missing="em"`: the EM algorithm, its laws and limits, and data without gaps."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import orthobcd as ob
from orthobcd.sklearn import missing
from orthobcd.sklearn.missing import Gaussian, gaussian_of
from orthobcd.solving import Solve

from .samples import planted

short = pytest.mark.usefixtures("short_searches")


def low_rank(m: int, n: int, r: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, r)) @ rng.standard_normal((r, n)) + rng.standard_normal((m, n))
    return X * np.arange(1.0, n + 1.0) + 3.0


def with_gaps(X: np.ndarray, share: float, seed: int = 1) -> np.ndarray:
    """X without a share of its entries; every feature and sample keeps two."""
    out = np.random.default_rng(seed).random(X.shape) < share
    out[:2] = out[:, :2] = False
    return np.where(out, np.nan, X)


def likelihood(model: Gaussian, data: np.ndarray) -> float:
    """Log-likelihood of the known entries, row by row."""
    total = 0.0
    for row in (data / model.scale)[:, model.varying]:
        known = ~np.isnan(row)
        w = model.loadings[model.varying][known]
        covariance = w @ w.T + model.noise * np.eye(known.sum())
        about = row[known] - model.mean[model.varying][known]
        total -= 0.5 * (
            np.linalg.slogdet(2.0 * np.pi * covariance)[1]
            + about @ np.linalg.solve(covariance, about)
        )
    return total


@pytest.mark.covering(2)
@short
@pytest.mark.parametrize("share", [0.02, 0.2, 0.6])
@pytest.mark.parametrize("r", [1, 3, 7])
@pytest.mark.parametrize(("m", "n"), [(30, 12), (12, 30), (9, 8)])
def test_the_likelihood_never_falls(m, n, r, share):
    data = with_gaps(low_rank(m, n, 3), share)
    found = [
        likelihood(gaussian_of(data, r, tolerance=0.0, steps=k), data) for k in (1, 2, 3, 6, 20)
    ]
    assert (np.diff(found) >= -1e-7 * np.abs(found[1:])).all()
    more = gaussian_of(data, r, gaussian_of(data, max(1, r - 2)), steps=20)
    assert likelihood(more, data) >= likelihood(gaussian_of(data, max(1, r - 2)), data) - 1e-3


@short
@pytest.mark.parametrize("r", [1, 2, 5])
@pytest.mark.parametrize(("m", "n"), [(40, 10), (10, 40), (7, 6), (300, 700), (700, 600)])
def test_the_model_of_complete_data_has_the_principal_components(m, n, r):
    X = low_rank(m, n, 2)
    model = gaussian_of(X, r)
    units = (X - X.mean(axis=0)) / X.std(axis=0)
    values = np.linalg.svd(units, compute_uv=False)[:r] ** 2 / m
    np.testing.assert_allclose(
        np.linalg.eigvalsh(model.loadings.T @ model.loadings)[::-1],
        np.maximum(values - model.noise, 0.0),
        rtol=1e-3,
        atol=1e-9,
    )
    assert model.noise == pytest.approx((n - values.sum()) / (n - r), rel=1e-3)


@short
def test_no_matrix_of_all_pairs_of_features_is_formed():
    """With 200,000 features that matrix would take 320 GB."""
    X = with_gaps(low_rank(6, 200_000, 1), 0.2)
    assert np.isfinite(gaussian_of(X, 2, steps=2).completed(X)).all()


@short
@pytest.mark.parametrize("value", [0.0, 1.0, -1.0 / 3.0, 1e-20, 14.62, 7.7e15])
@pytest.mark.parametrize(("m", "n"), [(2, 3), (3, 2), (10, 4), (3, 30)])
@pytest.mark.parametrize("scale", [False, True])
def test_samples_that_are_all_equal(m, n, value, scale):
    """As without gaps: no variance, and a gap is completed by the value."""
    X = value * np.arange(1.0, n + 1.0) * np.ones((m, 1))
    N = X.copy()
    N[-1, -1] = np.nan
    for how, data in ((None, X), ("em", X), ("em", N)):
        pca = ob.SparsePCA(2, n_nonzero=2, scale=scale, missing=how, random_state=0).fit(data)
        np.testing.assert_array_equal(pca.explained_variance_, 0.0)
        np.testing.assert_array_equal(pca.explained_variance_ratio_, 0.0)
        np.testing.assert_array_equal(pca.score_correlation_, np.eye(2))
        assert np.abs(pca.transform(data)).max() <= 1e-12 * abs(value) * n
    np.testing.assert_allclose(gaussian_of(N, 1).completed(N), X, rtol=1e-15)


def completed(pca: ob.SparsePCA, data: np.ndarray) -> np.ndarray:
    """The completed data: `transform` to components that are the single features gives it."""
    whole = copy.copy(pca)
    whole.components_ = np.eye(data.shape[1])
    return (whole.transform(data) + pca.mean_) * (1.0 if pca.scale_ is None else pca.scale_)


def fitted_by_doors(X: np.ndarray, **options: Any) -> dict[str, Any]:
    make = lambda: ob.SparsePCA(2, n_nonzero=6, missing="em", random_state=0, **options)  # noqa: E731
    fits = {
        "fit": make().fit(X),
        "Fortran": make().fit(np.asfortranarray(X)),
        "weights": make().fit(X, sample_weight=np.ones(len(X))),
        "partial_fit": make().partial_fit(X[:20], update=False).partial_fit(X[20:]),
        "sparse": make().fit(sparse.csr_array(X)),
    }
    if options.get("center", True):
        fits["covariance"] = make().fit_covariance(np.cov(X.T), len(X), X.mean(axis=0))
    return fits


@short
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("shape", [(60, 9), (30, 250)])
def test_a_fit_to_complete_data_takes_gaps_later(shape, scale):
    """By every door, and completes them as the regression on the known entries does."""
    X = low_rank(*shape, 2)
    N = with_gaps(X, 0.1)
    model = gaussian_of(X, 2)
    for name, pca in fitted_by_doors(X, scale=scale).items():
        right = model.completed(N)
        found = completed(pca, N)
        np.testing.assert_allclose(found, right, atol=1e-2 * X.std(axis=0).max(), err_msg=name)
        np.testing.assert_allclose(pca.transform(N), pca.transform(found), rtol=1e-9)
    assert pca.score(N) <= 1.0


@short
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("shape", [(40, 330), (30, 4200)])
def test_a_fit_to_sparse_data_takes_gaps_later(shape, scale, center):
    """Also where no second moments are formed, with constant, half-full and empty features."""
    X = low_rank(*shape, 2)
    X[np.random.default_rng(1).random(shape) < 0.3] = 0.0
    X[:, ::7] *= np.random.default_rng(2).random(X[:, ::7].shape) < 0.1
    X[:, 3], X[:, 5] = 2.5, 0.0
    N = with_gaps(X, 0.1)
    pca = ob.SparsePCA(
        2, n_nonzero=6, scale=scale, center=center, effort=0.01, missing="em", random_state=0
    )
    # Weights: dense data without weights and centring has a centred model.
    right = completed(pca.fit(X, sample_weight=np.ones(len(X))), N)
    found = completed(pca.fit(sparse.csr_array(X)), N)
    np.testing.assert_allclose(found, right, atol=1e-2 * X.std(axis=0).max())
    np.testing.assert_allclose(pca.transform(N), pca.transform(found), rtol=1e-9)


@short
def test_a_model_of_gaps_needs_a_fit_with_one():
    X = low_rank(60, 9, 2)
    pca = ob.SparsePCA(2, n_nonzero=6, random_state=0).fit(X).set_params(missing="em")
    with pytest.raises(ValueError, match=r"after a fit with missing=None.*fit again"):
        pca.transform(with_gaps(X, 0.1))


@short
def test_a_fit_that_is_not_centred_takes_gaps_later():
    X = low_rank(60, 9, 2)
    for name, pca in fitted_by_doors(X, center=False).items():
        completed = pca.inverse_transform(pca.transform(with_gaps(X, 0.1)))
        assert np.isfinite(completed).all(), name


@short
def test_the_components_of_complete_data_do_not_depend_on_missing():
    X = low_rank(60, 9, 2)
    em, none = (
        ob.SparsePCA(2, n_nonzero=6, missing=missing, random_state=0).fit(X).components_
        for missing in ("em", None)
    )
    np.testing.assert_array_equal(em, none)


@short
@pytest.mark.parametrize("gaps", [1, 20])
def test_folds_with_gaps_are_ranked(gaps):
    """Also folds whose samples for the fit have none."""
    X = low_rank(72, 8, 2)
    N = X.copy()
    N[4, :gaps:3] = N[7, 2] = np.nan
    pca = ob.SparsePCA(2, n_nonzero=8, missing="em", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(cross_val_score(pca, N, cv=4)).all()
        grid = GridSearchCV(pca, {"n_nonzero": [2, 8]}, cv=4).fit(N)
        steps = make_pipeline(StandardScaler(), pca)
        assert np.isfinite(cross_val_score(steps, N, cv=4)).all()
    assert grid.best_params_ == {"n_nonzero": 8}


@short
def test_the_deadline_ends_the_iteration(monkeypatch):
    steps = []
    parts = Gaussian.parts
    monkeypatch.setattr(Gaussian, "parts", lambda self, data: steps.append(1) or parts(self, data))
    data = with_gaps(low_rank(30, 12, 3), 0.3)
    gaussian_of(data, 3, tolerance=0.0, steps=7)
    assert len(steps) == 7
    steps.clear()
    gaussian_of(data, 3, tolerance=0.0, steps=7, deadline=Solve(max_time=0.0))
    assert len(steps) == 1
    steps.clear()
    pca = ob.SparsePCA(2, n_nonzero=6, missing="em", max_time=0.0).fit(data)
    # One step, and the moments of the completed data.
    assert len(steps) == 2
    assert pca.result_.status is ob.Status.MAX_TIME


@short
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_a_choice_from_held_out_entries_takes_gaps(share):
    X = low_rank(100, 15, 3)
    choice = ob.choose_n_components(
        with_gaps(X, share), "held_out", max_components=6, random_state=0
    )
    assert choice.n_components == 3
    with pytest.raises(ValueError, match=r"no missing value \(NaN\); method='held_out'"):
        ob.choose_n_components(with_gaps(X, 0.1))


@short
@pytest.mark.parametrize("method", ["parallel", "held_out"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e9])
def test_a_choice_for_data_that_do_not_vary(method, value):
    choice = ob.choose_n_components(np.full((10, 4), value), method, random_state=0)
    assert choice.n_components == 1
    assert not choice.values.any()


def test_em_of_complete_data_is_its_covariance():
    X, _ = planted()
    model = gaussian_of(X, 3)
    mean, covariance = model.moments(X)
    np.testing.assert_allclose(mean, X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(covariance, np.cov(X.T, bias=True), atol=1e-12)
    np.testing.assert_array_equal(model.completed(X), X)


@pytest.mark.parametrize("scale", [False, True])
def test_missing_values(scale):
    X, V = planted()
    gapped = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    make = lambda **k: ob.SparsePCA(3, n_nonzero=13, scale=scale, random_state=0, **k)  # noqa: E731
    whole, pca = make().fit(X), make(missing="em").fit(gapped)
    # The variance is within 2 % of that of the complete data, and supports are the planted ones.
    centred = (X - X.mean(axis=0)) / (X.std(axis=0) if scale else 1.0)
    best, got = (np.sum((centred @ fit.components_.T) ** 2) for fit in (whole, pca))
    assert best - got <= 0.02 * best
    found = {frozenset(np.flatnonzero(row)) for row in pca.components_}
    assert found == {frozenset(np.flatnonzero(column)) for column in V.T}
    assert np.isfinite(pca.transform(gapped)).all()
    scores = make(missing="em").fit(X).transform(gapped)
    np.testing.assert_allclose(scores, whole.transform(X), atol=0.5 * np.abs(scores).max())
    with pytest.raises(ValueError, match="sample_weight"):
        make(missing="em").fit(gapped, sample_weight=np.ones(len(X)))
    with pytest.raises(ValueError, match="missing"):
        make(missing="em").partial_fit(gapped)
    with pytest.raises(ValueError, match="has none"):
        make(missing="em").fit(np.where(np.arange(20) == 3, np.nan, X))
    with pytest.raises(ValueError, match="missing"):
        make(missing="mean").fit(X)


ESTIMATORS = [
    ob.SparsePCA(2),
    ob.NonnegativePCA(2),
    ob.OrthogonalNMF(2),
    ob.SparsePCACV(2, n_alphas=2, cv=2),
]


@short
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, np.float32, "frame"])
def test_missing_values_are_refused_with_advice(estimator, container):
    X, _ = planted(30)
    X = np.abs(X)
    whole = clone(estimator).fit(X)
    X[3, 4] = np.nan
    if container == "frame":
        container = pandas.DataFrame
    for call in (
        lambda: clone(estimator).fit(container(X)),
        lambda: whole.transform(container(X)),
        *([lambda: clone(estimator).partial_fit(X)] if hasattr(estimator, "partial_fit") else []),
    ):
        with pytest.raises(ValueError, match=r"X must have no missing value \(NaN\)") as caught:
            call()
        assert "HistGradient" not in str(caught.value)
        nmf = isinstance(estimator, ob.OrthogonalNMF)
        assert ("sklearn.impute" if nmf else "missing='em'") in str(caught.value)
    X[3, 4] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        clone(estimator).fit(container(X))


def test_missing_values_of_sparse_data_are_refused_whatever_missing_is():
    X, _ = planted(30)
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="dense"):
        ob.SparsePCA(2, missing="em").fit(sparse.csr_array(X))


def slow_completion(model, data):
    """Row by row: each missing entry by its mean given the known ones."""
    out, spreads = data.copy(), np.zeros((data.shape[1],) * 2)
    for i, row in enumerate(data):
        known, gap = ~np.isnan(row), np.isnan(row)
        if not gap.any():
            continue
        w = model.loadings[known]
        inverse = np.linalg.inv(w.T @ w + model.noise * np.eye(w.shape[1]))
        z = inverse @ (w.T @ (row[known] / model.scale[known] - model.mean[known]))
        out[i, gap] = (model.mean[gap] + model.loadings[gap] @ z) * model.scale[gap]
        part = model.loadings[gap] @ (model.noise * inverse) @ model.loadings[gap].T
        spreads[np.ix_(gap, gap)] += part + model.noise * np.eye(gap.sum())
    return out, spreads


@pytest.mark.covering
@pytest.mark.parametrize("entries", [1, 500, 1 << 21])
@pytest.mark.parametrize("share", [0.02, 0.4])
@pytest.mark.parametrize("r", [1, 3])
def test_missing_values_in_parts_are_those_row_by_row(entries, share, r, monkeypatch):
    monkeypatch.setattr(missing, "ENTRIES", entries)
    rng = np.random.default_rng(r)
    data = rng.standard_normal((50, r)) @ rng.standard_normal((r, 8)) + rng.standard_normal((50, 8))
    data *= np.arange(1.0, 9.0)
    data[rng.uniform(size=data.shape) < share] = np.nan
    data[:, 0] = np.nan_to_num(data[:, 0])
    data[3, 1:] = np.nan
    model = gaussian_of(data, r)
    out, spreads = slow_completion(model, data)
    np.testing.assert_allclose(model.completed(data), out, rtol=1e-9, atol=1e-9)
    mean, covariance = model.moments(data)
    np.testing.assert_allclose(mean, out.mean(axis=0), rtol=1e-9, atol=1e-12)
    scaled = (out - out.mean(axis=0)) / model.scale
    covariance /= np.outer(model.scale, model.scale)
    np.testing.assert_allclose(
        covariance, (scaled.T @ scaled + spreads) / 50, rtol=1e-8, atol=1e-10
    )


@pytest.mark.parametrize("r", [1, 2, 3])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_missing_values_of_few_factors_are_found(r, size):
    """Without noise the values that are there determine the others."""
    rng = np.random.default_rng(r)
    whole = size * (rng.standard_normal((60, r)) @ rng.standard_normal((r, 10)) + 1.0)
    data = np.where(rng.uniform(size=whole.shape) < 0.1, np.nan, whole)
    model = gaussian_of(data, r, tolerance=1e-9)
    mean, covariance = model.moments(data)
    np.testing.assert_allclose(model.completed(data), whole, atol=1e-3 * size)
    np.testing.assert_allclose(mean, whole.mean(axis=0), atol=1e-3 * size)
    np.testing.assert_allclose(covariance, np.cov(whole.T, ddof=0), atol=1e-3 * size**2)


@pytest.mark.parametrize(("n", "r", "factors"), [(1, 1, 1), (2, 1, 1), (2, 5, 1), (6, 2, 2)])
def test_a_model_has_fewer_factors_than_features(n, r, factors):
    """A constant feature is completed by its value; one feature alone by its mean."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((20, n))
    data[:, 0] = 7.0 if n > 1 else data[:, 0]
    gapped = data.copy()
    gapped[:3, 0] = np.nan
    model = gaussian_of(gapped, r)
    mean, _ = model.moments(gapped)
    assert model.loadings.shape == (n, factors)
    assert mean[0] == pytest.approx(np.nanmean(gapped[:, 0]))
    np.testing.assert_allclose(model.completed(gapped)[:3, 0], np.nanmean(gapped[:, 0]))
