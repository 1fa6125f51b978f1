"""`NoPenalty`: answers of eigenvectors, gradient and Newton steps elsewhere."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import orthobcd as ob

from ..solve.test_known_optima import symmetric, weighted

SIZES = [(2, 1), (2, 2), (5, 3), (30, 4), (64, 64), (300, 7)]


def least(C: np.ndarray, D: np.ndarray) -> float:
    """The minimum of ½⟨X, CXD⟩."""
    return weighted(np.linalg.eigvalsh(C), np.linalg.eigvalsh(D))


def test_beyond_what_is_decomposed(rng):
    """Where a decomposition takes longer than the work limit, a Krylov space answers."""
    data = rng.standard_normal((700, 600)) * np.linspace(1.0, 3.0, 600)
    C = -data.T @ data
    for D in (None, np.diag([3.0, 2.0, 1.0, 1.0])):
        metric = np.eye(4) if D is None else D
        problem = ob.StiefelProblem(ob.Quadratic(C, D=D), ob.NoPenalty(), 4)
        result = ob.solve(problem, max_work=0.2)
        assert result.converged
        assert result.objective - least(C, metric) <= 1e-9 * abs(result.objective)


def test_rotations_of_a_pencil():
    C, D = symmetric(5, 0), symmetric(5, 1)
    problem = ob.StiefelProblem(ob.Quadratic(C, D=D), ob.NoPenalty(), 5, determinant=1)
    result = ob.solve(problem)
    assert result.converged
    assert np.linalg.det(result.x) == pytest.approx(1.0, abs=1e-12)
    assert result.objective == pytest.approx(least(C, D), rel=1e-13)


@pytest.mark.parametrize(("n", "r"), [(2, 1), (5, 3), (30, 4), (40, 40), (200, 8)])
@pytest.mark.parametrize("form", ["trace", "brockett", "linear", "both"])
def test_obcd_converges_to_critical_points_within_little_work(n, r, form):
    """From every start, whatever multiple of I is added to C."""
    rng = np.random.default_rng(n)
    C = symmetric(n, 2)
    D = np.diag(np.arange(1.0, r + 1.0)) if form in ("brockett", "both") else None
    L = 3.0 * rng.standard_normal((n, r)) if form in ("linear", "both") else None
    for x0, shift in itertools.product(("identity", "random"), (0.0, 1e4)):
        smooth = ob.Quadratic(C + shift * np.eye(n), L, D)
        problem = ob.StiefelProblem(smooth, ob.NoPenalty(), r)
        result = ob.solve(problem, x0, solver=ob.OBCD(), max_work=0.5)
        assert result.converged, (x0, shift, result.status)
        assert (np.diff(result.history["objective"]) <= 0.0).all()
        certificate = ob.certify(problem, result.x)
        rounding = 1e-13 * (shift + np.abs(C).max()) * r
        assert certificate.block2_gap <= 1e-10 * certificate.magnitude + rounding
        metric = np.eye(r) if D is None else D
        steep = np.linalg.norm(C @ result.x @ metric + (0.0 if L is None else L))
        assert certificate.criticality <= 1e-5 * steep + 1e2 * rounding


@pytest.mark.parametrize("n", [5, 40])
@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e3])
def test_first_step_from_a_minimiser_of_f_is_short(n: int, lam: float) -> None:
    """There h alone moves X, and must not throw it onto one of its vertices."""
    rng = np.random.default_rng(n)
    C = rng.standard_normal((n, n))
    C = C + C.T
    start = np.linalg.eigh(C)[1][:, :3]
    moves = []

    def f(X: np.ndarray) -> tuple[float, np.ndarray]:
        moves.append(np.linalg.norm(X - start) / np.linalg.norm(start))
        return 0.5 * float(np.sum(X * (C @ X))), C @ X

    problem = ob.StiefelProblem(ob.SmoothFunction(f, n), ob.L1(lam), 3)
    ob.solve(problem, start, solver=ob.OBCD(), max_sweeps=3)
    # Moves below 1e-4 are difference quotients of the check of the gradient.
    assert next(move for move in moves if move > 1e-4) <= 0.1
