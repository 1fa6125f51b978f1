"""Files that are replaced as a whole: whoever is killed while writing leaves the old one."""

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
"""Bytes of the longest file name on the usual file systems."""

BLOCK = 4096
"""Bytes that are written to find out whether there is room on a disk."""


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """A path beside ``path`` to write to, which takes its place when the block ends.

    An error in the block leaves ``path`` as it was. What earlier writers of this file left when
    they were killed is removed. A device or a pipe is written to directly.

    Parameters
    ----------
    path : path
        The file. A link is followed.
    overwrite : bool, default True
        Whether a file that is there may be replaced.

    Raises
    ------
    FileExistsError
        If the file is there and may not be replaced.
    OSError
        If it is a folder or read-only.
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
    """Find out before long work whether a file can be written: raises what `replacing` would.

    A block is written beside the file and removed. A device or a pipe is not touched.
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
    """Whether two names are of one file that is there, by links too."""
    with contextlib.suppress(OSError):
        return os.path.samefile(path, other)
    return False


def write_text(path: str | os.PathLike[str], text: str, *, overwrite: bool = True) -> None:
    """Replace a file by a text."""
    with replacing(path, overwrite=overwrite) as part:
        part.write_text(text, encoding="utf-8")


def _target(path: str | os.PathLike[str], overwrite: bool) -> Path:
    """What a path leads to, if it may be written."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if target.is_file() and not overwrite:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
    return target


def _beside(target: Path) -> Path:
    """A new path in the folder of ``target``; ``target`` itself if it is a device or a pipe."""
    if target.exists() and not target.is_file():
        return target
    stem, ending = _parts_of(target)
    _clean(target, stem, ending)
    return target.with_name(f"{stem}{HOST}-{os.getpid()}-{secrets.token_hex(4)}{ending}")


def _parts_of(target: Path) -> tuple[str, str]:
    """How the names of files begin and end that are to take the place of ``target``.

    The ending stays the last one: writers choose the format by it. A long name is abridged.
    """
    stem, ending = f".{target.stem}.", f".part{target.suffix}"
    # Host, process number and random digits, with the hyphens between them.
    between = len(HOST) + 32
    if len(os.fsencode(target.name)) <= LONGEST < len(os.fsencode(stem + ending)) + between:
        stem = f".{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}."
    return stem, ending


def _clean(target: Path, stem: str, ending: str) -> None:
    """Remove what dead processes of this machine left of writing ``target``."""
    if sys.platform == "win32":
        # There is no harmless signal to ask with.
        return
    left = re.compile(rf"{re.escape(stem)}{HOST}-(\d+)-[0-9a-f]+{re.escape(ending)}")
    with contextlib.suppress(OSError):
        for name in os.listdir(target.parent):
            found = left.fullmatch(name)
            if found and not _alive(int(found[1])):
                with contextlib.suppress(OSError):
                    (target.parent / name).unlink()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True
