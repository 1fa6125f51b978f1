"""Filtered ranks of triples, and their summary statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._internal.checks import FloatArray, IntArray, as_int
from .._internal.names import shortened_names

HITS = (1, 3, 10)
"""Ranks k whose Hits@k the tables show."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Ranks of test triples by `UltraE.rank`.

    Attributes
    ----------
    head_ranks, tail_ranks : ndarray of shape (N,)
        Rank of the true entity, from 1, among its candidates; equal scores share their mean rank.
    head_candidates, tail_candidates : ndarray of int, of shape (N,)
        Number of candidates: the true entity, and every entity that does not complete a known
        triple.
    relations : ndarray of int, of shape (N,)
        Relation of every triple.
    relation_names : tuple of str or None
        Names of the relations, by number.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> ten, relations = np.array([10, 10]), np.array([0, 1])
    >>> ranking = ob.kg.Ranking(np.array([1.0, 2.0]), np.array([1.0, 4.0]), ten, ten, relations)
    >>> ranking.mrr, ranking.hits(1), ranking.mean_rank
    (0.6875, 0.5, 2.0)
    >>> round(ranking.adjusted_mean_rank_index, 3)
    0.778
    >>> {relation: part.mrr for relation, part in ranking.by_relation().items()}
    {0: 1.0, 1: 0.375}
    >>> print(ranking.summary())
    relation  triples    MRR    MR   AMRI  Hits@1  Hits@3  Hits@10
    0               1  1.000   1.0  1.000   1.000   1.000    1.000
    1               1  0.375   3.0  0.556   0.000   0.500    1.000
    all             2  0.688   2.0  0.778   0.500   0.750    1.000
    >>> list(ranking.to_frame().columns[:4])
    ['relation', 'triples', 'mrr', 'mean_rank']
    """

    head_ranks: FloatArray
    tail_ranks: FloatArray
    head_candidates: IntArray
    tail_candidates: IntArray
    relations: IntArray
    relation_names: tuple[str, ...] | None = None

    @property
    def ranks(self) -> FloatArray:
        """Ranks of heads and tails, of shape (2N,)."""
        return np.concatenate([self.head_ranks, self.tail_ranks])

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank of heads and tails (NaN without triples)."""
        return _mean(1.0 / self.ranks)

    @property
    def mean_rank(self) -> float:
        """Mean rank of heads and tails (NaN without triples)."""
        return _mean(self.ranks)

    @property
    def adjusted_mean_rank_index(self) -> float:
        """Adjusted mean rank index: 1 for first ranks only, 0 for random scores, at least −1.

        The index is ``1 − (mean rank − 1)/(E − 1)``, where E is the mean rank of random scores;
        NaN if there are no triples, or all candidates are the true entities.
        """
        candidates = np.concatenate([self.head_candidates, self.tail_candidates])
        expected = _mean((candidates - 1.0) / 2.0)
        return 1.0 - (self.mean_rank - 1.0) / expected if expected > 0.0 else float("nan")

    def hits(self, k: int) -> float:
        """Share of ranks of heads and tails that are at most ``k`` (NaN without triples).

        Parameters
        ----------
        k : int
            Largest rank that counts, at least 1.

        Returns
        -------
        float

        Raises
        ------
        ValueError, TypeError
            If ``k`` is not a positive integer.
        """
        return _mean(self.ranks <= as_int("k", k, 1))

    def by_relation(self) -> dict[int | str, Ranking]:
        """The ranking of the triples of every relation that occurs.

        Returns
        -------
        dict of (int or str) to Ranking
            Keys are names where the model has names.
        """
        parts: dict[int | str, Ranking] = {}
        for relation in np.unique(self.relations):
            own = self.relations == relation
            label = int(relation) if self.relation_names is None else self.relation_names[relation]
            parts[label] = Ranking(
                self.head_ranks[own],
                self.tail_ranks[own],
                self.head_candidates[own],
                self.tail_candidates[own],
                self.relations[own],
                self.relation_names,
            )
        return parts

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row of measures per relation."""
        import pandas as pd

        columns = ["relation", "triples", "mrr", "mean_rank", "adjusted_mean_rank_index"]
        columns += [f"hits_{k}" for k in HITS]
        rows = [(label, *part._measures()) for label, part in self.by_relation().items()]
        return pd.DataFrame(rows, columns=columns)

    def summary(self) -> str:
        """A table as text: the measures of every relation and of all triples."""
        relations = self.by_relation()
        labels = shortened_names(list(map(str, relations)))
        parts = dict(zip(labels, relations.values(), strict=True))
        width = max(map(len, [*parts, "relation"]))
        heads = "".join(f"  Hits@{k}" for k in HITS)
        lines = [f"{'relation':<{width}}  triples    MRR    MR   AMRI{heads}"]
        for label, part in [*parts.items(), ("all", self)]:
            count, mrr, rank, index, *hits = part._measures()
            shares = "".join(
                f"{share:>{len(str(k)) + 7}.3f}" for k, share in zip(HITS, hits, strict=True)
            )
            lines.append(
                f"{label:<{width}}  {count:>7}  {mrr:.3f} {rank:>5.1f} {index:>6.3f}{shares}"
            )
        return "\n".join(lines)

    def _measures(self) -> tuple[float, ...]:
        """Number of triples, mean reciprocal rank, mean rank, its adjusted index, and hits."""
        ranks = (self.mrr, self.mean_rank, self.adjusted_mean_rank_index)
        return (self.head_ranks.size, *ranks, *(self.hits(k) for k in HITS))

    def __repr__(self) -> str:
        return (
            f"Ranking({self.head_ranks.size} triples, MRR={self.mrr:.4f}, "
            f"Hits@1={self.hits(1):.4f}, @3={self.hits(3):.4f}, @10={self.hits(10):.4f}, "
            f"MR={self.mean_rank:.1f}, AMRI={self.adjusted_mean_rank_index:.4f})"
        )


def _mean(values: Any) -> float:
    return float(np.mean(values)) if values.size else float("nan")


def candidates(triples: IntArray, known: IntArray, n_entities: int, place: int) -> IntArray:
    """Number of candidates for a position of triples.

    Parameters
    ----------
    triples, known : ndarray of shape (N, 3) and (K, 3)
        Ranked triples, and known triples.
    n_entities : int
        Number of entities.
    place : {0, 2}
        0 for heads, 2 for tails.

    Returns
    -------
    ndarray of int, of shape (N,)
        Entities that complete no triple of ``known``, and the true entity.
    """
    both = np.concatenate([triples, known])
    pairs = both[:, 1] * n_entities + both[:, 2 - place]
    queries, pairs = np.unique(pairs, return_inverse=True)
    completed = np.unique(pairs[len(triples) :] * n_entities + known[:, place])
    taken = np.bincount(completed // n_entities, minlength=len(queries))
    asked = pairs[: len(triples)]
    own = np.isin(asked * n_entities + triples[:, place], completed)
    counts: IntArray = n_entities - taken[asked] + own
    return counts
