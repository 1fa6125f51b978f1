"""Rotations only: ``StiefelProblem(..., determinant=1)``."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import orthobcd as ob

N = 6
RNG = np.random.default_rng(4)
C = (lambda a: a + a.T)(RNG.standard_normal((N, N)))
B = RNG.standard_normal((N, N))


def test_the_nearest_rotation():
    reflections = 0
    for seed in range(20):
        target = np.random.default_rng(seed).standard_normal((N, N))
        u, s, vt = np.linalg.svd(target)
        s[-1] *= np.linalg.det(u @ vt)
        reflections += s[-1] < 0.0
        for smooth in (
            ob.Quadratic(np.zeros((N, N)), -target),
            ob.SmoothFunction(lambda x, target=target: (-np.vdot(target, x), -target), N),
        ):
            problem = ob.StiefelProblem(smooth, ob.NoPenalty(), N, determinant=1)
            blocks = 4 if isinstance(smooth, ob.Quadratic) else 2
            for solver in (None, ob.OBCD(update="jacobi"), ob.OBCD("cyclic", block_size=blocks)):
                result = ob.solve(problem, solver=solver, seed=seed)
                assert result.objective == pytest.approx(-s.sum(), rel=1e-7)
                assert np.linalg.det(result.x) == pytest.approx(1.0)
    assert 4 <= reflections <= 16


@pytest.mark.parametrize("name", ["identity", "random", "spectral", "partition"])
def test_named_starts_are_rotations(name):
    for seed in range(4):
        problem = ob.StiefelProblem(ob.Quadratic(C, B), ob.NoPenalty(), N, determinant=1)
        start = ob.solve(problem, name, solver=ob.OBCD(), max_sweeps=0, seed=seed)
        assert np.linalg.det(start.x) == pytest.approx(1.0)


def test_reflections_are_refused():
    problem = ob.StiefelProblem(ob.Quadratic(C), ob.L1(0.1), N, determinant=1)
    reflection = np.diag([1.0] * (N - 1) + [-1.0])
    for solver in (ob.OBCD(), ob.Auto(), ob.Continuation()):
        with pytest.raises(ValueError, match=r"x0 must have determinant \+1"):
            ob.solve(problem, reflection, solver=solver)
    with pytest.raises(ValueError, match=r"x must have determinant \+1"):
        ob.certify(problem, reflection)
    projected = ob.solve(problem, 2.0 * reflection, solver=ob.OBCD(), project_x0=True)
    assert np.linalg.det(projected.x) == pytest.approx(1.0)


def test_what_it_goes_with():
    square, tall = ob.Quadratic(C), ob.Quadratic(C)
    with pytest.raises(ValueError, match="determinant must be None unless X is square"):
        ob.StiefelProblem(tall, ob.NoPenalty(), 2, determinant=1)
    for wrong in (-1, 2):
        with pytest.raises(ValueError, match="determinant"):
            ob.StiefelProblem(square, ob.NoPenalty(), N, determinant=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="determinant"):
        ob.StiefelProblem(square, ob.NoPenalty(), N, determinant="+1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="determinant must be None for a Cardinality"):
        ob.StiefelProblem(square, ob.Cardinality(10), N, determinant=1)
    batches = ob.FiniteSum(lambda x, terms: (0.0, 0.0 * x), 20, N)
    with pytest.raises(TypeError, match="determinant must be None for a FiniteSum"):
        ob.StiefelProblem(batches, ob.NoPenalty(), N, determinant=1)
    problem = ob.StiefelProblem(square, ob.NoPenalty(), N, determinant=1)
    assert problem.with_penalty(ob.L1(0.1)).determinant == 1
    assert ob.SparsePCAProblem(np.eye(4), 2, ob.L0(0.1)).determinant is None


@pytest.mark.parametrize("n", [3, 4, 5])
def test_the_best_even_permutation(n):
    # X >= 0 and det X = 1 allow the even permutations; a swap of two rows makes one odd.
    even = [
        p for p in map(list, itertools.permutations(range(n))) if np.linalg.det(np.eye(n)[p]) > 0
    ]
    for seed in range(5):
        L = np.random.default_rng(seed).standard_normal((n, n))
        smooth = ob.Quadratic(np.zeros((n, n)), L)
        result = ob.solve(ob.StiefelProblem(smooth, ob.NonNegative(), n, determinant=1))
        best = min(L[range(n), p].sum() for p in even)
        assert result.objective == pytest.approx(best, abs=1e-12)
        assert np.linalg.det(result.x) == pytest.approx(1.0)
