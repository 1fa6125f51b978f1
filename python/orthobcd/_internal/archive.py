"""Nested dicts of numbers, texts and arrays in one npz file, without pickles."""

from __future__ import annotations

import enum
import json
import os
import zipfile
import zlib
from typing import Any

import numpy as np

from .writing import replacing

BROKEN = (
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    EOFError,
    MemoryError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy, zipfile and json raise of a file that is not what it should be."""


def not_ours(path: str | os.PathLike[str], kind: str, error: Exception) -> ValueError:
    """The error for a file that `kind` did not write."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return ValueError(f"{os.fspath(path)} is not a file of {kind}.save: {reason}")


def write_arrays(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, Any]
) -> None:
    """Write named arrays with a header of JSON types, replacing an old file as a whole."""
    with replacing(path) as part, part.open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)


def read_arrays(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Header and arrays of a file of `write_arrays`.

    Raises
    ------
    ValueError
        If it is not one.
    OSError
        If it cannot be read.
    """
    try:
        # Opened here: NumPy leaves a broken archive open.
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(str(arrays.pop("header")))
        if not isinstance(header, dict):
            raise TypeError("its header is not a mapping")
    except BROKEN as error:
        raise not_ours(path, kind, error) from error
    return header, arrays


def portable(value: Any) -> bool:
    """Whether `write_tree` keeps a value."""
    if isinstance(value, dict):
        return all(isinstance(k, str) and portable(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(portable, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fiub"
    return value is None or isinstance(value, (str, bool, int, float, np.number))


def write_tree(path: str | os.PathLike[str], kind: str, tree: dict[str, Any]) -> None:
    """Write a nested dict; tuples become lists, enum members their values."""
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
    """The nested dict of a file of `write_tree`."""
    header, arrays = read_arrays(path, kind)

    def unpacked(value: Any) -> Any:
        if isinstance(value, dict):
            if set(value) == {"__array__"}:
                return arrays[value["__array__"]]
            return {k: unpacked(v) for k, v in value.items()}
        return [unpacked(v) for v in value] if isinstance(value, list) else value

    try:
        if header["kind"] != kind:
            raise ValueError(f"it holds a {header['kind']}")
        tree: dict[str, Any] = unpacked(header["tree"])
    except BROKEN as error:
        raise not_ours(path, kind, error) from error
    return tree
