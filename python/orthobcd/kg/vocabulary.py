"""Numbers and names of the entities and relations of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._internal.checks import IntArray, as_int, unmasked
from .triples import TripleFiles, as_triples

Triples: TypeAlias = "ArrayLike | TripleFiles"
"""Triples by number or by name; of `TripleFiles` all splits."""

Names: TypeAlias = "tuple[str, ...] | None"
Counts: TypeAlias = "tuple[int | None, int | None]"
GivenNames: TypeAlias = "tuple[Sequence[str] | None, Sequence[str] | None]"
"""Counts and names of entities and of relations, as the constructor of a model has them."""

ENTITY, RELATION = "entity", "relation"
KINDS = {ENTITY: [0, 2], RELATION: [1]}
"""Kinds of names, and their columns of a triple."""


@dataclass(frozen=True)
class Vocabulary:
    """Counts of entities and relations, and their names where the triples had names."""

    n_entities: int
    n_relations: int
    entities: Names = None
    relations: Names = None

    @classmethod
    def of(
        cls,
        parts: Mapping[str, Any],
        counts: Counts,
        names: GivenNames,
    ) -> Vocabulary:
        """The vocabulary of triples by the names of their arguments.

        A count or names that are not given are those of the triples: names of files, the names that
        occur in their order, or one more than the largest number.
        """
        arrays = {name: _raw(name, part) for name, part in parts.items()}
        files = next((part for part in parts.values() if isinstance(part, TripleFiles)), None)
        sizes = []
        for kind, count, given in zip(KINDS, counts, names, strict=True):
            own = _listed(files, kind) if given is None and files else given
            columns = [array[:, KINDS[kind]].ravel() for array in arrays.values()]
            sizes.append(_counted(kind, columns, count, own))
        (n_entities, entities), (n_relations, relations) = sizes
        return cls(n_entities, n_relations, entities, relations)

    def check(self, counts: Counts, names: GivenNames) -> None:
        """Raises a ValueError if names are not different, or not those that are given."""
        for kind, size, count, given in zip(
            KINDS, (self.n_entities, self.n_relations), counts, names, strict=True
        ):
            own = self.names(kind)
            if own is not None and len(set(own)) != size:
                raise ValueError(f"names of each {kind} must be {size} different ones")
            if count not in (None, size) or (given is not None and tuple(given) != own):
                raise ValueError(f"counts and names of each {kind} must be those of the options")

    def names(self, kind: str) -> Names:
        """The names of a kind, None without names."""
        return self.entities if kind == ENTITY else self.relations

    @cached_property
    def _tables(self) -> dict[str, dict[str, int]]:
        return {kind: {name: k for k, name in enumerate(self.names(kind) or ())} for kind in KINDS}

    def triples(self, name: str, value: Any) -> IntArray:
        """The argument ``name`` as an (N, 3) array of numbers."""
        raw = _raw(name, value)
        columns = []
        for c, kind in enumerate((ENTITY, RELATION, ENTITY)):
            column, own = raw[:, c], self.names(kind)
            theirs = _listed(value, kind) if isinstance(value, TripleFiles) else None
            if own is not None and theirs is not None and theirs != own:
                column = np.array(theirs, dtype=object)[column]
            columns.append(self._column(name, column, kind))
        return as_triples(name, np.stack(columns, axis=1), self.n_entities, self.n_relations)

    def number(self, name: str, value: Any, kind: str) -> int:
        """The number of an entity or relation, given by number or name."""
        if isinstance(value, str):
            return self._numbered(name, value, kind)
        number = as_int(name, value, 0)
        count = self.n_entities if kind == ENTITY else self.n_relations
        if number >= count:
            raise ValueError(f"{name} must be below {count}, got {number}")
        return number

    def _numbered(self, name: str, word: str, kind: str) -> int:
        table = self._tables[kind]
        if not table:
            raise ValueError(f"{name} must be given by number: the model has no {kind} names")
        if word not in table:
            raise ValueError(f"{name} must have known names; {word!r} is no {kind} of the model")
        return table[word]

    def _column(self, name: str, column: NDArray[Any], kind: str) -> NDArray[Any]:
        if column.dtype != object:
            return column
        numbers = [self._numbered(name, w, kind) if isinstance(w, str) else w for w in column]
        return np.array(numbers, dtype=np.int64)


def _raw(name: str, value: Any) -> NDArray[Any]:
    """Triples as an (N, 3) array, of integers or of objects."""
    if isinstance(value, TripleFiles):
        return np.concatenate(value.splits)
    given = unmasked(value)
    raw = np.asarray(given)
    if raw.dtype.kind not in "iufbcmM":
        # Not an array of strings: numbers beside names would become strings.
        raw = np.array(given, dtype=object)
        bad = [entry for entry in raw.flat if not isinstance(entry, (str, int, np.integer))]
        if bad:
            raise TypeError(f"{name} must hold numbers or names, got {bad[0]!r}")
        large = [entry for entry in raw.flat if not isinstance(entry, str) and abs(entry) >> 63]
        if large:
            raise ValueError(f"{name} must hold numbers of at most 63 bits, got {large[0]}")
    elif raw.dtype.kind not in "iu":
        raise TypeError(f"{name} must be an integer array or hold names, got dtype {raw.dtype}")
    if raw.ndim != 2 or raw.shape[1] != 3:
        raise ValueError(f"{name} must have shape (N, 3), got {raw.shape}")
    return raw


def _counted(
    kind: str, columns: list[NDArray[Any]], count: int | None, names: Sequence[str] | None
) -> tuple[int, Names]:
    """Number and names of a kind in columns of triples, of which either may be given."""
    if names is None:
        words = [word for column in columns if column.dtype == object for word in column]
        names = tuple(dict.fromkeys(word for word in words if isinstance(word, str))) or None
    if names is None:
        largest = max(int(column.max(initial=0)) for column in columns)
        return 1 + largest if count is None else count, None
    if len(set(names)) != (len(names) if count is None else count):
        wanted = "" if count is None else f"{count} "
        raise ValueError(f"{kind}_names must hold {wanted}different names")
    return len(names), tuple(names)


def _listed(files: TripleFiles, kind: str) -> Names:
    """Names of files; None for files of numbers without lists of names."""
    names = files.entities if kind == ENTITY else files.relations
    return None if names == tuple(map(str, range(len(names)))) else names
