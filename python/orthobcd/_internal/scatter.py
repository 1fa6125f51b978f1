"""Sums over samples that are exact, so that neither their order nor how they are given matters.

The data is cut into slices of few bits, whose products sum without rounding (Ozaki, Ogita, Oishi
and Rump 2012), and the sums are kept in two doubles each. What is read of them is the exact second
moment of the data up to its last bit: the same of samples in another order, in parts, or repeated
instead of weighted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .checks import FloatArray, is_sparse

BITS = 21
"""Bits of a slice."""

ROWS = 2**11
"""Samples that are summed at once: products of two slices then have at most 53 bits."""

SLICES = 4
"""Slices of a number: 84 bits below the largest of its column."""

SPLITTER = 2.0**27 + 1.0
"""Cuts a double into two of 26 bits."""


class Pair(NamedTuple):
    """The sum of two arrays, the second of the size of the rounding of the first."""

    high: FloatArray
    low: FloatArray

    def plus(self, other: FloatArray) -> Pair:
        """This sum with another array."""
        total = two_sum(self.high, other)
        return two_sum(total.high, total.low + self.low)


def two_sum(a: FloatArray, b: FloatArray) -> Pair:
    """a + b and its rounding error (Knuth)."""
    total = a + b
    shown = total - a
    return Pair(total, (a - (total - shown)) + (b - shown))


def two_product(a: FloatArray, b: FloatArray) -> Pair:
    """a · b and its rounding error (Dekker)."""

    def halves(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        high = SPLITTER * x - (SPLITTER * x - x)
        return high, x - high

    product = a * b
    (a1, a2), (b1, b2) = halves(a), halves(b)
    return Pair(product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2)


def _slices(x: Pair) -> list[FloatArray]:
    """Parts of an array, of `BITS` bits per column each, that sum to it."""
    _, exponents = np.frexp(np.abs(x.high).max(axis=0, initial=0.0))
    parts: list[FloatArray] = []
    rest = x
    for k in range(1, SLICES + 1):
        unit = np.ldexp(1.0, exponents - BITS * k)
        part = np.rint(rest.high / unit) * unit
        parts.append(part)
        rest = two_sum(rest.high - part, rest.low)
        if not rest.high.any():
            break
    return parts


class Scatter:
    """Sufficient statistics of samples: their weight, sum and second moments, which merge exactly.

    Attributes
    ----------
    sums : Pair of ndarray of shape (n + 1, n + 1)
        ``Σ_i w_i z_i z_iᵀ`` for the samples followed by a one, ``z = (x, 1)``.
    """

    def __init__(self, n: int) -> None:
        self.sums = Pair(np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1)))

    @property
    def weight(self) -> float:
        """Number of samples, or the sum of their weights."""
        return float(self.sums.high[-1, -1])

    def add(self, data: Any, weights: FloatArray | None = None) -> None:
        """Add samples.

        Parameters
        ----------
        data : ndarray or sparse matrix of shape (m, n)
            Samples; only a part at a time is copied, as dense float64.
        weights : ndarray of shape (m,), optional
            How often each counts; once by default.
        """
        for start in range(0, data.shape[0], ROWS):
            rows = data[start : start + ROWS]
            rows = np.asarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64)
            rows = np.hstack([rows, np.ones((len(rows), 1))])
            left = _slices(Pair(rows, np.zeros_like(rows)))
            if weights is None:
                self._add_products(left, left)
            else:
                some = weights[start : start + ROWS, np.newaxis]
                self._add_products(left, _slices(two_product(rows, some)))

    def _add_products(self, left: list[FloatArray], right: list[FloatArray]) -> None:
        same = left is right
        for i, a in enumerate(left):
            # What is left out is below the last bit of a pair of doubles.
            for j, b in enumerate(right[: SLICES + 1 - i]):
                if same and j < i:
                    continue
                product = a.T @ b
                self.sums = self.sums.plus(product)
                if same and j > i:
                    self.sums = self.sums.plus(product.T)

    def moments(self, center: bool, scale: bool) -> tuple[SecondMoments, FloatArray | None]:
        """The moments of the samples centred and divided by their deviations, and those."""
        sums, last = self.sums, Pair(self.sums.high[:-1, -1], self.sums.low[:-1, -1])
        weight = self.weight
        mean = np.asarray((last.high + last.low) / weight)
        # Σ x_a Σ x_b / W and what division and products leave, subtracted from Σ x_a x_b.
        part = last.high / weight
        left = two_product(part, np.full_like(part, weight))
        part_low = ((last.high - left.high) - left.low + last.low) / weight
        outer = two_product(part[:, np.newaxis], last.high[np.newaxis])
        low = outer.low + np.outer(part, last.low) + np.outer(part_low, last.high)
        about = Pair(sums.high[:-1, :-1], sums.low[:-1, :-1]).plus(-outer.high).plus(-low)
        centred = about.high
        deviation = None
        if scale:
            deviation = np.sqrt(np.maximum(np.diag(centred), 0.0) / weight)
            constant = np.diag(centred) <= CONSTANT * np.diag(sums.high)[:-1]
            deviation[constant] = 1.0
        matrix = centred if center else sums.high[:-1, :-1]
        if deviation is not None:
            matrix, mean = matrix / np.outer(deviation, deviation), mean / deviation
        return SecondMoments(mean if center else np.zeros_like(mean), matrix), deviation


CONSTANT = 2.0**-90
"""Variance of a feature relative to its mean square, at most, that counts as none: its rounding."""


class SecondMoments:
    """What a fit needs of data of which only ``AᵀA`` is there.

    Attributes
    ----------
    mean : ndarray of shape (n,)
        What was subtracted.
    matrix : ndarray of shape (n, n)
        ``AᵀA``.
    """

    def __init__(self, mean: FloatArray, matrix: FloatArray) -> None:
        self.mean = mean
        self.matrix = 0.5 * (matrix + matrix.T)

    @property
    def total(self) -> float:
        """Squared Frobenius norm of A."""
        return max(float(np.trace(self.matrix)), np.finfo(np.float64).tiny)

    def second(self, x: FloatArray) -> FloatArray:
        """``XᵀAᵀAX``."""
        return np.asarray(x.T @ (self.matrix @ x))
