"""How sparse, how many, which to trust, and what to do about gaps: data with a known answer."""

# [start:data]
from pathlib import Path

import numpy as np

import orthobcd as ob

rng = np.random.default_rng(0)
V = np.zeros((30, 3))
for k, (first, size) in enumerate([(0, 6), (6, 5), (11, 4)]):
    V[first : first + size, k] = 1 / np.sqrt(size)
X = (rng.standard_normal((200, 3)) * [3.0, 2.5, 2.0]) @ V.T + rng.standard_normal((200, 30))
# [end:data]

# [start:components]
choice = ob.choose_n_components(X, random_state=0)
print(f"{choice.n_components} components stand out from noise")
choice_ax = choice.plot()
# [end:components]

assert choice.n_components == 3

# [start:penalty]
pca = ob.SparsePCACV(n_components=3, random_state=0).fit(X)
print(f"{pca.n_nonzero_} loadings; {pca.score(X):.0%} of the variance")
penalty_ax = pca.plot()
# [end:penalty]

found = {frozenset(np.flatnonzero(row)) for row in pca.components_}
assert found == {frozenset(np.flatnonzero(column)) for column in V.T}

# [start:stability]
fixed = ob.SparsePCA(n_components=3, n_nonzero=15, random_state=0)
stability = ob.support_stability(fixed, X, n_subsamples=30, random_state=0)
chosen = stability.components != 0
print(f"least frequent of the fit: in {stability.frequencies[chosen].min():.0%} of the halves")
print(f"most frequent of the others: in {stability.frequencies[~chosen].max():.0%} of the halves")
stability_ax = stability.plot()
# [end:stability]

assert stability.frequencies[chosen].min() > 0.8

# [start:missing]
gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
patient = ob.SparsePCA(n_components=3, n_nonzero=15, missing="em", random_state=0).fit(gaps)
print(f"with a tenth missing: {patient.score(X):.0%} of the variance of the whole data")
# [end:missing]

assert patient.score(X) > 0.98 * pca.score(X)


def save(folder: Path) -> None:
    """Write the figures of the page."""
    choice_ax.figure.savefig(folder / "how-many.png", dpi=110)
    penalty_ax.figure.savefig(folder / "how-sparse.png", dpi=110)
    stability_ax.figure.savefig(folder / "stability.png", dpi=110)
