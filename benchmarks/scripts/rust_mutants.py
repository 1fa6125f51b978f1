"""Mutants of the Rust crate: small changes of the code, each of which must fail a test.

``python benchmarks/scripts/rust_mutants.py --count 100`` (needs cargo, tree-sitter and
tree-sitter-rust) compiles one copy of the crate that contains all mutants of `PARTS`. An
environment variable switches one of them on. A mutant is noticed if a test that reaches it fails,
or takes much longer than without the mutant. The script prints the score of each part and the
mutants that survive. ``--only PATH:LINE`` runs the mutants of some lines.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from rust_switches import PARTS, RECORDING, Crate

SLOWEST = 4.0
"""Seconds above which a test of the crate is left out."""

RECORDED = 30.0
"""Seconds above which a test of the crate is left out while it records what it reaches."""

PATIENCE = 5.0
"""A test fails after this multiple of its time without a mutant, plus a second."""

ENOUGH = 20.0
"""Seconds of tests that run for one mutant, the quickest first."""

MEMORY = 8 << 30
"""Largest address space of a test, in bytes."""


@dataclasses.dataclass(frozen=True)
class Test:
    """A test of the crate: binary and name, seconds, and the mutants that it reaches."""

    command: tuple[str, str]
    seconds: float = 0.0
    reached: frozenset[int] = frozenset()


def limited() -> None:
    """Limits the memory of a new process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def passes(test: Test, seconds: float, **switches: str) -> bool:
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
        if not passes(test, SLOWEST):
            return None
        seconds = time.monotonic() - begun
        found = {"MUTANT": str(RECORDING), "MUTANTS_REACHED": str(path)}
        passed = passes(test, RECORDED, **found)
        path.write_text(f"{seconds} {path.read_text()}" if passed else "")
    first, *reached = path.read_text().split() or ["0"]
    known = dataclasses.replace(test, seconds=float(first), reached=frozenset(map(int, reached)))
    return known if known.seconds else None


NOTICED: Counter[tuple[str, str]] = Counter()
"""Mutants that each test has noticed in this process: such tests run earlier."""


def reaching(number: int) -> list[Test]:
    """Tests of `ENOUGH` seconds that reach a mutant, the quickest and most successful first."""
    tests = [test for test in TESTS if number in test.reached]
    tests.sort(key=lambda test: test.seconds / (1 + NOTICED[test.command]))
    ends = itertools.accumulate(test.seconds for test in tests)
    count = sum(end < ENOUGH for end in ends)
    return tests[: max(1, count)]


def survives(number: int) -> tuple[int, bool]:
    """Whether all tests of the crate that reach a mutant succeed with it."""
    for test in reaching(number):
        if not passes(test, PATIENCE * test.seconds + 1, MUTANT=str(number)):
            NOTICED[test.command] += 1
            return number, False
    return number, True


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


def survivors(numbers: list[int], jobs: int) -> list[int]:
    """The mutants that all tests miss."""
    begun = time.monotonic()
    found = []
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for number, survived in pool.imap_unordered(survives, numbers):
            if survived:
                found.append(number)
                print(f"    {CRATE.mutants[number - 1]}", flush=True)
    minutes = (time.monotonic() - begun) / 60
    print(f"{len(found)} of {len(numbers)} survive, {minutes:.0f} minutes", flush=True)
    return sorted(found)


def main() -> None:
    """Runs the sample and prints the score."""
    global CRATE, TESTS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--part", default=",".join(PARTS))
    parser.add_argument("--count", type=int, default=0, help="mutants of each part; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="PATH:LINE")
    parser.add_argument("--jobs", type=int, default=2, help="tests that run at the same time")
    parser.add_argument("--out", type=Path, default=Path("out/rust-mutants"))
    options = parser.parse_args()
    CRATE = Crate(options.out.resolve())
    tests = [Test(command) for command in CRATE.tests()]
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        TESTS = [test for test in pool.map(measured, tests, chunksize=1) if test]
    seconds = sum(test.seconds for test in TESTS)
    print(f"{len(TESTS)} of {len(tests)} tests of the crate, {seconds:.0f} seconds", flush=True)
    sample = chosen(CRATE, options)
    survived = survivors(sample, options.jobs)
    reached = frozenset[int]().union(*(test.reached for test in TESTS))
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
    main()
