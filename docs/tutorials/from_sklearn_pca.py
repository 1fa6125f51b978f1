"""
From scikit-learn's PCA to SparsePCA
====================================

Replace ``PCA`` by ``SparsePCA`` in a pipeline: each component can then be read, and the accuracy
falls with the number of loadings. On scikit-learn's breast cancer data four principal components
give 0.970, four sparse ones with 20 of 120 loadings 0.951 (as much as two principal components),
with 30 loadings 0.968. First the pipeline as it is often written:
"""

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import orthobcd as ob
from orthobcd import plot

X, y = load_breast_cancer(return_X_y=True, as_frame=True)

before = make_pipeline(StandardScaler(), PCA(4), LogisticRegression())
print(f"PCA: {cross_val_score(before, X, y).mean():.3f}")

# %%
# Each of the four components mixes all 30 features. Replace one line, and say how many loadings
# may be nonzero:

after = make_pipeline(
    StandardScaler().set_output(transform="pandas"),
    ob.SparsePCA(4, n_nonzero=20, random_state=0),
    LogisticRegression(),
)
accuracy = cross_val_score(after, X, y).mean()
print(f"SparsePCA, 20 of 120 loadings: {accuracy:.3f}")

pca = after.fit(X, y)[1]
axes = plot.components(pca, max_columns=2)

# %%
# The components are the size of a cell, the shape of its outline, and the standard errors of
# both.
#
# Instead of the number of nonzeros, the penalty can be searched for like any other parameter:

search = GridSearchCV(
    after.set_params(sparsepca__n_nonzero=None),
    {"sparsepca__alpha": [0.3, 0.1, 0.03, 0.01]},
    cv=3,
).fit(X, y)
print(f"the best of four weights: {search.best_score_:.3f}")

# %%
# If the small loadings of PCA are set to zero instead, the components are not orthonormal, and
# explain far less variance with the same number of nonzeros:

Z = StandardScaler().fit_transform(X)
dense = PCA(4).fit(Z)
largest = np.abs(dense.components_) >= np.sort(np.abs(dense.components_), axis=None)[-20]
cut = np.where(largest, dense.components_, 0.0)
cut /= np.linalg.norm(cut, axis=1, keepdims=True)

rows = []
for name, V in (("PCA", dense.components_), ("PCA, cut", cut), ("SparsePCA", pca.components_)):
    basis = np.linalg.qr(V.T)[0]  # variance of the span: nothing is counted twice
    rows.append(
        {
            "method": name,
            "nonzeros": int(np.count_nonzero(V)),
            "explained": float(np.sum((Z @ basis) ** 2) / np.sum(Z**2)),
            "‖VVᵀ − I‖": float(np.linalg.norm(V @ V.T - np.eye(4))),
        }
    )
print(pd.DataFrame(rows).to_string(index=False))
