"""Which cells of a table are values, and whether its first line is a header or its first column an
index.

A first line with a word is a header. A first line of numbers is a header if it counts in even steps
(k, k + 1, k + 2, …), or rises or falls above numbers of another scale, while the line below does
not; or if its cells are quoted while those below are not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .._internal.checks import FloatArray

MISSING = (
    *("", "NA", "N/A", "na", "n/a", "<NA>", "#N/A", "#NA", "#N/A N/A", "NaN", "nan", "NAN", "-NaN"),
    *("-nan", "1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND", "null", "NULL", "None", "?", "."),
)
"""Cells that mean a missing value: those of pandas, R, SAS and spreadsheets."""

BOOLEANS = ((("TRUE", "True", "true"), "1"), (("FALSE", "False", "false"), "0"))
"""Cells that mean 1, and those that mean 0."""

NUMBER = r"^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf|infinity|nan))$"
"""Cells that are numbers, as a regular expression; ``1_000`` and ``0x10`` are words."""

CONSECUTIVE = 4
"""Least count of consecutive whole numbers that are a header; one less from 0 on."""

EVENLY = 8
"""Least count of numbers in other even steps that are a header; by chance few rows are even."""

FACTOR, FACTOR_OF_TWO = 2.0, 10.0
"""Numbers are of the scale of a first line if they are within this factor of its smallest and its
largest magnitude; the second factor is for lines of two numbers, which always rise or fall."""

FEW = 0.05
"""Largest share of numbers of the scale of the first line below a header."""

EVEN = 0.02
"""Relative difference of steps that are even up to the rounding of written numbers."""

NONE, APART, EVEN_STEPS, COUNTED = range(4)
"""Orders of the numbers of a line, from the weakest to the strongest: none, rising or falling above
numbers of another scale, in even steps, and consecutive whole numbers."""


def is_value(cell: str, decimal: str = ".") -> bool:
    """True if a cell is a number, missing, or TRUE or FALSE."""
    is_word = cell in MISSING or any(cell in words for words, _ in BOOLEANS)
    return is_word or is_number(cell, decimal)


def is_number(cell: str, decimal: str) -> bool:
    """True if a cell is a number."""
    # A point beside a decimal comma is no decimal mark.
    text = cell if decimal == "." else cell.replace(".", "_").replace(decimal, ".")
    return re.match(NUMBER, text) is not None


def is_header(
    first: str, following: Sequence[str], cells: list[str], body: list[list[str]], decimal: str
) -> bool:
    """True if a first line of values names the columns.

    Parameters
    ----------
    first, following : str, sequence of str
        The line and those below.
    cells, body : list of str, list of list of str
        Their cells.
    decimal : {".", ","}
        Decimal mark.
    """
    quoted = 2 * len(cells)
    if following and first.count('"') >= quoted > following[0].count('"'):
        return True
    rows = [row for row in body if len(row) == len(cells)]
    start = 1 if cells[0] == "" and all(row[0] for row in rows) else 0
    if start and rows and names_rows(following, rows, decimal):
        return True
    names, *numbers = [_numbers(row[start:], decimal) for row in (cells, *rows)]
    # From 0 on fewer numbers are enough, as pandas counts; one above the index of the rows.
    least = CONSECUTIVE if names.size and names[0] != 0.0 else 1 if start else CONSECUTIVE - 1
    found = _order_of(names, numbers, least, FEW)
    # In doubt the lines are alike: the line below has the laxer thresholds.
    below = _order_of(numbers[0], numbers[1:], CONSECUTIVE - 1, 2.0 * FEW) if numbers else NONE
    return found > below


def _numbers(cells: Sequence[str], decimal: str) -> FloatArray:
    """The cells as numbers, NaN where a cell is not a number."""
    texts = [next((number for words, number in BOOLEANS if c in words), c) for c in cells]
    return np.array(
        [float(t.replace(decimal, ".")) if is_number(t, decimal) else np.nan for t in texts]
    )


def _order_of(line: FloatArray, below: list[FloatArray], least: int, few: float) -> int:
    """The order of a line: consecutive from ``least`` numbers on, even, apart, or none."""
    steps = np.diff(line)
    if len(line) >= least and line[0] >= 0.0 and line[0] % 1.0 == 0.0 and (steps == 1.0).all():
        return COUNTED
    if len(line) < 2 or not ((steps > 0.0).all() or (steps < 0.0).all()):
        return NONE
    if len(line) >= EVENLY and np.ptp(steps) <= EVEN * abs(steps.mean()):
        return EVEN_STEPS
    return APART if _is_apart(line, below, few) else NONE


def _is_apart(line: FloatArray, below: list[FloatArray], few: float) -> bool:
    """True if at most the share ``few`` of the numbers below are of the scale of a line."""
    sizes, others = np.abs(line[line != 0.0]), np.abs(np.concatenate([[0.0], *below]))
    others = others[(others > 0.0) & (others < np.inf)]
    factor = FACTOR if len(line) > 2 else FACTOR_OF_TWO
    near = (others >= sizes.min() / factor) & (others <= sizes.max() * factor)
    enough = others.size > 0 and (len(line) > 2 or len(below) > 1)
    return enough and float(near.mean()) <= few


def is_index(cells: Sequence[str | None], decimal: str) -> bool:
    """True if an unnamed column is a row index: distinct whole numbers, or words."""
    present = [cell for cell in cells if cell is not None]
    if re.fullmatch(r"(-?[0-9]+,)+", ",".join(present) + ","):
        return len(set(present)) == len(cells)
    return not all(is_value(cell, decimal) for cell in present)


def names_rows(following: Sequence[str], body: list[list[str]], decimal: str) -> bool:
    """True if the first cells of lines are names of rows: quoted, words, or counted from 0 or 1.

    False if all last cells are empty, because then the lines end with a separator.
    """
    if not any(row[-1] for row in body):
        return False
    cells = [row[0] for row in body]
    counted = any(cells == [str(k + start) for k in range(len(cells))] for start in (0, 1))
    quoted = all(line.lstrip().startswith('"') for line in following)
    return counted or quoted or not all(is_value(cell, decimal) for cell in cells)
