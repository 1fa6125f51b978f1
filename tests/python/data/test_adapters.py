"""Tables of other libraries in and out, with the real packages."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

import orthobcd as ob


def test_pandas_and_polars_in_and_out():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    data = load_iris(as_frame=True).data
    reference = ob.SparsePCA(2, n_nonzero=5, random_state=0).fit(data)
    columns = [f"sparsepca{k}" for k in range(2)]
    for table, kind, name in (
        (data, pd.DataFrame, "pandas"),
        (pl.from_pandas(data), pl.DataFrame, "polars"),
    ):
        pca = ob.SparsePCA(2, n_nonzero=5, random_state=0).set_output(transform=name)
        scores = pca.fit_transform(table)
        assert isinstance(scores, kind)
        assert list(scores.columns) == columns
        assert list(pca.feature_names_in_) == list(data.columns)
        np.testing.assert_array_equal(pca.components_, reference.components_)
        np.testing.assert_allclose(scores.to_numpy(), reference.transform(data))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_anndata(container):
    anndata = pytest.importorskip("anndata")
    from orthobcd.anndata import sparse_pca

    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (60, 15)).astype(np.float64)
    adata = anndata.AnnData(container(X))
    adata.var["variable"] = np.arange(15) < 10
    adata.layers["log"] = container(np.log1p(X))
    assert sparse_pca(adata, 2, n_nonzero=8, random_state=0) is None
    V = adata.varm["sparse_pca"]
    np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-12)
    assert np.count_nonzero(V) == adata.uns["sparse_pca"]["n_nonzero"] == 8
    np.testing.assert_allclose(adata.obsm["X_sparse_pca"], (X - X.mean(axis=0)) @ V, atol=1e-10)
    made = sparse_pca(
        adata, 2, layer="log", mask_var="variable", key_added="other", copy=True, random_state=0
    )
    assert "other" not in adata.varm
    assert made.obsm["other"].shape == (60, 2)
    assert made.uns["other"]["n_nonzero"] == np.count_nonzero(made.varm["other"])
    assert not made.varm["other"][10:].any()
    assert made.varm["other"][:10].any()
    with pytest.raises(TypeError, match="adata"):
        sparse_pca(X)
    with pytest.raises(KeyError):
        sparse_pca(adata, layer="counts")
    for bad in (np.ones(4, bool), np.ones(15), np.zeros(15, bool)):
        with pytest.raises((ValueError, TypeError), match="mask_var"):
            sparse_pca(adata, mask_var=bad)
    adata.var["highly_variable"] = np.arange(15) >= 5
    sparse_pca(adata, 2, n_nonzero=8, random_state=0, key_added="default")
    mask = np.asarray(adata.var["highly_variable"])
    sparse_pca(adata, 2, n_nonzero=8, random_state=0, mask_var=mask, key_added="given")
    sparse_pca(adata, 2, n_nonzero=8, random_state=0, mask_var=None, key_added="all")
    np.testing.assert_array_equal(adata.varm["default"], adata.varm["given"])
    assert not adata.varm["default"][:5].any()
    np.testing.assert_array_equal(adata.varm["all"], V)


@pytest.mark.parametrize("kind", ["dense", "csr", "csc", "lazy"])
def test_anndata_outside_memory(tmp_path, kind):
    anndata = pytest.importorskip("anndata")
    from orthobcd.anndata import sparse_pca

    X = np.random.default_rng(0).poisson(1.0, (300, 15)).astype(np.float32)
    make = {"csr": sparse.csr_matrix, "csc": sparse.csc_matrix, "lazy": sparse.csr_matrix}
    path = tmp_path / "data.h5ad"
    whole = anndata.AnnData(make.get(kind, np.asarray)(X))
    whole.var["highly_variable"] = np.arange(15) < 10
    whole.write_h5ad(path)
    sparse_pca(whole, 2, n_nonzero=8, random_state=0)
    if kind == "lazy":
        pytest.importorskip("xarray")
        adata = anndata.experimental.read_lazy(path)
    else:
        adata = anndata.read_h5ad(path, backed="r")
    sparse_pca(adata, 2, n_nonzero=8, random_state=0)
    np.testing.assert_array_equal(adata.varm["sparse_pca"], whole.varm["sparse_pca"])
    scores = adata.obsm["X_sparse_pca"]
    if kind == "lazy":
        assert hasattr(scores, "compute")
    np.testing.assert_allclose(np.asarray(scores), whole.obsm["X_sparse_pca"], atol=1e-9)
