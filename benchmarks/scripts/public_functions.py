"""Processor seconds of the public functions beside the plainest equivalent, on one thread.

``OMP_NUM_THREADS=1 python benchmarks/scripts/public_functions.py`` prints the table. A row is the
best of three calls, or one call if that takes more than a second. "plain" is what a user would
write with NumPy, SciPy, pandas or scikit-learn; where that is not the same computation the last
column says what differs.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.linalg
import scipy.optimize
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF, PCA, IncrementalPCA, MiniBatchSparsePCA
from sklearn.model_selection import GridSearchCV

import orthobcd as ob
import orthobcd.io
import orthobcd.plot

Call = Callable[[], Any]
Row = tuple[str, Call, str, Call, str]

ENOUGH = 1.0
"""Processor seconds from which one call is measured."""


def seconds(call: Call) -> float:
    """Processor seconds of a call, the least of three."""
    best = np.inf
    for _ in range(3):
        began = time.process_time()
        call()
        best = min(best, time.process_time() - began)
        if best > ENOUGH:
            break
    return best


def spherical(a: np.ndarray) -> Any:
    """Ten runs of k-means for normalised samples."""
    unit = a / np.linalg.norm(a, axis=1, keepdims=True)
    return KMeans(10, n_init=10, random_state=0).fit(unit)


def parallel(x: np.ndarray) -> np.ndarray:
    """Parallel analysis: eigenvalues of correlations of permuted columns."""
    rng = np.random.default_rng(0)
    z = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0.0, x.std(axis=0), 1.0)
    return np.array(
        [
            np.linalg.eigvalsh(p.T @ p)
            for p in (
                np.column_stack([rng.permutation(column) for column in z.T]) for _ in range(20)
            )
        ]
    )


def subgradient(v: np.ndarray) -> float:
    """Ten starts of a Riemannian subgradient method, as in rotation.py with one first length."""
    rng, best = np.random.default_rng(0), np.inf
    for _ in range(10):
        r = np.linalg.qr(rng.standard_normal((v.shape[1],) * 2))[0]
        for length in np.geomspace(0.1, 1e-8, 2000):
            x = v @ r
            best = min(best, float(np.abs(x).sum()))
            slope = v.T @ np.sign(x)
            turn = r.T @ slope
            direction = slope - r @ (turn + turn.T) / 2.0
            u, _, vt = np.linalg.svd(r - length / np.linalg.norm(direction) * direction)
            r = u @ vt
    return best


def halves(x: np.ndarray, fits: int) -> None:
    """Fits to random halves of the samples."""
    rng = np.random.default_rng(0)
    for _ in range(fits):
        half = x[rng.permutation(len(x))[: len(x) // 2]]
        ob.SparsePCA(5, n_nonzero=40, random_state=0).fit(half)


def estimators(x: np.ndarray) -> Iterator[Row]:
    """Rows of the estimators and of what takes data."""
    sparse = ob.SparsePCA(5, n_nonzero=40, random_state=0)
    fitted, pca = ob.SparsePCA(5, n_nonzero=40, random_state=0).fit(x), PCA(5).fit(x)
    scores, S = fitted.transform(x), np.cov(x, rowvar=False)
    numbers = [10, 20, 40, 80]
    grid = {"n_nonzero": numbers}
    yield (
        "SparsePCA.fit, 5 × 40 loadings",
        lambda: sparse.fit(x),
        "scikit-learn's MiniBatchSparsePCA",
        lambda: MiniBatchSparsePCA(5, random_state=0).fit(x),
        "a search for orthonormal components with 40 loadings",
    )
    yield (
        "SparsePCA.partial_fit, update=False",
        lambda: ob.SparsePCA(5).partial_fit(x, update=False),
        "IncrementalPCA.partial_fit",
        lambda: IncrementalPCA(5).partial_fit(x),
        "",
    )
    yield (
        "SparsePCA.fit_covariance",
        lambda: sparse.fit_covariance(S, len(x)),
        "numpy.linalg.eigh",
        lambda: np.linalg.eigh(S),
        "a search for 40 loadings, which eigenvectors do not have",
    )
    yield (
        "SparsePCA.transform",
        lambda: fitted.transform(x),
        "PCA.transform",
        lambda: pca.transform(x),
        "",
    )
    yield (
        "SparsePCA.inverse_transform",
        lambda: fitted.inverse_transform(scores),
        "PCA.inverse_transform",
        lambda: pca.inverse_transform(scores),
        "",
    )
    yield "SparsePCA.score", lambda: fitted.score(x), "PCA.score", lambda: pca.score(x), ""
    yield (
        "NonnegativePCA.fit",
        lambda: ob.NonnegativePCA(5, random_state=0).fit(x),
        "NMF.fit",
        lambda: NMF(5, random_state=0, max_iter=2000).fit(x),
        "a search for orthonormal components",
    )
    yield (
        "OrthogonalNMF(10).fit",
        lambda: ob.OrthogonalNMF(10, random_state=0).fit(x),
        "ten runs of spherical k-means",
        lambda: spherical(x),
        "a search, whose objective is lower",
    )
    yield (
        "SparsePCACV.fit, 4 numbers of loadings",
        lambda: ob.SparsePCACV(5, n_nonzeros=numbers, random_state=0).fit(x),
        "GridSearchCV of SparsePCA",
        lambda: GridSearchCV(sparse, grid).fit(x),
        "",
    )
    yield (
        "support_stability, 50 subsamples",
        lambda: ob.support_stability(sparse, x, random_state=0),
        "50 fits of SparsePCA",
        lambda: halves(x, 50),
        "",
    )
    yield (
        "choose_n_components, parallel",
        lambda: ob.choose_n_components(x, random_state=0),
        "loop over 20 permutations",
        lambda: parallel(x),
        "",
    )


def imputed(x: np.ndarray, most: int = 20, repeats: int = 20) -> np.ndarray:
    """Errors of held-out entries, by 20 singular value decompositions for each number."""
    rng, errors = np.random.default_rng(0), np.zeros((repeats, most))
    z = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0.0, x.std(axis=0), 1.0)
    for repeat in range(repeats):
        out = rng.random(z.shape) < 0.1
        filled = np.where(out, 0.0, z)
        for r in range(1, most + 1):
            for _ in range(20):
                vectors = np.linalg.eigh(filled.T @ filled)[1][:, -r:]
                filled = np.where(out, (filled @ vectors) @ vectors.T, z)
            errors[repeat, r - 1] = np.mean((filled - z)[out] ** 2)
    return errors


def held_out(x: np.ndarray) -> Iterator[Row]:
    """The row of held-out entries."""
    yield (
        "choose_n_components, held_out",
        lambda: ob.choose_n_components(x, "held_out", random_state=0),
        "20 decompositions for each number and repeat",
        lambda: imputed(x),
        "",
    )


def core(triples: np.ndarray, count: int) -> np.ndarray:
    """Triples without the entities of least degree, one entity after the other."""
    alive = set(triples[:, [0, 2]].ravel().tolist())
    while len(alive) > count:
        degree = np.bincount(triples[:, [0, 2]].ravel(), minlength=max(alive) + 1)
        least = min(alive, key=lambda entity: (degree[entity], -entity))
        alive.remove(least)
        triples = triples[(triples[:, 0] != least) & (triples[:, 2] != least)]
    return triples


def pictures(x: np.ndarray) -> Iterator[Row]:
    """Rows of plots."""
    matplotlib.use("Agg")
    pca = ob.SparsePCA(5, n_nonzero=40, random_state=0).fit(x)
    z = pca.transform(x)[:, :2]

    def drawn(draw: Callable[[Any], Any]) -> Call:
        """Draws into new axes and closes them."""

        def call() -> None:
            draw(plt.figure().add_subplot())
            plt.close("all")

        return call

    def circle(ax: Any) -> None:
        for column in x.T[x.std(axis=0) > 0.0]:
            tip = [np.corrcoef(column, own)[0, 1] for own in z.T]
            ax.arrow(0.0, 0.0, *tip)
        ax.set_xlim(-1.1, 1.1)

    def bars(_: Any) -> None:
        for k, own in enumerate(pca.components_):
            top = np.argsort(-np.abs(own))[:12]
            plt.subplot(1, 5, k + 1).barh(range(12), own[top])

    shares = pca.explained_variance_ratio_
    path = ob.regularization_path(x, 5)
    rows: list[tuple[str, Call, Call]] = [
        ("components", lambda: (ob.plot.components(pca), plt.close("all")), drawn(bars)),
        (
            "scores",
            drawn(lambda ax: ob.plot.scores(pca, x, ax=ax)),
            drawn(lambda ax: ax.scatter(*z.T)),
        ),
        (
            "correlation_circle",
            drawn(lambda ax: ob.plot.correlation_circle(pca, x, ax)),
            drawn(circle),
        ),
        (
            "scree",
            drawn(lambda ax: ob.plot.scree(pca, ax=ax)),
            drawn(lambda ax: ax.plot(np.cumsum(shares))),
        ),
        (
            "path",
            drawn(lambda ax: ob.plot.path(path, ax=ax)),
            drawn(lambda ax: ax.plot(path.alphas, path.n_nonzero)),
        ),
        (
            "convergence",
            drawn(lambda ax: ob.plot.convergence(pca.result_, ax=ax)),
            drawn(lambda ax: ax.plot(pca.result_.history["seconds"])),
        ),
    ]
    for name, ours, plain in rows:
        yield f"plot.{name}", ours, "the same marks by matplotlib", plain, ""


def paths(x: np.ndarray) -> Iterator[Row]:
    """Rows of problems, paths and rotations."""
    centred = x - x.mean(axis=0)
    C = centred.T @ centred
    quadratic = ob.StiefelProblem(ob.Quadratic(-C), ob.NoPenalty(), 5)
    penalised = ob.StiefelProblem(ob.Quadratic(-C), ob.L0(1e3), 5)
    point = ob.solve(penalised, solver=ob.OBCD()).x
    loadings = np.linalg.qr(np.random.default_rng(0).standard_normal((500, 10)))[0]
    basis = np.linalg.qr(np.random.default_rng(1).standard_normal((60, 60)))[0]
    flat = np.random.default_rng(2).standard_normal(300)
    function = ob.SmoothFunction(lambda y: (0.5 * float(np.sum(y * (C @ y))), C @ y), 64, 5)

    def value(y: np.ndarray) -> float:
        return 0.5 * float(y @ y)

    yield (
        "solve, no penalty, n = 64",
        lambda: ob.solve(quadratic),
        "numpy.linalg.eigh",
        lambda: np.linalg.eigh(C),
        "checks and the report of the search",
    )
    yield (
        "certify",
        lambda: ob.certify(penalised, point),
        "value and gradient by NumPy",
        lambda: (np.sum(point * (C @ point)), C @ point),
        "every pair of rows is solved",
    )
    yield (
        "lam_max",
        lambda: ob.lam_max(x, 5),
        "second moments by NumPy",
        lambda: (x - x.mean(axis=0)).T @ (x - x.mean(axis=0)),
        "",
    )
    yield (
        "regularization_path, 20 weights",
        lambda: ob.regularization_path(x, 5),
        "20 solves by OBCD",
        lambda: [
            ob.solve(ob.StiefelProblem(ob.Quadratic(-C), ob.L0(1e5 * 0.6**k), 5), solver=ob.OBCD())
            for k in range(20)
        ],
        "",
    )
    yield (
        "rotate_loadings, 500 × 10, ten starts",
        lambda: ob.rotate_loadings(loadings),
        "subgradient method, ten starts",
        lambda: subgradient(loadings),
        "a lower sum, see [sparse rotation](rotation.md)",
    )
    yield (
        "basis_factorization, n = 60",
        lambda: ob.basis_factorization(basis),
        "numpy.linalg.qr",
        lambda: np.linalg.qr(basis),
        "",
    )
    yield (
        "check_gradient",
        lambda: ob.check_gradient(function, point),
        "scipy.optimize.check_grad",
        lambda: scipy.optimize.check_grad(value, lambda y: y, flat),
        "",
    )


def mixed() -> Iterator[Row]:
    """Rows of factorizations for mixed signatures."""
    rng = np.random.default_rng(0)
    tall, square = rng.standard_normal((400, 300)), rng.standard_normal((200, 200))
    signs = np.where(np.arange(400) < 200, 1, -1)
    few = np.where(np.arange(200) < 100, 1, -1)
    near = np.eye(200) + 0.02 * square
    steep = np.where(signs[:, np.newaxis] > 0, 3.0, 0.1) * tall[:, :50]
    cs = ob.hyperbolic.random_j_orthogonal(few, seed=0)
    rows: list[Row] = [
        (
            "hyperbolic_qr, 400 × 300",
            lambda: ob.hyperbolic.hyperbolic_qr(tall, signs),
            "numpy.linalg.qr",
            lambda: np.linalg.qr(tall),
            "after that QR a column at a time, as signs can change",
        ),
        (
            "indefinite_polar, n = 200",
            lambda: ob.hyperbolic.indefinite_polar(near, few),
            "scipy.linalg.polar",
            lambda: scipy.linalg.polar(near),
            "the eigenvalues that decide its existence are found too",
        ),
        (
            "indefinite_least_squares, 400 × 50",
            lambda: ob.hyperbolic.indefinite_least_squares(steep, tall[:, 0], signs),
            "numpy.linalg.lstsq",
            lambda: np.linalg.lstsq(steep, tall[:, 0]),
            "a hyperbolic QR",
        ),
        (
            "hyperbolic_cs, n = 200",
            lambda: ob.hyperbolic.hyperbolic_cs(cs, few),
            "scipy.linalg.cossin",
            lambda: scipy.linalg.cossin(np.linalg.qr(square)[0], p=100, q=100),
            "",
        ),
        (
            "random_j_orthogonal, n = 200",
            lambda: ob.hyperbolic.random_j_orthogonal(few, seed=0),
            "scipy.linalg.expm",
            lambda: scipy.linalg.expm(0.05 * square),
            "",
        ),
        (
            "well_posedness, n = 200",
            lambda: ob.hyperbolic.well_posedness(square.T @ square, few),
            "scipy.linalg.eig of a pencil",
            lambda: scipy.linalg.eig(square.T @ square, np.diag(few.astype(float))),
            "",
        ),
    ]
    yield from rows


def files(folder: Path) -> Iterator[Row]:
    """Rows of readers."""
    table, triples = folder / "table.csv", folder / "triples.tsv"
    rng = np.random.default_rng(0)
    names = [f"feature {k}" for k in range(100)]
    pd.DataFrame(rng.standard_normal((5000, 100)), columns=names).to_csv(table, index=False)
    entities = pd.DataFrame(rng.integers(0, 2000, (50_000, 3))).map("e{}".format)
    entities.to_csv(triples, sep="\t", index=False, header=False)
    yield (
        "io.read_matrix, 5000 × 100",
        lambda: orthobcd.io.read_matrix(table),
        "pandas.read_csv",
        lambda: pd.read_csv(table),
        "",
    )
    yield (
        "load_triples, 50,000",
        lambda: ob.kg.load_triples(triples),
        "pandas.read_csv and factorize",
        lambda: [pd.read_csv(triples, sep="\t", header=None)[k].factorize() for k in range(3)],
        "",
    )
    numbered = rng.integers(0, 2000, (50_000, 3)) % [2000, 10, 2000]
    yield (
        "dense_core, 2000 to 1500 entities",
        lambda: ob.kg.dense_core(numbered, 1500),
        "the same by NumPy, an entity at a time",
        lambda: core(numbered, 1500),
        "",
    )
    pca = ob.SparsePCA(5, n_nonzero=40, random_state=0).fit(load_digits().data)
    saved, plain, pickled = folder / "pca.npz", folder / "plain.npz", folder / "pca.joblib"
    components, mean = pca.components_, pca.mean_
    yield (
        "io.write_components",
        lambda: orthobcd.io.write_components(saved, components, mean=mean),
        "numpy.savez",
        lambda: np.savez(plain, components=components, mean=mean),
        "a new file is complete or absent",
    )
    yield (
        "io.load_components",
        lambda: orthobcd.io.load_components(saved),
        "numpy.load",
        lambda: dict(np.load(plain)),
        "checks",
    )
    yield (
        "SparsePCA.save",
        lambda: pca.save(saved),
        "joblib.dump",
        lambda: joblib.dump(pca, pickled),
        "no pickle",
    )
    yield (
        "SparsePCA.load",
        lambda: ob.SparsePCA.load(saved),
        "joblib.load",
        lambda: joblib.load(pickled),
        "checks of every array",
    )


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    x = load_digits().data
    print("| function | s | plain | s | times | what differs |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        groups = (estimators(x), held_out(x), paths(x), mixed(), pictures(x))
        for group in (*groups, files(Path(folder))):
            for name, ours, plain, theirs, note in group:
                mine, other = seconds(ours), seconds(theirs)
                ratio = f"{mine / other:.1f}"
                print(
                    f"| {name} | {mine:.4f} | {plain} | {other:.4f} | {ratio} | {note} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
