"""Whole solves against the plain NumPy reference of the papers' method, side by side.

``python scripts/solve.py`` (needs the installed package and the tests' ``reference.py``) prints
microseconds per visited pair in the first sweep, for small dense problems and the same random
start. Columns are the tiled solver, our plain pairs, the reference, and the ratios: median
[smallest, largest] of five rounds.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import orthobcd as ob

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "python"))
import reference

ROUNDS = 5
REPEATS = 100
"""Number of timed sweeps of ours, each of which takes a fraction of a millisecond."""


def spread(values: list[float]) -> str:
    """Median, smallest and largest."""
    return f"{np.median(values):10.2f} [{min(values):.2f}, {max(values):.2f}]"


def main() -> None:
    """Print the table."""
    n, r = 24, 5
    A = np.random.default_rng(0).standard_normal((30, n))
    C = -A.T @ A
    x0 = np.linalg.qr(np.random.default_rng(1).standard_normal((n, r)))[0]
    pairs = n * (n - 1) // 2
    for kind, penalty in (("l0", ob.L0(1.0)), ("l1", ob.L1(1.0))):
        problem = ob.StiefelProblem(ob.Quadratic(C), penalty, r)
        figures: dict[str, list[float]] = {"tiled": [], "random": [], "reference": []}
        for _ in range(ROUNDS):
            for rule in ("tiled", "random"):
                seconds, visited = 0.0, 0
                for _ in range(REPEATS):
                    result = ob.solve(
                        problem,
                        x0,
                        solver=ob.OBCD(working_set=rule),
                        max_sweeps=1,
                        tol=0.0,
                        n_threads=1,
                    )
                    seconds += result.seconds - float(result.history["seconds"][0])
                    visited += result.n_iterations
                figures[rule].append(1e6 * seconds / visited)
            begun = time.perf_counter()
            reference.obcd(C, x0, kind, 1.0, sweeps=1)
            figures["reference"].append(1e6 * (time.perf_counter() - begun) / pairs)
        print(f"{kind}, n = {n}, r = {r} (microseconds per pair visited)")
        for name, values in figures.items():
            print(f"  {name:10} {spread(values)}")
        for rule in ("tiled", "random"):
            ratio = [a / b for a, b in zip(figures["reference"], figures[rule], strict=True)]
            print(f"  reference / {rule:8} {spread(ratio)}")


if __name__ == "__main__":
    main()
