"""`groups` of `plot.scores`: names, legend, missing groups."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as pyplot
import numpy as np
import pytest

import orthobcd as ob

pytestmark = pytest.mark.usefixtures("short_searches")
SMALL = np.abs(np.random.default_rng(0).standard_normal((20, 4)) * [4.0, 3.0, 2.0, 1.0])


def legend(groups: Any) -> list[str]:
    pyplot.close("all")
    pca = ob.SparsePCA(2, n_nonzero=4, random_state=0).fit(SMALL[:6])
    ax = ob.plot.scores(pca, SMALL[:6], groups=groups)
    found = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sum(len(points.get_offsets()) for points in ax.collections) == 6
    assert len(ax.collections) == len(found)
    return found


def groups() -> dict[str, Any]:
    """Groups and the texts of the legend."""
    nan = np.nan
    found: dict[str, Any] = {
        "numbers": ([3, 3, 1, 1, 2, 2], ["1", "2", "3"]),
        "list with NaN": ([1.5, 1.5, 2.5, 2.5, nan, nan], ["1.5", "2.5", "missing"]),
        "array with NaN": (np.array([1.0, 1.0, nan, nan, nan, 1.0]), ["1.0", "missing"]),
        "words with None": (["b", "a", None, "a", "a", "a"], ["a", "b", "missing"]),
        "words with NaN": (
            np.array(["b", "a", nan, "a", nan, "a"], dtype=object),
            ["a", "b", "missing"],
        ),
        "masked": (
            np.ma.masked_array([1, 2, 1, 9, 9, 1], mask=[0, 0, 0, 1, 1, 0]),
            ["1", "2", "missing"],
        ),
        "masked words": (
            np.ma.masked_array(["u", "v", "u", "x", "x", "u"], mask=[0, 0, 0, 1, 1, 0]),
            ["u", "v", "missing"],
        ),
        "no group": ([nan] * 6, ["missing"]),
        "days": (
            np.array(["2020-01-02"] * 3 + ["2020-01-01"] * 3, dtype="datetime64[ns]"),
            ["2020-01-01", "2020-01-02"],
        ),
        "days with NaT": (
            np.array(["2020-01-02"] * 3 + ["NaT"] * 3, dtype="datetime64[D]"),
            ["2020-01-02", "missing"],
        ),
        "minutes": (
            np.array(["2020-01-02T10:30"] * 3 + ["2020-01-02T10:45"] * 3, dtype="datetime64[us]"),
            ["2020-01-02T10:30", "2020-01-02T10:45"],
        ),
        "bools": ([True, False, True, True, True, True], ["False", "True"]),
    }
    try:
        import pandas as pd
    except ImportError:
        return found
    return {
        **found,
        "Series": (pd.Series([1, 1, 2, 2, None, None], dtype="Int64"), ["1", "2", "missing"]),
        "words of pandas": (
            pd.Series(["b", None, "a", "a", "a", "a"], dtype="string"),
            ["a", "b", "missing"],
        ),
        "categories": (pd.Categorical(["b", None, "a", "a", "a", "a"]), ["a", "b", "missing"]),
        "dates": (
            pd.to_datetime(["2020-01-01"] * 3 + ["2020-01-02", None, None]),
            ["2020-01-01", "2020-01-02", "missing"],
        ),
        "booleans": (
            pd.Series([True, None, False, True, True, True], dtype="boolean"),
            ["False", "True", "missing"],
        ),
    }


@pytest.mark.parametrize("kind", groups())
def test_groups_are_named_and_missing_ones_are_last(kind):
    given, names = groups()[kind]
    assert legend(given) == names


def test_groups_must_be_one_for_each_sample():
    for bad in ([1, 2], [[1], [2]], np.zeros((6, 2)), 3):
        with pytest.raises(ValueError, match=r"groups must have shape \(6,\)"):
            legend(bad)
