"""Knowledge graphs as arrays of triples (head, relation, tail)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._internal.checks import IntArray, as_int, unmasked


@dataclass(frozen=True, eq=False)
class TripleFiles:
    """Triples of several files with common numbers of entities and relations.

    Attributes
    ----------
    splits : tuple of ndarray of shape (N, 3)
        Head, relation and tail numbers of every file, in the order of the files.
    entities, relations : tuple of str
        Names, by number. For files of numbers without lists of names the names are the numbers.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> files = ob.kg.TripleFiles((np.array([[0, 0, 1]]),), ("cat", "animal"), ("is a",))
    >>> files.relations, files.train.tolist()
    (('is a',), [[0, 0, 1]])
    """

    splits: tuple[IntArray, ...]
    entities: tuple[str, ...]
    relations: tuple[str, ...]

    @property
    def train(self) -> IntArray:
        """Triples of the first file, those for training."""
        return self._split("train", 0)

    @property
    def valid(self) -> IntArray:
        """Triples of the second file, those for validation."""
        return self._split("valid", 1)

    @property
    def test(self) -> IntArray:
        """Triples of the third file, those for the test."""
        return self._split("test", 2)

    def _split(self, name: str, place: int) -> IntArray:
        if place >= len(self.splits):
            raise AttributeError(f"{name} is file {place + 1}; there are {len(self.splits)} files")
        return self.splits[place]

    def __repr__(self) -> str:
        counts = " + ".join(str(len(split)) for split in self.splits)
        return (
            f"TripleFiles({counts} triples, {len(self.entities)} entities, "
            f"{len(self.relations)} relations)"
        )


def dense_core(triples: ArrayLike, n_entities: int) -> tuple[IntArray, IntArray, IntArray]:
    """Dense core of a graph: removes entities of least degree until ``n_entities`` are left.

    Parameters
    ----------
    triples : array_like of int, of shape (N, 3)
        Heads, relations and tails.
    n_entities : int
        Number of entities to keep. Of entities of equal degree the one with the largest number is
        removed first.

    Returns
    -------
    core : ndarray of shape (M, 3)
        The remaining triples in their order, with entities and relations renumbered.
    entities, relations : ndarray of int
        The old number of each new number.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> import orthobcd as ob
    >>> triples = [[0, 0, 1], [1, 0, 2], [2, 0, 0], [2, 0, 3]]
    >>> core, entities, relations = ob.kg.dense_core(triples, 3)
    >>> core.tolist(), entities.tolist()
    ([[0, 0, 1], [1, 0, 2], [2, 0, 0]], [0, 1, 2])
    """
    unlimited = np.iinfo(np.int64).max
    rows = as_triples("triples", triples, unlimited, unlimited)
    keep = as_int("n_entities", n_entities, 1)
    # Renumbered, so that memory depends on the number of triples, not on the largest number.
    numbers, ends = np.unique(rows[:, [0, 2]], return_inverse=True)
    count, ends = len(numbers), ends.reshape(-1, 2)
    touching: list[list[int]] = [[] for _ in range(count)]
    for i, (head, tail) in enumerate(ends.tolist()):
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
            for other in map(int, ends[i]):
                degree[other] -= 1
                if there[other]:
                    heapq.heappush(queue, (degree[other], -other))
    core = rows[alive]
    entities, ends = np.unique(core[:, [0, 2]], return_inverse=True)
    relations, kinds = np.unique(core[:, 1], return_inverse=True)
    ends = ends.reshape(-1, 2)
    return np.stack([ends[:, 0], kinds.ravel(), ends[:, 1]], axis=1), entities, relations


def as_triples(name: str, value: Any, n_entities: int, n_relations: int) -> IntArray:
    """``value`` as an (N, 3) array of entity, relation and entity numbers in range."""
    raw = np.asarray(unmasked(value))
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
