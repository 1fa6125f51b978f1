"""Text tables of numbers, with or without header, separated by commas, semicolons, tabs or blanks.

The first lines decide the layout; pyarrow's CSV reader parses the cells.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from re import MULTILINE, compile, search
from typing import Any

import numpy as np

from .._internal.checks import FloatArray
from .._internal.extras import need
from .._internal.reading import Source
from .errors import MissingValues, UnreadableFile, note
from .headers import BOOLEANS, MISSING, NUMBER, is_header, is_index, is_number, is_value, names_rows
from .selection import Selection

BLOCK = 1 << 23
"""Bytes of a table that are parsed at once."""

LINES, CELLS = 20, 1 << 14
"""Largest numbers of lines and of cells that are searched for a header and an index."""

BOM = b"\xef\xbb\xbf"
"""UTF-8 byte order mark, which some programs write at the beginning of a text."""

BLANK = compile(rb"^ +\r?(?:\n|\Z)", MULTILINE)
"""Lines of blanks, which pyarrow's CSV reader does not skip."""

HEADER = "header=False (--no-header) reads it as a sample"
INDEX = "index=True or False (--index, --no-index) decides"
"""Ends of notes about what was taken for a header or an index."""

Texts = list[str | None]
"""The cells of a column as text, None where a value is missing."""


@dataclass(frozen=True)
class Table:
    """The layout of a table.

    Attributes
    ----------
    path : str
        Name of the file.
    stream : BinaryIO
        Contents, without comments.
    begin : int or None
        Position of the first sample in ``stream``; None without samples.
    separator, decimal : str
        Separator of cells (" " for one or more blanks) and decimal mark.
    width : int
        Number of columns, an index included.
    names : list of str
        Names of the columns; may be empty.
    index : bool or None
        Whether the first column is the index of the rows; None if its cells decide.
    words : set of int
        Columns with a cell in the first lines that is neither a number nor missing.
    """

    path: str
    stream: Any
    begin: int | None
    separator: str
    decimal: str
    width: int
    names: list[str]
    index: bool | None = False
    words: frozenset[int] = frozenset()

    def parse(self, texts: Sequence[int], numbers: Sequence[int]) -> tuple[list[Texts], FloatArray]:
        """The columns ``texts`` as texts and the columns ``numbers`` as numbers."""
        if self.begin is None:
            return [[] for _ in texts], np.zeros((0, len(numbers)))
        return _parsed(self, texts, numbers)

    def not_numeric(self, k: int, cell: str) -> UnreadableFile:
        """The error for a cell of column k that is not a number."""
        name = self.names[k] if self.names else str(k)
        hint = "" if k or self.index else "; index=True (--index) leaves the first column out"
        return UnreadableFile(f"{self.path}: column {name!r} is not numeric: {cell!r}{hint}")

    def changed(self, width: int) -> UnreadableFile:
        """The error for a line with another number of cells."""
        change = f"from {self.width} to {width}"
        return UnreadableFile(f"{self.path}: the number of columns changed {change}")


def read_table(source: Source, selection: Selection) -> tuple[FloatArray, list[str]]:
    """Reads the numbers of a table, NaN for missing values, and the names in its header."""
    values, names = _chosen(_layout(source, selection), selection)
    gaps = np.isnan(values)
    if not selection.missing and gaps.any():
        k = int(gaps.any(axis=0).argmax())
        label = names[k] if names else str(k)
        raise MissingValues(
            f"{source.path}: column {label!r} has {int(gaps[:, k].sum())} missing values, the "
            f"first in sample {int(gaps[:, k].argmax())}, counted from 0"
        )
    return values, names


def _chosen(table: Table, selection: Selection) -> tuple[FloatArray, list[str]]:
    """The selected columns and their names, without an index."""
    first, rest = 1 if table.index else 0, None
    if table.index is None:
        selected = selection.columns is not None or selection.drop is not None
        (written,), rest = table.parse([0], [] if selected else range(1, table.width))
        first = 1 if is_index(written, table.decimal) else 0
        what = "is the index of the rows and left out" if first else "is taken for a feature"
        note(f"{table.path}: its unnamed first column {what}; {INDEX}")
        rest = rest if first and not selected else None
    names, width = table.names[first:], table.width - first
    kept = selection.kept(names, width)
    chosen = range(width) if kept is None else kept
    values = table.parse([], [k + first for k in chosen])[1] if rest is None else rest
    return values, [names[k] for k in chosen] if names else []


# Layout ------------------------------------------------------------------------------------------


def _layout(source: Source, selection: Selection) -> Table:
    """The layout of a table, from its first lines and the options."""
    path, stream, decimal = source.path, source.stream, selection.decimal
    if selection.comment is not None:
        stream = io.BytesIO(_without_comments(stream.read(), selection.comment.encode()))
    lines = _lines(stream)
    begin, first = next(lines, (None, ""))
    said = ""
    while selection.comment is None and _is_comment(first):
        said = first.lstrip("#")
        begin, first = next(lines, (None, ""))
    if not first and not said:
        raise UnreadableFile(f"{path}: has no data")
    below = list(islice(lines, 1))
    separator = _separator(first or said, below[0][1] if below else first, decimal)
    cells, names = _split(first, separator), _split(said, separator)
    below += islice(lines, min(LINES, CELLS // max(1, len(cells))))
    following = [line for _, line in below]
    body = [_split(line, separator) for line in following]
    values, below_values = (
        [is_value(cell, decimal) for cell in row] for row in (cells, body[0] if body else cells)
    )
    is_words = not all(values)
    # Words in the same columns as in the next line, beside numbers, are a sample.
    is_sample = not is_words or (any(values) and values == below_values)
    fits = not first or (is_sample and len(names) == len(cells))
    if said and fits and selection.header is not False:
        # The header of numpy.savetxt.
        body, following = [cells, *body], [first, *following]
        if separator == " ":
            note(f"{path}: its comment, {_start(said)}, is taken for a header; {HEADER}")
    elif selection.header is True or (
        selection.header == "auto"
        and (is_words or is_header(first, following, cells, body, decimal))
    ):
        names, begin = cells, below[0][0] if below else None
        if selection.header == "auto" and not is_words:
            note(f"{path}: its first line, {_start(first)}, is taken for a header; {HEADER}")
    else:
        names, body = [], [cells, *body]
    return _indexed(
        Table(path, stream, begin, separator, decimal, len(names or cells), names),
        following,
        body,
        selection,
    )


def _indexed(
    table: Table, following: list[str], body: list[list[str]], selection: Selection
) -> Table:
    """The table with the width of its lines and with ``index`` decided, if the names decide."""
    index = None if selection.index == "auto" else bool(selection.index)
    if table.begin is None:
        return replace(table, index=bool(index))
    width, names = len(body[0]), table.names
    lacks = bool(names) and len(names) == width - 1 and index is not False
    if lacks and (index or names_rows(following, body, table.decimal)):
        # The table of R's write.table.
        names, index = ["", *names], True
        note(f"{table.path}: its header lacks one name: its first column is the index; {INDEX}")
    if names and len(names) != width:
        raise UnreadableFile(f"{table.path}: its header has {len(names)} names for {width} columns")
    if index is None and not (names and (names[0] == "" or names[0].startswith("Unnamed:"))):
        index = False
    words = frozenset(
        k
        for row in body
        for k, cell in enumerate(row)
        if not (cell in MISSING or is_number(cell, table.decimal))
    )
    return replace(table, width=width, names=names, index=index, words=words)


def _lines(stream: Any) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, with their positions in the stream."""
    if stream.read(len(BOM)) != BOM:
        stream.seek(0)
    while True:
        begin = stream.tell()
        line = stream.readline()
        if not line:
            return
        if line.strip():
            yield begin, line.decode()


def _is_comment(line: str) -> bool:
    """True for a line like ``# text``, but not for one that begins with a cell ``#N/A``."""
    return line.startswith("#") and not line.startswith(tuple(w for w in MISSING if w[:1] == "#"))


def _without_comments(content: bytes, mark: bytes) -> bytes:
    """A text whose lines end at the mark, unless the mark is quoted."""
    lines = content.split(b"\n")
    return b"\n".join(_uncommented(line, mark) if mark in line else line for line in lines)


def _uncommented(line: bytes, mark: bytes) -> bytes:
    parts = line.split(b'"')
    for k in range(0, len(parts), 2):
        if mark in parts[k]:
            return b'"'.join([*parts[:k], parts[k].split(mark)[0]]).rstrip()
    return line


def _separator(line: str, following: str, decimal: str) -> str:
    """The separator of the cells of two lines: comma, semicolon, tab or blanks.

    It is the most frequent one outside quotes, one of equal count in both lines before others.
    """
    one, other = ("".join(text.split('"')[::2]) for text in (line, following))
    marks = ",;\t".replace(decimal, "")
    best = max(marks, key=lambda mark: (one.count(mark) == other.count(mark) > 0, one.count(mark)))
    is_blank = best not in one or (best not in other and " " in other.strip())
    return " " if is_blank else best


def _split(line: str, separator: str) -> list[str]:
    """The cells of a line."""
    blank = separator == " "
    if blank and '"' not in line:
        return line.split()
    line = line.strip() if blank else line.rstrip("\r\n")
    cells = csv.reader([line], delimiter=separator, skipinitialspace=blank)
    return [cell.strip() for cell in next(cells, [])]


def _start(line: str) -> str:
    """The first characters of a line, for a note."""
    text = line.strip()
    return text if len(text) <= 30 else f"{text[:30]}…"


# Cells -------------------------------------------------------------------------------------------


def _parsed(
    table: Table, texts: Sequence[int], numbers: Sequence[int]
) -> tuple[list[Texts], FloatArray]:
    """`Table.parse` of a table with samples."""
    pyarrow = need("files", "pyarrow")
    table.stream.seek(table.begin)
    if table.separator == " ":
        tabbed = io.BytesIO(_tabbed(table.stream.read().decode()))
        table = replace(table, stream=tabbed, begin=0, separator="\t")
    try:
        columns = _columns(table, texts, numbers, table.words)
    except pyarrow.ArrowInvalid as error:
        table.stream.seek(table.begin)
        content = table.stream.read()
        filled = BLANK.sub(b"", content)
        if len(filled) < len(content):
            return _parsed(replace(table, stream=io.BytesIO(filled), begin=0), texts, numbers)
        if found := search(r"Expected \d+ columns, got (\d+)", str(error)):
            raise table.changed(int(found[1])) from error
        # A cell is neither a number nor missing, such as TRUE and a blank.
        table.stream.seek(table.begin)
        columns = _columns(table, texts, numbers, frozenset(numbers))
    values = np.empty((len(columns[0]) if columns else 0, len(numbers)))
    for place, (k, column) in enumerate(zip(numbers, columns[len(texts) :], strict=True)):
        is_text = column.type == pyarrow.string()
        values[:, place] = _numbers(column, k, table) if is_text else column.to_numpy()
    return [column.to_pylist() for column in columns[: len(texts)]], values


def _tabbed(text: str) -> bytes:
    """A table separated by blanks as one that is separated by tabs."""
    rows = (_split(line, " ") for line in text.split("\n") if line.strip())
    if '"' not in text:
        return "\n".join(map("\t".join, rows)).encode()
    out = io.StringIO()
    csv.writer(out, delimiter="\t", lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def _columns(
    table: Table, texts: Sequence[int], numbers: Sequence[int], words: frozenset[int]
) -> list[Any]:
    """Columns as pyarrow's: ``texts`` and those in ``words`` as strings, ``numbers`` as numbers."""
    pyarrow = need("files", "pyarrow")
    reader = need("files", "pyarrow.csv")
    keys = [str(k) for k in range(table.width)]
    read = reader.read_csv(
        table.stream,
        read_options=reader.ReadOptions(column_names=keys, block_size=BLOCK),
        parse_options=reader.ParseOptions(delimiter=table.separator),
        convert_options=reader.ConvertOptions(
            column_types={
                **{keys[k]: pyarrow.float64() for k in numbers},
                **{keys[k]: pyarrow.string() for k in (*texts, *words)},
            },
            include_columns=[keys[k] for k in (*texts, *numbers)],
            null_values=MISSING,
            strings_can_be_null=True,
            decimal_point=table.decimal,
        ),
    )
    columns: list[Any] = read.columns
    return columns


def _numbers(cells: Any, k: int, table: Table) -> FloatArray:
    """The cells of column k, a pyarrow array of texts, as numbers."""
    pyarrow = need("files", "pyarrow")
    compute = need("files", "pyarrow.compute")
    cells = compute.utf8_trim_whitespace(cells.combine_chunks())
    nothing = pyarrow.scalar(None, pyarrow.string())
    cells = texts = compute.if_else(compute.is_in(cells, pyarrow.array(MISSING)), nothing, cells)
    if table.decimal != ".":
        # A point beside a decimal comma is no decimal mark.
        texts = compute.replace_substring(texts, ".", "_")
        texts = compute.replace_substring(texts, table.decimal, ".")
    for words, number in BOOLEANS:
        texts = compute.if_else(compute.is_in(texts, pyarrow.array(words)), number, texts)
    try:
        numbers = texts.cast(pyarrow.float64())
    except pyarrow.ArrowInvalid as error:
        wrong = compute.index(compute.match_substring_regex(texts, NUMBER), False).as_py()
        raise table.not_numeric(k, cells[wrong].as_py()) from error
    found: FloatArray = numbers.to_numpy(zero_copy_only=False)
    return found
