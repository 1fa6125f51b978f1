"""Exactly orthonormal sparse and nonnegative components, by block coordinate descent.

``orthobcd`` minimises ``f(X) + h(X)`` over matrices with ``XᵀJX`` fixed, ``J = diag(±1)``, by changing
two rows at a time, each pair solved to global optimality: every iterate is feasible and the
objective never rises.
"""

from ._certify import BasisFactorization, Certificate, basis_factorization, certify
from ._core import __version__
from ._solve import Progress, solve
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
    NoPenalty,
    NonNegative,
    NonnegativePCAProblem,
    Quadratic,
    SparsePCAProblem,
    StiefelProblem,
)
from .result import PathPoint, Result, StartReport, Status
from .solvers import OBCD, Auto, Path

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
    "JOrthogonalProblem",
    "LogisticLoss",
    "NoPenalty",
    "NonNegative",
    "NonnegativePCAProblem",
    "Path",
    "PathPoint",
    "Progress",
    "Quadratic",
    "Result",
    "SparsePCAProblem",
    "StartReport",
    "Status",
    "StiefelProblem",
    "WellPosedness",
    "__version__",
    "basis_factorization",
    "certify",
    "hyperbolic_cs",
    "random_j_orthogonal",
    "solve",
    "well_posedness",
]
