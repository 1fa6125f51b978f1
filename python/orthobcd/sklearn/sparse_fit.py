"""One fit of a `SparsePCA`: the path, the solve that starts at it, the wanted count."""

from __future__ import annotations

import dataclasses
import time
from functools import cached_property
from typing import Any

import numpy as np

from .._core import default_work
from .._internal.checks import FloatArray, as_int
from .._internal.progress import live
from ..penalties import L0
from ..problems import SparsePCAProblem, StiefelProblem
from ..regularization import RegularizationPath, path_of, penalty_of
from ..result import PathPoint, Result, Status
from ..solvers import OBCD, RATIO, Auto, Continuation
from ..solving import minimize_at_count, solve

STAGE_TOLERANCE = 1e-5
"""Tolerance of the stages of a path that only leads to a start."""

COUNT_SHARE = 0.6
"""Share of ``max_time``, or of the work, for the penalty that has about the wanted number of
nonzeros; the rest is for the exchanges towards it."""

COUNT_ROUNDS = 6
"""Most penalties tried on the way to a wanted number of nonzeros."""

USUAL_ROUNDS = 3
"""How many are enough on most data: each has that part of the time left, or of the work."""

COUNT_NEAR = 0.1
"""Relative distance from the wanted number of nonzeros at which no other penalty is tried."""

FIRST_PENALTY = 0.1
"""The first of them, in units of the largest penalty that matters."""

FACTOR = 30.0
"""By how much one differs from the next at most."""


class SparseFit:
    """One fit of a `SparsePCA`: the path, the solve that starts at it, the wanted count."""

    def __init__(
        self, pca: Any, problem: SparsePCAProblem | StiefelProblem, warm: FloatArray | None
    ) -> None:
        self.pca = pca
        self.problem = problem
        self.warm = warm
        self.options = pca._options()
        self.started = time.perf_counter()
        # The path is made of descents, whatever starts at its end.
        self.sweeps = pca.solver if isinstance(pca.solver, OBCD) else OBCD()
        self.searches = pca.solver is None or isinstance(pca.solver, Auto)

    def left(self, share: float = 1.0) -> float | None:
        """``share`` of the time limit, less what is spent."""
        limit = self.options["max_time"]
        if limit is None:
            return None
        return max(share * float(limit) - (time.perf_counter() - self.started), 0.0)

    @cached_property
    def work(self) -> float:
        """That of a search without any limit; asking for it reads the data."""
        return float(default_work(self.problem))

    def limits(self, share: float) -> dict[str, Any]:
        """Every option of a solve that is given so much of the time, or of the work."""
        left = self.left(share)
        work = None if left is not None else share * self.work
        return {**self.options, "max_time": left, "max_work": work}

    def priced(self, alpha: float) -> StiefelProblem:
        """The problem at a penalty."""
        return self.problem.with_penalty(penalty_of(self.pca.penalty, alpha))

    def path(self, tol: float, **which: Any) -> RegularizationPath:
        """The path, by descents from the known optimum of a large penalty on."""
        path = path_of(
            self.problem,
            self.pca.penalty,
            solver=self.sweeps,
            **which,
            **{**self.options, "tol": tol},
        )
        # Its points are dense, and many: a fitted estimator keeps what is read of them.
        self.pca.path_ = dataclasses.replace(path, results=())
        return path

    def solve(self, alpha: float, start: FloatArray | None, solver: Any, **limits: Any) -> Result:
        """A solve at a penalty."""
        options = {**self.options, "max_time": self.left(), **limits}
        with live(options["verbose"], None) as line:
            if line is not None:
                line.stage(type(solver).__name__)
            return solve(self.priced(alpha), start, solver=solver, **options)

    def exchanged(
        self, alpha: float, x: FloatArray, count: int, limited: bool = True
    ) -> Result | None:
        """A point with ``count`` nonzeros from one with about as many."""
        limits = self.limits(1.0)
        if limits["max_work"] is not None:
            limits["max_work"] = (1.0 - COUNT_SHARE) * limits["max_work"] if limited else None
        kept = ("max_time", "max_work", "tol", "verbose")
        problem = self.problem.with_penalty(L0(alpha))
        return minimize_at_count(problem, x, count, **{name: limits[name] for name in kept})

    def at_penalty(self, alpha: float) -> Result:
        """The components for a penalty."""
        if self.warm is not None:
            return self.solve(alpha, self.warm, self.pca.solver or OBCD())
        if self.searches and alpha < self.pca.alpha_max_:
            return self.solve(alpha, None, self.pca.solver or Auto())
        loose = max(self.options["tol"], STAGE_TOLERANCE)
        path = self.path(loose, lams=_approach(self.pca.alpha_max_, alpha))
        last = path.results[-1]
        if isinstance(self.pca.solver, Continuation) and last.lam == alpha < self.pca.alpha_max_:
            return self.solve(alpha, None, self.pca.solver)
        return self.solve(alpha, last.x, self.sweeps)

    def around(self, count: int) -> list[tuple[float, Result]]:
        """Penalties with good components of about ``count`` nonzeros, the nearest number first."""
        tried: list[tuple[float, Result]] = []
        alpha = FIRST_PENALTY * self.pca.alpha_max_
        r = self.problem.n_components
        for _ in range(COUNT_ROUNDS):
            limits = self.limits(COUNT_SHARE)
            if limits["max_time"] == 0.0 and tried:
                break
            # How many will come is not known.
            for name in ("max_time", "max_work"):
                if limits[name] is not None:
                    limits[name] /= USUAL_ROUNDS
            at = solve(self.priced(alpha), solver=self.pca.solver or Auto(), **limits)
            tried.append((alpha, at))
            if abs(at.n_nonzero / count - 1.0) <= COUNT_NEAR or at.status is Status.INTERRUPTED:
                break
            alpha = _next_penalty(tried, count, r, self.pca.alpha_max_)
            if any(alpha == other for other, _ in tried):
                break
        # Entries are added more easily than dropped.
        return sorted(
            tried, key=lambda pair: max(count - pair[1].n_nonzero, 2 * (pair[1].n_nonzero - count))
        )

    def at_count(self, count: int) -> tuple[float, Result]:
        """A penalty and components with ``count`` nonzeros, or the nearest number met."""
        n, r = self.problem.shape
        if as_int("n_nonzero", count, r) > n * r:
            raise ValueError(f"n_nonzero must be at most {n * r}, got {count}")
        if self.warm is not None and self.pca.penalty == "l0":
            result = self.exchanged(self.pca.alpha_, self.warm, count)
            if result is not None:
                return self.pca.alpha_, result
        if self.pca.penalty == "l0" and self.searches:
            tried = self.around(count)
        else:
            path = self.path(self.options["tol"], n_nonzero=count)
            nearest = path.results[path.nearest(count)]
            tried = [(nearest.lam, self.as_result(nearest.lam, nearest))]
            if self.pca.penalty == "l1":
                return tried[0]
        for limited in (True, False):
            for alpha, point in tried:
                exact = self.exchanged(alpha, point.x, count, limited)
                if exact is not None:
                    return alpha, exact
        return tried[0]

    def as_result(self, alpha: float, point: PathPoint) -> Result:
        """The result that is a point of a path."""
        here = self.solve(alpha, point.x, self.sweeps, max_sweeps=0)
        return dataclasses.replace(here, status=point.status)


def _next_penalty(tried: list[tuple[float, Result]], count: int, r: int, top: float) -> float:
    """A penalty nearer to ``count`` nonzeros.

    Between those that have more and fewer, in proportion of the logarithms; or beyond all of them,
    as on real data the number of nonzeros falls about like the square root of the penalty.
    """
    more = [(a, p.n_nonzero) for a, p in tried if p.n_nonzero > count]
    fewer = [(a, p.n_nonzero) for a, p in tried if p.n_nonzero < count]
    if more and fewer:
        (low, many), (high, few) = max(more), min(fewer)
        share = np.log(many / count) / np.log(many / max(few, 1))
        return float(low * (high / low) ** np.clip(share, 0.1, 0.9)) if low < high else low
    alpha, nonzeros = min(fewer) if fewer else max(more)
    if nonzeros <= r:
        return min(alpha, top) / FACTOR
    return float(alpha * np.clip((nonzeros / count) ** 2, 1.0 / FACTOR, FACTOR))


def _approach(top: float, alpha: float) -> FloatArray:
    """Penalties from ``top`` down to ``alpha``, geometric with a ratio of about `RATIO`."""
    if alpha >= top or top == 0.0:
        return np.array([alpha])
    last = max(alpha, 1e-4 * top)
    steps = int(np.ceil(np.log(last / top) / np.log(RATIO)))
    path = np.geomspace(top, last, max(steps, 1) + 1)
    return path if last == alpha else np.append(path, alpha)
