"""Comparison of what a page shows with what its code prints."""

from __future__ import annotations

import re

NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]\d+)?")

ROUNDING = 1e-12
"""Largest magnitude of rounding errors, whose size is not compared."""


def check_printed(found: str, shown: str, spread: tuple[float, float] = (0.1, 0.0)) -> None:
    """The same text; counts equal, other numbers within a spread or one unit of the last digit."""
    assert NUMBER.sub("#", found) == NUMBER.sub("#", shown)
    for mine, page in zip(NUMBER.findall(found), NUMBER.findall(shown), strict=True):
        if page.isdigit():
            assert mine == page, found
        elif float(page) < ROUNDING:
            assert float(mine) < ROUNDING, found
        else:
            unit = 0.0 if "e" in page else 10.0 ** -len(page.partition(".")[2])
            allowed = max(1.01 * unit, spread[1], spread[0] * abs(float(page)))
            assert abs(float(mine) - float(page)) <= allowed, found
