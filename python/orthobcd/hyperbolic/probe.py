"""The hyperbolic structural probe: a J-orthogonal map that fits distances to given ones."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._internal.checks import (
    Checked,
    FloatArray,
    Signs,
    as_choice,
    as_data,
    as_float,
    as_float_array,
    as_signature,
)
from ..penalties import NoPenalty, Penalty


@dataclass(frozen=True, eq=False, repr=False, init=False)
class HyperbolicStructuralProbeProblem(Checked):
    """An isometry of a pseudo-hyperboloid that fits distances, of data that is not centred.

    The problem is ``min (1/m²) Σ_{i≠j} (d(Q_i, Q_j) − s·T_ij)²`` over ``XᵀJX = J``, ``Q = φ(DX)``.
    φ is `orthobcd.hyperbolic.double_projection`, d is `orthobcd.hyperbolic.distance`, and s is the
    factor ``scale``, which ``T_scale`` sets.

    Parameters
    ----------
    D : array_like of shape (m, n)
        Data, samples in rows; no row may be zero.
    signature : array_like of shape (n,)
        +1 and −1 in any order, at least one −1.
    T : array_like of shape (m, m), optional
        Target distances, symmetric. By default the Euclidean distances of the rows of D; for m
        above 4096 they are not stored as an m×m array.
    radius : float, default 1.0
        ρ > 0 of the pseudo-hyperboloid ``⟨q, q⟩ = −ρ²``.
    T_scale : float or "match", default "match"
        Factor of T. "match" makes the mean of T equal to that of d at X = I. Without scaling (1.0),
        Euclidean distances grow like √n, d only like a logarithm, and X diverges.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Attributes
    ----------
    core : object
        The objective in the compiled core.
    scale : float
        The factor of T.

    Notes
    -----
    The JOBCD paper has ``Q = φ(D)X``. As X is an isometry, that objective is constant on the group.

    d has an infinite slope where two points coincide or are antipodal. The gradient of the
    objective has no Lipschitz constant; see the option ``step_rule`` of `VRJOBCD`. A gradient costs
    about m²n multiply-adds and m²/2 logarithms, in parallel over blocks of 128 rows.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> D = np.random.default_rng(0).standard_normal((30, 4))
    >>> problem = ob.hyperbolic.HyperbolicStructuralProbeProblem(D, [1, 1, -1, -1])
    >>> result = ob.solve(problem, max_sweeps=20)
    >>> result.objective < problem.value(np.eye(4))
    True
    >>> value, gradient = problem.value_and_gradient(np.eye(4))
    >>> gradient.shape
    (4, 4)
    """

    D: FloatArray
    signature: Signs
    T: FloatArray | None
    radius: float
    T_scale: float | Literal["match"]

    def __init__(
        self,
        D: ArrayLike,
        signature: ArrayLike,
        T: ArrayLike | None = None,
        radius: float = 1.0,
        T_scale: float | Literal["match"] = "match",
    ) -> None:
        data = as_data("D", D)
        signs = as_signature(signature, data.shape[1])
        radius = as_float("radius", radius, 0.0, closed="neither")
        targets = None if T is None else as_data("T", T)
        if isinstance(T_scale, str):
            as_choice("T_scale", T_scale, ("match",))
        else:
            T_scale = as_float("T_scale", T_scale, 0.0, closed="neither")
        self._set(D=data, signature=signs, T=targets, radius=radius, T_scale=T_scale)
        self._build()

    core: ClassVar[_core.StructuralProbe]
    scale: ClassVar[float]

    def _build(self) -> None:
        """Builds the objective in the core, which holds the data."""
        scale = 1.0 if isinstance(self.T_scale, str) else self.T_scale
        core = _core.StructuralProbe(self.D, self.T, self.signature, self.radius, scale)
        if self.T_scale == "match":
            d, t = core.mean_distances(np.eye(self.signature.size))
            if not (d > 0.0 and t > 0.0):
                raise ValueError("T_scale='match' needs distances that are not all zero")
            scale = d / t
            core = core.with_scale(scale)
        self._set(core=core, scale=scale)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set(**state)
        self._build()

    @property
    def penalty(self) -> Penalty:
        """`NoPenalty`."""
        return NoPenalty()

    @property
    def smooth(self) -> HyperbolicStructuralProbeProblem:
        """f, which is the problem itself."""
        return self

    @property
    def n_samples(self) -> int:
        """Number of samples m."""
        return int(self.D.shape[0])

    @property
    def n_rows(self) -> int:
        """Number of rows n of X."""
        return int(self.signature.size)

    @property
    def n_components(self) -> int:
        """Number of columns of X: n, as X is square."""
        return self.n_rows

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (n, n) of X."""
        return self.n_rows, self.n_rows

    def value_and_gradient(self, X: ArrayLike) -> tuple[float, FloatArray]:
        """``f(X)`` and ``∇f(X)``.

        Parameters
        ----------
        X : array_like of shape (n, n)
            Any matrix, feasible or not.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n, n)

        Raises
        ------
        ValueError, TypeError
            If X has another shape or is not finite.
        """
        n = self.n_rows
        x = as_float_array("X", X, 2)
        if x.shape != (n, n):
            raise ValueError(f"X must have shape ({n}, {n}), got {x.shape}")
        value, gradient = self.core.value_and_gradient(x)
        return float(value), gradient

    def value(self, X: ArrayLike) -> float:
        """``f(X)``.

        Parameters
        ----------
        X : array_like of shape (n, n)
            Any matrix, feasible or not.

        Returns
        -------
        float

        Raises
        ------
        ValueError, TypeError
            If X has another shape or is not finite.
        """
        return self.value_and_gradient(X)[0]
