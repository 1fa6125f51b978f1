"""scikit-learn estimators with exactly orthonormal components.

`orthobcd.SparsePCA` and `orthobcd.NonnegativePCA` live here and are imported when first used;
they need the extra ``sklearn``.
"""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ._checks import FloatArray
from ._regularization import Moments, RegularizationPath, regularization_path
from ._solve import solve
from .problems import NonnegativePCAProblem
from .result import Result, Status
from .solvers import OBCD


class _OrthonormalPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: centring, scaling, the fitted attributes, transforming."""

    # Set in the constructors of the subclasses.
    n_components: int | None
    center: bool
    scale: bool
    solver: OBCD | None
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
        data = validate_data(
            self, X, accept_sparse=("csr", "csc"), dtype=np.float64, ensure_min_samples=2
        )
        m, n = data.shape
        r = self._count(m, n)
        data = self._scaled(data)
        moments = Moments(data, bool(self.center))
        self.mean_ = moments.mean
        if n == 1:
            x: FloatArray = np.ones((1, 1))
            self.result_: Result | None = None
        else:
            self.result_ = self._solve(data, r)
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

    def _scaled(self, data: Any) -> Any:
        """Columns divided by their standard deviation, if asked; ``scale_`` remembers by what."""
        self.scale_: FloatArray | None = None
        if not self.scale:
            return data
        deviation = np.sqrt(Moments(data, True).variances / data.shape[0])
        # A constant column stays what it is.
        self.scale_ = np.where(deviation > 0.0, deviation, 1.0)
        if scipy.sparse.issparse(data):
            return data.multiply(1.0 / self.scale_).tocsr()
        return data / self.scale_

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _threads(self) -> int | None:
        if self.n_jobs is None:
            return 1
        return None if self.n_jobs < 0 else self.n_jobs

    def _warm(self, n: int, r: int) -> FloatArray | None:
        if not self.warm_start or not hasattr(self, "components_"):
            return None
        return self.components_.T if self.components_.shape == (r, n) else None

    def _solve(self, data: Any, r: int) -> Result:
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
        data = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=np.float64, reset=False)
        axes = self.components_.T
        if self.scale_ is not None:
            axes = axes / self.scale_[:, None]
        return np.asarray(data @ axes) - self.mean_ @ self.components_.T

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
        scores = self.transform(X)
        data = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=np.float64, reset=False)
        if self.scale_ is not None:
            data = (
                data.multiply(1.0 / self.scale_)
                if scipy.sparse.issparse(data)
                else data / self.scale_
            )
        squares = data.multiply(data) if scipy.sparse.issparse(data) else data * data
        sums = np.asarray(data.sum(axis=0)).ravel()
        total = float(squares.sum()) - 2.0 * float(sums @ self.mean_)
        total += data.shape[0] * float(self.mean_ @ self.mean_)
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
        which on every component is a single feature; with "absolute" the λ of `orthobcd.L0`.
    alpha_scale : {"relative", "absolute"}, default "relative"
        Units of ``alpha``.
    n_nonzero : int, optional
        Instead of ``alpha``: the number of nonzero loadings in all components together. The
        regularisation path is followed until it is met; where the path steps over it, the
        nearest number is taken, with a warning.
    center : bool, default True
        Subtract the means. Sparse data stays sparse.
    scale : bool, default False
        Divide by the standard deviations.
    solver : orthobcd.OBCD, optional
        How pairs are chosen and solved.
    max_time : float, optional
        Seconds for a fit.
    tol : float, default 1e-10
        Relative decrease of a sweep at which a solve has converged.
    random_state : int, RandomState or None, default None
        Seed of the order in which rows are visited.
    n_jobs : int, optional
        Threads; 1 by default, −1 for all cores. The result does not depend on it.
    warm_start : bool, default False
        Start at the components of the previous fit instead of following the path.
    verbose : bool, default False
        Log progress.

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
        The path that was followed; None after a warm start.
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
    >>> pca = SparsePCA(n_components=5, n_nonzero=40).fit(X)
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
        solver: OBCD | None = None,
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

    def _solve(self, data: Any, r: int) -> Result:
        from .problems import L0, L1, SparsePCAProblem

        if self.penalty not in ("l0", "l1"):
            raise ValueError(f"penalty must be 'l0' or 'l1', got {self.penalty!r}")
        if self.alpha_scale not in ("relative", "absolute"):
            raise ValueError(
                f"alpha_scale must be 'relative' or 'absolute', got {self.alpha_scale!r}"
            )
        center = bool(self.center)
        options: dict[str, Any] = {
            "solver": self.solver,
            "max_time": self.max_time,
            "tol": self.tol,
            "seed": self._seed(),
            "n_threads": self._threads(),
            "verbose": self.verbose,
        }
        self.path_: RegularizationPath | None = None
        if self.n_nonzero is not None:
            path = regularization_path(
                data, r, self.penalty, n_nonzero=self.n_nonzero, center=center, **options
            )
            index = path.nearest(self.n_nonzero)
            if path.n_nonzero[index] != self.n_nonzero:
                warnings.warn(
                    f"n_nonzero={self.n_nonzero} is not on the path; "
                    f"{path.n_nonzero[index]} is the nearest",
                    ConvergenceWarning,
                    stacklevel=3,
                )
            self.path_, self.alpha_max_ = path, path.alpha_max
            self.alpha_ = float(path.alphas[index])
            return path.results[index]
        top = Moments(data, center).alpha_max(r, self.penalty)
        if not isinstance(self.alpha, numbers.Real) or not 0.0 <= self.alpha < np.inf:
            raise ValueError(f"alpha must be a nonnegative number, got {self.alpha!r}")
        self.alpha_max_ = top
        self.alpha_ = float(self.alpha) * (top if self.alpha_scale == "relative" else 1.0)
        start = self._warm(data.shape[1], r)
        if start is not None:
            lam = L0(self.alpha_) if self.penalty == "l0" else L1(self.alpha_)
            options["solver"] = self.solver or OBCD()
            return solve(SparsePCAProblem(data, r, lam, center=center), start, **options)
        self.path_ = regularization_path(
            data, r, self.penalty, alphas=_approach(top, self.alpha_), center=center, **options
        )
        return self.path_.results[-1]


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
    solver : orthobcd.OBCD, optional
        How pairs are chosen and solved.
    max_time : float, optional
        Seconds for a fit.
    tol : float, default 1e-10
        Relative decrease of a sweep at which the solve has converged.
    random_state : int, RandomState or None, default None
        Seed of the order in which rows are visited.
    n_jobs : int, optional
        Threads; 1 by default, −1 for all cores. The result does not depend on it.
    warm_start : bool, default False
        Start at the components of the previous fit.
    verbose : bool, default False
        Log progress.

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
    >>> pca = NonnegativePCA(n_components=5).fit(load_digits().data)
    >>> bool((pca.components_ >= 0.0).all())
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        center: bool = True,
        scale: bool = False,
        solver: OBCD | None = None,
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

    def _solve(self, data: Any, r: int) -> Result:
        start = self._warm(data.shape[1], r)
        return solve(
            NonnegativePCAProblem(data, r, center=bool(self.center)),
            "spectral" if start is None else start,
            solver=self.solver or OBCD(),
            max_time=self.max_time,
            tol=self.tol,
            seed=self._seed(),
            n_threads=self._threads(),
            verbose=self.verbose,
        )
