"""Context of a fit: time limit, live line, and the result that Ctrl-C keeps."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from sklearn.utils import check_random_state

from .._internal.checkpoint import CheckpointLike, check_seeded, opened
from .._internal.checks import as_float, as_int, as_optional_float
from .._internal.interrupt import Kept
from .._internal.progress import live
from .._internal.run import Deadline, as_effort
from ..result import Status

if TYPE_CHECKING:
    from typing_extensions import Self


class Fitting(Kept):
    """Context of a fit, whose time starts in the constructor.

    Parameters
    ----------
    estimator : object
        The estimator, with ``max_time`` and ``verbose``.
    checkpoint, checkpoint_every
        As in `solve`; the solves of the fit share the checkpoint.

    Attributes
    ----------
    result : Result or None
        Result of the last solve.
    interrupted : bool
        Whether Ctrl-C ended the work after the last solve.
    """

    def __init__(
        self, estimator: Any, checkpoint: CheckpointLike | None = None, checkpoint_every: Any = 60.0
    ) -> None:
        super().__init__()
        self.checkpoint = opened(checkpoint, checkpoint_every)
        if self.checkpoint is not None:
            check_seeded(estimator.random_state)
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
        """Shows the current stage of the fit."""
        if self._line is not None:
            self._line.stage(text)
            if self._line.bar is not None:
                self._line.bar.refresh()

    def end(self) -> None:
        """Raises a `KeyboardInterrupt` if Ctrl-C ended a part of the fit."""
        solved = self.result is None or self.result.status is not Status.INTERRUPTED
        if self.interrupted or not solved:
            raise KeyboardInterrupt


def threads_of(estimator: Any) -> int | None:
    """The number of threads for ``n_jobs``; None for all cores."""
    if estimator.n_jobs is None:
        return 1
    if estimator.n_jobs == 0:
        raise ValueError("n_jobs must be positive, negative for all cores, or None; got 0")
    return None if estimator.n_jobs < 0 else as_int("n_jobs", estimator.n_jobs, 1)


def run_options(estimator: Any, fitting: Fitting) -> dict[str, Any]:
    """Options of a solve of a fit; ``max_time`` is the remaining time."""
    return {
        "max_time": fitting.deadline.left(),
        "effort": as_effort(estimator.effort, estimator.max_time is not None),
        "tol": as_float("tol", estimator.tol, minimum=0.0),
        "seed": int(check_random_state(estimator.random_state).randint(2**31 - 1)),
        "n_threads": threads_of(estimator),
        "verbose": bool(estimator.verbose),
        "checkpoint": fitting.checkpoint,
    }
