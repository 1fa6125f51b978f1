"""The solves of one `SparsePCA` fit: for a penalty, its weight, or a number of nonzeros."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .._internal.checks import FloatArray
from .._internal.progress import live
from ..penalties import L1, Cardinality, Penalty, RowSparse
from ..problems import SparsePCAProblem, StiefelProblem
from ..regularization import RegularizationPath, path_of, penalty_of
from ..result import PathPoint, Result, Status
from ..solvers import OBCD, RATIO, STAGE_TOLERANCE, Auto, Continuation
from ..solving import solve
from .fitting import Fitting

SUPPORT_WORK = 0.2
"""Work units of the search for the support of a number of nonzeros over which the ℓ1 path jumps."""

WEIGHTS = 40
"""Penalty weights tried on a support, each `RATIO` times the one before: down to 1e-9 times."""

BARRIER = 1e6
"""Penalty weight of entries outside of the support, in units of ``alpha_max_``."""


class SparseFit:
    """The solves of one `SparsePCA` fit: path, search, and their limits."""

    def __init__(
        self,
        pca: Any,
        fitting: Fitting,
        problem: SparsePCAProblem | StiefelProblem,
        warm: FloatArray | None,
    ) -> None:
        self.pca = pca
        self.deadline = fitting.deadline
        self.problem = problem
        self.warm = warm
        self.options = pca._options(fitting)
        # Descents solve the stages of the path, for any solver that starts at the end of the path.
        self.sweeps = pca.solver if isinstance(pca.solver, OBCD) else OBCD()
        self.searches = pca.solver is None or isinstance(pca.solver, Auto)

    def path(self, tol: float, **which: Any) -> RegularizationPath:
        """The path, by descents from the known optimum for a large penalty weight."""
        options = {**self.options, "tol": tol}
        del options["effort"]  # A path is descents, without a search.
        path = path_of(self.problem, self.pca.penalty, solver=self.sweeps, **which, **options)
        # The points are dense and many: a fitted estimator keeps the path without them.
        self.pca.path_ = dataclasses.replace(path, results=())
        return path

    def solve(self, penalty: Penalty, start: Any, solver: Any, **limits: Any) -> Result:
        """Solves the problem with a penalty."""
        options = {**self.options, "max_time": self.deadline.left(), **limits}
        with live(options["verbose"], None) as line:
            if line is not None:
                line.stage(type(solver).__name__)
            return solve(self.problem.with_penalty(penalty), start, solver=solver, **options)

    def at_penalty(self, penalty: Penalty) -> Result:
        """The components for a penalty object."""
        if self.warm is not None:
            return self.solve(penalty, self.warm, self.pca.solver or OBCD())
        start = "spectral" if isinstance(self.pca.solver, OBCD) else None
        return self.solve(penalty, start, self.pca.solver or Auto())

    def at_alpha(self, alpha: float) -> Result:
        """The components for the penalty weight ``alpha``."""
        penalty = penalty_of(self.pca.penalty, alpha)
        if self.warm is not None or (self.searches and alpha < self.pca.alpha_max_):
            return self.at_penalty(penalty)
        loose = max(self.options["tol"], STAGE_TOLERANCE)
        path = self.path(loose, alphas=_approach(self.pca.alpha_max_, alpha))
        last = path.results[-1]
        if last.status is Status.INTERRUPTED:
            return self.as_result(alpha, last)
        if isinstance(self.pca.solver, Continuation) and last.lam == alpha < self.pca.alpha_max_:
            return self.solve(penalty, None, self.pca.solver)
        return self.solve(penalty, last.x, self.sweeps)

    def at_count(self, limit: Cardinality | RowSparse) -> Result:
        """The components under a limit on nonzero loadings or on features."""
        start = self.warm
        problem = self.problem.with_penalty(limit)
        path = not self.searches and isinstance(limit, Cardinality) and not limit.nonnegative
        if start is None and path and isinstance(limit, Cardinality):
            total = limit.count if isinstance(limit.count, int) else sum(limit.count)
            near = self.within(total)[1]
            start = near.x
            if near.status is Status.INTERRUPTED:
                here = solve(problem, start, **{**self.options, "max_time": 0.0})
                return dataclasses.replace(here, status=near.status)
        return solve(problem, start, **{**self.options, "max_time": self.deadline.left()})

    def within(self, count: int) -> tuple[float, Result]:
        """Penalty weight and result with at most ``count`` nonzeros: of the path, or of a support.

        The ℓ1 path jumps over numbers of nonzeros where features are alike. Then the support is
        that of the best components with ``count`` nonzeros.
        """
        path = self.path(self.options["tol"], n_nonzero=count)
        nearest = path.results[path.within(count)]
        if any(point.status is Status.INTERRUPTED for point in path.results):
            nearest = dataclasses.replace(nearest, status=Status.INTERRUPTED)
        elif self.pca.penalty == "l1" and nearest.n_nonzero < count:
            return self._on_support(nearest, count)
        return nearest.lam, self.as_result(nearest.lam, nearest)

    def _on_support(self, sparser: PathPoint, count: int) -> tuple[float, Result]:
        """ℓ1 on the best support of ``count`` entries, with the largest weight that keeps them.

        The weights tried are those of ``sparser`` and smaller ones; without one that keeps all
        entries the result is ``sparser``.
        """
        options = {**self.options, "max_time": self.deadline.left()}
        best = solve(
            self.problem.with_penalty(Cardinality(count)), max_work=SUPPORT_WORK, **options
        )
        lam, barred = sparser.lam, BARRIER * self.pca.alpha_max_
        for _ in range(WEIGHTS if best.n_nonzero == count else 0):
            lam *= RATIO
            weights = L1(np.where(best.x != 0.0, lam, barred))
            options["max_time"] = self.deadline.left()
            here = solve(self.problem.with_penalty(weights), best.x, solver=self.sweeps, **options)
            if here.n_nonzero == count or here.status is Status.INTERRUPTED:
                at_lam = penalty_of(self.pca.penalty, lam)
                point = self.solve(at_lam, here.x, self.sweeps, max_sweeps=0)
                return lam, dataclasses.replace(point, status=here.status)
        return sparser.lam, self.as_result(sparser.lam, sparser)

    def as_result(self, alpha: float, point: PathPoint) -> Result:
        """A point of a path as a result."""
        penalty = penalty_of(self.pca.penalty, alpha)
        here = self.solve(penalty, point.x, self.sweeps, max_sweeps=0)
        return dataclasses.replace(here, status=point.status)


def _approach(top: float, alpha: float) -> FloatArray:
    """Penalty weights from ``top`` down to ``alpha``, geometric with a ratio of about `RATIO`."""
    if alpha >= top or top == 0.0:
        return np.array([alpha])
    last = max(alpha, 1e-4 * top)
    steps = int(np.ceil(np.log(last / top) / np.log(RATIO)))
    path = np.geomspace(top, last, max(steps, 1) + 1)
    return path if last == alpha else np.append(path, alpha)
