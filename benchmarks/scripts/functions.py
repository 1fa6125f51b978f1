"""Objectives that are not quadratic, with l1 and l0: ours beside ManPG and annealed LADMM.

All methods have the same callable, random start, seconds and one thread; every score is F at a
truly feasible point. `python benchmarks/scripts/functions.py --seconds 10 --seeds 3`
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import orthobcd as ob
from orthobcd_bench.baselines import annealed_ladmm, manpg

Array = NDArray[np.float64]
Function = Callable[[Array], tuple[float, Array]]


def dictionary(rng: np.random.Generator) -> tuple[Function, int, int]:
    """-||AX||_4^4 / 4, A with sparse rows in an unknown basis."""
    n = 60
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = (rng.standard_normal((400, n)) * (rng.random((400, n)) < 0.2)) @ basis.T / 3.0

    def f(x: Array) -> tuple[float, Array]:
        y = A @ x
        return -0.25 * float(np.sum(y**4)), -(A.T @ y**3)

    return f, n, 20


def energy(rng: np.random.Generator) -> tuple[Function, int, int]:
    """tr(X'LX)/2 + rho'L^{-1}rho/4, rho = diag(XX'), L the Laplacian of a path."""
    n = 200
    L = 2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    inverse = np.linalg.inv(L)

    def f(x: Array) -> tuple[float, Array]:
        rho = np.sum(x * x, axis=1)
        image, field = L @ x, inverse @ rho
        return 0.5 * float(np.sum(x * image)) + 0.25 * float(rho @ field), image + field[
            :, None
        ] * x

    return f, n, 10


def logistic(rng: np.random.Generator) -> tuple[Function, int, int]:
    """Softmax regression, features x classes."""
    n, r, m = 100, 5, 600
    A = rng.standard_normal((m, n))
    labels = np.argmax(A @ np.linalg.qr(rng.standard_normal((n, r)))[0] * 3.0, axis=1)
    target = np.eye(r)[labels]

    def f(x: Array) -> tuple[float, Array]:
        logits = 5.0 * (A @ x)
        logits -= logits.max(axis=1, keepdims=True)
        weights = np.exp(logits)
        total = weights.sum(axis=1, keepdims=True)
        value = float(np.sum(np.log(total)) - np.sum(logits * target))
        return value / 10.0, 0.5 * (A.T @ (weights / total - target))

    return f, n, r


def diagonalisation(rng: np.random.Generator) -> tuple[Function, int, int]:
    """-sum_k ||diag(X'C_k X)||^2 / 4, the C_k with a common sparse orthonormal basis, and noise."""
    n = 40
    basis = np.linalg.qr(rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.1) + np.eye(n))[0]
    C = [basis @ np.diag(rng.standard_normal(n)) @ basis.T for _ in range(8)]
    C = [c + 0.05 * (e + e.T) for c, e in zip(C, rng.standard_normal((8, n, n)), strict=True)]

    def f(x: Array) -> tuple[float, Array]:
        value, gradient = 0.0, np.zeros_like(x)
        for c in C:
            image = c @ x
            diagonal = np.sum(x * image, axis=0)
            value -= 0.25 * float(diagonal @ diagonal)
            gradient -= image * diagonal
        return value, gradient

    return f, n, 10


def robust(rng: np.random.Generator) -> tuple[Function, int, int]:
    """-sum log cosh (AX): principal components that are robust against outliers."""
    n, m = 120, 300
    A = rng.standard_normal((m, 8)) @ (rng.standard_normal((8, n)) * (rng.random((8, n)) < 0.2))
    A = (A + 0.3 * rng.standard_normal((m, n))) / 3.0

    def f(x: Array) -> tuple[float, Array]:
        y = A @ x
        return -float(np.sum(np.logaddexp(y, -y) - np.log(2.0))), -(A.T @ np.tanh(y))

    return f, n, 8


PROBLEMS = {
    "dictionary": (dictionary, 0.1, 0.02),
    "energy": (energy, 0.05, 0.02),
    "logistic": (logistic, 1.0, 0.5),
    "diagonalisation": (diagonalisation, 0.3, 0.1),
    "robust": (robust, 3.0, 2.0),
}
"""Name: objective, weights of l1 and of l0."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS))
    options = parser.parse_args()
    print("problem penalty seed | ours manpg annealed | best other less ours, relative")
    for name in options.only:
        make, l1, l0 = PROBLEMS[name]
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            f, n, r = make(rng)
            x0 = np.linalg.qr(rng.standard_normal((n, r)))[0]
            for penalty in (ob.L1(l1), ob.L0(l0)):
                problem = ob.StiefelProblem(ob.SmoothFunction(f, n, r), penalty, r)
                limits = {"max_time": options.seconds, "seed": seed}
                ours = ob.solve(
                    problem, x0, solver=ob.Auto(), effort=math.inf, n_threads=1, **limits
                )
                others = {"annealed": annealed_ladmm(problem, x0, inertia=1.0, **limits).objective}
                if isinstance(penalty, ob.L1):
                    others["manpg"] = manpg(problem, x0, **limits).objective
                best = min(others.values())
                print(
                    f"{name} {type(penalty).__name__} {seed} | {ours.objective:.8g} "
                    f"{others.get('manpg', np.nan):.8g} {others['annealed']:.8g} | "
                    f"{(best - ours.objective) / abs(best):+.2e}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
