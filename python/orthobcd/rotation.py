"""Sparse rotation of given loadings."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._internal.checks import (
    FloatArray,
    Interval,
    as_choice,
    as_float_array,
    as_int,
    as_seed,
    as_threads,
)


def rotate_loadings(
    V: ArrayLike,
    criterion: Literal["l1", "l0"] = "l1",
    *,
    n_starts: int = 10,
    max_time: float | None = None,
    seed: int = 0,
    n_threads: int | None = 1,
) -> tuple[FloatArray, FloatArray]:
    """Rotate loadings so that they are sparse; their span and total variance do not change.

    Minimises h(V R) over orthogonal matrices R, h the sum of magnitudes or the number of nonzeros.
    Three methods run in turn from every start and from perturbations of the incumbent. Gradient
    descent lowers smooth functions that approach h. For "l1", moves lead between points where
    r(r − 1)/2 entries vanish. Sweeps rotate each pair of columns to the global minimum of h. Zeros
    are exact. The problem has many local minima, hence several starts.

    Parameters
    ----------
    V : array_like of shape (n_features, n_components)
        Loadings, a column per component (``pca.components_.T``), with n_features ≥ n_components.
        The columns need not be orthonormal: for columns multiplied by standard deviations V Vᵀ,
        the covariance that they explain, is kept.
    criterion : {"l1", "l0"}, default "l1"
        "l1": the sum of magnitudes. "l0": the number of nonzeros; its minimum is of use only if
        some rotation of V has many zeros. Entries below 1e-13 of the norm of their row count as
        zero.
    n_starts : int, default 10
        Number of starts: V as given, the varimax rotation, and random rotations.
    max_time : float, optional
        Time limit in seconds, none by default. The search ends by itself: ten starts for 500
        features and 10 components take about two seconds of one core. After the limit the result is
        the best rotation so far, which then depends on the speed of the machine.
    seed : int, default 0
        Seed of the random rotations.
    n_threads : int or None, default 1
        Number of threads, which work on different starts; −1 or None for all cores. The result does
        not depend on it without ``max_time``.

    Returns
    -------
    loadings : ndarray of shape (n_features, n_components)
        V R, with exact zeros. h is never above that of V.
    rotation : ndarray of shape (n_components, n_components)
        R, orthogonal up to rounding.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.
    KeyboardInterrupt
        After Ctrl-C.

    Notes
    -----
    The columns of V R are in no particular order. If the columns of V are orthonormal, so
    are those of V R; the coordinates of data in them are correlated.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> V = np.array([[1.0, 1.0], [1.0, 1.0], [2.0, -2.0]])
    >>> loadings, rotation = ob.rotate_loadings(V, "l0")
    >>> int(np.count_nonzero(loadings)), bool(np.allclose(V @ rotation, loadings))
    (3, True)
    """
    as_choice("criterion", criterion, ("l1", "l0"))
    matrix = as_float_array("V", V, 2)
    n, r = matrix.shape
    if r == 0 or n < r:
        raise ValueError(
            "V must have a column per component and at least as many rows (features); "
            f"got shape {matrix.shape}; transpose components_ of an estimator"
        )
    starts = as_int("n_starts", n_starts, 1)
    threads = as_threads(n_threads)
    limit = Interval(float, 0.0, optional=True)("max_time", max_time)
    own_seed = as_seed(seed)
    loadings, rotation, _ = _core.rotate_loadings(
        np.ascontiguousarray(matrix), criterion, starts, own_seed, threads, limit
    )
    return loadings, rotation
