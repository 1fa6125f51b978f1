"""Processor seconds of `solve` where one decomposition gives the optimum, beside the library's.

Run on an idle machine, with one thread::

    OMP_NUM_THREADS=1 python benchmarks/scripts/known_optima.py > known-optima.md
    OMP_NUM_THREADS=1 python benchmarks/scripts/known_optima.py --only hyperbolic --repeat 1

Each case is a problem and the shortest program with NumPy or SciPy that finds its optimal value
from the same data. Both are called ``--repeat`` times after one small warm-up, and the table has
the least processor time of each, of `solve` alone without making the problem. Where `solve` ends
below the library, the last column is negative.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

import orthobcd as ob

Array = NDArray[np.float64]

FREE = ob.NoPenalty()


@dataclass
class Case:
    """A problem, made by ``problem()``, and the program that returns its optimal value."""

    name: str
    size: str
    problem: Callable[[], Any]
    library: Callable[[], float]
    program: str


def symmetric(n: int, seed: int) -> Array:
    """A symmetric matrix with normal entries."""
    a = np.random.default_rng(seed).standard_normal((n, n))
    return np.asarray(a + a.T)


def signs(n: int) -> NDArray[np.int8]:
    """Signs +1 and −1 in turn."""
    return np.where(np.arange(n) % 2 == 0, 1, -1).astype(np.int8)


def lowest(C: Array, r: int) -> float:
    """½ times the sum of the r smallest eigenvalues."""
    return 0.5 * float(scipy.linalg.eigh(C, subset_by_index=(0, r - 1))[0].sum())


def weighted(C: Array, D: Array) -> float:
    """min ½ tr(XᵀCXD) for a diagonal D."""
    values, mu = scipy.linalg.eigh(C)[0], np.sort(np.diag(D))[::-1]
    low, high = mu[mu > 0.0], mu[mu < 0.0][::-1]
    least = values[: low.size] @ low + values[::-1][: high.size] @ high
    return 0.5 * float(least)


def stored() -> Iterator[Case]:
    """XᵀX = I, f of a stored C, h = 0."""
    for n, r in ((200, 5), (500, 5), (500, 100), (1000, 5), (1000, 50), (1000, 400), (2000, 10)):
        C = symmetric(n, n)
        quadratic = ob.Quadratic(C)
        yield Case(
            "stored C",
            f"{n}, r = {r}",
            lambda q=quadratic, r=r: ob.StiefelProblem(q, FREE, r),
            lambda C=C, r=r: lowest(C, r),
            "eigh",
        )
    for n, r in ((500, 20), (1000, 10)):
        C = symmetric(n, n)
        for name, mu in (
            ("stored C, D ≥ 0", np.linspace(1.0, 2.0, r)),
            ("stored C, D of both signs", np.linspace(-1.0, 2.0, r)),
        ):
            quadratic = ob.Quadratic(C, D=np.diag(mu))
            yield Case(
                name,
                f"{n}, r = {r}",
                lambda q=quadratic, r=r: ob.StiefelProblem(q, FREE, r),
                lambda C=C, mu=mu: weighted(C, np.diag(mu)),
                "eigh",
            )
    a = np.random.default_rng(1).standard_normal((2000, 1500))
    covariance = a.T @ a
    for name, scale, at in (
        ("smallest of a covariance", 1.0, 0),
        ("largest of a covariance", -1.0, 1490),
    ):
        quadratic = ob.Quadratic(scale * covariance)
        yield Case(
            name,
            "1500, r = 10",
            lambda q=quadratic: ob.StiefelProblem(q, FREE, 10),
            lambda s=scale, at=at: (
                0.5
                * s
                * float(scipy.linalg.eigh(covariance, subset_by_index=(at, at + 9))[0].sum())
            ),
            "eigh",
        )


def data() -> Iterator[Case]:
    """XᵀX = I, f of data, h = 0."""
    rng = np.random.default_rng(2)
    for m, n, r in ((3000, 500, 10), (300, 5000, 10), (800, 3000, 5), (100, 20000, 5)):
        A = rng.standard_normal((m, n))
        yield Case(
            "dense data, largest",
            f"{m} × {n}, r = {r}",
            lambda A=A, r=r: ob.StiefelProblem(ob.GramQuadratic(A), FREE, r),
            lambda A=A, r=r: -0.5 * largest_of_data(A, r),
            "eigh of AᵀA or AAᵀ",
        )
        yield Case(
            "dense data, sparse PCA without a penalty",
            f"{m} × {n}, r = {r}",
            lambda A=A, r=r: ob.SparsePCAProblem(A, r, FREE, center=True),
            lambda A=A, r=r: -0.5 * largest_of_data(A - A.mean(axis=0), r),
            "eigh of AᵀA or AAᵀ",
        )
    A = rng.standard_normal((3000, 500))
    yield Case(
        "dense data, smallest",
        "3000 × 500, r = 10",
        lambda: ob.StiefelProblem(ob.GramQuadratic(A, 1.0), FREE, 10),
        lambda: 0.5 * float(scipy.linalg.eigh(A.T @ A, subset_by_index=(0, 9))[0].sum()),
        "eigh",
    )
    B = rng.standard_normal((300, 5000))
    yield Case(
        "dense data, all components",
        "300 × 5000, r = 300",
        lambda: ob.StiefelProblem(ob.GramQuadratic(B), FREE, 300),
        lambda: -0.5 * largest_of_data(B, 300),
        "eigh of AAᵀ",
    )
    for m, n, density, r in (
        (2000, 100_000, 1e-3, 5),
        (2000, 100_000, 1e-3, 20),
        (20_000, 3000, 2e-3, 10),
        (500, 2000, 0.05, 10),
        (100_000, 300, 0.01, 5),
        (300, 300, 0.1, 5),
    ):
        S = scipy.sparse.random(m, n, density, format="csr", random_state=3)
        for center in (False, True):
            yield Case(
                "sparse data" + (", centred" if center else ""),
                f"{m} × {n}, r = {r}",
                lambda S=S, r=r, center=center: ob.SparsePCAProblem(S, r, FREE, center=center),
                lambda S=S, r=r, center=center: -0.5 * float((svds(S, r, center) ** 2).sum()),
                "svds",
            )


def largest_of_data(A: Array, r: int) -> float:
    """Sum of the r largest eigenvalues of AᵀA, from the smaller Gram matrix."""
    wide = A.shape[0] < A.shape[1]
    gram = A @ A.T if wide else A.T @ A
    n = len(gram)
    values, vectors = scipy.linalg.eigh(gram, subset_by_index=(n - r, n - 1))
    if wide:
        vectors = A.T @ (vectors / np.sqrt(values))
    return float(values.sum())


def svds(S: Any, r: int, center: bool) -> Array:
    """The r largest singular values of a sparse matrix, centred on request."""
    operator = S
    if center:
        mean = np.asarray(S.mean(axis=0)).ravel()
        transposed = S.T.tocsr()

        def times(v: Array) -> Array:
            return np.asarray(S @ v - mean @ v)

        def transposed_times(v: Array) -> Array:
            return np.asarray(transposed @ v - np.multiply.outer(mean, v.sum(axis=0)))

        operator = scipy.sparse.linalg.LinearOperator(
            S.shape,
            matvec=lambda v: times(v.ravel()),
            rmatvec=lambda v: transposed_times(v.ravel()),
            matmat=times,
            rmatmat=transposed_times,
            dtype=float,
        )
    values: Array = scipy.sparse.linalg.svds(operator, r, return_singular_vectors=True)[1]
    return values


def linear() -> Iterator[Case]:
    """A linear term and a constant quadratic part: polar factors; square X ≥ 0: assignments."""
    for n, r in ((500, 500), (1000, 1000), (2000, 50), (5000, 300)):
        L = np.random.default_rng(n).standard_normal((n, r))
        objective = ob.Quadratic(np.zeros((n, n)), linear=L)
        yield Case(
            "linear term",
            f"{n}, r = {r}",
            lambda o=objective, r=r: ob.StiefelProblem(o, FREE, r),
            lambda L=L: -float(np.vdot(L, polar(L))),
            "svd",
        )
    n = 500
    C, L = symmetric(n, 1), np.random.default_rng(1).standard_normal((n, n))
    objective = ob.Quadratic(C, linear=L)
    yield Case(
        "C, linear term, square X",
        f"{n}, r = {n}",
        lambda: ob.StiefelProblem(objective, FREE, n),
        lambda: 0.5 * float(np.trace(C)) - float(np.vdot(L, polar(L))),
        "svd",
    )
    yield Case(
        "the same, rotations",
        f"{n}, r = {n}",
        lambda: ob.StiefelProblem(objective, FREE, n, determinant=1),
        lambda: 0.5 * float(np.trace(C)) - rotation_value(L),
        "svd",
    )
    for n in (300, 1000):
        cost = np.random.default_rng(n).random((n, n))
        assigned = ob.Quadratic(np.zeros((n, n)), linear=cost)
        yield Case(
            "linear term, square X ≥ 0",
            f"{n}, r = {n}",
            lambda o=assigned, n=n: ob.StiefelProblem(o, ob.NonNegative(), n),
            lambda c=cost: float(c[scipy.optimize.linear_sum_assignment(c)].sum()),
            "linear_sum_assignment",
        )


def polar(L: Array) -> Array:
    """The nearest matrix with orthonormal columns."""
    u, _, vt = scipy.linalg.svd(L, full_matrices=False)
    return np.asarray(u @ vt)


def rotation_value(L: Array) -> float:
    """max ⟨−L, X⟩ over rotations."""
    u, values, vt = scipy.linalg.svd(-L)
    sign = np.linalg.slogdet(u)[0] * np.linalg.slogdet(vt)[0]
    return float(values[:-1].sum() + sign * values[-1])


def hyperbolic() -> Iterator[Case]:
    """Square X with XᵀJX = J, or some of its columns, and C ≻ 0."""
    rng = np.random.default_rng(4)
    for m, n, ridge in (
        (150, 100, 0.0),
        (700, 500, 0.0),
        (1400, 1000, 0.0),
        (250, 500, 1.0),
        (100, 1000, 0.1),
    ):
        A = rng.standard_normal((m, n))
        J = signs(n)
        yield Case(
            "hyperbolic eigenvalues" + (f", ridge {ridge}" if ridge else ""),
            f"{m} × {n}",
            lambda A=A, J=J, ridge=ridge: ob.HyperbolicEigenvalueProblem(A, J, ridge=ridge),
            lambda A=A, J=J, ridge=ridge: total(A.T @ A + ridge * np.eye(len(J)), J),
            "eigh(J, C)",
        )
    n = 500
    S = scipy.sparse.random(3000, n, 0.01, format="csr", random_state=5)
    yield Case(
        "hyperbolic eigenvalues, sparse data, ridge 1",
        f"3000 × {n}",
        lambda: ob.HyperbolicEigenvalueProblem(S, signs(n), ridge=1.0),
        lambda: total((S.T @ S).toarray() + np.eye(n), signs(n)),
        "eigh(J, C)",
    )
    yield Case(
        "hyperbolic eigenvalues, max",
        f"3000 × {n}",
        lambda: ob.HyperbolicEigenvalueProblem(S, signs(n), sense="max"),
        lambda: -np.inf,
        "–",
    )
    C = rng.standard_normal((n, 2 * n))
    C = C @ C.T / n + 0.1 * np.eye(n)
    J = signs(n)
    quadratic = ob.Quadratic(2.0 * C)
    for r in (n, 50):
        yield Case(
            "J-orthogonal, C ≻ 0",
            f"{n}, r = {r}",
            lambda r=r: ob.JOrthogonalProblem(quadratic, J, n_components=r),
            lambda r=r: smallest(C, J, J[:r], np.ones(r)),
            "eigh(J, C)",
        )
    mu = np.linspace(2.0, 0.0, n)
    metric = ob.Quadratic(2.0 * C, D=np.diag(mu))
    yield Case(
        "J-orthogonal, C ≻ 0, D ≥ 0",
        f"{n}, r = {n}",
        lambda: ob.JOrthogonalProblem(metric, J),
        lambda: smallest(C, J, J, mu),
        "eigh(J, C)",
    )
    weights = np.where(J > 0, 1.0, 0.0)
    weights[np.flatnonzero(J > 0)[:10]] = 0.0
    yield Case(
        "hyperbolic PCA, 10 principal",
        f"{n}",
        lambda: ob.hyperbolic.HyperbolicPCAProblem(C, J, n_principal=10),
        lambda: smallest(J[:, None] * C * J, J, J, weights),
        "eigh(J, C)",
    )


def total(C: Array, J: NDArray[np.int8]) -> float:
    """Σ|eig(JC)|."""
    return float(np.sum(1.0 / np.abs(scipy.linalg.eigh(np.diag(J.astype(float)), C)[0])))


def smallest(C: Array, J: NDArray[np.int8], K: NDArray[np.int8], weights: Array) -> float:
    """min tr(W XᵀCX) over XᵀJX = diag(K)."""
    inverse = scipy.linalg.eigh(np.diag(J.astype(float)), C)[0]
    values = 1.0 / inverse
    out = 0.0
    for sign in (1, -1):
        of_sign = np.sort(np.abs(values[values * sign > 0.0]))
        w = np.sort(weights[sign == K])[::-1]
        out += float(of_sign[: w.size] @ w)
    return out


def least_time(call: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """The least processor time of some calls, and the last value."""
    best, value = np.inf, None
    for _ in range(repeat):
        begun = time.process_time()
        value = call()
        best = min(best, time.process_time() - begun)
    return best, value


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="kinds of cases, separated by commas")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    kinds = {"stored": stored, "data": data, "linear": linear, "hyperbolic": hyperbolic}
    chosen = arguments.only.split(",") if arguments.only else list(kinds)
    ob.solve(ob.StiefelProblem(ob.Quadratic(np.diag([1.0, 2.0])), FREE, 1), n_threads=1)
    print(
        "| problem | size | library | its seconds | ours | quotient | status "
        "| F above the library's |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for kind in chosen:
        for case in kinds[kind]():
            problem = case.problem()
            theirs, value = least_time(case.library, arguments.repeat)
            ours, result = least_time(lambda p=problem: ob.solve(p, n_threads=1), arguments.repeat)
            difference = (result.objective - value) / max(abs(value), 1e-300)
            print(
                f"| {case.name} | {case.size} | {case.program} | {theirs:.3f} | {ours:.3f} | "
                f"{ours / max(theirs, 1e-9):.1f} | {result.status.name} | {difference:.1e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
