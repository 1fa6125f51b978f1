"""UltraE: knowledge-graph embedding on a pseudo-hyperboloid."""

from __future__ import annotations

import json
import logging
import os
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._checks import FloatArray, as_choice, as_float, as_int
from ._interrupt import CtrlC
from ._writing import replacing
from .hyperbolic import double_projection
from .hyperbolic_problems import as_signature
from .result import Status
from .triples import IntArray, as_triples

logger = logging.getLogger("orthobcd")

RELATIONS = ("jobcd", "frozen", "csdm")

HISTORY = ("epoch", "seconds", "loss", "valid_epoch", "valid_mrr", "valid_seconds")
"""Columns of a training curve: of every epoch, and of every validation."""

OPTIONS = (
    "n_entities",
    "n_relations",
    "dim",
    "margin",
    "alpha",
    "n_negatives",
    "batch_size",
    "learning_rate",
    "relations",
    "relation_curvature",
    "relation_matchings",
    "relation_step",
    "init_scale",
    "max_epochs",
    "valid_every",
    "patience",
    "seed",
)
"""What a file of `UltraE.save` holds of the constructor's arguments, besides the signature."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Filtered ranks of test triples.

    Attributes
    ----------
    head_ranks, tail_ranks : ndarray of shape (N,)
        Rank of the true entity among all that are not known to fit, from 1; the mean rank of equal
        scores.
    """

    head_ranks: FloatArray
    tail_ranks: FloatArray

    @property
    def ranks(self) -> FloatArray:
        """Both sides, of shape (2N,)."""
        return np.concatenate([self.head_ranks, self.tail_ranks])

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank of both sides."""
        return float(np.mean(1.0 / self.ranks)) if self.ranks.size else float("nan")

    def hits(self, k: int) -> float:
        """Share of ranks of at most ``k``."""
        k = as_int("k", k, 1)
        return float(np.mean(self.ranks <= k)) if self.ranks.size else float("nan")

    def __repr__(self) -> str:
        return (
            f"Ranking({self.head_ranks.size} triples, MRR={self.mrr:.4f}, "
            f"Hits@1={self.hits(1):.4f}, @3={self.hits(3):.4f}, @10={self.hits(10):.4f})"
        )


class UltraE:
    """Embedding of a knowledge graph on the pseudo-hyperboloid, an isometry for every relation.

    The score of a triple (h, r, t) is ``−d(R_r E_h, E_t)² + b_h + c_t + margin``, with the
    distance d of `orthobcd.hyperbolic.distance`, points ``E = φ(Z)`` of all entities, their
    biases as head and as tail, and a J-orthogonal matrix R_r of every relation. The loss of N
    triples with k drawn negatives each is ``(1/N) Σ [softplus(−x₊) + Σ_k softplus(x₋)]``. Z and
    the biases follow Adam (steps for the entities that a batch touches), the relation matrices
    J-JOBCD: one random matching of rows per batch, every pair solved to its global minimum.

    Parameters
    ----------
    n_entities, n_relations : int
        Numbers of entities and relations.
    dim : int, default 36
        Dimension n of the space.
    signature : array_like of shape (dim,), optional
        +1 and −1 in any order, at least one of each; by default half of each, +1 first.
    margin : float, default 5.0
        Added to every score.
    alpha : float, default 1.0
        Scale α > 0 of the pseudo-hyperboloid.
    n_negatives : int, default 50
        Negatives k per triple, half with another tail and half with another head.
    batch_size : int, default 64
        Triples N per batch.
    learning_rate : float, default 0.02
        Adam's, for points and biases.
    relations : {"jobcd", "frozen", "csdm"}, default "jobcd"
        What moves the relation matrices. "frozen" leaves them at I. "csdm" takes gradient steps on
        the factors of their hyperbolic CS decomposition, scaled as by Adagrad (full rotations
        where UltraE has Givens rotations): the controls.
    relation_curvature : float, default 0.14
        κ of the curvature ``κ·√Σ‖G_r‖²`` of "jobcd".
    relation_matchings : int, default 1
        Disjoint matchings of "jobcd" per batch, one after the other on the batch's gradient.
    relation_step : float, default 0.1
        First angle or rapidity of "csdm".
    init_scale : float, default 0.1
        Standard deviation of the coordinates of Z at the start.
    max_epochs : int, default 120
        Passes over the training triples.
    valid_every : int, default 5
        Epochs between rankings of the validation triples.
    patience : int, optional
        Stop when this many validations in a row bring no better MRR. By default never.
    seed : int, default 0
        Of all random choices; the same seed gives the same bits for any number of threads.
    n_threads : int, optional
        All cores by default.
    verbose : bool, default False
        One progress line per epoch at level INFO of the logger ``orthobcd``, on standard error if
        the logger has no handler.

    Attributes
    ----------
    entities_ : ndarray of shape (n_entities, dim)
        Points E, ``⟨e, e⟩ = −α²``.
    head_biases_, tail_biases_ : ndarray of shape (n_entities,)
        Biases.
    relations_ : ndarray of shape (n_relations, dim, dim)
        J-orthogonal matrices R_r.
    history_ : dict of str to ndarray
        "epoch", "seconds" (of training, validation left out), "loss" of every epoch;
        "valid_epoch", "valid_mrr", "valid_seconds" of every validation.
    n_epochs_ : int
        Epochs done.
    best_epoch_ : int
        The epoch that the model is of: that of the best validation MRR, or the last.
    status_ : Status
        ``MAX_SWEEPS`` after ``max_epochs``, ``CONVERGED`` by early stopping, ``INTERRUPTED`` by
        Ctrl-C or a callback.

    References
    ----------
    Xiong, Zhu, Nayyeri, Xu, Pan, Zhou, Staab, Ultrahyperbolic knowledge graph embeddings, KDD 2022.
    """

    def __init__(
        self,
        n_entities: int,
        n_relations: int,
        dim: int = 36,
        signature: Any = None,
        margin: float = 5.0,
        *,
        alpha: float = 1.0,
        n_negatives: int = 50,
        batch_size: int = 64,
        learning_rate: float = 0.02,
        relations: str = "jobcd",
        relation_curvature: float = 0.14,
        relation_matchings: int = 1,
        relation_step: float = 0.1,
        init_scale: float = 0.1,
        max_epochs: int = 120,
        valid_every: int = 5,
        patience: int | None = None,
        seed: int = 0,
        n_threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_entities = n_entities
        self.n_relations = n_relations
        self.dim = dim
        self.signature = signature
        self.margin = margin
        self.alpha = alpha
        self.n_negatives = n_negatives
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.relations = relations
        self.relation_curvature = relation_curvature
        self.relation_matchings = relation_matchings
        self.relation_step = relation_step
        self.init_scale = init_scale
        self.max_epochs = max_epochs
        self.valid_every = valid_every
        self.patience = patience
        self.seed = seed
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(
        self,
        triples: Any,
        valid: Any = None,
        *,
        known: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
        callback: Callable[[dict[str, float]], Any] | None = None,
    ) -> UltraE:
        """Train, from the start or from a checkpoint.

        Parameters
        ----------
        triples : array_like of int, of shape (N, 3)
            Heads, relations and tails.
        valid : array_like of int, of shape (M, 3), optional
            Validation triples; with them the model of the best filtered MRR is kept.
        known : array_like of int, of shape (K, 3), optional
            Further true triples (of the test set) that validation leaves out of its rankings; the
            training and validation triples always are.
        checkpoint : path, optional
            Where the state of training is kept. If the file is there, training goes on from it, and
            gives the same numbers as if it had never stopped; it must come from a model with the
            same options (``max_epochs`` and ``patience`` may differ) and the same triples.
        checkpoint_every : int, default 1
            Epochs between writes of the checkpoint, which is replaced as a whole.
        callback : callable, optional
            Called after every epoch with a dict of its "epoch", "seconds", "loss" and, after a
            validation, "valid_mrr"; returning True stops. If it raises, the exception
            (KeyboardInterrupt too) is raised from here; the estimator keeps what it has learned.

        Returns
        -------
        UltraE
            The estimator itself. Ctrl-C is the status ``INTERRUPTED``; the state of the last whole
            epoch (with ``valid``, the best validated one) is kept.

        Raises
        ------
        ValueError, TypeError
            If an argument is not valid or a checkpoint belongs to another model.
        """
        self._check()
        train = as_triples("triples", triples, self.n_entities, self.n_relations)
        if not len(train):
            raise ValueError("triples must not be empty")
        held = self._optional("valid", valid)
        if held is not None and not len(held):
            raise ValueError("valid must not be empty")
        parts = [train, held, self._optional("known", known)]
        filtered = np.concatenate([part for part in parts if part is not None])
        every = as_int("checkpoint_every", checkpoint_every, 1)
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable, got {type(callback).__name__}")
        options = self._options()
        fingerprint = self._fingerprint = _fingerprint(train, held)
        if checkpoint is not None and os.path.exists(checkpoint):
            self._resume(checkpoint, fingerprint)
        else:
            self._state = self._initial(options)
            self._best, self._best_mrr, self._stale = self._state, -np.inf, 0
            self.history_ = {name: np.zeros(0) for name in HISTORY}
            self.n_epochs_, self.best_epoch_ = 0, 0
        if self.verbose and not logger.handlers and not logging.getLogger().handlers:
            logger.addHandler(logging.StreamHandler())
            logger.setLevel(logging.INFO)
        status = Status.MAX_SWEEPS
        if self._stopped_early():
            status = Status.CONVERGED
        with CtrlC() as ctrl_c:
            while status is Status.MAX_SWEEPS and self.n_epochs_ < self.max_epochs:
                started = time.perf_counter()
                epoch = ctrl_c.during(
                    _core.ultra_e_epoch,
                    self._state,
                    train,
                    self._signs(),
                    options,
                    self.n_epochs_,
                    self.n_threads,
                )
                state, loss, error = (None, None, None) if epoch is None else epoch
                if error is not None:
                    self._finish(Status.INTERRUPTED)
                    raise error
                if loss is None:
                    # The epoch is given up.
                    status = Status.INTERRUPTED
                    break
                self._state = state
                self.n_epochs_ += 1
                seconds = time.perf_counter() - started
                event = {"epoch": float(self.n_epochs_), "seconds": seconds, "loss": loss}
                for name in ("epoch", "seconds", "loss"):
                    self.history_[name] = np.append(self.history_[name], event[name])
                due = self.n_epochs_ % self.valid_every == 0 or self.n_epochs_ == self.max_epochs
                if held is None:
                    self._best, self.best_epoch_ = state, self.n_epochs_
                elif due:
                    started = time.perf_counter()
                    ranking = ctrl_c.during(self._rank, state, held, filtered, options)
                    if ranking is None:
                        # The checkpoint before this epoch stays: from it the curve is the same.
                        checkpoint = None
                    else:
                        event["valid_mrr"] = ranking.mrr
                        self._validated(ranking.mrr, time.perf_counter() - started)
                        if self._stopped_early():
                            status = Status.CONVERGED
                if checkpoint is not None and (
                    self.n_epochs_ % every == 0
                    or status is not Status.MAX_SWEEPS
                    or self.n_epochs_ == self.max_epochs
                ):
                    self._write(checkpoint, fingerprint)
                if self.verbose:
                    logger.info("%s", _line(event, self.max_epochs))
                if callback is not None:
                    try:
                        stop = bool(ctrl_c.callback(callback, event))
                    except BaseException:
                        self._finish(Status.INTERRUPTED)
                        raise
                    if stop:
                        status = Status.INTERRUPTED
                if ctrl_c.pressed:
                    status = Status.INTERRUPTED
            if status is Status.INTERRUPTED and checkpoint is not None:
                self._write(checkpoint, fingerprint)
            self._finish(status)
        return self

    def score_triples(self, triples: Any) -> FloatArray:
        """Scores; a higher one is more plausible.

        Parameters
        ----------
        triples : array_like of int, of shape (N, 3)
            Heads, relations and tails.

        Returns
        -------
        ndarray of shape (N,)
        """
        self._fitted()
        checked = as_triples("triples", triples, self.n_entities, self.n_relations)
        scores: FloatArray = _core.ultra_e_scores(
            self._best, checked, self._signs(), self._options(), self.n_threads
        )
        return scores

    def rank(self, triples: Any, filter: Any = None) -> Ranking:
        """Ranks of the heads and tails of triples among all entities.

        Parameters
        ----------
        triples : array_like of int, of shape (N, 3)
            Heads, relations and tails.
        filter : array_like of int, of shape (K, 3), optional
            True triples: other entities that make one of them are left out of a ranking. By
            default nothing is left out.

        Returns
        -------
        Ranking
        """
        self._fitted()
        checked = as_triples("triples", triples, self.n_entities, self.n_relations)
        known = self._optional("filter", filter)
        return self._rank(self._best, checked, known, self._options())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, its options and its state of training to a file (NumPy's npz)."""
        self._fitted()
        self._write(path, self._fingerprint)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> UltraE:
        """A model from a file of `save` or from a checkpoint of `fit`.

        Raises
        ------
        ValueError
            If the file is not one, or its contents do not fit together.
        OSError
            If it cannot be read.
        """
        arrays, header = _read(path)
        try:
            model = cls(signature=arrays["signature"], **{k: header["options"][k] for k in OPTIONS})
            model._check()
            model._check_contents(arrays, header)
            status = Status(header["status"])
        except (KeyError, TypeError, ValueError) as error:
            raise _not_ours(path, error) from error
        model._take(arrays, header)
        model._finish(status)
        return model

    # ---------------------------------------------------------------------------------------------

    def _check(self) -> None:
        as_int("n_entities", self.n_entities, 1)
        as_int("n_relations", self.n_relations, 1)
        as_int("dim", self.dim, 2)
        signs = self._signs()
        if (signs == signs[0]).all():
            raise ValueError("signature must hold +1 and -1")
        as_float("margin", self.margin)
        for name in (
            "alpha",
            "learning_rate",
            "relation_curvature",
            "relation_step",
            "init_scale",
        ):
            as_float(name, getattr(self, name), minimum=0.0, exclusive=True)
        for name in ("n_negatives", "batch_size", "valid_every", "relation_matchings"):
            as_int(name, getattr(self, name), 1)
        as_int("max_epochs", self.max_epochs, 0)
        for name in ("patience", "n_threads"):
            if getattr(self, name) is not None:
                as_int(name, getattr(self, name), 1)
        if as_int("seed", self.seed, 0) >= 2**64:
            raise ValueError(f"seed must be below 2**64, got {self.seed}")
        as_choice("relations", self.relations, RELATIONS)

    def _signs(self) -> NDArray[np.int8]:
        if self.signature is None:
            plus = self.dim // 2
            return np.repeat(np.array([1, -1], dtype=np.int8), [plus, self.dim - plus])
        return as_signature(self.signature, self.dim)

    def _options(self) -> tuple[Any, ...]:
        option = self.relation_step if self.relations == "csdm" else self.relation_curvature
        return (
            float(self.margin),
            self.batch_size,
            self.n_negatives,
            float(self.learning_rate),
            self.relations,
            float(option),
            self.seed,
            float(self.alpha),
            self.relation_matchings,
        )

    def _optional(self, name: str, value: Any) -> IntArray | None:
        if value is None:
            return None
        return as_triples(name, value, self.n_entities, self.n_relations)

    def _initial(self, options: tuple[Any, ...]) -> Any:
        return _core.ultra_e_init(
            self.n_entities, self.n_relations, self._signs(), options, float(self.init_scale)
        )

    def _rank(
        self, state: Any, triples: IntArray, known: IntArray | None, options: tuple[Any, ...]
    ) -> Ranking:
        known = np.zeros((0, 3), dtype=np.int64) if known is None else known
        ranks = _core.ultra_e_ranks(state, triples, known, self._signs(), options, self.n_threads)
        return Ranking(ranks[:, 0].copy(), ranks[:, 1].copy())

    def _validated(self, mrr: float, seconds: float) -> None:
        for name, value in zip(HISTORY[3:], (float(self.n_epochs_), mrr, seconds), strict=True):
            self.history_[name] = np.append(self.history_[name], value)
        if mrr > self._best_mrr:
            self._best, self._best_mrr, self._stale = self._state, mrr, 0
            self.best_epoch_ = self.n_epochs_
        else:
            self._stale += 1

    def _stopped_early(self) -> bool:
        return self.patience is not None and self._stale >= self.patience

    def _finish(self, status: Status) -> None:
        if not np.isfinite(self._best_mrr):
            # Never validated.
            self._best, self.best_epoch_ = self._state, self.n_epochs_
        n = self.dim
        rows, matrices, _ = self._best
        self.entities_ = double_projection(rows[:, :n], self._signs(), self.alpha)
        self.head_biases_, self.tail_biases_ = rows[:, 3 * n].copy(), rows[:, 3 * n + 1].copy()
        self.relations_ = matrices
        self.status_ = status

    def _fitted(self) -> None:
        if not hasattr(self, "_best"):
            raise ValueError("this UltraE is not fitted yet: call fit first")

    def _write(self, path: str | os.PathLike[str], fingerprint: list[int]) -> None:
        status = getattr(self, "status_", Status.MAX_SWEEPS)
        header = {
            "options": {name: getattr(self, name) for name in OPTIONS},
            "n_epochs": self.n_epochs_,
            "best_epoch": self.best_epoch_,
            "best_mrr": self._best_mrr if np.isfinite(self._best_mrr) else None,
            "stale": self._stale,
            "triples": fingerprint,
            "status": status.value,
        }
        arrays = {f"state_{k}": array for k, array in enumerate(self._state)}
        arrays.update({f"best_{k}": array for k, array in enumerate(self._best)})
        arrays.update({f"history_{name}": self.history_[name] for name in HISTORY})
        with replacing(path) as part, part.open("wb") as file:
            np.savez(file, header=np.array(json.dumps(header)), signature=self._signs(), **arrays)

    def _check_contents(self, arrays: dict[str, Any], header: dict[str, Any]) -> None:
        """Refuse a file that does not hold a state of this model."""
        # One entity and one relation show what a state consists of, however many there are.
        rows, matrices, memory = _core.ultra_e_init(
            1, 1, self._signs(), self._options(), float(self.init_scale)
        )
        shapes = (
            (self.n_entities, rows.shape[1]),
            (self.n_relations, *matrices.shape[1:]),
            (self.n_relations, memory.shape[1]),
        )
        for name in ("state", "best"):
            for k, shape in enumerate(shapes):
                array = arrays[f"{name}_{k}"]
                if array.shape != shape or array.dtype != np.float64:
                    raise ValueError(
                        f"{name}_{k} must be float64 of shape {shape}, got {array.dtype} of shape "
                        f"{array.shape}"
                    )
                if not np.isfinite(array).all():
                    raise ValueError(f"{name}_{k} must be finite")
        epochs = as_int("n_epochs", header["n_epochs"], 0)
        if as_int("best_epoch", header["best_epoch"], 0) > epochs:
            raise ValueError(f"best_epoch must be at most n_epochs = {epochs}")
        as_int("stale", header["stale"], 0)
        if header["best_mrr"] is not None:
            as_float("best_mrr", header["best_mrr"], minimum=0.0)
        if not isinstance(header["triples"], list):
            raise TypeError("triples must be a list")
        curves = [arrays[f"history_{name}"] for name in HISTORY]
        validations = len(curves[3])
        for k, (name, curve) in enumerate(zip(HISTORY, curves, strict=True)):
            if curve.shape != (epochs if k < 3 else validations,) or curve.dtype.kind != "f":
                raise ValueError(f"history_{name} must have a number for every epoch or validation")

    def _take(self, arrays: dict[str, Any], header: dict[str, Any]) -> None:
        self._state = tuple(arrays[f"state_{k}"] for k in range(3))
        self._best = tuple(arrays[f"best_{k}"] for k in range(3))
        best = header["best_mrr"]
        self._best_mrr = -np.inf if best is None else best
        self._stale = header["stale"]
        self.history_ = {name: arrays[f"history_{name}"] for name in HISTORY}
        self.n_epochs_, self.best_epoch_ = header["n_epochs"], header["best_epoch"]
        self._fingerprint = header["triples"]

    def _resume(self, path: str | os.PathLike[str], fingerprint: list[int]) -> None:
        arrays, header = _read(path)
        for name in OPTIONS:
            if name in ("max_epochs", "patience"):
                continue
            theirs, ours = header["options"][name], getattr(self, name)
            if theirs != ours:
                raise ValueError(
                    f"checkpoint must come from a model with the same options; {name} is "
                    f"{theirs!r} there and {ours!r} here"
                )
        if not np.array_equal(arrays["signature"], self._signs()):
            raise ValueError("checkpoint must come from a model with the same signature")
        if header["triples"] != fingerprint:
            raise ValueError("checkpoint must come from the same triples and validation triples")
        try:
            self._check_contents(arrays, header)
        except (KeyError, TypeError, ValueError) as error:
            raise _not_ours(path, error) from error
        self._take(arrays, header)


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        # Opened here: NumPy leaves a broken archive open.
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header: dict[str, Any] = json.loads(str(arrays.pop("header")))
        missing = {"options", "triples", "status"} - set(header)
        missing |= set(OPTIONS) - set(header.get("options", ()))
        missing |= {"signature"} - set(arrays)
        if missing:
            raise ValueError(f"it has no {', '.join(sorted(missing))}")
    except BROKEN as error:
        raise _not_ours(path, error) from error
    return arrays, header


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


def _not_ours(path: str | os.PathLike[str], error: Exception) -> ValueError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return ValueError(f"{os.fspath(path)} is not a file of UltraE.save: {reason}")


def _fingerprint(train: IntArray, valid: IntArray | None) -> list[int]:
    """Sizes and checksums of the triples."""
    from zlib import crc32

    parts = [train] if valid is None else [train, valid]
    return [number for part in parts for number in (len(part), crc32(part.tobytes()))]


def _line(event: dict[str, float], epochs: int) -> str:
    line = (
        f"epoch {event['epoch']:4.0f}/{epochs}  {event['seconds']:7.2f} s  loss {event['loss']:.5f}"
    )
    return line + (f"  MRR {event['valid_mrr']:.4f}" if "valid_mrr" in event else "")
