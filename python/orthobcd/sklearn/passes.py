"""One pass over data outside memory for the second moments of a fit."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from .._core import DATA
from .._core import Moments as Sums
from .._internal.checks import check_size
from .blocks import Blocks, as_bytes, blaming, check_memory, starting
from .dask import as_array, example_of
from .dask import summed as summed_collection
from .fitting import Fitting, threads_of
from .preparation import as_sample_weight, begun, is_exact, largest, sliceable

COMPONENTS = 10
"""Largest default number of components."""

SHOWN = 0.1
"""Seconds between two changes of the line of progress."""


def summed(
    estimator: Any,
    fitting: Fitting,
    X: Any,
    blocks: Blocks | None,
    before: Sums | None,
    weights: Any,
) -> Sums:
    """Adds the samples of X, blocks or a Dask collection, to the sums ``before``.

    Returns the new sums; ``before`` is not changed. Sets ``n_features_in_`` and
    ``feature_names_in_``.
    """
    fitting.stage("second moments")
    if estimator.missing is not None:
        raise ValueError("missing must be None for data that is read by blocks")
    if blocks is None:
        return _of_collection(estimator, X, before, weights)
    return _of_blocks(estimator, fitting, blocks, before, weights)


def _of_collection(estimator: Any, X: Any, before: Sums | None, weights: Any) -> Sums:
    """`summed` for a Dask collection."""
    n = int(as_array(X).shape[1])
    estimator._checked(COMPONENTS if before is None else max(1, before.n_rows), n)
    validate_data(estimator, example_of(X), reset=before is None, skip_check_array=True)
    rows = 0 if before is None else before.n_rows
    limit = as_bytes("max_memory", estimator.max_memory)
    found, size = summed_collection(
        X, estimator.precision, weights, limit, threads_of(estimator), rows
    )
    check_size("X", size, DATA)
    if before is None:
        return found
    sums = begun(before, estimator.precision, found.n_rows, n)
    sums.merge(found, threads_of(estimator))
    return sums


def _of_blocks(
    estimator: Any, fitting: Fitting, blocks: Blocks, before: Sums | None, sample_weight: Any
) -> Sums:
    """`summed` for blocks of rows."""
    limit = as_bytes("max_memory", estimator.max_memory)
    threads = threads_of(estimator)
    weights = None if sample_weight is None else as_sample_weight(sample_weight)
    progress = Progress(fitting, blocks.rows)
    sums, kind, rows, size = before, None, 0, 0.0
    for k, block in starting(blocks):
        with blaming(k):
            data = estimator._data(block, reset=before is None and k == 0)
            m, n = data.shape
            own = np.dtype(getattr(block, "dtype", data.dtype))
            if kind is not None and own != kind:
                raise TypeError(f"it must have dtype {kind} as block 0, got {own}")
            size = max(size, largest(data))
            check_size("its entries", size, (0.0, DATA[1]))
            if weights is not None and rows + m > len(weights):
                raise ValueError(f"sample_weight has {len(weights)} entries, X has more rows")
        if kind is None:
            kind = own
            estimator._checked(blocks.rows or COMPONENTS, n)
            check_memory("max_memory", limit, n)
            sums = begun(before, estimator.precision, blocks.rows or m, n)
        assert sums is not None
        if blocks.rows is None and not is_exact(estimator.precision, sums.n_rows + m, n):
            sums.make_fast()
        part = None if weights is None else weights[rows : rows + m]
        sums.add(sliceable(data), part, threads)
        rows += m
        progress.show(rows)
    if weights is not None and rows != len(weights):
        raise ValueError(f"sample_weight has {len(weights)} entries, X has {rows} rows")
    if blocks.rows not in (None, rows):
        raise ValueError(f"X changed while it was read: it had {blocks.rows} rows, now {rows}")
    check_size("X", size, DATA)
    assert sums is not None
    return sums


class Progress:
    """Rows that a pass has read, on the live line of a fit.

    Parameters
    ----------
    fitting : Fitting
        The fit.
    total : int or None
        Number of rows in all, if it is known.
    """

    def __init__(self, fitting: Fitting, total: int | None) -> None:
        self._fitting, self._total = fitting, total
        self._started = self._shown = time.perf_counter()

    def show(self, rows: int) -> None:
        """Shows the rows that are done, rows per second, and the seconds left."""
        now = time.perf_counter()
        if now - self._shown < SHOWN:
            return
        self._shown = now
        rate = rows / max(now - self._started, 1e-9)
        of = "" if self._total is None else f" of {self._total:,}"
        left = "" if self._total is None else f", {(self._total - rows) / rate:.0f} s left"
        self._fitting.stage(f"second moments: {rows:,}{of} rows, {rate:,.0f} rows/s{left}")
