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
        adata, 2, layer="log", mask_var="variable", key="other", copy=True, random_state=0
    )
    assert "other" not in adata.varm
    assert not made.varm["other"][10:].any()
    assert made.varm["other"][:10].any()
    with pytest.raises(TypeError, match="adata"):
        sparse_pca(X)
    with pytest.raises(KeyError):
        sparse_pca(adata, layer="counts")
