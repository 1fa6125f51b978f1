"""Relative changes of objectives between two runs of the same problems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SAME = 1e-6
"""Relative change up to which an objective counts as unchanged."""


def relative(before: float, after: float) -> float:
    """The change relative to |before|."""
    return (after - before) / max(abs(before), 1e-300)


def pairs(before: Path, after: Path, key: int) -> list[tuple[list[Any], list[Any]]]:
    """The rows of two files of JSON lines that agree in their first `key` cells."""
    first, second = (
        {tuple(row[:key]): row for row in map(json.loads, path.read_text().splitlines())}
        for path in (before, after)
    )
    return [(row, second[label]) for label, row in first.items() if label in second]
