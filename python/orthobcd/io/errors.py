"""Errors and notes about files."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

from .._internal.reading import reason_of
from .selection import WrongColumns


class UnreadableFile(ValueError):
    """A data file that cannot be used; the message is one line for the user.

    Examples
    --------
    >>> from orthobcd.io import UnreadableFile, read_matrix
    >>> try:
    ...     read_matrix("none.csv")
    ... except UnreadableFile as error:
    ...     print(error)
    none.csv: no such file
    """


class MissingValues(UnreadableFile):
    """A data file with missing values."""


class FileNote(UserWarning):
    """Warning about columns left out of a file, or about the interpretation of its header.

    Examples
    --------
    >>> import warnings
    >>> from orthobcd.io import FileNote
    >>> warnings.simplefilter("ignore", FileNote)
    """


@contextlib.contextmanager
def refusing(name: str, kind: str = "") -> Iterator[None]:
    """Context in which every error of reading a file is an `UnreadableFile` that names it."""
    try:
        yield
    except UnreadableFile:
        raise
    except WrongColumns as error:
        raise UnreadableFile(f"{name}: {error}") from error
    except FileNotFoundError as error:
        raise UnreadableFile(f"{name}: no such file") from error
    except UnicodeDecodeError as error:
        wrong = error.object[max(0, error.start - 10) : error.start + 10]
        raise UnreadableFile(f"{name}: not UTF-8 text, at {wrong!r}; convert it first") from error
    except ImportError as error:
        raise UnreadableFile(f"{name}: reading a {kind} file: {error}") from error
    except Exception as error:
        raise UnreadableFile(
            f"{name}: not a readable {f'{kind} file' if kind else 'file'}: {reason_of(error)}"
        ) from error


def note(text: str) -> None:
    """Warns with a `FileNote`."""
    warnings.warn(FileNote(text), stacklevel=3)
