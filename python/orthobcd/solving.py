"""`solve`, `value`, and `Solve`: limits, live line, Ctrl-C and checkpoint of any solve or fit."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import logging
import math
import numbers
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import ContextVar, Token
from dataclasses import dataclass
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._core import WORK_UNIT, Checkpoint, Stop
from ._internal.checks import (
    FloatArray,
    Interval,
    as_bool,
    as_callable,
    as_float,
    as_float_array,
    as_seed,
    as_threads,
    is_sparse,
    seed_of,
)
from .hyperbolic.probe import HyperbolicStructuralProbeProblem
from .hyperbolic.problems import JOrthogonalProblem, on_stiefel
from .hyperbolic.solving import (
    PROBE_TOL,
    as_sum,
    check_solver,
    default_solver,
    describe,
    for_sum,
    posedness_of,
    start_point,
)
from .objectives import ByFunction, FiniteSum, GramQuadratic, Quadratic
from .penalties import L0, L1, Cardinality, NonNegative, NoPenalty, RowSparse
from .problems import Problem, as_problem, as_start, samples, without_trivial_limit
from .result import Bound, PathPoint, Result, Search, SearchRun, Status
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

if TYPE_CHECKING:
    from typing_extensions import Self

S = TypeVar("S")
T = TypeVar("T")

CheckpointLike: TypeAlias = str | os.PathLike[str] | Checkpoint
"""Path of a checkpoint, or a `Checkpoint` that several solves in a row share."""

MOST_WORK = 1e18
"""Largest work limit in multiply-adds, some years of work; larger limits become this one."""

IDENTIFYING = ("max_sweeps", "effort", "tol", "target", "gap_tol", "seed")
"""Arguments that a solve has in common with the one that it continues, beside ``max_work``."""

POLL = 0.05
"""Seconds between checks for Ctrl-C while other threads work."""

AHEAD = 256
"""Largest number of calls that wait for a thread or for the values before theirs."""

REFRESH = 0.1
"""Seconds between two changes of the number of rows on the live line."""

logger = logging.getLogger("orthobcd")

_open: ContextVar[Solve | None] = ContextVar("orthobcd_line", default=None)

Start: TypeAlias = Literal["identity", "random", "spectral", "partition", "cs"]

STARTS = ("identity", "random", "spectral", "partition")
"""Named starts of problems with XᵀX = I."""

BOUNDED = (L0, L1, Cardinality, RowSparse, NonNegative, NoPenalty)
"""Penalties with a lower bound."""

CONTRADICTION = "contradiction"
"""Status of the core where the gradient of a function is not that of its values."""

WRONG_GRADIENT = (
    "smooth must return the gradient of its value: the value does not fall as the gradient says, "
    "and differences of values disagree with the gradient (check_gradient shows by how much), "
    "unless noise as large as these differences hides them (then tol must be above the noise)"
)


class Solve:
    """Context of a solve, a path or a fit.

    The core reads the attributes with the names of the parameters as options, and calls the object
    as its `watcher`. The time limit starts in the constructor. The live line is that of tqdm,
    rewritten in place; without tqdm the log is shown. A context within another one shares its line.

    Parameters
    ----------
    max_time, max_sweeps, max_work, effort, tol, target, gap_tol, seed, n_threads, verbose, \
checkpoint, checkpoint_every
        As in `orthobcd.solve`; the errors name them.
    callback : callable, optional
        Called with the arguments of `__call__`; returning True stops the solve.
    ctrl_c : {"raise", "flag", "keep"}
        "raise": Ctrl-C raises a `KeyboardInterrupt`, except within the watcher, which then ends the
        solve. "flag": Ctrl-C only sets ``pressed``, except in `during`. "keep": the
        handler of SIGINT stays, and a `KeyboardInterrupt` gets ``result`` as an attribute. A
        handler is set only in the main thread and only in place of Python's own.

    Attributes
    ----------
    max_time : float or None
        Seconds left; None without limit.
    settings : tuple of pairs of str
        Names and texts of the arguments by which the checkpoint identifies the solve.
    result : object
        The best result so far; None before there is one.
    interrupted : bool
        Whether Ctrl-C ended a part of the work.
    pressed : bool
        Whether Ctrl-C was pressed.
    """

    def __init__(
        self,
        *,
        max_time: Any = None,
        max_sweeps: Any = None,
        max_work: Any = None,
        effort: Any = 1.0,
        tol: Any = None,
        target: Any = None,
        gap_tol: Any = None,
        seed: Any = 0,
        n_threads: Any = 1,
        verbose: Any = False,
        checkpoint: CheckpointLike | None = None,
        checkpoint_every: Any = 60.0,
        callback: Callable[..., Any] | None = None,
        ctrl_c: Literal["raise", "flag", "keep"] = "raise",
    ) -> None:
        self._started = time.perf_counter()
        self.limit: float | None = Interval(float, 0.0, optional=True)("max_time", max_time)
        self.max_sweeps = Interval(int, 0, optional=True)("max_sweeps", max_sweeps)
        self.tol = Interval(float, 0.0, optional=True)("tol", tol)
        self.target = Interval(float, optional=True)("target", target)
        self.gap_tol = Interval(float, 0.0, optional=True)("gap_tol", gap_tol)
        self.seed = as_seed(seed)
        self.n_threads = as_threads(n_threads)
        self._given_work = max_work
        work = Interval(float, 0.0, optional=True)("max_work", max_work)
        self.max_work = None if work is None else round(min(work * WORK_UNIT, MOST_WORK))
        if isinstance(effort, float) and effort == math.inf:
            if max_time is None and max_work is None:
                raise ValueError(
                    "effort must be finite without max_time and max_work, as nothing would end "
                    "the search"
                )
            self.effort = effort
        else:
            self.effort = as_float("effort", effort, 0.0, closed="neither")
        self.checkpoint = open_checkpoint(checkpoint, checkpoint_every)
        self.verbose = as_bool("verbose", verbose)
        self.settings: tuple[tuple[str, str], ...] = ()
        self.result: Any = None
        self.interrupted = False
        self.pressed = False
        self._callback, self._ctrl_c = callback, ctrl_c
        self._raising = ctrl_c == "raise"
        self._handles = False
        self._line: Solve | None = None
        self._token: Token[Solve | None] | None = None
        self._bar: Any = None
        self._text = "solve"
        self._stages: tuple[int, int] | None = None
        self._rows_shown = self._started

    def __enter__(self) -> Self:
        if self.verbose:
            self._line = _open.get()
            if self._line is None:
                self._line = self
                self._token = _open.set(self)
                self._begin_line()
        if (
            self._ctrl_c != "keep"
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            signal.signal(signal.SIGINT, self._handle)
            self._handles = True
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._handles:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._token is not None:
            _open.reset(self._token)
            if self._bar is not None:
                self._bar.refresh()
                self._bar.close()
        kept = self._ctrl_c == "keep" and isinstance(error, KeyboardInterrupt)
        if kept and not hasattr(error, "result"):
            error.result = self.result  # type: ignore[union-attr]

    # Limits ---------------------------------------------------------------------------------------

    @property
    def max_time(self) -> float | None:
        """Seconds left; None without limit."""
        if self.limit is None:
            return None
        return max(self.limit - (time.perf_counter() - self._started), 0.0)

    def allows(self, seconds: float) -> bool:
        """True if a step of ``seconds`` seconds ends before the limit; True without limit."""
        left = self.max_time
        return left is None or seconds < left

    def options(self) -> dict[str, Any]:
        """Arguments of `orthobcd.solve` for a part of the work, with the remaining time."""
        names = ("max_time", "effort", "tol", "seed", "n_threads", "verbose", "checkpoint")
        return {"max_work": self._given_work, **{name: getattr(self, name) for name in names}}

    def identify(self, **values: Any) -> None:
        """Keeps the arguments by which a checkpoint identifies the solve."""
        if self.checkpoint is not None:
            own = {name: getattr(self, name) for name in ("max_work", *IDENTIFYING)}
            self.settings = tuple((k, digest(v)) for k, v in {**values, **own}.items())

    # Live line ------------------------------------------------------------------------------------

    def _begin_line(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            show_log()
            return
        known = "{desc}: {percentage:3.0f}%|{bar:16}| {elapsed}{postfix}"
        open_end = "{desc}: {elapsed}{postfix}"
        self._bar = tqdm(
            total=self.limit,
            desc=self._text,
            bar_format=open_end if self.limit is None else known,
            mininterval=0.05,
        )

    def show(self, text: str) -> None:
        """Shows the current stage of the work."""
        self.working(text)
        if self._line is not None and self._line._bar is not None:
            self._line._bar.refresh()

    def show_rows(self, rows: int, total: int | None) -> None:
        """Shows the rows that a pass over data has read, rows per second, and the seconds left."""
        now = time.perf_counter()
        if now - self._rows_shown < REFRESH:
            return
        self._rows_shown = now
        rate = rows / max(now - self._started, 1e-9)
        of = "" if total is None else f" of {total:,}"
        left = "" if total is None else f", {(total - rows) / rate:.0f} s left"
        self.show(f"second moments: {rows:,}{of} rows, {rate:,.0f} rows/s{left}")

    def show_point(self, objective: float, nonzeros: int) -> None:
        """Shows objective and nonzeros of the current point."""
        line = self._line
        if line is None or line._bar is None:
            return
        elapsed, bar = time.perf_counter() - line._started, line._bar
        left = None
        if line.limit is not None:
            left = max(line.limit - elapsed, 0.0)
            bar.n = min(elapsed, line.limit)
        elif line._stages is not None and line._stages[0] > 0:
            done, total = line._stages
            left = elapsed * (total - done) / done
        ending = "" if left is None else f", {left:.0f} s left"
        bar.set_postfix_str(f"objective {objective:.8g}, {nonzeros} nonzeros{ending}", False)
        # Redraws at most once per `mininterval`.
        bar.update(0)
        if time.perf_counter() - bar.last_print_t > bar.mininterval:
            bar.refresh()
            bar.last_print_t = time.perf_counter()

    # The watcher of the core. Within it Ctrl-C only sets a flag, so that the solve ends with a
    # status: an exception would reach the user instead.

    @property
    def watcher(self) -> Self | None:
        """The object that the core calls; None without callback and live line."""
        return None if self._callback is None and self._line is None else self

    def __call__(
        self,
        seconds: float,
        objective: float,
        feasibility: float,
        n_iterations: int,
        x: FloatArray,
    ) -> bool:
        """Handles a point; returns True to stop the solve."""
        self._raising = False
        if self._line is not None:
            nonzeros = int(np.count_nonzero(x))
            self.show_point(objective, nonzeros)
            text = "%8.2f s  objective %.8g  nonzeros %d  pairs %d"
            logger.info(text, seconds, objective, nonzeros, n_iterations)
        stop = False
        if self._callback is not None and not self.pressed:
            point = seconds, objective, feasibility, n_iterations, x
            stop = bool(self.during(self._callback, *point, own=True))
        if self.pressed:
            return True
        self._raising = True
        return stop

    def working(self, text: str) -> None:
        """Called at the start of a round of a search, with the names of its heuristics."""
        if self._line is not None:
            self._line._text, self._line._stages = text, None
            if self._line._bar is not None:
                self._line._bar.set_description_str(text, refresh=False)

    def stage(self, done: int, total: int | None) -> None:
        """Called at the start of a stage of a path, with the numbers of stages."""
        self.working(f"path {done + 1}" + (f" of {total}" if total else ""))
        if self._line is not None and total is not None:
            self._line._stages = done, total

    # Ctrl-C ---------------------------------------------------------------------------------------

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True
        if self._raising:
            self._raising = False
            raise KeyboardInterrupt

    def during(self, call: Callable[..., T], *args: Any, own: bool = False) -> T | None:
        """Returns the value of ``call``; None if Ctrl-C ended it.

        With ``own`` a `KeyboardInterrupt` that ``call`` itself raises is raised again.
        """
        try:
            self._raising = True
            value = call(*args)
            self._raising = False
            return value
        except KeyboardInterrupt:
            if own and not self.pressed:
                raise
            self.pressed = True
            return None
        finally:
            self._raising = False


def run_in_threads(
    call: Callable[[S], T], items: Iterable[S], workers: int | None, done: list[T]
) -> None:
    """Calls a function for every item on several threads; appends the values to `done` in order.

    Parameters
    ----------
    call : callable
        The function. Ctrl-C on this thread, or any exception, ends its solves.
    items : iterable
        Arguments of the function, one per call.
    workers : int or None
        Number of threads; None for all cores.
    done : list
        The list that gets the returned values.
    """
    stop = Stop()
    pool = ThreadPoolExecutor(workers, initializer=stop.obey)
    left = iter(items)
    with Solve() as run:
        try:
            submitted = deque(pool.submit(call, item) for item in islice(left, AHEAD))
            while submitted:
                # Python drops what a handler raises within the callback of a weak reference.
                if run.pressed:
                    raise KeyboardInterrupt
                if wait([submitted[0]], POLL).done:
                    done.append(submitted.popleft().result())
                    submitted.extend(pool.submit(call, item) for item in islice(left, 1))
        except BaseException:
            stop.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def show_log() -> None:
    """Shows the library's messages on standard error, if no log handler is installed."""
    if not logger.handlers and not logging.getLogger().handlers:
        logger.addHandler(logging.StreamHandler())
        logger.setLevel(logging.INFO)


# Checkpoints --------------------------------------------------------------------------------------


def open_checkpoint(checkpoint: CheckpointLike | None, every: Any) -> Checkpoint | None:
    """The open checkpoint; None without one. Checks both arguments of `solve`."""
    every = as_float("checkpoint_every", every, 0.0)
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return checkpoint
    path = _path(checkpoint)
    if not path:
        raise ValueError("checkpoint must be the path of a file, got an empty one")
    if os.path.isdir(path):
        raise ValueError(f"checkpoint must be the path of a file; {path} is a folder")
    return Checkpoint(os.path.realpath(path), every)


def folder_of(checkpoint: Any, random_state: Any) -> Callable[[str], str | None]:
    """Paths, by name, of the checkpoints of several fits in a folder, which is made.

    Without a folder every path is None. ``random_state``, the seed of the fits, must be an integer.
    """
    if checkpoint is None:
        return lambda name: None
    check_seeded(random_state)
    folder = _path(checkpoint)
    try:
        os.makedirs(folder, exist_ok=True)
    except FileExistsError as error:
        raise ValueError(f"checkpoint must be a folder; {folder} is a file") from error
    except OSError:
        # Each fit warns that its file cannot be written, and goes on.
        pass
    return lambda name: os.path.join(folder, f"{name}.checkpoint")


def _path(checkpoint: Any) -> str:
    if not isinstance(checkpoint, (str, os.PathLike)):
        raise TypeError(f"checkpoint must be a path, got {type(checkpoint).__name__}")
    return os.fspath(checkpoint)


def check_seeded(random_state: Any) -> None:
    """Checks that a fit with a checkpoint can be repeated."""
    if not isinstance(random_state, numbers.Integral):
        raise ValueError(
            f"random_state must be an integer where a checkpoint is given, got {random_state!r}"
        )


def digest(value: Any) -> str:
    """A text that two values share only if they are equal; arrays by a hash of their bytes."""
    if is_sparse(value):
        columns = value.tocsc()
        return f"sparse {digest((columns.shape, columns.indptr, columns.indices, columns.data))}"
    if isinstance(value, np.ndarray):
        shape = "x".join(map(str, value.shape))
        sha = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"<{value.dtype} array {shape}, {sha[:16]}>"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        shown = (f"{name}={digest(getattr(value, name))}" for name in names)
        return f"{type(value).__name__}({', '.join(shown)})"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(digest, value))})"
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    return repr(value)


# Solving ------------------------------------------------------------------------------------------


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
        Raise a lower bound on the optimum beside the search, as `certify` does, and stop when its
        gap is at most ``gap_tol`` (`Status.PROVED`). The bound is ``search.bound`` of the result.
        The two share ``max_time`` and ``max_work``; a search that ends by itself leaves the rest to
        the bound. Needs `Auto` and a problem that `certify` can bound.
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
        if isinstance(solver, JOBCD):
            if solver.rapidity_bound is not None:
                raise ValueError("rapidity_bound needs a signature of both signs")
            shared = {k: v for k, v in vars(solver).items() if k != "rapidity_bound"}
            solver = OBCD(**shared)
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
    mixed = problem.signature is not None
    if as_bool("project_x0", project_x0) and mixed:
        raise ValueError("project_x0 must be False for a mixed signature")
    if mixed:
        how: Any = default_solver(problem) if solver is None else solver
        check_solver(problem, how)
        start: Any = x0
    else:
        free = isinstance(problem.smooth, ByFunction)
        search = not free or not isinstance(problem.penalty, NoPenalty)
        full = SEARCH if search else DESCENT
        how = (VRJOBCD() if samples(problem) else full) if solver is None else solver
        _check_solver(how, problem)
        start = as_start(x0, STARTS, problem.shape)
        if start is None and isinstance(how, (OBCD, VRJOBCD)):
            dense = "random" if free else "identity"
            start = "partition" if getattr(problem.penalty, "nonnegative", False) else dense
    sampled = isinstance(how, VRJOBCD)
    if sampled and run.max_work is not None:
        raise ValueError("max_work must be None for VRJOBCD, which counts epochs")
    _identify(run, problem, start, how, project_x0)
    with run:
        given, posed = problem, None
        if mixed:
            start = start_point(problem, start, run.seed)
            posed = posedness_of(problem, lambda work: run.allows(work / WORK_UNIT))
            if isinstance(problem, HyperbolicStructuralProbeProblem) and run.tol is None:
                run.tol = PROBE_TOL
        elif sampled:
            start = _core.start_point(problem, start or "random", project_x0, run)
            project_x0 = False
        if sampled:
            how, given = for_sum(problem, how), as_sum(problem)
        elif isinstance(how, Continuation):
            how = Stages(how.lams, how.ratio, how.solver)
        returned, error = _core.solve(given, start, project_x0, how, run, run.watcher)
        run.show_point(returned["objective"], int(np.count_nonzero(returned["x"])))
        if mixed:
            describe(problem, returned, posed)
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
        return
    n = problem.shape[0]
    sweeper = solver.solver if isinstance(solver, Continuation) else solver
    if isinstance(sweeper, OBCD) and sweeper.block_size > n:
        raise ValueError(f"block_size must be at most n = {n}, got {sweeper.block_size}")


def check_bounded(problem: Problem, wish: str) -> None:
    """Raises an error that begins with ``wish`` if there is no lower bound for the problem."""
    if problem.signature is not None and on_stiefel(problem).signature is not None:
        raise ValueError(f"{wish} for a mixed signature")
    smooth = problem.smooth
    if not isinstance(smooth, (Quadratic, GramQuadratic)):
        raise TypeError(f"{wish} for a {type(smooth).__name__}")
    penalty = problem.penalty
    weighted = isinstance(penalty, L0) and np.ptp(penalty.lam) > 0.0
    if weighted or not isinstance(penalty, BOUNDED):
        kind = "weighted L0" if weighted else type(penalty).__name__
        raise TypeError(
            f"{wish} for a penalty other than L0 with one weight, L1, NonNegative, "
            f"NoPenalty, Cardinality and RowSparse, got a {kind}"
        )
    if isinstance(smooth, Quadratic) and not smooth.is_trace_form:
        raise ValueError(f"{wish} for a Quadratic with a linear term or a column metric")


def _status(name: str) -> Status:
    """The status of the core; a contradiction is an error, whose result was interrupted."""
    return Status.INTERRUPTED if name == CONTRADICTION else Status(name)


def as_result(returned: dict[str, Any], error: BaseException | None, seed: int) -> Result:
    """Makes a `Result` of the dict from the core; raises ``error`` of a callback, with the result
    as its attribute."""
    if returned["status"] == CONTRADICTION:
        error = error or ValueError(WRONG_GRADIENT)
    returned["status"] = _status(returned["status"])
    returned.pop("recession", None)
    if (search := returned.pop("search", None)) is not None:
        runs = tuple(SearchRun(**run) for run in search["runs"])
        bound, ended = returned.pop("bound"), returned["status"] is Status.INTERRUPTED
        returned["search"] = Search(
            search["profile"] or {},
            runs,
            returned.pop("strategy"),
            None if bound is None else Bound(**bound, interrupted=ended),
        )
    points = ({**point, "status": _status(point["status"])} for point in returned.pop("path", ()))
    returned["path"] = tuple(PathPoint(**point) for point in points)
    if (gradients := returned.pop("evaluations", None)) is not None:
        gradients = np.array(gradients, np.int64)
        epochs = returned.pop("n_epochs")
        returned["extra"] = {"n_epochs": epochs, "component_gradients": gradients}
    result = Result(**returned, seed=seed)
    if error is not None:
        # Some exceptions refuse attributes.
        with contextlib.suppress(Exception):
            error.result = result  # type: ignore[attr-defined]
        raise error
    return result
