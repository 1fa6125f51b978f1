"""Exactly orthonormal sparse and nonnegative components, by block coordinate descent.

``orthobcd`` minimises ``f(X) + h(X)`` over matrices with ``XᵀJX`` fixed, ``J = diag(±1)``, by
changing two rows at a time, each pair solved to global optimality: every iterate is feasible and
the objective never rises.
"""

from typing import TYPE_CHECKING, Any

from ._certify import BasisFactorization, Certificate, basis_factorization, certify
from ._core import __version__
from ._regularization import RegularizationPath, alpha_max, regularization_path
from ._solve import Progress, solve
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

if TYPE_CHECKING:
    from .estimators import NonnegativePCA as NonnegativePCA
    from .estimators import SparsePCA as SparsePCA

__all__ = [
    "L0",
    "L1",
    "OBCD",
    "Auto",
    "BasisFactorization",
    "Certificate",
    "GramQuadratic",
    "NoPenalty",
    "NonNegative",
    "NonnegativePCAProblem",
    "Path",
    "PathPoint",
    "Progress",
    "Quadratic",
    "RegularizationPath",
    "Result",
    "SparsePCAProblem",
    "StartReport",
    "Status",
    "StiefelProblem",
    "__version__",
    "alpha_max",
    "basis_factorization",
    "certify",
    "regularization_path",
    "solve",
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
