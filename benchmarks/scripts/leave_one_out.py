"""Loss of the search without one of its heuristics.

``ORTHOBCD_DATA=<folder> python scripts/leave_one_out.py [--max-work 1] [--seeds 2]
[--first-seed 0] [--only l0] [--without exchange]``
solves problems of every kind (real and random data, all penalties, linear terms, D, det X = 1,
functions, mixed signatures). The search runs with the makers of the default search, and without
each in turn.
Work is counted, so that objectives do not depend on the load of the machine. The table has a row
for each heuristic and kind of problem. Columns count the solves without the heuristic, those where
it found the incumbent, and those that ended higher or lower without it (by more than 1e-6 of |F|).
Then come the mean, the worst and the best change of the objective.

``--default`` prints one JSON line for each problem and seed, with the objective of the default
search; ``--compare before after`` prints how the objectives of two builds differ.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from functions import PROBLEMS

import orthobcd as ob

SAME = 1e-6
"""Relative change up to which an objective counts as unchanged."""

REAL = ("20news", "yale32", "snp500", "w1a", "mnist-92", "colon-500", "reuters-t10", "arcene-1000")
"""Data sets of ``ORTHOBCD_DATA``; "-500": 500 of the columns."""


def relative(before: float, after: float) -> float:
    """The change relative to |before|."""
    return (after - before) / max(abs(before), 1e-300)


def pairs(before: Path, after: Path, key: int) -> list[tuple[list[Any], list[Any]]]:
    """The rows of two files of JSON lines that agree in their first `key` cells."""
    first, second = (
        {tuple(row[:key]): row for row in map(json.loads, path.read_text().splitlines())}
        for path in (before, after)
    )
    return [(row, second[label]) for label, row in first.items() if label in second]


def data(folder: Path) -> Iterator[tuple[str, Any]]:
    """Real and random data matrices."""
    from orthobcd_bench.data import load

    for name in REAL:
        if name == "colon-500":
            yield name, np.ascontiguousarray(load("colon", folder)[:, ::4])
        else:
            yield name, load(name, folder)
    rng = np.random.default_rng(7)
    yield "randn-100-150", rng.standard_normal((100, 150))
    factors = rng.standard_normal((200, 6)) @ (
        rng.standard_normal((6, 250)) * (rng.random((6, 250)) < 0.15)
    )
    yield "factors-200-250", 3.0 * factors + rng.standard_normal((200, 250))
    yield "counts-300-120", rng.poisson(rng.gamma(0.3, 3.0, (300, 120))).astype(float)


def gram(matrix: Any) -> Any:
    """−AᵀA, dense."""
    product = matrix.T @ matrix
    return -(product.toarray() if hasattr(product, "toarray") else np.asarray(product))


def problems(folder: Path) -> Iterator[tuple[str, str, Any]]:
    """Yields kind, label and problem."""
    for k, (name, matrix) in enumerate(data(folder)):
        squares = matrix.multiply(matrix) if hasattr(matrix, "nnz") else matrix * matrix
        top = float(np.asarray(squares.sum(axis=0)).max())
        r = (10, 5, 20)[k % 3]
        lams = {f"{share:g}": share * top for share in (0.001, 0.01, 0.05)}
        for share, lam in lams.items():
            yield "l0", f"{name} {share}", ob.SparsePCAProblem(matrix, r, ob.L0(lam))
        for share in ("0.001", "0.01"):
            lam = lams[share]
            yield "l1", f"{name} {share}", ob.SparsePCAProblem(matrix, r, ob.L1(lam))
        yield "nonneg", name, ob.NonnegativePCAProblem(matrix, r)
        if k % 2:
            continue
        lam, n = lams["0.01"], matrix.shape[1]
        level = 0.3 / np.sqrt(n / 20)
        for label, penalty in (
            ("capped", ob.CappedL1(lam, level)),
            ("mcp", ob.MCP(lam, level / lam * 2.0)),
            ("scad", ob.SCAD(lam, 2.5)),
            ("l0 + l1", ob.L0(lam) + ob.L1(0.2 * lam)),
        ):
            yield "pieces", f"{name} {label}", ob.SparsePCAProblem(matrix, r, penalty)
        C = gram(matrix)
        rng = np.random.default_rng(k)
        linear = 0.1 * top * rng.standard_normal((n, r)) / np.sqrt(n)
        D = np.diag(np.linspace(1.0, 2.0, r))
        for label, smooth in (
            ("linear", ob.Quadratic(C, linear=linear)),
            ("D", ob.Quadratic(C, D=D)),
        ):
            for penalty in (ob.L0(lam), ob.L1(lam)):
                shown = f"{name} {label} {type(penalty).__name__}"
                yield "linear, D", shown, ob.StiefelProblem(smooth, penalty, r)
    for name, (make, l1, l0) in PROBLEMS.items():
        f, n, r = make(np.random.default_rng(0))
        for penalty in (ob.L1(l1), ob.L0(l0), ob.NonNegative()):
            smooth = ob.SmoothFunction(f, n, r)
            shown = f"{name} {type(penalty).__name__}"
            yield "function", shown, ob.StiefelProblem(smooth, penalty, r)
    for n in (12, 40):
        rng = np.random.default_rng(n)
        B = rng.standard_normal((2 * n, n))
        square = ob.Quadratic(B.T @ B, D=np.diag(np.linspace(0.5, 2.0, n)))
        nearest = ob.Quadratic(np.zeros((n, n)), linear=rng.standard_normal((n, n)))
        for label, smooth in (("trace", square), ("nearest", nearest)):
            for penalty in (ob.L1(0.3), ob.L0(0.3), ob.NonNegative()):
                shown = f"{label} {n} {type(penalty).__name__}"
                yield "det X = 1", shown, ob.StiefelProblem(smooth, penalty, n, determinant=1)
        signature = np.where(np.arange(n) < n // 2, 1.0, -1.0)
        for penalty in (ob.L1(1.0), ob.L0(1.0), ob.NonNegative()):
            shown = f"{n} {type(penalty).__name__}"
            yield (
                "mixed",
                shown,
                ob.JOrthogonalProblem(ob.Quadratic(B.T @ B), signature, penalty),
            )


def taken(problem: Any, work: float) -> list[str]:
    """The makers of the default search."""
    runs = []
    for seed in range(2):
        found = ob.solve(problem, max_work=work, seed=seed, n_threads=1)
        runs += found.search.runs if found.search is not None else []
    known = get_args(ob.solvers.Maker)
    return list(dict.fromkeys(run.heuristic for run in runs if run.heuristic in known))


def measure(
    problem: Any, work: float, seeds: range, without: list[str] | None
) -> Iterator[tuple[str, bool, float]]:
    """Yields a heuristic, whether it found the incumbent, and the relative loss without it."""
    names = taken(problem, work)

    def solved(makers: list[str], seed: int) -> Any:
        solver = ob.Auto(makers=makers)
        return ob.solve(problem, solver=solver, max_work=work, seed=seed, n_threads=1)

    tried = [name for name in names if without is None or name in without]
    for seed in seeds if len(names) > 1 and tried else ():
        whole = solved(names, seed)
        for name in tried:
            others = solved([other for other in names if other != name], seed).objective
            finder = (whole.search.strategy or "").startswith(name)
            yield name, finder, relative(whole.objective, others)


def table(losses: dict[tuple[str, str], list[tuple[bool, float]]]) -> Iterator[str]:
    """The lines of the table."""
    head = "heuristic | problems | runs | finds it | higher without | lower without | mean"
    yield f"| {head} | worst | best |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for (name, kind), found in sorted(losses.items()):
        values = [value for _, value in found]
        counts = (
            len(values),
            sum(finder for finder, _ in found),
            sum(value > SAME for value in values),
            sum(value < -SAME for value in values),
        )
        changes = (np.mean(values), max(values), min(values))
        cells = [str(count) for count in counts] + [f"{change:+.1e}" for change in changes]
        yield f"| {name} | {kind} | {' | '.join(cells)} |"


def compare(before: Path, after: Path) -> Iterator[str]:
    """A table of the relative changes of the objective from one file to the other."""
    changes: dict[str, list[float]] = defaultdict(list)
    for first, second in pairs(before, after, 3):
        for kind in (first[0], "all"):
            changes[kind].append(relative(first[3], second[3]))
    yield "| problems | runs | higher | lower | mean | worst | best |"
    yield "|---|---|---|---|---|---|---|"
    for kind, own in sorted(changes.items()):
        counts = f"{sum(v > SAME for v in own)} | {sum(v < -SAME for v in own)}"
        size = f"{np.mean(own):+.1e} | {max(own):+.1e} | {min(own):+.1e}"
        yield f"| {kind} | {len(own)} | {counts} | {size} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--max-work", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="kinds of problems")
    parser.add_argument("--without", nargs="*", help="heuristics that are left out in turn")
    parser.add_argument("--default", action="store_true")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    options = parser.parse_args()
    if options.compare:
        print("\n".join(compare(*options.compare)))
        return
    folder = Path(os.environ.get("ORTHOBCD_DATA", "../shared/data"))
    losses: dict[tuple[str, str], list[tuple[bool, float]]] = defaultdict(list)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for kind, label, problem in problems(folder):
        if options.only and kind not in options.only:
            continue
        if options.default:
            for seed in seeds:
                found = ob.solve(problem, max_work=options.max_work, seed=seed, n_threads=1)
                print(json.dumps([kind, label, seed, found.objective]), flush=True)
            continue
        own: dict[str, list[str]] = defaultdict(list)
        for name, finder, loss in measure(problem, options.max_work, seeds, options.without):
            losses[name, kind].append((finder, loss))
            own[name].append(f"{loss:+.1e}{'*' if finder else ''}")
        shown = "; ".join(f"{name} {' '.join(values)}" for name, values in own.items())
        print(f"{kind}: {label}: {shown}", flush=True)
    print()
    print("\n".join(table(losses)))


if __name__ == "__main__":
    main()
