"""Arrays of other libraries (torch, CuPy, …) where scikit-learn's array API dispatch is on."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config

from .._internal.checks import FloatArray, is_sparse


def namespace_of(X: Any) -> Any:
    """The array API namespace of X; None without dispatch, and for NumPy and sparse data."""
    if not get_config()["array_api_dispatch"] or isinstance(X, np.ndarray) or is_sparse(X):
        return None
    from sklearn.utils._array_api import get_namespace

    xp, supported = get_namespace(X)
    return xp if supported and "numpy" not in xp.__name__ else None


def centred(
    xp: Any, X: Any, axes: FloatArray, mean: FloatArray, scale: FloatArray | None
) -> tuple[Any, Any]:
    """Scaled and centred X, and the axes, on the device of X and in its type of floats.

    Raises
    ------
    ValueError
        If X does not have a row per sample and a column per feature, or is not finite.
    """
    if X.ndim != 2 or X.shape[1] != len(mean):
        raise ValueError(f"X must have shape (n_samples, {len(mean)}), got {tuple(X.shape)}")
    if not xp.isdtype(X.dtype, "real floating"):
        X = xp.astype(X, xp.float32)
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError("X must have no missing or infinite value")

    def like(array: FloatArray) -> Any:
        return xp.asarray(array, dtype=X.dtype, device=X.device)

    if scale is not None:
        X = X / like(scale)
    return X - like(mean), like(np.ascontiguousarray(axes))


def coordinates(
    xp: Any, X: Any, axes: FloatArray, mean: FloatArray, scale: FloatArray | None
) -> Any:
    """Scaled and centred X times ``axes``, an array of the library of X."""
    data, columns = centred(xp, X, axes, mean, scale)
    return data @ columns


def explained_squares(
    xp: Any, X: Any, axes: FloatArray, mean: FloatArray, scale: FloatArray | None
) -> tuple[float, float]:
    """Sums of squares of X about the mean: those explained by orthonormal axes, and the total."""
    data, columns = centred(xp, X, axes, mean, scale)
    return float(xp.sum((data @ columns) ** 2)), float(xp.sum(data**2))
