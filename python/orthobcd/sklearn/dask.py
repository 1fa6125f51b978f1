"""Dask arrays and data frames, and xarray arrays of these: moments in one graph, lazy transforms.

A task sums a few chunks of rows, and a tree of tasks merges the sums. Sums are copied before they
are changed: a task that is run again gives the same sums.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config

from .._core import DATA
from .._core import Moments as Sums
from .._internal.checks import as_nonnegative, check_size
from .._internal.extras import need
from ..data import (
    BlockError,
    PrecisionName,
    add_rows,
    check_memory,
    checked_block,
    is_exact,
    is_lazy,
    largest,
    naming_block,
    sums_to_extend,
)


def as_array(X: Any) -> Any:
    """The Dask array of a collection, checked: two dimensions, all columns in one chunk."""
    array = need("dask", "dask.array")
    if not isinstance(X, array.Array):
        # A data frame; an xarray array has its Dask array as `data`.
        made = getattr(X, "values" if hasattr(X, "npartitions") else "data", None)
        if not isinstance(made, array.Array):
            raise TypeError(
                f"X must be a Dask array or data frame, or an xarray.DataArray of a Dask array; "
                f"got {type(X).__name__}"
            )
        X = made
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got shape {X.shape}")
    if np.isnan(X.shape[1]):
        raise ValueError("X must have a known number of columns; use X.compute_chunk_sizes()")
    if X.numblocks[1] != 1:
        raise ValueError(
            f"X must have one chunk of columns, got {X.numblocks[1]}; use X.rechunk({{1: -1}})"
        )
    return X


def example_of(X: Any) -> Any:
    """Stand-in for a collection in scikit-learn's checks: an empty table or a row of zeros."""
    if hasattr(X, "npartitions") and hasattr(X, "columns"):
        return X._meta
    return np.zeros((1, as_array(X).shape[1]))


@dataclass(frozen=True)
class Check:
    """Checks of every chunk.

    Attributes
    ----------
    features : int
        Number of columns.
    dtype : numpy.dtype or None
        Type of the entries; None for that of data frames, whose chunks are not looked at.
    """

    features: int
    dtype: np.dtype[Any] | None

    def __call__(self, block: Any) -> Any:
        """The checked chunk, dense or CSR or CSC."""
        own = getattr(block, "dtype", None)
        if self.dtype is not None and own is not None and own != self.dtype:
            raise TypeError(f"it must have dtype {self.dtype}, as X declares, got {own}")
        return checked_block(block, self.features)


def check_of(X: Any, array: Any) -> Check:
    """The checks of the chunks of X, whose Dask array is ``array``."""
    frame = hasattr(X, "npartitions") and hasattr(X, "columns")
    known = not frame and array.dtype is not None and np.dtype(array.dtype).kind != "O"
    return Check(int(array.shape[1]), np.dtype(array.dtype) if known else None)


# One pass ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """Sums of chunks, and the largest magnitude of their entries."""

    sums: Sums
    size: float

    def __sizeof__(self) -> int:
        return self.sums.nbytes


@dataclass(frozen=True)
class Pass:
    """Settings of a pass: checks, precision, total number of rows or None, threads per task."""

    check: Check
    precision: PrecisionName
    rows: int | None
    n_threads: int | None

    def settle(self, sums: Sums, size: float) -> Step:
        """Continues in double precision if the sums are of too many rows to be exact."""
        if not is_exact(self.precision, sums.n_rows, sums.n_features):
            sums.make_fast()
        return Step(sums, size)

    def add(self, number: int, blocks: list[Any], weights: list[Any]) -> Step:
        """A task: the sums of chunks from ``number`` on, with their weights."""
        sums = sums_to_extend(None, self.precision, self.rows or 1, self.check.features)
        size = 0.0
        for k, (block, own) in enumerate(zip(blocks, weights, strict=True), number):
            if self.rows is None and block.shape[0] == 0:
                continue
            with naming_block(k):
                data = self.check(block)
                size = max(size, largest(data))
                check_size("its entries", size, (0.0, DATA[1]))
                own = None if own is None else as_nonnegative("sample_weight", own)
                if own is not None and len(own) != data.shape[0]:
                    raise ValueError(f"it has {data.shape[0]} rows and {len(own)} weights")
                add_rows(sums, data, own, self.n_threads)
        return self.settle(sums, size)

    def merge(self, left: Step, right: Step) -> Step:
        """A task: the sums of ``left`` and ``right`` together."""
        sums = left.sums.copy()
        sums.merge(right.sums, self.n_threads)
        return self.settle(sums, max(left.size, right.size))


def sum_chunks(
    X: Any,
    precision: PrecisionName,
    sample_weight: ArrayLike | None,
    max_memory: float | None,
    n_threads: int | None,
    before: int,
) -> tuple[Sums, float]:
    """Sums over the rows of a collection, and the largest magnitude of an entry.

    ``before`` is the number of rows to which these are added later.
    """
    array, dask = as_array(X), need("dask", "dask")
    n, rows = int(array.shape[1]), array.chunks[0]
    check_memory(max_memory, n)
    total = None if np.isnan(array.shape[0]) else int(array.shape[0]) + before
    one_pass = Pass(check_of(X, array), precision, total, n_threads)
    chunks, weights = array.to_delayed().ravel().tolist(), _weights(sample_weight, array)
    # Chunks of up to n rows are as large as their sums.
    groups = np.cumsum(rows) // max(n, rows[0]) if total is not None else np.arange(len(rows))
    bounds = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(rows)]
    add, merge = dask.delayed(one_pass.add, pure=True), dask.delayed(one_pass.merge, pure=True)
    parts = [add(k, chunks[k:end], weights[k:end]) for k, end in itertools.pairwise(bounds)]
    while len(parts) > 1:
        pairs = [parts[k : k + 2] for k in range(0, len(parts), 2)]
        parts = [merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    try:
        (found,) = dask.compute(*parts)
    except (BlockError, MemoryError):
        raise
    except Exception as error:
        raise ValueError(f"X could not be read: {type(error).__name__}: {error}") from error
    return found.sums, found.size


def _weights(sample_weight: Any, array: Any) -> list[Any]:
    """The weights of every chunk, arrays or delayed."""
    rows = array.chunks[0]
    if sample_weight is None:
        return [None] * len(rows)
    if is_lazy(sample_weight):
        lazy = sample_weight if hasattr(sample_weight, "chunks") else sample_weight.values
        if lazy.ndim != 1 or len(lazy.chunks[0]) != len(rows):
            raise ValueError(
                f"sample_weight must have one dimension and the row chunks of X, {len(rows)}; "
                f"got shape {lazy.shape} and chunks {lazy.numblocks}"
            )
        return list(lazy.to_delayed().ravel())
    if any(map(np.isnan, rows)):
        raise ValueError(
            "sample_weight must be a Dask array with the chunks of X if these have unknown sizes"
        )
    weights = as_nonnegative("sample_weight", sample_weight)
    if len(weights) != sum(rows):
        raise ValueError(f"sample_weight has {len(weights)} entries, X has {sum(rows)} rows")
    return np.split(weights, np.cumsum(rows)[:-1])


# Lazy results ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mapped:
    """A function of checked chunks and further arguments; an error names the chunk.

    Attributes
    ----------
    function : callable
        The function.
    arguments : tuple
        The arguments of ``function`` that follow the chunk.
    check : Check or None
        Checks of a chunk; None if the function checks it.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    check: Check | None

    def __call__(self, block: Any, block_id: tuple[int, ...] = (0, 0)) -> Any:
        """The value for a chunk."""
        if block.shape[0] == 0:
            return self.function(np.zeros((1, block.shape[1])), *self.arguments)[:0]
        with naming_block(block_id[0]):
            data = block if self.check is None else self.check(block)
            return self.function(data, *self.arguments)


def map_chunks(X: Any, function: Mapped, width: int | None) -> Any:
    """A Dask array with the row chunks of X: ``function`` of every chunk.

    The array has ``width`` columns, or one dimension of integers if ``width`` is None.
    """
    array = as_array(X)
    options = {"drop_axis": 1} if width is None else {}
    chunks = (array.chunks[0],) if width is None else (array.chunks[0], (width,))
    meta = np.empty((0,) * len(chunks), dtype=np.int64 if width is None else np.float64)
    return array.map_blocks(function, chunks=chunks, dtype=meta.dtype, meta=meta, **options)


def checked_chunks(X: Any, check: Mapped) -> Iterator[Any]:
    """Computes the chunks of X one after the other, and yields ``check`` of each."""
    for k, chunk in enumerate(as_array(X).to_delayed().ravel()):
        yield check(chunk.compute(), (k, 0))


def totals(X: Any, function: Mapped) -> list[Any]:
    """The values of ``function`` for all chunks of X that have rows, computed."""
    dask = need("dask", "dask")
    task = dask.delayed(function, pure=True)
    chunks = as_array(X).to_delayed().ravel()
    found = dask.compute(*(task(block, (k, 0)) for k, block in enumerate(chunks)))
    values = [value for value in found if len(value) > 0]
    if not values:
        raise ValueError("X must have at least one row")
    return values


class LazyOutput:
    """Base class of estimators whose ``set_output`` keeps the results of Dask collections lazy.

    The wrappers of scikit-learn would compute them. With "pandas" a result is a Dask data frame.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("transform", "fit_transform"):
            method = getattr(cls, name, None)
            if method is not None and not hasattr(method, "keeps_lazy"):
                setattr(cls, name, _keeping_lazy(method))


def _keeping_lazy(method: Any) -> Any:
    """A transforming method that scikit-learn wrapped; without that wrapper for a collection."""
    plain = getattr(method, "__wrapped__", method)

    @wraps(method)
    def kept(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not is_lazy(X):
            return method(self, X, *args, **options)
        result = plain(self, X, *args, **options)
        own = getattr(self, "_sklearn_output_config", {})
        kind = own.get("transform", get_config()["transform_output"])
        if kind != "pandas" or not hasattr(result, "chunks"):
            return result
        index = X.index if hasattr(X, "npartitions") and hasattr(X, "columns") else None
        return need("dask", "dask.dataframe").from_dask_array(
            result, list(self.get_feature_names_out()), index
        )

    kept.keeps_lazy = True  # type: ignore[attr-defined]
    return kept
