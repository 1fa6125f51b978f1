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
    check_size,
)

__all__ = ["L0", "L1", "Cardinality", "NoPenalty", "NonNegative", "Penalty"]


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


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Cardinality(Checked):
    """The constraint that X has few nonzero entries, in all or in every column.

    Parameters
    ----------
    count : int or sequence of int
        Most nonzero entries: of X, or of each of its r columns.
    nonnegative : bool, default False
        Whether X ≥ 0 as well.

    Raises
    ------
    ValueError, TypeError
        If ``count`` is not such a number or sequence.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.Cardinality([5, 5, 3]).count
    (5, 5, 3)
    """

    count: int | tuple[int, ...]
    nonnegative: bool

    def __init__(self, count: int | Sequence[int], *, nonnegative: bool = False) -> None:
        several = isinstance(count, (Sequence, np.ndarray)) and np.ndim(count) == 1
        checked = (
            tuple(as_int("count", one, 1) for one in np.asarray(count).tolist())
            if several
            else as_int("count", count, 1)
        )
        self._set(count=checked, nonnegative=as_bool("nonnegative", nonnegative))


Penalty: TypeAlias = L0 | L1 | Cardinality | NonNegative | NoPenalty
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
