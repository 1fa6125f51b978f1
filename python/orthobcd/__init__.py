"""Exactly orthonormal sparse and nonnegative components, by block coordinate descent.

``orthobcd`` minimises ``f(X) + h(X)`` over matrices X with ``XᵀJX`` fixed, ``J = diag(±1)``. A step
changes two rows and solves their problem to global optimality: every iterate is feasible and the
objective never rises.
"""

from . import anndata as anndata
from . import hyperbolic as hyperbolic
from . import io as io
from . import kg as kg
from . import plot as plot
from . import sklearn as sklearn
from ._core import __version__
from .certificate import BasisFactorization, Bound, Certificate, basis_factorization, certify
from .derivatives import check_gradient, check_hessian
from .hyperbolic import (
    HyperbolicEigenvalueProblem,
    HyperbolicPCAProblem,
    HyperbolicStructuralProbeProblem,
    JOrthogonalProblem,
    WellPosedness,
    hyperbolic_cs,
    hyperbolic_qr,
    indefinite_least_squares,
    indefinite_polar,
    random_j_orthogonal,
    well_posedness,
)
from .io import TripleFiles, load_triples
from .kg import Ranking, UltraE, dense_core
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
    Sum,
)
from .problems import NonnegativePCAProblem, Problem, SparsePCAProblem, StiefelProblem
from .regularization import RegularizationPath, lam_max, regularization_path
from .result import PathPoint, Result, Search, SearchRun, StartReport, Status
from .rotation import rotate_loadings
from .sklearn import (
    ComponentChoice,
    Loadings,
    NonnegativePCA,
    OrthogonalNMF,
    SparsePCA,
    SparsePCACV,
    SupportStability,
    choose_n_components,
    support_stability,
)
from .solvers import JOBCD, OBCD, VRJOBCD, Auto, Continuation, Phase
from .solving import Progress, solve

__all__ = [
    "JOBCD",
    "L0",
    "L1",
    "MCP",
    "OBCD",
    "SCAD",
    "VRJOBCD",
    "Auto",
    "BasisFactorization",
    "Bound",
    "Box",
    "CappedL1",
    "Cardinality",
    "Certificate",
    "ComponentChoice",
    "Continuation",
    "FiniteSum",
    "GramQuadratic",
    "HyperbolicEigenvalueProblem",
    "HyperbolicPCAProblem",
    "HyperbolicStructuralProbeProblem",
    "JOrthogonalProblem",
    "Loadings",
    "LogisticLoss",
    "NoPenalty",
    "NonNegative",
    "NonnegativePCA",
    "NonnegativePCAProblem",
    "OrthogonalNMF",
    "PathPoint",
    "Phase",
    "PiecewiseQuadratic",
    "Problem",
    "Progress",
    "Quadratic",
    "Ranking",
    "RegularizationPath",
    "Result",
    "RowSparse",
    "Search",
    "SearchRun",
    "Separable",
    "SmoothFunction",
    "SparsePCA",
    "SparsePCACV",
    "SparsePCAProblem",
    "StartReport",
    "Status",
    "StiefelProblem",
    "Sum",
    "SupportStability",
    "TripleFiles",
    "UltraE",
    "WellPosedness",
    "__version__",
    "basis_factorization",
    "certify",
    "check_gradient",
    "check_hessian",
    "choose_n_components",
    "dense_core",
    "hyperbolic_cs",
    "hyperbolic_qr",
    "indefinite_least_squares",
    "indefinite_polar",
    "lam_max",
    "load_triples",
    "plot",
    "random_j_orthogonal",
    "regularization_path",
    "rotate_loadings",
    "solve",
    "support_stability",
    "well_posedness",
]

MODULES = ("anndata", "hyperbolic", "io", "kg", "sklearn")
"""Public modules that are not in ``__all__``."""


def __dir__() -> list[str]:
    return sorted({*__all__, *MODULES})
