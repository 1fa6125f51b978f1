"""`sample_weight`: weights are repetitions of samples."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris

import orthobcd as ob

pytestmark = pytest.mark.usefixtures("short_searches")


@pytest.mark.parametrize("make", [ob.SparsePCA, ob.NonnegativePCA])
def test_weights_are_repetitions(make):
    X = load_digits().data[:300]
    weights = np.random.default_rng(0).integers(0, 4, 300)
    weighted = make(3, random_state=0).fit(X, sample_weight=weights)
    repeated = make(3, random_state=0).fit(X.repeat(weights, axis=0))
    for name in ("components_", "mean_", "explained_variance_", "objective_"):
        np.testing.assert_array_equal(getattr(weighted, name), getattr(repeated, name))
    sparsely = make(3, random_state=0).fit(sparse.csr_array(X), sample_weight=weights)
    np.testing.assert_array_equal(sparsely.components_, weighted.components_)
    parts = make(3, random_state=0)
    for rows in (slice(0, 100), slice(100, 300)):
        parts.partial_fit(X[rows], sample_weight=weights[rows], update=rows.stop == 300)
    np.testing.assert_array_equal(parts.components_, weighted.components_)


def test_weights_of_wide_data():
    """Rows are multiplied by the roots: the explained variance is that of the repeated samples."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 200))
    weights = rng.integers(0, 4, 20)
    repeated = X.repeat(weights, axis=0)
    pca = ob.SparsePCA(2, scale=True, random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_allclose(pca.scale_, repeated.std(axis=0))
    scores = pca.transform(repeated)
    np.testing.assert_allclose(pca.explained_variance_, scores.var(axis=0, ddof=1))
    np.testing.assert_allclose(scores.mean(axis=0), 0.0, atol=1e-12)
    S = sparse.csr_array(np.where(rng.random((4, 5000)) < 0.01, 1.0, 0.0))
    with pytest.raises(ValueError, match="sample_weight needs center=False"):
        ob.SparsePCA(1).fit(S, sample_weight=np.ones(4))
    plain = ob.SparsePCA(1, center=False, random_state=0)
    weighted = ob.SparsePCA(1, center=False, random_state=0).fit(S, sample_weight=[1, 2, 0, 1])
    plain.fit(sparse.vstack([S[[0, 1, 1, 3]]]))
    np.testing.assert_allclose(weighted.explained_variance_, plain.explained_variance_)
    np.testing.assert_array_equal(weighted.mean_, np.zeros(5000))


@pytest.mark.parametrize("bad", [[-1.0] * 150, [0.0] * 150, [1.0] * 149, [np.nan] * 150])
def test_weights_at_the_door(bad):
    with pytest.raises(ValueError, match=r"(?i)weight|nan"):
        ob.SparsePCA(2).fit(load_iris().data, sample_weight=bad)


@pytest.mark.parametrize("shift", [0.0, 1e6, 1e9])
def test_weighted_means_of_wide_data_are_accurate(shift):
    """To two units in the last place, against rational arithmetic."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 1600)) + shift
    weights = rng.uniform(0.5, 2.0, 200)
    pca = ob.SparsePCA(1, n_nonzero=2, random_state=0, max_time=0.0).fit(X, sample_weight=weights)
    exact = [Fraction(w) for w in weights]
    for j in range(0, 1600, 100):
        total = sum(w * Fraction(v) for w, v in zip(exact, X[:, j], strict=True))
        error = abs(Fraction(pca.mean_[j]) - total / sum(exact))
        assert error <= 2.0 * np.spacing(max(shift, 1.0))
