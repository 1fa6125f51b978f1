"""The command line of ``orthobcd bench``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .data import MissingDataError, check_available
from .report import write_all
from .runner import Bench, Store, Task, run_tasks
from .suites import SUITES, Row


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(
        prog="orthobcd bench",
        description="Reproduce the papers' comparisons, against every competitor. A run that was "
        "stopped goes on where it stopped when started again with the same --out.",
    )
    options.add_argument("--suite", choices=sorted(SUITES), default="quick")
    options.add_argument(
        "--data",
        type=Path,
        default=None,
        help="folder of the data files; rows without are left out",
    )
    options.add_argument(
        "--time", type=float, default=None, help="seconds per method and row (suite's own)"
    )
    options.add_argument("--seeds", type=int, default=1, help="number of seeds")
    options.add_argument(
        "--methods", nargs="+", default=None, metavar="NAME", help="only these (all)"
    )
    options.add_argument(
        "--rows", nargs="+", default=None, metavar="TEXT", help="only rows whose name has TEXT"
    )
    options.add_argument("--out", type=Path, default=Path("bench-results"), help="output folder")
    options.add_argument("--list", action="store_true", help="print the tasks and stop")
    return options


def run(argv: Sequence[str] | None = None) -> int:
    """Run the bench.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after ``orthobcd bench``; those of the process by default.

    Returns
    -------
    int
        0 when every task ran, 1 when some failed, 130 when interrupted.
    """
    chosen = parser().parse_args(argv)
    if chosen.time is not None and not chosen.time > 0.0:
        parser().error("--time must be positive")
    if chosen.seeds < 1:
        parser().error("--seeds must be at least 1")
    suite = SUITES[chosen.suite]
    seconds = suite.seconds if chosen.time is None else chosen.time
    folder = chosen.data if chosen.data is not None else _default_data()
    bench = Bench(folder)
    rows = [
        row
        for row in suite.rows
        if chosen.rows is None or any(text in row.id for text in chosen.rows)
    ]
    tasks = _tasks(bench, rows, chosen.methods, chosen.seeds, seconds)
    if chosen.methods is not None:
        unknown = set(chosen.methods) - {task.method for task in tasks}
        if unknown:
            parser().error(f"no row has the method(s) {', '.join(sorted(unknown))}")
    if chosen.list:
        for task in tasks:
            print(task.key)
        return 0
    store = Store(chosen.out)
    settings = {
        "suite": chosen.suite,
        "time": seconds,
        "seeds": chosen.seeds,
        "methods": chosen.methods,
        "data": None if folder is None else str(folder),
    }
    interrupted = False
    try:
        for record in run_tasks(bench, tasks, store, _say):
            if "error" in record:
                _say(f"  {record['error']}")
    except KeyboardInterrupt:
        interrupted = True
        _say("interrupted; run the same command again to go on")
    keys = {task.key for task in tasks}
    records = [record for key, record in store.records.items() if key in keys]
    for path in write_all(records, chosen.out, settings)[:3]:
        _say(f"wrote {path}")
    if interrupted:
        return 130
    return 1 if any("error" in record for record in records) else 0


def _tasks(
    bench: Bench, rows: list[Row], methods: list[str] | None, seeds: int, seconds: float
) -> list[Task]:
    tasks = []
    for row in rows:
        try:
            check_available(row.data, bench.folder)
        except MissingDataError as error:
            _say(f"left out {row.id}: {error}")
            continue
        tasks += [
            Task(row, method, seed, seconds)
            for seed in range(seeds)
            for method in bench.methods(row)
            if methods is None or method in methods
        ]
    return tasks


def _default_data() -> Path | None:
    for candidate in (Path("data"), Path("../shared/data")):
        if candidate.is_dir():
            return candidate
    return None


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
