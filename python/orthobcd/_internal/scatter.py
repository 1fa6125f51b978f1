"""Sums over samples: exact, or quick.

`Scatter` cuts the data into slices of few bits, whose products sum without rounding (Ozaki, Ogita,
Oishi and Rump 2012), and keeps the sums in two doubles each. What is read of it is the exact second
moment of the data up to its last bit: the same of samples in another order, in parts, or repeated
instead of weighted. It takes about 25 times as long as a product in double precision.

`Products` takes products in double precision of samples less their means.

Both read a block of `ROWS` samples at a time, whatever its type, and compute in double precision:
equal numbers give equal moments, and the data is never copied as a whole.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from .checks import FloatArray, is_sparse

Precision = Literal["fast", "exact"]
"""How sums over samples are computed."""

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
    rows : int
        Number of samples, whatever their weights.
    strips : list of Pair of ndarray
        ``Σ_i w_i z_i z_iᵀ`` for the samples followed by a one, ``z = (x, 1)``: its upper triangle,
        some rows at a time, each from the first of their diagonal entries on.
    """

    precision: ClassVar[Precision] = "exact"

    def __init__(self, n: int) -> None:
        self.rows = 0
        *edges, _ = _edges(n)
        shapes = [(to - start, n + 1 - start) for start, to in pairwise([*edges, n + 1])]
        self.strips = [Pair(np.zeros(shape), np.zeros(shape)) for shape in shapes]

    @property
    def weight(self) -> float:
        """Number of samples, or the sum of their weights."""
        return float(self.strips[-1].high[-1, -1])

    def copy(self) -> Scatter:
        """The same samples, to which others can be added; no array is copied."""
        twin = copy.copy(self)
        twin.strips = list(self.strips)
        return twin

    def add(self, data: Any, weights: FloatArray | None = None) -> None:
        """Add samples.

        Parameters
        ----------
        data : ndarray or sparse matrix of shape (m, n)
            Samples; only a part at a time is copied, as dense float64.
        weights : ndarray of shape (m,), optional
            How often each counts; once by default.
        """
        for block, some in _blocks(data, weights):
            self.rows += len(block)
            rows = np.hstack([np.asarray(block, dtype=np.float64), np.ones((len(block), 1))])
            left = _slices(Pair(rows, np.zeros_like(rows)))
            if some is None:
                self._add_products(left, left)
            else:
                self._add_products(left, _slices(two_product(rows, some[:, np.newaxis])))

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
        return _bounds([strip.high for strip in self.strips])

    def _totals(self) -> Pair:
        """The sum of the samples followed by their weight."""
        return _joined([Pair(strip.high[:, -1], strip.low[:, -1]) for strip in self.strips])

    def _means(self) -> Pair:
        """The means of the samples followed by a one."""
        totals, weight = self._totals(), self.weight
        part = totals.high / weight
        # What division leaves of the means.
        left = two_product(part, np.full_like(part, weight))
        rest = totals.low - part * totals.low[-1]
        return Pair(part, ((totals.high - left.high) - left.low + rest) / weight)

    def mean(self) -> FloatArray:
        """The means of the features."""
        totals = self._totals()
        return np.asarray((totals.high + totals.low)[:-1] / self.weight)

    def triangle(self, center: bool) -> Iterator[FloatArray]:
        """Rows of the upper triangle of the second moments, each from its diagonal entry on."""
        totals, means = self._totals(), self._means()
        n = len(totals.high) - 1
        for (start, to), strip in zip(self._bounds(), self.strips, strict=True):
            own = Pair(means.high[start:to, np.newaxis], means.low[start:to, np.newaxis])
            others = Pair(totals.high[start:], totals.low[start:])
            block = _centred(strip, own, others) if center else strip.high
            yield block[: n - start, :-1]

    def moments(self, center: bool, scale: bool) -> tuple[SecondMoments, FloatArray | None]:
        """The moments of the samples centred and divided by their deviations, and those."""
        mean, deviation = self.mean(), None
        if scale:
            squares = _joined([Pair(*map(np.diagonal, strip)) for strip in self.strips])
            variances = _centred(squares, self._means(), self._totals())[:-1]
            deviation = _deviations(variances, squares.high[:-1], self.weight)
        return _moments(self.triangle(center), mean, deviation, center)


class Products:
    """Sufficient statistics of samples: their weight, means and second moments about the means.

    Samples are taken less the means of the first block, which loses no bits where their means are
    large. Blocks are joined by the update of Chan, Golub and LeVeque (1983), so that no sum of
    squares is a difference of larger ones.

    Attributes
    ----------
    rows : int
        Number of samples, whatever their weights.
    weight : float
        The same, or the sum of the weights.
    shift, offset : ndarray of shape (n,)
        The means of the first block, and what those of all samples exceed them by.
    strips : list of ndarray
        ``Σ_i w_i (x_i − mean)(x_i − mean)ᵀ`` as in `Scatter`.
    """

    precision: ClassVar[Precision] = "fast"

    def __init__(self, n: int) -> None:
        self.rows, self.weight = 0, 0.0
        self.shift, self.offset = np.zeros(n), np.zeros(n)
        self.strips = [np.zeros((to - start, n - start)) for start, to in pairwise(_edges(n))]

    def copy(self) -> Products:
        """The same samples, to which others can be added; no array is copied."""
        twin = copy.copy(self)
        twin.strips = list(self.strips)
        return twin

    @classmethod
    def of(cls, sums: Scatter) -> Products:
        """The same samples, to which others can be added sooner."""
        mean = sums.mean()
        quick = cls(len(mean))
        quick.rows, quick.weight, quick.shift = sums.rows, sums.weight, mean
        quick.strips = list(sums.triangle(True))
        return quick

    def add(self, data: Any, weights: FloatArray | None = None) -> None:
        """Add samples, as `Scatter.add`."""
        for block, some in _blocks(data, weights):
            self.rows += len(block)
            weight = float(len(block) if some is None else some.sum())
            if weight == 0.0:
                continue
            # In rows, however the data is stored, as sums of equal numbers are to be equal.
            rows = np.array(block, dtype=np.float64, order="C")
            if self.weight == 0.0:
                self.shift = np.average(rows, axis=0, weights=some)
            rows -= self.shift
            mean = np.average(rows, axis=0, weights=some)
            rows -= mean
            if some is not None:
                rows *= np.sqrt(some)[:, np.newaxis]
            whole = self.weight + weight
            step = mean - self.offset
            pull = self.weight * (weight / whole)
            for k, (start, to) in enumerate(_bounds(self.strips)):
                product = rows[:, start:to].T @ rows[:, start:]
                product += np.outer(pull * step[start:to], step[start:])
                self.strips[k] = self.strips[k] + product
            self.offset = self.offset + step * (weight / whole)
            self.weight = whole

    def moments(self, center: bool, scale: bool) -> tuple[SecondMoments, FloatArray | None]:
        """The moments of the samples centred and divided by their deviations, and those."""
        mean, deviation = self.shift + self.offset, None
        if scale:
            variances = np.concatenate([np.diagonal(strip) for strip in self.strips])
            deviation = _deviations(variances, variances + self.weight * mean**2, self.weight)
        blocks = iter(self.strips)
        if not center:
            blocks = (
                strip + np.outer(self.weight * mean[start:to], mean[start:])
                for (start, to), strip in zip(_bounds(self.strips), self.strips, strict=True)
            )
        return _moments(blocks, mean, deviation, center)


def _edges(n: int) -> list[int]:
    """Where the strips of an n × n triangle begin, and n."""
    rows = max(LEAST_STRIP, min(n // STRIPS, STRIP // (n + 1)))
    return [*range(0, n, rows), n]


def _bounds(strips: list[FloatArray]) -> list[tuple[int, int]]:
    """The first row of every strip, and that after its last."""
    return list(pairwise(accumulate(map(len, strips), initial=0)))


def _blocks(data: Any, weights: FloatArray | None) -> Iterator[tuple[Any, FloatArray | None]]:
    """Some samples at a time, dense, and their weights."""
    for start in range(0, data.shape[0], ROWS):
        block = data[start : start + ROWS]
        dense = block.toarray() if is_sparse(block) else np.asarray(block)
        yield dense, None if weights is None else weights[start : start + ROWS]


def _deviations(variances: FloatArray, squares: FloatArray, weight: float) -> FloatArray:
    """Standard deviations from sums of squares about the means and about 0; 1 for a constant."""
    deviation = np.sqrt(np.maximum(variances, 0.0) / weight)
    deviation[variances <= CONSTANT * squares] = 1.0
    return np.asarray(deviation)


def _moments(
    blocks: Iterable[FloatArray], mean: FloatArray, deviation: FloatArray | None, center: bool
) -> tuple[SecondMoments, FloatArray | None]:
    """Moments from rows of the upper triangle of the sums, divided by the deviations."""
    n, start = len(mean), 0
    negative = np.empty((n, n))
    for block in blocks:
        k = len(block)
        upper = np.triu(-block)
        if deviation is not None:
            upper /= np.outer(deviation[start : start + k], deviation[start:])
        negative[start : start + k, start:] = upper
        negative[start:, start : start + k] = upper.T
        negative[start : start + k, start : start + k] += np.triu(upper[:, :k], 1)
        start += k
    mean = mean if deviation is None else mean / deviation
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
