"""Certificates, and orthogonal matrices as products of 2 × 2 moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._checks import FloatArray, as_float_array, as_int
from .problems import NonnegativePCAProblem, Problem, SparsePCAProblem, StiefelProblem

OPTIMALITY_TOLERANCE = 1e-10
"""Gap to a known optimum, relative to |f| + |h|, at which a point counts as optimal."""


@dataclass(frozen=True)
class Certificate:
    """What has been proved about a point.

    Attributes
    ----------
    objective, smooth_value, penalty_value : float
        F = f + h and its two parts.
    feasibility : float
        ``||XᵀX − I||_F``, plus ``||min(X, 0)||_F`` for a nonnegative problem.
    block2_gap : float
        Largest decrease of F that any single pair of rows can make, every pair solved globally
        with exact curvature; 0 when every pair rests.
    block2_pair : tuple of (int, int) or None
        The pair that makes it; None when the gap is 0.
    block2_measure : float
        Mean of ``dist(I, argmin)²`` over all pairs (OBCD paper, Definition 4.1).
    criticality : float
        ``dist(0, ∂_M F(X))``: the norm of the smallest Riemannian subgradient (Euclidean metric).
    n_pairs : int
        All pairs, n(n−1)/2: each solved, or proved at rest.
    n_pairs_proved : int
        Pairs of two zero rows among them; they cannot move and are not visited.
    optimum : float or None
        The optimal value where a closed form applies: ℓ0 and ℓ1 with a large enough weight,
        smooth problems that an eigenvalue or singular value decomposition solves.
    """

    objective: float
    smooth_value: float
    penalty_value: float
    feasibility: float
    block2_gap: float
    block2_pair: tuple[int, int] | None
    block2_measure: float
    criticality: float
    n_pairs: int
    n_pairs_proved: int
    optimum: float | None

    @property
    def optimality_gap(self) -> float:
        """F less the known optimum (NaN where none is known)."""
        return float("nan") if self.optimum is None else self.objective - self.optimum

    @property
    def is_optimal(self) -> bool:
        """Whether the point is proved globally optimal, to 1e-10 of |f| + |h|."""
        if self.optimum is None:
            return False
        size = abs(self.smooth_value) + abs(self.penalty_value)
        return self.optimality_gap <= OPTIMALITY_TOLERANCE * size


def certify(problem: Problem, x: Any, *, n_threads: int | None = None) -> Certificate:
    """Prove what can be proved about a point: all pairs, first-order condition, optimality.

    Parameters
    ----------
    problem : StiefelProblem, SparsePCAProblem or NonnegativePCAProblem
        The problem.
    x : array_like of shape (n, r)
        The point. It need not be feasible; ``feasibility`` says how far it is.
    n_threads : int, optional
        Number of threads; all cores by default. The result does not depend on it.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError, TypeError
        If ``x`` has another shape or is not finite, or the problem is not one of those.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.StiefelProblem(ob.Quadratic([[-3.0, 0.5], [0.5, -1.0]]), ob.L0(10.0), 1)
    >>> certificate = ob.certify(problem, [[1.0], [0.0]])
    >>> certificate.block2_gap, certificate.is_optimal
    (0.0, True)
    """
    if not isinstance(problem, (StiefelProblem, SparsePCAProblem, NonnegativePCAProblem)):
        raise TypeError(
            "problem must be a StiefelProblem, SparsePCAProblem or NonnegativePCAProblem, "
            f"got {type(problem).__name__}"
        )
    if n_threads is not None:
        n_threads = as_int("n_threads", n_threads, 1)
    point = as_float_array("x", x, 2)
    shape = (problem.smooth.n_rows, problem.n_components)
    if point.shape != shape:
        raise ValueError(f"x must have shape {shape}, got {point.shape}")
    found = _core.certify(problem.smooth, problem.penalty, problem.n_components, point, n_threads)
    return Certificate(**found)


@dataclass(frozen=True, eq=False)
class BasisFactorization:
    """An orthogonal D as ``W_m ⋯ W_2 W_1``, every factor the identity but for two rows.

    Iterating gives ``(i, j, V)`` from W_1 on: replacing rows (i, j) of X by ``V @ X[[i, j]]``, in
    this order, turns X into D X.

    Attributes
    ----------
    pairs : ndarray of shape (m, 2)
        Rows i < j of every factor; all m = n(n−1)/2 pairs appear.
    matrices : ndarray of shape (m, 2, 2)
        V of every factor; at most one is a reflection.
    n : int
        Size of D.
    """

    pairs: NDArray[np.int64]
    matrices: FloatArray
    n: int

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[tuple[int, int, FloatArray]]:
        for (i, j), matrix in zip(self.pairs, self.matrices, strict=True):
            yield int(i), int(j), matrix

    def apply(self, x: Any) -> FloatArray:
        """D x, factor by factor, for x of shape (n, r)."""
        out = as_float_array("x", x, 2).copy()
        if out.shape[0] != self.n:
            raise ValueError(f"x must have {self.n} rows, got shape {out.shape}")
        for i, j, matrix in self:
            out[[i, j]] = matrix @ out[[i, j]]
        return out

    def matrix(self) -> FloatArray:
        """D itself."""
        return self.apply(np.eye(self.n))


def basis_factorization(D: Any) -> BasisFactorization:
    """Write an orthogonal matrix as a product of 2 × 2 rotations and reflections.

    Parameters
    ----------
    D : array_like of shape (n, n)
        Orthogonal to 1e-8; n ≥ 2.

    Returns
    -------
    BasisFactorization

    Raises
    ------
    ValueError, TypeError
        If D is not square, too small, or not orthogonal.

    Notes
    -----
    OBCD paper, Theorem 3.1, in the pivot form (the printed algorithm uses only n − 1 distinct
    pairs): Givens rotations reduce Dᵀ to the identity, a last sign goes into the last factor.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> D = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    >>> bool(np.abs(ob.basis_factorization(D).matrix() - D).max() < 1e-14)
    True
    """
    matrix = as_float_array("D", D, 2)
    pairs, matrices = _core.basis_factorization(matrix)
    return BasisFactorization(pairs, matrices, matrix.shape[0])
