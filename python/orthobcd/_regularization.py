"""Sparse PCA along a decreasing penalty, from the known optimum at a large α on."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._checks import FloatArray, as_choice, as_float, as_float_array, as_int
from ._moments import Moments
from ._progress import live
from ._solve import solve
from .problems import L0, L1, SparsePCAProblem
from .result import Result, Status
from .solvers import OBCD

logger = logging.getLogger("orthobcd")

RATIO = 0.7
"""Ratio of one α of a path to the one before, unless told otherwise."""

SMALLEST = 1e-6
"""A path that looks for a number of nonzeros ends at this share of ``alpha_max``."""

REFINEMENTS = 12
"""Bisections between two neighbours of a path that straddle the wanted number of nonzeros."""


@dataclass(frozen=True, eq=False)
class RegularizationPath:
    """Sparse PCA for a decreasing sequence of penalties, each solve started at the one before.

    Attributes
    ----------
    alphas : ndarray of shape (k,)
        Penalties, decreasing; ``lam`` of `L0` or `L1`.
    n_nonzero : ndarray of shape (k,)
        Nonzero entries of every point.
    explained_variance_ratio : ndarray of shape (k,)
        Share of the variance in the span of the components. As they are orthonormal it is the sum
        of their variances.
    objective : ndarray of shape (k,)
        ``−½‖AX‖² + h(X)``.
    results : tuple of Result
        The points; left out (empty) in the ``path_`` of a fitted estimator.
    alpha_max : float
        See `alpha_max`.
    """

    alphas: FloatArray
    n_nonzero: np.ndarray[Any, np.dtype[np.int64]]
    explained_variance_ratio: FloatArray
    objective: FloatArray
    results: tuple[Result, ...]
    alpha_max: float

    def __len__(self) -> int:
        return len(self.alphas)

    def nearest(self, n_nonzero: int) -> int:
        """Index of the point whose number of nonzeros is nearest; of equals the lower objective."""
        gap = np.abs(self.n_nonzero - n_nonzero)
        return int(np.lexsort((self.objective, gap))[0])


def alpha_max(A: Any, n_components: int, penalty: str = "l0", *, center: bool = False) -> float:
    """The penalty from which on the answer is known: one entry per component.

    For every α ≥ ``alpha_max`` no pair of rows improves the selection of the ``n_components``
    features of largest variance: all entries are zero but the forced ones. For ℓ0 it is the
    smallest such α, for ℓ1 at most 1.21 times the smallest.

    Parameters
    ----------
    A : ndarray or scipy.sparse matrix of shape (m, n)
        Data, samples in rows.
    n_components : int
        Number of components r.
    penalty : {"l0", "l1"}, default "l0"
        Which penalty.
    center : bool, default False
        Whether the columns of A are to be centred.

    Returns
    -------
    float
        In the units of ``lam`` of `L0` and `L1` in ``−½‖AX‖² + h(X)``.
    """
    as_choice("penalty", penalty, ("l0", "l1"))
    problem = SparsePCAProblem(A, n_components, L0(0.0), center=center)
    return Moments(problem.A, center).alpha_max(problem.n_components, penalty)


def regularization_path(
    A: Any,
    n_components: int,
    penalty: str = "l0",
    *,
    alphas: Any = None,
    n_alphas: int = 20,
    ratio: float = RATIO,
    n_nonzero: int | None = None,
    center: bool = False,
    solver: OBCD | None = None,
    max_time: float | None = None,
    tol: float | None = None,
    seed: int = 0,
    n_threads: int | None = None,
    verbose: bool = False,
) -> RegularizationPath:
    """Sparse PCA for a decreasing sequence of penalties, each solve started at the one before.

    It begins at the selection of the features of largest variance, which is optimal for a large
    penalty; a solve that starts from a slightly sparser optimum usually ends far better than one
    from an arbitrary point.

    Parameters
    ----------
    A : ndarray or scipy.sparse matrix of shape (m, n)
        Data, samples in rows.
    n_components : int
        Number of components r.
    penalty : {"l0", "l1"}, default "l0"
        Which penalty.
    alphas : array_like of shape (k,), optional
        Penalties, positive or zero; sorted decreasing. By default ``alpha_max · ratio^i``.
    n_alphas : int, default 20
        Length of the default sequence.
    ratio : float, default 0.7
        Between 0 and 1.
    n_nonzero : int, optional
        Go on (beyond ``n_alphas``) until a point has at least this many nonzeros, then bisect
        towards exactly this many. At least ``n_components``, at most ``n · n_components``.
    center : bool, default False
        Subtract the column means first (sparse data stays sparse).
    solver : OBCD, optional
        Solves every stage; ``OBCD()`` by default.
    max_time, tol, seed, n_threads, verbose
        As in `solve`; ``max_time`` is for the whole path.

    Returns
    -------
    RegularizationPath
        Sorted by decreasing penalty.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.
    """
    as_choice("penalty", penalty, ("l0", "l1"))
    n_alphas = as_int("n_alphas", n_alphas, 1)
    ratio = as_float("ratio", ratio, minimum=0.0, exclusive=True)
    if ratio >= 1.0:
        raise ValueError(f"ratio must be less than 1, got {ratio:g}")
    limit = None if max_time is None else as_float("max_time", max_time, minimum=0.0)
    given: list[float] | None = None
    if alphas is not None:
        values = as_float_array("alphas", alphas, 1)
        if (values < 0.0).any():
            raise ValueError(f"alphas must be nonnegative, the smallest is {values.min():g}")
        given = sorted(map(float, values), reverse=True)
    base = SparsePCAProblem(A, n_components, L0(0.0), center=center)
    r, n = base.n_components, base.smooth.n_rows
    if n_nonzero is not None:
        n_nonzero = as_int("n_nonzero", n_nonzero, r)
        if n_nonzero > n * r:
            raise ValueError(f"n_nonzero must be at most {n * r}, got {n_nonzero}")
    moments = Moments(base.A, center)
    top = moments.alpha_max(r, penalty)
    started = time.perf_counter()

    def left() -> float | None:
        return None if limit is None else max(limit - (time.perf_counter() - started), 0.0)

    def point(alpha: float, x: FloatArray) -> Result:
        problem = base.with_penalty(L0(alpha) if penalty == "l0" else L1(alpha))
        result = solve(
            problem,
            x,
            solver=OBCD() if solver is None else solver,
            max_time=left(),
            tol=tol,
            seed=seed,
            n_threads=n_threads,
            verbose=verbose,
        )
        logger.debug("path: alpha %.6g, %d nonzeros", alpha, result.n_nonzero)
        return result

    with live(bool(verbose), limit) as line:
        found: list[tuple[float, Result]] = []
        x = moments.selection(r)
        step = 0
        while True:
            if given is not None:
                if step == len(given):
                    break
                alpha = given[step]
            else:
                enough = n_nonzero is None or (bool(found) and found[-1][1].n_nonzero >= n_nonzero)
                wanted = step < n_alphas if n_nonzero is None else not enough
                alpha = top * ratio**step
                # Where nothing ever changes (alpha_max = 0) one point is all there is.
                if not wanted or (n_nonzero is not None and found and alpha <= SMALLEST * top):
                    break
            # A point whose work was cut short is no start for one with more nonzeros.
            cut = given is None and bool(found) and found[-1][1].status is Status.MAX_SWEEPS
            if found and (left() == 0.0 or cut):
                break
            if line is not None:
                known = (
                    None
                    if given is None and n_nonzero is not None
                    else len(given or range(n_alphas))
                )
                line.stage(f"path {step + 1}" + (f" of {known}" if known else ""), step, known)
            found.append((alpha, point(alpha, x)))
            x = found[-1][1].x
            step += 1
        if n_nonzero is not None:
            if line is not None:
                line.stage("bisection")
            found = _bisect(found, n_nonzero, point, left)
    return _collect(found, moments, top)


def _bisect(
    found: list[tuple[float, Result]], wanted: int, point: Any, left: Any
) -> list[tuple[float, Result]]:
    """Points between the last sparser and the first denser one, until the number is exact."""
    sparser = [pair for pair in found if pair[1].n_nonzero <= wanted]
    denser = [pair for pair in found if pair[1].n_nonzero >= wanted]
    if not sparser or not denser:
        return found
    low, high = sparser[-1], denser[0]
    for _ in range(REFINEMENTS):
        counts = (low[1].n_nonzero, high[1].n_nonzero)
        if wanted in counts or left() == 0.0 or high[0] >= low[0]:
            break
        alpha = float(np.sqrt(low[0] * high[0]))
        middle = (alpha, point(alpha, low[1].x))
        found.append(middle)
        if middle[1].n_nonzero <= wanted:
            low = middle
        else:
            high = middle
    return sorted(found, key=lambda pair: -pair[0])


def _collect(
    found: Sequence[tuple[float, Result]], moments: Moments, top: float
) -> RegularizationPath:
    results = tuple(result for _, result in found)
    explained = [float(np.sum(moments.scores(p.x) ** 2)) / moments.total for p in results]
    return RegularizationPath(
        alphas=np.array([alpha for alpha, _ in found]),
        n_nonzero=np.array([p.n_nonzero for p in results], dtype=np.int64),
        explained_variance_ratio=np.array(explained),
        objective=np.array([p.objective for p in results]),
        results=results,
        alpha_max=top,
    )
