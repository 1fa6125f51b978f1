"""Compares sparse and nonnegative PCA with thresholded PCA: ``orthobcd demo [DATA]``.

PCA is thresholded to as many loadings as `SparsePCA` has (*threshold*), and then replaced by the
nearest orthonormal matrix (*threshold + ortho*). One function, `valued`, values all rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from . import plot
from ._internal.checks import FloatArray
from .data import Gram
from .io import read_matrix
from .sklearn import NonnegativePCA, SparsePCA

SHARES = (0.06, 0.125, 0.25)
"""Shares of nonzero loadings of the ℓ0 components; ℓ1 has the middle share."""


class Row(NamedTuple):
    """A row of the table: share of the variance of the span, ‖XᵀX − I‖_F, −½‖AX‖² of centred A."""

    method: str
    x: FloatArray
    explained: float
    nonzeros: int
    gap: float
    objective: float
    seconds: float


def valued(gram: Gram, method: str, x: FloatArray, seconds: float) -> Row:
    """The row of x, columns sorted by variance, for the Gram matrix of the centred data."""
    squares = np.sum(gram.scores(x) ** 2, axis=0)
    x = x[:, np.argsort(-squares, kind="stable")]
    x = x * np.where(np.sum(x**3, axis=0) < 0.0, -1.0, 1.0)
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    explained = float(np.sum(gram.scores(u[:, s > 1e-10 * s[0]]) ** 2)) / gram.total
    gap, count = float(np.linalg.norm(x.T @ x - np.eye(x.shape[1]))), int(np.count_nonzero(x))
    return Row(method, x, explained, count, gap, -0.5 * float(squares.sum()), seconds)


def keep_largest(x: FloatArray, count: int) -> FloatArray:
    """Keeps the ``count`` largest entries of x, at least one per column; normalises columns."""
    ranks = np.where(np.abs(x) == np.abs(x).max(axis=0), np.inf, np.abs(x))
    out = np.where(ranks >= np.sort(ranks, axis=None)[-max(count, x.shape[1])], x, 0.0)
    return np.asarray(out / np.linalg.norm(out, axis=0))


def compare(data: Any, r: int, seconds: float = 12.0) -> list[Row]:
    """The rows of the table; ``seconds`` is the time limit of the sparse fits together."""
    gram, rows, n = Gram.of_rows(data, center=True), list[Row](), data.shape[1]

    def fit(method: str, estimator: PCA | SparsePCA | NonnegativePCA) -> Any:
        start, x = time.perf_counter(), estimator.fit(data).components_.T
        rows.append(valued(gram, method, x, time.perf_counter() - start))
        return estimator

    axes = fit("PCA", PCA(r, svd_solver="covariance_eigh" if n <= 2000 else "arpack")).components_.T
    counts = [max(r, round(share * n * r)) for share in SHARES]
    how: Any = {"max_time": seconds / (len(SHARES) + 1), "random_state": 0, "n_jobs": -1}
    for count in counts:
        ours = fit(f"OBCD l0, {count} loadings", SparsePCA(r, n_nonzero=count, **how))
        thin = keep_largest(axes, ours.n_nonzero_)
        u, _, vt = np.linalg.svd(thin, full_matrices=False)
        rows.append(valued(gram, "  threshold", thin, rows[0].seconds))
        rows.append(valued(gram, "  threshold + ortho", u @ vt, rows[0].seconds))
    fit(f"OBCD l1, {counts[1]} loadings", SparsePCA(r, penalty="l1", n_nonzero=counts[1], **how))
    # Without a time limit the components do not depend on the speed of the machine.
    fit("OBCD nonnegative", NonnegativePCA(r, random_state=0, n_jobs=-1))
    return rows


def table(rows: Sequence[Row]) -> str:
    """The rows as text."""
    title = "{0:<22}{2:>11}{3:>9}{4:>11}{5:>14}{6:>9}".format(*Row._fields)
    form = "{0:<22}{2:>11.2%}{3:>9}{4:>11.1e}{5:>14.6g}{6:>9.2f}"
    return "\n".join([title, "-" * len(title), *(form.format(*row) for row in rows)])


def picture(rows: Sequence[Row], shape: tuple[int, int] | None) -> Any:
    """A figure of PCA, of the methods at the middle sparsity and of nonnegative PCA."""
    chosen, width = [rows[k] for k in (0, 5, 6, 4, -1)], min(rows[0].x.shape[1], 8 if shape else 3)
    drawn = np.concatenate([row.x.T[:width] for row in chosen])
    how: Any = {"kind": "images" if shape else "bars", "titles": [""] * len(drawn), "n_top": 8}
    grid = plot.components(drawn, image_shape=shape, max_columns=width, **how)
    for axis, row in zip(grid[::width], chosen, strict=True):
        name, place = row.method.strip(), {"transform": axis.transAxes, "fontsize": 9}
        head = f"{name}: {row.nonzeros} nonzeros explain {row.explained:.1%}, gap {row.gap:.0e}"
        axis.set_title(" ", fontsize=9)  # its height, without the width of the text
        axis.text(0.0, 1.04, head, **place).set_in_layout(False)
    return grid[0].figure


def run(data: str | None, files: Sequence[Path], components: int | None) -> Iterator[str]:
    """Compares the methods on a file, or the digits; writes table and picture, and yields texts."""
    matrix: Any = load_digits().data if data is None else read_matrix(data)[0]
    m, n = matrix.shape
    r = min(8, n // 2, m) if components is None else components
    if not 1 <= r <= min(m, n):
        raise ValueError(f"components must be between 1 and {min(m, n)}, got {r}")
    yield f"{data or 'digits'}: {m} samples, {n} features, {r} components\n"
    with warnings.catch_warnings():
        # Advice about the user's data has no place in a demonstration.
        warnings.simplefilter("ignore", UserWarning)
        rows = compare(matrix, r)
    yield table(rows)
    files[0].write_text(table(rows) + "\n", encoding="utf-8")
    picture(rows, (8, 8) if data is None else None).savefig(files[1], dpi=150)
    yield f"\nwrote {files[1]} and {files[0]}"
