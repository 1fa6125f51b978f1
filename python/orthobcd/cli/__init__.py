"""The command line ``orthobcd``, the same as ``python -m orthobcd``.

Exit codes: 0 for success; 1 for an unexpected error; 2 for a wrong argument or a file that cannot
be read or written; 130 after Ctrl-C, 143 after SIGTERM and 129 after SIGHUP, when the best
components so far and the checkpoint are still written.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .._internal.reading import reason_of
from ..io import UnreadableFile
from .options import parser
from .terminal import FAILED, INTERRUPTED, WRONG, Terminations, WrongArgument, complain

__all__ = ["WrongArgument", "main"]

SIGNALLED = 128
"""Exit code of a process that a signal ended, less the number of the signal."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command of ``orthobcd``.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after ``orthobcd``; the arguments of the process by default.

    Returns
    -------
    int
        The exit code.
    """
    options = parser().parse_args(argv)
    with Terminations() as terminations:
        code = _run(options)
    ended = terminations.number
    return code if ended is None or code != INTERRUPTED else SIGNALLED + ended


def _run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except (UnreadableFile, WrongArgument, OSError, ImportError) as error:
        if options.debug:
            raise
        complain(f"error: {reason_of(error)}")
        return WRONG
    except Exception as error:
        if options.debug:
            raise
        complain(
            f"error: {type(error).__name__}: {reason_of(error)} "
            "(unexpected; run again with --debug to see where)"
        )
        return FAILED
