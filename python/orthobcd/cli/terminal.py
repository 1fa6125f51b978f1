"""Lines on the output, exit codes, signals, error messages about arguments, values of reports."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from .._internal.reading import reason_of
from ..io import UnreadableFile

if TYPE_CHECKING:
    from typing_extensions import Self


def say(text: str) -> None:
    """Prints a line; characters that the standard output cannot encode are escaped.

    If the reader of a pipe has closed it (``| head -1``), the line is dropped.
    """
    with contextlib.suppress(BrokenPipeError):
        _print(text, sys.stdout)


def complain(text: str) -> None:
    """Prints a line to the standard error; a failure to write is ignored."""
    with contextlib.suppress(OSError):
        _print(text, sys.stderr)


def _print(text: str, stream: TextIO) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)
    except OSError:
        # The text is still in the buffer, which Python flushes again at exit: redirect it.
        with contextlib.suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
        raise


OK, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130


class WrongArgument(Exception):
    """An invalid argument; the message is one line for the user."""


def in_options(error: Exception, options: argparse.Namespace) -> str:
    """The message of an error, with the parameter name at its beginning spelled as an option."""

    def spelled(found: re.Match[str]) -> str:
        return "--" + found[1].replace("_", "-")

    names = "|".join(map(re.escape, vars(options)))
    return re.sub(rf"^({names})(?= must| needs)", spelled, reason_of(error))


@contextmanager
def wrong_arguments(options: argparse.Namespace, about: str = "") -> Iterator[None]:
    """Context in which an error about a value is a `WrongArgument` that begins with ``about``."""
    try:
        yield
    except UnreadableFile:
        raise
    except (ValueError, TypeError) as error:
        raise WrongArgument(about + in_options(error, options)) from error


def plain(value: Any) -> Any:
    """A value of JSON types: arrays become lists, numbers that are not finite None."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


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
