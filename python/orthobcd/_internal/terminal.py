"""Lines on the standard output and the standard error, whatever these can show."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO


def say(text: str) -> None:
    """Print a line. Characters that the standard output does not have are escaped.

    A reader of the output that has gone (``| head -1``) ends what is said, not the command.
    """
    with contextlib.suppress(BrokenPipeError):
        _print(text, sys.stdout)


def complain(text: str) -> None:
    """Print a line to the standard error, if that can be written."""
    with contextlib.suppress(OSError):
        _print(text, sys.stderr)


def _print(text: str, stream: TextIO) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)
    except OSError:
        # The text is still in the buffer, which is flushed once more at the end of the process.
        with contextlib.suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
        raise
