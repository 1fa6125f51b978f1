"""`n_nonzero`, `n_features`, `include` and `exclude`, in any collection, by names and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest

import orthobcd as ob

pytestmark = pytest.mark.usefixtures("short_searches")
SMALL = np.abs(np.random.default_rng(0).standard_normal((20, 4)) * [4.0, 3.0, 2.0, 1.0])


def listings() -> dict[str, Any]:
    """Functions that make a collection from a list."""
    found: dict[str, Any] = {
        "list": list,
        "tuple": tuple,
        "array": np.array,
        "objects": lambda items: np.array(items, dtype=object),
        "set": set,
        "frozenset": frozenset,
        "keys": lambda items: dict.fromkeys(items).keys(),
    }
    try:
        import pandas
        import polars
    except ImportError:
        return found
    return {
        **found,
        "Index": pandas.Index,
        "Series": pandas.Series,
        "Series with an index": lambda items: pandas.Series(items, index=range(5, 5 + len(items))),
        "string Series": lambda items: pandas.Series(items).convert_dtypes(),
        "polars": polars.Series,
    }


@pytest.mark.covering(2)
@pytest.mark.parametrize("listing", listings())
@pytest.mark.parametrize("make", [ob.SparsePCA, ob.NonnegativePCA])
@pytest.mark.parametrize("option", ["include", "exclude"])
@pytest.mark.parametrize("features", [["w"], ["x", "w"], [0], [1, 0]], ids=str)
def test_features_are_given_in_any_collection(features, option, make, listing):
    table = pandas.DataFrame(SMALL, columns=list("wxyz"))
    collect = listings()[listing]
    fits = [
        make(1, n_nonzero=3, random_state=0, **{option: given}).fit(table)
        for given in (features, collect(features))
    ]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)
    rows = [f if isinstance(f, int) else "wxyz".index(f) for f in features]
    assert fits[1].components_[:, rows].any() == (option == "include")


@pytest.mark.parametrize("listing", listings())
def test_numbers_of_nonzeros_are_given_in_any_ordered_collection(listing):
    collect = listings()[listing]
    counts = [3, 2]
    if "set" in listing or listing == "keys":
        with pytest.raises(TypeError, match=r"^n_nonzero must be an integer"):
            ob.SparsePCA(2, n_nonzero=collect(counts)).fit(SMALL)
        with pytest.raises(TypeError, match=r"^count must be an integer"):
            ob.Cardinality(collect(counts))
        return
    one, other = (
        ob.SparsePCA(2, n_nonzero=given, random_state=0).fit(SMALL).components_
        for given in (counts, collect(counts))
    )
    np.testing.assert_array_equal(one, other)
    assert ob.Cardinality(collect(counts)).count == (3, 2)
    assert ob.Cardinality(4, include=collect([2, 1])).include == (2, 1)
    assert ob.Cardinality(4, exclude=[collect([2]), collect([1])]).exclude == ((2,), (1,))


@pytest.mark.parametrize("listing", listings())
def test_features_of_each_component_in_any_collection(listing):
    collect = listings()[listing]
    given = [collect([0]), collect([3])]
    pca = ob.SparsePCA(2, n_nonzero=[2, 2], exclude=given, random_state=0).fit(SMALL)
    assert not pca.components_[0, 0]
    assert not pca.components_[1, 3]


def test_an_unordered_collection_of_components_is_refused():
    for make in (
        lambda: ob.SparsePCA(2, n_nonzero=4, exclude={(0,), (1,)}).fit(SMALL),
        lambda: ob.Cardinality(4, exclude={(0,), (1,)}),
        lambda: ob.SparsePCA(2, n_nonzero=4, exclude="w").fit(SMALL),
        lambda: ob.SparsePCA(2, n_nonzero=4, exclude={0: 1}).fit(SMALL),
    ):
        with pytest.raises(TypeError, match="exclude must"):
            make()


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_name_of_several_features_is_refused():
    """scikit-learn accepts such tables up to 1.8."""
    pca = ob.SparsePCA(2, n_nonzero=4, exclude=["a"], random_state=0)
    pca.partial_fit(pandas.DataFrame(SMALL, columns=list("adbc")), update=False)
    pca.feature_names_in_ = np.array(["a", "a", "b", "c"], dtype=object)
    with pytest.raises(ValueError, match=r"exclude must hold indices where 2 features are 'a'"):
        pca.partial_fit(SMALL)
    pca.exclude = [0, 1]
    assert not pca.partial_fit(SMALL).components_[:, :2].any()


A = np.random.default_rng(3).standard_normal((60, 15)) @ np.diag(np.linspace(0.5, 2.0, 15))


def test_limits_of_components():
    limits = [2, 6, 4]
    pca = ob.SparsePCA(3, n_nonzero=limits, random_state=0).fit(A)
    assert np.count_nonzero(pca.components_, axis=1).tolist() == limits
    assert pca.n_nonzero_ == 12
    assert pca.alpha_ is None
    equal = ob.SparsePCA(3, n_nonzero=[4, 4, 4], random_state=0).fit(A)
    assert np.all(np.diff(equal.explained_variance_) <= 0.0)


def test_features_by_name():
    frame = pandas.DataFrame(A, columns=[f"f{k}" for k in range(15)])
    options = {"n_nonzero": [4, 4], "random_state": 0}
    pca = ob.SparsePCA(2, include=[["f3"], []], exclude=["f14", "f13"], **options).fit(frame)
    assert pca.components_[0, 3] != 0.0
    assert not pca.components_[:, 13:].any()
    with pytest.raises(ValueError, match="exclude"):
        ob.SparsePCA(2, exclude=["nobody"], **options).fit(frame)


def test_a_number_of_features():
    pca = ob.SparsePCA(3, n_features=6).fit(A)
    chosen = pca.components_.any(axis=0)
    assert np.count_nonzero(chosen) == 6
    # The components are principal components of the selected features, hence uncorrelated.
    scores = pca.transform(A)
    covariance = scores.T @ scores
    off = covariance - np.diag(np.diag(covariance))
    assert np.abs(off).max() < 1e-9 * np.trace(covariance)
