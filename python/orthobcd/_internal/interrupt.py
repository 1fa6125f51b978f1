"""Ctrl-C while a loop written in Python must not be cut between two of its statements."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


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
