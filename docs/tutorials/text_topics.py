"""Text: topics of 9394 news stories in a sparse matrix of 36771 words."""

# [start:data]
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
# [end:data]

# [start:fit]
pca = ob.SparsePCA(n_components=6, n_nonzero=90, random_state=0).fit(X)
print(f"{X.shape[1]} words, {X.nnz} counts; the centred matrix is never formed")
# [end:fit]

assert pca.n_nonzero_ == 90

# [start:topics]
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
# [end:topics]

purity = [int(row["of its 200 strongest stories"].rstrip("%")) for row in rows]
assert np.median(purity) >= 80, rows

# [start:heat]
heat = plot.components(pca, kind="heatmap")
# [end:heat]


def save(folder: Path) -> None:
    """Write the figures of the page."""
    heat.figure.savefig(folder / "text-heat.png", dpi=110)
