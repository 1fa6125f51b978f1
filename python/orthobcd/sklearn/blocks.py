"""Data read by blocks of rows: array-like files, tables, sequences, callables, iterators."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from .._internal.checks import as_float, is_sparse, is_stored, numbers_of
from .tables import batches_of

ROWS = 2048
"""Rows per block read from an array; `orthobcd._core.Moments` sums the same number at once."""

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY_UNITS = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


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
    """

    begin: Callable[[], Iterable[Any]]
    rows: int | None
    again: bool = True

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Iterates over pairs of a number, from 0 on, and a block.

        Raises
        ------
        ValueError
            If reading a block raises an error; the message has the number of the block.
        """
        k = 0
        try:
            for k, block in enumerate(self.begin()):
                yield k, block
                k += 1
        except MemoryError:
            raise
        except BlockError:
            raise
        except Exception as error:
            raise BlockError(k, f"could not be read: {type(error).__name__}: {error}") from error


class BlockError(ValueError):
    """A block of X that cannot be read or is not valid; the message has its number."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"block {number} of X {text}")
        self._parts = number, text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts


@contextmanager
def blaming(number: int) -> Iterator[None]:
    """Context that turns a ValueError or TypeError into a `BlockError` of a block."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise BlockError(number, f"is not valid: {error}") from error


def watching(blocks: Blocks) -> Blocks:
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


def starting(blocks: Blocks) -> Iterator[tuple[int, Any]]:
    """Iterates over the numbers and blocks.

    Raises
    ------
    ValueError
        If there is no block.
    """
    found = False
    for pair in blocks:
        found = True
        yield pair
    if not found:
        raise ValueError("X must have at least one block of rows")


def checked(blocks: Blocks, check: Callable[[int, Any], Any]) -> Iterator[Any]:
    """Yields ``check(number, block)`` for every block; errors of ``check`` name the block."""
    for k, block in starting(blocks):
        with blaming(k):
            data = check(k, block)
        yield data


def loaded(X: Any) -> Any:
    """All rows of data that is read by slices, in memory."""
    return joined([numbers_of(block) for block in slices_of(X)])


def joined(parts: list[Any]) -> Any:
    """The blocks joined into one array; sparse if all blocks are."""
    if len(parts) == 1:
        return parts[0]
    if all(map(is_sparse, parts)):
        from scipy import sparse

        return sparse.vstack(parts, format="csr")
    return np.concatenate([part.toarray() if is_sparse(part) else part for part in parts])


def blocks_of(X: Any) -> Blocks | None:
    """X as blocks of rows; None if it is an array, a matrix or a table in memory, or of Dask."""
    if isinstance(X, Blocks):
        return X
    if is_in_memory(X) or hasattr(X, "__dask_graph__"):
        return None
    batches = batches_of(X, ROWS)
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
        return Blocks(lambda: _called(X), None)
    return None


def is_in_memory(X: Any) -> bool:
    """True if X is a sparse matrix or a NumPy array other than a memory map."""
    return (isinstance(X, np.ndarray) and not isinstance(X, np.memmap)) or is_sparse(X)


def is_sliced(X: Any) -> bool:
    """True if slicing X reads its rows, as for memory maps, h5py, zarr and AnnData."""
    if isinstance(X, np.memmap):
        return X.ndim == 2
    return is_stored(X) and len(X.shape) == 2


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


def _called(X: Callable[[], Any]) -> Iterator[Any]:
    """The iterator over blocks that a callable X returns, checked."""
    made = X()
    if not isinstance(made, Iterable) or is_in_memory(made):
        raise TypeError(
            f"a callable X must return an iterator over blocks, not {type(made).__name__}"
        )
    return iter(made)


def as_bytes(name: str, value: Any) -> float | None:
    """Bytes from a number or a text such as "2GB" or "500 MiB"; None for None."""
    if value is None:
        return None
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9.eE+]+)\s*([kmgt]?i?)b?\s*", value.lower())
        units = {**UNITS, **BINARY_UNITS}
        try:
            number = float(match[1]) * units[match[2]] if match else 0.0
        except (ValueError, KeyError):
            number = 0.0
        if not 0.0 < number < np.inf:
            raise ValueError(f"{name} must be bytes, or a text such as '2GB'; got {value!r}")
        return number
    return as_float(name, value, minimum=0.0, exclusive=True)


def check_memory(name: str, limit: float | None, n: int, of: str = "features") -> None:
    """Raises a ValueError if two matrices of n × n doubles take more than ``limit`` bytes."""
    need = 2 * 8.0 * n * n
    if limit is not None and need > limit:
        raise ValueError(
            f"second moments of {n:,} {of} take {text_of(need / 2)} and a fit holds them twice, "
            f"which is more than {name} = {text_of(limit)}; choose {of}, or allow {text_of(need)}"
        )


def text_of(size: float) -> str:
    """A number of bytes as text with a unit."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size:.0f} bytes"
