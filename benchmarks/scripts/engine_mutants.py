"""Mutants of blocks, certificates and limits: tests of the crate or the wheel must notice them.

``python benchmarks/scripts/engine_mutants.py --count 30`` (needs cargo, `cargo-mutants
<https://mutants.rs>`_ for the list of changes, and the environment of ``make test-python``) applies
a random sample of the changes in each part of `PARTS` to a copy of the crate, one after the other.
A change is noticed if a unit test of the crate fails, or a test of the extension module that is
built from the copy (``--quick``: the first case of each test). Both builds are incremental and
little optimised, as optimised ones take minutes for a change of what the pair solvers inline.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

PARTS = {
    "block": (
        ("block.rs", "block/**"),
        "values invariants hyperbolic penalties layout properties rotations certify",
    ),
    "certificate": (
        ("certificate/*.rs",),
        "certify kinks bound search properties penalties hyperbolic",
    ),
    "bound": (("certificate/bound/**",), "bound certify"),
    "run": (
        ("limits.rs", *(f"solver/{name}.rs" for name in ("ledger", "limits", "monitor"))),
        "checkpoint progress interrupt invariants laws search reproducible ctrl_c",
    ),
}
"""Files below src whose code is changed, and the Python tests that run."""

SECONDS = 300.0
"""Time after which the tests of the crate, or those of the wheel, count as failed."""


def copied(out: Path) -> Path:
    """A copy of the tracked files."""
    crate = out / "crate"
    shutil.rmtree(crate, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    for name in listed.stdout.split("\n")[:-1]:
        (crate / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, crate / name)
    return crate


def changes(crate: Path, files: tuple[str, ...]) -> list[dict[str, Any]]:
    """All changes of some files."""
    command = ["cargo", "mutants", "--list", "--json"]
    for name in files:
        command += ["--file", f"src/{name}"]
    found = subprocess.run(command, cwd=crate, capture_output=True, text=True, check=True)
    listed: list[dict[str, Any]] = json.loads(found.stdout)
    return listed


def changed(text: str, change: dict[str, Any]) -> str:
    """The text of a file after a change."""
    lines = text.split("\n")
    first, last = change["span"]["start"], change["span"]["end"]
    head = lines[first["line"] - 1][: first["column"] - 1]
    tail = lines[last["line"] - 1][last["column"] - 1 :]
    new = (head + change["replacement"] + tail).split("\n")
    return "\n".join([*lines[: first["line"] - 1], *new, *lines[last["line"] :]])


class Runner:
    """Builds and tests the copy of the crate."""

    def __init__(self, crate: Path, package: Path) -> None:
        self.crate, self.package = crate, package
        self.environment = {
            **os.environ,
            "CARGO_TARGET_DIR": str(crate.parent / "target"),
            "CARGO_INCREMENTAL": "1",
            "CARGO_PROFILE_DEV_OPT_LEVEL": "1",
            "CARGO_PROFILE_TEST_OPT_LEVEL": "1",
            "CARGO_PROFILE_DEV_DEBUG": "0",
            "CARGO_PROFILE_TEST_DEBUG": "0",
            "PYO3_PYTHON": sys.executable,
            "PROPTEST_CASES": "16",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(package),
        }

    def run(self, command: list[str], seconds: float | None = None) -> bool:
        """Returns whether a command succeeds within some seconds."""
        null = subprocess.DEVNULL
        process = subprocess.Popen(
            command,
            cwd=self.crate,
            env=self.environment,
            stdout=null,
            stderr=null,
            start_new_session=True,
        )
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False

    def build(self) -> bool:
        """Builds the unit tests of the crate; returns whether it compiles."""
        return self.run(["cargo", "test", "--locked", "--lib", "--no-run"])

    def passes(self, tests: str) -> bool:
        """Returns whether the tests of the crate, and those of the wheel, succeed."""
        if not self.run(["cargo", "test", "--locked", "--lib", "--quiet"], SECONDS):
            return False
        if not self.run(["cargo", "build", "--locked", "--lib", "--features", "python"]):
            return False
        library = self.crate.parent / "target/debug/liborthobcd.so"
        shutil.copy(library, self.package / "orthobcd/_core.abi3.so")
        files = [f"tests/python/test_{name}.py" for name in tests.split()]
        options = ["-x", "-q", "--quick", "-m", "not timing and not long", *files]
        return self.run([sys.executable, "-P", "-m", "pytest", *options], SECONDS)


def main() -> int:
    """Run the sample."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--count", type=int, default=30, help="changes of each part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="PATH:LINE: the changes of this line alone")
    parser.add_argument("--out", type=Path, default=Path("out/engine-mutants"))
    options = parser.parse_args()
    out = options.out.resolve()
    crate = copied(out)
    package = out / "package"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "python/orthobcd", package / "orthobcd")
    runner = Runner(crate, package)
    for part in options.parts.split(","):
        files, tests = PARTS[part]
        listed = changes(crate, files)
        random.Random(options.seed).shuffle(listed)
        if options.only:
            line = "{file}:{span[start][line]}".format_map
            listed = [one for one in listed if line(one) == options.only]
        if not (runner.build() and runner.passes(tests)):
            raise SystemExit(f"{part}: the unchanged crate fails its tests")
        counts = Counter(changes=len(listed))
        for one in listed[: options.count]:
            path = crate / one["file"]
            text = path.read_text(encoding="utf-8")
            path.write_text(changed(text, one), encoding="utf-8")
            if not runner.build():
                outcome = "does not compile"
            else:
                outcome = "survived" if runner.passes(tests) else "noticed"
            path.write_text(text, encoding="utf-8")
            counts[outcome] += 1
            print(f"{outcome}: {one['name']}", flush=True)
        print(f"{part}: {dict(counts)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
