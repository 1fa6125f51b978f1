"""ManPG: the proximal gradient method on the Stiefel manifold, for an ℓ1 penalty.

Each iteration minimises ``⟨∇f, V⟩ + ‖V‖²/(2t) + h(X + V)`` over the tangent space,
``XᵀV + VᵀX = 0``, and retracts along V with Armijo halving. The tangent problem is solved through
its r × r symmetric multiplier Λ: ``V(Λ) = prox_{th}(X − t(∇f − 2XΛ)) − X`` and
``E(Λ) = XᵀV + VᵀX = 0`` by a semismooth Newton method with conjugate gradients.

References
----------
Chen, Ma, So and Zhang 2020, "Proximal gradient method for nonsmooth optimization over the
Stiefel manifold" (ManPG and ManPG-Ada, whose step length rule is used); Xiao, Li, Wen and Zhang
2018 (regularised semismooth Newton).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orthobcd import Problem, Result
from orthobcd._internal.checks import FloatArray

from .geometry import polar
from .oracle import Oracle
from .recorder import from_random

INNER_TOLERANCE = 1e-8
"""‖XᵀV + VᵀX‖_F at which the tangent problem counts as solved."""

MAX_LINE_SEARCH = 30
"""Most trials of a step length; each but the first at least halves the bracket."""

SPARSE_MASK = 8.0
"""Nonzeros of the mask per row below which the blocks W_k are faster."""

CRITICALITY = 1e-9
"""‖V‖_F/t of a converged point, in units of L."""

ADAPT = 1.2
"""Factor by which t grows after an iteration without halving, and falls otherwise."""

MAX_CONJUGATE = 300
"""Largest number of conjugate gradient iterations for a Newton direction."""


CONTINUATION = 4.0 ** np.arange(-12, 1)
"""Successive shares of t for a tangent problem that Newton's method does not solve at once.

A problem with small λt is easy, because few entries of X + V vanish, and Λ changes little with t.
"""


@dataclass
class TangentStep:
    """The solution of one tangent problem.

    Attributes
    ----------
    direction : ndarray of shape (n, r)
        V.
    multiplier : ndarray of shape (r, r)
        Λ, the warm start of the next problem.
    residual : float
        ‖XᵀV + VᵀX‖_F.
    """

    direction: FloatArray
    multiplier: FloatArray
    residual: float


def tangent_step(
    oracle: Oracle,
    x: FloatArray,
    gradient: FloatArray,
    step: float,
    multiplier: FloatArray,
    *,
    tolerance: float = INNER_TOLERANCE,
    max_newton: int = 100,
) -> TangentStep:
    """Solve the tangent problem at x by semismooth Newton from ``multiplier``.

    E(Λ) is the gradient of the convex dual function, piecewise linear. The Newton system
    ``2t(Xᵀ(M∘XD) + (M∘XD)ᵀX) + μD = −E``, M the derivative of the proximal map and μ
    proportional to ‖E‖, is positive definite, so D descends. A full step is kept if it lowers ‖E‖
    enough. Otherwise the step length is a zero of the monotone slope ⟨E(Λ + αD), D⟩, to a tenth:
    if λt is large, most of M is zero and full steps overshoot.
    """
    base = x - step * gradient

    def evaluate(dual: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        shifted = base + (2.0 * step) * (x @ dual)
        point = oracle.proximal(shifted, step)
        direction = point - x
        cross = x.T @ direction
        error = cross + cross.T
        return point, direction, error, float(np.linalg.norm(error))

    point, direction, error, residual = evaluate(multiplier)
    done = 0
    while residual > tolerance and done < max_newton:
        done += 1
        newton = _newton_direction(x, point != 0.0, error, step, 0.1 * step * min(residual, 1.0))
        length, low, high = 1.0, 0.0, np.inf
        slope = float(np.vdot(error, newton))
        low_slope, high_slope = slope, np.inf
        for _ in range(MAX_LINE_SEARCH):
            candidate = evaluate(multiplier + length * newton)
            if length == 1.0 and candidate[3] <= 0.9 * residual:
                break
            here = float(np.vdot(candidate[2], newton))
            if abs(here) <= 0.1 * abs(slope):
                break
            if here < 0.0:
                low, low_slope = length, here
            else:
                high, high_slope = length, here
            if high == np.inf:
                length *= 4.0
            else:
                # regula falsi, as the slope is piecewise linear, away from the ends
                share = low_slope / (low_slope - high_slope)
                length = low + min(max(share, 0.1), 0.9) * (high - low)
        multiplier = multiplier + length * newton
        point, direction, error, residual = candidate
    return TangentStep(direction, multiplier, residual)


def _newton_direction(
    x: FloatArray, mask: NDArray[np.bool_], error: FloatArray, step: float, shift: float
) -> FloatArray:
    """Conjugate gradients on the regularised Newton system.

    An iteration costs O(nr²). A sparse M needs many iterations; column k of Xᵀ(M∘XD) is then
    formed as W_k D_k with W_k = Xᵀ diag(M_k) X: O(r²) once for each entry of M, then O(r³).
    """
    weights = mask.astype(np.float64)
    sparse = np.count_nonzero(mask) < SPARSE_MASK * mask.shape[0]
    blocks = np.stack([x[kept].T @ x[kept] for kept in mask.T]) if sparse else None
    solution = np.zeros_like(error)
    remaining = -error
    direction = remaining.copy()
    squared = float(np.vdot(remaining, remaining))
    target = squared * min(1e-6, 1e-2 * squared)
    r = error.shape[0]
    for _ in range(min(r * (r + 1) // 2, MAX_CONJUGATE) + 20):
        if blocks is None:
            image = x.T @ (weights * (x @ direction))
        else:
            image = np.matmul(blocks, direction.T[:, :, np.newaxis])[:, :, 0].T
        image = (2.0 * step) * (image + image.T) + shift * direction
        curvature = float(np.vdot(direction, image))
        if curvature <= 0.0:
            break
        length = squared / curvature
        solution += length * direction
        remaining -= length * image
        updated = float(np.vdot(remaining, remaining))
        if updated <= target:
            break
        direction = remaining + (updated / squared) * direction
        squared = updated
    return solution


def manpg(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """ManPG with adaptive step length.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; ℓ1 or no penalty, a random start.

    Returns
    -------
    Result
        ``extra["inner_residual"]`` is the largest ‖XᵀV + VᵀX‖_F accepted in the run.

    Raises
    ------
    ValueError
        If the penalty is neither ℓ1 nor none: the tangent problem must be convex.
    """
    recorder = from_random(problem, x0, max_time, seed, convex=True)
    oracle = recorder.oracle
    x = recorder.x0
    shortest = 1.0 / oracle.lipschitz
    step = shortest
    multiplier = np.zeros((oracle.r, oracle.r))
    value, gradient = oracle.value_and_gradient(x)
    objective = value + oracle.penalty_value(x)
    criticality = np.inf
    worst = 0.0
    converged = False
    direction = np.zeros_like(x)
    while recorder.step(x, sparse=x + direction):
        solved = tangent_step(oracle, x, gradient, step, multiplier)
        if solved.residual > INNER_TOLERANCE:
            step = shortest
            multiplier = np.zeros((oracle.r, oracle.r))
            for factor in CONTINUATION:
                solved = tangent_step(
                    oracle, x, gradient, factor * step, multiplier, max_newton=1000
                )
                multiplier = solved.multiplier
                if recorder.out_of_time:
                    break
            if recorder.out_of_time:
                break
        multiplier = solved.multiplier
        worst = max(worst, solved.residual)
        direction = solved.direction
        squared = float(np.vdot(direction, direction))
        criticality = float(np.sqrt(squared)) / step
        if criticality <= CRITICALITY * oracle.lipschitz:
            converged = True
            break
        length = 1.0
        for _ in range(30):
            trial = polar(x + length * direction)
            trial_value, trial_gradient = oracle.value_and_gradient(trial)
            trial_objective = trial_value + oracle.penalty_value(trial)
            if trial_objective <= objective - 1e-4 * length * squared / step:
                break
            length *= 0.5
        else:
            # the direction lowers F by rounding at most
            converged = criticality <= 1e-4 * oracle.lipschitz
            break
        x, gradient, objective = trial, trial_gradient, trial_objective
        step = step * ADAPT if length == 1.0 else max(step / ADAPT, shortest)
    return recorder.result(
        x,
        method="ManPG",
        converged=converged,
        sparse=x + direction,
        inner_residual=worst,
    )
