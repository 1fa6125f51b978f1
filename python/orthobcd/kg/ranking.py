"""Filtered ranks of triples, and their summary statistics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._internal.checks import FloatArray, as_int

__all__ = ["Ranking"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Filtered ranks of test triples.

    Attributes
    ----------
    head_ranks, tail_ranks : ndarray of shape (N,)
        Rank of the true entity, from 1, among all entities that do not complete a known triple;
        equal scores share their mean rank.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> ranking = ob.Ranking(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    >>> ranking.mrr, ranking.hits(1)
    (0.6875, 0.5)
    """

    head_ranks: FloatArray
    tail_ranks: FloatArray

    @property
    def ranks(self) -> FloatArray:
        """Ranks of heads and tails, of shape (2N,)."""
        return np.concatenate([self.head_ranks, self.tail_ranks])

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank of heads and tails (NaN without triples)."""
        return float(np.mean(1.0 / self.ranks)) if self.ranks.size else float("nan")

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
        k = as_int("k", k, 1)
        return float(np.mean(self.ranks <= k)) if self.ranks.size else float("nan")

    def __repr__(self) -> str:
        return (
            f"Ranking({self.head_ranks.size} triples, MRR={self.mrr:.4f}, "
            f"Hits@1={self.hits(1):.4f}, @3={self.hits(3):.4f}, @10={self.hits(10):.4f})"
        )
