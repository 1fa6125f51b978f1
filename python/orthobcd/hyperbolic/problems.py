"""Problems over matrices with ``XᵀJX`` fixed, for a signature ``J = diag(±1)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from .._internal.checks import (
    Checked,
    DataLike,
    FloatArray,
    Signs,
    as_choice,
    as_data_matrix,
    as_float,
    as_int,
    as_signature,
    as_symmetric,
    is_sparse,
)
from ..objectives import (
    ByFunction,
    FiniteSum,
    GramQuadratic,
    LogisticLoss,
    Quadratic,
    Smooth,
    SmoothFunction,
)
from ..penalties import Cardinality, NoPenalty, Penalty, RowSparse
from ..problems import Problem, StiefelProblem, check_problem

Sense = Literal["min", "max"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class JOrthogonalProblem(Checked):
    """``min f(X) + h(X)`` over matrices with ``XᵀJX`` fixed, ``J = diag(signature)``.

    Parameters
    ----------
    smooth : Quadratic, GramQuadratic, SmoothFunction, FiniteSum or LogisticLoss
        f. A `LogisticLoss` is solved by `VRJOBCD`.
    signature : array_like of shape (n,)
        The diagonal of J: +1 and −1 in any order. With all signs equal the problem is solved on the
        Stiefel manifold.
    penalty : Separable, default NoPenalty()
        h.
    n_components : int, optional
        Number of columns r; n by default. ``XᵀJX`` is fixed to its value at the start, which is J
        for r = n.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.JOrthogonalProblem(ob.Quadratic(np.eye(3)), [1, 1, -1])
    >>> ob.solve(problem).objective
    1.5
    """

    smooth: Smooth | LogisticLoss
    signature: Signs
    penalty: Penalty
    n_components: int

    def __init__(
        self,
        smooth: Smooth | LogisticLoss,
        signature: ArrayLike,
        penalty: Penalty | None = None,
        n_components: int | None = None,
    ) -> None:
        n = getattr(smooth, "n_rows", None)
        signs = as_signature(signature, n)
        h = NoPenalty() if penalty is None else penalty
        if n_components is None:
            fixed = isinstance(smooth, (LogisticLoss, ByFunction))
            n_components = (smooth.n_columns or n) if fixed else n
        kinds = (Quadratic, GramQuadratic, SmoothFunction, FiniteSum, LogisticLoss)
        r = check_problem(smooth, h, n_components, kinds)
        if isinstance(h, (Cardinality, RowSparse)) and signs.min() < 0:
            name = type(h).__name__
            raise TypeError(f"penalty must not be a {name} where the signature has a -1")
        self._set(smooth=smooth, signature=signs, penalty=h, n_components=r)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (n, r) of X."""
        return int(self.signature.size), self.n_components


class PencilProblem(Checked):
    """Base class of problems ``± tr(W XᵀMX)`` over ``XᵀJX = J``, W diagonal, for a pencil (M, J).

    Attributes
    ----------
    smooth : Quadratic
        The objective f.
    matrix : ndarray of shape (n, n)
        The symmetric matrix M.
    """

    signature: Signs
    smooth: Quadratic
    matrix: FloatArray

    def _signs(self, name: str, n: int, signature: ArrayLike) -> Signs:
        if n < 2:
            raise ValueError(f"{name} must have at least 2 columns, got {n}")
        return as_signature(signature, n)

    @property
    def penalty(self) -> Penalty:
        """`NoPenalty`."""
        return NoPenalty()

    @property
    def weights(self) -> FloatArray:
        """The diagonal of W; here all 1."""
        return np.ones(self.n_components)

    @property
    def n_components(self) -> int:
        """Number of columns of X: n, as X is square."""
        return int(self.signature.size)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (n, n) of X."""
        return self.n_components, self.n_components


@dataclass(frozen=True, eq=False, repr=False, init=False)
class HyperbolicEigenvalueProblem(PencilProblem):
    """The pencil (AᵀA, J) of data that is not centred: ``min tr(XᵀMX)`` over ``XᵀJX = J``.

    M is ``AᵀA + ridge·I``.

    Parameters
    ----------
    A : ndarray or scipy.sparse matrix of shape (m, n)
        Data, samples in rows.
    signature : array_like of shape (n,)
        +1 and −1 in any order.
    sense : {"min", "max"}, default "min"
        Minimise or maximise. "min" has the infimum ``Σ|eig(J(AᵀA + ridge·I))|``. "max" is the
        problem of the JOBCD paper; it is unbounded for every nonzero A and mixed signature, and a
        solve ends with the status ``UNBOUNDED``.
    ridge : float, default 0.0
        Number added to the diagonal of AᵀA.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Notes
    -----
    The infimum is finite iff ``AᵀA + ridge·I − λJ`` is positive semidefinite for some λ (Liang, Li
    and Bai, Linear Algebra Appl. 438, 2013). For a positive semidefinite ``AᵀA + ridge·I`` it is
    attained iff J is nonsingular on the kernel of that matrix. A solve first calls
    `well_posedness`, unless this needs an eigendecomposition that takes more than ``max_time``. If
    there is no minimum, it logs a warning and ends with the status ``UNBOUNDED`` or ``DIVERGED``.

    ``smooth`` is f = ± tr(Xᵀ(AᵀA + ridge·I)X), ``matrix`` is AᵀA + ridge·I.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.HyperbolicEigenvalueProblem(np.diag([2.0, 1.0]), [1, -1])
    >>> ob.solve(problem).objective
    5.0
    """

    A: Any
    signature: Signs
    sense: Sense
    ridge: float

    def __init__(
        self, A: DataLike, signature: ArrayLike, sense: Sense = "min", ridge: float = 0.0
    ) -> None:
        data, _ = as_data_matrix(A)
        data = data if is_sparse(data) else np.ascontiguousarray(data)
        signs = self._signs("A", int(data.shape[1]), signature)
        as_choice("sense", sense, get_args(Sense))
        ridge = as_float("ridge", ridge)
        gram = data.T @ data
        gram = np.asarray(gram.todense() if hasattr(gram, "todense") else gram, dtype=np.float64)
        gram = 0.5 * (gram + gram.T)
        gram[np.diag_indices_from(gram)] += ridge
        smooth = Quadratic((2.0 if sense == "min" else -2.0) * gram)
        self._set(A=data, signature=signs, sense=sense, ridge=ridge, matrix=gram, smooth=smooth)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class HyperbolicPCAProblem(PencilProblem):
    """Hyperbolic PCA of moments that are not centred: ``min tr(W XᵀJCJX)`` over ``XᵀJX = J``.

    The problem is bounded. W is the diagonal 0/1 matrix that selects the residual columns: the last
    p − n_principal of the p columns of positive sign. The first ``n_principal`` of these and all
    columns of negative sign are the principal directions. The optimum is the sum of the
    p − n_principal smallest positive-type eigenvalues of the pencil (JCJ, J).

    Parameters
    ----------
    C : array_like of shape (n, n)
        Symmetric positive semidefinite second-moment matrix.
    signature : array_like of shape (n,)
        +1 and −1 in any order; the hyperboloid model has one −1.
    n_principal : int
        Number of principal directions of positive sign, 0 ≤ n_principal ≤ p.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Notes
    -----
    ``smooth`` is f = tr(W XᵀJCJX), ``matrix`` is JCJ, ``weights`` the diagonal of W.
    The principal columns are determined only up to rotations and boosts that leave the residual
    columns unchanged.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> data = np.diag([3.0, 2.0, 1.0])
    >>> problem = ob.hyperbolic.HyperbolicPCAProblem(data, [1, 1, -1], n_principal=1)
    >>> problem.n_components, ob.solve(problem).objective
    (3, 2.0)
    """

    C: FloatArray
    signature: Signs
    n_principal: int

    def __init__(self, C: ArrayLike, signature: ArrayLike, n_principal: int) -> None:
        moments = as_symmetric("C", C)
        signs = self._signs("C", int(moments.shape[1]), signature)
        kept = as_int("n_principal", n_principal, 0)
        positive = np.flatnonzero(signs > 0)
        if kept > positive.size:
            raise ValueError(
                f"n_principal must be at most the number of positive signs ({positive.size}), "
                f"got {kept}"
            )
        weights = np.zeros(signs.size)
        weights[positive[kept:]] = 1.0
        matrix = signs[:, None] * moments * signs[None, :]
        smooth = Quadratic(2.0 * matrix, D=np.diag(weights))
        self._set(C=moments, signature=signs, n_principal=kept, matrix=matrix, smooth=smooth)

    @property
    def weights(self) -> FloatArray:
        """The diagonal of W."""
        metric = self.smooth.D
        assert metric is not None
        return np.diag(metric).copy()


def on_stiefel(problem: Problem) -> Problem:
    """The problem on the Stiefel manifold if all signs are equal, as then ``XᵀJX = ±XᵀX``.

    Returns ``problem`` itself if the signs are mixed, or f is a sum for `VRJOBCD`.
    """
    signs, smooth = problem.signature, problem.smooth
    fits = isinstance(smooth, (Quadratic, GramQuadratic, SmoothFunction))
    if signs is None or not fits or (signs != signs[0]).any():
        return problem
    return StiefelProblem(smooth, problem.penalty, problem.shape[1])
