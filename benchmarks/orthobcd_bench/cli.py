"""The command line ``orthobcd-bench``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .data import DATASETS, LISTS, ORIGINS, MissingDataError, check_available, dataset
from .environment import describe
from .report import Run, write_all, write_document
from .runner import Bench, Store, Task, custom_method, run_tasks
from .suites import SUITES, Row, Table, quality_of


def parser() -> argparse.ArgumentParser:
    """The parser of the options."""
    options = argparse.ArgumentParser(
        prog="orthobcd-bench",
        description="Reproduce the papers' comparisons, against every competitor. A run that was "
        "stopped goes on where it stopped when started again with the same options.",
    )
    options.add_argument("--suite", choices=sorted(SUITES), default="quick")
    options.add_argument(
        "--full",
        action="store_true",
        help="all data sets, sizes and methods of the suite, not its selection (paper: 15 hours)",
    )
    options.add_argument(
        "--data",
        action="append",
        metavar="WHAT",
        help="a folder with the files of the data sets (rows without are left out), or what to run "
        "the rows of the quality suite on: a file of your own, a name of --list-data, or "
        "training or validation; may be repeated",
    )
    options.add_argument("--list-data", action="store_true", help="print the data sets and stop")
    options.add_argument(
        "--method",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="one more competitor: function(problem, x0, *, max_time, seed) that returns an "
        "orthobcd.Result; may be repeated",
    )
    options.add_argument(
        "--time", type=float, metavar="S", help="seconds per method and row (the suite's own)"
    )
    options.add_argument(
        "--polish",
        type=float,
        metavar="S",
        help="seconds of the second method of a hybrid, after the whole time of the first (10 with "
        "--suite paper --full, as in the papers; otherwise 0: half of the time each)",
    )
    options.add_argument("--seeds", type=int, default=1, metavar="N", help="number of seeds (1)")
    options.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="tasks at a time, on cores of their own (1)",
    )
    options.add_argument("--methods", nargs="+", metavar="NAME", help="only these (all)")
    options.add_argument("--rows", nargs="+", metavar="TEXT", help="only rows whose id has TEXT")
    options.add_argument(
        "--out",
        type=Path,
        nargs="+",
        default=[Path("bench-results")],
        metavar="DIR",
        help="results; several only with --document",
    )
    options.add_argument("--list", action="store_true", help="print the tasks and stop")
    options.add_argument(
        "--document",
        type=Path,
        metavar="FILE",
        help="run nothing: make the reports in --out again, and one Markdown file of them all",
    )
    return options


def run(argv: Sequence[str] | None = None) -> int:
    """Run the bench.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after ``orthobcd-bench``; those of the process by default.

    Returns
    -------
    int
        0 if every task ran and every method left its start, 1 if not, 130 if interrupted.
    """
    options = parser()
    chosen = options.parse_args(argv)
    if chosen.time is not None and not chosen.time > 0.0:
        options.error("--time must be positive")
    if chosen.polish is not None and not chosen.polish >= 0.0:
        options.error("--polish must be at least 0")
    if chosen.seeds < 1:
        options.error("--seeds must be at least 1")
    if chosen.jobs < 1:
        options.error("--jobs must be at least 1")
    # The module of a user's method may be in the current folder.
    sys.path.insert(0, os.getcwd())
    if chosen.document is not None:
        return _document(options, chosen.out, chosen.document)
    if len(chosen.out) > 1:
        options.error("--out takes several folders only with --document")
    if chosen.list_data:
        return _list_data()
    folder, names = _data(options, chosen.data or [])
    for method in chosen.method:
        try:
            custom_method(method)
        except (ImportError, AttributeError, ValueError) as error:
            options.error(f"--method {method}: {error}")
    suite = SUITES[chosen.suite]
    seconds = suite.seconds if chosen.time is None else chosen.time
    usual = suite.polish if chosen.full else 0.0
    settings = {
        "suite": chosen.suite,
        "full": chosen.full,
        "time": seconds,
        "polish": usual if chosen.polish is None else chosen.polish,
        "seeds": chosen.seeds,
        "jobs": chosen.jobs,
        "methods": chosen.methods,
        "rows": chosen.rows,
        "data": names,
        "custom": chosen.method,
    }
    bench = Bench(folder)
    tasks = _tasks(bench, settings, folder)
    there = {task.method.partition("@")[0] for task in tasks}
    if unknown := set(chosen.methods or ()) - there:
        options.error(f"no row has the method(s) {', '.join(sorted(unknown))}")
    if chosen.list:
        for task in tasks:
            print(task.key)
        return 0
    out = chosen.out[0]
    store = Store(out)
    interrupted = False
    try:
        for _ in run_tasks(bench, tasks, store, _say, chosen.jobs):
            pass
    except KeyboardInterrupt:
        interrupted = True
        _say("interrupted; run the same command again to go on")
    finished = [store.records[task.key] for task in tasks if task.key in store.records]
    finished_run = Run(_tables(settings), finished, settings, describe())
    for path in write_all(finished_run, out)[:2]:
        _say(f"wrote {path}")
    if interrupted:
        return 130
    bad = [f"{record['key']}: {record['error']}" for record in finished if "error" in record]
    bad += [f"{row.id}: {label} never left its start" for row, label in finished_run.stuck()]
    for line in bad:
        _say(line)
    return 1 if bad else 0


def _tables(settings: dict[str, Any]) -> tuple[Table, ...]:
    if settings.get("data"):
        return quality_of(settings["data"])
    suite = SUITES[settings["suite"]]
    return suite.full if settings["full"] and suite.full else suite.tables


def _tasks(bench: Bench, settings: dict[str, Any], folder: Path | None) -> list[Task]:
    """The tasks that the options select, each once, sorted by problem."""
    tasks: dict[str, Task] = {}
    missing: dict[str, str] = {}
    for row in (row for table in _tables(settings) for row in table.rows):
        if settings["rows"] and not any(text in row.id for text in settings["rows"]):
            continue
        try:
            check_available(row.data, folder)
        except MissingDataError as error:
            missing[row.id] = str(error)
            continue
        for seed in range(settings["seeds"]):
            for method in [*bench.methods(row), *_own_methods(row, settings)]:
                if not settings["methods"] or method.partition("@")[0] in settings["methods"]:
                    polish = settings["polish"] if "+" in method.partition("@")[0] else 0.0
                    task = Task(row, method, seed, settings["time"], polish)
                    tasks.setdefault(task.key, task)
    for name, reason in missing.items():
        _say(f"left out {name}: {reason}")
    order = {
        name: place for place, name in enumerate(dict.fromkeys(t.row.id for t in tasks.values()))
    }
    return sorted(tasks.values(), key=lambda task: order[task.row.id])


def _own_methods(row: Row, settings: dict[str, Any]) -> list[str]:
    """The user's methods at every start of a row."""
    names = settings.get("custom") or ()
    return [f"{name}@{start}" for name in names for start in row.starts]


def _data(options: argparse.ArgumentParser, given: Sequence[str]) -> tuple[Path | None, list[str]]:
    """The folder of the data files, and the data sets that replace those of the suite."""
    folder = _default_data()
    names: list[str] = []
    for what in given:
        if Path(what).is_dir():
            folder = Path(what)
        elif what in LISTS:
            names += LISTS[what]
        else:
            try:
                dataset(what)
            except KeyError as error:
                options.error(f"--data: {error.args[0]}, a folder, training or validation")
            names.append(what)
    return folder, names


def _list_data() -> int:
    for title, names in LISTS.items():
        print(f"{title}:")
        for name in names:
            origin = ORIGINS[DATASETS[name].file] if name in DATASETS else "generated"
            print(f"  {name}: {dataset(name).description}; {origin}")
    return 0


def _document(options: argparse.ArgumentParser, folders: list[Path], path: Path) -> int:
    """Make the reports of finished runs again, and the document of them all."""
    runs = []
    for folder in folders:
        try:
            content = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        except OSError as error:
            options.error(f"--out: {error}")
        records = Store(folder).records
        settings, environment = content["settings"], content["environment"]
        finished = [records[result["key"]] for result in content["results"]]
        found = Run(_tables(settings), finished, settings, environment)
        write_all(found, folder)
        runs.append((folder, found))
    for written in write_document(runs, path):
        _say(f"wrote {written}")
    return 0


def _default_data() -> Path | None:
    for candidate in (Path("data"), Path("../shared/data")):
        if candidate.is_dir():
            return candidate
    return None


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
