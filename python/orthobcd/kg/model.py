"""Scores, ranks and predictions of a fitted knowledge-graph embedding."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from .. import _core
from .._internal.archive import Filed
from .._internal.checks import (
    FRACTION,
    Check,
    FloatArray,
    IntArray,
    Interval,
    Signs,
    as_int,
    as_seed,
    as_signature,
    one_of,
    summary,
)
from ..result import Status
from .ranking import Ranking, candidates
from .training import Embedding, Training
from .vocabulary import ENTITY, RELATION, Names, Triples, Vocabulary

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
class Model(BaseEstimator, Filed):  # type: ignore[misc]
    """Base class of `UltraE`: methods of a fitted model, and checks of its parameters."""

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
    _training: Training = field(init=False)
    _vocabulary: Vocabulary = field(init=False)

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self)).parameters.items()
        texts = [(name, _short(getattr(self, name)), p.default) for name, p in parameters]
        return f"UltraE({', '.join(f'{k}={text}' for k, text, d in texts if text != repr(d))})"

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
    def history_(self) -> dict[str, FloatArray]:
        """The training curve, see `UltraE`."""
        return self._training.history

    @property
    def n_epochs_(self) -> int:
        """Number of finished epochs."""
        return self._training.n_epochs

    @property
    def best_epoch_(self) -> int:
        """The epoch after which the model was kept."""
        return self._training.best_epoch

    @property
    def status_(self) -> Status:
        """Reason for the end of training."""
        return self._training.status

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
        self._fitted()
        return self._scores(self._triples("triples", triples))

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
        self._fitted()
        ranked = self._triples("triples", triples)
        more = ranked[:0] if filter is None else self._triples("filter", filter)
        known = np.concatenate([self._training.known, ranked, more]) if filtered else more
        if not filtered and filter is not None:
            raise ValueError("filter must be None with filtered=False")
        ranks = self._rank(self._training.best, ranked, known)
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
        self._fitted()
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
        self._fitted()
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
            true = self._triples("filter", filter)
            fits = [true[:, c] == value for c, value in enumerate(known) if value is not None]
            allowed[true[np.logical_and(*fits), place]] = False
        scores = np.where(allowed, self._scores(triples), -np.inf)
        order = np.argsort(-scores, kind="stable")[: min(k, int(allowed.sum()))]
        names: Sequence[int | str] = self.entity_names_ or range(self.n_entities_)
        return [(names[int(e)], float(scores[e])) for e in order]

    # ---------------------------------------------------------------------------------------------

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

    def _triples(self, name: str, value: Any) -> IntArray:
        return self._vocabulary.triples(name, value)

    def _random(self, n_entities: int, n_relations: int) -> Embedding:
        start = (float(self.init_scale), float(self.relation_angle))
        return _core.ultra_e_init(n_entities, n_relations, self._signs(), self, *start)

    def _shapes(self, vocabulary: Vocabulary) -> tuple[tuple[int, ...], ...]:
        """Shapes of the arrays of a model."""
        # A state of one entity and one relation shows the shapes without allocating a whole state.
        rows, matrices, memory = self._random(1, 1)
        return (
            (vocabulary.n_entities, rows.shape[1]),
            (vocabulary.n_relations, *matrices.shape[1:]),
            (vocabulary.n_relations, memory.shape[1]),
        )

    def _scores(self, triples: IntArray) -> FloatArray:
        best, signs = self._training.best, self._signs()
        return _core.ultra_e_scores(best, triples, signs, self, self.n_threads)

    def _rank(self, state: Embedding, triples: IntArray, known: IntArray) -> FloatArray:
        """Ranks of heads and tails, of shape (N, 2)."""
        return _core.ultra_e_ranks(state, triples, known, self._signs(), self, self.n_threads)

    def _fitted(self) -> None:
        if not hasattr(self, "_training"):
            raise ValueError("this UltraE is not fitted yet: call fit first")
