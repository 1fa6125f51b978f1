"""Common starting points of sparse PCA: spectral, varimax, top-diagonal, partition."""

from __future__ import annotations

import numpy as np

from orthobcd._internal.checks import FloatArray

from .geometry import polar
from .oracle import Oracle


def varimax(
    loadings: FloatArray, *, max_iterations: int = 30, tolerance: float = 1e-5
) -> FloatArray:
    """The columns of ``loadings`` (n × r) rotated towards simple structure.

    Fixed-point iteration on the varimax criterion: the rotation is the polar factor of the
    criterion's gradient (Kaiser 1958; the SVD form is standard in factor analysis software).
    """
    n, r = loadings.shape
    rotation = np.eye(r)
    previous = 0.0
    for _ in range(max_iterations):
        rotated = loadings @ rotation
        column_mean = np.sum(rotated * rotated, axis=0) / n
        target = loadings.T @ (rotated**3 - rotated * column_mean)
        left, singular, right = np.linalg.svd(target)
        rotation = left @ right
        criterion = float(np.sum(singular))
        if criterion <= previous * (1.0 + tolerance):
            break
        previous = criterion
    turned: FloatArray = loadings @ rotation
    return turned


def principal_components(oracle: Oracle) -> FloatArray:
    """The spectral solution: the r lowest eigenvectors of C."""
    return polar(oracle.lowest_eigenvectors())


def varimax_spectral(oracle: Oracle) -> FloatArray:
    """The spectral solution rotated by `varimax`."""
    return polar(varimax(oracle.lowest_eigenvectors()))


def top_diagonal(oracle: Oracle) -> FloatArray:
    """Unit vectors at the r smallest diagonal entries of C (the largest variances).

    This point is the exact optimum for a large ℓ0 or ℓ1 weight.
    """
    order = np.argsort(oracle.diagonal, kind="stable")[: oracle.r]
    x = np.zeros((oracle.n, oracle.r))
    x[order, np.arange(oracle.r)] = 1.0
    return x
