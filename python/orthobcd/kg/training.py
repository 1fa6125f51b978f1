"""State of training of an `UltraE`, and its checkpoints."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

from .._core import j_orthogonal_start
from .._internal.archive import check_arrays, write_arrays
from .._internal.checks import FloatArray, IntArray, Signs, as_float, as_int
from ..result import Status
from .vocabulary import Vocabulary

HISTORY = ("epoch", "seconds", "loss", "valid_epoch", "valid_mrr", "valid_seconds")
"""Columns of a training curve: three for every epoch, three for every validation."""

Embedding = tuple[FloatArray, FloatArray, FloatArray]
"""Rows of entities (points, Adam's moments, biases), relation matrices, state of their updates."""


@dataclass
class Training:
    """A training run after some epochs.

    Attributes
    ----------
    state, best : Embedding
        The current model, and the model with the best validation MRR.
    fingerprint : list of int
        Sizes and checksums of the training and validation triples.
    known : ndarray of int, of shape (K, 3)
        All triples of the fit, which rankings leave out.
    """

    state: Embedding
    best: Embedding
    fingerprint: list[int]
    known: IntArray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    best_mrr: float = -np.inf
    stale: int = 0
    n_epochs: int = 0
    best_epoch: int = 0
    status: Status = Status.MAX_SWEEPS
    history: dict[str, FloatArray] = field(
        default_factory=lambda: {name: np.zeros(0) for name in HISTORY}
    )

    @property
    def is_validated(self) -> bool:
        """True if a validation has been done."""
        return bool(np.isfinite(self.best_mrr))

    def epoch(self, state: Embedding, loss: float, seconds: float) -> dict[str, float]:
        """Records an epoch; returns the dict for the callback."""
        self.state = state
        self.n_epochs += 1
        if not self.is_validated:
            self.best, self.best_epoch = state, self.n_epochs
        event = {"epoch": float(self.n_epochs), "seconds": seconds, "loss": loss}
        self._append(event)
        return event

    def validated(self, mrr: float, seconds: float) -> None:
        """Records a validation and keeps the current model if its MRR is the best so far."""
        self._append(
            {"valid_epoch": float(self.n_epochs), "valid_mrr": mrr, "valid_seconds": seconds}
        )
        if mrr > self.best_mrr:
            self.best, self.best_mrr, self.stale = self.state, mrr, 0
            self.best_epoch = self.n_epochs
        else:
            self.stale += 1

    def _append(self, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.history[name] = np.append(self.history[name], value)

    def write(
        self,
        path: str | os.PathLike[str],
        options: dict[str, Any],
        signature: Signs,
        vocabulary: Vocabulary,
    ) -> None:
        """Writes a checkpoint; an old one is replaced atomically."""
        header = {
            "options": options,
            "vocabulary": asdict(vocabulary),
            "n_epochs": self.n_epochs,
            "best_epoch": self.best_epoch,
            "best_mrr": self.best_mrr if self.is_validated else None,
            "stale": self.stale,
            "triples": self.fingerprint,
            "status": self.status.value,
        }
        arrays: dict[str, Any] = {"signature": signature, "known": self.known}
        for name, embedding in (("state", self.state), ("best", self.best)):
            arrays.update({f"{name}_{k}": array for k, array in enumerate(embedding)})
        arrays.update({f"history_{name}": self.history[name] for name in HISTORY})
        write_arrays(path, header, arrays)

    @classmethod
    def read(
        cls,
        header: dict[str, Any],
        arrays: dict[str, Any],
        shapes: tuple[tuple[int, ...], ...],
        signature: Signs,
    ) -> Training:
        """Reads the state of training from a checkpoint."""
        state, best = (
            _embedding(name, [arrays[f"{name}_{k}"] for k in range(3)], shapes, signature)
            for name in ("state", "best")
        )
        epochs = as_int("n_epochs", header["n_epochs"], 0)
        best_epoch = as_int("best_epoch", header["best_epoch"], 0)
        if best_epoch > epochs:
            raise ValueError(f"best_epoch must be at most n_epochs = {epochs}")
        mrr = header["best_mrr"]
        if not isinstance(header["triples"], list):
            raise TypeError("triples must be a list")
        history = {name: arrays[f"history_{name}"] for name in HISTORY}
        validations = len(history["valid_epoch"])
        lengths = [epochs] * 3 + [validations] * (len(HISTORY) - 3)
        shapes_of = {name: (length,) for name, length in zip(HISTORY, lengths, strict=True)}
        check_arrays(history, shapes_of, np.float64)
        return cls(
            state=state,
            best=best,
            fingerprint=header["triples"],
            known=arrays["known"],
            best_mrr=-np.inf if mrr is None else as_float("best_mrr", mrr, 0.0),
            stale=as_int("stale", header["stale"], 0),
            n_epochs=epochs,
            best_epoch=best_epoch,
            status=Status(header["status"]),
            history=history,
        )


def _embedding(
    name: str, arrays: list[Any], shapes: tuple[tuple[int, ...], ...], signature: Signs
) -> Embedding:
    """The arrays of an embedding, checked for shape, type, finiteness and J-orthogonality."""
    names = [f"{name}_{k}" for k in range(len(arrays))]
    check_arrays(
        dict(zip(names, arrays, strict=True)), dict(zip(names, shapes, strict=True)), np.float64
    )
    first, second, third = arrays
    return first, _isometries(f"{name}_1", second, signature), third


def _isometries(name: str, matrices: FloatArray, signature: Signs) -> FloatArray:
    """J-orthogonal matrices by the rule for starts of solves: rounding is repaired."""
    repaired = np.empty_like(matrices)
    for k, matrix in enumerate(matrices):
        try:
            repaired[k] = j_orthogonal_start(matrix, signature)
        except ValueError as error:
            raise ValueError(
                f"{name} must hold J-orthogonal matrices; relation {k}: {error}"
            ) from None
    return repaired


def fingerprint(train: IntArray, valid: IntArray | None) -> list[int]:
    """Sizes and checksums of the triples."""
    parts = [train] if valid is None else [train, valid]
    return [number for part in parts for number in (len(part), crc32(part.tobytes()))]
