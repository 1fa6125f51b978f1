"""`load_triples`: headers, names, numbers and wrong files."""

from __future__ import annotations

import gzip
import itertools

import numpy as np
import pytest

import orthobcd as ob


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
    expected = ob.kg.load_triples(
        write(tmp_path / f"plain{suffix}", "".join("\t".join(r) + "\n" for r in rows))
    )
    for order in itertools.permutations(range(3)):
        lines = [[row[c] for c in order] for row in (words, *rows)]
        text = "".join("\t".join(line) + "\n" for line in lines)
        path = write(tmp_path / f"graph{suffix}", text)
        found = ob.kg.load_triples(path)
        assert found.entities == expected.entities
        assert found.relations == expected.relations
        np.testing.assert_array_equal(found.train, expected.train)
        assert len(ob.kg.load_triples(path, header=False).train) == 4
        assert len(ob.kg.load_triples(path, header=True).train) == 3


def test_a_first_triple_is_no_header(tmp_path):
    for first in ("head\tis a\ttail", "h\th\tt", "relation\tof\tthe", "0\t0\t1"):
        path = write(tmp_path / "graph.tsv", f"{first}\n{first}\n")
        assert len(ob.kg.load_triples(path).train) == 2
        assert len(ob.kg.load_triples(path, header=True).train) == 1
    assert len(ob.kg.load_triples(write(tmp_path / "empty.tsv", "")).train) == 0
    bom = write(tmp_path / "bom.tsv", "\ufeffhead\trelation\ttail\na\tb\tc\n")
    assert ob.kg.load_triples(bom).entities == ("a", "c")
    numbers = write(tmp_path / "numbers.tsv", "h\tr\tt\n0\t0\t1\n")
    assert ob.kg.load_triples(numbers).entities == ("0", "1")
    for words in ("a\t0\tb", "0\tis\t1", "0\t0\tb"):
        found = ob.kg.load_triples(write(tmp_path / "words.tsv", f"{words}\n"))
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
    assert ob.kg.load_triples(path, entities=listed).entities == NAMED
    assert ob.kg.load_triples(path, entities=listed, relations=listed).relations == NAMED


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
        assert ob.kg.load_triples(path, entities=listed).entities == tuple(names)


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
        ob.kg.load_triples(path, entities=tmp_path / "names.txt")


@pytest.mark.parametrize("place", range(3))
def test_triples_that_are_not_utf8_are_named(place, tmp_path):
    lines = [b"a\tr\tb\n"] * 3
    lines[place] = "K\u00f6ln\tr\tb\n".encode("latin-1")
    (tmp_path / "graph.tsv").write_bytes(b"".join(lines))
    with pytest.raises(ValueError, match=rf"graph\.tsv: line {place + 1} is not UTF-8"):
        ob.kg.load_triples(tmp_path / "graph.tsv")


SPELLINGS = ("1", "01", "001", "10", "010", "00", "0", "+1", "1.0", " 1", "-1", "1_0", "\u0661")


@pytest.mark.parametrize("one", SPELLINGS)
@pytest.mark.parametrize("other", SPELLINGS)
def test_two_spellings_are_two_entities(one, other, tmp_path):
    """Only fields that are all written as Python writes numbers are numbers."""
    path = write(tmp_path / "graph.tsv", f"{one}\t0\t{other}\n")
    graph = ob.kg.load_triples(path)
    head, _, tail = graph.train[0]
    assert (graph.entities[head], graph.entities[tail]) == (one, other)
    assert (head == tail) == (one == other)
    digits = all(word.isascii() and word.isdigit() for word in (one, other))
    if digits and one != other and int(one) == int(other):
        with pytest.raises(ValueError, match="every number in one way"):
            ob.kg.load_triples(path, ids=True)
    elif digits:
        assert ob.kg.load_triples(path, ids=True).train.tolist() == [[int(one), 0, int(other)]]


@pytest.mark.parametrize("separator", [" ", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_files_of_openke_begin_with_the_count(separator, mark, tmp_path):
    """They hold head, tail, relation."""
    lines = [separator.join(row) for row in (("3", "1", "0"), ("0", "2", "1"))]
    path = write(tmp_path / "train2id.txt", mark + "\n".join(["2", *lines, "", ""]))
    assert ob.kg.load_triples(path).train.tolist() == [[3, 0, 1], [0, 1, 2]]
    for count in ("1", "3"):
        path = write(tmp_path / "train2id.txt", "\n".join([count, *lines, ""]))
        with pytest.raises(ValueError, match=f"counts {count} triples, 2 lines"):
            ob.kg.load_triples(path)
    path = write(tmp_path / "train2id.txt", "\n".join(["2", lines[0], "1", ""]))
    with pytest.raises(ValueError, match="line 3 must have 3"):
        ob.kg.load_triples(path)


@pytest.mark.parametrize(
    ("text", "line", "fields"),
    [
        *(
            (f"a\tr\tb\nb\tr\tc\n{bad}\na\n", 3, bad.count("\t") + 1)
            for bad in ("a", "a\tb", "a\tb\tc\td")
        ),
        ("\ta\tr\tb\nb\tr\tc\n", 1, 4),
    ],
)
def test_the_first_line_of_another_length_is_named(text, line, fields, tmp_path):
    path = tmp_path / "triples.tsv"
    path.write_text(text)
    words = f"line {line} must have 3 tab-separated fields, got {fields}"
    with pytest.raises(ValueError, match=words):
        ob.kg.load_triples(path)


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
    graph = ob.kg.load_triples(*paths)
    rows = list(itertools.chain(*files))
    assert graph.entities == tuple(dict.fromkeys(row[k] for row in rows for k in (0, 2)))
    assert graph.relations == tuple(dict.fromkeys(row[1] for row in rows))
    for split, rows in zip(graph.splits, files, strict=True):
        names = [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in split]
        assert names == rows


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz"])
def test_triples_with_names(tmp_path, suffix):
    train = write(
        tmp_path / f"train{suffix}", "Köln\tliegt in\tDeutschland\nRom\tliegt in\tItalien\n"
    )
    test = write(tmp_path / f"test{suffix}", "Bonn\tliegt in\tDeutschland\n\n")
    loaded = ob.kg.load_triples(train, test)
    assert loaded.entities == ("Köln", "Deutschland", "Rom", "Italien", "Bonn")
    assert loaded.relations == ("liegt in",)
    assert loaded.splits[0].tolist() == [[0, 0, 1], [2, 0, 3]]
    assert loaded.splits[1].tolist() == [[4, 0, 1]]
    names = write(tmp_path / f"names{suffix}", "\n".join(sorted(loaded.entities)) + "\n")
    given = ob.kg.load_triples(train, test, entities=names, relations=["liegt in"])
    assert given.entities == tuple(sorted(loaded.entities))
    assert [given.entities[k] for k in given.splits[1][0, [0, 2]]] == ["Bonn", "Deutschland"]
    with pytest.raises(ValueError, match="Rom"):
        ob.kg.load_triples(train, entities=["Köln", "Deutschland", "Italien"])


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz"])
def test_triples_with_numbers(tmp_path, suffix):
    path = write(tmp_path / f"graph{suffix}", "0\t1\t3\n2\t0\t0\n")
    loaded = ob.kg.load_triples(path)
    assert loaded.splits[0].tolist() == [[0, 1, 3], [2, 0, 0]]
    assert loaded.entities == ("0", "1", "2", "3")
    named = ob.kg.load_triples(path, entities=list("abcde"), relations=["r", "s"])
    assert named.splits[0].tolist() == loaded.splits[0].tolist()
    assert len(named.entities) == 5
    as_names = ob.kg.load_triples(path, ids=False)
    assert as_names.entities == ("0", "3", "2")
    with pytest.raises(ValueError, match="entities"):
        ob.kg.load_triples(path, entities=["a"])


def test_bad_files_are_named(tmp_path):
    with pytest.raises(ValueError, match="ids"):
        ob.kg.load_triples(write(tmp_path / "names.tsv", "a\tb\tc\n"), ids=True)
    with pytest.raises(ValueError, match="paths"):
        ob.kg.load_triples()
    with pytest.raises(FileNotFoundError):
        ob.kg.load_triples(tmp_path / "absent.tsv")


@pytest.mark.parametrize("zeros", ["", "0", "0" * 30])
@pytest.mark.parametrize("digits", [1, 17, 18, 19, 20, 39, 40, 41, 400])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_numbers_have_at_most_eighteen_digits(tmp_path, zeros, digits, column):
    """Which fit into 64 bits. Leading zeros do not count; a message has the first 40 characters."""
    number = zeros + "9" * digits
    path = write(
        tmp_path / "graph.tsv", "\t".join(number if k == column else "0" for k in range(3))
    )
    if digits == 1:
        triple = ob.kg.load_triples(path, ids=True).splits[0].tolist()
        assert triple == [[9 if k == column else 0 for k in range(3)]]
    elif digits <= 18:
        with pytest.raises(ValueError, match=r"^paths must hold numbers below 1048576 without"):
            ob.kg.load_triples(path, ids=True)
    else:
        said = f"paths must hold numbers of at most 18 digits, got {number[:40]}"
        with pytest.raises(ValueError, match=f"^{said}$"):
            ob.kg.load_triples(path, ids=True)


@pytest.mark.slow
def test_numbers_without_names_take_memory_by_the_files(tmp_path):
    # 64 MiB for small files, at 64 bytes a name.
    for last, accepted in ((2**20 - 1, True), (2**20, False)):
        path = write(tmp_path / "graph.tsv", f"0\t0\t{last}\n")
        if accepted:
            assert len(ob.kg.load_triples(path).entities) == last + 1
        else:
            with pytest.raises(ValueError, match="paths"):
                ob.kg.load_triples(path)
        assert ob.kg.load_triples(path, ids=False).entities == ("0", str(last))
        assert ob.kg.load_triples(path, entities=map(str, range(last + 1))).splits[0][0, 2] == last
