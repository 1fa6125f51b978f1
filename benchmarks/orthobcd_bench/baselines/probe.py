"""CSDM on all factors of the hyperbolic CS decomposition, for a smooth f with a known gradient.

It solves structural probes, whose gradient has no Lipschitz constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from orthobcd import Result
from orthobcd._internal.checks import FloatArray

from .hyperbolic import (
    Factors,
    SmoothProblem,
    assemble,
    boost_matrix,
    factorise,
    logbook,
    rotate,
)
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
    now = factorise(book.x0, group.signature)
    p, n, k = now.plus.size, group.signature.size, np.arange(now.rapidity.size)
    order = np.concatenate([now.plus, now.minus])
    sums: list[FloatArray] = [np.zeros(())] * 5
    x = best = book.x0
    least = np.inf
    while book.step(best) and not group.diverges(x):
        value, gradient = group.value_and_gradient(x)
        if value < least:
            least, best = value, x
        left = scipy.linalg.block_diag(now.u1, now.u2)
        right = scipy.linalg.block_diag(now.v1, now.v2)
        image = left.T @ gradient[np.ix_(order, order)] @ right
        middle = boost_matrix(p, n - p, now.rapidity)
        one, two = image @ middle.T, image.T @ middle
        one, two = one - one.T, two - two.T
        slope = (image[k, k] + image[p + k, p + k]) * np.sinh(now.rapidity)
        slope = slope + (image[k, p + k] + image[p + k, k]) * np.cosh(now.rapidity)
        slopes = [one[:p, :p], one[p:, p:], two[:p, :p], two[p:, p:], slope]
        sums = [total + part * part for total, part in zip(sums, slopes, strict=True)]
        moves = [
            -step * part / np.sqrt(total + 1e-30) for total, part in zip(sums, slopes, strict=True)
        ]
        u1, u2, v1, v2 = (
            rotate(factor, move, factors)
            for factor, move in zip((now.u1, now.u2, now.v1, now.v2), moves[:4], strict=True)
        )
        now = Factors(now.plus, now.minus, u1, u2, v1, v2, now.rapidity + moves[4])
        x = assemble(now)
    return book.result(best, method=f"CSDM ({factors})")
