"""Second moments of centred and scaled data, without cancellation, sparse data kept sparse.

Means are subtracted before squaring. Of sparse data only the columns that are more than half full
are centred and stored dense. For the others ``‖v‖² ≤ 2‖v − μ‖²``, so that the difference of stored
values and means loses a bit or two for any means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._core import CONSTANT, Moments
from .checks import FloatArray, is_sparse, strips

ROWS = 2048
"""Rows per block read from an array; `orthobcd._core.Moments` sums the same number at once."""

Precision = Literal["fast", "exact"]
"""Precision of sums over samples."""


def _column_numbers(data: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The column of every stored entry of a CSC matrix."""
    return np.repeat(np.arange(data.shape[1]), np.diff(data.indptr))


def _sums(data: Any, values: FloatArray) -> FloatArray:
    """Sums per column of ``values``, one value for each stored entry of a CSC matrix."""
    sums = np.bincount(_column_numbers(data), weights=values, minlength=data.shape[1])
    return np.asarray(sums, dtype=np.float64)


def column_means(data: Any) -> FloatArray:
    """Means of the columns of a dense or CSC matrix, accurate to rounding."""
    m = data.shape[0]
    if not is_sparse(data):
        mean = data.mean(axis=0)
        # The mean of the remainder corrects the rounding error of the first mean.
        return np.asarray(mean + (data - mean).mean(axis=0), dtype=np.float64)
    absent = m - np.diff(data.indptr)
    mean = _sums(data, data.data) / m
    left = _sums(data, data.data - mean[_column_numbers(data)]) - absent * mean
    return np.asarray(mean + left / m)


def squares_about(data: Any, mean: FloatArray) -> FloatArray:
    """``Σ_i (data_ij − mean_j)²`` of every column."""
    if not is_sparse(data):
        return np.asarray(np.sum((data - mean) ** 2, axis=0))
    data = data.tocsc()
    stored = _sums(data, (data.data - mean[_column_numbers(data)]) ** 2)
    return np.asarray(stored + (data.shape[0] - np.diff(data.indptr)) * mean**2)


def _full_columns_centred(data: Any, mean: FloatArray) -> tuple[Any, FloatArray]:
    """CSC data whose columns more than half full are centred and dense; means of the others.

    The returned means are those that remain to be subtracted.
    """
    m = data.shape[0]
    counts = np.diff(data.indptr)
    full = 2 * counts > m
    if not full.any():
        return data, mean
    lengths = np.where(full, m, counts)
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    column = _column_numbers(data)
    whole = np.repeat(full, lengths)
    values = np.zeros(starts[-1])
    indices = np.zeros(starts[-1], dtype=np.int64)
    values[whole] = np.repeat(-mean[full], m)
    indices[whole] = np.tile(np.arange(m), int(full.sum()))
    inside = np.arange(data.data.size) - data.indptr[:-1].astype(np.int64)[column]
    place = starts[:-1][column] + np.where(full[column], data.indices, inside)
    indices[place] = data.indices
    values[place] += data.data
    return type(data)((values, indices, starts), shape=data.shape), np.where(full, 0.0, mean)


def is_constant(variances: FloatArray, squares: FloatArray) -> NDArray[np.bool_]:
    """True for constant features, from sums of squares about the means and about 0.

    The variance of a constant feature is at most `orthobcd._core.CONSTANT` times its mean square.
    """
    return np.asarray(variances <= CONSTANT * squares)


def deviations_of(variances: FloatArray, squares: FloatArray, weight: float) -> FloatArray:
    """Standard deviations from sums of squares about the means and about 0; 1 for a constant."""
    varies = ~is_constant(variances, squares)
    return np.sqrt(np.divide(variances, weight, out=np.ones_like(variances), where=varies))


@dataclass(eq=False)
class Gram:
    """``AᵀA`` of data A, whose columns are centred and divided by ``scale`` on request.

    Either of the rows of A, or formed.

    Attributes
    ----------
    mean : ndarray of shape (n,)
        Means that are subtracted after the division; zeros without centring.
    scale : ndarray of shape (n,), or None
        Standard deviations, 1 for a constant column; None without scaling.
    n_samples : float
        Number of samples, or sum of their weights.
    variances : ndarray of shape (n,)
        Squared norm of every column of A.
    negative : ndarray of shape (n, n), or None
        ``−AᵀA``, symmetric, in the form that the objective uses without another copy.
    data : ndarray or CSC matrix of shape (m, n), or None
        A plus ``offset`` in every row. Centred constant columns are exactly zero.
    offset : ndarray of shape (n,)
        Means still to be subtracted from the columns of ``data``; zeros for dense columns.
    precision : {"fast", "exact"}
        How ``AᵀA`` was summed.
    """

    mean: FloatArray
    scale: FloatArray | None
    n_samples: float
    variances: FloatArray
    negative: FloatArray | None = None
    data: Any = None
    offset: Any = 0.0
    precision: Precision = "fast"

    @classmethod
    def of_rows(cls, data: Any, center: bool, scale: bool = False) -> Gram:
        """Of a dense or sparse matrix."""
        m, n = data.shape
        offset = used = np.zeros(n)
        if is_sparse(data):
            data = data.tocsc()
            if not data.has_canonical_format:
                data = data.copy()
                data.sum_duplicates()
        variances = squares = squares_about(data, used)
        if center or scale:
            mean = column_means(data)
            about = squares_about(data, mean)
        if center:
            constant = is_constant(about, squares)
            used, variances = mean, np.where(constant, 0.0, about)
            if is_sparse(data):
                data, offset = _full_columns_centred(data, mean)
                rounding = constant[_column_numbers(data)] & (data.data != 0.0)
                if rounding.any():
                    data.data[rounding] = 0.0
            else:
                data = data - mean
                data[:, constant] = 0.0
        gram = cls(used, None, float(m), variances, data=data, offset=offset)
        if scale:
            gram.divide(deviations_of(about, squares, m))
        return gram

    @classmethod
    def of_weighted_rows(cls, data: Any, center: bool, scale: bool, weights: FloatArray) -> Gram:
        """Of dense samples with weights, by whose roots the rows are multiplied."""
        mean = np.average(data, axis=0, weights=weights)
        mean = mean + np.average(data - mean, axis=0, weights=weights)
        centred, total = data - mean, float(weights.sum())
        variances, squares = weights @ centred**2, weights @ data**2
        centred[:, is_constant(variances, squares)] = 0.0
        rows = (centred if center else data) * np.sqrt(weights)[:, np.newaxis]
        gram = cls.of_rows(rows, False)
        gram.n_samples, gram.mean = total, mean if center else np.zeros_like(mean)
        if scale:
            gram.divide(deviations_of(variances, squares, total))
        return gram

    @classmethod
    def of_sums(
        cls, sums: Moments, center: bool, scale: bool, n_threads: int | None, *, keep: bool
    ) -> Gram:
        """Of sums over samples, which are released on the way with ``keep=False``.

        Memory then holds one n × n matrix instead of two.
        """
        weight, precision = sums.weight, sums.precision
        mean, negative, deviation = sums.read(center, scale, keep, n_threads)
        mean = mean if center else np.zeros_like(mean)
        return cls.formed(negative, mean, deviation, weight, precision)

    @classmethod
    def of_covariance(
        cls, matrix: FloatArray, mean: FloatArray, weight: float, center: bool, scale: bool
    ) -> Gram:
        """Of sums of squares about the mean, which are overwritten."""
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
        mean = mean / divisor if center else np.zeros_like(mean)
        return cls.formed(matrix, mean, deviation, weight, "exact")

    @classmethod
    def formed(
        cls,
        negative: FloatArray,
        mean: FloatArray,
        scale: FloatArray | None,
        n_samples: float,
        precision: Precision,
    ) -> Gram:
        """Of a formed ``−AᵀA``."""
        variances = np.maximum(-np.diag(negative), 0.0)
        return cls(mean, scale, n_samples, variances, negative, precision=precision)

    def divide(self, scale: FloatArray) -> None:
        """Divides the columns of A, which is given by rows, by ``scale``."""
        sparse = is_sparse(self.data)
        self.data = self.data.multiply(1.0 / scale).tocsc() if sparse else self.data / scale
        self.scale = scale if self.scale is None else self.scale * scale
        self.mean = self.mean / scale
        self.offset = self.offset / scale
        self.variances = self.variances / scale**2

    @property
    def total(self) -> float:
        """Squared Frobenius norm of A."""
        return max(float(self.variances.sum()), np.finfo(np.float64).tiny)

    def second(self, x: FloatArray) -> FloatArray:
        """``XᵀAᵀAX``."""
        if self.negative is not None:
            return np.asarray(-(x.T @ (self.negative @ x)))
        scores = self.scores(x)
        return np.asarray(scores.T @ scores)

    # Of the rows of A -----------------------------------------------------------------------------

    @property
    def pending(self) -> bool:
        """True if ``offset`` is not zero."""
        return bool(np.any(self.offset))

    def scores(self, x: FloatArray) -> FloatArray:
        """The product A X."""
        return np.asarray(self.data @ x - self.offset @ x)

    def transposed(self, w: FloatArray) -> FloatArray:
        """The product Aᵀ w for a vector w."""
        return np.asarray(self.data.T @ w - self.offset * w.sum())

    def gram_rows(self, rows: Any) -> FloatArray:
        """The rows ``rows`` of AᵀA."""
        product = self.data[:, rows].T @ self.data
        product = np.asarray(product.toarray() if is_sparse(product) else product)
        if self.pending:
            sums, offset = np.asarray(self.data.sum(axis=0)).ravel(), self.offset
            product -= np.outer(offset[rows], sums - self.data.shape[0] * offset)
            product -= np.outer(sums[rows], offset)
        return product

    def smaller_gram(self) -> FloatArray:
        """The smaller one of AᵀA and AAᵀ, which have the same nonzero eigenvalues."""
        if self.data.shape[1] <= self.data.shape[0]:
            return self.gram_rows(slice(None))
        product = self.data @ self.data.T
        product = np.asarray(product.toarray() if is_sparse(product) else product)
        along = np.asarray(self.data @ self.offset)
        return np.asarray(product - along[:, np.newaxis] - along + self.offset @ self.offset)


def coordinates(
    data: Any, axes: FloatArray, mean: FloatArray, scale: FloatArray | None
) -> FloatArray:
    """Scaled and centred data times ``axes``; sparse data stays sparse.

    All may be arrays of another library that follows the array API.
    """
    if is_sparse(data):
        product = data @ (axes if scale is None else axes / scale[:, None])
        return np.asarray(product) - mean @ axes
    product = ((data if scale is None else data / scale) - mean) @ axes
    return np.asarray(product) if isinstance(data, np.ndarray) else product


def squares(data: Any, mean: FloatArray, scale: FloatArray | None) -> float:
    """Sum of squares about the mean, after the division by ``scale``."""
    divisor = np.ones(data.shape[1]) if scale is None else scale
    return float(np.sum(squares_about(data, mean * divisor) / divisor**2))


def explained_squares(
    data: Any,
    axes: FloatArray,
    mean: FloatArray,
    scale: FloatArray | None,
    *,
    xp: Any = np,
) -> tuple[float, float]:
    """Sums of squares about the mean: those explained by orthonormal axes, and the total.

    ``xp`` is the library of all arrays.
    """
    explained = float(xp.sum(coordinates(data, axes, mean, scale) ** 2))
    if xp is np:
        return explained, squares(data, mean, scale)
    return explained, float(xp.sum(((data if scale is None else data / scale) - mean) ** 2))
