"""Data matrices from files, and components to files, for the command line and the demo."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._checks import FloatArray, is_number, is_sparse

KINDS = ".npy, .npz, .csv, .tsv, .parquet, .mtx, .mtx.gz, .svmlight, .svm, .libsvm, .txt or .dat"
"""What `read_matrix` reads; the last four, and a name without an ending, as svmlight."""

MATRIX_KEYS = ("X", "A", "data")
"""Names of the data in a .npz file that holds several matrices."""


class UnreadableFile(Exception):
    """A data file that cannot be used; the message is one line for the user."""


def read_matrix(path: str | Path, *, min_rows: int = 2) -> tuple[Any, list[str]]:
    """The data matrix of a file (dense, or CSR) and its feature names (empty if there are none).

    Parameters
    ----------
    path : str or Path
        A NumPy array (.npy, or .npz: one array or one called X, A or data), a scipy.sparse matrix
        (.npz as ``scipy.sparse.save_npz`` writes it), a table (.csv, .tsv with an optional header;
        .parquet), a MatrixMarket file (.mtx, .mtx.gz), or an svmlight file. Samples in rows.
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
        or a package that reads its kind is not installed.
    """
    path = Path(path)
    if not path.is_file():
        raise UnreadableFile(f"{path}: no such file")
    name = path.name.lower()
    suffix = ".mtx.gz" if name.endswith(".mtx.gz") else path.suffix.lower()
    reader = READERS.get(suffix)
    if reader is None:
        raise UnreadableFile(f"{path}: unknown kind {suffix}; use {KINDS}")
    try:
        data, names = reader(path)
    except UnreadableFile:
        raise
    except ImportError as error:
        raise UnreadableFile(f"{path}: reading a {suffix} file needs {error.name}") from error
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UnreadableFile(
            f"{path}: not a readable {suffix or 'svmlight'} file: {reason}"
        ) from error
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
    with np.load(path, allow_pickle=False) as archive:
        keys = list(archive.keys())
        if "indptr" in keys or "row" in keys:
            import scipy.sparse

            loaded: Any = scipy.sparse.load_npz(path)
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


def _read_csv(path: Path) -> tuple[Any, list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        first = stream.readline()
        separator = max(",;\t", key=first.count)
        cells = [cell.strip() for cell in next(csv.reader([first], delimiter=separator), [])]
        header = not all(is_number(cell) for cell in cells)
    with path.open(encoding="utf-8-sig") as stream:
        try:
            data = np.loadtxt(
                stream,
                delimiter=separator,
                skiprows=int(header),
                ndmin=2,
                comments=None,
                quotechar='"',
            )
        except ValueError as error:
            # What follows the semicolon is advice about loadtxt.
            raise ValueError(str(error).split(";")[0]) from error
    if header and data.size and len(cells) != data.shape[1]:
        raise UnreadableFile(
            f"{path}: its header has {len(cells)} names for {data.shape[1]} columns"
        )
    return data, cells if header else []


def _read_parquet(path: Path) -> tuple[Any, list[str]]:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    names = [str(name) for name in table.column_names]
    columns = [np.asarray(column) for column in table.itercolumns()]
    for name, column in zip(names, columns, strict=True):
        if column.dtype.kind not in "fiub":
            raise UnreadableFile(f"{path}: column {name!r} is not numeric, or has missing values")
    return np.column_stack(columns), names


def _read_matrix_market(path: Path) -> tuple[Any, list[str]]:
    from scipy.io import mmread

    data = mmread(path)
    return data.tocsr() if is_sparse(data) else np.asarray(data), []


def _read_svmlight(path: Path) -> tuple[Any, list[str]]:
    from sklearn.datasets import load_svmlight_file

    data, _ = load_svmlight_file(str(path))
    return data, []


READERS: dict[str, Callable[[Path], tuple[Any, list[str]]]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
    ".mtx": _read_matrix_market,
    ".mtx.gz": _read_matrix_market,
    ".svm": _read_svmlight,
    ".svmlight": _read_svmlight,
    ".libsvm": _read_svmlight,
    ".txt": _read_svmlight,
    ".dat": _read_svmlight,
    "": _read_svmlight,
}


def write_components(path: str | Path, components: FloatArray, names: Sequence[str]) -> None:
    """Write components to a .csv table or a .npz archive.

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
    """
    path = Path(path)
    labels = list(names) or [f"x{j}" for j in range(components.shape[1])]
    suffix = path.suffix.lower()
    if suffix == ".npz":
        np.savez_compressed(path, components=components, feature_names=np.array(labels))
    elif suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(labels)
            writer.writerows([repr(float(value)) for value in row] for row in components)
    else:
        raise ValueError(f"path must end in .csv or .npz, got {path}")
