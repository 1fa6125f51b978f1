"""Missing values: the EM algorithm of probabilistic PCA (Tipping and Bishop 1999, appendix B)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._internal.checks import FloatArray, IntArray

STEPS = 200
"""Largest number of iterations of the EM algorithm."""

TOLERANCE = 1e-6
"""Relative change of the second moments at which the EM algorithm has converged."""

LEAST_NOISE = 1e-8
"""Smallest noise variance, relative to the mean variance of a feature; keeps matrices regular."""

ENTRIES = 1 << 21
"""Largest number of entries of the arrays for the rows that are completed together."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """The model ``x = mean + loadings z + noise``, z standard normal, noise of equal variance.

    Features are in units of ``scale``.
    """

    mean: FloatArray
    loadings: FloatArray
    noise: float
    scale: FloatArray

    def completed(self, data: FloatArray) -> FloatArray:
        """Data with every missing entry replaced by its mean given the known ones of its row."""
        gaps = np.isnan(data)
        out = np.array(data, dtype=np.float64)
        for rows in self._parts(gaps):
            self._complete(out, gaps, rows)
        return out

    def _parts(self, gaps: FloatArray) -> Iterator[IntArray]:
        """Indices of the rows with gaps, in parts whose arrays have about `ENTRIES` entries."""
        rows = np.flatnonzero(gaps.any(axis=1))
        n, r = self.loadings.shape
        size = max(1, ENTRIES // (max(n, r) * max(1, r)))
        return (rows[start : start + size] for start in range(0, len(rows), size))

    def _complete(self, out: FloatArray, gaps: FloatArray, rows: IntArray) -> FloatArray:
        """Completes rows of ``out``; returns the covariances of their z given the known entries."""
        missing, w = gaps[rows], self.loadings
        r = w.shape[1]
        known = np.where(missing, 0.0, 1.0)
        outer = (w[:, :, np.newaxis] * w[:, np.newaxis, :]).reshape(len(w), r * r)
        inverse = np.linalg.inv((known @ outer).reshape(-1, r, r) + self.noise * np.eye(r))
        about = np.where(missing, 0.0, out[rows] / self.scale - self.mean)
        z = np.matmul(inverse, (about @ w)[:, :, np.newaxis])[:, :, 0]
        out[rows] = np.where(missing, (self.mean + z @ w.T) * self.scale, out[rows])
        return np.asarray(self.noise * inverse)

    def expected(self, data: FloatArray, gaps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the completed data, in units of ``scale`` (the E step)."""
        out = data.copy()
        n, r = self.loadings.shape
        unsure = np.diag(self.noise * gaps.sum(axis=0))
        for rows in self._parts(gaps):
            spread = self._complete(out, gaps, rows)
            # The covariance of a row's missing entries is F Fᵀ plus the noise.
            factors = np.matmul(self.loadings, np.linalg.cholesky(spread))
            factors *= gaps[rows][:, :, np.newaxis]
            flat = factors.transpose(1, 0, 2).reshape(n, len(rows) * r)
            unsure += flat @ flat.T
        out /= self.scale
        mean = out.mean(axis=0)
        about = out - mean
        return mean, (about.T @ about + unsure) / len(data)


def gaussian_of(
    data: FloatArray,
    r: int,
    begin: tuple[FloatArray, FloatArray] | None = None,
    tolerance: float = TOLERANCE,
) -> tuple[Gaussian, FloatArray, FloatArray]:
    """Maximum likelihood model with r factors, and mean and covariance of the data under it.

    Parameters
    ----------
    data : ndarray of shape (m, n)
        NaN where missing.
    r : int
        Number of factors.
    begin : mean and covariance, optional
        Start of the iteration, as returned for another number of factors; by default the moments
        with the mean in place of missing values.
    tolerance : float
        Relative change of the covariance at which the iteration ends.

    Returns
    -------
    Gaussian, mean of shape (n,), covariance (1/m) of shape (n, n)
        Without missing values, mean and covariance are those of the data.

    Raises
    ------
    ValueError
        If a feature has no value at all.
    """
    gaps = np.isnan(data)
    empty = np.flatnonzero(gaps.all(axis=0))
    if len(empty):
        raise ValueError(f"X must have a value of every feature, {empty[0]} has none")
    n = data.shape[1]
    r = max(1, min(r, n - 1))
    scale = np.nanstd(data, axis=0)
    scale[scale == 0.0] = 1.0
    mean = np.nanmean(data, axis=0) / scale
    filled = np.where(gaps, 0.0, data / scale - mean)
    covariance = filled.T @ filled / len(data)
    if begin is not None:
        mean, covariance = begin[0] / scale, begin[1] / np.outer(scale, scale)
    model = _likeliest(mean, covariance, r, scale)
    for _ in range(STEPS):
        mean, after = model.expected(data, gaps)
        change = float(np.linalg.norm(after - covariance))
        covariance = after
        model = _likeliest(mean, covariance, r, scale)
        if change <= tolerance * float(np.linalg.norm(covariance)):
            break
    return model, mean * scale, covariance * np.outer(scale, scale)


def _likeliest(mean: FloatArray, covariance: FloatArray, r: int, scale: FloatArray) -> Gaussian:
    """The maximum likelihood model for given moments (the M step)."""
    values, vectors = np.linalg.eigh(covariance)
    n = len(values)
    least = LEAST_NOISE * max(float(values.sum()) / n, np.finfo(np.float64).tiny)
    noise = max(float(values[: n - r].mean()) if n > r else 0.0, least)
    strength = np.sqrt(np.maximum(values[n - r :] - noise, 0.0))
    return Gaussian(mean, vectors[:, n - r :] * strength, noise, scale)
