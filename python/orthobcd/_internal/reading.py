"""Opening of files, pipes and the standard input; errors that name the file."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

STDIN = "-"
"""The name of the standard input."""

PACKED = b"\x1f\x8b"
"""The first bytes of a gzip file."""


def reason_of(error: BaseException) -> str:
    """The message of an error in one line, or its type without a message."""
    return " ".join(str(error).split()) or type(error).__name__


@contextlib.contextmanager
def errors_as(refuse: Callable[[Exception], Exception]) -> Iterator[None]:
    """Context that raises ``refuse(error)`` for every error that the contents of a file cause.

    Errors of the operating system and missing packages are raised unchanged.
    """
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise refuse(error) from error


@dataclass(frozen=True)
class Source:
    """An open file.

    Attributes
    ----------
    path : str
        Name of the file, "-" for the standard input.
    stream : BinaryIO
        Decompressed contents; seekable.
    size : int
        Size in bytes, before decompression.
    is_packed : bool
        Whether the file is compressed by gzip.
    is_named : bool
        Whether the source is a regular file, whose name shows its format.
    """

    path: str
    stream: BinaryIO
    size: int
    is_packed: bool
    is_named: bool

    def starts_with(self, *starts: bytes) -> bool:
        """True if the contents begin with one of ``starts``; rewinds the stream."""
        start = self.stream.read(max(map(len, starts)))
        self.stream.seek(0)
        return start.startswith(starts)


@contextlib.contextmanager
def open_source(path: str | os.PathLike[str]) -> Iterator[Source]:
    """Opens a file, a pipe or ("-") the standard input; gzip is decompressed."""
    name = os.fspath(path)
    with contextlib.ExitStack() as stack:
        if name == STDIN:
            file = cast(BinaryIO, getattr(sys.stdin, "buffer", sys.stdin))
        else:
            file = stack.enter_context(open(name, "rb"))
        is_named = name != STDIN and stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        stream = file if is_named else io.BytesIO(_whole(file))
        size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        is_packed = stream.read(2) == PACKED
        stream.seek(0)
        if is_packed:
            unpacked = stack.enter_context(gzip.GzipFile(fileobj=stream))
            stream = cast(BinaryIO, unpacked)
        yield Source(name, stream, size, is_packed, is_named)


def _whole(file: BinaryIO) -> bytes:
    """All bytes of a pipe, a terminal or a file-like object."""
    with contextlib.suppress(io.UnsupportedOperation):
        number = file.fileno()
        if stat.S_ISCHR(os.fstat(number).st_mode) and not os.isatty(number):
            raise ValueError("it is a device, which need not end")
    return file.read()


def read_npy(source: Source) -> np.ndarray[Any, Any]:
    """Reads the array of a .npy file."""
    if not source.starts_with(b"\x93NUMPY"):
        raise ValueError("it is no file of an array")
    array: np.ndarray[Any, Any] = np.load(source.stream, allow_pickle=False)
    return array


def open_npz(source: Source) -> Any:
    """The arrays of a .npz file by name (`numpy.load`); each is read when its name is accessed."""
    if not source.starts_with(b"PK\x03\x04", b"PK\x05\x06"):
        raise ValueError("it is no archive of arrays")
    return np.load(source.stream, allow_pickle=False)


def ending_of(path: str | os.PathLike[str]) -> str:
    """The last ending of a file name in lower case, without .gz."""
    name = Path(path).name.lower().removesuffix(".gz")
    return Path(name).suffix
