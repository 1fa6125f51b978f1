"""The door for data: every container as blocks of rows, their checks, and their Gram matrix.

`blocks_of` knows the containers outside memory: files that are read by slices (memory maps, h5py,
zarr, AnnData), pyarrow datasets, polars LazyFrames, DuckDB relations, sequences, callables and
iterators of blocks. `Gram` is the Gram matrix of data in memory, of sums over blocks
(`sums_to_extend`), or of a covariance.

Means are subtracted before squaring. Of sparse data only the columns that are more than half full
are centred and stored dense. For the others ``‖v‖² ≤ 2‖v − μ‖²``, so that the difference of stored
values and means loses a bit or two for any means.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg.lapack import dpotrf
from sklearn import get_config
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight

from ._core import COEFFICIENTS, CONSTANT, DATA
from ._core import Moments as Sums
from ._internal.checks import (
    ROUNDINGS,
    FloatArray,
    as_float,
    as_nonnegative,
    check_size,
    check_sparse,
    is_sparse,
    is_stored,
    magnitude,
    measured,
    numbers_of,
    strips,
)
from ._internal.extras import need

SYMMETRY = 1e-10
"""Largest difference of S and Sᵀ, relative to the largest entry of S, of a symmetric matrix."""

DEFINITENESS = 1e-8
"""Tolerance for negative eigenvalues of S, relative to n times its largest entry; far above the
rounding error of the Cholesky factorization by which definiteness is tested."""

EXACT_WORK = 4e9
"""Largest m·n·(n + `SCALING`) for which the precision "auto" sums m samples of n features exactly:
0.1 to 0.25 s of a core."""

SCALING = 200
"""Cost of scaling a sample, in products of the sample with a feature."""

DENSE_TYPES = [
    *(np.float64, np.float32, np.bool_),
    *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
]
"""Types of dense data that are used without a copy; other types are converted to the first."""

NUMBERS = ("int", "uint", "float", "double", "halffloat", "bool")
"""Beginnings of the names of pyarrow's numeric types."""

BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY_BYTES = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

DENSE_COVARIANCE_LIMIT = 4096
"""Largest n for which `SparsePCAProblem` and `NonnegativePCAProblem` form the n × n matrix ``AᵀA``
(128 MiB); for more columns they work from ``A``."""

WIDE_DATA_RATIO = 8
"""Ratio n / m from which on the two problems work from a dense ``A`` of m rows: two products with
``A`` are then much cheaper than one with ``AᵀA``."""

ROWS = 2048
"""Rows per block read from an array; `orthobcd._core.Moments` sums the same number at once."""

Precision = Literal["fast", "exact"]
"""Precision of sums over samples."""

PrecisionName = Literal["auto", "fast", "exact"]


# Blocks of rows ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Blocks:
    """Data as blocks of rows.

    Attributes
    ----------
    begin : callable
        Returns an iterable of the blocks.
    rows : int or None
        Total number of rows; None if it is not known before the blocks are read.
    again : bool
        Whether the blocks can be read more than once.
    whole : bool
        Whether X is a single block in memory, whose errors have no number.
    """

    begin: Callable[[], Iterable[Any]]
    rows: int | None
    again: bool = True
    whole: bool = False

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Iterates over pairs of a number, from 0 on, and a block."""
        k = -1
        try:
            for k, block in enumerate(self.begin()):
                yield k, block
        except (MemoryError, BlockError):
            raise
        except Exception as error:
            text = f"could not be read: {type(error).__name__}: {error}"
            raise BlockError(k + 1, text) from error
        if k < 0:
            raise ValueError("X must have at least one block of rows")

    def checked(self, check: Callable[[int, Any], Any]) -> Iterator[Any]:
        """Yields ``check(number, block)`` for every block; errors of ``check`` name the block."""
        for k, block in self:
            with nullcontext() if self.whole else naming_block(k):
                data = check(k, block)
            yield data

    def weighted(
        self, check: Callable[[int, Any], Any], sample_weight: ArrayLike | None
    ) -> Iterator[tuple[Any, FloatArray | None]]:
        """Yields the checked rows of every block and their weights."""
        weights: Any = sample_weight
        if weights is not None and not self.whole:
            weights = as_nonnegative("sample_weight", weights)
        kind: Any = None
        rows, size = 0, 0.0

        def whole(k: int, block: Any) -> Any:
            nonlocal kind, size
            data = check(k, block)
            own = np.dtype(getattr(block, "dtype", data.dtype))
            if kind is not None and own != kind:
                raise TypeError(f"it must have dtype {kind} as block 0, got {own}")
            kind, size = own, max(size, largest(data))
            check_size("X" if self.whole else "its entries", size, (0.0, DATA[1]))
            if weights is not None and not self.whole and rows + data.shape[0] > len(weights):
                raise ValueError(f"sample_weight has {len(weights)} entries, X has more rows")
            return data

        for data in self.checked(whole):
            m = data.shape[0]
            if weights is not None and self.whole:
                weights = as_weights(weights, data, least=0.0)
            yield data, None if weights is None else weights[rows : rows + m]
            rows += m
        if weights is not None and rows != len(weights):
            raise ValueError(f"sample_weight has {len(weights)} entries, X has {rows} rows")
        if self.rows not in (None, rows):
            raise ValueError(f"X changed while it was read: it had {self.rows} rows, now {rows}")
        check_size("X", size, DATA)


class BlockError(ValueError):
    """A block of X that cannot be read or is not valid; the message has its number."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"block {number} of X {text}")
        self._parts = number, text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts


@contextmanager
def naming_block(number: int) -> Iterator[None]:
    """Context that turns a ValueError or TypeError into a `BlockError` of a block."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise BlockError(number, f"is not valid: {error}") from error


def checked_passes(blocks: Blocks) -> Blocks:
    """The blocks; from the second pass on, a block that differs from the first pass is an error."""
    known: list[tuple[int, int]] = []

    def begin() -> Iterator[Any]:
        first = not known
        rows = code = 0
        for k, block in enumerate(blocks.begin()):
            rows, code = rows + int(block.shape[0]), checksum(block, code)
            if first:
                known.append((rows, code))
            elif k >= len(known) or known[k][0] != rows:
                raise BlockError(k, f"ends with row {rows:,}, in the first pass it did not")
            elif known[k][1] != code:
                raise BlockError(k, "differs from the first pass")
            yield block
        if not first and rows != known[-1][0]:
            raise BlockError(len(known) - 1, "is missing, in the first pass it was there")

    return Blocks(begin, blocks.rows)


def checksum(block: Any, start: int) -> int:
    """A checksum of the entries of a block, continued from ``start``."""
    if is_sparse(block):
        rows = block.tocsr()
        parts = [rows.indptr, rows.indices, rows.data]
    else:
        parts = [np.asarray(numbers_of(block))]
    for part in parts:
        start = crc32(np.ascontiguousarray(part).tobytes(), start)
    return start


def load_rows(X: Any) -> Any:
    """All rows of data that is read by slices, in memory."""
    return concatenate_blocks([numbers_of(block) for block in slices_of(X)])


def concatenate_blocks(parts: list[Any]) -> Any:
    """The blocks joined into one array; sparse if all blocks are."""
    if len(parts) == 1:
        return parts[0]
    if all(map(is_sparse, parts)):
        return sparse.vstack(parts, format="csr")
    return np.concatenate([part.toarray() if is_sparse(part) else part for part in parts])


def blocks_of(X: Any) -> Blocks | None:
    """X as blocks of rows; None if it is an array, a matrix or a table in memory, or of Dask."""
    if isinstance(X, Blocks):
        return X
    if is_in_memory(X) or is_lazy(X):
        return None
    batches = batches_of(X)
    if batches is not None:
        return Blocks(batches, None)
    if is_sliced(X):
        return Blocks(lambda: slices_of(X), int(X.shape[0]))
    if isinstance(X, Sequence) and not isinstance(X, (str, bytes)):
        if len(X) > 0 and all(_is_matrix(block) for block in X):
            return Blocks(lambda: X, sum(int(block.shape[0]) for block in X))
        return None
    if isinstance(X, Iterator):
        return Blocks(lambda: X, None, again=False)
    if callable(X):
        return Blocks(lambda: _blocks_made(X), getattr(X, "shape", (None,))[0])
    return None


def is_in_memory(X: Any) -> bool:
    """True if X is a sparse matrix or a NumPy array other than a memory map."""
    return (isinstance(X, np.ndarray) and not isinstance(X, np.memmap)) or is_sparse(X)


def is_sliced(X: Any) -> bool:
    """True if slicing X reads its rows, as for memory maps, h5py, zarr and AnnData."""
    if isinstance(X, np.memmap):
        return X.ndim == 2
    return is_stored(X) and len(X.shape) == 2


def is_lazy(X: Any) -> bool:
    """True if X is a Dask collection, or an xarray array of one."""
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(X))


def _is_matrix(block: Any) -> bool:
    shape = getattr(block, "shape", None)
    return isinstance(shape, tuple) and len(shape) == 2


def slices_of(X: Any) -> Iterator[Any]:
    """Yields blocks of about `ROWS` rows of an array, each of whole chunks of its file."""
    chunks = getattr(X, "chunks", None)
    chunk = chunks[0] if isinstance(chunks, tuple) and chunks else 1
    step = ROWS if not isinstance(chunk, int) or chunk < 1 else max(1, ROWS // chunk) * chunk
    for start in range(0, X.shape[0], step):
        block = X[start : start + step]
        yield block if is_sparse(block) else np.asanyarray(block)


def column_blocks(X: Any, columns: Any) -> Callable[[], Iterator[Any]]:
    """A function that returns an iterator over blocks of rows of some columns of an array."""
    return lambda: (block[:, columns] for block in slices_of(X))


def _blocks_made(X: Callable[[], Any]) -> Iterator[Any]:
    """The iterator over blocks that a callable X returns, checked."""
    made = X()
    if not isinstance(made, Iterable) or is_in_memory(made):
        raise TypeError(
            f"a callable X must return an iterator over blocks, not {type(made).__name__}"
        )
    return iter(made)


def batches_of(X: Any) -> Callable[[], Iterable[Any]] | None:
    """A function that returns an iterator over tables of about `ROWS` rows of X.

    None if X is not a pyarrow dataset, a polars LazyFrame or a DuckDB relation.
    """
    package, name = type(X).__module__.partition(".")[0].lstrip("_"), type(X).__name__
    if package == "pyarrow" and hasattr(X, "to_batches") and hasattr(X, "get_fragments"):
        _check_schema(X.schema)
        # Fragments are read one at a time: by default sixteen batches of four fragments are in
        # memory.
        ahead = {"batch_readahead": 1, "fragment_readahead": 1}
        return lambda: tables_of_batches(X.to_batches(batch_size=ROWS, **ahead))
    if package == "duckdb" and name == "DuckDBPyRelation":
        return lambda: tables_of_batches(_duckdb_batches(X))
    if package == "polars" and name == "LazyFrame":
        _check_columns(
            (name, kind.is_integer() or kind.is_float() or str(kind) == "Boolean", kind)
            for name, kind in X.collect_schema().items()
        )
        if not hasattr(X, "collect_batches"):
            raise TypeError(
                "X is a LazyFrame, which this version of polars cannot read by batches; "
                "update polars, or give X.collect()"
            )
        return lambda: (
            batch
            for batch in X.collect_batches(chunk_size=ROWS, maintain_order=True)
            if batch.height > 0
        )
    return None


def tables_of_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """Tables of the record batches that have rows."""
    table = need("files", "pyarrow").Table
    return (table.from_batches([batch]) for batch in batches if batch.num_rows > 0)


def _duckdb_batches(X: Any) -> Iterator[Any]:
    # A selection is a new relation, because the reader of a relation can be used only once.
    chosen = X.select("*")
    make = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_record_batch
    reader = make(ROWS)
    _check_schema(reader.schema)
    yield from reader


def _check_schema(schema: Any) -> None:
    _check_columns((f.name, str(f.type).startswith(NUMBERS), f.type) for f in schema)


def _check_columns(columns: Iterable[tuple[str, bool, Any]]) -> None:
    """Raises a TypeError for the first of the columns (name, is numeric, type) without numbers."""
    for name, numeric, kind in columns:
        if not numeric:
            raise TypeError(
                f"X must have numeric columns only, {name!r} is of type {kind}; "
                "select the others, or cast it"
            )


# Checks ------------------------------------------------------------------------------------------


def largest(data: Any) -> float:
    """The largest magnitude of an entry; missing values are ignored."""
    entries = data.data if is_sparse(data) else data
    low, high = (float(f.reduce(entries, axis=None, initial=0)) for f in (np.fmin, np.fmax))
    return max(-low, high)


def check_magnitude(data: Any) -> None:
    """Raises a ValueError if squares of the data overflow or underflow."""
    check_size("X", largest(data), DATA)


def check_complete(data: Any, advice: str) -> None:
    """Raises a ValueError that ends with ``advice`` if a value is missing."""
    entries = data.data if is_sparse(data) else data
    if entries.dtype.kind == "f" and np.isnan(np.min(entries, initial=0.0)):
        raise ValueError(f"X must have no missing value (NaN); {advice}")


def as_samples(X: Any, **options: Any) -> Any:
    """X as a dense, CSR or CSC matrix of numbers, NaN where a value is missing.

    ``options`` are those of `sklearn.utils.check_array`.
    """
    data = numbers_of(X)
    if hasattr(data, "to_scipy_sparse"):
        data = data.to_scipy_sparse()
    if is_sparse(data):
        # scikit-learn's checks can crash on invalid indices.
        check_sparse("X", data)
    return check_array(
        data,
        accept_sparse=("csr", "csc"),
        dtype=np.float64 if is_sparse(data) else DENSE_TYPES,
        ensure_all_finite="allow-nan",
        input_name="X",
        **options,
    )


def checked_block(block: Any, n: int) -> Any:
    """A block of rows of n features, checked without an estimator: dense, CSR or CSC."""
    data = as_samples(block)
    if data.shape[1] != n:
        raise ValueError(f"X has {data.shape[1]} features, but is expecting {n} features")
    check_complete(data, "SparsePCA(missing='em') takes data in memory with some")
    return data


def as_weights(weights: ArrayLike, data: Any, least: float = 1.0) -> FloatArray:
    """Checked weights of the samples of ``data``, with a sum above ``least``."""
    checked: FloatArray = _check_sample_weight(
        numbers_of(weights), data, dtype=np.float64, ensure_non_negative=True
    )
    total = float(checked.sum())
    if not (total > least or total == least == 0.0):
        raise ValueError(
            f"sample_weight must sum to more than 1, as numbers of samples do; got {total:g}"
        )
    return checked


def as_covariance(S: ArrayLike) -> FloatArray:
    """A checked copy of a symmetric positive semidefinite S; no other n × n array is made."""
    given, size, rounding = measured("S", S, 2)
    n = len(given)
    if given.shape != (n, n):
        raise ValueError(f"S must be square, got shape {given.shape}")
    check_size("S", size, COEFFICIENTS)
    matrix = np.empty((n, n))
    for rows in strips(n):
        strip, mirrored = given[rows], given[:, rows].T
        if magnitude(strip - mirrored) > max(SYMMETRY, ROUNDINGS * rounding) * size:
            raise ValueError("S must be symmetric")
        matrix[rows] = 0.5 * (strip + mirrored)
    least = -max(DEFINITENESS, ROUNDINGS * rounding) * size * n
    # A zero matrix is semidefinite, but its factorization fails.
    if size > 0.0 and not has_eigenvalues_above(matrix, least):
        raise ValueError(f"S must be positive semidefinite, it has an eigenvalue below {least:.3g}")
    return matrix


def has_eigenvalues_above(matrix: FloatArray, least: float) -> bool:
    """True if all eigenvalues of a symmetric matrix exceed ``least``, by a Cholesky factorization.

    The factor is written over the upper triangle, which then is restored from the lower one.
    """
    diagonal = np.diagonal(matrix).copy()
    np.fill_diagonal(matrix, diagonal - least)
    # The transposed matrix is stored by columns, as LAPACK overwrites it.
    _, info = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    for rows in strips(len(matrix)):
        block = np.tril(matrix[rows, rows], -1)
        matrix[rows, rows] = block + block.T
        matrix[rows, rows.stop :] = matrix[rows.stop :, rows].T
    np.fill_diagonal(matrix, diagonal)
    return bool(info == 0)


def as_bytes(name: str, value: Any) -> float | None:
    """Bytes from a number or a text such as "2GB" or "500 MiB"; None for None."""
    if value is None:
        return None
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9.eE+]+)\s*([kmgt]?i?)b?\s*", value.lower())
        units = {**BYTES, **BINARY_BYTES}
        try:
            number = float(match[1]) * units[match[2]] if match else 0.0
        except (ValueError, KeyError):
            number = 0.0
        if not 0.0 < number < np.inf:
            raise ValueError(f"{name} must be bytes, or a text such as '2GB'; got {value!r}")
        return number
    return as_float(name, value, 0.0, closed="neither")


def check_memory(limit: float | None, n: int, of: str = "features") -> None:
    """Raises a ValueError if two matrices of n × n doubles take more than ``limit`` bytes."""
    need = 2 * 8.0 * n * n
    if limit is not None and need > limit:
        raise ValueError(
            f"second moments of {n:,} {of} take {text_of(need / 2)} and a fit holds them twice, "
            f"which is more than max_memory = {text_of(limit)}; choose {of}, or allow "
            f"{text_of(need)}"
        )


def text_of(size: float) -> str:
    """A number of bytes as text with a unit."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size:.0f} bytes"


# Arrays of other libraries -----------------------------------------------------------------------


def namespace_of(X: Any) -> Any:
    """The array API namespace of X; None without dispatch, and for NumPy and sparse data."""
    if not get_config()["array_api_dispatch"] or is_in_memory(X) or is_lazy(X):
        return None
    from sklearn.utils._array_api import get_namespace

    xp, supported = get_namespace(X)
    return xp if supported and "numpy" not in xp.__name__ else None


def on_device(xp: Any, X: Any, axes: FloatArray, *others: FloatArray | None) -> tuple[Any, ...]:
    """X as floats, and ``axes`` and others in the library, on the device and of the type of X."""
    n = len(axes)
    if X.ndim != 2 or X.shape[1] != n:
        raise ValueError(f"X must have shape (n_samples, {n}), got {tuple(X.shape)}")
    if not xp.isdtype(X.dtype, "real floating"):
        X = xp.astype(X, xp.float32)
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError("X must have no missing or infinite value")
    like = {"dtype": X.dtype, "device": X.device}
    given = (axes, *others)
    return X, *(None if a is None else xp.asarray(np.ascontiguousarray(a), **like) for a in given)


# Gram matrices -----------------------------------------------------------------------------------


def is_exact(precision: str, m: int, n: int) -> bool:
    """True if sums over m samples of n features are exact with this ``precision``."""
    return precision == "exact" or (precision == "auto" and m * n * (n + SCALING) <= EXACT_WORK)


def add_rows(
    sums: Sums, data: Any, weights: FloatArray | None = None, n_threads: int | None = 1
) -> None:
    """Adds the rows of checked data to sums, `ROWS` of them at a time as an array of doubles.

    Ctrl-C ends the call between two blocks; a part of the rows has then been added.
    """
    start = 0
    for block in slices_of(data.tocsr() if is_sparse(data) else data):
        part = slice(start, start := start + block.shape[0])
        own = None if weights is None else weights[part]
        rows = block.toarray() if is_sparse(block) else block
        sums.add(np.require(rows, np.float64, ["ALIGNED"]), own, n_threads)


def sums_to_extend(sums: Sums | None, precision: str, m: int, n: int) -> Sums:
    """Sums to which m more samples of n features can be added; ``sums`` is not changed.

    If exact sums over all samples would exceed `EXACT_WORK` (with "auto"), the sums continue in
    double precision.
    """
    exact = is_exact(precision, m + (0 if sums is None else sums.n_rows), n)
    if sums is None:
        return Sums(n, "exact" if exact else "fast")
    if precision == "exact" and sums.precision == "fast":
        raise ValueError(
            "precision must be 'auto' or 'fast' after samples that were summed fast; "
            "got 'exact', for which fit begins anew"
        )
    more = sums.copy()
    if not exact:
        more.make_fast()
    return more


def is_wide(data: Any) -> bool:
    """True if dense data is so wide that products with it cost less than with ``AᵀA``."""
    return not is_sparse(data) and is_wide_shape(*data.shape)


def is_wide_shape(m: int, n: int) -> bool:
    """True if products with dense data of m rows and n columns cost less than with ``AᵀA``."""
    return n >= WIDE_DATA_RATIO * m


def _column_numbers(data: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The column of every stored entry of a CSC matrix."""
    return np.repeat(np.arange(data.shape[1]), np.diff(data.indptr))


def _sums(data: Any, values: FloatArray) -> FloatArray:
    """Sums per column of ``values``, one value for each stored entry of a CSC matrix."""
    sums = np.bincount(_column_numbers(data), weights=values, minlength=data.shape[1])
    return np.asarray(sums, dtype=np.float64)


def column_means(data: Any, weights: FloatArray | None = None) -> FloatArray:
    """Means of the columns of a CSC matrix, or dense one with weights, accurate to rounding."""
    m = data.shape[0]
    if not is_sparse(data):
        mean = np.average(data, axis=0, weights=weights)
        # The mean of the remainder corrects the rounding error of the first mean.
        left = np.average(data - mean, axis=0, weights=weights)
        return np.asarray(mean + left, dtype=np.float64)
    absent = m - np.diff(data.indptr)
    mean = _sums(data, data.data) / m
    left = _sums(data, data.data - mean[_column_numbers(data)]) - absent * mean
    return np.asarray(mean + left / m)


def squares_about(data: Any, mean: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """``Σ_i weight_i (data_ij − mean_j)²`` of every column; sparse data has no weights."""
    if not is_sparse(data):
        squares = (data - mean) ** 2
        return np.asarray(squares.sum(axis=0) if weights is None else weights @ squares)
    data = data.tocsc()
    stored = _sums(data, (data.data - mean[_column_numbers(data)]) ** 2)
    return np.asarray(stored + (data.shape[0] - np.diff(data.indptr)) * mean**2)


def _full_columns_centred(data: Any, mean: FloatArray) -> tuple[Any, FloatArray]:
    """CSC data whose columns more than half full are centred and dense; means of the others.

    The returned means are those that remain to be subtracted.
    """
    m = data.shape[0]
    counts = np.diff(data.indptr)
    full = 2 * counts > m
    if not full.any():
        return data, mean
    lengths = np.where(full, m, counts)
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    column = _column_numbers(data)
    whole = np.repeat(full, lengths)
    values = np.zeros(starts[-1])
    indices = np.zeros(starts[-1], dtype=np.int64)
    values[whole] = np.repeat(-mean[full], m)
    indices[whole] = np.tile(np.arange(m), int(full.sum()))
    inside = np.arange(data.data.size) - data.indptr[:-1].astype(np.int64)[column]
    place = starts[:-1][column] + np.where(full[column], data.indices, inside)
    indices[place] = data.indices
    values[place] += data.data
    return type(data)((values, indices, starts), shape=data.shape), np.where(full, 0.0, mean)


def is_constant(variances: FloatArray, squares: FloatArray) -> NDArray[np.bool_]:
    """True for constant features, from sums of squares about the means and about 0.

    The variance of a constant feature is at most `orthobcd._core.CONSTANT` times its mean square.
    """
    return np.asarray(variances <= CONSTANT * squares)


def deviations_of(variances: FloatArray, squares: FloatArray, weight: float) -> FloatArray:
    """Standard deviations from sums of squares about the means and about 0; 1 for a constant."""
    varies = ~is_constant(variances, squares)
    return np.sqrt(np.divide(variances, weight, out=np.ones_like(variances), where=varies))


def _variances_of(negative: FloatArray) -> FloatArray:
    """The squared norms of the columns of A for a formed ``−AᵀA``."""
    return np.maximum(-np.diag(negative), 0.0)


@dataclass(eq=False)
class Gram:
    """``AᵀA`` of data A, whose columns are centred and divided by ``scale`` on request.

    Either of the rows of A, or formed.

    Attributes
    ----------
    mean : ndarray of shape (n,)
        Means that are subtracted after the division; zeros without centring.
    scale : ndarray of shape (n,), or None
        Standard deviations, 1 for a constant column; None without scaling.
    n_samples : float
        Number of samples, or sum of their weights.
    variances : ndarray of shape (n,)
        Squared norm of every column of A.
    negative : ndarray of shape (n, n), or None
        ``−AᵀA``, symmetric, in the form that the objective uses without another copy.
    data : ndarray or CSC matrix of shape (m, n), or None
        A plus ``offset`` in every row. Centred constant columns are exactly zero.
    offset : ndarray of shape (n,)
        Means still to be subtracted from the columns of ``data``; zeros for dense columns.
    precision : {"fast", "exact"}
        How ``AᵀA`` was summed.
    """

    mean: FloatArray
    scale: FloatArray | None
    n_samples: float
    variances: FloatArray
    negative: FloatArray | None = None
    data: Any = None
    offset: Any = 0.0
    precision: Precision = "fast"

    @classmethod
    def of(
        cls,
        data: Any,
        precision: str,
        center: bool,
        scale: bool,
        weights: FloatArray | None = None,
        n_threads: int | None = 1,
    ) -> Gram:
        """Of data in memory.

        It is formed by sums over the samples for exact sums, and for dense or weighted data of up
        to 4096 features that is not wide. Otherwise it is of the rows.
        """
        m, n = data.shape
        formed = n <= DENSE_COVARIANCE_LIMIT and not is_wide(data)
        if precision == "exact" and n > DENSE_COVARIANCE_LIMIT:
            raise ValueError(
                f"precision must be 'auto' or 'fast' for more than {DENSE_COVARIANCE_LIMIT} "
                f"features, whose second moments are not formed; got 'exact' and {n} features"
            )
        exact = is_exact(precision, m, n) and (formed or precision == "exact")
        if exact or (formed and (weights is not None or not is_sparse(data))):
            sums = Sums(n, "exact" if exact else "fast")
            add_rows(sums, data, weights, n_threads)
            return cls.of_sums(sums, center, scale, n_threads)
        return cls.of_rows(data.astype(np.float64, copy=False), center, scale, weights)

    @classmethod
    def of_rows(
        cls, data: Any, center: bool, scale: bool = False, weights: FloatArray | None = None
    ) -> Gram:
        """Of the rows of a dense or sparse matrix, multiplied by the roots of their weights."""
        m, n = data.shape
        weight = float(m if weights is None else weights.sum())
        root = None if weights is None else np.sqrt(weights)[:, np.newaxis]
        offset = used = np.zeros(n)
        if is_sparse(data):
            if weights is not None:
                if center or scale:
                    raise ValueError(
                        f"sample_weight needs center=False and scale=False for sparse data of more "
                        f"than {DENSE_COVARIANCE_LIMIT} features"
                    )
                data, weights = data.multiply(root), None
            data = data.tocsc()
            if not data.has_canonical_format:
                data = data.copy()
                data.sum_duplicates()
        variances = squares = squares_about(data, used, weights)
        if center or scale:
            mean = column_means(data, weights)
            about = squares_about(data, mean, weights)
        if center:
            constant = is_constant(about, squares)
            used, variances = mean, np.where(constant, 0.0, about)
            if is_sparse(data):
                data, offset = _full_columns_centred(data, mean)
                rounding = constant[_column_numbers(data)] & (data.data != 0.0)
                if rounding.any():
                    data.data[rounding] = 0.0
            else:
                data = data - mean
                data[:, constant] = 0.0
        if weights is not None:
            data = data * root
        gram = cls(used, None, weight, variances, data=data, offset=offset)
        if scale:
            gram.divide(deviations_of(about, squares, weight))
        return gram

    @classmethod
    def of_sums(
        cls,
        sums: Sums,
        center: bool,
        scale: bool,
        n_threads: int | None = 1,
        *,
        keep: bool = False,
    ) -> Gram:
        """Of sums over samples, which are released on the way with ``keep=False``.

        Memory then holds one n × n matrix instead of two. Fast sums of few samples of many
        features, all of them still buffered, are not formed, as is wide data in memory.
        """
        wide = sums.precision == "fast" and is_wide_shape(sums.n_rows, sums.n_features)
        samples = sums.buffered() if wide else None
        if samples is not None:
            return cls.of_rows(samples[0], center, scale, samples[1])
        weight, precision = sums.weight, sums.precision
        mean, negative, deviation = sums.read(center, scale, keep, n_threads)
        mean, variances = mean if center else np.zeros_like(mean), _variances_of(negative)
        return cls(mean, deviation, weight, variances, negative, precision=precision)

    @classmethod
    def of_covariance(
        cls, matrix: FloatArray, mean: FloatArray, weight: float, center: bool, scale: bool
    ) -> Gram:
        """Of sums of squares about the mean, which are overwritten."""
        variances = np.diag(matrix).copy()
        squares = variances + weight * mean**2
        deviation = deviations_of(variances, squares, weight) if scale else None
        divisor = np.ones(len(mean)) if deviation is None else deviation
        constant = is_constant(variances, squares)
        matrix[constant] = matrix[:, constant] = 0.0
        for rows in () if center else strips(len(mean)):
            matrix[rows] += weight * np.outer(mean[rows], mean)
        for rows in strips(len(mean)):
            right = slice(rows.start, None)
            strip = -0.5 * (matrix[rows, right] + matrix[right, rows].T)
            matrix[rows, right] = strip / np.outer(divisor[rows], divisor[right])
            matrix[right, rows] = matrix[rows, right].T
        mean = mean / divisor if center else np.zeros_like(mean)
        variances = _variances_of(matrix)
        return cls(mean, deviation, weight, variances, matrix, precision="exact")

    def divide(self, scale: FloatArray) -> None:
        """Divides the columns of A, which is given by rows, by ``scale``."""
        sparse = is_sparse(self.data)
        self.data = self.data.multiply(1.0 / scale).tocsc() if sparse else self.data / scale
        self.scale = scale if self.scale is None else self.scale * scale
        self.mean = self.mean / scale
        self.offset = self.offset / scale
        self.variances = self.variances / scale**2

    @property
    def total(self) -> float:
        """Squared Frobenius norm of A."""
        return max(float(self.variances.sum()), np.finfo(np.float64).tiny)

    def second(self, x: FloatArray) -> FloatArray:
        """``XᵀAᵀAX``."""
        if self.negative is not None:
            return np.asarray(-(x.T @ (self.negative @ x)))
        scores = self.scores(x)
        return np.asarray(scores.T @ scores)

    # Of the rows of A -----------------------------------------------------------------------------

    @property
    def pending(self) -> bool:
        """True if ``offset`` is not zero."""
        return bool(np.any(self.offset))

    def scores(self, x: FloatArray) -> FloatArray:
        """The product A X."""
        return np.asarray(self.data @ x - self.offset @ x)

    def transposed(self, w: FloatArray) -> FloatArray:
        """The product Aᵀ w for a vector w."""
        return np.asarray(self.data.T @ w - self.offset * w.sum())

    def gram_rows(self, rows: Any) -> FloatArray:
        """The rows ``rows`` of AᵀA."""
        product = self.data[:, rows].T @ self.data
        product = np.asarray(product.toarray() if is_sparse(product) else product)
        if self.pending:
            sums, offset = np.asarray(self.data.sum(axis=0)).ravel(), self.offset
            product -= np.outer(offset[rows], sums - self.data.shape[0] * offset)
            product -= np.outer(sums[rows], offset)
        return product

    def smaller_gram(self) -> FloatArray:
        """The smaller one of AᵀA and AAᵀ, which have the same nonzero eigenvalues."""
        if self.data.shape[1] <= self.data.shape[0]:
            return self.gram_rows(slice(None))
        product = self.data @ self.data.T
        product = np.asarray(product.toarray() if is_sparse(product) else product)
        along = np.asarray(self.data @ self.offset)
        return np.asarray(product - along[:, np.newaxis] - along + self.offset @ self.offset)


def coordinates(
    data: Any, axes: FloatArray, mean: FloatArray, scale: FloatArray | None
) -> FloatArray:
    """Scaled and centred data times ``axes``; sparse data stays sparse.

    All may be arrays of another library that follows the array API.
    """
    if is_sparse(data):
        product = data @ (axes if scale is None else axes / scale[:, None])
        return np.asarray(product) - mean @ axes
    product = ((data if scale is None else data / scale) - mean) @ axes
    return np.asarray(product) if isinstance(data, np.ndarray) else product


def squares(data: Any, mean: FloatArray, scale: FloatArray | None) -> float:
    """Sum of squares about the mean, after the division by ``scale``."""
    divisor = np.ones(data.shape[1]) if scale is None else scale
    return float(np.sum(squares_about(data, mean * divisor) / divisor**2))


def explained_squares(
    data: Any,
    axes: FloatArray,
    mean: FloatArray,
    scale: FloatArray | None,
    *,
    xp: Any = np,
) -> tuple[float, float]:
    """Sums of squares about the mean: those explained by orthonormal axes, and the total.

    ``xp`` is the library of all arrays.
    """
    explained = float(xp.sum(coordinates(data, axes, mean, scale) ** 2))
    if xp is np:
        return explained, squares(data, mean, scale)
    return explained, float(xp.sum(((data if scale is None else data / scale) - mean) ** 2))
