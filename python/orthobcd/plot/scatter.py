"""Pictures of fitted components: biplot, scores, scree, correlation circle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from .._internal.checks import (
    FloatArray,
    IntArray,
    as_int,
    is_missing,
    is_sparse,
    unmasked,
)
from .._internal.drawing import MARKS, PALETTE, Axes, axes_of, tidy, whole_ticks
from .._internal.extras import need
from .._internal.names import feature_names as names_of
from .._internal.names import shortened_names
from ..data import Gram, as_samples
from ..sklearn.base import model_of_gaps
from ..sklearn.sparse_pca import SparsePCA
from .labels import add_labels

ELLIPSE = 5.991464547107979
"""0.95 quantile of the χ² distribution with two degrees of freedom: (mean, covariance) ellipses of
groups cover 95 % of normal data."""

ARROW, DENSE = "#8B1A1A", "0.6"
"""Colours of arrows, and of points without groups."""

MISSING = "missing"
"""Name in the legend of the samples whose group is missing."""

MANY = 2000
"""Number of points from which they are drawn smaller, and as an image in vector formats."""

LARGEST = 4096
"""Largest smaller dimension of data whose principal components `scree` computes."""


class Fitted(Protocol):
    """A fitted estimator, of this package or of scikit-learn."""

    components_: Any

    def transform(self, X: Any) -> Any:
        """The scores of samples."""


def biplot(
    pca: Fitted,
    X: Any,
    groups: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    components: tuple[int, int] = (0, 1),
    n_labels: int = 30,
    feature_names: Sequence[str] | None = None,
) -> Axes:
    """Plot the scores of samples and the loadings of features in two components.

    A point is a sample, an arrow a feature with a nonzero loading in one of the two components.
    Arrows are proportional to the loadings, with one factor for all of them; the longest ends near
    the farthest scores.

    Parameters
    ----------
    pca : fitted estimator
        With ``components_`` and ``transform``, of this package or of scikit-learn.
    X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
        Data.
    groups : array_like of shape (n_samples,), optional
        Group of each sample; a colour, a marker and an ellipse per group. The ellipse covers 95 %
        of normal data with the mean and covariance of the scores of the group.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure by default.
    components : (int, int), default (0, 1)
        The components, from 0. A single component is drawn along the horizontal axis.
    n_labels : int, default 30
        Largest number of names. The longest arrows have names, as far as the names fit into the
        axes. A note above the plot has the number of arrows without a name.
    feature_names : sequence of str, optional
        Names of the features; by default those of the fit, or ``x0``, ``x1``, …

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import orthobcd as ob
    >>> iris = load_iris(as_frame=True)
    >>> pca = ob.SparsePCA(2, n_nonzero=4, random_state=0).fit(iris.data)
    >>> ax = ob.plot.biplot(pca, iris.data, groups=iris.target)
    >>> ax.get_xlabel()[:11]
    'component 0'
    """
    most = as_int("n_labels", n_labels, 0)
    chosen = _chosen(pca, components)
    loadings, names = _named(pca, feature_names)
    points = _plane(_transformed(pca, X, chosen))
    ax = axes_of(ax, (7.0, 5.6))
    _points(ax, points, groups)
    arrows = _plane(loadings[chosen].T)
    used = np.flatnonzero(arrows.any(axis=1))
    if len(used):
        lengths = np.linalg.norm(arrows[used], axis=1)
        reach = float(np.abs(points).max()) if points.size else 1.0
        arrows = arrows * (0.95 * (reach or 1.0) / float(lengths.max()))
    _label_axes(ax, pca, chosen)
    _arrows(ax, arrows, used, names, most)
    return ax


def scores(
    pca: Fitted,
    X: Any,
    groups: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    components: tuple[int, int] = (0, 1),
) -> Axes:
    """Plot the scores of samples in two components.

    Parameters
    ----------
    pca, X, groups, ax, components
        As in `biplot`.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import orthobcd as ob
    >>> X, y = load_iris(return_X_y=True)
    >>> pca = ob.SparsePCA(2, n_nonzero=4, random_state=0).fit(X)
    >>> len(ob.plot.scores(pca, X, groups=y).collections)
    3
    """
    chosen = _chosen(pca, components)
    points = _plane(_transformed(pca, X, chosen))
    ax = axes_of(ax, (6.4, 5.0))
    _points(ax, points, groups)
    _label_axes(ax, pca, chosen)
    return ax


def correlation_circle(
    pca: Fitted,
    X: Any,
    ax: Axes | None = None,
    *,
    components: tuple[int, int] = (0, 1),
    n_labels: int = 30,
    feature_names: Sequence[str] | None = None,
) -> Axes:
    """Plot the correlations of features with the scores in two components, in the unit circle.

    An arrow is a feature with a nonzero loading in one of the two components; a grey point is a
    feature without. Scores of sparse components can be correlated; then a feature can lie outside
    the circle.

    Parameters
    ----------
    pca, X, ax, components, n_labels, feature_names
        As in `biplot`.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import orthobcd as ob
    >>> iris = load_iris(as_frame=True)
    >>> pca = ob.SparsePCA(2, n_nonzero=4, random_state=0).fit(iris.data)
    >>> ob.plot.correlation_circle(pca, iris.data).get_aspect()
    1.0
    """
    most = as_int("n_labels", n_labels, 0)
    chosen = _chosen(pca, components)
    loadings, names = _named(pca, feature_names)
    correlations = _plane(_correlations(X, _transformed(pca, X, chosen)))
    used = np.flatnonzero(loadings[chosen].any(axis=0))
    rest = np.setdiff1d(np.arange(len(names)), used)
    ax = axes_of(ax, (6.0, 5.8))
    circle = need("plot", "matplotlib.patches").Circle((0.0, 0.0), 1.0, fill=False, color="0.5")
    ax.add_patch(circle)
    ax.scatter(*correlations[rest].T, s=8, color="0.7", linewidths=0, label="loading zero")
    reach = 1.25 * max(1.0, float(np.abs(correlations).max(initial=0.0)))
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
    ax.set_aspect("equal")
    _label_axes(ax, pca, chosen)
    _arrows(ax, correlations, used, names, most)
    return ax


def scree(pca: Fitted, X: Any = None, ax: Axes | None = None) -> Axes:
    """Plot the share of the variance of each component, their sum, and bounds of the sum.

    Bars are shares of the variance; the line is their sum. Of a fit with ``certify=True`` and
    ``n_nonzero`` a dashed line is the certified bound: no orthonormal components with as many
    nonzero loadings explain more. With X a dotted line is the sum for as many principal components,
    an upper bound for all orthonormal components.

    Parameters
    ----------
    pca : fitted estimator
        With ``explained_variance_ratio_``, of this package or of scikit-learn.
    X : array_like or scipy.sparse matrix of shape (n_samples, n_features), optional
        Data of the fit.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import orthobcd as ob
    >>> X = load_iris().data
    >>> pca = ob.SparsePCA(2, n_nonzero=4, certify=True, random_state=0).fit(X)
    >>> [line.get_label() for line in ob.plot.scree(pca, X).lines]
    ['sum', 'certified bound', 'principal components']
    """
    ratios = getattr(pca, "explained_variance_ratio_", None)
    if ratios is None:
        raise ValueError("pca must be fitted and have explained_variance_ratio_")
    shares = 100.0 * np.asarray(ratios, dtype=np.float64)
    numbers = np.arange(len(shares))
    ax = axes_of(ax, (6.0, 3.8))
    ax.bar(numbers, shares, color=PALETTE[5], width=0.7, label="component")
    ax.plot(numbers, np.cumsum(shares), color=PALETTE[0], marker="o", markersize=4.5, label="sum")
    bound = certified_share(pca)
    if bound is not None:
        ax.axhline(
            100.0 * bound, color=PALETTE[1], linestyle="--", linewidth=1.4, label="certified bound"
        )
    if X is not None:
        dense = 100.0 * np.cumsum(_principal_shares(pca, X))[: len(shares)]
        where = numbers[: len(dense)]
        ax.plot(where, dense, color="0.35", linestyle=":", label="principal components")
    whole_ticks(ax.xaxis)
    ax.margins(y=0.1)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("component")
    ax.set_ylabel("share of the variance (%)")
    tidy(ax)
    ax.grid(False, axis="x")
    ax.legend(frameon=False, fontsize=9)
    return ax


def certified_share(pca: Fitted) -> float | None:
    """Certified upper bound of the sum of ``explained_variance_ratio_`` under ``n_nonzero``."""
    if not isinstance(pca, SparsePCA) or pca.n_nonzero is None or pca.penalty != "l0":
        return None
    bound = pca.lower_bound_
    if bound is None:
        return None
    # Without a penalty the objective is proportional to the variance.
    total = float(np.sum(pca.explained_variance_ratio_))
    return min(1.0, total * max(1.0, float(bound) / float(pca.objective_)))


# Parts -------------------------------------------------------------------------------------------


def _loadings(pca: Fitted) -> FloatArray:
    if not hasattr(pca, "components_"):
        raise ValueError("pca must be fitted: it has no components_")
    return np.asarray(pca.components_, dtype=np.float64)


def _named(pca: Fitted, given: Sequence[str] | None) -> tuple[FloatArray, list[str]]:
    """The loadings of a fit and the names of the features."""
    loadings = _loadings(pca)
    names = getattr(pca, "feature_names_in_", None) if given is None else given
    return loadings, names_of(names, loadings.shape[1])


def _chosen(pca: Fitted, components: tuple[int, int]) -> list[int]:
    """The checked indices of two components, or of the only one."""
    r = len(_loadings(pca))
    try:
        chosen = [as_int("components", k, 0) for k in components]
    except TypeError as error:
        raise TypeError(f"components must be two integers, got {components!r}") from error
    if r == 1 and chosen == [0, 1]:
        return [0]
    if len(chosen) != 2 or max(chosen) >= r or chosen[0] == chosen[1]:
        raise ValueError(f"components must be two different indices below {r}, got {components!r}")
    return chosen


def _transformed(pca: Fitted, X: Any, chosen: list[int]) -> FloatArray:
    return np.asarray(pca.transform(X), dtype=np.float64)[:, chosen]


def _plane(columns: FloatArray) -> FloatArray:
    """One or two columns; a single one beside a column of zeros."""
    return np.pad(columns, ((0, 0), (0, 2 - columns.shape[1])))


def _label_axes(ax: Axes, pca: Fitted, chosen: list[int]) -> None:
    shares = getattr(pca, "explained_variance_ratio_", None)
    for k, write in zip(chosen, (ax.set_xlabel, ax.set_ylabel), strict=False):
        share = "" if shares is None else f" ({100.0 * float(shares[k]):.1f} % of the variance)"
        write(f"component {k}{share}")
    if len(chosen) == 1:
        ax.set_yticks([])
    tidy(ax)
    for line in (ax.axhline, ax.axvline):
        line(0.0, color="0.7", linewidth=0.8, zorder=0.5)


def _points(ax: Axes, points: FloatArray, groups: ArrayLike | None) -> None:
    m = len(points)
    style: dict[str, Any] = {
        "s": 6.0 if m > MANY else 18.0,
        "linewidths": 0.0,
        "rasterized": m > MANY,
        "alpha": 0.75,
    }
    if groups is None:
        ax.scatter(*points.T, color=DENSE, **style)
        return
    labels, numbers = _numbered(groups, m)
    for k, label in enumerate(shortened_names(labels)):
        own = points[numbers == k]
        colour = DENSE if label == MISSING else PALETTE[k % len(PALETTE)]
        mark = MARKS[(k + k // len(PALETTE)) % len(MARKS)]
        ax.scatter(*own.T, color=colour, marker=mark, label=label, **style)
        _ellipse(ax, own, colour)
    _legend(ax, columns=1 + (len(labels) - 1) // 20)


def _legend(ax: Axes, columns: int) -> None:
    """Adds a legend to the right of the axes, and narrows the axes by its width."""
    legend = ax.legend(
        frameon=False,
        fontsize=9,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0.2,
        ncols=columns,
    )
    if ax.figure.get_layout_engine() is None:
        box = ax.get_position()
        taken = legend.get_window_extent().width / ax.figure.bbox.width
        ax.set_position((box.x0, box.y0, max(box.width - taken, 0.4 * box.width), box.height))
        # `set_position` excludes the axes from a later `tight_layout`.
        ax.set_in_layout(True)


def _numbered(groups: Any, m: int) -> tuple[list[str], IntArray]:
    """Texts of the different groups, in order if they can be ordered, and each sample's number.

    Samples without a group (NaN, None, NA, masked) are a last one, "missing".
    """
    dates = getattr(getattr(groups, "dtype", None), "kind", "") == "M"
    # Objects keep integers beside missing labels.
    given = unmasked(groups.astype(object) if hasattr(groups, "astype") and not dates else groups)
    listed = isinstance(given, (list, tuple))
    labels = np.array(given, dtype=object) if listed else np.asarray(given)
    if labels.dtype.kind == "M":
        # With no more digits than the dates need.
        texts = np.datetime_as_string(labels, unit="auto").astype(object)
        texts[np.isnat(labels)] = None
        labels = texts
    if labels.shape != (m,):
        raise ValueError(f"groups must have shape ({m},), a group per sample; got {labels.shape}")
    known = [label for label in labels if not is_missing(label)]
    distinct = list(dict.fromkeys(known))
    try:
        distinct.sort()
    except TypeError:
        distinct.sort(key=str)
    place = {label: k for k, label in enumerate(distinct)}
    numbers = np.array([len(place) if is_missing(label) else place[label] for label in labels])
    return list(map(str, distinct)) + [MISSING] * (len(known) < m), numbers


def _ellipse(ax: Axes, points: FloatArray, colour: str) -> None:
    """Draws the ellipse of a group of at least three points that do not lie on a line."""
    if len(points) < 3:
        return
    values, vectors = np.linalg.eigh(np.cov(points.T))
    if not values[0] > 1e-12 * values[1]:
        return
    width, height = 2.0 * np.sqrt(ELLIPSE * values[::-1])
    angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
    ellipse = need("plot", "matplotlib.patches").Ellipse
    for style in (
        {"facecolor": colour, "alpha": 0.1, "zorder": 0.8},
        {"fill": False, "edgecolor": colour, "linewidth": 1.2},
    ):
        ax.add_patch(ellipse(points.mean(axis=0), width, height, angle=angle, **style))
    ax.autoscale_view()


def _arrows(ax: Axes, tips: FloatArray, used: Any, names: Sequence[str], most: int) -> None:
    """Draws arrows from the origin for the features ``used``, and names for the longest ones."""
    for j in used:
        arrow = ax.annotate(
            "",
            tips[j],
            (0.0, 0.0),
            arrowprops={
                "arrowstyle": "-|>",
                "color": ARROW,
                "linewidth": 0.9,
                "mutation_scale": 8.0,
                "shrinkA": 0.0,
                "shrinkB": 0.0,
                "alpha": 0.8,
            },
            zorder=3,
        )
        arrow.set_in_layout(False)
    # Arrows do not count for the limits of the axes.
    ax.update_datalim(np.vstack([tips[used], np.zeros((1, 2))]))
    if ax.get_autoscale_on():
        ax.margins(0.12)
        ax.autoscale_view()
    order = used[np.argsort(-np.linalg.norm(tips[used], axis=1), kind="stable")][:most]
    if most:
        shown = shortened_names([names[j] for j in order])
        add_labels(ax, tips[order], shown, len(used) - len(order))


def _correlations(X: Any, points: FloatArray) -> FloatArray:
    """Correlations of the columns of X with those of ``points``, over the samples known in X.

    Correlations with a constant are 0.
    """
    data = _samples(X)
    gaps = None if is_sparse(data) else np.isnan(data)
    if gaps is None or not gaps.any():
        return _correlations_of(data, points)
    out = np.zeros((data.shape[1], points.shape[1]))
    for j in range(data.shape[1]):
        known = ~gaps[:, j]
        if known.any():
            out[j] = _correlations_of(data[known, j : j + 1], points[known])
    return out


def _correlations_of(data: Any, points: FloatArray) -> FloatArray:
    """`_correlations` of complete data."""
    features, scores = Gram.of_rows(data, True), Gram.of_rows(points, True)
    products = np.column_stack([features.transposed(column) for column in scores.data.T])
    sizes = np.sqrt(np.outer(features.variances, scores.variances))
    return np.asarray(np.divide(products, sizes, out=np.zeros_like(products), where=sizes > 0.0))


def _samples(X: Any) -> Any:
    """X as a matrix of doubles, NaN where an entry is missing."""
    return as_samples(X).astype(np.float64, copy=False)


def _principal_shares(pca: Fitted, X: Any) -> FloatArray:
    """Shares of the variance of the principal components of X, prepared as for the fit.

    If entries of X are missing, the covariance is that of the fit's model of missing values.
    """
    data = _samples(X)
    if min(data.shape) > LARGEST:
        raise ValueError(
            f"X must have at most {LARGEST} samples or features for the principal components, got "
            f"{data.shape}; leave X out"
        )
    scale = getattr(pca, "scale_", None)
    centred = bool(getattr(pca, "center", True))
    if not is_sparse(data) and np.isnan(data).any():
        model = model_of_gaps(pca)
        if model is None:
            raise ValueError(
                "X must have no missing value (NaN); SparsePCA(missing='em') takes data with some"
            )
        mean, gram = model.moments(data)
        gram = gram if centred else gram + np.outer(mean, mean)
        gram = gram if scale is None else gram / np.outer(scale, scale)
    else:
        rows = Gram.of_rows(data, centred)
        if scale is not None:
            rows.divide(np.asarray(scale))
        gram = rows.smaller_gram()
    values = np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0)
    return np.asarray(values / max(float(values.sum()), np.finfo(np.float64).tiny))
