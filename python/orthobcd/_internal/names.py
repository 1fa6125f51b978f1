"""Names of features and components in tables and pictures; both are counted from 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LONGEST = 24
"""Largest number of characters of a name in a table or a picture."""


def shortened(name: str, longest: int = LONGEST) -> str:
    """``name``, or its beginning and its end with an ellipsis between, of ``longest`` characters.

    Parameters
    ----------
    name : str
        The name.
    longest : int, default 24
        Largest length of the result, at least 3.
    """
    if len(name) <= longest:
        return name
    end = (longest - 1) // 2
    return f"{name[: longest - 1 - end].rstrip()}…{name[len(name) - end :].lstrip()}"


def feature_names(given: Any, n: int) -> list[str]:
    """``given`` as n strings, or ``x0``, ``x1``, … for None.

    Raises
    ------
    ValueError
        If there are not n names.
    """
    if given is None:
        return [f"x{j}" for j in range(n)]
    names = list(map(str, given))
    if len(names) != n:
        raise ValueError(f"feature_names must have {n} entries, got {len(names)}")
    return names


def component_names(count: int) -> list[str]:
    """``component 0``, ``component 1``, …"""
    return [f"component {k}" for k in range(count)]


def listed(items: Sequence[Any], most: int = 3) -> str:
    """The first ``most`` items in a short repr, with an ellipsis if there are more."""
    parts = [str(item) for item in items[:most]] + (["…"] if len(items) > most else [])
    return ", ".join(parts)
