"""What the estimators share: centring, scaling, the fitted attributes, transforming."""

from __future__ import annotations

import numbers
import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._internal.checks import (
    DataLike,
    FloatArray,
    as_float,
    as_float_array,
    as_optional_float,
    check_sparse,
    is_sparse,
)
from .._internal.moments import Moments
from .._internal.progress import live
from .._internal.scatter import Scatter, SecondMoments
from ..result import Result, Status
from ..solvers import OBCD, Auto, Continuation
from .loadings import Loadings, loadings_of
from .missing import Gaussian, gaussian_of
from .preparation import (
    as_covariance,
    as_weights,
    check_magnitude,
    coordinates,
    correlation,
    decorrelated,
    described,
    explained_share,
    is_summed,
    prepared,
)

if TYPE_CHECKING:
    from typing_extensions import Self

COMPONENTS = 10
"""Most components, unless told how many."""


def default_components(m: int, n: int) -> int:
    """Number of components of data with m samples and n features, unless told otherwise."""
    return min(COMPONENTS, m, n)


def threads_of(estimator: Any) -> int | None:
    """The number of threads that ``n_jobs`` stands for."""
    if estimator.n_jobs is None:
        return 1
    return None if estimator.n_jobs < 0 else int(estimator.n_jobs)


def run_options(estimator: Any) -> dict[str, Any]:
    """What every solve of a fit is given."""
    return {
        "max_time": as_optional_float("max_time", estimator.max_time, minimum=0.0),
        "tol": as_float("tol", estimator.tol, minimum=0.0),
        "seed": int(check_random_state(estimator.random_state).randint(2**31 - 1)),
        "n_threads": threads_of(estimator),
        "verbose": bool(estimator.verbose),
    }


class Components(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What fitted components can do: transform, score, show their loadings."""

    # Set in the constructors of the subclasses.
    n_components: int | None
    center: bool
    scale: bool
    missing: Literal["em"] | None = None

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
        if self.missing not in (None, "em"):
            raise ValueError(f"missing must be None or 'em', got {self.missing!r}")
        kinds = np.float64 if is_sparse(X) else (np.float64, np.float32)
        finite: Any = "allow-nan" if self.missing == "em" else True
        return validate_data(
            self,
            X,
            accept_sparse=("csr", "csc"),
            dtype=kinds,
            ensure_all_finite=finite,
            **options,
        )

    def _complete(self, X: Any) -> Any:
        """Checked data of the features of the fit, its missing values completed."""
        check_is_fitted(self)
        data = self._data(X, reset=False)
        if is_sparse(data) or not np.isnan(data).any():
            return data
        if self._model is None:
            raise ValueError("X must have no missing value: the data of the fit had none")
        return self._model.completed(data)

    def _scores(self, data: Any) -> FloatArray:
        """Coordinates of checked data."""
        return coordinates(data, self.components_.T, self.mean_, self.scale_)

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
        return self._scores(self._complete(X))

    def loadings(self) -> Loadings:
        """The nonzero loadings as a table, with the names of the features.

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
        data = self._complete(X)
        return explained_share(data, self.components_.T, self.mean_, self.scale_)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "em"
        tags.transformer_tags.preserves_dtype = []
        return tags


class OrthonormalPCA(Components):
    """What the estimators share: centring, scaling, the fits and what they leave."""

    # Set in the constructors of the subclasses.
    uncorrelated: bool = False
    n_nonzero: Any = None
    solver: Auto | Continuation | OBCD | None
    max_time: float | None
    tol: float
    random_state: Any
    n_jobs: int | None
    warm_start: bool
    verbose: bool
    # Limit of a search's work, in seconds of a core.
    _work: float | None = None

    def fit(self, X: DataLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data. Of dense float32 data up to 4096 features no copy in double precision is made.
        y : None
            Ignored.
        sample_weight : array_like of shape (n_samples,), optional
            How often each sample counts; nonnegative, their sum above 1. Once by default.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the data or a parameter is not valid; the message names it.
        """
        data = self._data(X, ensure_min_samples=2)
        check_magnitude(data)
        weights = None if sample_weight is None else as_weights(sample_weight, data)
        self._scatter: Scatter | None = None
        self._model: Gaussian | None = None
        if self.missing is not None and not is_sparse(data) and np.isnan(data).any():
            if weights is not None:
                raise ValueError("sample_weight must be None for data with missing values")
            return self._fit_incomplete(np.asarray(data, dtype=np.float64))
        if is_summed(data, weights is not None):
            scatter = Scatter(data.shape[1])
            scatter.add(data, weights)
            moments, deviation = scatter.moments(bool(self.center), bool(self.scale))
            return self._fitted(moments, deviation, scatter.weight, data.shape[0])
        data = data.astype(np.float64, copy=False)
        whole, deviation = prepared(data, bool(self.center), bool(self.scale), weights)
        total = float(data.shape[0] if weights is None else weights.sum())
        return self._fitted(whole, deviation, total, data.shape[0])

    def _fit_incomplete(self, data: FloatArray) -> Self:
        """The fit to the moments that the EM algorithm finds."""
        m, n = data.shape
        self._model, mean, covariance = gaussian_of(data, self._count(m, n))
        moments, deviation = described(
            m * covariance, mean, float(m), bool(self.center), bool(self.scale)
        )
        return self._fitted(moments, deviation, float(m), m)

    def partial_fit(
        self,
        X: DataLike,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        update: bool = True,
    ) -> Self:
        """Add samples to those of earlier calls and find the components of all of them.

        Nothing is forgotten or approximated: a triangle of the n × n matrix of second moments is
        kept, in two doubles each (3.2 GB at 20,000 features), and the components are those that
        `fit` finds for all samples at once, up to rounding. An update makes the whole matrix, of
        which the solve holds a copy (6.4 GB more). `fit` begins anew.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            More samples.
        y : None
            Ignored.
        sample_weight : array_like of shape (n_samples,), optional
            As in `fit`.
        update : bool, default True
            Whether to find the components now. With False the samples are only added, and the
            fitted attributes stay those of the last update.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the data or a parameter is not valid, or there are less than two samples in all
            when the components are to be found.
        """
        scatter = getattr(self, "_scatter", None)
        data = self._data(X, reset=scatter is None)
        check_magnitude(data)
        if not is_sparse(data) and np.isnan(data).any():
            raise ValueError("X must have no missing value in partial_fit")
        weights = None if sample_weight is None else as_weights(sample_weight, data, least=0.0)
        if scatter is None:
            scatter = Scatter(data.shape[1])
        scatter.add(data, weights)
        self._scatter = scatter
        self._model = None
        if not update:
            return self
        if scatter.weight < 2.0:
            raise ValueError(f"n_samples={scatter.weight:g}: at least two samples are needed")
        moments, deviation = scatter.moments(bool(self.center), bool(self.scale))
        return self._fitted(moments, deviation, scatter.weight, int(scatter.weight))

    def fit_covariance(
        self, S: ArrayLike, n_samples: float | None = None, mean: ArrayLike | None = None
    ) -> Self:
        """Find the components of data of which only the covariance matrix is known.

        Parameters
        ----------
        S : array_like of shape (n_features, n_features)
            Covariance or correlation matrix, symmetric and positive semidefinite up to rounding,
            with n_samples − 1 in its denominator. With ``center=False`` the mean is added to it.
        n_samples : float, optional
            Number of samples, above 1. It is the unit of an absolute ``alpha`` and of
            ``objective_``; 2 by default.
        mean : array_like of shape (n_features,), optional
            Mean of the features, which `transform` subtracts; zeros by default.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If an argument or a parameter is not valid; the message names it.
        """
        matrix = as_covariance(S)
        n = matrix.shape[0]
        weight = 2.0 if n_samples is None else as_float("n_samples", n_samples)
        if not weight > 1.0:
            raise ValueError(f"n_samples must be above 1, got {weight:g}")
        matrix = (weight - 1.0) * matrix
        middle = np.zeros(n) if mean is None else as_float_array("mean", mean, 1)
        if middle.shape != (n,):
            raise ValueError(f"mean must have shape ({n},), got {middle.shape}")
        moments, deviation = described(matrix, middle, weight, bool(self.center), bool(self.scale))
        self._model = None
        self._scatter = None
        self.n_features_in_ = n
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self._fitted(moments, deviation, weight, n)

    def _fitted(
        self,
        moments: Moments | SecondMoments,
        deviation: FloatArray | None,
        weight: float,
        m: int,
    ) -> Self:
        """The fit to the moments of data of the given weight, with m samples."""
        n = moments.mean.shape[0]
        r = self._count(m, n)
        self.scale_: FloatArray | None = deviation
        self.mean_ = moments.mean
        if n == 1:
            x: FloatArray = np.ones((1, 1))
            self.result_: Result | None = None
        else:
            with live(bool(self.verbose), self.max_time):
                self.result_ = self._solve(moments, r)
            if self.result_.status is Status.INTERRUPTED:
                warnings.warn("interrupted: not converged", ConvergenceWarning, stacklevel=3)
            x = self.result_.x
        if self.uncorrelated:
            x = decorrelated(x, moments.second(x), self.n_nonzero)
        # Most variance first; the largest loading of every component is positive.
        variances = np.diag(moments.second(x)) / (weight - 1.0)
        order = self._order(variances)
        x = x[:, order]
        x = x * np.where(x[np.argmax(np.abs(x), axis=0), np.arange(r)] < 0.0, -1.0, 1.0)
        self.components_ = np.ascontiguousarray(x.T) + 0.0
        self.explained_variance_ = variances[order]
        self.explained_variance_ratio_ = variances[order] * (weight - 1.0) / moments.total
        self.score_correlation_ = correlation(moments.second(x))
        self.n_nonzero_ = int(np.count_nonzero(x))
        self.objective_ = 0.0 if self.result_ is None else self.result_.objective
        self.n_iter_ = 1 if self.result_ is None else max(1, self.result_.n_sweeps)
        return self

    def _threads(self) -> int | None:
        return threads_of(self)

    def _options(self) -> dict[str, Any]:
        """What every solve of a fit is given."""
        limits = {} if self._work is None else {"max_work": self._work}
        return {**run_options(self), **limits}

    def _beside(self, whole: OrthonormalPCA, work: float) -> Self:
        """This estimator, set to begin at a fit to more samples if it searches within a budget.

        It then has a bounded amount of work, and else is as it was.
        """
        searches = self.solver is None or isinstance(self.solver, Auto)
        if searches and getattr(whole, "_budget", None) is not None:
            self.warm_start, self._work = True, work
            self.components_ = whole.components_
        return self

    def _warm(self, n: int, r: int) -> FloatArray | None:
        if not self.warm_start or not hasattr(self, "components_"):
            return None
        return self.components_.T if self.components_.shape == (r, n) else None

    def _solve(self, moments: Moments | SecondMoments, r: int) -> Result:
        raise NotImplementedError
