"""The estimator `SparsePCACV`: sparse PCA whose number of loadings or weight the data choose."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from math import lgamma
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .._core import default_work
from .._internal.checks import (
    DataLike,
    FloatArray,
    IntArray,
    as_int,
    as_nonnegative,
    is_sparse,
)
from .._internal.drawing import PALETTE, Plotted, axes_of
from .._internal.extras import need
from ..data import (
    Gram,
    PrecisionName,
    blocks_of,
    check_magnitude,
    coordinates,
    load_rows,
    squares,
)
from ..penalties import Cardinality, Penalty, PenaltyName, penalty_of
from ..problems import largest_lam
from ..result import Status
from ..solving import Solve, folder_of, open_checkpoint, run_in_threads, solve
from .base import problem_of
from .sparse_pca import AlphaScale, SparsePCA

if TYPE_CHECKING:
    from typing_extensions import Self

Criterion = Literal["cv", "bic", "ebic"]
Rule = Literal["one_se", "best"]

LARGEST, SMALLEST = 0.5, 1e-3
"""Ends of the default grid, in units of ``alpha_max_``."""

STAGE_WORK = 0.03
"""Work limit of a search along the path, relative to the work of a fit."""


@dataclass(eq=False, repr=False, kw_only=True)
class SparsePCACV(SparsePCA, Plotted):
    """Sparse PCA with the number of loadings or the penalty weight chosen by the data.

    On every fold short searches run along the grid from sparse to dense components. Each search has
    the point of the search before among its starts. Then the components of all samples are found
    with the chosen number or weight, as `SparsePCA` finds them. `plot` shows the
    scores along the grid with their standard errors, and marks the choice.

    Parameters
    ----------
    n_components : int, optional
        Number of components; by default as in `SparsePCA`.
    n_nonzeros : sequence of int, optional
        Numbers of nonzero loadings to choose from, each an ``n_nonzero`` of `SparsePCA` with "l0".
        They replace ``alphas``.
    penalty : {"l0", "l1"}, default "l0"
        Penalty on the number of nonzero loadings, or on their absolute values.
    alphas : array_like of shape (k,), optional
        Penalty weights to choose from, in units of ``alpha_max_`` of the fold, or of all samples
        for the last fit. By default ``n_alphas`` weights from 0.5 to 0.001, equidistant on the
        logarithmic scale.
    n_alphas : int, default 15
        Length of the default grid.
    criterion : {"cv", "bic", "ebic"}, default "cv"
        "cv": held-out explained variance. "bic", without folds: the BIC of Allen and
        Maletić-Savatić (2011), ``log(‖A − AXXᵀ‖²/(mn)) + ‖X‖₀ log(mn)/(mn)``. "ebic": the BIC plus
        ``2 log C(nr, ‖X‖₀)/(mn)``, for the number of supports of that size (Chen and Chen 2008).
    rule : {"one_se", "best"}, default "one_se"
        Choice with "cv". "one_se": the fewest loadings, or the largest weight, whose held-out
        variance is within a standard error of the best. "best": the best held-out variance, which
        rises with the number of loadings on most data.
    cv : int, cross-validation generator or iterable, default 5
        The folds, as in scikit-learn.
    max_time : float, optional
        Time limit in seconds, none by default: half of it for the choice, the remaining time for
        the last fit.
    effort : float, default 1
        Patience of the last fit, as in `SparsePCA`.
    n_jobs : int, optional
        Folds in parallel; 1 by default, −1 for all cores.
    center, scale, max_work, tol, random_state, verbose
        As in `SparsePCA`.

    Raises
    ------
    ValueError, TypeError
        By `fit`, if a parameter is not valid; the message names it.

    Attributes
    ----------
    n_nonzeros_ : ndarray of int of shape (k,) or None
        The grid of numbers, ascending; None for a grid of weights.
    alphas_ : ndarray of shape (k,) or None
        The grid of weights, decreasing; None for a grid of numbers.
    best_index_ : int
        Index of the choice in the grid.
    scores_ : ndarray of shape (k, n_folds) or (k, 1)
        Held-out share of the variance explained (higher is better), or the criterion (lower is
        better).
    n_nonzero_path_ : ndarray of shape (k, n_folds) or (k, 1)
        Number of nonzero loadings along the grid.
    alpha_ : float or None
        The chosen penalty weight, absolute, for all samples; None for a grid of numbers.
    components_, n_components_, mean_, scale_, explained_variance_, explained_variance_ratio_, \
score_correlation_, n_nonzero_, alpha_max_, path_, objective_, result_, n_iter_, precision_, \
n_features_in_, feature_names_in_
        As in `SparsePCA`, of the fit to all samples.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from orthobcd import SparsePCACV
    >>> pca = SparsePCACV(2, n_nonzeros=[2, 6, 10, 20], scale=True, random_state=0)
    >>> pca = pca.fit(load_wine().data)
    >>> pca.scores_.shape, pca.components_.shape
    ((4, 5), (2, 13))
    >>> bool(pca.n_nonzero_ == pca.n_nonzeros_[pca.best_index_])
    True
    >>> pca.plot().get_ylabel()
    'held-out share of the variance'
    >>> pca = SparsePCACV(1, n_nonzeros=[1, 2], criterion="bic", random_state=0)
    >>> pca.fit_covariance([[2.0, 1.9], [1.9, 2.0]], n_samples=50).n_nonzero_
    2
    """

    n_nonzeros: ArrayLike | None = None
    penalty: PenaltyName = "l0"
    alphas: ArrayLike | None = None
    n_alphas: int = 15
    criterion: Criterion = "cv"
    rule: Rule = "one_se"
    cv: Any = 5
    # Parameters of `SparsePCA` that the choice replaces or that are not offered.
    alpha: None = field(init=False, default=None)
    alpha_scale: AlphaScale = field(init=False, default="relative")
    n_nonzero: None = field(init=False, default=None)
    include: None = field(init=False, default=None)
    exclude: None = field(init=False, default=None)
    n_features: None = field(init=False, default=None)
    missing: None = field(init=False, default=None)
    solver: None = field(init=False, default=None)
    max_memory: None = field(init=False, default=None)
    uncorrelated: bool = field(init=False, default=False)
    warm_start: bool = field(init=False, default=False)
    certify: bool = field(init=False, default=False)
    precision: PrecisionName = field(init=False, default="auto")

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SparsePCA._parameter_constraints,
        "penalty": [StrOptions(set(get_args(PenaltyName)))],
        "criterion": [StrOptions(set(get_args(Criterion)))],
        "rule": [StrOptions(set(get_args(Rule)))],
    }

    def fit(  # type: ignore[override]
        self,
        X: DataLike,
        y: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> Self:
        """Choose the number of loadings or the penalty weight, and find the components.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data.
        y : array_like of shape (n_samples,), optional
            Classes, if ``cv`` splits by them; else ignored.
        checkpoint : path, optional
            Folder of checkpoints, as in `SparsePCA.fit`: a file for each fold and one for the last
            fit. The folder is made if it does not exist.
        checkpoint_every : float, default 60
            Least seconds between two writes of a checkpoint.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the data or a parameter is not valid; the message names it.
        KeyboardInterrupt
            After Ctrl-C. The attribute ``result`` of the exception is None during the choice, and
            then that of `SparsePCA.fit`.
        """
        path_of = folder_of(checkpoint, self.random_state)
        with self._run(path_of("fit"), checkpoint_every) as run:
            data = self._data(X if blocks_of(X) is None else load_rows(X), ensure_min_samples=2)
            check_magnitude(data)
            r = self._checked(*data.shape)
            if self.criterion == "cv":
                self._cross_validate(
                    run, data, y, r, lambda name: open_checkpoint(path_of(name), checkpoint_every)
                )
            how = self.precision, self.center, self.scale
            gram = Gram.of(data, *how, None, run.n_threads)
            return self._fit_gram(run, gram, r)

    def fit_covariance(
        self, S: ArrayLike, n_samples: float | None = None, mean: ArrayLike | None = None
    ) -> Self:
        """Choose and fit from a covariance matrix, for the criteria "bic" and "ebic".

        Parameters
        ----------
        S, n_samples, mean
            As in `SparsePCA.fit_covariance`; the criteria depend on ``n_samples``.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For "cv", which needs samples, and if an argument or a parameter is not valid.
        """
        if self.criterion == "cv":
            raise ValueError("criterion must be 'bic' or 'ebic' in fit_covariance, got 'cv'")
        return super().fit_covariance(S, n_samples, mean)

    @property
    def partial_fit(self) -> NoReturn:
        """Not for this estimator: folds need all samples at once."""
        raise AttributeError("SparsePCACV has no partial_fit: its folds need all samples at once")

    @property
    def best_estimator_(self) -> SparsePCA:
        """The same fit as a `SparsePCA`."""
        check_is_fitted(self)
        k = self.best_index_
        shared = {name: getattr(self, name) for name in SparsePCA().get_params(deep=False)}
        best: SparsePCA = SparsePCA(**shared).set_params(
            n_components=self.n_components_,
            alpha=None if self.alphas_ is None else float(self.alphas_[k]),
            n_nonzero=None if self.n_nonzeros_ is None else int(self.n_nonzeros_[k]),
        )
        own = self.get_params(deep=False)
        best.__dict__.update({name: v for name, v in vars(self).items() if name not in own})
        return best

    def _reads_whole(self, X: Any) -> bool:
        return True

    def _check(self, n: int, r: int) -> None:
        if n == 1:
            raise ValueError("n_features=1: there is nothing to choose, at least 2 are needed")
        self._limit = None
        self.alphas_: FloatArray | None = None
        self.n_nonzeros_: IntArray | None = None
        if self.n_nonzeros is not None:
            self.n_nonzeros_ = self._numbers(n, r)
        elif self.alphas is None:
            count = as_int("n_alphas", self.n_alphas, 1)
            self.alphas_ = np.geomspace(LARGEST, SMALLEST, count)
        else:
            alphas = as_nonnegative("alphas", self.alphas)
            self.alphas_ = np.sort(alphas)[::-1]

    def _numbers(self, n: int, r: int) -> IntArray:
        """The grid of numbers of nonzero loadings, ascending."""
        if self.alphas is not None or self.penalty != "l0":
            raise ValueError("n_nonzeros needs alphas=None and penalty='l0'")
        given: Any = self.n_nonzeros
        if np.ndim(given) != 1 or np.size(given) == 0:
            raise ValueError(f"n_nonzeros must be a sequence of numbers, got {self.n_nonzeros!r}")
        counts = [as_int("n_nonzeros", count, r, n * r) for count in np.asarray(given).tolist()]
        return np.unique(np.array(counts, dtype=np.int64))

    def _cross_validate(self, run: Solve, data: Any, y: Any, r: int, opened_as: Any) -> None:
        """Chooses from the grid by folds of the samples."""
        data = data.astype(np.float64, copy=False)
        data = data.tocsr() if is_sparse(data) else data
        half = self._choice_limit()
        folds = list(check_cv(self.cv).split(data, y))
        workers = run.n_threads or os.cpu_count() or 1

        def fold(k: int) -> tuple[FloatArray, IntArray]:
            inside, outside = (data[part] for part in folds[k])
            gram = Gram.of(inside, self.precision, self.center, self.scale)
            total = max(squares(outside, gram.mean, gram.scale), np.finfo(np.float64).tiny)

            def score(x: FloatArray) -> float:
                scores = coordinates(outside, x, gram.mean, gram.scale)
                return float(np.sum(scores**2)) / total

            after = (len(folds) - 1) // workers - k // workers
            return self._follow_grid(gram, r, score, half, after, run.seed, opened_as(f"fold-{k}"))

        done: list[tuple[FloatArray, IntArray]] = []
        run_in_threads(fold, range(len(folds)), workers, done)
        self._choose(done)

    def _fit_gram(
        self, run: Solve, gram: Gram, r: int, sums: Any = None, model: Any = None
    ) -> Self:
        if self.criterion != "cv":
            size = gram.n_samples * len(gram.mean)

            def score(x: FloatArray) -> float:
                residual = gram.total - float(np.trace(gram.second(x)))
                residual = max(residual, np.finfo(np.float64).eps * gram.total)
                count = int(np.count_nonzero(x))
                penalty = count * np.log(size)
                if self.criterion == "ebic":
                    penalty += 2.0 * log_choices(x.size, count)
                return float(np.log(residual / size) + penalty / size)

            self._choose(
                [self._follow_grid(gram, r, score, self._choice_limit(), 0, run.seed, None)]
            )
        return super()._fit_gram(run, gram, r)

    def _choice_limit(self) -> Solve:
        """A time limit for the choice, which starts now."""
        return Solve(max_time=None if self.max_time is None else 0.5 * self.max_time)

    def _follow_grid(
        self,
        gram: Gram,
        r: int,
        score: Any,
        deadline: Solve,
        after: int,
        seed: int,
        checkpoint: Any,
    ) -> tuple[FloatArray, IntArray]:
        """Scores and numbers of nonzeros along the grid, for the samples of this Gram matrix.

        ``after`` folds follow on the same thread before the deadline.
        """
        problem = problem_of(gram, r, penalty_of(self._norm, 1.0))
        top, work = largest_lam(problem, 1), default_work(problem)
        penalties: list[Penalty] = (
            [Cardinality(int(count)) for count in self.n_nonzeros_]
            if self.n_nonzeros_ is not None
            else [penalty_of(self._norm, alpha * top) for alpha in self._weights()]
        )
        scores: list[float] = []
        counts: list[int] = []
        x: FloatArray | None = None
        for stage, penalty in enumerate(penalties):
            left = deadline.max_time
            if left == 0.0 and x is not None:
                # A solve without time ends at its start.
                counts.append(counts[-1])
                scores.append(scores[-1])
                continue
            found = solve(
                problem.with_penalty(penalty),
                x,
                max_time=None if left is None else left / ((after + 1) * len(penalties) - stage),
                max_work=min(STAGE_WORK * work, np.inf if self.max_work is None else self.max_work),
                seed=seed,
                n_threads=1,
                checkpoint=checkpoint,
            )
            if found.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            x = found.x
            counts.append(int(np.count_nonzero(x)))
            scores.append(score(x))
        return np.array(scores), np.array(counts)

    def _weights(self) -> FloatArray:
        return np.empty(0) if self.alphas_ is None else self.alphas_

    def _choose(self, done: list[tuple[FloatArray, IntArray]]) -> None:
        """Keeps the scores, and the index of the choice in the grid."""
        self.scores_: FloatArray = np.column_stack([scores for scores, _ in done])
        self.n_nonzero_path_: IntArray = np.column_stack([counts for _, counts in done])
        self.best_index_ = self._best()
        if self.n_nonzeros_ is not None:
            self._limit = Cardinality(int(self.n_nonzeros_[self.best_index_]))

    def _best(self) -> int:
        """Index of the choice in the grid."""
        if self.criterion != "cv":
            return int(np.argmin(self.scores_[:, 0]))
        mean = self.scores_.mean(axis=1)
        best = int(np.argmax(mean))
        if self.rule == "best" or self.scores_.shape[1] < 2:
            return best
        error = self.scores_[best].std(ddof=1) / np.sqrt(self.scores_.shape[1])
        # The grid goes from sparse to dense.
        return int(np.flatnonzero(mean >= mean[best] - error)[0])

    def _weight(self, top: float) -> float:
        return float(self._weights()[self.best_index_]) * top

    def plot(self, ax: Any = None) -> Any:
        check_is_fitted(self)
        ax = axes_of(ax)
        nonzeros = self.n_nonzero_path_.mean(axis=1)
        k = self.scores_.shape[1]
        error = self.scores_.std(axis=1, ddof=1) / np.sqrt(k) if k > 1 else None
        ax.errorbar(
            nonzeros, self.scores_.mean(axis=1), error, marker="o", capsize=3, color=PALETTE[0]
        )
        ax.axvline(nonzeros[self.best_index_], color=PALETTE[1], linestyle="--", label="chosen")
        ax.set_xscale("log")
        plain = need("plot", "matplotlib.ticker").ScalarFormatter()
        ax.xaxis.set_major_formatter(plain)
        ax.xaxis.set_minor_formatter(plain)
        ax.set_xlabel("nonzero loadings (mean over the folds)")
        held = "held-out share of the variance"
        ax.set_ylabel(held if self.criterion == "cv" else self.criterion.upper())
        ax.legend(frameon=False)
        return ax


def log_choices(n: int, k: int) -> float:
    """Logarithm of the binomial coefficient C(n, k)."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
