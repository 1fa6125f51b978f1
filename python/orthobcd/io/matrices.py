"""Data matrices in files: arrays, tables, MatrixMarket, svmlight; .npy and .parquet by blocks."""

from __future__ import annotations

import contextlib
import io
import os
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.io
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from .._internal.checks import FloatArray, check_sparse, is_sparse
from .._internal.extras import need
from .._internal.reading import (
    STDIN,
    Source,
    ending_of,
    open_npz,
    open_source,
    read_npy,
)
from ..data import ROWS, column_blocks, slices_of
from .errors import FileNote, MissingValues, UnreadableFile, note, refusing
from .selection import Columns, Decision, Named, Selection
from .tables import read_table

KINDS = (
    ".npy, .npz, .csv, .tsv, .parquet, .mtx, .svmlight, .svm, .libsvm, .txt or .dat, "
    "or one of these with .gz; - for the standard input"
)
"""Endings that `read_matrix` reads. A .txt or .dat file is svmlight or a table, by its contents.
The format of a pipe, the standard input or a file without ending is found from the contents."""

LOOKED_AT = 20
"""Number of lines that are searched for svmlight pairs to find the format."""

MATRIX_KEYS = ("X", "A", "data")
"""Possible names of the data in a .npz file of several matrices."""


def read_matrix(
    path: str | os.PathLike[str],
    *,
    min_rows: int = 2,
    columns: Columns | None = None,
    drop: Columns | None = None,
    decimal: str = ".",
    missing: bool = False,
    header: Decision = "auto",
    index: Decision = "auto",
    comment: str | None = None,
) -> tuple[Any, list[str]]:
    """Read a data matrix (dense, or CSR) and its feature names (empty without names) from a file.

    Parameters
    ----------
    path : path
        The file, with samples in rows: a NumPy array (.npy, or .npz with one array or one called X,
        A or data), a scipy.sparse matrix (.npz as ``scipy.sparse.save_npz`` writes it), a table
        (.csv, .tsv, or .txt and .dat that are not svmlight, with an optional header; .parquet), a
        MatrixMarket file (.mtx), or an svmlight file. A file may be compressed by gzip (.gz). "-"
        is the standard input. The format of the standard input, of pipes and of files without
        ending is found from the contents.
    min_rows : int, default 2
        Smallest allowed number of rows.
    columns, drop : sequence of int or str, optional
        Columns to read, in this order, or columns to leave out: by index from 0, or by name if the
        file has names. Columns of a table that are left out need not be numeric.
    decimal : {".", ","}, default "."
        Decimal mark of text tables.
    missing : bool, default False
        Keep missing values of dense data as NaN. By default they are an error. In a text table
        they are empty or blank cells, ``NA``, ``NaN``, ``#N/A``, ``<NA>``, ``NULL``, ``?``, ``.``
        and the like. ``TRUE`` and ``FALSE`` are 1 and 0.
    header : {"auto", True, False}, default "auto"
        Whether the first line of a text table names the columns. "auto": a first line with a word
        does. A first line of numbers does if they are consecutive (k, k + 1, k + 2, …), or rise or
        fall above numbers of another scale, while the lines below do not; or if they alone are
        quoted.
    index : {"auto", True, False}, default "auto"
        Whether the first column of a text table is the index of the rows, which is no feature.
        "auto": a first column without a name in the header is, as ``DataFrame.to_csv`` writes it,
        and so is one of words or quoted numbers if the header has one name fewer than the lines
        below, as R's ``write.table`` writes it.
    comment : str, optional
        Character from which on a line of a text table is a comment. By default lines at the top
        that begin with ``#`` are comments; the last of them is the header if it has a name for
        each column, as `numpy.savetxt` writes it.

    Returns
    -------
    data : ndarray or scipy.sparse.csr_array of shape (n_samples, n_features)
        float64; finite except for missing values.
    names : list of str
        Feature names of a table, if it has any; else empty.

    Raises
    ------
    UnreadableFile
        If the file does not exist, has an unknown format, is not numeric, not two-dimensional or
        not finite, or has missing values; if a package that reads its format is not installed; or
        if a column does not exist.
    ValueError, TypeError
        If another argument is not valid.

    Warns
    -----
    FileNote
        If a column of a table is taken for the index, or a line of numbers for the header; says
        which option decides otherwise.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from orthobcd.io import read_matrix
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("height,width,eyes\\n1,2,blue\\n3,4,brown\\n")
    >>> data, names = read_matrix(path, drop=["eyes"])
    >>> data.shape, names
    ((2, 2), ['height', 'width'])
    """
    selection = Selection(columns, drop, decimal, missing, header, index, comment)
    return read_named(path, selection, min_rows)[:2]


def read_named(path: str | os.PathLike[str], selection: Selection, min_rows: int = 2) -> Named:
    """Reads a matrix as `read_matrix` does, with the names of the samples if there is an index."""
    selection.check()
    name = os.fspath(path)
    if os.path.isdir(name):
        raise UnreadableFile(f"{name}: a folder, not a file")
    kind = ending_of(name)
    with refusing(name, kind), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with open_source(name) as source:
            reader, kind = _reader_of(source)
            found = reader(source, selection)
    for warning in caught:
        if isinstance(warning.message, FileNote):
            warnings.warn(warning.message, stacklevel=3)
    return found._replace(data=_checked(name, found.data, min_rows, selection.missing))


def _checked(name: str, data: Any, min_rows: int, missing: bool) -> Any:
    """The matrix as float64; raises an `UnreadableFile` if it is not a valid data matrix."""
    if np.dtype(data.dtype).kind not in "fiub":
        raise UnreadableFile(f"{name}: not numeric, its type is {data.dtype}")
    if data.ndim != 2 or data.shape[0] < min_rows or data.shape[1] < 2:
        raise UnreadableFile(
            f"{name}: need at least {min_rows} samples and 2 features, got {data.shape}"
        )
    data = data.astype(np.float64, copy=False)
    values = data.data if is_sparse(data) else data
    if not np.isfinite(values).all():
        if not (missing and not is_sparse(data)) and np.isnan(values).any():
            raise MissingValues(f"{name}: has missing values")
        if np.isinf(values).any():
            raise UnreadableFile(f"{name}: has infinite values")
    return data


def _reader_of(source: Source) -> tuple[Reader, str]:
    """The function that reads a file, and the ending of the file."""
    kind = ending_of(source.path)
    if not source.is_named and kind not in READERS:
        kind = ""
    if source.is_named and source.path.lower().endswith(".gz") and not source.is_packed:
        raise UnreadableFile(f"{source.path}: not packed by gzip")
    if kind not in READERS:
        raise UnreadableFile(f"{source.path}: unknown kind {kind}; use {KINDS}")
    return READERS[kind], kind


# Readers -----------------------------------------------------------------------------------------


def _read_npy(source: Source, selection: Selection) -> Named:
    return selection.of(read_npy(source))


def _read_npz(source: Source, selection: Selection) -> Named:
    with open_npz(source) as archive:
        if "indptr" in archive or "row" in archive:
            return selection.of(_read_sparse(source))
        known = [key for key in MATRIX_KEYS if key in archive]
        found = [array for key in known if (array := archive[key]).ndim == 2][:1]
        if not found:
            found = [array for array in _numeric(archive) if array.ndim == 2]
        if len(found) != 1:
            raise UnreadableFile(
                f"{source.path}: need one matrix, or one called X, A or data; "
                f"it has {', '.join(archive)}"
            )
        return selection.of(found[0])


def _numeric(archive: Any) -> Iterator[Any]:
    """The arrays of an archive but those of objects, which only pickles could hold."""
    for key in archive:
        with contextlib.suppress(ValueError):
            yield archive[key]


def _read_sparse(source: Source) -> Any:
    """Reads a matrix that ``scipy.sparse.save_npz`` wrote."""
    source.stream.seek(0)
    loaded = sparse.load_npz(source.stream)
    check_sparse("it", loaded)
    return loaded.tocsr()


def _read_parquet(source: Source, selection: Selection) -> Named:
    file = need("files", "pyarrow.parquet").ParquetFile(source.stream)
    names = numeric_columns(source.path, file, selection)
    table = file.read(columns=names)
    values: FloatArray = np.empty((table.num_rows, len(names)))
    for k, name in enumerate(names):
        values[:, k] = table.column(name).to_numpy()
        if table.column(name).null_count and not selection.missing:
            raise MissingValues(f"{source.path}: column {name!r} has missing values")
    index = index_columns(file)
    samples = map(str, file.read(columns=index).column(0).to_pylist()) if len(index) == 1 else ()
    return Named(values, names, list(samples))


def _read_matrix_market(source: Source, selection: Selection) -> Named:
    plain = source.is_named and not source.is_packed
    # SciPy's reader gets no stream: it ends the process if it cannot seek backwards.
    data = scipy.io.mmread(source.path if plain else io.BytesIO(source.stream.read()))
    return selection.of(data.tocsr() if is_sparse(data) else np.asarray(data))


def _read_svmlight(source: Source, selection: Selection) -> Named:
    return selection.of(load_svmlight_file(source.stream)[0])


def _read_any(source: Source, selection: Selection) -> Named:
    """Finds the format from the contents: array, archive, …, svmlight, or else table."""
    for start, reader in STARTS.items():
        if source.starts_with(start):
            return reader(source, selection)
    # svmlight lines have pairs ``index:value`` after the label.
    for line in [source.stream.readline() for _ in range(LOOKED_AT)]:
        pairs = line.decode("utf-8-sig", errors="replace").split("#")[0].split()[1:]
        if pairs and all(re.fullmatch(r"\w+:\S+", pair) for pair in pairs):
            source.stream.seek(0)
            return _read_svmlight(source, selection)
    source.stream.seek(0)
    return read_table(source, selection)


Reader: TypeAlias = Callable[[Source, Selection], Named]

READERS: dict[str, Reader] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": read_table,
    ".tsv": read_table,
    ".parquet": _read_parquet,
    ".mtx": _read_matrix_market,
    ".svm": _read_svmlight,
    ".svmlight": _read_svmlight,
    ".libsvm": _read_svmlight,
    ".txt": _read_any,
    ".dat": _read_any,
    "": _read_any,
}

STARTS: dict[bytes, Reader] = {
    b"\x93NUMPY": _read_npy,
    b"PK\x03\x04": _read_npz,
    b"PAR1": _read_parquet,
    b"%%MatrixMarket": _read_matrix_market,
}
"""First bytes of a file, with the reader of its format."""


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
