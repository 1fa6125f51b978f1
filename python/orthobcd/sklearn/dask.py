"""Dask arrays and data frames, and xarray arrays of these: moments in one graph, lazy transforms.

Chains of tasks add chunks of rows to sums. The triangles of the chains are cut into strips, a tree
of tasks merges each strip, and the client joins the strips. A task of a chain also makes its chunk,
from all tasks that no other chunk needs; Dask would otherwise load the chunks of one chain on all
workers, and hold them there. So a thread holds one chunk and one triangle at a time. Sums are
copied before they are changed: a task that is run again gives the same sums.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config

from .._core import DATA
from .._core import Moments as Sums
from .._internal.checks import check_size
from .._internal.extras import need
from .blocks import BlockError, blaming, check_memory
from .preparation import (
    PrecisionName,
    as_sample_weight,
    checked_block,
    is_exact,
    largest,
    sliceable,
)

CHAINS = 4
"""Chains per thread: if a worker dies, the chains that it held begin anew."""

STRIP = 1024
"""Rows of the strips in which triangles are merged."""

TRIANGLES = 4e9
"""Bytes of the triangles that the threads of a process may hold if ``max_memory`` is None."""


def is_lazy(X: Any) -> bool:
    """True if X is a Dask collection, or an xarray array of one."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


def as_array(X: Any) -> Any:
    """The Dask array of a collection, checked: two dimensions, all columns in one chunk.

    Raises
    ------
    TypeError, ValueError
        If X is not an array or a data frame, or has chunks of columns.
    """
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
    """Sums of the chunks of a chain so far, and the largest magnitude of their entries."""

    sums: Sums
    size: float

    def __sizeof__(self) -> int:
        return self.sums.nbytes


@dataclass(frozen=True)
class Rule:
    """Settings of a pass: checks, precision, total number of rows or None, threads per task."""

    check: Check
    precision: PrecisionName
    rows: int | None
    n_threads: int | None
    may_be_empty: bool

    def begun(self) -> Sums:
        exact = is_exact(self.precision, self.rows or 1, self.check.features)
        return Sums(self.check.features, "exact" if exact else "fast")

    def settle(self, sums: Sums) -> None:
        """Continues in double precision if the sums are of too many rows to be exact."""
        if not is_exact(self.precision, sums.n_rows, sums.n_features):
            sums.make_fast()


class Source:
    """The tasks that make a chunk from the values of other tasks.

    A class, because Dask searches tuples and lists for tasks, but not objects.
    """

    def __init__(self, tasks: dict[Any, Any], key: Any, given: list[Any]) -> None:
        self.tasks, self.key, self.given = tasks, key, given

    def read(self, values: Iterable[Any]) -> Any:
        """The chunk."""
        if not self.tasks:
            return next(iter(values))
        dask = need("dask", "dask")
        return dask.get({**self.tasks, **dict(zip(self.given, values, strict=True))}, self.key)


def _read(source: Source, number: int, values: Iterable[Any]) -> Any:
    try:
        return source.read(values)
    except MemoryError:
        raise
    except Exception as error:
        raise BlockError(number, f"could not be read: {type(error).__name__}: {error}") from error


def add(
    before: Step | None, number: int, source: Source, rule: Rule, weights: Any, *values: Any
) -> Step:
    """A task: the sums of ``before`` and of a chunk with its weights."""
    block = _read(source, number, values)
    sums = rule.begun() if before is None else before.sums.copy()
    size = 0.0 if before is None else before.size
    if rule.may_be_empty and block.shape[0] == 0:
        return Step(sums, size)
    with blaming(number):
        data = rule.check(block)
        size = max(size, largest(data))
        check_size("its entries", size, (0.0, DATA[1]))
        if weights is not None:
            weights = as_sample_weight(weights)
            if len(weights) != data.shape[0]:
                raise ValueError(f"it has {data.shape[0]} rows and {len(weights)} weights")
        sums.add(sliceable(data), weights, rule.n_threads)
    rule.settle(sums)
    return Step(sums, size)


def cut(step: Step, n_threads: int | None) -> list[Step]:
    """A task: the strips of the sums of a chain; they share its memory."""
    return [Step(piece, step.size) for piece in step.sums.copy().pieces(STRIP, n_threads)]


def merge(left: Step, right: Step, rule: Rule) -> Step:
    """A task: a strip of the sums of two chains together."""
    sums = left.sums.copy()
    sums.merge(right.sums, rule.n_threads)
    rule.settle(sums)
    return Step(sums, max(left.size, right.size))


def summed(
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
    array = as_array(X)
    n, rows = int(array.shape[1]), array.chunks[0]
    check_memory("max_memory", max_memory, n)
    total = None if np.isnan(array.shape[0]) else int(array.shape[0]) + before
    chains, n_threads = _shape_of_work(len(rows), n, max_memory, n_threads)
    rule = Rule(check_of(X, array), precision, total, n_threads, total is None)
    keys = [key for (key,) in array.__dask_keys__()]
    graph = dict(array.__dask_graph__())
    weights, more = _weights(sample_weight, array)
    graph.update(more)
    sources, graph = _inlined(graph, keys, weights)
    name = f"moments-{need('dask', 'dask.base').tokenize(array, sample_weight, rule, chains)}"
    ends: list[Any] = []
    for own in np.array_split(np.arange(len(keys)), chains):
        end = None
        for k in own.tolist():
            source = sources[k]
            graph[name, k] = (add, end, k, source, rule, weights[k], *source.given)
            end = name, k
        ends.append(end)
    for k, end in enumerate(ends):
        graph[f"{name}-cut", k] = (cut, end, n_threads)
    roots = []
    for strip in range(len(rule.begun().pieces(STRIP))):
        level, parts = 0, list[Any]()
        for k in range(len(ends)):
            graph[f"{name}-strip", strip, k] = (itemgetter(strip), (f"{name}-cut", k))
            parts.append((f"{name}-strip", strip, k))
        while len(parts) > 1:
            level += 1
            pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
            parts = []
            for i, pair in enumerate(pairs):
                merged = f"{name}-merge", strip, level, i
                if len(pair) == 2:
                    graph[merged] = (merge, *pair, rule)
                parts.append(merged if len(pair) == 2 else pair[0])
        roots.append(need("dask", "dask.delayed").Delayed(parts[0], graph))
    steps = need("dask", "dask").compute(*roots)
    return Sums.joined([step.sums for step in steps]), steps[0].size


def _shape_of_work(
    count: int, n: int, max_memory: float | None, n_threads: int | None
) -> tuple[int, int | None]:
    """Number of chains for ``count`` chunks, and threads of each of their tasks."""
    workers = _threads_of_workers()
    own = max(workers)
    # A thread holds the triangle before and after it is changed.
    room = max(1, int((max_memory or TRIANGLES) / (16.0 * n * n)))
    if room < own and n_threads == 1:
        n_threads = own
    return min(count, CHAINS * sum(min(own, room) for own in workers)), n_threads


def _threads_of_workers() -> list[int]:
    """Threads of each process that Dask computes in."""
    distributed = sys.modules.get("distributed")
    config = need("dask", "dask").config
    scheduler = config.get("scheduler", None)
    if distributed is not None and scheduler in (None, "dask.distributed", "distributed"):
        try:
            return list(distributed.default_client().ncores().values()) or [1]
        except ValueError:
            pass
    if scheduler in ("sync", "synchronous", "single-threaded"):
        return [1]
    return [int(config.get("num_workers", None) or need("dask", "dask.system").CPU_COUNT)]


def _weights(sample_weight: Any, array: Any) -> tuple[list[Any], dict[Any, Any]]:
    """The weights of every chunk, arrays or keys of tasks, and these tasks."""
    rows = array.chunks[0]
    if sample_weight is None:
        return [None] * len(rows), {}
    if is_lazy(sample_weight):
        lazy = sample_weight if hasattr(sample_weight, "chunks") else sample_weight.values
        if lazy.ndim != 1 or len(lazy.chunks[0]) != len(rows):
            raise ValueError(
                f"sample_weight must have one dimension and the row chunks of X, {len(rows)}; "
                f"got shape {lazy.shape} and chunks {lazy.numblocks}"
            )
        return list(lazy.__dask_keys__()), dict(lazy.__dask_graph__())
    if any(map(np.isnan, rows)):
        raise ValueError(
            "sample_weight must be a Dask array with the chunks of X if these have unknown sizes"
        )
    weights = as_sample_weight(sample_weight)
    if len(weights) != sum(rows):
        raise ValueError(f"sample_weight has {len(weights)} entries, X has {sum(rows)} rows")
    return np.split(weights, np.cumsum(rows)[:-1]), {}


def _inlined(
    graph: dict[Any, Any], keys: list[Any], weights: list[Any]
) -> tuple[list[Source], dict[Any, Any]]:
    """The source of every chunk, and the tasks that remain in the graph.

    A task becomes part of a source if only that chunk needs it. Arrays in memory, results that the
    cluster holds and tasks that several chunks need remain.
    """
    get_dependencies = need("dask", "dask.core").get_dependencies
    below: dict[Any, set[Any]] = {}

    def needed(key: Any) -> set[Any]:
        if key not in below:
            known = getattr(graph[key], "dependencies", None)
            below[key] = set(get_dependencies(graph, key) if known is None else known)
        return below[key]

    owner: dict[Any, int] = {}
    for k, root in [*enumerate(keys), *((-1, key) for key in weights if isinstance(key, tuple))]:
        found = [(k, root)]
        while found:
            k, key = found.pop()
            if key not in graph or owner.get(key) in (k, -1):
                continue
            owner[key] = k = k if key not in owner and _is_task(graph[key]) else -1
            found.extend((k, other) for other in needed(key))
    sources = []
    for k, root in enumerate(keys):
        tasks, given, stack, seen = {}, [], [root], set()
        while stack:
            key = stack.pop()
            if key in seen:
                continue
            seen.add(key)
            if owner.get(key, -1) == k:
                tasks[key] = graph[key]
                stack.extend(needed(key))
            else:
                given.append(key)
        sources.append(Source(tasks, root, given))
    return sources, {key: graph[key] for key, k in owner.items() if k < 0}


def _is_task(node: Any) -> bool:
    """True if a value of a graph is computed from others, or loads data."""
    if isinstance(node, tuple):
        return bool(node) and callable(node[0])
    return type(node).__name__ in ("Task", "Alias")


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
        with blaming(block_id[0]):
            data = block if self.check is None else self.check(block)
            return self.function(data, *self.arguments)


def mapped(X: Any, function: Mapped, width: int | None) -> Any:
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
    """The values of ``function`` for all chunks of X that have rows, computed.

    Raises
    ------
    ValueError
        If no chunk has a row.
    """
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
