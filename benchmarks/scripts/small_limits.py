"""Default fits with limits on nonzeros for at most 300 features: objective and processor seconds.

``python benchmarks/scripts/small_limits.py > lines.jsonl`` prints a line of JSON for each of 243
fits: data, features, components, nonzeros, objective, seconds and status. With two files of such
lines, ``--compare before.jsonl after.jsonl`` prints how many fits end higher and lower, and the
seconds. ``--max-time`` limits each fit.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from objective_changes import SAME, pairs, relative


def data() -> Iterator[tuple[str, Any]]:
    """Noise, factors and decaying columns of six sizes, and three data sets of scikit-learn."""
    from sklearn import datasets

    for n, samples in ((20, 3), (40, 8), (60, 200), (90, 30), (150, 100), (300, 200)):
        rng = np.random.default_rng(n + samples)
        yield f"noise-{n}", rng.standard_normal((3 * samples, n))
        factors = rng.standard_normal((3 * samples, 5)) @ rng.standard_normal((5, n))
        yield f"factors-{n}", factors + 0.3 * rng.standard_normal((3 * samples, n))
        decay = np.arange(1, n + 1) ** -0.7
        yield f"decay-{n}", rng.standard_normal((2 * samples, n)) * decay
    for name in ("wine", "breast_cancer", "digits"):
        matrix = getattr(datasets, f"load_{name}")().data
        centred = matrix - matrix.mean(axis=0)
        scale = matrix.std(axis=0)
        yield name, centred / np.where(scale > 0, scale, 1.0)


def fit(max_time: float | None) -> None:
    """Prints a line of JSON for each fit."""
    import orthobcd as ob

    warnings.simplefilter("ignore")
    for name, matrix in data():
        n = matrix.shape[1]
        for r in (1, 3, 6, 12):
            if r > min(matrix.shape):
                continue
            for share in (0.06, 0.2, 0.5):
                limit = max(r, int(n * r * share))
                problem = ob.SparsePCAProblem(matrix, r, ob.Cardinality(limit))
                begun = time.process_time()
                how = {} if max_time is None else {"max_time": max_time, "effort": math.inf}
                found = ob.solve(problem, n_threads=1, seed=0, **how)
                seconds = time.process_time() - begun
                row = [name, n, r, limit, found.objective, seconds, found.status.name]
                print(json.dumps(row), flush=True)


def compare(before: Path, after: Path) -> None:
    """Prints how the fits of two files differ."""
    found = pairs(before, after, 4)
    changes = np.array([relative(first[4], second[4]) for first, second in found])
    print(f"{len(found)} fits, {(changes > SAME).sum()} higher, {(changes < -SAME).sum()} lower")
    features = np.array([first[1] for first, _ in found])
    seconds = [np.array([pair[k][5] for pair in found]) for k in (0, 1)]
    for label, rows in (("at most 100", features <= 100), ("more than 100", features > 100)):
        medians = [np.median(some[rows]) for some in seconds]
        means = [some[rows].mean() for some in seconds]
        own = changes[rows]
        print(f"{label} features: mean change {own.mean():+.1e}, worst {own.max():+.1e}; ", end="")
        print(f"median s {medians[0]:.2f} -> {medians[1]:.2f}, ", end="")
        print(f"mean {means[0]:.2f} -> {means[1]:.2f}")


def main() -> None:
    """Fits, or compares two files of fits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--max-time", type=float)
    options = parser.parse_args()
    if options.compare:
        compare(*options.compare)
    else:
        fit(options.max_time)


if __name__ == "__main__":
    main()
