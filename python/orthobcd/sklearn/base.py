"""Base classes of the estimators: centring, scaling, fitted attributes, transforming."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from .._core import Moments as Sums
from .._internal.checks import (
    DataLike,
    FloatArray,
    as_choice,
    as_float,
    as_float_array,
    is_sparse,
    warn,
)
from .._internal.moments import Moments, Precision, SecondMoments
from ..problems import DENSE_COVARIANCE_LIMIT, is_wide
from ..result import Result
from ..solvers import OBCD, Auto, Continuation
from .blocks import (
    Blocks,
    as_bytes,
    blocks_of,
    check_memory,
    is_sliced,
    loaded,
    watching,
)
from .components import Components
from .dask import is_lazy
from .fitting import Fitting, run_options, threads_of
from .missing import Gaussian, gaussian_from, gaussian_of
from .passes import summed
from .preparation import (
    PrecisionName,
    as_covariance,
    as_weights,
    check_magnitude,
    correlation,
    decorrelated,
    described,
    estimated,
    extended,
    moments_of,
    read,
)

if TYPE_CHECKING:
    from typing_extensions import Self

UNITS = 100.0
"""Ratio of the largest variance to that which three quarters of the features exceed, above which
the features count as of different units."""


class OrthonormalPCA(Components):
    """Base class of the PCA estimators: fits to data, blocks, weights and covariances."""

    # The constructors of the subclasses set these.
    uncorrelated: bool = False
    n_nonzero: Any = None
    solver: Auto | Continuation | OBCD | None
    max_time: float | None
    effort: float = 1.0
    tol: float
    random_state: Any
    n_jobs: int | None
    warm_start: bool
    verbose: bool
    precision: PrecisionName
    max_memory: float | str | None = None
    # Work limit of a search; a unit is about a second of one core.
    _work: float | None = None
    # Whether fits of many subsamples warn: the fit to all samples does.
    _quiet: bool = False

    def fit(
        self,
        X: DataLike,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data. Dense data of any type with up to 4096 features is not copied to double precision,
            unless n_features is at least 8 n_samples. Data that is not in memory is read once, by
            blocks of rows: an object with a shape, a dtype and row slices (`numpy.memmap`, h5py,
            zarr, a backed AnnData matrix), a pyarrow dataset, a polars LazyFrame, a DuckDB
            relation, a sequence of blocks, or a callable that returns an iterator over blocks.
            Blocks are dense or sparse, all of one dtype. A Dask array or data frame, or an xarray
            array of a Dask array, is read by one graph.
        y : None
            Ignored.
        sample_weight : array_like of shape (n_samples,), optional
            Weights of the samples, nonnegative, with a sum above 1; a weight k counts a sample k
            times. All 1 by default.
        checkpoint : path, optional
            File of the progress of the fit. The same call with the same file continues where the
            file ends, as in `solve`; ``random_state`` must be an integer.
        checkpoint_every : float, default 60
            Least seconds between two writes of the checkpoint.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the data or a parameter is not valid; the message names it.
        KeyboardInterrupt
            After Ctrl-C. The attribute ``result`` of the exception is the best `Result` so far, or
            None before the search. If there is a result, the fitted attributes are set from it.
        """
        with Fitting(self, checkpoint, checkpoint_every) as fitting:
            limit = as_bytes("max_memory", self.max_memory)
            blocks = blocks_of(X)
            if blocks is not None and not blocks.again:
                raise TypeError(
                    "X must not be an iterator, which can be read only once; use partial_fit, or "
                    "a callable that returns a new iterator"
                )
            if is_lazy(X) or (blocks is not None and not self._reads_whole(X)):
                return self._fit_pass(fitting, X, blocks, sample_weight)
            data = self._data(X if blocks is None else loaded(X), ensure_min_samples=2)
            check_magnitude(data)
            if data.shape[1] <= DENSE_COVARIANCE_LIMIT and not is_wide(data):
                check_memory("max_memory", limit, data.shape[1])
            weights = None if sample_weight is None else as_weights(sample_weight, data)
            m, n = data.shape
            r = self._checked(m, n)
            fitting.stage("second moments")
            model: Gaussian | None = None
            if self.missing is not None and not is_sparse(data):
                values = data.astype(np.float64, copy=False)
                if np.isnan(values).any():
                    if weights is not None:
                        raise ValueError("sample_weight must be None for data with missing values")
                    return self._fit_incomplete(fitting, values, r)
                if weights is None:
                    model = gaussian_of(values, r, deadline=fitting.deadline)
            moments, deviation, precision = moments_of(
                data, self.precision, bool(self.center), bool(self.scale), weights, threads_of(self)
            )
            total = float(m if weights is None else weights.sum())
            return self._fitted(fitting, moments, deviation, total, r, precision, model=model)

    def _reads_whole(self, X: Any) -> bool:
        """True if a fit loads X although its rows can be sliced: wide data and missing values."""
        return is_sliced(X) and (is_wide(X) or self.missing is not None)

    def fit_transform(self, X: DataLike, y: Any = None, **fit_params: Any) -> FloatArray:
        """Fit to X and return its coordinates.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data, as in `fit`. Data that is not in memory is read twice.
        y : None
            Ignored.
        **fit_params
            Further arguments of `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            A Dask array for a Dask collection.

        Raises
        ------
        ValueError, TypeError
            As in `fit`; also if blocks of rows differ between the two passes.
        """
        blocks = blocks_of(X)
        if blocks is None or not blocks.again or self._reads_whole(X):
            return self.fit(X, y, **fit_params).transform(X)
        watched: Any = watching(blocks)
        return self.fit(watched, y, **fit_params).transform(watched)

    def _fit_pass(
        self, fitting: Fitting, X: Any, blocks: Blocks | None, sample_weight: Any
    ) -> Self:
        """Fits to blocks of rows or a Dask collection, which are read once."""
        sums = summed(self, fitting, X, blocks, None, sample_weight)
        if not sums.weight >= 2.0 and sample_weight is None:
            raise ValueError(f"n_samples={sums.weight:g}: at least two samples are needed")
        weight, precision = sums.weight, sums.precision
        if not weight > 1.0:
            raise ValueError(f"sample_weight must sum to more than 1; got {weight:g}")
        r = self._checked(sums.n_rows, sums.n_features)
        center, scale = bool(self.center), bool(self.scale)
        moments, deviation = read(sums, center, scale, threads_of(self), keep=False)
        return self._fitted(fitting, moments, deviation, weight, r, precision)

    def _fit_incomplete(self, fitting: Fitting, data: FloatArray, r: int) -> Self:
        """Fits to the moments of the EM algorithm, for data with missing values."""
        if self.precision == "exact":
            raise ValueError("precision must be 'auto' or 'fast' for data with missing values")
        model, moments, deviation = estimated(
            data, r, bool(self.center), bool(self.scale), fitting.deadline
        )
        return self._fitted(fitting, moments, deviation, float(len(data)), r, "fast", model=model)

    def partial_fit(
        self,
        X: DataLike,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        update: bool = True,
    ) -> Self:
        """Add samples to those of earlier calls and find the components of all samples.

        The components are those that `fit` finds for all samples at once, up to rounding. The
        estimator keeps a triangle of the n × n matrix of second moments, with two doubles per entry
        while ``precision_`` is "exact" (3.2 GB at 20,000 features). Up to 2047 samples are buffered
        before they are added to the triangle; during this addition the old and the new triangle are
        both in memory. An update forms the whole matrix (3.2 GB more), which the solve uses without
        a copy; as long as n_features is at least 8 times the number of buffered samples and
        ``precision_`` is "fast", the solve uses the samples instead. `fit` discards all samples of
        earlier calls.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            New samples, or blocks of rows, as in `fit`; also an iterator over blocks.
        y : None
            Ignored.
        sample_weight : array_like of shape (n_samples,), optional
            As in `fit`.
        update : bool, default True
            Whether to find the components now. With False the samples are added, and the fitted
            attributes do not change.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the data or a parameter is not valid, or if there are fewer than two samples in all
            when the components are to be found. Then no sample is added.
        KeyboardInterrupt
            After Ctrl-C, as in `fit`. The samples are added if ``result`` is not None.
        """
        with Fitting(self) as fitting:
            before = getattr(self, "_sums", None)
            blocks = blocks_of(X)
            if blocks is not None or is_lazy(X):
                sums = summed(self, fitting, X, blocks, before, sample_weight)
                return self._updated(fitting, sums, update)
            limit = as_bytes("max_memory", self.max_memory)
            data = self._data(X, reset=before is None)
            check_magnitude(data)
            if not is_sparse(data) and np.isnan(data).any():
                raise ValueError("X must have no missing value in partial_fit")
            weights = None if sample_weight is None else as_weights(sample_weight, data, least=0.0)
            weight = float(data.shape[0] if weights is None else weights.sum())
            weight += 0.0 if before is None else before.weight
            if update and weight < 2.0:
                raise ValueError(f"n_samples={weight:g}: at least two samples are needed")
            self._checked(max(1, int(weight)), data.shape[1])
            check_memory("max_memory", limit, data.shape[1])
            fitting.stage("second moments")
            sums = extended(before, self.precision, data, weights, threads_of(self))
            return self._updated(fitting, sums, update)

    def _updated(self, fitting: Fitting, sums: Sums, update: bool) -> Self:
        """Keeps the sums; with ``update`` fits to them."""
        if not update:
            self._sums: Sums | None = sums
            return self
        weight = sums.weight
        if weight < 2.0:
            raise ValueError(f"n_samples={weight:g}: at least two samples are needed")
        r = self._checked(max(1, int(weight)), sums.n_features)
        center, scale = bool(self.center), bool(self.scale)
        moments, deviation = read(sums, center, scale, threads_of(self), keep=True)
        return self._fitted(fitting, moments, deviation, weight, r, sums.precision, sums)

    def fit_covariance(
        self, S: ArrayLike, n_samples: float | None = None, mean: ArrayLike | None = None
    ) -> Self:
        """Find the components from a covariance matrix instead of data.

        Parameters
        ----------
        S : array_like of shape (n_features, n_features)
            Covariance or correlation matrix, symmetric and positive semidefinite up to rounding,
            with the denominator n_samples − 1. With ``center=False`` the second moment of the mean
            is added to it. The columns of a data frame name the features.
        n_samples : float, optional
            Number of samples, above 1; 2 by default. An absolute ``alpha`` and ``objective_`` are
            proportional to it.
        mean : array_like of shape (n_features,), optional
            Mean of the features, which `transform` subtracts; zeros by default.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If an argument or a parameter is not valid; the message names it.
        KeyboardInterrupt
            After Ctrl-C, as in `fit`.
        """
        with Fitting(self) as fitting:
            matrix = as_covariance(S)
            n = matrix.shape[0]
            weight = 2.0 if n_samples is None else as_float("n_samples", n_samples)
            if not weight > 1.0:
                raise ValueError(f"n_samples must be above 1, got {weight:g}")
            middle = np.zeros(n) if mean is None else as_float_array("mean", mean, 1)
            if middle.shape != (n,):
                raise ValueError(f"mean must have shape ({n},), got {middle.shape}")
            validate_data(self, S, skip_check_array=True)
            r = self._checked(n, n)
            matrix *= weight - 1.0
            moments, deviation = described(
                matrix, middle, weight, bool(self.center), bool(self.scale)
            )
            return self._fitted(fitting, moments, deviation, weight, r, "exact")

    def _checked(self, m: int, n: int) -> int:
        """Checks all parameters; returns the number of components for m samples, n features."""
        as_choice("precision", self.precision, get_args(PrecisionName))
        as_float("tol", self.tol, minimum=0.0)
        check_random_state(self.random_state)
        threads_of(self)
        r = self._count(m, n)
        self._check(n, r)
        return r

    def _fitted(
        self,
        fitting: Fitting,
        moments: Moments | SecondMoments,
        deviation: FloatArray | None,
        weight: float,
        r: int,
        precision: Precision,
        sums: Sums | None = None,
        model: Gaussian | None = None,
    ) -> Self:
        """Fits r components to moments of data with a total weight.

        ``sums`` are kept for `partial_fit`. ``model`` completes missing values later; by default it
        is that of the moments. All fitted attributes are set after the search, so that an error
        leaves the old ones.
        """
        x: FloatArray = np.ones((1, 1))
        result: Result | None = None
        if moments.mean.shape[0] > 1:
            if not self._quiet:
                self._advise(moments.variances, r)
            fitting.stage("solve")
            result = fitting.result = self._solve(fitting, moments, r)
            x = result.x
        if self.uncorrelated:
            x = decorrelated(x, moments.second(x), self.n_nonzero)
        variances = np.maximum(np.diag(moments.second(x)), 0.0) / (weight - 1.0)
        order = self._order(variances)
        x = self._signed(x[:, order])
        self._sums = sums
        if model is None and self.missing is not None:
            model = gaussian_from(moments, deviation, weight, r)
        self._model = model
        self.precision_ = precision
        self.mean_ = moments.mean
        self.scale_: FloatArray | None = deviation
        self.result_ = result
        self.components_ = np.ascontiguousarray(x.T) + 0.0
        self.n_components_ = r
        self.explained_variance_ = variances[order]
        # Both variances are rounding if all samples are equal.
        share = variances[order] * (weight - 1.0) / moments.total
        self.explained_variance_ratio_ = np.minimum(share, 1.0)
        self.score_correlation_ = correlation(moments.second(x))
        self.n_nonzero_ = int(np.count_nonzero(x))
        self.objective_ = 0.0 if result is None else result.objective
        self.n_iter_ = 1 if result is None else max(1, result.n_sweeps)
        fitting.end()
        return self

    def _advise(self, variances: FloatArray, r: int) -> None:
        """Warns of a fit that is hardly meant: all components, or features of different units."""
        if r == len(variances):
            warn(
                f"n_components={r} is the number of features: any orthonormal basis explains all "
                "of the variance, the sparsest one has single features"
            )
        squares = np.sort(variances[variances > 0.0])
        if self.scale or not len(squares):
            return
        if squares[-1] > UNITS * squares[(len(squares) - 1) // 4]:
            warn(
                f"variances of the features differ by more than a factor {UNITS:g}, as for several "
                "units, and the components follow the largest ones; scale=True divides features by "
                "their standard deviations"
            )

    def _signed(self, x: FloatArray) -> FloatArray:
        """Components with signs by which the largest loading of each is positive."""
        largest = x[np.argmax(np.abs(x), axis=0), np.arange(x.shape[1])]
        return x * np.where(largest < 0.0, -1.0, 1.0)

    def _threads(self) -> int | None:
        return threads_of(self)

    def _options(self, fitting: Fitting) -> dict[str, Any]:
        """Options of every solve of a fit."""
        limits = {} if self._work is None else {"max_work": self._work}
        return {**run_options(self, fitting), **limits}

    def _beside(self, whole: OrthonormalPCA, work: float) -> Self:
        """Prepares a fit to a subsample; returns this estimator.

        If the estimator searches, the search starts at the components of ``whole``, with the work
        limit ``work``. Otherwise the estimator stays unchanged.
        """
        self._quiet = True
        if self.solver is None or isinstance(self.solver, Auto):
            self.warm_start, self._work, self.solver = True, work, self.solver or Auto()
            self.components_ = whole.components_
        return self

    def _warm(self, n: int, r: int) -> FloatArray | None:
        """The components of the previous fit as a start; None if not wanted or of another shape."""
        if not self.warm_start or not hasattr(self, "components_"):
            return None
        return self.components_.T if self.components_.shape == (r, n) else None

    def _check(self, n: int, r: int) -> None:
        """Raises an error if a parameter is not valid for n features and r components."""
        raise NotImplementedError

    def _solve(self, fitting: Fitting, moments: Moments | SecondMoments, r: int) -> Result:
        """Finds r components of data with these moments."""
        raise NotImplementedError
