"""Tuned settings of the baselines, in one place.

The papers' competitors and EP4Orth+ have the best settings of 1 s runs on a row that no suite
reports: the 300 × 400 standard normal matrix of ``numpy.random.default_rng(7)`` with r = 8.
The penalties are λ/‖C‖ = 3.5e-4 and 3.5e-3 (ℓ0), 3.5e-3 and 3.5e-2 (ℓ1), and X ≥ 0.
Penalty parameters are in units of L = ‖C‖, so that they are valid for other data sets.

Two exceptions favour the competitors on purpose. The schedules of the strong heuristics (annealed
LADMM, smoothed gradient, forward selection) are chosen on reported rows, randn 500 × 1000 and
MNIST; the J-orthogonal penalty parameters on the reported randn 100 × 100, p = 50.

| method | tried | kept |
|---|---|---|
| LADMM | β/L .3 .5 .7 1 2 5 | .5 (.7 for ℓ1); short trials of less |
| SPM | β/L from .001-.5 to 1 10 30 100 | .03 to 100 (ℓ0), .1 to 10 (ℓ1, X ≥ 0) |
| SOC-ADMM | β/L .55 .7 1 2 5 | 1 (below ½ it diverges) |
| RADMM | ρ/L .5 1 3, γL 1e-3 1e-2 1e-1 | .5; 1e-2 (ℓ0, X ≥ 0), 1e-1 (ℓ1) |
| ManPG | growth of t 1 1.05 1.2 | 1.2 |
| subgradient, RSSM | first step .1 .3 1, last 1e-3..1e-5 | 1 to 1e-4 |
| EP4Orth+ | σ/(rL) from .005 .02 .05 to .2 .5 5 | .05 to .5 |
| GPower | seeds 20 60 | 20 |
| annealed LADMM | first β/L .001-.7, last .3-3 | see `annealed.beta_range` |
| smoothed gradient | ε range, stages, steps, kick | see `smoothed.Continuation` |
| forward selection | seeds 12-100, groups 3-8, noise | 24, 3, .3 |
| UMCM | β/‖A‖ .1 1 3 10 30 100 | 3 |
| J-orthogonal ADMM | ρ/‖A‖ .03 .3 1 3 10 30 | 1 |
| CSDM | first step .02 .1 .3 | .1 |
"""

from __future__ import annotations

LADMM_BETA = {"L0": 0.5, "L1": 0.7, "NonNegative": 0.5, "NoPenalty": 0.7}
"""β/L of LADMM."""

SPM_RANGE = {
    "L0": (0.03, 100.0),
    "L1": (0.1, 10.0),
    "NonNegative": (0.1, 10.0),
    "NoPenalty": (0.1, 1.0),
}
"""First and last β/L of SPM."""

SOC_BETA = {"L0": 1.0, "L1": 1.0, "NonNegative": 1.0, "NoPenalty": 1.0}
"""β/L of SOC-ADMM; must exceed ½."""

RADMM = {
    "L0": (0.5, 1e-2, 1.0),
    "L1": (0.5, 1e-1, 1.0),
    "NonNegative": (0.5, 1e-2, 1.0),
    "NoPenalty": (0.5, 1e-2, 1.0),
}
"""ρ/L, γ·L and step·(L + ρ) of RADMM."""

RSUBGRAD = (1.0, 1e-4)
"""First and last distance moved by a step of the Riemannian subgradient method."""

RSSM = (1.0, 1e-4)
"""First and last distance moved by a step of RSSM."""

EP4ORTH_SIGMA = (0.05, 0.5)
"""First and last σ/(r L) of EP4Orth+."""

GPOWER_STARTS = 20
"""Seed columns per component of GPower, the largest in norm."""

POWER_STARTS = 30
"""Leading axes from which truncated power iterations begin a component."""

FORWARD_SEEDS = 5
"""Features of the largest variance from which forward selection with a limit begins a component."""

UMCM_BETA = 3.0
"""β/‖A‖ of UMCM."""

HYPERBOLIC_ADMM_RHO = 1.0
"""ρ/‖A‖ of the J-orthogonal ADMM."""

CSDM_STEP = 0.1
"""First step length of CSDM, in radians."""

PROBE_ADMM = (10.0, 100.0)
"""ρ and L of the linearised ADMM of a structural probe, in units of the gradient."""

PROBE_CSDM_STEP = 0.2
"""First step length of CSDM on a structural probe, in radians."""
