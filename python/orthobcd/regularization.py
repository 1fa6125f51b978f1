"""Regularisation paths of sparse PCA: decreasing λ from the known optimum for a large λ."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._internal.checks import (
    FRACTION,
    DataLike,
    FloatArray,
    IntArray,
    as_choice,
    as_int,
    as_nonnegative,
)
from .penalties import PenaltyName, penalty_of
from .problems import SparsePCAProblem, StiefelProblem, largest_lam
from .result import PathPoint, Status
from .solvers import DESCENT, OBCD, RATIO, Stages
from .solving import Solve, as_result

__all__ = ["RegularizationPath", "lam_max", "regularization_path"]

logger = logging.getLogger("orthobcd")

SMALLEST = 1e-6
"""Smallest λ of a path with ``n_nonzero``, as a share of ``lam_max``."""

TOLERANCE = 1e-10
"""Default tolerance of every stage, that of `orthobcd.solve`."""

REFINEMENTS = 12
"""Largest number of bisections of λ between a point sparser and one denser than ``n_nonzero``, from
either side."""

RAISE = 0.8
"""Ratio of λ to its next larger value in a search from a denser point."""


@dataclass(frozen=True, eq=False)
class RegularizationPath:
    """Solutions of sparse PCA for a decreasing sequence of penalty weights.

    Attributes
    ----------
    alphas : ndarray of shape (k,)
        Penalty weights, decreasing; ``lam`` of `L0` or `L1`.
    n_nonzero : ndarray of shape (k,)
        Number of nonzero entries of every point.
    explained_variance_ratio : ndarray of shape (k,)
        Share of the variance in the span of the components: the sum of the variances of the
        components, which are orthonormal, over the total variance.
    objective : ndarray of shape (k,)
        ``−½‖AX‖² + h(X)`` of every point.
    results : tuple of PathPoint
        The points; empty in the ``path_`` of a fitted estimator.
    alpha_max : float
        See `orthobcd.lam_max`.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> path = ob.regularization_path(np.diag([3.0, 2.0, 1.0]), 1, alphas=[0.5, 0.1])
    >>> path.alphas.tolist(), path.n_nonzero.tolist()
    ([0.5, 0.1], [1, 2])
    >>> path.nearest(2), path.index_at_most(1)
    (1, 0)
    """

    alphas: FloatArray
    n_nonzero: IntArray
    explained_variance_ratio: FloatArray
    objective: FloatArray
    results: tuple[PathPoint, ...]
    alpha_max: float

    def __len__(self) -> int:
        return len(self.alphas)

    def __repr__(self) -> str:
        if not len(self):
            return "RegularizationPath(0 points)"
        return (
            f"RegularizationPath({len(self)} points, λ from {self.alphas[0]:.4g} to "
            f"{self.alphas[-1]:.4g}, {self.n_nonzero[0]} to {self.n_nonzero[-1]} nonzeros)"
        )

    def nearest(self, n_nonzero: int) -> int:
        """Index of the point with the nearest number of nonzeros; of two, that of lower F.

        Parameters
        ----------
        n_nonzero : int
            Wanted number of nonzero entries of X.

        Returns
        -------
        int
            Index into ``alphas`` and the other arrays.
        """
        gap = np.abs(self.n_nonzero - n_nonzero)
        return int(np.lexsort((self.objective, gap))[0])

    def index_at_most(self, n_nonzero: int) -> int:
        """Index of the point with the most nonzeros among those with at most ``n_nonzero``.

        Of several such points the one with the largest explained variance is chosen. If every point
        has more nonzeros, the sparsest one is chosen.

        Parameters
        ----------
        n_nonzero : int
            Largest number of nonzero entries of X.

        Returns
        -------
        int
            Index into ``alphas`` and the other arrays.
        """
        counts = np.where(self.n_nonzero <= n_nonzero, self.n_nonzero, -self.n_nonzero)
        return int(np.lexsort((-self.explained_variance_ratio, -counts))[0])


def lam_max(
    A: DataLike, n_components: int, penalty: PenaltyName = "l0", *, center: bool = True
) -> float:
    """Penalty weight at and above which every component is a single feature.

    For every λ ≥ ``lam_max`` no pair of rows improves the selection of the ``n_components``
    features of largest variance, where X has one nonzero per column. For ℓ0 ``lam_max`` is the
    smallest such λ, for ℓ1 at most 1.21 times the smallest.

    Parameters
    ----------
    A : ndarray or scipy.sparse matrix of shape (m, n)
        Data, samples in rows.
    n_components : int
        Number of components r.
    penalty : {"l0", "l1"}, default "l0"
        The penalty.
    center : bool, default True
        Subtract the column means first, as the estimators do; the problem classes do not.

    Returns
    -------
    float
        In the units of ``lam`` of `L0` and `L1` in ``−½‖AX‖² + h(X)`` for the centred A.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> import orthobcd as ob
    >>> round(ob.lam_max([[2.0, 1.0], [1.0, 3.0]], 1), 6)
    0.25
    """
    as_choice("penalty", penalty, ("l0", "l1"))
    return largest_lam(SparsePCAProblem(A, n_components, penalty_of(penalty, 1.0), center=center))


def regularization_path(
    A: DataLike,
    n_components: int,
    penalty: PenaltyName = "l0",
    *,
    alphas: ArrayLike | None = None,
    n_alphas: int = 20,
    ratio: float = RATIO,
    n_nonzero: int | None = None,
    center: bool = True,
    solver: OBCD | None = None,
    max_time: float | None = None,
    tol: float | None = None,
    seed: int = 0,
    n_threads: int | None = 1,
    verbose: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
) -> RegularizationPath:
    """Sparse PCA for decreasing penalty weights, each solve started at the point before.

    The path begins at the selection of the features of largest variance, which is optimal for a
    large weight. A solve from a slightly sparser optimum usually reaches a far lower objective than
    one from an arbitrary point.

    Parameters
    ----------
    A, n_components, penalty, center
        As in `lam_max`; sparse data stays sparse.
    alphas : array_like of shape (k,), optional
        Penalty weights, nonnegative, in any order. By default ``lam_max · ratio^i``.
    n_alphas : int, default 20
        Length of the default sequence.
    ratio : float, default 0.6
        Ratio of consecutive default weights, strictly between 0 and 1.
    n_nonzero : int, optional
        Number of nonzeros, from ``n_components`` to ``n · n_components``. The path continues
        (beyond ``n_alphas``) to a point with at least ``n_nonzero`` nonzeros. Then λ is bisected
        towards exactly ``n_nonzero``, with starts at the sparser and at the denser point.
    solver : OBCD, optional
        Solver of every stage; ``OBCD()`` by default.
    max_time, tol, seed, n_threads, verbose, checkpoint, checkpoint_every
        As in `solve`; ``max_time`` is for the whole path.

    Returns
    -------
    RegularizationPath
        Sorted by decreasing weight. After Ctrl-C it holds the points so far, one of them with the
        status ``INTERRUPTED``.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((50, 30))
    >>> path = ob.regularization_path(A, 3, n_alphas=5)
    >>> int(path.n_nonzero[0]), bool((np.diff(path.alphas) < 0.0).all())
    (3, True)
    """
    as_choice("penalty", penalty, ("l0", "l1"))
    run = Solve(
        max_time=max_time,
        tol=TOLERANCE if tol is None else tol,
        seed=seed,
        n_threads=n_threads,
        verbose=verbose,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    solver = DESCENT if solver is None else solver
    n_alphas, ratio = as_int("n_alphas", n_alphas, 1), FRACTION("ratio", ratio)
    base = SparsePCAProblem(A, n_components, penalty_of(penalty, 1.0), center=center)
    return path_of(base, penalty, run, solver, alphas, n_nonzero, n_alphas, ratio)


def path_of(
    base: SparsePCAProblem | StiefelProblem,
    penalty: PenaltyName,
    run: Solve,
    solver: OBCD,
    alphas: ArrayLike | None = None,
    n_nonzero: int | None = None,
    n_alphas: int = 20,
    ratio: float = RATIO,
) -> RegularizationPath:
    """`regularization_path` for the objective of ``base``, without copying the data."""
    n, r = base.shape
    if n_nonzero is not None:
        n_nonzero = as_int("n_nonzero", n_nonzero, r, n * r)
    top = largest_lam(base, run.n_threads)
    if alphas is not None:
        given = as_nonnegative("alphas", alphas)
        values = sorted(map(float, given), reverse=True)
    elif n_nonzero is None:
        values = [top * ratio**k for k in range(n_alphas)]
    else:
        # With lam_max = 0 every λ has the same solution: one point suffices.
        count = 1 + int(np.ceil(np.log(SMALLEST) / np.log(ratio))) if top > 0.0 else 1
        values = [top * ratio**k for k in range(count)]

    def follow(
        lams: Sequence[float], x: FloatArray | None, n_nonzero: int | None = None
    ) -> list[PathPoint]:
        """Points for ``lams``, started at ``x``, up to the first with ``n_nonzero`` nonzeros."""
        problem = base.with_penalty(penalty_of(penalty, lams[0]))
        stages = Stages(tuple(lams), RATIO, solver, run.tol or 0.0, n_nonzero)
        run.identify(problem="path", shape=problem.shape, penalty=penalty, stages=stages, x0=x)
        returned, error = _core.solve(problem, x, False, stages, run, run.watcher)
        result = as_result(returned, error, run.seed)
        run.interrupted |= result.status is Status.INTERRUPTED
        for point in result.path:
            logger.debug("path: λ %.6g, %d nonzeros", point.lam, point.n_nonzero)
        return list(result.path)

    with run:
        # A given sequence is followed to its end, for any number of nonzeros.
        points = follow(values, None, None if alphas is not None else n_nonzero)
        if n_nonzero is not None:
            points = _refined(points, n_nonzero, run, follow)
    return RegularizationPath(
        alphas=np.array([point.lam for point in points]),
        n_nonzero=np.array([point.n_nonzero for point in points], dtype=np.int64),
        explained_variance_ratio=np.array([point.explained_variance for point in points]),
        objective=np.array([point.objective for point in points]),
        results=tuple(points),
        alpha_max=top,
    )


def _refined(
    points: list[PathPoint], wanted: int, run: Solve, follow: Callable[..., list[PathPoint]]
) -> list[PathPoint]:
    """Adds points between those of a path until one has exactly ``wanted`` nonzeros.

    The number of nonzeros can jump along a path, at different λ for solves that start at a sparser
    and at a denser point. λ is therefore bisected first from the sparser side, then from the denser
    one, with λ raised as far as the denser start asks for.
    """
    sparser = [point for point in points if point.n_nonzero <= wanted]
    denser = [point for point in points if point.n_nonzero >= wanted]
    if not sparser or not denser:
        return points
    low, high = sparser[-1], denser[0]

    def met() -> bool:
        over = run.interrupted or run.max_time == 0.0
        return over or any(point.n_nonzero == wanted for point in points)

    def at(lam: float, start: PathPoint) -> PathPoint:
        (point,) = follow([lam], start.x)
        points.append(point)
        return point

    for _ in range(REFINEMENTS):
        if met() or high.lam >= low.lam:
            break
        middle = at(float(np.sqrt(low.lam * high.lam)), low)
        low, high = (middle, high) if middle.n_nonzero <= wanted else (low, middle)
    upper = low.lam
    for _ in range(REFINEMENTS):
        if met() or upper == 0.0:
            break
        upper /= RAISE
        point = at(upper, high)
        if point.n_nonzero <= wanted:
            break
        high = point
    for _ in range(REFINEMENTS):
        if met() or not high.lam < upper * (1.0 - 1e-12):
            break
        middle = at(float(np.sqrt(upper * high.lam)), high)
        if middle.n_nonzero <= wanted:
            upper = middle.lam
        else:
            high = middle
    return sorted(points, key=lambda point: -point.lam)
