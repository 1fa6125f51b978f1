"""Processor seconds of default fits by numbers of samples, features and components.

``OMP_NUM_THREADS=1 python scripts/seconds.py`` prints the table of docs/results/seconds.md in
about four minutes. The data are random: 12 sparse components beside noise, or sparse words.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import orthobcd as ob

PLANTED = 12
"""Number of sparse components that the dense data contain."""

LOADINGS = 10
"""Nonzero loadings per component, where a number is given."""


class Size(NamedTuple):
    """Numbers of samples and features, the share of nonzeros, and numbers of components."""

    m: int
    n: int
    density: float = 1.0
    r: tuple[int, ...] = (5, 20)


SIZES = (
    Size(500, 30),
    Size(500, 100),
    Size(500, 300),
    Size(1000, 1000),
    Size(20_000, 300),
    Size(100, 5000),
    Size(2000, 5000, 0.01, (5,)),
    Size(2000, 20_000, 0.005, (5,)),
)

FITS: dict[str, Callable[[int], Any]] = {
    "n_nonzero": lambda r: ob.SparsePCA(r, n_nonzero=LOADINGS * r, random_state=0),
    "alpha": lambda r: ob.SparsePCA(r, random_state=0),
    "NonnegativePCA": lambda r: ob.NonnegativePCA(r, random_state=0),
}
"""Fits by default, without a limit, on one thread."""


def data(size: Size) -> Any:
    """Return random data of this size."""
    rng = np.random.default_rng(0)
    if size.density < 1.0:
        return sp.random_array((size.m, size.n), density=size.density, format="csr", rng=rng)
    loadings = np.zeros((PLANTED, size.n))
    for row in loadings:
        row[rng.choice(size.n, LOADINGS, replace=False)] = 1.0
    scores = rng.standard_normal((size.m, PLANTED)) * np.linspace(1.5, 0.5, PLANTED)
    return scores @ loadings + rng.standard_normal((size.m, size.n))


def main() -> None:
    """Print the table."""
    print(f"| samples m | features n | components r | {' | '.join(FITS)} |")
    print("|" + "---|" * (3 + len(FITS)))
    for size in SIZES:
        matrix = data(size)
        for r in size.r:
            seconds = []
            for make in FITS.values():
                begun = time.process_time()
                make(r).fit(matrix)
                seconds.append(f"{time.process_time() - begun:.1f}")
            share = f", {size.density:.1%} nonzero" if size.density < 1.0 else ""
            print(f"| {size.m} | {size.n}{share} | {r} | {' | '.join(seconds)} |", flush=True)


if __name__ == "__main__":
    main()
