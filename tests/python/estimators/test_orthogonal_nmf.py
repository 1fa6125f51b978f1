"""`OrthogonalNMF` beside plain clusterings of the same samples."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob

pytest.importorskip("sklearn")
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from orthobcd.sklearn.orthogonal_nmf import by_lines


def explained(A: np.ndarray, labels: np.ndarray) -> float:
    """Sum of the largest squared singular values of the clusters: ‖AᵀX‖² of the best X."""
    return sum(np.linalg.norm(A[labels == k], 2) ** 2 for k in np.unique(labels))


@pytest.mark.slow
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits])
@pytest.mark.parametrize("r", [3, 6])
def test_the_objective_is_lower_than_that_of_spherical_k_means(load, r):
    A = load().data[:300]
    unit = A / np.linalg.norm(A, axis=1, keepdims=True)
    plain = explained(A, KMeans(r, n_init=10, random_state=0).fit_predict(unit))
    nmf = ob.OrthogonalNMF(r, random_state=0).fit(A)
    assert np.sum(nmf.components_**2) >= plain * (1.0 - 1e-9)
    start = by_lines(A, r, 0)
    assert np.sum(nmf.components_**2) >= np.sum((A.T @ start) ** 2) * (1.0 - 1e-9)


@pytest.mark.parametrize("r", [1, 2, 5])
def test_lines_are_feasible_memberships(r):
    A = np.random.default_rng(r).gamma(0.5, size=(40, 8))
    x = by_lines(A, r, 0)
    assert x.min() >= 0.0
    np.testing.assert_allclose(x.T @ x, np.eye(r), atol=1e-12)
    assert (np.count_nonzero(x, axis=1) <= 1).all()
    np.testing.assert_array_equal(x, by_lines(np.asfortranarray(A), r, 0))


def test_fewer_lines_than_clusters_are_no_start():
    """Two directions have no three clusters."""
    A = np.kron(np.eye(2), np.ones((3, 2)))
    assert by_lines(A, 3, 0) is None or by_lines(A, 3, 0).any(axis=0).all()
    assert ob.OrthogonalNMF(3, random_state=0).fit(A).reconstruction_err_ < 1e-7
