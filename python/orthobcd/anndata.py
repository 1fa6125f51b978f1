"""Sparse PCA of annotated data (AnnData, as in scanpy); needs the extra ``anndata``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._internal.checks import unmasked
from ._internal.extras import need
from .data import column_blocks, is_sliced
from .sklearn import SparsePCA

__all__ = ["sparse_pca"]

HIGHLY_VARIABLE = "highly_variable"
"""Column of ``adata.var`` that selects variables by default, as in scanpy."""


class _Unset:
    """The default of ``mask_var``, other than None."""

    def __repr__(self) -> str:
        return "<highly_variable if it is there>"


_UNSET: Any = _Unset()


def sparse_pca(
    adata: Any,
    n_components: int | None = None,
    *,
    layer: str | None = None,
    mask_var: str | ArrayLike | None = _UNSET,
    key_added: str | None = None,
    copy: bool = False,
    **options: Any,
) -> Any:
    """Fit a `SparsePCA` to annotated data and write coordinates and loadings to it.

    Parameters
    ----------
    adata : anndata.AnnData
        Observations in rows, variables in columns; dense or sparse. Backed data is read by blocks
        of rows, and lazy data (``anndata.experimental.read_lazy``) by Dask.
    n_components : int, optional
        Number of components; min(10, n_obs, n_vars) by default.
    layer : str, optional
        The layer to use; ``adata.X`` by default.
    mask_var : str or array_like of bool of shape (n_vars,), optional
        Variables to use: the name of a boolean column of ``adata.var``, or an array; None for all.
        By default the column ``highly_variable`` if there is one, else all, as in scanpy.
    key_added : str, optional
        Name of the results in ``obsm``, ``varm`` and ``uns`` alike. By default they are called
        "X_sparse_pca", "sparse_pca" and "sparse_pca".
    copy : bool, default False
        Write to a copy of ``adata`` and return the copy.
    **options
        Further parameters of `SparsePCA`.

    Returns
    -------
    anndata.AnnData or None
        The copy with ``copy=True``, else None. The results are written to ``obsm``, coordinates
        (n_obs, n_components), a Dask array for lazy data; to ``varm``, loadings (n_vars,
        n_components), zero for variables that are not selected; and to ``uns``, a dict with
        ``variance``, ``variance_ratio``, ``score_correlation``, ``n_nonzero`` and ``alpha``.

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
        adata = adata.to_memory() if adata.isbacked else adata.copy()
    chosen = _chosen(adata, mask_var)
    values = adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise ValueError(f"layer must name data: adata.X is None, layers are {list(adata.layers)}")
    data = _columns(values, chosen)
    # The annotated data takes arrays, whatever scikit-learn's transform_output is.
    pca = SparsePCA(n_components, **options).set_output(transform="default")
    scores = pca.fit_transform(data)
    loadings = np.zeros((adata.n_vars, scores.shape[1]))
    loadings[chosen] = pca.components_.T
    name = "sparse_pca" if key_added is None else key_added
    adata.obsm["X_sparse_pca" if key_added is None else key_added] = scores
    adata.varm[name] = loadings
    adata.uns[name] = {
        "variance": pca.explained_variance_,
        "variance_ratio": pca.explained_variance_ratio_,
        "score_correlation": pca.score_correlation_,
        "n_nonzero": pca.n_nonzero_,
        "alpha": pca.alpha_,
    }
    return adata if copy else None


def _chosen(adata: Any, mask_var: Any) -> Any:
    """The variables to use, as an array of bool."""
    if mask_var is _UNSET:
        mask_var = HIGHLY_VARIABLE if HIGHLY_VARIABLE in adata.var else None
    if mask_var is None:
        return np.ones(adata.n_vars, dtype=bool)
    named = isinstance(mask_var, str)
    mask = np.asarray(unmasked(adata.var[mask_var] if named else mask_var))
    if mask.dtype != bool:
        what = f"name a boolean column, {mask_var!r} is" if named else "be an array of bool, it is"
        raise TypeError(f"mask_var must {what} {mask.dtype}")
    if mask.shape != (adata.n_vars,):
        raise ValueError(f"mask_var must have shape ({adata.n_vars},), got {mask.shape}")
    if not mask.any():
        raise ValueError("mask_var must select at least one variable")
    return mask


def _columns(data: Any, chosen: Any) -> Any:
    """The chosen columns: a callable that returns blocks of rows if the data is in a file."""
    if not is_sliced(data):
        return data if chosen.all() else data[:, chosen]
    if getattr(data, "format", None) == "csc":
        # Rows of a CSC matrix cannot be read without all its columns.
        return data[:, chosen]
    return column_blocks(data, slice(None) if chosen.all() else chosen)
