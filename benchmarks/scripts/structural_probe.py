"""The hyperbolic structural probe, measured: ``python scripts/structural_probe.py [table ...]``.

Tables: ``race`` (20 s of every feasible method on the w1a row, T matched, from I and from a random
J-orthogonal start), ``large`` (one full gradient with m = 10,000 and n = 50: seconds, busy cores,
peak memory), ``variance`` (VR-J-JOBCD against J-JOBCD per component gradient). All of them by
default. The competitors use the compiled gradient too, so that only the methods differ. Data come
from ``ORTHOBCD_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.linalg
import scipy.sparse

import orthobcd as ob
from orthobcd_bench.baselines import hyperbolic as rivals
from orthobcd_bench.baselines.geometry import cayley

DATA = Path(os.environ.get("ORTHOBCD_DATA", "../shared/data"))


def w1a_row(n: int = 100, m: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """(data, signature): the n most frequent columns, first m rows with a nonzero time part."""
    A = scipy.sparse.load_npz(DATA / "w1a.csr.npz").toarray().astype(float)
    A = A[:, np.sort(np.argsort(-A.sum(axis=0), kind="stable")[:n])]
    j = np.repeat([1, -1], [n // 2, n - n // 2])
    return A[np.linalg.norm(A[:, n // 2 :], axis=1) > 0][:m], j


class Run:
    """The best point within a time limit."""

    def __init__(self, problem: ob.HyperbolicStructuralProbeProblem, limit: float) -> None:
        self.problem, self.limit = problem, limit
        self.begun = time.perf_counter()
        self.best, self.x, self.count = np.inf, np.eye(problem.n_rows), 0

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.problem.value_and_gradient(x)
        self.count += 1
        if value < self.best:
            self.best, self.x = value, x
        return value, gradient

    @property
    def on(self) -> bool:
        """Whether time is left."""
        return time.perf_counter() - self.begun < self.limit


def csdm(run: Run, x0: np.ndarray, step: float) -> None:
    """The factors of the hyperbolic CS decomposition by Adagrad, full rotations."""
    signs = run.problem.signature.astype(float)
    now = rivals.factorise(x0, signs)
    p, k = now.plus.size, np.arange(now.rapidity.size)
    sums: list[np.ndarray] | None = None
    while run.on:
        _, g = run(rivals.assemble(now))
        order = np.concatenate([now.plus, now.minus])
        g = g[np.ix_(order, order)]
        left = scipy.linalg.block_diag(now.u1, now.u2)
        right = scipy.linalg.block_diag(now.v1, now.v2)
        middle = rivals._boost(p, signs.size - p, now.rapidity)
        image = left.T @ g @ right
        one, two = image @ middle.T, image.T @ middle
        one, two = one - one.T, two - two.T
        cosh, sinh = np.cosh(now.rapidity), np.sinh(now.rapidity)
        slope = (image[k, k] + image[p + k, p + k]) * sinh
        slope = slope + (image[k, p + k] + image[p + k, k]) * cosh
        gradients = [one[:p, :p], one[p:, p:], two[:p, :p], two[p:, p:], slope]
        sums = [s + h * h for s, h in zip(sums or [np.zeros(1)] * 5, gradients, strict=True)]
        moves = [-step * h / np.sqrt(s + 1e-30) for s, h in zip(sums, gradients, strict=True)]
        turned = [
            u @ cayley(move)
            for u, move in zip((now.u1, now.u2, now.v1, now.v2), moves[:4], strict=True)
        ]
        now = rivals._Factors(now.plus, now.minus, *turned, now.rapidity + moves[4])


def riemannian(run: Run, x0: np.ndarray, side: str) -> None:
    """Riemannian gradient with Cayley steps, Barzilai-Borwein lengths, nonmonotone line search."""
    j = run.problem.signature.astype(float)[:, None]

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, g = run(x)
        inner = x.T @ g if side == "right" else g @ x.T
        return value, -0.5 * (inner - j * inner.T * j.T)

    x = x0
    value, descent = evaluate(x)
    norm = float(np.linalg.norm(descent))
    length, reference, mass, odd = 0.1 / norm, value, 1.0, True
    while run.on:
        for _ in range(30):
            move = cayley(length * descent)
            trial = x @ move if side == "right" else move @ x
            trial_value, trial_descent = evaluate(trial)
            if trial_value <= reference - 1e-4 * length * norm**2:
                break
            length *= 0.3
        else:
            return
        turned = trial_descent - descent
        product = abs(float(np.vdot(descent, turned))) * length
        if product > 0.0:
            long, short = (length * norm) ** 2 / product, product / float(np.vdot(turned, turned))
            length, odd = (long if odd else short), not odd
        grown = 0.85 * mass + 1.0
        reference, mass = (0.85 * mass * reference + trial_value) / grown, grown
        x, value, descent = trial, trial_value, trial_descent
        norm = float(np.linalg.norm(descent))


def race(limit: float, options: argparse.Namespace) -> None:
    """Objective after `limit` seconds."""
    D, j = w1a_row()
    problem = ob.HyperbolicStructuralProbeProblem(D, j)
    starts = {"I": np.eye(j.size), "random": rivals.reference_start(j.astype(float))}
    print(f"w1a row, T_scale = {problem.scale:.6f}, {limit:g} s each")
    print(
        f"{'start':8} {'method':28} {'objective':>10} {'|X|²/n':>8} {'feas/|X|²':>10} "
        f"{'gradients':>9}"
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
        methods: dict[str, Callable[[Run, np.ndarray], None]] = {}
        for step in (0.02, 0.05, 0.1, 0.2, 0.4):
            methods[f"CSDM full, step {step}"] = lambda run, x0, step=step: csdm(run, x0, step)
        for side in ("left", "right"):
            methods[f"Riemannian gradient {side}"] = lambda run, x0, side=side: riemannian(
                run, x0, side
            )
        for name, method in methods.items():
            run = Run(problem, limit)
            method(run, x0)
            line(start, name, run.best, run.x, run.count)


def large() -> None:
    """m = 10,000, n = 50."""
    D = np.random.default_rng(0).standard_normal((10_000, 50))
    problem = ob.HyperbolicStructuralProbeProblem(D, np.repeat([1, -1], 25), T_scale=1.0)
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
    """F at equal component gradients."""
    sets = []
    D, j = w1a_row()
    sets.append(("w1a 500×100", ob.HyperbolicStructuralProbeProblem(D, j)))
    sets.append(
        (
            "randn 2000×50",
            ob.HyperbolicStructuralProbeProblem(
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


def main() -> None:
    """Run the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=["race", "large", "variance"])
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
        else:
            parser.error(f"no table {table!r}")


if __name__ == "__main__":
    main()
