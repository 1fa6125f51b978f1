"""Missing values by the EM algorithm: its laws, its limits, and fits to data without gaps."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import orthobcd as ob
from orthobcd._internal.solve import Solve

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from orthobcd.sklearn.missing import Gaussian, gaussian_of

from ..conftest import SHORT, shorten_searches


@pytest.fixture(autouse=True)
def short(monkeypatch):
    shorten_searches(monkeypatch, SHORT)


def planted(m: int, n: int, r: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, r)) @ rng.standard_normal((r, n)) + rng.standard_normal((m, n))
    return X * np.arange(1.0, n + 1.0) + 3.0


def gapped(X: np.ndarray, share: float, seed: int = 1) -> np.ndarray:
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


@pytest.mark.parametrize("share", [0.02, 0.2, 0.6])
@pytest.mark.parametrize("r", [1, 3, 7])
@pytest.mark.parametrize(("m", "n"), [(30, 12), (12, 30), (9, 8)])
def test_the_likelihood_never_falls(m, n, r, share):
    data = gapped(planted(m, n, 3), share)
    found = [
        likelihood(gaussian_of(data, r, tolerance=0.0, steps=k), data) for k in (1, 2, 3, 6, 20)
    ]
    assert (np.diff(found) >= -1e-7 * np.abs(found[1:])).all()
    more = gaussian_of(data, r, gaussian_of(data, max(1, r - 2)), steps=20)
    assert likelihood(more, data) >= likelihood(gaussian_of(data, max(1, r - 2)), data) - 1e-3


@pytest.mark.parametrize("r", [1, 2, 5])
@pytest.mark.parametrize(("m", "n"), [(40, 10), (10, 40), (7, 6), (300, 700), (700, 600)])
def test_the_model_of_complete_data_has_the_principal_components(m, n, r):
    X = planted(m, n, 2)
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


def test_no_matrix_of_all_pairs_of_features_is_formed():
    """With 200,000 features that matrix would take 320 GB."""
    X = gapped(planted(6, 200_000, 1), 0.2)
    assert np.isfinite(gaussian_of(X, 2, steps=2).completed(X)).all()


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0 / 3.0, 1e-20, 14.62, 7.7e15])
@pytest.mark.parametrize(("m", "n"), [(2, 3), (3, 2), (10, 4), (3, 30)])
@pytest.mark.parametrize("scale", [False, True])
def test_samples_that_are_all_equal(m, n, value, scale):
    """As without gaps: no variance, and a gap is completed by the value."""
    X = value * np.arange(1.0, n + 1.0) * np.ones((m, 1))
    N = X.copy()
    N[-1, -1] = np.nan
    for missing, data in ((None, X), ("em", X), ("em", N)):
        pca = ob.SparsePCA(2, n_nonzero=2, scale=scale, missing=missing, random_state=0).fit(data)
        np.testing.assert_array_equal(pca.explained_variance_, 0.0)
        np.testing.assert_array_equal(pca.explained_variance_ratio_, 0.0)
        assert np.abs(pca.transform(data)).max() <= 1e-12 * abs(value) * n
    np.testing.assert_allclose(gaussian_of(N, 1).completed(N), X, rtol=1e-15)


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


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("shape", [(60, 9), (30, 250)])
def test_a_fit_to_complete_data_takes_gaps_later(shape, scale):
    """By every door, and completes them as the regression on the known entries does."""
    X = planted(*shape, 2)
    N = gapped(X, 0.1)
    model = gaussian_of(X, 2)
    for name, pca in fitted_by_doors(X, scale=scale).items():
        right = model.completed(N)
        found = pca._model.completed(N)
        np.testing.assert_allclose(found, right, atol=1e-2 * X.std(axis=0).max(), err_msg=name)
        np.testing.assert_allclose(pca.transform(N), pca.transform(found), rtol=1e-9)
    assert pca.score(N) <= 1.0


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("shape", [(40, 330), (30, 4200)])
def test_a_fit_to_sparse_data_takes_gaps_later(shape, scale, center):
    """Also where no second moments are formed, with constant, half-full and empty features."""
    X = planted(*shape, 2)
    X[np.random.default_rng(1).random(shape) < 0.3] = 0.0
    X[:, ::7] *= np.random.default_rng(2).random(X[:, ::7].shape) < 0.1
    X[:, 3], X[:, 5] = 2.5, 0.0
    N = gapped(X, 0.1)
    pca = ob.SparsePCA(
        2, n_nonzero=6, scale=scale, center=center, effort=0.01, missing="em", random_state=0
    )
    # Weights: dense data without weights and centring has a centred model.
    right = pca.fit(X, sample_weight=np.ones(len(X)))._model.completed(N)
    found = pca.fit(sparse.csr_array(X))._model.completed(N)
    np.testing.assert_allclose(found, right, atol=1e-2 * X.std(axis=0).max())
    np.testing.assert_allclose(pca.transform(N), pca.transform(found), rtol=1e-9)


def test_a_model_of_gaps_needs_a_fit_with_one():
    X = planted(60, 9, 2)
    pca = ob.SparsePCA(2, n_nonzero=6, random_state=0).fit(X).set_params(missing="em")
    with pytest.raises(ValueError, match=r"after a fit with missing=None.*fit again"):
        pca.transform(gapped(X, 0.1))


def test_a_fit_that_is_not_centred_takes_gaps_later():
    X = planted(60, 9, 2)
    for name, pca in fitted_by_doors(X, center=False).items():
        completed = pca.inverse_transform(pca.transform(gapped(X, 0.1)))
        assert np.isfinite(completed).all(), name


def test_the_components_of_complete_data_do_not_depend_on_missing():
    X = planted(60, 9, 2)
    em, none = (
        ob.SparsePCA(2, n_nonzero=6, missing=missing, random_state=0).fit(X).components_
        for missing in ("em", None)
    )
    np.testing.assert_array_equal(em, none)


@pytest.mark.parametrize("gaps", [1, 20])
def test_folds_with_gaps_are_ranked(gaps):
    """Also folds whose samples for the fit have none."""
    X = planted(72, 8, 2)
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


def test_the_deadline_ends_the_iteration(monkeypatch):
    steps = []
    parts = Gaussian.parts
    monkeypatch.setattr(Gaussian, "parts", lambda self, data: steps.append(1) or parts(self, data))
    data = gapped(planted(30, 12, 3), 0.3)
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


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_a_choice_from_held_out_entries_takes_gaps(share):
    X = planted(100, 15, 3)
    choice = ob.choose_n_components(gapped(X, share), "held_out", most=6, random_state=0)
    assert choice.n_components == 3
    with pytest.raises(ValueError, match=r"no missing value \(NaN\); method='held_out'"):
        ob.choose_n_components(gapped(X, 0.1))


@pytest.mark.parametrize("method", ["parallel", "held_out"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e9])
def test_a_choice_for_data_that_do_not_vary(method, value):
    choice = ob.choose_n_components(np.full((10, 4), value), method, random_state=0)
    assert choice.n_components == 1
    assert not choice.values.any()
