"""State of training of an `UltraE`."""

from __future__ import annotations

from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from .._core import j_orthogonal_start
from .._internal.archive import check_arrays
from .._internal.checks import FloatArray, IntArray, Signs, as_float, as_int
from ..result import Status

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

    def check(self, shapes: tuple[tuple[int, ...], ...], signature: Signs) -> None:
        """Raises an error if parts do not fit together; repairs rounding of relation matrices."""
        self.state = _embedding("state", self.state, shapes, signature)
        self.best = _embedding("best", self.best, shapes, signature)
        epochs = as_int("n_epochs", self.n_epochs, 0)
        as_int("best_epoch", self.best_epoch, 0, epochs)
        as_int("stale", self.stale, 0)
        if self.best_mrr != -np.inf:
            as_float("best_mrr", self.best_mrr, 0.0)
        if not (isinstance(self.fingerprint, list) and isinstance(self.status, Status)):
            raise TypeError("fingerprint must be a list, and status a Status")
        validations = len(self.history["valid_epoch"])
        lengths = [epochs] * 3 + [validations] * (len(HISTORY) - 3)
        sizes = {name: (length,) for name, length in zip(HISTORY, lengths, strict=True)}
        check_arrays(self.history, sizes, np.float64)


def _embedding(
    name: str, arrays: Embedding, shapes: tuple[tuple[int, ...], ...], signature: Signs
) -> Embedding:
    """The arrays of an embedding, checked for shape, type, finiteness and J-orthogonality."""
    names = [f"{name}.{k}" for k in range(len(arrays))]
    check_arrays(
        dict(zip(names, arrays, strict=True)), dict(zip(names, shapes, strict=True)), np.float64
    )
    first, second, third = arrays
    return first, _isometries(f"{name}.1", second, signature), third


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
