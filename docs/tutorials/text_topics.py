"""
Topics of news stories
======================

Sparse components of word counts are topics: 66 to 100 % of the strongest stories of each
component are about one topic. The TDT2 collection is a sparse matrix of word counts of 9394
stories. Centring would make the matrix dense. The means are therefore subtracted inside the
products, and the covariance of all words is never formed.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse

import orthobcd as ob
from orthobcd import plot

DATA = Path(os.environ.get("ORTHOBCD_DATA", "data"))
counts = scipy.sparse.load_npz(DATA / "tdt2.csr.npz").tocsr().astype(float)
topics = np.load(DATA / "tdt2.labels.npy")  # what the stories are about, 1 to 30

frequency = np.asarray((counts > 0).sum(axis=0)).ravel()
X = counts[:, frequency >= 20]
X.data = np.log1p(X.data)
X = X @ scipy.sparse.diags_array(np.log(X.shape[0] / frequency[frequency >= 20]))
# Stories of unit length, so that long ones do not outweigh the rest.
lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
X = scipy.sparse.diags_array(1.0 / lengths) @ X

# %%

pca = ob.SparsePCA(n_components=6, n_nonzero=90, random_state=0).fit(X)
print(f"{X.shape[1]} words, {X.nnz} counts; the centred matrix is never formed")

# %%
# Every component is a handful of words. The stories were labelled with topics by people; the fit
# does not use the labels. The last column says how many of the 200 stories with the largest score
# are about one topic:

scores = pca.transform(X)
rows = []
for k, row in enumerate(pca.components_):
    strongest = np.argsort(-scores[:, k])[:200]
    labels, tally = np.unique(topics[strongest], return_counts=True)
    rows.append(
        {
            "component": k + 1,
            "words": int(np.count_nonzero(row)),
            "variance": f"{pca.explained_variance_ratio_[k]:.2%}",
            "topic": int(labels[tally.argmax()]),
            "of its 200 strongest stories": f"{tally.max() / 200:.0%}",
        }
    )
print(pd.DataFrame(rows).to_string(index=False))

# %%
# The words of different components hardly overlap. The fit asks for orthogonality and for 90
# loadings, not for disjoint words:

heat = plot.components(pca, kind="heatmap")
