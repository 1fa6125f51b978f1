"""The drawings of the guide: `python docs/drawings.py docs/images`."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import orthobcd as ob

mpl.rcParams.update({"font.size": 10, "svg.hashsalt": "orthobcd", "svg.fonttype": "path"})
BLUE, ORANGE, GREY, LIGHT = "#1f6fb2", "#d9730d", "#777777", "#e4e4e4"


def front() -> Figure:
    """Components of the digits: principal and sparse ones."""
    X = load_digits().data
    dense = PCA(5).fit(X)
    sparse = ob.SparsePCA(n_components=5, n_nonzero=40, random_state=0).fit(X)
    figure = Figure(figsize=(8.4, 4.1), layout="constrained")
    parts = figure.subfigures(2, 1)
    for part, (name, pca) in zip(parts, (("PCA", dense), ("SparsePCA", sparse)), strict=True):
        axes = part.subplots(1, 5)
        used = np.count_nonzero(pca.components_)
        share = pca.explained_variance_ratio_.sum()
        part.suptitle(f"{name}: {used} of 320 loadings, {share:.0%} of the variance", fontsize=11)
        for ax, component in zip(axes, pca.components_, strict=True):
            limit = np.abs(component).max()
            image = np.where(component == 0.0, np.nan, component).reshape(8, 8)
            colours = mpl.colormaps["PuOr"].with_extremes(bad="#d0d0d0")
            ax.imshow(image, cmap=colours, vmin=-limit, vmax=limit)
            ax.set(xticks=[], yticks=[])
    return figure


def pair() -> Figure:
    """One move: two rows of X are multiplied by a rotation or a reflection."""
    figure = Figure(figsize=(7.2, 2.6), layout="constrained")
    ax = figure.subplots()
    rows, moved = 7, (1, 4)
    for left, colour in ((0.0, BLUE), (11.4, ORANGE)):
        for row in range(rows):
            for column in range(3):
                face = colour if row in moved else LIGHT
                ax.add_patch(Rectangle((left + column, rows - 1 - row), 0.94, 0.88, color=face))
    ax.text(1.45, -0.7, "X", ha="center")
    ax.text(12.85, -0.7, "X after the move", ha="center")
    for row, name in zip(moved, "ij", strict=True):
        ax.text(-0.25, rows - 0.6 - row, f"row ${name}$", ha="right", va="center")
    ax.annotate("", (11.0, 3.4), (3.4, 3.4), arrowprops={"arrowstyle": "->", "color": GREY})
    ax.text(7.2, 4.0, "2 × 2 matrix V of one angle", ha="center")
    ax.text(7.2, 1.7, "all other rows stay,\nXᵀX stays", ha="center", color=GREY)
    ax.set(xlim=(-2.2, 16.0), ylim=(-1.1, rows + 0.2), aspect="equal")
    ax.axis("off")
    return figure


def angle() -> Figure:
    """F along the angle of one pair, ℓ0 sparse PCA, with its breakpoints and its minimum."""
    rng = np.random.default_rng(4)
    C, Z = np.array([[3.0, 1.1], [1.1, 1.6]]), np.array([[0.62, -0.25, 0.3], [0.2, 0.55, 0.0]])
    G, lam = 0.6 * rng.standard_normal((2, 3)), 0.12
    t = np.linspace(1e-3, 2.0 * np.pi - 1e-3, 2000)

    def value(theta: float, flip: float) -> float:
        c, s = np.cos(theta), np.sin(theta)
        X = np.array([[c, s], [-s, c]]) @ np.diag([flip, 1.0]) @ Z
        smooth = -0.5 * np.sum(X * (C @ X)) + np.sum(G * X)
        return float(smooth + lam * np.sum(np.abs(X) > 1e-9))

    figure = Figure(figsize=(7.6, 3.1), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    best = (np.inf, 0.0, 0)
    for k, (ax, flip, name) in enumerate(
        zip(axes, (1.0, -1.0), ("rotations", "reflections"), strict=True)
    ):
        x, y = flip * Z[0], Z[1]
        breaks = np.concatenate([np.arctan2(-x, y), np.arctan2(y, x)])
        breaks = np.unique(np.round(np.concatenate([breaks, breaks + np.pi]) % (2 * np.pi), 12))
        ax.plot(t, [value(v, flip) for v in t], color=BLUE, zorder=1)
        at = [value(v, flip) for v in breaks]
        ax.scatter(breaks, at, s=22, color=ORANGE, zorder=2, label="an entry is exactly zero")
        every = np.concatenate([t, breaks])
        values = [value(v, flip) for v in every]
        low = int(np.argmin(values))
        best = min(best, (values[low], float(every[low]), k))
        ax.set(title=name, xlabel="angle", xticks=[0, np.pi, 2 * np.pi])
        ax.set_xticklabels(["0", "π", "2π"])
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("F")
    spot = {"s": 90, "facecolors": "none", "edgecolors": "black", "linewidths": 1.6, "zorder": 3}
    axes[best[2]].scatter([best[1]], [best[0]], label="minimum of the pair", **spot)
    axes[best[2]].legend(frameon=False, loc="upper right", fontsize=9)
    return figure


def tiles() -> Figure:
    """All pairs inside a tile are solved on a small model; then the tile is committed."""
    figure = Figure(figsize=(7.2, 2.7), layout="constrained")
    ax = figure.subplots()
    chosen = (2, 5, 9)
    for row in range(12):
        face = BLUE if row in chosen else LIGHT
        ax.add_patch(Rectangle((0.0, 11 - row), 3.0, 0.86, color=face))
    ax.text(1.5, -1.0, "rows of X", ha="center", va="top")
    spots = {row: (6.0 + 1.5 * k, 6.0 + (k == 1) * 2.4) for k, row in enumerate(chosen)}
    for row, (x, y) in spots.items():
        ax.plot([3.1, x - 0.3], [11.4 - row, y], color=GREY, lw=0.8)
    names = list(spots.values())
    for i in range(3):
        for j in range(i):
            ax.plot(*zip(names[i], names[j], strict=True), color=ORANGE, lw=2, zorder=1)
    ax.scatter(*zip(*names, strict=True), s=160, color=BLUE, zorder=2)
    ax.text(7.5, 3.6, "all pairs in the tile,\neach solved globally", ha="center", va="top")
    ax.annotate("", (13.0, 6.6), (10.0, 6.6), arrowprops={"arrowstyle": "->", "color": GREY})
    ax.text(11.5, 7.4, "commit", ha="center")
    ax.add_patch(Rectangle((13.4, 2.0), 5.2, 9.4, color=LIGHT))
    ax.add_patch(Rectangle((13.4, 6.2), 5.2, 1.2, color=ORANGE))
    ax.text(16.0, 1.4, "gradient of all rows:\none matrix product", ha="center", va="top")
    ax.set(xlim=(-0.3, 19.2), ylim=(-2.4, 12.4))
    ax.axis("off")
    return figure


def layers() -> Figure:
    """The modules of the crate: each uses those below it."""
    rows = [
        ("python, ultrahyperbolic", "bindings for the package; applications"),
        ("search, cardinality", "which heuristic runs next, and for how long"),
        ("heuristic", "methods that make a point, a file each"),
        ("certificate", "stationarity of a point, lower bounds"),
        ("solver, continuation, finite_sum", "the loop of one solve, limits, statuses"),
        (
            "support, rotation, start, riemann",
            "points on a support, first points, moves of all rows",
        ),
        ("block, problem, moments", "pairs inside a working set; f, h and J together"),
        (
            "objective, working_set, manifold",
            "f, its data and columns of C; rows that move; X\u1d40JX",
        ),
        ("penalty, signature", "h, and J"),
        ("pair", "one angle, solved globally"),
        ("ground", "errors, threads, counted work, dense kernels"),
    ]
    figure = Figure(figsize=(7.8, 4.4), layout="constrained")
    ax = figure.subplots()
    for k, (name, what) in enumerate(reversed(rows)):
        ax.add_patch(Rectangle((0, k), 10, 0.86, color=BLUE, alpha=0.25 + 0.05 * k))
        ax.text(0.2, k + 0.43, name, va="center", weight="bold")
        ax.text(4.4, k + 0.43, what, va="center")
    ax.set(xlim=(-0.1, 10.1), ylim=(-0.2, len(rows)))
    ax.axis("off")
    return figure


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for make in (front, pair, angle, tiles, layers):
        name = "front.png" if make is front else f"how-{make.__name__}.svg"
        kept = {"metadata": {"Date": None}} if name.endswith("svg") else {"dpi": 130}
        make().savefig(folder / name, **kept)
