"""The estimator `OrthogonalNMF`: clustering by orthogonal nonnegative matrix factorization."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_non_negative

from .._core import default_work
from .._internal.checks import DataLike, FloatArray, IntArray, as_int, is_sparse
from ..data import (
    DENSE_COVARIANCE_LIMIT,
    ROWS,
    Gram,
    as_bytes,
    blocks_of,
    check_complete,
    check_magnitude,
    check_memory,
    concatenate_blocks,
    is_lazy,
)
from ..penalties import NonNegative
from ..result import Result
from ..solvers import OBCD, SEARCH, Auto
from .base import Estimator, default_components, problem_of
from .dask import Mapped, checked_chunks

if TYPE_CHECKING:
    from typing_extensions import Self


WORK = 0.8
"""Largest work of a search with the effort 1, about seconds of a core. A tenth of it suffices for
the 1797 samples of the digits."""


RUNS, VISITED = 10, 1e7
"""Largest number of runs of `by_lines`, and the product of samples, features and clusters that all
runs together may have."""

STEPS = 100
"""Largest number of steps of a run of `by_lines`."""


def by_lines(data: Any, r: int, seed: int) -> FloatArray | None:
    """Memberships of r clusters of samples about lines through 0, the best of some runs.

    A step assigns each sample to the line with the largest inner product, and makes a step of the
    power method for the line of each cluster (k-plane clustering, Bradley and Mangasarian 2000).
    None if a cluster of the best run is empty.
    """
    if not is_sparse(data):
        # The same bits for every layout and type.
        data = np.ascontiguousarray(data, dtype=np.float64)
    m, n = data.shape
    rng, best, highest = np.random.default_rng(seed), None, 0.0
    for _ in range(int(np.clip(VISITED / (m * n * r), 1, RUNS))):
        rows = data[rng.choice(m, r, replace=False)]
        lines = np.asarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64)
        labels = None
        for _ in range(STEPS):
            products = likeness(data, lines)
            before, labels = labels, np.argmax(products, axis=1)
            x = np.zeros_like(products)
            x[np.arange(m), labels] = products[np.arange(m), labels]
            lines = np.asarray((data.T @ x).T)
            if before is not None and (before == labels).all():
                break
        norms = np.linalg.norm(x, axis=0)
        if not norms.all():
            continue
        explained = float(np.sum((lines / norms[:, None]) ** 2))
        if explained > highest:
            highest, best = explained, x / norms
    return best


def likeness(data: Any, components: FloatArray) -> FloatArray:
    """Inner products of samples with the normalised profiles ``components``."""
    norms = np.linalg.norm(components, axis=1)
    return np.asarray(data @ (components / np.where(norms > 0.0, norms, 1.0)[:, None]).T)


def _products(data: Any, x: FloatArray) -> tuple[FloatArray, float]:
    """``dataᵀ x`` and ``‖data‖²``, with the same bits for every layout and type of dense data."""
    if is_sparse(data):
        return np.asarray(data.T @ x), float(np.sum(np.asarray(data.data) ** 2))
    products, total = np.zeros((data.shape[1], x.shape[1])), 0.0
    for start in range(0, data.shape[0], ROWS):
        block = np.ascontiguousarray(data[start : start + ROWS], dtype=np.float64)
        products += block.T @ x[start : start + ROWS]
        total += float(np.sum(block**2))
    return products, total


def _nonnegative(data: Any) -> Any:
    check_non_negative(data, "OrthogonalNMF")
    return data.astype(np.float64, copy=False)


def _memberships_of(data: Any, components: FloatArray) -> FloatArray:
    products = likeness(_nonnegative(data), components)
    best, rows = np.argmax(products, axis=1), np.arange(len(products))
    out = np.zeros_like(products)
    norms = np.linalg.norm(components, axis=1)
    out[rows, best] = products[rows, best] / np.where(norms > 0.0, norms, 1.0)[best]
    return out


def _labels_of(data: Any, components: FloatArray) -> IntArray:
    return np.asarray(np.argmax(likeness(_nonnegative(data), components), axis=1))


# Not a ClusterMixin: scikit-learn's checks pass data with negative entries to clusterers.
@dataclass(eq=False, repr=False, kw_only=True)
class OrthogonalNMF(Estimator):
    """Nonnegative matrix factorization with orthogonal memberships: a clustering of the samples.

    Minimises ``‖A − XY‖_F²`` over X ≥ 0 with orthonormal columns and Y ≥ 0. The best Y for a given
    X is XᵀA, as A is nonnegative. The best X then maximises ``‖AᵀX‖_F²``: nonnegative PCA of Aᵀ. As
    the columns of X are nonnegative and orthogonal, every sample belongs to one cluster at most.

    Parameters
    ----------
    n_components : int, optional
        Number of clusters. By default at most 10, at most n_samples and at most half of the
        features.
    solver : orthobcd.Auto or orthobcd.OBCD, optional
        The solver; `Auto` by default.
    precision : {"auto", "fast", "exact"}, default "auto"
        How AAᵀ is formed for up to 4096 samples, as in `SparsePCA` with samples and features
        interchanged.
    max_memory : float or str, optional
        Largest number of bytes for AAᵀ, as in `SparsePCA`.
    max_time, max_work, effort, tol, random_state, n_jobs, verbose
        As in `SparsePCA`.

    Raises
    ------
    ValueError, TypeError
        By `fit`, if a parameter is not valid or the data has a negative entry.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Y, a nonnegative profile per cluster, by decreasing ``‖y_k‖``.
    membership_ : ndarray of shape (n_samples, n_components)
        X, with orthonormal columns: the weight of each sample in its cluster.
    labels_ : ndarray of int of shape (n_samples,)
        The cluster of each sample: the column of its positive entry in X; for a zero row of X the
        cluster whose profile has the smallest angle to the sample.
    reconstruction_err_ : float
        ``‖A − XY‖_F``.
    result_ : Result or None
        Result of the solve; its columns are not ordered. None for a single sample.
    n_components_ : int
        Number of clusters.
    n_iter_ : int
        Sweeps of the solve.
    precision_ : {"fast", "exact"}
        How AAᵀ was formed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if the data has names.

    Examples
    --------
    >>> import numpy as np
    >>> from orthobcd import OrthogonalNMF
    >>> A = np.array([[4.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.1, 2.0]])
    >>> nmf = OrthogonalNMF(2, random_state=0).fit(A)
    >>> nmf.labels_.tolist()
    [0, 0, 1, 1]
    >>> nmf.predict([[6.0, 3.0, 0.0]]).tolist(), nmf.transform([[6.0, 3.0, 0.0]]).shape
    ([0], (1, 2))
    >>> OrthogonalNMF(2, random_state=0).fit_predict(A).tolist()
    [0, 0, 1, 1]
    """

    solver: Auto | OBCD | None = None

    def fit(
        self,
        X: DataLike,
        y: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> Self:
        """Cluster the samples.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data, nonnegative. Blocks of rows, as in `SparsePCA.fit`, are joined in memory, because
            clustering needs all samples at once.
        y : None
            Ignored.
        checkpoint, checkpoint_every
            As in `SparsePCA.fit`.

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
            data = concatenate_blocks(list(self._blocks(X, reset=True)))
            check_magnitude(data)
            m, n = data.shape
            if m <= DENSE_COVARIANCE_LIMIT:
                check_memory(limit, m, "samples")
            r = default_components(m, n) if self.n_components is None else self.n_components
            r = as_int("n_components", r, 1, m)
            run.show("second moments")
            gram = Gram.of(data.T, self.precision, False, False, None, run.n_threads)
            result: Result | None = None
            start: Any
            x = np.ones((1, 1))
            if m > 1:
                problem = problem_of(gram, r, NonNegative())
                solver, start, effort = self.solver or SEARCH, "spectral", run.effort
                if isinstance(solver, Auto):
                    start = by_lines(data, r, run.seed)
                    effort *= min(1.0, WORK / default_work(problem))
                result = run.result = self._part(run, problem, start, solver, effort=effort)
                x = result.x
            self.result_, self.precision_ = result, gram.precision
            self._describe(data, x)
            return self._ended(run)

    def _describe(self, data: Any, x: FloatArray) -> None:
        """Sets the fitted attributes from the memberships x."""
        products, total = _products(data, x)
        profiles = np.maximum(products.T, 0.0)
        order = np.argsort(-np.linalg.norm(profiles, axis=1), kind="stable")
        self.components_ = profiles[order]
        self.n_components_ = len(profiles)
        self.membership_: FloatArray = x[:, order]
        absent = ~self.membership_.any(axis=1)
        self.labels_: IntArray = np.argmax(self.membership_, axis=1)
        self.labels_[absent] = _labels_of(data, self.components_)[absent]
        explained = float(np.sum(self.components_**2))
        self.reconstruction_err_ = float(np.sqrt(max(total - explained, 0.0)))
        self.n_iter_ = 1 if self.result_ is None else max(1, self.result_.n_sweeps)

    def fit_predict(self, X: DataLike, y: Any = None) -> IntArray:
        """Cluster the samples; returns the cluster of each.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data, nonnegative.
        y : None
            Ignored.

        Returns
        -------
        ndarray of int of shape (n_samples,)

        Raises
        ------
        ValueError, TypeError, KeyboardInterrupt
            As `fit`.
        """
        return self.fit(X).labels_

    def _data(self, X: Any, **options: Any) -> Any:
        data = self._samples(X, **options)
        check_complete(data, "fill them in first, for instance with sklearn.impute")
        return _nonnegative(data)

    def _blocks(self, X: Any, *, reset: bool) -> Iterator[Any]:
        """Blocks of checked rows of X."""
        if is_lazy(X):
            yield from checked_chunks(X, Mapped(_nonnegative, (), self._check_of(X, reset=reset)))
            return
        blocks = blocks_of(X)
        if blocks is None:
            yield self._data(X, reset=reset)
            return
        yield from blocks.checked(lambda k, block: self._data(block, reset=reset and k == 0))

    def _pieces(self, X: Any) -> Iterator[Any]:
        return self._blocks(X, reset=False)

    def transform(self, X: DataLike) -> FloatArray:
        """Memberships W ≥ 0 that minimise ``‖X − W components_‖_F``, at most one per sample.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data, nonnegative, or blocks of its rows, as in `SparsePCA.fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            A lazy Dask array for a Dask collection.

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If X does not have the features of the fit, or has a negative entry.
        """
        check_is_fitted(self)
        r, components = len(self.components_), self.components_
        return self._mapped(X, _memberships_of, r, components)

    def predict(self, X: DataLike) -> IntArray:
        """The cluster of each sample: the one whose profile has the smallest angle to the sample.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data, nonnegative, or blocks of its rows, as in `SparsePCA.fit`.

        Returns
        -------
        ndarray of int of shape (n_samples,)

        Raises
        ------
        NotFittedError
            Before `fit`.
        ValueError
            If X does not have the features of the fit, or has a negative entry.
        """
        check_is_fitted(self)
        return self._mapped(X, _labels_of, None, self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
