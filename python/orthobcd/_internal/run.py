"""Common options of all solvers: limits, seed, number of threads."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

from .._core import WORK_UNIT, Checkpoint
from .checkpoint import identity
from .checks import as_float, as_optional_float, as_optional_int, as_seed, as_threads

MOST_WORK = 1e18
"""Largest work limit in multiply-adds, some years of work; larger limits become this one."""


SHARED = ("max_sweeps", "effort", "tol", "target", "gap_tol", "seed")
"""Arguments that a solve has in common with the one that it continues, beside ``max_work``."""


class Deadline:
    """A time limit that starts in the constructor.

    Parameters
    ----------
    limit : float or None
        Seconds; None without limit.
    """

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self.started = time.perf_counter()

    def left(self) -> float | None:
        """Seconds left; None without limit."""
        if self.limit is None:
            return None
        return max(self.limit - (time.perf_counter() - self.started), 0.0)

    def allows(self, seconds: float) -> bool:
        """True if a step of ``seconds`` seconds ends before the limit; True without limit."""
        left = self.left()
        return left is None or seconds < left


@dataclass(frozen=True)
class Run:
    """Limits, seed, threads and checkpoint of a solve, with the texts that identify the solve."""

    max_time: float | None = None
    max_sweeps: int | None = None
    tol: float | None = None
    target: float | None = None
    gap_tol: float | None = None
    seed: int = 0
    n_threads: int | None = None
    max_work: int | None = None
    effort: float = 1.0
    checkpoint: Checkpoint | None = None
    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def checked(
        cls,
        *,
        max_time: Any = None,
        max_sweeps: Any = None,
        tol: Any = None,
        target: Any = None,
        gap_tol: Any = None,
        seed: Any = 0,
        n_threads: Any = 1,
        max_work: Any = None,
        effort: Any = 1.0,
        checkpoint: Checkpoint | None = None,
    ) -> Run:
        """Checks the arguments of `solve`; converts ``max_work`` to multiply-adds."""
        work = as_optional_float("max_work", max_work, minimum=0.0)
        return cls(
            max_time=as_optional_float("max_time", max_time, minimum=0.0),
            max_sweeps=as_optional_int("max_sweeps", max_sweeps, 0),
            tol=as_optional_float("tol", tol, minimum=0.0),
            target=as_optional_float("target", target),
            gap_tol=as_optional_float("gap_tol", gap_tol, minimum=0.0),
            seed=as_seed(seed),
            n_threads=as_threads(n_threads),
            max_work=None if work is None else int(min(work * WORK_UNIT, MOST_WORK)),
            effort=as_effort(effort, max_time is not None or max_work is not None),
            checkpoint=checkpoint,
        )

    def of(self, **values: Any) -> Run:
        """The same run, with the arguments by which its checkpoint identifies the solve."""
        if self.checkpoint is None:
            return self
        own = {name: getattr(self, name) for name in ("max_work", *SHARED)}
        return replace(self, settings=identity(**values, **own))


def as_effort(value: Any, limited: bool) -> float:
    """``value`` as a positive number; infinity needs a limit that ends the search."""
    if not (isinstance(value, float) and value == math.inf):
        return as_float("effort", value, minimum=0.0, exclusive=True)
    if not limited:
        raise ValueError(
            "effort must be finite without max_time and max_work, as nothing would end the search"
        )
    return value
