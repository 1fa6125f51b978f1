"""The clock and the logbook of a baseline run.

The clock is paused while a point is scored (projected to feasibility), because scoring is not part
of any competitor's algorithm. Points are scored at checkpoints, whose times grow geometrically,
and at the end. A method returns the best feasible point of all scored points.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from orthobcd import L1, NoPenalty, Problem, Result, Status
from orthobcd._internal.checks import FloatArray, as_float, as_float_array, as_int

from .geometry import orthonormality_error, polar, random_stiefel
from .oracle import Oracle, oracle_of
from .scoring import (
    FEASIBLE,
    FeasiblePoint,
    best_feasible,
    infeasibility,
    score_at_projection,
    surrogate,
)

NUDGE = 1e-3
"""Distance by which `Recorder.nudged_start` moves each column, unless told otherwise."""

HELD = 1e-2
"""Relative distance from the start below which a point counts as the start; above `NUDGE`."""


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


@dataclass(frozen=True)
class Judge:
    """Functions that score points of a problem.

    Attributes
    ----------
    best_feasible : callable
        Maps ``(x, sparse, thorough)`` to a feasible point.
    infeasibility, at_projection : callable
        Map a point to its constraint violation and to its score at the projection.
    smooth_value, penalty_value : callable
        f and h of a point.
    surrogate : callable or None
        Maps a point, feasible or not, to the surrogate objective.
    """

    best_feasible: Callable[[FloatArray, FloatArray | None, bool], FeasiblePoint]
    infeasibility: Callable[[FloatArray], float]
    at_projection: Callable[[FloatArray], float]
    smooth_value: Callable[[FloatArray], float]
    penalty_value: Callable[[FloatArray], float]
    surrogate: Callable[[FloatArray], float] | None = None

    @classmethod
    def stiefel(cls, oracle: Oracle) -> Judge:
        """The rules of `orthobcd_bench.baselines.scoring`."""
        return cls(
            lambda x, sparse, thorough: best_feasible(oracle, x, sparse=sparse, thorough=thorough),
            lambda x: infeasibility(oracle, x),
            lambda x: score_at_projection(oracle, x),
            oracle.smooth_value,
            oracle.penalty_value,
            (lambda x: surrogate(oracle, x)) if oracle.is_nonnegative else None,
        )


class Logbook:
    """Time limit, history and best feasible point of one run.

    Parameters
    ----------
    judge : Judge
        Functions that score points.
    start : callable
        Makes the start; its time counts, and row 0 of the history is the score of the start.
    max_time : float
        Time limit in seconds.
    seed : int
        Seed, which the result reports.
    """

    FIRST_CHECKPOINT = 0.02
    CHECKPOINT_RATIO = 1.5

    def __init__(
        self,
        judge: Judge,
        start: Callable[[], FloatArray],
        *,
        max_time: float,
        seed: int,
    ) -> None:
        self.judge = judge
        self.max_time = as_float("max_time", max_time, 0.0, closed="neither")
        self.seed = as_int("seed", seed, 0)
        self.watch = Stopwatch()
        self._next = self.FIRST_CHECKPOINT
        self._rows: list[tuple[float, float, float, int]] = []
        self.best: FeasiblePoint | None = None
        self.n_iterations = 0
        self.moved = 0.0
        self.x0 = start()
        self._surrogates: list[float] = []
        self._log(self._as_it_is(self.x0), self.x0)

    @property
    def seconds(self) -> float:
        """Seconds that the method has run, without pauses."""
        return self.watch.seconds

    @property
    def progress(self) -> float:
        """Share of the time limit that is used, at most 1."""
        return min(1.0, self.seconds / self.max_time)

    @property
    def out_of_time(self) -> bool:
        """True if the time limit has passed."""
        return self.seconds >= self.max_time

    def step(self, x: FloatArray, sparse: FloatArray | None = None) -> bool:
        """Score ``x`` at a checkpoint; True, and one more iteration counted, while time is left."""
        if self.seconds >= self._next:
            while self._next <= self.seconds:
                self._next *= self.CHECKPOINT_RATIO
            self.submit(x, sparse=sparse, thorough=False)
        if self.out_of_time:
            return False
        self.n_iterations += 1
        return True

    def submit(
        self, x: FloatArray, *, sparse: FloatArray | None = None, thorough: bool = True
    ) -> float:
        """Score ``x``, keep it if it is the best, and return its feasible objective."""
        self.watch.pause()
        distance = float(np.linalg.norm(x - self.x0) / np.linalg.norm(self.x0))
        self.moved = max(self.moved, distance)
        point = self._log(self.judge.best_feasible(x, sparse, thorough), x)
        self.watch.resume()
        return point.objective

    def _as_it_is(self, x: FloatArray) -> FeasiblePoint:
        """The start itself if it is feasible, else the best feasible point near it."""
        if self.judge.infeasibility(x) > FEASIBLE * (1.0 + float(np.vdot(x, x))):
            return self.judge.best_feasible(x, None, False)
        return FeasiblePoint(x, self.judge.smooth_value(x) + self.judge.penalty_value(x))

    def _log(self, point: FeasiblePoint, x: FloatArray) -> FeasiblePoint:
        """Keep ``point``, the projection of x, if it is the best; write a row of the history."""
        self.watch.pause()
        if self.judge.surrogate is not None:
            self._surrogates.append(self.judge.surrogate(x))
        if self.best is None or point.objective < self.best.objective:
            self.best = point
        self._rows.append(
            (
                self.watch.seconds,
                self.best.objective,
                self.judge.infeasibility(self.best.x),
                self.n_iterations,
            )
        )
        self.watch.resume()
        return point

    def result(
        self,
        x: FloatArray,
        *,
        method: str,
        converged: bool = False,
        diverged: bool = False,
        sparse: FloatArray | None = None,
        **extra: object,
    ) -> Result:
        """Score the last iterate thoroughly and close the run."""
        self.submit(x, sparse=sparse)
        self.watch.pause()
        assert self.best is not None
        judge = self.judge
        best = self.best.x.copy()
        seconds, objective, feasibility, iterations = zip(*self._rows, strict=True)
        smooth_value = judge.smooth_value(best)
        penalty_value = judge.penalty_value(best)
        n = best.shape[0]
        status = Status.CONVERGED if converged else Status.MAX_TIME
        curve: dict[str, FloatArray] = {}
        if self._surrogates:
            curve["surrogate"] = np.asarray(self._surrogates)
            extra["surrogate"] = self._surrogates[-1]
        if diverged:
            status = Status.DIVERGED
        return Result(
            x=best,
            objective=smooth_value + penalty_value,
            smooth_value=smooth_value,
            penalty_value=penalty_value,
            feasibility=judge.infeasibility(best),
            status=status,
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
                **curve,
            },
            extra={
                "method": method,
                "objective_at_projection": judge.at_projection(x),
                "last_infeasibility": judge.infeasibility(x),
                "moved": self.moved,
                **extra,
            },
        )


class Recorder(Logbook):
    """The logbook of a run on the Stiefel manifold.

    Parameters
    ----------
    oracle : Oracle
        The problem.
    x0 : ndarray of shape (n, r) or None
        The start.
    default_start : callable
        Makes the start when x0 is None.
    max_time, seed
        As for `Logbook`.
    """

    def __init__(
        self,
        oracle: Oracle,
        x0: FloatArray | None,
        default_start: Callable[[Oracle], FloatArray],
        *,
        max_time: float,
        seed: int,
    ) -> None:
        self.oracle = oracle
        super().__init__(
            Judge.stiefel(oracle),
            lambda: default_start(oracle) if x0 is None else checked_start(oracle, x0),
            max_time=max_time,
            seed=seed,
        )

    def nudged_start(self, distance: float = NUDGE) -> FloatArray:
        """The start with every column moved by about ``distance``, to break symmetries.

        Gradients and proximal maps keep a row of X at zero if C couples the row to no nonzero row.
        From unit vectors inside one diagonal block of C a first-order method would never reach the
        other blocks. The identity start of w1a is such a start: 34 of the 300 columns.
        """
        noise = np.random.default_rng(self.seed).standard_normal(self.x0.shape)
        return polar(self.x0 + (distance / np.sqrt(self.oracle.n)) * noise)

    def is_at_start(self, x: FloatArray) -> bool:
        """True if x is within `HELD` of the start, relatively."""
        return float(np.linalg.norm(x - self.x0)) <= HELD * float(np.linalg.norm(self.x0))


def from_random(
    problem: Problem, x0: FloatArray | None, max_time: float, seed: int, *, convex: bool = False
) -> Recorder:
    """The logbook of a method that starts at x0, or at a random point.

    Raises
    ------
    ValueError
        If ``convex`` and the penalty is neither ℓ1 nor none.
    """
    oracle = oracle_of(problem)
    if convex and not isinstance(oracle.penalty, (L1, NoPenalty)):
        raise ValueError("penalty must be L1 or NoPenalty for this method, which needs it convex")
    return Recorder(
        oracle,
        x0,
        lambda _: random_stiefel(oracle.n, oracle.r, np.random.default_rng(seed)),
        max_time=max_time,
        seed=seed,
    )
