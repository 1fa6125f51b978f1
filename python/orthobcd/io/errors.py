"""Errors and notes about files."""

from __future__ import annotations

import warnings


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


def note(text: str) -> None:
    """Warns with a `FileNote`."""
    warnings.warn(FileNote(text), stacklevel=3)
