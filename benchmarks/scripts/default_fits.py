"""Estimators without limits, beside the same fits with more effort.

``ORTHOBCD_DATA=<folder> OMP_NUM_THREADS=1 python scripts/default_fits.py [--effort 4] [--jobs 2]
[--only NAME ...]`` prints the table of docs/results/default-fits.md. Columns are processor
seconds of the default fit and of the longer fit, on one thread each, and the relative excess of the
default objective over the lower of both. ``--effort 1`` leaves the longer fits out. ``--jobs``
fits run at the same time. Data sets that are not in the folder are listed as absent.
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
"""Nonzero loadings per component, where a number is given."""


class Data(NamedTuple):
    """A data set: its reader, and whether features are scaled."""

    scale: bool
    read: Callable[[Path], Any]


def dense(name: str) -> Callable[[Path], Any]:
    """Read a dense array."""
    return lambda folder: np.load(folder / f"{name}.npz")["X"].astype(float)


def sparse(name: str) -> Callable[[Path], Any]:
    """Read a sparse matrix."""
    return lambda folder: sp.load_npz(folder / f"{name}.csr.npz").astype(float).tocsr()


def images(dtype: type) -> Callable[[Path], Any]:
    """Read the training images of MNIST as numbers of this type."""
    return lambda folder: np.load(folder / "mnist_train.npz")["X"].astype(dtype)


def random_columns(n: int) -> Callable[[Path], Any]:
    """Return 2,000 sparse rows with n features, ten random nonzeros in each feature."""
    rng = np.random.default_rng(0)
    return lambda _: sp.random_array((2000, n), density=10 / 2000, format="csr", rng=rng)


def normal(m: int, n: int) -> Callable[[Path], Any]:
    """Return dense normal data."""
    return lambda _: np.random.default_rng(0).standard_normal((m, n))


DATA = {
    "digits": Data(False, lambda _: load_digits().data),
    "breast-cancer": Data(True, lambda _: load_breast_cancer().data),
    "leukemia": Data(True, dense("leukemia_golub")),
    "arcene": Data(False, dense("arcene")),
    "reuters_t10": Data(False, sparse("reuters_t10")),
    "news_t5": Data(False, sparse("news_t5")),
    "tdt2": Data(False, sparse("tdt2")),
    "mnist, uint8": Data(False, images(np.uint8)),
    "mnist, float32": Data(False, images(np.float32)),
    "normal, 20,000 × 300": Data(False, normal(20_000, 300)),
    "sparse, 2,000 × 100,000": Data(False, random_columns(100_000)),
    "sparse, 2,000 × 1,000,000": Data(False, random_columns(1_000_000)),
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
    data = DATA[row.data]
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
    parser.add_argument("--components", type=int, nargs="*", default=[5, 20])
    parser.add_argument("--only", nargs="*", default=list(DATA), choices=list(DATA))
    options = parser.parse_args()
    rows = [
        Row(name, components, fit, options.effort)
        for name in options.only
        for components in options.components
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
