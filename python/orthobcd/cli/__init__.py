"""The command line ``orthobcd``, the same as ``python -m orthobcd``.

Exit codes: 0 for success; 1 for an unexpected error; 2 for a wrong argument or a file that cannot
be read or written; 130 after Ctrl-C, 143 after SIGTERM and 129 after SIGHUP, when the best
components so far and the checkpoint are still written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .._internal.reading import reason_of
from .._internal.terminal import complain
from ..io import UnreadableFile
from .options import parser
from .terminal import FAILED, INTERRUPTED, WRONG, Terminations, WrongArgument

__all__ = ["WrongArgument", "main"]

BENCH = (
    "orthobcd bench is a package of its own, orthobcd-bench, in the folder benchmarks of the "
    "sources: pip install ./benchmarks, then orthobcd-bench"
)


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
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["bench"]:
        complain(BENCH)
        return WRONG
    if arguments[:1] == ["demo"]:
        from ..demo import main as demo

        return demo(arguments[1:])
    options = parser().parse_args(arguments)
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
