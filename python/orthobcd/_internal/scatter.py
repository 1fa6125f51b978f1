"""Sums over samples that are exact, so that neither their order nor how they are given matters.

The data is cut into slices of few bits, whose products sum without rounding (Ozaki, Ogita, Oishi
and Rump 2012), and the sums are kept in two doubles each. What is read of them is the exact second
moment of the data up to its last bit: the same of samples in another order, in parts, or repeated
instead of weighted.
"""

from __future__ import annotations

from functools import reduce
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from .checks import FloatArray, is_sparse

BITS = 21
"""Bits of a slice."""

ROWS = 2**11
"""Samples that are summed at once: products of two slices then have at most 53 bits."""

SLICES = 4
"""Slices of a number: 84 bits below the largest of its column."""

STRIP = 2**20
"""Entries of the sums that are added to at once, about: temporary arrays are of this size."""

STRIPS = 8
"""Strips of the upper triangle, at least, so that little is summed below it; of many rows."""

LEAST_STRIP = 128
"""Rows of a strip, at least."""

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
    strips : list of Pair of ndarray
        ``Σ_i w_i z_i z_iᵀ`` for the samples followed by a one, ``z = (x, 1)``: its upper triangle,
        some rows at a time, each from the first of their diagonal entries on.
    """

    def __init__(self, n: int) -> None:
        rows = max(LEAST_STRIP, min(n // STRIPS, STRIP // (n + 1)))
        bounds = [*range(0, n + 1, rows), n + 1]
        shapes = [(to - start, n + 1 - start) for start, to in pairwise(bounds)]
        self.strips = [Pair(np.zeros(shape), np.zeros(shape)) for shape in shapes]

    @property
    def weight(self) -> float:
        """Number of samples, or the sum of their weights."""
        return float(self.strips[-1].high[-1, -1])

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
        # What is left out is below the last bit of a pair of doubles. Only first slices have all
        # their bits beside the sign, so that the two products of different slices sum exactly too.
        pairs = [(i, j) for i in range(SLICES) for j in range(i, SLICES) if i + j <= SLICES]
        for k, (start, to) in enumerate(self._bounds()):
            for i, j in pairs:
                products = [
                    left[a][:, start:to].T @ right[b][:, start:]
                    for a, b in sorted({(i, j), (j, i)})
                    if a < len(left) and b < len(right)
                ]
                if products:
                    self.strips[k] = self.strips[k].plus(reduce(np.add, products))

    def _bounds(self) -> list[tuple[int, int]]:
        """The first row of every strip, and that after its last."""
        return list(pairwise(accumulate((len(strip.high) for strip in self.strips), initial=0)))

    def moments(self, center: bool, scale: bool) -> tuple[SecondMoments, FloatArray | None]:
        """The moments of the samples centred and divided by their deviations, and those."""
        totals = _joined([Pair(strip.high[:, -1], strip.low[:, -1]) for strip in self.strips])
        n, weight = len(totals.high) - 1, self.weight
        # What division leaves of the means.
        part = totals.high / weight
        left = two_product(part, np.full_like(part, weight))
        means = Pair(part, ((totals.high - left.high) - left.low + totals.low) / weight)
        mean = (totals.high + totals.low)[:n] / weight
        deviation = None
        if scale:
            squares = _joined([Pair(*map(np.diagonal, strip)) for strip in self.strips])
            variances = _centred(squares, means, totals)[:n]
            deviation = np.sqrt(np.maximum(variances, 0.0) / weight)
            deviation[variances <= CONSTANT * squares.high[:n]] = 1.0
            mean = mean / deviation
        negative = np.empty((n, n))
        for (start, to), strip in zip(self._bounds(), self.strips, strict=True):
            own = Pair(means.high[start:to, np.newaxis], means.low[start:to, np.newaxis])
            others = Pair(totals.high[start:], totals.low[start:])
            block = _centred(strip, own, others) if center else strip.high
            block = -block[: n - start, :-1]
            if deviation is not None:
                block /= np.outer(deviation[start:to], deviation[start:])
            k = len(block)
            upper = np.triu(block)
            negative[start : start + k, start:] = upper
            negative[start:, start : start + k] = upper.T
            negative[start : start + k, start : start + k] += np.triu(block[:, :k], 1)
        return SecondMoments(mean if center else np.zeros_like(mean), negative), deviation


def _joined(parts: list[Pair]) -> Pair:
    """One vector from its parts."""
    return Pair(
        np.concatenate([part.high for part in parts]), np.concatenate([part.low for part in parts])
    )


def _centred(sums: Pair, means: Pair, totals: Pair) -> FloatArray:
    """``Σ x_a x_b − mean_a Σ x_b``."""
    outer = two_product(means.high, totals.high)
    low = outer.low + means.high * totals.low + means.low * totals.high
    return sums.plus(-outer.high).plus(-low).high


CONSTANT = 2.0**-90
"""Variance of a feature relative to its mean square, at most, that counts as none: its rounding."""


class SecondMoments:
    """What a fit needs of data of which only ``AᵀA`` is there.

    Attributes
    ----------
    mean : ndarray of shape (n,)
        What was subtracted.
    negative : ndarray of shape (n, n)
        ``−AᵀA``, symmetric: what is minimised, so that no other copy of it is needed.
    """

    def __init__(self, mean: FloatArray, negative: FloatArray) -> None:
        self.mean = mean
        self.negative = negative

    @property
    def total(self) -> float:
        """Squared Frobenius norm of A."""
        return max(-float(np.trace(self.negative)), np.finfo(np.float64).tiny)

    def second(self, x: FloatArray) -> FloatArray:
        """``XᵀAᵀAX``."""
        return np.asarray(-(x.T @ (self.negative @ x)))
