"""Competitors under a limit on nonzeros: feasible, and never below what one component can have."""

from __future__ import annotations

import numpy as np
import pytest

from orthobcd_bench.baselines.limits import Covariance, forward_selection, truncated_power

pytestmark = pytest.mark.long


@pytest.mark.parametrize("method", [truncated_power, forward_selection])
@pytest.mark.parametrize("shape", [(40, 12), (8, 60)])
@pytest.mark.parametrize("counts", [[1, 1], [4, 3, 2], [2, 5]])
def test_components_within_a_limit(method, shape, counts):
    A = np.random.default_rng(len(counts)).standard_normal(shape)
    from_data = method(Covariance(A), counts)
    from_matrix = method(Covariance(A.T @ A, of_data=False), counts)
    for x in (from_data, from_matrix):
        assert np.count_nonzero(x, axis=0).tolist() == counts
        np.testing.assert_allclose(x.T @ x, np.eye(len(counts)), atol=1e-12)
    explained = np.sum((A @ from_data) ** 2)
    np.testing.assert_allclose(np.sum((A @ from_matrix) ** 2), explained)
    # No worse than the features of largest variance, one for each component.
    variances = np.sort(np.sum(A**2, axis=0))[::-1]
    assert explained >= variances[: len(counts)].sum() * (1 - 1e-12)


def test_one_full_component_is_the_principal_axis():
    A = np.random.default_rng(0).standard_normal((30, 8))
    for p in (Covariance(A), Covariance(A.T @ A, of_data=False)):
        for method in (truncated_power, forward_selection):
            x = method(p, [8])
            np.testing.assert_allclose(np.sum((A @ x) ** 2), np.linalg.norm(A, 2) ** 2)
