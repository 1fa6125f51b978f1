"""The competitors: every method the papers compare with, and stronger methods that users have.

Each is a function ``method(problem, x0=None, *, max_time, seed, ...)`` that returns the same
`orthobcd.Result` as `orthobcd.solve`. ``result.x`` is always truly feasible. ``result.extra``
describes the method's own last iterate: ``"last_infeasibility"`` and
``"objective_at_projection"`` (the papers' score). The time of a method includes its default start
and excludes scoring.

| name | method | problems |
|---|---|---|
| ``ladmm`` | linearised ADMM | any |
| ``spm`` | smoothing penalty method | any |
| ``soc-admm`` | Lai and Osher's three-copy ADMM | any |
| ``radmm`` | Riemannian ADMM | any |
| ``manpg`` | manifold proximal gradient | ℓ1, smooth |
| ``rsubgrad`` | Riemannian subgradient | ℓ1, smooth |
| ``rssm`` | randomised submanifold subgradient | ℓ1, smooth |
| ``annealed-ladmm`` | LADMM with growing β, varimax start | any |
| ``smoothed`` | smoothed Riemannian gradient | ℓ0, ℓ1, smooth |
| ``forward`` | forward selection, disjoint supports | ℓ0, ℓ1 |
| ``gpower`` | generalised power method with deflation | ℓ0, ℓ1 |
| ``pca-threshold`` | principal components, then a threshold | any |
| ``truncated-power`` | truncated power iterations from 30 axes | k nonzeros a component |
| ``forward-limit`` | forward selection from 5 features | k nonzeros a component |
| ``ep4orth`` | exact penalty for X ≥ 0 | X ≥ 0 |
| ``partition`` | alternating partition | X ≥ 0 |
| ``pymanopt`` | the package, smoothed ℓ1 | ℓ1, smooth |
| ``sklearn`` | the package's SparsePCA | ℓ1, ℓ0 |
| ``cayley-right`` | Riemannian gradient, Cayley, BB | J-orthogonal |
| ``cayley-left`` | the same from the left | J-orthogonal |
| ``umcm`` | multiplier correction | J-orthogonal |
| ``j-admm`` | bilinear ADMM | J-orthogonal |
| ``csdm`` | hyperbolic CS factors | J-orthogonal |
| ``csdm-givens`` | the same with Givens rotations only | J-orthogonal |

All other methods have these parameters, and tuned settings from
`orthobcd_bench.baselines.settings`:

problem : StiefelProblem, SparsePCAProblem or NonnegativePCAProblem
    With a penalty that the method can treat; under a hyperbolic constraint a `TraceProblem` or a
    ``HyperbolicEigenvalueProblem``.
x0 : ndarray of shape (n, r), optional
    Start, XᵀX = I (n × n with XᵀJX = J under a hyperbolic constraint); the method's own by
    default. ADMM and subgradient methods begin `recorder.NUDGE` away from the start: gradients
    and proximal maps keep the zero pattern of a symmetric start. ManPG descends, and stays at a
    stationary start.
max_time : float, default 10.0
    Time limit in seconds.
seed : int, default 0
    Seed of random starts and random choices, where the method has any.
"""

from __future__ import annotations

from .hyperbolic import TraceProblem, reference_start
from .registry import HYPERBOLIC_METHODS, METHODS, PROBE_METHODS, Baseline, methods_for

__all__ = [
    "HYPERBOLIC_METHODS",
    "METHODS",
    "PROBE_METHODS",
    "Baseline",
    "TraceProblem",
    "methods_for",
    "reference_start",
]
