"""The figures that the papers print for available data sets, from ``published.csv``.

P1 is Yuan's OBCD paper (Table 1 and Tables 2–8). Of MNIST, CIFAR, TDT2 and 20News only lines at
10 s are here, those that are complete in the stored text of the paper. P2 is its second version
(Tables 1–3), P3 the JOBCD paper (HEVP, also CIFAR, MNIST and TDT2; Table 3, w1a and MNIST). P1
prints the best objective to two digits and the gaps above it; P2 and P3 print objectives. Of P2
Table 1 only the readable cells are here: OBCD-R, and all methods on w1a at λ = 10.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from .suites import Row


@dataclass(frozen=True)
class Published:
    """One line of a published table.

    Attributes
    ----------
    seconds : float
        The paper's time limit.
    f_min : float
        Objective of the paper's best method.
    gaps : dict of str to float
        Objective above ``f_min`` by column, ``"name@start"``.
    """

    seconds: float
    f_min: float
    gaps: dict[str, float]


@cache
def _lines() -> list[tuple[tuple[str, str, float, int], Published]]:
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    lines = []
    for line in csv.DictReader(text.splitlines()):
        cells = (cell.split("=") for cell in line["figures"].split())
        values = {name: float(value) for name, value in cells}
        least = float(line["f_min"]) if line["f_min"] else min(values.values())
        shift = 0.0 if line["f_min"] else least
        gaps = {name: value - shift for name, value in values.items()}
        key = (line["table"], line["data"], float(line["lam"]), int(line["r"]))
        lines.append((key, Published(float(line["seconds"]), least, gaps)))
    return lines


def published(table: str, row: Row, seconds: float) -> Published | None:
    """The published line of a row, at the time limit nearest to ``seconds``, if there is one."""
    key = (table, row.data, row.lam, row.r)
    found = [line for name, line in _lines() if name == key]
    return min(found, key=lambda line: abs(line.seconds - seconds), default=None)
