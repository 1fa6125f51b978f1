"""Checks at the door: every message names the argument and says what is allowed."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._core import COEFFICIENTS, DATA

FloatArray = NDArray[np.float64]


def is_sparse(value: object) -> bool:
    """Whether ``value`` is a scipy sparse matrix or array (scipy is not imported)."""
    return hasattr(value, "tocsc") and hasattr(value, "nnz")


def is_number(text: str) -> bool:
    """Whether ``text`` is a number as Python writes it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_float_array(name: str, value: Any, ndim: int) -> FloatArray:
    """``value`` as a finite, C-contiguous float64 array of ``ndim`` dimensions.

    Integer, float32, Fortran-ordered, strided and read-only input is accepted; nothing
    is copied when the input already is C-contiguous float64.

    Raises
    ------
    TypeError
        If ``value`` is not numeric, or complex.
    ValueError
        If it has another number of dimensions, no entries, or a NaN or infinite entry.
    """
    if is_sparse(value):
        raise TypeError(f"{name} must be a dense array, got a sparse {type(value).__name__}")
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise TypeError(f"{name} must be a numeric array: {error}") from error
    if raw.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be a real numeric array, got dtype {raw.dtype}")
    if raw.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {raw.shape}")
    if raw.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {raw.shape}")
    array = np.ascontiguousarray(raw, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, it contains NaN or infinity")
    return array


def check_size(name: str, size: float, bounds: tuple[float, float] = COEFFICIENTS) -> None:
    """Refuse a largest magnitude whose products overflow or vanish.

    Coefficients are accepted from 1e-120 to 1e120, data, whose products are summed, from 1e-50 to
    1e50; all zeros too.
    """
    low, high = bounds
    if size != 0.0 and not low <= size <= high:
        if low == 0.0:
            raise ValueError(f"{name} must be at most {high:g} in magnitude, got {size:.3g}")
        raise ValueError(
            f"{name} must be zero or have its largest magnitude between {low:g} and {high:g}, "
            f"where products neither overflow nor vanish; it is {size:.3g}"
        )


def as_data(name: str, value: Any) -> FloatArray:
    """`as_float_array` for a matrix of data, of a size whose products can be summed."""
    array = as_float_array(name, value, 2)
    check_size(name, float(np.abs(array).max()), DATA)
    return array


def check_sparse(name: str, matrix: Any) -> None:
    """Refuse a sparse matrix whose index arrays are broken, which scipy's routines do not survive.

    Raises
    ------
    ValueError
        If index pointers do not rise from 0 to the number of entries, or an index is out of range.
    """
    kind = getattr(matrix, "format", "")
    m, n = matrix.shape if matrix.ndim == 2 else (0, 0)
    if kind in ("csr", "csc", "bsr"):
        height, width = matrix.blocksize if kind == "bsr" else (1, 1)
        rows, columns = m // height, n // width
        major, minor = (columns, rows) if kind == "csc" else (rows, columns)
        check_compressed(name, matrix.indptr, matrix.indices, len(matrix.data), major, minor)
    elif kind == "coo" and matrix.ndim == 2:
        check_indices(name, matrix.row, m)
        check_indices(name, matrix.col, n)
        if not len(matrix.row) == len(matrix.col) == len(matrix.data):
            raise ValueError(f"{name} must have a row and a column index for every entry")


def check_compressed(
    name: str, indptr: Any, indices: Any, count: int, major: int, minor: int
) -> None:
    """Refuse broken arrays of a compressed sparse matrix."""
    bad = (
        any(a.ndim != 1 or a.dtype.kind not in "iu" for a in (indptr, indices))
        or len(indptr) != major + 1
        or int(indptr[0]) != 0
        or bool((indptr[1:] < indptr[:-1]).any())
        or int(indptr[-1]) > min(len(indices), count)
    )
    if bad:
        raise ValueError(
            f"{name} must have {major + 1} index pointers that rise from 0 to at most its number "
            "of indices and of entries"
        )
    check_indices(name, indices[: int(indptr[-1])], minor)


def check_indices(name: str, indices: Any, count: int) -> None:
    """Refuse indices outside ``0 … count − 1``."""
    if indices.size and not (indices.min() >= 0 and indices.max() < count):
        raise ValueError(
            f"{name} must have indices from 0 to {count - 1}, "
            f"got {int(indices.min())} to {int(indices.max())}"
        )


def as_int(name: str, value: Any, minimum: int) -> int:
    """``value`` as an integer of at least ``minimum``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return int(value)


def as_float(
    name: str, value: Any, *, minimum: float | None = None, exclusive: bool = False
) -> float:
    """``value`` as a finite float, at least (or, ``exclusive``, above) ``minimum``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    number = float(value)
    if not np.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    if minimum is not None and (number < minimum or (exclusive and number == minimum)):
        bound = "greater than" if exclusive else "at least"
        raise ValueError(f"{name} must be {bound} {minimum:g}, got {number:g}")
    return number


def as_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """``value`` if it is one of ``choices``."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, one of {', '.join(choices)}; got {value!r}")
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")
    return value


def as_bool(name: str, value: Any) -> bool:
    """``value`` if it is a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)
