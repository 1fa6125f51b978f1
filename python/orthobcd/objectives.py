"""Smooth objectives f, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ._core import COEFFICIENTS, DATA
from ._internal.checks import (
    Checked,
    DataLike,
    FloatArray,
    as_data,
    as_data_matrix,
    as_float,
    as_float_array,
    as_symmetric,
    by_columns,
    check_size,
    is_sparse,
    magnitude,
)

__all__ = ["GramQuadratic", "LogisticLoss", "Quadratic", "Smooth"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Quadratic(Checked):
    """The smooth objective ``½⟨X, C X D⟩ + ⟨linear, X⟩`` with a dense symmetric C.

    Parameters
    ----------
    C : array_like of shape (n, n)
        Symmetric, of any inertia.
    linear : array_like of shape (n, r), optional
        Linear term; zero by default.
    D : array_like of shape (r, r), optional
        Symmetric; the identity by default.

    Raises
    ------
    ValueError, TypeError
        If an array has the wrong shape, is not finite, C or D is not symmetric, or the largest
        coefficient is neither 0 nor between 1e-120 and 1e120.

    Notes
    -----
    The curvature of a block of rows B with Z = X_B is exact: ``½ tr(C_BB E (Z D Zᵀ) Eᵀ)``
    (OBCD paper, eq. 8 and Lemma C.1). ``C X`` is kept up to date as rows move.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.Quadratic([[2.0, 1.0], [1.0, 3.0]])
    Quadratic(C=<array 2x2>, linear=None, D=None)
    """

    C: FloatArray
    linear: FloatArray | None
    D: FloatArray | None

    def __init__(
        self, C: ArrayLike, linear: ArrayLike | None = None, D: ArrayLike | None = None
    ) -> None:
        matrix = as_symmetric("C", C)
        term = None if linear is None else as_float_array("linear", linear, 2)
        if term is not None and term.shape[0] != matrix.shape[0]:
            raise ValueError(
                f"linear must have as many rows as C ({matrix.shape[0]}), got shape {term.shape}"
            )
        metric = None if D is None else as_symmetric("D", D)
        if term is not None and metric is not None and metric.shape[0] != term.shape[1]:
            r = term.shape[1]
            raise ValueError(f"D must be ({r}, {r}) to match linear, got shape {metric.shape}")
        self._set(C=matrix, linear=term, D=metric)
        self._check_size()

    def _check_size(self) -> None:
        C, linear, D = (
            missing if array is None else magnitude(array)
            for array, missing in ((self.C, 0.0), (self.linear, 0.0), (self.D, 1.0))
        )
        for name, size in (("C", C), ("linear", linear), ("D", D)):
            check_size(name, size, (0.0, COEFFICIENTS[1]))
        check_size("linear" if linear > C * D else "C", max(C * D, linear))

    @property
    def n_rows(self) -> int:
        """Number of rows n of X."""
        return int(self.C.shape[0])

    @property
    def n_columns(self) -> int | None:
        """Number of columns that ``linear`` or ``D`` fixes, or None."""
        for array in (self.linear, self.D):
            if array is not None:
                return int(array.shape[1])
        return None


@dataclass(frozen=True, eq=False, repr=False, init=False)
class GramQuadratic(Checked):
    """The smooth objective ``½·scale·‖A X‖_F²``; the n × n matrix AᵀA is never formed.

    Parameters
    ----------
    A : ndarray or scipy.sparse matrix of shape (m, n)
        Data. Kept by columns: sparse as CSC, dense in Fortran order. What comes that way as float64
        is not copied, and must not be changed during a solve.
    scale : float, default -1.0
        −1 maximises the explained variance, +1 minimises the residual.
    mean : array_like of shape (n,), optional
        Column means to subtract without densifying: A stands for ``A − 1 meanᵀ``.

    Raises
    ------
    ValueError, TypeError
        If A is empty, not two-dimensional, not finite, a broken sparse matrix, or its largest
        magnitude is neither 0 nor between 1e-50 and 1e50; or scale is not finite, or so large or
        small that ``scale·AᵀA`` leaves 1e-120 … 1e120.

    Notes
    -----
    ``W = A X`` (m × r) is kept up to date as rows move; a pair costs the nonzeros of its two
    columns of A times r, whatever n is.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> ob.GramQuadratic(np.ones((4, 3)), scale=2.0)
    GramQuadratic(A=<array 4x3>, scale=2.0, mean=None)
    """

    A: Any
    scale: float
    mean: FloatArray | None

    def __init__(self, A: DataLike, scale: float = -1.0, mean: ArrayLike | None = None) -> None:
        data, size = as_data_matrix(A)
        scale = as_float("scale", scale)
        check_size("scale", abs(scale) * size**2)
        means = None if mean is None else as_float_array("mean", mean, 1)
        if means is not None:
            if means.shape[0] != data.shape[1]:
                raise ValueError(f"mean must have {data.shape[1]} entries, got {means.shape[0]}")
            check_size("mean", magnitude(means), (0.0, DATA[1]))
        self._set(A=data if is_sparse(data) else by_columns(data), scale=scale, mean=means)

    @property
    def n_rows(self) -> int:
        """Number of rows n of X (columns of A)."""
        return int(self.A.shape[1])

    @property
    def n_columns(self) -> int | None:
        """None: any number of columns is allowed."""
        return None


@dataclass(frozen=True, eq=False, repr=False, init=False)
class LogisticLoss(Checked):
    """``f(X) = (1/N) Σ log(1 + exp(−y_i a_iᵀ X b_i))``, for `VRJOBCD`.

    Parameters
    ----------
    A : array_like of shape (N, n)
        Left factors a_i.
    B : array_like of shape (N, r)
        Right factors b_i.
    labels : array_like of shape (N,)
        y_i, +1 or −1.

    Raises
    ------
    ValueError, TypeError
        If the shapes do not fit, an entry is not finite, the largest magnitude of A or B is neither
        0 nor between 1e-50 and 1e50, or a label is not ±1.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> ob.LogisticLoss(np.ones((4, 3)), np.ones((4, 2)), [1, -1, 1, 1])
    LogisticLoss(A=<array 4x3>, B=<array 4x2>, labels=<array 4>)
    """

    A: FloatArray
    B: FloatArray
    labels: FloatArray

    def __init__(self, A: ArrayLike, B: ArrayLike, labels: ArrayLike) -> None:
        left, right = as_data("A", A), as_data("B", B)
        signs = as_float_array("labels", labels, 1)
        if right.shape[0] != left.shape[0]:
            raise ValueError(f"B must have {left.shape[0]} rows as A has, got shape {right.shape}")
        if signs.shape[0] != left.shape[0] or not (np.abs(signs) == 1.0).all():
            raise ValueError(f"labels must hold {left.shape[0]} values of +1 and -1")
        self._set(A=left, B=right, labels=signs)

    @property
    def n_rows(self) -> int:
        """Number of rows n of X."""
        return int(self.A.shape[1])

    @property
    def n_columns(self) -> int:
        """Number of columns r of X."""
        return int(self.B.shape[1])


Smooth: TypeAlias = Quadratic | GramQuadratic
"""An objective whose pairs have an exact model."""
