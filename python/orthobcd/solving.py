"""`solve`: checks its arguments, calls the core, returns the result."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._internal.checks import FloatArray, as_bool, as_callable, as_float_array, seed_of
from ._internal.solve import Solve
from .certificate import check_bounded
from .hyperbolic.problems import JOrthogonalProblem, on_stiefel
from .hyperbolic.solving import default_solver, solve_mixed, solve_sum
from .objectives import ByFunction, FiniteSum
from .penalties import Cardinality, NoPenalty, RowSparse
from .problems import Problem, as_problem, as_start, samples, without_trivial_limit
from .result import Result, as_result
from .solvers import (
    DESCENT,
    JOBCD,
    OBCD,
    SEARCH,
    VRJOBCD,
    Auto,
    Continuation,
    Solver,
    Stages,
)

Start: TypeAlias = Literal["identity", "random", "spectral", "partition", "cs"]

STARTS = ("identity", "random", "spectral", "partition")
"""Named starts of problems with XᵀX = I."""


@dataclass(frozen=True, eq=False)
class Progress:
    """Argument of a callback: the current feasible point and the progress of the solve.

    Attributes
    ----------
    seconds : float
        Wall-clock time since the start.
    objective : float
        F at ``x``; never rises from one call to the next.
    feasibility : float
        Distance from the constraint, as in `Result`.
    n_iterations : int
        Pairs visited.
    x : ndarray of shape (n, r)
        A copy of the current point.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.StiefelProblem(ob.Quadratic(np.diag([1.0, 2.0])), ob.NoPenalty(), 1)
    >>> shapes = []
    >>> _ = ob.solve(problem, callback=lambda progress: shapes.append(progress.x.shape))
    >>> set(shapes)
    {(2, 1)}
    """

    seconds: float
    objective: float
    feasibility: float
    n_iterations: int
    x: FloatArray


def solve(
    problem: Problem,
    x0: Start | ArrayLike | None = None,
    *,
    solver: Solver | None = None,
    max_time: float | None = None,
    max_sweeps: int | None = None,
    max_work: float | None = None,
    effort: float = 1.0,
    tol: float | None = None,
    target: float | None = None,
    gap_tol: float | None = None,
    seed: int = 0,
    random_state: Any = None,
    n_threads: int | None = 1,
    callback: Callable[[Progress], Any] | None = None,
    project_x0: bool = False,
    verbose: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
) -> Result:
    """Minimise F = f + h from a feasible start; every iterate is feasible.

    The returned point has the lowest F that the solve met.

    Parameters
    ----------
    problem : Problem
        The problem.
    x0 : {"identity", "random", "spectral", "partition"} or array_like of shape (n, r), optional
        The start. "identity": the first r columns of the identity. "random": a random point.
        "spectral": eigenvectors of the quadratic part. "partition": a random partition of the
        rows into r groups; if such columns do not fit in a `Box`, the groups are of as equal size
        as possible. An array must have orthonormal columns up to 1e-8 and, for a nonnegative
        problem of any signature, no negative entry. By default `OBCD` starts at "partition" for a
        nonnegative problem, at "random" for any other `SmoothFunction` or `FiniteSum`, else at
        "identity". `Continuation` starts at its closed form. `Auto` chooses its own starts; a given
        ``x0`` is the first of them. With a mixed signature ``x0`` is "identity" (the default),
        "random" (J-orthogonal with rapidities of standard deviation 0.5, see `random_j_orthogonal`;
        the default for a `SmoothFunction` or `FiniteSum` that is not nonnegative), "cs" (the same
        with 0.65) or an array. A square array must satisfy XᵀJX = J up to 1e-8·‖X‖² and 0.1 (the
        difference is repaired; `indefinite_polar` gives such an array); an array of another shape
        fixes the value of XᵀJX.
    solver : Auto, Continuation, OBCD, JOBCD or VRJOBCD, optional
        The solver; ``Auto()`` by default, for a `SmoothFunction` without penalty ``OBCD()``. With a
        mixed signature the default is `JOBCD` without a
        penalty and for a `SmoothFunction`, else `Auto`. A `LogisticLoss` and a structural probe
        need `VRJOBCD`, by default with full gradients. For a `FiniteSum` see its notes.
    max_time : float, optional
        Time limit in seconds. A solve that ends by itself ends earlier, with the same bits and the
        same status as without a limit.
    max_sweeps : int, optional
        Limit on sweeps, of all descents together; a sweep is n(n−1)/2 pair visits.
    max_work : float, optional
        Limit on counted work; a unit is about a second of one core, for a `SmoothFunction` about
        10,000 calls. Unlike `max_time` it gives the
        same bits for any load and number of threads. A search that ends by itself ends earlier.
        Not for `VRJOBCD`.
    effort : float, default 1
        Patience of a search (`Auto`): multiple of the work after which the search ends by itself.
        With ``math.inf``, which needs ``max_time`` or ``max_work``, the search goes on until a
        limit, unless the point is known to be optimal.
        Other solvers end at a point that no pair improves, whatever the effort.
    tol : float, optional
        The solve has converged when no pair lowers F by more than `tol` times the magnitude of F,
        ``|f − c| + |h|`` with c the part of f that is constant on the constraint (see
        `Status.CONVERGED`). Default 1e-10. With 0 the solve ends when no pair lowers F by more than
        rounding.
    target : float, optional
        Stop when F reaches this value.
    gap_tol : float, optional
        Raise a lower bound on the optimum beside the search, as `certify` does, and stop when
        ``gap`` of the result is at most ``gap_tol`` (`Status.PROVED`). The two share ``max_time``
        and ``max_work``; a search that ends by itself leaves the rest to the bound. Needs `Auto`
        and a problem that `certify` can bound.
    seed : int, default 0
        Seed of all random choices. Unless ``max_time`` ends the solve or ``effort`` is infinite,
        the same seed gives the same bits on the same machine, for any ``n_threads``; else the
        result depends on the speed of the machine.
    random_state : int, RandomState or Generator, optional
        Another name of ``seed``, that of the estimators; a generator draws the seed.
    n_threads : int or None, default 1
        Number of threads; −1 or None for all cores.
    callback : callable, optional
        Called with a `Progress` at the start, after sweeps and about every tenth of a second;
        returning True stops the solve. Ctrl-C inside the callback ends the callback and sets the
        status. Any other exception of the callback ends the solve and is raised, with the result so
        far as its attribute ``result`` if it takes attributes.
    project_x0 : bool, default False
        Replace an infeasible array ``x0`` by a nearby feasible point instead of raising an error.
    verbose : bool, default False
        Show a live line on standard error, or in the notebook (tqdm; the extra ``progress``):
        objective, nonzeros, time, and, with a limit, the time left. The logger ``orthobcd`` gets
        the same at level INFO; without tqdm its messages are shown instead.
    checkpoint : path, optional
        File of the progress of the solve, which is replaced atomically. The same call with the same
        file continues where the file ends; with ``max_work`` the result has the same bits as
        without interruption. ``max_time``, which then counts the seconds of both calls,
        ``n_threads``, ``callback`` and ``verbose`` may differ. After the end the file holds
        the results, and the same call returns at once. A file that cannot be written causes a
        `RuntimeWarning`, and the solve goes on. Not for `VRJOBCD`.
    checkpoint_every : float, default 60
        Least seconds between two writes of the checkpoint.

    Returns
    -------
    Result
        The best feasible point. A limit, Ctrl-C or a callback that stops sets the status.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it. A checkpoint of other data, of another
        problem, of other options or of another version is refused with the reason.

    Notes
    -----
    A quadratic form without penalty is solved by eigenvectors or by the polar factor of the linear
    term, where one decomposition gives the optimum. A `Cardinality` of n·r entries, or of n in
    every column, and a `RowSparse` of n rows or ``lam=0`` are dropped: they do not restrict X.

    A `Cardinality` and a `RowSparse` have their own searches, which need ``Auto()``. A search under
    a limit begins with points in closed form: the principal axes on the features of largest
    leverage or variance, the principal axes truncated to their largest entries, and disjoint
    supports. Truncated power iterations from leading directions make another point. For any
    ``max_work`` the result is at least as good as each of these. Then chains descend by swaps of
    entries or rows and are perturbed. One chain starts at a given ``x0``, truncated if it exceeds
    the limit. ``n_iterations`` counts descents. ``n_sweeps`` counts rounds
    of all chains, which ``max_sweeps`` limits. A gain of at most ``tol`` times the spread of f
    counts as none. The search ends with ``CONVERGED`` in three cases: a quarter of the chains have
    the best value, each from its own start, after a round of perturbations without gain; many
    perturbations in a row had no gain; or f reached a bound. It ends with ``MAX_WORK`` after the
    work of a default search. ``effort`` scales the quarter, the number of perturbations and that
    work. With the same seed a larger ``max_work`` or ``effort`` never gives a larger objective.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((50, 30))
    >>> result = ob.solve(ob.SparsePCAProblem(A, 3, ob.L0(20.0)))
    >>> result.converged, bool(result.feasibility < 1e-12)
    (True, True)
    """
    problem = without_trivial_limit(as_problem(problem))
    if isinstance(problem, JOrthogonalProblem) and on_stiefel(problem) is not problem:
        problem = on_stiefel(problem)
        solver = _as_obcd(solver) if isinstance(solver, JOBCD) else solver
    if callback is not None:
        as_callable("callback", callback)
    run = Solve(
        max_time=max_time,
        max_sweeps=max_sweeps,
        tol=tol,
        target=target,
        gap_tol=gap_tol,
        seed=seed_of(seed, random_state),
        n_threads=n_threads,
        max_work=max_work,
        effort=effort,
        verbose=verbose,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        callback=None if callback is None else lambda *point: callback(Progress(*point)),
    )
    if gap_tol is not None:
        check_bounded(problem, "gap_tol must be None")
        if not isinstance(solver, (Auto, type(None))):
            raise TypeError(f"gap_tol must be None for a {type(solver).__name__}")
    if as_bool("project_x0", project_x0) and problem.signature is not None:
        raise ValueError("project_x0 must be False for a mixed signature")
    if problem.signature is not None:
        how = default_solver(problem) if solver is None else solver
        if not isinstance(how, (Auto, JOBCD, VRJOBCD)):
            raise TypeError(
                f"solver must be a JOBCD, VRJOBCD or Auto for a {type(problem).__name__}, "
                f"got {type(how).__name__}"
            )
        if isinstance(how, VRJOBCD) and run.max_work is not None:
            raise ValueError("max_work must be None for VRJOBCD, which counts epochs")
        _identify(run, problem, x0, how, False)
        with run:
            returned, error, extra = solve_mixed(problem, x0, how, run)
            return as_result(returned, error, run.seed, extra)
    free = isinstance(problem.smooth, ByFunction)
    search = not free or not isinstance(problem.penalty, NoPenalty)
    full: Solver = SEARCH if search else DESCENT
    how = (VRJOBCD() if samples(problem) else full) if solver is None else solver
    _check_solver(how, problem)
    start = as_start(x0, STARTS, problem.shape)
    if start is None and isinstance(how, (OBCD, VRJOBCD)):
        dense = "random" if free else "identity"
        start = "partition" if getattr(problem.penalty, "nonnegative", False) else dense
    _identify(run, problem, start, how, project_x0)
    with run:
        if isinstance(how, VRJOBCD):
            point = _core.start_point(problem, start or "random", project_x0, run)
            returned, error, extra = solve_sum(problem, point, how, run)
            return as_result(returned, error, run.seed, extra)
        core = Stages(how.lams, how.ratio, how.solver) if isinstance(how, Continuation) else how
        returned, error = _core.solve(problem, start, project_x0, core, run, run.watcher)
        run.show_point(returned["objective"], int(np.count_nonzero(returned["x"])))
        return as_result(returned, error, run.seed)


def value(problem: Problem, x: ArrayLike, *, n_threads: int | None = 1) -> Result:
    """F at a point, as a `Result` without a solve.

    Parameters
    ----------
    problem : Problem
        The problem.
    x : array_like of shape (n, r)
        The point. It need not be feasible: ``feasibility`` says how far it is.
    n_threads : int, optional
        Threads of products; None: all cores.

    Returns
    -------
    Result
        Objective, smooth and penalty value, feasibility, and a history of the point alone. The
        penalty value is infinite if the point violates a limit on nonzeros or rows. The status
        is ``MAX_SWEEPS``, as no sweep was made.

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import orthobcd as ob
    >>> smooth = ob.Quadratic([[-3.0, 0.5], [0.5, -1.0]])
    >>> ob.value(ob.StiefelProblem(smooth, ob.Cardinality(1), 1), [[1.0], [0.0]]).objective
    -1.5
    """
    problem = without_trivial_limit(as_problem(problem))
    if problem.signature is not None:
        problem = on_stiefel(problem)
    point = as_float_array("x", x, 2)
    run = Solve(n_threads=n_threads)
    return as_result(_core.value(problem, point, run.n_threads), None, 0)


def _identify(run: Solve, problem: Problem, x0: Any, solver: Solver, project_x0: bool) -> None:
    """Keeps the arguments that identify the solve in its checkpoint."""
    if run.checkpoint is not None and isinstance(solver, VRJOBCD):
        raise ValueError("checkpoint must be None for VRJOBCD")
    stages = solver.solver if isinstance(solver, Continuation) else solver
    if run.checkpoint is not None and callable(getattr(stages, "working_set", None)):
        raise ValueError("checkpoint must be None where working_set is a function")
    run.identify(
        problem=type(problem).__name__,
        objective=type(problem.smooth).__name__,
        shape=problem.shape,
        penalty=problem.penalty,
        determinant=getattr(problem, "determinant", None),
        signature=problem.signature,
        solver=solver,
        x0=x0 if isinstance(x0, (str, type(None))) else np.asarray(x0, np.float64),
        project_x0=bool(project_x0),
    )


def _check_solver(solver: Solver, problem: Problem) -> None:
    """Refuses a solver that cannot solve the problem."""
    if isinstance(solver, VRJOBCD) and isinstance(problem.smooth, FiniteSum):
        return
    if not isinstance(solver, (Auto, Continuation, OBCD)):
        raise TypeError(
            f"solver must be an Auto, Continuation or OBCD, got {type(solver).__name__}"
        )
    if isinstance(problem.penalty, (Cardinality, RowSparse)):
        penalty = type(problem.penalty).__name__
        if not isinstance(solver, Auto):
            raise TypeError(f"solver must be an Auto for a {penalty}, got {type(solver).__name__}")
        if solver.makers is not None:
            raise ValueError(f"makers of Auto must be None for a {penalty}")
        return
    n = problem.shape[0]
    sweeper = solver.solver if isinstance(solver, Continuation) else solver
    if isinstance(sweeper, OBCD) and sweeper.block_size > n:
        raise ValueError(f"block_size must be at most n = {n}, got {sweeper.block_size}")


def _as_obcd(solver: JOBCD) -> OBCD:
    """The `OBCD` with the options of a `JOBCD`."""
    if solver.rapidity_bound is not None:
        raise ValueError("rapidity_bound needs a signature of both signs")
    return OBCD(**{k: v for k, v in vars(solver).items() if k != "rapidity_bound"})
