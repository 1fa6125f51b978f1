"""scikit-learn estimators with exactly orthonormal components.

`orthobcd.SparsePCA` and `orthobcd.NonnegativePCA` live here and are imported when first used;
they need the extra ``sklearn``.
"""

from __future__ import annotations

import dataclasses
import numbers
import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ._checks import FloatArray, as_float, check_size, check_sparse, is_sparse
from ._core import DATA
from ._moments import Moments, deviations, squares_about
from ._progress import live
from ._regularization import RegularizationPath, regularization_path
from ._solve import limited_work, minimize_at_count, solve
from .problems import (
    DENSE_COVARIANCE_LIMIT,
    L0,
    L1,
    NonnegativePCAProblem,
    SparsePCAProblem,
    StiefelProblem,
)
from .result import Result, Status
from .solvers import OBCD, Auto, Path

QUICK_STARTS = {
    "l0": ("splitting", "smoothed", "supports"),
    "l1": ("splitting", "smoothed"),
    "nonnegative": ("supports", "splitting"),
}
"""Starts of the default solver without a time limit: those of `Auto` that are quick and seldom far
from the best. With ``max_time`` it is all of `Auto`."""

QUICK_FEATURES = DENSE_COVARIANCE_LIMIT
"""Most features for them: "supports" needs the covariance, and the others take minutes beyond."""

QUICK_SWEEPS = {"max_sweeps": 1000}
"""Keeps `Auto` from perturbing its best point, which without a time limit takes most of the time
and lowers F by some 1e-3 of itself."""

WORK = 2.5e10
WORK_FEATURES = 1000
MOST_WORK = 1e11
"""Without a time limit: multiply-adds that a fit does at most (some 1e10 a second), with up to so
many features, in proportion with more, and whatever their number. Counted, so that the same fit
gives the same bits on every machine."""

COUNT_WORK = 3.0
"""How many times that work a fit with a wanted number of nonzeros is given: where most rows are
zero, pairs take a fifth of the time that is counted for them."""

WORK_STAGES = 12
"""Stages of a path with a wanted number of nonzeros that share its work."""

PATH_SHARE = 0.3
"""Share of ``max_time``, or of the work, for the regularisation path; the rest is for what starts
at it."""

STAGE_TOLERANCE = 1e-5
"""Tolerance of the stages of a path that only leads to a start."""

COUNT_SHARE = 0.85
"""Share of ``max_time`` that is spent when the exchanges towards a wanted number begin."""

COUNT_ROUNDS = 3
FREE_COUNT_ROUNDS = 2
"""Most penalties tried with `Auto` on the way to a wanted number of nonzeros, with a time limit and
without."""

COUNT_NEAR = 0.1
"""Relative distance from the wanted number of nonzeros at which no other penalty is tried."""


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


class _OrthonormalPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: centring, scaling, the fitted attributes, transforming."""

    # Set in the constructors of the subclasses.
    n_components: int | None
    center: bool
    scale: bool
    solver: Auto | Path | OBCD | None
    max_time: float | None
    tol: float
    random_state: Any
    n_jobs: int | None
    warm_start: bool
    verbose: bool

    def fit(self, X: Any, y: Any = None) -> Any:
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
        order = np.argsort(-variances, kind="stable")
        x = x[:, order]
        x = x * np.where(x[np.argmax(np.abs(x), axis=0), np.arange(r)] < 0.0, -1.0, 1.0)
        self.components_ = np.ascontiguousarray(x.T) + 0.0
        self.explained_variance_ = variances[order]
        self.explained_variance_ratio_ = variances[order] * (m - 1) / moments.total
        self.n_nonzero_ = int(np.count_nonzero(x))
        self.objective_ = 0.0 if self.result_ is None else self.result_.objective
        self.n_iter_ = 1 if self.result_ is None else max(1, self.result_.n_sweeps)
        return self

    def _count(self, m: int, n: int) -> int:
        if self.n_components is None:
            return min(m, n)
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
        limit = self.max_time
        return {
            "max_time": None if limit is None else as_float("max_time", limit, minimum=0.0),
            "tol": as_float("tol", self.tol, minimum=0.0),
            "seed": self._seed(),
            "n_threads": self._threads(),
            "verbose": bool(self.verbose),
        }

    def _default(self, n: int, kind: str) -> tuple[Auto | None, dict[str, Any]]:
        """The default solver and its limits; none where `Auto` would take too long."""
        if self.max_time is not None:
            return Auto(), {}
        if n <= QUICK_FEATURES:
            return Auto(strategies=QUICK_STARTS[kind]), QUICK_SWEEPS
        return None, {}

    def _work(self, n: int, share: float = 1.0) -> float | None:
        """A share of the work of a fit; with a time limit, that is the limit."""
        if self.max_time is not None:
            return None
        return share * min(WORK * max(n / WORK_FEATURES, 1.0), MOST_WORK)

    def _warm(self, n: int, r: int) -> FloatArray | None:
        if not self.warm_start or not hasattr(self, "components_"):
            return None
        return self.components_.T if self.components_.shape == (r, n) else None

    def _solve(self, moments: Moments, r: int) -> Result:
        raise NotImplementedError

    def transform(self, X: Any) -> FloatArray:
        """Coordinates of X in the components: ``(X − mean_) components_ᵀ``, scaled first if asked.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        return self._scores(self._data(X, reset=False))

    def inverse_transform(self, X: Any) -> FloatArray:
        """The point of the data space with the given coordinates.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_components)
            Coordinates.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
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

    def score(self, X: Any, y: Any = None) -> float:
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


class SparsePCA(_OrthonormalPCA):
    """Sparse PCA with exactly orthonormal components.

    Minimises ``−½‖AX‖_F² + h(X)`` over X with orthonormal columns, A the centred data. The
    components are the columns of X, ordered by explained variance.

    Parameters
    ----------
    n_components : int, optional
        Number of components; min(n_samples, n_features) by default.
    penalty : {"l0", "l1"}, default "l0"
        Price per nonzero entry, or per absolute value.
    alpha : float, default 0.1
        Weight of the penalty. With ``alpha_scale="relative"`` in units of ``alpha_max_``, from
        which on every component is a single feature, as no pair of features improves that; with
        "absolute" the λ of `orthobcd.L0`.
    alpha_scale : {"relative", "absolute"}, default "relative"
        Units of ``alpha``.
    n_nonzero : int, optional
        Instead of ``alpha``: the number of nonzero loadings in all components together. With "l0"
        it is met exactly: the regularisation path leads near it, then entries are dropped,
        added and exchanged (`orthobcd.minimize_at_count`). With "l1", or should no such point be
        found, the nearest number of the path is taken, with a warning.
    center : bool, default True
        Subtract the means. Sparse data stays sparse.
    scale : bool, default False
        Divide by the standard deviations.
    solver : orthobcd.Auto, orthobcd.Path or orthobcd.OBCD, optional
        What improves the end of the regularisation path. `OBCD` solves the path itself and nothing
        after it (fastest); `Auto` starts there and many times elsewhere, then perturbs the best
        point (best). By default all of `Auto` with ``max_time``; without, its quick starts up to
        4096 features, and exchanges of entries and pairs beyond.
    max_time : float, optional
        Seconds for a fit. Without, and without ``solver``, the work of a fit is counted and bounded
        (some seconds up to 1000 features, about ten from 4000 on), the same on every machine;
        ``result_.status`` is ``MAX_SWEEPS`` where that ended it.
    tol : float, default 1e-10
        Decrease of F, relative to its magnitude, that counts as none (`Status.CONVERGED`).
    random_state : int, RandomState or None, default None
        Seed of the order in which rows are visited.
    n_jobs : int, optional
        Threads; 1 by default, −1 for all cores. Without ``max_time`` the result does not
        depend on it.
    warm_start : bool, default False
        Start at the components of the previous fit instead of following the path.
    verbose : bool, default False
        Show a live line of progress, see `orthobcd.solve`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows; the largest loading of each is positive.
    mean_ : ndarray of shape (n_features,)
        Of the (scaled) data; zeros without centring.
    scale_ : ndarray of shape (n_features,) or None
        What features were divided by.
    explained_variance_ : ndarray of shape (n_components,)
        Variance of each coordinate. As the components are orthonormal, nothing is counted twice:
        the sum is the variance of the projection onto their span.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as shares of the total variance.
    n_nonzero_ : int
        Nonzero loadings.
    alpha_ : float
        The λ that was used, absolute.
    alpha_max_ : float
        See `orthobcd.alpha_max`.
    path_ : RegularizationPath or None
        The path that was followed, without its points; None after a warm start.
    objective_ : float
        ``−½‖AX‖² + h(X)`` at the components.
    result_ : Result
        Of the last solve; its columns are not ordered.
    n_iter_ : int
        Sweeps of the last solve.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, where the data has some.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from orthobcd import SparsePCA
    >>> X = load_digits().data
    >>> pca = SparsePCA(n_components=5, n_nonzero=40, random_state=0).fit(X)
    >>> pca.n_nonzero_
    40
    >>> bool(np.allclose(pca.components_ @ pca.components_.T, np.eye(5), atol=1e-12))
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        penalty: str = "l0",
        alpha: float = 0.1,
        alpha_scale: str = "relative",
        n_nonzero: int | None = None,
        center: bool = True,
        scale: bool = False,
        solver: Auto | Path | OBCD | None = None,
        max_time: float | None = None,
        tol: float = 1e-10,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.penalty = penalty
        self.alpha = alpha
        self.alpha_scale = alpha_scale
        self.n_nonzero = n_nonzero
        self.center = center
        self.scale = scale
        self.solver = solver
        self.max_time = max_time
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def _solve(self, moments: Moments, r: int) -> Result:
        if self.penalty not in ("l0", "l1"):
            raise ValueError(f"penalty must be 'l0' or 'l1', got {self.penalty!r}")
        if self.alpha_scale not in ("relative", "absolute"):
            raise ValueError(
                f"alpha_scale must be 'relative' or 'absolute', got {self.alpha_scale!r}"
            )
        if self.solver is not None and not isinstance(self.solver, (Auto, Path, OBCD)):
            raise TypeError(
                f"solver must be an Auto, Path or OBCD, got {type(self.solver).__name__}"
            )
        problem = SparsePCAProblem(moments.data, r, L0(0.0), center=moments.pending)
        self.path_: RegularizationPath | None = None
        self.alpha_max_ = moments.alpha_max(r, self.penalty)
        fit = _SparseFit(self, problem, self._warm(moments.data.shape[1], r))
        if self.n_nonzero is not None:
            self.alpha_, result = fit.at_count(self.n_nonzero)
            if result.n_nonzero != self.n_nonzero:
                warnings.warn(
                    f"n_nonzero={self.n_nonzero} was not met; {result.n_nonzero} is the nearest",
                    ConvergenceWarning,
                    stacklevel=3,
                )
            return result
        if not isinstance(self.alpha, numbers.Real) or not 0.0 <= self.alpha < np.inf:
            raise ValueError(f"alpha must be a nonnegative number, got {self.alpha!r}")
        unit = self.alpha_max_ if self.alpha_scale == "relative" else 1.0
        self.alpha_ = float(self.alpha) * unit
        return fit.at_penalty(self.alpha_)


class _SparseFit:
    """One fit of a `SparsePCA`: the path, the solve that starts at it, the wanted count."""

    def __init__(self, pca: SparsePCA, problem: SparsePCAProblem, warm: FloatArray | None) -> None:
        self.pca = pca
        self.problem = problem
        self.warm = warm
        self.options = pca._options()
        self.default = pca._default(problem.smooth.n_rows, pca.penalty)
        self.started = time.perf_counter()
        # The path is made of descents, whatever starts at its end.
        self.sweeps = pca.solver if isinstance(pca.solver, OBCD) else OBCD()

    def left(self, share: float = 1.0) -> float | None:
        """``share`` of the time limit, less what is spent."""
        limit = self.options["max_time"]
        if limit is None:
            return None
        return max(share * float(limit) - (time.perf_counter() - self.started), 0.0)

    def work(self, share: float) -> float | None:
        """``share`` of the work, unless a solver was chosen or there is a time limit."""
        if self.pca.solver is not None:
            return None
        more = 1.0 if self.pca.n_nonzero is None else COUNT_WORK
        return self.pca._work(self.problem.smooth.n_rows, more * share)

    def priced(self, alpha: float) -> StiefelProblem:
        """The problem at a penalty."""
        return self.problem.with_penalty(L0(alpha) if self.pca.penalty == "l0" else L1(alpha))

    def path(self, tol: float, **which: Any) -> RegularizationPath:
        """The path, by descents from the known optimum of a large penalty on."""
        share = 1.0 if isinstance(self.pca.solver, OBCD) else PATH_SHARE
        options = {**self.options, "max_time": self.left(share), "tol": tol}
        stages = len(which["alphas"]) if "alphas" in which else WORK_STAGES
        with limited_work(self.work(PATH_SHARE / stages)):
            path = regularization_path(
                self.problem.A,
                self.problem.n_components,
                self.pca.penalty,
                center=self.problem.center,
                solver=self.sweeps,
                **which,
                **options,
            )
        # Its points are dense, and many: a fitted estimator keeps what is read of them.
        self.pca.path_ = dataclasses.replace(path, results=())
        return path

    def solve(self, alpha: float, start: FloatArray | None, solver: Any, **more: Any) -> Result:
        """A solve at a penalty."""
        share = 1.0 if self.pca.n_nonzero is None else COUNT_SHARE
        options = {**self.options, "max_time": self.left(share), **more}
        with live(options["verbose"], None) as line:
            if line is not None:
                line.stage(type(solver).__name__)
            with limited_work(self.work(0.3)):
                return solve(self.priced(alpha), start, solver=solver, **options)

    def improved(self, alpha: float, point: Result) -> Result:
        """The solver of the estimator, from a point of the path."""
        solver = self.pca.solver
        start = None if isinstance(solver, Path) else point.x
        if isinstance(solver, OBCD) or alpha >= self.pca.alpha_max_:
            return point
        limits: dict[str, Any] = {}
        if solver is None:
            solver, limits = self.default
        if solver is not None:
            return self.solve(alpha, start, solver, **limits)
        if self.pca.penalty == "l1":
            return point
        # Exchanges at the same number of nonzeros, then pairs: what a large problem can afford.
        exchanged = self.exchanged(alpha, point.x, point.n_nonzero)
        if exchanged is None or exchanged.objective >= point.objective:
            return point
        return self.solve(alpha, exchanged.x, self.sweeps)

    def exchanged(self, alpha: float, x: FloatArray, count: int) -> Result | None:
        """A point with ``count`` nonzeros from one with about as many."""
        problem = self.problem.with_penalty(L0(alpha))
        with limited_work(self.work(0.1)):
            return minimize_at_count(
                problem,
                x,
                count,
                max_time=self.left(),
                tol=self.options["tol"],
                verbose=self.options["verbose"],
            )

    def at_penalty(self, alpha: float) -> Result:
        """The components for a penalty."""
        if self.warm is not None:
            return self.solve(alpha, self.warm, self.pca.solver or OBCD())
        loose = max(self.options["tol"], STAGE_TOLERANCE)
        path = self.path(loose, alphas=_approach(self.pca.alpha_max_, alpha))
        point = self.improved(alpha, path.results[-1]) if path.alphas[-1] == alpha else None
        if point is None or point is path.results[-1]:
            # Nothing but descents is wanted, or the time was up on the way.
            return self.solve(alpha, path.results[-1].x, self.sweeps)
        return point

    def around(self, alpha: float, point: Result, count: int) -> list[tuple[float, Result]]:
        """Penalties with good components that have about ``count`` nonzeros."""
        tried: list[tuple[float, Result]] = []
        most = COUNT_ROUNDS if self.left() is not None else FREE_COUNT_ROUNDS
        while len(tried) < most and self.left(COUNT_SHARE) != 0.0:
            point = self.improved(alpha, point)
            tried.append((alpha, point))
            ratio = point.n_nonzero / count
            if abs(ratio - 1.0) <= COUNT_NEAR or alpha == 0.0:
                break
            # On real data the number of nonzeros falls about like the square root of the penalty.
            alpha *= ratio**2
        return tried

    def at_count(self, count: int) -> tuple[float, Result]:
        """A penalty and components with ``count`` nonzeros, or the nearest number met."""
        if self.warm is not None and self.pca.penalty == "l0":
            result = self.exchanged(self.pca.alpha_, self.warm, count)
            if result is not None:
                return self.pca.alpha_, result
        path = self.path(self.options["tol"], n_nonzero=count)
        index = path.nearest(count)
        alpha, point = float(path.alphas[index]), path.results[index]
        if self.pca.penalty == "l1":
            return alpha, point
        solver = self.default[0] if self.pca.solver is None else self.pca.solver
        several = solver is not None and not isinstance(solver, OBCD)
        tried = self.around(alpha, point, count) if several else []
        met: list[tuple[float, Result]] = []
        # The point of the path is the last resort.
        for price, start in [*tried, (alpha, point)]:
            if start is point and met:
                break
            exact = self.exchanged(price, start.x, count)
            if exact is not None:
                met.append((price, exact))
        tried.append((alpha, point))
        if met:
            alpha, best = min(met, key=lambda pair: pair[1].smooth_value)
            return alpha, best
        return min(tried, key=lambda pair: (abs(pair[1].n_nonzero - count), pair[1].objective))


def _approach(top: float, alpha: float) -> FloatArray:
    """Penalties from ``top`` down to ``alpha``, geometric with a ratio of about 0.7."""
    if alpha >= top or top == 0.0:
        return np.array([alpha])
    last = max(alpha, 1e-4 * top)
    steps = int(np.ceil(np.log(last / top) / np.log(0.7)))
    path = np.geomspace(top, last, max(steps, 1) + 1)
    return path if last == alpha else np.append(path, alpha)


class NonnegativePCA(_OrthonormalPCA):
    """PCA with nonnegative, exactly orthonormal components: every feature belongs to one of them.

    Maximises the explained variance over X ≥ 0 with orthonormal columns. As the columns are
    nonnegative and orthogonal, their supports are disjoint.

    Parameters
    ----------
    n_components : int, optional
        Number of components; min(n_samples, n_features) by default.
    center : bool, default True
        Subtract the means. Sparse data stays sparse.
    scale : bool, default False
        Divide by the standard deviations.
    solver : orthobcd.Auto or orthobcd.OBCD, optional
        How to solve. By default all of `Auto` with ``max_time``; without, its quick starts up to
        4096 features, and `OBCD` from the spectral start beyond.
    max_time : float, optional
        Seconds for a fit. Without, and without ``solver``, the work of a fit is counted and bounded
        (some seconds up to 1000 features, about ten from 4000 on), the same on every machine;
        ``result_.status`` is ``MAX_SWEEPS`` where that ended it.
    tol : float, default 1e-10
        Decrease of F, relative to its magnitude, that counts as none (`Status.CONVERGED`).
    random_state : int, RandomState or None, default None
        Seed of the order in which rows are visited.
    n_jobs : int, optional
        Threads; 1 by default, −1 for all cores. Without ``max_time`` the result does not
        depend on it.
    warm_start : bool, default False
        Start at the components of the previous fit.
    verbose : bool, default False
        Show a live line of progress, see `orthobcd.solve`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal, nonnegative rows, ordered by explained variance.
    mean_, scale_, explained_variance_, explained_variance_ratio_, n_nonzero_, objective_, result_,
    n_iter_, n_features_in_, feature_names_in_
        As in `SparsePCA`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orthobcd import NonnegativePCA
    >>> pca = NonnegativePCA(n_components=5, random_state=0).fit(load_digits().data)
    >>> bool((pca.components_ >= 0.0).all())
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        center: bool = True,
        scale: bool = False,
        solver: Auto | OBCD | None = None,
        max_time: float | None = None,
        tol: float = 1e-10,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.center = center
        self.scale = scale
        self.solver = solver
        self.max_time = max_time
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def _solve(self, moments: Moments, r: int) -> Result:
        n = moments.data.shape[1]
        problem = NonnegativePCAProblem(moments.data, r, center=moments.pending)
        start = self._warm(n, r)
        solver = self.solver
        limits: dict[str, Any] = {}
        if solver is None:
            if start is None:
                solver, limits = self._default(n, "nonnegative")
            solver = solver or OBCD()
        x0: Any = start
        if start is None and isinstance(solver, OBCD):
            x0 = "spectral"
        work = None if self.solver is not None else self._work(n)
        with limited_work(work):
            return solve(problem, x0, solver=solver, **self._options(), **limits)
