"""Seconds of sweeps of tiles until F is that of 50 sweeps: this version, or two against each other.

``python benchmarks/scripts/sweeps_to.py --save goals.json`` sweeps 50 times with one thread, writes
F and prints the seconds. ``--goals goals.json`` prints the seconds until F is that of the file; the
file may come from another version of the package. The start is the same random matrix. C is stored,
λ is ``--share`` times its largest diagonal entry (a hundredth of its root for l1), r = 20.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from pathlib import Path

import numpy as np

import orthobcd as ob
from orthobcd_bench import data

RANK = 20


def problem(name: str, penalty: str, share: float) -> tuple[ob.StiefelProblem, np.ndarray]:
    """The problem of a data set and its start."""
    A = data.load(name, Path(os.environ.get("ORTHOBCD_DATA", "../shared/data")))
    A = A.toarray() if hasattr(A, "toarray") else A
    C = -A.T @ A
    lam = share * float(-C.diagonal().min())
    h = ob.L0(lam) if penalty == "l0" else ob.L1(0.1 * lam)
    start = np.linalg.qr(np.random.default_rng(0).standard_normal((C.shape[0], RANK)))[0]
    return ob.StiefelProblem(ob.Quadratic(C), h, RANK), start


def swept(
    task: ob.StiefelProblem,
    start: np.ndarray,
    threads: int,
    *,
    max_sweeps: int | None = None,
    target: float | None = None,
) -> ob.Result:
    """The end of sweeps of tiles."""
    return ob.solve(
        task,
        start,
        solver=ob.OBCD(),
        n_threads=threads,
        max_time=120.0,
        max_sweeps=max_sweeps,
        target=target,
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    names = ["w1a", "mnist-test", "randn-1000-2000", "cifar-1000"]
    parser.add_argument("--data", nargs="+", default=names)
    parser.add_argument("--penalties", nargs="+", default=["l0", "l1"], choices=["l0", "l1"])
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--goals", type=Path)
    options = parser.parse_args()
    goals = json.loads(options.goals.read_text()) if options.goals else {}
    for name in options.data:
        for penalty in options.penalties:
            key = f"{name} {penalty}"
            task, start = problem(name, penalty, options.share)
            if key not in goals:
                goals[key] = swept(task, start, 1, max_sweeps=50).objective
            texts = []
            for threads in options.threads:
                runs = range(options.repeats)
                ends = [swept(task, start, threads, target=goals[key]) for _ in runs]
                reached = ends[0].status is ob.Status.TARGET
                seconds = [end.seconds for end in ends]
                text = f"{statistics.median(seconds):.3f} [{min(seconds):.3f}, {max(seconds):.3f}]"
                texts.append(text if reached else f"{ends[0].status.name} {ends[0].objective:.8g}")
            print(f"| {key} | {goals[key]:.8g} | {' | '.join(texts)} |", flush=True)
    if options.save:
        options.save.write_text(json.dumps(goals))


if __name__ == "__main__":
    main()
