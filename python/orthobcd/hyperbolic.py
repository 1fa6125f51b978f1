"""J-orthogonal matrices (CS decomposition, random ones) and the space that they act on."""

from __future__ import annotations

from typing import Any

from . import _core
from ._checks import FloatArray, as_float, as_float_array, as_int
from .hyperbolic_problems import as_signature
from .ultrahyperbolic import (
    DISTANCE_EPSILON,
    distance,
    distance_gradient,
    double_projection,
    double_projection_gradient,
    inner,
    inverse_double_projection,
)

__all__ = [
    "DISTANCE_EPSILON",
    "distance",
    "distance_gradient",
    "double_projection",
    "double_projection_gradient",
    "hyperbolic_cs",
    "inner",
    "inverse_double_projection",
    "random_j_orthogonal",
]


def hyperbolic_cs(
    X: Any, signature: Any
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """The hyperbolic CS decomposition of a J-orthogonal matrix.

    With the rows and columns of positive sign first (p of them, q = n − p of negative sign, the
    order within each kept), ``X = diag(U1, U2) · S · diag(V1, V2)ᵀ`` where, for p ≥ q,
    ``S = [[diag(c), 0, diag(s)], [0, I, 0], [diag(s), 0, diag(c)]]``; for q > p the identity
    stands in the lower block. ``c² − s² = 1``.

    Parameters
    ----------
    X : array_like of shape (n, n)
        ``XᵀJX = J`` up to 1e-8·‖X‖².
    signature : array_like of shape (n,)
        +1 and −1 in any order.

    Returns
    -------
    U1 : ndarray of shape (p, p)
    U2 : ndarray of shape (q, q)
    c, s : ndarray of shape (min(p, q),)
        Hyperbolic cosines and (nonnegative) sines, descending.
    V1 : ndarray of shape (p, p)
    V2 : ndarray of shape (q, q)

    Raises
    ------
    ValueError, TypeError
        If X is not J-orthogonal or the signature does not fit.
    """
    X = as_float_array("X", X, 2)
    signs = as_signature(signature)
    if X.shape != (signs.size, signs.size):
        raise ValueError(f"X must have shape ({signs.size}, {signs.size}), got {X.shape}")
    factors: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
    factors = _core.hyperbolic_cs(X, signs)
    return factors


def random_j_orthogonal(signature: Any, scale: float = 0.5, seed: int = 0) -> FloatArray:
    """A random J-orthogonal matrix.

    Parameters
    ----------
    signature : array_like of shape (n,)
        +1 and −1 in any order.
    scale : float, default 0.5
        Standard deviation of the rapidities; c = cosh and s = sinh of ``scale``·N(0, 1) in the
        hyperbolic CS decomposition, with uniformly random orthogonal factors.
    seed : int, default 0
        The same seed gives the same matrix.

    Returns
    -------
    ndarray of shape (n, n)
        X with ``XᵀJX = J``.
    """
    signs = as_signature(signature)
    x: FloatArray = _core.random_j_orthogonal(
        signs, as_float("scale", scale, minimum=0.0), as_int("seed", seed, 0)
    )
    return x
