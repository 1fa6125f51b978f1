"""Certified gaps of the default search: pitprops, correlation matrices, ℓ0 by r, and a figure.

From the root of a checkout, with the data in ``../shared/data`` (or where ``ORTHOBCD_DATA`` says)::

    python benchmarks/scripts/bounds.py pitprops
    python benchmarks/scripts/bounds.py correlations --seconds 60
    python benchmarks/scripts/bounds.py penalised --seconds 60
    python benchmarks/scripts/bounds.py figure --path docs/images/bounds.png --seconds 120

The search has a quarter of the seconds of the bound, both one thread.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import pathlib
import time
from typing import Any

import numpy as np
import scipy.sparse

import orthobcd as ob

DATA = pathlib.Path(os.environ.get("ORTHOBCD_DATA", "../shared/data"))

PITPROPS = [(2, 4), (2, 6), (2, 8), (2, 10), (3, 6), (3, 9), (2, (5, 5))]
"""Numbers of components, and limits on nonzeros in all or per column."""

SEARCHED = 0.25
"""Time for the search of a point, relative to that for the bound."""

MATRICES = {
    "ionosphere_corr": (2, 3),
    "lung_corr": (2, 3),
    "arrhythmia_corr": (2, 3),
    "snp500": (4,),
}


def counted(name: str, r: int, count: Any) -> ob.StiefelProblem:
    """The problem of a correlation matrix under a limit on nonzeros."""
    matrix = np.load(DATA / f"{name}.npz")["R"].astype(float)
    return ob.StiefelProblem(ob.Quadratic(-matrix), ob.Cardinality(count), r)


def certified(problem: Any, seconds: float) -> tuple[ob.Certificate, float]:
    """The certificate of the point that a search finds, and the seconds of the bound."""
    limits = {"max_time": SEARCHED * seconds, "effort": math.inf}
    x = ob.solve(problem, n_threads=1, **limits).x
    begin = time.perf_counter()
    found = ob.certify(problem, x, bound=True, max_time=seconds, n_threads=1)
    return found, time.perf_counter() - begin


def row(name: str, problem: Any, seconds: float) -> float:
    """Prints a line of the table; returns the gap relative to F of the point, in percent."""
    found, spent = certified(problem, seconds)
    gap = 100 * (found.objective - found.lower_bound) / abs(found.objective)
    values = f"{found.objective:.4f} | {found.lower_bound:.4f} | {gap:.4f}"
    how = f"{found.bound_method} | {found.bound.n_nodes} | {len(found.bound.features_excluded)}"
    print(f"| {name} | {problem.n_components} | {values} | {how} | {spent:.1f} |", flush=True)
    return gap


def pitprops(seconds: float) -> None:
    for r, count in PITPROPS:
        row(f"pitprops, {count}", counted("pitprops", r, count), min(seconds, 60.0))


def correlations(seconds: float) -> None:
    cases = [(name, r) for name, ranks in MATRICES.items() for r in ranks]
    gaps = [
        row(f"{name}, {k} each", counted(name, r, [k] * r), seconds)
        for (name, r), k in itertools.product(cases, (5, 10, 20))
    ]
    print(f"\naverage gap: {np.mean(gaps):.2f} %")


def penalised(seconds: float) -> None:
    data = {
        "w1a": scipy.sparse.load_npz(DATA / "w1a.csr.npz").astype(float).toarray(),
        "randn": np.random.default_rng(0).standard_normal((500, 1000)),
    }
    for (name, A), lam, r in itertools.product(data.items(), (10.0, 100.0), (1, 5, 20)):
        row(f"{name}, λ = {lam:g}", ob.SparsePCAProblem(A, r, ob.L0(lam)), seconds)


def figure(path: str, seconds: float) -> None:
    """Draw bound and value over time for two matrices."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(9, 3.2))
    cases = (("ionosphere_corr", 2, 5), ("lung_corr", 3, 10))
    for axis, (name, r, k) in zip(axes, cases, strict=True):
        certificate, _ = certified(counted(name, r, [k] * r), seconds)
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


TABLES = {"pitprops": pitprops, "correlations": correlations, "penalised": penalised}


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=[*TABLES, "figure"])
    parser.add_argument("--path", default="bounds.svg")
    parser.add_argument("--seconds", type=float, default=300.0)
    given = parser.parse_args()
    if given.what == "figure":
        figure(given.path, given.seconds)
        return
    print("| data | r | F | bound | gap, % | method | nodes | left out | seconds |")
    print("|---" * 9 + "|")
    TABLES[given.what](given.seconds)


if __name__ == "__main__":
    main()
