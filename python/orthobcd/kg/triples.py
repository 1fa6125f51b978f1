"""Knowledge graphs as arrays of triples (head, relation, tail), and files of triples."""

from __future__ import annotations

import collections
import contextlib
import heapq
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._internal.checks import IntArray, as_int, unmasked
from .._internal.extras import need
from .._internal.reading import Source, errors_as, open_source, reason_of


@dataclass(frozen=True, eq=False)
class TripleFiles:
    """Triples of several files with common numbers of entities and relations.

    Attributes
    ----------
    splits : tuple of ndarray of shape (N, 3)
        Head, relation and tail numbers of every file, in the order of the files.
    entities, relations : tuple of str
        Names, by number. For files of numbers without lists of names the names are the numbers.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> files = ob.kg.TripleFiles((np.array([[0, 0, 1]]),), ("cat", "animal"), ("is a",))
    >>> files.relations, files.train.tolist()
    (('is a',), [[0, 0, 1]])
    """

    splits: tuple[IntArray, ...]
    entities: tuple[str, ...]
    relations: tuple[str, ...]

    @property
    def train(self) -> IntArray:
        """Triples of the first file, those for training."""
        return self._split("train", 0)

    @property
    def valid(self) -> IntArray:
        """Triples of the second file, those for validation."""
        return self._split("valid", 1)

    @property
    def test(self) -> IntArray:
        """Triples of the third file, those for the test."""
        return self._split("test", 2)

    def _split(self, name: str, place: int) -> IntArray:
        if place >= len(self.splits):
            raise AttributeError(f"{name} is file {place + 1}; there are {len(self.splits)} files")
        return self.splits[place]

    def __repr__(self) -> str:
        counts = " + ".join(str(len(split)) for split in self.splits)
        return (
            f"TripleFiles({counts} triples, {len(self.entities)} entities, "
            f"{len(self.relations)} relations)"
        )


def dense_core(triples: ArrayLike, n_entities: int) -> tuple[IntArray, IntArray, IntArray]:
    """Dense core of a graph: removes entities of least degree until ``n_entities`` are left.

    Parameters
    ----------
    triples : array_like of int, of shape (N, 3)
        Heads, relations and tails.
    n_entities : int
        Number of entities to keep. Of entities of equal degree the one with the largest number is
        removed first.

    Returns
    -------
    core : ndarray of shape (M, 3)
        The remaining triples in their order, with entities and relations renumbered.
    entities, relations : ndarray of int
        The old number of each new number.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> import orthobcd as ob
    >>> triples = [[0, 0, 1], [1, 0, 2], [2, 0, 0], [2, 0, 3]]
    >>> core, entities, relations = ob.kg.dense_core(triples, 3)
    >>> core.tolist(), entities.tolist()
    ([[0, 0, 1], [1, 0, 2], [2, 0, 0]], [0, 1, 2])
    """
    unlimited = np.iinfo(np.int64).max
    rows = as_triples("triples", triples, unlimited, unlimited)
    keep = as_int("n_entities", n_entities, 1)
    # Renumbered, so that memory depends on the number of triples, not on the largest number.
    numbers, ends = np.unique(rows[:, [0, 2]], return_inverse=True)
    count, ends = len(numbers), ends.reshape(-1, 2)
    touching: list[list[int]] = [[] for _ in range(count)]
    for i, (head, tail) in enumerate(ends.tolist()):
        touching[head].append(i)
        touching[tail].append(i)
    degree = [len(own) for own in touching]
    alive = np.ones(len(rows), dtype=bool)
    there = [True] * count
    queue = [(d, -e) for e, d in enumerate(degree)]
    heapq.heapify(queue)
    left = count
    while left > keep:
        least, negative = heapq.heappop(queue)
        entity = -negative
        if not there[entity] or least != degree[entity]:
            continue
        there[entity] = False
        left -= 1
        for i in touching[entity]:
            if not alive[i]:
                continue
            alive[i] = False
            for other in map(int, ends[i]):
                degree[other] -= 1
                if there[other]:
                    heapq.heappush(queue, (degree[other], -other))
    core = rows[alive]
    entities, ends = np.unique(core[:, [0, 2]], return_inverse=True)
    relations, kinds = np.unique(core[:, 1], return_inverse=True)
    ends = ends.reshape(-1, 2)
    return np.stack([ends[:, 0], kinds.ravel(), ends[:, 1]], axis=1), entities, relations


def as_triples(name: str, value: Any, n_entities: int, n_relations: int) -> IntArray:
    """``value`` as an (N, 3) array of entity, relation and entity numbers in range."""
    raw = np.asarray(unmasked(value))
    if raw.dtype.kind not in "iu":
        raise TypeError(f"{name} must be an integer array, got dtype {raw.dtype}")
    if raw.ndim != 2 or raw.shape[1] != 3:
        raise ValueError(f"{name} must have shape (N, 3), got {raw.shape}")
    triples = np.ascontiguousarray(raw, dtype=np.int64)
    if triples.size:
        limits = np.array([n_entities, n_relations, n_entities])
        if triples.min() < 0 or (triples >= limits).any():
            raise ValueError(
                f"{name} must hold entities in 0..{n_entities - 1} and relations in "
                f"0..{n_relations - 1}, its largest are {triples.max(axis=0).tolist()}, its "
                f"smallest {triples.min(axis=0).tolist()}"
            )
    return triples


BLOCK = 1 << 24
"""Bytes of a file of triples that are read at once."""

ENDS, LINKS = slice(0, 3, 2), slice(1, 2)
"""Columns of a triple that hold entities, and that hold relations."""

DIGITS = 18
"""Largest number of digits with which every number fits into 64 bits."""

BOM = b"\xef\xbb\xbf"
"""UTF-8 byte order mark, which some programs write at the beginning of a text."""

NUMBERS, PER_BYTE = 1 << 20, 8
"""Numbers without given names may be below `NUMBERS`, or `PER_BYTE` times the bytes of the files: a
name is made of each, and takes 64 bytes."""

COLUMNS = {
    "head": {"head", "head_id", "h", "subject", "s", "source"},
    "relation": {"relation", "relation_id", "r", "predicate", "p", "label"},
    "tail": {"tail", "tail_id", "t", "object", "o", "target"},
}
"""Columns of a triple, and the words of a header line that stand for each."""


def load_triples(
    *paths: str | os.PathLike[str],
    entities: str | os.PathLike[str] | Sequence[str] | None = None,
    relations: str | os.PathLike[str] | Sequence[str] | None = None,
    ids: bool | None = None,
    header: bool | None = None,
) -> TripleFiles:
    """Read tab-separated triples, one per line: head, relation, tail.

    A file whose first line is the number of its triples is one of OpenKE: head, tail, relation,
    separated by a tab or a blank.

    Parameters
    ----------
    *paths : path
        Files, for instance of the training, validation and test triples; gzip files are
        decompressed.
    entities, relations : path or sequence of str, optional
        All names, by number; a UTF-8 file has one name per line, or a name and its number, in any
        order, with a tab between them. A line with the count may come first, as in OpenKE's files.
        By default names are numbered in the order of their first occurrence in the files.
    ids : bool, optional
        Whether the files hold numbers (from 0) instead of names. By default True if every field of
        every file is a nonnegative integer without leading zeros: ``01`` and ``1`` are two names.
    header : bool, optional
        Whether the first line of every file names the columns. By default True for a file whose
        first line has a word for each column: head, subject or source; relation, predicate or
        label; tail, object or target; or h, r, t or s, p, o. The words set the order of columns.

    Returns
    -------
    TripleFiles

    Raises
    ------
    ValueError
        If no file is given, a line does not have three fields, a name is not in a given list, or a
        number is not below the length of a given list; if a file of names is not UTF-8, has a blank
        line before its end, a name twice, or numbers other than 0, 1, 2, …; if with ``ids=True``
        a number is written in two ways. Without a list: if the names of all numbers
        up to the largest would need more than 64 MiB of memory and more than 500 times the size of
        the files. With ``ids=False`` only the occurring names are numbered.
    ImportError
        If pyarrow is not installed (the extra ``files``).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "graph.tsv"
    >>> _ = path.write_text("cat\\tis_a\\tanimal\\ndog\\tis_a\\tanimal\\n")
    >>> import orthobcd as ob
    >>> graph = ob.kg.load_triples(path)
    >>> graph.splits[0].tolist(), graph.entities
    ([[0, 0, 1], [2, 0, 1]], ('cat', 'animal', 'dog'))
    """
    if not paths:
        raise ValueError("paths must name at least one file")
    named = (_names("entities", entities), _names("relations", relations))
    columns, sizes = zip(*(_read_triples(path, header) for path in paths), strict=True)
    # Heads and tails of all files share a numbering; relations have their own.
    kinds = tuple(_unified([c for triple in columns for c in triple[k]]) for k in (ENDS, LINKS))
    if ids is None:
        ids = all(map(_is_id, itertools.chain(kinds[0][1], kinds[1][1])))
    size = sum(sizes)
    numbered = [
        _as_ids(what, codes, words, given, size) if ids else _as_names(what, codes, words, given)
        for what, (codes, words), given in zip(("entities", "relations"), kinds, named, strict=True)
    ]
    (ends, entity_names), (links, relation_names) = numbered
    splits = tuple(
        np.stack([ends[2 * k], links[k], ends[2 * k + 1]], axis=1) for k in range(len(paths))
    )
    return TripleFiles(splits, entity_names, relation_names)


def _read_triples(path: str | os.PathLike[str], header: bool | None) -> tuple[list[Any], int]:
    """The three columns of a file, dictionary-encoded, and its size in bytes."""
    pyarrow = need("files", "pyarrow")
    reader = need("files", "pyarrow.csv")
    kind = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    with _reading(path) as source:
        first, second = itertools.islice(itertools.chain(_lines(source), ["", ""]), 2)
        source.stream.seek(0)
        counted = header is None and _is_id(first.removeprefix("\ufeff"))
        separator = " " if counted and "\t" not in second else "\t"
        found = ["head", "tail", "relation"] if counted else _header(first)
        names = list(COLUMNS) if found is None or header is False else found
        skipped = int(found is not None if header is None else header)
        try:
            table = reader.read_csv(
                source.stream,
                read_options=reader.ReadOptions(
                    column_names=names, block_size=BLOCK, skip_rows=skipped
                ),
                parse_options=reader.ParseOptions(delimiter=separator, quote_char=False),
                convert_options=reader.ConvertOptions(
                    column_types=dict.fromkeys(names, kind), strings_can_be_null=False
                ),
            )
        except pyarrow.ArrowInvalid as error:
            if "Empty CSV" in str(error):
                return [pyarrow.chunked_array([pyarrow.array([], kind)])] * 3, source.size
            raise ValueError(_wrong_line(source, error, separator, counted)) from error
        if counted and table.num_rows != int(first.removeprefix("\ufeff")):
            raise ValueError(
                f"its first line counts {first} triples, {table.num_rows} lines follow"
            )
        return [table.column(name) for name in COLUMNS], source.size


def _header(line: str) -> list[str] | None:
    """The columns that a header line names, in their order; None for a line of a triple."""
    words = line.removeprefix("\ufeff").lower().split("\t")
    found = [next((c for c, own in COLUMNS.items() if word in own), "") for word in words]
    return found if sorted(found) == sorted(COLUMNS) else None


@contextlib.contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[Source]:
    """Opens a file; errors in its contents become a ValueError that names the file."""
    name = os.fspath(path)
    with (
        errors_as(lambda error: ValueError(f"{name}: {reason_of(error)}")),
        open_source(name) as source,
    ):
        yield source


def _wrong_line(source: Source, error: Exception, separator: str, counted: bool) -> str:
    """Message about the first wrong line of a file of triples that pyarrow cannot read."""
    source.stream.seek(0)
    word = "tab" if separator == "\t" else "blank"
    for number, raw in enumerate(source.stream, 1):
        line = _decoded(number, raw)
        fields = line.count(separator) + 1
        if line and fields != 3 and not (counted and number == 1):
            return f"line {number} must have 3 {word}-separated fields, got {fields}"
    return reason_of(error)


def _unified(columns: list[Any]) -> tuple[list[IntArray], list[str]]:
    """Codes of dictionary-encoded columns in a common dictionary, and that dictionary."""
    pyarrow = need("files", "pyarrow")
    chunks = [chunk for column in columns for chunk in column.chunks]
    whole = pyarrow.chunked_array(chunks).unify_dictionaries()
    indices = iter(whole.chunks)
    codes = [
        np.concatenate([next(indices).indices for _ in column.chunks], dtype=np.int64)
        for column in columns
    ]
    return codes, whole.chunks[0].dictionary.to_pylist()


def _as_ids(
    what: str, codes: list[IntArray], words: list[str], given: list[str] | None, size: int
) -> tuple[list[IntArray], tuple[str, ...]]:
    """Columns of numbers and the names of all numbers, for files of ``size`` bytes."""
    bad = next((word for word in words if not _is_id(word.lstrip("0") or "0")), None)
    if bad is not None:
        raise ValueError(f"paths must hold nonnegative integers (ids=True), got {bad!r}")
    large = next((word for word in words if len(word.lstrip("0")) > DIGITS), None)
    if large is not None:
        raise ValueError(f"paths must hold numbers of at most {DIGITS} digits, got {large[:40]}")
    numbers = np.array(words, dtype=np.int64)
    if len(np.unique(numbers)) != len(words):
        ways = {int(word): word for word in words}
        other = next(word for word in words if ways[int(word)] != word)
        raise ValueError(
            f"paths must write every number in one way (ids=True), got {other!r} and "
            f"{ways[int(other)]!r}"
        )
    count = 1 + int(numbers.max(initial=-1))
    if given is not None and len(given) < count:
        raise ValueError(
            f"{what} must have a name for every number, got {len(given)} names and the "
            f"number {count - 1}"
        )
    most = max(NUMBERS, PER_BYTE * size)
    if given is None and count > most:
        raise ValueError(
            f"paths must hold numbers below {most} without names of {what}, got {count - 1}"
        )
    names = map(str, range(count)) if given is None else given
    return [numbers[column] for column in codes], tuple(names)


def _as_names(
    what: str, codes: list[IntArray], words: list[str], given: list[str] | None
) -> tuple[list[IntArray], tuple[str, ...]]:
    """Columns of numbers of names, and the names: given, or in order of first occurrence."""
    if given is None:
        # Row by row: the first column of a row comes before the last.
        width = 2 if what == "entities" else 1
        files = range(0, len(codes), width)
        order = np.concatenate([np.stack(codes[k : k + width], axis=1).ravel() for k in files])
        first = np.zeros(len(words), dtype=np.int64)
        first[order[::-1]] = np.arange(order.size)[::-1]
        ranked = np.argsort(first, kind="stable")
        given = [words[k] for k in ranked]
        place = np.empty_like(ranked)
        place[ranked] = np.arange(ranked.size)
    else:
        table = {name: k for k, name in enumerate(given)}
        missing = next((word for word in words if word not in table), None)
        if missing is not None:
            raise ValueError(f"{what} must hold every name; {missing!r} is not there")
        place = np.array([table[word] for word in words], dtype=np.int64)
    return [place[column] for column in codes], tuple(given)


def _is_id(field: str) -> bool:
    """True for a nonnegative integer without leading zeros."""
    return field.isascii() and field.isdigit() and (field[0] != "0" or field == "0")


def _lines(source: Source) -> Iterator[str]:
    return (line.decode("utf-8", errors="replace").rstrip("\r\n") for line in source.stream)


def _names(what: str, given: str | os.PathLike[str] | Sequence[str] | None) -> list[str] | None:
    """A list of distinct names, given as such or by a file; None for None."""
    if given is None:
        return None
    if isinstance(given, (str, os.PathLike)):
        with _reading(given) as source:
            names = _listed(source.stream.read())
    else:
        names = [str(name) for name in given]
    if len(set(names)) != len(names):
        twice = max(names, key=collections.Counter(names).__getitem__)
        raise ValueError(f"{what} must hold every name once, got {twice!r} twice")
    return names


def _decoded(number: int, line: bytes) -> str:
    """A line of a file as text, without its end."""
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"line {number} is not UTF-8: {line[:40]!r}") from error


def _listed(content: bytes) -> list[str]:
    """The names of a file, by number."""
    lines = content.removeprefix(BOM).split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    texts = [_decoded(number, line) for number, line in enumerate(lines, 1)]
    blank = next((number for number, text in enumerate(texts, 1) if not text.strip()), None)
    if blank is not None:
        raise ValueError(f"line {blank} is blank, and names follow")
    if not any("\t" in text for text in texts):
        return texts
    # OpenKE's files begin with the count and have the number behind the name.
    counted = _is_id(texts[0])
    if counted and int(texts.pop(0)) != len(texts):
        raise ValueError(f"its first line counts other than the {len(texts)} names that follow")
    is_pair = all(text.count("\t") == 1 for text in texts)
    columns = list(zip(*(text.split("\t") for text in texts), strict=True)) if is_pair else []
    wanted = [str(k) for k in range(len(texts))]
    sides = [k for k in ((1, 0) if counted else (0, 1)) if is_pair and set(columns[k]) == {*wanted}]
    if not sides:
        raise ValueError(
            f"its lines must hold a name, or a name and its number, from 0 to {len(texts) - 1}"
        )
    # Of two columns of numbers the one in order numbers the other.
    side = max(sides, key=lambda k: list(columns[k]) == wanted)
    return [
        name for _, name in sorted(zip(map(int, columns[side]), columns[1 - side], strict=True))
    ]
