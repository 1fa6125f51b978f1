"""Objectives that ``orthobcd.solve`` reaches without options, beside goals and competitors.

Run the script on an idle machine from the root of a checkout, with the data sets in
``../shared/data`` (or in the folder ``ORTHOBCD_DATA``)::

    OMP_NUM_THREADS=1 python scripts/optima.py --seeds 3 --only randn > optima.md

With ``--against DIR`` the script reads the results of ``orthobcd-bench --suite quality --out DIR``,
and compares the default solver with the best competitor, row by row.

A row is solved once per seed. The table has the worst, the median and the best objective, the
longest wall time, and the least processor time per second of a solve, which is below the number of
cores on a loaded machine.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import orthobcd as ob
from orthobcd_bench.data import load

ROOT = pathlib.Path(os.environ.get("ORTHOBCD_DATA", "../shared/data"))


TIE = 1e-6
"""Relative difference up to which two objectives count as equal."""


class Row(NamedTuple):
    """A problem, its time limit in seconds and the objective to reach."""

    data: str
    penalty: str
    r: int
    seconds: float
    goal: float


ROWS = [
    *(Row("w1a", f"l0 {lam}", r, 10, goal)
      for lam, r, goal in [(1, 20, -6550), (10, 20, -5430), (1, 50, -9400), (10, 50, -8230),
                           (1, 100, -12150), (10, 100, -10870)]),
    Row("randn-500-1000", "l0 10", 20, 30, -6950),
    Row("randn-500-1000", "l0 1", 20, 30, -17490),
    Row("randn-500-1000", "l1 1", 20, 30, -26026.9),
    Row("randn-500-1000", "l1 10", 20, 10, -21949.4),
    Row("randn-500-1000", "l1 100", 20, 10, -3842.4),
    Row("randn-500-1000", "nonnegative", 20, 10, -12100),
    Row("randn-500-1000", "nonnegative", 20, 30, -12160),
    Row("randn-500-1000", "l0 1", 20, 1, -17430),
    Row("randn-500-1000", "l0 10", 20, 1, -6880),
    Row("randn-500-1000", "l1 10", 20, 1, -21935),
    Row("mnist-test", "l0 rho 1e-2", 20, 30, -282000),
    Row("mnist-test", "l0 rho 1e-3", 20, 30, -328000),
    Row("mnist-test", "l0 rho 1e-4", 20, 30, -351200),
]  # fmt: skip


def problem(data: Any, row: Row) -> Any:
    kind, *rest = row.penalty.split()
    if kind == "nonnegative":
        return ob.NonnegativePCAProblem(data, row.r)
    lam = float(rest[-1])
    if rest[0] == "rho":
        lam *= float(np.square(data).sum(axis=0).max())
    return ob.SparsePCAProblem(data, row.r, {"l0": ob.L0, "l1": ob.L1}[kind](lam))


def measure(row: Row, data: Any, seed: int) -> tuple[float, float, float, str]:
    """Objective, seconds, processor seconds per second, and the run that found the point."""
    posed = problem(data, row)
    wall, cpu = time.perf_counter(), time.process_time()
    result = ob.solve(posed, max_time=row.seconds, effort=math.inf, seed=seed, n_threads=-1)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert result.feasibility < 1e-12, result.feasibility
    return result.objective, wall, cpu / wall, result.search.strategy


def against(folder: pathlib.Path) -> Iterator[str]:
    """The default solver and the best competitor of every row of a bench; all at equal time."""
    rows: dict[str, dict[str, float]] = {}
    for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines():
        task = json.loads(line)
        if task["objective"] is not None:
            rows.setdefault(task["row"], {})[task["method"]] = task["objective"]
    better = lost = 0
    yield "| row | auto | best competitor | its name | ours lower by |\n|---|---|---|---|---|"
    for name, found in rows.items():
        if "auto" not in found or len(found) == 1:
            continue
        ours = found.pop("auto")
        rival = min(found, key=found.__getitem__)
        gain = (found[rival] - ours) / abs(found[rival])
        better += gain > TIE
        lost += gain < -TIE
        mark = "**" if gain < -TIE else ""
        yield f"| {name} | {ours:.8g} | {found[rival]:.8g} | {rival} | {mark}{gain:+.1e}{mark} |"
    yield f"\n{better} better, {lost} worse by more than {TIE:g}, of {len(rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose 'data penalty seconds' contain this")
    parser.add_argument("--against", type=pathlib.Path, metavar="DIR")
    options = parser.parse_args()
    if options.against:
        print("\n".join(against(options.against)))
        return
    cores = len(os.sched_getaffinity(0))
    head = "data | penalty | r | T (s) | worst | median | best | goal | met | longest (s) | CPU/s"
    print(f"| {head} | found by |")
    print("|" + "---|" * 12)
    for row in ROWS:
        if options.only not in f"{row.data} {row.penalty} {row.seconds}":
            continue
        data = load(row.data, ROOT)
        runs = [measure(row, data, seed) for seed in range(options.seeds)]
        values = sorted((value for value, *_ in runs), reverse=True)
        how = ", ".join(sorted({name for *_, name in runs}))
        print(
            f"| {row.data} | {row.penalty} | {row.r} | {row.seconds:g} | {values[0]:.2f} "
            f"| {np.median(values):.2f} | {values[-1]:.2f} | {row.goal:g} "
            f"| {'yes' if values[0] <= row.goal else 'no'} "
            f"| {max(wall for _, wall, _, _ in runs):.1f} "
            f"| {min(share for _, _, share, _ in runs):.2f} of {cores} | {how} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
