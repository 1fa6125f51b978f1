"""What every solver is given: when to stop, the seed, the number of threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from .checks import as_optional_float, as_optional_int, as_seed

_work: ContextVar[int | None] = ContextVar("work", default=None)


@contextlib.contextmanager
def limited_work(work: float | None) -> Iterator[None]:
    """Solves in this context do at most so much work, in multiply-adds (some 1e10 a second).

    Unlike a limit on time it gives the same bits on every machine.
    """
    token = _work.set(None if work is None else int(work))
    try:
        yield
    finally:
        _work.reset(token)


@dataclass(frozen=True)
class Run:
    """Limits, seed and threads of a solve."""

    max_time: float | None = None
    max_sweeps: int | None = None
    tol: float | None = None
    target: float | None = None
    seed: int = 0
    n_threads: int | None = None
    max_work: int | None = None

    @classmethod
    def checked(
        cls,
        *,
        max_time: Any = None,
        max_sweeps: Any = None,
        tol: Any = None,
        target: Any = None,
        seed: Any = 0,
        n_threads: Any = None,
    ) -> Run:
        """From the arguments of `solve`, with the work allowed by `limited_work`."""
        return cls(
            max_time=as_optional_float("max_time", max_time, minimum=0.0),
            max_sweeps=as_optional_int("max_sweeps", max_sweeps, 0),
            tol=as_optional_float("tol", tol, minimum=0.0),
            target=as_optional_float("target", target),
            seed=as_seed(seed),
            n_threads=as_optional_int("n_threads", n_threads, 1),
            max_work=_work.get(),
        )
