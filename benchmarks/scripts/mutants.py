"""Mutants of the Python package: small changes of the code, each of which must fail a test.

``python benchmarks/scripts/mutants.py --count 160`` (needs Python 3.11, the installed package, the
test dependencies and ``coverage``) takes a random sample of changes (a comparison, a constant, an
operator, a condition) in the modules of `PARTS`.

1. Each test that is not ``slow`` runs once. The file ``tests.json`` of ``--out`` has the lines of
   `PARTS` that the test executes, in its own process or in others, and the seconds that the test
   takes. A second run of the script measures only the tests of changed files.
2. For each mutant, a fork of this process replaces the code of the changed function, and runs the
   tests that execute the line until one fails, ``--seconds`` seconds in all: first those that have
   noticed mutants of the module, first cases before other cases, quick tests before slow ones. A
   change outside of functions needs new imports. Tests that start other processes find the changed
   module in a copy of the package.

The script prints the score by module, and the mutants that survive. The file ``mutants.jsonl`` of
``--out`` has all results. ``--only PATH:LINE`` runs the mutants of one line; ``--again`` runs those
that survived before.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import functools
import gc
import hashlib
import importlib
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mutant_changes import Mutant, inner_lines, mutants
from mutant_processes import INSTALLED, PYTEST, ROOT, Workplace, live_functions, measure

PARTS = ("_internal/checks.py", "_internal/reading.py", "certificate.py", "io", "sklearn")
"""Files or folders of the package."""

JOBS = 2
"""Processes that measure tests, or test mutants, at the same time."""

PATIENCE = 4.0
"""Time after which a mutant counts as detected, relative to the time of the unchanged tests."""

IMPORTS = 30.0
"""Seconds that are added to this time, for the imports of changed modules."""


class Run:
    """A plugin of pytest, which collects the tests and then tests mutants in place of them."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.places = [Workplace(folder / str(number)) for number in range(JOBS)]
        self.trees: dict[str, ast.Module] = {}
        self.mutants = list(mutants(INSTALLED, PARTS, self.trees))
        self.inside = {path: inner_lines(tree, path) for path, tree in self.trees.items()}
        self.tests: dict[str, pytest.Item] = {}
        self.known: dict[str, Any] = {}
        """What `measure` has found."""
        self.successes: collections.Counter[tuple[str, str]] = collections.Counter()
        """Number of mutants of a module that a test has noticed."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Called by pytest after it has imported and collected the tests."""
        for path in self.trees:
            module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            importlib.import_module(f"orthobcd.{module}")
        self.tests = {test.nodeid: test for test in session.items}
        self.live = live_functions()
        # The garbage collector of a fork would otherwise copy the memory of this process.
        gc.freeze()
        has_new = self.measure_tests(self.options.out / "tests.json")
        file = self.options.out / "mutants.jsonl"
        results = dict(map(json.loads, file.read_text().splitlines())) if file.exists() else {}
        for text, name in results.items():
            self.successes[text.partition(":")[0], name.rpartition("\n")[2]] += 1
        chosen = [one for one in self.mutants if one.part in self.options.parts.split(",")]
        random.Random(self.options.seed).shuffle(chosen)
        sample = chosen[: self.options.count]
        if self.options.only:
            sample = [one for one in chosen if one.text.startswith(f"{self.options.only}:")]
        elif self.options.again:
            sample = [one for one in chosen if results.get(one.text) == ""]
        counts: collections.Counter[tuple[str, bool]] = collections.Counter()
        again = self.options.only or self.options.again
        new = [one for one in sample if again or one.text not in results]
        same = next(iter(self.trees.values()))
        for mutant in {one.part: one for one in sample if has_new}.values():
            unchanged = Mutant(mutant.part, mutant.path, same, same, mutant.around[-1:])
            for _, found in self.outcomes([unchanged]):
                for name in found.split("\n"):
                    if name in self.known:
                        self.known[name]["passed"] = False
                        print(f"{name} fails after new imports", flush=True)
        with file.open("a", encoding="utf-8") as log:
            for mutant, found in self.outcomes(new):
                log.write(json.dumps([mutant.text, found]) + "\n")
                log.flush()
                results[mutant.text] = found
                self.successes[mutant.path, found.rpartition("\n")[2]] += 1
        for mutant in sample:
            counts[mutant.part, results[mutant.text] != ""] += 1
            if not results[mutant.text]:
                print(mutant.text)
        print(f"\n{len(self.mutants)} mutants\n\n| part | sample | noticed |\n|---|---|---|")
        for part in PARTS:
            noticed, survived = counts[part, True], counts[part, False]
            print(f"| `{part}` | {noticed + survived} | {noticed} |")
        noticed = sum(count for (_, found), count in counts.items() if found)
        print(f"| all | {counts.total()} | {noticed} ({noticed / max(1, counts.total()):.0%}) |")
        return True

    def measure_tests(self, file: Path) -> bool:
        """Fills ``self.known``, from ``file`` where the package and the tests are the same.

        True if a test is measured.
        """
        package = "".join(map(ast.unparse, self.trees.values()))
        texts = {test.path: package + test.path.read_text() for test in self.tests.values()}
        codes = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in texts.items()}
        code = {name: codes[test.path] for name, test in self.tests.items()}
        old = json.loads(file.read_text()) if file.exists() else {}
        self.known = {
            name: one for name, one in old.items() if name in code and one["code"] == code[name]
        }
        new = [test for name, test in self.tests.items() if name not in self.known]
        print(f"\n{len(self.known)} tests are known, {len(new)} are measured", flush=True)
        # The tests of a file stay together, since they share fixtures.
        waiting = [list(group) for _, group in itertools.groupby(new, lambda test: test.path)]
        free, running = list(self.places), dict[int, Workplace]()
        while waiting or running:
            if waiting and free:
                place = free.pop()
                running[place.fork(functools.partial(measure, waiting.pop(), self.inside))] = place
                continue
            child, status = os.wait()
            place = running.pop(child)
            free.append(place)
            if status:
                raise RuntimeError((place.files / "output").read_text())
            found = json.loads((place.files / "measured").read_text())
            for name, known in found.items():
                known["code"] = code[name]
                if not known["passed"]:
                    print(f"{name} fails without a change", flush=True)
            self.known |= found
            file.write_text(json.dumps({**old, **self.known}))
        return bool(new)

    def chosen_tests(self, mutant: Mutant) -> list[str]:
        """The tests that run for a mutant."""
        found: list[str] = []
        inside = self.inside[mutant.path]
        for around in (lines & inside for lines in mutant.around):
            found = found or [
                name
                for name, known in self.known.items()
                if known["passed"] and not around.isdisjoint(known["lines"].get(mutant.path, ()))
            ]
        seconds = {name: self.known[name]["seconds"] for name in found}
        cases: collections.Counter[str] = collections.Counter()
        order = {}
        for name in sorted(found, key=seconds.__getitem__):
            cases[name.partition("[")[0]] += 1
            weight = cases[name.partition("[")[0]] / (1 + self.successes[mutant.path, name])
            order[name] = seconds[name] * weight
        chosen = sorted(order, key=order.__getitem__)
        totals = itertools.accumulate(seconds[name] for name in chosen)
        return [
            name
            for name, total in zip(chosen, totals, strict=True)
            if total < self.options.seconds or name == chosen[0]
        ]

    def outcomes(self, chosen: list[Mutant]) -> Iterator[tuple[Mutant, str]]:
        """Mutants, in the order in which they end, and what notices them; "" if nothing does."""
        waiting, free = chosen[::-1], list(self.places)
        running: dict[int, tuple[Mutant, Workplace, float]] = {}
        while waiting or running:
            if waiting and free:
                mutant, place = waiting.pop(), free.pop()
                names = self.chosen_tests(mutant)
                tests = [self.tests[name] for name in sorted(names, key=names.index)]
                seconds = PATIENCE * sum(self.known[name]["seconds"] for name in names)
                child = place.test(mutant, self.trees[mutant.path], tests, self.live)
                running[child] = mutant, place, time.monotonic() + seconds + IMPORTS
                continue
            for child, (mutant, place, until) in list(running.items()):
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended or time.monotonic() > until:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child, signal.SIGKILL)
                    if not ended:
                        os.waitpid(child, 0)
                    place.restore(mutant)
                    free.append(place)
                    del running[child]
                    yield mutant, place.notice.read_text() if not ended or status else ""
            time.sleep(0.02)


def main() -> None:
    """Runs the sample and prints the score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=160)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--only", help="PATH:LINE")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--slow", action="store_true", help="with the tests marked slow")
    parser.add_argument("--out", type=Path, default=ROOT / "out/mutants")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    marks = "not timing and not long" + (" and not slow" if not options.slow else "")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(ROOT)
        pytest.main([*PYTEST, "-m", marks], plugins=[Run(options, Path(folder))])


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    main()
