"""The estimator `SparsePCACV`: sparse PCA with the penalty weight chosen from the data."""

from __future__ import annotations

import os
from math import lgamma
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._core import default_work
from .._internal.checkpoint import Checkpoints
from .._internal.checks import (
    DataLike,
    FloatArray,
    IntArray,
    as_choice,
    as_float_array,
    as_int,
    as_optional_float,
    is_sparse,
)
from .._internal.extras import need
from .._internal.interrupt import Kept, side_by_side
from .._internal.run import Deadline
from ..regularization import PenaltyName, largest_lam, penalty_of
from ..result import Status
from ..solving import solve
from .components import Components
from .fitting import threads_of
from .pictures import BLUE, RED, axes_of
from .preparation import check_magnitude, coordinates, prepared, problem_of, squares
from .sparse_pca import SparsePCA

if TYPE_CHECKING:
    from typing_extensions import Self

Criterion = Literal["cv", "bic", "ebic"]
Rule = Literal["one_se", "best"]

LARGEST, SMALLEST = 0.5, 1e-3
"""Ends of the default grid, in units of ``alpha_max_``."""

STAGE_WORK = 0.1
"""Work limit of a search along the path, relative to the work of a fit."""


class SparsePCACV(Components):
    """Sparse PCA with the penalty weight chosen by cross-validation or an information criterion.

    On every fold short searches run for all penalty weights in decreasing order. Each search has
    the point of the search before among its starts. Then `SparsePCA` is fitted to all samples with
    the chosen weight.

    Parameters
    ----------
    n_components : int, optional
        Number of components; min(10, n_samples, n_features) by default.
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
        Choice with "cv". "one_se": the largest weight whose held-out variance is within a standard
        error of the best. "best": the weight of the best held-out variance.
    cv : int, cross-validation generator or iterable, default 5
        The folds, as in scikit-learn.
    center : bool, default True
        Subtract the means. Sparse data stays sparse.
    scale : bool, default False
        Divide by the standard deviations.
    max_time : float, optional
        Time limit in seconds, none by default: half of it for the choice of the weight, the
        remaining time for the last fit.
    effort : float, default 1
        Patience of the last fit: multiple of the work after which the search ends by itself, see
        `orthobcd.solve`. ``math.inf`` uses all of ``max_time``.
    tol : float, default 1e-10
        Largest decrease of F, relative to its magnitude, that counts as none (`Status.CONVERGED`).
    random_state : int, RandomState or None, default None
        Seed of all random choices of the solver.
    n_jobs : int, optional
        Folds in parallel; 1 by default, −1 for all cores.
    verbose : bool, default False
        Show a live line of progress, see `orthobcd.solve`.

    Raises
    ------
    ValueError, TypeError
        By `fit`, if a parameter is not valid; the message names it.

    Attributes
    ----------
    alpha_ : float
        The chosen penalty weight, absolute, for all samples.
    best_index_ : int
        Index of the chosen weight in ``alphas_``.
    alphas_ : ndarray of shape (k,)
        The grid, decreasing.
    scores_ : ndarray of shape (k, n_folds) or (k, 1)
        Held-out share of the variance explained (higher is better), or the criterion (lower is
        better).
    n_nonzero_path_ : ndarray of shape (k, n_folds) or (k, 1)
        Number of nonzero loadings along the paths.
    best_estimator_ : SparsePCA
        The fit to all samples; its fitted attributes are also attributes of this estimator.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from orthobcd import SparsePCACV
    >>> pca = SparsePCACV(2, n_alphas=5, random_state=0).fit(load_iris().data)
    >>> pca.scores_.shape, pca.components_.shape
    ((5, 5), (2, 4))
    >>> pca.plot().get_ylabel()
    'held-out share of the variance'
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        penalty: PenaltyName = "l0",
        alphas: ArrayLike | None = None,
        n_alphas: int = 15,
        criterion: Criterion = "cv",
        rule: Rule = "one_se",
        cv: Any = 5,
        center: bool = True,
        scale: bool = False,
        max_time: float | None = None,
        effort: float = 1.0,
        tol: float = 1e-10,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.penalty = penalty
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.criterion = criterion
        self.rule = rule
        self.cv = cv
        self.center = center
        self.scale = scale
        self.max_time = max_time
        self.effort = effort
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: DataLike,
        y: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> Self:
        """Choose the penalty weight and find the components.

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
            After Ctrl-C. The attribute ``result`` of the exception is None while the weight is
            chosen, and then that of `SparsePCA.fit`.
        """
        limit = as_optional_float("max_time", self.max_time, minimum=0.0)
        whole, half = Deadline(limit), Deadline(None if limit is None else 0.5 * limit)
        files = Checkpoints(checkpoint, checkpoint_every, self.random_state)
        as_choice("penalty", self.penalty, ("l0", "l1"))
        as_choice("criterion", self.criterion, ("cv", "bic", "ebic"))
        as_choice("rule", self.rule, ("one_se", "best"))
        data = self._data(X, ensure_min_samples=2)
        check_magnitude(data)
        data = data.astype(np.float64, copy=False)
        m, n = data.shape
        r = self._count(m, n)
        self.alphas_ = self._grid()
        if n == 1:
            raise ValueError("n_features=1: there is nothing to choose, at least 2 are needed")
        if is_sparse(data):
            data = data.tocsr()
        folds: list[tuple[Any, Any]] = [(slice(None), slice(None))]
        if self.criterion == "cv":
            folds = list(check_cv(self.cv).split(data, y))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        workers = threads_of(self) or os.cpu_count() or 1
        done: list[tuple[FloatArray, IntArray]] = []

        def fold(k: int) -> tuple[FloatArray, IntArray]:
            after = (len(folds) - 1) // workers - k // workers
            return self._fold(data, r, folds[k], seed, files.one(f"fold-{k}"), half, after)

        with Kept():
            side_by_side(fold, range(len(folds)), workers, done)
        self.scores_: FloatArray = np.column_stack([scores for scores, _ in done])
        self.n_nonzero_path_ = np.column_stack([counts for _, counts in done])
        self.best_index_ = self._best()
        best = SparsePCA(
            r,
            penalty=self.penalty,
            alpha=float(self.alphas_[self.best_index_]),
            center=self.center,
            scale=self.scale,
            max_time=whole.left(),
            effort=self.effort,
            tol=self.tol,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self.best_estimator_ = best
        try:
            best.fit(X, checkpoint=files.path("fit"), checkpoint_every=checkpoint_every)
        finally:
            own = {name: value for name, value in vars(best).items() if name.endswith("_")}
            for name, value in own.items():
                setattr(self, name, value)
        return self

    def _grid(self) -> FloatArray:
        if self.alphas is None:
            return np.geomspace(LARGEST, SMALLEST, as_int("n_alphas", self.n_alphas, 1))
        alphas = as_float_array("alphas", self.alphas, 1)
        if (alphas < 0.0).any():
            raise ValueError(f"alphas must be nonnegative, the smallest is {alphas.min():g}")
        return np.sort(alphas)[::-1]

    def _fold(
        self,
        data: Any,
        r: int,
        samples: tuple[Any, Any],
        seed: int,
        checkpoint: Any,
        deadline: Deadline,
        after: int,
    ) -> tuple[FloatArray, IntArray]:
        """Scores and numbers of nonzeros along the path of a fold.

        ``samples`` are those to fit and those to score. ``after`` folds follow on the same thread
        before the deadline.
        """
        inside, outside = (data[part] for part in samples)
        m, n = inside.shape
        moments, deviation = prepared(inside, bool(self.center), bool(self.scale))
        problem = problem_of(moments, r, penalty_of(self.penalty, 1.0))
        top, work = largest_lam(problem, 1), default_work(problem)
        scores: list[float] = []
        counts: list[int] = []
        x: FloatArray | None = None
        total = squares(outside, moments.mean, deviation) if self.criterion == "cv" else 0.0
        stages = (after + 1) * len(self.alphas_)
        for stage, alpha in enumerate(self.alphas_):
            left = deadline.left()
            if left == 0.0 and x is not None:
                # A solve without time ends at its start.
                counts.append(counts[-1])
                scores.append(scores[-1])
                continue
            found = solve(
                problem.with_penalty(penalty_of(self.penalty, alpha * top)),
                x,
                max_time=None if left is None else left / (stages - stage),
                max_work=STAGE_WORK * work,
                seed=seed,
                n_threads=1,
                checkpoint=checkpoint,
            )
            if found.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            x = found.x
            counts.append(int(np.count_nonzero(x)))
            if self.criterion == "cv":
                explained = np.sum(coordinates(outside, x, moments.mean, deviation) ** 2)
                scores.append(float(explained) / max(total, np.finfo(np.float64).tiny))
            else:
                residual = moments.total - float(np.trace(moments.second(x)))
                residual = max(residual, np.finfo(np.float64).eps * moments.total)
                penalty = counts[-1] * np.log(m * n)
                if self.criterion == "ebic":
                    penalty += 2.0 * log_choices(n * r, counts[-1])
                scores.append(float(np.log(residual / (m * n)) + penalty / (m * n)))
        return np.array(scores), np.array(counts)

    def _best(self) -> int:
        """Index of the chosen weight in the grid."""
        if self.criterion != "cv":
            return int(np.argmin(self.scores_[:, 0]))
        mean = self.scores_.mean(axis=1)
        best = int(np.argmax(mean))
        if self.rule == "best" or self.scores_.shape[1] < 2:
            return best
        error = self.scores_[best].std(ddof=1) / np.sqrt(self.scores_.shape[1])
        # The grid decreases: the first weight within the error has the fewest nonzeros.
        return int(np.flatnonzero(mean >= mean[best] - error)[0])

    def plot(self, ax: Any = None) -> Any:
        """Plot the scores along the grid with their standard errors, and mark the chosen weight.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed; the extra is ``plot``.
        NotFittedError
            Before `fit`.
        """
        check_is_fitted(self)
        ax = axes_of(ax)
        nonzeros = self.n_nonzero_path_.mean(axis=1)
        k = self.scores_.shape[1]
        error = self.scores_.std(axis=1, ddof=1) / np.sqrt(k) if k > 1 else None
        ax.errorbar(nonzeros, self.scores_.mean(axis=1), error, marker="o", capsize=3, color=BLUE)
        ax.axvline(nonzeros[self.best_index_], color=RED, linestyle="--", label="chosen")
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
