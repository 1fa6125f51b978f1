"""Exactly orthonormal sparse and nonnegative components, by block coordinate descent.

``orthobcd`` minimises ``f(X) + h(X)`` over matrices with ``XᵀJX`` fixed, ``J = diag(±1)``, by
changing two rows at a time, each pair solved to global optimality: every iterate is feasible and
the objective never rises.
"""

from typing import TYPE_CHECKING, Any

from ._core import __version__
from .certificate import BasisFactorization, Certificate, basis_factorization, certify
from .hyperbolic import (
    HyperbolicEigenvalueProblem,
    HyperbolicPCAProblem,
    HyperbolicStructuralProbeProblem,
    JOrthogonalProblem,
    WellPosedness,
    hyperbolic_cs,
    random_j_orthogonal,
    well_posedness,
)
from .io import TripleFiles, load_triples
from .kg import Ranking, UltraE, dense_core
from .objectives import (
    GramQuadratic,
    LogisticLoss,
    Quadratic,
    SmoothFunction,
    check_gradient,
)
from .penalties import L0, L1, Cardinality, NonNegative, NoPenalty, RowSparse
from .problems import NonnegativePCAProblem, Problem, SparsePCAProblem, StiefelProblem
from .regularization import RegularizationPath, lam_max, regularization_path
from .result import PathPoint, Result, Search, SearchRun, StartReport, Status
from .solvers import JOBCD, OBCD, VRJOBCD, Auto, Continuation, Phase
from .solving import Progress, solve

if TYPE_CHECKING:
    from . import plot as plot
    from .sklearn import NonnegativePCA as NonnegativePCA
    from .sklearn import SparsePCA as SparsePCA

__all__ = [
    "JOBCD",
    "L0",
    "L1",
    "OBCD",
    "VRJOBCD",
    "Auto",
    "BasisFactorization",
    "Cardinality",
    "Certificate",
    "Continuation",
    "GramQuadratic",
    "HyperbolicEigenvalueProblem",
    "HyperbolicPCAProblem",
    "HyperbolicStructuralProbeProblem",
    "JOrthogonalProblem",
    "LogisticLoss",
    "NoPenalty",
    "NonNegative",
    "NonnegativePCAProblem",
    "PathPoint",
    "Phase",
    "Problem",
    "Progress",
    "Quadratic",
    "Ranking",
    "RegularizationPath",
    "Result",
    "RowSparse",
    "Search",
    "SearchRun",
    "SmoothFunction",
    "SparsePCAProblem",
    "StartReport",
    "Status",
    "StiefelProblem",
    "TripleFiles",
    "UltraE",
    "WellPosedness",
    "__version__",
    "basis_factorization",
    "certify",
    "check_gradient",
    "dense_core",
    "hyperbolic_cs",
    "lam_max",
    "load_triples",
    "random_j_orthogonal",
    "regularization_path",
    "solve",
    "well_posedness",
]

LAZY = {"NonnegativePCA": "sklearn", "SparsePCA": "sklearn", "plot": "plot"}
"""What needs more than NumPy, by the extra it needs, is imported when it is first used."""


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f".{LAZY[name]}", __name__)
    return module if name == LAZY[name] else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY})
