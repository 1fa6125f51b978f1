"""`UltraE`: knowledge-graph embedding on a pseudo-hyperboloid."""

from __future__ import annotations

import inspect
import logging
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import _core
from .._core import j_orthogonal_start
from .._internal.archive import Filed, check_arrays
from .._internal.checks import (
    FRACTION,
    Check,
    FloatArray,
    IntArray,
    Interval,
    Signs,
    as_callable,
    as_float,
    as_int,
    as_seed,
    as_signature,
    one_of,
    summary,
)
from .._internal.reading import reason_of
from ..hyperbolic.space import double_projection
from ..result import Status
from ..solving import Solve, show_log
from .ranking import Ranking, candidates
from .triples import TripleFiles
from .vocabulary import ENTITY, RELATION, Counts, GivenNames, Names, Triples, Vocabulary

if TYPE_CHECKING:
    from typing_extensions import Self

HISTORY = ("epoch", "seconds", "loss", "valid_epoch", "valid_mrr", "valid_seconds")
"""Columns of a training curve: three for every epoch, three for every validation."""

Embedding = tuple[FloatArray, FloatArray, FloatArray]
"""Rows of entities (points, Adam's moments, biases), relation matrices, state of their updates."""


def _embedding(
    name: str, arrays: Embedding, shapes: tuple[tuple[int, ...], ...], signature: Signs
) -> Embedding:
    """The arrays of an embedding, checked for shape, type, finiteness and J-orthogonality."""
    first, second, third = arrays
    named = {f"{name}.{k}": array for k, array in enumerate(arrays)}
    check_arrays(named, dict(zip(named, shapes, strict=True)), np.float64)
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


logger = logging.getLogger("orthobcd")

MAY_DIFFER = {
    *("max_epochs", "patience", "n_entities", "n_relations", "entity_names", "relation_names"),
    *("n_threads", "verbose"),
}
"""Parameters that may differ between a checkpoint and the model that resumes from it."""

Loss = Literal["logistic", "softmax"]
RelationUpdate = Literal["jobcd", "jobcd-pairs", "page-jobcd", "frozen"]


POSITIVE = Interval(float, 0.0, closed="neither")
COUNT = Interval(int, 1)

CHECKS: Mapping[str, Check] = {
    "dim": Interval(int, 2),
    "margin": Interval(float),
    **dict.fromkeys(("radius", "learning_rate", "relation_step", "init_scale"), POSITIVE),
    "relation_curvature": replace(POSITIVE, optional=True),
    "relation_angle": Interval(float, 0.0),
    **dict.fromkeys(("n_negatives", "batch_size", "valid_every", "relation_matchings"), COUNT),
    "rate_decay": Interval(float, 0.0, 1.0, "right"),
    "moment_decay": FRACTION,
    "weight_decay": Interval(float, 0.0),
    "max_epochs": Interval(int, 0),
    **dict.fromkeys(
        ("patience", "n_threads", "n_entities", "n_relations"), replace(COUNT, optional=True)
    ),
    "loss": one_of(Loss),
    "relations": one_of(RelationUpdate),
}
"""The checks of the parameters that do not depend on others."""


def _short(value: Any) -> str:
    """The repr of a parameter; of names only their number."""
    named = isinstance(value, (list, tuple)) and any(isinstance(entry, str) for entry in value)
    return f"<{len(value)} names>" if named else summary(value)


@dataclass(eq=False, repr=False)
class UltraE(BaseEstimator, Filed):  # type: ignore[misc]
    """Embedding of a knowledge graph on the pseudo-hyperboloid, with an isometry per relation.

    The score of a triple (h, r, t) is ``−d(R_r E_h, E_t)² + b_h + c_t + margin``. d is
    `orthobcd.hyperbolic.distance`. Entities have points ``E = φ(Z)``, biases b as head and biases
    c as tail, and every relation has a J-orthogonal matrix R_r. The entities of a batch and some
    drawn entities are the candidates for head and tail of every triple of the batch; two matrix
    products give all their scores. Adam updates Z and the biases of the candidates.
    J-JOBCD updates the relation matrices: one random matching of rows per batch, with every pair
    solved to its global minimum.

    Parameters
    ----------
    n_entities, n_relations : int, optional
        Numbers of entities and relations. By default as many as the triples of `fit` have.
    dim : int, default 36
        Dimension n of the space.
    signature : array_like of shape (dim,), optional
        +1 and −1 in any order, at least one of each. By default only the last sign is −1:
        hyperbolic space. With several −1, different points can have distance zero; the UltraE paper
        uses half of each sign.
    margin : float, default 5.0
        Number added to every score; the softmax loss does not depend on it.
    radius : float, default 3.0
        Radius ρ > 0 of the pseudo-hyperboloid, the scale of the scores. The UltraE paper uses 1.
    n_negatives : int, default 50
        Number k of distinct entities drawn per batch as candidates, in addition to its own; all
        entities if there are no more than k.
    batch_size : int, default 64
        Triples N per batch.
    loss : {"softmax", "logistic"}, default "softmax"
        Loss of the scores x of the candidates for head or tail, x₊ the score of the true entity.
        "softmax": ``log Σ w exp x − x₊``. "logistic": ``½ softplus(−x₊) + (k/2N) Σ w softplus(x)``,
        the sum over the other candidates, N = ``n_entities``. An entity that is a candidate with
        probability p has the weight w = 1/p; the two entities of the triple have w = 1. The sums
        are unbiased estimates of sums over all entities. The expectation of "logistic" is that of
        the loss of the UltraE paper with k uniform negatives per triple. Both losses are summed
        over head and tail and averaged over the triples.
    learning_rate : float, default 0.02
        Learning rate of Adam, for points and biases.
    rate_decay : float, default 1.0
        Factor of the learning rate from epoch to epoch, in (0, 1].
    moment_decay : float, default 0.999
        Decay β₂ of Adam's second moments, in (0, 1). An entity takes a step in every batch of which
        it is a candidate, a few per epoch. With 0.999 the moments average over hundreds of epochs,
        so steps stay short long after the first, large gradients.
    weight_decay : float, default 0.0
        After a step of length η the biases of an entity and its coordinates of Z of positive sign
        are multiplied by 1 − η · weight_decay, which must be positive. Of the coordinates of
        negative sign only the direction matters.
    relations : str, default "jobcd"
        Update of the relation matrices. "jobcd": J-JOBCD. "jobcd-pairs": J-JOBCD with a separate
        curvature for every pair of rows, from the slopes along its rotation or boost. "page-jobcd":
        J-JOBCD along ``D_t = G(R_t) + D_{t−1} − G(R_{t−1})``, with both gradients of the same
        batch, at twice the cost. With probability N/(T + N), D_t is the gradient of all T training
        triples (PAGE, VR-J-JOBCD of the JOBCD paper). "frozen": no update, a baseline for
        comparison.
    relation_curvature : float, optional
        κ in the curvature ``κ·√Σ‖G_r‖²`` of "jobcd" (``κ·√Σ‖D_r‖²`` of
        "page-jobcd"), a number without unit: the loss times s has the same steps. By default 0.3
        for the softmax loss and 0.14 for the logistic loss, chosen on validation triples.
    relation_matchings : int, default 1
        Number of disjoint matchings of the rules with "jobcd" in their name per batch, one after
        the other with the same gradient.
    relation_step : float, default 0.1
        First angle or rapidity of "jobcd-pairs".
    relation_angle : float, default 0.0
        Every relation matrix starts at its own random rotation of the coordinates of either sign:
        the Cayley transform of a skew matrix of normal entries whose eigenvalues have this root
        mean square (about the angle in radians). With 0 all start at I.
    init_scale : float, default 0.1
        Standard deviation of the coordinates of Z at the start.
    max_epochs : int, default 120
        Number of passes over the training triples.
    valid_every : int, default 5
        Epochs between rankings of the validation triples.
    patience : int, optional
        Stop after ``patience`` validations in a row without a better MRR. By default never.
    entity_names, relation_names : sequence of str, optional
        Names by number. By default those of the triples of `fit`, if they are given by name or by
        `load_triples`. With names every method accepts names, and predictions return them.
    seed : int, default 0
        Seed of all random choices; the same seed gives the same bits for any number of threads.
    n_threads : int or None, default 1
        Number of threads; None for all cores.
    verbose : bool, default False
        One progress line per epoch at level INFO of the logger ``orthobcd``, on standard error if
        the logger has no handler.

    Attributes
    ----------
    n_entities_, n_relations_ : int
        Numbers of entities and relations.
    entity_names_, relation_names_ : tuple of str or None
        Names by number.
    entities_ : ndarray of shape (n_entities, dim)
        Points E, ``⟨e, e⟩ = −ρ²``.
    head_biases_, tail_biases_ : ndarray of shape (n_entities,)
        Biases b as head and c as tail.
    relations_ : ndarray of shape (n_relations, dim, dim)
        J-orthogonal matrices R_r.
    history_ : dict of str to ndarray
        "epoch", "seconds" (of training, without validation), "loss" of every epoch;
        "valid_epoch", "valid_mrr", "valid_seconds" of every validation.
    n_epochs_ : int
        Number of finished epochs.
    best_epoch_ : int
        The epoch after which the model was kept: that of the best validation MRR, or the last.
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
    >>> model = ob.kg.UltraE(dim=8, n_negatives=10, batch_size=4).fit(cycle)
    >>> [entity for entity, score in model.predict_tails(3, 0, k=1)]
    [4]
    >>> [entity for entity, score in model.predict_heads(0, 4, k=1)]
    [3]
    >>> model.rank(cycle).mrr > 0.5, model.score_triples(cycle).shape, model.n_entities_
    (True, (20,), 20)
    >>> month = ["January", "February", "March", "April", "May", "June"]
    >>> named = [(a, "before", b) for a, b in zip(month, month[1:])]
    >>> named_model = ob.kg.UltraE(dim=4, batch_size=2).fit(named)
    >>> named_model.entity_names_[:2], named_model.relation_names_
    (('January', 'February'), ('before',))
    >>> [month for month, score in named_model.predict_tails("March", "before", k=1)]
    ['April']
    >>> model.save("cycle.npz")
    >>> ob.kg.UltraE.load("cycle.npz").set_params(seed=1).get_params()["seed"]
    1
    """

    n_entities: int | None = None
    n_relations: int | None = None
    dim: int = 36
    signature: ArrayLike | None = None
    margin: float = 5.0
    _: KW_ONLY
    radius: float = 3.0
    n_negatives: int = 50
    batch_size: int = 64
    loss: Loss = "softmax"
    learning_rate: float = 0.02
    rate_decay: float = 1.0
    moment_decay: float = 0.999
    weight_decay: float = 0.0
    relations: RelationUpdate = "jobcd"
    relation_curvature: float | None = None
    relation_matchings: int = 1
    relation_step: float = 0.1
    relation_angle: float = 0.0
    init_scale: float = 0.1
    max_epochs: int = 120
    valid_every: int = 5
    patience: int | None = None
    entity_names: Sequence[str] | None = None
    relation_names: Sequence[str] | None = None
    seed: int = 0
    n_threads: int | None = 1
    verbose: bool = False
    history_: dict[str, FloatArray] = field(init=False)
    n_epochs_: int = field(init=False)
    best_epoch_: int = field(init=False)
    status_: Status = field(init=False)
    _vocabulary: Vocabulary = field(init=False)
    # The current model, and the one with the best validation MRR so far (-inf without one), after
    # which `_stale` validations were not better.
    _state: Embedding = field(init=False)
    _best: Embedding = field(init=False)
    _best_mrr: float = field(init=False)
    _stale: int = field(init=False)
    # Sizes and checksums of the training and validation triples; all triples of the fit.
    _fingerprint: list[int] = field(init=False)
    _known: IntArray = field(init=False)

    def fit(
        self,
        triples: Triples,
        valid: Triples | None = None,
        *,
        known: Triples | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
        callback: Callable[[dict[str, float]], Any] | None = None,
    ) -> Self:
        """Train the model from the start or from a checkpoint.

        Parameters
        ----------
        triples : array_like of int or str, of shape (N, 3), or TripleFiles
            Heads, relations and tails, by number or by name. Of `load_triples` the first
            file is for training, the second is ``valid``, and all others are ``known``.
        valid : array_like of int or str, of shape (M, 3), optional
            Validation triples; with them the model with the best filtered MRR is kept.
        known : array_like of int or str, of shape (K, 3), optional
            Further true triples (of the test set) that rankings leave out, in addition to the
            training and validation triples.
        checkpoint : path, optional
            File for the state of training. If the file exists, training resumes from it and gives
            the same numbers as training without a stop. The file must come from a model with the
            same options (``max_epochs``, ``patience`` and names may differ) and the same triples.
            If the file cannot be written, `fit` warns and tries again at the next due write.
        checkpoint_every : int, default 1
            Epochs between writes of the checkpoint, which is replaced atomically.
        callback : callable, optional
            Called after every epoch with a dict of its "epoch", "seconds", "loss" and, after a
            validation, "valid_mrr"; returning True stops the training. An exception of the callback
            (KeyboardInterrupt too) ends the training and is raised; the estimator keeps the model.

        Returns
        -------
        UltraE
            The estimator. After Ctrl-C the status is ``INTERRUPTED`` and the estimator has the
            model of the last whole epoch (with ``valid``, of the best validation).

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
        given = self._given(triples, valid, known)
        parts = {name: part for name, part in given.items() if part is not None}
        vocabulary = Vocabulary.of(parts, *self._counts_and_names())
        arrays = {name: vocabulary.triples(name, part) for name, part in parts.items()}
        train, held = arrays["triples"], arrays.get("valid")
        for name in ("triples", "valid"):
            if name in arrays and not len(arrays[name]):
                raise ValueError(f"{name} must not be empty")
        filtered = np.concatenate(list(arrays.values()))
        every = as_int("checkpoint_every", checkpoint_every, 1)
        if callback is not None:
            as_callable("callback", callback)
        mark = fingerprint(train, held)
        if checkpoint is not None and os.path.exists(checkpoint):
            begun = self._resumed(checkpoint, mark, vocabulary)
        else:
            state = self._random(vocabulary.n_entities, vocabulary.n_relations)
            begun = {"_state": state, "_best": state, "_best_mrr": -np.inf, "_stale": 0}
            begun |= {"_fingerprint": mark, "n_epochs_": 0, "best_epoch_": 0}
            begun["history_"] = {name: np.zeros(0) for name in HISTORY}
        begun |= {"_known": filtered, "_vocabulary": vocabulary, "status_": Status.MAX_SWEEPS}
        self.__dict__.update(begun)
        if self.verbose:
            show_log()
        self._stop_early()
        with Solve(ctrl_c="flag") as ctrl_c:
            while self._going_on():
                event = self._epoch(ctrl_c, train)
                if event is None:
                    break
                if held is not None and self._is_due():
                    mrr = self._validate(ctrl_c, held)
                    if mrr is None:
                        # Without this validation a checkpoint would change the resumed curve;
                        # the one before this epoch is kept.
                        checkpoint = None
                    else:
                        event["valid_mrr"] = mrr
                done = self.n_epochs_
                if checkpoint is not None and (done % every == 0 or not self._going_on()):
                    self._write_checkpoint(checkpoint)
                if self.verbose:
                    logger.info("%s", _line(event, self.max_epochs))
                if self._asked_to_stop(ctrl_c, callback, event):
                    self.status_ = Status.INTERRUPTED
            if self.status_ is Status.INTERRUPTED and checkpoint is not None:
                self._write_checkpoint(checkpoint)
        return self

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self)).parameters.items()
        texts = [(name, _short(getattr(self, name)), p.default) for name, p in parameters]
        return f"UltraE({', '.join(f'{k}={text}' for k, text, d in texts if text != repr(d))})"

    # Fitted attributes ----------------------------------------------------------------------------

    @property
    def n_entities_(self) -> int:
        """Number of entities of the fitted model."""
        return self._vocabulary.n_entities

    @property
    def n_relations_(self) -> int:
        """Number of relations of the fitted model."""
        return self._vocabulary.n_relations

    @property
    def entity_names_(self) -> Names:
        """Names of the entities of the fitted model, None without names."""
        return self._vocabulary.entities

    @property
    def relation_names_(self) -> Names:
        """Names of the relations of the fitted model, None without names."""
        return self._vocabulary.relations

    @property
    def entities_(self) -> FloatArray:
        """Points of the entities."""
        rows = self._best[0][:, : self.dim]
        return double_projection(rows, self._signs(), self.radius)

    @property
    def head_biases_(self) -> FloatArray:
        """Biases of the entities as heads."""
        return self._best[0][:, 3 * self.dim].copy()

    @property
    def tail_biases_(self) -> FloatArray:
        """Biases of the entities as tails."""
        return self._best[0][:, 3 * self.dim + 1].copy()

    @property
    def relations_(self) -> FloatArray:
        """Matrices of the relations."""
        return self._best[1]

    def score_triples(self, triples: Triples) -> FloatArray:
        """Scores of triples; a higher score is more plausible.

        Parameters
        ----------
        triples : array_like of int or str, of shape (N, 3), or TripleFiles
            Heads, relations and tails.

        Returns
        -------
        ndarray of shape (N,)

        Raises
        ------
        ValueError, TypeError
            If the triples are not valid or the model is not fitted.
        KeyboardInterrupt
            After Ctrl-C.
        """
        check_is_fitted(self, "n_epochs_")
        return self._scores(self._vocabulary.triples("triples", triples))

    def rank(
        self, triples: Triples, filter: Triples | None = None, *, filtered: bool = True
    ) -> Ranking:
        """Ranks of the heads and tails of triples among all entities.

        Ranks are filtered: entities that complete a known triple are left out, except the true one.
        Known are the triples that `fit` was given (for training, validation and as ``known``), the
        triples that are ranked, and those of ``filter``.

        Parameters
        ----------
        triples : array_like of int or str, of shape (N, 3), or TripleFiles
            Heads, relations and tails.
        filter : array_like of int or str, of shape (K, 3), or TripleFiles, optional
            Further known triples.
        filtered : bool, default True
            False ranks among all entities.

        Returns
        -------
        Ranking

        Raises
        ------
        ValueError, TypeError
            If an argument is not valid or the model is not fitted.
        KeyboardInterrupt
            After Ctrl-C.
        """
        check_is_fitted(self, "n_epochs_")
        ranked = self._vocabulary.triples("triples", triples)
        more = ranked[:0] if filter is None else self._vocabulary.triples("filter", filter)
        known = np.concatenate([self._known, ranked, more]) if filtered else more
        if not filtered and filter is not None:
            raise ValueError("filter must be None with filtered=False")
        ranks = self._rank(self._best, ranked, known)
        head, tail = (candidates(ranked, known, self.n_entities_, place) for place in (0, 2))
        found = (ranks[:, 0].copy(), ranks[:, 1].copy(), head, tail, ranked[:, 1].copy())
        return Ranking(*found, self.relation_names_)

    def predict_tails(
        self, head: int | str, relation: int | str, k: int = 10, *, filter: Triples | None = None
    ) -> list[tuple[int | str, float]]:
        """The most plausible tails of a head and a relation.

        Parameters
        ----------
        head, relation : int or str
            Numbers, or names if the model has names.
        k : int, default 10
            Largest number of tails.
        filter : array_like of int or str, of shape (K, 3), or TripleFiles, optional
            Known triples, whose tails are left out; by default none.

        Returns
        -------
        list of (int or str, float)
            Entities (names if the model has names) and scores, best first.

        Raises
        ------
        ValueError, TypeError
            If an argument is not valid or the model is not fitted.
        """
        check_is_fitted(self, "n_epochs_")
        h = self._vocabulary.number("head", head, ENTITY)
        r = self._vocabulary.number("relation", relation, RELATION)
        return self._completed((h, r, None), k, filter)

    def predict_heads(
        self, relation: int | str, tail: int | str, k: int = 10, *, filter: Triples | None = None
    ) -> list[tuple[int | str, float]]:
        """The most plausible heads of a relation and a tail.

        Parameters
        ----------
        relation, tail : int or str
            Numbers, or names if the model has names.
        k, filter
            As in `predict_tails`, of heads.

        Returns
        -------
        list of (int or str, float)
            Entities (names if the model has names) and scores, best first.

        Raises
        ------
        ValueError, TypeError
            If an argument is not valid or the model is not fitted.
        """
        check_is_fitted(self, "n_epochs_")
        r = self._vocabulary.number("relation", relation, RELATION)
        t = self._vocabulary.number("tail", tail, ENTITY)
        return self._completed((None, r, t), k, filter)

    def _completed(
        self, known: tuple[int | None, int, int | None], k: int, filter: Triples | None
    ) -> list[tuple[int | str, float]]:
        """The best k entities for the position that is None in a triple."""
        k = as_int("k", k, 1)
        place = known.index(None)
        triples = np.empty((self.n_entities_, 3), dtype=np.int64)
        for column, value in enumerate(known):
            triples[:, column] = np.arange(self.n_entities_) if value is None else value
        allowed = np.ones(self.n_entities_, dtype=bool)
        if filter is not None:
            true = self._vocabulary.triples("filter", filter)
            fits = [true[:, c] == value for c, value in enumerate(known) if value is not None]
            allowed[true[np.logical_and(*fits), place]] = False
        scores = np.where(allowed, self._scores(triples), -np.inf)
        order = np.argsort(-scores, kind="stable")[: min(k, int(allowed.sum()))]
        names: Sequence[int | str] = self.entity_names_ or range(self.n_entities_)
        return [(names[int(e)], float(scores[e])) for e in order]

    def _check(self) -> None:
        """Raises an error if a parameter is not valid."""
        for name, check in CHECKS.items():
            check(name, getattr(self, name))
        signs = self._signs()
        if (signs == signs[0]).all():
            raise ValueError("signature must hold +1 and -1")
        if self.weight_decay * self.learning_rate >= 1.0:
            raise ValueError(f"weight_decay must be below 1/learning_rate, got {self.weight_decay}")
        as_seed(self.seed)

    def _signs(self) -> Signs:
        if self.signature is None:
            return np.repeat(np.array([1, -1], dtype=np.int8), [self.dim - 1, 1])
        return as_signature(self.signature, self.dim)

    def _random(self, n_entities: int, n_relations: int) -> Embedding:
        start = (float(self.init_scale), float(self.relation_angle))
        return _core.ultra_e_init(n_entities, n_relations, self._signs(), self, *start)

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the arrays of the model."""
        n_entities, n_relations = self.n_entities_, self.n_relations_
        shape, own = (n_relations, self.dim, self.dim), self._state[1].shape
        if own != shape:
            # Before a state of this dimension is made.
            raise ValueError(f"state must have relation matrices of shape {shape}, got {own}")
        # A state of one entity and one relation shows the shapes without allocating a whole state.
        rows, _, memory = self._random(1, 1)
        return (n_entities, rows.shape[1]), shape, (n_relations, memory.shape[1])

    def _scores(self, triples: IntArray) -> FloatArray:
        return _core.ultra_e_scores(self._best, triples, self._signs(), self, self.n_threads)

    def _rank(self, state: Embedding, triples: IntArray, known: IntArray) -> FloatArray:
        """Ranks of heads and tails, of shape (N, 2)."""
        return _core.ultra_e_ranks(state, triples, known, self._signs(), self, self.n_threads)

    # Training -------------------------------------------------------------------------------------

    def _counts_and_names(self) -> tuple[Counts, GivenNames]:
        return (self.n_entities, self.n_relations), (self.entity_names, self.relation_names)

    @staticmethod
    def _given(
        triples: Triples, valid: Triples | None, known: Triples | None
    ) -> dict[str, Triples | None]:
        """Triples by argument; the files of `TripleFiles` have one argument each."""
        if not isinstance(triples, TripleFiles):
            return {"triples": triples, "valid": valid, "known": known}
        if valid is not None or known is not None:
            raise ValueError(
                "valid and known must be None if triples are files: they come from these"
            )
        first, second, rest = triples.splits[:1], triples.splits[1:2], triples.splits[2:]
        parts = {"triples": first, "valid": second, "known": rest}
        return {
            name: TripleFiles(splits, triples.entities, triples.relations) if splits else None
            for name, splits in parts.items()
        }

    def _going_on(self) -> bool:
        return self.status_ is Status.MAX_SWEEPS and self.n_epochs_ < self.max_epochs

    def _is_due(self) -> bool:
        return self.n_epochs_ % self.valid_every == 0 or self.n_epochs_ == self.max_epochs

    def _stop_early(self) -> None:
        if self.patience is not None and self._stale >= self.patience:
            self.status_ = Status.CONVERGED

    def _record(self, values: dict[str, float]) -> None:
        """Adds values to the training curve."""
        for name, value in values.items():
            self.history_[name] = np.append(self.history_[name], value)

    def _epoch(self, ctrl_c: Solve, train: IntArray) -> dict[str, float] | None:
        """Trains for an epoch; returns the dict for the callback, None if interrupted."""
        started = time.perf_counter()
        given = (self._state, train, self._signs(), self, self.n_epochs_, self.n_threads)
        answer = ctrl_c.during(_core.ultra_e_epoch, *given)
        state, loss, error = (None, None, None) if answer is None else answer
        if error is not None or state is None or loss is None:
            self.status_ = Status.INTERRUPTED
            if error is not None:
                raise error
            return None
        self._state, self.n_epochs_ = state, self.n_epochs_ + 1
        if self._best_mrr == -np.inf:
            self._best, self.best_epoch_ = state, self.n_epochs_
        seconds = time.perf_counter() - started
        event = {"epoch": float(self.n_epochs_), "seconds": seconds, "loss": loss}
        self._record(event)
        return event

    def _validate(self, ctrl_c: Solve, held: IntArray) -> float | None:
        """The MRR of the validation triples, whose best model is kept; None after Ctrl-C."""
        started = time.perf_counter()
        ranks = ctrl_c.during(self._rank, self._state, held, self._known)
        if ranks is None:
            return None
        mrr, seconds = float(np.mean(1.0 / ranks)), time.perf_counter() - started
        epoch = float(self.n_epochs_)
        self._record({"valid_epoch": epoch, "valid_mrr": mrr, "valid_seconds": seconds})
        self._stale += 1
        if mrr > self._best_mrr:
            self._best, self._best_mrr, self._stale = self._state, mrr, 0
            self.best_epoch_ = self.n_epochs_
        self._stop_early()
        return mrr

    def _asked_to_stop(
        self, ctrl_c: Solve, callback: Callable[[dict[str, float]], Any] | None, event: Any
    ) -> bool:
        """Calls the callback; returns whether it or Ctrl-C stops the training."""
        if callback is not None:
            try:
                if ctrl_c.during(callback, event, own=True):
                    return True
            except BaseException:
                self.status_ = Status.INTERRUPTED
                raise
        return ctrl_c.pressed

    def _write_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint; a failure is a warning and does not end the training."""
        try:
            self.save(path)
        except Exception as error:
            warnings.warn(
                f"the checkpoint {os.fspath(path)} cannot be written: {reason_of(error)}; "
                "training goes on without it",
                RuntimeWarning,
                stacklevel=3,
            )

    # Files ----------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        check_is_fitted(self, "n_epochs_")
        super().save(path)

    def _check_loaded(self) -> None:
        self._check()
        self._vocabulary.check(*self._counts_and_names())
        shapes, signs = self._shapes(), self._signs()
        self._state = _embedding("state", self._state, shapes, signs)
        self._best = _embedding("best", self._best, shapes, signs)
        self._known = self._vocabulary.triples("known", self._known)
        epochs = as_int("n_epochs_", self.n_epochs_, 0)
        as_int("best_epoch_", self.best_epoch_, 0, epochs)
        as_int("stale", self._stale, 0)
        if self._best_mrr != -np.inf:
            as_float("best_mrr", self._best_mrr, 0.0)
        if not (isinstance(self._fingerprint, list) and isinstance(self.status_, Status)):
            raise TypeError("fingerprint must be a list, and status_ a Status")
        validations = len(self.history_["valid_epoch"])
        lengths = [epochs] * 3 + [validations] * (len(HISTORY) - 3)
        sizes = {name: (length,) for name, length in zip(HISTORY, lengths, strict=True)}
        check_arrays(self.history_, sizes, np.float64)

    def _resumed(
        self, path: str | os.PathLike[str], mark: list[int], vocabulary: Vocabulary
    ) -> dict[str, Any]:
        """The fitted attributes of a checkpoint of a model like this one."""
        model = self.load(path)
        theirs, ours = (
            one.get_params() | {"signature": one._signs().tolist()} for one in (model, self)
        )
        for name in ours:
            if name not in MAY_DIFFER and theirs[name] != ours[name]:
                raise ValueError(
                    f"checkpoint must come from a model with the same options; {name} is "
                    f"{theirs[name]!r} there and {ours[name]!r} here"
                )
        if model._fingerprint != mark:
            raise ValueError("checkpoint must come from the same triples and validation triples")
        sizes = (
            (model.n_entities_, model.n_relations_),
            (vocabulary.n_entities, vocabulary.n_relations),
        )
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"checkpoint must come from a model of {sizes[1]} entities and relations, "
                f"it has {sizes[0]}"
            )
        return {name: part for name, part in vars(model).items() if name not in ours}


def _line(event: dict[str, float], epochs: int) -> str:
    line = (
        f"epoch {event['epoch']:4.0f}/{epochs}  {event['seconds']:7.2f} s  loss {event['loss']:.5f}"
    )
    return line + (f"  MRR {event['valid_mrr']:.4f}" if "valid_mrr" in event else "")
