"""`choose_n_components`: parallel analysis and held-out entries."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import orthobcd as ob

from .samples import planted


@pytest.mark.parametrize("method", ["parallel", "held_out"])
def test_number_of_components(method):
    X, _ = planted()
    choice = ob.choose_n_components(X, method, max_components=6, random_state=0)
    assert choice.n_components == 3
    assert choice.values.shape == choice.thresholds.shape == (6,)
    noise = np.random.default_rng(0).standard_normal((200, 20))
    assert ob.choose_n_components(noise, method, max_components=4, random_state=0).n_components == 1
    with pytest.raises(ValueError, match="method"):
        ob.choose_n_components(X, "scree")


def test_the_largest_threshold_is_that_of_all_permutations():
    X = np.random.default_rng(0).standard_normal((10, 4))
    options = {"n_repeats": 5, "random_state": 0}
    found = [ob.choose_n_components(X, quantile=q, **options).thresholds for q in (0.0, 0.5, 1.0)]
    assert (found[0] < found[1]).all()
    assert (found[1] < found[2]).all()
    for values in (
        ob.choose_n_components(X, quantile=0.5, **options).values,
        ob.choose_n_components(1e-3 * X + 1.0, quantile=0.5, **options).values,
    ):
        eigenvalues = np.linalg.eigvalsh(np.corrcoef(X.T) * 10 / 9)[::-1]
        np.testing.assert_allclose(values, eigenvalues[:3], rtol=1e-9)
    assert ob.choose_n_components(X, n_repeats=1).n_components >= 1
    for m, n in ((2, 4), (3, 1)):
        with pytest.raises(ValueError, match="at least 3 samples and 2 features"):
            ob.choose_n_components(X[:m, :n])
    assert len(ob.choose_n_components(X[:3], **options).values) == 2
    assert len(ob.choose_n_components(X[:, :2], **options).values) == 1


@pytest.mark.parametrize("n", [2, 20, 100])
def test_every_feature_keeps_an_entry(n):
    """Without one the completion would raise an error; of three samples all are often left out."""
    X = np.random.default_rng(0).standard_normal((3, n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        choice = ob.choose_n_components(
            X, "held_out", max_components=1, n_repeats=24, random_state=0
        )
    assert np.isfinite(choice.values).all()


def test_a_choice_that_stops_at_most_says_so():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6)) @ rng.standard_normal((6, 12))
    X += 0.05 * rng.standard_normal(X.shape)
    with pytest.warns(ConvergenceWarning, match="max_components=2 stopped the choice"):
        choice = ob.choose_n_components(
            X, "held_out", max_components=2, n_repeats=8, random_state=0
        )
    assert choice.is_largest
    assert "the largest considered" in repr(choice)
    choice = ob.choose_n_components(X, "held_out", max_components=9, n_repeats=8, random_state=0)
    assert not choice.is_largest
    assert choice.values[5] < 0.1 * choice.values[0]
