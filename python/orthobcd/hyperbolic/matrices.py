"""J-orthogonal matrices: hyperbolic CS decomposition, random matrices."""

from __future__ import annotations

from numpy.typing import ArrayLike

from .. import _core
from .._internal.checks import FloatArray, as_float, as_float_array, as_int, as_signature


def hyperbolic_cs(
    X: ArrayLike, signature: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """The hyperbolic CS decomposition of a J-orthogonal matrix.

    Let the p rows and columns of positive sign come first, then the q = n − p of negative sign,
    each in their order. Then ``X = diag(U1, U2) · S · diag(V1, V2)ᵀ`` with ``c² − s² = 1`` and, for
    p ≥ q, ``S = [[diag(c), 0, diag(s)], [0, I, 0], [diag(s), 0, diag(c)]]``; for q > p the identity
    is in the lower block.

    Parameters
    ----------
    X : array_like of shape (n, n)
        The matrix; ``XᵀJX = J`` up to 1e-8·‖X‖² and 0.1.
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
        If X is not J-orthogonal or the signature is not valid.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> X = ob.hyperbolic.random_j_orthogonal([1, 1, -1], seed=3)
    >>> U1, U2, c, s, V1, V2 = ob.hyperbolic.hyperbolic_cs(X, [1, 1, -1])
    >>> bool(np.allclose(c**2 - s**2, 1.0))
    True
    """
    x = as_float_array("X", X, 2)
    signs = as_signature(signature)
    if x.shape != (signs.size, signs.size):
        raise ValueError(f"X must have shape ({signs.size}, {signs.size}), got {x.shape}")
    return _core.hyperbolic_cs(x, signs)


def random_j_orthogonal(signature: ArrayLike, scale: float = 0.5, seed: int = 0) -> FloatArray:
    """A random J-orthogonal matrix.

    Parameters
    ----------
    signature : array_like of shape (n,)
        +1 and −1 in any order.
    scale : float, default 0.5
        Standard deviation of the rapidities, none of which may exceed 12: then the entries reach
        8e4, and ``XᵀJX = J`` holds to 1e-5. In the hyperbolic CS decomposition c and s are cosh
        and sinh of ``scale``·N(0, 1), and the orthogonal factors are uniformly random.
    seed : int, default 0
        Seed; the same seed gives the same matrix.

    Returns
    -------
    ndarray of shape (n, n)
        X with ``XᵀJX = J``.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> X, J = ob.hyperbolic.random_j_orthogonal([1, 1, -1]), np.diag([1.0, 1.0, -1.0])
    >>> bool(np.allclose(X.T @ J @ X, J))
    True
    """
    signs = as_signature(signature)
    size, start = as_float("scale", scale, 0.0), as_int("seed", seed, 0)
    return _core.random_j_orthogonal(signs, size, start)
