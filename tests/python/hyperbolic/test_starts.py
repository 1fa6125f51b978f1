"""Starts of mixed signature, as those of `random_j_orthogonal`; others are refused."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob

A = np.random.default_rng(0).standard_normal((12, 8))
C = -A.T @ A
J = [1, 1, 1, 1, -1, -1, -1, -1]


def test_a_negative_start_is_refused_under_a_mixed_signature():
    problem = ob.JOrthogonalProblem(ob.Quadratic(-C), J, ob.NonNegative())
    for solver in (ob.JOBCD(), None):
        with pytest.raises(ValueError, match=r"\bx0\b"):
            ob.solve(problem, "random", solver=solver)
        result = ob.solve(problem, solver=solver, max_sweeps=3)
        assert result.x.min() >= 0.0


J2 = np.array([1, -1])


def boost(rapidity, n=2, signs=J2):
    """A boost of the first row of each sign, J-orthogonal up to the rounding of its entries."""
    X = np.eye(n)
    i, k = np.flatnonzero(signs > 0)[0], np.flatnonzero(signs < 0)[0]
    X[[i, k], [i, k]] = np.cosh(rapidity)
    X[[i, k], [k, i]] = np.sinh(rapidity)
    return X


def drift(X, signs):
    J = np.diag(signs).astype(float)
    return float(np.linalg.norm(X.T @ J @ X - J))


SOLVERS = (None, ob.JOBCD(), ob.JOBCD(side="columns"), ob.JOBCD(side="rows"), ob.Auto())


@pytest.mark.parametrize("rapidity", [0.0, 3.0, 8.0, 10.0, 12.0, 15.0, 18.0])
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_no_start_leads_below_the_infimum(rapidity, solver):
    problem = ob.HyperbolicEigenvalueProblem(np.diag([2.0, 1.0]), J2)
    result = ob.solve(problem, boost(rapidity), solver=solver, n_threads=1, max_sweeps=200)
    assert result.objective >= 5.0 * (1.0 - 1e-12)
    size = float(np.vdot(result.x, result.x))
    assert abs(result.feasibility - drift(result.x, J2)) <= 1e-14 * size
    if result.converged:
        assert result.objective <= 5.0 * (1.0 + 1e-6)
        assert result.feasibility <= 1e-12


@pytest.mark.parametrize("signs", [J2, np.array([1, -1, 1, 1]), np.array([-1, -1, 1])], ids=str)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4, 1e8, 1e30, 1e200])
def test_singular_and_far_starts_are_refused(signs, size):
    n = signs.size
    smooth = ob.Quadratic(np.eye(n) * 3.0 + 1.0)
    problems = [
        ob.HyperbolicEigenvalueProblem(np.eye(n), signs),
        ob.JOrthogonalProblem(smooth, signs),
        ob.JOrthogonalProblem(smooth, signs, ob.L1(0.1)),
        ob.JOrthogonalProblem(ob.SmoothFunction(lambda x: (np.sum(x**2), 2 * x), n), signs),
    ]
    starts = [np.full((n, n), size), size * np.eye(n), boost(20.0, n, signs)]
    for problem in problems:
        for x0 in starts:
            if size == 1.0 and x0 is starts[1]:
                continue
            with pytest.raises(ValueError, match="x0 must satisfy XᵀJX = J"):
                ob.solve(problem, x0, n_threads=1, max_time=5.0)
    if n > 2 or size != 1.0:
        with pytest.raises(ValueError, match="X must satisfy XᵀJX = J"):
            ob.hyperbolic.hyperbolic_cs(starts[0], signs)


def test_the_message_names_the_repair_of_single_precision():
    signs = np.array([1, 1, -1, 1, -1])
    exact = ob.hyperbolic.random_j_orthogonal(signs, seed=4)
    single = exact.astype(np.float32)
    problem = ob.HyperbolicEigenvalueProblem(
        np.random.default_rng(0).standard_normal((9, 5)), signs
    )
    with pytest.raises(ValueError, match=r"indefinite_polar\(x0, signature\)\[0\]"):
        ob.solve(problem, single)
    repaired = ob.hyperbolic.indefinite_polar(single, signs)[0]
    assert np.abs(repaired - exact).max() < 1e-5
    assert ob.solve(problem, repaired).converged


@pytest.mark.parametrize("error", [1e-15, 1e-12, 1e-9])
def test_rounding_of_a_start_is_repaired(error):
    signs = np.array([1, 1, -1, 1, -1])
    exact = ob.hyperbolic.random_j_orthogonal(signs, seed=4)
    noise = np.random.default_rng(1).standard_normal((5, 5))
    x0 = exact + error * noise
    problem = ob.HyperbolicEigenvalueProblem(
        np.random.default_rng(0).standard_normal((9, 5)), signs
    )
    for solver in (ob.JOBCD(), ob.Auto()):
        result = ob.solve(problem, x0, solver=solver, max_time=0.0)
        assert drift(result.x, signs) <= 1e-14 * float(np.vdot(x0, x0))
        assert result.feasibility <= 1e-14 * float(np.vdot(x0, x0))


def test_random_matrices_are_accepted_starts_or_refused_by_scale():
    for signs in ([1, -1], [1, 1, -1], [-1, 1, -1, 1, 1, -1]):
        for scale in (0.0, 0.5, 2.0, 4.0, 30.0, 1000.0, 1e300):
            for seed in range(4):
                try:
                    X = ob.hyperbolic.random_j_orthogonal(signs, scale=scale, seed=seed)
                except ValueError:
                    assert scale > 2.0
                    with pytest.raises(ValueError, match="scale must keep all rapidities"):
                        ob.hyperbolic.random_j_orthogonal(signs, scale=scale, seed=seed)
                    continue
                assert drift(X, signs) <= 1e-14 * max(1.0, float(np.vdot(X, X)))
                ob.solve(ob.HyperbolicEigenvalueProblem(np.eye(len(signs)), signs), X)
