"""Markers and grids of the plots."""

from __future__ import annotations

from typing import Any, TypeAlias

from .._internal.drawing import PALETTE, axes_of, whole_ticks

__all__ = ["MARKS", "PALETTE", "Axes", "axes_of", "tidy", "whole_ticks"]

MARKS = "osD^vP*X<>"
"""Markers of heuristics and groups, in order."""

Axes: TypeAlias = Any


def tidy(ax: Axes) -> None:
    """Removes two spines and draws a pale grid."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(True, color="0.9", linewidth=0.7)
    ax.set_axisbelow(True)
