"""`penalty` of estimators: names and penalty objects."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import orthobcd as ob

PIECES = ([-0.1, 0.1], [(-0.05, -1.0, 0.0), (0.0, 0.0, 10.0), (-0.05, 1.0, 0.0)])

PENALTIES = {
    "L0": lambda: ob.L0(3.0),
    "L1": lambda: ob.L1(3.0),
    "weights": lambda: ob.L1(np.arange(1.0, 25.0).reshape(8, 3)),
    "CappedL1": lambda: ob.CappedL1(9.0, 0.2),
    "MCP": lambda: ob.MCP(3.0, 0.1),
    "SCAD": lambda: ob.SCAD(3.0),
    "Box": lambda: ob.Box(-0.55, 0.9),
    "PiecewiseQuadratic": lambda: ob.PiecewiseQuadratic(*PIECES),
    "one side": lambda: ob.PiecewiseQuadratic([0.0], [(0.0, -20.0, 0.0), (0.0, 0.5, 0.0)]),
    "NonNegative": lambda: ob.NonNegative(),
    "NoPenalty": lambda: ob.NoPenalty(),
    "Sum": lambda: ob.L0(3.0) + ob.NonNegative(),
    "Cardinality": lambda: ob.Cardinality(9),
    "columns": lambda: ob.Cardinality([2, 3, 4], nonnegative=True),
    "RowSparse": lambda: ob.RowSparse(count=5),
}


def data() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 8)) + 2.0 * rng.standard_normal((40, 1))


@pytest.mark.parametrize("solver", [None, ob.OBCD()])
@pytest.mark.parametrize("kind", PENALTIES)
def test_an_estimator_minimises_the_objective_of_its_penalty(kind, solver):
    X, penalty = data(), PENALTIES[kind]()
    pca = clone(ob.SparsePCA(3, penalty=penalty, solver=solver, random_state=0)).fit(X)
    x = np.ascontiguousarray(pca.components_.T)
    problem = ob.SparsePCAProblem(X, 3, penalty, center=True)
    # F of the ordered and signed components is that of the search.
    assert ob.certify(problem, x).objective == pytest.approx(pca.objective_, rel=1e-9)
    if solver is None:
        # Two searches may end at different optima; those of another penalty are higher.
        limited = ob.solve(problem, max_work=0.01).objective
        assert pca.objective_ <= limited + 1e-3 * abs(limited)
    elif isinstance(penalty, ob.Separable):
        assert ob.certify(problem, x).block2_gap <= 1e-6 * abs(pca.objective_)
    assert pca.alpha_ is None
    assert pca.n_components_ == 3
    again = pickle.loads(pickle.dumps(pca))
    np.testing.assert_array_equal(again.transform(X), pca.transform(X))


def test_names_are_penalties_with_a_weight():
    X = data()
    for name, penalty in (("l0", ob.L0(9.0)), ("l1", ob.L1(9.0))):
        named = ob.SparsePCA(3, penalty=name, alpha=9.0, alpha_scale="absolute", random_state=0)
        given = ob.SparsePCA(3, penalty=penalty, random_state=0)
        np.testing.assert_array_equal(named.fit(X).components_, given.fit(X).components_)
    counted = ob.SparsePCA(3, n_nonzero=9, random_state=0).fit(X).components_
    given = ob.SparsePCA(3, penalty=ob.Cardinality(9), random_state=0).fit(X).components_
    np.testing.assert_array_equal(counted, given)


@pytest.mark.parametrize(
    ("error", "match", "options"),
    [
        (TypeError, "penalty", {"penalty": 3.0}),
        (TypeError, "penalty", {"penalty": ob.L0}),
        (ValueError, "penalty", {"penalty": "mcp"}),
        (ValueError, "alpha", {"penalty": ob.L0(1.0), "alpha": 0.1}),
        (ValueError, "n_nonzero", {"penalty": ob.L0(1.0), "n_nonzero": 5}),
        (ValueError, "n_features", {"penalty": ob.MCP(1.0, 2.0), "n_features": 5}),
        (ValueError, "uncorrelated", {"penalty": ob.MCP(1.0, 2.0), "uncorrelated": True}),
        (ValueError, "count", {"penalty": ob.Cardinality(99)}),
        (ValueError, "lam", {"penalty": ob.L1(np.ones((2, 2)))}),
        (TypeError, "certify", {"penalty": ob.MCP(1.0, 2.0), "certify": True}),
    ],
)
def test_refused(error, match, options):
    with pytest.raises(error, match=match):
        ob.SparsePCA(3, **options).fit(data())
