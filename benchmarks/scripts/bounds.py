"""Certified gaps: small problems, pitprops, correlation matrices, ℓ0 by r, and a figure.

From the root of a checkout, with the data in ``../shared/data`` (or where ``ORTHOBCD_DATA`` says)::

    python benchmarks/scripts/bounds.py valid --count 2000
    python benchmarks/scripts/bounds.py pitprops
    python benchmarks/scripts/bounds.py correlations --seconds 60 --threads 1
    python benchmarks/scripts/bounds.py penalised --seconds 60 --threads 1
    python benchmarks/scripts/bounds.py figure docs/images/bounds.png

The certified points come from `exchanges`, a plain search in NumPy, or from ``orthobcd.solve``; for
the correlation matrices from the better of both.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import pathlib
import time
from typing import Any

import bounds_cases as cases
import numpy as np
from bounds_cases import Matrix

import orthobcd as ob

DATA = pathlib.Path(os.environ.get("ORTHOBCD_DATA", "../shared/data"))

PITPROPS: list[tuple[int, int | tuple[int, ...]]] = [
    (2, 4),
    (2, 6),
    (2, 8),
    (2, 10),
    (3, 6),
    (3, 9),
    (2, (5, 5)),
]
SEARCHED = 0.25
"""Time for the search of a point, relative to that for the bound."""

MATRICES = {
    "ionosphere_corr": (2, 3),
    "lung_corr": (2, 3),
    "arrhythmia_corr": (2, 3),
    "snp500": (4,),
}


def correlation(name: str) -> Matrix:
    """A correlation matrix by name."""
    matrix: Matrix = np.load(DATA / f"{name}.npz")["R"].astype(float)
    return matrix


def top_on(C: Matrix, rows: list[int], others: Matrix) -> tuple[float, Matrix]:
    """The best unit vector on these rows that is orthogonal to the others, and its value."""
    left, values, _ = np.linalg.svd(others[rows], full_matrices=True)
    free = left[:, int(np.count_nonzero(values > 1e-12)) :]
    x = np.zeros(len(C))
    if free.shape[1] == 0:
        return -np.inf, x
    value, vectors = np.linalg.eigh(free.T @ C[np.ix_(rows, rows)] @ free)
    x[rows] = free @ vectors[:, -1]
    return float(value[-1]), x


def column(C: Matrix, k: int, others: Matrix, start: Matrix, steps: int) -> tuple[float, Matrix]:
    """One column with k nonzeros: truncated power steps, then swaps of single rows."""
    P = np.eye(len(C)) - others @ others.T
    B = P @ C @ P
    shift = max(0.0, -float(np.linalg.eigvalsh(B)[0]))
    x = start
    for _ in range(steps):
        step = B @ x + shift * x
        kept = np.argsort(-np.abs(step))[:k]
        x = np.zeros(len(C))
        x[kept] = step[kept]
        x /= max(float(np.linalg.norm(x)), np.finfo(float).tiny)
    rows = sorted(np.argsort(-np.abs(x), kind="stable")[:k].tolist())
    value, x = top_on(C, rows, others)
    for _ in range(30):
        rate = np.abs(B @ x)
        rate[rows] = -1.0
        drops = np.array(rows)[np.argsort(np.abs(x[rows]))[:6]].tolist()
        trials = [
            sorted({*rows, a} - {d})
            for d, a in itertools.product(drops, np.argsort(-rate)[:8].tolist())
        ]
        best = max(trials, key=lambda trial: top_on(C, trial, others)[0])
        found, y = top_on(C, best, others)
        if not found > value + 1e-10 * abs(value):
            break
        value, x, rows = found, y, best
    return value, x


def exchanges(C: Matrix, counts: list[int], starts: int) -> Matrix:
    """Orthonormal columns with ``counts[t]`` nonzeros in column t, from several starts."""
    rng = np.random.default_rng(0)
    n, r = len(C), len(counts)
    best, most = np.eye(n, r), -np.inf
    for start in range(starts):
        x, before = np.zeros((n, r)), -np.inf
        for sweep in range(6):
            for t in rng.permutation(r) if start else range(r):
                others = np.delete(x, t, axis=1)
                others = others[:, np.abs(others).max(axis=0) > 0]
                B = C - others @ (others.T @ C)
                B = B - (B @ others) @ others.T
                score = np.sort(np.abs(B), axis=1)[:, -counts[t] :].sum(axis=1)
                inits = [x[:, t]] if sweep else [B[i] for i in np.argsort(-score)[:3]]
                # The first start is greedy, the others begin at random rows.
                steps = 40 if start == 0 else 0
                if start > 0 and not sweep:
                    inits = [rng.standard_normal(n)]
                found = [column(C, counts[t], others, init, steps) for init in inits]
                if sweep:
                    found.append((float(x[:, t] @ C @ x[:, t]), x[:, t].copy()))
                x[:, t] = max(found, key=lambda f: f[0])[1]
            value = float(np.sum(x * (C @ x)))
            if value <= before + 1e-9 * abs(value):
                break
            before = value
        if before > most:
            best, most = x.copy(), before
    return best


def disjoint_pair(C: Matrix, counts: list[int]) -> Matrix:
    """The best two columns on disjoint supports, by enumeration."""
    tops = []
    for k in counts:
        supports = np.array(list(itertools.combinations(range(len(C)), k)))
        blocks = C[supports[:, :, np.newaxis], supports[:, np.newaxis, :]]
        masks = np.zeros((len(supports), len(C)), dtype=bool)
        np.put_along_axis(masks, supports, True, axis=1)
        tops.append((supports, np.linalg.eigvalsh(blocks)[:, -1], masks.astype(float)))
    (_, first, one), (_, second, two) = tops
    value = np.where(one @ two.T > 0, -np.inf, first[:, np.newaxis] + second)
    best = np.unravel_index(np.argmax(value), value.shape)
    rows = [tops[t][0][at].tolist() for t, at in enumerate(best)]
    return np.stack([cases.leading(C, at)[1] for at in rows], axis=1)


def shares(total: int, r: int, most: int) -> list[list[int]]:
    """All ways to write a total as a sum of r positive numbers, descending."""
    if r == 1:
        return [[total]] if 1 <= total <= most else []
    return [
        [k, *rest] for k in range(1, min(most, total) + 1) for rest in shares(total - k, r - 1, k)
    ]


def certified(
    C: Matrix, x: Matrix, count: Any, seconds: float, threads: int | None
) -> tuple[ob.Certificate, float]:
    """The certificate of x and the seconds it took."""
    problem = ob.StiefelProblem(ob.Quadratic(-C), ob.Cardinality(count), x.shape[1])
    begin = time.perf_counter()
    certificate = ob.certify(problem, x, bound=True, max_time=seconds, n_threads=threads)
    return certificate, time.perf_counter() - begin


def gap(found: ob.Certificate) -> float:
    """Largest possible gain of an optimum over the point, relative to the variance of the point."""
    return (found.objective - found.lower_bound) / abs(found.objective)


def row(name: str, count: Any, certificate: ob.Certificate, seconds: float) -> None:
    value, bound = -2 * certificate.objective, -2 * certificate.lower_bound
    print(
        f"| {name} | {count} | {value:.4f} | {bound:.4f} | {100 * gap(certificate):.4f} | "
        f"{certificate.bound_method} | {certificate.bound.n_nodes} | "
        f"{len(certificate.bound.features_excluded)} | {seconds:.1f} |",
        flush=True,
    )


def heading() -> None:
    names = "matrix, r | count | our point | bound | gap, % | method | nodes | left out | seconds"
    print(f"| {names} |\n|---|---|---|---|---|---|---|---|---|")


def pitprops(seconds: float, threads: int | None) -> None:
    heading()
    C = correlation("pitprops")
    for r, count in PITPROPS:
        ways = shares(count, r, len(C)) if isinstance(count, int) else [list(count)]
        points = [exchanges(C, way, starts=60) for way in ways]
        if len(ways) == 1:
            points.append(disjoint_pair(C, ways[0]))
        best = max(points, key=lambda x: float(np.sum(x * (C @ x))))
        row(f"pitprops, {r}", count, *certified(C, best, count, seconds, threads))


def correlations(seconds: float, only: str, threads: int | None) -> None:
    heading()
    gaps: dict[bool, list[float]] = {True: [], False: []}
    chosen = [(name, r) for name, ranks in MATRICES.items() if only in name for r in ranks]
    for (name, r), k in itertools.product(chosen, (5, 10, 20)):
        C = correlation(name)
        problem = ob.StiefelProblem(ob.Quadratic(-C), ob.Cardinality([k] * r), r)
        points = [exchanges(C, [k] * r, starts=60 if len(C) <= 60 else 10)]
        points.append(
            ob.solve(problem, max_time=SEARCHED * seconds, effort=math.inf, n_threads=threads).x
        )
        x = max(points, key=lambda x: float(np.sum(x * (C @ x))))
        certificate, spent = certified(C, x, [k] * r, seconds, threads)
        row(f"{name} ({len(C)}), {r}", k, certificate, spent)
        gaps[len(C) <= 60].append(100 * gap(certificate))
    if gaps[True]:
        print(f"\naverage gap, n <= 60: {np.mean(gaps[True]):.2f} %")
    print(f"average gap: {np.mean(gaps[True] + gaps[False]):.2f} %")


def penalised(seconds: float, only: str, threads: int | None) -> None:
    import scipy.sparse

    print("| data | λ | r | F | bound | gap, % | seconds |\n|---|---|---|---|---|---|---|")
    data = {
        "w1a": scipy.sparse.load_npz(DATA / "w1a.csr.npz").astype(float).toarray(),
        "randn": np.random.default_rng(0).standard_normal((500, 1000)),
    }
    wanted = [(name, A) for name, A in data.items() if only in name]
    for (name, A), lam, r in itertools.product(wanted, (10.0, 100.0), (1, 5, 20)):
        problem = ob.SparsePCAProblem(A, r, ob.L0(lam))
        x = ob.solve(problem, max_time=SEARCHED * seconds, effort=math.inf, n_threads=threads).x
        begin = time.perf_counter()
        found = ob.certify(problem, x, bound=True, max_time=seconds, n_threads=threads)
        print(
            f"| {name} | {lam:g} | {r} | {found.objective:.2f} | {found.lower_bound:.2f} | "
            f"{100 * gap(found):.3f} | {time.perf_counter() - begin:.1f} |",
            flush=True,
        )


def valid(count: int, first: int) -> None:
    """Print the largest relative excess of a bound over a feasible point; a valid one is ≤ 0."""
    worst = -np.inf
    for seed in range(first, first + count):
        case = cases.make(seed)
        found = ob.certify(case.problem, case.x, bound=True, max_time=0.2)
        size = max(1.0, abs(case.objective))
        passed = (found.lower_bound - case.objective) / size
        worst = max(worst, passed)
        if passed > 1e-12:
            print(f"VIOLATED seed {seed}: {passed:.2e}, {case.problem.penalty}")
    print(f"{count} problems: largest (bound - F) / max(1, |F|) is {worst:.2e}")


def figure(path: str, seconds: float) -> None:
    """Draw bound and value over time for two matrices."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(9, 3.2))
    for axis, (name, r, k) in zip(
        axes, (("ionosphere_corr", 2, 5), ("lung_corr", 3, 10)), strict=True
    ):
        C = correlation(name)
        certificate, _ = certified(C, exchanges(C, [k] * r, starts=20), [k] * r, seconds, None)
        history = certificate.bound.history
        above = -2 * np.append(history["bound"], history["bound"][-1])
        axis.step(np.append(history["seconds"], seconds), above, where="post", label="bound")
        axis.axhline(-2 * certificate.objective, color="black", lw=1, label="our point")
        axis.set_xscale("log")
        axis.set_ylim(-2.02 * certificate.objective * 0.985, -2 * certificate.objective * 1.12)
        axis.set_title(f"{name.removesuffix('_corr')}, r = {r}, {k} nonzeros a column", fontsize=9)
        axis.set_xlabel("seconds")
    axes[0].set_ylabel("explained variance")
    axes[0].legend(frameon=False)
    fig.tight_layout()
    fig.savefig(path)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "what", choices=["valid", "pitprops", "correlations", "penalised", "figure"]
    )
    parser.add_argument("path", nargs="?", default="bounds.svg")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    if given.what == "valid":
        valid(given.count, given.first)
    elif given.what == "pitprops":
        pitprops(min(given.seconds, 60.0), given.threads)
    elif given.what == "correlations":
        correlations(given.seconds, given.only, given.threads)
    elif given.what == "penalised":
        penalised(given.seconds, given.only, given.threads)
    else:
        figure(given.path, given.seconds)


if __name__ == "__main__":
    main()
