"""Text tables of numbers, with or without header, separated by commas, semicolons, tabs or blanks.

Pyarrow's CSV reader parses tables of up to `WIDE` columns. The reader needs about 10 kB of memory
per column and block; wider tables are parsed by rows, with memory proportional to the file size.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .._internal.checks import FloatArray, is_number
from .._internal.extras import need
from .._internal.reading import Source
from .errors import MissingValues, UnreadableFile, note
from .selection import Selection

MISSING = ("", "NA", "N/A", "na", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "?")
"""Cells that mean a missing value."""

WIDE = 4096
"""Largest number of columns that pyarrow's CSV reader parses."""

BLOCK = 1 << 23
"""Bytes of a table that are parsed at once."""

BOM = b"\xef\xbb\xbf"
"""UTF-8 byte order mark, which some programs write at the beginning of a text."""

Texts = list[str | None]
"""The cells of a column as text, None where a value is missing."""

Parser = Callable[[Sequence[int], Sequence[int]], tuple[list[Texts], FloatArray]]
"""Reads the columns in its first argument as texts and those in its second as numbers."""


def read_table(source: Source, selection: Selection) -> tuple[FloatArray, list[str]]:
    """Reads the numbers of a table, NaN for missing values, and the names in its header.

    Raises
    ------
    UnreadableFile
        If the table has no data, a column is not numeric, or the number of columns changes.
    MissingValues
        If a value is missing and ``selection.missing`` is False.
    """
    path, stream = source.path, source.stream
    lines = _lines(stream)
    begin, first = next(lines, (0, ""))
    after, second = next(lines, (0, ""))
    if not first:
        raise UnreadableFile(f"{path}: has no data")
    separator = _separator(first.lstrip("#"), selection.decimal)
    cells, following = (_split(line.lstrip("#"), separator) for line in (first, second))
    header = _is_header(path, first, second, cells, following, selection.decimal)
    if header and following and len(cells) != len(following):
        raise UnreadableFile(
            f"{path}: its header has {len(cells)} names for {len(following)} columns"
        )
    width, head = len(cells), cells if header else []
    if header and not second:
        return np.zeros((0, width)), head

    def parse(texts: Sequence[int], numbers: Sequence[int]) -> tuple[list[Texts], FloatArray]:
        stream.seek(after if header else begin)
        by_row = width > WIDE or separator == " "
        parser = _parse_by_row if by_row else _parse_by_column
        return parser(source, texts, numbers, width, separator, head, selection.decimal)

    values, names = _chosen(path, head, width, parse, selection)
    gaps = np.isnan(values)
    if not selection.missing and gaps.any():
        k = int(gaps.any(axis=0).argmax())
        label = names[k] if names else str(k)
        raise MissingValues(
            f"{path}: column {label!r} has {int(gaps[:, k].sum())} missing values, the first in "
            f"sample {int(gaps[:, k].argmax())}, counted from 0"
        )
    return values, names


def _chosen(
    path: str, names: list[str], width: int, parse: Parser, selection: Selection
) -> tuple[FloatArray, list[str]]:
    """The selected columns and their names, without a column that is the row index."""
    unnamed = bool(names) and (names[0] == "" or names[0].startswith("Unnamed:"))
    if not unnamed:
        kept = selection.kept(names, width)
        _, values = parse([], range(width) if kept is None else kept)
        return values, names if kept is None else [names[k] for k in kept if names]
    selected = selection.columns is not None or selection.drop is not None
    # The cells of the first column decide whether it is a feature.
    (written,), values = parse([0], [] if selected else range(1, width))
    first = 1 if _is_index(written) else 0
    if first:
        note(f"{path}: its unnamed first column is the index of the rows and left out")
    else:
        note(f"{path}: its unnamed first column holds numbers and is taken for a feature")
    names = names[first:]
    if selected:
        kept = selection.kept(names, width - first) or []
        return parse([], [k + first for k in kept])[1], [names[k] for k in kept]
    return values if first else np.column_stack([parse([], [0])[1], values]), names


# Header ------------------------------------------------------------------------------------------


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


def _separator(line: str, decimal: str) -> str:
    """The separator of the cells of a line: comma, semicolon, tab or blanks."""
    best = max(",;\t".replace(decimal, ""), key=line.count)
    return best if best in line else " "


def _split(line: str, separator: str) -> list[str]:
    if separator == " ":
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]


def _is_header(
    path: str, first: str, second: str, cells: list[str], following: list[str], decimal: str
) -> bool:
    """True if the first line names the columns."""
    if not all(is_number(cell.replace(decimal, ".")) or cell in MISSING for cell in cells):
        return True
    # Numbers are names if they are quoted, or consecutive while those of the next line are not.
    counted = [part[1:] if cells[0] == "" else part for part in (cells, following)]
    counts = _rises_by_one(counted[0]) and not _rises_by_one(counted[1])
    header = ('"' in first and '"' not in second) or counts
    if header:
        note(f"{path}: its first line, {first.strip()[:30]}, is taken for a header")
    return header


def _rises_by_one(cells: Sequence[str]) -> bool:
    """True if the cells are k, k + 1, k + 2, …, like column numbers or years."""
    if len(cells) < (3 if cells[:1] == ["0"] else 4) or not all(
        re.fullmatch(r"\d+", cell) for cell in cells
    ):
        return False
    return all(int(b) == int(a) + 1 for a, b in itertools.pairwise(cells))


def _is_index(cells: Texts) -> bool:
    """True if an unnamed column is a row index: distinct whole numbers, or words."""
    if all(cell is not None and re.fullmatch(r"-?\d+", cell) for cell in cells):
        return len(set(cells)) == len(cells)
    return not all(cell is None or is_number(cell) for cell in cells)


# Cells -------------------------------------------------------------------------------------------


def _parse_by_column(
    source: Source,
    texts: Sequence[int],
    numbers: Sequence[int],
    width: int,
    separator: str,
    names: Sequence[str],
    decimal: str,
) -> tuple[list[Texts], FloatArray]:
    """`Parser` by pyarrow's reader of CSV files."""
    pyarrow = need("files", "pyarrow")
    reader = need("files", "pyarrow.csv")
    keys = [str(k) for k in range(width)]
    types = {str(k): pyarrow.float64() for k in numbers}
    types |= {str(k): pyarrow.string() for k in texts}
    try:
        table = reader.read_csv(
            source.stream,
            read_options=reader.ReadOptions(column_names=keys, block_size=BLOCK),
            parse_options=reader.ParseOptions(delimiter=separator),
            convert_options=reader.ConvertOptions(
                column_types=types,
                include_columns=[keys[k] for k in (*texts, *numbers)],
                null_values=MISSING,
                strings_can_be_null=True,
                decimal_point=decimal,
            ),
        )
    except pyarrow.ArrowInvalid as error:
        raise UnreadableFile(f"{source.path}: {_reason(str(error), names)}") from error
    values = np.empty((table.num_rows, len(numbers)))
    for k, column in enumerate(table.columns[len(texts) :]):
        values[:, k] = column.to_numpy()
    return [column.to_pylist() for column in table.columns[: len(texts)]], values


def _reason(error: str, names: Sequence[str]) -> str:
    """One line for the user from an error message of pyarrow."""
    if found := re.search(r"column #(\d+).*invalid value '(.*)'", error, re.DOTALL):
        return _not_numeric(int(found[1]), found[2], names)
    if found := re.search(r"Expected (\d+) columns, got (\d+)", error):
        return _changed(int(found[1]), int(found[2]))
    return " ".join(error.split())


def _not_numeric(k: int, cell: str, names: Sequence[str]) -> str:
    return f"column {names[k] if names else str(k)!r} is not numeric: {cell!r}"


def _changed(before: int, after: int) -> str:
    return f"the number of columns changed from {before} to {after}"


def _parse_by_row(
    source: Source,
    texts: Sequence[int],
    numbers: Sequence[int],
    width: int,
    separator: str,
    names: Sequence[str],
    decimal: str,
) -> tuple[list[Texts], FloatArray]:
    """`Parser` by blocks of rows; its memory does not depend on the number of columns."""
    pyarrow = need("files", "pyarrow")
    compute = need("files", "pyarrow.compute")
    missing, nothing = pyarrow.array(MISSING), pyarrow.scalar(None, pyarrow.string())
    written: list[Texts] = [[] for _ in texts]
    parts = [np.zeros((0, len(numbers)))]
    for lines in iter(lambda: source.stream.readlines(BLOCK), []):
        rows = [row for line in lines if (row := line.decode().strip("\r\n"))]
        cells = _cells(rows, separator)
        lengths = compute.list_value_length(cells).to_numpy()
        if (lengths != width).any():
            changed = _changed(width, int(lengths[(lengths != width).argmax()]))
            raise UnreadableFile(f"{source.path}: {changed}")
        flat = compute.utf8_trim_whitespace(cells.flatten())
        flat = compute.if_else(compute.is_in(flat, value_set=missing), nothing, flat)
        starts = width * np.arange(len(rows))
        for own, k in zip(written, texts, strict=True):
            own += flat.take(pyarrow.array(starts + k)).to_pylist()
        chosen = (starts[:, np.newaxis] + np.asarray(numbers, dtype=np.int64)).ravel()
        chosen_cells = flat if len(chosen) == len(flat) else flat.take(pyarrow.array(chosen))
        if decimal != ".":
            chosen_cells = compute.replace_substring(chosen_cells, decimal, ".")
        try:
            block = chosen_cells.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        except pyarrow.ArrowInvalid as error:
            found = re.search(r"string: '(.*)' as", str(error), re.DOTALL)
            cell = found[1] if found else ""
            k = numbers[chosen_cells.to_pylist().index(cell) % len(numbers)]
            raise UnreadableFile(f"{source.path}: {_not_numeric(k, cell, names)}") from error
        parts.append(block.reshape(len(rows), len(numbers)))
    return written, np.concatenate(parts)


def _cells(rows: list[str], separator: str) -> Any:
    """The cells of rows as a pyarrow array of lists."""
    pyarrow = need("files", "pyarrow")
    compute = need("files", "pyarrow.compute")
    if any('"' in row for row in rows):
        split = csv.reader(rows, delimiter=separator, skipinitialspace=separator == " ")
        return pyarrow.array(list(split), pyarrow.list_(pyarrow.string()))
    text = pyarrow.array(rows, pyarrow.string())
    if separator == " ":
        return compute.utf8_split_whitespace(compute.utf8_trim_whitespace(text))
    return compute.split_pattern(text, separator)
