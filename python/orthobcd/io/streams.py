"""Data matrices in files that are read by blocks of rows: .npy and .parquet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._internal.extras import need
from .._internal.reading import STDIN, ending_of
from ..data import ROWS, column_blocks, slices_of
from .errors import UnreadableFile, note, refusing
from .selection import Columns, Selection

STREAMED = (".npy", ".parquet")
"""Endings of files that can be read by blocks."""


@dataclass(frozen=True)
class Stream:
    """A matrix in a file; a call returns an iterator over its blocks of rows.

    Attributes
    ----------
    blocks : callable
        Returns an iterator over the blocks.
    shape : tuple of two ints
        Number of samples and features.
    names : list of str
        Names of the features; may be empty.
    """

    blocks: Callable[[], Iterator[Any]]
    shape: tuple[int, int]
    names: list[str]

    def __call__(self) -> Iterator[Any]:
        return self.blocks()


def stream_of(
    path: str | os.PathLike[str], columns: Columns | None = None, drop: Columns | None = None
) -> Stream | None:
    """A file as a stream; None if its format cannot be read by blocks."""
    name = os.fspath(path)
    if name == STDIN or ending_of(name) not in STREAMED or name.lower().endswith(".gz"):
        return None
    selection = Selection(columns, drop)
    selection.check()
    with refusing(name, ending_of(name)):
        found = _array_stream if ending_of(name) == ".npy" else _parquet_stream
        stream = found(name, selection)
    if stream.shape[0] < 2 or stream.shape[1] < 2:
        raise UnreadableFile(f"{name}: need at least 2 samples and 2 features, got {stream.shape}")
    return stream


def _array_stream(path: str, selection: Selection) -> Stream:
    data = np.load(path, mmap_mode="r", allow_pickle=False)
    if data.ndim != 2 or data.dtype.kind not in "fiub":
        raise UnreadableFile(
            f"{path}: need a numeric matrix, got shape {data.shape} and type {data.dtype}"
        )
    m, n = data.shape
    kept = selection.selected([], n)
    if kept is None:
        return Stream(lambda: slices_of(data), (m, n), [])
    return Stream(column_blocks(data, kept), (m, len(kept)), [])


def _parquet_stream(path: str, selection: Selection) -> Stream:
    file = need("files", "pyarrow.parquet").ParquetFile(path)
    names = numeric_columns(path, file, selection)

    def blocks() -> Iterator[Any]:
        for batch in file.iter_batches(batch_size=ROWS, columns=names):
            columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
            yield np.column_stack(columns)

    return Stream(blocks, (int(file.metadata.num_rows), len(names)), names)


def index_columns(file: Any) -> list[str]:
    """Names of the columns that pandas writes for an index other than 0, 1, 2, …"""
    return [name for name in file.schema_arrow.names if name.startswith("__index_level_")]


def numeric_columns(path: str, file: Any, selection: Selection) -> list[str]:
    """Names of the selected columns of a parquet file."""
    names = list(file.schema_arrow.names)
    for name in index_columns(file):
        note(f"{path}: its column {name} is the index of the rows")
        names.remove(name)
    kept = selection.selected(names, len(names))
    names = names if kept is None else [names[k] for k in kept]
    types = need("files", "pyarrow.types")
    for name in names:
        kind = file.schema_arrow.field(name).type
        if not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)):
            raise UnreadableFile(f"{path}: column {name!r} is not numeric")
    return names
