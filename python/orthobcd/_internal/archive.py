"""Files of nested dicts of numbers, strings and arrays: npz without pickles."""

from __future__ import annotations

import dataclasses
import enum
import json
import os
import types
import typing
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .reading import Archive, blaming, opened, reason_of
from .writing import replacing

Kept = TypeVar("Kept")


def not_ours(path: str | os.PathLike[str], kind: str, error: Exception) -> ValueError:
    """The error for a file that ``kind.save`` did not write."""
    return ValueError(f"{os.fspath(path)} is not a file of {kind}.save: {reason_of(error)}")


def write_npz(
    file: str | os.PathLike[str] | BinaryIO,
    arrays: Mapping[str, ArrayLike],
    compression: int = zipfile.ZIP_STORED,
) -> None:
    """Writes named arrays as `numpy.savez` does, and closes the archive after an error too.

    NumPy 1.23 leaves the closing to the garbage collector, which prints a traceback on a full disk.
    """
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=False)


def write_arrays(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, Any]
) -> None:
    """Writes named arrays and a header of JSON types; an old file is replaced atomically."""
    with replacing(path) as part, part.open("wb") as file:
        write_npz(file, {"header": np.array(json.dumps(header)), **arrays})


def read_arrays(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Reads header and arrays from a file of `write_arrays`.

    Raises
    ------
    ValueError
        If the file is not valid, or declares more data than it holds.
    OSError
        If the file cannot be read.
    """
    with blaming(lambda error: not_ours(path, kind, error)), opened(path) as source:
        archive = Archive(source)
        arrays = {name: archive[name] for name in archive}
        if "header" not in arrays:
            raise ValueError("it has no header")
        header = json.loads(str(arrays.pop("header")))
        if not isinstance(header, dict):
            raise TypeError("its header is not a mapping")
    return header, arrays


def read_json(path: str | os.PathLike[str], kind: str) -> Any:
    """Reads the value of a JSON file that ``kind.save`` wrote."""
    with blaming(lambda error: not_ours(path, kind, error)), opened(path) as source:
        return json.loads(source.stream.read())


def portable(value: Any) -> bool:
    """True if `write_tree` can write a value."""
    if isinstance(value, dict):
        return all(isinstance(k, str) and portable(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(portable, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fiub"
    return value is None or isinstance(value, (str, bool, int, float, np.number))


def write_tree(path: str | os.PathLike[str], kind: str, tree: dict[str, Any]) -> None:
    """Writes a nested dict; tuples become lists, enum members their values."""
    arrays: dict[str, Any] = {}

    def packed(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            arrays[f"array_{len(arrays)}"] = value
            return {"__array__": f"array_{len(arrays) - 1}"}
        if isinstance(value, enum.Enum):
            return value.value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, dict):
            return {k: packed(v) for k, v in value.items()}
        return [packed(v) for v in value] if isinstance(value, (list, tuple)) else value

    write_arrays(path, {"kind": kind, "tree": packed(tree)}, arrays)


def read_tree(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """Reads the nested dict from a file of `write_tree`."""
    header, arrays = read_arrays(path, kind)

    def unpacked(value: Any) -> Any:
        if isinstance(value, dict):
            if set(value) == {"__array__"}:
                return arrays[value["__array__"]]
            return {k: unpacked(v) for k, v in value.items()}
        return [unpacked(v) for v in value] if isinstance(value, list) else value

    with blaming(lambda error: not_ours(path, kind, error)):
        if header["kind"] != kind:
            raise ValueError(f"it holds a {header['kind']}")
        tree: dict[str, Any] = unpacked(header["tree"])
    return tree


def conforming(value: Kept) -> Kept:
    """Checks that the fields of a dataclass have their declared types, also in nested dataclasses.

    Raises
    ------
    TypeError
        If a field has another type.
    """
    for name, kind in typing.get_type_hints(type(value)).items():
        if not _is_a(getattr(value, name), kind):
            found = type(getattr(value, name)).__name__
            raise TypeError(f"{name} must be of type {kind}, got {found}")
    return value


def _is_a(value: Any, kind: Any) -> bool:
    """True if a value has a type, given as an annotation of one of our dataclasses."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return True
    if origin in (types.UnionType, typing.Union):
        return any(_is_a(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, tuple) and all(_is_a(part, parts[0]) for part in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            _is_a(k, parts[0]) and _is_a(v, parts[1]) for k, v in value.items()
        )
    if origin is np.ndarray:
        # Integer arrays are accepted as floating-point arrays.
        kinds = "if" if issubclass(typing.get_args(parts[1])[0], np.floating) else "i"
        return isinstance(value, np.ndarray) and value.dtype.kind in kinds
    if kind in (int, float):
        number = (int,) if kind is int else (int, float)
        return isinstance(value, number) and not isinstance(value, bool)
    nested = dataclasses.is_dataclass(kind)
    return isinstance(value, kind) and (not nested or conforming(value) is value)
