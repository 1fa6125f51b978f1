"""Second moments from blocks of rows: ours, NumPy's product, and covariances of other packages.

``OMP_NUM_THREADS=1 python benchmarks/scripts/moments.py PART [options]`` prints one table. PART is

- ``beside [--sizes 400 2000] [--means 0 100 1000] [--rows 20480] [--types float32 float64]``:
  methods for blocks of 2048 rows with a few strong directions, each in its own process on one
  thread. Columns are processor seconds relative to NumPy's float64 product of the same blocks,
  megabytes beside a block at the peak, and relative errors of the covariance (Frobenius norm) and
  of the three largest variances (the largest error). The reference is a float64 product about the
  means of a first pass.

  - ``product``: float64 ``X.T @ X``, the unit of seconds; not a covariance, so without an error
  - ``fast``, ``exact``: moments of this package
  - ``IncrementalPCA``: three components of scikit-learn's, block by block
  - ``dask-ml``: three components of its PCA with the randomised solver
  - ``scanpy``: the covariance E[xx] - E[x]E[x] of its PCA of Dask arrays
- ``file [--rows 1000000] [--features 4000] [--folder .]``: a float32 file of this size, made block
  by block, fitted and deleted. Columns are resident megabytes, processor seconds including the
  reading, and the rate relative to NumPy's product, which is timed on one in 50 blocks
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dask
import dask.array
import numpy as np
from scipy.sparse.linalg import eigsh
from sklearn.decomposition import IncrementalPCA

import orthobcd as ob
from orthobcd._core import Moments

BLOCK = 2048
LEADING = 3


class Data(NamedTuple):
    """Blocks that are made when they are read."""

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
    """A covariance, the largest variances alone, or neither of them."""

    covariance: np.ndarray | None
    variances: np.ndarray | None


def largest(covariance: np.ndarray) -> np.ndarray:
    """Return the three largest eigenvalues."""
    start = np.ones(len(covariance))
    return np.sort(eigsh(covariance, LEADING, v0=start, return_eigenvectors=False))[::-1]


class Method:
    """A method that adds blocks and returns a covariance at the end."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def add(self, block: np.ndarray) -> None:
        """Add a block."""
        raise NotImplementedError

    def end(self) -> None:
        """Finish the computation after the last block."""

    def found(self) -> Found:
        """Return the covariance or the variances of the blocks."""
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

    def end(self) -> None:
        # The matrix C of the objective: minus the sums of squares.
        self.covariance = self.moments.read(True, False, False, 1)[1]

    def found(self) -> Found:
        self.covariance /= -self.data.rows
        return Found(self.covariance, largest(self.covariance))


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


class Lazy(Method):
    """All blocks at once as a Dask array, on one thread."""

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.blocks: list[np.ndarray] = []

    def add(self, block: np.ndarray) -> None:
        self.blocks.append(block)

    def end(self) -> None:
        shape = (BLOCK, self.data.features)
        parts = [dask.array.from_array(block, chunks=shape) for block in self.blocks]
        X = dask.array.concatenate(parts)
        with dask.config.set(scheduler="single-threaded"):
            self.fit(X)

    def fit(self, X: Any) -> None:
        """Fit to the array."""
        raise NotImplementedError


class DaskML(Lazy):
    def __init__(self, data: Data) -> None:
        super().__init__(data)
        from dask_ml.decomposition import PCA

        self.model = PCA(LEADING, svd_solver="randomized", random_state=0)

    def fit(self, X: Any) -> None:
        self.model.fit(X)

    def found(self) -> Found:
        rows = self.data.rows
        return Found(None, np.asarray(self.model.explained_variance_) * (rows - 1) / rows)


class Scanpy(Lazy):
    def __init__(self, data: Data) -> None:
        super().__init__(data)
        # Function by which scanpy's PCA of Dask arrays computes its covariance.
        from scanpy.preprocessing._pca._dask import _cov_sparse_dask

        self.covariance_of = _cov_sparse_dask

    def fit(self, X: Any) -> None:
        self.covariance = self.covariance_of(X)[0]

    def found(self) -> Found:
        covariance = self.covariance.astype(float)
        return Found(covariance, largest(covariance))


METHODS: dict[str, Callable[[Data], Method]] = {
    "product": Product,
    "fast": Ours,
    "exact": Exact,
    "IncrementalPCA": Incremental,
    "dask-ml": DaskML,
    "scanpy": Scanpy,
}


def truth(data: Data) -> np.ndarray:
    """Return the covariance by two passes in float64."""
    mean = sum(block.astype(float).sum(axis=0) for block in data.blocks()) / data.rows
    total = np.zeros((data.features, data.features))
    for block in data.blocks():
        centred = block.astype(float) - mean
        total += centred.T @ centred
    return total / data.rows


def megabytes(name: str) -> float:
    """Return a size of this process: VmRSS or RssAnon now, or VmHWM at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def peak() -> float:
    """Return the peak memory of this process in megabytes, since the last reset if any."""
    return megabytes("VmHWM")


def measure(name: str, data: Data, to: Any) -> None:
    """Send seconds, megabytes beside the block, and the covariance or variances."""
    blocks = data.blocks()
    block = next(blocks)
    before, highest, seconds = megabytes("VmRSS"), 0.0, 0.0
    method = METHODS[name](data)

    def timed(call: Callable[..., None], *given: Any) -> None:
        nonlocal highest, seconds
        Path("/proc/self/clear_refs").write_text("5")
        begun = time.process_time()
        call(*given)
        seconds += time.process_time() - begun
        highest = max(highest, peak())

    timed(method.add, block)
    for block in blocks:
        timed(method.add, block)
    timed(method.end)
    to.send((seconds, highest - before, method.found()))


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


def beside(options: argparse.Namespace) -> None:
    """Print the methods beside each other."""
    print("| n | type | mean | method | x product | MB | covariance | variances |")
    print("|" + "---|" * 8)
    for n in options.sizes:
        for dtype in options.types:
            for mean in options.means:
                data = Data(options.rows, n, mean, dtype)
                covariance = truth(data)
                variances = largest(covariance)
                base = 1.0
                for name in options.methods:
                    seconds, memory, found = run(name, data)
                    base = seconds if name == "product" else base
                    errors = [error(found[0], covariance), error(found[1], variances)]
                    print(
                        f"| {n} | {dtype} | {mean:g} | {name} | {seconds / base:.1f} | "
                        f"{memory:.0f} | {' | '.join(errors)} |",
                        flush=True,
                    )


class Timed:
    """Processor seconds and megabytes of a block of statements."""

    def __enter__(self) -> Timed:
        self.begun, self.wall, self.before = time.process_time(), time.perf_counter(), peak()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.process_time() - self.begun
        self.elapsed = time.perf_counter() - self.wall
        self.memory = peak() - self.before


def read(path: str, n: int) -> Iterator[np.ndarray]:
    """Yield blocks of a file of float32 numbers."""
    with open(path, "rb") as stream:
        while len(block := np.fromfile(stream, np.float32, BLOCK * n)):
            yield block.reshape(-1, n)


def over(path: str, n: int) -> tuple[float, ...]:
    """Return megabytes before a fit and at its peak, its seconds, and the share of NumPy's rate."""
    product = counted = 0.0

    def blocks() -> Iterator[np.ndarray]:
        nonlocal product, counted
        for k, block in enumerate(read(path, n)):
            if k % 50 == 0:
                with Timed() as timed:
                    double = block.astype(float)
                    double.T @ double
                product, counted = product + timed.seconds, counted + 1
                del double
            yield block

    next(blocks())
    product = counted = 0.0
    before = peak()
    pca = ob.SparsePCA(3, n_nonzero=60, precision="fast", random_state=0)
    with Timed() as fit:
        pca.fit(blocks)
    own = fit.seconds - product
    rows = Path(path).stat().st_size / (4 * n)
    return before, peak(), own, (product / counted) * (rows / BLOCK) / own


def file(options: argparse.Namespace) -> None:
    """Fit to a file that is made block by block."""
    m, n = options.rows // BLOCK * BLOCK, options.features
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "data"
        blocks = Data(4 * BLOCK, n, 10.0, "float32").blocks()
        known = list(blocks)
        with path.open("wb") as stream:
            for k in range(m // BLOCK):
                # Four blocks, each time with their rows in another order and of another size.
                stream.write((np.roll(known[k % 4], k, axis=0) * np.float32(1 + k % 7)).tobytes())
        size = path.stat().st_size / 1e9
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            *numbers, share = pool.apply(over, (str(path), n))
    print("| shape | GB | peak MB before | with the fit | fit s | share |")
    print("|" + "---|" * 6)
    cells = " | ".join(f"{number:.0f}" for number in numbers)
    print(f"| {m} x {n} | {size:.1f} | {cells} | {share:.0%} |")


def main() -> None:
    """Print the table of a part."""
    parts = {f.__name__: f for f in (beside, file)}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=parts)
    parser.add_argument("--sizes", type=int, nargs="*", default=[400, 2000])
    parser.add_argument("--means", type=float, nargs="*", default=[0.0, 100.0, 1000.0])
    parser.add_argument("--types", nargs="*", default=["float32", "float64"])
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--rows", type=int, default=20 * 1024)
    parser.add_argument("--features", type=int, default=4000)
    parser.add_argument("--folder", default=".")
    options = parser.parse_args()
    parts[options.part](options)


if __name__ == "__main__":
    main()
