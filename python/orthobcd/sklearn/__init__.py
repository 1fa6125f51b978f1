"""scikit-learn estimators with exactly orthonormal components."""

from .loadings import Loadings
from .nonnegative_pca import NonnegativePCA
from .orthogonal_nmf import OrthogonalNMF
from .selection import (
    ComponentChoice,
    SupportStability,
    choose_n_components,
    support_stability,
)
from .sparse_pca import SparsePCA
from .sparse_pca_cv import SparsePCACV

__all__ = [
    "ComponentChoice",
    "Loadings",
    "NonnegativePCA",
    "OrthogonalNMF",
    "SparsePCA",
    "SparsePCACV",
    "SupportStability",
    "choose_n_components",
    "support_stability",
]


def __dir__() -> list[str]:
    return __all__
