"""A fit under way: its time limit, its live line, and what Ctrl-C leaves of it."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from .._internal.checks import as_optional_float
from .._internal.progress import live
from .._internal.run import Deadline
from ..result import Result, Status

if TYPE_CHECKING:
    from typing_extensions import Self


class Fitting:
    """A fit of an estimator, which begins when this is made.

    A context. A `KeyboardInterrupt` that leaves it has the attribute ``result``: the best result so
    far, None before there is one.

    Parameters
    ----------
    estimator : object
        It has ``max_time`` and ``verbose``.

    Attributes
    ----------
    result : Result or None
        The best result so far.
    """

    def __init__(self, estimator: Any) -> None:
        limit = as_optional_float("max_time", estimator.max_time, minimum=0.0)
        self.deadline = Deadline(limit)
        self.result: Result | None = None
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
        if isinstance(error, KeyboardInterrupt) and not hasattr(error, "result"):
            error.result = self.result  # type: ignore[attr-defined]

    def stage(self, text: str) -> None:
        """Show what is being done."""
        if self._line is not None:
            self._line.stage(text)
            if self._line.bar is not None:
                self._line.bar.refresh()

    def end(self) -> None:
        """Raise the `KeyboardInterrupt` that Ctrl-C stands for, if it ended the search."""
        if self.result is not None and self.result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
