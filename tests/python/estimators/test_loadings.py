"""`Loadings`: tables of the nonzero entries of components."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris

import orthobcd as ob
from orthobcd.sklearn import Loadings


@pytest.mark.usefixtures("short_searches")
def test_loadings(tmp_path):
    data = load_iris(as_frame=True).data
    pca = ob.SparsePCA(2, n_nonzero=5, random_state=0).fit(data)
    table = pca.loadings()
    pairs = [pair for k in range(2) for pair in table.of(k)]
    assert len(pairs) == pca.n_nonzero_ == len(table.to_frame())
    for k in range(2):
        sizes = [abs(value) for _, value in table.of(k)]
        assert sizes == sorted(sizes, reverse=True)
        for name, value in table.of(k):
            assert pca.components_[k, list(data.columns).index(name)] == value
    for name, _ in pairs:
        assert name in table.summary()
        assert name in table._repr_html_()
    table.save(tmp_path / "table.npz")
    again = ob.Loadings.load(tmp_path / "table.npz")
    assert again.features == table.features
    np.testing.assert_array_equal(again.components, table.components)
    np.testing.assert_array_equal(again.score_correlation, table.score_correlation)
    unnamed = ob.SparsePCA(1, random_state=0).fit(data.to_numpy()).loadings()
    assert unnamed.of(0)[0][0].startswith("x")


@pytest.mark.parametrize("count", [1, 20, 21, 25])
def test_a_table_shows_twenty_loadings_of_a_component(count):
    components = np.zeros((1, 30))
    components[0, :count] = np.linspace(0.9, 0.1, count)
    names = tuple(f"f{k}" for k in range(30))
    table = Loadings(components, names, np.ones(1), np.ones(1), np.eye(1))
    for text in (table.summary(), table._repr_html_()):
        ending = "" if count == 1 else "s"
        assert re.search(rf"\b{count} loading{ending}\b", text)
        assert text.count(" +0.") == min(count, 20)
        assert (f"and {count - 20} smaller one" in text) == (count > 20)
        # No count of one has a noun in the plural.
        assert not re.search(r"\b1 (nonzero |smaller )?(loading|component|feature|one)s\b", text)
        assert not re.search(r"\b(?!1\b)\d+ (nonzero |smaller )?(loading|one)\b", text)
    assert table.summary().startswith(f"1 component of 30 features, {count} nonzero loading")
