"""The pseudo-hyperboloid ``{x : ⟨x, x⟩ = −ρ²}``: inner product, double projection, distance.

``⟨x, y⟩ = xᵀJy`` with ``J = diag(signature)``. All functions work on batches: points are the rows
of an array. J-orthogonal matrices preserve distances.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from .._core import Pseudohyperboloid
from .._internal.checks import FloatArray, as_bool, as_float, as_float_array, as_signature

DISTANCE_EPSILON = 1e-8
"""Distance of ``z = |⟨x, y⟩|/ρ²`` from 1 or 0 up to which values are set to zero. Near z = 1, where
the gradient is infinite, distance and gradient are set to zero; near z = 0, where the gradient
jumps, only the gradient."""


def inner(
    X: ArrayLike, Y: ArrayLike, signature: ArrayLike, *, pairwise: bool = False
) -> FloatArray:
    """The inner products ``⟨x, y⟩ = xᵀJy`` of rows.

    Parameters
    ----------
    X : array_like of shape (m, n)
        Vectors x, as rows.
    Y : array_like of shape (m, n), or (k, n) if ``pairwise``
        Vectors y, as rows.
    signature : array_like of shape (n,)
        +1 and −1 in any order, at least one −1.
    pairwise : bool, default False
        All pairs of rows instead of row by row.

    Returns
    -------
    ndarray of shape (m,), or (m, k) if ``pairwise``

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> from orthobcd.hyperbolic import inner
    >>> inner([[1.0, 2.0]], [[3.0, 4.0]], [1, -1])
    array([-5.])
    """
    x, y, space = as_float_array("X", X, 2), as_float_array("Y", Y, 2), _space(signature)
    return (space.inner_pairs if as_bool("pairwise", pairwise) else space.inner)(x, y)


def double_projection(X: ArrayLike, signature: ArrayLike, radius: float = 1.0) -> FloatArray:
    """Maps rows to the pseudo-hyperboloid: ``φ(s, t) = (s, √(ρ² + ‖s‖²)·t/‖t‖)``.

    Parameters
    ----------
    X : array_like of shape (m, n)
        Rows ``(s, t)``: s are the coordinates of sign +1, t those of sign −1; t ≠ 0.
    signature : array_like of shape (n,)
        +1 and −1 in any order, at least one −1.
    radius : float, default 1.0
        ρ > 0.

    Returns
    -------
    ndarray of shape (m, n)
        Points with ``⟨y, y⟩ = −ρ²``.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid or a row has t = 0.

    References
    ----------
    Law and Stam, Ultrahyperbolic representation learning, NeurIPS 2020.

    Examples
    --------
    >>> from orthobcd.hyperbolic import double_projection
    >>> double_projection([[0.0, 2.0]], [1, -1])
    array([[0., 1.]])
    """
    x = as_float_array("X", X, 2)
    return _space(signature, radius).double_projection(x)


def inverse_double_projection(
    Y: ArrayLike, signature: ArrayLike, radius: float = 1.0
) -> FloatArray:
    """The inverse of `double_projection` on ``{‖t‖ = 1}``: ``(s, t/‖t‖)`` of every row.

    Parameters
    ----------
    Y : array_like of shape (m, n)
        Points with ``⟨y, y⟩ = −ρ²``, up to 1e-8 relatively.
    signature, radius
        As in `double_projection`.

    Returns
    -------
    ndarray of shape (m, n)

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid or a row is not on the pseudo-hyperboloid.

    Examples
    --------
    >>> from orthobcd.hyperbolic import inverse_double_projection
    >>> inverse_double_projection([[0.0, 1.0]], [1, -1])
    array([[0., 1.]])
    """
    y = as_float_array("Y", Y, 2)
    return _space(signature, radius).inverse_double_projection(y)


def double_projection_gradient(
    X: ArrayLike, cotangent: ArrayLike, signature: ArrayLike, radius: float = 1.0
) -> FloatArray:
    """Gradient in X of a function of ``φ(X)`` (see `double_projection`): a chain rule.

    Parameters
    ----------
    X, cotangent : array_like of shape (m, n)
        Rows, and the gradient of the function with respect to ``φ(X)``.
    signature, radius
        As in `double_projection`.

    Returns
    -------
    ndarray of shape (m, n)
        ``φ′(x)ᵀ c`` of every row.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid or a row of X has t = 0.

    Examples
    --------
    >>> from orthobcd.hyperbolic import double_projection_gradient
    >>> double_projection_gradient([[0.0, 2.0]], [[1.0, 1.0]], [1, -1])
    array([[1., 0.]])
    """
    x, c = as_float_array("X", X, 2), as_float_array("cotangent", cotangent, 2)
    return _space(signature, radius).double_projection_gradient(x, c)


def distance(
    X: ArrayLike, Y: ArrayLike, signature: ArrayLike, radius: float = 1.0, *, pairwise: bool = False
) -> FloatArray:
    """Distances on the pseudo-hyperboloid.

    With ``z = |⟨x, y⟩|/ρ²`` the distance is ``ρ arccosh z`` for z ≥ 1 and ``ρ arccos z`` for z < 1;
    it is 0 for ``|z − 1| ≤ 1e-8``.

    Parameters
    ----------
    X : array_like of shape (m, n)
        Points, for instance from `double_projection`.
    Y : array_like of shape (m, n), or (k, n) if ``pairwise``
        Points.
    signature, radius
        As in `double_projection`.
    pairwise : bool, default False
        All pairs of rows instead of row by row.

    Returns
    -------
    ndarray of shape (m,), or (m, k) if ``pairwise``

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> from orthobcd.hyperbolic import distance, double_projection
    >>> points = double_projection([[0.0, 1.0], [1.0, 1.0]], [1, -1])
    >>> distance(points[:1], points[1:], [1, -1]).round(6)
    array([0.881374])
    """
    x, y = as_float_array("X", X, 2), as_float_array("Y", Y, 2)
    space = _space(signature, radius)
    if as_bool("pairwise", pairwise):
        return space.distance_pairs(x, y)
    return space.distance_gradient(x, y)[0]


def distance_gradient(
    X: ArrayLike, Y: ArrayLike, signature: ArrayLike, radius: float = 1.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Distances row by row, with their gradients in x and in y.

    ``∂d/∂⟨x, y⟩ = ± sign⟨x, y⟩/(ρ√|z² − 1|)``, with + for z ≥ 1; set to 0 within 1e-8 of z = 1 and
    of z = 0.

    Parameters
    ----------
    X, Y : array_like of shape (m, n)
        Points.
    signature, radius
        As in `double_projection`.

    Returns
    -------
    d : ndarray of shape (m,)
    gradient_x, gradient_y : ndarray of shape (m, n)

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> from orthobcd.hyperbolic import distance_gradient, double_projection
    >>> points = double_projection([[0.0, 1.0], [1.0, 1.0]], [1, -1])
    >>> d, gradient_x, gradient_y = distance_gradient(points[:1], points[1:], [1, -1])
    >>> gradient_x.shape
    (1, 2)
    """
    x, y = as_float_array("X", X, 2), as_float_array("Y", Y, 2)
    return _space(signature, radius).distance_gradient(x, y)


def _space(signature: ArrayLike, radius: Any = 1.0) -> Pseudohyperboloid:
    signs = as_signature(signature)
    return Pseudohyperboloid(signs, as_float("radius", radius, 0.0, closed="neither"))
