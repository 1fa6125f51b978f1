"""Curves of solves, searches and regularisation paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np

from .._internal.checks import FloatArray, as_choice, as_int
from .._internal.drawing import MARKS, PALETTE, Axes, axes_of, tidy, whole_ticks
from .._internal.extras import need
from ..regularization import RegularizationPath
from ..result import Result

DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)))
"""Line styles, in order, so that lines differ by more than their colour."""

Time = Literal["seconds", "n_iterations"]

FLOOR = 1e-17
"""Value drawn in place of an exact zero on a logarithmic axis."""


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
        cannot show points at this value; a line ends before such points.
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
    ax = axes_of(ax, (5.6, 3.4))
    _lines(ax, curves)
    ax.set_yscale("log")
    _label_time(ax, x)
    ax.set_ylabel("objective above the best" if optimum is None else "objective above the optimum")
    tidy(ax)
    return ax


def feasibility(
    results: Result | Mapping[str, Result], *, x: Time = "seconds", ax: Axes | None = None
) -> Axes:
    """Plot ``‖XᵀJX − X0ᵀJX0‖_F`` during solves, on a logarithmic axis.

    Parameters
    ----------
    results, x, ax
        As in `convergence`.

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
    ax = axes_of(ax, (5.6, 3.4))
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
    tidy(ax)
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
    >>> path = ob.regularization_path(np.diag([3.0, 2.0, 1.0]), 1, n_alphas=3)
    >>> ob.plot.path(path).get_xlabel()
    'nonzero loadings'
    """
    curves = {
        name: (one.n_nonzero.astype(np.float64), 100.0 * one.explained_variance_ratio)
        for name, one in _named(paths, RegularizationPath).items()
    }
    ax = axes_of(ax, (5.6, 3.4))
    _lines(ax, curves, marker="o")
    if mark is not None:
        ax.axvline(as_int("mark", mark, 0), color="0.45", linewidth=1.0, linestyle="--")
    whole_ticks(ax.xaxis)
    ax.set_xlabel("nonzero loadings")
    ax.set_ylabel("explained variance (%)")
    tidy(ax)
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
    ax = axes_of(ax, (7.0, 4.2))
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
