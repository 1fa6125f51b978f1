"""A table of figures that a change of the code must not make worse, before and after the change.

``ORTHOBCD_DATA=<folder> python scripts/fence.py --before PYTHON --after PYTHON [--seeds 3]
[--parts NAME ...] [--quick]`` takes two interpreters, each with its own build of `orthobcd` (and
`orthobcd_bench`). For each part and each seed both builds run at the same time, on one thread each,
so that other load of the machine affects both. Objectives (the lower the better) are compared
relative to their size, processor seconds by their ratio. A row is marked if the median after is
worse than the median before by more than both spreads over the seeds. All parts take less than 40
minutes on two cores; ``--quick`` takes a ninth of the rows of the validation list.

Parts: ``pairs`` (microseconds of a pair by penalty), ``validation`` (a third of the validation list
with 1, 5 and 10 s), ``limits`` (nonzeros per component, without time limits), ``defaults`` (default
fits), ``bounds``, ``functions`` (smooth and with l1), ``hyperbolic``, ``graph`` (an epoch of
UltraE).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
from default_fits import DATA, FITS  # noqa: E402

import orthobcd as ob  # noqa: E402

VALIDATION_SECONDS = (1.0, 5.0, 10.0)

ROUNDING = 1e-9
"""Relative difference up to which two objectives count as equal."""


class Figure(NamedTuple):
    """One row of one seed: an objective, or processor seconds."""

    row: str
    kind: str
    value: float


def spent(call: Callable[[], Any]) -> tuple[Any, float]:
    """The value that a call returns, and its processor seconds."""
    begun = time.process_time()
    found = call()
    return found, time.process_time() - begun


def pairs(seed: int, _: argparse.Namespace) -> Iterator[Figure]:
    """Microseconds of a pair in two sweeps from a random orthonormal start."""
    rng = np.random.default_rng(seed)
    penalties: dict[str, ob.Penalty] = {
        "l0": ob.L0(1.0),
        "l0 weights": ob.L0(np.full((400, 20), 1.0)),
        "l1": ob.L1(1.0),
        "X >= 0": ob.NonNegative(),
        "box": ob.Box(-0.5, 0.5),
        "mcp": ob.MCP(1.0, 2.0),
        "scad": ob.SCAD(1.0, 3.0),
        "l0 + l1": ob.L0(1.0) + ob.L1(1.0),
    }
    for n, r in ((200, 5), (400, 20)):
        data = rng.standard_normal((2 * n, n))
        start = np.linalg.qr(rng.standard_normal((n, r)))[0]
        for name, penalty in penalties.items():
            if name == "l0 weights" and (n, r) != (400, 20):
                continue
            problem = ob.SparsePCAProblem(data, r, penalty)
            x0 = start
            if name in ("X >= 0", "box"):
                x0 = np.zeros((n, r))
                x0[np.arange(n), np.arange(n) % r] = np.sqrt(r / n)
            options = {"solver": ob.OBCD(), "max_sweeps": 2, "n_threads": 1}
            _, seconds = spent(lambda p=problem, x=x0, o=options: ob.solve(p, x, **o))
            yield Figure(f"pair: {name}, n = {n}, r = {r}, µs", "time", seconds / (n * n) * 1e6)


def validation(seed: int, options: argparse.Namespace) -> Iterator[Figure]:
    """Objectives of the default search with limits on time."""
    from orthobcd_bench.runner import Bench
    from orthobcd_bench.suites import SUITES

    bench, every = Bench(options.data), 27 if options.quick else 3
    for row in [row for table in SUITES["validation"].tables for row in table.rows][::every]:
        problem = bench.problem(row)
        for seconds in VALIDATION_SECONDS:
            found = ob.solve(problem, max_time=seconds, effort=math.inf, seed=seed, n_threads=1)
            yield Figure(f"{row.id}, {seconds:g} s", "objective", found.objective)


def limits(seed: int, options: argparse.Namespace) -> Iterator[Figure]:
    """Limits on nonzeros and on features of correlation matrices, without other limits."""
    for name, counts in (
        ("pitprops", (4,)),
        ("ionosphere_corr", (5, 20)),
        ("lung_corr", (5, 20)),
        ("arrhythmia_corr", (5, 20)),
        ("snp500", (5, 20)),
    ):
        path = options.data / f"{name}.npz"
        if not path.exists():
            continue
        C = np.load(path)["R"].astype(float)
        for count in counts:
            for kind, limit in (
                ("each", ob.Cardinality([count] * 3)),
                ("in all", ob.Cardinality(3 * count)),
                ("features", ob.RowSparse(count=count)),
            ):
                problem = ob.StiefelProblem(ob.Quadratic(-C), limit, 3)
                found, seconds = spent(lambda p=problem: ob.solve(p, seed=seed, n_threads=1))
                label = f"{name}, {count} {kind}"
                yield Figure(label, "objective", found.objective)
                yield Figure(f"{label}, s", "time", seconds)


def defaults(seed: int, options: argparse.Namespace) -> Iterator[Figure]:
    """Estimators without limits, five components, on the data sets that are in the folder."""
    for name in ("digits", "breast-cancer", "leukemia", "reuters_t10"):
        try:
            data = DATA[name].read(options.data)
        except FileNotFoundError:
            continue
        for fit, make in FITS.items():
            model = make(5, scale=DATA[name].scale, random_state=seed)
            fitted, seconds = spent(lambda m=model, X=data: m.fit(X))
            yield Figure(f"{name}, {fit}", "objective", fitted.result_.objective)
            yield Figure(f"{name}, {fit}, s", "time", seconds)


def bounds(seed: int, options: argparse.Namespace) -> Iterator[Figure]:
    """Lower bounds (the higher the better: shown with the other sign) and their seconds."""
    rng = np.random.default_rng(seed)
    for n, r, count in ((13, 2, 6), (30, 3, 12), (80, 2, 10)):
        C = np.corrcoef((rng.standard_normal((3 * n, 4)) @ rng.standard_normal((4, n))
                         + rng.standard_normal((3 * n, n))).T)  # fmt: skip
        problem = ob.StiefelProblem(ob.Quadratic(-C), ob.Cardinality(count), r)
        point = ob.solve(problem, max_work=0.1, seed=0, n_threads=1)
        found, seconds = spent(
            lambda p=problem, x=point.x: ob.certify(p, x, bound=True, max_time=20.0, n_threads=1)
        )
        label = f"bound, n = {n}, r = {r}, {count} nonzeros"
        yield Figure(label, "objective", -found.lower_bound)
        yield Figure(f"{label}, s", "time", seconds)


def functions(seed: int, _: argparse.Namespace) -> Iterator[Figure]:
    """A smooth function that is not quadratic, alone and with l1."""
    rng = np.random.default_rng(seed)
    n, r = 200, 5
    A = rng.standard_normal((300, n)) * (rng.random((300, n)) < 0.2)

    def quartic(x: np.ndarray) -> tuple[float, np.ndarray]:
        y = A @ x
        return -0.25 * float(np.sum(y**4)) / 300, -(A.T @ y**3) / 300

    for name, penalty in (("none", ob.NoPenalty()), ("l1", ob.L1(0.05)), ("l0", ob.L0(0.05))):
        problem = ob.StiefelProblem(ob.SmoothFunction(quartic, n), penalty, r)
        for label, solver in (("default", None), ("OBCD", ob.OBCD())):
            found, seconds = spent(
                lambda p=problem, s=solver: ob.solve(p, solver=s, max_time=3.0, seed=seed,
                                                     n_threads=1)
            )  # fmt: skip
            yield Figure(f"quartic, {name}, {label}", "objective", found.objective)
            yield Figure(f"quartic, {name}, {label}, s", "time", seconds)


def hyperbolic(seed: int, _: argparse.Namespace) -> Iterator[Figure]:
    """Hyperbolic eigenvalue problems, and mixed signs with penalties."""
    rng = np.random.default_rng(seed)
    for n, p in ((30, 10), (200, 100)):
        data = rng.standard_normal((2 * n, n))
        signature = np.where(np.arange(n) < p, 1.0, -1.0)
        problem = ob.HyperbolicEigenvalueProblem(data, signature)
        found, seconds = spent(
            lambda q=problem: ob.solve(q, max_time=4.0, effort=math.inf, seed=seed, n_threads=1)
        )
        yield Figure(f"hyperbolic eigenvalues, n = {n}", "objective", found.objective)
        yield Figure(f"hyperbolic eigenvalues, n = {n}, s", "time", seconds)
    n = 40
    signature = np.where(np.arange(n) < 20, 1.0, -1.0)
    data = rng.standard_normal((80, n))
    for name, penalty in (("l1", ob.L1(1.0)), ("l0", ob.L0(1.0))):
        mixed = ob.JOrthogonalProblem(ob.Quadratic(data.T @ data), signature, penalty)
        found, _ = spent(
            lambda q=mixed: ob.solve(q, max_time=3.0, effort=math.inf, seed=seed, n_threads=1)
        )
        yield Figure(f"mixed signs, {name}, n = {n}", "objective", found.objective)


def graph(seed: int, _: argparse.Namespace) -> Iterator[Figure]:
    """An epoch of a knowledge graph of random triples."""
    rng = np.random.default_rng(seed)
    triples = np.column_stack([rng.integers(0, size, 20_000) for size in (2000, 11, 2000)])
    model = ob.kg.UltraE(2000, 11, dim=32, max_epochs=2, seed=seed)
    _, seconds = spent(lambda: model.fit(triples))
    yield Figure("UltraE, 20,000 triples, s an epoch", "time", seconds / 2)


PARTS: dict[str, Callable[[int, argparse.Namespace], Iterator[Figure]]] = {
    "pairs": pairs,
    "validation": validation,
    "limits": limits,
    "defaults": defaults,
    "bounds": bounds,
    "functions": functions,
    "hyperbolic": hyperbolic,
    "graph": graph,
}


def measure(options: argparse.Namespace, part: str, seed: int) -> list[dict[str, Figure]]:
    """The figures of one part, before and after, measured at the same time."""
    command = ["--part", part, "--seed", str(seed), "--data", str(options.data)]
    command += ["--quick"] if options.quick else []
    running = [
        subprocess.Popen([python, __file__, *command], stdout=subprocess.PIPE, text=True, cwd="/")
        for python in (options.before, options.after)
    ]
    found = []
    for process in running:
        out, _ = process.communicate()
        if process.returncode != 0:
            raise SystemExit(f"{part}: {process.args[0]} ended with {process.returncode}")
        figures = [Figure(*json.loads(line)) for line in out.splitlines()]
        found.append({figure.row: figure for figure in figures})
    return found


def worse(kind: str, before: list[float], after: list[float]) -> tuple[str, bool]:
    """The change of the median, and whether the median is worse by more than the spreads."""
    first, second = statistics.median(before), statistics.median(after)
    spread = max(max(values) - min(values) for values in (before, after))
    if kind == "time":
        shown = f"× {second / first:.2f}"
    else:
        size = max(abs(first), abs(second), np.finfo(float).tiny)
        shown = f"{(second - first) / size:+.1e}"
        spread = max(spread, ROUNDING * size)
    return shown, second - first > spread


def main() -> None:
    """Measure a part, or measure both builds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before")
    parser.add_argument("--after")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("ORTHOBCD_DATA", "../shared/data"))
    )
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.data = options.data.resolve()
    if options.part:
        for figure in PARTS[options.part](options.seed, options):
            print(json.dumps(figure), flush=True)
        return
    if not (options.before and options.after):
        parser.error("--before and --after are the interpreters to compare")
    begun, marked = time.monotonic(), 0
    print("| row | before | spread | after | spread | change | |")
    print("|---|---|---|---|---|---|---|")
    for part in options.parts:
        seeds = [measure(options, part, seed) for seed in range(options.seeds)]
        for row, figure in seeds[0][0].items():
            values = [[sides[side][row].value for sides in seeds] for side in (0, 1)]
            change, is_worse = worse(figure.kind, *values)
            cells = []
            for side in values:
                cells += [f"{statistics.median(side):.8g}", f"{max(side) - min(side):.1e}"]
            marked += is_worse
            print(f"| {row} | {' | '.join(cells)} | {change} | {'worse' if is_worse else ''} |")
        sys.stdout.flush()
    print(f"\n{marked} rows are worse by more than their spread; {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
