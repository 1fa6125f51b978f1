"""Objects in files: npz without pickles, with a header of JSON.

Objects are made by their constructors, of known classes only, so that a file cannot run code.
"""

from __future__ import annotations

import contextlib
import enum
import inspect
import json
import os
import re
import sys
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from .reading import errors_as, open_npz, open_source, reason_of
from .writing import replacing

if TYPE_CHECKING:
    from typing_extensions import Self

FORMAT = 1
"""Number of the format of the files; a reader refuses later ones."""

FITTED = re.compile(r"[a-z][a-z0-9_]*_|_[a-z][a-z_]*")
"""Names of fitted attributes."""

Classes = Mapping[str, type]
"""Classes whose instances a file may hold, by name."""


class Filed:
    """Base class of objects that write themselves to files."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the object to a file (NumPy's npz, without pickles), which `load` reads.

        The command ``orthobcd transform`` reads files of fitted estimators, too.

        Parameters
        ----------
        path : path
            The file; an old one is replaced atomically.

        Raises
        ------
        NotFittedError, ValueError
            If the object is an estimator, before `fit`.
        TypeError
            If a part of the object, or a parameter of the estimator, is an object of a class
            outside this package, scikit-learn's splitters aside; pickle or joblib can write it.
        OSError
            If the file cannot be written.
        """
        header, arrays = parts_of(self, self._classes())
        with replacing(path) as part, part.open("wb") as file:
            write_npz(file, {"header": np.array(json.dumps(header)), **arrays})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an object of this class, with the bits of its numbers, from a file of `save`.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        object of this class

        Raises
        ------
        ValueError
            If the file does not hold an object of this class, or its parts contradict each other.
        OSError
            If the file cannot be read.
        """
        header, arrays = read_arrays(path, cls.__name__)
        with errors_as(lambda error: not_saved_by(path, cls.__name__, error)):
            made: Self = object_of(cls, header, arrays)
            return made

    @classmethod
    def _classes(cls) -> Classes:
        """Classes of the parts of an object, by name: those that the module of its class knows.

        For a subclass of a user it is the module of the class of this package.
        """
        package = __name__.partition(".")[0]
        homes = (one.__module__ for one in cls.__mro__)
        home = next(home for home in homes if home.partition(".")[0] == package)
        return classes_in(vars(sys.modules[home]).values())

    def _check_loaded(self) -> None:
        """Raises an error if the parts of an object from a file do not fit together."""
        raise NotImplementedError


def classes_in(values: Iterable[Any]) -> Classes:
    """The dataclasses and enumerations among values, by name."""
    classes = filter(inspect.isclass, values)
    return {c.__name__: c for c in classes if is_dataclass(c) or issubclass(c, enum.Enum)}


def parts_of(value: Any, classes: Classes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of the file of an object."""
    kind, arrays = type(value).__name__, dict[str, Any]()
    _, parameters, later = state_of(value)
    try:
        header = {
            "kind": kind,
            "format": FORMAT,
            "parameters": packed(parameters, arrays, "parameters", classes),
            "fitted": {
                name: packed(part, arrays, name.strip("_"), classes)
                for name, part in (later or {}).items()
            },
        }
    except TypeError as error:
        raise TypeError(f"{error}; pickle or joblib can write this {kind}") from error
    return header, arrays


def object_of(cls: type[Any], header: dict[str, Any], arrays: Mapping[str, Any]) -> Any:
    """The object of a class with the header and arrays of its file."""
    if header["kind"] != cls.__name__:
        raise ValueError(f"it holds a {header['kind']}")
    if header["format"] > FORMAT:
        raise ValueError("a later version of orthobcd wrote it")
    classes = cls._classes()
    parameters, fitted = (unpacked(header[k], arrays, classes) for k in ("parameters", "fitted"))
    made = cls(**parameters)
    for name in fitted:
        if not FITTED.fullmatch(name) or callable(getattr(cls, name, None)):
            raise ValueError(f"{name} is no fitted attribute")
    vars(made).update(fitted)
    made._check_loaded()
    return made


def not_saved_by(path: str | os.PathLike[str], kind: str, error: Exception) -> ValueError:
    """The error for a file that ``kind.save`` did not write."""
    return ValueError(f"{os.fspath(path)} is not a file of {kind}.save: {reason_of(error)}")


def write_npz(file: str | os.PathLike[str] | BinaryIO, arrays: Mapping[str, ArrayLike]) -> None:
    """Writes named arrays as `numpy.savez` does, and closes the archive after an error too.

    NumPy 1.23 leaves the closing to the garbage collector, which prints a traceback on a full disk.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)


def read_arrays(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Reads header and arrays from a file of `Filed.save`."""
    with errors_as(lambda error: not_saved_by(path, kind, error)), open_source(path) as source:
        arrays = dict(open_npz(source))
        if "header" not in arrays:
            raise ValueError("it has no header")
        header = json.loads(str(arrays.pop("header")))
        if not isinstance(header, dict):
            raise TypeError("its header is not a mapping")
    return header, arrays


def packed(value: Any, arrays: dict[str, Any], name: str, classes: Classes) -> Any:
    """A value as JSON types, with its arrays in ``arrays``.

    Parameters
    ----------
    value : object
        A number, string, array, None, a list, tuple, set or dict of such values, or an instance of
        one of ``classes``: its constructor must take its attributes by name, or it must have a
        ``__setstate__``.
    arrays : dict
        Gets the arrays, under names that begin with ``name``.
    name : str
        What the value is called.
    classes : mapping of str to type
        Allowed classes.
    """

    def parts(values: Iterable[Any]) -> list[Any]:
        return [packed(v, arrays, f"{name}.{k}", classes) for k, v in enumerate(values)]

    kind = type(value).__name__
    if value is None or type(value) in (str, bool, int, float):
        return value
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fiubSU":
        arrays[name] = value
        return {"__array__": name}
    if isinstance(value, np.ndarray) and all(type(v) is str for v in value.flat):
        return {"__names__": value.tolist()}
    if type(value) is dict and all(isinstance(k, str) for k in value):
        own = {k: packed(v, arrays, f"{name}.{k}", classes) for k, v in value.items()}
        return own if not any(k.startswith("__") for k in own) else {"__dict__": own}
    if type(value) is list:
        return parts(value)
    if type(value) in (tuple, set, frozenset):
        return {f"__{kind}__": parts(value)}
    if classes.get(kind) is type(value):
        with contextlib.suppress(AttributeError):
            arguments, options, state = state_of(value)
            made = [packed(part, arrays, name, classes) for part in (arguments, options)]
            later = packed(state, arrays, f"{name}.state", classes)
            return {"__object__": [kind, [*made, later]]}
    if hasattr(value, "tolist"):
        # An index or a series of pandas.
        return packed(value.tolist(), arrays, name, classes)
    raise TypeError(f"{name} must be of a kind that a file can hold, got {value!r}")


def unpacked(value: Any, arrays: Mapping[str, Any], classes: Classes) -> Any:
    """The value that `packed` packed."""
    if isinstance(value, list):
        return [unpacked(v, arrays, classes) for v in value]
    if not isinstance(value, dict):
        return value
    (mark, own), *others = [*value.items()] or [("", None)]
    if others or not mark.startswith("__"):
        return {k: unpacked(v, arrays, classes) for k, v in value.items()}
    if mark == "__array__":
        return arrays[own] if arrays[own].ndim else arrays[own][()]
    if mark == "__names__":
        return np.array(own, dtype=object)
    if mark == "__dict__":
        return {k: unpacked(v, arrays, classes) for k, v in own.items()}
    inner = unpacked(own, arrays, classes)
    plain = {"__tuple__": tuple, "__set__": set, "__frozenset__": frozenset}
    if mark in plain:
        return plain[mark](inner)
    kind, (arguments, options, state) = inner
    made = classes[kind](*arguments, **options)
    if state is not None:
        made.__setstate__(state)
    return made


def state_of(value: Any) -> tuple[Any, Any, Any]:
    """Arguments and options of the constructor that make an object, and its later state or None."""
    if isinstance(value, enum.Enum):
        return (value.value,), {}, None
    if isinstance(value, np.random.RandomState):
        return (), {}, value.get_state(legacy=False)
    if hasattr(value, "get_params"):
        options = value.get_params(deep=False)
        return (), options, {k: v for k, v in vars(value).items() if k not in options}
    if hasattr(value, "__setstate__"):
        _, arguments, state = value.__reduce__()
        return arguments, {}, state
    arguments, options = (), {}
    for name, parameter in inspect.signature(type(value)).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            arguments = getattr(value, name)
        else:
            options[name] = getattr(value, name)
    return tuple(arguments), options, None


def check_arrays(
    arrays: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], kind: Any = None
) -> None:
    """Raises a ValueError unless arrays have their shapes, the type, and hold finite numbers."""
    for name, shape in shapes.items():
        array = np.asarray(arrays[name])
        wrong = array.dtype.kind not in "fiub" if kind is None else array.dtype != kind
        if wrong or array.shape != shape or not np.isfinite(array).all():
            raise ValueError(
                f"{name} must hold finite numbers and have shape {shape}, got {array.dtype} of "
                f"shape {array.shape}"
            )
