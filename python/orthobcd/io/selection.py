"""Options of reading a file: columns, decimal mark, missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from .._internal.checks import as_choice

Columns: TypeAlias = Sequence[int | str]
"""Columns of a file, by index from 0 or by name."""

Decision: TypeAlias = Literal["auto"] | bool
"""Whether a file has something; "auto" decides by its contents."""


class Named(NamedTuple):
    """A matrix, and the names of its columns and of its rows as far as the file has them."""

    data: Any
    features: list[str]
    samples: Sequence[str] = ()


class WrongColumns(ValueError):
    """Columns that a matrix does not have."""


@dataclass(frozen=True)
class Selection:
    """Options of `read_matrix`.

    Attributes
    ----------
    columns, drop : sequence of int or str, or None
        Columns to keep, in this order, or columns to leave out.
    decimal : {".", ","}
        Decimal mark.
    missing : bool
        Whether missing values are kept as NaN.
    header, index : {"auto", True, False}
        Whether the first line of a text table names the columns, and whether its first column is
        the index of the rows.
    comment : str or None
        Character from which on a line of a text table is a comment.
    """

    columns: Columns | None = None
    drop: Columns | None = None
    decimal: str = "."
    missing: bool = False
    header: Decision = "auto"
    index: Decision = "auto"
    comment: str | None = None

    def check(self) -> None:
        """Raises an error if the options are not valid together."""
        as_choice("decimal", self.decimal, (".", ","))
        for name in ("header", "index"):
            value = getattr(self, name)
            if not (isinstance(value, bool) or (isinstance(value, str) and value == "auto")):
                hint = "; drop leaves out a column by its name" if name == "index" else ""
                raise ValueError(f"{name} must be 'auto', True or False, got {value!r}{hint}")
        if not (self.comment is None or (isinstance(self.comment, str) and len(self.comment) == 1)):
            raise ValueError(f"comment must be None or one character, got {self.comment!r}")
        if self.columns is not None and self.drop is not None:
            raise ValueError("drop must be None with columns")

    def selected(self, names: Sequence[str], count: int) -> list[int] | None:
        """Indices of the columns to keep, out of ``count``; None for all columns."""
        if self.columns is not None:
            return indices_of("columns", self.columns, names, count)
        if self.drop is not None:
            left_out = set(indices_of("drop", self.drop, names, count))
            return [k for k in range(count) if k not in left_out]
        return None

    def of(self, data: Any) -> Named:
        """Selects columns of a matrix without names."""
        kept = self.selected([], data.shape[1]) if data.ndim == 2 else None
        return Named(data if kept is None else data[:, kept], [])


def indices_of(what: str, wanted: Columns, names: Sequence[str], count: int) -> list[int]:
    """Indices of columns given by index or name.

    A string of digits that is not a name is an index, because a command line passes strings only.
    """
    places: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        places.setdefault(name, []).append(k)
    found = []
    for one in wanted:
        own = places.get(one, []) if isinstance(one, str) else []
        if len(own) > 1:
            raise WrongColumns(f"{what} must be unambiguous, {len(own)} columns are called {one!r}")
        is_text = isinstance(one, str) and one.isascii() and one.isdigit()
        is_index = is_text or (isinstance(one, (int, np.integer)) and not isinstance(one, bool))
        if not own and is_index and 0 <= int(one) < count:
            own = [int(one)]
        if not own:
            shown = ", ".join(map(repr, names[:5])) + (", …" if len(names) > 5 else "")
            known = f"names ({shown}) or " if names else ""
            raise WrongColumns(f"{what} must hold {known}indices below {count}, got {one!r}")
        found += own
    if len(set(found)) != len(found):
        raise WrongColumns(f"{what} must hold a column once")
    return found
