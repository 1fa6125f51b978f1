"""Penalties h, each a sum over the entries of X: ``solve`` minimises ``f(X) + h(X)``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ._core import COEFFICIENTS
from ._internal.checks import (
    Checked,
    FloatArray,
    as_bool,
    as_float,
    as_float_array,
    as_int,
    as_optional_int,
    check_size,
)

__all__ = ["L0", "L1", "Cardinality", "NoPenalty", "NonNegative", "Penalty", "RowSparse"]


@dataclass(frozen=True, eq=False, repr=False)
class L0(Checked):
    """The penalty ``lam · ‖X‖₀``: the number of nonzero entries times ``lam``.

    Parameters
    ----------
    lam : float
        Price of one nonzero entry; nonnegative, at most 1e120.

    Raises
    ------
    ValueError, TypeError
        If ``lam`` is not such a number.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.L0(2.0)
    L0(lam=2.0)
    """

    lam: float

    def __post_init__(self) -> None:
        lam = as_float("lam", self.lam, minimum=0.0)
        check_size("lam", lam, (0.0, COEFFICIENTS[1]))
        self._set(lam=lam)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class L1(Checked):
    """The penalty ``Σ lam_ij |X_ij|``.

    Parameters
    ----------
    lam : float or array_like of shape (n, r)
        One weight for all entries, or a weight each; nonnegative, at most 1e120.

    Raises
    ------
    ValueError, TypeError
        If ``lam`` is not such a number or array.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> ob.L1(np.ones((5, 2)))
    L1(lam=<array 5x2>)
    """

    lam: float | FloatArray

    def __init__(self, lam: float | ArrayLike) -> None:
        self._set(lam=_weight("lam", lam))


@dataclass(frozen=True)
class NonNegative:
    """The constraint ``X ≥ 0``, kept exactly.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.NonNegative()
    NonNegative()
    """


@dataclass(frozen=True)
class NoPenalty:
    """No penalty: a smooth problem.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.NoPenalty()
    NoPenalty()
    """


Rows: TypeAlias = Sequence[int] | Sequence[Sequence[int]]
"""Rows of X for all columns, or a sequence of rows for each."""


def _as_rows(name: str, value: Any) -> tuple[Any, ...]:
    """Row numbers, or a tuple of row numbers for each column."""
    if value is None:
        return ()
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
        raise TypeError(f"{name} must be a sequence of rows, or one for each column, got {value!r}")
    nested = [isinstance(one, (Sequence, np.ndarray)) and np.ndim(one) > 0 for one in value]
    if any(nested) and not all(nested):
        raise TypeError(f"{name} must hold rows, or a sequence of rows for each column, not both")
    if any(nested):
        return tuple(tuple(as_int(name, i, 0) for i in rows) for rows in value)
    return tuple(as_int(name, i, 0) for i in value)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Cardinality(Checked):
    """The constraint that X has few nonzero entries, in all or in every column.

    Parameters
    ----------
    count : int or sequence of int
        Most nonzero entries: of X, or of each of its r columns, each at least 1.
    nonnegative : bool, default False
        Whether X ≥ 0 as well.
    include : sequence of int or sequence of sequences of int, optional
        Rows that belong to the support of every column, or of each: they take some of the budget,
        whatever their best values, which can be zero.
    exclude : sequence of int or sequence of sequences of int, optional
        Rows that are zero in every column, or in each.

    Raises
    ------
    ValueError, TypeError
        If an argument is not such a number or sequence.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((50, 30))
    >>> problem = ob.SparsePCAProblem(A, 3, ob.Cardinality([5, 5, 3], exclude=[0]))
    >>> np.count_nonzero(ob.solve(problem, max_work=0.01).x, axis=0).tolist()
    [5, 5, 3]
    """

    count: int | tuple[int, ...]
    nonnegative: bool
    include: tuple[Any, ...]
    exclude: tuple[Any, ...]

    def __init__(
        self,
        count: int | Sequence[int],
        *,
        nonnegative: bool = False,
        include: Rows | None = None,
        exclude: Rows | None = None,
    ) -> None:
        several = isinstance(count, (Sequence, np.ndarray)) and np.ndim(count) == 1
        checked = (
            tuple(as_int("count", one, 1) for one in np.asarray(count).tolist())
            if several
            else as_int("count", count, 1)
        )
        self._set(
            count=checked,
            nonnegative=as_bool("nonnegative", nonnegative),
            include=_as_rows("include", include),
            exclude=_as_rows("exclude", exclude),
        )

    def check(self, n: int, r: int) -> None:
        """Refuse what does not fit to n × r matrices."""
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


@dataclass(frozen=True, eq=False, repr=False)
class RowSparse(Checked):
    """Few nonzero rows: at a price each, ``h(X) = lam`` times their number, or at most ``count``.

    Whole features are left out of all components. On the rows that are left any orthonormal
    basis of the leading eigenvectors is optimal.

    Parameters
    ----------
    lam : float, optional
        Price, nonnegative and finite.
    count : int, optional
        Most nonzero rows, at least r; instead of ``lam``.

    Raises
    ------
    ValueError, TypeError
        If an argument is not such a number, or not exactly one is given.

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
            lam = as_float("lam", self.lam, minimum=0.0)
            check_size("lam", lam, (0.0, COEFFICIENTS[1]))
            self._set(lam=lam)
        self._set(count=as_optional_int("count", self.count, 1))


Penalty: TypeAlias = L0 | L1 | NonNegative | NoPenalty | Cardinality | RowSparse
"""Any of the penalties."""


def _weight(name: str, value: Any) -> float | FloatArray:
    weights: float | FloatArray
    if np.ndim(value) == 0:
        weights = as_float(
            name, value if not isinstance(value, np.ndarray) else value[()], minimum=0.0
        )
    else:
        weights = as_float_array(name, value, 2)
        if (weights < 0.0).any():
            raise ValueError(f"{name} must be nonnegative, its smallest entry is {weights.min():g}")
    check_size(name, float(np.max(weights)), (0.0, COEFFICIENTS[1]))
    return weights
