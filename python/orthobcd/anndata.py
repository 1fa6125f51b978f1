"""Sparse PCA of annotated data (AnnData, as in scanpy); needs the extra ``anndata``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._internal.extras import need
from .sklearn import SparsePCA

__all__ = ["sparse_pca"]


def sparse_pca(
    adata: Any,
    n_components: int | None = None,
    *,
    layer: str | None = None,
    mask_var: str | None = None,
    key: str = "sparse_pca",
    copy: bool = False,
    **options: Any,
) -> Any:
    """Fit a `SparsePCA` to annotated data and write coordinates and loadings to it.

    Parameters
    ----------
    adata : anndata.AnnData
        Observations in rows, variables in columns; dense or sparse.
    n_components : int, optional
        Number of components; min(10, n_obs, n_vars) by default.
    layer : str, optional
        The layer to use; ``adata.X`` by default.
    mask_var : str, optional
        Name of a boolean column of ``adata.var`` that selects variables; all by default.
    key : str, default "sparse_pca"
        Name under which the results are written.
    copy : bool, default False
        Write to a copy of ``adata`` and return the copy.
    **options
        Further parameters of `SparsePCA`.

    Returns
    -------
    anndata.AnnData or None
        The copy with ``copy=True``, else None. These are written: ``obsm["X_<key>"]``, the
        coordinates (n_obs, n_components); ``varm["<key>"]``, the loadings (n_vars, n_components),
        zero for variables that are not selected; ``uns["<key>"]``, a dict with ``variance``,
        ``variance_ratio``, ``score_correlation``, ``n_nonzero`` and ``alpha``.

    Raises
    ------
    ValueError, TypeError, KeyError
        If an argument is not valid, or ``adata`` has no such layer or column.

    Examples
    --------
    >>> import numpy as np, anndata
    >>> from orthobcd.anndata import sparse_pca
    >>> adata = anndata.AnnData(np.random.default_rng(0).standard_normal((30, 8)))
    >>> sparse_pca(adata, 2, n_nonzero=6, random_state=0)
    >>> adata.obsm["X_sparse_pca"].shape, adata.varm["sparse_pca"].shape
    ((30, 2), (8, 2))
    """
    kind = need("anndata", "anndata").AnnData
    if not isinstance(adata, kind):
        raise TypeError(f"adata must be an anndata.AnnData, got {type(adata).__name__}")
    if copy:
        adata = adata.copy()
    data = adata.X if layer is None else adata.layers[layer]
    chosen = np.ones(adata.n_vars, dtype=bool)
    if mask_var is not None:
        chosen = np.asarray(adata.var[mask_var])
        if chosen.dtype != bool:
            raise TypeError(f"mask_var must name a boolean column, {mask_var!r} is {chosen.dtype}")
    pca = SparsePCA(n_components, **options)
    scores = pca.fit_transform(data[:, chosen])
    loadings = np.zeros((adata.n_vars, scores.shape[1]))
    loadings[chosen] = pca.components_.T
    adata.obsm[f"X_{key}"] = scores
    adata.varm[key] = loadings
    adata.uns[key] = {
        "variance": pca.explained_variance_,
        "variance_ratio": pca.explained_variance_ratio_,
        "score_correlation": pca.score_correlation_,
        "n_nonzero": pca.n_nonzero_,
        "alpha": pca.alpha_,
    }
    return adata if copy else None
