"""Problems ``min f(X) + h(X)`` on the Stiefel manifold ``XᵀX = I`` (the case J = I)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from . import _core
from ._internal.checks import (
    Checked,
    DataLike,
    FloatArray,
    Signs,
    as_bool,
    as_data_matrix,
    as_float_array,
    as_int,
    is_sparse,
)
from .data import DENSE_COVARIANCE_LIMIT, Gram, column_means, is_wide
from .objectives import FiniteSum, GramQuadratic, Quadratic, Smooth, SmoothFunction
from .penalties import (
    Cardinality,
    NonNegative,
    NoPenalty,
    Penalty,
    RowSparse,
    Separable,
    Sum,
)


@runtime_checkable
class Problem(Protocol):
    """Protocol of the problems that `orthobcd.solve` and `orthobcd.certify` accept.

    Attributes
    ----------
    smooth : object
        f: a `Quadratic`, `GramQuadratic`, `SmoothFunction`, `FiniteSum` or `LogisticLoss`, or a
        problem that is its own objective.
    penalty : Separable, Cardinality or RowSparse
        h: a separable penalty (`L0`, `L1`, `NonNegative`, `NoPenalty`, …), a sum of separable
        penalties, a `Cardinality` or a `RowSparse`.
    signature : ndarray of int8 of shape (n,), or None
        The diagonal of J; None means J = I with XᵀX = I, the Stiefel manifold.
    shape : (int, int)
        (n, r), the shape of X.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> isinstance(ob.NonnegativePCAProblem(np.eye(3), 2), ob.Problem)
    True
    """

    @property
    def smooth(self) -> Any:
        """The smooth part f."""

    @property
    def penalty(self) -> Penalty:
        """The penalty h."""

    @property
    def signature(self) -> Signs | None:
        """The diagonal of J, or None for XᵀX = I."""

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (n, r) of X."""


def as_problem(value: Any) -> Problem:
    """Returns ``value`` if it is a `Problem`, else raises a TypeError."""
    if not isinstance(value, Problem):
        raise TypeError(
            "problem must be a Problem (with smooth, penalty, signature and shape), "
            f"got {type(value).__name__}"
        )
    return value


def without_trivial_limit(problem: Problem) -> Problem:
    """Drops a `Cardinality` or `RowSparse` that every n × r matrix satisfies.

    Such a limit allows n·r entries, n entries in every column, or n rows, or has ``lam=0``.
    """
    penalty, (n, r) = problem.penalty, problem.shape
    if isinstance(penalty, Cardinality):
        all_entries = penalty.count in (n * r, (n,) * r) and not penalty.exclude
    else:
        all_entries = isinstance(penalty, RowSparse) and (penalty.count == n or penalty.lam == 0.0)
    if not all_entries:
        return problem
    free = NonNegative() if getattr(penalty, "nonnegative", False) else NoPenalty()
    return StiefelProblem(problem.smooth, free, r)


def as_start(x0: Any, names: tuple[str, ...], shape: tuple[int, int]) -> str | FloatArray | None:
    """``x0`` as one of the names of starts or a checked array; None for None."""
    if x0 is None:
        return None
    if isinstance(x0, str):
        if x0 not in names:
            raise ValueError(f"x0 must be an array or one of {', '.join(names)}; got {x0!r}")
        return x0
    array = as_float_array("x0", x0, 2)
    if array.shape != shape:
        raise ValueError(f"x0 must have shape {shape}, got {array.shape}")
    return array


def samples(problem: Problem) -> bool:
    """True if `VRJOBCD` can sample the terms of f."""
    smooth = problem.smooth
    bounded = isinstance(smooth, FiniteSum) and smooth.lipschitz is not None
    return bounded or (isinstance(smooth, FiniteSum) and isinstance(problem.penalty, NoPenalty))


def largest_lam(problem: Problem, n_threads: int | None = 1) -> float:
    """`orthobcd.lam_max` of an ℓ0 or ℓ1 problem."""
    largest = _core.largest_lam(problem, n_threads)
    assert largest is not None
    return largest


def check_problem(
    smooth: Any,
    penalty: Any,
    n_components: Any,
    kinds: tuple[Any, ...] = (Quadratic, GramQuadratic, SmoothFunction, FiniteSum),
) -> int:
    """Checks the parts of a problem; returns the number of components r."""
    if not isinstance(smooth, kinds):
        *first, last = (kind.__name__ for kind in kinds)
        raise TypeError(f"smooth must be {', '.join(first)} or {last}, got {type(smooth).__name__}")
    if not isinstance(penalty, (Separable, Cardinality, RowSparse)):
        raise TypeError(
            "penalty must be separable (L0, L1, NonNegative …), a Cardinality or a RowSparse, "
            f"got {type(penalty).__name__}"
        )
    n = smooth.n_rows
    if n < 2:
        raise ValueError(f"the smooth objective must have at least 2 rows, got n = {n}")
    r = as_int("n_components", n_components, 1, n)
    if smooth.n_columns is not None and smooth.n_columns != r:
        raise ValueError(
            f"n_components must be {smooth.n_columns}, as the objective's data has; got {r}"
        )
    if isinstance(penalty, (Cardinality, RowSparse)):
        name = type(penalty).__name__
        if not isinstance(smooth, (Quadratic, GramQuadratic)):
            raise TypeError(f"smooth must be quadratic for a {name}, got {type(smooth).__name__}")
    if isinstance(penalty, Cardinality):
        penalty.check(n, r)
    elif isinstance(penalty, Separable):
        _core.implies_nonnegative(penalty)  # The core refuses a penalty that it cannot read.
        for term in penalty.terms if isinstance(penalty, Sum) else (penalty,):
            lam = getattr(term, "lam", None)
            if isinstance(lam, np.ndarray) and lam.shape != (n, r):
                raise ValueError(
                    f"lam must be a number or have shape {(n, r)}, got shape {lam.shape}"
                )
    elif not r <= (penalty.count or r) <= n:
        raise ValueError(f"count must be between r = {r} and n = {n}, got {penalty.count}")
    return r


class OnStiefel(Checked):
    """Base class of the problems with XᵀX = I."""

    smooth: Smooth
    n_components: int
    determinant: Literal[1] | None = None

    @property
    def signature(self) -> None:
        """None: XᵀX = I."""
        return None

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (n, r) of X."""
        return self.smooth.n_rows, self.n_components

    def with_penalty(self, penalty: Penalty) -> StiefelProblem:
        """The same problem with another penalty; the objective is shared, not copied.

        Parameters
        ----------
        penalty : Separable, Cardinality or RowSparse
            h.

        Returns
        -------
        StiefelProblem

        Raises
        ------
        ValueError, TypeError
            If the penalty is not one of this problem's kind or shape.
        """
        return StiefelProblem(self.smooth, penalty, self.n_components, self.determinant)


@dataclass(frozen=True, eq=False, repr=False)
class StiefelProblem(OnStiefel):
    """``min f(X) + h(X)`` over n × r matrices with orthonormal columns.

    Parameters
    ----------
    smooth : Quadratic, GramQuadratic, SmoothFunction or FiniteSum
        f.
    penalty : Separable, Cardinality or RowSparse
        h. A `Cardinality` is a constraint, with h = 0. `Cardinality` and `RowSparse` need a
        quadratic f.
    n_components : int
        Number of columns r, 1 ≤ r ≤ n.
    determinant : {1}, optional
        With 1 the feasible set is the rotations, ``det X = 1`` (the group SO(n)). Rotations need
        ``n_components = n``, a penalty other than `Cardinality` and `RowSparse`, and an objective
        other than `FiniteSum`. By default both signs are allowed.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Notes
    -----
    With ``determinant=1`` pairs of rows are only rotated, and a start of determinant −1 is refused.
    The ``block2_gap`` of a certificate is then the largest decrease by a rotation of two rows. For
    X ≥ 0 the rotations are the even permutations, and no move of two rows leads from one to
    another: there only `Auto` moves away from its start.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.StiefelProblem(ob.Quadratic([[-3.0, 0.5], [0.5, -1.0]]), ob.L0(10.0), 1).shape
    (2, 1)

    The rotation nearest to diag(1, −2) in the Frobenius norm:

    >>> nearest = ob.Quadratic([[0.0, 0.0], [0.0, 0.0]], linear=[[-1.0, 0.0], [0.0, 2.0]])
    >>> result = ob.solve(ob.StiefelProblem(nearest, ob.NoPenalty(), 2, determinant=1))
    >>> result.x.round(6) + 0.0
    array([[-1.,  0.],
           [ 0., -1.]])
    """

    smooth: Smooth
    penalty: Penalty
    n_components: int
    determinant: Literal[1] | None = None

    def __post_init__(self) -> None:
        self._set(n_components=check_problem(self.smooth, self.penalty, self.n_components))
        if self.determinant is None:
            return
        number = as_int("determinant", self.determinant, -1)
        if number != 1:
            raise ValueError(f"determinant must be 1 or None, got {number}")
        self._set(determinant=number)
        if self.n_components != self.smooth.n_rows:
            n, r = self.shape
            raise ValueError(f"determinant must be None unless X is square, got shape ({n}, {r})")
        for part in (self.smooth, self.penalty):
            if isinstance(part, (FiniteSum, Cardinality, RowSparse)):
                raise TypeError(f"determinant must be None for a {type(part).__name__}")


def _pca_objective(data: Any, center: bool, free: bool) -> Smooth:
    """``−½‖AX‖²`` (A centred on request), with AᵀA formed where that is cheaper.

    Without a penalty (``free``) a decomposition is all that follows, of AAᵀ if that is smaller, or
    by a few products with sparse data.
    """
    m, n = data.shape
    sparser = free and is_sparse(data) and 4 * data.nnz < n * n
    wide = n > DENSE_COVARIANCE_LIMIT or is_wide(data) or (free and m < n) or sparser
    if wide and not center:
        return GramQuadratic(data)
    if not is_sparse(data):
        data = np.ascontiguousarray(data)
    if wide:
        mean = column_means(data)
        return GramQuadratic(data, -1.0, mean) if is_sparse(data) else GramQuadratic(data - mean)
    covariance = Gram.of_rows(data, center).gram_rows(slice(None))
    return Quadratic(-0.5 * (covariance + covariance.T))


class PCAProblem(OnStiefel):
    """Base class of the two problems that are given by a data matrix A."""

    A: Any
    center: bool
    penalty: Any

    def _build(self, A: DataLike, n_components: int, center: bool) -> None:
        data, _ = as_data_matrix(A)
        center = as_bool("center", center)
        smooth = _pca_objective(data, center, isinstance(self.penalty, NoPenalty))
        # Keeps one copy of A: that by columns, if the objective made one.
        kept = smooth.A if isinstance(smooth, GramQuadratic) and not center else data
        self._set(A=kept, center=center, smooth=smooth)
        self._set(n_components=check_problem(self.smooth, self.penalty, n_components))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SparsePCAProblem(PCAProblem):
    """Sparse PCA of data that is not centred: ``min −½‖AX‖_F² + h(X)`` with ``XᵀX = I``.

    Parameters
    ----------
    A : array_like or scipy.sparse matrix of shape (m, n)
        Data, samples in rows.
    n_components : int
        Number of components r.
    penalty : Separable, Cardinality or RowSparse
        h.
    center : bool, default False
        Subtract the column means first, as the estimators do (sparse data stays sparse).

    Attributes
    ----------
    smooth : Quadratic or GramQuadratic
        The smooth part ``−½‖AX‖²``.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> ob.SparsePCAProblem(np.eye(3), 2, ob.L0(0.1))
    SparsePCAProblem(A=<array 3x3>, n_components=2, penalty=L0(lam=0.1), center=False)
    >>> ob.SparsePCAProblem(np.eye(3), 2, ob.L0(0.1)).with_penalty(ob.Cardinality(2)).penalty.count
    2
    """

    A: Any
    n_components: int
    penalty: Penalty
    center: bool

    def __init__(
        self, A: DataLike, n_components: int, penalty: Penalty, center: bool = False
    ) -> None:
        self._set(penalty=penalty)
        self._build(A, n_components, center)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class NonnegativePCAProblem(PCAProblem):
    """Nonnegative PCA of data that is not centred: ``min −½‖AX‖_F²``, ``XᵀX = I`` and ``X ≥ 0``.

    Parameters
    ----------
    A, n_components, center
        As in `SparsePCAProblem`.

    Attributes
    ----------
    smooth : Quadratic or GramQuadratic
        The smooth part ``−½‖AX‖²``.
    penalty : NonNegative
        The constraint ``X ≥ 0``.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> ob.NonnegativePCAProblem(np.eye(3), 2).penalty
    NonNegative()
    """

    A: Any
    n_components: int
    center: bool

    def __init__(self, A: DataLike, n_components: int, center: bool = False) -> None:
        self._set(penalty=NonNegative())
        self._build(A, n_components, center)
