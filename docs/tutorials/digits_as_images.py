"""
Digits as images
================

Ten sparse components, ten nonnegative ones, and the path of penalties, on 1797 images of
handwritten digits.
"""

import numpy as np
from sklearn.datasets import load_digits

import orthobcd as ob
from orthobcd import plot

digits = load_digits()
X = digits.data  # 1797 images of 8 x 8 pixels

# %%
# Ten components with 120 nonzeros in all. Purple pixels have positive loadings, orange ones
# negative, and grey ones are exactly zero:

sparse = ob.SparsePCA(n_components=10, n_nonzero=120, random_state=0).fit(X)

print(f"{sparse.n_nonzero_} of {sparse.components_.size} loadings are not zero")
print(f"{sparse.explained_variance_ratio_.sum():.1%} of the variance is explained")
print(f"‖VVᵀ − I‖ = {np.linalg.norm(sparse.components_ @ sparse.components_.T - np.eye(10)):.0e}")
axes = plot.components(sparse, image_shape=(8, 8))

# %%
# With nonnegative loadings the components are parts. Orthogonal nonnegative vectors cannot
# overlap, so every pixel belongs to at most one of them:

parts = ob.NonnegativePCA(n_components=10, random_state=0).fit(X)

used = np.count_nonzero(parts.components_, axis=0)
print(f"every pixel belongs to at most {used.max()} part")
parts_axes = plot.components(parts, image_shape=(8, 8))

# %%
# How does variance grow with the number of nonzeros? The regularisation path answers for every
# penalty weight:

paths = {
    "l0": ob.regularization_path(X, 10, "l0", n_alphas=18),
    "l1": ob.regularization_path(X, 10, "l1", n_alphas=9, ratio=0.85),
}
path_ax = plot.path(paths, mark=120)
