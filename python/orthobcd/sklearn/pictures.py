"""Axes and colours of the pictures of choices."""

from __future__ import annotations

from typing import Any

from .._internal.extras import need

BLUE, RED, GREY = "#0072B2", "#D55E00", "0.6"
"""Colours of the pictures here, those of `orthobcd.plot`."""


def axes_of(ax: Any) -> Any:
    """The axes, or those of a new figure."""
    if ax is not None:
        return ax
    return need("plot", "matplotlib.pyplot").subplots(figsize=(6.4, 4.0), layout="constrained")[1]
