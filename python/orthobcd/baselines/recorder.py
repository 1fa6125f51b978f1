"""The clock and the logbook of a baseline run.

Scoring a point (projecting it to feasibility) is not part of any competitor's algorithm, so
the clock stands still meanwhile: rivals are never charged for our bookkeeping. Checkpoints are
taken at geometrically growing times, and the best feasible point seen at any of them, or at the
end, is what a method returns.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from .._checks import FloatArray, as_float_array
from ..result import Result, Status
from .geometry import orthonormality_error
from .oracle import Oracle
from .scoring import (
    FeasiblePoint,
    best_feasible,
    infeasibility,
    score_at_projection,
)


class Stopwatch:
    """Wall-clock seconds, minus the pauses."""

    def __init__(self) -> None:
        self._origin = time.perf_counter()
        self._paused_at: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds run so far."""
        now = time.perf_counter() if self._paused_at is None else self._paused_at
        return now - self._origin

    def pause(self) -> None:
        """Stop counting."""
        if self._paused_at is None:
            self._paused_at = time.perf_counter()

    def resume(self) -> None:
        """Count again."""
        if self._paused_at is not None:
            self._origin += time.perf_counter() - self._paused_at
            self._paused_at = None


def checked_start(oracle: Oracle, x0: object) -> FloatArray:
    """x0 as a finite (n, r) array that spans r dimensions.

    Raises
    ------
    ValueError
        If the shape is wrong or ``‖x0ᵀx0 − I‖`` exceeds 1e-6.
    """
    start = as_float_array("x0", x0, 2)
    if start.shape != (oracle.n, oracle.r):
        raise ValueError(f"x0 must have shape ({oracle.n}, {oracle.r}), got {start.shape}")
    if orthonormality_error(start) > 1e-6:
        raise ValueError("x0 must have orthonormal columns")
    return start


class Recorder:
    """Time limit, history and best feasible point of one run.

    Parameters
    ----------
    oracle : Oracle
        The problem.
    x0 : ndarray of shape (n, r) or None
        The start; row 0 of the history is its score.
    default_start : callable
        Makes the start when x0 is None; its time counts.
    max_time : float
        Seconds.
    seed : int
        Reported in the result.
    score : callable, optional
        Maps an iterate to a feasible point; `best_feasible` by default.
    """

    FIRST_CHECKPOINT = 0.02
    CHECKPOINT_RATIO = 1.5

    def __init__(
        self,
        oracle: Oracle,
        x0: FloatArray | None,
        default_start: Callable[[Oracle], FloatArray],
        *,
        max_time: float,
        seed: int,
        score: Callable[[FloatArray], FeasiblePoint] | None = None,
    ) -> None:
        self.oracle, self.max_time, self.seed = oracle, max_time, seed
        self.watch = Stopwatch()
        self._score = score
        self._next = self.FIRST_CHECKPOINT
        self._rows: list[tuple[float, float, float, int]] = []
        self.best: FeasiblePoint | None = None
        self.n_iterations = 0
        self.x0 = default_start(oracle) if x0 is None else checked_start(oracle, x0)
        self.submit(self.x0, thorough=False)

    @property
    def seconds(self) -> float:
        """Seconds the method has worked."""
        return self.watch.seconds

    @property
    def progress(self) -> float:
        """Share of the time limit that is used, at most 1."""
        return min(1.0, self.seconds / self.max_time)

    @property
    def out_of_time(self) -> bool:
        """Whether the time limit has passed."""
        return self.seconds >= self.max_time

    def step(self, x: FloatArray, sparse: FloatArray | None = None) -> bool:
        """Count one iteration, score ``x`` at a checkpoint, say whether time is left."""
        self.n_iterations += 1
        if self.seconds >= self._next:
            while self._next <= self.seconds:
                self._next *= self.CHECKPOINT_RATIO
            self.submit(x, sparse=sparse, thorough=False)
        return not self.out_of_time

    def submit(
        self, x: FloatArray, *, sparse: FloatArray | None = None, thorough: bool = True
    ) -> float:
        """Score ``x``, keep it if it is the best, and return its feasible objective."""
        self.watch.pause()
        point = (
            self._score(x)
            if self._score is not None
            else best_feasible(self.oracle, x, thorough=thorough, sparse=sparse)
        )
        if self.best is None or point.objective < self.best.objective:
            self.best = point
        self._rows.append(
            (
                self.watch.seconds,
                self.best.objective,
                infeasibility(self.oracle, self.best.x),
                self.n_iterations,
            )
        )
        self.watch.resume()
        return point.objective

    def result(
        self,
        x: FloatArray,
        *,
        method: str,
        converged: bool = False,
        sparse: FloatArray | None = None,
        **extra: object,
    ) -> Result:
        """Score the last iterate thoroughly and close the run."""
        self.submit(x, sparse=sparse)
        self.watch.pause()
        assert self.best is not None
        oracle = self.oracle
        best = self.best.x.copy()
        seconds, objective, feasibility, iterations = zip(*self._rows, strict=True)
        smooth_value = oracle.smooth_value(best)
        penalty_value = oracle.penalty_value(best)
        n = oracle.n
        return Result(
            x=best,
            objective=smooth_value + penalty_value,
            smooth_value=smooth_value,
            penalty_value=penalty_value,
            feasibility=infeasibility(oracle, best),
            status=Status.CONVERGED if converged else Status.MAX_TIME,
            n_iterations=self.n_iterations,
            n_sweeps=self.n_iterations // max(1, n * (n - 1) // 2),
            n_updates=self.n_iterations,
            seconds=self.watch.seconds,
            seed=self.seed,
            history={
                "seconds": np.asarray(seconds),
                "objective": np.asarray(objective),
                "feasibility": np.asarray(feasibility),
                "n_iterations": np.asarray(iterations, dtype=np.float64),
            },
            extra={
                "method": method,
                "objective_at_projection": score_at_projection(oracle, x),
                "last_infeasibility": infeasibility(oracle, x),
                **extra,
            },
        )
