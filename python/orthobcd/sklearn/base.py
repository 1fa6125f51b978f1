"""What the estimators share: centring, scaling, the fitted attributes, transforming."""

from __future__ import annotations

import numbers
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core import DATA
from .._internal.checks import (
    DataLike,
    FloatArray,
    as_float,
    as_optional_float,
    check_size,
    check_sparse,
    is_sparse,
)
from .._internal.moments import Moments, deviations, squares_about
from .._internal.progress import live
from ..result import Result, Status
from ..solvers import OBCD, Auto, Continuation

if TYPE_CHECKING:
    from typing_extensions import Self

COMPONENTS = 10
"""Most components, unless told how many."""


def default_components(m: int, n: int) -> int:
    """Number of components of data with m samples and n features, unless told otherwise."""
    return min(COMPONENTS, m, n)


def prepared(data: Any, center: bool, scale: bool) -> tuple[Moments, FloatArray | None]:
    """Data centred and divided by its standard deviations, as asked, and those.

    A constant column is divided by 1. Sparse data stays sparse.
    """
    moments = Moments(data, center)
    if not scale:
        return moments, None
    deviation = deviations(data)
    moments.divide(deviation)
    return moments, deviation


class OrthonormalPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: centring, scaling, the fitted attributes, transforming."""

    # Set in the constructors of the subclasses.
    n_components: int | None
    center: bool
    scale: bool
    solver: Auto | Continuation | OBCD | None
    max_time: float | None
    tol: float
    random_state: Any
    n_jobs: int | None
    warm_start: bool
    verbose: bool

    def fit(self, X: DataLike, y: Any = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data.
        y : None
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the data or a parameter is not valid; the message names it.
        """
        data = self._data(X, ensure_min_samples=2)
        m, n = data.shape
        r = self._count(m, n)
        entries = data.data if is_sparse(data) else data
        check_size("X", float(np.abs(entries).max(initial=0.0)), DATA)
        self.scale_: FloatArray | None
        moments, self.scale_ = prepared(data, bool(self.center), bool(self.scale))
        self.mean_ = moments.mean
        if n == 1:
            x: FloatArray = np.ones((1, 1))
            self.result_: Result | None = None
        else:
            with live(bool(self.verbose), self.max_time):
                self.result_ = self._solve(moments, r)
            if self.result_.status is Status.INTERRUPTED:
                warnings.warn("interrupted: not converged", ConvergenceWarning, stacklevel=2)
            x = self.result_.x
        # Most variance first; the largest loading of every component is positive.
        variances = np.sum(moments.scores(x) ** 2, axis=0) / (m - 1)
        order = self._order(variances)
        x = x[:, order]
        x = x * np.where(x[np.argmax(np.abs(x), axis=0), np.arange(r)] < 0.0, -1.0, 1.0)
        self.components_ = np.ascontiguousarray(x.T) + 0.0
        self.explained_variance_ = variances[order]
        self.explained_variance_ratio_ = variances[order] * (m - 1) / moments.total
        self.n_nonzero_ = int(np.count_nonzero(x))
        self.objective_ = 0.0 if self.result_ is None else self.result_.objective
        self.n_iter_ = 1 if self.result_ is None else max(1, self.result_.n_sweeps)
        return self

    def _order(self, variances: FloatArray) -> Any:
        """The order of the components."""
        return np.argsort(-variances, kind="stable")

    def _count(self, m: int, n: int) -> int:
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
        """X as scikit-learn checks it, which broken index arrays would crash."""
        if is_sparse(X):
            check_sparse("X", X)
        return validate_data(self, X, accept_sparse=("csr", "csc"), dtype=np.float64, **options)

    def _scores(self, data: Any) -> FloatArray:
        """Coordinates of checked data."""
        if is_sparse(data):
            axes = self.components_.T
            if self.scale_ is not None:
                axes = axes / self.scale_[:, None]
            return np.asarray(data @ axes) - self.mean_ @ self.components_.T
        if self.scale_ is not None:
            data = data / self.scale_
        return np.asarray((data - self.mean_) @ self.components_.T)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _threads(self) -> int | None:
        if self.n_jobs is None:
            return 1
        return None if self.n_jobs < 0 else self.n_jobs

    def _options(self) -> dict[str, Any]:
        """What every solve of a fit is given."""
        return {
            "max_time": as_optional_float("max_time", self.max_time, minimum=0.0),
            "tol": as_float("tol", self.tol, minimum=0.0),
            "seed": self._seed(),
            "n_threads": self._threads(),
            "verbose": bool(self.verbose),
        }

    def _warm(self, n: int, r: int) -> FloatArray | None:
        if not self.warm_start or not hasattr(self, "components_"):
            return None
        return self.components_.T if self.components_.shape == (r, n) else None

    def _solve(self, moments: Moments, r: int) -> Result:
        raise NotImplementedError

    def transform(self, X: DataLike) -> FloatArray:
        """Coordinates of X in the components: ``(X − mean_) components_ᵀ``, scaled first if asked.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray of shape (n_samples, n_components)

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If X does not have the features of the fit.
        """
        check_is_fitted(self)
        return self._scores(self._data(X, reset=False))

    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """The point of the data space with the given coordinates.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_components)
            Coordinates.

        Returns
        -------
        ndarray of shape (n_samples, n_features)

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If X does not have a column per component.
        """
        check_is_fitted(self)
        coordinates = np.asarray(X, dtype=np.float64)
        if coordinates.ndim != 2 or coordinates.shape[1] != self.components_.shape[0]:
            raise ValueError(
                f"X must have shape (n_samples, {self.components_.shape[0]}), "
                f"got {coordinates.shape}"
            )
        data = coordinates @ self.components_ + self.mean_
        return np.asarray(data if self.scale_ is None else data * self.scale_)

    def score(self, X: DataLike, y: Any = None) -> float:
        """Share of the variance of X about the fitted mean that the components explain.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data.
        y : None
            Ignored.

        Returns
        -------
        float
            At most 1; higher is better.
        """
        check_is_fitted(self)
        data = self._data(X, reset=False)
        scale = np.ones(data.shape[1]) if self.scale_ is None else self.scale_
        total = float(np.sum(squares_about(data, self.mean_ * scale) / scale**2))
        scores = self._scores(data)
        return float(np.sum(scores**2) / max(total, np.finfo(np.float64).tiny))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags
