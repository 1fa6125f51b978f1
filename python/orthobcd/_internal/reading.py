"""Reading of untrusted files, with limits on memory.

Shapes, counts and sizes declared in a file can be wrong or malicious. Reading a file of s bytes may
take ``allowed(s)`` bytes of memory; a file that declares more is refused before any allocation.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import math
import os
import stat
import sys
import types
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

SMALL = 1 << 26
"""Bytes of memory that every file may take."""

EXPANSION = 500
"""Bytes of memory per byte of a larger file.

Deflate compresses zeros by a factor of 1030, and numbers with noise by less than 10. The factor is
340 for a dense matrix of counts with one nonzero in 200 entries.
"""

PER_BYTE = 4
"""Bytes of memory per byte of decompressed text: the two bytes ``0,`` become a float64."""

HEADER = 1 << 14
"""Bytes at the start of a .npy file that contain its header; NumPy's own limit is lower."""

STDIN = "-"
"""The name of the standard input."""

PACKED = b"\x1f\x8b"
"""The first bytes of a gzip file."""


def allowed(size: int) -> int:
    """Largest number of bytes of memory for a file of ``size`` bytes."""
    return max(SMALL, EXPANSION * size)


def unpacked(size: int) -> int:
    """Largest number of decompressed bytes of a gzip file of ``size`` bytes."""
    return allowed(size) // PER_BYTE


def check_need(what: str, need: int, size: int) -> None:
    """Raises a ValueError about ``what`` if it needs more bytes than `allowed`."""
    if need > allowed(size):
        raise ValueError(
            f"{what} would take {_bytes(need)} of memory; {_bytes(allowed(size))} are the most "
            f"for a file of {_bytes(size)}"
        )


def _bytes(count: int) -> str:
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:,.3g} {name}" if count < 10**18 else f"over {10**6:,} TB"
    return f"{count} bytes"


def reason_of(error: BaseException) -> str:
    """The message of an error in one line, or its type without a message."""
    return " ".join(str(error).split()) or type(error).__name__


@contextlib.contextmanager
def blaming(refuse: Callable[[Exception], Exception]) -> Iterator[None]:
    """Context that raises ``refuse(error)`` for every error that the contents of a file cause.

    Errors of the operating system, missing packages and lack of memory are raised unchanged.
    """
    try:
        yield
    except (MemoryError, ImportError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise refuse(error) from error


# Sources -----------------------------------------------------------------------------------------


class Unpacked(io.RawIOBase):
    """The decompressed contents of a gzip file; reading beyond ``limit`` bytes is an error."""

    def __init__(self, packed: BinaryIO, limit: int) -> None:
        self._file = gzip.GzipFile(fileobj=packed)
        self._limit = limit

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer; returns the number of bytes read."""
        part = self._file.read(len(buffer))
        if self._file.tell() > self._limit:
            raise ValueError(f"it unpacks to more than {_bytes(self._limit)}")
        buffer[: len(part)] = part
        return len(part)

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True; seeking backwards decompresses from the start."""
        return True

    def tell(self) -> int:
        """Position in the decompressed contents."""
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Seeks to a position relative to the start or the current position."""
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("a gzip file has no known end")
        return self._file.seek(offset, whence)


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

    @property
    def most(self) -> int:
        """Largest number of bytes of the decompressed contents."""
        return unpacked(self.size) if self.is_packed else self.size

    def check_need(self, what: str, need: int) -> None:
        """Raises a ValueError if ``what`` needs more memory than the file may take."""
        check_need(what, need, self.size)

    def starts_with(self, *starts: bytes) -> bool:
        """True if the contents begin with one of ``starts``; rewinds the stream."""
        start = self.stream.read(max(map(len, starts)))
        self.stream.seek(0)
        return start.startswith(starts)


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Source]:
    """Opens a file, a pipe or ("-") the standard input; gzip is decompressed.

    Raises
    ------
    ValueError
        If the path is a device other than a terminal.
    OSError
        If the file cannot be read.
    """
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
            raw = stack.enter_context(Unpacked(stream, unpacked(size)))
            stream = stack.enter_context(io.BufferedReader(raw))
        yield Source(name, stream, size, is_packed, is_named)


def _whole(file: BinaryIO) -> bytes:
    """All bytes of a pipe, a terminal or a file-like object."""
    with contextlib.suppress(io.UnsupportedOperation):
        number = file.fileno()
        if stat.S_ISCHR(os.fstat(number).st_mode) and not os.isatty(number):
            raise ValueError("it is a device, which need not end")
    return file.read()


# Arrays ------------------------------------------------------------------------------------------

Layout = tuple[tuple[int, ...], "np.dtype[Any]"]
"""Shape and type of an array."""


def layout_of(stream: BinaryIO, most: int) -> Layout:
    """Shape and type of the array of a .npy file, from its header.

    Parameters
    ----------
    stream : BinaryIO
        The file, at its beginning.
    most : int
        Size of the file in bytes, or an upper bound.

    Raises
    ------
    ValueError
        If the file is not a .npy file, or the array needs more bytes than the file has.
    """
    start = io.BytesIO(stream.read(HEADER))
    try:
        version = np.lib.format.read_magic(start)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if version not in readers:
            raise ValueError(f"it is of version {version}")
        shape, _, kind = readers[version](start)
    except ValueError:
        raise
    except Exception as error:
        # Deep nesting in the header raises MemoryError or RecursionError.
        raise ValueError(f"its header cannot be read: {reason_of(error)}") from error
    if kind.hasobject:
        # Reading the array raises the error; the size of a pickle cannot be checked here.
        return shape, kind
    need = math.prod(shape) * max(kind.itemsize, 1)
    if any(length < 0 for length in shape) or need > most - start.tell():
        raise ValueError(
            f"its array of {'x'.join(map(str, shape))} {kind} would take {_bytes(abs(need))}, "
            f"it has {_bytes(most - start.tell())}"
        )
    return shape, kind


def read_npy(source: Source) -> np.ndarray[Any, Any]:
    """Reads the array of a .npy file."""
    layout_of(source.stream, source.most)
    source.stream.seek(0)
    return _array(source.stream)


def _array(stream: BinaryIO) -> np.ndarray[Any, Any]:
    source: Any = stream
    try:
        stream.fileno()
    except OSError:
        # NumPy 1.23 reads every io.BufferedReader by its descriptor; decompressed data has none.
        source = types.SimpleNamespace(read=stream.read)
    array: np.ndarray[Any, Any] = np.lib.format.read_array(source, allow_pickle=False)
    return array


class Archive:
    """The arrays of a .npz file by name; an array is read when its name is accessed.

    Parameters
    ----------
    source : Source
        The open file.

    Raises
    ------
    ValueError, zipfile.BadZipFile
        If the file is not a .npz file, or its decompressed contents need more memory than allowed.
    """

    def __init__(self, source: Source) -> None:
        if not source.starts_with(b"PK\x03\x04", b"PK\x05\x06"):
            raise ValueError("it is no archive of arrays")
        self._zip = zipfile.ZipFile(source.stream)
        members = self._zip.infolist()
        if any(m.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for m in members):
            raise ValueError("it is packed by another method than deflate")
        source.check_need("its unpacked contents", sum(member.file_size for member in members))
        self._members = {m.filename[:-4]: m for m in members if m.filename.endswith(".npy")}

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        self.layout(name)
        with self._zip.open(self._members[name]) as stream:
            return _array(cast(BinaryIO, stream))

    def layout(self, name: str) -> Layout:
        """Shape and type of an array, without reading the array."""
        member = self._members[name]
        with self._zip.open(member) as stream:
            return layout_of(cast(BinaryIO, stream), member.file_size)


def ending_of(path: str | os.PathLike[str]) -> str:
    """The last ending of a file name in lower case, without .gz."""
    name = Path(path).name.lower().removesuffix(".gz")
    return Path(name).suffix
