"""Lines on the standard output and the standard error, for any encoding of these."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO


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
