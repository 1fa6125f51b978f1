"""Data files that a command reads by blocks of rows, because ``--max-memory`` is given."""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from typing import Any

from .._internal.reading import STDIN
from .._internal.terminal import complain
from ..io import FileNote
from ..io.streams import STREAMED, Stream, stream_of
from .terminal import WrongArgument


class Timed:
    """A stream whose reading is timed.

    Attributes
    ----------
    seconds : float
        Time from the first block to the last, including the work on the blocks.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.names, self.shape = stream.names, stream.shape
        self.seconds = 1e-9

    def as_blocks(self) -> Any:
        """The blocks, for an estimator."""
        from ..sklearn.data import ROWS, Blocks

        def begin() -> Iterator[Any]:
            started = time.perf_counter()
            yield from self._stream.blocks(ROWS)
            self.seconds = max(time.perf_counter() - started, 1e-9)

        return Blocks(begin, self.shape[0])


def streamed(options: argparse.Namespace) -> Timed | None:
    """The data of a command as a stream; None if it is read whole.

    Raises
    ------
    WrongArgument
        If ``--max-memory`` is not valid, is below the size of a file that is read whole, or is
        given with ``--missing``.
    UnreadableFile
        If the file cannot be read.
    """
    from ..sklearn.data import as_bytes

    try:
        limit = as_bytes("--max-memory", options.max_memory)
    except ValueError as error:
        raise WrongArgument(str(error)) from error
    if limit is None:
        return None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FileNote)
        stream = stream_of(options.data, options.columns, options.drop)
    if stream is None:
        size = (
            0
            if options.data == STDIN or not os.path.isfile(options.data)
            else (os.path.getsize(options.data))
        )
        if size > limit:
            raise WrongArgument(
                f"--max-memory must be at least the size of {options.data}, which is read whole, "
                f"{size:,} bytes; {' and '.join(STREAMED)} files are read by blocks"
            )
        return None
    if options.missing is not None:
        raise WrongArgument("--missing must not be given with --max-memory: it needs all samples")
    for warning in caught:
        complain(f"note: {warning.message}")
    return Timed(stream)
