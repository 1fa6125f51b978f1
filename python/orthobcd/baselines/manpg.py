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

from .._checks import FloatArray
from ..problems import Problem
from ..result import Result
from .geometry import polar
from .oracle import Oracle, oracle_of
from .recorder import from_random
from .starts import top_diagonal

INNER_TOLERANCE = 1e-8
"""‖XᵀV + VᵀX‖_F at which the tangent problem counts as solved."""


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
    n_newton : int
        Newton steps taken.
    """

    direction: FloatArray
    multiplier: FloatArray
    residual: float
    n_newton: int


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

    The Newton system ``2t(Xᵀ(M∘XD) + (M∘XD)ᵀX) + μD = −E``, M the derivative of the proximal
    map, is positive semidefinite; μ is proportional to ‖E‖. A Newton step is kept when it
    lowers ‖E‖ enough, otherwise it is halved, and at last replaced by a dual gradient step
    −E/(4t), which never diverges because E is 4t-Lipschitz and monotone.
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
        # the proximal map moves with slope 1 where it does not return zero
        mask = (point != 0.0).astype(np.float64)
        newton = _newton_direction(x, mask, error, step, 0.1 * step * min(residual, 1.0))
        length = 1.0
        for _ in range(6):
            trial = multiplier + length * newton
            candidate = evaluate(trial)
            if candidate[3] <= (1.0 - 1e-3 * length) * residual:
                break
            length *= 0.5
        else:
            trial = multiplier - error / (4.0 * step)
            candidate = evaluate(trial)
        multiplier = trial
        point, direction, error, residual = candidate
    return TangentStep(direction, multiplier, residual, done)


def _newton_direction(
    x: FloatArray, mask: FloatArray, error: FloatArray, step: float, shift: float
) -> FloatArray:
    """Conjugate gradients on the regularised Newton system, to a tenth of a per cent."""
    solution = np.zeros_like(error)
    remaining = -error
    direction = remaining.copy()
    squared = float(np.vdot(remaining, remaining))
    target = squared * min(1e-6, 1e-2 * squared)
    for _ in range(2 * error.shape[0] + 20):
        image = x.T @ (mask * (x @ direction))
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
    tolerance: float = 1e-9,
    adapt: float = 1.2,
) -> Result:
    """ManPG with adaptive step length.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd.baselines`; ℓ1 or no penalty, a random start.
    tolerance : float, default 1e-9
        Converged when ‖V‖_F/t is at most this times L.
    adapt : float, default 1.2
        Factor by which t grows after an iteration without halving, and falls (not below 1/L)
        otherwise; 1 gives plain ManPG.

    Returns
    -------
    Result
        ``extra["inner_residual"]`` is the largest ‖XᵀV + VᵀX‖_F accepted in the run,
        ``extra["criticality"]`` the last ‖V‖_F/t.

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
    while True:
        solved = tangent_step(oracle, x, gradient, step, multiplier)
        if solved.residual > INNER_TOLERANCE:
            step = shortest
            cold = np.zeros((oracle.r, oracle.r))
            solved = tangent_step(oracle, x, gradient, step, cold, max_newton=1000)
        multiplier = solved.multiplier
        worst = max(worst, solved.residual)
        direction = solved.direction
        squared = float(np.vdot(direction, direction))
        criticality = float(np.sqrt(squared)) / step
        if criticality <= tolerance * oracle.lipschitz:
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
            # no descent beyond rounding is left along the direction
            converged = criticality <= 1e-4 * oracle.lipschitz
            break
        x, gradient, objective = trial, trial_gradient, trial_objective
        step = step * adapt if length == 1.0 else max(step / adapt, shortest)
        if not recorder.step(x, sparse=x + direction):
            break
    return recorder.result(
        x,
        method="ManPG",
        converged=converged,
        sparse=x + direction,
        inner_residual=worst,
        criticality=criticality,
    )


def manpg_from_diagonal(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """`manpg` from unit vectors at the largest variances, the optimum for a large ℓ1 weight.

    Parameters
    ----------
    problem, max_time, seed
        As for `manpg`.
    x0 : ndarray of shape (n, r), optional
        Replaces the start.
    """
    start = top_diagonal(oracle_of(problem)) if x0 is None else x0
    return manpg(problem, start, max_time=max_time, seed=seed)
