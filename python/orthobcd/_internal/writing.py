"""Atomic replacement of files: a process that is killed while writing leaves the old file."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

BLOCK = 4096
"""Bytes that are written to test for free disk space."""


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Context with a temporary path beside ``path``, which replaces ``path`` at the end.

    An error in the context leaves ``path`` unchanged. A killed process leaves the temporary file,
    which the next one for ``path`` overwrites. A device or a pipe is written to directly.

    Parameters
    ----------
    path : path
        The file. A link is followed.
    overwrite : bool, default True
        Whether an existing file may be replaced.
    """
    target = _target(path, overwrite)
    part = _temporary_path(target)
    if part == target:
        yield target
        return
    try:
        yield part
        _target(path, overwrite)
        if target.exists():
            shutil.copymode(target, part)
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def check_writable(path: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Checks before a long solve that a file can be written; raises the errors of `replacing`.

    Writes a block beside the file and removes it. A device or a pipe is not written to.
    """
    target = _target(path, overwrite)
    part = _temporary_path(target)
    if part == target:
        return
    try:
        with part.open("wb") as stream:
            stream.write(bytes(BLOCK))
            stream.flush()
            os.fsync(stream.fileno())
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def is_same_file(path: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """True if two paths lead to the same existing file, also by links."""
    with contextlib.suppress(OSError):
        return os.path.samefile(path, other)
    return False


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a text to a file; an old one is replaced atomically."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def _target(path: str | os.PathLike[str], overwrite: bool) -> Path:
    """The file that a path leads to; raises an error if it may not be written."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if target.is_file() and not overwrite:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
    return target


def _temporary_path(target: Path) -> Path:
    """A temporary path beside ``target``; ``target`` itself if it is a device or a pipe."""
    if target.exists() and not target.is_file():
        return target
    # Short, for names as long as the file system allows; writers choose the format by the ending.
    name = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]
    return target.with_name(f".{name}.part{target.suffix}")
