"""The laws of limits on nonzeros and features over a grid of sizes and kinds of data, as a table.

A row is a kind of data. Law 1 compares the variance of a fit with that of the best simple point of
``tests/python/problem_grid.py``, law 2 with that of a fit with a smaller limit. Columns are the
number of fits, the worst ratio of law 1, and the worst ratios of law 2 for a limit at least doubled
and one larger by one. Then come the numbers of fits below a simple point, below a limit at most
half as large, more than 1e-3 below a limit smaller by one, and of fits that raise. The last columns
are the most processor seconds of a fit and the worst excess over ``max_time``.

    python tools/quality/laws.py [--max-time S | --max-work W] [--sizes large] [--kinds counts]
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import orthobcd as ob

SIZES = {
    "small": [(5, 2, 1), (5, 3, 2), (2, 4, 1), (30, 10, 3), (10, 30, 3), (40, 40, 10)],
    "middle": [
        (100, 60, 20),
        (60, 150, 8),
        (50, 300, 5),
        (200, 120, 50),
        (10, 100, 10),
        (300, 450, 5),
    ],
    "large": [(700, 900, 20), (40, 2000, 30), (1500, 1200, 3), (5000, 700, 7), (300, 6000, 4)],
}
ROUNDING = 1e-9
CLOSE = 1e-3


def load_laws() -> Any:
    path = Path(__file__).parents[2] / "tests" / "python" / "problem_grid.py"
    spec = importlib.util.spec_from_file_location("laws", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["laws"] = module
    spec.loader.exec_module(module)
    return module


def limits_of(n: int, r: int, features: bool) -> list[int]:
    if features:
        return sorted({r, min(2 * r, n), max(r, n // 3), max(r, n // 2), max(r, n - 1), n})
    some = {r, 2 * r, 5 * r, n * r // 8, n * r // 4, n * r // 2, n * r - 1}
    return sorted({k for s in some for k in (s, s + 1) if r <= k < n * r} | {n * r})


class Row:
    """The figures of a kind of data."""

    def __init__(self) -> None:
        self.fits = self.raised = 0
        self.below = {"simple": 0, "half": 0, "one": 0}
        self.simple = self.doubled = self.one_more = np.inf
        self.seconds, self.excess = 0.0, -np.inf

    def show(self, name: str) -> str:
        numbers = f"{self.simple:.6f} | {self.doubled:.6f} | {self.one_more:.6f}"
        below = " | ".join(str(count) for count in self.below.values())
        late = f"{self.excess:.2f}" if self.excess > -np.inf else ""
        ends = f"{below} | {self.raised} | {self.seconds:.2f} | {late}"
        return f"| {name} | {self.fits} | {numbers} | {ends} |"


def measure(laws: Any, case: Any, row: Row, run: dict[str, Any], chosen: Any) -> None:
    A, data = case.centred(), case.data()
    if not A.any():
        return
    for features in (False, True):
        known: dict[int, float] = {}
        for count in limits_of(case.n, case.r, features):
            points = laws.by_rows if features else laws.by_count
            simple = max(laws.explained(A, X) for X in points(A, case.r, count))
            penalty = ob.RowSparse(count=count) if features else ob.Cardinality(count)
            problem = ob.SparsePCAProblem(data, case.r, penalty, center=True)
            row.fits += 1
            wall, used = time.perf_counter(), time.process_time()
            try:
                x = ob.solve(problem, n_threads=1, **run).x
            except Exception as error:
                row.raised += 1
                print(f"{case} {count}: {error!r}", file=sys.stderr)
                continue
            wall, used = time.perf_counter() - wall, time.process_time() - used
            value = laws.explained(A, x)
            row.seconds = max(row.seconds, used)
            row.excess = max(row.excess, wall - run.get("max_time", np.inf))
            row.simple = min(row.simple, value / simple)
            faults = {}
            if value < (1.0 - ROUNDING) * simple:
                faults["simple"] = f"{value / simple:.6f} of a simple point"
            for smaller, before in known.items():
                if 2 * smaller <= count:
                    row.doubled = min(row.doubled, value / before)
                    if value < (1.0 - ROUNDING) * before:
                        faults["half"] = f"{value / before:.6f} of limit {smaller}"
                if smaller + 1 == count:
                    row.one_more = min(row.one_more, value / before)
                    if value < (1.0 - CLOSE) * before:
                        faults["one"] = f"{value / before:.6f} of limit {smaller}"
            for law in faults:
                row.below[law] += 1
            known[count] = value
            if faults or chosen.show:
                what = "features" if features else "nonzeros"
                ends = f"{used:.2f} s of processor time, {wall:.2f} s"
                broken = ", ".join(faults.values())
                print(f"{case} {count} {what}: {broken}; {ends}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-time", type=float)
    parser.add_argument("--max-work", type=float)
    parser.add_argument("--sizes", default="small,middle", help="of small, middle, large")
    parser.add_argument("--show", action="store_true", help="a line of stderr for every fit")
    parser.add_argument("--kinds")
    chosen = parser.parse_args()
    laws = load_laws()
    limits = {"max_time": chosen.max_time, "max_work": chosen.max_work}
    run = {name: limit for name, limit in limits.items() if limit is not None}
    kinds = chosen.kinds.split(",") if chosen.kinds else laws.KINDS
    print("| data | fits | to a simple point | to half the limit | to one less ", end="")
    print("| below a simple point | below half the limit | more than 1e-3 below one less ", end="")
    print("| exceptions | most seconds | late |")
    print("|---" * 11 + "|")
    for kind in kinds:
        row = Row()
        for name in chosen.sizes.split(","):
            for size in SIZES[name]:
                measure(laws, laws.Case(kind, *size), row, run, chosen)
        print(row.show(kind), flush=True)


if __name__ == "__main__":
    main()
