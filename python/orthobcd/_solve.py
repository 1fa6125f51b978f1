"""The front door: checks, the call into the core, the result."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from . import _core
from ._checks import FloatArray, as_bool, as_float, as_float_array, as_int
from ._solve_hyperbolic import HYPERBOLIC_PROBLEMS, solve_hyperbolic
from .hyperbolic_problems import JOrthogonalProblem
from .jobcd import JOBCD
from .problems import (
    L0,
    L1,
    NonNegative,
    NonnegativePCAProblem,
    Problem,
    SparsePCAProblem,
    StiefelProblem,
)
from .result import PathPoint, Result, StartReport, Status
from .solvers import OBCD, Auto, Path, Solver

logger = logging.getLogger("orthobcd")

STARTS = ("identity", "random", "spectral", "partition")


@dataclass(frozen=True, eq=False)
class Progress:
    """What a callback is given: the current feasible point and how far the solve is.

    Attributes
    ----------
    seconds : float
        Wall-clock time since the start.
    objective : float
        F at ``x``; never rises from one call to the next.
    feasibility : float
        As in `Result`.
    n_iterations : int
        Pairs visited.
    x : ndarray of shape (n, r)
        A copy of the current point.
    """

    seconds: float
    objective: float
    feasibility: float
    n_iterations: int
    x: FloatArray


def solve(
    problem: Problem,
    x0: str | Any = None,
    *,
    solver: Solver | None = None,
    max_time: float | None = None,
    max_sweeps: int | None = None,
    tol: float | None = None,
    target: float | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    callback: Callable[[Progress], Any] | None = None,
    project_x0: bool = False,
    verbose: bool = False,
) -> Result:
    """Minimise F = f + h from a feasible start; every iterate is feasible and F never rises.

    Parameters
    ----------
    problem : StiefelProblem, SparsePCAProblem or NonnegativePCAProblem
        What to minimise.
    x0 : {"identity", "random", "spectral", "partition"} or array_like of shape (n, r), optional
        Where to start. "identity": the first r columns of the identity. "random": a random point.
        "spectral": eigenvectors of the quadratic part. "partition": a random partition of the
        rows into r groups. An array must have orthonormal columns up to 1e-8 (and no negative
        entry for a nonnegative problem). By default `OBCD` starts at "identity" ("partition" for
        a nonnegative problem), `Path` at its closed form, and `Auto` chooses its own starts; one
        that is given here is the first of them.
    solver : Auto, Path or OBCD, optional
        How; ``Auto()`` by default.
    max_time : float, optional
        Time limit in seconds. `Auto` uses it all, unless the point is proved optimal or many
        perturbations in a row bring nothing.
    max_sweeps : int, optional
        Limit on sweeps, of all descents together; a sweep is n(n−1)/2 pair visits.
    tol : float, optional
        The solve has converged when a whole sweep lowers F by at most ``tol·(|f| + |h|)``. Default
        1e-10. With 0 it ends when a sweep finds no better pair.
    target : float, optional
        Stop when F reaches this value.
    seed : int, default 0
        Seed of all random choices; the same seed gives the same bits, for any ``n_threads``.
    n_threads : int, optional
        Number of threads; all cores by default.
    callback : callable, optional
        Called with a `Progress` at the start, after sweeps and about every tenth of a second;
        returning True stops the solve. If it raises, the exception is raised from here
        with the result so far as its attribute ``result``.
    project_x0 : bool, default False
        Replace an infeasible array ``x0`` by a nearby feasible point instead of refusing it.
    verbose : bool, default False
        Log progress at level INFO to the logger ``orthobcd``, on standard error if the logger
        has no handler.

    Returns
    -------
    Result
        The best feasible point. Limits, Ctrl-C and a callback that stops are statuses.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((50, 30))
    >>> result = ob.solve(ob.SparsePCAProblem(A, 3, ob.L0(20.0)))
    >>> result.converged, bool(result.feasibility < 1e-12)
    (True, True)
    """
    if (
        isinstance(problem, JOrthogonalProblem)
        and (problem.signature == problem.signature[0]).all()
    ):
        # XᵀJX = ±XᵀX: the Stiefel manifold, with the same results bit for bit.
        problem = StiefelProblem(problem.smooth, problem.penalty, problem.n_components)
        if isinstance(solver, JOBCD):
            solver = _stiefel_solver(solver)
    hyperbolic = isinstance(problem, HYPERBOLIC_PROBLEMS)
    if not hyperbolic and not isinstance(
        problem, (StiefelProblem, SparsePCAProblem, NonnegativePCAProblem)
    ):
        raise TypeError(
            "problem must be a StiefelProblem, SparsePCAProblem, NonnegativePCAProblem, "
            "JOrthogonalProblem, HyperbolicEigenvalueProblem, HyperbolicPCAProblem or "
            "HyperbolicStructuralProbeProblem, "
            f"got {type(problem).__name__}"
        )
    if hyperbolic:
        if solver is None:
            solver = JOBCD()
        elif not isinstance(solver, JOBCD):
            raise TypeError(
                f"solver must be a JOBCD for a {type(problem).__name__}, "
                f"got {type(solver).__name__}"
            )
    elif solver is None:
        solver = Auto()
    elif not isinstance(solver, (Auto, Path, OBCD)):
        raise TypeError(f"solver must be an Auto, Path or OBCD, got {type(solver).__name__}")
    n, r = problem.smooth.n_rows, problem.n_components
    sweeper = solver.solver if isinstance(solver, Path) else solver
    if isinstance(sweeper, OBCD) and sweeper.block_size > n:
        raise ValueError(f"block_size must be at most n = {n}, got {sweeper.block_size}")
    if isinstance(solver, Path) and not isinstance(problem.penalty, (L0, L1)):
        raise ValueError(
            f"solver: Path needs an L0 or L1 penalty, got {type(problem.penalty).__name__}"
        )
    limits = (
        None if max_time is None else as_float("max_time", max_time, minimum=0.0),
        None if max_sweeps is None else as_int("max_sweeps", max_sweeps, 0),
        None if tol is None else as_float("tol", tol, minimum=0.0),
        None if target is None else as_float("target", target),
    )
    seed = as_int("seed", seed, 0)
    if seed >= 2**64:
        raise ValueError(f"seed must be below 2**64, got {seed}")
    if n_threads is not None:
        n_threads = as_int("n_threads", n_threads, 1)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {type(callback).__name__}")
    as_bool("verbose", verbose)
    as_bool("project_x0", project_x0)
    watcher = _watcher(callback, verbose)
    if hyperbolic:
        if project_x0:
            raise ValueError("project_x0 must be False for a mixed signature")
        mixed, how = cast(Any, problem), cast(JOBCD, solver)
        return solve_hyperbolic(mixed, x0, how, limits, seed, n_threads, watcher)
    start = _start(x0, n, r)
    if start is None and isinstance(solver, OBCD):
        start = "partition" if isinstance(problem.penalty, NonNegative) else "identity"
    common = (limits, seed, n_threads, watcher)
    what = (problem.smooth, problem.penalty, r, start, project_x0)
    if isinstance(solver, Auto):
        strategies = None if solver.strategies is None else list(solver.strategies)
        returned, error = _core.solve_auto(*what, solver.n_starts, strategies, *common)
    elif isinstance(solver, Path):
        lams = None if solver.lams is None else list(solver.lams)
        returned, error = _core.solve_path(*what, lams, solver.ratio, solver.solver, *common)
    else:
        returned, error = _core.solve_stiefel(*what, cast(OBCD, solver), *common)
    returned["status"] = Status(returned["status"])
    returned["starts"] = tuple(StartReport(*start) for start in returned.pop("starts", ()))
    returned["path"] = tuple(
        PathPoint(**{**point, "status": Status(point["status"])})
        for point in returned.pop("path", ())
    )
    result = Result(**returned, seed=seed)
    if error is not None:
        error.result = result  # type: ignore[attr-defined]
        raise error
    return result


def _stiefel_solver(solver: JOBCD) -> OBCD:
    """The options of a `JOBCD` on the Stiefel manifold."""
    if solver.rapidity_bound is not None:
        raise ValueError("rapidity_bound needs a signature of both signs")
    if solver.update == "vr-jacobi":
        raise ValueError("update must be 'gauss-seidel' or 'jacobi' for a definite signature")
    return OBCD(
        working_set=solver.working_set,
        update=solver.update,
        side=solver.side,
        alpha=solver.theta,
        tile_size=solver.tile_size,
    )


def _start(x0: Any, n: int, r: int) -> str | FloatArray | None:
    if x0 is None:
        return None
    if isinstance(x0, str):
        if x0 not in STARTS:
            raise ValueError(f"x0 must be an array or one of {', '.join(STARTS)}; got {x0!r}")
        return x0
    array = as_float_array("x0", x0, 2)
    if array.shape != (n, r):
        raise ValueError(f"x0 must have shape ({n}, {r}), got {array.shape}")
    return array


def _watcher(
    callback: Callable[[Progress], Any] | None, verbose: bool
) -> Callable[..., bool] | None:
    if callback is None and not verbose:
        return None
    if verbose and not logger.handlers and not logging.getLogger().handlers:
        logger.addHandler(logging.StreamHandler())
        logger.setLevel(logging.INFO)

    def watch(
        seconds: float, objective: float, feasibility: float, n_iterations: int, x: FloatArray
    ) -> bool:
        if verbose:
            logger.info(
                "%8.2f s  objective %.8g  nonzeros %d  pairs %d",
                seconds,
                objective,
                np.count_nonzero(x),
                n_iterations,
            )
        if callback is None:
            return False
        answer = callback(Progress(seconds, objective, feasibility, n_iterations, x))
        return bool(answer) if answer is not None else False

    return watch
