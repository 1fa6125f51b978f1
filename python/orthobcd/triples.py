"""Knowledge graphs as triples (head, relation, tail), read from tab-separated files."""

from __future__ import annotations

import gzip
import heapq
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._checks import as_int

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TripleFiles:
    """Triples of several files with common numbers.

    Attributes
    ----------
    splits : tuple of ndarray of shape (N, 3)
        Head, relation and tail numbers of every file, in the order of the files.
    entities, relations : tuple of str
        Names, by number. Files of numbers without lists of names have the numbers as names.
    """

    splits: tuple[IntArray, ...]
    entities: tuple[str, ...]
    relations: tuple[str, ...]


def load_triples(
    *paths: str | os.PathLike[str],
    entities: str | os.PathLike[str] | Sequence[str] | None = None,
    relations: str | os.PathLike[str] | Sequence[str] | None = None,
    ids: bool | None = None,
) -> TripleFiles:
    """Read tab-separated triples, one a line: head, relation, tail.

    Parameters
    ----------
    *paths : path
        Files, for instance of the training, validation and test triples; ``.gz`` is unpacked.
    entities, relations : path or sequence of str, optional
        All names, by number; a file has one a line. By default names are numbered in the order of
        their first occurrence in the files.
    ids : bool, optional
        Whether the files hold numbers (from 0) instead of names. By default they do if every field
        of every file is a nonnegative integer.

    Returns
    -------
    TripleFiles

    Raises
    ------
    ValueError
        If no file is given, a line does not have three fields, a name is not in a given list, or
        a number is not below the length of a given list.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "graph.tsv"
    >>> _ = path.write_text("cat\\tis_a\\tanimal\\ndog\\tis_a\\tanimal\\n")
    >>> graph = load_triples(path)
    >>> graph.splits[0].tolist(), graph.entities
    ([[0, 0, 1], [2, 0, 1]], ('cat', 'animal', 'dog'))
    """
    if not paths:
        raise ValueError("paths must name at least one file")
    files = [_fields(path) for path in paths]
    if ids is None:
        ids = all(_is_id(field) for rows in files for row in rows for field in row)
    names = (_names("entities", entities), _names("relations", relations))
    if ids:
        splits = tuple(_numbers(path, rows) for path, rows in zip(paths, files, strict=True))
        counts = (
            1 + max((int(s[:, [0, 2]].max()) for s in splits if s.size), default=-1),
            1 + max((int(s[:, 1].max()) for s in splits if s.size), default=-1),
        )
        full = []
        for what, given, count in zip(("entities", "relations"), names, counts, strict=True):
            if given is not None and len(given) < count:
                raise ValueError(
                    f"{what} must have a name for every number, got {len(given)} names and the "
                    f"number {count - 1}"
                )
            full.append(tuple(str(k) for k in range(count)) if given is None else tuple(given))
        return TripleFiles(splits, full[0], full[1])
    tables = tuple({name: k for k, name in enumerate(given or ())} for given in names)
    fixed = tuple(given is not None for given in names)
    out = []
    for path, rows in zip(paths, files, strict=True):
        numbered = np.empty((len(rows), 3), dtype=np.int64)
        for line, row in enumerate(rows):
            for k, field in enumerate(row):
                kind = k % 2
                table = tables[kind]
                if field not in table:
                    if fixed[kind]:
                        raise ValueError(
                            f"{('entities', 'relations')[kind]} must hold every name; {field!r} of "
                            f"line {line + 1} of {os.fspath(path)} is not there"
                        )
                    table[field] = len(table)
                numbered[line, k] = table[field]
        out.append(numbered)
    return TripleFiles(tuple(out), tuple(tables[0]), tuple(tables[1]))


def dense_core(triples: Any, n_entities: int) -> tuple[IntArray, IntArray, IntArray]:
    """The densest part of a graph: entities of least degree leave until ``n_entities`` are left.

    Parameters
    ----------
    triples : array_like of int, of shape (N, 3)
        Heads, relations and tails.
    n_entities : int
        Entities to keep. Of equal degrees the one with the larger number leaves.

    Returns
    -------
    core : ndarray of shape (M, 3)
        The triples left, in their order, entities and relations numbered anew.
    entities, relations : ndarray of int
        The old number of every new one.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.
    """
    unlimited = np.iinfo(np.int64).max
    rows = as_triples("triples", triples, unlimited, unlimited)
    count = int(rows[:, [0, 2]].max()) + 1 if rows.size else 0
    keep = as_int("n_entities", n_entities, 1)
    touching: list[list[int]] = [[] for _ in range(count)]
    for i, (head, _, tail) in enumerate(rows.tolist()):
        touching[head].append(i)
        touching[tail].append(i)
    degree = [len(own) for own in touching]
    alive = np.ones(len(rows), dtype=bool)
    there = [True] * count
    queue = [(d, -e) for e, d in enumerate(degree)]
    heapq.heapify(queue)
    left = count
    while left > keep:
        least, negative = heapq.heappop(queue)
        entity = -negative
        if not there[entity] or least != degree[entity]:
            continue
        there[entity] = False
        left -= 1
        for i in touching[entity]:
            if not alive[i]:
                continue
            alive[i] = False
            for other in (int(rows[i, 0]), int(rows[i, 2])):
                degree[other] -= 1
                if there[other]:
                    heapq.heappush(queue, (degree[other], -other))
    core = rows[alive]
    entities, ends = np.unique(core[:, [0, 2]], return_inverse=True)
    relations, kinds = np.unique(core[:, 1], return_inverse=True)
    ends = ends.reshape(-1, 2)
    return np.stack([ends[:, 0], kinds.ravel(), ends[:, 1]], axis=1), entities, relations


def _text(path: str | os.PathLike[str]) -> list[str]:
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    opener: Any = gzip.open if packed else open
    with opener(path, "rt", encoding="utf-8") as file:
        lines: list[str] = file.read().splitlines()
    return lines


def _fields(path: str | os.PathLike[str]) -> list[list[str]]:
    rows = []
    for number, line in enumerate(_text(path), 1):
        if not line.strip():
            continue
        row = line.split("\t")
        if len(row) != 3:
            raise ValueError(
                f"{os.fspath(path)}: line {number} must have 3 tab-separated fields, got {len(row)}"
            )
        rows.append(row)
    return rows


def _names(what: str, given: str | os.PathLike[str] | Sequence[str] | None) -> list[str] | None:
    if given is None:
        return None
    names = _text(given) if isinstance(given, (str, os.PathLike)) else [str(name) for name in given]
    if len(set(names)) != len(names):
        raise ValueError(f"{what} must hold every name once")
    return names


def _is_id(field: str) -> bool:
    return field.isascii() and field.isdigit()


def _numbers(path: str | os.PathLike[str], rows: list[list[str]]) -> IntArray:
    for row in rows:
        for field in row:
            if not _is_id(field):
                raise ValueError(
                    f"{os.fspath(path)}: must hold nonnegative integers (ids=True), got {field!r}"
                )
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def as_triples(name: str, value: Any, n_entities: int, n_relations: int) -> IntArray:
    """``value`` as an (N, 3) array of entity, relation and entity numbers in range.

    Raises
    ------
    ValueError, TypeError
        If it is not one; the message names the argument.
    """
    raw = np.asarray(value)
    if raw.dtype.kind not in "iu":
        raise TypeError(f"{name} must be an integer array, got dtype {raw.dtype}")
    if raw.ndim != 2 or raw.shape[1] != 3:
        raise ValueError(f"{name} must have shape (N, 3), got {raw.shape}")
    triples = np.ascontiguousarray(raw, dtype=np.int64)
    if triples.size:
        limits = np.array([n_entities, n_relations, n_entities])
        if triples.min() < 0 or (triples >= limits).any():
            raise ValueError(
                f"{name} must hold entities in 0..{n_entities - 1} and relations in "
                f"0..{n_relations - 1}, its largest are {triples.max(axis=0).tolist()}, its "
                f"smallest {triples.min(axis=0).tolist()}"
            )
    return triples
