"""`NonnegativePCA` and `NonnegativePCAProblem`."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine

import orthobcd as ob

pytestmark = pytest.mark.timeout(600)  # of fits on a busy machine
A = np.random.default_rng(3).standard_normal((60, 15)) @ np.diag(np.linspace(0.5, 2.0, 15))


def test_nonnegative_columns_share_no_row():
    data = load_digits().data
    points = [ob.NonnegativePCA(n_components=10, random_state=0).fit(data).components_.T]
    problem = ob.NonnegativePCAProblem(data, 10, center=True)
    for maker in ("supports", "splitting", "partition"):
        points.append(ob.solve(problem, solver=ob.Auto(makers=[maker]), max_sweeps=200).x)
    for x in points:
        assert x.min() == 0.0
        assert np.count_nonzero(x, axis=1).max() == 1


def test_the_default_tolerance_is_small():
    X = np.abs(load_wine().data)
    options = {"solver": ob.OBCD(), "random_state": 0, "scale": True}
    default, same, loose = (
        ob.NonnegativePCA(3, **options, **more).fit(X).objective_
        for more in ({}, {"tol": 1e-10}, {"tol": 1.0})
    )
    assert default == same < loose


def test_limits_of_components():
    pca = ob.NonnegativePCA(3, n_nonzero=[5, 3, 3], random_state=0).fit(A)
    assert np.all(np.count_nonzero(pca.components_, axis=1) <= [5, 3, 3])
    assert pca.components_.min() >= 0.0


def test_small_and_large_data_are_fitted():
    known = ob.NonnegativePCA(2, random_state=0).fit(A).explained_variance_ratio_.sum()
    for size in (1e-45, 1e45):
        pca = ob.NonnegativePCA(2, random_state=0).fit(A * size)
        np.testing.assert_allclose(
            pca.explained_variance_.sum(), known * np.var(A * size, axis=0, ddof=1).sum(), rtol=1e-3
        )


def test_a_warm_start_is_improved_without_a_search():
    X = load_iris().data
    pca = ob.NonnegativePCA(2, random_state=0, warm_start=True).fit(X)
    first, components = pca.objective_, pca.components_
    assert pca.result_.search is not None
    for solver in (None, ob.OBCD()):
        assert pca.set_params(solver=solver).fit(X).result_.search is None
        assert pca.objective_ <= first + 1e-9 * abs(first)
        np.testing.assert_allclose(pca.components_, components, atol=1e-5)
