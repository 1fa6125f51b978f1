"""Solvers: frozen dataclasses with their options, checked when they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ._checks import as_choice, as_float, as_float_array, as_int
from .jobcd import JOBCD

WORKING_SETS = ("random", "cyclic", "wss-sv", "wss-or", "tiled")
UPDATES = ("gauss-seidel", "jacobi")
CURVATURES = ("exact", "scalar")
SIDES = ("rows", "columns", "both")
STRATEGIES = (
    "splitting",
    "smoothed",
    "reheated",
    "supports",
    "forward",
    "path",
    "sparse",
    "spectral",
    "varimax",
    "dense",
    "partition",
)


@dataclass(frozen=True)
class OBCD:
    """Block coordinate descent over rows of X on the Stiefel manifold (the OBCD papers).

    Parameters
    ----------
    working_set : {"tiled", "random", "cyclic", "wss-sv", "wss-or"}, default "tiled"
        Which rows come next: all pairs tile by tile; uniformly random rows; lexicographic pairs;
        the largest violation of stationarity, or the largest guaranteed decrease, among
        `scored_pairs` sampled pairs.
    block_size : int, default 2
        Rows k per block for every rule but "tiled". Without a penalty a block of k > 2 rows moves
        by a singular value decomposition, then by sweeps over its pairs; with one, by sweeps
        over its pairs.
    update : {"gauss-seidel", "jacobi"}, default "gauss-seidel"
        Jacobi moves all pairs of a random perfect matching at once, in parallel.
    curvature : {"exact", "scalar"}, default "exact"
        Curvature of the pair model, eq. 8 or eq. 9 of the paper.
    side : {"rows", "columns", "both"}, default "rows"
        What moves: rows (the papers), columns (rotations X ← XV, which leave ``‖AX‖`` alone and
        lower h: a sparsifying rotation), or both in turn.
    alpha : float, default 1e-5
        Proximal weight, nonnegative, relative to the curvature κ of f, half the spread of C's
        eigenvalues (times ``‖D‖``): every accepted move lowers F by at least
        ``alpha·κ/2 · ||V − I||²`` (Theorem 4.2) until a sweep settles; then the term is dropped,
        so that it hides no decrease.
    tile_size : int, default 64
        Rows per tile of the tiled rule.
    scored_pairs : int, optional
        Pairs that "wss-sv" and "wss-or" score, sampled uniformly, before they choose; min(n, 200)
        by default, as in the papers' experiments. With n(n−1)/2 or more all pairs are scored, as
        the rules are printed.

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
    scored_pairs: int | None = None

    def __post_init__(self) -> None:
        as_choice("working_set", self.working_set, WORKING_SETS)
        as_choice("update", self.update, UPDATES)
        as_choice("curvature", self.curvature, CURVATURES)
        as_choice("side", self.side, SIDES)
        object.__setattr__(self, "block_size", as_int("block_size", self.block_size, 2))
        object.__setattr__(self, "tile_size", as_int("tile_size", self.tile_size, 2))
        object.__setattr__(self, "alpha", as_float("alpha", self.alpha, minimum=0.0))
        if self.scored_pairs is not None:
            scored = as_int("scored_pairs", self.scored_pairs, 1)
            object.__setattr__(self, "scored_pairs", scored)


def _tiled() -> OBCD:
    return OBCD(working_set="tiled")


@dataclass(frozen=True)
class Path:
    """The λ-path of an ℓ0 or ℓ1 problem: warm starts from the closed-form optimum of a large λ.

    Parameters
    ----------
    lams : sequence of float, optional
        Values of λ in the order in which they are solved; decreasing or increasing (multiples
        of the weights when `L1` has a weight per entry). The problem's own λ is solved last if
        it is not among them. By default λ falls by `ratio` from the largest value at which
        anything can change to the problem's own.
    ratio : float, default 0.6
        Factor between consecutive default values, strictly between 0 and 1.
    solver : OBCD, optional
        Solves every stage; ``OBCD(working_set="tiled")`` by default.

    Raises
    ------
    ValueError, TypeError
        If an option is out of range.

    Notes
    -----
    A decreasing path starts from the r rows with the largest ``−C_ii``, an increasing one from
    the spectral solution, unless ``x0`` is given. A stage other than the last ends when a sweep
    lowers F by at most 1e-5 relative. ``result.path`` holds a `PathPoint` for every stage.
    """

    lams: Sequence[float] | None = None
    ratio: float = 0.6
    solver: OBCD = field(default_factory=_tiled)

    def __post_init__(self) -> None:
        if self.lams is not None:
            lams = as_float_array("lams", self.lams, 1)
            if (lams < 0.0).any():
                raise ValueError(f"lams must be nonnegative, the smallest is {lams.min():g}")
            object.__setattr__(self, "lams", tuple(float(lam) for lam in lams))
        ratio = as_float("ratio", self.ratio, minimum=0.0, exclusive=True)
        if ratio >= 1.0:
            raise ValueError(f"ratio must be less than 1, got {ratio:g}")
        object.__setattr__(self, "ratio", ratio)
        if not isinstance(self.solver, OBCD):
            raise TypeError(f"solver must be an OBCD, got {type(self.solver).__name__}")


@dataclass(frozen=True)
class Auto:
    """Several starts of different nature, the best kept, polished and perturbed: the default.

    Parameters
    ----------
    n_starts : int, optional
        Number of starts; by default every strategy that fits the problem (with ``max_time``: as
        many as there is room for).
    strategies : sequence of str, optional
        Which starts, in this order, instead of those chosen for the problem: "splitting" (annealed
        ADMM), "smoothed" (gradient descent on a smoothed penalty), "reheated" (the same over a
        short range of the smoothing, raised again and again; ℓ1), "supports" (annealed disjoint
        supports), "forward" (forward selection on disjoint supports), "path" (decreasing λ from
        the closed-form optimum), "sparse" (the same from random rows), "partition" (columns and
        owners of a partition in turn for X ≥ 0, else random), "spectral", "varimax", "dense"
        (random).

    Raises
    ------
    ValueError, TypeError
        If an option is out of range.

    Notes
    -----
    The starts run one per core. Without ``max_time`` they are counted in steps and the result
    depends on the seed alone. With ``max_time``, the time that is left after them goes into
    perturbing the best point, and it decides how long every method runs. ``max_sweeps`` limits the
    pair sweeps of all descents together.

    ``result.strategy`` names what found the returned point and ``result.starts`` lists every start.

    With a mixed signature (`JOrthogonalProblem`) the starts are ``x0`` and ``R @ x0`` for random
    J-orthogonal R (4 of them for small problems). From each, pairs of rows and columns and
    tangent proximal-gradient steps take turns until neither lowers F: pairs alone lock at kinks,
    away from critical points. Then the best point is kicked and descended from again.
    ``strategies`` must be None there.
    """

    n_starts: int | None = None
    strategies: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.n_starts is not None:
            object.__setattr__(self, "n_starts", as_int("n_starts", self.n_starts, 1))
        if self.strategies is not None:
            if isinstance(self.strategies, str):
                raise TypeError("strategies must be a sequence of names, got a string")
            names = tuple(as_choice("strategies", name, STRATEGIES) for name in self.strategies)
            if not names:
                raise ValueError("strategies must not be empty")
            object.__setattr__(self, "strategies", names)


Solver: TypeAlias = OBCD | Path | Auto | JOBCD
