"""Sparse PCA."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

from sklearn.exceptions import ConvergenceWarning

from .._internal.checks import FloatArray, as_bool, as_choice, as_int, as_optional_float
from .._internal.moments import Moments, SecondMoments
from ..certificate import certify
from ..penalties import Cardinality, RowSparse
from ..regularization import PenaltyName, RegularizationPath, largest_lam, penalty_of
from ..result import Result, Status
from ..solvers import OBCD, Auto, Continuation
from .base import OrthonormalPCA
from .budget import Features, budget_of, in_order
from .fitting import Fitting
from .preparation import PrecisionName, problem_of
from .sparse_fit import SparseFit

AlphaScale = Literal["relative", "absolute"]

ALPHA = 0.1
"""Weight of the penalty, unless told otherwise."""


class SparsePCA(OrthonormalPCA):
    """Sparse PCA with exactly orthonormal components.

    Minimises ``−½‖AX‖_F² + h(X)`` over X with orthonormal columns, A the centred data. The
    components are the columns of X, ordered by explained variance.

    Parameters
    ----------
    n_components : int, optional
        Number of components; min(10, n_samples, n_features) by default.
    penalty : {"l0", "l1"}, default "l0"
        Price per nonzero entry, or per absolute value.
    alpha : float, optional
        Weight of the penalty, 0.1 by default. With ``alpha_scale="relative"`` in units of
        ``alpha_max_``, from which on every component is a single feature, as no pair of features
        improves that; with "absolute" the λ of `orthobcd.L0`. None with ``n_nonzero`` or
        ``n_features``, which stand instead of a weight.
    alpha_scale : {"relative", "absolute"}, default "relative"
        Units of ``alpha``.
    n_nonzero : int or sequence of int, optional
        Instead of ``alpha``: the most nonzero loadings, in all components together or of each. With
        "l0" a search of its own finds them (`orthobcd.Cardinality`); there are fewer only where
        another brings nothing. A sequence is in the order of the components: the t-th component has
        the t-th budget, and components of the same budget (and the same ``include`` and
        ``exclude``) are ordered by explained variance among themselves. With "l1" the nearest
        number of the regularisation path is taken, with a warning if it is not met.
    include : sequence of int or str, or a sequence of sequences, optional
        With ``n_nonzero`` and "l0": features, by index or name, that belong to the support of every
        component; a sequence per component gives each its own. An included feature counts as one
        of the nonzero loadings, also if its best loading is zero.
    exclude : sequence of int or str, or a sequence of sequences, optional
        With ``n_nonzero`` and "l0": features, by index or name, whose loadings are zero in all
        components; a sequence per component gives each its own.
    n_features : int, optional
        Instead of ``alpha`` and ``n_nonzero``: the most features that any component uses, at least
        ``n_components``. The components are the principal components of the chosen features
        (`orthobcd.RowSparse`).
    center : bool, default True
        Subtract the means. Sparse data stays sparse.
    scale : bool, default False
        Divide by the standard deviations.
    uncorrelated : bool, default False
        Turn components that share features among each other so that their coordinates are
        uncorrelated, where that keeps the number of loadings, or what ``n_nonzero`` allows. It
        changes neither the span nor the variance that is explained. Elsewhere components stay
        correlated (``score_correlation_``), as any rotation would cost loadings. Not for "l1".
    missing : {"em"}, optional
        Missing values (NaN, dense data) are refused by default. With "em" the means and second
        moments are those of the EM algorithm of probabilistic PCA with ``n_components`` factors
        (Tipping and Bishop 1999), features in units of their deviations; `transform` completes
        what is missing by its mean given the other entries of its row.
    solver : orthobcd.Auto, orthobcd.Continuation or orthobcd.OBCD, optional
        How to solve; `Auto` by default. `OBCD` solves along the regularisation path, from which
        `Continuation` starts too.
    max_time : float, optional
        Seconds for a fit, from its call on: what the second moments leave is for the search.
        Without, the work of a fit is counted and bounded (a second or two up to
        1000 features, about ten from 4000 on), the same on every machine; ``result_.status`` is
        ``MAX_WORK`` where that ended it.
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
    certify : bool, default False
        Bound the optimum from below after the fit, see `orthobcd.certify`: ``gap_``. It may take as
        long again as ``max_time``.
    precision : {"auto", "fast", "exact"}, default "auto"
        How the second moments of up to 4096 features are formed. "exact": without rounding before
        the last bit, so that neither the order of the samples nor whether they come in parts or
        with weights matters; it takes about 25 times as long. "fast": by products in double
        precision of data less its means. "auto" is "exact" for n_samples · n_features ·
        (n_features + 64) ≤ 2e8, which takes up to a quarter of a second. Whichever it is, equal
        numbers of another type (float32, integers) give the same fit. More features, sparse data
        and n_features ≥ 8 n_samples are fitted from the data, "fast", if it is in memory.
    max_memory : float or str, optional
        Most bytes, or a text such as "2GB", that the second moments and the copy of them in the
        search may take, 16 n_features² bytes; a fit that needs more is refused before it begins.

    Raises
    ------
    ValueError, TypeError
        By `fit`, if a parameter is not valid; the message names it.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows, by explained variance or in the order of their budgets; the largest
        loading of each is positive.
    mean_ : ndarray of shape (n_features,)
        Of the (scaled) data; zeros without centring.
    scale_ : ndarray of shape (n_features,) or None
        What features were divided by.
    explained_variance_ : ndarray of shape (n_components,)
        Variance of each coordinate. As the components are orthonormal, nothing is counted twice:
        the sum is the variance of the projection onto their span.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as shares of the total variance.
    score_correlation_ : ndarray of shape (n_components, n_components)
        Correlations of the coordinates: orthogonal components need not be uncorrelated.
    n_nonzero_ : int
        Nonzero loadings.
    alpha_ : float or None
        The λ that was used, absolute; None where loadings or features were counted.
    alpha_max_ : float
        Of the data; see `orthobcd.lam_max`.
    path_ : RegularizationPath or None
        The path that was followed, without its points: with "l1" and ``n_nonzero``, and with a
        ``solver`` other than `Auto`; else None.
    objective_ : float
        ``−½‖AX‖² + h(X)`` at the components.
    result_ : Result
        Of the last solve; its columns are not ordered.
    gap_ : float or None
        With ``certify``, what share of the objective an optimum can still gain at most: among all
        components with as many nonzeros if ``n_nonzero`` was met with "l0", else of the penalised
        objective; None without.
    n_iter_ : int
        Sweeps of the last solve.
    precision_ : {"fast", "exact"}
        How the second moments were formed; "exact" after `fit_covariance`, which takes them as
        they are.
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
        penalty: PenaltyName = "l0",
        alpha: float | None = None,
        alpha_scale: AlphaScale = "relative",
        n_nonzero: int | Sequence[int] | None = None,
        include: Features | None = None,
        exclude: Features | None = None,
        n_features: int | None = None,
        center: bool = True,
        scale: bool = False,
        uncorrelated: bool = False,
        missing: Literal["em"] | None = None,
        solver: Auto | Continuation | OBCD | None = None,
        max_time: float | None = None,
        tol: float = 1e-10,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: bool = False,
        certify: bool = False,
        precision: PrecisionName = "auto",
        max_memory: float | str | None = None,
    ) -> None:
        self.n_components = n_components
        self.penalty = penalty
        self.alpha = alpha
        self.alpha_scale = alpha_scale
        self.n_nonzero = n_nonzero
        self.include = include
        self.exclude = exclude
        self.n_features = n_features
        self.center = center
        self.scale = scale
        self.uncorrelated = uncorrelated
        self.missing = missing
        self.solver = solver
        self.max_time = max_time
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.certify = certify
        self.precision = precision
        self.max_memory = max_memory

    def _order(self, variances: FloatArray) -> Any:
        budget: Cardinality | RowSparse | None = getattr(self, "_budget", None)
        if isinstance(budget, Cardinality):
            return in_order(budget, variances)
        return super()._order(variances)

    def _check(self, n: int, r: int) -> None:
        as_choice("penalty", self.penalty, ("l0", "l1"))
        as_choice("alpha_scale", self.alpha_scale, ("relative", "absolute"))
        if self.uncorrelated and self.penalty == "l1":
            raise ValueError("uncorrelated must be False for the penalty 'l1', which depends on it")
        if self.uncorrelated and not (self.include is None and self.exclude is None):
            raise ValueError("uncorrelated must be False with include or exclude")
        if self.solver is not None and not isinstance(self.solver, (Auto, Continuation, OBCD)):
            raise TypeError(
                f"solver must be an Auto, Continuation or OBCD, got {type(self.solver).__name__}"
            )
        as_optional_float("alpha", self.alpha, minimum=0.0)
        for name in ("n_nonzero", "n_features"):
            if self.alpha is not None and (count := getattr(self, name)) is not None:
                raise ValueError(
                    f"alpha must be None with {name}, got alpha={self.alpha!r} and {name}={count!r}"
                )
        if as_bool("certify", self.certify) and self.n_features is not None:
            raise ValueError("certify must be False with n_features")
        self._budget = self._counted(n, r)
        if self._budget is None and self.n_nonzero is not None:
            count = as_int("n_nonzero", self.n_nonzero, r)
            if count > n * r:
                raise ValueError(f"n_nonzero must be at most {n * r}, got {count}")

    def _counted(self, n: int, r: int) -> Cardinality | RowSparse | None:
        """What is counted instead of priced."""
        counts = self.penalty == "l0" and self.n_nonzero is not None
        for name in ("include", "exclude"):
            if not counts and getattr(self, name) is not None:
                raise ValueError(f"{name} needs n_nonzero and penalty='l0'")
        if self.n_features is None:
            return budget_of(self, n, r) if counts else None
        if self.n_nonzero is not None or self.penalty != "l0":
            raise ValueError("n_features needs n_nonzero=None and penalty='l0'")
        count = as_int("n_features", self.n_features, r)
        if count > n:
            raise ValueError(f"n_features must be at most {n}, got {count}")
        return RowSparse(count=count)

    def _nearest(self, fit: SparseFit, count: int) -> tuple[float, Result]:
        """The point of the path whose number of nonzeros is nearest, and its penalty."""
        alpha, result = fit.nearest(count)
        if result.n_nonzero != count and result.status is not Status.INTERRUPTED:
            warnings.warn(
                f"n_nonzero={count} was not met; {result.n_nonzero} is the nearest",
                ConvergenceWarning,
                stacklevel=5,
            )
        return alpha, result

    def _gap(self, fitting: Fitting, problem: Any, result: Result) -> Result:
        """The same result, its gap noted if that is wanted."""
        self.gap_: float | None = None
        if not self.certify or result.status is Status.INTERRUPTED:
            return result
        counted = isinstance(self._budget, Cardinality)
        penalty = self._budget if counted else penalty_of(self.penalty, self.alpha_ or 0.0)
        try:
            certificate = certify(
                problem.with_penalty(penalty),
                result.x,
                bound=True,
                max_time=self.max_time,
                n_threads=self._threads(),
            )
        except KeyboardInterrupt:
            fitting.interrupted = True
            return result
        self.gap_ = certificate.gap
        fitting.interrupted = certificate.bound is not None and certificate.bound.interrupted
        return result

    def _solve(self, fitting: Fitting, moments: Moments | SecondMoments, r: int) -> Result:
        n = len(moments.mean)
        problem = problem_of(moments, r, penalty_of(self.penalty, 1.0))
        self.path_: RegularizationPath | None = None
        self.alpha_max_ = largest_lam(problem, self._threads())
        fit = SparseFit(self, fitting, problem, self._warm(n, r))
        self.alpha_: float | None = None
        if self._budget is not None:
            fitting.result = fit.at_count(self._budget)
        elif self.n_nonzero is not None:
            self.alpha_, fitting.result = self._nearest(fit, int(self.n_nonzero))
        else:
            unit = self.alpha_max_ if self.alpha_scale == "relative" else 1.0
            self.alpha_ = (ALPHA if self.alpha is None else float(self.alpha)) * unit
            fitting.result = fit.at_penalty(self.alpha_)
        return self._gap(fitting, problem, fitting.result)
