"""Text tables of numbers, separated by commas, semicolons, tabs or blanks.

The first lines decide the separator, and whether there are a header and an index; `numpy.loadtxt`
parses the cells.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice
from typing import TypeAlias

import numpy as np

from .._internal.checks import FloatArray
from .._internal.reading import Source
from .errors import MissingValues, UnreadableFile, note
from .selection import Named, Selection

MISSING = {
    *("", "NA", "N/A", "na", "n/a", "<NA>", "#N/A", "#NA", "#N/A N/A", "NaN", "nan", "NAN", "-NaN"),
    *("-nan", "1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND", "null", "NULL", "None", "?", "."),
}
"""Cells that mean a missing value: those of pandas, R, SAS and spreadsheets."""

WORDS = {
    **dict.fromkeys(MISSING, np.nan),
    **dict.fromkeys(("TRUE", "True", "true"), 1.0),
    **dict.fromkeys(("FALSE", "False", "false"), 0.0),
}
"""Cells that are no numbers, and what they mean."""

NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.A | re.I)
"""Cells that are numbers; ``1_000`` and ``0x10`` are words."""

Readers: TypeAlias = dict[int | str, Callable[[str], float]]
"""Functions that read the cells of columns, by the index of the column."""

LINES = 20
"""Number of lines below the first that are compared with it."""

NEAR, NEAR_OF_TWO = 2.0, 10.0
"""Numbers are of the scale of a first line if they are within this factor of its smallest and its
largest magnitude; the second factor is for lines of two numbers, which always rise or fall."""

FEW = 0.05
"""Largest share of numbers of the scale of the first line below a header."""

CONSECUTIVE = 4
"""Least count of consecutive whole numbers that are a header; one less from 0 on."""

HEADER = "header=False (--no-header) reads it as a sample"
INDEX = "index=True or False (--index, --no-index) decides"
"""Ends of notes about what was taken for a header or an index."""


def read_table(source: Source, selection: Selection) -> Named:
    """Reads the numbers of a table, NaN for missing values, and the names in header and index."""
    path = source.path
    text = io.TextIOWrapper(source.stream, encoding="utf-8-sig")
    names, separator, lines = _layout(path, text, selection)
    first = next(lines, None)
    cells = names if first is None else _split(first, separator)
    width, index = len(cells), selection.index is True
    rows_named = first is not None and (
        index or first.lstrip().startswith('"') or value_of(cells[0], selection.decimal) is None
    )
    if names and len(names) == width - 1 and selection.index is not False and rows_named:
        # The table of R's write.table.
        names, index = ["", *names], True
        note(f"{path}: its header lacks one name: its first column is the index; {INDEX}")
    elif names and len(names) != width:
        raise UnreadableFile(
            f"{path}: its header has {len(names)} names for {width} columns; {INDEX}"
        )
    elif selection.index == "auto" and names and re.match(r"$|Unnamed:", names[0]):
        index = True
        note(f"{path}: its unnamed first column is the index of the rows; {INDEX}")
    begin = int(index)
    names, width = names[begin:], width - begin
    kept = selection.selected(names, width)
    chosen = list(range(width)) if kept is None else kept
    labels = [names[k] if names else str(k) for k in chosen]
    hint = "" if index else "; index=True (--index) leaves the first column out"

    def number(k: int, label: str, cell: str) -> float:
        if (found := value_of(cell := cell.strip(), selection.decimal)) is not None:
            return found
        end = "" if k else hint
        raise UnreadableFile(f"{path}: column {label!r} is not numeric: {cell!r}{end}")

    values, samples = np.zeros((0, len(chosen))), list[str]()
    if first is not None:
        columns = [k + begin for k in chosen]
        readers: Readers = {
            k + begin: partial(number, k, n) for k, n in zip(chosen, labels, strict=True)
        }
        others: Readers = dict.fromkeys({*range(width + begin)} - {*columns}, lambda cell: 0.0)
        # Most tables hold numbers alone, which NumPy reads without the functions.
        tries = [others, others | readers] if selection.decimal == "." else [others | readers]
        data = [first, *lines]
        values = _values(data, separator, tries).take(columns, axis=1)
        if index:
            samples = _first_cells(data, separator)
    gaps = np.isnan(values)
    if not selection.missing and gaps.any():
        k = int(gaps.any(axis=0).argmax())
        raise MissingValues(
            f"{path}: column {labels[k]!r} has {int(gaps[:, k].sum())} missing values, the "
            f"first in sample {int(gaps[:, k].argmax())}, counted from 0"
        )
    return Named(values, labels if names else [], samples)


def value_of(cell: str, decimal: str = ".") -> float | None:
    """The number in a cell, NaN for a missing value, 1 for TRUE and 0 for FALSE; None for words."""
    if cell in WORDS:
        return WORDS[cell]
    if decimal != ".":
        # A point beside a decimal comma is no decimal mark.
        cell = cell.replace(".", "_").replace(decimal, ".")
    return float(cell) if NUMBER.fullmatch(cell) else None


def _values(lines: list[str], separator: str, tries: list[Readers]) -> FloatArray:
    """The numbers of lines; cells that are more than numbers need the readers of the last try."""
    mark = None if separator == " " else separator
    for readers in tries:
        try:
            values: FloatArray = np.loadtxt(
                lines,
                comments=None,
                delimiter=mark,
                converters=readers,
                ndmin=2,
                encoding="utf-8",
                quotechar='"',
            )
            return values
        except ValueError as error:
            wrong = error
    raise wrong.__cause__ or ValueError(str(wrong).partition(";")[0])


def _first_cells(lines: list[str], separator: str) -> list[str]:
    """The first cell of each line."""
    mark = None if separator == " " else separator
    cells = np.loadtxt(
        lines, comments=None, delimiter=mark, usecols=0, dtype=object, ndmin=1, quotechar='"'
    )
    return [cell.strip() for cell in cells]


# Layout ------------------------------------------------------------------------------------------


def _layout(
    path: str, text: io.TextIOWrapper, selection: Selection
) -> tuple[list[str], str, Iterator[str]]:
    """The names in the header (empty without one), the separator, and the lines of samples."""
    decimal, lines = selection.decimal, _lines(text, selection.comment)
    said, first = "", next(lines, "")
    while selection.comment is None and first.startswith("#") and not first.startswith("#N"):
        said, first = first.lstrip("#"), next(lines, "")
    if not first and not said:
        raise UnreadableFile(f"{path}: has no data")
    below = list(islice(lines, LINES))
    rest = chain(below, lines)
    samples = chain([first] if first else [], rest)
    separator = _separator(first or said, (below or [first])[0], decimal)
    cells, *rows = [_split(line, separator) for line in (first, *below)]
    values, values_below = (
        [value_of(cell, decimal) is not None for cell in row]
        for row in (cells, (rows or [cells])[0])
    )
    is_words = not all(values)
    names = _split(said, separator)
    # Words in the same columns as in the next line, beside numbers, are a sample.
    is_sample = not is_words or (any(values) and values == values_below)
    fits = not first or (is_sample and len(names) == len(cells))
    if said and fits and selection.header is not False:
        # The header of numpy.savetxt.
        if separator == " ":
            note(f"{path}: its comment, {_start(said)}, is taken for a header; {HEADER}")
        return names, separator, samples
    if selection.header is True or (selection.header == "auto" and is_words):
        return cells, separator, rest
    if selection.header == "auto" and _are_names(first, below, cells, rows, decimal):
        note(f"{path}: its first line, {_start(first)}, is taken for a header; {HEADER}")
        return cells, separator, rest
    return [], separator, samples


def _are_names(
    first: str, below: list[str], cells: list[str], rows: list[list[str]], decimal: str
) -> bool:
    """True if a first line of numbers names the columns.

    Its cells are quoted, and those of the next line are not; its first cell is empty above an
    index; or its numbers are consecutive, or rise or fall and are of another scale than those
    below, and that is not true of the next line.
    """
    if not rows or len(rows[0]) < len(cells):
        return False
    if (quoted := 2 * len(cells)) <= first.count('"') and below[0].count('"') < quoted:
        return True
    index = [row[0] for row in rows]
    counted = any(index == [str(k + start) for k in range(len(index))] for start in (0, 1))
    if cells[0] == "" and (counted or None in (value_of(cell, decimal) for cell in index)):
        return True
    line, *others = [
        np.array([v for cell in row if (v := value_of(cell, decimal)) is not None])
        for row in (cells, *rows)
    ]
    least = CONSECUTIVE if line.size and line[0] != 0.0 else CONSECUTIVE - 1
    if _counts(line, least):
        return not _counts(others[0], CONSECUTIVE - 1)
    # In doubt the lines are alike: the next line has the laxer threshold.
    return _is_apart(line, others, FEW) and not _is_apart(others[0], others[1:], 2.0 * FEW)


def _counts(line: FloatArray, least: int) -> bool:
    """True for ``least`` or more consecutive whole numbers."""
    if len(line) < least or not line[0] >= 0.0:
        return False
    return line[0] % 1.0 == 0.0 and bool((np.diff(line) == 1.0).all())


def _is_apart(line: FloatArray, below: list[FloatArray], few: float) -> bool:
    """True if numbers rise or fall, and at most the share ``few`` below is of their scale."""
    steps, numbers = np.diff(line), np.abs(np.concatenate([[0.0], *below]))
    numbers = numbers[(numbers > 0.0) & (numbers < np.inf)]
    is_ordered = len(line) > 1 and bool((steps > 0.0).all() or (steps < 0.0).all())
    if not is_ordered or numbers.size == 0 or len(line) + len(below) < 4:
        return False
    sizes, factor = np.abs(line[line != 0.0]), NEAR if len(line) > 2 else NEAR_OF_TWO
    near = (numbers >= sizes.min() / factor) & (numbers <= sizes.max() * factor)
    return float(near.mean()) <= few


def _start(line: str) -> str:
    """The first characters of a line, for a note."""
    text = line.strip()
    return text if len(text) <= 30 else f"{text[:30]}…"


def _lines(text: io.TextIOWrapper, comment: str | None) -> Iterator[str]:
    """Lines that are not blank, up to the comment mark unless that is quoted."""
    for line in text:
        if comment is not None and comment in line:
            parts = line.split('"')
            marked = next((k for k in range(0, len(parts), 2) if comment in parts[k]), None)
            if marked is not None:
                line = '"'.join([*parts[:marked], parts[marked].split(comment)[0]]).rstrip()
        if line.strip():
            yield line


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
