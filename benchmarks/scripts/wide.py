"""A limit on the loadings of each component, thousands of features: beside plain competitors.

``ORTHOBCD_DATA=<folder> python scripts/wide.py [--seeds 3] [--only leukemia] [--kind total]``
prints the table of docs/results/wide.md. The competitors are truncated power iterations and forward
selection (`orthobcd_bench.baselines.limits`). Ours runs once with ``max_time`` of twice the seconds
of truncated power, and once without limits, on one thread; seconds are of the processor. Explained
variance is relative to that of truncated power: + is more.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import orthobcd as ob
from orthobcd_bench.baselines.limits import Covariance, forward_selection, truncated_power

FILES = {
    "leukemia": "leukemia_golub",
    "colon": "colon_alon",
    "yale32": "yale32",
    "snp500": "snp500",
    "arcene": "arcene",
}
COUNTS = (5, 10, 30, 100)
R = 5


def standardised(data: np.ndarray) -> np.ndarray:
    """Centred columns of unit deviation; constant ones stay zero."""
    centred = data - data.mean(axis=0)
    deviation = centred.std(axis=0)
    constant = deviation <= 1e-12 * np.abs(data).max(axis=0)
    return centred / np.where(constant, 1.0, deviation)


def data(folder: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Real data sets that are in the folder, noise, and planted components."""
    for name, stem in FILES.items():
        path = folder / f"{stem}.npz"
        if path.exists():
            with np.load(path) as file:
                key = "X" if "X" in file.files else file.files[0]
                yield name, standardised(np.asarray(file[key], float))
    rng = np.random.default_rng(0)
    yield "noise", standardised(rng.standard_normal((100, 3000)))
    places, axes = rng.permutation(4000), np.zeros((4000, R))
    for t in range(R):
        axes[places[10 * t : 10 * (t + 1)], t] = 10**-0.5
    scores = rng.standard_normal((60, R)) * np.linspace(3.0, 2.0, R)
    yield "planted", standardised(scores @ axes.T + rng.standard_normal((60, 4000)))


def timed(call: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    """The result of a call and its processor seconds."""
    begun = time.process_time()
    return call(), time.process_time() - begun


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--kind", choices=("each", "total"), default="each")
    options = parser.parse_args()
    print(
        "| data | k | power, f | power, s | forward | forward, s | ours, twice power's s "
        "| ours | ours, s |"
    )
    print("|" + "---|" * 9)
    for name, matrix in data(Path(os.environ.get("ORTHOBCD_DATA", "."))):
        if options.only not in name:
            continue
        p = Covariance(matrix)
        for k in COUNTS:
            counts = [k] * R

            def value(x: np.ndarray, matrix: np.ndarray = matrix) -> float:
                return -0.5 * float(np.sum((matrix @ x) ** 2))

            power, seconds = timed(lambda p=p, counts=counts: truncated_power(p, counts))
            base = value(power)
            grown, growing = timed(lambda p=p, counts=counts: forward_selection(p, counts, 5))
            limit = ob.Cardinality(counts if options.kind == "each" else sum(counts))
            problem = ob.StiefelProblem(ob.GramQuadratic(matrix), limit, R)
            short, whole, spent = [], [], []
            for seed in range(options.seeds):
                solved = ob.solve(problem, max_time=2.0 * seconds, seed=seed, n_threads=1)
                short.append(solved.objective / base - 1.0)
                found, own = timed(
                    lambda problem=problem, seed=seed: ob.solve(problem, seed=seed, n_threads=1).x
                )
                whole.append(value(found) / base - 1.0)
                spent.append(own)
            cells = [
                f"{value(grown) / base - 1.0:+.1e}",
                f"{growing:.2f}",
                f"{statistics.median(short):+.1e}",
                f"{statistics.median(whole):+.1e}",
                f"{statistics.median(spent):.1f}",
            ]
            print(
                f"| {name} | {k} | {base:.6g} | {seconds:.2f} | {' | '.join(cells)} |", flush=True
            )


if __name__ == "__main__":
    main()
