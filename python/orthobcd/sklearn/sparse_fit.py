"""One fit of a `SparsePCA`: the path, the solve that starts at it, the wanted count."""

from __future__ import annotations

import dataclasses
import time
from typing import Any, cast

import numpy as np

from .._internal.checks import FloatArray
from .._internal.progress import live
from .._internal.run import limited_work
from ..penalties import L0
from ..problems import SparsePCAProblem, StiefelProblem
from ..regularization import RegularizationPath, penalty_of, regularization_path
from ..result import PathPoint, Result
from ..solvers import OBCD, RATIO, Continuation
from ..solving import minimize_at_count, solve

COUNT_WORK = 3.0
"""How many times that work a fit with a wanted number of nonzeros is given: where most rows are
zero, pairs take a fifth of the time that is counted for them."""

PATH_SHARE = 0.3
"""Share of ``max_time``, or of the work, for the regularisation path; the rest is for what starts
at it."""

STAGE_TOLERANCE = 1e-5
"""Tolerance of the stages of a path that only leads to a start."""

COUNT_SHARE = 0.85
"""Share of ``max_time`` that is spent when the exchanges towards a wanted number begin."""

COUNT_ROUNDS = 3
FREE_COUNT_ROUNDS = 2
"""Most penalties tried with `Auto` on the way to a wanted number of nonzeros, with a time limit and
without."""

COUNT_NEAR = 0.1
"""Relative distance from the wanted number of nonzeros at which no other penalty is tried."""


class SparseFit:
    """One fit of a `SparsePCA`: the path, the solve that starts at it, the wanted count."""

    def __init__(self, pca: Any, problem: SparsePCAProblem, warm: FloatArray | None) -> None:
        self.pca = pca
        self.problem = problem
        self.warm = warm
        self.options = pca._options()
        self.default = pca._default(problem.smooth.n_rows, pca.penalty)
        self.started = time.perf_counter()
        # The path is made of descents, whatever starts at its end.
        self.sweeps = pca.solver if isinstance(pca.solver, OBCD) else OBCD()

    def left(self, share: float = 1.0) -> float | None:
        """``share`` of the time limit, less what is spent."""
        limit = self.options["max_time"]
        if limit is None:
            return None
        return max(share * float(limit) - (time.perf_counter() - self.started), 0.0)

    def work(self, share: float) -> float | None:
        """``share`` of the work, unless a solver was chosen or there is a time limit."""
        if self.pca.solver is not None:
            return None
        more = 1.0 if self.pca.n_nonzero is None else COUNT_WORK
        work: float | None = self.pca._work(self.problem.smooth.n_rows, more * share)
        return work

    def priced(self, alpha: float) -> StiefelProblem:
        """The problem at a penalty."""
        return self.problem.with_penalty(penalty_of(self.pca.penalty, alpha))

    def path(self, tol: float, **which: Any) -> RegularizationPath:
        """The path, by descents from the known optimum of a large penalty on."""
        share = 1.0 if isinstance(self.pca.solver, OBCD) else PATH_SHARE
        options = {**self.options, "max_time": self.left(share), "tol": tol}
        with limited_work(self.work(PATH_SHARE)):
            path = regularization_path(
                self.problem.A,
                self.problem.n_components,
                self.pca.penalty,
                center=self.problem.center,
                solver=self.sweeps,
                **which,
                **options,
            )
        # Its points are dense, and many: a fitted estimator keeps what is read of them.
        self.pca.path_ = dataclasses.replace(path, results=())
        return path

    def solve(self, alpha: float, start: FloatArray | None, solver: Any, **more: Any) -> Result:
        """A solve at a penalty."""
        share = 1.0 if self.pca.n_nonzero is None else COUNT_SHARE
        options = {**self.options, "max_time": self.left(share), **more}
        with live(options["verbose"], None) as line:
            if line is not None:
                line.stage(type(solver).__name__)
            with limited_work(self.work(0.3)):
                return solve(self.priced(alpha), start, solver=solver, **options)

    def improved(self, alpha: float, point: PathPoint | Result) -> Result | None:
        """The solver of the estimator, from a point of the path; None if that stands."""
        solver = self.pca.solver
        start = None if isinstance(solver, Continuation) else point.x
        if isinstance(solver, OBCD) or alpha >= self.pca.alpha_max_:
            return None
        limits: dict[str, Any] = {}
        if solver is None:
            solver, limits = self.default
        if solver is not None:
            return self.solve(alpha, start, solver, **limits)
        if self.pca.penalty == "l1":
            return None
        # Exchanges at the same number of nonzeros, then pairs: what a large problem can afford.
        exchanged = self.exchanged(alpha, point.x, point.n_nonzero)
        if exchanged is None or exchanged.objective >= point.objective:
            return None
        return self.solve(alpha, exchanged.x, self.sweeps)

    def exchanged(self, alpha: float, x: FloatArray, count: int) -> Result | None:
        """A point with ``count`` nonzeros from one with about as many."""
        problem = self.problem.with_penalty(L0(alpha))
        with limited_work(self.work(0.1)):
            return minimize_at_count(
                problem,
                x,
                count,
                max_time=self.left(),
                tol=self.options["tol"],
                verbose=self.options["verbose"],
            )

    def at_penalty(self, alpha: float) -> Result:
        """The components for a penalty."""
        if self.warm is not None:
            return self.solve(alpha, self.warm, self.pca.solver or OBCD())
        loose = max(self.options["tol"], STAGE_TOLERANCE)
        path = self.path(loose, lams=_approach(self.pca.alpha_max_, alpha))
        last = path.results[-1]
        point = self.improved(alpha, last) if last.lam == alpha else None
        # Nothing but descents is wanted, or the time was up on the way.
        return self.solve(alpha, last.x, self.sweeps) if point is None else point

    def around(self, point: PathPoint, count: int) -> list[tuple[float, Result | PathPoint]]:
        """Penalties with good components that have about ``count`` nonzeros."""
        tried: list[tuple[float, Result | PathPoint]] = []
        alpha, at = point.lam, cast("Result | PathPoint", point)
        most = COUNT_ROUNDS if self.left() is not None else FREE_COUNT_ROUNDS
        while len(tried) < most and self.left(COUNT_SHARE) != 0.0:
            at = self.improved(alpha, at) or at
            tried.append((alpha, at))
            ratio = at.n_nonzero / count
            if abs(ratio - 1.0) <= COUNT_NEAR or alpha == 0.0:
                break
            # On real data the number of nonzeros falls about like the square root of the penalty.
            alpha *= ratio**2
        return tried

    def at_count(self, count: int) -> tuple[float, Result]:
        """A penalty and components with ``count`` nonzeros, or the nearest number met."""
        if self.warm is not None and self.pca.penalty == "l0":
            result = self.exchanged(self.pca.alpha_, self.warm, count)
            if result is not None:
                return self.pca.alpha_, result
        path = self.path(self.options["tol"], n_nonzero=count)
        point = path.results[path.nearest(count)]
        if self.pca.penalty == "l1":
            return point.lam, self.as_result(point.lam, point)
        solver = self.default[0] if self.pca.solver is None else self.pca.solver
        several = solver is not None and not isinstance(solver, OBCD)
        tried = self.around(point, count) if several else []
        met: list[tuple[float, Result]] = []
        # The point of the path is the last resort.
        for price, start in [*tried, (point.lam, point)]:
            if start is point and met:
                break
            exact = self.exchanged(price, start.x, count)
            if exact is not None:
                met.append((price, exact))
        if met:
            return min(met, key=lambda pair: pair[1].smooth_value)
        tried.append((point.lam, point))
        alpha, best = min(
            tried, key=lambda pair: (abs(pair[1].n_nonzero - count), pair[1].objective)
        )
        return alpha, self.as_result(alpha, best)

    def as_result(self, alpha: float, point: PathPoint | Result) -> Result:
        """A result as it is; the result that is a point of a path."""
        if isinstance(point, Result):
            return point
        here = self.solve(alpha, point.x, self.sweeps, max_sweeps=0)
        return dataclasses.replace(here, status=point.status)


def _approach(top: float, alpha: float) -> FloatArray:
    """Penalties from ``top`` down to ``alpha``, geometric with a ratio of about `RATIO`."""
    if alpha >= top or top == 0.0:
        return np.array([alpha])
    last = max(alpha, 1e-4 * top)
    steps = int(np.ceil(np.log(last / top) / np.log(RATIO)))
    path = np.geomspace(top, last, max(steps, 1) + 1)
    return path if last == alpha else np.append(path, alpha)
