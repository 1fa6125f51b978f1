"""The hyperbolic structural probe, measured: ``python scripts/structural_probe.py [table ...]``.

Tables, all by default: ``race`` (every feasible method on the w1a row, 20 s, T matched, from I and
from a random J-orthogonal start), ``large`` (one full gradient with m = 10,000 and n = 50: seconds,
busy cores, peak memory), ``variance`` (VR-J-JOBCD against J-JOBCD per component gradient), ``rows``
(the methods of the paper on all usable rows of w1a after 5, 12 and 30 processor seconds). The
competitors also use the compiled gradient, so that only the methods differ. The folder of the data
is ``ORTHOBCD_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

import numpy as np
import scipy.sparse

import orthobcd as ob
from orthobcd_bench.baselines import cayley_gradient, csdm_factors, reference_start, umcm

DATA = Path(os.environ.get("ORTHOBCD_DATA", "../shared/data"))


def w1a_row(n: int = 100, m: int | None = 500, p: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Data and signature: the n most frequent columns, first m rows with a nonzero time part."""
    A = scipy.sparse.load_npz(DATA / "w1a.csr.npz").toarray().astype(float)
    A = A[:, np.sort(np.argsort(-A.sum(axis=0), kind="stable")[:n])]
    j = np.repeat([1, -1], [p, n - p])
    return A[np.linalg.norm(A[:, p:], axis=1) > 0][:m], j


def race(limit: float, options: argparse.Namespace) -> None:
    """Print the objective after `limit` seconds."""
    D, j = w1a_row()
    problem = ob.hyperbolic.HyperbolicStructuralProbeProblem(D, j)
    starts = {"I": np.eye(j.size), "random": reference_start(j.astype(float))}
    print(f"w1a row, T_scale = {problem.scale:.6f}, {limit:g} s each")
    print(
        f"{'start':8} {'method':28} {'objective':>10} {'|X|²/n':>8} {'feas/|X|²':>10} {'steps':>9}"
    )

    def line(start: str, name: str, value: float, x: np.ndarray, count: int) -> None:
        size = float(np.vdot(x, x))
        gap = float(np.linalg.norm(x.T @ (j[:, None] * x) - np.diag(j))) / size
        print(
            f"{start:8} {name:28} {value:10.6f} {size / j.size:8.2f} {gap:10.1e} {count:9d}",
            flush=True,
        )

    for start, x0 in starts.items():
        for side in options.sides:
            for step in options.steps:
                every = {"full_gradient": True, "matchings": problem.n_rows}
                solver = ob.VRJOBCD(side=side, step=step or 0.1, **every)
                result = ob.solve(problem, x0, solver=solver, max_time=limit, tol=0.0)
                name = f"JOBCD {side} {step if step else 'default'}"
                line(start, name, result.objective, result.x, len(result.history["objective"]))
        if options.own:
            continue
        for step in (0.02, 0.05, 0.1, 0.2, 0.4):
            result = csdm_factors(problem, x0, max_time=limit, step=step)
            line(start, f"CSDM full, step {step}", result.objective, result.x, result.n_iterations)
        for side in ("left", "right"):
            result = cayley_gradient(problem, x0, max_time=limit, side=side)
            name = f"Riemannian gradient {side}"
            line(start, name, result.objective, result.x, result.n_iterations)


def large() -> None:
    """Print seconds, busy cores and memory of a gradient with m = 10,000 and n = 50."""
    D = np.random.default_rng(0).standard_normal((10_000, 50))
    problem = ob.hyperbolic.HyperbolicStructuralProbeProblem(D, np.repeat([1, -1], 25), T_scale=1.0)
    before = resource.getrusage(resource.RUSAGE_SELF)
    begun = time.perf_counter()
    value, gradient = problem.value_and_gradient(np.eye(50))
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_SELF)
    busy = (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / seconds
    print(
        f"m = 10,000, n = 50: f(I) = {value:.6f}, |G| = {np.linalg.norm(gradient):.4f}, "
        f"{seconds:.2f} s, {busy:.2f} cores busy, peak {after.ru_maxrss / 1024**2:.3f} GB"
    )


def variance(passes: int) -> None:
    """Print F at equal numbers of component gradients."""
    sets = []
    D, j = w1a_row()
    sets.append(("w1a 500×100", ob.hyperbolic.HyperbolicStructuralProbeProblem(D, j)))
    sets.append(
        (
            "randn 2000×50",
            ob.hyperbolic.HyperbolicStructuralProbeProblem(
                np.random.default_rng(0).standard_normal((2000, 50)),
                np.repeat([1, -1], 25),
            ),
        )
    )
    for name, problem in sets:
        n = problem.n_rows
        for curvature in ("accumulated",):
            for update in ("jacobi", "vr-jacobi"):
                for matchings in (1, n - 1):
                    values = []
                    for seed in range(3):
                        solver = ob.VRJOBCD(
                            full_gradient=update == "jacobi",
                            side="both",
                            step_rule=curvature,
                            matchings=matchings,
                            max_epochs=passes,
                        )
                        result = ob.solve(problem, solver=solver, tol=0.0, seed=seed)
                        curve, counts = (
                            result.history["objective"],
                            result.extra["component_gradients"],
                        )
                        marks = [
                            curve[np.searchsorted(counts, k * problem.n_samples, "right") - 1]
                            for k in (passes // 10, passes // 3, passes)
                        ]
                        values.append(marks)
                    shown = "  ".join(f"{v:.6f}" for v in np.mean(values, axis=0))
                    print(
                        f"{name:14} {update:10} matchings {matchings:3d}: mean F after "
                        f"{passes // 10}, {passes // 3}, {passes} passes: {shown}",
                        flush=True,
                    )


MARKS = (5.0, 12.0, 30.0)
"""Processor seconds of ``rows``."""


def per_epoch(
    problem: ob.hyperbolic.HyperbolicStructuralProbeProblem, x0: np.ndarray, options: dict
) -> float:
    """Processor seconds of a pass over the data, from a short solve."""
    begun = time.process_time()
    solver = ob.VRJOBCD(max_epochs=8, **options)
    ob.solve(problem, x0, solver=solver, tol=0.0, n_threads=1)
    return (time.process_time() - begun) / 8


def rows() -> None:
    """Print F of VR-J-JOBCD, J-JOBCD, CSDM, UMCM and GS-JOBCD, on one thread each."""
    ours = {"VR-J-JOBCD": {}, "J-JOBCD": {"full_gradient": True}}
    for p in (50, 75):
        D, j = w1a_row(m=None, p=p)
        problem = ob.hyperbolic.HyperbolicStructuralProbeProblem(D, j)
        x0 = reference_start(j.astype(float))
        print(f"w1a, {len(D)} rows, p = {p}: {problem.value_and_gradient(x0)[0]:.4f} at the start")
        # The steps of our rule fall to 0 at the limit, so every mark needs its own solve. A limit
        # in passes does not depend on the load of the machine.
        for name, options in ours.items():
            cost, values = per_epoch(problem, x0, options), []
            for mark in MARKS:
                solver = ob.VRJOBCD(max_epochs=max(1, round(mark / cost)), **options)
                begun = time.process_time()
                result = ob.solve(problem, x0, solver=solver, tol=0.0, n_threads=1)
                spent = time.process_time() - begun
                values.append(f"{result.objective:.4f} ({spent:.1f} s, {result.n_epochs})")
            print(f"p = {p} {name}: {', '.join(values)}; {1e3 * cost:.0f} ms a pass", flush=True)
        f = ob.SmoothFunction(problem.value_and_gradient, problem.n_rows)
        general, points, begun = ob.JOrthogonalProblem(f, j), [], time.process_time()

        def look(progress: ob.Progress, points=points, begun=begun) -> bool:
            points.append((time.process_time() - begun, progress.objective))
            return bool(points[-1][0] > MARKS[-1])

        gs = ob.JOBCD(side="rows", working_set="random")
        result = ob.solve(general, x0, solver=gs, callback=look, n_threads=1)
        values = [min(v for t, v in points if t <= mark) for mark in MARKS]
        print(f"p = {p} GS-JOBCD: {values}, {result.n_iterations} pairs", flush=True)
        # The competitors read the wall clock, which is replaced by processor time.
        clock, time.perf_counter = time.perf_counter, time.process_time
        for name, method in (("CSDM", csdm_factors), ("UMCM", umcm)):
            history = method(problem, x0, max_time=MARKS[-1]).history
            at = np.searchsorted(history["seconds"], MARKS, side="right") - 1
            print(f"p = {p} {name}: {np.round(history['objective'][at], 4)}", flush=True)
        time.perf_counter = clock


def main() -> None:
    """Run the selected tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=["race", "large", "variance", "rows"])
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--sides", nargs="+", default=["both"])
    parser.add_argument("--steps", type=float, nargs="+", default=[0.0], help="0: the default")
    parser.add_argument("--own", action="store_true", help="no competitors")
    options = parser.parse_args()
    for table in options.tables:
        if table == "race":
            race(options.limit, options)
        elif table == "large":
            large()
        elif table == "variance":
            variance(options.passes)
        elif table == "rows":
            rows()
        else:
            parser.error(f"no table {table!r}")


if __name__ == "__main__":
    main()
