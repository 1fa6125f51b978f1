"""Sweeps of tiles: microseconds of a pair by size, penalty and threads, and F after some sweeps.

The data are n/2 samples of normal numbers, and the start is random. C is stored (``--forms C``), or
the data are multiplied: dense (``A``) or with one entry in a hundred (``sparse``).
``python benchmarks/scripts/sweeps.py --sizes 1000 2000 --threads 1 2 --seeds 3`` prints medians
[smallest, largest] over seeds; the numbers of threads take turns, and their results must have the
same bits.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Callable

import numpy as np
import scipy.sparse

import orthobcd as ob

DENSITY = 0.01
PENALTIES: dict[str, Callable[[float], ob.Penalty]] = {
    "none": lambda _: ob.NoPenalty(),
    "l0": lambda samples: ob.L0(0.02 * samples),
    "l1": lambda samples: ob.L1(0.1 * samples),
    "mcp": lambda samples: ob.MCP(0.1 * samples, 2.0),
    "scad": lambda samples: ob.SCAD(0.1 * samples, 3.0),
}


def form(name: str, data: np.ndarray, rng: np.random.Generator) -> ob.Quadratic | ob.GramQuadratic:
    """The form -½‖AX‖² of the data."""
    if name == "C":
        return ob.Quadratic(-data.T @ data)
    if name == "sparse":
        kept = rng.random(data.shape) < DENSITY
        return ob.GramQuadratic(scipy.sparse.csc_array(data * kept), scale=-1.0)
    return ob.GramQuadratic(data, scale=-1.0)


def solver_of(update: str) -> ob.OBCD:
    """The solver of the name "tiles", or "jacobi-k" for blocks of k rows."""
    if update == "tiles":
        return ob.OBCD()
    return ob.OBCD(update="jacobi", block_size=int(update.removeprefix("jacobi-")))


def spread(values: list[float]) -> str:
    """Median [smallest, largest]."""
    return f"{statistics.median(values):.3g} [{min(values):.3g}, {max(values):.3g}]"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 2000])
    parser.add_argument("--components", type=int, nargs="+", default=[20])
    parser.add_argument("--penalties", nargs="+", default=["l0", "l1"], choices=PENALTIES)
    parser.add_argument("--forms", nargs="+", default=["C"], choices=["C", "A", "sparse"])
    parser.add_argument(
        "--updates", nargs="+", default=["tiles"], help="tiles, jacobi-2, jacobi-64"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sweeps", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    times = " | ".join(f"{threads} threads, µs a pair" for threads in options.threads)
    print(
        f"| n | r | form | penalty | update | {times} | ratio | F after {options.sweeps} sweeps |"
    )
    print("|---" * (7 + len(options.threads)) + "|")
    forms = itertools.product(options.sizes, options.components, options.forms)
    cases = itertools.product(forms, options.penalties, options.updates)
    for (n, r, kind), name, update in cases:
        micro: dict[int, list[float]] = {threads: [] for threads in options.threads}
        objectives = []
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            data = rng.standard_normal((n // 2, n))
            start = np.linalg.qr(rng.standard_normal((n, r)))[0]
            samples = n // 2 if kind != "sparse" else DENSITY * (n // 2)
            problem = ob.StiefelProblem(form(kind, data, rng), PENALTIES[name](samples), r)
            found = {}
            for threads in options.threads:
                found[threads] = ob.solve(
                    problem,
                    start,
                    solver=solver_of(update),
                    max_sweeps=options.sweeps,
                    tol=0.0,
                    n_threads=threads,
                )
                seconds = found[threads].history["seconds"]
                pairs = float(found[threads].history["n_iterations"][-1])
                micro[threads].append((seconds[-1] - seconds[0]) / pairs * 1e6)
            points = [one.x for one in found.values()]
            if not all(np.array_equal(points[0], point) for point in points):
                raise RuntimeError("the number of threads changed the result")
            objectives.append(found[options.threads[0]].objective)
        ends = (micro[options.threads[0]], micro[options.threads[-1]])
        ratios = [one / several for one, several in zip(*ends, strict=True)]
        cells = [spread(micro[threads]) for threads in options.threads]
        print(
            f"| {n} | {r} | {kind} | {name} | {update} | {' | '.join(cells)} | {spread(ratios)} | "
            f"{' '.join(f'{value:.6g}' for value in objectives)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
