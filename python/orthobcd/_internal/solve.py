"""The context of a solve, a path or a fit: limits, live line, Ctrl-C and checkpoint."""

from __future__ import annotations

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
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from .._core import WORK_UNIT, Checkpoint, Stop
from .checks import (
    FloatArray,
    Interval,
    as_bool,
    as_float,
    as_seed,
    as_threads,
    is_sparse,
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
        self.effort = as_effort(effort, max_time is not None or max_work is not None)
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


def as_effort(value: Any, limited: bool) -> float:
    """``value`` as a positive number; infinity needs a limit that ends the search."""
    if not (isinstance(value, float) and value == math.inf):
        return as_float("effort", value, 0.0, closed="neither")
    if not limited:
        raise ValueError(
            "effort must be finite without max_time and max_work, as nothing would end the search"
        )
    return value


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
