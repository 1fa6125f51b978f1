"""Atomic replacement of files: a process that is killed while writing leaves the old file."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

HOST = re.sub(r"\W", "_", socket.gethostname())

LONGEST = 255
"""Bytes of the longest file name on common file systems."""

BLOCK = 4096
"""Bytes that are written to test for free disk space."""


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Context with a temporary path beside ``path``, which replaces ``path`` at the end.

    An error in the context leaves ``path`` unchanged. Temporary files of killed processes are
    removed. A device or a pipe is written to directly.

    Parameters
    ----------
    path : path
        The file. A link is followed.
    overwrite : bool, default True
        Whether an existing file may be replaced.
    """
    target = _target(path, overwrite)
    part = _beside(target)
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
    part = _beside(target)
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


def _beside(target: Path) -> Path:
    """A temporary path beside ``target``; ``target`` itself if it is a device or a pipe."""
    if target.exists() and not target.is_file():
        return target
    stem, ending = _parts_of(target)
    _clean(target, stem, ending)
    return target.with_name(f"{stem}{HOST}-{os.getpid()}-{secrets.token_hex(4)}{ending}")


def _parts_of(target: Path) -> tuple[str, str]:
    """Beginning and end of the names of temporary files for ``target``.

    The name keeps the ending of ``target``, by which writers choose the format. A long name is
    replaced by a hash.
    """
    stem, ending = f".{target.stem}.", f".part{target.suffix}"
    # Host, process number and random digits, with the hyphens between them.
    between = len(HOST) + 32
    if len(os.fsencode(target.name)) <= LONGEST < len(os.fsencode(stem + ending)) + between:
        stem = f".{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}."
    return stem, ending


def _clean(target: Path, stem: str, ending: str) -> None:
    """Removes temporary files for ``target`` of dead processes of this machine."""
    if sys.platform == "win32":
        # Windows has no signal that only tests whether a process exists.
        return
    left = re.compile(rf"{re.escape(stem)}{HOST}-(\d+)-[0-9a-f]+{re.escape(ending)}")
    with contextlib.suppress(OSError):
        for name in os.listdir(target.parent):
            found = left.fullmatch(name)
            if found and not _alive(int(found[1])):
                with contextlib.suppress(OSError):
                    (target.parent / name).unlink()


def _alive(process: int) -> bool:
    """True if a process exists, or if its existence is unknown."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True
