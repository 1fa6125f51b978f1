"""Variance explained with a limit on the loadings of each component, beside published figures.

Run with ``ORTHOBCD_DATA=<folder> python scripts/budgets.py [--max-time SECONDS] [--seeds N]``;
prints the table of docs/results/loadings.md, with the mean processor seconds of a seed. Without
``--max-time`` a solve ends by itself. Data sets that are not in the folder are listed as absent.
Published figures are of msPCA (Cory-Wright and Pauphilet) and nsprcomp (Sigg and Buhmann, as the
authors of msPCA ran it), both only nearly orthonormal. ``scripts/peers.R`` runs these packages.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from pathlib import Path

import numpy as np

import orthobcd as ob

CASES: list[tuple[str, int, tuple[int, ...]]] = [
    ("pitprops", 6, (4,)),
    ("mtcars_corr", 3, (4,)),
    ("ionosphere_corr", 2, (5, 10, 20)),
    ("ionosphere_corr", 3, (5, 10, 20)),
    ("lung_corr", 2, (5, 10, 20)),
    ("lung_corr", 3, (5, 10, 20)),
    ("arrhythmia_corr", 2, (5, 10, 20)),
    ("arrhythmia_corr", 3, (5, 10, 20)),
    ("snp500", 4, (5, 10, 15, 20, 25, 30, 35)),
]
"""Data, components, loadings of each component."""

MSPCA = {
    ("pitprops", 4): 0.791,
    ("mtcars_corr", 4): 0.829,
    **{
        ("snp500", k): value
        for k, value in zip(
            (5, 10, 15, 20, 25, 30, 35),
            (0.0347, 0.0639, 0.0758, 0.0930, 0.0953, 0.1113, 0.1142),
            strict=True,
        )
    },
}
NSPRCOMP = {
    ("snp500", k): value
    for k, value in zip((5, 10, 15, 20), (0.0417, 0.0660, 0.0832, 0.0986), strict=True)
}
"""Published fractions of the variance."""


def figure(published: dict[tuple[str, int], float], case: tuple[str, int]) -> str:
    """A published figure, if there is one."""
    return f"{100 * published[case]:.2f}" if case in published else "–"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-time", type=float, default=None)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    folder = Path(os.environ.get("ORTHOBCD_DATA", "."))
    print(
        "| data | r | loadings each | ours, % (least, most) | msPCA, % | nsprcomp, % "
        "| ‖XᵀX − I‖ | seconds |"
    )
    print("|" + "---|" * 8)
    for name, r, budgets in CASES:
        path = folder / f"{name}.npz"
        if not path.exists():
            print(f"| {name} | {r} | | absent | | | | |")
            continue
        matrix = np.load(path)["R"]
        matrix = 0.5 * (matrix + matrix.T)
        smooth = ob.Quadratic(-matrix)
        for k in budgets:
            problem = ob.StiefelProblem(smooth, ob.Cardinality([min(k, len(matrix))] * r), r)
            limit = {} if options.max_time is None else {"max_time": options.max_time}
            effort = math.inf if limit else 1.0
            start = time.process_time()
            found = [
                ob.solve(problem, effort=effort, seed=seed, n_threads=1, **limit)
                for seed in range(options.seeds)
            ]
            seconds = (time.process_time() - start) / options.seeds
            shares = sorted(-200.0 * one.objective / np.trace(matrix) for one in found)
            gap = max(one.feasibility for one in found)
            print(
                f"| {name} | {r} | {k} | **{statistics.median(shares):.2f}** ({shares[0]:.2f}, "
                f"{shares[-1]:.2f}) | {figure(MSPCA, (name, k))} | {figure(NSPRCOMP, (name, k))} "
                f"| {gap:.1e} | {seconds:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
