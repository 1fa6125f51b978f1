"""Certificates of a point, and orthogonal matrices as products of 2 × 2 rotations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._internal.checks import FloatArray, as_bool, as_float, as_float_array
from .hyperbolic.problems import (
    HyperbolicEigenvalueProblem,
    HyperbolicPCAProblem,
    PencilProblem,
    on_stiefel,
)
from .objectives import ByFunction, GramQuadratic, Quadratic
from .problems import Problem, as_problem, without_trivial_limit
from .result import Bound
from .solving import Solve, check_bounded

__all__ = ["BasisFactorization", "Certificate", "basis_factorization", "certify"]

OPTIMALITY_TOLERANCE = 1e-10
"""Largest gap to the known optimum, relative to `Certificate.magnitude`, of an optimal point."""

PAIRS_SHARE = 0.5
"""Share of the time limit for the pairs when a bound is computed too."""

FEASIBLE = 1e-8
"""Largest ``feasibility`` of a point for which a bound is computed."""


@dataclass(frozen=True)
class Certificate:
    """Proved statements about a point: feasibility, stationarity and optimality.

    Attributes
    ----------
    objective, smooth_value, penalty_value : float
        F = f + h and its two parts.
    magnitude : float
        The magnitude of F, to which tolerances are relative: ``|f − c| + |h|``, and at least the
        rounding of c. Here c is the part of f that is constant on the constraint, such as the
        change of f if a multiple of I is added to C.
    feasibility : float
        ``||XᵀX − I||_F``, plus ``||min(X, 0)||_F`` for a nonnegative problem. With a mixed
        signature ``||XᵀJX − J||_F`` for square X. For other X the distance of XᵀJX from a diagonal
        matrix of ±1 if that is at most 1e-8, else 0.
    relative_feasibility : float
        ``feasibility`` over ``max(1, ||X||_F²)``, the scale of the rounding error of XᵀJX.
    block2_gap : float
        Largest decrease of F by a move of a single pair of rows, over all pairs, each solved
        globally with exact curvature; 0 when no pair can lower F. With a mixed signature also over
        the pairs of columns where these can move; infinite if F is unbounded below along a pair.
        For a `SmoothFunction` the decrease of its quadratic majoriser with the constant
        ``lipschitz``; NaN without ``lipschitz``. NaN if ``max_time`` passed before all pairs were
        solved.
    block2_pair : tuple of (int, int) or None
        The pair with that decrease; None when the gap is 0.
    block2_kind : str or None
        Kind of that pair, "rows" or "columns".
    block2_measure : float
        Mean of ``dist(I, argmin)²`` over all pairs (OBCD paper, Definition 4.1); NaN with a mixed
        signature.
    criticality : float
        ``dist(0, ∂_M F(X))``: the norm of the smallest Riemannian subgradient (Euclidean metric);
        the normal space is {JXΛ : Λ = Λᵀ}. At a kink ∂h is the interval between the slopes of both
        sides (Clarke), infinite where h jumps up. At a concave kink F can have a direction of
        descent although the criticality is 0.
    stationarity : float or None
        ``||G − JXGᵀXJ||_F`` (``||G − XGᵀX||_F`` on the Stiefel manifold) for the gradient G of the
        smooth part f: zero exactly where f alone is stationary (JOBCD paper, Lemma 3.1). None for
        a mixed signature with r < n.
    n_pairs : int
        Number of pairs, n(n−1)/2, each solved or proved stationary; with a mixed signature plus the
        pairs of columns. With a `Cardinality` or `RowSparse` no pair is examined, and the number is
        0; also if ``max_time`` passed before all pairs were solved.
    n_pairs_proved : int
        Number of these pairs that have two zero rows; they cannot move and are not solved.
    optimum : float or None
        The optimal value where it is known: ℓ0 and ℓ1 with a large enough weight, smooth
        problems that an eigenvalue or singular value decomposition solves, a square X ≥ 0 (the best
        permutation), hyperbolic eigenvalue and PCA problems with a positive semidefinite matrix.
    bound : Bound or None
        The lower bound on F and its proof, if it was requested.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.StiefelProblem(ob.Quadratic(-np.diag([2.0, 1.0])), ob.NoPenalty(), 1)
    >>> ob.certify(problem, [[0.0], [1.0]]).optimality_gap
    0.5
    """

    objective: float
    smooth_value: float
    penalty_value: float
    magnitude: float
    feasibility: float
    relative_feasibility: float
    block2_gap: float
    block2_pair: tuple[int, int] | None
    block2_kind: str | None
    block2_measure: float
    criticality: float
    stationarity: float | None
    n_pairs: int
    n_pairs_proved: int
    optimum: float | None
    bound: Bound | None = None

    @property
    def lower_bound(self) -> float:
        """Lower bound on F over all feasible points (NaN without a `Bound`)."""
        return float("nan") if self.bound is None else self.bound.value

    @property
    def gap(self) -> float:
        """Largest possible relative distance from the optimum: ``(F − lower_bound) / magnitude``.

        NaN without a `Bound`.
        """
        return float("nan") if self.bound is None else self.bound.gap

    @property
    def bound_method(self) -> str | None:
        """Method that gave the lower bound, see `Bound`; None without a `Bound`."""
        return None if self.bound is None else self.bound.method

    @property
    def optimality_gap(self) -> float:
        """F less ``optimum`` (NaN if the optimum is not known)."""
        return float("nan") if self.optimum is None else self.objective - self.optimum

    @property
    def is_optimal(self) -> bool:
        """True if F exceeds the known optimum by at most 1e-10 times `magnitude`."""
        if self.optimum is None:
            return False
        return self.optimality_gap <= OPTIMALITY_TOLERANCE * self.magnitude


def certify(
    problem: Problem,
    x: ArrayLike,
    *,
    bound: bool = False,
    max_time: float | None = None,
    gap_tol: float = 1e-6,
    n_threads: int | None = 1,
) -> Certificate:
    """Certify a point: decrease over all pairs, first-order condition, optimality.

    Parameters
    ----------
    problem : Problem
        The problem. The objective must be a `Quadratic` (as that of the pencil problems), a
        `GramQuadratic`, a `SmoothFunction` or a `FiniteSum`. With a `Cardinality` or `RowSparse`
        the values on pairs and ``criticality`` are NaN: they are defined for separable penalties.
    x : array_like of shape (n, r)
        The point. The point may be infeasible, as ``feasibility`` shows, unless ``bound`` is True.
    bound : bool, default False
        Bound the optimum from below: sets ``lower_bound``, ``gap``, ``bound_method`` and ``bound``
        of the certificate. For a quadratic objective without linear term and column metric on the
        Stiefel manifold.
    max_time : float, optional
        Time limit in seconds, from the call on. If the limit passes, the values on pairs and
        ``criticality`` are NaN and ``optimum`` is None. With ``bound`` these values get at most
        half of the limit, and the search for a better bound gets the remaining time. Without a
        limit the work of this search is counted and bounded.
    gap_tol : float, default 1e-6
        The search for a better bound ends when ``gap`` is at most this.
    n_threads : int or None, default 1
        Number of threads; −1 or None for all cores. The result does not depend on it.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError, TypeError
        If ``x`` has another shape or is not finite, or the objective is of another kind. With
        ``bound`` also if ``x`` is not feasible up to 1e-8, has too many nonzeros or nonzero rows,
        or the problem has no bound.
    KeyboardInterrupt
        After Ctrl-C; but during the search for a better bound the best bound so far is returned.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.StiefelProblem(ob.Quadratic([[-3.0, 0.5], [0.5, -1.0]]), ob.L0(10.0), 1)
    >>> certificate = ob.certify(problem, [[1.0], [0.0]])
    >>> certificate.block2_gap, certificate.is_optimal
    (0.0, True)
    >>> problem = ob.StiefelProblem(problem.smooth, ob.Cardinality(1), 1)
    >>> ob.certify(problem, [[1.0], [0.0]], bound=True).gap < 1e-6
    True
    """
    problem = without_trivial_limit(as_problem(problem))
    if not isinstance(problem.smooth, (Quadratic, GramQuadratic, ByFunction)):
        name = type(problem.smooth).__name__
        raise TypeError(f"problem must not have a {name}: its pairs have no exact model")
    if as_bool("bound", bound):
        check_bounded(problem, "bound must be False")
    run = Solve(max_time=max_time, n_threads=n_threads)
    gap_tol = as_float("gap_tol", gap_tol, 0.0)
    point = as_float_array("x", x, 2)
    if point.shape != problem.shape:
        raise ValueError(f"x must have shape {problem.shape}, got {point.shape}")
    plain = on_stiefel(problem)
    pairs = run
    if run.limit is not None and bound:
        pairs = Solve(max_time=PAIRS_SHARE * run.limit, n_threads=n_threads)
    found = _core.certify(plain, point, pairs)
    if isinstance(problem, PencilProblem):
        found["optimum"] = _pencil_optimum(problem)
    size = max(1.0, float(np.vdot(point, point)))
    certificate = Certificate(**found, relative_feasibility=found["feasibility"] / size)
    if not bound:
        return certificate
    if not certificate.feasibility <= FEASIBLE or math.isinf(certificate.objective):
        raise ValueError(
            "x must be feasible to have a gap: its feasibility is "
            f"{certificate.feasibility:.3g}, its nonzeros {np.count_nonzero(point, axis=0)}"
        )
    at = (certificate.objective, certificate.magnitude)
    bounded, interrupted, error = _core.lower_bound(plain, at, gap_tol, run)
    if error is not None:
        raise error
    return replace(certificate, bound=Bound(**bounded, interrupted=interrupted))


def _pencil_optimum(problem: PencilProblem) -> float | None:
    """The optimum from the eigenvalues of the pencil (M, J), if M is positive semidefinite.

    The nonzero eigenvalues of JM are those of RJR for the symmetric root R of M.
    """
    signs = problem.signature.astype(np.float64)
    values, vectors = np.linalg.eigh(problem.matrix)
    if values[0] < -OPTIMALITY_TOLERANCE * max(values[-1], 0.0):
        return None
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    pencil = np.linalg.eigvalsh(root @ (signs[:, np.newaxis] * root))
    if isinstance(problem, HyperbolicEigenvalueProblem):
        if problem.sense == "max":
            return None
        return float(np.abs(pencil).sum())
    positive = int(np.count_nonzero(signs > 0))
    # The number of positive-type eigenvalues is that of positive signs; on the kernel of M they
    # are 0.
    largest = np.maximum(np.sort(pencil)[::-1][:positive], 0.0)
    kept = problem.n_principal if isinstance(problem, HyperbolicPCAProblem) else 0
    return float(largest[kept:].sum())


@dataclass(frozen=True, eq=False)
class BasisFactorization:
    """An orthogonal D as a product ``W_m ⋯ W_2 W_1`` of moves of two rows.

    Iterating yields ``(i, j, V)`` for W_1, W_2, …: replacing rows (i, j) of X by ``V @ X[[i, j]]``
    in this order gives D X.

    Attributes
    ----------
    pairs : ndarray of shape (m, 2)
        Rows i < j of every factor; all m = n(n−1)/2 pairs occur.
    matrices : ndarray of shape (m, 2, 2)
        The matrix V of every factor; at most one is a reflection.
    n : int
        Size of D.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> len(ob.basis_factorization(np.eye(4)))
    6
    >>> factors = ob.basis_factorization([[0.0, 1.0], [1.0, 0.0]])
    >>> factors.matrix()
    array([[0., 1.],
           [1., 0.]])
    >>> factors.apply([[3.0], [5.0]])
    array([[5.],
           [3.]])
    """

    pairs: NDArray[np.int64]
    matrices: FloatArray
    n: int

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[tuple[int, int, FloatArray]]:
        for (i, j), matrix in zip(self.pairs, self.matrices, strict=True):
            yield int(i), int(j), matrix

    def apply(self, x: ArrayLike) -> FloatArray:
        """Compute D x factor by factor.

        Parameters
        ----------
        x : array_like of shape (n, r)
            Any matrix of n rows.

        Returns
        -------
        ndarray of shape (n, r)
            A new array.

        Raises
        ------
        ValueError, TypeError
            If x does not have n rows, or is not finite.
        """
        out = as_float_array("x", x, 2).copy()
        if out.shape[0] != self.n:
            raise ValueError(f"x must have {self.n} rows, got shape {out.shape}")
        for i, j, matrix in self:
            out[[i, j]] = matrix @ out[[i, j]]
        return out

    def matrix(self) -> FloatArray:
        """Return the matrix D, of shape (n, n)."""
        return self.apply(np.eye(self.n))


def basis_factorization(D: ArrayLike) -> BasisFactorization:
    """Write an orthogonal matrix as a product of 2 × 2 rotations and reflections.

    Parameters
    ----------
    D : array_like of shape (n, n)
        The matrix, orthogonal to 1e-8; n ≥ 2.

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
    pairs). Givens rotations reduce Dᵀ to the identity up to a sign, which the last factor takes.

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
