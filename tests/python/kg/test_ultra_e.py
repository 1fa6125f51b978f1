"""`UltraE`: training, gradients, scores, predictions, callbacks, Ctrl-C."""

from __future__ import annotations

import logging
import signal

import numpy as np
import pytest

import orthobcd as ob
from orthobcd import _core
from orthobcd.hyperbolic import distance

from .graphs import DIM, N_ENTITIES, N_RELATIONS, TRAIN, VALID, model, state_of, with_state


@pytest.fixture(scope="module")
def fitted():
    return model(max_epochs=30).fit(TRAIN, VALID)


def j_of(estimator):
    return np.array(estimator.signature, dtype=float)


@pytest.mark.parametrize("rule", ["jobcd", "jobcd-pairs", "page-jobcd", "frozen"])
def test_training_learns_and_stays_on_the_manifold(rule):
    estimator = model(relations=rule, max_epochs=25).fit(TRAIN)
    loss = estimator.history_["loss"]
    assert loss[-1] < 0.3 * loss[0]
    j = j_of(estimator)
    for R in estimator.relations_:
        assert np.linalg.norm(R.T @ (j[:, None] * R) - np.diag(j)) <= 1e-12 * np.vdot(R, R)
    E = estimator.entities_
    np.testing.assert_allclose((E * j * E).sum(axis=1), -1.0, atol=1e-12 * np.vdot(E, E))
    moved = np.abs(estimator.relations_ - np.eye(DIM)).max(axis=(1, 2))
    assert (moved == 0.0).all() if rule == "frozen" else (moved > 1e-3).all()
    assert estimator.status_ is ob.Status.MAX_SWEEPS


def test_the_defaults_learn():
    estimator = ob.kg.UltraE(N_ENTITIES, N_RELATIONS, DIM, batch_size=16, max_epochs=40).fit(TRAIN)
    j = np.r_[np.ones(DIM - 1), -1.0]
    for R in estimator.relations_:
        assert np.linalg.norm(R.T @ (j[:, None] * R) - np.diag(j)) <= 1e-12 * np.vdot(R, R)
    # A rank drawn at random has the mean reciprocal log(40)/40 ≈ 0.1.
    assert estimator.rank(TRAIN).mrr > 0.5


def test_relations_start_where_they_are_told_to():
    def start(**options):
        return model(max_epochs=0, **options).fit(TRAIN)

    assert (start().relations_ == np.eye(DIM)).all()
    random = start(relation_angle=1.0)
    j = j_of(random)
    for R in random.relations_:
        # Orthogonal and J-orthogonal: a rotation of the coordinates of either sign.
        np.testing.assert_allclose(R.T @ R, np.eye(DIM), atol=1e-14)
        np.testing.assert_allclose(R.T @ (j[:, None] * R), np.diag(j), atol=1e-14)
    assert len(np.unique(random.relations_.round(9), axis=0)) == N_RELATIONS
    other = start(relation_angle=1.0, seed=1).relations_
    assert np.abs(other - random.relations_).max() > 0.1
    frozen = model(relation_angle=1.0, relations="frozen").fit(TRAIN)
    np.testing.assert_allclose(frozen.relations_, random.relations_, atol=1e-13)


def test_the_learning_rate_decays():
    def entities(rate_decay, max_epochs):
        options = {"relations": "frozen", "rate_decay": rate_decay, "max_epochs": max_epochs}
        return model(**options).fit(TRAIN).entities_

    first, constant = entities(1.0, 1), entities(1.0, 2)
    # The rate is that of the first epoch in the first epoch, and a step is as long as the rate.
    np.testing.assert_array_equal(entities(1e-12, 1), first)
    np.testing.assert_allclose(entities(1e-12, 2), first, atol=1e-9)
    assert np.abs(constant - first).max() > 1e-3


@pytest.mark.parametrize(("loss", "curvature"), [("softmax", 0.3), ("logistic", 0.14)])
@pytest.mark.parametrize("rule", ["jobcd", "page-jobcd"])
def test_the_default_curvature_is_that_of_the_loss(loss, curvature, rule):
    options = {"loss": loss, "relations": rule}
    default = model(**options).fit(TRAIN)
    assert default.relation_curvature is None
    for value, same in ((curvature, True), (2.0 * curvature, False)):
        other = model(**options, relation_curvature=value).fit(TRAIN)
        assert np.array_equal(other.relations_, default.relations_) is same


def test_scores_are_those_of_the_formula(fitted):
    h, r, t = TRAIN.T
    E, j = fitted.entities_, j_of(fitted)
    images = np.einsum("kij,kj->ki", fitted.relations_[r], E[h])
    d = distance(images, E[t], j)
    expected = fitted.margin - d**2 + fitted.head_biases_[h] + fitted.tail_biases_[t]
    np.testing.assert_allclose(fitted.score_triples(TRAIN), expected, rtol=1e-9, atol=1e-9)


def test_measures_are_those_of_the_ranks(fitted):
    ranking = fitted.rank(VALID)
    both = np.r_[ranking.head_ranks, ranking.tail_ranks]
    assert ranking.mrr == pytest.approx((1 / both).mean())
    for k in (1, 3, 10):
        assert ranking.hits(k) == pytest.approx((both <= k).mean())
    assert fitted.history_["valid_mrr"].max() == pytest.approx(ranking.mrr)


def test_equal_scores_count_half():
    estimator = model(max_epochs=0).fit(TRAIN)
    points, *others = state_of(estimator)
    points[:] = points[0]
    estimator = with_state(estimator, (points, *others))
    assert (estimator.rank(VALID, filtered=False).ranks == 1 + (N_ENTITIES - 1) / 2).all()


def test_the_same_seed_gives_the_same_bits():
    one, two = (model(n_threads=k).fit(TRAIN, VALID) for k in (1, 2))
    np.testing.assert_array_equal(one.entities_, two.entities_)
    np.testing.assert_array_equal(one.relations_, two.relations_)
    other = model(seed=1).fit(TRAIN, VALID)
    assert not np.array_equal(one.entities_, other.entities_)


def test_early_stopping_keeps_the_best_model():
    estimator = model(max_epochs=400, valid_every=1, patience=3, learning_rate=0.2)
    estimator.fit(TRAIN, VALID)
    curve = estimator.history_["valid_mrr"]
    assert estimator.status_ is ob.Status.CONVERGED
    assert estimator.n_epochs_ < 400
    assert estimator.best_epoch_ == int(np.argmax(curve)) + 1 == estimator.n_epochs_ - 3
    assert estimator.rank(VALID).mrr == pytest.approx(curve.max())


def test_callbacks_stop_and_fail():
    seen = []
    stopped = model().fit(TRAIN, callback=lambda event: seen.append(event) or len(seen) == 2)
    assert stopped.status_ is ob.Status.INTERRUPTED
    assert stopped.n_epochs_ == 2
    assert set(seen[0]) == {"epoch", "seconds", "loss"}

    def fail(event):
        raise RuntimeError("mine")

    estimator = model()
    with pytest.raises(RuntimeError, match="mine"):
        estimator.fit(TRAIN, callback=fail)
    assert estimator.n_epochs_ == 1
    assert np.isfinite(estimator.score_triples(TRAIN)).all()


@pytest.fixture
def default_sigint():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("where", ["between", "callback", "validation"])
def test_ctrl_c_outside_the_core(where, default_sigint, monkeypatch, caplog, tmp_path):
    """Wherever Ctrl-C comes, the second epoch is whole and the last one."""
    whole = model(max_epochs=2, valid_every=1).fit(TRAIN, VALID)
    path = tmp_path / "state.npz"
    estimator = model(max_epochs=5, valid_every=1, verbose=where == "between")

    def press(*_):
        if estimator.n_epochs_ == 2:
            signal.raise_signal(signal.SIGINT)

    if where == "between":
        handler = logging.Handler()
        handler.emit = press
        log = logging.getLogger("orthobcd")
        monkeypatch.setattr(log, "handlers", [handler])
        caplog.set_level(logging.INFO, "orthobcd")
    elif where == "validation":
        rank = _core.ultra_e_ranks
        monkeypatch.setattr(_core, "ultra_e_ranks", lambda *a: (press(), rank(*a))[1])
    estimator.fit(TRAIN, VALID, checkpoint=path, callback=press if where == "callback" else None)
    assert estimator.status_ is ob.Status.INTERRUPTED
    assert estimator.n_epochs_ == 2
    assert [len(estimator.history_[name]) for name in ("epoch", "seconds", "loss")] == [2, 2, 2]
    assert len(estimator.history_["valid_mrr"]) == (1 if where == "validation" else 2)
    assert np.array_equal(estimator.history_["loss"], whole.history_["loss"])
    assert ob.kg.UltraE.load(path).n_epochs_ == (1 if where == "validation" else 2)


def test_ctrl_c_is_left_to_the_program_s_handler(monkeypatch):
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        estimator = model(max_epochs=2).fit(
            TRAIN, callback=lambda _: signal.raise_signal(signal.SIGINT)
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(seen) == 2
    assert estimator.status_ is ob.Status.MAX_SWEEPS


def test_progress_lines(caplog):
    with caplog.at_level("INFO", logger="orthobcd"):
        model(max_epochs=2, verbose=True).fit(TRAIN, VALID)
    assert len(caplog.messages) == 2
    assert "loss" in caplog.messages[0]
    assert "MRR" in caplog.messages[1]


def test_bad_input_raises_at_the_door():
    for name, value in (
        ("n_entities", 0),
        ("n_relations", 0),
        ("signature", np.ones(DIM, int)),
        ("n_negatives", 0),
        ("learning_rate", 0.0),
        ("weight_decay", -0.1),
        ("loss", "hinge"),
        ("relations", "free"),
        ("relation_matchings", 0),
        ("relation_step", 0.0),
        ("init_scale", 0.0),
        ("max_epochs", -1),
        ("valid_every", 0),
        ("seed", -1),
    ):
        estimator = model()
        setattr(estimator, name, value)
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            estimator.fit(TRAIN)
    for triples in (TRAIN[:, :2], TRAIN[:0], TRAIN + N_ENTITIES, TRAIN - 1):
        with pytest.raises(ValueError, match=r"\btriples\b"):
            model().fit(triples)
    with pytest.raises(TypeError, match=r"\btriples\b"):
        model().fit(TRAIN.astype(float))
    with pytest.raises(ValueError, match=r"\bvalid\b"):
        model().fit(TRAIN, VALID[:0])
    with pytest.raises(TypeError, match=r"\bcallback\b"):
        model().fit(TRAIN, callback=3)
    for call in (lambda: model().rank(VALID), lambda: model().save("model.npz")):
        with pytest.raises(ValueError, match="fit"):
            call()


def test_predictions_are_in_the_order_of_the_ranks(fitted):
    ranking = fitted.rank(VALID, filtered=False)
    for k, (head, relation, tail) in enumerate(VALID.tolist()):
        tails = [entity for entity, _ in fitted.predict_tails(head, relation, N_ENTITIES)]
        heads = [entity for entity, _ in fitted.predict_heads(relation, tail, N_ENTITIES)]
        assert tails.index(tail) + 1 == ranking.tail_ranks[k]
        assert heads.index(head) + 1 == ranking.head_ranks[k]
    head, relation, tail = VALID[0].tolist()
    best, score = fitted.predict_tails(head, relation, 1)[0]
    assert score == fitted.score_triples([[head, relation, best]])[0]
    left = fitted.predict_tails(head, relation, N_ENTITIES, filter=VALID)
    assert tail not in [entity for entity, _ in left]


def test_predictions_by_name(tmp_path):
    names = [f"e{k}" for k in range(N_ENTITIES)]
    kinds = [f"r{k}" for k in range(N_RELATIONS)]
    estimator = model(entity_names=names, relation_names=kinds, max_epochs=2).fit(TRAIN)
    plain = model(max_epochs=2).fit(TRAIN)
    named = estimator.predict_tails("e1", "r0", 3)
    assert named == [(f"e{e}", score) for e, score in plain.predict_tails(1, 0, 3)]
    estimator.save(tmp_path / "model.npz")
    loaded = ob.kg.UltraE.load(tmp_path / "model.npz")
    assert loaded.predict_heads("r0", "e1") == estimator.predict_heads("r0", "e1")
    assert loaded.get_params()["entity_names"] == names
    for arguments, name in (((N_ENTITIES, 0), "head"), ((0, -1), "relation"), (("x", 0), "head")):
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            estimator.predict_tails(*arguments)
    with pytest.raises(ValueError, match=r"\bhead\b.*no entity names"):
        plain.predict_tails("e1", 0)
    with pytest.raises(ValueError, match=r"\bentity_names\b"):
        model(entity_names=names[1:]).fit(TRAIN)
    again = ob.kg.UltraE(**estimator.get_params())
    assert repr(again) == repr(estimator)
    assert "dim=8" in repr(estimator)
