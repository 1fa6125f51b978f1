"""Axes and colours of all plots. Colours are those of Okabe and Ito, without the yellow."""

from __future__ import annotations

from typing import Any

from .extras import need

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours of lines and groups, in order (Okabe and Ito, 2008, without the yellow)."""


def axes_of(ax: Any, size: tuple[float, float] = (6.4, 4.0)) -> Any:
    """Returns ``ax``, or the axes of a new figure for None."""
    if ax is not None:
        return ax
    return need("plot", "matplotlib.pyplot").subplots(figsize=size, layout="constrained")[1]


def whole_ticks(axis: Any) -> None:
    """Lets an axis of counts have ticks at whole numbers only."""
    axis.set_major_locator(need("plot", "matplotlib.ticker").MaxNLocator(integer=True))
