"""Seconds that a unit of counted work takes, by heuristic and by kind of data.

``ORTHOBCD_DATA=<folder> OMP_NUM_THREADS=1 python scripts/work.py [--work 0.5] [--only NAME ...]``
runs every heuristic alone for ``--work`` units of counted work on one thread, and the searches
under a limit on nonzeros or features. The script prints processor seconds per unit, which should be
equal in all rows. The default work of a search is chosen by the largest value. Data sets that are
not in the folder are left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits

import orthobcd as ob
from orthobcd.solvers import Maker

COMPONENTS = 5

LEAST = 0.2
"""Smallest share of its work limit that a printed run has used; shorter runs are mostly set-up."""


def data(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yields names and matrices, for different ways to compute products with the matrix."""
    rng = np.random.default_rng(0)
    yield "digits, 64 features", load_digits().data.astype(float)
    yield "noise, 1000 features", rng.standard_normal((2000, 1000))
    yield "noise, 100 x 7000", rng.standard_normal((100, 7000))
    path = folder / "leukemia_golub.npz"
    if path.exists():
        genes = np.load(path)["X"].astype(float)
        yield "leukemia, scaled", (genes - genes.mean(axis=0)) / (genes.std(axis=0) + 1e-300)
    for name in ("reuters_t10", "news_t5"):
        path = folder / f"{name}.csr.npz"
        if path.exists():
            yield name, sp.load_npz(path).astype(float).tocsc()
    yield "sparse, 20,000 x 100,000", sp.random(20_000, 100_000, 1e-3, format="csc", random_state=0)


def runs(matrix: Any, work: float) -> Iterator[tuple[str, float, float]]:
    """Name, processor seconds and counted work of each run on one matrix."""
    plain = ob.SparsePCAProblem(matrix, COMPONENTS, ob.NoPenalty())
    least = [0.05 * ob.lam_max(matrix, COMPONENTS, name, center=False) for name in ("l0", "l1")]
    limits = (10 * COMPONENTS, matrix.shape[1] // 4 * COMPONENTS)
    penalties: dict[str, Any] = {
        "l0": ob.L0(least[0]),
        "l1": ob.L1(least[1]),
        "X >= 0": ob.NonNegative(),
        **{f"{limit} nonzeros": ob.Cardinality(limit) for limit in limits},
        "20 features": ob.RowSparse(count=20),
    }
    for name, penalty in penalties.items():
        problem = ob.StiefelProblem(plain.smooth, penalty, COMPONENTS)
        alone = () if isinstance(penalty, ob.Cardinality | ob.RowSparse) else get_args(Maker)
        for heuristic in (None, *alone):
            solver = None if heuristic is None else ob.Auto(makers=[heuristic])
            begun = time.process_time()
            try:
                result = ob.solve(problem, solver=solver, max_work=work, n_threads=1)
            except ValueError:
                # The heuristic does not fit the problem.
                continue
            yield f"{name}: {heuristic or 'search'}", time.process_time() - begun, result.work


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=float, default=0.5)
    parser.add_argument("--only", nargs="*", default=None)
    options = parser.parse_args()
    print("| data | run | work | seconds | seconds a unit |\n| --- | --- | --- | --- | --- |")
    units = []
    for name, matrix in data(Path(os.environ.get("ORTHOBCD_DATA", "."))):
        if options.only and not any(only in name for only in options.only):
            continue
        for run, seconds, work in runs(matrix, options.work):
            if work >= LEAST * options.work:
                units.append(seconds / work)
                row = f"{work:.2f} | {seconds:.2f} | {seconds / work:.2f}"
                print(f"| {name} | {run} | {row} |", flush=True)
    low, middle, high = min(units), statistics.median(units), max(units)
    print(f"\nMedian {middle:.2f}, from {low:.2f} to {high:.2f} in {len(units)} runs.")


if __name__ == "__main__":
    main()
