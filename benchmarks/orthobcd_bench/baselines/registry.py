"""The baselines by name, with the problems that each can solve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from orthobcd import L0, L1, Cardinality, NonNegative, NoPenalty, Result
from orthobcd.penalties import Penalty

from .annealed import annealed_ladmm
from .gpower import gpower, pca_threshold
from .hyperbolic import admm, cayley_gradient, csdm, umcm
from .limits import forward_limited, truncated_power
from .manpg import manpg
from .nonnegative import alternating_partition, ep4orth
from .packages import pymanopt_smoothed, sklearn_sparse_pca
from .settings import PROBE_ADMM, PROBE_CSDM_STEP
from .smoothed import smoothed_gradient
from .splitting import ladmm, radmm, soc_admm, spm
from .subgradient import riemannian_subgradient, rssm
from .supports import forward_selection

Solve = Callable[..., Result]


@dataclass(frozen=True)
class Baseline:
    """One competitor.

    Attributes
    ----------
    solve : callable
        ``solve(problem, x0, max_time=..., seed=...)``.
    penalties : tuple of type
        Penalties that the method supports.
    own_start : bool
        Whether the method makes its own start (a strong heuristic) instead of using the row's.
    package : str or None
        The package that the method needs.
    """

    solve: Solve
    penalties: tuple[type, ...]
    own_start: bool = False
    package: str | None = None


ANY = (L0, L1, NonNegative, NoPenalty)
CONVEX = (L1, NoPenalty)
SPARSE = (L0, L1)
LIMITS = (Cardinality,)

METHODS: dict[str, Baseline] = {
    "ladmm": Baseline(ladmm, ANY),
    "spm": Baseline(spm, ANY),
    "soc-admm": Baseline(soc_admm, ANY),
    "radmm": Baseline(radmm, ANY),
    "manpg": Baseline(manpg, CONVEX),
    "rsubgrad": Baseline(riemannian_subgradient, CONVEX),
    "rssm": Baseline(rssm, CONVEX),
    "annealed-ladmm": Baseline(annealed_ladmm, ANY, own_start=True),
    "smoothed": Baseline(smoothed_gradient, (L0, L1, NoPenalty), own_start=True),
    "forward": Baseline(forward_selection, SPARSE, own_start=True),
    "gpower": Baseline(gpower, SPARSE, own_start=True),
    "pca-threshold": Baseline(pca_threshold, (*ANY, *LIMITS), own_start=True),
    "truncated-power": Baseline(truncated_power, LIMITS, own_start=True),
    "forward-limit": Baseline(forward_limited, LIMITS, own_start=True),
    "ep4orth": Baseline(ep4orth, (NonNegative,), own_start=True),
    "partition": Baseline(alternating_partition, (NonNegative,), own_start=True),
    "pymanopt": Baseline(pymanopt_smoothed, CONVEX, own_start=True, package="pymanopt"),
    "sklearn": Baseline(sklearn_sparse_pca, SPARSE, own_start=True),
}
"""Baselines on the Stiefel manifold."""

HYPERBOLIC_METHODS: dict[str, Solve] = {
    "cayley-right": partial(cayley_gradient, side="right"),
    "cayley-left": partial(cayley_gradient, side="left"),
    "umcm": umcm,
    "j-admm": admm,
    "csdm": partial(csdm, factors="full"),
    "csdm-givens": partial(csdm, factors="givens"),
}
"""Baselines under a hyperbolic constraint, for a trace."""

PROBE_METHODS: dict[str, Solve] = {
    "cayley-right": partial(cayley_gradient, side="right"),
    "cayley-left": partial(cayley_gradient, side="left"),
    "umcm": umcm,
    "j-admm": partial(admm, rho=PROBE_ADMM[0], curvature=PROBE_ADMM[1]),
    "csdm": partial(csdm, factors="full", step=PROBE_CSDM_STEP),
    "csdm-givens": partial(csdm, factors="givens", step=PROBE_CSDM_STEP),
}
"""Baselines under a hyperbolic constraint, for a structural probe."""


def methods_for(penalty: Penalty) -> dict[str, Baseline]:
    """The baselines that can treat ``penalty`` and whose package, if any, is installed."""
    return {
        name: baseline
        for name, baseline in METHODS.items()
        if isinstance(penalty, baseline.penalties)
        and (baseline.package is None or find_spec(baseline.package) is not None)
    }
