"""Mutants of the Rust crate: small changes of the code, each of which must fail a test.

``python benchmarks/scripts/rust_mutants.py --count 100`` (needs cargo, tree-sitter,
tree-sitter-rust and the environment of ``make test-python``) compiles one copy of the crate that
contains all mutants of `PARTS`. An environment variable switches one of them on. A mutant is
noticed if a test that reaches it fails, or takes much longer than without the mutant. The tests of
the crate run first, then those of the extension module. The script prints the score of each part
and the mutants that survive. ``--only PATH:LINE`` runs the mutants of some lines.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import importlib
import itertools
import json
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rust_switches import PARTS, RECORDING, Crate

PYTHON_TESTS = (
    "values invariants hyperbolic penalties layout properties rotations certify kinks bound search "
    "checkpoint progress interrupt laws reproducible newton path equal_problems rotation"
)
"""Tests of the extension module that run, the first case of each."""

LIBRARIES = ("hypothesis", "scipy.sparse.linalg", "sklearn.decomposition")
"""Libraries that the tests import."""

SLOWEST = 4.0
"""Seconds above which a test of the crate is left out."""

RECORDED = 30.0
"""Seconds above which a test of the crate is left out while it records what it reaches."""

PATIENCE = 5.0
"""A test fails after this multiple of its time without a mutant, plus a second."""

ENOUGH = 20.0
"""Seconds of tests of one kind that run for one mutant, the quickest first."""

MEMORY = 8 << 30
"""Largest address space of a test, in bytes."""


@dataclasses.dataclass(frozen=True)
class Test:
    """A test of the crate (binary and name), or of the extension module (name alone)."""

    command: tuple[str, ...]
    seconds: float = 0.0
    reached: frozenset[int] = frozenset()


def limited() -> None:
    """Limits the memory of a new process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def rust_passes(test: Test, seconds: float, **switches: str) -> bool:
    """Returns whether a test of the crate succeeds within some seconds."""
    process = subprocess.Popen(
        [test.command[0], "--exact", test.command[1], "--test-threads=1"],
        cwd=CRATE.folder,
        env={**CRATE.environment, **switches},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=limited,
    )
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False


def measured(test: Test) -> Test | None:
    """The test with its time and the mutants that it reaches; None if it fails or is slow."""
    binary = Path(test.command[0])
    path = CRATE.out / "reached" / f"{binary.name}.{test.command[1].replace(':', '.')}"
    if not path.exists() or path.stat().st_mtime < binary.stat().st_mtime:
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
        begun = time.monotonic()
        if not rust_passes(test, SLOWEST):
            return None
        seconds = time.monotonic() - begun
        found = {"MUTANT": str(RECORDING), "MUTANTS_REACHED": str(path)}
        passed = rust_passes(test, RECORDED, **found)
        path.write_text(f"{seconds} {path.read_text()}" if passed else "")
    first, *reached = path.read_text().split() or ["0"]
    known = dataclasses.replace(test, seconds=float(first), reached=frozenset(map(int, reached)))
    return known if known.seconds else None


NOTICED: Counter[tuple[str, ...]] = Counter()
"""Mutants that each test has noticed in this process: such tests run earlier."""


def reaching(number: int) -> list[Test]:
    """Tests of `ENOUGH` seconds that reach a mutant, the quickest and most successful first."""
    tests = [test for test in TESTS if number in test.reached]
    tests.sort(key=lambda test: test.seconds / (1 + NOTICED[test.command]))
    ends = itertools.accumulate(test.seconds for test in tests)
    count = sum(end < ENOUGH for end in ends)
    return tests[: max(1, count)]


def rust_survives(number: int) -> tuple[int, bool]:
    """Whether all tests of the crate that reach a mutant succeed with it."""
    for test in reaching(number):
        if not rust_passes(test, PATIENCE * test.seconds + 1, MUTANT=str(number)):
            NOTICED[test.command] += 1
            return number, False
    return number, True


class Recorder:
    """A plugin of pytest that notes the seconds of each test and the mutants that it reaches."""

    def __init__(self, library: ctypes.CDLL, path: Path) -> None:
        self.library, self.path = library, path
        self.found: dict[str, tuple[float, list[int]]] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        begun = time.monotonic()
        result = yield
        self.library.mutants_write()
        reached = [int(number) for number in self.path.read_text().split()]
        self.found[item.nodeid] = time.monotonic() - begun, reached
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= {report.nodeid} if report.failed else set()


def python_passes(names: list[str], seconds: float, switch: int, record: Path | None) -> bool:
    """Returns whether tests of the extension module succeed within some seconds, in a fork."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            os.setsid()
            limited()
            os.chdir(CRATE.folder)
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            os.environ["MUTANT"] = str(switch)
            library = ctypes.CDLL(str(CRATE.out / "package/orthobcd/_core.abi3.so"))
            library.mutants_switch(switch)
            options = ["-q", "--quick", "-p", "no:cacheprovider", "-m", "not timing and not long"]
            if record is None:
                options += ["-x", f"--timeout={seconds}", "--timeout-method=thread"]
            else:
                os.environ["MUTANTS_REACHED"] = f"{record}.one"
            recorder = Recorder(library, Path(f"{record}.one"))
            code = int(pytest.main([*options, *names], plugins=[recorder] if record else []))
            if record is not None:
                found = {k: v for k, v in recorder.found.items() if k not in recorder.failed}
                record.write_text(json.dumps(found))
        os._exit(code)
    until = time.monotonic() + seconds
    status = None
    while status is None and time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        status = status if ended else None
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
    return status == 0


def python_tests() -> list[Test]:
    """The tests of the extension module that succeed, with times and reached mutants."""
    names = [f"tests/python/test_{name}.py" for name in PYTHON_TESTS.split()]
    record = CRATE.out / "python.json"
    record.unlink(missing_ok=True)
    python_passes(names, 3600.0, RECORDING, record)
    found = json.loads(record.read_text())
    return [Test((name,), seconds, frozenset(ids)) for name, (seconds, ids) in found.items()]


def python_survives(number: int) -> tuple[int, bool]:
    """Whether the tests of the extension module that reach a mutant succeed with it."""
    tests = reaching(number)
    seconds = PATIENCE * sum(test.seconds for test in tests) + 10
    names = [test.command[0] for test in tests]
    return number, not names or python_passes(names, seconds, number, None)


def chosen(crate: Crate, options: argparse.Namespace) -> list[int]:
    """The numbers of the mutants that are tried."""
    numbers: list[int] = []
    for part in options.part.split(","):
        viable = [
            number
            for number, mutant in enumerate(crate.mutants, 1)
            if mutant.part == part and str(mutant) not in crate.not_viable
        ]
        if options.only:
            viable = [k for k in viable if str(crate.mutants[k - 1]).split("  ")[0] in options.only]
        elif options.count:
            random.Random(options.seed).shuffle(viable)
        numbers += viable[: options.count or None]
    return numbers


def survivors(survives: Callable[[int], tuple[int, bool]], numbers: list[int]) -> list[int]:
    """The mutants that all tests of one kind miss."""
    begun = time.monotonic()
    found = []
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for number, survived in pool.imap_unordered(survives, numbers):
            if survived:
                found.append(number)
                print(f"    {CRATE.mutants[number - 1]}", flush=True)
    name, minutes = survives.__name__, (time.monotonic() - begun) / 60
    print(f"{name}: {len(found)} of {len(numbers)}, {minutes:.0f} minutes", flush=True)
    return sorted(found)


def main() -> None:
    """Runs the sample and prints the score."""
    global CRATE, TESTS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--part", default=",".join(PARTS))
    parser.add_argument("--count", type=int, default=0, help="mutants of each part; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="PATH:LINE")
    parser.add_argument("--crate-only", action="store_true", help="no test of the extension module")
    parser.add_argument("--out", type=Path, default=Path("out/rust-mutants"))
    options = parser.parse_args()
    CRATE = Crate(options.out.resolve())
    tests = [Test(command) for command in CRATE.tests()]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        TESTS = [test for test in pool.map(measured, tests, chunksize=1) if test]
    seconds = sum(test.seconds for test in TESTS)
    print(f"{len(TESTS)} of {len(tests)} tests of the crate, {seconds:.0f} seconds", flush=True)
    sample = chosen(CRATE, options)
    survived = survivors(rust_survives, sample)
    reached = frozenset[int]().union(*(test.reached for test in TESTS))
    if survived and not options.crate_only:
        sys.path.insert(0, str(CRATE.package()))
        TESTS = python_tests()
        reached |= frozenset[int]().union(*(test.reached for test in TESTS))
        seconds = sum(test.seconds for test in TESTS)
        print(f"{len(TESTS)} tests of the extension module, {seconds:.0f} seconds", flush=True)
        survived = survivors(python_survives, survived)
    print("\n| part | mutants | not viable | tried | noticed |\n|---|---|---|---|---|")
    for part in options.part.split(","):
        total = [mutant for mutant in CRATE.mutants if mutant.part == part]
        not_viable = sum(str(mutant) in CRATE.not_viable for mutant in total)
        tried = [k for k in sample if CRATE.mutants[k - 1].part == part]
        left = [k for k in survived if CRATE.mutants[k - 1].part == part]
        share = f"{1 - len(left) / max(1, len(tried)):.1%}"
        score = f"{len(tried) - len(left)} ({share})"
        print(f"| {part} | {len(total)} | {not_viable} | {len(tried)} | {score} |")
    print()
    for k in survived:
        print(CRATE.mutants[k - 1], "" if k in reached else "  (not reached)")


CRATE: Crate
TESTS: list[Test] = []

if __name__ == "__main__":
    sys.dont_write_bytecode = True
    # The imports of the tests take seconds: they are done once, before the processes fork.
    for library in LIBRARIES:
        importlib.import_module(library)
    main()
