"""What the search loses without one of its heuristics.

``ORTHOBCD_DATA=<folder> python scripts/leave_one_out.py [--max-work 2] [--every 9] [--jobs 2]``
solves every ninth row of the validation list by a plan of short runs, longer runs of the best and
changes of the best point: with all heuristics that the default takes there, and without each of
them in turn. Work is counted, so that the figures do not depend on the load of the machine. The
table says for each heuristic on how many rows it found the returned point, on how many the search
is worse without it (by more than 1e-6, relative), the median and the largest loss there, and the
largest gain.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import orthobcd as ob

SAME = 1e-6


def rows(every: int) -> list[Any]:
    """The first row of the validation list and each ``every``-th row after it."""
    from orthobcd_bench.suites import SUITES

    return [row for table in SUITES["validation"].tables for row in table.rows][::every]


def plan(scratch: list[str], changes: list[str]) -> list[ob.Phase]:
    """Short runs, longer runs of the best, changes of the best point."""
    return [
        ob.Phase(scratch, share=0.25),
        ob.Phase(best=2, share=0.5),
        ob.Phase(changes, improve=True, share=1.0),
    ]


def measure(row: Any, folder: Path, work: float) -> tuple[str, str, dict[str, float]]:
    """What finds the point of a row, and the objective without each heuristic ("" for none)."""
    from orthobcd_bench.runner import Bench

    problem = Bench(folder).problem(row)

    def solved(scratch: list[str], changes: list[str]) -> Any:
        solver = ob.Auto(plan=plan(scratch, changes))
        return ob.solve(problem, solver=solver, max_work=work, seed=0, n_threads=1)

    default = ob.solve(problem, max_work=work, seed=0, n_threads=1)
    taken = [run for run in default.search.runs if run.heuristic not in ("polish", "given")]
    scratch = list(dict.fromkeys(run.heuristic for run in taken if not run.improve))
    changes = list(dict.fromkeys(run.heuristic for run in taken if run.improve)) or scratch
    whole = solved(scratch, changes)
    without = {"": float(whole.objective)}
    for name in dict.fromkeys([*scratch, *changes]):
        left = [[other for other in names if other != name] for names in (scratch, changes)]
        if all(left):
            without[name] = float(solved(*left).objective)
    return row.id, whole.strategy, without


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-work", type=float, default=2.0)
    parser.add_argument("--every", type=int, default=9)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    folder = Path(os.environ.get("ORTHOBCD_DATA", "../shared/data"))
    losses: dict[str, list[float]] = defaultdict(list)
    finders: dict[str, int] = defaultdict(int)
    with ProcessPoolExecutor(options.jobs) as pool:
        tasks = [pool.submit(measure, row, folder, options.max_work) for row in rows(options.every)]
        for task in tasks:
            label, finder, without = task.result()
            whole = without.pop("")
            finders[finder] += 1
            for name, objective in without.items():
                losses[name].append((objective - whole) / abs(whole))
            print(label, finder, {name: f"{losses[name][-1]:+.1e}" for name in without}, flush=True)
    print("\n| heuristic | rows | finds the point | worse without it | median | most | gain |")
    print("|---|---|---|---|---|---|---|")
    for name, values in sorted(losses.items(), key=lambda item: -max(item[1])):
        lost = [value for value in values if value > SAME]
        middle = statistics.median(lost) if lost else 0.0
        print(
            f"| {name} | {len(values)} | {finders[name]} | {len(lost)} | {middle:.1e} "
            f"| {max(values):.1e} | {max(0.0, -min(values)):.1e} |"
        )


if __name__ == "__main__":
    main()
