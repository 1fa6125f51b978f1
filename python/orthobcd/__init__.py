"""Exactly orthonormal sparse and nonnegative components, by block coordinate descent.

``orthobcd`` minimises ``f(X) + h(X)`` over matrices X with ``XᵀJX`` fixed, ``J = diag(±1)``. A step
changes two rows and solves their problem to global optimality: every iterate is feasible, and
the reported objective never rises.
"""

from . import anndata as anndata
from . import hyperbolic as hyperbolic
from . import io as io
from . import kg as kg
from . import plot as plot
from . import sklearn as sklearn
from ._core import __version__ as __version__
from .certificate import Certificate, basis_factorization, certify
from .derivatives import check_gradient, check_hessian
from .hyperbolic import (
    HyperbolicEigenvalueProblem,
    JOrthogonalProblem,
)
from .objectives import (
    FiniteSum,
    GramQuadratic,
    LogisticLoss,
    Quadratic,
    SmoothFunction,
)
from .penalties import (
    L0,
    L1,
    MCP,
    SCAD,
    Box,
    CappedL1,
    Cardinality,
    NonNegative,
    NoPenalty,
    PiecewiseQuadratic,
    RowSparse,
    Separable,
)
from .problems import NonnegativePCAProblem, Problem, SparsePCAProblem, StiefelProblem
from .regularization import lam_max, regularization_path
from .result import Result, Status
from .rotation import rotate_loadings
from .sklearn import (
    Loadings,
    NonnegativePCA,
    OrthogonalNMF,
    SparsePCA,
    SparsePCACV,
    choose_n_components,
    support_stability,
)
from .solvers import JOBCD, OBCD, VRJOBCD, Auto, Continuation
from .solving import Progress, solve, value

__all__ = [
    "JOBCD",
    "L0",
    "L1",
    "MCP",
    "OBCD",
    "SCAD",
    "VRJOBCD",
    "Auto",
    "Box",
    "CappedL1",
    "Cardinality",
    "Certificate",
    "Continuation",
    "FiniteSum",
    "GramQuadratic",
    "HyperbolicEigenvalueProblem",
    "JOrthogonalProblem",
    "Loadings",
    "LogisticLoss",
    "NoPenalty",
    "NonNegative",
    "NonnegativePCA",
    "NonnegativePCAProblem",
    "OrthogonalNMF",
    "PiecewiseQuadratic",
    "Problem",
    "Progress",
    "Quadratic",
    "Result",
    "RowSparse",
    "Separable",
    "SmoothFunction",
    "SparsePCA",
    "SparsePCACV",
    "SparsePCAProblem",
    "Status",
    "StiefelProblem",
    "basis_factorization",
    "certify",
    "check_gradient",
    "check_hessian",
    "choose_n_components",
    "lam_max",
    "plot",
    "regularization_path",
    "rotate_loadings",
    "solve",
    "support_stability",
    "value",
]

MODULES = (
    "anndata",
    "certificate",
    "hyperbolic",
    "io",
    "kg",
    "penalties",
    "regularization",
    "result",
    "sklearn",
)
"""Public modules that are not in ``__all__``; they define names that few programs import."""


def __dir__() -> list[str]:
    return sorted({*__all__, *MODULES})
