"""Exactly orthonormal sparse and nonnegative components, by block coordinate descent.

``orthobcd`` minimises ``f(X) + h(X)`` over matrices with ``XᵀJX`` fixed, ``J = diag(±1)``, by
changing two rows at a time, each pair solved to global optimality: every iterate is feasible and
the objective never rises.
"""

from typing import TYPE_CHECKING, Any

from ._certify import BasisFactorization, Certificate, basis_factorization, certify
from ._core import __version__
from ._regularization import RegularizationPath, alpha_max, regularization_path
from ._solve import Progress, minimize_at_count, solve
from .finite_sums import LogisticLoss
from .hyperbolic import hyperbolic_cs, random_j_orthogonal
from .hyperbolic_problems import (
    HyperbolicEigenvalueProblem,
    HyperbolicPCAProblem,
    JOrthogonalProblem,
    WellPosedness,
    well_posedness,
)
from .jobcd import JOBCD
from .problems import (
    L0,
    L1,
    GramQuadratic,
    NonNegative,
    NonnegativePCAProblem,
    NoPenalty,
    Quadratic,
    SparsePCAProblem,
    StiefelProblem,
)
from .result import PathPoint, Result, StartReport, Status
from .solvers import OBCD, Auto, Path
from .structural_probe import HyperbolicStructuralProbeProblem
from .triples import TripleFiles, dense_core, load_triples
from .ultra_e import Ranking, UltraE

if TYPE_CHECKING:
    from .estimators import NonnegativePCA as NonnegativePCA
    from .estimators import SparsePCA as SparsePCA

__all__ = [
    "JOBCD",
    "L0",
    "L1",
    "OBCD",
    "Auto",
    "BasisFactorization",
    "Certificate",
    "GramQuadratic",
    "HyperbolicEigenvalueProblem",
    "HyperbolicPCAProblem",
    "HyperbolicStructuralProbeProblem",
    "JOrthogonalProblem",
    "LogisticLoss",
    "NoPenalty",
    "NonNegative",
    "NonnegativePCAProblem",
    "Path",
    "PathPoint",
    "Progress",
    "Quadratic",
    "Ranking",
    "RegularizationPath",
    "Result",
    "SparsePCAProblem",
    "StartReport",
    "Status",
    "StiefelProblem",
    "TripleFiles",
    "UltraE",
    "WellPosedness",
    "__version__",
    "alpha_max",
    "basis_factorization",
    "certify",
    "dense_core",
    "hyperbolic_cs",
    "load_triples",
    "minimize_at_count",
    "random_j_orthogonal",
    "regularization_path",
    "solve",
    "well_posedness",
]

LAZY = {"NonnegativePCA": "estimators", "SparsePCA": "estimators"}
"""What needs more than NumPy is imported when it is first used."""


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY})
