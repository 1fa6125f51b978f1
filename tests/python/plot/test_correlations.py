"""Correlations and shares of variance in plots."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import orthobcd as ob

pytestmark = pytest.mark.usefixtures("short_searches")


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e8])
@pytest.mark.parametrize("density", [0.1, 0.45, 0.9, 1.0])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_matrix, list])
def test_correlations_and_shares_of_data_of_any_mean(container, density, mean):
    from orthobcd.plot.scatter import _correlations, _principal_shares

    rng = np.random.default_rng(1)
    values = np.repeat(rng.standard_normal((300, 1)), 3, axis=1) + rng.standard_normal((300, 3))
    data = np.where(rng.random(values.shape) < density, values + mean, 0.0)
    scores = values[:, :1] * [1.0, -2.0] + rng.standard_normal((300, 2))
    right = np.corrcoef(data.T, scores.T)[:3, 3:]
    np.testing.assert_allclose(_correlations(container(data), scores), right, atol=1e-6)
    pca = ob.SparsePCA(2, n_nonzero=4, random_state=0).fit(data)
    eigenvalues = np.linalg.eigvalsh(np.cov(data.T))[::-1]
    shares = _principal_shares(pca, container(data))
    np.testing.assert_allclose(shares, eigenvalues / eigenvalues.sum(), atol=1e-6)


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_correlations_over_the_known_samples(share):
    from orthobcd.plot.scatter import _correlations, _principal_shares

    rng = np.random.default_rng(1)
    values = np.repeat(rng.standard_normal((200, 2)), 3, axis=1) + rng.standard_normal((200, 6))
    data = np.where(rng.random(values.shape) < share, np.nan, values)
    data[:, 5] = np.where(np.arange(200) < 2, 1.0, np.nan)
    pca = ob.SparsePCA(2, n_nonzero=4, missing="em", random_state=0).fit(data)
    scores = pca.transform(data)
    found = _correlations(data, scores)
    for j in range(5):
        known = ~np.isnan(data[:, j])
        right = np.corrcoef(data[known, j], scores[known].T)[0, 1:]
        np.testing.assert_allclose(found[j], right, atol=1e-12)
    assert not found[5].any()
    shares = _principal_shares(pca, data)
    assert shares.sum() == pytest.approx(1.0)
    # They bound what any orthonormal components explain of the same moments.
    assert (np.cumsum(shares)[:2] >= np.cumsum(pca.explained_variance_ratio_) - 1e-4).all()
    with pytest.raises(ValueError, match=r"X must have no missing value \(NaN\)"):
        ob.plot.scree(ob.SparsePCA(2, n_nonzero=4).fit(values), data)
