"""Files that are replaced as a whole: whoever is killed while writing leaves the old one."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

HOST = re.sub(r"\W", "_", socket.gethostname())


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path beside ``path`` to write to, which takes its place when the block ends.

    An error in the block leaves ``path`` as it was. What earlier writers of this file left when
    they were killed is removed. A device or a pipe is written to directly.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield target
        return
    _clean(target)
    mark = f"{HOST}-{os.getpid()}-{secrets.token_hex(4)}"
    # The ending stays the last one: writers choose the format by it.
    part = target.with_name(f".{target.stem}.{mark}.part{target.suffix}")
    try:
        yield part
        if target.exists():
            shutil.copymode(target, part)
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Replace a file by a text."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def _clean(target: Path) -> None:
    """Remove what dead processes of this machine left of writing ``target``."""
    if sys.platform == "win32":
        # There is no harmless signal to ask with.
        return
    left = re.compile(
        rf"\.{re.escape(target.stem)}\.{HOST}-(\d+)-[0-9a-f]+\.part{re.escape(target.suffix)}"
    )
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
