"""Limits on nonzero loadings in the estimators' parameters, as a `Cardinality`."""

from __future__ import annotations

from collections.abc import Collection, Set
from typing import Any, TypeAlias

import numpy as np

from .._internal.checks import FloatArray, as_int, items_of
from ..penalties import Cardinality

Features: TypeAlias = Collection[Any]
"""Features by index or name: for all components, or a sequence for each component."""


def _index(name: str, feature: Any, names: list[str] | None, n: int) -> int:
    """The index of a feature that is given by index or name."""
    if isinstance(feature, str):
        if names is None or feature not in names:
            raise ValueError(f"{name} must hold features of the data, got {feature!r}")
        if (count := names.count(feature)) > 1:
            raise ValueError(f"{name} must hold indices where {count} features are {feature!r}")
        return names.index(feature)
    index = as_int(name, feature, 0)
    if index >= n:
        raise ValueError(f"{name} must hold features below {n}, got {index}")
    return index


def _features(name: str, value: Any, estimator: Any, n: int) -> list[Any] | None:
    """Indices of features, for all components or a list for each component."""
    if value is None:
        return None
    items = items_of(value)
    if items is None:
        raise TypeError(
            f"{name} must be a sequence of features, or one per component, got {value!r}"
        )
    known = getattr(estimator, "feature_names_in_", None)
    names = None if known is None else [str(feature) for feature in known]
    each = [items_of(one) for one in items]
    if all(one is None for one in each):
        return [_index(name, feature, names, n) for feature in items]
    if isinstance(value, Set):
        raise TypeError(f"{name} must have an order of the components, got {value!r}")
    return [
        [_index(name, feature, names, n) for feature in ([one] if features is None else features)]
        for one, features in zip(items, each, strict=True)
    ]


def limit_of(estimator: Any, n: int, r: int, *, nonnegative: bool = False) -> Cardinality:
    """The constraint of an estimator's ``n_nonzero``, ``include`` and ``exclude``."""
    count = estimator.n_nonzero
    each = None if isinstance(count, Set) else items_of(count)
    several = each is not None
    counts = [as_int("n_nonzero", one, 1 if several else r) for one in each or [count]]
    if several and len(counts) != r:
        raise ValueError(
            f"n_nonzero must be one number for each of {r} components, got {len(counts)}"
        )
    if max(counts) > (n if several else n * r):
        raise ValueError(f"n_nonzero must be at most {n if several else n * r}, got {max(counts)}")
    return Cardinality(
        counts if several else counts[0],
        nonnegative=nonnegative,
        include=_features("include", estimator.include, estimator, n),
        exclude=_features("exclude", estimator.exclude, estimator, n),
    )


def conditions(limit: Any, r: int) -> list[tuple[Any, ...]]:
    """Limit, included and excluded features of each of r components, as comparable tuples."""
    if not isinstance(limit, Cardinality):
        return [()] * r

    def condition(t: int) -> tuple[Any, ...]:
        count = limit.count[t] if isinstance(limit.count, tuple) else limit.count
        chosen = [
            frozenset(rows[t] if rows and isinstance(rows[0], tuple) else rows)
            for rows in (limit.include, limit.exclude)
        ]
        return (count, *chosen)

    return [condition(t) for t in range(r)]


def in_order(limit: Cardinality, variances: FloatArray) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Order of the components: that of the limits; components with equal ones by variance."""
    order = np.arange(len(variances))
    kinds = conditions(limit, len(variances))
    for kind in dict.fromkeys(kinds):
        places = np.array([t for t in range(len(kinds)) if kinds[t] == kind])
        order[places] = places[np.argsort(-variances[places], kind="stable")]
    return order
