"""The front door: checks, the call into the core, the result."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from . import _core
from ._checks import FloatArray, as_bool, as_float, as_float_array, as_int
from ._progress import Line, live
from ._solve_hyperbolic import HYPERBOLIC_PROBLEMS, default_solver, solve_hyperbolic
from .finite_sums import LogisticLoss
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
from .result import PathPoint, Result, Status, as_result
from .solvers import OBCD, Auto, Path, Solver

logger = logging.getLogger("orthobcd")

_work: ContextVar[int | None] = ContextVar("work", default=None)


@contextlib.contextmanager
def limited_work(work: float | None) -> Iterator[None]:
    """Solves in this context do at most so much work, in multiply-adds (some 1e10 a second).

    Unlike a limit on time it gives the same bits on every machine.
    """
    token = _work.set(None if work is None else int(work))
    try:
        yield
    finally:
        _work.reset(token)


STARTS = ("identity", "random", "spectral", "partition")

FEASIBLE_START = 1e-8
"""Largest ``||XᵀX − I||_F`` of a start that counts as orthonormal."""


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
    problem : StiefelProblem, SparsePCAProblem, NonnegativePCAProblem, JOrthogonalProblem, \
HyperbolicEigenvalueProblem or HyperbolicPCAProblem
        What to minimise.
    x0 : {"identity", "random", "spectral", "partition"} or array_like of shape (n, r), optional
        Where to start. "identity": the first r columns of the identity. "random": a random point.
        "spectral": eigenvectors of the quadratic part. "partition": a random partition of the
        rows into r groups. An array must have orthonormal columns up to 1e-8 (and, whatever the
        signature, no negative entry for a nonnegative problem). By default `OBCD` starts at
        "identity" ("partition" for a nonnegative problem), `Path` at its closed form, and `Auto`
        chooses its own starts; one that is given here is the first of them. With a mixed signature:
        "identity" (the default), "random" or "cs" (J-orthogonal with rapidities of standard
        deviation 0.5 or 0.65, see `random_j_orthogonal`), or an array; a square one must satisfy
        XᵀJX = J up to 1e-8·‖X‖², of any other shape XᵀJX keeps the value that it has there.
    solver : Auto, Path, OBCD or JOBCD, optional
        How; ``Auto()`` by default. With a mixed signature `JOBCD`, the default without a penalty,
        or `Auto`, the default with one. A `LogisticLoss` is solved by `JOBCD` with a Jacobi update,
        by default ``JOBCD(update="jacobi")``.
    max_time : float, optional
        Time limit in seconds. `Auto` uses it all, unless the point is proved optimal or many
        perturbations in a row bring nothing.
    max_sweeps : int, optional
        Limit on sweeps, of all descents together; a sweep is n(n−1)/2 pair visits.
    tol : float, optional
        The solve has converged when no pair lowers F by more than `tol` times the magnitude of F,
        ``|f − c| + |h|`` with c the part of f that is constant on the constraint (see
        `Status.CONVERGED`). Default 1e-10. With 0 it ends when no pair lowers F by more than
        rounding.
    target : float, optional
        Stop when F reaches this value.
    seed : int, default 0
        Seed of all random choices. Without ``max_time`` the same seed gives the same bits on the
        same machine, for any ``n_threads``; with it the clock decides how far the search gets.
    n_threads : int, optional
        Number of threads; all cores by default.
    callback : callable, optional
        Called with a `Progress` at the start, after sweeps and about every tenth of a second;
        returning True stops the solve. If it raises, the exception (KeyboardInterrupt too) is
        raised from here, with the result so far as its attribute ``result`` if it takes attributes.
    project_x0 : bool, default False
        Replace an infeasible array ``x0`` by a nearby feasible point instead of refusing it.
    verbose : bool, default False
        Show a live line on standard error, or in the notebook (tqdm; the extra ``progress``):
        objective, nonzeros, time, and time left where there is a limit. The same goes to the logger
        ``orthobcd`` at level INFO, which is shown where tqdm is not installed.

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
        and not isinstance(problem.smooth, LogisticLoss)
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
            solver = default_solver(cast(Any, problem))
        elif not isinstance(solver, (Auto, JOBCD)):
            raise TypeError(
                f"solver must be a JOBCD or Auto for a {type(problem).__name__}, "
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
        _work.get(),
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
    if hyperbolic:
        if project_x0:
            raise ValueError("project_x0 must be False for a mixed signature")
        mixed, how = cast(Any, problem), cast("JOBCD | Auto", solver)
        with live(bool(verbose), limits[0]) as line:
            watcher = _watcher(callback, line)
            return solve_hyperbolic(mixed, x0, how, limits, seed, n_threads, watcher)
    start = _start(x0, n, r)
    if start is None and isinstance(solver, OBCD):
        start = "partition" if isinstance(problem.penalty, NonNegative) else "identity"
    smooth, penalty = problem.smooth, problem.penalty
    with live(bool(verbose), limits[0]) as line:
        limited = (limits, seed, n_threads, _watcher(callback, line))
        if isinstance(solver, Auto):
            strategies = None if solver.strategies is None else list(solver.strategies)
            returned, error = _core.solve_auto(
                smooth, penalty, None, r, start, project_x0, solver.n_starts, strategies, *limited
            )
        elif isinstance(solver, Path):
            lams = None if solver.lams is None else list(solver.lams)
            returned, error = _core.solve_path(
                smooth,
                penalty,
                r,
                start,
                project_x0,
                lams,
                solver.ratio,
                solver.solver,
                *limited,
            )
        else:
            returned, error = _core.solve_stiefel(
                smooth, penalty, r, start, project_x0, cast(OBCD, solver), *limited
            )
        return _result(returned, error, seed, line)


def minimize_at_count(
    problem: Problem,
    x0: Any,
    n_nonzero: int,
    *,
    max_time: float | None = None,
    tol: float | None = None,
    callback: Callable[[Progress], Any] | None = None,
    verbose: bool = False,
) -> Result | None:
    """Minimise f over orthonormal columns with exactly ``n_nonzero`` nonzero entries.

    The ℓ0 penalty meets only some numbers of nonzeros, whatever its weight; here the number is a
    constraint. From a point with about as many, entries are dropped or added until the
    number is met, then exchanged while that lowers f, f being minimised on each support.

    Parameters
    ----------
    problem : StiefelProblem or SparsePCAProblem
        With the penalty `L0`; its ``lam`` only prices the returned point.
    x0 : array_like of shape (n, r)
        Orthonormal columns up to 1e-8; best from a solve with nearly as many nonzeros.
    n_nonzero : int
        Between r and n·r.
    max_time, tol, callback, verbose
        As in `solve`.

    Returns
    -------
    Result or None
        ``CONVERGED`` when no exchange that was tried lowers f by 1e-6 of the part of it that is not
        constant (or by ``tol``, if that is more), ``MAX_SWEEPS`` when, without a time limit, the
        work that is done at most (some seconds) did not reach that; it counts no pairs. None
        when no point with that many nonzeros was found near ``x0``, or not in time.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.
    """
    if not isinstance(problem, (StiefelProblem, SparsePCAProblem)):
        raise TypeError(
            f"problem must be a StiefelProblem or SparsePCAProblem, got {type(problem).__name__}"
        )
    if not isinstance(problem.penalty, L0):
        raise TypeError(f"penalty must be an L0, got {type(problem.penalty).__name__}")
    n, r = problem.smooth.n_rows, problem.n_components
    start = _start(x0, n, r)
    if not isinstance(start, np.ndarray):
        raise TypeError(f"x0 must be an array, got {x0!r}")
    gap = float(np.linalg.norm(start.T @ start - np.eye(r)))
    if gap > FEASIBLE_START:
        raise ValueError(f"x0 must have orthonormal columns, ||XᵀX − I||_F is {gap:.3g}")
    count = as_int("n_nonzero", n_nonzero, r)
    if count > n * r:
        raise ValueError(f"n_nonzero must be at most {n * r}, got {count}")
    limits = (
        None if max_time is None else as_float("max_time", max_time, minimum=0.0),
        None,
        None if tol is None else as_float("tol", tol, minimum=0.0),
        None,
        _work.get(),
    )
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {type(callback).__name__}")
    as_bool("verbose", verbose)
    with live(bool(verbose), limits[0]) as line:
        if line is not None:
            line.stage("exchanges")
        answer = _core.solve_at_count(
            problem.smooth,
            problem.penalty.lam,
            r,
            start,
            count,
            limits,
            0,
            _watcher(callback, line),
        )
        return None if answer is None else _result(*answer, 0, line)


def _result(
    returned: dict[str, Any], error: BaseException | None, seed: int, line: Line | None
) -> Result:
    if line is not None:
        line.update(returned["objective"], int(np.count_nonzero(returned["x"])))
    returned["path"] = tuple(
        PathPoint(**{**point, "status": Status(point["status"])})
        for point in returned.pop("path", ())
    )
    return as_result(returned, error, seed)


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
    callback: Callable[[Progress], Any] | None, line: Line | None
) -> Callable[..., bool] | None:
    if callback is None and line is None:
        return None

    def watch(
        seconds: float, objective: float, feasibility: float, n_iterations: int, x: FloatArray
    ) -> bool:
        if line is not None:
            try:
                nonzeros = int(np.count_nonzero(x))
                line.update(objective, nonzeros)
                logger.info(
                    "%8.2f s  objective %.8g  nonzeros %d  pairs %d",
                    seconds,
                    objective,
                    nonzeros,
                    n_iterations,
                )
            except KeyboardInterrupt:
                # Ctrl-C: a status.
                return True
        if callback is None:
            return False
        answer = callback(Progress(seconds, objective, feasibility, n_iterations, x))
        return bool(answer) if answer is not None else False

    return watch
