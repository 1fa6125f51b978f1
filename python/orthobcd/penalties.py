"""Penalties and sparsity constraints h: ``solve`` minimises ``f(X) + h(X)``."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ._core import COEFFICIENTS, implies_nonnegative
from ._internal.checks import (
    Checked,
    FloatArray,
    Integers,
    Interval,
    as_bool,
    as_float,
    as_float_array,
    as_int,
    check_size,
    items_of,
    unmasked,
)

__all__ = [
    "L0",
    "L1",
    "MCP",
    "SCAD",
    "Box",
    "CappedL1",
    "Cardinality",
    "NoPenalty",
    "NonNegative",
    "Penalty",
    "PiecewiseQuadratic",
    "RowSparse",
    "Separable",
    "Sum",
]


class Separable(Checked):
    """A separable penalty ``h(X) = Σ h_ij(X_ij)``; ``h1 + h2`` is the sum of two.

    A subclass of a penalty is that penalty. A subclass of `Separable` itself has the attributes
    ``breakpoints`` and ``pieces`` of a `PiecewiseQuadratic`.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.L1(0.1) + ob.NonNegative()
    L1(lam=0.1) + NonNegative()
    >>> isinstance(ob.L1(0.1), ob.Separable)
    True
    """

    # The fields by which the core reads the penalty; subclasses inherit them.
    _kind: ClassVar[str] = "pieces"

    def __add__(self, other: Separable) -> Separable:
        """The sum of two penalties; `NoPenalty` is the neutral element."""
        if not isinstance(other, Separable):
            return NotImplemented
        terms = [h for h in (*_terms(self), *_terms(other)) if not isinstance(h, NoPenalty)]
        return Sum(*terms) if len(terms) > 1 else (terms or [NoPenalty()])[0]

    @property
    def nonnegative(self) -> bool:
        """True if h is infinite at every negative entry, and finite at 0."""
        return implies_nonnegative(self)


class _Parametric(Separable):
    """A penalty whose fields are numbers, which the core checks for their ranges."""

    def __post_init__(self) -> None:
        # A dataclass that is a subclass of a penalty may have other fields of its own.
        own = next(one for one in type(self).__mro__ if "_kind" in vars(one))
        for field in fields(own):
            value = getattr(self, field.name)
            infinite = isinstance(self, Box) and isinstance(value, float) and np.isinf(value)
            self._set(**{field.name: value if infinite else as_float(field.name, value)})
        implies_nonnegative(self)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class L0(Separable):
    """The penalty ``Σ lam_ij [X_ij ≠ 0]``: the number of nonzero entries times ``lam``.

    Parameters
    ----------
    lam : float or array_like of shape (n, r)
        Weight of a nonzero entry: one for all entries, or one for each; nonnegative, at most
        1e120. An array of equal weights gives the same result as the number, bit for bit.

    Raises
    ------
    ValueError, TypeError
        If ``lam`` is not a nonnegative number or array.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.L0(2.0)
    L0(lam=2.0)
    """

    _kind: ClassVar[str] = "l0"
    lam: float | FloatArray

    def __init__(self, lam: float | ArrayLike) -> None:
        self._set(lam=_weight("lam", lam))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class L1(Separable):
    """The penalty ``Σ lam_ij |X_ij|``.

    Parameters
    ----------
    lam : float or array_like of shape (n, r)
        One weight for all entries, or one for each; nonnegative, at most 1e120. An array of equal
        weights gives the same result as the number, bit for bit.

    Raises
    ------
    ValueError, TypeError
        If ``lam`` is not a nonnegative number or array.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> ob.L1(np.ones((5, 2)))
    L1(lam=<array 5x2>)
    """

    _kind: ClassVar[str] = "l1"
    lam: float | FloatArray

    def __init__(self, lam: float | ArrayLike) -> None:
        self._set(lam=_weight("lam", lam))


@dataclass(frozen=True, repr=False)
class NonNegative(Separable):
    """The constraint ``X ≥ 0``, kept exactly.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.NonNegative()
    NonNegative()
    """

    _kind: ClassVar[str] = "nonnegative"


@dataclass(frozen=True, repr=False)
class NoPenalty(Separable):
    """No penalty: a smooth problem.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.NoPenalty()
    NoPenalty()
    """

    _kind: ClassVar[str] = "none"


@dataclass(frozen=True, repr=False)
class CappedL1(_Parametric):
    """The penalty ``Σ lam · min(|X_ij|, threshold)``: ℓ1 that does not shrink large entries.

    Parameters
    ----------
    lam : float
        Slope at zero; nonnegative, at most 1e120, as is ``lam·threshold``.
    threshold : float
        Magnitude above which the penalty is constant; positive, at most 1e120.

    Raises
    ------
    ValueError, TypeError
        If an argument is not a number within its limits.

    Notes
    -----
    T. Zhang, "Analysis of multi-stage convex relaxation for sparse regularization", J. Mach. Learn.
    Res. 11 (2010).

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.CappedL1(2.0, threshold=0.1)
    CappedL1(lam=2.0, threshold=0.1)
    """

    _kind: ClassVar[str] = "capped_l1"
    lam: float
    threshold: float


@dataclass(frozen=True, repr=False)
class MCP(_Parametric):
    """The minimax concave penalty: ``lam·|x| − x²/(2·gamma)`` up to ``gamma·lam``, then constant.

    Parameters
    ----------
    lam : float
        Slope at zero; positive, at most 1e120, as is the largest value ``½·gamma·lam²``.
    gamma : float
        Inverse of the concavity; positive, at most 1e120.

    Raises
    ------
    ValueError, TypeError
        If an argument is not a number within its limits.

    Notes
    -----
    C.-H. Zhang, "Nearly unbiased variable selection under minimax concave penalty", Ann. Statist.
    38 (2010), eq. 2.1.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.MCP(0.2, gamma=2.0)
    MCP(lam=0.2, gamma=2.0)
    """

    _kind: ClassVar[str] = "mcp"
    lam: float
    gamma: float


@dataclass(frozen=True, repr=False)
class SCAD(_Parametric):
    """Smoothly clipped absolute deviation: ℓ1 up to ``lam``, constant beyond ``a·lam``.

    In between h is ``(2·a·lam·|x| − x² − lam²)/(2(a − 1))``, which joins both parts smoothly.

    Parameters
    ----------
    lam : float
        Slope at zero; positive, at most 1e120, as is the largest value ``½·(a + 1)·lam²``.
    a : float, default 3.7
        The penalty is constant beyond ``a·lam``; above 2, at most 1e120.

    Raises
    ------
    ValueError, TypeError
        If an argument is not a number within its limits.

    Notes
    -----
    J. Fan and R. Li, "Variable selection via nonconcave penalized likelihood and its oracle
    properties", J. Amer. Statist. Assoc. 96 (2001), eq. 2.7, which recommends a = 3.7.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.SCAD(0.1)
    SCAD(lam=0.1, a=3.7)
    """

    _kind: ClassVar[str] = "scad"
    lam: float
    a: float = 3.7


@dataclass(frozen=True, repr=False)
class Box(_Parametric):
    """The constraint ``lower ≤ X ≤ upper``, kept exactly.

    Parameters
    ----------
    lower, upper : float
        Bounds of every entry, lower < upper; one or both may be infinite.

    Raises
    ------
    ValueError, TypeError
        If a bound is not a number, or ``lower`` is not below ``upper``.

    Notes
    -----
    Without ``x0`` a solve on the Stiefel manifold searches for a feasible start by descents of the
    squared distance from the box. If the descents find no feasible point, the solve raises an error
    that asks for a feasible ``x0``; there may be none. With a mixed signature the identity must be
    in the box, or ``x0`` must be given.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.Box(-0.5, 0.5)
    Box(lower=-0.5, upper=0.5)
    """

    _kind: ClassVar[str] = "interval"
    lower: float
    upper: float


@dataclass(frozen=True, eq=False, repr=False, init=False)
class PiecewiseQuadratic(Separable):
    """The penalty ``Σ φ(X_ij)`` with ``φ(x) = a + b·x + ½·c·x²`` between adjacent breakpoints.

    Parameters
    ----------
    breakpoints : array_like of shape (k,)
        Ascending; may be empty.
    pieces : array_like of shape (k + 1, 3)
        (a, b, c) of each piece, in ascending order of x; (inf, 0, 0) where x is not allowed.
        Magnitudes up to 1e120.

    Raises
    ------
    ValueError, TypeError
        If the arrays are not valid, or no piece is finite.

    Notes
    -----
    φ may jump; its value at a breakpoint is the lower of the two. Every pair of rows is solved to
    global optimality for any pieces.

    Examples
    --------
    Huber's function of width 0.1:

    >>> import orthobcd as ob
    >>> ob.PiecewiseQuadratic([-0.1, 0.1], [(-0.05, -1, 0), (0, 0, 10), (-0.05, 1, 0)])
    PiecewiseQuadratic(breakpoints=<array 2>, pieces=<array 3x3>)
    """

    breakpoints: FloatArray
    pieces: FloatArray

    def __init__(self, breakpoints: ArrayLike, pieces: ArrayLike) -> None:
        levels = np.asarray(unmasked(breakpoints))
        levels = as_float_array("breakpoints", levels, 1) if levels.size else np.empty(0)
        rows = np.asarray(unmasked(pieces))
        if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "fiu":
            raise ValueError(f"pieces must be real, of shape (k + 1, 3), got shape {rows.shape}")
        self._set(breakpoints=levels, pieces=rows.astype(np.float64))
        implies_nonnegative(self)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Sum(Separable):
    """The sum of separable penalties, the result of ``h1 + h2``.

    Parameters
    ----------
    *terms : Separable
        Two or more penalties.

    Raises
    ------
    ValueError, TypeError
        If a term is not a separable penalty, or the constraints of the terms exclude each other.

    Examples
    --------
    >>> import orthobcd as ob
    >>> h = ob.L0(0.2) + ob.NonNegative()
    >>> h, h.nonnegative
    (L0(lam=0.2) + NonNegative(), True)
    """

    _kind: ClassVar[str] = "sum"
    terms: tuple[Separable, ...]

    def __init__(self, *terms: Separable) -> None:
        for term in terms:
            if not isinstance(term, Separable):
                raise TypeError(f"terms must be separable penalties, got {type(term).__name__}")
        self._set(terms=tuple(one for term in terms for one in _terms(term)))
        implies_nonnegative(self)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.terms))


Rows: TypeAlias = Sequence[int] | Sequence[Sequence[int]]
"""Rows of X for all columns, or a sequence of rows for each column."""


def _as_rows(name: str, value: Any) -> tuple[Any, ...]:
    """Row numbers, or a tuple of row numbers for each column."""
    if value is None:
        return ()
    items = items_of(value)
    if items is None:
        raise TypeError(f"{name} must be a sequence of rows, or one for each column, got {value!r}")
    each = [items_of(one) for one in items]
    if all(rows is None for rows in each):
        return tuple(as_int(name, i, 0) for i in items)
    if isinstance(value, Set) or None in each:
        raise TypeError(f"{name} must hold rows, or a sequence of rows for each column, not both")
    return tuple(tuple(as_int(name, i, 0) for i in rows or ()) for rows in each)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Cardinality(Checked):
    """The constraint that X has at most ``count`` nonzero entries, in all or per column.

    Parameters
    ----------
    count : int or sequence of int
        Largest number of nonzero entries: of X, or of each of its r columns; at least 1 per column.
    nonnegative : bool, default False
        Whether X ≥ 0 is required too.
    include : sequence of int or sequence of sequences of int, optional
        Rows in the support of every column, or a sequence of rows for each column. An included
        entry counts towards ``count``, even if its best value is zero.
    exclude : sequence of int or sequence of sequences of int, optional
        Rows that are zero in every column, or a sequence of rows for each column.

    Raises
    ------
    ValueError, TypeError
        If an argument is not a valid number or sequence.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((50, 30))
    >>> problem = ob.SparsePCAProblem(A, 3, ob.Cardinality([5, 5, 3], exclude=[0]))
    >>> np.count_nonzero(ob.solve(problem, max_work=0.01).x, axis=0).tolist()
    [5, 5, 3]
    >>> ob.Cardinality([2, 2]).check(n=4, r=2)
    """

    count: int | tuple[int, ...]
    nonnegative: bool
    include: tuple[Any, ...]
    exclude: tuple[Any, ...]

    def __init__(
        self,
        count: int | Sequence[int] | Integers,
        *,
        nonnegative: bool = False,
        include: Rows | None = None,
        exclude: Rows | None = None,
    ) -> None:
        each = None if isinstance(count, Set) else items_of(count)
        whole = as_int("count", count, 1) if each is None else None
        self._set(
            count=tuple(as_int("count", one, 1) for one in each or ()) if whole is None else whole,
            nonnegative=as_bool("nonnegative", nonnegative),
            include=_as_rows("include", include),
            exclude=_as_rows("exclude", exclude),
        )

    def check(self, n: int, r: int) -> None:
        """Check that the constraint fits n × r matrices.

        Parameters
        ----------
        n, r : int
            Numbers of rows and columns of X.

        Raises
        ------
        ValueError
            If ``count``, ``include`` or ``exclude`` does not fit the shape.
        """
        if isinstance(self.count, tuple):
            if len(self.count) != r:
                raise ValueError(
                    f"count must be one number for each of {r} columns, got {len(self.count)}"
                )
            if max(self.count) > n:
                raise ValueError(
                    f"count must be at most n = {n} in every column, got {max(self.count)}"
                )
        elif not r <= self.count <= n * r:
            raise ValueError(f"count must be between r = {r} and {n * r}, got {self.count}")
        for name, rows in (("include", self.include), ("exclude", self.exclude)):
            each = bool(rows) and isinstance(rows[0], tuple)
            if each and len(rows) != r:
                raise ValueError(
                    f"{name} must be a sequence for each of {r} columns, got {len(rows)}"
                )
            flat = [i for one in rows for i in one] if each else rows
            if flat and max(flat) >= n:
                raise ValueError(f"{name} must hold rows below {n}, got {max(flat)}")

    def __add__(self, other: NonNegative) -> Cardinality:
        """The constraint with X ≥ 0 too; only `NonNegative` can be added."""
        if isinstance(other, NonNegative):
            return replace(self, nonnegative=True)
        raise TypeError(f"Cardinality adds to NonNegative only, got {type(other).__name__}")

    __radd__ = __add__


@dataclass(frozen=True, eq=False, repr=False)
class RowSparse(Checked):
    """Few nonzero rows: ``h(X) = lam`` times their number, or at most ``count`` of them.

    A zero row leaves its feature out of all components. On the nonzero rows any orthonormal basis
    of the leading eigenvectors is optimal.

    Parameters
    ----------
    lam : float, optional
        Weight of a nonzero row, from 0 to 1e120.
    count : int, optional
        Largest number of nonzero rows, at least r; instead of ``lam``.

    Raises
    ------
    ValueError, TypeError
        If an argument is not a valid number, or both or none of the arguments are given.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((50, 30))
    >>> result = ob.solve(ob.SparsePCAProblem(A, 3, ob.RowSparse(count=8)), max_work=0.01)
    >>> int(np.count_nonzero(np.abs(result.x).sum(axis=1)))
    8
    """

    lam: float | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        if (self.lam is None) == (self.count is None):
            raise ValueError("lam or count must be given, not both")
        if self.lam is not None:
            lam = as_float("lam", self.lam, 0.0)
            check_size("lam", lam, (0.0, COEFFICIENTS[1]))
            self._set(lam=lam)
        self._set(count=Interval(int, 1, optional=True)("count", self.count))


Penalty: TypeAlias = Separable | Cardinality | RowSparse
"""Any of the penalties."""

PenaltyName = Literal["l0", "l1"]


def penalty_of(name: str, lam: float) -> L0 | L1:
    """The penalty with a name and a weight."""
    return L0(lam) if name == "l0" else L1(lam)


def _terms(penalty: Separable) -> tuple[Separable, ...]:
    """The terms of a sum; any other penalty is its only term."""
    return penalty.terms if isinstance(penalty, Sum) else (penalty,)


def _weight(name: str, value: Any) -> float | FloatArray:
    """A checked penalty weight, or an array of weights."""
    weights: float | FloatArray
    if np.ndim(value) == 0:
        scalar = value[()] if isinstance(value, np.ndarray) else value
        weights = as_float(name, scalar, 0.0)
    else:
        weights = as_float_array(name, value, 2)
        if (weights < 0.0).any():
            raise ValueError(f"{name} must be nonnegative, its smallest entry is {weights.min():g}")
    check_size(name, float(np.max(weights)), (0.0, COEFFICIENTS[1]))
    return weights
