"""The hyperbolic structural probe: a J-orthogonal map after which distances follow given ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core
from ._checks import FloatArray, as_choice, as_data, as_float, as_float_array
from .hyperbolic_problems import as_signature
from .problems import NoPenalty, Penalty

TRANSFORMS = ("first", "literal")


@dataclass(frozen=True, eq=False)
class HyperbolicStructuralProbeProblem:
    """``min (1/m²) Σ_{i≠j} (d(Q_i, Q_j) − T_ij)²`` over ``XᵀJX = J``, with ``Q = φ(DX)``.

    φ and d are `orthobcd.hyperbolic.double_projection` and `orthobcd.hyperbolic.distance`.

    Parameters
    ----------
    D : array_like of shape (m, n)
        Data, samples in rows, no zero row.
    signature : array_like of shape (n,)
        +1 and −1 in any order, at least one −1.
    T : array_like of shape (m, m), optional
        Distances to follow, symmetric. By default the Euclidean distances of the rows of D, of
        which no m×m array is kept once m exceeds 4096.
    alpha : float, default 1.0
        α > 0.
    transform : {"first", "literal"}, default "first"
        "first": ``Q = φ(DX)``. "literal": ``Q = φ(D)X`` as the JOBCD paper prints it; X is an
        isometry, so the objective is constant on the group, which the constructor warns of.
    T_scale : float or "match", default "match"
        Factor of T. "match" makes the mean of T that of d at X = I. Unscaled (1.0), Euclidean
        distances grow like √n and d only like a logarithm, and X is driven to infinity.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Warns
    -----
    UserWarning
        Once per problem with ``transform="literal"``.

    Notes
    -----
    d has infinite slope where two points coincide or are antipodal, so no Lipschitz constant
    of the gradient exists: see the option ``curvature`` of `JOBCD`. A gradient takes about m²n
    multiply-adds and m²/2 logarithms, in parallel over blocks of 128 rows.
    """

    D: Any
    signature: Any
    T: Any = None
    alpha: float = 1.0
    transform: str = "first"
    T_scale: float | str = "match"

    def __post_init__(self) -> None:
        D = as_data("D", self.D)
        object.__setattr__(self, "D", D)
        object.__setattr__(self, "signature", as_signature(self.signature, D.shape[1]))
        alpha = as_float("alpha", self.alpha, minimum=0.0, exclusive=True)
        object.__setattr__(self, "alpha", alpha)
        as_choice("transform", self.transform, TRANSFORMS)
        if self.T is not None:
            object.__setattr__(self, "T", as_data("T", self.T))
        elif self.transform == "literal":
            raise ValueError("T must be given with transform='literal'")
        if isinstance(self.T_scale, str):
            as_choice("T_scale", self.T_scale, ("match",))
        else:
            scale = as_float("T_scale", self.T_scale, minimum=0.0, exclusive=True)
            object.__setattr__(self, "T_scale", scale)
        self._build()
        if self.transform == "literal":
            warnings.warn(
                "transform='literal': the objective is constant, every J-orthogonal X is optimal; "
                "transform='first' depends on X",
                UserWarning,
                stacklevel=3,
            )

    def _build(self) -> None:
        """The objective in the core, which holds the data."""
        scale = 1.0 if isinstance(self.T_scale, str) else self.T_scale
        core = _core.StructuralProbe(
            self.D, self.T, self.signature, self.alpha, self.transform == "literal", scale
        )
        if self.T_scale == "match":
            d, t = core.mean_distances(np.eye(self.signature.size))
            if not (d > 0.0 and t > 0.0):
                raise ValueError("T_scale='match' needs distances that are not all zero")
            scale = d / t
            core = core.with_scale(scale)
        object.__setattr__(self, "_core", core)
        object.__setattr__(self, "_scale", scale)

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self._build()

    @property
    def core(self) -> Any:
        """The objective in the compiled core."""
        return self.__dict__["_core"]

    @property
    def scale(self) -> float:
        """The factor of T in use."""
        scale: float = self.__dict__["_scale"]
        return scale

    @property
    def penalty(self) -> Penalty:
        """None."""
        return NoPenalty()

    @property
    def smooth(self) -> HyperbolicStructuralProbeProblem:
        """The problem itself: f."""
        return self

    @property
    def n_samples(self) -> int:
        """m."""
        return int(self.D.shape[0])

    @property
    def n_rows(self) -> int:
        """Number of rows n of X."""
        return int(self.signature.size)

    @property
    def n_columns(self) -> int:
        """Columns of X: n, X is square."""
        return int(self.signature.size)

    @property
    def n_components(self) -> int:
        """n: X is square."""
        return self.n_columns

    def value_and_gradient(self, X: Any) -> tuple[float, FloatArray]:
        """``f(X)`` and ``∇f(X)``.

        Parameters
        ----------
        X : array_like of shape (n, n)
            Any matrix, feasible or not.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n, n)
        """
        n = self.n_rows
        x = as_float_array("X", X, 2)
        if x.shape != (n, n):
            raise ValueError(f"X must have shape ({n}, {n}), got {x.shape}")
        value, gradient = self.core.value_and_gradient(x)
        return float(value), gradient

    def value(self, X: Any) -> float:
        """``f(X)``."""
        return self.value_and_gradient(X)[0]
