"""Exactly orthonormal sparse and nonnegative components, by block coordinate descent.

``orthobcd`` minimises ``f(X) + h(X)`` over matrices X with ``XᵀJX`` fixed, ``J = diag(±1)``. A step
changes two rows and solves their problem to global optimality: every iterate is feasible and the
objective never rises.
"""

from typing import TYPE_CHECKING, Any

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
from .solvers import JOBCD, OBCD, VRJOBCD, Auto, Continuation, Phase
from .solving import Progress, solve

if TYPE_CHECKING:
    from . import plot as plot
    from .sklearn import ComponentChoice as ComponentChoice
    from .sklearn import Loadings as Loadings
    from .sklearn import NonnegativePCA as NonnegativePCA
    from .sklearn import OrthogonalNMF as OrthogonalNMF
    from .sklearn import SparsePCA as SparsePCA
    from .sklearn import SparsePCACV as SparsePCACV
    from .sklearn import SupportStability as SupportStability
    from .sklearn import choose_n_components as choose_n_components
    from .sklearn import support_stability as support_stability

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

LAZY = {
    "ComponentChoice": "sklearn",
    "Loadings": "sklearn",
    "NonnegativePCA": "sklearn",
    "OrthogonalNMF": "sklearn",
    "SparsePCA": "sklearn",
    "SparsePCACV": "sklearn",
    "SupportStability": "sklearn",
    "choose_n_components": "sklearn",
    "support_stability": "sklearn",
    "plot": "plot",
}
"""Names that need an optional dependency, with the module that defines them; imported at first
use."""

SUBMODULES = ("anndata", "hyperbolic", "io", "kg", "sklearn")
"""Public modules that are not in ``__all__``."""

NEEDED = {"sklearn": "sklearn", "plot": "matplotlib"}
"""Packages that the modules of `LAZY` need."""


def __getattr__(name: str) -> Any:
    from importlib import import_module, util

    if name in SUBMODULES:
        return import_module(f".{name}", __name__)
    if name not in LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if util.find_spec(NEEDED[LAZY[name]]) is None:
        # ``from orthobcd import *`` works without the package; the first use names its extra.
        from ._internal.extras import Absent

        return Absent(LAZY[name], NEEDED[LAZY[name]])
    module = import_module(f".{LAZY[name]}", __name__)
    return module if name == LAZY[name] else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *LAZY, *SUBMODULES})
