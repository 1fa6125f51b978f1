"""The estimator `SparsePCA`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from .._core import penalty_value
from .._internal.checks import (
    FloatArray,
    IntArray,
    Interval,
    as_int,
    warn,
)
from ..certificate import certify
from ..data import Gram
from ..penalties import (
    L1,
    Cardinality,
    Penalty,
    PenaltyName,
    RowSparse,
    Separable,
    Sum,
    penalty_of,
)
from ..problems import SparsePCAProblem, StiefelProblem, largest_lam
from ..regularization import RegularizationPath, path_of
from ..result import PathPoint, Result, Status
from ..solvers import DESCENT, OBCD, RATIO, SEARCH, STAGE_TOLERANCE, Auto, Continuation
from ..solving import Solve, check_bounded, value
from .base import OrthonormalPCA, problem_of

AlphaScale = Literal["relative", "absolute"]

ALPHA = 0.1
"""Default weight of the penalty, in units of ``alpha_max_`` or absolute."""

SUPPORT_WORK = 0.2
"""Work units of the search for the support of a number of nonzeros over which the ℓ1 path jumps."""

WEIGHTS = 40
"""Penalty weights tried on a support, each `RATIO` times the one before: down to 1e-9 times."""

BARRIER = 1e6
"""Penalty weight of entries outside of the support, in units of ``alpha_max_``."""

Covariance: TypeAlias = SparsePCAProblem | StiefelProblem
"""The problem of a fit, whose penalty is replaced by that of a solve."""

Point: TypeAlias = PathPoint | Result


@dataclass(eq=False, repr=False, kw_only=True)
class SparsePCA(OrthonormalPCA):
    """Sparse PCA with exactly orthonormal components.

    Minimises ``−½‖AX‖_F² + h(X)`` over X with orthonormal columns, A the centred data. The
    components are the columns of X, ordered by explained variance.

    Parameters
    ----------
    n_components : int, optional
        Number of components. By default at most 10, at most n_samples and at most half of the
        features. As many components as features explain all of the variance with any basis, of
        which a fit warns.
    penalty : {"l0", "l1"} or a penalty object, default "l0"
        Penalty on the number of nonzero loadings, or on their absolute values, with the weight
        ``alpha``; or any penalty of `orthobcd` with weights of its own, in the units of
        ``−½‖AX‖_F² + h(X)``, such as ``orthobcd.MCP(10.0, gamma=2.0)``. Components with an array of
        weights keep the order of its columns.
    alpha : float, optional
        Weight of the penalty, 0.1 by default. With ``alpha_scale="relative"`` in units of
        ``alpha_max_``; from ``alpha_max_`` on every component is a single feature, because no pair
        of features lowers the objective. With "absolute" the λ of `orthobcd.L0` or `orthobcd.L1`.
        None with ``n_nonzero``, ``n_features`` or a penalty object, which replace the weight.
    alpha_scale : {"relative", "absolute"}, default "relative"
        Units of ``alpha``.
    n_nonzero : int or sequence of int, optional
        Instead of ``alpha``: largest number of nonzero loadings, in all components together or per
        component. With "l0" a search under this constraint finds them (`orthobcd.Cardinality`);
        there are fewer only where one more has no gain. A sequence is in the order of the
        components: entry t limits component t. Components with the same limit, ``include`` and
        ``exclude`` are ordered by explained variance among themselves. With "l1" the result is the
        point of the regularisation path with the most nonzeros among those with at most this
        number. The path is refined until a point meets the number. If the path jumps over it, the
        nonzero loadings are those of the best components with this number, and "l1" shrinks them.
    include : sequence of int or str, or a sequence of sequences, optional
        With ``n_nonzero`` and "l0": features, by index or name, in the support of every component,
        or a sequence of features for each component. An included feature counts towards
        ``n_nonzero``, even if its best loading is zero.
    exclude : sequence of int or str, or a sequence of sequences, optional
        With ``n_nonzero`` and "l0": features, by index or name, whose loadings are zero in all
        components, or a sequence of features for each component.
    n_features : int, optional
        Instead of ``alpha`` and ``n_nonzero``: largest number of features used by all components
        together, at least ``n_components``. The components are the principal components of the
        selected features (`orthobcd.RowSparse`).
    center : bool, default True
        Subtract the means. Sparse data stays sparse.
    scale : bool, default False
        Divide by the standard deviations. Features of different units need it: without it a fit
        warns if the largest variance is above 100 times that which three quarters of the features
        exceed.
    uncorrelated : bool, default False
        Rotate components that share features so that their coordinates are uncorrelated, where the
        rotation keeps the number of nonzero loadings or stays within ``n_nonzero``. The span and
        the explained variance do not change. Other components stay correlated
        (``score_correlation_``), because a rotation would add loadings. Only for "l0".
    missing : {"em"}, optional
        By default missing values (NaN, masked entries, None, NA) are an error. With "em" (dense
        data only) the EM algorithm of probabilistic PCA with ``n_components`` factors (Tipping and
        Bishop 1999) gives the means and second moments, from features divided by their standard
        deviations; it ends with ``max_time``. `transform` and `score` replace a missing value by
        its mean given the other entries of its row, also after a fit to complete data.
    solver : orthobcd.Auto, orthobcd.Continuation or orthobcd.OBCD, optional
        The solver for a penalty weight; `Auto` by default. `OBCD` solves along the regularisation
        path, and `Continuation` starts from this path too. Limits on loadings or features are
        searched by `Auto` alone.
    max_time : float, optional
        Time limit of a fit in seconds, from its call on; the search gets the time that the second
        moments leave. A fit that ends by itself ends earlier, as without a limit: after counted
        work, which takes from a tenth of a second to about 10 seconds, in one case 15, or up to 101
        for a million features (the manual has a table by size). If this bound ended the fit,
        ``result_.status`` is ``MAX_WORK``.
    max_work : float, optional
        Largest counted work of each search of a fit; a unit is about a second of one core. Unlike
        ``max_time`` it ends a search at the same point on every machine, see `orthobcd.solve`.
    effort : float, default 1
        Patience of the search: multiple of the work after which the search ends by itself, see
        `orthobcd.solve`. ``math.inf`` uses all of ``max_time``.
    tol : float, default 1e-10
        Largest decrease of F, relative to its magnitude, that counts as none (`Status.CONVERGED`).
    random_state : int, RandomState or None, default None
        Seed of all random choices of the solver.
    n_jobs : int, optional
        Threads; 1 by default, −1 for all cores. Unless ``max_time`` ends the fit, the result does
        not depend on ``n_jobs``.
    warm_start : bool, default False
        Start at the components of the previous fit. For a penalty weight without ``solver`` `OBCD`
        then replaces the search of `Auto`. Ignored with "l1" and ``n_nonzero``.
    verbose : bool, default False
        Show a live line of progress, see `orthobcd.solve`.
    certify : bool, default False
        Bound the optimum from below after the fit and set ``gap_``, see `orthobcd.certify`. The
        bound can take ``max_time`` once more.
    precision : {"auto", "fast", "exact"}, default "auto"
        How the second moments of up to 4096 features are formed. "exact": every sum is rounded
        once; takes two to five times as long as "fast". Unless means are above 3,000 deviations,
        the order of the samples, blocks, and integer weights instead of repeated samples do not
        change the result of "exact". "fast": by products of centred data in double precision.
        "auto": "exact" for n_samples · n_features · (n_features + 200) ≤ 4e9, which takes up to a
        quarter of a second, else "fast". In every case equal numbers of another type (float32,
        integers) give the same fit. Data in memory is used without forming second moments, "fast",
        if it has more than 4096 features, if n_features ≥ 8 n_samples and "exact" is not given, or
        if it is sparse without weights and "fast".
    max_memory : float or str, optional
        Largest number of bytes, or a text such as "2GB", for the second moments and their copy in
        the search: 16 n_features² bytes. A fit that needs more raises an error before it begins.

    Raises
    ------
    ValueError, TypeError
        By `fit`, if a parameter is not valid; the message names it.

    Warns
    -----
    UserWarning
        By `fit`, for as many components as features, and for features of different units without
        ``scale``.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows, by explained variance or in the order of ``n_nonzero``; the largest
        loading of each is positive.
    mean_ : ndarray of shape (n_features,)
        Means of the (scaled) data; zeros without centring.
    scale_ : ndarray of shape (n_features,) or None
        Standard deviations by which features were divided; None without scaling.
    explained_variance_ : ndarray of shape (n_components,)
        Variance of each coordinate. As the components are orthonormal, the sum is the variance of
        the projection onto their span.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        ``explained_variance_`` over the total variance.
    score_correlation_ : ndarray of shape (n_components, n_components)
        Correlations of the coordinates: orthogonal components can be correlated.
    n_components_ : int
        Number of components.
    n_nonzero_ : int
        Number of nonzero loadings.
    alpha_ : float or None
        The λ of the fit, absolute; None with ``n_features``, a penalty object, and with
        ``n_nonzero`` and "l0".
    alpha_max_ : float or None
        `orthobcd.lam_max` of the data; None with a separable penalty object.
    path_ : RegularizationPath or None
        Penalty weights, nonzeros and objectives along the path of the fit, without its points. Only
        with "l1" and ``n_nonzero``, or with a weight and a ``solver`` other than `Auto`; else None.
    objective_ : float
        ``−½‖AX‖² + h(X)`` at the components.
    result_ : Result
        Result of the last solve; its columns are not ordered.
    gap_ : float or None
        With ``certify`` the relative gap between the objective and its lower bound: over all
        components within ``n_nonzero`` with "l0", else of the penalised objective; None without
        ``certify``.
    lower_bound_ : float or None
        With ``certify`` the lower bound of the objective to which ``gap_`` belongs, else None.
    n_iter_ : int
        Sweeps of the last solve.
    precision_ : {"fast", "exact"}
        How the second moments were formed; "exact" after `fit_covariance`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if the data has names.

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
    >>> scores = pca.transform(X)
    >>> scores.shape, pca.inverse_transform(scores).shape
    ((1797, 5), (1797, 64))
    >>> bool(np.isclose(pca.score(X), pca.explained_variance_ratio_.sum()))
    True
    >>> print(pca.loadings().summary().splitlines()[0].split(", ")[0])
    5 components of 64 features

    From a covariance matrix, and from samples that arrive in parts:

    >>> few = X[:, 18:24]
    >>> pca = SparsePCA(n_components=2, n_nonzero=4, random_state=0)
    >>> pca.fit_covariance(np.cov(few, rowvar=False), n_samples=len(few)).n_nonzero_
    4
    >>> pca = SparsePCA(n_components=2, n_nonzero=4, random_state=0)
    >>> pca.partial_fit(few[:900], update=False).partial_fit(few[900:]).n_nonzero_
    4
    >>> pca.fit_transform(few).shape
    (1797, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OrthonormalPCA._parameter_constraints,
        "penalty": [StrOptions(set(get_args(PenaltyName))), Separable, Cardinality, RowSparse],
        "alpha_scale": [StrOptions(set(get_args(AlphaScale)))],
        "solver": [Auto, Continuation, OBCD, None],
    }

    penalty: PenaltyName | Penalty = "l0"
    alpha: float | None = None
    alpha_scale: AlphaScale = "relative"
    n_features: int | None = None
    uncorrelated: bool = False
    certify: bool = False

    def _order(self, variances: FloatArray) -> IntArray:
        terms = self.penalty.terms if isinstance(self.penalty, Sum) else (self.penalty,)
        if any(np.ndim(getattr(term, "lam", 0.0)) for term in terms):
            # Every component has weights of its own.
            return np.arange(len(variances))
        return super()._order(variances)

    def _signed(self, x: FloatArray) -> FloatArray:
        signed = super()._signed(x)
        if not isinstance(self.penalty, Separable):
            return signed
        for t in range(x.shape[1]):
            turned = x.copy()
            turned[:, t] = signed[:, t]
            if penalty_value(self.penalty, turned) <= penalty_value(self.penalty, x):
                x = turned
        return x

    def _check(self, n: int, r: int) -> None:
        given = () if isinstance(self.penalty, str) else ("alpha", "n_nonzero", "n_features")
        for name in given:
            if getattr(self, name) is not None:
                raise ValueError(f"{name} must be None with {self.penalty!r}, which replaces it")
        if self.uncorrelated and self.penalty != "l0":
            raise ValueError("uncorrelated must be False for a penalty other than 'l0'")
        if self.uncorrelated and not (self.include is None and self.exclude is None):
            raise ValueError("uncorrelated must be False with include or exclude")
        Interval(float, 0.0, optional=True)("alpha", self.alpha)
        for name in ("n_nonzero", "n_features"):
            if self.alpha is not None and (count := getattr(self, name)) is not None:
                raise ValueError(
                    f"alpha must be None with {name}, got alpha={self.alpha!r} and {name}={count!r}"
                )
        if self.certify and self.n_features is not None:
            raise ValueError("certify must be False with n_features")
        counts = self.penalty == "l0" and self.n_nonzero is not None
        for name in ("include", "exclude"):
            if not counts and getattr(self, name) is not None:
                raise ValueError(f"{name} needs n_nonzero and penalty='l0'")
        if isinstance(self.penalty, Cardinality):
            self.penalty.check(n, r)
        self._limit = self.penalty if isinstance(self.penalty, (Cardinality, RowSparse)) else None
        if self.n_features is not None:
            if self.n_nonzero is not None or self.penalty != "l0":
                raise ValueError("n_features needs n_nonzero=None and penalty='l0'")
            self._limit = RowSparse(count=as_int("n_features", self.n_features, r, n))
        elif counts:
            self._limit = self._cardinality(n, r)
        elif self.n_nonzero is not None:
            as_int("n_nonzero", self.n_nonzero, r, n * r)

    def _solve(self, run: Solve, gram: Gram, r: int) -> Result:
        own = self.penalty if isinstance(self.penalty, Separable) else None
        problem: Covariance = problem_of(gram, r, penalty_of(self._norm, 1.0))
        self.path_: RegularizationPath | None = None
        self.alpha_: float | None = None
        top = 0.0 if own is not None else largest_lam(problem, run.n_threads)
        self.alpha_max_: float | None = None if own is not None else top
        penalty: Penalty | None = self._limit if own is None else own
        if penalty is not None and self.certify:
            check_bounded(problem.with_penalty(penalty), "certify must be False")
        if own is not None:
            run.result = self._at_penalty(run, problem, own)
        elif self._limit is not None:
            limited = problem.with_penalty(self._limit)
            run.result = self._part(run, limited, self._warm(*problem.shape))
        elif self.n_nonzero is not None:
            count = as_int("n_nonzero", self.n_nonzero, 1)
            self.alpha_, point = self._at_count(run, problem, count)
            run.result = self._at_point(run, problem, self.alpha_, point)
            # A limit on all entries restricts nothing: where f is constant, fewer are as good.
            fewer = point.n_nonzero != count < point.x.size
            if fewer and point.status is not Status.INTERRUPTED:
                warn(
                    f"n_nonzero={count} is not met; the result has {point.n_nonzero} nonzero "
                    "loadings",
                    ConvergenceWarning,
                )
        else:
            self.alpha_ = self._weight(top)
            run.result = self._at_weight(run, problem, self.alpha_, top)
        if penalty is None:
            penalty = penalty_of(self._norm, self.alpha_ or 0.0)
        return self._gap(run, problem.with_penalty(penalty), run.result)

    def _weight(self, top: float) -> float:
        """The absolute penalty weight; ``top`` is `lam_max` of the data."""
        unit = top if self.alpha_scale == "relative" else 1.0
        return (ALPHA if self.alpha is None else float(self.alpha)) * unit

    @property
    def _norm(self) -> PenaltyName:
        return "l1" if self.penalty == "l1" else "l0"

    @property
    def _descents(self) -> OBCD:
        """The solver of the stages of a path, for any solver that starts at the end of the path."""
        return self.solver if isinstance(self.solver, OBCD) else DESCENT

    def _path(
        self, run: Solve, problem: Covariance, tol: float, **which: Any
    ) -> RegularizationPath:
        """The path, by descents from the known optimum for a large penalty weight."""
        # A path is descents, without a search and its limit.
        within = Solve(**{**run.options(), "tol": tol, "max_work": None, "effort": 1.0})
        path = path_of(problem, self._norm, within, self._descents, **which)
        # The points are dense and many: a fitted estimator keeps the path without them.
        self.path_ = replace(path, results=())
        return path

    def _at_penalty(self, run: Solve, problem: Covariance, penalty: Penalty) -> Result:
        """The components for a penalty object, or for a penalty weight by a search."""
        start: Any = self._warm(*problem.shape)
        if start is not None:
            return self._part(run, problem.with_penalty(penalty), start, self.solver or DESCENT)
        start = "spectral" if isinstance(self.solver, OBCD) else None
        return self._part(run, problem.with_penalty(penalty), start, self.solver or SEARCH)

    def _at_weight(self, run: Solve, problem: Covariance, alpha: float, top: float) -> Result:
        """The components for the penalty weight ``alpha``; ``top`` is `lam_max` of the data."""
        penalty = penalty_of(self._norm, alpha)
        searches = self.solver is None or isinstance(self.solver, Auto)
        if self._warm(*problem.shape) is not None or (searches and alpha < top):
            return self._at_penalty(run, problem, penalty)
        loose = max(float(self.tol), STAGE_TOLERANCE)
        last = self._path(run, problem, loose, alphas=approach(top, alpha)).results[-1]
        if last.status is Status.INTERRUPTED:
            return self._at_point(run, problem, alpha, last)
        if isinstance(self.solver, Continuation) and last.lam == alpha < top:
            return self._part(run, problem.with_penalty(penalty), None, self.solver)
        return self._part(run, problem.with_penalty(penalty), last.x, self._descents)

    def _at_count(self, run: Solve, problem: Covariance, count: int) -> tuple[float, Point]:
        """Penalty weight and point with at most ``count`` nonzeros: of the path, or of a support.

        The ℓ1 path jumps over numbers of nonzeros where features are alike. Then the support is
        that of the best components with ``count`` nonzeros.
        """
        path = self._path(run, problem, float(self.tol), n_nonzero=count)
        nearest = path.results[path.index_at_most(count)]
        if any(point.status is Status.INTERRUPTED for point in path.results):
            nearest = replace(nearest, status=Status.INTERRUPTED)
        elif self.penalty == "l1" and nearest.n_nonzero < count:
            return self._on_support(run, problem, nearest, count, path.alpha_max)
        return nearest.lam, nearest

    def _on_support(
        self, run: Solve, problem: Covariance, sparser: PathPoint, count: int, top: float
    ) -> tuple[float, Point]:
        """ℓ1 on the best support of ``count`` entries, with the largest weight that keeps them.

        The weights tried are those of ``sparser`` and smaller ones; without one that keeps all
        entries the result is ``sparser``.
        """
        limited = problem.with_penalty(Cardinality(count))
        best = self._part(run, limited, max_work=SUPPORT_WORK)
        lam, barred = sparser.lam, BARRIER * top
        for _ in range(WEIGHTS if best.n_nonzero == count else 0):
            lam *= RATIO
            weights = L1(np.where(best.x != 0.0, lam, barred))
            here = self._part(run, problem.with_penalty(weights), best.x, self._descents)
            if here.n_nonzero == count or here.status is Status.INTERRUPTED:
                return lam, here
        return sparser.lam, sparser

    def _at_point(self, run: Solve, problem: Covariance, alpha: float, point: Point) -> Result:
        """A point of a path as a result."""
        penalty = penalty_of(self._norm, alpha)
        here = value(problem.with_penalty(penalty), point.x, n_threads=run.n_threads)
        return replace(here, status=point.status)

    def _gap(self, run: Solve, problem: Any, result: Result) -> Result:
        """Sets ``gap_`` and ``lower_bound_``, with ``certify``; returns the result."""
        self.gap_: float | None = None
        self.lower_bound_: float | None = None
        if not self.certify or result.status is Status.INTERRUPTED:
            return result
        limits: dict[str, Any] = {"max_time": self.max_time, "n_threads": run.n_threads}
        try:
            certificate = certify(problem, result.x, bound=True, **limits)
        except KeyboardInterrupt:
            run.interrupted = True
            return result
        self.gap_, self.lower_bound_ = certificate.gap, certificate.lower_bound
        run.interrupted = certificate.bound is not None and certificate.bound.interrupted
        return result


def approach(top: float, alpha: float) -> FloatArray:
    """Penalty weights from ``top`` down to ``alpha``, geometric with a ratio of about `RATIO`."""
    if alpha >= top or top == 0.0:
        return np.array([alpha])
    last = max(alpha, 1e-4 * top)
    steps = int(np.ceil(np.log(last / top) / np.log(RATIO)))
    path = np.geomspace(top, last, max(steps, 1) + 1)
    return path if last == alpha else np.append(path, alpha)
