"""Compares sparse and nonnegative PCA with thresholded PCA: ``orthobcd demo [DATA]``.

Without DATA the demo uses scikit-learn's handwritten digits and draws the components as 8 × 8
images. DATA may be any file that `orthobcd.io.read_matrix` reads, samples in rows. The demo prints
a table and writes ``table.txt`` and ``components.png``.

The two other methods start with exactly as many nonzeros as the ℓ0 components:

* *threshold*: PCA, all but the largest entries set to zero, columns normalised; no longer
  orthonormal;
* *threshold + ortho*: the orthonormal matrix nearest to *threshold*, which is dense again.

Explained variance is the variance of the orthogonal projection onto the span of the components;
for orthonormal components it is the sum of their variances.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import (
    Cardinality,
    NonnegativePCAProblem,
    PathPoint,
    Result,
    SparsePCAProblem,
    regularization_path,
    solve,
)
from ._internal.checks import FloatArray
from ._internal.moments import Moments
from ._internal.reading import reason_of
from ._internal.terminal import complain, say
from ._internal.writing import check_writable, is_same_file, replacing, write_text
from .io import UnreadableFile, read_matrix
from .io.matrices import KINDS
from .regularization import PenaltyName

SECONDS = 12.0
"""Time limit of a path and the solves that start at its points, in seconds."""

SHARES = (0.06, 0.125, 0.25)
"""Shares of nonzero entries for ℓ0; ℓ1 is shown near the middle share."""


# Scores ------------------------------------------------------------------------------------------


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


class Variance(Moments):
    """Variances of centred data, without forming an n × n matrix if n is large."""

    def __init__(self, data: Any) -> None:
        super().__init__(data, center=True)

    def of_span(self, x: FloatArray) -> float:
        """Share of the variance of the projection onto the span of x."""
        u, s, _ = np.linalg.svd(x, full_matrices=False)
        basis = u[:, s > 1e-10 * s[0]]
        return float(np.sum(self.scores(basis) ** 2)) / self.total

    def principal(self, r: int) -> FloatArray:
        """The first r principal axes."""
        n = self.data.shape[1]
        if n <= 2000:
            gram = self.gram_rows(slice(None))
            return np.asarray(np.linalg.eigh(gram)[1][:, ::-1][:, :r])
        from scipy.sparse.linalg import LinearOperator, svds

        m = self.data.shape[0]
        operator = LinearOperator(
            (m, n),
            matvec=self.scores,
            rmatvec=self.transposed,
            dtype=np.float64,
        )
        return np.asarray(svds(operator, k=r, random_state=0)[2][::-1].T)


def keep_largest(x: FloatArray, count: int) -> FloatArray:
    """Keeps the ``count`` largest entries of x, at least one per column; normalises columns."""
    kept = np.zeros(x.shape, dtype=bool)
    kept[np.argmax(np.abs(x), axis=0), np.arange(x.shape[1])] = True
    order = np.argsort(-np.abs(x), axis=None)
    free = order[~kept.ravel()[order]][: max(count - x.shape[1], 0)]
    kept.ravel()[free] = True
    out = np.where(kept, x, 0.0)
    return np.asarray(out / np.linalg.norm(out, axis=0))


def polar(x: FloatArray) -> FloatArray:
    """The nearest matrix with orthonormal columns."""
    u, _, vt = np.linalg.svd(x, full_matrices=False)
    return np.asarray(u @ vt)


def ordered(x: FloatArray, variance: Variance) -> FloatArray:
    """Components by decreasing variance, each with a nonnegative sum of cubes."""
    order = np.argsort(-np.sum(variance.scores(x) ** 2, axis=0), kind="stable")
    x = x[:, order]
    return np.asarray(x * np.where(np.sum(x**3, axis=0) < 0.0, -1.0, 1.0))


def compare(data: Any, r: int, seconds: float = SECONDS) -> list[Row]:
    """The rows of the table: PCA, then for every sparsity ours and the two other methods."""
    variance = Variance(data)
    n = data.shape[1]
    rows: list[Row] = []

    def add(method: str, x: FloatArray, objective: float, elapsed: float) -> None:
        x = ordered(x, variance)
        rows.append(
            Row(
                method,
                x,
                variance.of_span(x),
                int(np.count_nonzero(x)),
                float(np.linalg.norm(x.T @ x - np.eye(r))),
                objective,
                elapsed,
            )
        )

    def half(x: FloatArray) -> float:
        return -0.5 * float(np.sum(variance.scores(x) ** 2))

    start = time.perf_counter()
    axes = variance.principal(r)
    add("PCA", axes, half(axes), time.perf_counter() - start)
    targets = [max(r, round(share * n * r)) for share in SHARES]
    for ours, lam, elapsed in points_of(data, r, "l0", targets, seconds):
        add(f"OBCD l0, lam = {lam:.3g}", ours.x, ours.objective, elapsed)
        start = time.perf_counter()
        thin = keep_largest(axes, ours.n_nonzero)
        elapsed = time.perf_counter() - start
        add("  threshold", thin, half(thin) + lam * np.count_nonzero(thin), elapsed)
        ortho = polar(thin)
        elapsed = time.perf_counter() - start
        add("  threshold + ortho", ortho, half(ortho) + lam * np.count_nonzero(ortho), elapsed)
    for ours, lam, elapsed in points_of(data, r, "l1", targets[1:2], seconds):
        add(f"OBCD l1, lam = {lam:.3g}", ours.x, ours.objective, elapsed)
    start = time.perf_counter()
    # Without a time limit the components do not depend on the speed of the machine.
    parts = solve(NonnegativePCAProblem(data, r, center=True))
    add("OBCD nonnegative", parts.x, parts.objective, time.perf_counter() - start)
    return rows


def points_of(
    data: Any, r: int, penalty: PenaltyName, targets: Sequence[int], seconds: float
) -> list[tuple[Result | PathPoint, float, float]]:
    """The point of a regularisation path with the nearest number of nonzeros, for every target.

    For ℓ0 a solve with that limit on nonzeros then starts at the point.

    Returns a list of (result, λ, seconds of the path and of the solve).
    """
    started = time.perf_counter()
    followed = regularization_path(
        data, r, penalty, n_nonzero=targets[-1], center=True, max_time=0.5 * seconds, tol=1e-8
    )
    begun = time.perf_counter() - started
    points: list[tuple[Result | PathPoint, float, float]] = []
    for target in dict.fromkeys(targets):
        index = followed.nearest(target)
        found = followed.results[index]
        point: Result | PathPoint = found
        lam = found.lam
        elapsed = time.perf_counter() - started
        if penalty == "l0":
            problem = SparsePCAProblem(data, r, Cardinality(target), center=True)
            left = max(seconds - elapsed, 0.0) / len(targets)
            point = solve(problem, point.x, max_time=left)
        points.append((point, lam, begun + time.perf_counter() - started - elapsed))
    return points


# Showing -----------------------------------------------------------------------------------------


def table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    head = ("method", "explained", "nonzeros", "||X'X-I||", "objective", "seconds")
    cells = [
        (
            row.method,
            f"{100 * row.explained:.2f} %",
            str(row.nonzeros),
            f"{row.gap:.1e}",
            f"{row.objective:.6g}",
            f"{row.seconds:.2f}",
        )
        for row in rows
    ]
    widths = [max(len(line[k]) for line in [head, *cells]) for k in range(len(head))]

    def line(values: Sequence[str]) -> str:
        first, *rest = values
        return "  ".join([first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])])

    return "\n".join([line(head), "  ".join("-" * w for w in widths), *map(line, cells)])


def picture(
    rows: Sequence[Row], path: Path, shape: tuple[int, int] | None, *, overwrite: bool = True
) -> None:
    """Draws the components of selected rows: images of the given shape, or bars."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib.figure import Figure

    from . import plot
    from .plot.drawing import PALETTE

    chosen = _worth_a_look(rows)
    columns = min(chosen[0].x.shape[1], 8)
    figure = Figure(figsize=(1.05 * columns + 2.35, 1.12 * len(chosen) + 0.42), dpi=150)
    axes = figure.subplots(len(chosen), columns, squeeze=False)
    for line, row in zip(axes, chosen, strict=True):
        limit = float(np.abs(row.x[:, :columns]).max())
        for k, axis in enumerate(line):
            component = row.x[:, k]
            if shape is not None:
                plot.components(component[None, :], image_shape=shape, titles=[""], axes=axis)
            else:
                kept = np.argsort(-np.abs(component))[:30]
                axis.bar(
                    np.arange(len(kept)), component[np.sort(kept)], color=PALETTE[0], width=0.9
                )
                axis.set_ylim(-limit, limit)
            axis.set_xticks([])
            axis.set_yticks([])
            for spine in axis.spines.values():
                spine.set_color("0.7")
        ours = row.method.startswith("OBCD")
        label = (
            f"{row.method.strip()}\n{row.nonzeros} nonzeros\n"
            f"{100 * row.explained:.1f} % explained\n" + r"$\|X^TX-I\|$ = " + f"{row.gap:.0e}"
        )
        line[0].text(
            -0.12,
            0.5,
            label,
            transform=line[0].transAxes,
            ha="right",
            va="center",
            fontsize=9.5,
            fontweight="bold" if ours else "normal",
        )
    width, height = figure.get_size_inches()
    if shape is not None:
        note = "purple: positive   orange: negative   grey: exactly zero"
    else:
        note = "the 30 largest loadings of every component"
    figure.text(0.99, 0.06 / height, note, ha="right", va="bottom", fontsize=9.5)
    figure.subplots_adjust(
        left=2.25 / width,
        right=0.99,
        top=1 - 0.08 / height,
        bottom=0.34 / height,
        wspace=0.06,
        hspace=0.08,
    )
    with replacing(path, overwrite=overwrite) as part:
        figure.savefig(part)


def _worth_a_look(rows: Sequence[Row]) -> list[Row]:
    """The rows to draw: PCA, the other methods and ℓ0 at the middle sparsity, nonnegative PCA."""
    sparse = [i for i, row in enumerate(rows) if row.method.startswith("OBCD l0")]
    middle = sparse[len(sparse) // 2]
    return [rows[0], rows[middle + 1], rows[middle + 2], rows[middle], rows[-1]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command ``orthobcd demo``; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="orthobcd demo",
        description="Compares sparse and nonnegative PCA with thresholded PCA.",
    )
    parser.add_argument(
        "data",
        nargs="?",
        help=f"samples in rows: {KINDS} (default: scikit-learn's digits)",
    )
    parser.add_argument("--out", default="out/demo", help="folder for the table and the plot")
    parser.add_argument("--components", type=int, default=None, help="number of components")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    options = parser.parse_args(arguments)
    try:
        return _show(options)
    except (UnreadableFile, OSError) as error:
        complain(f"error: {reason_of(error)}")
        return 2


def _show(options: argparse.Namespace) -> int:
    """Runs the demo with parsed options; returns the exit code."""
    out = Path(options.out)
    files = (out / "table.txt", out / "components.png")
    _check_files(files, options)
    shape: tuple[int, int] | None = None
    if options.data is None:
        from sklearn.datasets import load_digits

        data: Any = load_digits().data
        name, shape = "scikit-learn's digits", (8, 8)
    else:
        data, _ = read_matrix(options.data)
        name = options.data
    m, n = data.shape
    r = options.components if options.components is not None else min(8, n // 2, m)
    if not 1 <= r <= min(m, n):
        complain(f"error: --components must be between 1 and {min(m, n)}, got {r}")
        return 2
    say(f"{name}: {m} samples, {n} features, {r} components\n")
    rows = compare(data, r)
    text = table(rows)
    try:
        write_text(files[0], text + "\n", overwrite=options.force)
        picture(rows, files[1], shape, overwrite=options.force)
        written = f"wrote {files[1]} and {files[0]}"
    finally:
        say(text)
    say(f"\n{written}")
    return 0


def _check_files(files: Sequence[Path], options: argparse.Namespace) -> None:
    """Checks before the solves that the files can be written.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    files[0].parent.mkdir(parents=True, exist_ok=True)
    for file in files:
        if options.data is not None and is_same_file(file, options.data):
            raise OSError(f"--out: {file} is the file that is read")
        try:
            check_writable(file, overwrite=options.force)
        except FileExistsError:
            raise OSError(f"--out: {file} is there; --force replaces it") from None


if __name__ == "__main__":
    sys.exit(main())
