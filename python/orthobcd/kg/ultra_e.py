"""UltraE: knowledge-graph embedding on a pseudo-hyperboloid."""

from __future__ import annotations

import inspect
import logging
import os
import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._internal.archive import not_ours, read_arrays
from .._internal.checks import IntArray, as_int
from .._internal.interrupt import CtrlC
from .._internal.progress import show_log
from .._internal.reading import blaming, reason_of
from ..hyperbolic.space import double_projection
from ..result import Status
from .model import Loss, Model, RelationUpdate
from .training import Training, fingerprint

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["UltraE"]

logger = logging.getLogger("orthobcd")

NOT_KEPT = ("signature", "n_threads", "verbose")
"""Arguments of the constructor that are no part of the header of a file."""

MAY_DIFFER = ("max_epochs", "patience", "entity_names", "relation_names")
"""Arguments that may differ between a checkpoint and the model that goes on from it."""


class UltraE(Model):
    """Embedding of a knowledge graph on the pseudo-hyperboloid, an isometry for every relation.

    The score of a triple (h, r, t) is ``−d(R_r E_h, E_t)² + b_h + c_t + margin``, with the
    distance d of `orthobcd.hyperbolic.distance`, points ``E = φ(Z)`` of all entities, their
    biases as head and as tail, and a J-orthogonal matrix R_r of every relation. A batch has
    candidates, its own entities and some drawn ones, for the tail and for the head of each of its
    triples; all their scores are two matrix products. Z and the biases follow Adam (steps for the
    candidates), the relation matrices J-JOBCD: one random matching of rows per batch, every pair
    solved to its global minimum.

    Parameters
    ----------
    n_entities, n_relations : int
        Numbers of entities and relations.
    dim : int, default 36
        Dimension n of the space.
    signature : array_like of shape (dim,), optional
        +1 and −1 in any order, at least one of each; by default −1 at the end alone: hyperbolic
        space. With more, points that differ can have distance zero; UltraE takes half of each.
    margin : float, default 5.0
        Added to every score; no part of a softmax loss.
    radius : float, default 3.0
        Radius ρ > 0 of the pseudo-hyperboloid: the scale of the scores. UltraE takes 1.
    n_negatives : int, default 50
        Different entities k drawn per batch, which join its own as candidates; all entities if
        there are no more.
    batch_size : int, default 64
        Triples N per batch.
    loss : {"softmax", "logistic"}, default "softmax"
        Of the scores x of the candidates for a place, x₊ that of the true one: "softmax" is
        ``log Σ w exp x − x₊``, "logistic" ``½ softplus(−x₊) + (k/2N) Σ w softplus(x)`` over the
        other ones, N = ``n_entities``. A candidate that is one with the probability p stands for
        w = 1/p entities (the two of the triple itself for one), so that the sums estimate those
        over all entities without bias; "logistic" has the expectation of UltraE's loss of k
        uniform negatives per triple. Both are added up over both places and averaged over the
        triples.
    learning_rate : float, default 0.02
        Adam's, for points and biases.
    rate_decay : float, default 1.0
        Factor of the learning rate from epoch to epoch, in (0, 1].
    moment_decay : float, default 0.999
        Adam's decay β₂ of the second moments, in (0, 1). An entity has a step for every batch that
        it is a candidate of, a few per epoch: with 0.999 the moments remember hundreds of epochs,
        and steps are short for long after the first, steep ones.
    weight_decay : float, default 0.0
        After a step of length η an entity's biases and its coordinates of Z of positive sign shrink
        by the factor 1 − η · weight_decay, which must be positive; the coordinates of negative
        sign matter by their direction alone.
    relations : str, default "jobcd"
        What moves the relation matrices: "jobcd", J-JOBCD; "jobcd-pairs", J-JOBCD with a curvature
        of its own for every pair of rows, from the slopes along its rotation or boost; "vr-jobcd",
        J-JOBCD along
        ``D_t = G(R_t) + (1 − α)(D_{t−1} − G(R_{t−1}))``, both gradients of the same batch, at twice
        the cost; "frozen", nothing: they stay at I; "csdm", gradient steps on the factors of their
        hyperbolic CS decomposition, scaled as by Adagrad; "csdm-givens", the same with the Givens
        rotations of UltraE in place of all rotations. The last three are controls.
    relation_curvature : float, default 0.3
        κ of the curvature ``κ·√Σ‖G_r‖²`` of "jobcd" and "vr-jobcd".
    relation_matchings : int, default 1
        Disjoint matchings of "jobcd", "jobcd-pairs" and "vr-jobcd" per batch, one after the other
        on the batch's gradient.
    relation_share : float, default 0.3
        α of "vr-jobcd", in (0, 1].
    relation_step : float, default 0.1
        First angle or rapidity of "jobcd-pairs", "csdm" and "csdm-givens".
    relation_angle : float, default 0.0
        Every relation matrix starts at a random rotation of its own among the coordinates of
        either sign, the Cayley transform of a skew matrix of normal entries whose eigenvalues have
        this root mean square (radians, nearly); with 0 at I.
    init_scale : float, default 0.1
        Standard deviation of the coordinates of Z at the start.
    max_epochs : int, default 120
        Passes over the training triples.
    valid_every : int, default 5
        Epochs between rankings of the validation triples.
    patience : int, optional
        Stop when this many validations in a row bring no better MRR. By default never.
    entity_names, relation_names : sequence of str, optional
        Names by number, for instance of `orthobcd.load_triples`; where they are given, predictions
        take and return names.
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
        Points E, ``⟨e, e⟩ = −ρ²``.
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

    Raises
    ------
    ValueError, TypeError
        By `fit`, if an argument is not valid; the message names it.

    References
    ----------
    Xiong, Zhu, Nayyeri, Xu, Pan, Zhou, Staab, Ultrahyperbolic knowledge graph embeddings, KDD 2022.
    Loshchilov, Hutter, Decoupled weight decay regularization, ICLR 2019.
    Cutkosky, Orabona, Momentum-based variance reduction in non-convex SGD, NeurIPS 2019.
    Bengio, Senécal, Adaptive importance sampling to accelerate training of a neural probabilistic
    language model, IEEE Transactions on Neural Networks 2008.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> k = np.arange(20)
    >>> cycle = np.stack([k, 0 * k, (k + 1) % 20], axis=1)
    >>> model = ob.UltraE(20, 1, dim=8, n_negatives=10, batch_size=4).fit(cycle)
    >>> [entity for entity, score in model.predict_tails(3, 0, k=1)]
    [4]
    """

    def __init__(
        self,
        n_entities: int,
        n_relations: int,
        dim: int = 36,
        signature: ArrayLike | None = None,
        margin: float = 5.0,
        *,
        radius: float = 3.0,
        n_negatives: int = 50,
        batch_size: int = 64,
        loss: Loss = "softmax",
        learning_rate: float = 0.02,
        rate_decay: float = 1.0,
        moment_decay: float = 0.999,
        weight_decay: float = 0.0,
        relations: RelationUpdate = "jobcd",
        relation_curvature: float = 0.3,
        relation_matchings: int = 1,
        relation_share: float = 0.3,
        relation_step: float = 0.1,
        relation_angle: float = 0.0,
        init_scale: float = 0.1,
        max_epochs: int = 120,
        valid_every: int = 5,
        patience: int | None = None,
        entity_names: Sequence[str] | None = None,
        relation_names: Sequence[str] | None = None,
        seed: int = 0,
        n_threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_entities = n_entities
        self.n_relations = n_relations
        self.dim = dim
        self.signature = signature
        self.margin = margin
        self.radius = radius
        self.n_negatives = n_negatives
        self.batch_size = batch_size
        self.loss = loss
        self.learning_rate = learning_rate
        self.rate_decay = rate_decay
        self.moment_decay = moment_decay
        self.weight_decay = weight_decay
        self.relations = relations
        self.relation_curvature = relation_curvature
        self.relation_matchings = relation_matchings
        self.relation_share = relation_share
        self.relation_step = relation_step
        self.relation_angle = relation_angle
        self.init_scale = init_scale
        self.max_epochs = max_epochs
        self.valid_every = valid_every
        self.patience = patience
        self.entity_names = entity_names
        self.relation_names = relation_names
        self.seed = seed
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(
        self,
        triples: ArrayLike,
        valid: ArrayLike | None = None,
        *,
        known: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
        callback: Callable[[dict[str, float]], Any] | None = None,
    ) -> Self:
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
            same options (``max_epochs`` and ``patience`` may differ) and the same triples. A
            checkpoint that cannot be written is a warning, and is tried again when it is next due.
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

        Warns
        -----
        RuntimeWarning
            If a checkpoint cannot be written.
        """
        self._check()
        train = self._triples("triples", triples)
        held = None if valid is None else self._triples("valid", valid)
        for name, part in (("triples", train), ("valid", held)):
            if part is not None and not len(part):
                raise ValueError(f"{name} must not be empty")
        more = None if known is None else self._triples("known", known)
        filtered = np.concatenate([part for part in (train, held, more) if part is not None])
        every = as_int("checkpoint_every", checkpoint_every, 1)
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable, got {type(callback).__name__}")
        mark = fingerprint(train, held)
        if checkpoint is not None and os.path.exists(checkpoint):
            self._training = self._resumed(checkpoint, mark)
        else:
            state = self._random(self.n_entities, self.n_relations)
            self._training = Training(state, state, mark)
        if self.verbose:
            show_log()
        self._training.status = Status.MAX_SWEEPS
        self._stop_early()
        with CtrlC() as ctrl_c:
            while self._going_on():
                event = self._epoch(ctrl_c, train)
                if event is None:
                    break
                if held is not None and self._is_due():
                    mrr = self._validate(ctrl_c, held, filtered)
                    if mrr is None:
                        # The checkpoint before this epoch stays: from it the curve is the same.
                        checkpoint = None
                    else:
                        event["valid_mrr"] = mrr
                done = self._training.n_epochs
                if checkpoint is not None and (done % every == 0 or not self._going_on()):
                    self._write_checkpoint(checkpoint)
                if self.verbose:
                    logger.info("%s", _line(event, self.max_epochs))
                if self._asked_to_stop(ctrl_c, callback, event):
                    self._training.status = Status.INTERRUPTED
            if self._training.status is Status.INTERRUPTED and checkpoint is not None:
                self._write_checkpoint(checkpoint)
        self._finish()
        return self

    def _going_on(self) -> bool:
        run = self._training
        return run.status is Status.MAX_SWEEPS and run.n_epochs < self.max_epochs

    def _is_due(self) -> bool:
        done = self._training.n_epochs
        return done % self.valid_every == 0 or done == self.max_epochs

    def _stop_early(self) -> None:
        if self.patience is not None and self._training.stale >= self.patience:
            self._training.status = Status.CONVERGED

    def _epoch(self, ctrl_c: CtrlC, train: IntArray) -> dict[str, float] | None:
        """An epoch and what is told of it; None if it is given up."""
        started = time.perf_counter()
        run = self._training
        answer = ctrl_c.during(
            _core.ultra_e_epoch,
            run.state,
            train,
            self._signs(),
            self,
            run.n_epochs,
            self.n_threads,
        )
        state, loss, error = (None, None, None) if answer is None else answer
        if error is not None or state is None or loss is None:
            run.status = Status.INTERRUPTED
            if error is not None:
                self._finish()
                raise error
            return None
        return run.epoch(state, loss, time.perf_counter() - started)

    def _validate(self, ctrl_c: CtrlC, held: IntArray, filtered: IntArray) -> float | None:
        """The MRR of the validation triples; None if Ctrl-C ended it."""
        started = time.perf_counter()
        ranking = ctrl_c.during(self._rank, self._training.state, held, filtered)
        if ranking is None:
            return None
        self._training.validated(ranking.mrr, time.perf_counter() - started)
        self._stop_early()
        return ranking.mrr

    def _asked_to_stop(
        self, ctrl_c: CtrlC, callback: Callable[[dict[str, float]], Any] | None, event: Any
    ) -> bool:
        """Whether Ctrl-C or the callback stop the training."""
        if callback is not None:
            try:
                if ctrl_c.callback(callback, event):
                    return True
            except BaseException:
                self._training.status = Status.INTERRUPTED
                self._finish()
                raise
        return ctrl_c.pressed

    def _write_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint if that is possible: no failure to do so ends the training."""
        try:
            self.save(path)
        except Exception as error:
            # Where warnings are errors, what was learned is kept all the same.
            self._finish()
            warnings.warn(
                f"the checkpoint {os.fspath(path)} cannot be written: {reason_of(error)}; "
                "training goes on without it",
                RuntimeWarning,
                stacklevel=3,
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, its options and its state of training to a file (NumPy's npz).

        Parameters
        ----------
        path : path
            Where to; an old file is replaced as a whole.

        Raises
        ------
        ValueError
            If the model is not fitted.
        OSError
            If the file cannot be written.
        """
        self._fitted()
        self._training.write(path, self._kept(), self._signs())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """A model from a file of `save` or from a checkpoint of `fit`.

        Raises
        ------
        ValueError
            If the file is not one, its contents do not fit together, or a relation matrix R is not
            J-orthogonal: ``||RᵀJR − J||_F`` above 1e-8 ``||R||_F²``.
        OSError
            If it cannot be read.
        """
        header, arrays = _read(path)
        with blaming(lambda error: not_ours(path, "UltraE", error)):
            model = cls(signature=arrays["signature"], **header["options"])
            model._check()
            model._training = model._read_training(header, arrays)
        model._finish()
        return model

    # ---------------------------------------------------------------------------------------------

    def _kept(self) -> dict[str, Any]:
        """What a file holds of the constructor's arguments, besides the signature."""
        params = {k: v for k, v in self.get_params().items() if k not in NOT_KEPT}
        return {k: list(v) if k.endswith("_names") and v else v for k, v in params.items()}

    def _finish(self) -> None:
        """The fitted attributes from the state of training."""
        run, n = self._training, self.dim
        rows, matrices, _ = run.best
        self.entities_ = double_projection(rows[:, :n], self._signs(), self.radius)
        self.head_biases_, self.tail_biases_ = rows[:, 3 * n].copy(), rows[:, 3 * n + 1].copy()
        self.relations_ = matrices

    def _read_training(self, header: dict[str, Any], arrays: dict[str, Any]) -> Training:
        """The state of training in a file, if it is one of this model."""
        shape = (self.n_relations, self.dim, self.dim)
        if arrays["state_1"].shape != shape:
            raise ValueError(f"state_1 must have shape {shape}, got {arrays['state_1'].shape}")
        # A relation matrix is made here, no larger than those of the file.
        return Training.read(header, arrays, self._shapes(), self._signs())

    def _resumed(self, path: str | os.PathLike[str], mark: list[int]) -> Training:
        header, arrays = _read(path)
        for name, ours in self._kept().items():
            theirs = header["options"][name]
            if theirs != ours and name not in MAY_DIFFER:
                raise ValueError(
                    f"checkpoint must come from a model with the same options; {name} is "
                    f"{theirs!r} there and {ours!r} here"
                )
        if not np.array_equal(arrays["signature"], self._signs()):
            raise ValueError("checkpoint must come from a model with the same signature")
        if header["triples"] != mark:
            raise ValueError("checkpoint must come from the same triples and validation triples")
        with blaming(lambda error: not_ours(path, "UltraE", error)):
            return self._read_training(header, arrays)


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of a model's file, with everything that is looked up in them."""
    header, arrays = read_arrays(path, "UltraE")
    names = set(inspect.signature(UltraE).parameters) - set(NOT_KEPT)
    options = header.get("options")
    missing = {"options", "triples", "status"} - set(header)
    missing |= names - set(options if isinstance(options, dict) else ())
    missing |= {"signature"} - set(arrays)
    if missing:
        raise not_ours(path, "UltraE", ValueError(f"it has no {', '.join(sorted(missing))}"))
    return header, arrays


def _line(event: dict[str, float], epochs: int) -> str:
    line = (
        f"epoch {event['epoch']:4.0f}/{epochs}  {event['seconds']:7.2f} s  loss {event['loss']:.5f}"
    )
    return line + (f"  MRR {event['valid_mrr']:.4f}" if "valid_mrr" in event else "")
