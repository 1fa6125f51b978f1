"""Triples by name, and `TripleFiles`: fits, ranks, sizes, saved models and parameters."""

from __future__ import annotations

import inspect

import numpy as np
import pandas
import pytest
from sklearn import base

import orthobcd as ob

N_ENTITIES, N_RELATIONS = 30, 2
ENTITIES = tuple(f"entity {k}" for k in range(N_ENTITIES))
RELATIONS = ("follows", "mirrors")


def graph() -> ob.kg.TripleFiles:
    """Three splits of two permutations, numbered in the order of the training triples."""
    k = np.arange(N_ENTITIES)
    both = [np.stack([k, 0 * k, (k + 1) % N_ENTITIES], 1), np.stack([k, 0 * k + 1, k[::-1]], 1)]
    triples = np.concatenate(both)
    order = np.random.default_rng(0).permutation(len(triples))[:-12]
    rest = np.setdiff1d(np.arange(len(triples)), order)
    splits = (triples, triples[rest[:6]], triples[rest[6:]])
    return ob.kg.TripleFiles(splits, ENTITIES, RELATIONS)


def by_name(triples: np.ndarray) -> list[tuple[str, str, str]]:
    return [(ENTITIES[h], RELATIONS[r], ENTITIES[t]) for h, r, t in triples]


def model(**options: object) -> ob.kg.UltraE:
    few: dict = {"dim": 4, "n_negatives": 6, "batch_size": 16, "max_epochs": 3, "valid_every": 1}
    return ob.kg.UltraE(**{**few, **options})


GRAPH = graph()


@pytest.fixture(scope="module")
def fitted() -> ob.kg.UltraE:
    return model().fit(GRAPH)


def same(one: ob.kg.UltraE, other: ob.kg.UltraE) -> None:
    for name in ("entities_", "relations_", "head_biases_", "tail_biases_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.history_["valid_mrr"], other.history_["valid_mrr"])


def test_ranks_are_filtered_by_all_triples_of_the_fit(fitted):
    """As LibKGE: known are training, validation and test triples, and those that are ranked."""
    new = np.array([[0, 0, 5], [0, 0, 9], [7, 1, 9]])
    known = {tuple(row) for part in (*GRAPH.splits, new) for row in part.tolist()}
    ranking = fitted.rank(new)
    everything = fitted.rank(new, filtered=False)
    for place, (ranks, counts) in {
        0: (ranking.head_ranks, ranking.head_candidates),
        2: (ranking.tail_ranks, ranking.tail_candidates),
    }.items():
        for triple, rank, count in zip(new.tolist(), ranks, counts, strict=True):
            rows = [[*triple[:place], e, *triple[place + 1 :]] for e in range(N_ENTITIES)]
            scores = fitted.score_triples(rows)
            left = [e for e, row in enumerate(rows) if row == triple or tuple(row) not in known]
            own = scores[triple[place]]
            assert count == len(left)
            assert rank == 0.5 + (scores[left] > own).sum() + 0.5 * (scores[left] == own).sum()
    assert (everything.ranks >= ranking.ranks).all()
    assert (everything.head_candidates == N_ENTITIES).all()
    more = fitted.rank(new, filter=[[0, 0, e] for e in range(N_ENTITIES)])
    assert more.tail_candidates.tolist() == [1, 1, ranking.tail_candidates[2]]
    assert more.tail_ranks[:2].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "given",
    [
        lambda part: by_name(part),
        lambda part: np.array(by_name(part)),
        lambda part: pandas.DataFrame(by_name(part)),
        lambda part: [(h, RELATIONS[r], ENTITIES[t]) for h, r, t in part.tolist()],
        lambda part: ob.kg.TripleFiles((part,), ENTITIES, RELATIONS),
        # Files with another numbering.
        lambda part: ob.kg.TripleFiles(
            ((part + 1) % [N_ENTITIES, 2, N_ENTITIES],),
            (ENTITIES[-1], *ENTITIES[:-1]),
            RELATIONS[::-1],
        ),
    ],
    ids=["rows", "strings", "frame", "mixed", "files", "other files"],
)
def test_names_are_accepted_wherever_numbers_are(given, fitted):
    part = GRAPH.valid
    np.testing.assert_array_equal(fitted.score_triples(given(part)), fitted.score_triples(part))
    ranking, plain = fitted.rank(given(part), given(GRAPH.train)), fitted.rank(part)
    np.testing.assert_array_equal(ranking.ranks, plain.ranks)
    assert list(plain.by_relation()) == [RELATIONS[r] for r in np.unique(part[:, 1])]
    h, r, t = part[0].tolist()
    tails = fitted.predict_tails(h, r, 5, filter=part)
    assert fitted.predict_tails(ENTITIES[h], RELATIONS[r], 5, filter=given(part)) == tails
    assert fitted.predict_heads(RELATIONS[r], ENTITIES[t]) == fitted.predict_heads(r, t)


def test_a_fit_by_name_is_the_fit_by_number():
    numbers = model().fit(GRAPH.train, GRAPH.valid, known=GRAPH.test)
    same(model().fit(GRAPH), numbers)
    # In the order of the first occurrence these triples have the numbers of the graph.
    words = model().fit(*map(by_name, (GRAPH.train, GRAPH.valid)), known=by_name(GRAPH.test))
    order = [words.entity_names_.index(name) for name in ENTITIES]
    again = np.stack([np.array(order)[GRAPH.train[:, 0]], GRAPH.train[:, 1]], 1)
    again = np.column_stack([again, np.array(order)[GRAPH.train[:, 2]]])
    assert words.relation_names_ == RELATIONS
    assert numbers.entity_names_ is None
    named = words.score_triples(by_name(GRAPH.train))
    np.testing.assert_array_equal(words.score_triples(again), named)


@pytest.mark.parametrize("given", [None, N_ENTITIES, N_ENTITIES + 5])
def test_sizes_are_those_of_the_triples_or_given(given):
    numbers = GRAPH.train[GRAPH.train[:, 0] < N_ENTITIES - 1]
    # The largest number can be in any of the arguments.
    last = [[N_ENTITIES - 1, 1, 0]]
    for parts in ({"triples": [*numbers.tolist(), *last]}, {"triples": numbers, "known": last}):
        fitted = model(n_entities=given).fit(**parts)
        assert fitted.n_entities_ == fitted.entities_.shape[0] == (given or N_ENTITIES)
        assert fitted.n_relations_ == len(fitted.relations_) == 2
        # Parameters stay as they were given.
        assert fitted.n_entities is given
        assert fitted.n_relations is None
    listed = model(entity_names=ENTITIES, relation_names=RELATIONS).fit(numbers)
    assert (listed.n_entities_, listed.entity_names_) == (N_ENTITIES, ENTITIES)


def test_files_of_numbers_have_no_names():
    numbers = ob.kg.TripleFiles(GRAPH.splits, tuple(map(str, range(N_ENTITIES))), ("0", "1"))
    fitted = model().fit(numbers)
    assert fitted.entity_names_ is fitted.relation_names_ is None
    assert all(isinstance(entity, int) for entity, _ in fitted.predict_tails(0, 0))
    # Lists of names that are given name these numbers.
    listed = model(entity_names=ENTITIES, relation_names=RELATIONS).fit(numbers)
    same(listed, fitted)
    assert listed.predict_tails("entity 0", "follows", 1)[0][0] in ENTITIES


def test_splits_have_names():
    assert GRAPH.train is GRAPH.splits[0]
    assert GRAPH.valid is GRAPH.splits[1]
    assert GRAPH.test is GRAPH.splits[2]
    one = ob.kg.TripleFiles(GRAPH.splits[:1], ENTITIES, RELATIONS)
    with pytest.raises(AttributeError, match="valid is file 2"):
        one.valid  # noqa: B018
    assert model().fit(one).history_["valid_mrr"].size == 0


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (ValueError, "triples must have known names; 'x'", lambda m: m.rank([("x", 0, 1)])),
        (ValueError, "filter must have known names", lambda m: m.rank([(0, 0, 1)], [(0, "x", 1)])),
        (ValueError, "head must have known names", lambda m: m.predict_tails("x", 0)),
        (ValueError, "relation must be below 2", lambda m: m.predict_tails(0, 2)),
        (TypeError, "triples must hold numbers or names", lambda m: m.rank([("a", None, 1)])),
        (ValueError, "triples must hold numbers of", lambda m: m.rank([("a", 2**70, 1)])),
        (TypeError, "triples must be an integer", lambda m: m.rank([(0.5, 1.0, 1.0)])),
        (ValueError, "triples must have shape", lambda m: m.rank([("a", "b")])),
        (
            ValueError,
            "filter must be None",
            lambda m: m.rank([(0, 0, 1)], [(0, 0, 1)], filtered=False),
        ),
        (ValueError, "valid and known must be None", lambda m: m.fit(GRAPH, GRAPH.valid)),
        (
            ValueError,
            "valid must have known names",
            lambda m: model(entity_names=ENTITIES).fit(GRAPH.train, [("x", 0, 1)]),
        ),
        (
            ValueError,
            "triples must be given by number",
            lambda m: model().fit([(0, 0, 1)]).rank([("x", 0, 1)]),
        ),
        (
            ValueError,
            "entity_names must hold 31 different",
            lambda m: model(n_entities=31).fit(GRAPH),
        ),
        (
            ValueError,
            "entity_names must hold different",
            lambda m: model(entity_names=["a", "a"]).fit([(0, 0, 1)]),
        ),
        (
            ValueError,
            "triples must hold entities in 0..1",
            lambda m: model(n_entities=2).fit([(0, 0, 2)]),
        ),
    ],
)
def test_refused(error, match, call, fitted):
    before = fitted.rank(GRAPH.test).ranks
    with pytest.raises(error, match=match):
        call(fitted)
    # A call that raises does not change the model.
    np.testing.assert_array_equal(fitted.rank(GRAPH.test).ranks, before)


def test_a_saved_model_keeps_names_and_known_triples(fitted, tmp_path):
    path = tmp_path / "model.npz"
    fitted.save(path)
    loaded = ob.kg.UltraE.load(path)
    assert loaded.get_params() == fitted.get_params()
    assert (loaded.entity_names_, loaded.relation_names_) == (ENTITIES, RELATIONS)
    np.testing.assert_array_equal(loaded.rank(GRAPH.test).ranks, fitted.rank(GRAPH.test).ranks)
    assert (loaded.status_, loaded.best_epoch_) == (fitted.status_, fitted.best_epoch_)
    same(loaded, fitted)
    # A checkpoint resumes for the same triples by name or by number, with sizes given or not.
    state = tmp_path / "state.npz"
    model(max_epochs=2).fit(GRAPH, checkpoint=state)
    sizes = {"n_entities": N_ENTITIES, "n_relations": N_RELATIONS}
    plain = model(**sizes).fit(GRAPH.train, GRAPH.valid, known=GRAPH.test, checkpoint=state)
    same(plain, fitted)


def test_a_file_with_another_number_of_names_is_refused(fitted, tmp_path):
    path = tmp_path / "model.npz"
    fitted.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    header = str(arrays["header"])
    for old, new in (
        ('"entity 3", ', ""),
        (f'"n_entities": {N_ENTITIES}', '"n_entities": 1000000000000'),
        ('"entity 3"', '"entity 4"'),
        ('"entity 3"', "3, []"),
    ):
        assert old in header
        np.savez(path, **{**arrays, "header": np.array(header.replace(old, new))})
        with pytest.raises(ValueError, match="not a file of UltraE"):
            ob.kg.UltraE.load(path)
    np.savez(path, **{**arrays, "known": arrays["known"] + 7})
    with pytest.raises(ValueError, match="known"):
        ob.kg.UltraE.load(path)


def test_parameters_can_be_cloned_and_set():
    original = model(entity_names=ENTITIES, relation_names=RELATIONS, signature=[1, 1, 1, -1])
    fitted = base.clone(original).fit(GRAPH.train)
    assert fitted.get_params() == original.get_params()
    unfitted = base.clone(fitted)
    with pytest.raises(ValueError, match="not fitted"):
        unfitted.rank(GRAPH.train)
    assert unfitted.set_params(dim=8, seed=1) is unfitted
    assert (unfitted.dim, unfitted.seed) == (8, 1)
    for name in inspect.signature(ob.kg.UltraE).parameters:
        value = getattr(original, name)
        assert unfitted.set_params(**{name: value}).get_params()[name] is value
    with pytest.raises(ValueError, match=r"Invalid parameter 'n_epochs'.*'n_entities', "):
        unfitted.set_params(n_epochs=3)


def test_reprs_show_what_differs_from_the_defaults():
    assert repr(ob.kg.UltraE()) == "UltraE()"
    names = [f"entity {k}" for k in range(40_000)]
    text = repr(ob.kg.UltraE(dim=8, entity_names=names, loss="logistic", n_threads=1))
    assert text == "UltraE(dim=8, loss='logistic', entity_names=<40000 names>)"
