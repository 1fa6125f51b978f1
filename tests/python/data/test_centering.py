"""Means far from zero: all reported values are those of the centred data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import orthobcd as ob

SHIFT = 1e8


def dense(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((30, 8)) + SHIFT


def partly(seed: int = 0) -> np.ndarray:
    """Columns with all, most, some and few entries stored, two of them shifted."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 8))
    for k, share in enumerate((1.0, 1.0, 0.9, 0.6, 0.5, 0.4, 0.2, 0.1)):
        X[rng.permutation(30)[round(30 * share) :], k] = 0.0
    X[:, :2] += SHIFT
    return X


def means(X: np.ndarray) -> np.ndarray:
    """Means, in as many digits as the machine has."""
    return X.astype(np.longdouble).mean(axis=0).astype(float)


def exact(X: np.ndarray) -> np.ndarray:
    """X less its means, in as many digits as the machine has."""
    wide = X.astype(np.longdouble)
    return (wide - wide.mean(axis=0)).astype(float)


KINDS = {
    "dense": (dense, np.asarray),
    "sparse, all stored": (dense, sparse.csr_array),
    "sparse, some stored": (partly, sparse.csr_array),
    "sparse, some stored, CSC": (partly, sparse.csc_matrix),
}


@pytest.mark.parametrize("kind", KINDS)
def test_objectives(kind):
    """f and its certificate, from the covariance or from the data, are those of centred data."""
    make, container = KINDS[kind]
    X = make()
    centred = exact(X)
    x = np.linalg.qr(np.random.default_rng(1).standard_normal((8, 3)))[0]
    value = -0.5 * np.linalg.norm(centred @ x) ** 2
    formed = ob.SparsePCAProblem(container(X), 3, ob.L0(1.0), center=True)
    data = formed.A
    implicit = ob.StiefelProblem(ob.GramQuadratic(data, -1.0, means(X)), ob.L0(1.0), 3)
    known = ob.StiefelProblem(ob.Quadratic(-centred.T @ centred), ob.L0(1.0), 3)
    wanted = ob.certify(known, x)
    for problem in (formed, implicit):
        found = ob.certify(problem, x)
        assert found.smooth_value == pytest.approx(value, rel=1e-12)
        assert found.criticality == pytest.approx(wanted.criticality, rel=1e-9)
        assert found.block2_gap == pytest.approx(wanted.block2_gap, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_descent_from_the_data_keeps_its_value(kind):
    make, container = KINDS[kind]
    X = make()
    data = sparse.csc_array(X) if container is not np.asarray else X
    smooth = ob.GramQuadratic(data, -1.0, means(X))
    result = ob.solve(ob.StiefelProblem(smooth, ob.L1(1.0), 3), "random", solver=ob.OBCD())
    value = -0.5 * np.linalg.norm(exact(X) @ result.x) ** 2
    assert result.smooth_value == pytest.approx(value, rel=1e-12)
    assert np.diff(result.history["objective"]).max() <= 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [False, True])
def test_estimators(kind, scale):
    make, container = KINDS[kind]
    X = make()
    deviation = exact(X).std(axis=0)
    centred = exact(X) / deviation if scale else exact(X)
    for pca in (
        ob.SparsePCA(2, n_nonzero=6, scale=scale, random_state=0),
        ob.NonnegativePCA(2, scale=scale, random_state=0),
    ):
        pca.fit(container(X))
        variances = np.var(centred @ pca.components_.T, axis=0, ddof=1)
        np.testing.assert_allclose(pca.explained_variance_, variances, rtol=1e-10)
        total = np.var(centred, axis=0, ddof=1).sum()
        np.testing.assert_allclose(pca.explained_variance_ratio_, variances / total, rtol=1e-10)
        if scale:
            np.testing.assert_allclose(pca.scale_, deviation, rtol=1e-12)
        assert pca.score(container(X)) == pytest.approx(variances.sum() / total, rel=1e-6)
        # The error of a score is that of the attributes, which are rounded to 1e-16 of the means.
        np.testing.assert_allclose(
            pca.transform(container(X)), centred @ pca.components_.T, atol=1e-15 * SHIFT * 10
        )
    if not scale:
        # Scaled features have equal variances, so that rounding decides which are the largest.
        known = ob.lam_max(centred, 2)
        assert pca_of(container(X)).alpha_max_ == pytest.approx(known, rel=1e-9)


def pca_of(X):
    return ob.SparsePCA(2, random_state=0).fit(X)


def test_components_do_not_depend_on_the_mean():
    X = np.random.default_rng(0).standard_normal((30, 8))
    # A shift by a power of two only rounds the last bits of the data.
    shifted = X.astype(np.float32).astype(float) + 2.0**26
    first = ob.SparsePCA(2, n_nonzero=6, random_state=0).fit(shifted - 2.0**26)
    second = ob.SparsePCA(2, n_nonzero=6, random_state=0).fit(shifted)
    np.testing.assert_allclose(first.components_, second.components_, atol=1e-6)
    np.testing.assert_allclose(first.explained_variance_, second.explained_variance_, rtol=1e-9)
