"""Plots of solves, components and paths; needs the extra ``plot`` (matplotlib).

Every function draws into the given axes, or into a new figure, and returns matplotlib axes;
``axes.figure.savefig(...)`` saves the figure. The colours are those of Okabe and Ito, which remain
distinct with common forms of colour blindness. Positive values are purple, negative ones orange,
exact zeros grey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from ._internal.checks import FloatArray, as_choice, as_float_array, as_int, is_number
from ._internal.extras import need
from .regularization import RegularizationPath
from .result import Result

__all__ = ["comparison", "components", "convergence", "feasibility", "path", "search"]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours of lines, in order (Okabe and Ito, 2008, without the yellow)."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)))
"""Line styles, in order, so that lines differ by more than their colour."""

MARKS = "osD^vP*X<>"
"""Markers of heuristics, in order."""

SIGNS = "PuOr"
"""Diverging colour map of loadings."""

POSITIVE, NEGATIVE, ZERO = "#5E3C99", "#E66101", "0.93"
"""Colours of bars by sign, and of the background, which shows exact zeros."""

BARS: Final = "bars"
IMAGES: Final = "images"
HEATMAP: Final = "heatmap"
Kind = Literal["auto", "bars", "images", "heatmap"]
Time = Literal["seconds", "n_iterations"]

FLOOR = 1e-17
"""Value drawn in place of an exact zero on a logarithmic axis."""

Axes: TypeAlias = Any


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    return need("plot", "matplotlib.pyplot").subplots(figsize=size, layout="constrained")[1]


def _tidy(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(True, color="0.9", linewidth=0.7)
    ax.set_axisbelow(True)


def _label_time(ax: Axes, x: str) -> None:
    ax.set_xlabel("seconds" if x == "seconds" else "pairs visited")
    if x == "n_iterations":
        ax.xaxis.set_major_formatter(need("plot", "matplotlib.ticker").EngFormatter(sep=""))


def _named(values: Any, kind: type) -> dict[str, Any]:
    if isinstance(values, kind):
        return {"": values}
    if not isinstance(values, Mapping) or not values:
        raise TypeError(
            f"must be a {kind.__name__} or a mapping from names to them, got {values!r}"
        )
    for name, value in values.items():
        if not isinstance(value, kind):
            raise TypeError(f"{name!r} must be a {kind.__name__}, got {type(value).__name__}")
    return {str(name): value for name, value in values.items()}


def _lines(
    ax: Axes, curves: Mapping[str, tuple[FloatArray, FloatArray]], marker: str | None = None
) -> None:
    for index, (name, (x, y)) in enumerate(curves.items()):
        ax.plot(
            x,
            y,
            color=PALETTE[index % len(PALETTE)],
            linestyle=DASHES[index % len(DASHES)],
            linewidth=2.0,
            marker=marker,
            markersize=4.5,
            drawstyle="default" if marker else "steps-post",
            label=name,
        )
    if any(curves):
        ax.legend(frameon=False, fontsize=9)


def convergence(
    results: Result | Mapping[str, Result],
    *,
    x: Time = "seconds",
    optimum: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot F less its best value during solves, on a logarithmic axis.

    Parameters
    ----------
    results : Result or mapping of str to Result
        The solves; the names of a mapping become the legend.
    x : {"seconds", "n_iterations"}, default "seconds"
        Horizontal axis: wall-clock time or pairs visited.
    optimum : float, optional
        Value to subtract; the smallest objective of all results by default. A logarithmic axis
        cannot show points at this value; a line ends before them.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.SparsePCAProblem(np.diag([3.0, 2.0, 1.0]), 1, ob.L0(0.1))
    >>> result = ob.solve(problem, solver=ob.OBCD())
    >>> ob.plot.convergence({"pairs": result}).get_yscale()
    'log'
    """
    as_choice("x", x, get_args(Time))
    named = _named(results, Result)
    best = min(float(result.history["objective"].min()) for result in named.values())
    best = best if optimum is None else float(optimum)
    curves = {}
    for name, result in named.items():
        gap = result.history["objective"] - best
        kept = gap > 1e-15 * max(abs(best), 1e-300)
        curves[name] = (result.history[x][kept], gap[kept])
    ax = _axes(ax, (5.6, 3.4))
    _lines(ax, curves)
    ax.set_yscale("log")
    _label_time(ax, x)
    ax.set_ylabel("objective above the best" if optimum is None else "objective above the optimum")
    _tidy(ax)
    return ax


def feasibility(
    results: Result | Mapping[str, Result], *, x: Time = "seconds", ax: Axes | None = None
) -> Axes:
    """Plot ``‖XᵀJX − X0ᵀJX0‖_F`` during solves, on a logarithmic axis.

    Parameters
    ----------
    results : Result or mapping of str to Result
        The solves; the names of a mapping become the legend.
    x : {"seconds", "n_iterations"}, default "seconds"
        Horizontal axis: wall-clock time or pairs visited.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid.

    Notes
    -----
    An exact 0 is drawn at 1e-17. The dashed line is 1e-12, which no point exceeds on the Stiefel
    manifold.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.SparsePCAProblem(np.diag([3.0, 2.0, 1.0]), 1, ob.L0(0.1))
    >>> result = ob.solve(problem, solver=ob.OBCD())
    >>> ob.plot.feasibility(result).get_xlabel()
    'seconds'
    """
    as_choice("x", x, get_args(Time))
    curves = {
        name: (result.history[x], np.maximum(result.history["feasibility"], FLOOR))
        for name, result in _named(results, Result).items()
    }
    ax = _axes(ax, (5.6, 3.4))
    _lines(ax, curves)
    ax.axhline(1e-12, color="0.45", linewidth=1.0, linestyle="--")
    ax.annotate(
        "1e-12",
        (0.99, 0.8e-12),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="top",
        color="0.35",
        fontsize=9,
    )
    ax.set_yscale("log")
    _label_time(ax, x)
    ax.set_ylabel(r"$\Vert X^\top J X - X_0^\top J X_0 \Vert_F$")
    _tidy(ax)
    return ax


def path(
    paths: RegularizationPath | Mapping[str, RegularizationPath],
    *,
    mark: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot explained variance against the number of nonzeros along regularisation paths.

    Parameters
    ----------
    paths : RegularizationPath or mapping of str to RegularizationPath
        The paths; the names of a mapping become the legend.
    mark : int, optional
        Number of nonzeros to mark with a vertical line.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        If an argument is not a path or a mapping of paths.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> path = ob.regularization_path(np.diag([3.0, 2.0, 1.0]), 1, n_lams=3)
    >>> ob.plot.path(path).get_xlabel()
    'nonzero loadings'
    """
    curves = {
        name: (one.n_nonzero.astype(np.float64), 100.0 * one.explained_variance_ratio)
        for name, one in _named(paths, RegularizationPath).items()
    }
    ax = _axes(ax, (5.6, 3.4))
    _lines(ax, curves, marker="o")
    if mark is not None:
        ax.axvline(as_int("mark", mark, 0), color="0.45", linewidth=1.0, linestyle="--")
    ax.set_xlabel("nonzero loadings")
    ax.set_ylabel("explained variance (%)")
    _tidy(ax)
    return ax


def components(
    components: Any,
    *,
    feature_names: Sequence[str] | None = None,
    image_shape: tuple[int, int] | None = None,
    kind: Kind = "auto",
    titles: Sequence[str] | None = None,
    n_top: int = 12,
    max_columns: int = 5,
    axes: Any = None,
) -> Any:
    """Plot components as bars with feature names, as images, or as one heat map.

    Parameters
    ----------
    components : array_like of shape (n_components, n_features) or fitted estimator
        Components, as rows; of an estimator its ``components_`` and feature names, if it has any.
    feature_names : sequence of str, optional
        Names of the features; ``x0``, ``x1``, … by default.
    image_shape : (int, int), optional
        Height and width of an image whose pixels, row by row, are the features.
    kind : {"auto", "bars", "images", "heatmap"}, default "auto"
        "bars": the largest loadings of every component. "images": every component as an image.
        "heatmap": all loadings in one image, without features that are zero in every component.
        "auto": images with ``image_shape``, bars up to 12 components, else the heat map.
    titles : sequence of str, optional
        One title per component; "component 1", … by default.
    n_top : int, default 12
        Largest number of bars per component.
    max_columns : int, default 5
        Largest number of components per row of axes; with bars at most 3.
    axes : matplotlib axes or array of them, optional
        Axes to draw into: one per component, or one for the heat map; a new figure by default.

    Returns
    -------
    ndarray of matplotlib.axes.Axes of shape (n_components,), or one Axes for the heat map

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid or sizes do not match.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> axes = ob.plot.components(np.eye(3), feature_names=["a", "b", "c"])
    >>> [ax.get_title() for ax in axes]
    ['component 1', 'component 2', 'component 3']
    """
    as_choice("kind", kind, get_args(Kind))
    n_top, max_columns = as_int("n_top", n_top, 1), as_int("max_columns", max_columns, 1)
    if feature_names is None:
        feature_names = getattr(components, "feature_names_in_", None)
    loadings = as_float_array("components", getattr(components, "components_", components), 2)
    r, n = loadings.shape
    names = [f"x{j}" for j in range(n)] if feature_names is None else list(map(str, feature_names))
    if len(names) != n:
        raise ValueError(f"feature_names must have {n} entries, got {len(names)}")
    heads = [f"component {k + 1}" for k in range(r)] if titles is None else list(map(str, titles))
    if len(heads) != r:
        raise ValueError(f"titles must have {r} entries, got {len(heads)}")
    if image_shape is not None and image_shape[0] * image_shape[1] != n:
        raise ValueError(f"image_shape must have {n} pixels, got {image_shape}")
    if kind == "auto":
        kind = IMAGES if image_shape is not None else BARS if r <= 12 else HEATMAP
    if kind == IMAGES and image_shape is None:
        raise ValueError("image_shape must be given for images")
    if kind == HEATMAP:
        return _heatmap(loadings, names, heads, axes)
    n_top = min(n_top, max(1, int(np.count_nonzero(loadings, axis=1).max())))
    if axes is None:
        label = max(map(len, names)) if n <= 200 else 12
        size = (1.5, 1.75) if kind == IMAGES else (1.9 + 0.075 * label, 0.7 + 0.2 * n_top)
        widest = max_columns if kind == IMAGES else min(max_columns, 3)
        axes = _grid(r, -(-r // -(-r // widest)), size)
    axes = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(axes) < r:
        raise ValueError(f"axes must hold {r} axes, one per component; got {len(axes)}")
    for ax, head, loading in zip(axes, heads, loadings, strict=False):
        if image_shape is not None and kind == IMAGES:
            _image(ax, loading, image_shape)
        else:
            _bars(ax, loading, names, n_top)
        ax.set_title(head, fontsize=10)
    return axes[:r]


def _grid(count: int, columns: int, size: tuple[float, float]) -> Any:
    rows = -(-count // columns)
    figure = need("plot", "matplotlib.pyplot").figure(
        figsize=(size[0] * columns, size[1] * rows), layout="constrained"
    )
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes[count:]:
        ax.set_axis_off()
    return axes


def _image(ax: Axes, loading: FloatArray, shape: tuple[int, int]) -> None:
    limit = float(np.abs(loading).max()) or 1.0
    ax.set_facecolor(ZERO)
    image = np.where(loading == 0.0, np.nan, loading).reshape(shape)
    ax.imshow(image, cmap=SIGNS, vmin=-limit, vmax=limit)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_color("0.7")


def _bars(ax: Axes, loading: FloatArray, names: Sequence[str], n_top: int) -> None:
    nonzero = int(np.count_nonzero(loading))
    order = np.argsort(-np.abs(loading), kind="stable")[: min(n_top, max(nonzero, 1))]
    values = loading[order]
    places = np.arange(len(order))
    ax.barh(places, values, color=[POSITIVE if v > 0 else NEGATIVE for v in values], height=0.72)
    ax.set_yticks(places, [names[int(j)] for j in order], fontsize=9)
    # Space for n_top bars, so that bars are equally thick in all axes.
    ax.set_ylim(n_top - 0.4, -0.6)
    ax.axvline(0.0, color="0.3", linewidth=0.8)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=8)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    if nonzero > len(order):
        ax.set_xlabel(f"and {nonzero - len(order)} smaller", fontsize=8, color="0.35")


def _heatmap(
    loadings: FloatArray, names: Sequence[str], heads: Sequence[str], ax: Axes | None
) -> Axes:
    used = np.flatnonzero(np.any(loadings != 0.0, axis=0))
    # Features are grouped by the component with their largest loading.
    owner = np.argmax(np.abs(loadings[:, used]), axis=0)
    used = used[np.lexsort((-np.abs(loadings[owner, used]), owner))]
    shown = loadings[:, used]
    r, n = shown.shape
    ax = _axes(ax, (min(10.0, 2.2 + 0.22 * max(n, 8)), 1.3 + 0.3 * r))
    limit = float(np.abs(shown).max()) or 1.0
    ax.set_facecolor(ZERO)
    image = ax.imshow(
        np.where(shown == 0.0, np.nan, shown), cmap=SIGNS, vmin=-limit, vmax=limit, aspect="auto"
    )
    ax.set_yticks(np.arange(r), heads, fontsize=9)
    if n <= 50:
        ax.set_xticks(np.arange(n), [names[int(j)] for j in used], rotation=90, fontsize=8)
    else:
        ax.set_xticks([])
        ax.set_xlabel(f"{n} features with a nonzero loading")
    ax.tick_params(length=0)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.04, pad=0.02)
    bar.ax.tick_params(labelsize=8)
    bar.set_label("loading", fontsize=9)
    return ax


def comparison(
    rows: Sequence[Mapping[str, Any]],
    *,
    bold: Sequence[int] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw a table as a figure.

    Parameters
    ----------
    rows : sequence of mapping of str to object
        Rows of the table; the keys of the first row are the columns. Columns of numbers and
        percentages are right-aligned.
    bold : sequence of int, optional
        Indices of rows to set in bold.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure of the right size by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If there are no rows, or a row lacks a column.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ax = ob.plot.comparison([{"method": "OBCD", "objective": -5.9}], bold=[0])
    >>> ax.texts[0].get_text()
    'method'
    """
    if not rows:
        raise ValueError("rows must not be empty")
    head = list(rows[0])
    for index, row in enumerate(rows):
        missing = [name for name in head if name not in row]
        if missing:
            raise ValueError(f"rows: line {index} has no {', '.join(missing)}")
    cells = [[_cell(row[name]) for name in head] for row in rows]
    numeric = [all(is_number(line[k].rstrip(" %")) for line in cells) for k in range(len(head))]
    widths = np.array([2 + max(len(line[k]) for line in [head, *cells]) for k in range(len(head))])
    ax = _axes(ax, (0.5 + 0.088 * float(widths.sum()), 0.3 + 0.26 * (len(rows) + 1)))
    ax.set_axis_off()
    ax.set_xlim(0.0, float(widths.sum()))
    ax.set_ylim(len(rows) + 0.6, -0.7)
    edges = np.concatenate([[0.0], np.cumsum(widths)])
    for index, line in enumerate([head, *cells]):
        weight = "bold" if index == 0 or index - 1 in bold else "normal"
        if index > 0 and index - 1 in bold:
            ax.axhspan(index - 0.5, index + 0.5, color="#E8F1F8", linewidth=0)
        for k, text in enumerate(line):
            ax.text(
                edges[k + 1] - 1.0 if numeric[k] else edges[k] + 1.0,
                index,
                text,
                ha="right" if numeric[k] else "left",
                va="center",
                fontsize=10,
                fontweight=weight,
            )
    for level in (-0.55, 0.5, len(rows) + 0.55):
        ax.axhline(level, color="0.3", linewidth=1.0 if level != 0.5 else 0.7)
    return ax


def search(result: Result, *, ax: Axes | None = None) -> Axes:
    """Plot the runs of a search over time: end of every run, and its F less the best F.

    Open markers are restarts, filled markers are improvements, and the line is the incumbent.
    Points as good as the best lie at the lower edge.

    Parameters
    ----------
    result : Result
        Result of a solve by `Auto`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError, ValueError
        If ``result`` is not a `Result`, or not that of a search.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((30, 12))
    >>> ax = ob.plot.search(ob.solve(ob.SparsePCAProblem(A, 2, ob.L0(1.0))))
    >>> ax.get_xlabel()
    'seconds'
    """
    if not isinstance(result, Result):
        raise TypeError(f"result must be a Result, got {type(result).__name__}")
    if result.search is None:
        raise ValueError("result must be of a search, by Auto")
    ax = _axes(ax, (7.0, 4.2))
    size = max(abs(result.smooth_value) + abs(result.penalty_value), np.finfo(np.float64).tiny)
    runs = [run for run in result.search.runs if run.heuristic != "polish"]
    gaps = [(run.objective - result.objective) / size for run in runs]
    above = [gap for gap in gaps if gap > 0.0]
    floor = max(min(above, default=1e-12), 1e-12) / 3.0
    names = list(dict.fromkeys(run.heuristic for run in runs))
    for k, name in enumerate(names):
        colour = PALETTE[k % len(PALETTE)]
        mine = [j for j, run in enumerate(runs) if run.heuristic == name]
        ax.scatter(
            [runs[j].seconds for j in mine],
            [max(gaps[j], floor) for j in mine],
            s=34,
            marker=MARKS[k % len(MARKS)],
            edgecolors=colour,
            facecolors=[colour if runs[j].improve else "none" for j in mine],
            label=name,
            zorder=3,
        )
    gap = (result.history["objective"] - result.objective) / size
    ax.step(
        result.history["seconds"],
        np.maximum(gap, floor),
        where="post",
        color="0.4",
        linewidth=1.2,
        label="best point",
    )
    ax.set_yscale("log")
    ax.set_xlabel("seconds")
    ax.set_ylabel("F above the best, relative")
    ax.legend(fontsize=8, ncols=2)
    return ax


def _cell(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return f"{number:.1e}" if 0.0 < abs(number) < 1e-3 else f"{number:.4g}"
    return str(value)
