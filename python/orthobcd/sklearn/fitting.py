"""A fit under way: its time limit, its live line, and what Ctrl-C leaves of it."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from sklearn.utils import check_random_state

from .._internal.checks import as_float, as_int, as_optional_float
from .._internal.interrupt import Kept
from .._internal.progress import live
from .._internal.run import Deadline
from ..result import Status

if TYPE_CHECKING:
    from typing_extensions import Self


class Fitting(Kept):
    """A fit of an estimator, which begins when this is made; ``result`` is that of its last solve.

    Parameters
    ----------
    estimator : object
        It has ``max_time`` and ``verbose``.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C ended what came after the last solve.
    """

    def __init__(self, estimator: Any) -> None:
        super().__init__()
        limit = as_optional_float("max_time", estimator.max_time, minimum=0.0)
        self.deadline = Deadline(limit)
        self.interrupted = False
        self._live = live(bool(estimator.verbose), limit)

    def __enter__(self) -> Self:
        self._line = self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.__exit__()
        super().__exit__(kind, error, trace)

    def stage(self, text: str) -> None:
        """Show what is being done."""
        if self._line is not None:
            self._line.stage(text)
            if self._line.bar is not None:
                self._line.bar.refresh()

    def end(self) -> None:
        """Raise the `KeyboardInterrupt` that Ctrl-C stands for, if it ended a part of the fit."""
        solved = self.result is None or self.result.status is not Status.INTERRUPTED
        if self.interrupted or not solved:
            raise KeyboardInterrupt


def threads_of(estimator: Any) -> int | None:
    """The number of threads that ``n_jobs`` stands for."""
    if estimator.n_jobs is None:
        return 1
    if estimator.n_jobs == 0:
        raise ValueError("n_jobs must be positive, negative for all cores, or None; got 0")
    return None if estimator.n_jobs < 0 else as_int("n_jobs", estimator.n_jobs, 1)


def run_options(estimator: Any, fitting: Fitting) -> dict[str, Any]:
    """Options of every solve of a fit; ``max_time`` is the rest of the time limit."""
    return {
        "max_time": fitting.deadline.left(),
        "tol": as_float("tol", estimator.tol, minimum=0.0),
        "seed": int(check_random_state(estimator.random_state).randint(2**31 - 1)),
        "n_threads": threads_of(estimator),
        "verbose": bool(estimator.verbose),
    }
