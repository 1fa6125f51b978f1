"""scikit-learn estimators with exactly orthonormal components; they need the extra ``sklearn``."""

from .._internal.extras import need

need("sklearn", "sklearn")

from .loadings import Loadings  # noqa: E402
from .nonnegative_pca import NonnegativePCA  # noqa: E402
from .orthogonal_nmf import OrthogonalNMF  # noqa: E402
from .selection import (  # noqa: E402
    ComponentChoice,
    SupportStability,
    choose_n_components,
    support_stability,
)
from .sparse_pca import SparsePCA  # noqa: E402
from .sparse_pca_cv import SparsePCACV  # noqa: E402

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
