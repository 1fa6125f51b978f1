"""Table of the loadings of a fit: text, HTML, data frame, file."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._internal.archive import Filed, check_arrays
from .._internal.checks import FloatArray
from .._internal.names import shortened_names

SHOWN = 20
"""Largest number of loadings of a component in the text and HTML tables."""


@dataclass(frozen=True, eq=False)
class Loadings(Filed):
    """Nonzero loadings of components with the names of their features, largest first.

    Attributes
    ----------
    components : ndarray of shape (n_components, n_features)
        The loadings.
    features : tuple of str
        Names of the features.
    explained_variance, explained_variance_ratio : ndarray of shape (n_components,)
        Variance of each component, and its share of the total variance.
    score_correlation : ndarray of shape (n_components, n_components)
        Correlations of the coordinates.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from orthobcd import SparsePCA
    >>> data = load_iris(as_frame=True).data
    >>> loadings = SparsePCA(2, n_nonzero=3, random_state=0).fit(data).loadings()
    >>> loadings.of(0)[0][0]
    'petal length (cm)'
    >>> loadings.summary().splitlines()[0].split(", ")[1]
    '3 nonzero loadings'
    >>> loadings.to_frame().shape
    (3, 3)
    >>> loadings.save("loadings.npz")
    >>> type(loadings).load("loadings.npz").features == loadings.features
    True
    """

    components: FloatArray
    features: tuple[str, ...]
    explained_variance: FloatArray
    explained_variance_ratio: FloatArray
    score_correlation: FloatArray

    def __repr__(self) -> str:
        return f"Loadings({self._headline()})"

    def _headline(self) -> str:
        total = float(self.explained_variance_ratio.sum())
        return (
            f"{_counted(len(self.components), 'component')} of "
            f"{_counted(len(self.features), 'feature')}, "
            f"{_counted(int(np.count_nonzero(self.components)), 'nonzero loading')}, "
            f"{total:.1%} of the variance"
        )

    def of(self, component: int) -> list[tuple[str, float]]:
        """Names and loadings of a component, the largest magnitude first.

        Parameters
        ----------
        component : int
            Number of the component, from 0.

        Returns
        -------
        list of (str, float)

        Raises
        ------
        IndexError
            If there is no such component.
        """
        row = self.components[component]
        chosen = np.flatnonzero(row)
        chosen = chosen[np.argsort(-np.abs(row[chosen]), kind="stable")]
        return [(self.features[i], float(row[i])) for i in chosen]

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row (component, feature, loading) per nonzero loading."""
        import pandas as pd

        rows = [(k, *pair) for k in range(len(self.components)) for pair in self.of(k)]
        return pd.DataFrame(rows, columns=["component", "feature", "loading"])

    def summary(self) -> str:
        """The table as text, with long names shortened."""
        lines = [self._headline()]
        short = dict(zip(self.features, shortened_names(self.features), strict=True))
        width = max(map(len, short.values()))
        for k, share in enumerate(self.explained_variance_ratio):
            pairs = self.of(k)
            lines.append(f"component {k}: {share:.1%}, {_counted(len(pairs))}")
            shown = [(short[name], value) for name, value in pairs[:SHOWN]]
            lines += [f"  {name:<{width}} {value:+.3f}" for name, value in shown]
            if len(pairs) > SHOWN:
                lines.append(f"  and {_counted(len(pairs) - SHOWN, 'smaller one')}")
        return "\n".join(lines)

    __str__ = summary

    def _repr_html_(self) -> str:
        """An HTML table for notebooks, with a column per component."""
        heads, cells = [], []
        short = dict(zip(self.features, shortened_names(self.features), strict=True))
        for k, share in enumerate(self.explained_variance_ratio):
            pairs = self.of(k)
            heads.append(f"<th>component {k}<br>{share:.1%}, {_counted(len(pairs))}</th>")
            shown = [(html.escape(short[name]), value) for name, value in pairs[:SHOWN]]
            lines = [f"{name} {value:+.3f}" for name, value in shown]
            if len(pairs) > SHOWN:
                lines.append(f"and {_counted(len(pairs) - SHOWN, 'smaller one')}")
            cells.append(f'<td style="vertical-align:top">{"<br>".join(lines)}</td>')
        return f"<table><tr>{''.join(heads)}</tr><tr>{''.join(cells)}</tr></table>"

    def _check_loaded(self) -> None:
        r, n = len(self.explained_variance), len(self.features)
        shapes = {"components": (r, n), "score_correlation": (r, r)}
        arrays = {name: value for name, value in vars(self).items() if name != "features"}
        check_arrays(arrays, {name: shapes.get(name, (r,)) for name in arrays})


def _counted(count: int, thing: str = "loading") -> str:
    """The count and the noun, in the plural unless ``count`` is 1."""
    return f"{count} {thing}{'' if count == 1 else 's'}"
