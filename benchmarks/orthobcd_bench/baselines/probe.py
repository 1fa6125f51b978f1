"""Baselines for a smooth f on the J-orthogonal matrices, of which only the gradient is known.

The baselines are ADMM with a linearised step, and CSDM on all factors of the hyperbolic CS
decomposition. Both solve structural probes, whose gradient has no Lipschitz constant.
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
from .settings import PROBE_ADMM, PROBE_CSDM_STEP


def linearised_admm(
    problem: Any,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
    rho: float = PROBE_ADMM[0],
    curvature: float = PROBE_ADMM[1],
) -> Result:
    """ADMM on the bilinear constraints XᵀJY = J, X = Y, with ∇f instead of f.

    As `orthobcd_bench.baselines.admm`, but the X-step minimises
    ``⟨∇f(Z), X⟩ + L/2‖X − Z‖²`` for f, Z being the last X.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`, with ``value_and_gradient`` and ``signature``.
    rho, curvature : float, optional
        ρ and L in units of `GroupProblem.size`; `PROBE_ADMM` by default.
    """
    group = SmoothProblem(problem)
    book = logbook(group, x0, max_time, seed)
    column, target = group.signature[:, np.newaxis], np.diag(group.signature)
    weight, bound = rho * group.size, curvature * group.size
    identity = np.eye(group.signature.size)
    x = y = book.x0
    gradient = group.value_and_gradient(x)[1]
    dual = column * (x.T @ gradient)
    u = -0.5 * (dual + dual.T) / (2.0 * weight)
    v = np.zeros_like(x)
    diverged = False
    while not diverged and book.step(0.5 * (x + y)):
        flipped = column * y
        system = weight * (flipped @ flipped.T + identity) + bound * identity
        known = weight * (flipped @ (target - u).T + y - v) + bound * x - gradient
        try:
            x = scipy.linalg.solve(system, known, assume_a="pos")
            flipped = column * x
            y = scipy.linalg.solve(
                flipped @ flipped.T + identity,
                flipped @ (target - u) + x + v,
                assume_a="pos",
            )
        except (np.linalg.LinAlgError, ValueError):
            diverged = True
        else:
            u = u + x.T @ (column * y) - target
            v = v + x - y
            diverged = group.diverges(y)
            gradient = gradient if diverged else group.value_and_gradient(x)[1]
    return book.result(0.5 * (x + y), method="linearised ADMM", diverged=diverged)


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
