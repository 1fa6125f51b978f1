"""Names of features and components in tables and pictures; both are counted from 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LONGEST = 24
"""Largest number of characters of a name in a table or a picture."""


ROUNDS = 3
"""Largest number of times that a group of names with the same short form is divided."""


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


def shortened_names(names: Sequence[str], longest: int = LONGEST) -> list[str]:
    """``names``, each of at most ``longest`` characters; different names stay different.

    Names whose beginnings and ends agree are cut so that the place where they first differ is seen.

    Parameters
    ----------
    names : sequence of str
        The names.
    longest : int, default 24
        Largest length of the results, at least 12.
    """
    short = {name: shortened(name, longest) for name in names}
    for _ in range(ROUNDS):
        for group in _alike(short):
            shared = _common(min(group), max(group))
            short.update({name: _around(name, shared, longest) for name in group})
    for k, name in enumerate(name for group in _alike(short) for name in group):
        short[name] = f"{k}…{name}"[: longest - 1] + "…"
    return [short[name] for name in names]


def _common(first: str, last: str) -> int:
    """Number of characters with which both strings begin."""
    pairs = zip(first, last, strict=False)
    return next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(first), len(last)))


def _alike(short: dict[str, str]) -> list[list[str]]:
    """Groups of names with the same short form."""
    groups: dict[str, list[str]] = {}
    for name, text in short.items():
        groups.setdefault(text, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _around(name: str, place: int, longest: int) -> str:
    """The beginning of a name, and its part around a place."""
    head = longest // 3
    start = max(place - longest // 4, head + 1)
    part, room = name[start:].lstrip(), longest - head - 1
    return f"{name[:head].rstrip()}…{part if len(part) <= room else part[: room - 1] + '…'}"


def feature_names(given: Any, n: int) -> list[str]:
    """``given`` as n strings, or ``x0``, ``x1``, … for None."""
    if given is None:
        return [f"x{j}" for j in range(n)]
    names = list(map(str, given))
    if len(names) != n:
        raise ValueError(f"feature_names must have {n} entries, got {len(names)}")
    return names


def component_names(count: int) -> list[str]:
    """``component 0``, ``component 1``, …"""
    return [f"component {k}" for k in range(count)]
