"""Second moments of centred data, without cancellation, and without densifying sparse data.

Means are subtracted before squaring. Of sparse data only the columns that are more than half full
are centred and stored dense. For the others ``‖v‖² ≤ 2‖v − μ‖²``, so that the difference of stored
values and means loses a bit or two for any means.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._core import CONSTANT
from .checks import FloatArray, is_sparse

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


class Moments:
    """Data A with its columns centred and divided by their standard deviations on request.

    Attributes
    ----------
    mean : ndarray of shape (n,)
        Means that are subtracted after the division; zeros without centring.
    deviation : ndarray of shape (n,), or None
        Standard deviations, 1 for a constant column; None without ``scale``.
    data : ndarray or CSC matrix of shape (m, n)
        A plus ``offset`` in every row. Centred constant columns are exactly zero.
    offset : ndarray of shape (n,)
        Means still to be subtracted from the columns of ``data``; zeros for dense columns.
    variances : ndarray of shape (n,)
        Squared norm of every column of A.
    """

    def __init__(self, data: Any, center: bool, scale: bool = False) -> None:
        n = data.shape[1]
        self.mean = np.zeros(n)
        self.offset = np.zeros(n)
        self.deviation: FloatArray | None = None
        if is_sparse(data):
            data = data.tocsc()
            if not data.has_canonical_format:
                data = data.copy()
                data.sum_duplicates()
        self.variances = squares = squares_about(data, self.mean)
        if center or scale:
            mean = column_means(data)
            variances = squares_about(data, mean)
        if center:
            constant = is_constant(variances, squares)
            self.mean, self.variances = mean, np.where(constant, 0.0, variances)
            if is_sparse(data):
                data, self.offset = _full_columns_centred(data, mean)
                rounding = constant[_column_numbers(data)] & (data.data != 0.0)
                if rounding.any():
                    data.data[rounding] = 0.0
            else:
                data = data - mean
                data[:, constant] = 0.0
        self.data = data
        if scale:
            self.deviation = deviations_of(variances, squares, data.shape[0])
            self.divide(self.deviation)

    def divide(self, deviation: FloatArray) -> None:
        """Divides the columns of A by ``deviation``."""
        sparse = is_sparse(self.data)
        self.data = self.data.multiply(1.0 / deviation).tocsc() if sparse else self.data / deviation
        self.mean = self.mean / deviation
        self.offset = self.offset / deviation
        self.variances = self.variances / deviation**2

    @property
    def pending(self) -> bool:
        """True if ``offset`` is not zero."""
        return bool(self.offset.any())

    @property
    def total(self) -> float:
        """Squared Frobenius norm of A."""
        return max(float(self.variances.sum()), np.finfo(np.float64).tiny)

    def scores(self, x: FloatArray) -> FloatArray:
        """The product A X."""
        return np.asarray(self.data @ x - self.offset @ x)

    def second(self, x: FloatArray) -> FloatArray:
        """``XᵀAᵀAX``."""
        scores = self.scores(x)
        return np.asarray(scores.T @ scores)

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


class SecondMoments:
    """Moments of data of which only ``AᵀA`` is known, with the interface of `Moments`.

    Attributes
    ----------
    mean : ndarray of shape (n,)
        Means that were subtracted.
    negative : ndarray of shape (n, n)
        ``−AᵀA``, symmetric, in the form that the objective uses without another copy.
    """

    def __init__(self, mean: FloatArray, negative: FloatArray) -> None:
        self.mean = mean
        self.negative = negative

    @property
    def variances(self) -> FloatArray:
        """Squared norm of every column of A."""
        return np.maximum(-np.diag(self.negative), 0.0)

    @property
    def total(self) -> float:
        """Squared Frobenius norm of A."""
        return max(float(self.variances.sum()), np.finfo(np.float64).tiny)

    def second(self, x: FloatArray) -> FloatArray:
        """``XᵀAᵀAX``."""
        return np.asarray(-(x.T @ (self.negative @ x)))
