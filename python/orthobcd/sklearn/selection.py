"""Stability of supports on subsamples, and choice of the number of components."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from .._internal.checks import (
    FRACTION,
    DataLike,
    FloatArray,
    as_choice,
    as_float,
    as_int,
    is_sparse,
    numbers_of,
)
from .._internal.drawing import PALETTE, Plotted, axes_of, whole_ticks
from .._internal.names import component_names, shortened_names
from ..data import Gram, as_samples, check_complete, check_magnitude
from ..solving import Solve, folder_of, run_in_threads
from .base import OrthonormalPCA, conditions, prepare_subsample_fit
from .missing import Gaussian, gaussian_of, standardized


@dataclass(frozen=True, eq=False, repr=False)
class SupportStability(Plotted):
    """Frequencies of the features in the components of fits to subsamples.

    `plot` shows them as an image: a row per component, a column per feature that is ever selected.

    Attributes
    ----------
    frequencies : ndarray of shape (n_components, n_features)
        Share of the subsamples in which the feature has a nonzero loading in the component.
    components : ndarray of shape (n_components, n_features)
        Components of the fit to all samples, to which those of the subsamples are matched.
    n_subsamples : int
        Number of subsamples.
    features : tuple of str
        Names of the features.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from orthobcd import SparsePCA, support_stability
    >>> pca = SparsePCA(1, n_nonzero=2, random_state=0)
    >>> stability = support_stability(pca, load_iris().data, n_subsamples=4, random_state=0)
    >>> stability.frequencies.shape
    (1, 4)
    >>> len(stability.plot().get_yticklabels())
    1
    """

    frequencies: FloatArray
    components: FloatArray
    n_subsamples: int
    features: tuple[str, ...]

    def __repr__(self) -> str:
        r, n = self.frequencies.shape
        return f"SupportStability({r} components of {n} features, {self.n_subsamples} subsamples)"

    def plot(self, ax: Any = None) -> Any:
        ax = axes_of(ax)
        chosen = np.flatnonzero(self.frequencies.any(axis=0))
        image = ax.imshow(
            self.frequencies[:, chosen], aspect="auto", cmap="Blues", vmin=0.0, vmax=1.0
        )
        ax.figure.colorbar(image, ax=ax, label="share of the subsamples")
        if len(chosen) <= 30:
            names = shortened_names([self.features[i] for i in chosen])
            ax.set_xticks(range(len(chosen)), names, rotation=90)
        ax.set_yticks(range(len(self.frequencies)), component_names(len(self.frequencies)))
        ax.set_xlabel("feature" if len(chosen) <= 30 else "features chosen at least once")
        return ax


def support_stability(
    estimator: OrthonormalPCA,
    X: DataLike,
    *,
    n_subsamples: int = 50,
    fraction: float = 0.5,
    random_state: Any = None,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
) -> SupportStability:
    """Repeat a fit on subsamples and count how often each feature is selected.

    As in Meinshausen and Bühlmann (2010), subsamples of half the data are drawn without
    replacement. The components of each subsample are matched one to one to those of all samples, by
    the largest sum of magnitudes of inner products. A component with its own limit (``n_nonzero``,
    ``include``, ``exclude``) is matched to one with the same limit.

    A search on a subsample has a small work limit, and the components of all samples are among its
    starts. This shorter search ends more often with features of the whole fit than a search without
    the limit would. Fits without a search (with a ``solver`` other than `Auto`, or with "l1" and
    ``n_nonzero``) are repeated unchanged.

    Parameters
    ----------
    estimator : SparsePCA or NonnegativePCA
        The estimator to fit; it is cloned.
    X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
        Data.
    n_subsamples : int, default 50
        Number of subsamples.
    fraction : float, default 0.5
        Share of the samples in a subsample, between 0 and 1.
    random_state : int, RandomState or None, default None
        Seed of the subsamples.
    n_jobs : int, optional
        Fits in parallel; 1 by default, −1 for all cores. The result does not depend on ``n_jobs``.
    checkpoint : path, optional
        Folder of checkpoints, as in `SparsePCA.fit`: a file for each fit. The folder is made if it
        does not exist. Both random states must be integers.
    checkpoint_every : float, default 60
        Least seconds between two writes of a checkpoint.

    Returns
    -------
    SupportStability

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.
    KeyboardInterrupt
        After Ctrl-C. The attribute ``result`` of the exception is the `SupportStability` of the
        finished subsamples; if there are none, the ``result`` that the interrupted fit raised, or
        None.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from orthobcd import SparsePCA, support_stability
    >>> pca = SparsePCA(1, n_nonzero=2, random_state=0)
    >>> support_stability(pca, load_iris().data, n_subsamples=4, random_state=0).n_subsamples
    4
    """
    if not isinstance(estimator, OrthonormalPCA):
        name = type(estimator).__name__
        raise TypeError(f"estimator must be a SparsePCA or NonnegativePCA, got {name}")
    count = as_int("n_subsamples", n_subsamples, 1)
    share = FRACTION("fraction", fraction)
    path_of = folder_of(checkpoint, random_state)

    def fitted(pca: OrthonormalPCA, data: Any, name: str) -> OrthonormalPCA:
        return pca.fit(data, checkpoint=path_of(name), checkpoint_every=checkpoint_every)

    whole = fitted(clone(estimator), X, "whole")
    # Tables keep the names of their columns.
    given: Any = X if hasattr(X, "columns") else numbers_of(X)
    given = given.tocsr() if is_sparse(given) else given
    m = _num_samples(given)
    size = max(2, round(share * m))
    rng = check_random_state(random_state)
    draws = [rng.permutation(m)[:size] for _ in range(count)]
    r = len(whole.components_)
    kinds = conditions(whole, r)

    def chosen(number: int) -> FloatArray:
        part = prepare_subsample_fit(clone(estimator).set_params(n_components=r), whole, WORK)
        sample = _safe_indexing(given, draws[number])
        found = fitted(part, sample, f"subsample-{number}").components_
        likeness = np.abs(whole.components_ @ found.T)
        # Below every likeness: components with different limits are never matched.
        likeness[np.array([[a != b for b in kinds] for a in kinds])] = -float(r)
        _, order = linear_sum_assignment(-likeness)
        return np.asarray(found[order] != 0.0, dtype=np.float64)

    workers = 1 if n_jobs is None else n_jobs
    done: list[FloatArray] = []
    with Solve(ctrl_c="keep") as run:
        try:
            run_in_threads(chosen, range(count), workers if workers > 0 else None, done)
        finally:
            if done:
                run.result = SupportStability(
                    np.mean(done, axis=0), whole.components_, len(done), whole.loadings().features
                )
    stability: SupportStability = run.result
    return stability


@dataclass(frozen=True, eq=False, repr=False)
class ComponentChoice(Plotted):
    """A chosen number of components, with the criterion values and thresholds, which `plot` shows.

    Attributes
    ----------
    n_components : int
        The chosen number.
    values : ndarray of shape (k,)
        "parallel": the k leading eigenvalues. "held_out": mean squared errors of held-out entries
        with 1, …, k components.
    thresholds : ndarray of shape (k,)
        "parallel": values that the eigenvalues must exceed. "held_out": the smallest error plus its
        standard error.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from orthobcd import choose_n_components
    >>> choice = choose_n_components(load_iris().data, random_state=0)
    >>> choice.n_components
    1
    >>> choice.plot().get_xlabel()
    'number of components'
    """

    n_components: int
    values: FloatArray
    thresholds: FloatArray

    @property
    def is_largest(self) -> bool:
        """True if the choice is the largest number considered; the data may support more."""
        return self.n_components == len(self.values)

    def __repr__(self) -> str:
        largest = ", the largest considered" if self.is_largest else ""
        return f"ComponentChoice({self.n_components} of 1 to {len(self.values)}{largest})"

    def plot(self, ax: Any = None) -> Any:
        ax = axes_of(ax)
        numbers = np.arange(1, len(self.values) + 1)
        ax.plot(numbers, self.values, marker="o", color=PALETTE[0], label="data")
        ax.plot(numbers, self.thresholds, color="0.6", linestyle="--", label="threshold")
        ax.axvline(self.n_components, color=PALETTE[1], linestyle=":", label="chosen")
        whole_ticks(ax.xaxis)
        ax.set_xlabel("number of components")
        ax.legend(frameon=False)
        return ax


def choose_n_components(
    X: ArrayLike,
    method: Literal["parallel", "held_out"] = "parallel",
    *,
    max_components: int = 20,
    n_repeats: int = 20,
    quantile: float = 0.95,
    random_state: Any = None,
) -> ComponentChoice:
    """Choose the number of components that the data supports.

    "parallel" (Horn 1965): the number of leading eigenvalues of the correlation matrix that exceed
    a quantile of those of data with independently permuted columns. "held_out": a tenth of the
    entries is left out and completed by probabilistic PCA (see `SparsePCA`, ``missing``); the
    choice is the smallest number whose mean squared error is within a standard error of the best.
    Features are centred and divided by their standard deviations; constant features do not count.

    Parameters
    ----------
    X : array_like of shape (n_samples, n_features)
        Data, dense. "held_out" takes data with missing values (NaN) too.
    method : {"parallel", "held_out"}, default "parallel"
        The method.
    max_components : int, default 20
        Largest number considered.
    n_repeats : int, default 20
        Number of permutations; for "held_out" a quarter of it, at least 2, is the number of random
        sets of left-out entries.
    quantile : float, default 0.95
        Quantile of the eigenvalues of permuted data.
    random_state : int, RandomState or None, default None
        Seed of permutations and left-out entries.

    Returns
    -------
    ComponentChoice
        The choice; ``n_components`` is at least 1. If ``n_components`` is ``max_components``,
        ``is_largest`` is True, and a larger ``max_components`` may give more components.

    Warns
    -----
    ConvergenceWarning
        If "held_out" chooses ``max_components`` although more components could be considered.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from orthobcd import choose_n_components
    >>> choose_n_components(load_iris().data, "held_out", random_state=0).values.shape
    (3,)
    """
    as_choice("method", method, ("parallel", "held_out"))
    data = as_samples(X, ensure_min_samples=0)
    if is_sparse(data):
        raise TypeError(f"X must be a dense array, got a sparse {type(X).__name__}")
    data = data.astype(np.float64, copy=False)
    check_magnitude(data)
    if method == "parallel":
        check_complete(data, "method='held_out' takes data with some")
    m, n = data.shape
    if m < 3 or n < 2:
        raise ValueError(f"X must have at least 3 samples and 2 features, got {m} and {n}")
    max_components = min(as_int("max_components", max_components, 1), m - 1, n - 1)
    repeats = as_int("n_repeats", n_repeats, 1)
    quantile = as_float("quantile", quantile, 0.0, 1.0)
    rng = check_random_state(random_state)
    if method == "parallel":
        features = np.ascontiguousarray(Gram.of_rows(data, center=True, scale=True).data.T)
        values = _eigenvalues(features, max_components)
        draw = np.random.default_rng(rng.randint(2**31 - 1))
        noise = [
            _eigenvalues(draw.permuted(features, axis=1), max_components) for _ in range(repeats)
        ]
        thresholds = np.quantile(noise, quantile, axis=0)
        below = np.flatnonzero(values <= thresholds)
        return ComponentChoice(
            max(1, int(below[0]) if len(below) else max_components), values, thresholds
        )
    data, _ = standardized(data)
    errors = np.array([_errors(data, max_components, rng) for _ in range(max(2, repeats // 4))])
    values = errors.mean(axis=0)
    best = int(np.argmin(values))
    limit = values[best] + errors[:, best].std(ddof=1) / np.sqrt(len(errors))
    number = int(np.flatnonzero(values <= limit)[0]) + 1
    if number == max_components < min(m, n) - 1:
        warnings.warn(
            f"max_components={max_components} stopped the choice: the error of held-out entries "
            "still falls there; give a larger max_components",
            ConvergenceWarning,
            stacklevel=2,
        )
    return ComponentChoice(number, values, np.full(max_components, limit))


def _eigenvalues(features: FloatArray, max_components: int) -> FloatArray:
    """Leading eigenvalues of the correlations of standardized features, which are rows."""
    n, m = features.shape
    gram = features @ features.T if n <= m else features.T @ features
    values = np.linalg.eigvalsh(gram)[::-1][:max_components] / (m - 1)
    return np.asarray(np.maximum(values, 0.0))


def _errors(data: FloatArray, max_components: int, rng: Any) -> FloatArray:
    """Mean squared error of left-out entries with 1, 2, …, ``max_components`` components."""
    if not data.size:
        return np.zeros(max_components)
    known = ~np.isnan(data)
    out = np.zeros(data.shape, dtype=bool)
    while not out.any():
        out = known & (rng.uniform(size=data.shape) < HELD_OUT)
        # Every sample and every feature keeps a known entry.
        order = np.where(known, rng.uniform(size=data.shape), -1.0)
        out[np.arange(len(out)), order.argmax(axis=1)] = False
        out[order.argmax(axis=0), np.arange(data.shape[1])] = False
    gapped = np.where(out, np.nan, data)
    errors = []
    model: Gaussian | None = None
    for r in range(1, max_components + 1):
        model = gaussian_of(gapped, r, model, CHANGE, HELD_OUT_STEPS)
        errors.append(float(np.mean((model.completed(gapped) - data)[out] ** 2)))
    return np.array(errors)


CHANGE, HELD_OUT_STEPS = 1e-3, 20
"""Relative change of the covariance at which "held_out" ends the EM algorithm, and its largest
number of iterations. Longer runs change the errors by less than their spread over the random sets,
and often raise them."""

HELD_OUT = 0.1
"""Share of the entries that "held_out" leaves out."""

WORK = 0.02
"""Work limit of a search on a subsample, about seconds of a core: a few descents per chain."""
