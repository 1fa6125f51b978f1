"""
Gene expression
===============

Four sparse components of gene expression tell two leukemias apart. The data are the expression
levels of 72 patients (Golub and others, 1999), of the 1000 probes of 7129 that vary most.
"""

import os
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import orthobcd as ob
from orthobcd import plot

DATA = Path(os.environ.get("ORTHOBCD_DATA", "data"))
golub = np.load(DATA / "leukemia_golub.npz")  # Golub et al., Science 286, 1999
X = np.log2(np.clip(golub["X"], 100, 16000).astype(float))  # 72 patients, 7129 probes
y = golub["y"]  # 0: ALL, 1: AML
probes = np.sort(np.argsort(-X.var(axis=0))[:1000])  # the 1000 that vary most
X = X[:, probes]
genes = [f"probe {j}" for j in probes]

# %%
# Four components of 120 loadings in all:

pca = ob.SparsePCA(n_components=4, n_nonzero=120, random_state=0).fit(X)
print(f"{pca.n_nonzero_} of {pca.components_.size} loadings")
print("variance by component:", np.round(pca.explained_variance_ratio_, 3))
axes = plot.components(pca, feature_names=genes, max_columns=2, n_top=8)

# %%
# The components were found without the diagnosis. A logistic regression on four scores predicts
# the diagnosis. In each fold of the cross-validation the components are fitted anew, to the
# patients of the other folds:

few = make_pipeline(ob.SparsePCA(4, n_nonzero=120, random_state=0), LogisticRegression())
accuracy = cross_val_score(few, X, y, cv=3).mean()
print(f"ALL against AML from four scores: {accuracy:.2f}")
