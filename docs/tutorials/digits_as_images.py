"""Handwritten digits: components that are parts of the image."""

# [start:data]
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import orthobcd as ob
from orthobcd import plot

digits = load_digits()
X = digits.data  # 1797 images of 8 x 8 pixels
# [end:data]

# [start:sparse]
sparse = ob.SparsePCA(n_components=10, n_nonzero=120, random_state=0).fit(X)

print(f"{sparse.n_nonzero_} of {sparse.components_.size} loadings are not zero")
print(f"{sparse.explained_variance_ratio_.sum():.1%} of the variance is explained")
print(f"‖VVᵀ − I‖ = {np.linalg.norm(sparse.components_ @ sparse.components_.T - np.eye(10)):.0e}")
axes = plot.components(sparse, image_shape=(8, 8))
# [end:sparse]

assert sparse.n_nonzero_ == 120
assert sparse.explained_variance_ratio_.sum() > 0.69

# [start:nonnegative]
parts = ob.NonnegativePCA(n_components=10, random_state=0).fit(X)

used = np.count_nonzero(parts.components_, axis=0)
print(f"every pixel belongs to at most {used.max()} part")
parts_axes = plot.components(parts, image_shape=(8, 8))
# [end:nonnegative]

assert used.max() == 1
assert parts.components_.min() == 0.0

# [start:path]
paths = {
    "l0": ob.regularization_path(X, 10, "l0", n_alphas=18),
    "l1": ob.regularization_path(X, 10, "l1", n_alphas=9, ratio=0.85),
}
path_ax = plot.path(paths, mark=120)
# [end:path]


def save(folder: Path) -> None:
    """Write the figures of the page."""
    axes[0].figure.savefig(folder / "digits-sparse.png", dpi=110)
    parts_axes[0].figure.savefig(folder / "digits-parts.png", dpi=110)
    path_ax.figure.savefig(folder / "digits-path.png", dpi=110)
