"""Checks of gradients and Hessian products by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._internal.checks import FloatArray, as_float_array, as_int
from .objectives import ByFunction, FiniteSum, SmoothFunction

STEPS = 10.0 ** -np.arange(1, 9)
"""Difference steps, relative to the root mean square of the entries of X."""


def check_gradient(
    f: SmoothFunction | FiniteSum | Callable[[FloatArray], Any],
    x: ArrayLike,
    *,
    n_directions: int = 5,
    seed: int = 0,
) -> float:
    """The error of a gradient, by central differences along random directions.

    Parameters
    ----------
    f : SmoothFunction, FiniteSum or callable
        The function; returns value and gradient.
    x : array_like of shape (n, r)
        The point, not a critical point. f is evaluated near it, also at infeasible points.
    n_directions : int, default 5
        Number of directions.
    seed : int, default 0
        Seed of the directions.

    Returns
    -------
    float
        The largest ``|(f(X + tD) − f(X − tD))/2t − ⟨∇f(X), D⟩|`` over Gaussian directions D, with
        the best step t for each, relative to the larger of ``‖∇f(X)‖`` and the difference quotient:
        at most about 1e-9 for a right gradient (1e-3 in single precision), 0.1 to 1 for a wrong
        one, and about ε/3 for one that is wrong by ε‖∇f(X)‖.

    Raises
    ------
    ValueError, TypeError
        If an argument or a value that f returns is not valid.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> x = np.eye(4, 2) + 0.1
    >>> right = lambda x: (np.sum(x**4), 4.0 * x**3)
    >>> wrong = lambda x: (np.sum(x**4), 3.0 * x**3)
    >>> ob.check_gradient(right, x) < 1e-6 < 0.1 < ob.check_gradient(wrong, x)
    True
    """
    smooth, point = _to_check(f, x)
    gradient = smooth._evaluate(point.copy())[1]
    size = float(np.linalg.norm(gradient))
    return _worst_error(
        point,
        lambda x: smooth._evaluate(x)[0],
        lambda direction: (np.vdot(gradient, direction), size),
        as_int("n_directions", n_directions, 1),
        as_int("seed", seed, 0),
    )


def check_hessian(
    f: SmoothFunction,
    x: ArrayLike,
    *,
    n_directions: int = 5,
    seed: int = 0,
) -> float:
    """The error of products with a Hessian, by central differences of the gradient.

    Parameters
    ----------
    f : SmoothFunction
        The function, with a ``hessian_product``.
    x : array_like of shape (n, r)
        The point. f is evaluated near it, also at infeasible points.
    n_directions, seed
        As in `check_gradient`.

    Returns
    -------
    float
        The largest ``‖(∇f(X + tD) − ∇f(X − tD))/2t − H[D]‖`` over Gaussian directions D, with the
        best step t for each, relative to the larger of ``‖H[D]‖`` and the difference quotient:
        at most about 1e-9 for a right product, 0.1 to 1 for a wrong one.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid, f has no product at x, or f returns an invalid value.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> f = lambda x: (np.sum(x**4), 4.0 * x**3)
    >>> right = ob.SmoothFunction(f, 4, hessian_product=lambda x, v: 12.0 * x**2 * v)
    >>> wrong = ob.SmoothFunction(f, 4, hessian_product=lambda x, v: 4.0 * x**2 * v)
    >>> x = np.eye(4, 2) + 0.1
    >>> ob.check_hessian(right, x) < 1e-6 < 0.1 < ob.check_hessian(wrong, x)
    True
    """
    if not isinstance(f, SmoothFunction) or f.hessian_product is None:
        raise TypeError("f must be a SmoothFunction with a hessian_product")
    smooth, point = _to_check(f, x)

    multiply = f._product

    def product(direction: FloatArray) -> tuple[FloatArray, float]:
        image = multiply(point.copy(), direction.copy()) if multiply else None
        if image is None:
            raise ValueError("f must have a product with its Hessian at x, it returned None")
        return image, float(np.linalg.norm(image))

    return _worst_error(
        point,
        lambda x: smooth._evaluate(x)[1],
        product,
        as_int("n_directions", n_directions, 1),
        as_int("seed", seed, 0),
    )


def _to_check(f: Any, x: ArrayLike) -> tuple[ByFunction, FloatArray]:
    """f as an objective, and x as an array of its shape."""
    point = as_float_array("x", x, 2)
    smooth = f if isinstance(f, ByFunction) else SmoothFunction(f, len(point))
    if len(point) != smooth.n_rows or point.shape[1] != (smooth.n_columns or point.shape[1]):
        wanted = (smooth.n_rows, smooth.n_columns or "r")
        raise ValueError(f"x must have shape {wanted}, got {point.shape}")
    return smooth, point


def _worst_error(
    point: FloatArray,
    function: Callable[[FloatArray], Any],
    derivative: Callable[[FloatArray], tuple[Any, float]],
    n_directions: int,
    seed: int,
) -> float:
    """The largest error of a derivative along random directions, with the best step for each.

    ``derivative`` returns the derivative along a direction and a size. The error is relative to the
    larger of this size and the difference quotient.
    """
    rng = np.random.default_rng(seed)
    length = max(float(np.linalg.norm(point)), 1e-300) / np.sqrt(point.size)
    worst = 0.0
    for _ in range(n_directions):
        direction = rng.standard_normal(point.shape)
        given, least = derivative(direction)
        errors = []
        for step in STEPS * length:
            ahead, back = (function(point + t * direction) for t in (step, -step))
            slope = (ahead - back) / (2.0 * step)
            size = max(least, float(np.linalg.norm(slope)))
            error = float(np.linalg.norm(slope - given))
            errors.append(error / size if size > 0.0 else 0.0)
        worst = max(worst, min(errors))
    return worst
