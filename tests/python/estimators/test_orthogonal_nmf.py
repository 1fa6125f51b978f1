"""`OrthogonalNMF`: memberships, and comparison with plain clusterings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import normalized_mutual_info_score

import orthobcd as ob
from orthobcd.sklearn.orthogonal_nmf import by_lines


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


def blocks(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Samples of four kinds, each a multiple of a profile, with noise."""
    rng = np.random.default_rng(seed)
    profiles = rng.random((4, 30)) * (rng.random((4, 30)) < 0.4)
    labels = rng.integers(0, 4, 80)
    data = rng.uniform(0.5, 2.0, (80, 1)) * profiles[labels] + 0.05 * rng.random((80, 30))
    return data, labels


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_orthogonal_nmf(container):
    A, labels = blocks()
    nmf = ob.OrthogonalNMF(4, random_state=0).fit(container(A))
    X, Y = nmf.membership_, nmf.components_
    np.testing.assert_allclose(X.T @ X, np.eye(4), atol=1e-12)
    assert X.min() >= 0.0
    assert Y.min() >= 0.0
    np.testing.assert_allclose(Y, X.T @ A, atol=1e-9)
    assert nmf.reconstruction_err_ == pytest.approx(np.linalg.norm(A - X @ Y))
    assert nmf.result_.objective == pytest.approx(-0.5 * np.sum(Y**2))
    assert (np.count_nonzero(X, axis=1) <= 1).all()
    assert normalized_mutual_info_score(labels, nmf.labels_) == pytest.approx(1.0)
    np.testing.assert_array_equal(nmf.predict(container(A)), nmf.labels_)
    # No other memberships with a single entry each fit the samples better.
    W = nmf.transform(container(A))
    assert (np.count_nonzero(W, axis=1) <= 1).all()
    for k in range(4):
        alone = np.maximum(A @ Y[k], 0.0) / (Y[k] @ Y[k])
        left = np.linalg.norm(A - np.outer(alone, Y[k]), axis=1)
        assert (np.linalg.norm(A - W @ Y, axis=1) <= left + 1e-12).all()
    assert nmf.fit_predict(container(A)).shape == (80,)
    with pytest.raises(ValueError, match=r"(?i)negative"):
        ob.OrthogonalNMF(2).fit(container(-A))
    with pytest.raises(ValueError, match="n_components"):
        ob.OrthogonalNMF(81).fit(A)


@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize("shape", [(5000, 3), (3, 5000)])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_products_of_a_clustering_are_of_all_rows(shape, container):
    A = np.random.default_rng(0).uniform(size=shape)
    nmf = ob.OrthogonalNMF(2, random_state=0).fit(container(A))
    np.testing.assert_allclose(nmf.components_, nmf.membership_.T @ A)
    left = np.linalg.norm(A - nmf.membership_ @ nmf.components_)
    assert nmf.reconstruction_err_ == pytest.approx(left)


def test_one_sample_is_a_cluster():
    A, _ = blocks()
    nmf = ob.OrthogonalNMF().fit(A[:1])
    np.testing.assert_array_equal(nmf.membership_, [[1.0]])
    np.testing.assert_allclose(nmf.components_, A[:1])
    assert (nmf.result_, nmf.n_iter_, nmf.labels_[0]) == (None, 1, 0)
    two = ob.OrthogonalNMF(2, random_state=0).fit(A[[0, -1]])
    np.testing.assert_allclose(two.membership_.sum(axis=0), [1.0, 1.0])
    assert set(two.labels_) == {0, 1}


def test_samples_of_zeros_have_a_label():
    A, _ = blocks()
    A[3] = 0.0
    nmf = ob.OrthogonalNMF(4, random_state=0).fit(A)
    assert 0 <= nmf.labels_[3] < 4
    assert not nmf.transform(A[3:4]).any()
