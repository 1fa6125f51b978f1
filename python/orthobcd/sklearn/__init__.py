"""scikit-learn estimators with exactly orthonormal components; they need the extra ``sklearn``."""

from .._internal.extras import need

need("sklearn", "sklearn")

from .nonnegative_pca import NonnegativePCA  # noqa: E402
from .sparse_pca import SparsePCA  # noqa: E402

__all__ = ["NonnegativePCA", "SparsePCA"]
