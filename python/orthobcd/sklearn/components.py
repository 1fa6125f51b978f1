"""Fitted components: transforming, inverting and scoring data of every kind of storage."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._internal.checks import DataLike, FloatArray, is_sparse
from .array_api import coordinates as coordinates_there
from .array_api import explained_squares as squares_there
from .array_api import namespace_of
from .blocks import (
    ROWS,
    blocks_of,
    checked,
)
from .dask import LazyOutput, Mapped, is_lazy, mapped, totals, transformed
from .loadings import Loadings, loadings_of
from .passes import COMPONENTS
from .preparation import (
    check_complete,
    checked_samples,
    coordinates,
    explained_squares,
    points,
)
from .saving import Saved


def default_components(m: int, n: int) -> int:
    """Default number of components for m samples and n features: at most half of the features."""
    return min(COMPONENTS, m, max(1, n // 2))


class Components(
    LazyOutput,
    Saved,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Methods of fitted components: `transform`, `score`, `loadings` and others."""

    # The constructors of the subclasses set these.
    n_components: int | None
    center: bool
    scale: bool
    missing: Literal["em"] | None = None

    def _order(self, variances: FloatArray) -> Any:
        """Indices that sort the components."""
        return np.argsort(-variances, kind="stable")

    def _count(self, m: int, n: int) -> int:
        """The checked number of components."""
        if self.n_components is None:
            return default_components(m, n)
        if isinstance(self.n_components, bool) or not isinstance(
            self.n_components, numbers.Integral
        ):
            raise TypeError(f"n_components must be an integer or None, got {self.n_components!r}")
        if not 1 <= self.n_components <= n:
            raise ValueError(
                f"n_components must be between 1 and n_features = {n}, got {self.n_components}"
            )
        return int(self.n_components)

    def _data(self, X: Any, **options: Any) -> Any:
        """X after the checks of every door for data."""
        if self.missing not in (None, "em"):
            raise ValueError(f"missing must be None or 'em', got {self.missing!r}")
        data = checked_samples(self, X, **options)
        if is_sparse(data):
            check_complete(data, "give dense data with some to SparsePCA(missing='em')")
        elif self.missing is None:
            check_complete(data, "SparsePCA(missing='em') takes data with some")
        return data

    def _complete(self, X: Any) -> Any:
        """Checked data with the features of the fit and completed missing values."""
        check_is_fitted(self)
        data = self._data(X, reset=False)
        if is_sparse(data) or not np.isnan(data).any():
            return data
        if self._model is None:
            raise ValueError(
                "X must have no missing value after a fit to sparse data of so many features"
            )
        return self._model.completed(data)

    def _pieces(self, X: Any) -> Iterator[Any]:
        """Blocks of rows of X, each checked and completed by `_complete`."""
        check_is_fitted(self)
        blocks = blocks_of(X)
        if blocks is not None:
            yield from checked(blocks, lambda _, block: self._complete(block))
            return
        data = self._complete(X)
        step = data.shape[0] if is_sparse(data) else ROWS
        yield from (data[start : start + step] for start in range(0, data.shape[0], step))

    def transform(self, X: DataLike) -> FloatArray:
        """Coordinates of X in the components: ``(X / scale_ − mean_) components_ᵀ``.

        If ``scale_`` is None, X is not divided.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data, or blocks of its rows, as in `fit`; also an iterator over blocks.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            A lazy Dask array for a Dask collection, a lazy Dask data frame with the index of X if
            the output is set to "pandas"; there is no lazy "polars" output. With scikit-learn's
            array API dispatch, an array of the library, device and type of X.

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; if X does not have the features of the fit.
        """
        check_is_fitted(self)
        axes, mean, scale = self.components_.T, self.mean_, self.scale_
        if is_lazy(X):
            lazy: FloatArray = transformed(self, X, coordinates, axes.shape[1], axes, mean, scale)
            return lazy
        xp = namespace_of(X)
        if xp is not None:
            there: FloatArray = coordinates_there(xp, X, axes, mean, scale)
            return there
        parts = [coordinates(data, axes, mean, scale) for data in self._pieces(X)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def loadings(self) -> Loadings:
        """Table of the nonzero loadings, with the names of the features.

        Returns
        -------
        Loadings

        Raises
        ------
        NotFittedError
            Before `fit`.
        """
        check_is_fitted(self)
        return loadings_of(self)

    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Points of the data space with the given coordinates.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_components)
            Coordinates, or blocks of their rows, as in `fit`; also an iterator over blocks.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            A lazy Dask array for a Dask array of coordinates.

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; if X does not have one column per component.
        """
        check_is_fitted(self)
        fitted = self.components_, self.mean_, self.scale_
        if is_lazy(X):
            width = self.mean_.shape[0]
            lazy: FloatArray = mapped(X, Mapped(points, fitted, None), width)
            return lazy
        blocks = blocks_of(X)
        if blocks is None:
            return points(X, *fitted)
        return np.concatenate(list(checked(blocks, lambda _, block: points(block, *fitted))))

    def score(self, X: DataLike, y: Any = None) -> float:
        """Share of the variance of X about the fitted mean that the components explain.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data, or blocks of its rows, as in `fit`; also an iterator over blocks.
        y : None
            Ignored.

        Returns
        -------
        float
            At most 1; higher is better.

        Raises
        ------
        NotFittedError, ValueError
            As `transform`.
        """
        check_is_fitted(self)
        fitted = self.components_.T, self.mean_, self.scale_
        xp = namespace_of(X)
        if is_lazy(X):
            squares = totals(self, X, explained_squares, *fitted)
        elif xp is not None:
            squares = [squares_there(xp, X, *fitted)]
        else:
            squares = [explained_squares(data, *fitted) for data in self._pieces(X)]
        explained, total = np.sum(squares, axis=0)
        return float(explained / max(total, np.finfo(np.float64).tiny))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "em"
        tags.transformer_tags.preserves_dtype = []
        return tags
