"""What is said about a file: why it cannot be used, and how it was understood."""

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
    """What was left out of a file, or how its header was understood.

    Examples
    --------
    >>> import warnings
    >>> from orthobcd.io import FileNote
    >>> warnings.simplefilter("ignore", FileNote)
    """


def note(text: str) -> None:
    """Warn by a `FileNote`."""
    warnings.warn(FileNote(text), stacklevel=3)
