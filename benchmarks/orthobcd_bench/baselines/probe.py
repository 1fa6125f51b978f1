"""CSDM on all factors of the hyperbolic CS decomposition, for a smooth f with a known gradient.

It solves structural probes, whose gradient has no Lipschitz constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from orthobcd import Result
from orthobcd._internal.checks import FloatArray

from .hyperbolic import FactorDescent, SmoothProblem, logbook
from .settings import PROBE_CSDM_STEP


def csdm_factors(
    problem: Any,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
    factors: str = "full",
    step: float = PROBE_CSDM_STEP,
) -> Result:
    """CSDM by Adagrad: U₁, U₂, V₁, V₂ and the rapidities move, the best point is returned.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`, with ``value_and_gradient`` and ``signature``.
    factors : {"full", "givens"}, default "full"
        Moves of the orthogonal factors, as in `orthobcd_bench.baselines.csdm`.
    step : float, optional
        First step length; `PROBE_CSDM_STEP` by default.

    References
    ----------
    Xiong and coauthors 2022, "Ultrahyperbolic knowledge graph embeddings" (UltraE).
    """
    group = SmoothProblem(problem)
    book = logbook(group, x0, max_time, seed)
    descent = FactorDescent(book.x0, group.signature, factors)
    x = best = book.x0
    least = np.inf
    while book.step(best) and not group.diverges(x):
        value, gradient = group.value_and_gradient(x)
        if value < least:
            least, best = value, x
        x = descent.step(gradient, step)
    return book.result(best, method=f"CSDM ({factors})")
