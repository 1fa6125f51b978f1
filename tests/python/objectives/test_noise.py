"""Noise in the values of a function: the best point comes back, with a status that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import orthobcd as ob

N, R = 10, 2
RNG = np.random.default_rng(1)
B = RNG.standard_normal((N, N))
C, L = B + B.T, RNG.standard_normal((N, R))
SIGNS = [1] * 6 + [-1] * 4
J_START = np.eye(N, R)
Evaluated = tuple[float, np.ndarray]


def exact(x: np.ndarray) -> Evaluated:
    y = C @ x
    return float(0.5 * np.sum(x * y) + np.sum(L * x)), y + L


def convex(x: np.ndarray) -> Evaluated:
    y = (C + 12.0 * np.eye(N)) @ x
    return float(0.5 * np.sum(x * y) + np.sum(L * x)), y + L


def in_single(f: Callable[[np.ndarray], Evaluated]) -> Callable[[np.ndarray], Evaluated]:
    def rounded(x: np.ndarray) -> Evaluated:
        value, gradient = f(x.astype(np.float32).astype(np.float64))
        return float(np.float32(value)), gradient.astype(np.float32).astype(np.float64)

    return rounded


def shaken(size: float) -> Callable[[Any], Callable[[np.ndarray], Evaluated]]:
    """Adds noise of a relative size to the values, the same at the same point."""

    def of(f: Callable[[np.ndarray], Evaluated]) -> Callable[[np.ndarray], Evaluated]:
        def noisy(x: np.ndarray) -> Evaluated:
            value, gradient = f(x)
            seed = int.from_bytes(
                np.float64(np.sum(x * np.arange(x.size).reshape(x.shape))).tobytes()
            )
            return value * (1.0 + size * np.random.default_rng(seed).uniform(-1.0, 1.0)), gradient

        return noisy

    return of


NOISES: dict[str, tuple[Any, float]] = {
    "single": (in_single, 1e-6),
    **{f"{size:g}": (shaken(size), size) for size in (1e-12, 1e-9, 1e-6, 1e-4)},
}

SOLVES: dict[str, tuple[Any, dict[str, Any]]] = {
    "none": (ob.NoPenalty(), {}),
    "l1": (ob.L1(0.3), {"solver": ob.OBCD()}),
    "l0": (ob.L0(0.3), {"solver": ob.OBCD()}),
    "nonnegative": (ob.NonNegative(), {"solver": ob.OBCD()}),
    "pairs": (ob.NoPenalty(), {"solver": ob.OBCD(working_set="random")}),
    "search": (ob.L1(0.3), {}),
    "continuation": (ob.L1(0.3), {"solver": ob.Continuation()}),
}

ENDS = (ob.Status.CONVERGED, ob.Status.NOISE, ob.Status.MAX_WORK)


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", SOLVES)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("seed", range(3))
def test_the_best_point_comes_back(name, noise, seed):
    penalty, options = SOLVES[name]
    make, size = NOISES[noise]
    plain, noisy = (
        ob.StiefelProblem(ob.SmoothFunction(f, N), penalty, R) for f in (exact, make(exact))
    )
    start = ob.solve(plain, "random", solver=ob.OBCD(), seed=seed, max_sweeps=0).x
    if name == "nonnegative":
        start = ob.solve(plain, "partition", solver=ob.OBCD(), seed=seed, max_sweeps=0).x
    result = ob.solve(noisy, start, seed=seed, **options)
    assert result.status in ENDS
    assert result.feasibility < 1e-12
    if result.status is ob.Status.NOISE:
        assert "noise" in result.message
        assert "tol" in result.message
    if name in ("l0", "nonnegative"):
        # Which entries are zero is decided by values that the noise hides.
        return
    # From the point, an exact descent gains little more than the noise.
    value = exact(result.x)[0] + result.penalty_value
    after = ob.solve(plain, result.x, solver=ob.OBCD()).objective
    scale = np.abs(C).sum() / N
    assert value - after <= 1e4 * size * scale + 1e-6 * scale


@pytest.mark.parametrize("noise", NOISES)
def test_a_mixed_signature(noise):
    make, size = NOISES[noise]
    smooth = ob.SmoothFunction(make(convex), N)
    result = ob.solve(ob.JOrthogonalProblem(smooth, SIGNS, n_components=R), J_START)
    assert result.status in ENDS
    plain = ob.JOrthogonalProblem(ob.SmoothFunction(convex, N), SIGNS, n_components=R)
    best = ob.solve(plain, J_START).objective
    assert convex(result.x)[0] - best <= 1e4 * size * abs(best) + 1e-6 * abs(best)


@pytest.mark.parametrize("size", [1e-6, 1e-4])
def test_a_tolerance_above_the_noise_converges(size):
    noisy = ob.SmoothFunction(shaken(size)(exact), N)
    result = ob.solve(ob.StiefelProblem(noisy, ob.L1(0.3), R), solver=ob.OBCD(), tol=1e3 * size)
    assert result.status is ob.Status.CONVERGED


@pytest.mark.parametrize("name", SOLVES)
def test_a_wrong_gradient_is_an_error_that_has_the_point(name):
    penalty, options = SOLVES[name]

    def wrong(x: np.ndarray) -> Evaluated:
        value, gradient = exact(x)
        return value, gradient + 0.4 * np.outer(np.arange(N), [1.0, -1.0])

    problem = ob.StiefelProblem(ob.SmoothFunction(wrong, N), penalty, R)
    with pytest.raises(ValueError, match="gradient of its value") as caught:
        ob.solve(problem, **options)
    result = caught.value.result  # type: ignore[attr-defined]
    assert result.status is ob.Status.INTERRUPTED
    assert result.feasibility < 1e-12
    assert result.objective <= result.history["objective"][0]
    assert "noise" in str(caught.value)
    assert "tol" in str(caught.value)
