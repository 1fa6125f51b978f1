"""Files from elsewhere: what a file declares is compared with what it holds before it is read.

Shapes, counts, compressed sizes and names in a file are claims. Reading a file of s bytes may take
``allowed(s)`` bytes of memory; a file that claims more is refused before anything is allocated.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import math
import os
import stat
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

SMALL = 1 << 26
"""Bytes of memory that every file may need."""

EXPANSION = 500
"""Bytes of memory that a larger file may need per byte of its own.

Deflate packs zeros 1030 to one, a dense matrix of counts 340 to one if one entry in 200 is not
zero, numbers with noise less than 10 to one.
"""

PER_BYTE = 4
"""Bytes of memory that a byte of a packed text may need: ``0,`` becomes a number of eight."""

HEADER = 1 << 14
"""Bytes at the start of a .npy file in which its header ends; NumPy's own limit is below."""

STDIN = "-"
"""The name of the standard input."""

PACKED = b"\x1f\x8b"
"""The first bytes of a gzip file."""


def allowed(size: int) -> int:
    """Bytes of memory that a file of ``size`` bytes may need."""
    return max(SMALL, EXPANSION * size)


def unpacked(size: int) -> int:
    """Bytes to which a gzip file of ``size`` bytes may unpack."""
    return allowed(size) // PER_BYTE


def check_need(what: str, need: int, size: int) -> None:
    """Refuse what needs more bytes than `allowed` to a file of ``size`` bytes."""
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
    """The message of an error in one line, or its kind if it has none."""
    return " ".join(str(error).split()) or type(error).__name__


@contextlib.contextmanager
def blaming(refuse: Callable[[Exception], Exception]) -> Iterator[None]:
    """Raise ``refuse(error)`` for every error that the contents of a file cause.

    Errors of the system, missing packages and a lack of memory are raised as they are.
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
    """The contents of a gzip file, of which no more than ``limit`` bytes are unpacked."""

    def __init__(self, packed: BinaryIO, limit: int) -> None:
        self._file = gzip.GzipFile(fileobj=packed)
        self._limit = limit

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; returns the number of bytes."""
        part = self._file.read(len(buffer))
        if self._file.tell() > self._limit:
            raise ValueError(f"it unpacks to more than {_bytes(self._limit)}")
        buffer[: len(part)] = part
        return len(part)

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True: going back unpacks anew."""
        return True

    def tell(self) -> int:
        """Position in the unpacked contents."""
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position from the start or from here."""
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("a gzip file has no known end")
        return self._file.seek(offset, whence)


@dataclass(frozen=True)
class Source:
    """An opened file.

    Attributes
    ----------
    path : str
        Its name, "-" for the standard input.
    stream : BinaryIO
        Its contents, unpacked; seekable.
    size : int
        Its bytes, before unpacking.
    is_packed : bool
        Whether it is a gzip file.
    is_named : bool
        Whether it is a file on disk, whose name says what it holds.
    """

    path: str
    stream: BinaryIO
    size: int
    is_packed: bool
    is_named: bool

    @property
    def most(self) -> int:
        """Most bytes of the contents."""
        return unpacked(self.size) if self.is_packed else self.size

    def check_need(self, what: str, need: int) -> None:
        """Refuse what needs more memory than is allowed to the file."""
        check_need(what, need, self.size)

    def starts_with(self, *starts: bytes) -> bool:
        """Whether the contents begin with one of ``starts``; the stream goes to the beginning."""
        start = self.stream.read(max(map(len, starts)))
        self.stream.seek(0)
        return start.startswith(starts)


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Source]:
    """The contents of a file, of a pipe or ("-") of the standard input, gzip unpacked.

    Raises
    ------
    ValueError
        If it is a device other than a terminal.
    OSError
        If it cannot be read.
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
    """All of a pipe, a terminal or what stands for one."""
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
        The file from its beginning.
    most : int
        Bytes that it has, or has at most.

    Raises
    ------
    ValueError
        If it is no such file, or the array needs more bytes than there are.
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
        # Deep nesting in the header ends as MemoryError or RecursionError.
        raise ValueError(f"its header cannot be read: {reason_of(error)}") from error
    if kind.hasobject:
        # Refused where it is read; its pickle has another size.
        return shape, kind
    need = math.prod(shape) * max(kind.itemsize, 1)
    if any(length < 0 for length in shape) or need > most - start.tell():
        raise ValueError(
            f"its array of {'x'.join(map(str, shape))} {kind} would take {_bytes(abs(need))}, "
            f"it has {_bytes(most - start.tell())}"
        )
    return shape, kind


def read_npy(source: Source) -> np.ndarray[Any, Any]:
    """The array of a .npy file."""
    layout_of(source.stream, source.most)
    source.stream.seek(0)
    return _array(source.stream)


def _array(stream: BinaryIO) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


class Archive:
    """The arrays of a .npz file by name; each is read when it is asked for.

    Parameters
    ----------
    source : Source
        The opened file.

    Raises
    ------
    ValueError, zipfile.BadZipFile
        If it is no such file, or its unpacked contents need more memory than is allowed.
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
        """Shape and type of an array, which is not read."""
        member = self._members[name]
        with self._zip.open(member) as stream:
            return layout_of(cast(BinaryIO, stream), member.file_size)


def ending_of(path: str | os.PathLike[str]) -> str:
    """The last ending of a file name in small letters, without .gz."""
    name = Path(path).name.lower().removesuffix(".gz")
    return Path(name).suffix
