"""Compares sparse and nonnegative PCA with thresholded PCA: ``orthobcd demo [DATA]``.

Without DATA the demo uses scikit-learn's handwritten digits and draws the components as 8 × 8
images. DATA may be any file that `orthobcd.io.read_matrix` reads, samples in rows. The demo prints
a table and writes ``table.txt`` and ``components.png``.

The two other methods start with exactly as many loadings as the ℓ0 components:

* *threshold*: PCA, all but the largest entries set to zero, columns normalised; no longer
  orthonormal;
* *threshold + ortho*: the orthonormal matrix nearest to *threshold*, which is dense again.

The objective of every row is ``−½‖AX‖²`` of the centred data A. Explained variance is the variance
of the orthogonal projection onto the span of the components.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ._internal.checks import FloatArray, is_sparse
from ._internal.gram import Gram
from ._internal.reading import reason_of
from ._internal.terminal import complain, say
from ._internal.writing import check_writable, is_same_file, replacing, write_text
from .io import UnreadableFile, read_matrix
from .io.matrices import KINDS

SECONDS = 12.0
"""Time limit of the sparse fits together, in seconds."""

SHARES = (0.06, 0.125, 0.25)
"""Shares of nonzero loadings for ℓ0; ℓ1 has the middle share."""


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    method: str
    x: FloatArray
    explained: float
    nonzeros: int
    gap: float
    objective: float
    seconds: float


class Variance:
    """Variances of centred data, by which every row of the table is computed."""

    def __init__(self, data: Any) -> None:
        self.rows = Gram.of_rows(data, center=True)

    def of_span(self, x: FloatArray) -> float:
        """Share of the variance of the projection onto the span of x."""
        u, s, _ = np.linalg.svd(x, full_matrices=False)
        return float(np.sum(self.rows.scores(u[:, s > 1e-10 * s[0]]) ** 2)) / self.rows.total

    def row(self, method: str, x: FloatArray, start: float) -> Row:
        """The row of x, which a method has made since ``start``; its columns are sorted."""
        seconds = time.perf_counter() - start
        squares = np.sum(self.rows.scores(x) ** 2, axis=0)
        x = x[:, np.argsort(-squares, kind="stable")]
        x = x * np.where(np.sum(x**3, axis=0) < 0.0, -1.0, 1.0)
        gap = float(np.linalg.norm(x.T @ x - np.eye(x.shape[1])))
        count, objective = int(np.count_nonzero(x)), -0.5 * float(squares.sum())
        return Row(method.format(count), x, self.of_span(x), count, gap, objective, seconds)


def keep_largest(x: FloatArray, count: int) -> FloatArray:
    """Keeps the ``count`` largest entries of x, at least one per column; normalises columns."""
    ranks = np.abs(x)
    ranks[np.argmax(ranks, axis=0), np.arange(x.shape[1])] = np.inf
    kept = np.argsort(-ranks, axis=None, kind="stable")[: max(count, x.shape[1])]
    out = np.zeros(x.shape)
    out.ravel()[kept] = x.ravel()[kept]
    return np.asarray(out / np.linalg.norm(out, axis=0))


def polar(x: FloatArray) -> FloatArray:
    """The nearest matrix with orthonormal columns."""
    u, _, vt = np.linalg.svd(x, full_matrices=False)
    return np.asarray(u @ vt)


def compare(data: Any, r: int, seconds: float = SECONDS) -> list[Row]:
    """The rows of the table: PCA, then for every sparsity ours and the two other methods."""
    from sklearn.decomposition import PCA

    from .sklearn import NonnegativePCA, SparsePCA

    variance, n = Variance(data), data.shape[1]
    solver = "covariance_eigh" if n <= 2000 else "arpack" if is_sparse(data) else "auto"
    shared: Any = {"random_state": 0, "n_jobs": -1, "max_time": seconds / (len(SHARES) + 1)}
    now = time.perf_counter
    start = now()
    axes = PCA(r, svd_solver=solver).fit(data).components_.T
    rows = [variance.row("PCA", axes, start)]
    counts = [max(r, round(share * n * r)) for share in SHARES]
    with warnings.catch_warnings():
        # Advice about the user's data has no place in a demonstration.
        warnings.simplefilter("ignore", UserWarning)
        for count in dict.fromkeys(counts):
            start, ours = now(), SparsePCA(r, n_nonzero=count, **shared).fit(data)
            rows.append(variance.row("OBCD l0, {} loadings", ours.components_.T, start))
            start, thin = now(), keep_largest(axes, ours.n_nonzero_)
            rows.append(variance.row("  threshold", thin, start))
            rows.append(variance.row("  threshold + ortho", polar(thin), start))
        start, ours = now(), SparsePCA(r, penalty="l1", n_nonzero=counts[1], **shared).fit(data)
        rows.append(variance.row("OBCD l1, {} loadings", ours.components_.T, start))
        # Without a time limit the components do not depend on the speed of the machine.
        start, parts = now(), NonnegativePCA(r, random_state=0, n_jobs=-1).fit(data)
        rows.append(variance.row("OBCD nonnegative", parts.components_.T, start))
    return rows


# Showing -----------------------------------------------------------------------------------------


def table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    head = ("method", "explained", "nonzeros", "||X'X-I||", "objective", "seconds")
    cells = [
        f"{row.method:<22}{100 * row.explained:9.2f} %{row.nonzeros:9d}{row.gap:11.1e}"
        f"{row.objective:14.6g}{row.seconds:9.2f}"
        for row in rows
    ]
    title = "{:<22}{:>11}{:>9}{:>11}{:>14}{:>9}".format(*head)
    return "\n".join([title, "-" * len(title), *cells])


def picture(
    rows: Sequence[Row], path: Path, shape: tuple[int, int] | None, *, overwrite: bool = True
) -> None:
    """Draws components of PCA, of the methods at the middle sparsity and of nonnegative PCA."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib.figure import Figure

    from . import plot

    sparse = [k for k, row in enumerate(rows) if row.method.startswith("OBCD l0")]
    middle = sparse[len(sparse) // 2]
    chosen = [rows[0], rows[middle + 1], rows[middle + 2], rows[middle], rows[-1]]
    columns = min(rows[0].x.shape[1], 8 if shape else 3)
    size = (1.1 * columns, 1.35 * len(chosen)) if shape else (3.2 * columns, 2.4 * len(chosen))
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    grid = figure.subplots(len(chosen), columns, squeeze=False)
    drawn = np.concatenate([row.x.T[:columns] for row in chosen])
    kind: Any = "bars" if shape is None else "images"
    plot.components(
        drawn, image_shape=shape, kind=kind, titles=[""] * len(drawn), n_top=8, axes=grid.ravel()
    )
    for axis, row in zip(grid[:, 0], chosen, strict=True):
        label = f"{row.method.strip()}: {row.nonzeros} nonzeros, {row.explained:.1%} explained, "
        label += rf"$\|X^TX-I\|$ = {row.gap:.0e}"
        axis.set_title(label, loc="left", fontsize=8).set_in_layout(False)
    with replacing(path, overwrite=overwrite) as part:
        figure.savefig(part)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command ``orthobcd demo``; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="orthobcd demo",
        description="Compares sparse and nonnegative PCA with thresholded PCA.",
    )
    data = f"samples in rows: {KINDS} (default: scikit-learn's digits)"
    parser.add_argument("data", nargs="?", help=data)
    parser.add_argument("--out", default="out/demo", help="folder for the table and the plot")
    parser.add_argument("--components", type=int, help="number of components")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    try:
        return _show(parser.parse_args(arguments))
    except (UnreadableFile, OSError) as error:
        complain(f"error: {reason_of(error)}")
        return 2


def _show(options: argparse.Namespace) -> int:
    """Runs the demo with parsed options; returns the exit code."""
    files = (Path(options.out) / "table.txt", Path(options.out) / "components.png")
    files[0].parent.mkdir(parents=True, exist_ok=True)
    for file in files:
        if options.data is not None and is_same_file(file, options.data):
            raise OSError(f"--out: {file} is the file that is read")
        try:
            check_writable(file, overwrite=options.force)
        except FileExistsError:
            raise OSError(f"--out: {file} is there; --force replaces it") from None
    name: str = "scikit-learn's digits"
    shape: tuple[int, int] | None = (8, 8)
    if options.data is None:
        from sklearn.datasets import load_digits

        data: Any = load_digits().data
    else:
        (data, _), name, shape = read_matrix(options.data), options.data, None
    m, n = data.shape
    r = options.components if options.components is not None else min(8, n // 2, m)
    if not 1 <= r <= min(m, n):
        complain(f"error: --components must be between 1 and {min(m, n)}, got {r}")
        return 2
    say(f"{name}: {m} samples, {n} features, {r} components\n")
    rows = compare(data, r)
    text = table(rows)
    say(text)
    write_text(files[0], text + "\n", overwrite=options.force)
    picture(rows, files[1], shape, overwrite=options.force)
    say(f"\nwrote {files[1]} and {files[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
