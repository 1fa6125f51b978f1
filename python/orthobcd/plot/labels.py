"""Labels at the tips of arrows that do not cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from .._internal.checks import FloatArray
from .._internal.drawing import Axes
from .._internal.extras import need

SIZE = 8.0
"""Font size of labels, in points."""

OFFSETS = sorted(
    (
        (d, a)
        for d in (2.0, 7.0, 13.0, 20.0, 28.0, 38.0, 50.0, 65.0, 85.0, 110.0)
        for a in np.arange(-3.0, 3.1, 0.2)
    ),
    key=lambda offset: offset[0] + 9.0 * abs(offset[1]),
)
"""Distances of a label from its tip, in points, and angles from the direction of its arrow, in the
order of their sums; a radian of the angle counts as 9 points of the distance."""

LEADER = 9.0
"""Distance from which a line joins label and tip, in points."""


def add_labels(ax: Axes, tips: FloatArray, names: Sequence[str], unnamed: int) -> None:
    """Adds names at the tips of arrows from the origin; longer arrows are named first.

    Every drawing places the names anew, because the layout of the figure, its size and the limits
    of the axes may have changed. A name that does not fit inside the axes is not shown.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Axes of the arrows.
    tips : ndarray of shape (k, 2)
        Tips in data coordinates.
    names : sequence of str
        A name per tip.
    unnamed : int
        Number of further arrows, which the note above the axes counts too.
    """
    stroke = need("plot", "matplotlib.patheffects").withStroke(linewidth=2.0, foreground="white")
    line = {"arrowstyle": "-", "color": "0.55", "linewidth": 0.6, "shrinkA": 0.0, "shrinkB": 0.0}
    offset = {"xytext": (0.0, 0.0), "textcoords": "offset points"}
    centred = {"ha": "center", "va": "center", "fontsize": SIZE, "color": "0.15", "zorder": 5}
    texts = [
        ax.annotate(name, tip, **offset, **centred, path_effects=[stroke])
        for name, tip in zip(names, tips, strict=True)
    ]
    leaders = [ax.annotate("", tip, **offset, arrowprops=line, zorder=4) for tip in tips]
    note = ax.annotate(
        "",
        (1.0, 1.0),
        (0.0, 3.0),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=SIZE,
        color="0.4",
    )
    first = need("plot", "matplotlib.artist").Artist()
    first.set_zorder(-1.0)
    first.draw = partial(_place, ax, tips, texts, leaders, note, unnamed)
    ax.add_artist(first)
    for artist in (*texts, *leaders, note, first):
        artist.set_in_layout(False)


def _place(
    ax: Axes,
    tips: FloatArray,
    texts: Sequence[Any],
    leaders: Sequence[Any],
    note: Any,
    unnamed: int,
    renderer: Any,
) -> None:
    """Places the names, and hides names that do not fit."""
    unit = 72.0 / ax.figure.dpi
    at = ax.transData.transform(tips) * unit
    origin = ax.transData.transform((0.0, 0.0)) * unit
    frame = ax.get_window_extent(renderer)
    low, high = (np.array(corner) * unit for corner in (frame.min, frame.max))
    placed = np.zeros((0, 4))
    for j in np.argsort(-np.linalg.norm(at - origin, axis=1), kind="stable"):
        text, leader = texts[j], leaders[j]
        text.set_visible(True)
        box = text.get_window_extent(renderer)
        half = np.array([box.width, box.height]) * unit / 2.0 + 0.5
        distances, angles = np.transpose(OFFSETS)
        angles = angles + np.arctan2(*(at[j] - origin)[::-1])
        turned = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        shifts = turned * (distances + np.abs(turned) @ half)[:, np.newaxis]
        bottom, top = at[j] + shifts - half, at[j] + shifts + half
        free = (bottom >= low).all(axis=1) & (top <= high).all(axis=1)
        for other in placed:
            free &= (bottom >= other[2:]).any(axis=1) | (top <= other[:2]).any(axis=1)
        text.set_visible(bool(free.any()))
        leader.set_visible(False)
        if free.any():
            first = int(np.argmax(free))
            placed = np.vstack([placed, np.r_[bottom[first], top[first]]])
            text.set_position(tuple(shifts[first]))
            nearest = np.clip(0.0, shifts[first] - half, shifts[first] + half)
            leader.set_position(tuple(nearest))
            leader.set_visible(bool(np.linalg.norm(nearest) > LEADER))
    hidden = unnamed + len(texts) - len(placed)
    note.set_text(f"{hidden} shorter arrows without a name" if hidden else "")
