"""The method `plot` of choices and of stability."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

import orthobcd as ob

from ..estimators.samples import planted


@pytest.mark.usefixtures("short_searches")
def test_pictures():
    X, _ = planted(60)
    for thing in (
        ob.SparsePCACV(2, n_alphas=4, cv=3, random_state=0).fit(X),
        ob.SparsePCACV(2, n_alphas=4, criterion="bic", random_state=0).fit(X),
        ob.support_stability(ob.SparsePCA(2, n_nonzero=9, random_state=0), X, n_subsamples=3),
        ob.choose_n_components(X, max_components=4),
    ):
        ax = thing.plot()
        ax.figure.canvas.draw()
        assert ax.has_data()
        matplotlib.pyplot.close("all")


@pytest.mark.parametrize("count", [1, 29, 30, 31, 60])
def test_a_picture_of_frequencies_names_thirty_features_at_most(count):
    shares = np.zeros((2, 70))
    shares[0, 3 : 3 + count : 2] = 0.5
    shares[1, 4 : 3 + count : 2] = 1.0
    names = tuple(f"f{k}" for k in range(70))
    ax = ob.sklearn.SupportStability(shares, np.zeros((2, 70)), 4, names).plot()
    np.testing.assert_array_equal(ax.images[0].get_array(), shares[:, 3 : 3 + count])
    assert ax.images[0].get_clim() == (0.0, 1.0)
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert (labels == list(names[3 : 3 + count])) == (count <= 30)
    assert ax.get_xlabel() == ("feature" if count <= 30 else "features chosen at least once")
