"""Components on disjoint supports: greedy forward selection and GPower with deflation.

Columns with disjoint supports are orthogonal: each column is the leading eigenvector of its own
principal submatrix of the covariance.
"""

from __future__ import annotations

import numpy as np

from orthobcd import L0, L1, GramQuadratic, Problem, Quadratic, Result
from orthobcd._internal.checks import FloatArray

from .oracle import Oracle, oracle_of
from .recorder import Recorder
from .starts import top_diagonal


def covariance(oracle: Oracle) -> FloatArray:
    """``−C``, dense, so that f = −½⟨X, (−C) X⟩.

    Raises
    ------
    TypeError
        If f has a linear term or a column matrix D.
    """
    smooth = oracle.smooth
    if isinstance(smooth, Quadratic):
        if smooth.linear is not None or smooth.D is not None:
            raise TypeError("this method needs f = ½⟨X, C X⟩ without a linear term or D")
        return -smooth.C
    assert isinstance(smooth, GramQuadratic)
    return -oracle.curvature(np.eye(oracle.n))


GROUP = 3
"""Largest number of columns that are emptied together."""

JITTER = 0.3
MAX_BATCHED_SUPPORT = 24
"""Size of supports up to which they grow from many seeds at once; beyond it, from the best two."""


class _Column:
    """One component: its rows, its unit vector, and C times it."""

    def __init__(self, sigma: FloatArray, row: int) -> None:
        self.rows = [row]
        self.vector = np.ones(1)
        self.image = sigma[:, row].copy()
        self.value = float(sigma[row, row])

    @classmethod
    def of(
        cls,
        rows: np.ndarray[tuple[int], np.dtype[np.intp]],
        vector: FloatArray,
        value: float,
        image: FloatArray,
    ) -> _Column:
        """A column from its parts."""
        column = cls.__new__(cls)
        column.rows = [int(row) for row in rows]
        column.vector, column.value, column.image = vector, float(value), image
        return column

    def copy(self) -> _Column:
        """An independent copy."""
        return _Column.of(np.asarray(self.rows), self.vector, self.value, self.image)

    def capped(self, size: int, sigma: FloatArray) -> _Column:
        """The column, or its ``size`` largest entries if it has more."""
        if len(self.rows) <= size:
            return self
        order = np.argsort(-np.abs(self.vector))[:size]
        column = _Column(sigma, self.rows[int(order[0])])
        column.rows = [self.rows[int(k)] for k in order]
        column.vector = self.vector[order] / np.linalg.norm(self.vector[order])
        column.refresh(sigma)
        return column

    def refresh(self, sigma: FloatArray, steps: int = 30, tolerance: float = 1e-10) -> None:
        """Leading eigenvector of the submatrix on ``rows``, warm started."""
        block = sigma[np.ix_(self.rows, self.rows)]
        if len(self.rows) <= MAX_BATCHED_SUPPORT:
            values, vectors = np.linalg.eigh(block)
            self.value, vector = float(values[-1]), vectors[:, -1]
        else:
            vector = np.zeros(len(self.rows))
            vector[: self.vector.size] = self.vector
            previous = -np.inf
            for _ in range(steps):
                product = block @ vector
                value = float(np.linalg.norm(product))
                vector = product / value
                if value - previous <= tolerance * abs(value):
                    break
                previous = value
            self.value = float(vector @ (block @ vector))
        self.vector = vector
        self.image = sigma[:, self.rows] @ vector


def forward_selection(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """PathSPCA-style forward selection of disjoint supports, repeated until the time limit.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; ℓ0 or ℓ1 and f = ½⟨X, C X⟩. ``x0`` is only scored: the
        supports grow from single rows. The seed is that of the order of the perturbations.

    Notes
    -----
    Column after column grows on the free rows, from each of many seed rows, and the best is kept.
    A step adds the row that raises the leading eigenvalue most (by the 2 × 2 compression to
    span(x, e_i)) while the objective falls. Then single columns are emptied and regrown with the
    others fixed, and rows are dropped or added, as long as the objective falls. Then random groups
    of columns are emptied and regrown, and the better of old and new columns is kept.

    References
    ----------
    d'Aspremont, Bach and El Ghaoui 2008, "Optimal solutions for sparse principal component
    analysis" (PathSPCA, one component).
    """
    oracle = oracle_of(problem)
    recorder = Recorder(oracle, x0, top_diagonal, max_time=max_time, seed=seed)
    grower = _Grower(oracle, recorder, seed)
    rng = grower.rng
    starts = (grower.grow_together(), grower.grow_all())
    for columns in starts:
        recorder.submit(grower.matrix(columns), thorough=False)
    best = grower.improve(min(starts, key=grower.cost))
    grower.jitter = JITTER
    # of both ways to regrow a group, the more successful one is tried more often
    tried, succeeded = np.full(2, 4.0), np.array([2.0, 0.5])
    while not recorder.out_of_time and oracle.r > 1:
        size = int(rng.integers(2, min(oracle.r, GROUP) + 1))
        emptied = [int(k) for k in rng.choice(oracle.r, size=size, replace=False)]
        rates = succeeded / tried
        way = int(rng.random() * rates.sum() >= rates[0])
        regrow = (grower.regrow, grower.regrow_together)[way]
        trial = regrow(best, emptied)
        tried[way] += 1.0
        if grower.cost(trial) < grower.cost(best) - 1e-9:
            best = trial
            succeeded[way] += 1.0
        recorder.step(grower.matrix(best))
    return recorder.result(grower.matrix(best), method="forward selection")


class _Grower:
    """Grows and regrows columns on disjoint supports."""

    def __init__(self, oracle: Oracle, recorder: Recorder, seed: int, n_seeds: int = 24) -> None:
        self.oracle, self.recorder = oracle, recorder
        self.rng = np.random.default_rng(seed)
        self.n_seeds, self.jitter = n_seeds, 0.0
        self.sigma = covariance(oracle)
        self.diagonal = np.diag(self.sigma).copy()
        penalty = oracle.penalty
        if not isinstance(penalty, (L0, L1)) or np.ndim(penalty.lam) > 0:
            raise TypeError("forward selection needs an L0 or L1 penalty with one weight")
        self.weight = float(penalty.lam)
        self.is_l0 = isinstance(penalty, L0)

    def column_cost(self, column: _Column) -> float:
        """``−½ value + λ·penalty`` of one column."""
        if self.is_l0:
            return -0.5 * column.value + self.weight * len(column.rows)
        return -0.5 * column.value + self.weight * float(np.sum(np.abs(column.vector)))

    def cost(self, columns: list[_Column]) -> float:
        """Objective of disjoint columns."""
        return sum(self.column_cost(column) for column in columns)

    def matrix(self, columns: list[_Column]) -> FloatArray:
        """The (n, r) matrix."""
        x = np.zeros((self.oracle.n, self.oracle.r))
        for index, column in enumerate(columns):
            x[column.rows, index] = column.vector / np.linalg.norm(column.vector)
        return x

    def _gains(self, value: float | FloatArray, image: FloatArray) -> FloatArray:
        """Fall of the objective when each row joins a column (an estimate for ℓ1).

        ``value`` is the column's eigenvalue and ``image`` its Σ x; leading dimensions stack
        columns.
        """
        half = 0.5 * (self.diagonal - value)
        gain: FloatArray = half + np.sqrt(half * half + image * image)
        if self.is_l0:
            return 0.5 * gain - self.weight
        slope = gain / np.maximum(np.abs(image), 1e-300)
        return 0.5 * gain - self.weight * slope / np.sqrt(1.0 + slope * slope)

    def grow(
        self,
        columns: list[_Column],
        active: list[int],
        free: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None,
    ) -> list[_Column]:
        """Adds rows to the active columns, best gain first, while the objective falls."""
        free = self.free_rows(columns) if free is None else free.copy()
        for column in columns:
            free[column.rows] = False
        gains = np.full((self.oracle.n, len(columns)), -np.inf)
        for index in active:
            gains[:, index] = self._gains(columns[index].value, columns[index].image)
        gains[~free] = -np.inf
        while not self.recorder.out_of_time:
            flat = int(np.argmax(gains))
            row, index = divmod(flat, len(columns))
            if gains[row, index] <= 0.0:
                break
            column = columns[index]
            before = self.column_cost(column)
            saved = column.copy()
            column.rows.append(row)
            column.refresh(self.sigma)
            if self.column_cost(column) >= before:
                columns[index] = saved
                gains[row, index] = -np.inf
                continue
            gains[row, :] = -np.inf
            free[row] = False
            fresh = self._gains(column.value, column.image)
            gains[:, index] = np.where(free, fresh, -np.inf)
        return columns

    def best_column(self, free: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> _Column:
        """The best column that greedy growth finds on the free rows, over many seed rows.

        All seeds grow at once; larger supports are grown from fewer seeds.
        """
        noise = 1.0 + self.jitter * self.rng.standard_normal(self.oracle.n)
        order = np.argsort(np.where(free, -self.diagonal * noise, np.inf), kind="stable")
        n_free = int(np.count_nonzero(free))
        rows = order[: min(self.n_seeds, n_free), np.newaxis]
        sigma, weight = self.sigma, self.weight
        vectors = np.ones((rows.shape[0], 1))
        images = sigma[rows[:, 0]]
        values = self.diagonal[rows[:, 0]]
        blocked = np.tile(~free, (rows.shape[0], 1))
        best: _Column | None = None
        best_cost = np.inf
        while rows.shape[1] < MAX_BATCHED_SUPPORT:
            np.put_along_axis(blocked, rows[:, -1:], True, axis=1)
            gains = self._gains(values[:, np.newaxis], images)
            gains[blocked] = -np.inf
            entering = np.argmax(gains, axis=1)
            going = np.take_along_axis(gains, entering[:, np.newaxis], axis=1)[:, 0] > 0.0
            if not going.all():
                for index in np.flatnonzero(~going):
                    column = _Column.of(rows[index], vectors[index], values[index], images[index])
                    cost = self.column_cost(column)
                    if cost < best_cost:
                        best, best_cost = column, cost
                if not going.any():
                    break
            keep = np.flatnonzero(going)
            limit = max(2, 4 * self.n_seeds // (4 + rows.shape[1]))
            if keep.size > limit:
                costs = -0.5 * values[keep] + weight * rows.shape[1]
                keep = keep[np.argsort(costs, kind="stable")[:limit]]
            rows = np.concatenate([rows[keep], entering[keep, np.newaxis]], axis=1)
            blocked = blocked[keep]
            blocks = sigma[rows[:, :, np.newaxis], rows[:, np.newaxis, :]]
            spectrum, basis = np.linalg.eigh(blocks)
            values, vectors = spectrum[:, -1], basis[:, :, -1]
            images = np.matmul(vectors[:, np.newaxis, :], sigma[rows])[:, 0, :]
        else:
            for survivor in range(min(2, rows.shape[0])):
                column = _Column.of(
                    rows[survivor], vectors[survivor], values[survivor], images[survivor]
                )
                (column,) = self.grow([column], [0], free)
                cost = self.column_cost(column)
                if cost < best_cost:
                    best, best_cost = column, cost
        assert best is not None
        return self.swapped(best, free)

    def swapped(self, column: _Column, free: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> _Column:
        """Swap one row of the column for one free row (or drop it) while the objective falls."""
        sigma = self.sigma
        while 2 <= len(column.rows) <= MAX_BATCHED_SUPPORT and not self.recorder.out_of_time:
            rows = np.asarray(column.rows)
            size = rows.size
            others = np.stack([np.delete(rows, k) for k in range(size)])
            spectrum, basis = np.linalg.eigh(sigma[others[:, :, None], others[:, None, :]])
            values, vectors = spectrum[:, -1], basis[:, :, -1]
            images = np.matmul(vectors[:, np.newaxis, :], sigma[others])[:, 0, :]
            gains = self._gains(values[:, np.newaxis], images)
            blocked = ~free
            blocked[rows] = True
            gains[:, blocked] = -np.inf
            candidates = []
            drop = int(np.argmax(values))
            candidates.append(_Column.of(others[drop], vectors[drop], values[drop], images[drop]))
            entering = np.argmax(gains, axis=1)
            totals = 0.5 * values + np.take_along_axis(gains, entering[:, None], axis=1)[:, 0]
            for k in np.argsort(-totals)[:3]:
                if not np.isfinite(totals[k]):
                    continue
                trial = candidates[0].copy()
                trial.rows = [*(int(row) for row in others[k]), int(entering[k])]
                trial.refresh(sigma)
                candidates.append(trial)
            adding = np.where(blocked, -np.inf, self._gains(column.value, column.image))
            grown = int(np.argmax(adding))
            if not blocked[grown]:
                trial = column.copy()
                trial.rows.append(grown)
                trial.refresh(sigma)
                candidates.append(trial)
            chosen = min(candidates, key=self.column_cost)
            if self.column_cost(chosen) >= self.column_cost(column) - 1e-9:
                break
            column = chosen
        return column

    def free_rows(self, columns: list[_Column]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Rows that belong to no column."""
        free = np.ones(self.oracle.n, dtype=bool)
        for column in columns:
            free[column.rows] = False
        return free

    def grow_all(self) -> list[_Column]:
        """Grows one column after another on the free rows; n ≥ r leaves a row for each."""
        columns: list[_Column] = []
        for index in range(self.oracle.r):
            free = self.free_rows(columns)
            left = int(np.count_nonzero(free)) - (self.oracle.r - index - 1)
            if self.recorder.out_of_time or left <= 1:
                row = int(np.argmax(np.where(free, self.diagonal, -np.inf)))
                columns.append(_Column(self.sigma, row))
            else:
                columns.append(self.best_column(free).capped(left, self.sigma))
        return columns

    def grow_together(self) -> list[_Column]:
        """Grows all columns at once from the r largest diagonal entries, best gain first.

        The result is better than that of `grow_all` if a few strong components take every row.
        """
        order = np.argsort(-self.diagonal, kind="stable")[: self.oracle.r]
        columns = [_Column(self.sigma, int(row)) for row in order]
        return self.grow(columns, list(range(self.oracle.r)))

    def regrow_together(self, columns: list[_Column], emptied: list[int]) -> list[_Column]:
        """A copy in which the named columns start from random free rows and grow together."""
        kept = list(columns)
        free = self.free_rows([c for k, c in enumerate(columns) if k not in emptied])
        weights = np.where(free, self.diagonal, 0.0)
        if np.count_nonzero(weights) < len(emptied):
            return columns
        rows = self.rng.choice(
            self.oracle.n, size=len(emptied), replace=False, p=weights / weights.sum()
        )
        for index, row in zip(emptied, rows, strict=True):
            kept[index] = _Column(self.sigma, int(row))
        return self.grow([column.copy() for column in kept], emptied)

    def regrow(self, columns: list[_Column], emptied: list[int]) -> list[_Column]:
        """A copy in which the named columns are emptied and grown anew, one after another."""
        kept = list(columns)
        for position, index in enumerate(emptied):
            later = set(emptied[position + 1 :])
            others = [column for k, column in enumerate(kept) if k != index and k not in later]
            free = self.free_rows(others)
            left = int(np.count_nonzero(free)) - len(later)
            if left <= 1:
                return columns
            kept[index] = self.best_column(free).capped(left, self.sigma)
        return kept

    def trade(self, columns: list[_Column]) -> list[_Column]:
        """Drop rows, then add free rows to the column of largest gain, if the objective falls."""
        columns = [column.copy() for column in columns]
        for index, column in enumerate(columns):
            if len(column.rows) < 2 or not self.is_l0:
                continue
            # without row i the eigenvalue falls by about d-weighted x_i²
            weakest = int(np.argmin(column.vector**2))
            trial = column.copy()
            del trial.rows[weakest]
            trial.vector = np.delete(column.vector, weakest)
            trial.refresh(self.sigma)
            if self.column_cost(trial) < self.column_cost(column):
                columns[index] = trial
        return self.grow(columns, list(range(len(columns))))

    def improve(self, columns: list[_Column]) -> list[_Column]:
        """Regrow one column after another, and `trade` rows, while the objective falls."""
        changed = True
        while changed and not self.recorder.out_of_time:
            changed = False
            for index in range(self.oracle.r):
                if self.recorder.out_of_time:
                    break
                trial = self.regrow(columns, [index])
                if self.cost(trial) < self.cost(columns) - 1e-9:
                    columns, changed = trial, True
                    self.recorder.step(self.matrix(columns))
            trial = self.trade(columns)
            if self.cost(trial) < self.cost(columns) - 1e-9:
                columns, changed = trial, True
        return columns
