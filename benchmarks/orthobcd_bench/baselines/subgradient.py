"""Riemannian subgradient methods: the full one and the randomised submanifold one (RSSM).

References
----------
Li, Chen, Deng, Qu, Zhu and So 2021, "Weakly convex optimization over Stiefel manifold using
Riemannian subgradient-type methods"; Cheung, Wang, Yue and So 2024, "Randomized submanifold
subgradient method for optimization over Stiefel manifolds" (RSSM).
"""

from __future__ import annotations

import numpy as np

from orthobcd import Problem, Result
from orthobcd._internal.checks import FloatArray

from .geometry import polar, tangent
from .recorder import Recorder, from_random
from .settings import RSSM, RSUBGRAD


def riemannian_subgradient(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """``X ← polar(X − τ Proj_T(Γ)/‖Proj_T(Γ)‖)`` with a geometrically falling τ.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; ℓ1 or no penalty, a random start. τ follows the clock.

    Notes
    -----
    Geometrically diminishing steps are the fastest rule of Li et al.; τ = c/√t is slower on the
    tuning row.
    """
    recorder = from_random(problem, x0, max_time, seed, convex=True)
    return _descend(recorder, "Riemannian subgradient", recorder.oracle.r, *RSUBGRAD)


def rssm(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """Randomised submanifold subgradient method: a random half of the columns moves.

    The block X_S stays orthonormal and orthogonal to the other columns. A step follows the
    subgradient, projected onto the tangent space of this submanifold, and the polar factor
    restores the block.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; ℓ1 or no penalty, a random start. τ follows the clock.

    Notes
    -----
    "Submanifold" is read as blocks of columns. Any two columns are in some block, so that the
    blocks reach every point. A full gradient is formed, so an iteration costs as much as a step
    of `riemannian_subgradient`.
    """
    recorder = from_random(problem, x0, max_time, seed, convex=True)
    return _descend(recorder, "RSSM", max(1, recorder.oracle.r // 2), *RSSM)


def _descend(recorder: Recorder, method: str, size: int, first: float, last: float) -> Result:
    """Steps of ``size`` random columns, all at once if that is r."""
    oracle = recorder.oracle
    rng = np.random.default_rng(recorder.seed)
    x = recorder.nudged_start()
    while recorder.step(x):
        chosen = np.sort(rng.permutation(oracle.r)[:size])
        rest = np.delete(x, chosen, axis=1)
        part = x[:, chosen]
        pull = tangent(part, oracle.subgradient(x)[:, chosen])
        pull = pull - rest @ (rest.T @ pull)
        norm = float(np.linalg.norm(pull))
        if norm <= 1e-12 * oracle.lipschitz:
            if size == oracle.r:
                break
            continue
        length = first * (last / first) ** recorder.progress
        moved = polar(part - (length / norm) * pull)
        x = x.copy()
        x[:, chosen] = moved - rest @ (rest.T @ moved)
        if recorder.n_iterations % 100 == 0:
            x = polar(x)
    return recorder.result(polar(x), method=method)
