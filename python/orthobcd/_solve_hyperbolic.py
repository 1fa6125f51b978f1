"""Solves with a mixed signature."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from ._checks import FloatArray, as_float_array, is_sparse
from .finite_sums import LogisticLoss
from .hyperbolic import random_j_orthogonal
from .hyperbolic_problems import (
    HyperbolicEigenvalueProblem,
    HyperbolicPCAProblem,
    JOrthogonalProblem,
    PencilProblem,
    WellPosedness,
    well_posedness,
)
from .jobcd import JOBCD
from .problems import GramQuadratic, NoPenalty
from .result import Result, Status, as_result
from .solvers import Auto
from .structural_probe import HyperbolicStructuralProbeProblem

logger = logging.getLogger("orthobcd")

HYPERBOLIC_PROBLEMS = (
    JOrthogonalProblem,
    HyperbolicEigenvalueProblem,
    HyperbolicPCAProblem,
    HyperbolicStructuralProbeProblem,
)

HYPERBOLIC_STARTS = ("identity", "random", "cs")

RANDOM_SCALE = 0.5
"""Standard deviation of the rapidities of the start "random"."""

CS_SCALE = 0.65
"""Standard deviation of the rapidities of the start "cs": E[sinh²] as in the paper's starts."""

PROBE_TOL = 1e-4
"""Default ``tol`` of a `HyperbolicStructuralProbeProblem`."""

FEASIBLE_START = 1e-8
"""A square x0 is feasible when ``‖x0ᵀJx0 − J‖_F`` is at most this times ``max(1, ‖x0‖²)``."""


HyperbolicProblem = (
    JOrthogonalProblem
    | HyperbolicEigenvalueProblem
    | HyperbolicPCAProblem
    | HyperbolicStructuralProbeProblem
)


def default_solver(problem: HyperbolicProblem) -> JOBCD | Auto:
    """`Auto` where a penalty makes many optima, `JOBCD` elsewhere."""
    if isinstance(problem.smooth, LogisticLoss):
        # Its pairs have no exact model to solve one after the other.
        return JOBCD(update="jacobi")
    if isinstance(problem.penalty, NoPenalty):
        return JOBCD()
    return Auto()


def solve_hyperbolic(
    problem: HyperbolicProblem,
    x0: Any,
    solver: JOBCD | Auto,
    limits: tuple[float | None, int | None, float | None, float | None, int | None],
    seed: int,
    n_threads: int | None,
    watcher: Callable[..., bool] | None,
) -> Result:
    """Solve a problem of mixed signature; arguments are those of `solve`, already checked."""
    signs = problem.signature
    posed = _check(problem)
    start = start_point(problem, x0, seed)
    if isinstance(problem, HyperbolicStructuralProbeProblem) and limits[2] is None:
        limits = (limits[0], limits[1], PROBE_TOL, limits[3], limits[4])
    common = (limits, seed, n_threads, watcher)
    extra: dict[str, Any] = {}
    loss = isinstance(problem.smooth, LogisticLoss)
    probe = isinstance(problem, HyperbolicStructuralProbeProblem)
    summed = loss or probe or (isinstance(solver, JOBCD) and solver.update == "vr-jacobi")
    if isinstance(solver, Auto):
        if isinstance(problem.smooth, (LogisticLoss, HyperbolicStructuralProbeProblem)):
            name = type(problem.smooth).__name__
            raise TypeError(f"solver must be a JOBCD for a {name}, got Auto")
        if solver.strategies is not None:
            raise ValueError("strategies must be None for a mixed signature")
        returned, error = _core.solve_auto(
            problem.smooth,
            problem.penalty,
            signs,
            start.shape[1],
            start,
            False,
            solver.n_starts,
            None,
            *common,
        )
    elif not summed and (solver.curvature is not None or solver.matchings is not None):
        name = "curvature" if solver.curvature is not None else "matchings"
        raise ValueError(f"{name} needs a sum over data rows or the update 'vr-jacobi'")
    elif loss and solver.update == "gauss-seidel":
        raise ValueError("update must be 'jacobi' or 'vr-jacobi' for a LogisticLoss")
    elif summed:
        returned, error = _core.solve_finite_sum(
            _finite_sum(problem),
            problem.penalty,
            signs,
            start,
            _sum_options(problem, solver, limits[1]),
            *common,
        )
        extra["component_gradients"] = returned.pop("evaluations")
    else:
        returned, error = _core.solve_j_orthogonal(
            problem.smooth,
            problem.penalty,
            signs,
            start,
            solver,
            *common,
        )
    recession = returned.pop("recession", None)
    if recession is not None:
        extra["recession"] = recession
        logger.warning(
            "the objective is unbounded below along %s %s: rapidity → %s∞, signs %s",
            recession["kind"],
            recession["pair"],
            "+" if recession["direction"] > 0 else "−",
            recession["signs"],
        )
    if posed is not None:
        extra["well_posedness"] = posed
        ended = (Status.CONVERGED.value, Status.MAX_TIME.value, Status.MAX_SWEEPS.value)
        if not posed.attained and returned["status"] in ended:
            returned["status"] = Status.DIVERGED.value
    if isinstance(problem, PencilProblem):
        x = returned["x"]
        extra["eigenvalues"] = signs * np.einsum("ik,ik->k", x, problem.matrix @ x)
    return as_result(returned, error, seed, extra)


def _finite_sum(problem: Any) -> Any:
    """The sum over data rows that the variance-reduced update samples."""
    if isinstance(problem, HyperbolicStructuralProbeProblem):
        return problem.core
    smooth = problem.smooth
    if isinstance(smooth, LogisticLoss):
        return smooth
    if isinstance(problem, HyperbolicEigenvalueProblem):
        data, scale = problem.A, 2.0 if problem.sense == "min" else -2.0
        if problem.ridge < 0.0:
            raise ValueError("ridge must be nonnegative with the update 'vr-jacobi'")
    elif isinstance(smooth, GramQuadratic) and smooth.mean is None:
        data, scale = smooth.A, smooth.scale
    else:
        raise ValueError(
            "update must be 'gauss-seidel' or 'jacobi' here: 'vr-jacobi' needs a sum over data "
            "rows (LogisticLoss, GramQuadratic without mean, or a HyperbolicEigenvalueProblem)"
        )
    dense = np.ascontiguousarray(data.toarray() if is_sparse(data) else data)
    ridge = getattr(problem, "ridge", 0.0)
    if ridge > 0.0:
        dense = np.vstack([dense, np.sqrt(ridge) * np.eye(dense.shape[1])])
    return dense, scale


def _sum_options(problem: Any, solver: JOBCD, max_sweeps: int | None) -> tuple[Any, ...]:
    """Options of the finite-sum solve; a sweep is one pass over the data there."""
    probe = isinstance(problem, HyperbolicStructuralProbeProblem)
    matchings = solver.matchings
    if matchings is None:
        matchings = problem.n_rows if probe and solver.update == "gauss-seidel" else 1
    return (
        solver.batch_size,
        solver.small_batch_size,
        None if solver.update == "vr-jacobi" else 1.0,
        solver.theta,
        solver.rapidity_bound,
        max_sweeps,
        (solver.curvature or ("accumulated" if probe else "bound"), solver.step),
        matchings,
        solver.side if probe else "rows",
    )


def _check(problem: Any) -> WellPosedness | None:
    if isinstance(problem, (JOrthogonalProblem, HyperbolicStructuralProbeProblem)):
        return None
    if isinstance(problem, HyperbolicEigenvalueProblem) and problem.sense == "max":
        # Unbounded wherever it is not trivial; the solve finds the pair.
        return None
    posed = well_posedness(problem.matrix, problem.signature)
    name = "ridge" if isinstance(problem, HyperbolicEigenvalueProblem) else "C"
    if not posed.finite:
        raise ValueError(f"{name}: {posed.message}")
    if not posed.attained:
        logger.warning("%s: %s", type(problem).__name__, posed.message)
    return posed


def start_point(problem: Any, x0: Any, seed: int) -> FloatArray:
    """The start: by name, or the checked array."""
    signs = problem.signature
    n = signs.size
    r = problem.n_columns
    if x0 is None:
        x0 = "identity"
    if isinstance(x0, str):
        if x0 not in HYPERBOLIC_STARTS:
            raise ValueError(
                f"x0 must be an array or one of {', '.join(HYPERBOLIC_STARTS)}; got {x0!r}"
            )
        if x0 == "identity":
            return np.eye(n, r)
        scale = RANDOM_SCALE if x0 == "random" else CS_SCALE
        return np.ascontiguousarray(random_j_orthogonal(signs, scale, seed)[:, :r])
    array = as_float_array("x0", x0, 2)
    if array.shape != (n, r):
        raise ValueError(f"x0 must have shape ({n}, {r}), got {array.shape}")
    if r == n:
        gap = float(np.linalg.norm(array.T @ (signs[:, None] * array) - np.diag(signs)))
        size = max(1.0, float(np.linalg.norm(array)) ** 2)
        if gap > FEASIBLE_START * size:
            raise ValueError(
                f"x0 must satisfy XᵀJX = J for J = diag(signature), ‖XᵀJX − J‖_F is {gap:.3e}"
            )
    return array
