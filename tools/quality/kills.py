"""Results of fits that are killed at random moments and called again, against uninterrupted fits.

``python tools/quality/kills.py --kills 50`` (needs the installed packages and scikit-learn) fits
every kind once without interruption. Then each kind is fitted ``--kills`` times from an empty
folder. Two processes in a row are killed with SIGKILL at a random moment of the time of the whole
fit, and a third process fits to the end. The table has the number of fits that end with the same
bits, and the number of remaining temporary files.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import orthobcd as ob
import orthobcd_bench.cli
from orthobcd.cli import main as main_of_orthobcd

RNG = np.random.default_rng(0)
A = RNG.standard_normal((80, 60)) * np.linspace(1.0, 3.0, 60)
SIGNS = np.where(np.arange(60) < 55, 1, -1)
EVERY = 0.05
"""Least seconds between two writes of a checkpoint."""

BENCH = ["--suite", "quick", "--methods", "obcd-tiled", "obcd-r", "--time", "60", "--rows"]
BENCH += ["randn-200-300-l0", "randn-200-300-nonneg"]
"""Options of the bench."""


def solved(problem: Any, path: Path, **options: Any) -> np.ndarray:
    """X of a solve with a checkpoint."""
    return ob.solve(problem, checkpoint=path, checkpoint_every=EVERY, **options).x


def stored(path: Path) -> Path:
    """A file of data beside ``path``."""
    data = path.with_name("data.npy")
    if not data.exists():
        part = data.with_name(f"{os.getpid()}.npy")
        np.save(part, np.tile(A, (100, 1)))
        part.replace(data)
    return data


def streamed(path: Path) -> np.ndarray:
    """Components of a memory map, read by blocks of rows."""
    pca = ob.SparsePCA(5, n_nonzero=60, random_state=0)
    data = np.load(stored(path), mmap_mode="r")
    return pca.fit(data, checkpoint=path, checkpoint_every=EVERY).components_


def commanded(path: Path) -> np.ndarray:
    """Components of the command line, which reads the file by blocks of rows."""
    out = path.with_name("out.npz")
    options = ["--max-memory", "1MB", "--checkpoint", str(path), "--checkpoint-every", str(EVERY)]
    command = ["sparse-pca", str(stored(path)), "-r", "5", "--n-nonzero", "60", *options]
    with contextlib.redirect_stdout(sys.stderr):
        code = main_of_orthobcd([*command, "--out", str(out), "--force"])
    assert code == 0, code
    return np.load(out)["components"]


def embedded(path: Path) -> np.ndarray:
    """Entities of a small knowledge graph after 300 epochs."""
    triples = np.random.default_rng(1).integers(0, 30, (200, 3)) % [30, 4, 30]
    model = ob.kg.UltraE(dim=8, max_epochs=300, n_threads=1)
    model.fit(triples, checkpoint=path)
    return model.entities_


def benched(path: Path) -> np.ndarray:
    """Objectives of a run of the bench, whose methods converge within their time."""
    with contextlib.redirect_stdout(sys.stderr):
        code = orthobcd_bench.cli.run([*BENCH, "--out", str(path)])
    assert code == 0, code
    lines = (path / "results.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return np.array([r["objective"] for r in sorted(records, key=lambda r: str(r["key"]))])


KINDS: dict[str, Callable[[Path], np.ndarray]] = {
    "l0": lambda path: solved(ob.SparsePCAProblem(A, 5, ob.L0(40.0)), path, max_work=1.5),
    "l1": lambda path: solved(ob.SparsePCAProblem(A, 5, ob.L1(20.0)), path, max_work=1.5),
    "nonzeros": lambda path: solved(
        ob.SparsePCAProblem(A, 5, ob.Cardinality(60)), path, max_work=2.0
    ),
    "rows": lambda path: solved(ob.SparsePCAProblem(A, 5, ob.RowSparse(15)), path, max_work=2.0),
    "mixed": lambda path: solved(
        ob.JOrthogonalProblem(ob.Quadratic(A.T @ A), SIGNS, ob.L1(2.0), 6), path, max_work=1.5
    ),
    "streamed": streamed,
    "command": commanded,
    "UltraE": embedded,
    "bench": benched,
}


def work(kind: str, path: Path) -> None:
    """Fits and prints a hash of the result."""
    print(hashlib.sha256(np.ascontiguousarray(KINDS[kind](path)).tobytes()).hexdigest())


def fit(kind: str, path: Path, delay: float | None = None) -> str:
    """The hash of a fit in a new process; empty if it was killed after ``delay`` seconds."""
    command = [sys.executable, __file__, "--work", kind, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        said, _ = process.communicate(timeout=delay)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return ""
    if process.returncode != 0:
        raise RuntimeError(f"{kind}: exit code {process.returncode}")
    return said.strip()


def main() -> None:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=50, help="fits of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        work(options.work[0], Path(options.work[1]))
        return
    moments = random.Random(options.seed)
    print(
        "| kind | seconds | fits | processes killed | killed with a file | same end | left over |"
    )
    print("|---|---|---|---|---|---|---|")
    for kind in options.kinds.split(","):
        with tempfile.TemporaryDirectory() as folder:
            begun = time.perf_counter()
            whole = fit(kind, Path(folder) / "fit.checkpoint")
            seconds = time.perf_counter() - begun
        killed = filed = same = left = 0
        for _ in range(options.kills):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "fit.checkpoint"
                for _ in range(2):
                    if not fit(kind, path, moments.uniform(0.0, seconds)):
                        killed += 1
                        filed += path.is_file() or (path / "results.jsonl").exists()
                same += fit(kind, path) == whole
                left += sum(name.endswith(".part") for name in os.listdir(folder))
        print(
            f"| {kind} | {seconds:.1f} | {options.kills} | {killed} | {filed} | {same} | {left} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
