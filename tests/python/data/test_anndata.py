"""`orthobcd.anndata` with annotated data in memory and in files."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from scipy import sparse

short = pytest.mark.usefixtures("short_searches")
SMALL = np.abs(np.random.default_rng(0).standard_normal((20, 4)) * [4.0, 3.0, 2.0, 1.0])


@short
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
@pytest.mark.parametrize("copy", [False, True])
def test_annotated_data_take_arrays_for_any_output(output, copy):
    anndata = pytest.importorskip("anndata")
    pytest.importorskip(output if output != "default" else "numpy")
    from orthobcd.anndata import sparse_pca

    adata = anndata.AnnData(SMALL)
    with sklearn.config_context(transform_output=output):
        returned = sparse_pca(adata, 2, n_nonzero=4, random_state=0, copy=copy)
    scores = (returned if copy else adata).obsm["X_sparse_pca"]
    assert type(scores) is np.ndarray
    assert scores.shape == (20, 2)


@short
def test_annotated_data_without_x_need_a_layer():
    anndata = pytest.importorskip("anndata")
    from orthobcd.anndata import sparse_pca

    adata = anndata.AnnData(SMALL, layers={"counts": SMALL})
    adata.X = None
    with pytest.raises(ValueError, match=r"layer must name data: adata.X is None.*'counts'"):
        sparse_pca(adata, 2, n_nonzero=4)
    sparse_pca(adata, 2, layer="counts", n_nonzero=4, random_state=0)
    assert adata.obsm["X_sparse_pca"].shape == (20, 2)


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


def noted(monkeypatch, kind: type) -> list[object]:
    """The data of every fit of an estimator from now on."""
    given, fit_transform = [], kind.fit_transform

    def noting(self, X, *args, **options):
        given.append(X)
        return fit_transform(self, X, *args, **options)

    monkeypatch.setattr(kind, "fit_transform", noting)
    return given


@short
@pytest.mark.parametrize("container", [np.array, sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("all_variables", [False, True])
def test_a_fit_reads_all_variables_without_a_copy(monkeypatch, container, all_variables):
    """Data in memory; a selection of variables is a copy of these."""
    anndata = pytest.importorskip("anndata")
    from orthobcd.anndata import SparsePCA, sparse_pca

    given = noted(monkeypatch, SparsePCA)
    adata = anndata.AnnData(container(SMALL))
    kept = np.array([True, True, all_variables, True])
    sparse_pca(adata, 2, n_nonzero=2, random_state=0, mask_var=kept)
    (data,) = given
    assert type(data) is type(adata.X)
    assert data.shape == (20, kept.sum())
    assert (data is adata.X) == all_variables


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", ["dense", "csr", "csc", "lazy"])
def test_anndata_outside_memory(tmp_path, kind, masked, monkeypatch):
    """Rows in a file are read by blocks, if the file has them by rows."""
    anndata = pytest.importorskip("anndata")
    from orthobcd.anndata import SparsePCA, sparse_pca

    X = np.random.default_rng(0).poisson(1.0, (300, 15)).astype(np.float32)
    make = {"csr": sparse.csr_matrix, "csc": sparse.csc_matrix, "lazy": sparse.csr_matrix}
    path = tmp_path / "data.h5ad"
    whole = anndata.AnnData(make.get(kind, np.asarray)(X))
    if masked:
        whole.var["highly_variable"] = np.arange(15) < 10
    whole.write_h5ad(path)
    sparse_pca(whole, 2, n_nonzero=8, random_state=0)
    if kind == "lazy":
        pytest.importorskip("xarray")
        adata = anndata.experimental.read_lazy(path)
    else:
        adata = anndata.read_h5ad(path, backed="r")
    given = noted(monkeypatch, SparsePCA)
    sparse_pca(adata, 2, n_nonzero=8, random_state=0)
    assert callable(given[0]) == (kind in ("dense", "csr"))
    np.testing.assert_array_equal(adata.varm["sparse_pca"], whole.varm["sparse_pca"])
    scores = adata.obsm["X_sparse_pca"]
    if kind == "lazy":
        assert hasattr(scores, "compute")
    np.testing.assert_allclose(np.asarray(scores), whole.obsm["X_sparse_pca"], atol=1e-9)
