"""Components as bars, images or a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, get_args

import numpy as np

from .._internal.checks import FloatArray, as_choice, as_float_array, as_int
from .._internal.drawing import Axes, axes_of
from .._internal.extras import need
from .._internal.names import component_names, shortened_names
from .._internal.names import feature_names as names_of

SIGNS = "PuOr"
"""Diverging colour map of loadings."""

POSITIVE, NEGATIVE, ZERO = "#5E3C99", "#E66101", "0.93"
"""Colours of bars by sign, and of the background, which shows exact zeros."""

BARS: Final = "bars"
IMAGES: Final = "images"
HEATMAP: Final = "heatmap"
Kind = Literal["auto", "bars", "images", "heatmap"]


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
        One title per component; "component 0", … by default.
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
    ['component 0', 'component 1', 'component 2']
    """
    as_choice("kind", kind, get_args(Kind))
    n_top, max_columns = as_int("n_top", n_top, 1), as_int("max_columns", max_columns, 1)
    if feature_names is None:
        feature_names = getattr(components, "feature_names_in_", None)
    loadings = as_float_array("components", getattr(components, "components_", components), 2)
    r, n = loadings.shape
    names = shortened_names(names_of(feature_names, n))
    heads = component_names(r) if titles is None else list(map(str, titles))
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
    ax = axes_of(ax, (min(10.0, 2.2 + 0.22 * max(n, 8)), 1.3 + 0.3 * r))
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
