"""Penalties with kinks: descents end at critical points."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import orthobcd as ob

SIZES = [(6, 1), (12, 3), (30, 3), (60, 5)]


def moments(n: int, seed: int = 0) -> np.ndarray:
    a = np.random.default_rng(seed).standard_normal((n + 20, n))
    c = a.T @ a
    return -0.5 * (c + c.T)


@pytest.mark.parametrize(("n", "r"), SIZES)
@pytest.mark.parametrize("penalty", ["l1", "l1 weighted", "capped", "mcp"])
def test_obcd_ends_at_critical_points(n, r, penalty):
    """Pairs alone stop at kinks, or take hundreds of sweeps."""
    rng = np.random.default_rng(1)
    for seed, size in itertools.product((0, 1), (0.02, 0.1)):
        C = moments(n, seed)
        lam = size * float(np.abs(np.diag(C)).max())
        h: Any = {
            "l1": ob.L1(lam),
            "l1 weighted": ob.L1(lam * rng.uniform(0.5, 1.5, (n, r))),
            "capped": ob.CappedL1(lam, 0.7),
            "mcp": ob.MCP(lam, 1.0 / lam),
        }[penalty]
        problem = ob.StiefelProblem(ob.Quadratic(C), h, r)
        result = ob.solve(problem, solver=ob.OBCD())
        assert result.converged
        assert (np.diff(result.history["objective"]) <= 0.0).all()
        certificate = ob.certify(problem, result.x)
        assert certificate.block2_gap <= 1e-10 * certificate.magnitude
        assert certificate.criticality <= 1e-4 * np.linalg.norm(C @ result.x)


def smoothed(f: Any, n: int, r: int, lam: float, calls: int) -> float:
    """F after so many values of f: gradient steps on √(x² + ε²) for ever smaller ε."""
    x = np.linalg.qr(np.random.default_rng(1).standard_normal((n, r)))[0]
    best, stages = np.inf, 0.1 ** np.linspace(1.0, 5.0, 8)
    before: Any = None
    for k in range(calls):
        epsilon = stages[k * len(stages) // calls]
        value, gradient = f(x)
        best = min(best, value + lam * float(np.abs(x).sum()))
        slope = gradient + lam * x / np.sqrt(x**2 + epsilon**2)
        inner = x.T @ slope
        direction = slope - x @ (inner + inner.T) / 2
        length = 0.01 / np.linalg.norm(direction)
        if before is not None:
            moved, turned = x - before[0], direction - before[1]
            length = float(np.vdot(moved, moved) / abs(np.vdot(moved, turned)))
        before = (x, direction)
        u, _, vt = np.linalg.svd(x - length * direction, full_matrices=False)
        x = u @ vt
    return best


@pytest.mark.parametrize(("n", "r"), [(12, 2), (60, 5), (300, 10)])
@pytest.mark.parametrize("how", ["obcd", "auto"])
def test_few_values_of_a_function_go_as_far_as_a_smoothed_penalty(n, r, how):
    """F after 150 values and gradients is not above what 20 lines of NumPy reach with as many."""
    calls = 150
    for seed in (0, 1):
        C = moments(n, seed) / n
        lam = 0.05

        def f(x: np.ndarray) -> tuple[float, np.ndarray]:
            image = C @ x  # noqa: B023
            return 0.5 * float(np.vdot(x, image)), image

        left = calls

        def limited(x: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal left
            left -= 1
            if left < 0:
                raise StopIteration
            return f(x)

        problem = ob.StiefelProblem(ob.SmoothFunction(limited, n), ob.L1(lam), r)
        solver = {"obcd": ob.OBCD(), "auto": ob.Auto()}[how]
        try:
            reached = ob.solve(problem, solver=solver).objective
        except StopIteration as stopped:
            reached = stopped.result.objective  # type: ignore[attr-defined]
        reference = smoothed(f, n, r, lam, calls)
        assert reached <= reference + 1e-2 * abs(reference)


def test_functions_end_at_critical_points(rng):
    for n, r in [(12, 2), (40, 4)]:
        C, B = moments(n) / n, rng.standard_normal((n, r))

        def f(x: np.ndarray) -> tuple[float, np.ndarray]:
            image = C @ x  # noqa: B023
            return 0.5 * float(np.vdot(x, image + 2.0 * B)), image + B  # noqa: B023

        lipschitz = float(np.linalg.norm(C, 2))
        smooth = ob.SmoothFunction(f, n, lipschitz=lipschitz)
        problem = ob.StiefelProblem(smooth, ob.L1(0.1), r)
        result = ob.solve(problem)
        assert result.converged
        certificate = ob.certify(problem, result.x)
        assert certificate.block2_gap <= 1e-9 * certificate.magnitude
        assert certificate.criticality <= 1e-3 * np.linalg.norm(f(result.x)[1])
