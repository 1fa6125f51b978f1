"""Moments of checked data for a fit: sums over samples, weights, scaling, covariances."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrf
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight

from .._core import COEFFICIENTS, DATA
from .._core import Moments as Sums
from .._internal.checks import (
    ROUNDINGS,
    FloatArray,
    as_choice,
    as_float_array,
    check_size,
    check_sparse,
    is_sparse,
    magnitude,
    measured,
    numbers_of,
    strips,
)
from .._internal.moments import (
    Moments,
    Precision,
    SecondMoments,
    deviations_of,
    is_constant,
    squares_about,
)
from .._internal.solve import Solve
from ..objectives import Quadratic
from ..problems import (
    DENSE_COVARIANCE_LIMIT,
    SparsePCAProblem,
    StiefelProblem,
    is_wide,
    is_wide_shape,
)
from .missing import Gaussian, gaussian_of

SYMMETRY = 1e-10
"""Largest difference of S and Sᵀ, relative to the largest entry of S, of a symmetric matrix."""

DEFINITENESS = 1e-8
"""Tolerance for negative eigenvalues of S, relative to n times its largest entry; far above the
rounding error of the Cholesky factorization by which definiteness is tested."""

EXACT_WORK = 4e9
"""Largest m·n·(n + `SCALING`) for which the precision "auto" sums m samples of n features exactly:
0.1 to 0.25 s of a core."""

SCALING = 200
"""Cost of scaling a sample, in products of the sample with a feature."""

KINDS = [
    *(np.float64, np.float32, np.bool_),
    *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
]
"""Types of dense data that are used without a copy; other types are converted to the first."""

PrecisionName = Literal["auto", "fast", "exact"]


def is_exact(precision: str, m: int, n: int) -> bool:
    """True if sums over m samples of n features are exact with this ``precision``."""
    as_choice("precision", precision, get_args(PrecisionName))
    return precision == "exact" or (precision == "auto" and m * n * (n + SCALING) <= EXACT_WORK)


def moments_of(
    data: Any,
    precision: str,
    center: bool,
    scale: bool,
    weights: FloatArray | None = None,
    n_threads: int | None = 1,
) -> tuple[Moments | SecondMoments, FloatArray | None, Precision]:
    """Moments of data, its standard deviations with ``scale`` (else None), and the precision.

    Second moments are formed by sums over the samples for exact sums, and for dense or weighted
    data of up to 4096 features that is not wide. Otherwise the moments refer to the data.
    """
    m, n = data.shape
    exact = is_exact(precision, m, n)
    formed = n <= DENSE_COVARIANCE_LIMIT and not is_wide(data)
    if precision == "exact" and n > DENSE_COVARIANCE_LIMIT:
        raise ValueError(
            f"precision must be 'auto' or 'fast' for more than {DENSE_COVARIANCE_LIMIT} features, "
            f"whose second moments are not formed; got 'exact' and {n} features"
        )
    exact = exact and (formed or precision == "exact")
    if exact or (formed and (weights is not None or not is_sparse(data))):
        sums = Sums(n, "exact" if exact else "fast")
        sums.add(sliceable(data), weights, n_threads)
        return *read(sums, center, scale, n_threads, keep=False), sums.precision
    data = data.astype(np.float64, copy=False)
    return *prepared(data, center, scale, weights), "fast"


def read(
    sums: Sums, center: bool, scale: bool, n_threads: int | None, *, keep: bool
) -> tuple[Moments | SecondMoments, FloatArray | None]:
    """Moments of summed samples and, with ``scale``, their standard deviations (else None).

    With ``keep=False`` the sums are released on the way, so that memory holds one n × n matrix
    instead of two. Fast sums of few samples of many features, all of them still buffered, are not
    formed: their moments refer to the samples, as those of wide data in memory do.
    """
    wide = sums.precision == "fast" and is_wide_shape(sums.n_rows, sums.n_features)
    samples = sums.buffered() if wide else None
    if samples is not None:
        return prepared(samples[0], center, scale, samples[1])
    mean, negative, deviation = sums.read(center, scale, keep, n_threads)
    return SecondMoments(mean if center else np.zeros_like(mean), negative), deviation


def sliceable(data: Any) -> Any:
    """Checked data in the form that `Sums` needs: aligned, with sorted row indices in CSC."""
    if not is_sparse(data):
        return data if data.flags.aligned else data.copy()
    return data.sorted_indices() if data.format == "csc" else data


def begun(sums: Sums | None, precision: str, m: int, n: int) -> Sums:
    """Sums to which m more samples of n features can be added; ``sums`` is not changed.

    If exact sums over all samples would exceed `EXACT_WORK` (with "auto"), the sums continue in
    double precision.
    """
    exact = is_exact(precision, m + (0 if sums is None else sums.n_rows), n)
    if sums is None:
        return Sums(n, "exact" if exact else "fast")
    if precision == "exact" and sums.precision == "fast":
        raise ValueError(
            "precision must be 'auto' or 'fast' after samples that were summed fast; "
            "got 'exact', for which fit begins anew"
        )
    more = sums.copy()
    if not exact:
        more.make_fast()
    return more


def extended(
    sums: Sums | None,
    precision: str,
    data: Any,
    weights: FloatArray | None,
    n_threads: int | None = 1,
) -> Sums:
    """Returns ``sums`` with the samples of ``data`` added; ``sums`` is not changed."""
    more = begun(sums, precision, *data.shape)
    more.add(sliceable(data), weights, n_threads)
    return more


def largest(data: Any) -> float:
    """The largest magnitude of an entry; missing values are ignored."""
    entries = data.data if is_sparse(data) else data
    low, high = (float(f.reduce(entries, axis=None, initial=0)) for f in (np.fmin, np.fmax))
    return max(-low, high)


def check_magnitude(data: Any) -> None:
    """Raises a ValueError if squares of the data overflow or underflow."""
    check_size("X", largest(data), DATA)


def check_complete(data: Any, advice: str) -> None:
    """Raises a ValueError that ends with ``advice`` if a value is missing."""
    entries = data.data if is_sparse(data) else data
    if entries.dtype.kind == "f" and np.isnan(np.min(entries, initial=0.0)):
        raise ValueError(f"X must have no missing value (NaN); {advice}")


def as_samples(X: Any, **options: Any) -> Any:
    """X as a dense, CSR or CSC matrix of numbers, NaN where a value is missing.

    ``options`` are those of `sklearn.utils.check_array`.
    """
    data = numbers_of(X)
    if hasattr(data, "to_scipy_sparse"):
        data = data.to_scipy_sparse()
    if is_sparse(data):
        # scikit-learn's checks can crash on invalid indices.
        check_sparse("X", data)
    return check_array(
        data,
        accept_sparse=("csr", "csc"),
        dtype=np.float64 if is_sparse(data) else KINDS,
        ensure_all_finite="allow-nan",
        input_name="X",
        **options,
    )


def checked_block(block: Any, n: int) -> Any:
    """A block of rows of n features, checked without an estimator: dense, CSR or CSC."""
    data = as_samples(block)
    if data.shape[1] != n:
        raise ValueError(f"X has {data.shape[1]} features, but is expecting {n} features")
    check_complete(data, "SparsePCA(missing='em') takes data in memory with some")
    return data


def as_weights(weights: ArrayLike, data: Any, least: float = 1.0) -> FloatArray:
    """Checked weights of the samples of ``data``, with a sum above ``least``."""
    checked: FloatArray = _check_sample_weight(
        numbers_of(weights), data, dtype=np.float64, ensure_non_negative=True
    )
    total = float(checked.sum())
    if not (total > least or total == least == 0.0):
        raise ValueError(
            f"sample_weight must sum to more than 1, as numbers of samples do; got {total:g}"
        )
    return checked


def as_sample_weight(weights: ArrayLike) -> FloatArray:
    """Checked weights of samples whose number is not known yet."""
    checked = as_float_array("sample_weight", weights, 1)
    if float(checked.min()) < 0.0:
        raise ValueError(f"sample_weight must not be negative, got {float(checked.min()):g}")
    return checked


def as_covariance(S: ArrayLike) -> FloatArray:
    """A checked copy of a symmetric positive semidefinite S; no other n × n array is made."""
    given, size, rounding = measured("S", S, 2)
    n = len(given)
    if given.shape != (n, n):
        raise ValueError(f"S must be square, got shape {given.shape}")
    check_size("S", size, COEFFICIENTS)
    matrix = np.empty((n, n))
    for rows in strips(n):
        strip, mirrored = given[rows], given[:, rows].T
        if magnitude(strip - mirrored) > max(SYMMETRY, ROUNDINGS * rounding) * size:
            raise ValueError("S must be symmetric")
        matrix[rows] = 0.5 * (strip + mirrored)
    least = -max(DEFINITENESS, ROUNDINGS * rounding) * size * n
    # A zero matrix is semidefinite, but its factorization fails.
    if size > 0.0 and not is_definite(matrix, least):
        raise ValueError(f"S must be positive semidefinite, it has an eigenvalue below {least:.3g}")
    return matrix


def is_definite(matrix: FloatArray, least: float) -> bool:
    """True if all eigenvalues of a symmetric matrix exceed ``least``, by a Cholesky factorization.

    The factor is written over the upper triangle, which then is restored from the lower one.
    """
    diagonal = np.diagonal(matrix).copy()
    np.fill_diagonal(matrix, diagonal - least)
    # The transposed matrix is stored by columns, as LAPACK overwrites it.
    _, info = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    for rows in strips(len(matrix)):
        block = np.tril(matrix[rows, rows], -1)
        matrix[rows, rows] = block + block.T
        matrix[rows, rows.stop :] = matrix[rows.stop :, rows].T
    np.fill_diagonal(matrix, diagonal)
    return bool(info == 0)


def described(
    matrix: FloatArray, mean: FloatArray, weight: float, center: bool, scale: bool
) -> tuple[SecondMoments, FloatArray | None]:
    """Moments from sums of squares about the mean and, with ``scale``, standard deviations.

    The sums are overwritten.
    """
    variances = np.diag(matrix).copy()
    squares = variances + weight * mean**2
    deviation = deviations_of(variances, squares, weight) if scale else None
    divisor = np.ones(len(mean)) if deviation is None else deviation
    constant = is_constant(variances, squares)
    matrix[constant] = matrix[:, constant] = 0.0
    for rows in () if center else strips(len(mean)):
        matrix[rows] += weight * np.outer(mean[rows], mean)
    for rows in strips(len(mean)):
        right = slice(rows.start, None)
        strip = -0.5 * (matrix[rows, right] + matrix[right, rows].T)
        matrix[rows, right] = strip / np.outer(divisor[rows], divisor[right])
        matrix[right, rows] = matrix[rows, right].T
    return SecondMoments(mean / divisor if center else np.zeros_like(mean), matrix), deviation


def estimated(
    data: FloatArray, r: int, center: bool, scale: bool, deadline: Solve | None = None
) -> tuple[Gaussian, SecondMoments, FloatArray | None]:
    """Moments of data with missing values, by the EM algorithm with r factors, and its model.

    The last value is, with ``scale``, the standard deviations.
    """
    m = len(data)
    model = gaussian_of(data, r, deadline=deadline)
    mean, covariance = model.moments(data)
    return model, *described(m * covariance, mean, float(m), center, scale)


def correlation(second: FloatArray) -> FloatArray:
    """Correlations from second moments; those of a constant coordinate with others are 0."""
    # Rounding can make the variance of a component that has none negative.
    deviation = np.sqrt(np.maximum(np.diag(second), 0.0))
    deviation = np.where(deviation > 0.0, deviation, 1.0)
    out = second / np.outer(deviation, deviation)
    np.fill_diagonal(out, 1.0)
    return np.asarray(np.clip(out, -1.0, 1.0))


def decorrelated(x: FloatArray, second: FloatArray, n_nonzero: Any) -> FloatArray:
    """Rotates groups of columns of x that share rows, so that ``second`` is diagonal on a group.

    A group is rotated only if the number of nonzeros stays within its present value, or, if given,
    within ``n_nonzero``: in all (an integer) or per column (a sequence).
    """

    def allowed(trial: FloatArray) -> bool:
        counts = np.count_nonzero(trial, axis=0)
        if n_nonzero is None:
            return bool(counts.sum() <= np.count_nonzero(x))
        if np.ndim(n_nonzero) == 0:
            return bool(counts.sum() <= n_nonzero)
        return bool((counts <= np.asarray(n_nonzero)).all())

    shared = (x != 0.0).astype(np.int64)
    linked = np.linalg.matrix_power(shared.T @ shared > 0, x.shape[1])
    for columns in np.unique(linked, axis=0):
        group = np.flatnonzero(columns)
        _, vectors = np.linalg.eigh(second[np.ix_(group, group)])
        trial = x.copy()
        trial[:, group] = x[:, group] @ vectors
        if len(group) > 1 and allowed(trial):
            x = trial
    return x


def prepared(
    data: Any, center: bool, scale: bool, weights: FloatArray | None = None
) -> tuple[Moments, FloatArray | None]:
    """Moments of centred and scaled data and, with ``scale``, its standard deviations.

    A constant column is divided by 1. Sparse data stays sparse. Rows of weighted samples are
    multiplied by the roots of their weights.
    """
    if weights is not None:
        return _weighted(data, center, scale, weights)
    moments = Moments(data, center, scale)
    return moments, moments.deviation


def _weighted(
    data: Any, center: bool, scale: bool, weights: FloatArray
) -> tuple[Moments, FloatArray | None]:
    """`prepared` for weighted samples of many features."""
    if is_sparse(data):
        if center or scale:
            raise ValueError(
                f"sample_weight needs center=False and scale=False for sparse data of more than "
                f"{DENSE_COVARIANCE_LIMIT} features"
            )
        return Moments(data.multiply(np.sqrt(weights)[:, np.newaxis]).tocsc(), False), None
    mean = np.average(data, axis=0, weights=weights)
    mean = mean + np.average(data - mean, axis=0, weights=weights)
    centred = data - mean
    variances, squares = weights @ centred**2, weights @ data**2
    deviation = deviations_of(variances, squares, float(weights.sum())) if scale else None
    centred[:, is_constant(variances, squares)] = 0.0
    divisor = 1.0 if deviation is None else deviation
    rows = (centred if center else data) / divisor
    moments = Moments(rows * np.sqrt(weights)[:, np.newaxis], False)
    moments.mean = mean / divisor if center else np.zeros_like(mean)
    return moments, deviation


def problem_of(moments: Moments | SecondMoments, r: int, penalty: Any) -> Any:
    """The problem ``min −½‖AX‖² + h(X)`` for the moments of A."""
    if isinstance(moments, SecondMoments):
        return StiefelProblem(Quadratic(moments.negative), penalty, r)
    return SparsePCAProblem(moments.data, r, penalty, center=moments.pending)


def coordinates(
    data: Any, axes: FloatArray, mean: FloatArray, scale: FloatArray | None
) -> FloatArray:
    """Scaled and centred data times ``axes``; sparse data stays sparse."""
    if is_sparse(data):
        product = data @ (axes if scale is None else axes / scale[:, None])
        return np.asarray(product) - mean @ axes
    if scale is not None:
        data = data / scale
    return np.asarray((data - mean) @ axes)


def points(
    data: ArrayLike, components: FloatArray, mean: FloatArray, scale: FloatArray | None
) -> FloatArray:
    """Points of the data space with the coordinates ``data``."""
    given = np.asarray(numbers_of(data), dtype=np.float64)
    r = components.shape[0]
    if given.ndim != 2 or given.shape[1] != r:
        raise ValueError(f"X must have shape (n_samples, {r}), got {given.shape}")
    out = given @ components + mean
    return np.asarray(out if scale is None else out * scale)


def explained_squares(
    data: Any, axes: FloatArray, mean: FloatArray, scale: FloatArray | None
) -> tuple[float, float]:
    """Sums of squares about the mean: those explained by orthonormal axes, and the total."""
    explained = float(np.sum(coordinates(data, axes, mean, scale) ** 2))
    return explained, squares(data, mean, scale)


def squares(data: Any, mean: FloatArray, scale: FloatArray | None) -> float:
    """Sum of squares about the mean, after the division by ``scale``."""
    divisor = np.ones(data.shape[1]) if scale is None else scale
    return float(np.sum(squares_about(data, mean * divisor) / divisor**2))
