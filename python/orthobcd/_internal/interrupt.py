"""Ctrl-C: with a result, on several threads, and not between two statements of a loop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .._core import Stop

if TYPE_CHECKING:
    from typing_extensions import Self

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

POLL = 0.05
"""Seconds between looks for Ctrl-C while other threads work."""


class Kept:
    """A context: a `KeyboardInterrupt` that leaves it has the attribute ``result``.

    Attributes
    ----------
    result : object
        What that is: the best result so far, None before there is one. An exception that comes
        with a ``result`` keeps it.
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
    """Append what `call` returns of every item to `done`, in order, as it comes.

    Parameters
    ----------
    call : callable
        Called on other threads. Ctrl-C here, or whatever else is raised, ends the solves in it.
    items : iterable
        What it is called with.
    workers : int or None
        Number of threads; None for all cores.
    done : list
        What is appended to.
    """
    stop = Stop()
    pool = ThreadPoolExecutor(workers, initializer=stop.obey)
    try:
        for future in [pool.submit(call, item) for item in items]:
            while not future.done():
                wait([future], POLL)
            done.append(future.result())
    except BaseException:
        stop.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


class CtrlC:
    """A context in which Ctrl-C ends the calls made by `during` and is only noted elsewhere.

    In other threads than the main one, and where the program has a handler of its own for SIGINT,
    nothing is changed; a `KeyboardInterrupt` that such a handler raises still ends a call.

    Attributes
    ----------
    pressed : bool
        Whether Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.pressed = False
        self._in_call = False
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
        if self._in_call:
            self._in_call = False
            raise KeyboardInterrupt

    def callback(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The same for a function of the user, whose own `KeyboardInterrupt` is raised on."""
        try:
            self._in_call = True
            return call(*args, **kwargs)
        except KeyboardInterrupt:
            if not self.pressed:
                raise
            return None
        finally:
            self._in_call = False

    def during(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """What `call` returns; None if Ctrl-C ended it."""
        try:
            self._in_call = True
            value = call(*args, **kwargs)
            self._in_call = False
            return value
        except KeyboardInterrupt:
            self.pressed = True
            return None
        finally:
            self._in_call = False
