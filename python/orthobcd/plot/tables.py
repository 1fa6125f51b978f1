"""A table as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._internal.checks import is_number
from .drawing import Axes, axes_of

__all__ = ["comparison"]


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
    ax = axes_of(ax, (0.5 + 0.088 * float(widths.sum()), 0.3 + 0.26 * (len(rows) + 1)))
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


def _cell(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return f"{number:.1e}" if 0.0 < abs(number) < 1e-3 else f"{number:.4g}"
    return str(value)
