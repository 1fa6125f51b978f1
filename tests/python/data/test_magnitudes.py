"""Entries and weights that are too large or too small."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob

A = np.random.default_rng(0).standard_normal((12, 8))
C = -A.T @ A
J = [1, 1, 1, 1, -1, -1, -1, -1]

SIZES = {
    "C": lambda s: ob.Quadratic(C * s),
    "linear": lambda s: ob.Quadratic(C * 0.0, linear=A[:8] * s),
    "D": lambda s: ob.Quadratic(C, D=np.eye(3) * s),
    "A": lambda s: ob.GramQuadratic(A * s),
    "scale": lambda s: ob.GramQuadratic(A, scale=s),
    "A of PCA": lambda s: ob.SparsePCAProblem(A * s, 2, ob.L0(1.0), center=True),
    "A of nonnegative PCA": lambda s: ob.NonnegativePCAProblem(A * s, 2),
    "A of pencils": lambda s: ob.HyperbolicEigenvalueProblem(A * s, J),
    "C of hyperbolic PCA": lambda s: ob.hyperbolic.HyperbolicPCAProblem(-C * s, J, 2),
    "A of a loss": lambda s: ob.LogisticLoss(A * s, A[:, :3], np.ones(12)),
    "B of a loss": lambda s: ob.LogisticLoss(A, A[:, :3] * s, np.ones(12)),
    "D of a probe": lambda s: ob.hyperbolic.HyperbolicStructuralProbeProblem(A * s, J),
    "X": lambda s: ob.SparsePCA(2).fit(A * s),
}


@pytest.mark.parametrize("size", [1e160, 1e-160])
@pytest.mark.parametrize("case", SIZES)
def test_products_that_overflow_or_vanish_are_refused(case, size):
    if (case, size) == ("D", 1e-160):
        size = 1e-130
    name = "C" if (case, size) == ("D", 1e-130) else case.split()[0]
    with pytest.raises(ValueError, match=rf"\b{name}\b.*magnitude"):
        SIZES[case](size)


@pytest.mark.parametrize("size", [1e308, 1e121])
def test_weights_that_overflow_are_refused(size):
    for make in (ob.L0, ob.L1, lambda s: ob.L1(np.full((8, 3), s))):
        with pytest.raises(ValueError, match=r"\blam\b"):
            make(size)


@pytest.mark.parametrize("size", [0.0, 1e-118, 1e-40, 1e40, 1e118])
@pytest.mark.parametrize("penalty", [ob.L0, ob.L1, None], ids=["l0", "l1", "nonnegative"])
def test_what_is_accepted_is_valued(size, penalty):
    h = ob.NonNegative() if penalty is None else penalty(0.5 * size)
    problem = ob.StiefelProblem(ob.Quadratic(C * size), h, 2)
    result = ob.solve(problem, solver=ob.OBCD(), max_sweeps=50)
    assert np.isfinite(result.objective)
    assert result.feasibility < 1e-12
    value = 0.5 * np.vdot(result.x, C @ result.x) * size
    assert result.smooth_value == pytest.approx(value, rel=1e-12)
    assert np.diff(result.history["objective"]).max(initial=0.0) <= 0.0
