"""Missing values: the EM algorithm of probabilistic PCA (Tipping and Bishop 1999, appendix B).

A step for r factors costs products of the data with 2r vectors; no n × n matrix is formed. The M
step maximises over the loadings in the span of the present ones and of their product with the
expected covariance, so that the likelihood never falls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from .._internal.checks import FloatArray, IntArray, is_sparse
from ..data import Gram, column_means, deviations_of, is_constant
from ..solving import Solve

STEPS = 200
"""Largest number of iterations of the EM algorithm."""

TOLERANCE = 1e-6
"""Relative change of the modelled covariance at which the EM algorithm has converged."""

LEAST_NOISE = 1e-8
"""Smallest noise variance, relative to the mean variance of a feature; keeps matrices regular."""

ENTRIES = 1 << 21
"""Largest number of entries of the arrays for the rows that are completed together."""

LEAST_WIDTH, COLUMNS = 8, 32
"""Least number of factors for which the parts are measured, and columns of a covariance that are
computed together: they bound the memory of a part for few factors."""

LANCZOS, PRECISION = 500, 1e-4
"""Size of a matrix from which on few eigenvectors are found by Lanczos iterations, and their
precision; the steps of the EM algorithm refine them."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows with gaps: means and covariances ``spreads`` of their factors, loadings of their gaps.

    ``index`` has the missing features of each row, filled up to one length; ``loadings`` are 0
    where it is filled up. ``scatter`` adds what belongs to the gaps to the features.
    """

    rows: IntArray
    index: IntArray
    loadings: FloatArray
    scatter: Any
    means: FloatArray
    spreads: FloatArray


@dataclass(frozen=True, eq=False)
class Gaussian:
    """The model ``x = mean + loadings z + noise``, z standard normal, noise of equal variance.

    Features are in units of ``scale``. A feature that is not ``varying`` equals its mean.
    """

    mean: FloatArray
    loadings: FloatArray
    noise: float
    scale: FloatArray
    varying: NDArray[np.bool_]

    def completed(self, data: FloatArray, parts: Sequence[Part] | None = None) -> FloatArray:
        """Data with every missing entry replaced by its mean given the known ones of its row."""
        out = np.array(data, dtype=np.float64)
        for part in self.parts(data) if parts is None else parts:
            fitted = (self.mean + part.means @ self.loadings.T) * self.scale
            out[part.rows] = np.where(np.isnan(out[part.rows]), fitted, out[part.rows])
        return out

    def parts(self, data: FloatArray) -> Iterator[Part]:
        """The rows with gaps, in parts whose arrays have about `ENTRIES` entries (the E step)."""
        gaps = np.isnan(data)
        rows = np.flatnonzero(gaps.any(axis=1))
        n, r = self.loadings.shape
        size = max(1, ENTRIES // (n * max(r, LEAST_WIDTH)))
        for start in range(0, len(rows), size):
            own = rows[start : start + size]
            i, j = np.nonzero(gaps[own])
            counts = np.bincount(i, minlength=len(own))
            place = np.arange(len(i)) - (np.cumsum(counts) - counts)[i]
            width = int(counts.max())
            index = np.zeros((len(own), width), dtype=np.int64)
            index[i, place] = j
            loadings = np.zeros((len(own), width, r))
            loadings[i, place] = self.loadings[j]
            scatter = sparse.csr_array(
                (np.ones(len(i)), (j, i * width + place)), shape=(n, len(own) * width)
            )
            known = np.where(gaps[own], 0.0, data[own] / self.scale - self.mean)
            precision = self.loadings.T @ self.loadings - loadings.transpose(0, 2, 1) @ loadings
            inverse: Any = np.linalg.inv(precision + self.noise * np.eye(r))
            means = np.matmul(inverse, (known @ self.loadings)[:, :, np.newaxis])[:, :, 0]
            yield Part(own, index, loadings, scatter, means, self.noise * inverse)

    def unsure(self, parts: Sequence[Part], vectors: FloatArray) -> FloatArray:
        """Product of the sum of the covariances of the rows' missing entries with ``vectors``."""
        out = np.zeros_like(vectors)
        for part in parts if vectors.size else ():
            inner = part.loadings.transpose(0, 2, 1) @ vectors[part.index]
            back = part.loadings @ (part.spreads @ inner)
            counts = np.asarray(part.scatter.sum(axis=1))[:, np.newaxis]
            out += part.scatter @ back.reshape(-1, vectors.shape[1]) + self.noise * counts * vectors
        return np.asarray(out * self.varying[:, np.newaxis])

    def unsure_total(self, parts: Sequence[Part]) -> float:
        """The trace of that sum, for features that all vary."""
        found = 0.0
        for part in parts:
            found += float(np.sum((part.loadings @ part.spreads) * part.loadings))
            found += self.noise * part.scatter.nnz
        return found

    def moments(self, data: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance (1/m) of the completed data, with the variance of missing entries."""
        parts = list(self.parts(data))
        out = self.completed(data, parts)
        n = len(self.mean)
        covariance = np.empty((n, n))
        for start in range(0, n, COLUMNS):
            columns = np.eye(n, COLUMNS, -start)[:, : n - start]
            covariance[:, start : start + COLUMNS] = self.unsure(parts, columns)
        covariance *= np.outer(self.scale, self.scale)
        mean = column_means(out)
        about = out - mean
        covariance += about.T @ about
        return mean, (covariance + covariance.T) / (2.0 * len(data))


def standardized(data: FloatArray) -> tuple[FloatArray, Gaussian]:
    """The features that vary, centred and divided by their standard deviations; NaN where missing.

    Also a model without factors, which has means, scales and what varies. Both are those of the
    known entries.
    """
    gaps = np.isnan(data)
    known = np.count_nonzero(~gaps, axis=0)
    if not known.all():
        empty = int(np.flatnonzero(known == 0)[0])
        raise ValueError(f"X must have a value of every feature, {empty} has none")
    means = np.where(gaps, 0.0, data).sum(axis=0) / known
    # The mean of the remainder corrects the rounding error of the first mean.
    means = means + np.where(gaps, 0.0, data - means).sum(axis=0) / known
    variances = np.where(gaps, 0.0, (data - means) ** 2).sum(axis=0) / known
    squares = variances + means**2
    varying = ~is_constant(variances, squares)
    scale = deviations_of(variances, squares, 1.0)
    units = (data[:, varying] - means[varying]) / scale[varying]
    return units, Gaussian(means / scale, np.zeros((len(means), 1)), 1.0, scale, varying)


def gaussian_of(
    data: FloatArray,
    r: int,
    begin: Gaussian | None = None,
    tolerance: float = TOLERANCE,
    steps: int = STEPS,
    deadline: Solve | None = None,
) -> Gaussian:
    """Maximum likelihood model with r factors, fewer than the features that vary.

    Parameters
    ----------
    data : ndarray of shape (m, n)
        NaN where missing.
    r : int
        Number of factors.
    begin : Gaussian, optional
        Start of the iteration, a model of the same data with at most r factors; by default the
        principal components of the data with the mean in place of missing values.
    tolerance : float
        Relative change of the modelled covariance at which the iteration ends.
    steps : int
        Largest number of iterations.
    deadline : Solve, optional
        Context whose time limit ends the iteration.

    Returns
    -------
    Gaussian
        Of data without missing values that of the principal components.
    """
    units, plain = standardized(data)
    n = units.shape[1]
    if n == 0:
        return plain
    r = max(1, min(r, n - 1))
    filled = np.nan_to_num(units, nan=0.0)
    ones = np.ones(n)
    model = Gaussian(np.zeros(n), np.zeros((n, r)), 1.0, ones, ones > 0.0)
    if begin is None:
        model, vectors = _maximised(model, filled, (), _principal(filled, r))
    else:
        own = begin.loadings[plain.varying]
        model = replace(
            model,
            mean=(begin.mean - plain.mean)[plain.varying],
            loadings=np.pad(own, ((0, 0), (0, r - own.shape[1]))),
            noise=begin.noise,
        )
        rest = model.completed(units) - model.mean
        span = np.linalg.qr(own)[0]
        further = _principal(rest - (rest @ span) @ span.T, r - own.shape[1])
        vectors = np.linalg.qr(np.column_stack([span, further]))[0]
    for _ in range(steps):
        before, parts = model, list(model.parts(units))
        model, vectors = _maximised(model, model.completed(units, parts), parts, vectors)
        over = deadline is not None and deadline.max_time == 0.0
        if over or _change(before, model) <= tolerance:
            break
    loadings = np.zeros((len(plain.mean), r))
    loadings[plain.varying] = model.loadings
    mean = plain.mean.copy()
    mean[plain.varying] += model.mean
    return replace(plain, mean=mean, loadings=loadings, noise=model.noise)


def gram_by_em(
    data: FloatArray, r: int, center: bool, scale: bool, deadline: Solve | None = None
) -> tuple[Gaussian, Gram]:
    """Model with r factors and Gram matrix of data with missing values, by the EM algorithm."""
    m = len(data)
    model = gaussian_of(data, r, deadline=deadline)
    mean, covariance = model.moments(data)
    gram = Gram.of_covariance(m * covariance, mean, float(m), center, scale)
    gram.precision = "fast"
    return model, gram


def gaussian_from(gram: Gram, r: int) -> Gaussian:
    """`gaussian_of` complete data with this Gram matrix.

    If the Gram matrix is not of centred data, neither is the model.
    """
    weight = gram.n_samples
    variances = gram.variances / weight
    squares = variances + gram.mean**2
    varying = ~is_constant(variances, squares)
    unit = deviations_of(variances, squares, 1.0)
    mean = gram.mean / unit
    scale = unit if gram.scale is None else unit * gram.scale
    n, loadings = int(varying.sum()), np.zeros((len(mean), 1))
    if n == 0:
        return Gaussian(mean, loadings, 1.0, scale, varying)
    r, own = max(1, min(r, n - 1)), unit[varying]
    if gram.negative is not None:
        scaled = -gram.negative[np.ix_(varying, varying)] / (weight * np.outer(own, own))
        vectors = _leading(scaled, r)
        values = np.sum(vectors * (scaled @ vectors), axis=0)
    elif is_sparse(gram.data):
        inverse = np.where(varying, 1.0 / (unit * np.sqrt(weight)), 0.0)
        values, vectors = _leading_of(gram, inverse, min(r, gram.data.shape[0]))
        vectors = vectors[varying]
    else:
        rows = gram.data[:, varying] / (own * np.sqrt(weight))
        vectors = _principal(rows, r)
        values = np.sum((rows @ vectors) ** 2, axis=0)
    noise = max((n - float(values.sum())) / (n - r) if n > r else 0.0, LEAST_NOISE)
    loadings = np.zeros((len(mean), len(values)))
    loadings[varying] = vectors * np.sqrt(np.maximum(values - noise, 0.0))
    return Gaussian(mean, loadings, noise, scale, varying)


def _maximised(
    model: Gaussian, completed: FloatArray, parts: Sequence[Part], vectors: FloatArray
) -> tuple[Gaussian, FloatArray]:
    """The likeliest model with loadings in a span that holds ``vectors`` (the M step).

    Also orthonormal directions of its loadings, as many as ``vectors``, which are orthonormal.
    """
    (m, n), r = completed.shape, vectors.shape[1]
    mean = completed.mean(axis=0)
    about = completed - mean

    def product(v: FloatArray) -> FloatArray:
        """m times the expected covariance times v."""
        return np.asarray(about.T @ (about @ v) + model.unsure(parts, v))

    first = product(vectors)
    basis, triangle = np.linalg.qr(np.column_stack([vectors, first]))
    # The first r columns of the basis are the vectors up to signs.
    image = np.column_stack([first * np.sign(np.diag(triangle)[:r]), product(basis[:, r:])])
    values, turn = np.linalg.eigh(basis.T @ image / m)
    values, turn = values[::-1][:r], turn[:, ::-1][:, :r]
    total = (float(np.sum(about**2)) + model.unsure_total(parts)) / m
    least = LEAST_NOISE * max(total / n, np.finfo(np.float64).tiny)
    noise = max((total - float(values.sum())) / (n - r) if n > r else 0.0, least)
    vectors = basis @ turn
    strength = np.sqrt(np.maximum(values - noise, 0.0))
    return replace(model, mean=mean, loadings=vectors * strength, noise=noise), vectors


def _principal(about: FloatArray, r: int) -> FloatArray:
    """Orthonormal columns that span about the r first principal components of centred data."""
    m, n = about.shape
    if n <= m:
        return _leading(about.T @ about, r)
    found = about.T @ _leading(about @ about.T, min(r, m))
    # Directions beyond the rank of the data are any that are orthogonal to the others.
    return np.asarray(np.linalg.qr(np.pad(found, ((0, 0), (0, r - found.shape[1]))))[0])


def _leading(gram: FloatArray, k: int) -> FloatArray:
    """Orthonormal columns that span about the k leading eigenvectors, by falling eigenvalue."""
    n = len(gram)
    if k == 0:
        return np.zeros((n, 0))
    if n < LANCZOS or 10 * k > n:
        vectors = eigh(gram, subset_by_index=(n - k, n - 1))[1]
    else:
        begin = np.random.default_rng(0).standard_normal(n)
        vectors = eigsh(gram, k, v0=begin, tol=PRECISION)[1]
    return np.asarray(vectors[:, ::-1])


def _leading_of(gram: Gram, factors: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """About the k leading eigenvalues and eigenvectors of AᵀA, A with columns times ``factors``."""
    n = len(factors)
    scaled = LinearOperator(
        (n, n), lambda v: factors * gram.transposed(gram.scores(factors * v.ravel()))
    )
    begin = np.random.default_rng(0).standard_normal(n)
    values, vectors = eigsh(scaled, k, v0=begin, tol=PRECISION)
    return np.maximum(values, 0.0), vectors


def _change(before: Gaussian, after: Gaussian) -> float:
    """Relative change of the modelled covariance ``W Wᵀ + noise I``."""
    pair = np.column_stack([after.loadings, before.loadings])
    signs = np.repeat([1.0, -1.0], [after.loadings.shape[1], before.loadings.shape[1]])
    triangle: Any = np.linalg.qr(pair, mode="r")
    root = np.sqrt(len(pair))
    change = np.linalg.norm((triangle * signs) @ triangle.T) + root * abs(
        after.noise - before.noise
    )
    size = np.linalg.norm(after.loadings.T @ after.loadings) + root * after.noise
    return float(change / size)
