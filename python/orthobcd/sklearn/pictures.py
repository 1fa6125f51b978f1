"""Axes and colours of the plots of the estimators."""

from __future__ import annotations

from typing import Any

from .._internal.extras import need

BLUE, RED, GREY = "#0072B2", "#D55E00", "0.6"
"""Colours, as in `orthobcd.plot`."""


def axes_of(ax: Any) -> Any:
    """Returns ``ax``, or the axes of a new figure for None."""
    if ax is not None:
        return ax
    return need("plot", "matplotlib.pyplot").subplots(figsize=(6.4, 4.0), layout="constrained")[1]
