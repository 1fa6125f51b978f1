"""Estimators without limits, beside the same fits with more effort.

``ORTHOBCD_DATA=<folder> OMP_NUM_THREADS=1 python scripts/default_fits.py [--effort 4] [--jobs 2]
[--only NAME ...]`` prints the table of docs/results/default-fits.md, with ``--sizes --effort 1``
that of docs/results/seconds.md: random data of many sizes, 12 sparse components beside noise or
sparse words. Columns are processor seconds of the default fit and of the longer fit, on one thread
each, and the relative excess of the default objective over the lower of both. ``--effort 1`` leaves
the longer fits out. ``--jobs`` fits run at the same time. Data sets that are not in the folder are
listed as absent.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits

import orthobcd as ob

PER_COMPONENT = 10
"""Nonzero loadings per component, where a number is given, and of a planted component."""

PLANTED = 12
"""Number of sparse components that the planted data contain."""


class Data(NamedTuple):
    """A data set: its reader, whether features are scaled, and numbers of components."""

    read: Callable[[Path], Any]
    scale: bool = False
    components: tuple[int, ...] = (5, 20)


def dense(name: str, dtype: type = float) -> Callable[[Path], Any]:
    """Read a dense array."""
    return lambda folder: np.load(folder / f"{name}.npz")["X"].astype(dtype)


def sparse(name: str) -> Callable[[Path], Any]:
    """Read a sparse matrix."""
    return lambda folder: sp.load_npz(folder / f"{name}.csr.npz").astype(float).tocsr()


def words(m: int, n: int, density: float) -> Callable[[Path], Any]:
    """Return sparse rows with uniformly distributed nonzeros."""
    return lambda _: sp.random_array(
        (m, n), density=density, format="csr", rng=np.random.default_rng(0)
    )


def normal(m: int, n: int) -> Callable[[Path], Any]:
    """Return dense normal data."""
    return lambda _: np.random.default_rng(0).standard_normal((m, n))


def planted(m: int, n: int) -> Callable[[Path], Any]:
    """Return sparse components of falling variance, beside noise."""

    def made(_: Path) -> np.ndarray:
        rng = np.random.default_rng(0)
        loadings = np.zeros((PLANTED, n))
        for row in loadings:
            row[rng.choice(n, PER_COMPONENT, replace=False)] = 1.0
        scores = rng.standard_normal((m, PLANTED)) * np.linspace(1.5, 0.5, PLANTED)
        return scores @ loadings + rng.standard_normal((m, n))

    return made


DATA = {
    "digits": Data(lambda _: load_digits().data),
    "breast-cancer": Data(lambda _: load_breast_cancer().data, True),
    "leukemia": Data(dense("leukemia_golub"), True),
    "arcene": Data(dense("arcene")),
    "reuters_t10": Data(sparse("reuters_t10")),
    "news_t5": Data(sparse("news_t5")),
    "tdt2": Data(sparse("tdt2")),
    "mnist, uint8": Data(dense("mnist_train", np.uint8)),
    "mnist, float32": Data(dense("mnist_train", np.float32)),
    "normal, 20,000 × 300": Data(normal(20_000, 300)),
    "sparse, 2,000 × 100,000": Data(words(2000, 100_000, 10 / 2000)),
    "sparse, 2,000 × 1,000,000": Data(words(2000, 1_000_000, 10 / 2000)),
}

SIZES = {
    **{
        f"{m} × {n}": Data(planted(m, n))
        for m, n in ((500, 30), (500, 100), (500, 300), (1000, 1000), (20_000, 300), (100, 5000))
    },
    "2000 × 5000, 1.0% nonzero": Data(words(2000, 5000, 0.01), components=(5,)),
    "2000 × 20000, 0.5% nonzero": Data(words(2000, 20_000, 0.005), components=(5,)),
}

FITS: dict[str, Callable[..., Any]] = {
    f"`SparsePCA`, `n_nonzero` = {PER_COMPONENT} a component": lambda r, **options: ob.SparsePCA(
        r, n_nonzero=PER_COMPONENT * r, **options
    ),
    "`SparsePCA`": lambda r, **options: ob.SparsePCA(r, **options),
    "`NonnegativePCA`": lambda r, **options: ob.NonnegativePCA(r, **options),
}


class Row(NamedTuple):
    """A fit, to run with the default effort and with this one."""

    data: str
    components: int
    fit: str
    effort: float


class Outcome(NamedTuple):
    """Seconds and objectives of the default and the longer fit."""

    seconds: float
    longer: float
    objective: float
    best: float

    @property
    def behind(self) -> float:
        """Relative excess of the default objective over the lower of both objectives."""
        return (self.objective - min(self.objective, self.best)) / abs(self.best)


def run(row: Row) -> Outcome | None:
    """Fit with the default effort, then with more; None without data."""
    data = {**DATA, **SIZES}[row.data]
    try:
        matrix = data.read(Path(os.environ.get("ORTHOBCD_DATA", ".")))
    except FileNotFoundError:
        return None
    seconds, objectives = [], []
    for effort in (1.0, row.effort):
        model = FITS[row.fit](row.components, scale=data.scale, random_state=0, effort=effort)
        begun = time.process_time()
        model.fit(matrix)
        seconds.append(time.process_time() - begun)
        objectives.append(model.objective_)
        if row.effort == 1.0:
            return Outcome(seconds[0], 0.0, objectives[0], objectives[0])
    return Outcome(*seconds, *objectives)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--effort", type=float, default=4.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sizes", action="store_true", help="random data instead")
    parser.add_argument("--only", nargs="*", choices=[*DATA, *SIZES])
    options = parser.parse_args()
    chosen = SIZES if options.sizes else DATA
    rows = [
        Row(name, components, fit, options.effort)
        for name in options.only or chosen
        for components in {**DATA, **SIZES}[name].components
        for fit in FITS
    ]
    print("| data | components | estimator | default, s | longer, s | objective | behind by |")
    print("|" + "---|" * 7)
    behind = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for row, found in zip(rows, pool.map(run, rows), strict=True):
            what = f"| {row.data} | {row.components} | {row.fit} |"
            if found is None:
                print(what, "absent | | | |", flush=True)
                continue
            behind.append(found.behind)
            gap = f"{found.behind:.1e}" if found.behind > 1e-9 else "0"
            print(
                what,
                f"{found.seconds:.1f} | {found.longer:.0f} | {found.objective:.8g} | {gap} |",
                flush=True,
            )
    if behind:
        print(f"\nmedian {statistics.median(behind):.1e}, largest {max(behind):.1e}")


if __name__ == "__main__":
    main()
