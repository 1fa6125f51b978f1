"""Checks of arguments: every message names the argument and the allowed values."""

from __future__ import annotations

import dataclasses
import numbers
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Set, Sized
from decimal import Decimal
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core import COEFFICIENTS, DATA

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Integers: TypeAlias = NDArray[np.integer[Any]]
Signs: TypeAlias = NDArray[np.int8]


class Sparse(Protocol):
    """Protocol of scipy.sparse matrices and arrays."""

    @property
    def nnz(self) -> Any:
        """Number of stored entries."""

    def tocsc(self) -> Any:
        """The matrix in compressed sparse column format."""


DataLike: TypeAlias = ArrayLike | Sparse
"""A dense or sparse matrix of data."""

SYMMETRY_TOLERANCE = 1e-12
"""A matrix C counts as symmetric if ``max |C − Cᵀ|`` is at most this times ``max |C|``, the
rounding error of a product such as ``A.T @ A``; then ``(C + Cᵀ)/2`` is used."""

ROUNDINGS = 64.0
"""Least tolerance for a matrix of a floating-point type, in units of the rounding of this type: the
rounding error of a product of matrices of the type."""

STRIP = 64
"""Rows of an n × n matrix that are handled at a time."""


Order: TypeAlias = Literal["C", "A"]

OWN = (f"{__name__.partition('.')[0]}.", "sklearn.")
"""Begins of the names of modules at which no warning points."""

PIECE = 256
"""Rows and columns of a block that is read or transposed at once: it fits into the cache."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the line of the caller of this package, or of scikit-learn's wrapper around it."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(OWN):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


Closed = Literal["both", "left", "right", "neither"]

Check: TypeAlias = Callable[[str, Any], Any]
"""Returns the checked value of an argument, or raises an error that names the argument."""


@dataclasses.dataclass(frozen=True)
class Interval:
    """The check that an argument is a number of a kind, finite, and between two bounds.

    Attributes
    ----------
    kind : {int, float}
        Integers, or real numbers.
    low, high : float, optional
        Bounds; by default none.
    closed : {"both", "left", "right", "neither"}
        Bounds that are allowed values.
    optional : bool
        Whether None is allowed, too.
    """

    kind: type[int] | type[float]
    low: float | None = None
    high: float | None = None
    closed: Closed = "both"
    optional: bool = False

    def __call__(self, name: str, value: Any) -> Any:
        """``value`` as an int or a float."""
        if value is None and self.optional:
            return None
        whole = self.kind is int
        number_type = numbers.Integral if whole else numbers.Real
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, number_type):
            kind = "an integer" if whole else "a real number"
            raise TypeError(f"{name} must be {kind}, got {value!r}")
        try:
            number: Any = int(value) if whole else float(value)  # type: ignore[call-overload]
        except OverflowError as error:
            raise ValueError(f"{name} must be at most 1e308 in magnitude") from error
        if not whole and not np.isfinite(number):
            raise ValueError(f"{name} must be finite, got {number}")
        form = "d" if whole else "g"
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        if number < low or (number == low and self.closed in ("right", "neither")):
            least = "at least" if self.closed in ("both", "left") else "greater than"
            raise ValueError(f"{name} must be {least} {low:{form}}, got {number:{form}}")
        if number > high or (number == high and self.closed in ("left", "neither")):
            most = "at most" if self.closed in ("both", "right") else "less than"
            raise ValueError(f"{name} must be {most} {high:{form}}, got {number:{form}}")
        return number


FRACTION: Check = Interval(float, 0.0, 1.0, "neither")


class Checked:
    """Base of frozen dataclasses whose constructor sets checked values; shows arrays by shape."""

    # The checks of fields that do not depend on other fields.
    _checks: ClassVar[Mapping[str, Check]] = {}

    def _set(self, **values: Any) -> None:
        vars(self).update(values)

    def __post_init__(self) -> None:
        for name, check in self._checks.items():
            self._set(**{name: check(name, getattr(self, name))})

    def __repr__(self) -> str:
        names = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        shown = (f"{name}={summary(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({', '.join(shown)})"


def summary(value: Any) -> str:
    """``repr`` of a value; kind and shape of an array."""
    if is_sparse(value):
        return f"<{value.format} {'x'.join(map(str, value.shape))}, {value.nnz} stored>"
    if isinstance(value, np.ndarray):
        return f"<array {'x'.join(map(str, value.shape))}>"
    return repr(value)


def is_sparse(value: object) -> bool:
    """True if ``value`` is a scipy sparse matrix or array."""
    return hasattr(value, "tocsc") and hasattr(value, "nnz")


def is_stored(value: Any) -> bool:
    """True if slicing ``value`` reads its entries, as for h5py, zarr, netCDF4 and backed AnnData.

    Arrays and tables in the memory of another library are converted as a whole.
    """
    elsewhere = isinstance(value, np.ndarray) or hasattr(value, "__dlpack__")
    return (
        not elsewhere
        and not is_sparse(value)
        and not hasattr(value, "iloc")
        and not hasattr(value, "__dask_graph__")
        and isinstance(getattr(value, "shape", None), tuple)
        and getattr(value, "dtype", None) is not None
        and hasattr(value, "__getitem__")
    )


def unmasked(value: Any) -> Any:
    """``value``; if it has masked entries (`numpy.ma`), an array with NaN in their place.

    Masked arrays are also what slices of ``value`` are (netCDF4), chunks of Dask arrays, and rows
    of a sequence. The result has doubles in place of integers, and objects in place of types
    without NaN.
    """
    if hasattr(value, "__dask_graph__"):
        value = value.compute()
    if is_stored(value):
        value = value[:] if value.shape else value[()]
    if isinstance(value, (list, tuple)) and any(isinstance(v, np.ma.MaskedArray) for v in value):
        value = np.ma.array(value)
    if not isinstance(value, np.ma.MaskedArray):
        return value
    if not np.ma.is_masked(value):
        return np.ma.getdata(value)
    kind: Any = np.float64 if value.dtype.kind in "iub" else object
    masked: Any = value if value.dtype.kind in "fc" else value.astype(kind)
    return masked.filled(np.nan)


def numbers_of(value: Any) -> Any:
    """Entries of ``value`` as an array or a sparse matrix of numbers, NaN where one is missing.

    Missing are masked entries, as in `unmasked`, None, ``pandas.NA`` and ``pandas.NaT``. Objects
    are converted if all of them are numbers or missing. Sparse matrices, and arrays and tables
    that need no conversion are returned unchanged.
    """
    value = unmasked(value)
    if hasattr(value, "iloc"):
        value = _of_frame(value)
    elif isinstance(value, (list, tuple)):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.ndim > 0:
        entries = [np.nan if is_missing(entry) else entry for entry in value.ravel()]
        if all(isinstance(entry, (numbers.Real, Decimal)) for entry in entries):
            return np.array(entries, dtype=np.float64).reshape(value.shape)
    return value


def _of_frame(frame: Any) -> Any:
    """A pandas data frame or series; of types that NumPy lacks, as an array or sparse matrix."""
    kinds = np.atleast_1d(np.asarray(frame.dtypes, dtype=object))
    if frame.ndim == 2 and all(getattr(kind, "fill_value", None) == 0 for kind in kinds):
        return frame.sparse.to_coo().tocsc()
    if all(isinstance(kind, np.dtype) and kind.kind != "O" for kind in kinds):
        return frame
    if all(getattr(kind, "kind", "O") in "fiub" for kind in kinds):
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return frame.to_numpy(dtype=object)


def items_of(value: Any) -> list[Any] | None:
    """Items of a sequence, array, set, or index or column of a table; None for other values.

    Items of a set are in the order of their texts.
    """
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sized):
        return None
    if isinstance(value, Set):
        return sorted(value, key=str)
    if isinstance(value, np.ndarray):
        return None if value.ndim == 0 else list(unmasked(value))
    return list(value) if isinstance(value, Iterable) else None


def is_missing(entry: Any) -> bool:
    """True for None, NaN, ``pandas.NA``, ``pandas.NaT`` and a masked entry."""
    if entry is None or entry is np.ma.masked or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(entry, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(entry))
    return isinstance(entry, (numbers.Number, np.number)) and bool(entry != entry)


def magnitude(array: FloatArray) -> float:
    """The largest magnitude, not finite if an entry is not; allocates no array of this size."""
    return float(np.maximum(-array.min(initial=0.0), array.max(initial=0.0)))


class Measured(NamedTuple):
    """A checked array, its `magnitude`, and the rounding of the type in which it was given."""

    array: FloatArray
    size: float
    rounding: float


def as_float_array(name: str, value: Any, ndim: int) -> FloatArray:
    """``value`` as a finite, C-contiguous float64 array of ``ndim`` dimensions.

    Integer, float32, Fortran-ordered, strided and read-only input is accepted, and all that
    `numbers_of` converts. C-contiguous float64 input is not copied.
    """
    return measured(name, value, ndim).array


def measured(name: str, value: Any, ndim: int, order: Order = "C") -> Measured:
    """`as_float_array` with its magnitude and rounding; order "A" keeps Fortran order."""
    try:
        given = numbers_of(value)
        if is_sparse(given):
            raise TypeError(f"{name} must be a dense array, got a sparse {type(value).__name__}")
        raw = np.asarray(given)
    except ValueError as error:
        raise TypeError(f"{name} must be a numeric array: {error}") from error
    if raw.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be a real numeric array, got dtype {raw.dtype}")
    if raw.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {raw.shape}")
    if raw.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {raw.shape}")
    kept: Literal["F", "C"] = "F" if order == "A" and raw.flags.f_contiguous else "C"
    array = np.asarray(raw, dtype=np.float64, order=kept)
    size = magnitude(array)
    if not np.isfinite(size):
        raise ValueError(f"{name} must be finite, it contains NaN or infinity")
    exact = raw.dtype.kind != "f"
    return Measured(array, size, 0.0 if exact else float(np.finfo(raw.dtype).eps))


BFLOAT16 = 2.0**-7
"""Relative precision of bfloat16, a type that NumPy lacks."""


def plain_array(value: Any) -> tuple[Any, float]:
    """An array of numbers, or a tensor of PyTorch or JAX, as an array with its precision."""
    if hasattr(value, "detach"):
        tensor = value.detach().cpu()
        if "bfloat16" in str(tensor.dtype):
            return tensor.double().numpy(), BFLOAT16
        value = tensor.numpy()
    array = np.asarray(unmasked(value))
    if array.dtype.name == "bfloat16":
        return array.astype(np.float64), BFLOAT16
    return array, float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0


def returned_array(name: str, what: str, value: Any, shape: tuple[int, ...]) -> FloatArray:
    """The returned value as a finite real array of this shape; errors name the function."""
    array, _ = plain_array(value)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must return a real {what}, got dtype {array.dtype}")
    if array.shape != shape:
        raise ValueError(f"{name} must return a {what} of shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must return a finite {what}, got NaN or infinity")
    return np.ascontiguousarray(array, dtype=np.float64)


def by_columns(array: FloatArray) -> FloatArray:
    """``array`` in Fortran order: itself, or a copy, made in blocks that fit into the cache."""
    if array.flags.f_contiguous:
        return array
    copy = np.empty(array.shape, order="F")
    m, n = array.shape
    for i in range(0, m, PIECE):
        for k in range(0, n, PIECE):
            copy[i : i + PIECE, k : k + PIECE] = array[i : i + PIECE, k : k + PIECE]
    return copy


def check_size(name: str, size: float, bounds: tuple[float, float] = COEFFICIENTS) -> None:
    """Raises a ValueError if the largest magnitude ``size`` is out of bounds; 0 is allowed.

    Within the bounds products neither overflow nor underflow: 1e-120 to 1e120 for coefficients,
    1e-50 to 1e50 for data, whose products are summed.
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
    """`as_float_array` for a data matrix, with `check_size`."""
    array, size, _ = measured(name, value, 2)
    check_size(name, size, DATA)
    return array


def strips(n: int) -> Iterator[slice]:
    """Slices of n rows, so few at a time that a strip is small beside an n × n matrix."""
    for begin in range(0, n, STRIP):
        yield slice(begin, min(begin + STRIP, n))


def as_symmetric(name: str, value: Any, n: int | None = None) -> FloatArray:
    """``value`` as a finite symmetric matrix, of n rows if n is given."""
    matrix, size, rounding = measured(name, value, 2)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be square, got shape {matrix.shape}")
    if n is not None and len(matrix) != n:
        raise ValueError(f"{name} must have n_rows = {n} rows, got shape {matrix.shape}")
    pieces = [slice(i, i + PIECE) for i in range(0, len(matrix), PIECE)]
    asymmetry = max(
        magnitude(matrix[rows, columns] - matrix[columns, rows].T)
        for i, rows in enumerate(pieces)
        for columns in pieces[i:]
    )
    if asymmetry > max(SYMMETRY_TOLERANCE, ROUNDINGS * rounding) * size:
        raise ValueError(f"{name} must be symmetric, max |{name} − {name}ᵀ| is {asymmetry:.3g}")
    return matrix if asymmetry == 0.0 else 0.5 * (matrix + matrix.T)


def as_data_matrix(value: Any) -> tuple[Any, float]:
    """A finite float64 data matrix, contiguous or canonical CSC, and its largest magnitude."""
    value = numbers_of(value)
    if not is_sparse(value):
        array, size, _ = measured("A", value, 2, order="A")
        check_size("A", size, DATA)
        return array, size
    if value.ndim != 2:
        raise ValueError(f"A must have 2 dimension(s), got shape {value.shape}")
    if 0 in value.shape:
        raise ValueError(f"A must not be empty, got shape {value.shape}")
    if np.dtype(value.dtype).kind not in "fiub":
        raise TypeError(f"A must be real and numeric, got dtype {value.dtype}")
    check_sparse("A", value)
    matrix = value.tocsc().astype(np.float64, copy=False)
    if not matrix.has_canonical_format or matrix.indptr[-1] != matrix.data.size:
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.prune()
    size = magnitude(matrix.data)
    if not np.isfinite(size):
        raise ValueError("A must be finite, it contains NaN or infinity")
    check_size("A", size, DATA)
    return matrix, size


def as_signature(value: Any, n: int | None = None) -> Signs:
    """``value`` as an array of n signs ±1."""
    raw = np.asarray(numbers_of(value))
    if raw.dtype.kind not in "fiub":
        raise TypeError(f"signature must be an array of +1 and -1, got dtype {raw.dtype}")
    if raw.ndim != 1 or raw.size == 0:
        raise ValueError(f"signature must be one-dimensional and not empty, got shape {raw.shape}")
    if n is not None and raw.shape[0] != n:
        raise ValueError(f"signature must have {n} entries, got {raw.shape[0]}")
    bad = raw[(raw != 1) & (raw != -1)]
    if raw.dtype.kind == "b" or bad.size:
        raise ValueError(
            f"signature must hold only +1 and -1, got {bad[0] if bad.size else bool(raw[0])}"
        )
    return raw.astype(np.int8)


def check_sparse(name: str, matrix: Any) -> None:
    """Checks the index arrays of a sparse matrix: SciPy's conversions crash on invalid ones."""
    kind = getattr(matrix, "format", "")
    try:
        if kind == "coo" and matrix.ndim == 2:
            type(matrix)((matrix.data, (matrix.row, matrix.col)), shape=matrix.shape)
        elif kind in ("csr", "csc", "bsr"):
            indices, indptr = matrix.indices, matrix.indptr
            if any(a.dtype.kind not in "iu" for a in (indices, indptr)):
                raise ValueError("indices and index pointers must be integers")
            # Shares the arrays; the check drops entries beyond the last index pointer.
            same = type(matrix)((matrix.data, indices, indptr), shape=matrix.shape)
            same.check_format(full_check=True)
            if same.nnz == 0 and indptr.any():
                raise ValueError("index pointers of no entries must be 0")
    except ValueError as error:
        raise ValueError(f"{name} must have valid indices: {error}") from error


def as_nonnegative(name: str, value: Any) -> FloatArray:
    """``value`` as a nonnegative float64 array of one dimension."""
    array = as_float_array(name, value, 1)
    if array.min() < 0.0:
        raise ValueError(f"{name} must be nonnegative, the smallest is {array.min():g}")
    return array


def as_seed(value: Any) -> int:
    """``value`` as an unsigned 64-bit integer."""
    return as_int("seed", value, 0, 2**64 - 1)


def seed_of(seed: Any, random_state: Any) -> int:
    """The seed that ``seed`` or ``random_state`` gives; only one of them may be given."""
    if random_state is None:
        return as_seed(seed)
    if seed != 0:
        raise ValueError(f"seed must not be given beside random_state, got {seed!r}")
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    return as_int("random_state", random_state, 0, 2**64 - 1)


def as_threads(value: Any) -> int | None:
    """``n_threads`` as the core takes it: None for all cores, which −1 stands for, too."""
    all_cores = value is None or (value == -1 and not isinstance(value, (bool, np.bool_)))
    return None if all_cores else as_int("n_threads", value, 1)


def as_int(name: str, value: Any, low: int, high: int | None = None) -> int:
    """``value`` as an integer from ``low`` to ``high``."""
    return int(Interval(int, low, high)(name, value))


def as_float(
    name: str,
    value: Any,
    low: float | None = None,
    high: float | None = None,
    closed: Closed = "both",
) -> float:
    """``value`` as a finite float between the bounds."""
    return float(Interval(float, low, high, closed)(name, value))


def as_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Returns ``value`` if it is one of ``choices``, else raises an error."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, one of {', '.join(choices)}; got {value!r}")
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")
    return value


def one_of(choices: Any, *, or_none: bool = False, or_function: bool = False) -> Check:
    """The check that an argument is one of the strings of a Literal, or of another kind."""
    allowed = get_args(choices)

    def check(name: str, value: Any) -> Any:
        if (or_none and value is None) or (or_function and callable(value)):
            return value
        return as_choice(name, value, allowed)

    return check


def as_callable(name: str, value: Any) -> Any:
    """Returns ``value`` if it is a function; raises a TypeError for other values."""
    if not callable(value):
        raise TypeError(f"{name} must be callable, got {type(value).__name__}")
    return value


def as_bool(name: str, value: Any) -> bool:
    """``value`` as a bool; raises a TypeError for other types."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)
