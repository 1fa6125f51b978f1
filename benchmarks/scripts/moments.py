"""Second moments from blocks of rows: ours, NumPy's product, scikit-learn's, and sums in float32.

``OMP_NUM_THREADS=1 python benchmarks/scripts/moments.py [--sizes 400 2000] [--means 0 100 1000]
[--rows 20480]`` prints, for float32 and float64 blocks of 2048 rows with a few strong directions:
processor seconds on one thread relative to NumPy's float64 product of the same blocks, megabytes
beyond the process before, and the relative errors of the covariance (Frobenius norm) and of the
three largest variances (the largest of the three). Every method runs in a process of its own. The
truth is a float64 product about the means that a first pass has found.

- ``product``: float64 ``X.T @ X``, the bar for seconds; not a covariance, so without an error
- ``fast``, ``exact``: :class:`Moments` of this package
- ``IncrementalPCA``: three components of scikit-learn's, block by block
- ``float32 sums``: E[xx] - E[x]E[x] in the type of the data, as covariances of sparse counts are
  often computed
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from sklearn.decomposition import IncrementalPCA

from orthobcd._core import Moments

BLOCK = 2048
LEADING = 3


class Data(NamedTuple):
    """Blocks that are made when they are asked for."""

    rows: int
    features: int
    mean: float
    dtype: str

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield the blocks, the same ones each time."""
        factors = np.random.default_rng(0).standard_normal((LEADING + 2, self.features))
        for k in range(self.rows // BLOCK):
            rng = np.random.default_rng((1, k))
            scores = rng.standard_normal((BLOCK, len(factors))) * np.arange(len(factors), 0, -1)
            noise = rng.standard_normal((BLOCK, self.features))
            yield (self.mean + scores @ factors + noise).astype(self.dtype)


class Found(NamedTuple):
    """A covariance, or the largest variances alone, or neither."""

    covariance: np.ndarray | None
    variances: np.ndarray | None


def largest(covariance: np.ndarray) -> np.ndarray:
    """Return the three largest eigenvalues."""
    n = len(covariance)
    values = scipy.linalg.eigh(covariance, eigvals_only=True, subset_by_index=(n - LEADING, n - 1))
    return values[::-1]


class Method:
    """What is done with each block, and what is found in the end."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def add(self, block: np.ndarray) -> None:
        """Take a block in."""
        raise NotImplementedError

    def found(self) -> Found:
        """Return what the blocks say."""
        raise NotImplementedError


class Product(Method):
    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.sum = np.zeros((data.features, data.features))

    def add(self, block: np.ndarray) -> None:
        block = block.astype(float, copy=False)
        self.sum += block.T @ block

    def found(self) -> Found:
        return Found(None, None)


class Ours(Method):
    precision = "fast"

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.moments = Moments(data.features, self.precision)

    def add(self, block: np.ndarray) -> None:
        self.moments.add(block, None, 1)

    def found(self) -> Found:
        # What is minimised: minus the sums of squares.
        _, c, _ = self.moments.read(True, False, False, 1)
        covariance = -c / self.data.rows
        return Found(covariance, largest(covariance))


class Exact(Ours):
    precision = "exact"


class Incremental(Method):
    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.model = IncrementalPCA(LEADING)

    def add(self, block: np.ndarray) -> None:
        self.model.partial_fit(block)

    def found(self) -> Found:
        rows = self.data.rows
        return Found(None, self.model.explained_variance_ * (rows - 1) / rows)


class Float32Sums(Method):
    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.squares = np.zeros((data.features, data.features), data.dtype)
        self.sums = np.zeros(data.features, data.dtype)

    def add(self, block: np.ndarray) -> None:
        self.squares += block.T @ block
        self.sums += block.sum(axis=0)

    def found(self) -> Found:
        mean = self.sums / self.data.rows
        covariance = (self.squares / self.data.rows - np.outer(mean, mean)).astype(float)
        return Found(covariance, largest(covariance))


METHODS: dict[str, Callable[[Data], Method]] = {
    "product": Product,
    "fast": Ours,
    "exact": Exact,
    "IncrementalPCA": Incremental,
    "float32 sums": Float32Sums,
}


def truth(data: Data) -> np.ndarray:
    """Return the covariance by two passes in float64."""
    mean = sum(block.astype(float).sum(axis=0) for block in data.blocks()) / data.rows
    total = np.zeros((data.features, data.features))
    for block in data.blocks():
        centred = block.astype(float) - mean
        total += centred.T @ centred
    return total / data.rows


def peak() -> float:
    """Return the megabytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, data: Data, to: Any) -> None:
    """Send seconds, megabytes and what was found."""
    next(data.blocks())
    before = peak()
    method = METHODS[name](data)
    seconds = 0.0
    for block in data.blocks():
        begun = time.process_time()
        method.add(block)
        seconds += time.process_time() - begun
    to.send((seconds, peak() - before, method.found()))


def run(name: str, data: Data) -> tuple[float, float, Found]:
    """Measure in a fresh process."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=measure, args=(name, data, there))
    process.start()
    there.close()
    found = here.recv()
    process.join()
    return found


def error(found: np.ndarray | None, true: np.ndarray) -> str:
    """Show a relative error."""
    if found is None:
        return ""
    if found.ndim == 1:
        return f"{np.max(np.abs(found - true) / true):.1e}"
    return f"{np.linalg.norm(found - true) / np.linalg.norm(true):.1e}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[400, 2000])
    parser.add_argument("--means", type=float, nargs="*", default=[0.0, 100.0, 1000.0])
    parser.add_argument("--rows", type=int, default=20 * 1024)
    options = parser.parse_args()
    print("| n | type | mean | method | x product | MB | covariance | variances |")
    print("|" + "---|" * 8)
    for n in options.sizes:
        for dtype in ("float32", "float64"):
            for mean in options.means:
                data = Data(options.rows, n, mean, dtype)
                covariance = truth(data)
                variances = largest(covariance)
                base = 1.0
                for name in METHODS:
                    seconds, memory, found = run(name, data)
                    base = seconds if name == "product" else base
                    errors = [error(found[0], covariance), error(found[1], variances)]
                    print(
                        f"| {n} | {dtype} | {mean:g} | {name} | {seconds / base:.1f} | "
                        f"{memory:.0f} | {' | '.join(errors)} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
