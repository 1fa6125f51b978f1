"""Solvers: frozen dataclasses with their options, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ._checks import as_choice, as_float, as_int
from .jobcd import JOBCD

WORKING_SETS = ("random", "cyclic", "wss-sv", "wss-or", "tiled")
UPDATES = ("gauss-seidel", "jacobi")
CURVATURES = ("exact", "scalar")
SIDES = ("rows", "columns", "both")


@dataclass(frozen=True)
class OBCD:
    """Block coordinate descent over rows of X on the Stiefel manifold (the OBCD papers).

    Parameters
    ----------
    working_set : {"tiled", "random", "cyclic", "wss-sv", "wss-or"}, default "tiled"
        Which rows come next: all pairs tile by tile; uniformly random rows; lexicographic pairs;
        the largest violation of stationarity, or the largest guaranteed decrease, among
        min(n, 200) sampled pairs.
    block_size : int, default 2
        Rows k per block for every rule but "tiled". Without a penalty a block of k > 2 rows moves
        by a singular value decomposition, then by sweeps over its pairs; with one, by sweeps
        over its pairs.
    update : {"gauss-seidel", "jacobi"}, default "gauss-seidel"
        Jacobi moves all pairs of a random perfect matching at once, in parallel.
    curvature : {"exact", "scalar"}, default "exact"
        Curvature of the pair model, eq. 8 or eq. 9 of the paper.
    side : {"rows", "columns", "both"}, default "rows"
        What moves: rows (the papers), columns (rotations X ← XV, which leave ``‖AX‖`` alone and lower
        h: a sparsifying rotation), or both in turn.
    alpha : float, default 1e-5
        Proximal weight, nonnegative; every accepted move lowers F by at least
        ``alpha/2 · ||V − I||²`` (Theorem 4.2).
    tile_size : int, default 64
        Rows per tile of the tiled rule.

    Raises
    ------
    ValueError, TypeError
        If an option is not one of its choices or out of range.
    """

    working_set: str = "tiled"
    block_size: int = 2
    update: str = "gauss-seidel"
    curvature: str = "exact"
    side: str = "rows"
    alpha: float = 1e-5
    tile_size: int = 64

    def __post_init__(self) -> None:
        as_choice("working_set", self.working_set, WORKING_SETS)
        as_choice("update", self.update, UPDATES)
        as_choice("curvature", self.curvature, CURVATURES)
        as_choice("side", self.side, SIDES)
        object.__setattr__(self, "block_size", as_int("block_size", self.block_size, 2))
        object.__setattr__(self, "tile_size", as_int("tile_size", self.tile_size, 2))
        object.__setattr__(self, "alpha", as_float("alpha", self.alpha, minimum=0.0))


Solver: TypeAlias = OBCD | JOBCD
