"""Ctrl-C: exceptions with a result, solves on several threads, and deferred interrupts."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from itertools import islice
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .._core import Stop

if TYPE_CHECKING:
    from typing_extensions import Self

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

POLL = 0.05
"""Seconds between checks for Ctrl-C while other threads work."""

AHEAD = 256
"""Largest number of calls that wait for a thread or for the values before theirs."""


class Kept:
    """Context that gives a `KeyboardInterrupt` raised in it the attribute ``result``.

    Attributes
    ----------
    result : object
        Value of that attribute: the best result so far, None before there is one. An exception that
        already has a ``result`` keeps it.
    """

    def __init__(self) -> None:
        self.result: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, KeyboardInterrupt) and not hasattr(error, "result"):
            error.result = self.result  # type: ignore[attr-defined]


def side_by_side(
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
    with CtrlC(raising=True) as ctrl_c:
        try:
            submitted = deque(pool.submit(call, item) for item in islice(left, AHEAD))
            while submitted:
                # Python drops what a handler raises within the callback of a weak reference.
                if ctrl_c.pressed:
                    raise KeyboardInterrupt
                if wait([submitted[0]], POLL).done:
                    done.append(submitted.popleft().result())
                    submitted.extend(pool.submit(call, item) for item in islice(left, 1))
        except BaseException:
            stop.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


class CtrlC:
    """Context that decides whether Ctrl-C raises a `KeyboardInterrupt` or only sets a flag.

    The context has no effect outside the main thread, or if the program has its own handler of
    SIGINT; a `KeyboardInterrupt` that such a handler raises still ends a call.

    Parameters
    ----------
    raising : bool, default False
        Whether Ctrl-C raises outside of `during` and `callback`, too.

    Attributes
    ----------
    pressed : bool
        Whether Ctrl-C was pressed.
    raising : bool
        Whether the next Ctrl-C raises; False after the first one.
    """

    def __init__(self, raising: bool = False) -> None:
        self.pressed = False
        self.raising = raising
        self._installed = False

    def __enter__(self) -> CtrlC:
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            signal.signal(signal.SIGINT, self._handle)
            self._installed = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True
        if self.raising:
            self.raising = False
            raise KeyboardInterrupt

    def callback(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Like `during`, but a `KeyboardInterrupt` that ``call`` itself raises is raised again."""
        try:
            self.raising = True
            return call(*args, **kwargs)
        except KeyboardInterrupt:
            if not self.pressed:
                raise
            return None
        finally:
            self.raising = False

    def during(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Returns the value of ``call``; None if Ctrl-C ended it."""
        try:
            self.raising = True
            value = call(*args, **kwargs)
            self.raising = False
            return value
        except KeyboardInterrupt:
            self.pressed = True
            return None
        finally:
            self.raising = False


class Terminations(ExitStack):
    """Context in which SIGTERM and SIGHUP end a solve as Ctrl-C does.

    The context has no effect outside the main thread, on a signal with a handler, or on an ignored
    signal, such as SIGHUP under nohup.

    Attributes
    ----------
    number : int or None
        The number of the signal that came last.
    """

    def __init__(self) -> None:
        super().__init__()
        self.number: int | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                    signal.signal(number, self._handle)
                    self.callback(signal.signal, number, signal.SIG_DFL)
        return super().__enter__()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        signal.raise_signal(signal.SIGINT)
