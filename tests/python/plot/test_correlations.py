"""Correlations and shares of variance in plots."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as pyplot
import numpy as np
import pytest
from scipy import sparse

import orthobcd as ob

pytestmark = pytest.mark.usefixtures("short_searches")


def drawn(pca: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The correlations of a circle, and the shares of principal components of a scree plot."""
    pyplot.close("all")
    ax, used = ob.plot.correlation_circle(pca, X), pca.components_[:2].any(axis=0)
    tips = np.empty((len(used), 2))
    tips[~used] = ax.collections[0].get_offsets()
    tips[used] = [
        next(t.xy for t in ax.texts if t.get_text() == f"x{j}") for j in np.flatnonzero(used)
    ]
    lines = {line.get_label(): line for line in ob.plot.scree(pca, X).lines}
    return tips, lines["principal components"].get_ydata() / 100.0


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e8])
@pytest.mark.parametrize("density", [0.1, 0.45, 0.9, 1.0])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_matrix, list])
def test_correlations_and_shares_of_data_of_any_mean(container, density, mean):
    rng = np.random.default_rng(1)
    values = np.repeat(rng.standard_normal((300, 1)), 3, axis=1) + rng.standard_normal((300, 3))
    data = np.where(rng.random(values.shape) < density, values + mean, 0.0)
    pca = ob.SparsePCA(2, n_nonzero=4, random_state=0).fit(data)
    correlations, shares = drawn(pca, container(data))
    right = np.corrcoef(data.T, pca.transform(data).T)[:3, 3:]
    np.testing.assert_allclose(correlations, right, atol=1e-6)
    eigenvalues = np.linalg.eigvalsh(np.cov(data.T))[::-1]
    right = np.cumsum(eigenvalues / eigenvalues.sum())[:2]
    np.testing.assert_allclose(shares, right, atol=1e-6)


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_correlations_over_the_known_samples(share):
    rng = np.random.default_rng(1)
    values = np.repeat(rng.standard_normal((200, 2)), 3, axis=1) + rng.standard_normal((200, 6))
    data = np.where(rng.random(values.shape) < share, np.nan, values)
    data[:, 5] = np.where(np.arange(200) < 2, 1.0, np.nan)
    pca = ob.SparsePCA(2, n_nonzero=4, missing="em", random_state=0).fit(data)
    scores = pca.transform(data)
    found, shares = drawn(pca, data)
    for j in range(5):
        known = ~np.isnan(data[:, j])
        right = np.corrcoef(data[known, j], scores[known].T)[0, 1:]
        np.testing.assert_allclose(found[j], right, atol=1e-12)
    assert not found[5].any()
    # They bound what any orthonormal components explain of the same moments.
    assert (shares >= np.cumsum(pca.explained_variance_ratio_) - 1e-4).all()
    whole = ob.SparsePCA(6, n_nonzero=36, missing="em", random_state=0).fit(data)
    assert drawn(whole, data)[1][-1] == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"X must have no missing value \(NaN\)"):
        ob.plot.scree(ob.SparsePCA(2, n_nonzero=4).fit(values), data)
