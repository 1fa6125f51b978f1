"""`uncorrelated=True` and `score_correlation_`."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

import orthobcd as ob
from orthobcd.sklearn.base import decorrelated

short = pytest.mark.usefixtures("short_searches")
pytestmark = pytest.mark.timeout(600)  # of fits, scikit-learn's own too, on a busy machine


@pytest.mark.parametrize("name", ["include", "exclude"])
def test_uncorrelated_components_choose_their_features(name):
    pca = ob.SparsePCA(2, n_nonzero=4, uncorrelated=True, **{name: [0]})
    with pytest.raises(ValueError, match="uncorrelated must be False with include or exclude"):
        pca.fit(load_iris().data)


@short
def test_score_correlation():
    X = load_breast_cancer().data
    pca = ob.SparsePCA(3, scale=True, random_state=0).fit(X)
    np.testing.assert_allclose(
        pca.score_correlation_, np.corrcoef(pca.transform(X), rowvar=False), atol=1e-10
    )


@pytest.mark.parametrize(
    ("cardinality", "turns"),
    [(None, False), (14, False), (16, True), ([6, 6, 4], True), ([6, 5, 5], False)],
)
def test_components_that_share_features_can_be_uncorrelated(cardinality, turns):
    """Two on six features with five each, one on four others."""
    rng = np.random.default_rng(0)
    V = np.zeros((12, 3))
    V[:6, :2] = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    V[6:10, 2] = 0.5
    for k, row in ((0, 0), (1, 1)):
        angle = np.arctan2(V[row, k], V[row, 1 - k])
        c, s = np.cos(angle), np.sin(angle)
        V[:, [k, 1 - k]] = V[:, [k, 1 - k]] @ np.array([[c, s], [-s, c]])
        if k == 0:
            V[row, k] = 0.0
            break
    second = V.T @ np.cov(rng.standard_normal((12, 40))) @ V
    turned = decorrelated(V, second, cardinality)
    np.testing.assert_allclose(turned.T @ turned, np.eye(3), atol=1e-12)
    inner = (V.T @ turned).T @ second @ (V.T @ turned)
    assert (abs(inner[0, 1]) < 1e-12) == turns
    assert np.trace(inner) == pytest.approx(np.trace(second))
    if not turns:
        np.testing.assert_array_equal(turned, V)


@pytest.mark.parametrize("r", [2, 3, 5])
def test_full_components_can_be_uncorrelated(r):
    """A rotation that keeps the number of nonzeros is one that is allowed."""
    rng = np.random.default_rng(r)
    V = np.linalg.qr(rng.standard_normal((9, r)))[0]
    second = np.cov(rng.standard_normal((9, 40)))
    turned = decorrelated(V, V.T @ second @ V, None)
    inner = turned.T @ second @ turned
    np.testing.assert_allclose(inner, np.diag(np.diag(inner)), atol=1e-12)


@short
def test_uncorrelated_keeps_what_is_explained():
    X = load_breast_cancer().data
    plain, turned = (
        ob.SparsePCA(3, n_nonzero=12, scale=True, uncorrelated=u, random_state=0).fit(X)
        for u in (False, True)
    )
    assert turned.n_nonzero_ <= 12
    assert turned.score(X) == pytest.approx(plain.score(X), rel=1e-12)
    np.testing.assert_allclose(turned.components_ @ turned.components_.T, np.eye(3), atol=1e-12)
    with pytest.raises(ValueError, match="uncorrelated"):
        ob.SparsePCA(2, penalty="l1", uncorrelated=True).fit(X)


@short
@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e3])
def test_correlations_of_scores_do_not_depend_on_units(size):
    X = load_iris().data
    correlations = [
        ob.SparsePCA(3, n_nonzero=9, random_state=0).fit(c * X).score_correlation_
        for c in (1.0, size)
    ]
    np.testing.assert_allclose(correlations[1], correlations[0], atol=1e-9)
    np.testing.assert_array_equal(np.diag(correlations[0]), np.ones(3))
