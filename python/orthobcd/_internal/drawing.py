"""Axes, colours, markers and grids of all plots."""

from __future__ import annotations

from typing import Any, TypeAlias

from .extras import need

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours of lines and groups, in order (Okabe and Ito, 2008, without the yellow)."""

MARKS = "osD^vP*X<>"
"""Markers of heuristics and groups, in order."""

Axes: TypeAlias = Any


def axes_of(ax: Any, size: tuple[float, float] = (6.4, 4.0)) -> Any:
    """Returns ``ax``, or the axes of a new figure for None."""
    if ax is not None:
        return ax
    return need("plot", "matplotlib.pyplot").subplots(figsize=size, layout="constrained")[1]


class Plotted:
    """Base class of objects that draw themselves."""

    def plot(self, ax: Axes = None) -> Axes:
        """Plot the object, as its class says.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed; the extra is ``plot``.
        NotFittedError
            If the object is an estimator, before `fit`.
        """
        raise NotImplementedError


def whole_ticks(axis: Any) -> None:
    """Lets an axis of counts have ticks at whole numbers only."""
    axis.set_major_locator(need("plot", "matplotlib.ticker").MaxNLocator(integer=True))


def tidy(ax: Axes) -> None:
    """Removes two spines and draws a pale grid."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(True, color="0.9", linewidth=0.7)
    ax.set_axisbelow(True)
