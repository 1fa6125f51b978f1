"""`fit_covariance`: a covariance is as good as its data."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

import orthobcd as ob
from orthobcd.data import (
    DEFINITENESS,
    as_covariance,
)

pytestmark = pytest.mark.usefixtures("short_searches")


@pytest.mark.slow
@pytest.mark.parametrize("scale", [False, True])
def test_covariance_of_data_is_data(scale):
    X = load_breast_cancer().data
    S = np.cov(X, rowvar=False)
    data = ob.SparsePCA(3, n_nonzero=12, scale=scale, random_state=0).fit(X)
    pca = ob.SparsePCA(3, n_nonzero=12, scale=scale, random_state=0)
    pca.fit_covariance(S, len(X), X.mean(axis=0))
    np.testing.assert_allclose(pca.mean_, data.mean_, rtol=1e-12)
    # The attributes are right for the found point; the two searches may end at different points.
    second = pca.components_ @ (S / np.outer(pca.scale_, pca.scale_) if scale else S)
    variances = np.sum(second * pca.components_, axis=1)
    np.testing.assert_allclose(pca.explained_variance_, variances, rtol=1e-9)
    scores = pca.transform(X)
    np.testing.assert_allclose(scores.var(axis=0, ddof=1), variances, rtol=1e-9)
    np.testing.assert_allclose(pca.score_correlation_, np.corrcoef(scores.T), atol=1e-9)
    assert pca.n_nonzero_ == 12


@pytest.mark.parametrize("scale", [False, True])
def test_covariance_and_mean_of_data_that_are_not_centred(scale):
    X = load_iris().data
    options = {"scale": scale, "center": False, "random_state": 0}
    data = ob.SparsePCA(2, **options).fit(X)
    pca = ob.SparsePCA(2, **options).fit_covariance(np.cov(X.T), len(X), X.mean(axis=0))
    np.testing.assert_array_equal(pca.mean_, np.zeros(4))
    second = X.T @ X / (len(X) - 1)
    for one in (data, pca):
        C = second if one.scale_ is None else second / np.outer(one.scale_, one.scale_)
        wanted = np.sum((one.components_ @ C) * one.components_, axis=1)
        np.testing.assert_allclose(one.explained_variance_, wanted, rtol=1e-9)
        share = wanted / np.trace(C)
        np.testing.assert_allclose(one.explained_variance_ratio_, share, rtol=1e-9)


def test_a_covariance_keeps_the_names_of_its_features():
    frame = load_iris(as_frame=True).data
    names = list(frame.columns)
    pca = ob.SparsePCA(2, n_nonzero=4, exclude=[names[2]]).fit_covariance(frame.cov(), 150)
    assert list(pca.feature_names_in_) == names == list(pca.loadings().features)
    assert not pca.components_[:, 2].any()
    assert pca.transform(frame).shape == (150, 2)
    pca.set_params(exclude=None).fit_covariance(frame.cov().to_numpy())
    assert not hasattr(pca, "feature_names_in_")
    assert pca.loadings().features[0] == "x0"


@pytest.mark.parametrize("n", [2, 10, 60])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("rank", [1, 0.5, 1.0])
def test_a_covariance_is_semidefinite_to_its_tolerance(n, size, rank):
    rng = np.random.default_rng(n)
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = np.where(np.arange(n) < max(1, int(rank * (n - 1))), rng.uniform(1.0, 3.0, n), 0.0)
    for lowest, words in ((0.9, None), (1.1, "positive semidefinite"), (1e3, "semidefinite")):
        S = size * (basis * values) @ basis.T
        values_below = lowest * DEFINITENESS * n * np.abs(S).max()
        S = S - values_below * np.outer(basis[:, -1], basis[:, -1])
        S = 0.5 * (S + S.T)
        if words is None:
            np.testing.assert_array_equal(as_covariance(S), S)
        else:
            with pytest.raises(ValueError, match=words):
                as_covariance(S)
    as_covariance(np.zeros((n, n)))


def test_covariance_at_the_door():
    pca = ob.SparsePCA(1)
    for bad, words in (
        (np.ones((2, 3)), "square"),
        ([[1.0, 0.5], [0.0, 1.0]], "symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "semidefinite"),
        ([[np.nan, 0.0], [0.0, 1.0]], "S"),
    ):
        with pytest.raises(ValueError, match=words):
            pca.fit_covariance(bad)
    with pytest.raises(ValueError, match="n_samples"):
        pca.fit_covariance(np.eye(2), 1)
    with pytest.raises(ValueError, match="mean"):
        pca.fit_covariance(np.eye(2), 5, mean=[0.0])
    assert pca.fit_covariance(np.eye(2)).components_.shape == (1, 2)


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 700])
def test_a_covariance_is_checked_beside_one_copy(n):
    factor = np.random.default_rng(n).standard_normal((n + 3, n))
    S = factor.T @ factor
    S = 0.5 * (S + S.T)
    given = S.copy()
    tracemalloc.start()
    try:
        matrix = as_covariance(S)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(S, given)
    # The factorization leaves no trace.
    np.testing.assert_array_equal(matrix, S)
    assert not np.shares_memory(matrix, S)
    if n > 500:
        assert most < 2.2 * S.nbytes


ROUNDINGS = 64.0


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("side", [0.5, 2.0])
def test_symmetry_is_up_to_the_rounding_of_the_type(kind, side):
    """On both sides of the tolerance: 64 roundings of the type, or that of double precision."""
    for least, make in (
        (1e-12, ob.Quadratic),
        (1e-10, lambda C: ob.SparsePCA(1, n_nonzero=2, random_state=0).fit_covariance(C, 50)),
    ):
        limit = max(least, ROUNDINGS * np.finfo(kind).eps)
        C = np.eye(3, dtype=kind) * kind(2.0)
        C[0, 1] = 2.0 * side * limit
        if side < 1.0:
            make(C)
        else:
            with pytest.raises(ValueError, match="must be symmetric"):
                make(C)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("m", "n"), [(50, 8), (25, 100), (400, 60)])
def test_covariances_of_single_precision_are_accepted(m, n, seed):
    rng = np.random.default_rng(seed)
    Y = (rng.standard_normal((m, 1)) + 0.1 * rng.standard_normal((m, n))).astype(np.float32)
    Y -= Y.mean(axis=0)
    weighted = (Y * np.full((m, 1), 1.0 / (m - 1), np.float32)).T @ Y
    for C in (weighted, Y.T @ Y / np.float32(m - 1), np.corrcoef(Y.T).astype(np.float32)):
        assert ob.SparsePCA(2, n_nonzero=5).fit_covariance(C, m).n_nonzero_ == 5
        ob.Quadratic(C)
    # A correlation out of range is an error in any precision.
    bad = np.eye(4, dtype=np.float32)
    bad[0, 1] = bad[1, 0] = 1.01
    with pytest.raises(ValueError, match="positive semidefinite"):
        ob.SparsePCA(2).fit_covariance(bad, m)
