"""The estimator `NonnegativePCA`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..data import Gram
from ..penalties import NonNegative
from ..result import Result
from ..solvers import DESCENT, OBCD, SEARCH, Auto
from ..solving import Solve
from .base import OrthonormalPCA, problem_of


@dataclass(eq=False, repr=False, kw_only=True)
class NonnegativePCA(OrthonormalPCA):
    """PCA with nonnegative, exactly orthonormal components, whose supports are disjoint.

    Maximises the explained variance over X ≥ 0 with orthonormal columns. As the columns are
    nonnegative and orthogonal, every feature belongs to one component at most.

    Parameters
    ----------
    n_components : int, optional
        Number of components. By default at most 10, at most n_samples and at most half of the
        features.
    n_nonzero : int or sequence of int, optional
        Largest number of nonzero loadings, in all components together or per component, as in
        `SparsePCA`.
    include : sequence of int or str, or a sequence of sequences, optional
        With ``n_nonzero``: features, by index or name, in the support of every component, or a
        sequence of features for each component, as in `SparsePCA`.
    exclude : sequence of int or str, or a sequence of sequences, optional
        With ``n_nonzero``: features, by index or name, whose loadings are zero in all components,
        or a sequence of features for each component, as in `SparsePCA`.
    solver : orthobcd.Auto or orthobcd.OBCD, optional
        The solver; `Auto` by default.
    warm_start : bool, default False
        Start at the components of the previous fit. Without ``solver`` and ``n_nonzero`` `OBCD`
        then replaces the search of `Auto`.
    center, scale, missing, max_time, max_work, effort, tol, random_state, n_jobs, verbose, \
precision, max_memory
        As in `SparsePCA`.

    Raises
    ------
    ValueError, TypeError
        By `fit`, if a parameter is not valid; the message names it.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal, nonnegative rows, by explained variance or in the order of ``n_nonzero``.
    mean_, scale_, explained_variance_, explained_variance_ratio_, score_correlation_, n_nonzero_,
    objective_, result_, n_iter_, precision_, n_features_in_, feature_names_in_
        As in `SparsePCA`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orthobcd import NonnegativePCA
    >>> pca = NonnegativePCA(n_components=5, random_state=0).fit(load_digits().data)
    >>> bool((pca.components_ >= 0.0).all())
    True
    """

    solver: Auto | OBCD | None = None

    def _check(self, n: int, r: int) -> None:
        self._limit = None
        if self.n_nonzero is not None:
            self._limit = self._cardinality(n, r, nonnegative=True)
            return
        for name in ("include", "exclude"):
            if getattr(self, name) is not None:
                raise ValueError(f"{name} needs n_nonzero")

    def _solve(self, run: Solve, gram: Gram, r: int) -> Result:
        start = self._warm(len(gram.mean), r)
        if self._limit is not None:
            return self._part(run, problem_of(gram, r, self._limit), start, self.solver)
        problem = problem_of(gram, r, NonNegative())
        solver = self.solver or (SEARCH if start is None else DESCENT)
        x0: Any = start
        if start is None and isinstance(solver, OBCD):
            x0 = "spectral"
        return self._part(run, problem, x0, solver)
