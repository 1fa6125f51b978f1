"""Checks at the door: every message names the argument and says what is allowed."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
