"""Mixed signatures, measured: ``python scripts/hyperbolic.py [table ...] [--repeats 3]``.

Tables: ``eigen`` (min tr(XᵀAX) against ``scipy.linalg.eig(A, J)``), ``race`` (min tr(XᵀAX) against
the methods of the literature in `orthobcd_bench.baselines`), ``unbounded`` (the JOBCD paper's
maximisation), ``levels`` (iterations to that paper's values, by the bound on the rapidity),
``threads`` (J-JOBCD on one and two threads), ``variance`` (component gradients of VR-J-JOBCD),
``nonsmooth`` (ℓ1 against brute-force multi-start) and ``sides`` (column rotations for sparse PCA).
All by default: about an hour.
Times are medians [smallest, largest] over the repetitions. Data sets that are not in
``ORTHOBCD_DATA`` (default ``../shared/data``) are left out with a message.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

import orthobcd as ob
from orthobcd_bench import data
from orthobcd_bench.baselines import hyperbolic as rivals

DATA = Path(os.environ.get("ORTHOBCD_DATA", "../shared/data"))
GAP = 1e-8
"""Relative gap to the optimum at which a method of the race finishes."""


def signature(n: int, p: int) -> np.ndarray:
    """The signature of n signs: p times +1, then −1."""
    return np.r_[np.ones(p, int), -np.ones(n - p, int)]


def start(n: int, p: int) -> np.ndarray:
    """The start that all methods share: rapidities 0.5·N(0, 1)."""
    return rivals.reference_start(signature(n, p).astype(float))


def randn(m: int, n: int) -> np.ndarray:
    """Standard normal data."""
    return np.random.default_rng(0).standard_normal((m, n))


def load(name: str) -> Any:
    """A data set; None, with a printed line, if its file is missing."""
    path = DATA / name
    if not path.exists():
        print(f"  ({name} is not in {DATA}: left out)")
        return None
    if name.endswith(".csr.npz"):
        return scipy.sparse.load_npz(path).astype(np.float64)
    return np.load(path)["X"].astype(np.float64) / 255.0


def spread(values: list[float]) -> str:
    """Median, smallest and largest."""
    return f"{np.median(values):9.3f} [{min(values):.3f}, {max(values):.3f}]"


def eigenvalue_sets(large: bool) -> list[tuple[str, Any, int, float]]:
    """(name, data, p, ridge) of the bounded eigenvalue problems."""
    sets = [(f"randn 100, p={p}", randn(100, 100), p, 0.0) for p in (50, 70, 90)]
    w1a = load("w1a.csr.npz")
    if w1a is not None:
        sets += [
            (f"w1a {n}, p={p}, ridge 1", w1a[:, :n], p, 1.0) for n in (290, 300) for p in (145, 200)
        ]
    cifar = load("cifar10_subset.npz")
    if cifar is not None:
        pixels = np.linspace(0, cifar.shape[1] - 1, 100).astype(int)
        sets.append(("CIFAR 100 pixels, p=50", cifar[:, pixels], 50, 0.0))
    if large:
        sets.append(("randn 1000, p=500", randn(1000, 1000), 500, 0.0))
        for name, p in (("cifar-100", 50), ("mnist-test", 390), ("tdt2-1000", 500)):
            try:
                sets.append((f"{name}, p={p}, ridge 1", data.load(name, DATA), p, 1.0))
            except data.MissingDataError as error:
                print(f"  ({error}: left out)")
    return sets


def eigen(repeats: int) -> None:
    """Print seconds and errors of column moves, of both moves, and of SciPy."""
    print(f"{'data':26} {'side':8} {'rel. gap':>9} {'‖XᵀJX−J‖/‖X‖²':>14}  seconds")
    for name, A, p, ridge in eigenvalue_sets(large=True):
        n = A.shape[1]
        j = signature(n, p)
        problem = ob.HyperbolicEigenvalueProblem(A, j, ridge=ridge)
        times = []
        for _ in range(repeats):
            begun = time.perf_counter()
            values = scipy.linalg.eig(problem.matrix, np.diag(j.astype(float)))[0]
            times.append(time.perf_counter() - begun)
        optimum = np.abs(values).sum()
        for side in ("columns", "both"):
            seconds = []
            for _ in range(repeats):
                result = ob.solve(problem, start(n, p), solver=ob.JOBCD(side=side))
                seconds.append(result.seconds)
            gap = (result.objective - optimum) / optimum
            relative = result.feasibility / np.linalg.norm(result.x) ** 2
            print(f"{name:26} {side:8} {gap:9.1e} {relative:14.1e}  {spread(seconds)}")
        print(f"{name:26} {'SciPy':8} {'':9} {'':14}  {spread(times)}", flush=True)
    w1a = load("w1a.csr.npz")
    if w1a is not None:
        bare = ob.solve(ob.HyperbolicEigenvalueProblem(w1a, signature(300, 150)), max_time=30.0)
        message = bare.hyperbolic.well_posedness.message
        print(f"w1a 300, p=150, no ridge: {bare.status.name}, {message}")
    rows = ob.solve(
        ob.HyperbolicEigenvalueProblem(randn(100, 100), signature(100, 50)),
        start(100, 50),
        solver=ob.JOBCD(side="rows"),
        max_time=5.0,
    )
    monotone = bool((np.diff(rows.history["objective"]) <= 0).all())
    print(f"rows alone, randn 100, 5 s: {rows.objective:.6f}, monotone {monotone}")


def race(repeats: int, limit: float = 10.0) -> None:
    """Print seconds to a gap of 1e-8."""
    methods: dict[str, Callable[..., Any]] = {
        "JOBCD both": lambda problem, x0, max_time: ob.solve(problem, x0, max_time=max_time),
        "JOBCD rows": lambda problem, x0, max_time: ob.solve(
            problem, x0, solver=ob.JOBCD(side="rows"), max_time=max_time
        ),
        "Cayley BB right": partial(rivals.cayley_gradient, side="right"),
        "Cayley BB left": partial(rivals.cayley_gradient, side="left"),
        "UMCM": rivals.umcm,
        "ADMM": rivals.admm,
        "CSDM full": partial(rivals.csdm, factors="full"),
        "CSDM Givens": partial(rivals.csdm, factors="givens"),
    }
    print(f"{'data':26} {'method':16} {'final gap':>9}  seconds to {GAP:g} (limit {limit:g} s)")
    for name, A, p, ridge in eigenvalue_sets(large=False):
        n = A.shape[1]
        problem = ob.HyperbolicEigenvalueProblem(A, signature(n, p), ridge=ridge)
        optimum = ob.certify(problem, np.eye(n)).optimum or np.nan
        for method, run in methods.items():
            seconds, gaps = [], []
            for _ in range(repeats):
                result = run(problem, start(n, p), max_time=limit)
                gap = (result.history["objective"] - optimum) / optimum
                reached = np.flatnonzero(gap <= GAP)
                seconds.append(result.history["seconds"][reached[0]] if reached.size else np.inf)
                gaps.append(gap[-1])
            text = spread(seconds) if np.isfinite(np.median(seconds)) else "    never"
            print(f"{name:26} {method:16} {np.median(gaps):9.1e}  {text}", flush=True)
        times = []
        for _ in range(repeats):
            begun = time.perf_counter()
            scipy.linalg.eig(problem.matrix, np.diag(problem.signature.astype(float)))
            times.append(time.perf_counter() - begun)
        print(f"{name:26} {'scipy.linalg.eig':16} {'':9}  {spread(times)}", flush=True)


def unbounded(repeats: int) -> None:
    """Print pairs until sense="max" is recognised as unbounded, on the data sets of the paper."""
    del repeats
    sets = [
        (f"randn {n}, p={p}", randn(n, n), p)
        for n, share in ((10, (5, 7, 9)), (100, (50, 70, 90)), (1000, (500, 700, 900)))
        for p in share
    ]
    w1a = load("w1a.csr.npz")
    if w1a is not None:
        sets += [(f"w1a 2470 × 290, p={p}", w1a[:2470, :290], p) for p in (145, 200, 250)]
    print(f"{'data':24} {'pairs (most)':>12}  with rapidity_bound=0.1: start, end, monotone")
    for name, A, p in sets:
        n = A.shape[1]
        problem = ob.HyperbolicEigenvalueProblem(A, signature(n, p), sense="max")
        solvers = [
            ob.JOBCD(side=side, working_set=rule)
            for side in ("rows", "columns", "both")
            for rule in ("tiled", "random", "cyclic")
        ]
        solvers.append(ob.JOBCD(update="jacobi"))
        pairs = []
        for x0 in ("identity", start(n, p)):
            for solver in solvers:
                result = ob.solve(problem, x0, solver=solver)
                assert result.status is ob.Status.UNBOUNDED, result
                pairs.append(result.n_iterations)
        followed = ob.solve(
            problem, start(n, p), solver=ob.JOBCD(side="rows", rapidity_bound=0.1), max_sweeps=3
        )
        values = followed.history["objective"]
        print(
            f"{name:24} {max(pairs):12d}  {values[0]:.4g}, {values[-1]:.4g}, "
            f"{bool((np.diff(values) <= 0).all())} ({followed.status.name})",
            flush=True,
        )


PUBLISHED = {
    ("w1a", 145): {"gs": (1.90, 2.36, 3.05), "j": (22.3, 68.5, 309.0)},
    ("randn", 50): {"gs": (1.45, 1.76, 2.21), "j": (4.24,)},
}
"""F relative to the start in the JOBCD paper's table, after 30, 60 and 90 s (J on randn: 90 s)."""


def levels(repeats: int) -> None:
    """Pairs of GS-JOBCD and matchings of J-JOBCD, scalar curvature, until F is the paper's."""
    for (name, p), classes in PUBLISHED.items():
        w1a = load("w1a.csr.npz")
        if name == "w1a" and w1a is None:
            continue
        A = w1a[:2470, :290] if name == "w1a" else randn(100, 100)
        n = A.shape[1]
        problem = ob.HyperbolicEigenvalueProblem(A, signature(n, p), sense="max")
        for kind, ratios in classes.items():
            for bound in (1e-3, 1e-2, 1e-1, None):
                options: dict[str, Any] = {"curvature": "scalar", "rapidity_bound": bound}
                own = {"working_set": "random"} if kind == "gs" else {"update": "jacobi"}
                solver, counts = ob.JOBCD(side="rows", **options, **own), []
                for ratio in ratios:
                    found = []
                    for seed in range(repeats):
                        x0 = ob.hyperbolic.random_j_orthogonal(problem.signature, 0.65, seed)
                        first = -(float(np.linalg.norm(A @ x0)) ** 2)
                        limits = {"target": ratio * first, "max_time": 10.0}
                        result = ob.solve(problem, x0, solver=solver, seed=seed, **limits)
                        unit = 1 if kind == "gs" else n // 2
                        reached = result.status is ob.Status.TARGET
                        found.append(result.n_iterations / unit if reached else np.inf)
                    counts.append(f"{np.median(found):.0f} [{min(found):.0f}, {max(found):.0f}]")
                print(f"{name} p={p} {kind:3} bound {bound}: {', '.join(counts)}", flush=True)


def threads(repeats: int, limit: float = 15.0) -> None:
    """Pairs per second of the Jacobi update at n = 2000."""
    n = 2000
    problem = ob.HyperbolicEigenvalueProblem(randn(n, n), signature(n, n // 2))
    x0 = start(n, n // 2)
    rates: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(repeats):
        for count in rates:
            result = ob.solve(
                problem, x0, solver=ob.JOBCD(update="jacobi"), max_time=limit, n_threads=count
            )
            rates[count].append(result.n_iterations / result.seconds)
    for count, values in rates.items():
        print(f"J-JOBCD, n = r = {n}, {count} thread(s), pairs per second: {spread(values)}")
    ratio = [two / one for one, two in zip(rates[1], rates[2], strict=True)]
    print(f"ratio: {spread(ratio)}", flush=True)


def variance(repeats: int) -> None:
    """Component gradients to the value that J-JOBCD reaches in a number of passes."""
    sets = [("randn 20000 × 50, p=25", randn(20_000, 50), 25)]
    for name, file, p in (("a9a", "a9a.csr.npz", 61), ("20news100", "20news100.csr.npz", 50)):
        A = load(file)
        if A is not None:
            sets.append((f"{name} {A.shape[0]} × {A.shape[1]}, p={p}", A.toarray(), p))
    print(f"{'data':30} {'passes':>6} {'J gap':>8} {'VR passes':>20}  (J bound; J adaptive)")
    for name, A, p in sets:
        samples, n = A.shape
        problem = ob.HyperbolicEigenvalueProblem(A, signature(n, p), ridge=1e-3 * samples / n)
        optimum = ob.certify(problem, np.eye(n)).optimum or np.nan
        for sweeps in (1, 4):
            # A matching costs J-JOBCD one pass.
            passes, texts = sweeps * (n - 1), []
            for rule in ("bound", "adaptive"):
                solver = ob.VRJOBCD(full_gradient=True, step_rule=rule, max_epochs=passes)
                full = ob.solve(problem, start(n, p), solver=solver, tol=0.0)
                used = []
                for seed in range(repeats):
                    reduced = ob.solve(
                        problem,
                        start(n, p),
                        solver=ob.VRJOBCD(max_epochs=4 * passes),
                        target=full.objective,
                        seed=seed,
                    )
                    gradients = reduced.extra["component_gradients"][-1] / (samples + n)
                    used.append(gradients if reduced.status is ob.Status.TARGET else np.inf)
                texts.append(
                    f"{passes:6d} {(full.objective - optimum) / optimum:8.1e} {spread(used)}"
                )
            print(f"{name:30} {';  '.join(texts)}", flush=True)


def _smoothed(C: np.ndarray, lam: float, j: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Cayley gradient descent with Barzilai–Borwein steps on λ Σ√(x² + ε²), ε → 1e-6, from x."""
    column, eye = j[:, None].astype(float), np.eye(j.size)

    def evaluate(x: np.ndarray, eps: float) -> tuple[float, np.ndarray]:
        root = np.sqrt(x * x + eps * eps)
        image = C @ x
        inner = x.T @ (image + lam * x / root)
        value = 0.5 * np.vdot(x, image) + lam * root.sum()
        return float(value), -0.5 * (inner - column * inner.T * column.T)

    eps = 0.3
    while eps > 1e-6:
        value, descent = evaluate(x, eps)
        recent, length = [value], 0.1 / np.linalg.norm(descent)
        for step in range(100):
            for _ in range(20):
                half = 0.5 * length * descent
                trial = x @ np.linalg.solve(eye - half, eye + half)
                new, turned = evaluate(trial, eps)
                if new <= max(recent[-5:]) - 1e-4 * length * np.vdot(descent, descent):
                    break
                length *= 0.3
            else:
                break
            change = turned - descent
            product = abs(np.vdot(descent, change)) * length
            if product > 0.0:
                long = length**2 * np.vdot(descent, descent) / product
                length = long if step % 2 else product / np.vdot(change, change)
            x, descent = trial, turned
            recent.append(new)
        eps *= 0.4
    for _ in range(3):
        x = 0.5 * x @ (3.0 * eye - column * (x.T @ (column * x)))
    return x


def nonsmooth(repeats: int, seeds: int = 100, starts: int = 60) -> None:
    """The default solve with ℓ1, n = 20, against brute force; a new problem for every seed."""
    del repeats
    n, j = 20, signature(20, 10)
    hits, seconds, numpy_best = [], [], []
    for seed in range(seeds):
        A = np.random.default_rng(seed).standard_normal((40, n))
        C, lam = A.T @ A / 20.0, (0.05, 0.2, 0.5, 1.0)[seed % 4]
        problem = ob.JOrthogonalProblem(ob.Quadratic(C), j, ob.L1(lam))
        result = ob.solve(problem, seed=seed)
        seconds.append(result.seconds)
        # Brute force: one descent each, from many other random starts.
        brute = min(
            ob.solve(
                problem,
                ob.hyperbolic.random_j_orthogonal(j, 0.5, 10_000 * (seed + 1) + k),
                solver=ob.Auto(makers=["given"]),
                max_sweeps=1_000_000,
            ).objective
            for k in range(starts)
        )
        # An independent method, from three random starts.
        other = min(
            ob.solve(
                problem,
                _smoothed(C, lam, j, ob.hyperbolic.random_j_orthogonal(j, 0.5, 77_000 + k)),
                solver=ob.JOBCD(),
            ).objective
            for k in range(3)
        )
        hits.append(result.objective <= brute * (1.0 + 1e-9))
        numpy_best.append(result.objective <= other * (1.0 + 1e-9))
        if not (hits[-1] and numpy_best[-1]):
            print(f"  seed {seed}, λ = {lam}: {result.objective!r}, {brute!r}, {other!r}")
        if seed % 10 == 9:
            print(f"  {seed + 1} seeds: {sum(hits)}, {sum(numpy_best)}", flush=True)
    print(
        f"ℓ1, n = {n}: the best of {starts} starts found (or bettered) in {sum(hits)} of {seeds}, "
        f"that of smoothed descents in {sum(numpy_best)}; seconds {spread(seconds)}",
        flush=True,
    )


def sides(repeats: int, limit: float = 6.0) -> None:
    """ℓ1 sparse PCA from the spectral start: rows alone, and rows and columns."""
    A = np.random.default_rng(0).standard_normal((500, 1000))
    for lam in (1.0, 10.0):
        problem = ob.SparsePCAProblem(A, 20, ob.L1(lam))
        for _ in range(repeats):
            rows = ob.solve(problem, "spectral", solver=ob.OBCD(), max_time=limit)
            both = ob.solve(problem, "spectral", solver=ob.OBCD(side="both"), max_time=limit)
            reached = np.flatnonzero(both.history["objective"] <= rows.objective)
            when = both.history["seconds"][reached[0]] if reached.size else np.inf
            print(
                f"ℓ1 sparse PCA, λ = {lam:g}: rows {rows.objective:.4f} in {rows.seconds:.2f} s, "
                f"both are there after {when:.2f} s and end at {both.objective:.4f}",
                flush=True,
            )


TABLES: dict[str, Callable[..., None]] = {
    "levels": levels,
    "eigen": eigen,
    "race": race,
    "unbounded": unbounded,
    "threads": threads,
    "variance": variance,
    "nonsmooth": nonsmooth,
    "sides": sides,
}


def main() -> None:
    """Print the selected tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], default=list(TABLES))
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    logging.getLogger("orthobcd").setLevel(logging.ERROR)
    for name in arguments.tables or TABLES:
        print(f"\n== {name} ==")
        TABLES[name](arguments.repeats)


if __name__ == "__main__":
    main()
