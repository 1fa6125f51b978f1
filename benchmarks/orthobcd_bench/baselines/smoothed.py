"""Riemannian gradient descent on a smoothed penalty, with continuation in the smoothing.

``|x|₀`` is replaced by ``x²/(x² + ε²)`` and ``|x|`` by ``√(x² + ε²) − ε``, and ε falls
geometrically. The smooth problem on St(n, r) is minimised by gradient steps with alternating
Barzilai–Borwein lengths, a polar retraction and the nonmonotone line search of Zhang and Hager.

References
----------
Wen and Yin 2013, "A feasible method for optimization with orthogonality constraints" (BB steps
on St(n, r)); Zhang and Hager 2004 (line search); Lai and Wang 2011 for the idea of lowering ε.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from orthobcd import L0, L1, Problem, Result
from orthobcd._internal.checks import FloatArray

from .geometry import cayley, polar, tangent
from .oracle import Oracle, oracle_of
from .recorder import Recorder
from .starts import varimax_spectral
from .steps import BarzilaiBorwein, Reference

ValueAndGradient = Callable[[FloatArray], tuple[float, FloatArray]]


def smoothed_objective(oracle: Oracle, epsilon: float) -> ValueAndGradient:
    """The smooth f plus the smoothed penalty: a function of X that returns value and gradient."""
    penalty = oracle.penalty
    if isinstance(penalty, L0):
        weight0 = np.asarray(penalty.lam)
        squared = epsilon * epsilon

        def value_and_gradient_l0(x: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = oracle.value_and_gradient(x)
            inverse = 1.0 / (x * x + squared)
            rest = squared * inverse
            value += float(np.sum(weight0 * (1.0 - rest)))
            return value, gradient + (2.0 * weight0) * (x * (rest * inverse))

        return value_and_gradient_l0
    if isinstance(penalty, L1):
        weight1 = penalty.lam
        squared = epsilon * epsilon

        def value_and_gradient_l1(x: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = oracle.value_and_gradient(x)
            root = np.sqrt(x * x + squared)
            value += float(np.sum(weight1 * (root - epsilon)))
            return value, gradient + weight1 * (x / root)

        return value_and_gradient_l1
    return oracle.value_and_gradient


class Descent:
    """Gradient descent on St(n, r) that keeps its state between calls of `step`.

    Parameters
    ----------
    x : ndarray of shape (n, r)
        The iterate, orthonormal.
    function : callable
        Value and Euclidean gradient.
    length : float
        First trial step length.
    """

    def __init__(self, x: FloatArray, function: ValueAndGradient, length: float) -> None:
        self.x = x
        self._lengths = BarzilaiBorwein(length)
        self.restart(function)

    def restart(self, function: ValueAndGradient) -> None:
        """Change the function (a new ε) and forget the line search's history."""
        self.function = function
        value, gradient = function(self.x)
        self._direction = tangent(self.x, gradient)
        self.gradient_norm = float(np.linalg.norm(self._direction))
        self._reference = Reference(value)
        self._lengths.restart()

    def step(self) -> bool:
        """One accepted step; False when the line search cannot move."""
        squared = self.gradient_norm**2
        if squared == 0.0:
            return False
        length = self._lengths.length
        for _ in range(25):
            trial = polar(self.x - length * self._direction)
            value, gradient = self.function(trial)
            if self._reference.accepts(value, length * squared):
                break
            length *= 0.3
        else:
            return False
        direction = tangent(trial, gradient)
        self._lengths.update(trial - self.x, direction - self._direction)
        self._reference.update(value)
        self.x, self._direction = trial, direction
        self.gradient_norm = float(np.linalg.norm(direction))
        return True


@dataclass(frozen=True)
class Continuation:
    """Schedule of ε in one cycle of `smoothed_gradient`, in units of the problem's own ε.

    Attributes
    ----------
    first, last : float
        Range of ε in a cycle.
    stages : int
        Number of values, geometrically spaced.
    steps : int
        Largest number of gradient steps per value.
    final : tuple of float
        Values of ε for the final descents from the best point of all cycles.
    kick : float
        Size of the random rotation of the columns that starts a cycle if the cycle before had no
        gain.
    """

    first: float
    last: float
    stages: int
    steps: int
    final: tuple[float, ...]
    kick: float


CONTINUATION_L0 = Continuation(2.0, 0.3, 20, 400, (0.1, 0.02), 0.05)
"""Schedule for ℓ0; the unit is √(2λ/L), the largest entry that a proximal step drops."""

CONTINUATION_L1 = Continuation(0.3, 0.03, 4, 200, (0.01, 1e-3), 0.02)
"""Schedule for ℓ1; the unit is 1/√n, the size of an entry of a dense unit vector."""

CYCLES_SHARE = 0.8
"""Share of the time for the cycles; then the best point descends at the last ε."""


def smoothed_gradient(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """Smoothed Riemannian gradient with BB steps; repeated continuation until the time limit.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; ℓ0, ℓ1 or no penalty, the varimax-rotated spectral
        start. The seed is that of the rotations that restart a cycle.

    """
    oracle = oracle_of(problem)
    recorder = Recorder(oracle, x0, varimax_spectral, max_time=max_time, seed=seed)
    rng = np.random.default_rng(seed)
    is_l0 = isinstance(oracle.penalty, L0)
    plan = CONTINUATION_L0 if is_l0 else CONTINUATION_L1
    unit = _natural_epsilon(oracle)
    descent = Descent(
        recorder.x0, smoothed_objective(oracle, plan.first * unit), 1.0 / oracle.lipschitz
    )
    best = recorder.x0
    best_value = np.inf
    judge = smoothed_objective(oracle, plan.last * unit)
    first = True
    began = recorder.progress
    until = began + CYCLES_SHARE * (1.0 - began)
    while recorder.progress < until and not is_smooth(oracle):
        for stage in range(plan.stages):
            ratio = stage / max(1, plan.stages - 1)
            epsilon = unit * plan.first * (plan.last / plan.first) ** ratio
            deadline = until if not first else began + (until - began) * (stage + 1) / plan.stages
            descent.restart(smoothed_objective(oracle, epsilon))
            descend(descent, recorder, 1e-5, plan.steps, deadline)
        first = False
        value = judge(descent.x)[0]
        if value < best_value - 1e-9 * abs(value):
            best, best_value = descent.x, value
            recorder.submit(best, thorough=False)
        else:
            descent.x = best @ random_rotation(oracle.r, plan.kick, rng)
    descent.x = best
    final = plan.final if not is_smooth(oracle) else (1.0,)
    converged = False
    for index, factor in enumerate(final):
        descent.restart(smoothed_objective(oracle, factor * unit))
        left = recorder.progress + (1.0 - recorder.progress) / (len(final) - index)
        converged = descend(descent, recorder, 1e-9, None, left)
    return recorder.result(
        descent.x,
        method="smoothed gradient",
        converged=converged and not recorder.out_of_time,
    )


def is_smooth(oracle: Oracle) -> bool:
    """True if there is no penalty, or one of weight 0."""
    return not isinstance(oracle.penalty, (L0, L1)) or not np.any(oracle.weight)


def descend(
    descent: Descent,
    recorder: Recorder,
    tolerance: float,
    steps: int | None,
    deadline: float,
) -> bool:
    """Gradient steps until ‖grad‖ ≤ tolerance·L (then True), ``steps`` steps, or the deadline."""
    threshold = tolerance * recorder.oracle.lipschitz
    done = 0
    while recorder.progress < deadline and (steps is None or done < steps):
        if descent.gradient_norm <= threshold or not descent.step():
            return descent.gradient_norm <= threshold
        recorder.step(descent.x)
        done += 1
    return descent.gradient_norm <= threshold


def random_rotation(r: int, size: float, rng: np.random.Generator) -> FloatArray:
    """An r × r rotation by angles of about ``size`` in random planes (a Cayley transform)."""
    normal: FloatArray = rng.standard_normal((r, r)) * size
    return cayley(0.5 * (normal - normal.T))


def _natural_epsilon(oracle: Oracle) -> float:
    """The unit of ε: see `CONTINUATION_L0` and `CONTINUATION_L1`."""
    if isinstance(oracle.penalty, L0):
        return float(np.sqrt(2.0 * max(oracle.penalty.lam, 1e-12) / oracle.lipschitz))
    return 1.0 / float(np.sqrt(oracle.n))
