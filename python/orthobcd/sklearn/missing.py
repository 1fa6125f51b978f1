"""Missing values: the EM algorithm of probabilistic PCA (Tipping and Bishop 1999, appendix B)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._internal.checks import FloatArray

STEPS = 200
"""Largest number of iterations of the EM algorithm."""

TOLERANCE = 1e-6
"""Relative change of the second moments at which the EM algorithm has converged."""

LEAST_NOISE = 1e-8
"""Smallest noise variance, relative to the mean variance of a feature; keeps matrices regular."""


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
        for i in np.flatnonzero(gaps.any(axis=1)):
            self._complete(out, gaps, i)
        return out

    def _complete(self, out: FloatArray, gaps: FloatArray, i: Any) -> FloatArray:
        """Completes row i of ``out``; returns the covariance of z given the known entries."""
        known = ~gaps[i]
        w = self.loadings[known]
        inverse = np.linalg.inv(w.T @ w + self.noise * np.eye(w.shape[1]))
        z = inverse @ (w.T @ (out[i, known] / self.scale[known] - self.mean[known]))
        missing = gaps[i]
        out[i, missing] = (self.mean[missing] + self.loadings[missing] @ z) * self.scale[missing]
        return np.asarray(self.noise * inverse)

    def expected(self, data: FloatArray, gaps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the completed data, in units of ``scale`` (the E step)."""
        out = data.copy()
        n = data.shape[1]
        unsure = np.zeros((n, n))
        for i in np.flatnonzero(gaps.any(axis=1)):
            spread = self._complete(out, gaps, i)
            missing = np.flatnonzero(gaps[i])
            w = self.loadings[missing]
            unsure[np.ix_(missing, missing)] += w @ spread @ w.T
            unsure[missing, missing] += self.noise
        out /= self.scale
        mean = out.mean(axis=0)
        about = out - mean
        return mean, (about.T @ about + unsure) / len(data)


def gaussian_of(data: FloatArray, r: int) -> tuple[Gaussian, FloatArray, FloatArray]:
    """Maximum likelihood model with r factors, and mean and covariance of the data under it.

    Parameters
    ----------
    data : ndarray of shape (m, n)
        NaN where missing.
    r : int
        Number of factors.

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
    model = _likeliest(mean, covariance, r, scale)
    for _ in range(STEPS):
        mean, after = model.expected(data, gaps)
        change = float(np.linalg.norm(after - covariance))
        covariance = after
        model = _likeliest(mean, covariance, r, scale)
        if change <= TOLERANCE * float(np.linalg.norm(covariance)):
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
