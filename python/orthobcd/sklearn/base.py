"""Base classes of the estimators: fits to data of every kind, transforming, scoring, loadings."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core import DATA
from .._core import Moments as Sums
from .._internal.checks import (
    DataLike,
    FloatArray,
    IntArray,
    Integers,
    Interval,
    as_float,
    as_float_array,
    as_int,
    check_size,
    is_sparse,
    items_of,
    numbers_of,
    warn,
)
from .._internal.names import feature_names
from ..data import (
    DENSE_COVARIANCE_LIMIT,
    ROWS,
    Blocks,
    Gram,
    PrecisionName,
    add_rows,
    as_bytes,
    as_covariance,
    as_samples,
    as_weights,
    blocks_of,
    check_complete,
    check_magnitude,
    check_memory,
    checked_passes,
    coordinates,
    explained_squares,
    is_exact,
    is_lazy,
    is_sliced,
    is_wide,
    load_rows,
    namespace_of,
    on_device,
    sums_to_extend,
)
from ..objectives import Quadratic
from ..penalties import Cardinality
from ..problems import SparsePCAProblem, StiefelProblem
from ..result import Result, Status
from ..solvers import OBCD, Auto, Continuation
from ..solving import Solve, check_seeded, solve
from .dask import (
    Check,
    LazyOutput,
    Mapped,
    as_array,
    check_of,
    example_of,
    map_chunks,
    sum_chunks,
    totals,
)
from .loadings import Loadings
from .missing import Gaussian, gaussian_from, gaussian_of, gram_by_em
from .saving import Saved

if TYPE_CHECKING:
    from typing_extensions import Self

COMPONENTS = 10
"""Largest default number of components."""

UNITS = 100.0
"""Ratio of the largest variance to that which three quarters of the features exceed, above which
the features count as of different units."""

Features: TypeAlias = Collection[Any]
"""Features by index or name: for all components, or a sequence for each component."""


@dataclass(eq=False, repr=False)
class Estimator(
    LazyOutput,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    Saved,
):
    """Base class of all estimators: options of the solves, checks of data, tags."""

    # Parameters that need no data to be checked; the others are checked by `_check`.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "solver": [Auto, OBCD, None],
        "center": ["boolean"],
        "scale": ["boolean"],
        "uncorrelated": ["boolean"],
        "warm_start": ["boolean"],
        "verbose": ["boolean"],
        "certify": ["boolean"],
        "missing": [StrOptions({"em"}), None],
        "precision": [StrOptions(set(get_args(PrecisionName)))],
    }

    n_components: int | None = None
    _: KW_ONLY
    solver: Auto | Continuation | OBCD | None = None
    max_time: float | None = None
    max_work: float | None = None
    effort: float = 1.0
    tol: float = 1e-10
    random_state: Any = None
    n_jobs: int | None = None
    verbose: bool = False
    precision: PrecisionName = "auto"
    max_memory: float | str | None = None

    def _run(
        self, checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = 60.0
    ) -> Solve:
        """The context of a fit with valid parameters, whose time starts now."""
        self._validate_params()
        if checkpoint is not None:
            check_seeded(self.random_state)
        threads = 1 if self.n_jobs is None else as_int("n_jobs", self.n_jobs, -sys.maxsize)
        if threads == 0:
            raise ValueError("n_jobs must be positive, negative for all cores, or None; got 0")
        return Solve(
            max_time=self.max_time,
            max_work=self.max_work,
            effort=self.effort,
            tol=as_float("tol", self.tol, 0.0),
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            n_threads=threads if threads > 0 else None,
            verbose=self.verbose,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            ctrl_c="keep",
        )

    def _part(
        self, run: Solve, problem: Any, start: Any = None, solver: Any = None, **more: Any
    ) -> Result:
        """One of the solves of a fit."""
        run.show("Auto" if solver is None else type(solver).__name__)
        return solve(problem, start, solver=solver, **{**run.options(), **more})

    def _ended(self, run: Solve) -> Self:
        """Returns the fitted estimator; raises a `KeyboardInterrupt` if Ctrl-C ended a part."""
        solved = run.result is None or run.result.status is not Status.INTERRUPTED
        if run.interrupted or not solved:
            raise KeyboardInterrupt
        return self

    def _samples(self, X: Any, *, reset: bool = True, **options: Any) -> Any:
        """`as_samples`; sets, or with ``reset=False`` compares, the features of the fit."""
        data = as_samples(X, estimator=self, **options)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return data

    def _check_of(self, X: Any, *, reset: bool = False) -> Check:
        """The checks of the chunks of a Dask collection, whose features are those of the fit."""
        check = check_of(X, as_array(X))
        validate_data(self, example_of(X), reset=reset, skip_check_array=True)
        return check

    def _pieces(self, X: Any) -> Iterator[Any]:
        """Blocks of checked rows of X."""
        raise NotImplementedError

    def _mapped(self, X: Any, function: Any, width: int | None, *arguments: Any) -> NDArray[Any]:
        """``function`` of the rows of X, lazy for a Dask collection.

        The value has ``width`` columns, or one dimension of integers if ``width`` is None.
        """
        if is_lazy(X):
            lazy: NDArray[Any] = map_chunks(
                X, Mapped(function, arguments, self._check_of(X)), width
            )
            return lazy
        parts = [function(data, *arguments) for data in self._pieces(X)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class OrthonormalPCA(Estimator):
    """Base class of the PCA estimators: fits to data, blocks, weights and covariances."""

    n_nonzero: int | Sequence[int] | Integers | None = None
    include: Features | None = None
    exclude: Features | None = None
    center: bool = True
    scale: bool = False
    missing: Literal["em"] | None = None
    warm_start: bool = False
    # Limit on the nonzero loadings, which `_check` sets.
    _limit: Any = field(init=False, default=None)
    # Whether fits of many subsamples warn: the fit to all samples does.
    _quiet: bool = field(init=False, default=False)

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
            relation, a sequence of blocks, or a callable that returns an iterator over blocks and
            may have a ``shape``. Blocks are dense or sparse, all of one dtype. A Dask array or data
            frame, or an xarray array of a Dask array, is read by one graph.
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
        with self._run(checkpoint, checkpoint_every) as run:
            limit = as_bytes("max_memory", self.max_memory)
            blocks = blocks_of(X)
            if blocks is not None and not blocks.again:
                raise TypeError(
                    "X must not be an iterator, which can be read only once; use partial_fit, or "
                    "a callable that returns a new iterator"
                )
            if is_lazy(X) or (blocks is not None and not self._reads_whole(X)):
                sums = self._summed(run, X, blocks, None, sample_weight)
                if not sums.weight >= 2.0 and sample_weight is None:
                    raise ValueError(f"n_samples={sums.weight:g}: at least two samples are needed")
                if not sums.weight > 1.0:
                    raise ValueError(f"sample_weight must sum to more than 1; got {sums.weight:g}")
                return self._fit_sums(run, sums, sums.n_rows, keep=False)
            data = self._data(X if blocks is None else load_rows(X), ensure_min_samples=2)
            check_magnitude(data)
            if data.shape[1] <= DENSE_COVARIANCE_LIMIT and not is_wide(data):
                check_memory(limit, data.shape[1])
            weights = None if sample_weight is None else as_weights(sample_weight, data)
            r = self._checked(*data.shape)
            run.show("second moments")
            model: Gaussian | None = None
            if self.missing is not None and not is_sparse(data):
                values = data.astype(np.float64, copy=False)
                if np.isnan(values).any():
                    if weights is not None:
                        raise ValueError("sample_weight must be None for data with missing values")
                    if self.precision == "exact":
                        raise ValueError(
                            "precision must be 'auto' or 'fast' for data with missing values"
                        )
                    model, gram = gram_by_em(values, r, self.center, self.scale, run)
                    return self._fit_gram(run, gram, r, model=model)
                if weights is None:
                    model = gaussian_of(values, r, deadline=run)
            how = self.precision, self.center, self.scale
            gram = Gram.of(data, *how, weights, run.n_threads)
            return self._fit_gram(run, gram, r, model=model)

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
        watched: Any = checked_passes(blocks)
        return self.fit(watched, y, **fit_params).transform(watched)

    def _reads_whole(self, X: Any) -> bool:
        """True if a fit loads X although its rows can be sliced: wide data and missing values."""
        return is_sliced(X) and (is_wide(X) or self.missing is not None)

    def _fit_sums(self, run: Solve, sums: Sums, m: int, *, keep: bool) -> Self:
        r = self._checked(m, sums.n_features)
        gram = Gram.of_sums(sums, self.center, self.scale, run.n_threads, keep=keep)
        return self._fit_gram(run, gram, r, sums if keep else None)

    def _summed(
        self, run: Solve, X: Any, blocks: Blocks | None, before: Sums | None, weights: Any
    ) -> Sums:
        """Returns ``before`` with the samples of blocks or of a Dask collection added.

        Sets ``n_features_in_`` and ``feature_names_in_``.
        """
        run.show("second moments")
        if self.missing is not None and not (blocks is not None and blocks.whole):
            raise ValueError("missing must be None for data that is read by blocks")
        limit = as_bytes("max_memory", self.max_memory)
        if blocks is None:
            n, rows = int(as_array(X).shape[1]), 0 if before is None else before.n_rows
            self._checked(COMPONENTS if before is None else max(1, rows), n)
            self._check_of(X, reset=before is None)
            found, size = sum_chunks(X, self.precision, weights, limit, run.n_threads, rows)
            check_size("X", size, DATA)
            if before is None:
                return found
            sums = sums_to_extend(before, self.precision, found.n_rows, n)
            sums.merge(found, run.n_threads)
            return sums

        def check(k: int, block: Any) -> Any:
            data = self._data(block, reset=before is None and k == 0)
            check_complete(data, "partial_fit takes complete data")
            return data

        done, started = 0, before
        for data, own in blocks.weighted(check, weights):
            m, n = data.shape
            if done == 0:
                self._checked(blocks.rows or COMPONENTS, n)
                check_memory(limit, n)
                started = sums_to_extend(before, self.precision, blocks.rows or m, n)
            assert started is not None
            if blocks.rows is None and not is_exact(self.precision, started.n_rows + m, n):
                started.make_fast()
            add_rows(started, data, own, run.n_threads)
            done += m
            run.show_rows(done, blocks.rows)
        assert started is not None
        return started

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
        with self._run() as run:
            before = getattr(self, "_sums", None)
            blocks = blocks_of(X)
            if blocks is None and not is_lazy(X):
                blocks = Blocks(lambda: [X], None, whole=True)
            sums = self._summed(run, X, blocks, before, sample_weight)
            if update and sums.weight < 2.0:
                raise ValueError(f"n_samples={sums.weight:g}: at least two samples are needed")
            if update:
                return self._fit_sums(run, sums, max(1, int(sums.weight)), keep=True)
            self._sums: Sums | None = sums
            return self

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
        with self._run() as run:
            matrix = as_covariance(S)
            n = matrix.shape[0]
            weight = Interval(float, 1.0, closed="neither", optional=True)("n_samples", n_samples)
            weight = 2.0 if weight is None else weight
            middle = np.zeros(n) if mean is None else as_float_array("mean", mean, 1)
            if middle.shape != (n,):
                raise ValueError(f"mean must have shape ({n},), got {middle.shape}")
            validate_data(self, S, skip_check_array=True)
            r = self._checked(n, n)
            matrix *= weight - 1.0
            gram = Gram.of_covariance(matrix, middle, weight, self.center, self.scale)
            return self._fit_gram(run, gram, r)

    def _checked(self, m: int, n: int) -> int:
        """Checks all parameters; returns the number of components for m samples, n features."""
        r = default_components(m, n) if self.n_components is None else self.n_components
        r = as_int("n_components", r, 1, n)
        self._check(n, r)
        return r

    def _fit_gram(
        self,
        run: Solve,
        gram: Gram,
        r: int,
        sums: Sums | None = None,
        model: Gaussian | None = None,
    ) -> Self:
        """Fits r components to the Gram matrix of data.

        ``sums`` are kept for `partial_fit`. ``model`` completes missing values later; by default it
        is that of ``gram``. All fitted attributes are set after the search, so that an error
        leaves the old ones.
        """
        x: FloatArray = np.ones((1, 1))
        result: Result | None = None
        if gram.mean.shape[0] > 1:
            if not self._quiet:
                self._advise(gram.variances, r)
            run.show("solve")
            result = run.result = self._solve(run, gram, r)
            x = result.x
        if getattr(self, "uncorrelated", False):
            x = decorrelated(x, gram.second(x), self.n_nonzero)
        variances = np.maximum(np.diag(gram.second(x)), 0.0) / (gram.n_samples - 1.0)
        order = self._order(variances)
        x = self._signed(x[:, order])
        self._sums = sums
        if model is None and self.missing is not None:
            model = gaussian_from(gram, r)
        self._model = model
        self.precision_ = gram.precision
        self.mean_ = gram.mean
        self.scale_: FloatArray | None = gram.scale
        self.result_ = result
        self.components_ = np.ascontiguousarray(x.T) + 0.0
        self.n_components_ = r
        self.explained_variance_ = variances[order]
        # Both variances are rounding if all samples are equal.
        share = variances[order] * (gram.n_samples - 1.0) / gram.total
        self.explained_variance_ratio_ = np.minimum(share, 1.0)
        self.score_correlation_ = correlation(gram.second(x))
        self.n_nonzero_ = int(np.count_nonzero(x))
        self.objective_ = 0.0 if result is None else result.objective
        self.n_iter_ = 1 if result is None else max(1, result.n_sweeps)
        return self._ended(run)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "em"
        return tags

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

    def _order(self, variances: FloatArray) -> IntArray:
        """Order of the components: that of their limits; with equal ones by variance."""
        order = np.arange(len(variances))
        kinds = conditions(self, len(variances))
        for kind in dict.fromkeys(kinds):
            places = np.array([t for t in range(len(kinds)) if kinds[t] == kind])
            order[places] = places[np.argsort(-variances[places], kind="stable")]
        return order

    def _signed(self, x: FloatArray) -> FloatArray:
        """Components with signs by which the largest loading of each is positive."""
        largest = x[np.argmax(np.abs(x), axis=0), np.arange(x.shape[1])]
        return x * np.where(largest < 0.0, -1.0, 1.0)

    def _warm(self, n: int, r: int) -> FloatArray | None:
        """The components of the previous fit as a start; None if not wanted or of another shape."""
        if not self.warm_start or not hasattr(self, "components_"):
            return None
        return self.components_.T if self.components_.shape == (r, n) else None

    def _cardinality(self, n: int, r: int, *, nonnegative: bool = False) -> Cardinality:
        """The constraint of ``n_nonzero``, ``include`` and ``exclude``."""
        count = self.n_nonzero
        each = None if isinstance(count, Set) else items_of(count)
        several = each is not None
        least, most = (1, n) if several else (r, n * r)
        counts = [as_int("n_nonzero", one, least, most) for one in each or [count]]
        if several and len(counts) != r:
            raise ValueError(
                f"n_nonzero must be one number for each of {r} components, got {len(counts)}"
            )
        known = getattr(self, "feature_names_in_", None)
        names = None if known is None else [str(feature) for feature in known]
        return Cardinality(
            counts if several else counts[0],
            nonnegative=nonnegative,
            include=_features("include", self.include, names, n),
            exclude=_features("exclude", self.exclude, names, n),
        )

    def _check(self, n: int, r: int) -> None:
        """Raises an error if a parameter is not valid for n features and r components."""
        raise NotImplementedError

    def _solve(self, run: Solve, gram: Gram, r: int) -> Result:
        """Finds r components of data with this Gram matrix."""
        raise NotImplementedError

    def _data(self, X: Any, **options: Any) -> Any:
        """X after the checks of every door for data."""
        data = self._samples(X, **options)
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
                "X must have no missing value (NaN) after a fit with missing=None, which has no "
                "model of them; fit again with missing='em'"
            )
        return self._model.completed(data)

    def _pieces(self, X: Any) -> Iterator[Any]:
        """Blocks of rows of X, each checked and completed by `_complete`."""
        check_is_fitted(self)
        blocks = blocks_of(X)
        if blocks is not None:
            yield from blocks.checked(lambda _, block: self._complete(block))
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
        fitted, xp = (self.components_.T, self.mean_, self.scale_), namespace_of(X)
        if xp is not None:
            return coordinates(*on_device(xp, X, *fitted))
        return self._mapped(X, coordinates, len(self.components_), *fitted)

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
        return Loadings(
            components=self.components_,
            features=tuple(
                feature_names(getattr(self, "feature_names_in_", None), self.n_features_in_)
            ),
            explained_variance=self.explained_variance_,
            explained_variance_ratio=self.explained_variance_ratio_,
            score_correlation=self.score_correlation_,
        )

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
            lazy: FloatArray = map_chunks(X, Mapped(points, fitted, None), width)
            return lazy
        blocks = blocks_of(X)
        if blocks is None:
            return points(X, *fitted)
        return np.concatenate(list(blocks.checked(lambda _, block: points(block, *fitted))))

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
            squares = totals(X, Mapped(explained_squares, fitted, self._check_of(X)))
        elif xp is not None:
            squares = [explained_squares(*on_device(xp, X, *fitted), xp=xp)]
        else:
            squares = [explained_squares(data, *fitted) for data in self._pieces(X)]
        explained, total = np.sum(squares, axis=0)
        return float(explained / max(total, np.finfo(np.float64).tiny))


def model_of_gaps(pca: object) -> Gaussian | None:
    """The model of missing values of a fit; None without one, and for other estimators."""
    return pca._model if isinstance(pca, OrthonormalPCA) else None


def default_components(m: int, n: int) -> int:
    """Default number of components for m samples and n features: at most half of the features."""
    return min(COMPONENTS, m, max(1, n // 2))


def problem_of(gram: Gram, r: int, penalty: Any) -> Any:
    """The problem ``min −½‖AX‖² + h(X)`` for data A."""
    if gram.negative is not None:
        return StiefelProblem(Quadratic(gram.negative), penalty, r)
    return SparsePCAProblem(gram.data, r, penalty, center=gram.pending)


def points(
    data: ArrayLike, components: FloatArray, mean: FloatArray, scale: FloatArray | None
) -> FloatArray:
    """Points of the data space with the coordinates ``data``."""
    given = np.asarray(numbers_of(data), dtype=np.float64)
    r = components.shape[0]
    if given.ndim != 2 or given.shape[1] != r:
        raise ValueError(f"X must have shape (n_samples, {r}), got {given.shape}")
    out = given @ components + mean
    return np.asarray(out if scale is None else out * scale)


def correlation(second: FloatArray) -> FloatArray:
    """Correlations from second moments; those of a constant coordinate with others are 0."""
    # Rounding can make the variance of a component that has none negative.
    deviation = np.sqrt(np.maximum(np.diag(second), 0.0))
    deviation = np.where(deviation > 0.0, deviation, 1.0)
    out = second / np.outer(deviation, deviation)
    np.fill_diagonal(out, 1.0)
    return np.asarray(np.clip(out, -1.0, 1.0))


def decorrelated(x: FloatArray, second: FloatArray, n_nonzero: Any) -> FloatArray:
    """Rotates groups of columns of x that share rows, so that ``second`` is diagonal on a group.

    A group is rotated only if the number of nonzeros stays within its present value, or, if given,
    within ``n_nonzero``: in all (an integer) or per column (a sequence).
    """

    def allowed(trial: FloatArray) -> bool:
        counts = np.count_nonzero(trial, axis=0)
        if n_nonzero is None:
            return bool(counts.sum() <= np.count_nonzero(x))
        if np.ndim(n_nonzero) == 0:
            return bool(counts.sum() <= n_nonzero)
        return bool((counts <= np.asarray(n_nonzero)).all())

    shared = (x != 0.0).astype(np.int64)
    linked = np.linalg.matrix_power(shared.T @ shared > 0, x.shape[1])
    for columns in np.unique(linked, axis=0):
        group = np.flatnonzero(columns)
        _, vectors = np.linalg.eigh(second[np.ix_(group, group)])
        trial = x.copy()
        trial[:, group] = x[:, group] @ vectors
        if len(group) > 1 and allowed(trial):
            x = trial
    return x


def prepare_subsample_fit(
    pca: OrthonormalPCA, whole: OrthonormalPCA, work: float
) -> OrthonormalPCA:
    """Prepares a fit to a subsample; returns the estimator.

    If the estimator searches, the search starts at the components of ``whole``, with the work
    limit ``work``. Otherwise the estimator stays unchanged.
    """
    pca._quiet = True
    if pca.solver is None or isinstance(pca.solver, Auto):
        pca.warm_start, pca.solver = True, pca.solver or Auto()
        pca.max_work = work if pca.max_work is None else min(work, pca.max_work)
        pca.components_ = whole.components_
    return pca


def _index(name: str, feature: Any, names: list[str] | None, n: int) -> int:
    """The index of a feature that is given by index or name."""
    if isinstance(feature, str):
        if names is None or feature not in names:
            raise ValueError(f"{name} must hold features of the data, got {feature!r}")
        if (count := names.count(feature)) > 1:
            raise ValueError(f"{name} must hold indices where {count} features are {feature!r}")
        return names.index(feature)
    return as_int(name, feature, 0, n - 1)


def _features(name: str, value: Any, names: list[str] | None, n: int) -> list[Any] | None:
    """Indices of features, for all components or a list for each component."""
    if value is None:
        return None
    items = items_of(value)
    if items is None:
        raise TypeError(
            f"{name} must be a sequence of features, or one per component, got {value!r}"
        )
    each = [items_of(one) for one in items]
    if all(one is None for one in each):
        return [_index(name, feature, names, n) for feature in items]
    if isinstance(value, Set):
        raise TypeError(f"{name} must have an order of the components, got {value!r}")
    return [
        [_index(name, feature, names, n) for feature in ([one] if features is None else features)]
        for one, features in zip(items, each, strict=True)
    ]


def conditions(pca: OrthonormalPCA, r: int) -> list[tuple[Any, ...]]:
    """Limit, included and excluded features of each of r components, as comparable tuples."""
    limit = pca._limit
    if not isinstance(limit, Cardinality):
        return [()] * r

    counts = limit.count if isinstance(limit.count, tuple) else (limit.count,) * r
    chosen = [
        rows if rows and isinstance(rows[0], tuple) else (rows,) * r
        for rows in (limit.include, limit.exclude)
    ]
    return [(count, *map(frozenset, rows)) for count, *rows in zip(counts, *chosen, strict=True)]
