"""Names, groups, outputs and types of floats, in the containers of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import orthobcd as ob

pytest.importorskip("sklearn")

import sklearn
from scipy import sparse

from ..conftest import SHORT, shorten_searches

RNG = np.random.default_rng(0)
X = np.abs(RNG.standard_normal((20, 4)) * [4.0, 3.0, 2.0, 1.0])


@pytest.fixture(autouse=True)
def short(monkeypatch):
    shorten_searches(monkeypatch, SHORT)


# Outputs -----------------------------------------------------------------------------------------

TRANSFORMERS = {
    "SparsePCA": lambda: ob.SparsePCA(2, n_nonzero=4, random_state=0),
    "NonnegativePCA": lambda: ob.NonnegativePCA(2, random_state=0),
    "OrthogonalNMF": lambda: ob.OrthogonalNMF(2, random_state=0),
    "SparsePCACV": lambda: ob.SparsePCACV(2, n_alphas=2, cv=2, random_state=0),
}


@pytest.mark.parametrize("by", ["set_output", "config"])
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
@pytest.mark.parametrize("kind", ["array", "frame", "array of unknown rows"])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_results_of_dask_collections_stay_lazy(name, kind, output, by):
    array, frame = (pytest.importorskip(f"dask.{kind}") for kind in ("array", "dataframe"))
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abcd"), index=[f"s{i:02}" for i in range(20)])
    pca = TRANSFORMERS[name]().fit(table if kind == "frame" else X)
    right = pca.transform(table if kind == "frame" else X)
    data: Any = frame.from_pandas(table, npartitions=3)
    if kind != "frame":
        data = array.from_array(X, chunks=(7, 4))
        data = data[data[:, 0] >= 0.0] if "unknown" in kind else data
    if by == "set_output":
        pca.set_output(transform=output)
    with sklearn.config_context(transform_output=output if by == "config" else "default"):
        found = pca.transform(data)
    if output != "pandas":
        assert isinstance(found, array.Array)
        np.testing.assert_allclose(found.compute(), right, atol=1e-12)
        return
    assert isinstance(found, frame.DataFrame)
    computed = found.compute()
    assert list(computed.columns) == list(pca.get_feature_names_out())
    np.testing.assert_allclose(computed.to_numpy(), right, atol=1e-12)
    if kind == "frame":
        assert list(computed.index) == list(table.index)


@pytest.mark.parametrize("output", ["pandas", "polars"])
@pytest.mark.parametrize("name", ["SparsePCA", "NonnegativePCA", "OrthogonalNMF"])
def test_fits_and_transforms_of_dask_collections_stay_lazy(name, output):
    array, frame = (pytest.importorskip(f"dask.{kind}") for kind in ("array", "dataframe"))
    pytest.importorskip("pandas")
    pca = TRANSFORMERS[name]().set_output(transform=output)
    found = pca.fit_transform(array.from_array(X, chunks=(7, 4)))
    assert isinstance(found, frame.DataFrame if output == "pandas" else array.Array)
    in_memory = pca.transform(X)
    assert type(in_memory).__module__.partition(".")[0] == output


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
@pytest.mark.parametrize("copy", [False, True])
def test_annotated_data_take_arrays_for_any_output(output, copy):
    anndata = pytest.importorskip("anndata")
    pytest.importorskip(output if output != "default" else "numpy")
    from orthobcd.anndata import sparse_pca

    adata = anndata.AnnData(X)
    with sklearn.config_context(transform_output=output):
        returned = sparse_pca(adata, 2, n_nonzero=4, random_state=0, copy=copy)
    scores = (returned if copy else adata).obsm["X_sparse_pca"]
    assert type(scores) is np.ndarray
    assert scores.shape == (20, 2)


def test_annotated_data_without_x_need_a_layer():
    anndata = pytest.importorskip("anndata")
    from orthobcd.anndata import sparse_pca

    adata = anndata.AnnData(X, layers={"counts": X})
    adata.X = None
    with pytest.raises(ValueError, match=r"layer must name data: adata.X is None.*'counts'"):
        sparse_pca(adata, 2, n_nonzero=4)
    sparse_pca(adata, 2, layer="counts", n_nonzero=4, random_state=0)
    assert adata.obsm["X_sparse_pca"].shape == (20, 2)


# Names and numbers of features -------------------------------------------------------------------


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


@pytest.mark.parametrize("listing", listings())
@pytest.mark.parametrize("make", [ob.SparsePCA, ob.NonnegativePCA])
@pytest.mark.parametrize("option", ["include", "exclude"])
@pytest.mark.parametrize("features", [["w"], ["x", "w"], [0], [1, 0]], ids=str)
def test_features_are_given_in_any_collection(features, option, make, listing):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("wxyz"))
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
            ob.SparsePCA(2, n_nonzero=collect(counts)).fit(X)
        with pytest.raises(TypeError, match=r"^count must be an integer"):
            ob.Cardinality(collect(counts))
        return
    one, other = (
        ob.SparsePCA(2, n_nonzero=given, random_state=0).fit(X).components_
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
    pca = ob.SparsePCA(2, n_nonzero=[2, 2], exclude=given, random_state=0).fit(X)
    assert not pca.components_[0, 0]
    assert not pca.components_[1, 3]


def test_an_unordered_collection_of_components_is_refused():
    for make in (
        lambda: ob.SparsePCA(2, n_nonzero=4, exclude={(0,), (1,)}).fit(X),
        lambda: ob.Cardinality(4, exclude={(0,), (1,)}),
        lambda: ob.SparsePCA(2, n_nonzero=4, exclude="w").fit(X),
        lambda: ob.SparsePCA(2, n_nonzero=4, exclude={0: 1}).fit(X),
    ):
        with pytest.raises(TypeError, match="exclude must"):
            make()


def test_a_name_of_several_features_is_refused(monkeypatch):
    """scikit-learn accepts such tables up to 1.8."""
    pca = ob.SparsePCA(2, n_nonzero=4, exclude=["a"], random_state=0)
    pca.feature_names_in_ = np.array(["a", "a", "b", "c"], dtype=object)
    with pytest.raises(ValueError, match=r"exclude must hold indices where 2 features are 'a'"):
        pca._cardinality(4, 2)
    pca.exclude = [0, 1]
    assert pca._cardinality(4, 2).exclude == (0, 1)


# Groups ------------------------------------------------------------------------------------------


def legend(groups: Any) -> list[str]:
    pytest.importorskip("matplotlib").use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.close("all")
    pca = ob.SparsePCA(2, n_nonzero=4, random_state=0).fit(X[:6])
    ax = ob.plot.scores(pca, X[:6], groups=groups)
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


# Correlations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e8])
@pytest.mark.parametrize("density", [0.1, 0.45, 0.9, 1.0])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_matrix, list])
def test_correlations_and_shares_of_data_of_any_mean(container, density, mean):
    from orthobcd.plot.scatter import _correlations, _principal_shares

    rng = np.random.default_rng(1)
    values = np.repeat(rng.standard_normal((300, 1)), 3, axis=1) + rng.standard_normal((300, 3))
    data = np.where(rng.random(values.shape) < density, values + mean, 0.0)
    scores = values[:, :1] * [1.0, -2.0] + rng.standard_normal((300, 2))
    right = np.corrcoef(data.T, scores.T)[:3, 3:]
    np.testing.assert_allclose(_correlations(container(data), scores), right, atol=1e-6)
    pca = ob.SparsePCA(2, n_nonzero=4, random_state=0).fit(data)
    eigenvalues = np.linalg.eigvalsh(np.cov(data.T))[::-1]
    shares = _principal_shares(pca, container(data))
    np.testing.assert_allclose(shares, eigenvalues / eigenvalues.sum(), atol=1e-6)


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_correlations_over_the_known_samples(share):
    from orthobcd.plot.scatter import _correlations, _principal_shares

    rng = np.random.default_rng(1)
    values = np.repeat(rng.standard_normal((200, 2)), 3, axis=1) + rng.standard_normal((200, 6))
    data = np.where(rng.random(values.shape) < share, np.nan, values)
    data[:, 5] = np.where(np.arange(200) < 2, 1.0, np.nan)
    pca = ob.SparsePCA(2, n_nonzero=4, missing="em", random_state=0).fit(data)
    scores = pca.transform(data)
    found = _correlations(data, scores)
    for j in range(5):
        known = ~np.isnan(data[:, j])
        right = np.corrcoef(data[known, j], scores[known].T)[0, 1:]
        np.testing.assert_allclose(found[j], right, atol=1e-12)
    assert not found[5].any()
    shares = _principal_shares(pca, data)
    assert shares.sum() == pytest.approx(1.0)
    # They bound what any orthonormal components explain of the same moments.
    assert (np.cumsum(shares)[:2] >= np.cumsum(pca.explained_variance_ratio_) - 1e-4).all()
    with pytest.raises(ValueError, match=r"X must have no missing value \(NaN\)"):
        ob.plot.scree(ob.SparsePCA(2, n_nonzero=4).fit(values), data)


# Types of floats ---------------------------------------------------------------------------------

ROUNDINGS = 64.0


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("side", [0.5, 2.0])
def test_symmetry_is_up_to_the_rounding_of_the_type(kind, side):
    """On both sides of the tolerance: 64 roundings of the type, or that of double precision."""
    for least, make in (
        (1e-12, ob.Quadratic),
        (1e-10, lambda C: ob.SparsePCA(1, n_nonzero=2, random_state=0).fit_covariance(C, 50)),
    ):
        limit = max(least, ROUNDINGS * np.finfo(kind).eps)
        C = np.eye(3, dtype=kind) * kind(2.0)
        C[0, 1] = 2.0 * side * limit
        if side < 1.0:
            make(C)
        else:
            with pytest.raises(ValueError, match="must be symmetric"):
                make(C)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("m", "n"), [(50, 8), (25, 100), (400, 60)])
def test_covariances_of_single_precision_are_accepted(m, n, seed):
    rng = np.random.default_rng(seed)
    Y = (rng.standard_normal((m, 1)) + 0.1 * rng.standard_normal((m, n))).astype(np.float32)
    Y -= Y.mean(axis=0)
    weighted = (Y * np.full((m, 1), 1.0 / (m - 1), np.float32)).T @ Y
    for C in (weighted, Y.T @ Y / np.float32(m - 1), np.corrcoef(Y.T).astype(np.float32)):
        assert ob.SparsePCA(2, n_nonzero=5).fit_covariance(C, m).n_nonzero_ == 5
        ob.Quadratic(C)
    # A correlation out of range is an error in any precision.
    bad = np.eye(4, dtype=np.float32)
    bad[0, 1] = bad[1, 0] = 1.01
    with pytest.raises(ValueError, match="positive semidefinite"):
        ob.SparsePCA(2).fit_covariance(bad, m)
