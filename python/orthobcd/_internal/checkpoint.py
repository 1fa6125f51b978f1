"""Checkpoints of solves: checks of the arguments, and texts that identify a solve."""

from __future__ import annotations

import dataclasses
import hashlib
import numbers
import os
from typing import Any, TypeAlias

import numpy as np

from .._core import Checkpoint
from .checks import as_float, is_sparse

CheckpointLike: TypeAlias = str | os.PathLike[str] | Checkpoint
"""Path of a checkpoint, or a `Checkpoint` that several solves in a row share."""


def opened(checkpoint: CheckpointLike | None, every: Any) -> Checkpoint | None:
    """The open checkpoint; None without one. Checks both arguments of `solve`."""
    every = as_float("checkpoint_every", every, minimum=0.0)
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return checkpoint
    if not isinstance(checkpoint, (str, os.PathLike)):
        raise TypeError(f"checkpoint must be a path, got {type(checkpoint).__name__}")
    path = os.fspath(checkpoint)
    if not path:
        raise ValueError("checkpoint must be the path of a file, got an empty one")
    if os.path.isdir(path):
        raise ValueError(f"checkpoint must be the path of a file; {path} is a folder")
    return Checkpoint(os.path.realpath(path), every)


class Checkpoints:
    """The checkpoints of several fits, in a folder that is made if it does not exist.

    Parameters
    ----------
    folder : path or None
        The folder; None for no checkpoints.
    every : float
        Least seconds between two writes.
    random_state : object
        Seed of the fits, which must be an integer.
    """

    def __init__(
        self, folder: str | os.PathLike[str] | None, every: Any, random_state: Any
    ) -> None:
        self.folder, self.every = folder, as_float("checkpoint_every", every, minimum=0.0)
        if folder is None:
            return
        check_seeded(random_state)
        if not isinstance(folder, (str, os.PathLike)):
            raise TypeError(f"checkpoint must be a path, got {type(folder).__name__}")
        try:
            os.makedirs(folder, exist_ok=True)
        except FileExistsError as error:
            raise ValueError(
                f"checkpoint must be a folder; {os.fspath(folder)} is a file"
            ) from error
        except OSError:
            # Each fit warns that its file cannot be written, and goes on.
            pass

    def path(self, name: str) -> str | None:
        """The path of a checkpoint; None without any."""
        return None if self.folder is None else os.path.join(self.folder, f"{name}.checkpoint")

    def one(self, name: str) -> Checkpoint | None:
        """An open checkpoint; None without any."""
        return opened(self.path(name), self.every)


def check_seeded(random_state: Any) -> None:
    """Checks that a fit with a checkpoint can be repeated."""
    if not isinstance(random_state, numbers.Integral):
        raise ValueError(
            f"random_state must be an integer where a checkpoint is given, got {random_state!r}"
        )


def digest(value: Any) -> str:
    """A text that two values share only if they are equal; arrays by a hash of their bytes."""
    if is_sparse(value):
        columns = value.tocsc()
        return f"sparse {digest((columns.shape, columns.indptr, columns.indices, columns.data))}"
    if isinstance(value, np.ndarray):
        shape = "x".join(map(str, value.shape))
        sha = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"<{value.dtype} array {shape}, {sha[:16]}>"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        shown = (f"{name}={digest(getattr(value, name))}" for name in names)
        return f"{type(value).__name__}({', '.join(shown)})"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(digest, value))})"
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    return repr(value)


def identity(**values: Any) -> tuple[tuple[str, str], ...]:
    """Names and texts of the arguments that the solves of one checkpoint share."""
    return tuple((name, digest(value)) for name, value in values.items())
