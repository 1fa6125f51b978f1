"""Problems over matrices with ``XᵀJX`` fixed, J-orthogonal matrices, and pseudo-hyperboloids."""

from ..result import WellPosedness
from .factorizations import (
    hyperbolic_cs,
    hyperbolic_qr,
    indefinite_least_squares,
    indefinite_polar,
    random_j_orthogonal,
)
from .posedness import well_posedness
from .probe import HyperbolicStructuralProbeProblem
from .problems import HyperbolicEigenvalueProblem, HyperbolicPCAProblem, JOrthogonalProblem
from .space import (
    DISTANCE_EPSILON,
    distance,
    distance_gradient,
    double_projection,
    double_projection_gradient,
    inner,
    inverse_double_projection,
)

__all__ = [
    "DISTANCE_EPSILON",
    "HyperbolicEigenvalueProblem",
    "HyperbolicPCAProblem",
    "HyperbolicStructuralProbeProblem",
    "JOrthogonalProblem",
    "WellPosedness",
    "distance",
    "distance_gradient",
    "double_projection",
    "double_projection_gradient",
    "hyperbolic_cs",
    "hyperbolic_qr",
    "indefinite_least_squares",
    "indefinite_polar",
    "inner",
    "inverse_double_projection",
    "random_j_orthogonal",
    "well_posedness",
]


def __dir__() -> list[str]:
    return __all__
