"""
How sparse, how many, which to trust
====================================

``choose_n_components``, ``SparsePCACV`` and ``support_stability`` answer these three questions
from the data. The answer is known for the data of the example: three components with six, five
and four of thirty features, and noise.
"""

import numpy as np

import orthobcd as ob

rng = np.random.default_rng(0)
V = np.zeros((30, 3))
for k, (first, size) in enumerate([(0, 6), (6, 5), (11, 4)]):
    V[first : first + size, k] = 1 / np.sqrt(size)
X = (rng.standard_normal((200, 3)) * [3.0, 2.5, 2.0]) @ V.T + rng.standard_normal((200, 30))

# %%
# **How many components?** As many as there are eigenvalues of the data above those of the same
# data with permuted columns (parallel analysis):

choice = ob.choose_n_components(X, random_state=0)
print(f"{choice.n_components} components stand out from noise")
choice_ax = choice.plot()

# %%
# **How sparse?** The sparsest fit whose held-out variance is within a standard error of the best.
# The whole path of penalties is computed for every fold:

pca = ob.SparsePCACV(n_components=3, random_state=0).fit(X)
print(f"{pca.n_nonzero_} loadings; {pca.score(X):.0%} of the variance")
penalty_ax = pca.plot()

# %%
# **Which features to trust?** Those that are chosen again on random halves of the samples:

fixed = ob.SparsePCA(n_components=3, n_nonzero=15, random_state=0)
stability = ob.support_stability(fixed, X, n_subsamples=30, random_state=0)
chosen = stability.components != 0
print(f"least frequent of the fit: in {stability.frequencies[chosen].min():.0%} of the halves")
print(f"most frequent of the others: in {stability.frequencies[~chosen].max():.0%} of the halves")
stability_ax = stability.plot()

# %%
# **Missing values** need not be dropped:

gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
patient = ob.SparsePCA(n_components=3, n_nonzero=15, missing="em", random_state=0).fit(gaps)
print(f"with a tenth missing: {patient.score(X):.0%} of the variance of the whole data")
