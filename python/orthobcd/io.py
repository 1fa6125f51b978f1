"""Everything that is read from files or written to them: matrices, components, triples.

Tables and triples are read with pyarrow, svmlight with scikit-learn, sparse matrices with SciPy:
the extra ``files``.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import os
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ._internal.checks import (
    FloatArray,
    IntArray,
    check_compressed,
    check_sparse,
    is_number,
    is_sparse,
)
from ._internal.extras import need
from ._internal.writing import replacing

__all__ = [
    "FileNote",
    "TripleFiles",
    "UnreadableFile",
    "load_triples",
    "read_matrix",
    "write_components",
]

KINDS = ".npy, .npz, .csv, .tsv, .parquet, .mtx, .mtx.gz, .svmlight, .svm, .libsvm, .txt or .dat"
"""What `read_matrix` reads; the last two, and a name without an ending, as svmlight or as a table,
whichever they hold."""

MISSING = ("", "NA", "N/A", "na", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "?")
"""Cells of a table that stand for a missing value."""

LOOKED_AT = 20
"""Lines of a file without a telling ending by which it is told to be svmlight."""

MATRIX_KEYS = ("X", "A", "data")
"""Names of the data in a .npz file that holds several matrices."""


class UnreadableFile(Exception):
    """A data file that cannot be used; the message is one line for the user.

    Examples
    --------
    >>> from orthobcd.io import UnreadableFile, read_matrix
    >>> try:
    ...     read_matrix("none.csv")
    ... except UnreadableFile as error:
    ...     print(error)
    none.csv: no such file
    """


class FileNote(UserWarning):
    """What was left out of a file, or how its header was understood.

    Examples
    --------
    >>> import warnings
    >>> from orthobcd.io import FileNote
    >>> warnings.simplefilter("ignore", FileNote)
    """


def read_matrix(path: str | Path, *, min_rows: int = 2) -> tuple[Any, list[str]]:
    """The data matrix of a file (dense, or CSR) and its feature names (empty if there are none).

    Parameters
    ----------
    path : str or Path
        A NumPy array (.npy, or .npz: one array or one called X, A or data), a scipy.sparse matrix
        (.npz as ``scipy.sparse.save_npz`` writes it), a table (.csv, .tsv, or .txt and .dat that
        are not svmlight, with an optional header; .parquet), a MatrixMarket file (.mtx, .mtx.gz),
        or an svmlight file. Samples in rows.
    min_rows : int, default 2
        Least number of rows.

    Returns
    -------
    data : ndarray or scipy.sparse.csr_array of shape (n_samples, n_features)
        float64, finite.
    names : list of str
        Feature names, of a table with a header; columns that are not numeric are an error.

    Raises
    ------
    UnreadableFile
        If the file is missing, of an unknown kind, not numeric, not two-dimensional or not finite,
        has missing values, or a package that reads its kind is not installed.

    Warns
    -----
    FileNote
        If an index column of a table is left out, or a header of numbers taken for one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from orthobcd.io import read_matrix
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("height,width\\n1,2\\n3,4\\n")
    >>> data, names = read_matrix(path)
    >>> data.shape, names
    ((2, 2), ['height', 'width'])
    """
    path = Path(path)
    if path.is_dir():
        raise UnreadableFile(f"{path}: a folder, not a file")
    if not path.is_file():
        raise UnreadableFile(f"{path}: no such file")
    name = path.name.lower()
    suffix = ".mtx.gz" if name.endswith(".mtx.gz") else path.suffix.lower()
    reader = READERS.get(suffix)
    if reader is None:
        raise UnreadableFile(f"{path}: unknown kind {suffix}; use {KINDS}")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            data, names = reader(path)
    except UnreadableFile:
        raise
    except ImportError as error:
        raise UnreadableFile(f"{path}: reading a {suffix} file: {error}") from error
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UnreadableFile(
            f"{path}: not a readable {suffix or 'svmlight'} file: {reason}"
        ) from error
    for warning in caught:
        if isinstance(warning.message, FileNote):
            warnings.warn(warning.message, stacklevel=2)
    if np.dtype(data.dtype).kind not in "fiub":
        raise UnreadableFile(f"{path}: not numeric, its type is {data.dtype}")
    if data.ndim != 2 or data.shape[0] < min_rows or data.shape[1] < 2:
        raise UnreadableFile(
            f"{path}: need at least {min_rows} samples and 2 features, got {data.shape}"
        )
    data = data.astype(np.float64)
    if not np.isfinite(data.data if is_sparse(data) else data).all():
        raise UnreadableFile(f"{path}: has missing or infinite values")
    return data, names


def _read_npy(path: Path) -> tuple[Any, list[str]]:
    return np.load(path, allow_pickle=False), []


def _read_npz(path: Path) -> tuple[Any, list[str]]:
    # Opened here: NumPy leaves a broken archive open.
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        keys = list(archive.keys())
        if "indptr" in keys or "row" in keys:
            sparse = need("files", "scipy.sparse")
            kind, shape = np.asarray(archive["format"]).item(), archive["shape"]
            kind = kind.decode("ascii") if isinstance(kind, bytes) else kind
            if kind in ("csr", "csc"):
                major, minor = (int(k) for k in (shape if kind == "csr" else shape[::-1]))
                indptr, indices = archive["indptr"], archive["indices"]
                check_compressed("it", indptr, indices, len(archive["data"]), major, minor)
            loaded: Any = sparse.load_npz(path)
            check_sparse("it", loaded)
            return loaded.tocsr(), []
        matrices = [key for key in keys if archive[key].ndim == 2]
        key = next((k for k in MATRIX_KEYS if k in matrices), None)
        if key is None:
            if len(matrices) != 1:
                raise UnreadableFile(
                    f"{path}: need one matrix, or one called X, A or data; it has {', '.join(keys)}"
                )
            key = matrices[0]
        return archive[key], []


def _separator(line: str) -> str:
    """What separates the cells of a line: a comma, a semicolon, a tab, or blanks."""
    best = max(",;\t", key=line.count)
    return best if best in line else " "


def _split(line: str, separator: str) -> list[str]:
    if separator == " ":
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]


def _rises_by_one(cells: Sequence[str]) -> bool:
    """Whether cells are k, k + 1, k + 2, …, as column numbers and years are."""
    if len(cells) < (3 if cells[:1] == ["0"] else 4) or not all(
        re.fullmatch(r"\d+", cell) for cell in cells
    ):
        return False
    return all(int(b) == int(a) + 1 for a, b in itertools.pairwise(cells))


def _read_table(path: Path) -> tuple[Any, list[str]]:
    pyarrow = need("files", "pyarrow")
    csv_reader = need("files", "pyarrow.csv")
    content = path.read_bytes().decode("utf-8-sig")
    lines = (line for line in io.StringIO(content) if line.strip())
    first, second = next(lines, ""), next(lines, "")
    if not first:
        raise UnreadableFile(f"{path}: has no data")
    separator = _separator(first.lstrip("#"))
    cells, following = (_split(line.lstrip("#"), separator) for line in (first, second))
    header = not all(is_number(cell) or cell in MISSING for cell in cells)
    if not header:
        # Names that are numbers: quoted, or counting where the next line does not.
        counted = [part[1:] if cells[0] == "" else part for part in (cells, following)]
        counts = _rises_by_one(counted[0]) and not _rises_by_one(counted[1])
        header = ('"' in first and '"' not in second) or counts
        if header:
            _note(f"{path}: its first line, {first.strip()[:30]}, is taken for a header")
    if header and following and len(cells) != len(following):
        raise UnreadableFile(
            f"{path}: its header has {len(cells)} names for {len(following)} columns"
        )
    if header and not second:
        return np.zeros((0, len(cells))), cells
    body = content[content.index(first) + len(first) :] if header else content
    if separator == " ":
        body = "\n".join(",".join(line.split()) for line in body.splitlines())
    keys = [str(k) for k in range(len(cells))]
    names = cells if header else []
    unnamed = bool(names) and (names[0] == "" or names[0].startswith("Unnamed:"))
    types = {key: pyarrow.float64() for key in keys}
    if unnamed:
        # Row names may be words.
        types["0"] = pyarrow.string()
    try:
        table = csv_reader.read_csv(
            io.BytesIO(body.encode()),
            read_options=csv_reader.ReadOptions(column_names=keys),
            parse_options=csv_reader.ParseOptions(delimiter="," if separator == " " else separator),
            convert_options=csv_reader.ConvertOptions(
                column_types=types, null_values=MISSING, strings_can_be_null=True
            ),
        )
    except pyarrow.ArrowInvalid as error:
        raise UnreadableFile(f"{path}: {_reason(str(error), names)}") from error
    columns = table.columns
    if unnamed:
        written = columns[0].to_pylist()
        if _is_index(written):
            _note(f"{path}: its unnamed first column is the index of the rows and left out")
            columns, names = columns[1:], names[1:]
        else:
            _note(f"{path}: its unnamed first column holds numbers and is taken for a feature")
            columns = [columns[0].cast(pyarrow.float64()), *columns[1:]]
    arrays = []
    for k, column in enumerate(columns):
        if column.null_count:
            row = column.is_null().to_pylist().index(True) + 1
            label = names[k] if names else str(k + 1)
            raise UnreadableFile(
                f"{path}: column {label!r} has {column.null_count} missing values, the first in "
                f"sample {row}"
            )
        arrays.append(np.asarray(column, dtype=np.float64))
    return np.column_stack(arrays) if arrays else np.zeros((0, 0)), names


def _is_index(cells: Sequence[str | None]) -> bool:
    """Whether the cells of an unnamed column name rows: different whole numbers, or words."""
    if all(cell is not None and re.fullmatch(r"-?\d+", cell) for cell in cells):
        return len(set(cells)) == len(cells)
    return not all(cell is None or is_number(cell) for cell in cells)


def _note(text: str) -> None:
    warnings.warn(FileNote(text), stacklevel=3)


def _reason(error: str, names: Sequence[str]) -> str:
    """One line for the user from what pyarrow says."""
    if found := re.search(r"column #(\d+).*invalid value '(.*)'", error, re.DOTALL):
        k = int(found[1])
        label = names[k] if names else str(k + 1)
        return f"column {label!r} is not numeric: {found[2]!r}"
    if found := re.search(r"Expected (\d+) columns, got (\d+)", error):
        return f"the number of columns changed from {found[1]} to {found[2]}"
    return " ".join(error.split())


def _read_parquet(path: Path) -> tuple[Any, list[str]]:
    table = need("files", "pyarrow.parquet").read_table(path)
    for name in [name for name in table.column_names if name.startswith("__index_level_")]:
        # What pandas writes of an index that is not 0, 1, 2, …
        _note(f"{path}: its column {name} is an index and left out")
        table = table.drop_columns([name])
    names = [str(name) for name in table.column_names]
    columns = [np.asarray(column) for column in table.itercolumns()]
    for name, column in zip(names, columns, strict=True):
        if column.dtype.kind not in "fiub":
            raise UnreadableFile(f"{path}: column {name!r} is not numeric, or has missing values")
    return np.column_stack(columns), names


def _read_matrix_market(path: Path) -> tuple[Any, list[str]]:
    data = need("files", "scipy.io").mmread(path)
    return data.tocsr() if is_sparse(data) else np.asarray(data), []


def _read_svmlight(path: Path) -> tuple[Any, list[str]]:
    data, _ = need("files", "sklearn.datasets").load_svmlight_file(str(path))
    return data, []


def _read_either(path: Path) -> tuple[Any, list[str]]:
    """svmlight if there are pairs ``index:value`` after the label, else a table."""
    with path.open(encoding="utf-8-sig") as stream:
        for _, line in zip(range(LOOKED_AT), stream, strict=False):
            pairs = line.split("#")[0].split()[1:]
            if pairs and all(re.fullmatch(r"\w+:\S+", pair) for pair in pairs):
                return _read_svmlight(path)
    return _read_table(path)


READERS: dict[str, Callable[[Path], tuple[Any, list[str]]]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": _read_table,
    ".tsv": _read_table,
    ".parquet": _read_parquet,
    ".mtx": _read_matrix_market,
    ".mtx.gz": _read_matrix_market,
    ".svm": _read_svmlight,
    ".svmlight": _read_svmlight,
    ".libsvm": _read_svmlight,
    ".txt": _read_either,
    ".dat": _read_either,
    "": _read_either,
}


def write_components(path: str | Path, components: FloatArray, names: Sequence[str]) -> None:
    """Write components to a .csv table or a .npz archive, replacing an old one as a whole.

    Parameters
    ----------
    path : str or Path
        ".csv": a row per component, a column per feature, the names of the features as header.
        ".npz": arrays ``components`` and ``feature_names``.
    components : ndarray of shape (n_components, n_features)
        The rows to write, to full precision.
    names : sequence of str
        Names of the features; ``x0``, ``x1``, … if empty, as in scikit-learn.

    Raises
    ------
    ValueError
        If the path has another ending.
    OSError
        If it cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from orthobcd.io import write_components
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "components.csv"
    >>> write_components(path, np.eye(2), ["height", "width"])
    >>> path.read_text().splitlines()[0]
    'height,width'
    """
    path = Path(path)
    labels = list(names) or [f"x{j}" for j in range(components.shape[1])]
    suffix = path.suffix.lower()
    if suffix == ".npz":
        with replacing(path) as part:
            np.savez_compressed(part, components=components, feature_names=np.array(labels))
    elif suffix == ".csv":
        with replacing(path) as part, part.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(labels)
            writer.writerows([repr(float(value)) for value in row] for row in components)
    else:
        raise ValueError(f"path must end in .csv or .npz, got {path}")


# Triples -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TripleFiles:
    """Triples of several files with common numbers.

    Attributes
    ----------
    splits : tuple of ndarray of shape (N, 3)
        Head, relation and tail numbers of every file, in the order of the files.
    entities, relations : tuple of str
        Names, by number. Files of numbers without lists of names have the numbers as names.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> ob.TripleFiles((np.array([[0, 0, 1]]),), ("cat", "animal"), ("is a",)).relations
    ('is a',)
    """

    splits: tuple[IntArray, ...]
    entities: tuple[str, ...]
    relations: tuple[str, ...]


def load_triples(
    *paths: str | os.PathLike[str],
    entities: str | os.PathLike[str] | Sequence[str] | None = None,
    relations: str | os.PathLike[str] | Sequence[str] | None = None,
    ids: bool | None = None,
) -> TripleFiles:
    """Read tab-separated triples, one a line: head, relation, tail.

    Parameters
    ----------
    *paths : path
        Files, for instance of the training, validation and test triples; ``.gz`` is unpacked.
    entities, relations : path or sequence of str, optional
        All names, by number; a file has one a line. By default names are numbered in the order of
        their first occurrence in the files.
    ids : bool, optional
        Whether the files hold numbers (from 0) instead of names. By default they do if every field
        of every file is a nonnegative integer.

    Returns
    -------
    TripleFiles

    Raises
    ------
    ValueError
        If no file is given, a line does not have three fields, a name is not in a given list, or
        a number is not below the length of a given list.
    ImportError
        If pyarrow is not installed (the extra ``files``).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "graph.tsv"
    >>> _ = path.write_text("cat\\tis_a\\tanimal\\ndog\\tis_a\\tanimal\\n")
    >>> import orthobcd as ob
    >>> graph = ob.load_triples(path)
    >>> graph.splits[0].tolist(), graph.entities
    ([[0, 0, 1], [2, 0, 1]], ('cat', 'animal', 'dog'))
    """
    if not paths:
        raise ValueError("paths must name at least one file")
    named = (_names("entities", entities), _names("relations", relations))
    columns = [_read_triples(path) for path in paths]
    # Heads and tails of all files have one numbering, relations another.
    kinds = tuple(_unified([c for triple in columns for c in triple[k]]) for k in (ENDS, LINKS))
    if ids is None:
        ids = all(map(_is_id, itertools.chain(kinds[0][1], kinds[1][1])))
    numbered = [
        (_as_ids if ids else _as_names)(what, codes, words, given)
        for what, (codes, words), given in zip(("entities", "relations"), kinds, named, strict=True)
    ]
    (ends, entity_names), (links, relation_names) = numbered
    splits = tuple(
        np.stack([ends[2 * k], links[k], ends[2 * k + 1]], axis=1) for k in range(len(paths))
    )
    return TripleFiles(splits, entity_names, relation_names)


BLOCK = 1 << 24
"""Bytes of a file of triples that are read at a time."""

ENDS, LINKS = slice(0, 3, 2), slice(1, 2)
"""Columns of a triple with entities, and with relations."""


def _read_triples(path: str | os.PathLike[str]) -> list[Any]:
    """The three columns of a file, dictionary-encoded."""
    pyarrow = need("files", "pyarrow")
    reader = need("files", "pyarrow.csv")
    names = ["head", "relation", "tail"]
    kind = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with pyarrow.input_stream(path, compression="gzip" if packed else None) as stream:
            table = reader.read_csv(
                stream,
                read_options=reader.ReadOptions(column_names=names, block_size=BLOCK),
                parse_options=reader.ParseOptions(delimiter="\t", quote_char=False),
                convert_options=reader.ConvertOptions(
                    column_types=dict.fromkeys(names, kind), strings_can_be_null=False
                ),
            )
    except pyarrow.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            return [pyarrow.chunked_array([pyarrow.array([], kind)])] * 3
        raise ValueError(f"{os.fspath(path)}: {_wrong_line(path, str(error))}") from error
    return list(table.columns)


def _wrong_line(path: str | os.PathLike[str], error: str) -> str:
    """What is wrong with a file of triples that pyarrow does not read."""
    for number, line in enumerate(_lines(path), 1):
        fields = line.count("\t") + 1
        if line and fields != 3:
            return f"line {number} must have 3 tab-separated fields, got {fields}"
    return " ".join(error.split())


def _unified(columns: list[Any]) -> tuple[list[IntArray], list[str]]:
    """Codes of dictionary-encoded columns in one dictionary, and that."""
    pyarrow = need("files", "pyarrow")
    chunks = [chunk for column in columns for chunk in column.chunks]
    whole = pyarrow.chunked_array(chunks).unify_dictionaries()
    indices = iter(whole.chunks)
    codes = [
        np.concatenate([next(indices).indices for _ in column.chunks], dtype=np.int64)
        for column in columns
    ]
    return codes, whole.chunks[0].dictionary.to_pylist()


def _as_ids(
    what: str, codes: list[IntArray], words: list[str], given: list[str] | None
) -> tuple[list[IntArray], tuple[str, ...]]:
    """Columns of numbers, and the names of all numbers."""
    bad = next((word for word in words if not _is_id(word)), None)
    if bad is not None:
        raise ValueError(f"paths must hold nonnegative integers (ids=True), got {bad!r}")
    numbers = np.array(words, dtype=np.int64)
    count = 1 + int(numbers.max(initial=-1))
    if given is not None and len(given) < count:
        raise ValueError(
            f"{what} must have a name for every number, got {len(given)} names and the "
            f"number {count - 1}"
        )
    names = map(str, range(count)) if given is None else given
    return [numbers[column] for column in codes], tuple(names)


def _as_names(
    what: str, codes: list[IntArray], words: list[str], given: list[str] | None
) -> tuple[list[IntArray], tuple[str, ...]]:
    """Columns of numbers of names, and the names: the given ones, or as they first occur."""
    if given is None:
        # Row by row: what stands in the first column of a row before what stands in the last.
        width = 2 if what == "entities" else 1
        files = range(0, len(codes), width)
        order = np.concatenate([np.stack(codes[k : k + width], axis=1).ravel() for k in files])
        first = np.zeros(len(words), dtype=np.int64)
        first[order[::-1]] = np.arange(order.size)[::-1]
        ranked = np.argsort(first, kind="stable")
        given = [words[k] for k in ranked]
        place = np.empty_like(ranked)
        place[ranked] = np.arange(ranked.size)
    else:
        table = {name: k for k, name in enumerate(given)}
        missing = next((word for word in words if word not in table), None)
        if missing is not None:
            raise ValueError(f"{what} must hold every name; {missing!r} is not there")
        place = np.array([table[word] for word in words], dtype=np.int64)
    return [place[column] for column in codes], tuple(given)


def _is_id(field: str) -> bool:
    return field.isascii() and field.isdigit()


def _lines(path: str | os.PathLike[str]) -> list[str]:
    with open(path, "rb") as file:
        content = file.read()
    content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    return content.decode("utf-8", errors="replace").splitlines()


def _names(what: str, given: str | os.PathLike[str] | Sequence[str] | None) -> list[str] | None:
    if given is None:
        return None
    names = (
        _lines(given) if isinstance(given, (str, os.PathLike)) else [str(name) for name in given]
    )
    if len(set(names)) != len(names):
        raise ValueError(f"{what} must hold every name once")
    return names
