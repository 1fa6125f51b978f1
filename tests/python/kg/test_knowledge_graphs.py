"""Habits of knowledge-graph packages: filtered ranks, names, sizes, files, parameters."""

from __future__ import annotations

import gzip
import importlib.util
import inspect
import itertools
import re

import numpy as np
import pytest

import orthobcd as ob

from ..conftest import ROOT

N_ENTITIES, N_RELATIONS = 30, 2
ENTITIES = tuple(f"entity {k}" for k in range(N_ENTITIES))
RELATIONS = ("follows", "mirrors")


def graph() -> ob.TripleFiles:
    """Three splits of two permutations, numbered in the order of the training triples."""
    k = np.arange(N_ENTITIES)
    both = [np.stack([k, 0 * k, (k + 1) % N_ENTITIES], 1), np.stack([k, 0 * k + 1, k[::-1]], 1)]
    triples = np.concatenate(both)
    order = np.random.default_rng(0).permutation(len(triples))[:-12]
    rest = np.setdiff1d(np.arange(len(triples)), order)
    splits = (triples, triples[rest[:6]], triples[rest[6:]])
    return ob.TripleFiles(splits, ENTITIES, RELATIONS)


def by_name(triples: np.ndarray) -> list[tuple[str, str, str]]:
    return [(ENTITIES[h], RELATIONS[r], ENTITIES[t]) for h, r, t in triples]


def model(**options: object) -> ob.UltraE:
    few: dict = {"dim": 4, "n_negatives": 6, "batch_size": 16, "max_epochs": 3, "valid_every": 1}
    return ob.UltraE(**{**few, **options})


GRAPH = graph()


@pytest.fixture(scope="module")
def fitted() -> ob.UltraE:
    return model().fit(GRAPH)


def same(one: ob.UltraE, other: ob.UltraE) -> None:
    for name in ("entities_", "relations_", "head_biases_", "tail_biases_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.history_["valid_mrr"], other.history_["valid_mrr"])


# Ranks ------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("seed", range(5))
def test_candidates_by_counting(seed):
    from orthobcd.kg.ranking import candidates

    rng = np.random.default_rng(seed)
    n = 7
    triples, known = (rng.integers(0, [n, 2, n], (k, 3)) for k in (9, 40))
    for given in (known, known[:0], np.concatenate([known, triples, triples])):
        true = set(map(tuple, given.tolist()))
        for place in (0, 2):
            expected = []
            for row in triples.tolist():
                others = [e for e in range(n) if e != row[place]]
                completed = [(*row[:place], e, *row[place + 1 :]) for e in others]
                expected.append(1 + sum(triple not in true for triple in completed))
            assert candidates(triples, given, n, place).tolist() == expected


def ranking_of(ranks: np.ndarray, counts: np.ndarray, names: tuple | None = None) -> ob.Ranking:
    half = len(ranks) // 2
    relations = np.arange(half) % 2
    return ob.Ranking(ranks[:half], ranks[half:], counts[:half], counts[half:], relations, names)


def test_the_adjusted_index_is_1_for_first_0_for_random_and_at_least_minus_1():
    rng = np.random.default_rng(0)
    counts = rng.integers(2, 400, 20_000)
    first, last = np.ones(len(counts)), counts.astype(float)
    assert ranking_of(first, counts).adjusted_mean_rank_index == 1.0
    assert ranking_of(last, counts).adjusted_mean_rank_index == pytest.approx(-1.0)
    drawn = ranking_of(rng.integers(1, counts + 1).astype(float), counts)
    assert abs(drawn.adjusted_mean_rank_index) < 0.03
    # The formula is that of Berrendorf and coauthors, as in PyKEEN.
    expected = np.mean((counts + 1) / 2)
    index = 1 - (drawn.mean_rank - 1) / (expected - 1)
    assert drawn.adjusted_mean_rank_index == pytest.approx(index, rel=1e-12)
    assert np.isnan(ranking_of(first[:4], np.ones(4, int)).adjusted_mean_rank_index)
    assert np.isnan(ranking_of(first[:0], counts[:0]).mean_rank)


@pytest.mark.parametrize("names", [None, RELATIONS])
def test_tables_by_relation(names):
    rng = np.random.default_rng(1)
    counts = np.full(22, 50)
    ranking = ranking_of(rng.integers(1, 51, 22).astype(float), counts, names)
    parts = ranking.by_relation()
    assert list(parts) == list(names or (0, 1))
    sizes = {label: part.ranks.size for label, part in parts.items()}
    for measure in ("mrr", "mean_rank", "adjusted_mean_rank_index"):
        total = sum(sizes[label] * getattr(part, measure) for label, part in parts.items())
        assert total / 22 == pytest.approx(getattr(ranking, measure))
    lines = ranking.summary().splitlines()
    assert [line.split()[0] for line in lines] == ["relation", *map(str, parts), "all"]
    assert len({len(line) for line in lines}) == 1
    assert f"MR={ranking.mean_rank:.1f}" in repr(ranking)
    pytest.importorskip("pandas")
    frame = ranking.to_frame().set_index("relation")
    assert frame.loc[next(iter(parts)), "hits_10"] == next(iter(parts.values())).hits(10)


# Names and sizes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        lambda part: by_name(part),
        lambda part: np.array(by_name(part)),
        lambda part: pytest.importorskip("pandas").DataFrame(by_name(part)),
        lambda part: [(h, RELATIONS[r], ENTITIES[t]) for h, r, t in part.tolist()],
        lambda part: ob.TripleFiles((part,), ENTITIES, RELATIONS),
        # Files with another numbering.
        lambda part: ob.TripleFiles(
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
    np.testing.assert_array_equal(again, words._triples("triples", by_name(GRAPH.train)))


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
    numbers = ob.TripleFiles(GRAPH.splits, tuple(map(str, range(N_ENTITIES))), ("0", "1"))
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
    one = ob.TripleFiles(GRAPH.splits[:1], ENTITIES, RELATIONS)
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


# Files ------------------------------------------------------------------------------------------


def test_a_saved_model_keeps_names_and_known_triples(fitted, tmp_path):
    path = tmp_path / "model.npz"
    fitted.save(path)
    loaded = ob.UltraE.load(path)
    kept = {"signature": None}
    assert {**loaded.get_params(), **kept} == {**fitted.get_params(), **kept}
    assert (loaded.entity_names_, loaded.relation_names_) == (ENTITIES, RELATIONS)
    np.testing.assert_array_equal(loaded.rank(GRAPH.test).ranks, fitted.rank(GRAPH.test).ranks)
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
            ob.UltraE.load(path)
    np.savez(path, **{**arrays, "known": arrays["known"] + 7})
    with pytest.raises(ValueError, match="known"):
        ob.UltraE.load(path)


def write(path, text):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8") as file:
        file.write(text)
    return path


WORDS = [
    ("head", "relation", "tail"),
    ("Subject", "Predicate", "Object"),
    ("h", "r", "t"),
    ("source", "label", "target"),
    ("head_id", "relation_id", "tail_id"),
]


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz"])
@pytest.mark.parametrize("words", WORDS, ids=map("-".join, WORDS))
def test_headers_are_recognised_in_any_order(words, suffix, tmp_path):
    rows = [("cat", "is a", "animal"), ("dog", "is a", "animal"), ("dog", "eats", "meat")]
    expected = ob.load_triples(
        write(tmp_path / f"plain{suffix}", "".join("\t".join(r) + "\n" for r in rows))
    )
    for order in itertools.permutations(range(3)):
        lines = [[row[c] for c in order] for row in (words, *rows)]
        text = "".join("\t".join(line) + "\n" for line in lines)
        path = write(tmp_path / f"graph{suffix}", text)
        found = ob.load_triples(path)
        assert found.entities == expected.entities
        assert found.relations == expected.relations
        np.testing.assert_array_equal(found.train, expected.train)
        assert len(ob.load_triples(path, header=False).train) == 4
        assert len(ob.load_triples(path, header=True).train) == 3


def test_a_first_triple_is_no_header(tmp_path):
    for first in ("head\tis a\ttail", "h\th\tt", "relation\tof\tthe", "0\t0\t1"):
        path = write(tmp_path / "graph.tsv", f"{first}\n{first}\n")
        assert len(ob.load_triples(path).train) == 2
        assert len(ob.load_triples(path, header=True).train) == 1
    assert len(ob.load_triples(write(tmp_path / "empty.tsv", "")).train) == 0
    bom = write(tmp_path / "bom.tsv", "\ufeffhead\trelation\ttail\na\tb\tc\n")
    assert ob.load_triples(bom).entities == ("a", "c")
    numbers = write(tmp_path / "numbers.tsv", "h\tr\tt\n0\t0\t1\n")
    assert ob.load_triples(numbers).entities == ("0", "1")
    for words in ("a\t0\tb", "0\tis\t1", "0\t0\tb"):
        found = ob.load_triples(write(tmp_path / "words.tsv", f"{words}\n"))
        assert (*found.entities, *found.relations) == tuple(words.split("\t")[k] for k in (0, 2, 1))


NAMED = ("cat", "dog", "animal")
LISTS = {
    "plain": "cat\ndog\nanimal\n",
    "number, name": "0\tcat\n1\tdog\n2\tanimal\n",
    "name, number": "cat\t0\ndog\t1\nanimal\t2\n",
    "not ascending": "2\tanimal\n0\tcat\n1\tdog\n",
    "count, name, number": "3\ndog\t1\ncat\t0\nanimal\t2\n",
    "count, number, name": "3\n1\tdog\n0\tcat\n2\tanimal\n",
}
ENDS = ("", "\n", "\n\n", "\n \n\t\n")


@pytest.mark.parametrize("form", LISTS)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("line", ["\n", "\r\n"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_lists_of_names(form, mark, end, line, suffix, tmp_path):
    """As LibKGE's entity_ids.del, OpenKE's entity2id.txt and others."""
    path = write(tmp_path / "graph.tsv", "0\t0\t2\n")
    text = (mark + LISTS[form].rstrip() + end).replace("\n", line)
    listed = tmp_path / f"names{suffix}"
    listed.write_bytes(gzip.compress(text.encode()) if suffix else text.encode())
    assert ob.load_triples(path, entities=listed).entities == NAMED
    assert ob.load_triples(path, entities=listed, relations=listed).relations == NAMED


@pytest.mark.parametrize("seed", range(5))
def test_names_that_are_numbers_too(seed, tmp_path):
    """The column in order numbers the other; behind a count it is the second one."""
    names = np.random.default_rng(seed).permutation(6).astype(str)
    path = write(tmp_path / "graph.tsv", "0\t0\t5\n")
    for text in (
        "".join(f"{k}\t{name}\n" for k, name in enumerate(names)),
        "".join(f"{name}\t{k}\n" for k, name in enumerate(names)),
        "6\n" + "".join(f"{name}\t{k}\n" for k, name in enumerate(names)),
    ):
        listed = write(tmp_path / "names.txt", text)
        assert ob.load_triples(path, entities=listed).entities == tuple(names)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a\n\xffb\nc\n", "line 2 is not UTF-8"),
        ("K\u00f6ln\nRom\n".encode("latin-1"), "line 1 is not UTF-8"),
        (b"a\n\nb\n", "line 2 is blank"),
        (b"a\nb\na\n", "'a' twice"),
        (b"0\ta\n2\tb\n", "a name and its number, from 0 to 1"),
        (b"0\ta\n0\tb\n", "a name and its number"),
        (b"0\ta\n1\tb\tc\n", "a name and its number"),
        (b"a\n1\tb\n", "a name and its number"),
        (b"3\na\t0\nb\t1\n", "counts other than the 2 names"),
    ],
)
def test_wrong_lists_of_names_are_refused(content, reason, tmp_path):
    path = write(tmp_path / "graph.tsv", "0\t0\t1\n")
    (tmp_path / "names.txt").write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        ob.load_triples(path, entities=tmp_path / "names.txt")


@pytest.mark.parametrize("place", range(3))
def test_triples_that_are_not_utf8_are_named(place, tmp_path):
    lines = [b"a\tr\tb\n"] * 3
    lines[place] = "K\u00f6ln\tr\tb\n".encode("latin-1")
    (tmp_path / "graph.tsv").write_bytes(b"".join(lines))
    with pytest.raises(ValueError, match=rf"graph\.tsv: line {place + 1} is not UTF-8"):
        ob.load_triples(tmp_path / "graph.tsv")


SPELLINGS = ("1", "01", "001", "10", "010", "00", "0", "+1", "1.0", " 1", "-1", "1_0", "\u0661")


@pytest.mark.parametrize("one", SPELLINGS)
@pytest.mark.parametrize("other", SPELLINGS)
def test_two_spellings_are_two_entities(one, other, tmp_path):
    """Only fields that are all written as Python writes numbers are numbers."""
    path = write(tmp_path / "graph.tsv", f"{one}\t0\t{other}\n")
    graph = ob.load_triples(path)
    head, _, tail = graph.train[0]
    assert (graph.entities[head], graph.entities[tail]) == (one, other)
    assert (head == tail) == (one == other)
    digits = all(word.isascii() and word.isdigit() for word in (one, other))
    if digits and one != other and int(one) == int(other):
        with pytest.raises(ValueError, match="every number in one way"):
            ob.load_triples(path, ids=True)
    elif digits:
        assert ob.load_triples(path, ids=True).train.tolist() == [[int(one), 0, int(other)]]


@pytest.mark.parametrize("separator", [" ", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_files_of_openke_begin_with_the_count(separator, mark, tmp_path):
    """They hold head, tail, relation."""
    lines = [separator.join(row) for row in (("3", "1", "0"), ("0", "2", "1"))]
    path = write(tmp_path / "train2id.txt", mark + "\n".join(["2", *lines, "", ""]))
    assert ob.load_triples(path).train.tolist() == [[3, 0, 1], [0, 1, 2]]
    for count in ("1", "3"):
        path = write(tmp_path / "train2id.txt", "\n".join([count, *lines, ""]))
        with pytest.raises(ValueError, match=f"counts {count} triples, 2 lines"):
            ob.load_triples(path)
    path = write(tmp_path / "train2id.txt", "\n".join(["2", lines[0], "1", ""]))
    with pytest.raises(ValueError, match="line 3 must have 3"):
        ob.load_triples(path)


# Recipes ----------------------------------------------------------------------------------------

RECIPE = re.compile(r"^```\{code-block\} python\n(graph = .*?)^```", re.M | re.S)


def recipe(name: str) -> str:
    text = (ROOT / "docs/knowledge-graphs.md").read_text("utf-8")
    return next(block for block in RECIPE.findall(text) if f'"{name}_train.tsv.gz"' in block)


@pytest.mark.parametrize("name", ["wn18rr", "fb15k237"])
def test_recipes_are_five_lines_with_the_measured_settings(name):
    path = ROOT / "benchmarks/scripts/ultra_e.py"
    spec = importlib.util.spec_from_file_location("ultra_e", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    lines = recipe(name).splitlines()
    assert len(lines) == 5
    names: dict = {"ob": ob}
    exec("\n".join([*lines[1:3], lines[3].replace(".fit(graph)", "")]), names)
    expected = ob.UltraE(**script.WHOLE[name]).get_params()
    assert names["model"].get_params() == expected


@pytest.mark.data
@pytest.mark.slow
def test_a_recipe_runs(data_dir, monkeypatch, capsys):
    if not (data_dir / "wn18rr_train.tsv.gz").exists():
        pytest.skip("wn18rr_train.tsv.gz is not there")
    monkeypatch.chdir(data_dir)
    # With fewer dimensions the recipe takes seconds.
    small = recipe("wn18rr").replace("max_epochs=100", "max_epochs=1, seed=1")
    exec(small.replace("dim=128", "dim=48"), {"ob": ob})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 13
    assert lines[-1].split()[:2] == ["all", "3134"]


# Parameters -------------------------------------------------------------------------------------


def test_parameters_can_be_cloned_and_set():
    base = pytest.importorskip("sklearn.base")
    original = model(entity_names=ENTITIES, relation_names=RELATIONS, signature=[1, 1, 1, -1])
    fitted = base.clone(original).fit(GRAPH.train)
    assert fitted.get_params() == original.get_params()
    unfitted = base.clone(fitted)
    with pytest.raises(ValueError, match="not fitted"):
        unfitted.rank(GRAPH.train)
    assert unfitted.set_params(dim=8, seed=1) is unfitted
    assert (unfitted.dim, unfitted.seed) == (8, 1)
    for name in inspect.signature(ob.UltraE).parameters:
        value = getattr(original, name)
        assert unfitted.set_params(**{name: value}).get_params()[name] is value
    with pytest.raises(ValueError, match="n_epochs must be one of n_entities, "):
        unfitted.set_params(n_epochs=3)


def test_reprs_show_what_differs_from_the_defaults():
    assert repr(ob.UltraE()) == "UltraE()"
    names = [f"entity {k}" for k in range(40_000)]
    text = repr(ob.UltraE(dim=8, entity_names=names, loss="logistic", n_threads=1))
    assert text == "UltraE(dim=8, loss='logistic', entity_names=<40000 names>)"


@pytest.mark.parametrize(("line", "fields"), [("a\tb", 2), ("a\tb\tc\td", 4), ("a", 1)])
def test_the_first_line_of_another_length_is_named(line, fields, tmp_path):
    path = tmp_path / "triples.tsv"
    path.write_text(f"a\tr\tb\nb\tr\tc\n{line}\na\n")
    with pytest.raises(ValueError, match=f"line 3 must have 3 tab-separated fields, got {fields}"):
        ob.load_triples(path)


def test_a_first_line_with_an_empty_field_is_named(tmp_path):
    path = tmp_path / "triples.tsv"
    path.write_text("\ta\tr\tb\nb\tr\tc\n")
    with pytest.raises(ValueError, match="line 1 must have 3 tab-separated fields, got 4"):
        ob.load_triples(path)


@pytest.mark.parametrize("seed", range(4))
def test_names_are_numbered_as_they_occur(seed, tmp_path):
    """By file, by line, the head before the tail; files of equal and of different lengths."""
    rng = np.random.default_rng(seed)
    lengths = [6, 6, 6] if seed % 2 else [9, 1, 4]
    files = [
        [tuple(f"{kind}{k}" for kind, k in zip("nrn", row, strict=True)) for row in rows]
        for rows in (rng.integers(0, [12, 5, 12], (length, 3)) for length in lengths)
    ]
    paths = [tmp_path / f"{k}.tsv" for k in range(len(files))]
    for path, rows in zip(paths, files, strict=True):
        path.write_text("".join("\t".join(row) + "\n" for row in rows))
    graph = ob.load_triples(*paths)
    rows = list(itertools.chain(*files))
    assert graph.entities == tuple(dict.fromkeys(row[k] for row in rows for k in (0, 2)))
    assert graph.relations == tuple(dict.fromkeys(row[1] for row in rows))
    for split, rows in zip(graph.splits, files, strict=True):
        names = [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in split]
        assert names == rows
