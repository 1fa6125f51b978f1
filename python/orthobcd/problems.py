"""Smooth objectives, penalties and problems: frozen dataclasses, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ._checks import (
    FloatArray,
    as_bool,
    as_data,
    as_float,
    as_float_array,
    as_int,
    check_size,
    check_sparse,
    is_sparse,
)
from ._core import COEFFICIENTS, DATA
from ._moments import Moments, column_means

SYMMETRY_TOLERANCE = 1e-12
"""A matrix counts as symmetric when ``max |C − Cᵀ|`` is at most this times ``max |C|``
(rounding of a product such as ``A.T @ A``); it is then used as ``(C + Cᵀ)/2``."""

DENSE_COVARIANCE_LIMIT = 4096
"""`SparsePCAProblem` and `NonnegativePCAProblem` form the n × n matrix ``AᵀA`` up to this n
(128 MiB) and work from ``A`` beyond it."""

WIDE_DATA_RATIO = 8
"""They also work from ``A`` when it is dense and n is at least this times its number of rows: two
products with ``A`` are then much cheaper than one with ``AᵀA``."""


def _symmetric(name: str, value: Any) -> FloatArray:
    matrix = as_float_array(name, value, 2)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be square, got shape {matrix.shape}")
    asymmetry = float(np.abs(matrix - matrix.T).max())
    if asymmetry > SYMMETRY_TOLERANCE * float(np.abs(matrix).max()):
        raise ValueError(f"{name} must be symmetric, max |{name} − {name}ᵀ| is {asymmetry:.3g}")
    return matrix if asymmetry == 0.0 else 0.5 * (matrix + matrix.T)


@dataclass(frozen=True, eq=False)
class Quadratic:
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
    """

    C: FloatArray
    linear: FloatArray | None = None
    D: FloatArray | None = None

    def __post_init__(self) -> None:
        C = _symmetric("C", self.C)
        object.__setattr__(self, "C", C)
        if self.linear is not None:
            linear = as_float_array("linear", self.linear, 2)
            if linear.shape[0] != C.shape[0]:
                raise ValueError(
                    f"linear must have as many rows as C ({C.shape[0]}), got shape {linear.shape}"
                )
            object.__setattr__(self, "linear", linear)
        if self.D is not None:
            D = _symmetric("D", self.D)
            if self.linear is not None and D.shape[0] != self.linear.shape[1]:
                raise ValueError(
                    f"D must be ({self.linear.shape[1]}, {self.linear.shape[1]}) to match linear, "
                    f"got shape {D.shape}"
                )
            object.__setattr__(self, "D", D)
        self._check_size()

    def _check_size(self) -> None:
        C, linear, D = (
            missing if array is None else float(np.abs(array).max())
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


@dataclass(frozen=True, eq=False)
class GramQuadratic:
    """The smooth objective ``½·scale·‖A X‖_F²``; the n × n matrix AᵀA is never formed.

    Parameters
    ----------
    A : ndarray or scipy.sparse matrix of shape (m, n)
        Data. Sparse data is kept as CSC.
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
    """

    A: Any
    scale: float = -1.0
    mean: FloatArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "A", _data(self.A))
        object.__setattr__(self, "scale", as_float("scale", self.scale))
        size = float(np.abs(self.A.data if is_sparse(self.A) else self.A).max(initial=0.0))
        check_size("scale", abs(self.scale) * size**2)
        if self.mean is not None:
            mean = as_float_array("mean", self.mean, 1)
            if mean.shape[0] != self.A.shape[1]:
                raise ValueError(f"mean must have {self.A.shape[1]} entries, got {mean.shape[0]}")
            check_size("mean", float(np.abs(mean).max()), (0.0, DATA[1]))
            object.__setattr__(self, "mean", mean)

    @property
    def n_rows(self) -> int:
        """Number of rows n of X (columns of A)."""
        return int(self.A.shape[1])

    @property
    def n_columns(self) -> int | None:
        """None: any number of columns is allowed."""
        return None


def _data(value: Any) -> Any:
    """A data matrix: finite float64, dense C-contiguous or canonical CSC."""
    if not is_sparse(value):
        return as_data("A", value)
    if value.ndim != 2:
        raise ValueError(f"A must have 2 dimension(s), got shape {value.shape}")
    if 0 in value.shape:
        raise ValueError(f"A must not be empty, got shape {value.shape}")
    if np.dtype(value.dtype).kind not in "fiub":
        raise TypeError(f"A must be real and numeric, got dtype {value.dtype}")
    check_sparse("A", value)
    matrix = value.tocsc().astype(np.float64)
    if not matrix.has_canonical_format or matrix.indptr[-1] != matrix.data.size:
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.prune()
    if not np.isfinite(matrix.data).all():
        raise ValueError("A must be finite, it contains NaN or infinity")
    check_size("A", float(np.abs(matrix.data).max(initial=0.0)), DATA)
    return matrix


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


@dataclass(frozen=True, eq=False)
class L0:
    """The penalty ``lam · ‖X‖₀``: the number of nonzero entries times ``lam``.

    Parameters
    ----------
    lam : float
        Price of one nonzero entry; nonnegative, at most 1e120.
    """

    lam: float

    def __post_init__(self) -> None:
        lam = as_float("lam", self.lam, minimum=0.0)
        check_size("lam", lam, (0.0, COEFFICIENTS[1]))
        object.__setattr__(self, "lam", lam)


@dataclass(frozen=True, eq=False)
class L1:
    """The penalty ``Σ lam_ij |X_ij|``.

    Parameters
    ----------
    lam : float or array_like of shape (n, r)
        One weight for all entries, or a weight each; nonnegative, at most 1e120.
    """

    lam: float | FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", _weight("lam", self.lam))


@dataclass(frozen=True)
class NonNegative:
    """The constraint ``X ≥ 0``, kept exactly."""


@dataclass(frozen=True)
class NoPenalty:
    """No penalty: a smooth problem."""


Smooth: TypeAlias = Quadratic | GramQuadratic
Penalty: TypeAlias = L0 | L1 | NonNegative | NoPenalty


def _check_problem(
    smooth: Any,
    penalty: Any,
    n_components: Any,
    kinds: tuple[Any, ...] = (Quadratic, GramQuadratic),
) -> int:
    if not isinstance(smooth, kinds):
        *first, last = (kind.__name__ for kind in kinds)
        raise TypeError(f"smooth must be {', '.join(first)} or {last}, got {type(smooth).__name__}")
    if not isinstance(penalty, (L0, L1, NonNegative, NoPenalty)):
        raise TypeError(
            f"penalty must be L0, L1, NonNegative or NoPenalty, got {type(penalty).__name__}"
        )
    n = smooth.n_rows
    if n < 2:
        raise ValueError(f"the smooth objective must have at least 2 rows, got n = {n}")
    r = as_int("n_components", n_components, 1)
    if r > n:
        raise ValueError(f"n_components must be at most n = {n}, got {r}")
    if smooth.n_columns is not None and smooth.n_columns != r:
        raise ValueError(
            f"n_components must be {smooth.n_columns}, as the objective's data has; got {r}"
        )
    lam = penalty.lam if isinstance(penalty, L1) else None
    if isinstance(lam, np.ndarray) and lam.shape != (n, r):
        raise ValueError(f"lam must be a number or have shape ({n}, {r}), got shape {lam.shape}")
    return r


@dataclass(frozen=True, eq=False)
class StiefelProblem:
    """``min f(X) + h(X)`` over n × r matrices with orthonormal columns.

    Parameters
    ----------
    smooth : Quadratic or GramQuadratic
        f.
    penalty : L0, L1, NonNegative or NoPenalty
        h.
    n_components : int
        Number of columns r, 1 ≤ r ≤ n.
    """

    smooth: Smooth
    penalty: Penalty
    n_components: int

    def __post_init__(self) -> None:
        r = _check_problem(self.smooth, self.penalty, self.n_components)
        object.__setattr__(self, "n_components", r)


def is_wide(data: Any) -> bool:
    """Whether data of shape (m, n) is better used as it is than as ``AᵀA``."""
    m, n = data.shape
    return not is_sparse(data) and n >= WIDE_DATA_RATIO * m


def _pca_objective(A: Any, center: bool) -> Smooth:
    """``−½‖AX‖²`` (A centred on request), with AᵀA formed when that is the cheaper way."""
    data = _data(A)
    if data.shape[1] > DENSE_COVARIANCE_LIMIT or is_wide(data):
        mean = column_means(data) if center else None
        if mean is not None and not is_sparse(data):
            return GramQuadratic(data - mean)
        return GramQuadratic(data, -1.0, mean)
    covariance = Moments(data, center).gram_rows(slice(None))
    return Quadratic(-0.5 * (covariance + covariance.T))


@dataclass(frozen=True, eq=False)
class SparsePCAProblem:
    """Sparse PCA with exactly orthonormal components: ``min −½‖AX‖_F² + h(X)``.

    Parameters
    ----------
    A : ndarray or scipy.sparse matrix of shape (m, n)
        Data, samples in rows.
    n_components : int
        Number of components r.
    penalty : L0, L1 or NoPenalty
        h.
    center : bool, default False
        Subtract the column means first (sparse data stays sparse).
    """

    A: Any
    n_components: int
    penalty: Penalty
    center: bool = False

    def __post_init__(self) -> None:
        _set_pca(self, self.penalty)

    @property
    def smooth(self) -> Smooth:
        """The smooth part ``−½‖AX‖²``."""
        smooth: Smooth = self.__dict__["_smooth"]
        return smooth

    def with_penalty(self, penalty: Penalty) -> StiefelProblem:
        """The same problem with another penalty; nothing is formed or copied again."""
        return StiefelProblem(self.smooth, penalty, self.n_components)


@dataclass(frozen=True, eq=False)
class NonnegativePCAProblem:
    """Nonnegative PCA: ``min −½‖AX‖_F²`` with ``XᵀX = I`` and ``X ≥ 0``, both kept exactly.

    Parameters
    ----------
    A : ndarray or scipy.sparse matrix of shape (m, n)
        Data, samples in rows.
    n_components : int
        Number of components r.
    center : bool, default False
        Subtract the column means first (sparse data stays sparse).
    """

    A: Any
    n_components: int
    center: bool = False

    def __post_init__(self) -> None:
        _set_pca(self, self.penalty)

    @property
    def penalty(self) -> Penalty:
        """The constraint ``X ≥ 0``."""
        return NonNegative()

    @property
    def smooth(self) -> Smooth:
        """The smooth part ``−½‖AX‖²``."""
        smooth: Smooth = self.__dict__["_smooth"]
        return smooth


def _set_pca(problem: SparsePCAProblem | NonnegativePCAProblem, penalty: Penalty) -> None:
    center = as_bool("center", problem.center)
    data = _data(problem.A)
    object.__setattr__(problem, "A", data)
    object.__setattr__(problem, "_smooth", _pca_objective(data, center))
    r = _check_problem(problem.smooth, penalty, problem.n_components)
    object.__setattr__(problem, "n_components", r)


Problem: TypeAlias = StiefelProblem | SparsePCAProblem | NonnegativePCAProblem
