"""The estimator `NonnegativePCA`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from .._internal.checks import Integers
from .._internal.gram import Gram
from .._internal.solve import Solve
from ..penalties import NonNegative
from ..result import Result
from ..solvers import OBCD, Auto
from .base import Features, OrthonormalPCA, problem_of
from .data import PrecisionName


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
    center : bool, default True
        Subtract the means. Sparse data stays sparse.
    scale : bool, default False
        Divide by the standard deviations.
    missing : {"em"}, optional
        Treatment of missing values, as in `SparsePCA`; an error by default.
    solver : orthobcd.Auto or orthobcd.OBCD, optional
        The solver; `Auto` by default.
    max_time : float, optional
        Time limit of a fit in seconds, from its call on; the search gets the time that the second
        moments leave. A fit that ends by itself ends earlier, as without a limit: after counted
        work, which takes from a tenth of a second to about 12 seconds, or up to 101 for a million
        features (the manual has a table by size). If this bound ended the fit, ``result_.status``
        is ``MAX_WORK``.
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
        Start at the components of the previous fit. Without ``solver`` and ``n_nonzero`` `OBCD`
        then replaces the search of `Auto`.
    verbose : bool, default False
        Show a live line of progress, see `orthobcd.solve`.
    precision : {"auto", "fast", "exact"}, default "auto"
        How the second moments are formed, as in `SparsePCA`.
    max_memory : float or str, optional
        Largest number of bytes for the second moments, as in `SparsePCA`.

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

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_nonzero: int | Sequence[int] | Integers | None = None,
        include: Features | None = None,
        exclude: Features | None = None,
        center: bool = True,
        scale: bool = False,
        missing: Literal["em"] | None = None,
        solver: Auto | OBCD | None = None,
        max_time: float | None = None,
        max_work: float | None = None,
        effort: float = 1.0,
        tol: float = 1e-10,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: bool = False,
        precision: PrecisionName = "auto",
        max_memory: float | str | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero = n_nonzero
        self.include = include
        self.exclude = exclude
        self.center = center
        self.scale = scale
        self.missing = missing
        self.solver = solver
        self.max_time = max_time
        self.max_work = max_work
        self.effort = effort
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.precision = precision
        self.max_memory = max_memory

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
        solver = self.solver or (Auto() if start is None else OBCD())
        x0: Any = start
        if start is None and isinstance(solver, OBCD):
            x0 = "spectral"
        return self._part(run, problem, x0, solver)
