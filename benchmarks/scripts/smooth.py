"""Smooth functions alone: ours with and without products with the Hessian, beside pymanopt.

All methods have the same callables, the same random start and one thread; the environment sets the
threads of NumPy. The output is the seconds until the Riemannian gradient is 1e-6 of the Euclidean
one, the numbers of values and gradients (and products with the Hessian) until then, and F.
`python benchmarks/scripts/smooth.py --seeds 3 --others cg tr`
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import orthobcd as ob

Array = NDArray[np.float64]
Problem = tuple[Callable[[Array], tuple[float, Array]], Callable[[Array, Array], Array], int, int]

RELATIVE = 1e-6


def eigenspace(rng: np.random.Generator) -> Problem:
    """tr(X'CX)/2 of a sample covariance."""
    A = rng.standard_normal((2000, 1000)) / np.sqrt(2000)
    C = -A.T @ A

    def f(x: Array) -> tuple[float, Array]:
        image = C @ x
        return 0.5 * float(np.vdot(x, image)), image

    return f, lambda x, v: C @ v, 1000, 20


def procrustes(rng: np.random.Generator) -> Problem:
    """||AX - B||^2/2, A of condition 100."""
    A = rng.standard_normal((300, 200)) * np.logspace(0, -2, 200)
    C, L = A.T @ A, A.T @ rng.standard_normal((300, 20))

    def f(x: Array) -> tuple[float, Array]:
        image = C @ x
        return 0.5 * float(np.vdot(x, image)) - float(np.vdot(L, x)), image - L

    return f, lambda x, v: C @ v, 200, 20


def brockett(rng: np.random.Generator) -> Problem:
    """tr(X'CXD)/2, D = diag(1, ..., r)."""
    A = rng.standard_normal((300, 300))
    C, D = A + A.T, np.arange(1.0, 11.0)

    def f(x: Array) -> tuple[float, Array]:
        image = C @ x * D
        return 0.5 * float(np.vdot(x, image)), image

    return f, lambda x, v: C @ v * D, 300, 10


def electronic(rng: np.random.Generator) -> Problem:
    """tr(X'LX)/2 + rho'L^{-1}rho/4, rho = diag(XX'), L the Laplacian of a path."""
    n = 500
    L = 2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    inverse = np.linalg.inv(L)

    def times(x: Array) -> Array:
        image = 2.0 * x
        image[1:] -= x[:-1]
        image[:-1] -= x[1:]
        return image

    def f(x: Array) -> tuple[float, Array]:
        rho = np.sum(x * x, axis=1)
        image, field = times(x), inverse @ rho
        value = 0.5 * float(np.vdot(x, image)) + 0.25 * float(rho @ field)
        return value, image + field[:, None] * x

    def product(x: Array, v: Array) -> Array:
        field = inverse @ np.sum(x * x, axis=1)
        turned = inverse @ (2.0 * np.sum(x * v, axis=1))
        return times(v) + field[:, None] * v + turned[:, None] * x

    return f, product, n, 20


def fourth(rng: np.random.Generator) -> Problem:
    """-||AX||_4^4/4, A with sparse rows in an unknown basis."""
    n = 100
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = (rng.standard_normal((2000, n)) * (rng.random((2000, n)) < 0.2)) @ basis.T / 3.0

    def f(x: Array) -> tuple[float, Array]:
        y = A @ x
        return -0.25 * float(np.sum(y**4)), -(A.T @ y**3)

    return f, lambda x, v: -3.0 * (A.T @ ((A @ x) ** 2 * (A @ v))), n, n


PROBLEMS = {
    "eigenspace": eigenspace,
    "procrustes": procrustes,
    "brockett": brockett,
    "electronic": electronic,
    "fourth": fourth,
}


def slope(x: Array, gradient: Array) -> float:
    inner = x.T @ gradient
    return float(np.linalg.norm(gradient - x @ (inner + inner.T) / 2.0) / np.linalg.norm(gradient))


def pymanopt_run(problem: Problem, x0: Array, name: str, goal: float, seconds: float) -> Array:
    import pymanopt
    from pymanopt.manifolds import Stiefel
    from pymanopt.optimizers import ConjugateGradient, TrustRegions

    f, product, n, r = problem
    manifold = Stiefel(n, r)
    last: dict[str, Any] = {"x": None, "both": None}

    def both(x: Array) -> tuple[float, Array]:
        if last["x"] is None or not np.array_equal(last["x"], x):
            last["x"], last["both"] = x.copy(), f(x)
        return last["both"]

    decorate = pymanopt.function.numpy(manifold)
    instance = pymanopt.Problem(
        manifold,
        decorate(lambda x: both(x)[0]),
        euclidean_gradient=decorate(lambda x: both(x)[1]),
        euclidean_hessian=decorate(lambda x, v: product(x, v)),
    )
    kind = ConjugateGradient if name == "cg" else TrustRegions
    optimizer = kind(
        min_gradient_norm=goal,
        max_time=seconds,
        max_iterations=100_000,
        min_step_size=1e-14,
        verbosity=0,
    )
    return optimizer.run(instance, initial_point=x0).point


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--others", nargs="*", choices=["cg", "tr"], default=[])
    options = parser.parse_args()
    print("problem seed method | seconds | values products | slope | F")
    for name in options.only:
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            f, product, n, r = PROBLEMS[name](rng)
            x0 = np.linalg.qr(rng.standard_normal((n, r)))[0]
            counts = [0, 0]

            def counted(x: Array, f: Any = f, counts: list[int] = counts) -> tuple[float, Array]:
                counts[0] += 1
                return f(x)

            def multiplied(
                x: Array, v: Array, product: Any = product, counts: list[int] = counts
            ) -> Array:
                counts[1] += 1
                return product(x, v)

            goal = 1.0
            for method in ["gradient", "newton", *options.others]:
                counts[:] = [0, 0]
                begun = time.perf_counter()
                if method in ("cg", "tr"):
                    x = pymanopt_run((counted, multiplied, n, r), x0, method, goal, options.seconds)
                else:
                    given = multiplied if method == "newton" else None
                    smooth = ob.SmoothFunction(counted, n, r, hessian_product=given)
                    x = ob.solve(
                        ob.StiefelProblem(smooth, ob.NoPenalty(), r),
                        x0,
                        solver=ob.OBCD(),
                        max_time=options.seconds,
                        tol=(10.0 * RELATIVE) ** 2,
                    ).x
                taken = time.perf_counter() - begun
                value, gradient = f(x)
                if method in ("gradient", "newton"):
                    goal = RELATIVE * float(np.linalg.norm(gradient))
                print(
                    f"{name} {seed} {method} | {taken:.3f} | {counts[0]} {counts[1]} | "
                    f"{slope(x, gradient):.1e} | {value:.10g}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
