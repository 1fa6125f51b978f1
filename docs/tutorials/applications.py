"""
Six applications
================

Six problems with orthonormal columns from the literature, each in a few lines.

Electronic structure
--------------------

The total energy of r orbitals on a line of n sites is ½tr XᵀLX + ¼α ρᵀL⁻¹ρ with ρ = diag XXᵀ.
This discretised Kohn-Sham energy is a common test of methods with orthogonality constraints (Wen
and Yin, Math. Program. 142, 2013). The energy is not quadratic, so it is a ``SmoothFunction``.
With ℓ1 the orbitals become local and stay exactly orthonormal (compressed modes: Ozoliņš, Lai,
Caflisch and Osher, PNAS 110, 2013).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine, make_moons
from sklearn.neighbors import kneighbors_graph

import orthobcd as ob

n, r, alpha = 60, 4, 1.0
L = 2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
inverse = np.linalg.inv(L)


def energy(X):
    rho = np.sum(X**2, axis=1)
    potential = inverse @ rho
    value = 0.5 * np.sum(X * (L @ X)) + 0.25 * alpha * rho @ potential
    return value, L @ X + alpha * potential[:, None] * X


smooth = ob.SmoothFunction(energy, n)
ground = ob.solve(ob.StiefelProblem(smooth, ob.NoPenalty(), r))
localised = ob.solve(ob.StiefelProblem(smooth, ob.L1(1.0), r), ground.x, max_sweeps=2000)
print(f"energy {ground.objective:.4f}, with localised orbitals {localised.smooth_value:.2f}")

electrons, axes = plt.subplots(1, 2, figsize=(8, 2.6), sharey=True)
for ax, X, title in zip(axes, (ground.x, localised.x), ("h = 0", "ℓ1"), strict=True):
    ax.plot(X)
    ax.set(title=title, xlabel="site")

# %%
# Dictionary learning
# -------------------
#
# The orthogonal X that maximises ‖AX‖₄⁴ makes AX sparse, if A has a dictionary that does (Zhai,
# Yang, Liao, Wright and Ma, J. Mach. Learn. Res. 21, 2020). The picture shows the inner products
# of the learnt atoms with the true ones:

rng = np.random.default_rng(0)
D = np.linalg.qr(rng.standard_normal((16, 16)))[0]
codes = rng.standard_normal((3000, 16)) * (rng.random((3000, 16)) < 0.2)
A = codes @ D.T


def fourth(X):
    image = A @ X
    return -0.25 * np.mean(image**4), -A.T @ image**3 / image.size


learnt = ob.solve(ob.StiefelProblem(ob.SmoothFunction(fourth, 16), ob.NoPenalty(), 16))
match = np.abs(D.T @ learnt.x)
print(f"every atom is found: overlaps from {match.max(axis=0).min():.3f} on")

dictionary, ax = plt.subplots(figsize=(3.2, 3.2), layout="constrained")
ax.imshow(match, cmap="magma")
ax.set(xlabel="learnt", ylabel="true")

# %%
# Unbalanced Procrustes
# ---------------------
#
# ½‖AX − B‖² over n × r matrices with orthonormal columns has no closed form for r < n. Here A has
# fewer rows than columns, so that many X fit equally well, and the penalty selects a sparse one.
# A concave penalty does not shrink large entries.

B0 = np.zeros((40, 5))
B0[np.arange(40) % 8 < 5, np.arange(40)[np.arange(40) % 8 < 5] % 5] = 1.0
truth = B0 / np.linalg.norm(B0, axis=0)
A = rng.standard_normal((30, 40))
B = A @ truth + 0.1 * rng.standard_normal((30, 5))
loss = ob.Quadratic(A.T @ A, linear=-A.T @ B)
dense = ob.solve(ob.StiefelProblem(loss, ob.NoPenalty(), 5), max_work=0.3)
sparse = ob.solve(ob.StiefelProblem(loss, ob.MCP(1.0, 0.3), 5), max_work=0.3)
errors = [np.linalg.norm(result.x - truth) for result in (dense, sparse)]
# Many dense X fit 30 equations for 40 rows; which one comes out is chance.
print(f"30 equations for 40 rows: error of X {errors[1]:.2f} sparse, above 0.5 dense")

procrustes, axes = plt.subplots(1, 3, figsize=(6, 4), sharey=True)
for ax, X, title in zip(axes, (truth, dense.x, sparse.x), ("true", "h = 0", "MCP"), strict=True):
    ax.imshow(X, cmap="RdBu", vmin=-0.5, vmax=0.5, aspect="auto")
    ax.set_title(title)

# %%
# Clusters
# --------
#
# Nonnegative orthonormal columns have at most one nonzero in a row: they are weighted indicators
# of clusters. This is orthogonal nonnegative matrix factorisation of a kernel (K-indicators:
# Chen, Zhang and others, 2019).

points, labels = make_moons(200, noise=0.06, random_state=0)
graph = kneighbors_graph(points, 8).toarray()
graph = np.maximum(graph, graph.T)
degrees = graph.sum(axis=1)
smoothed = np.linalg.matrix_power(0.5 * np.eye(200) + 0.5 * graph / degrees, 300)
kernel = ob.Quadratic(-0.5 * (smoothed + smoothed.T))
indicators = ob.solve(ob.StiefelProblem(kernel, ob.NonNegative(), 2), max_work=0.5)
found = indicators.x.argmax(axis=1)
agreement = max(np.mean(found == labels), np.mean(found != labels))
print(f"{agreement:.0%} of the points are in the right moon")

clusters, ax = plt.subplots(figsize=(4, 2.6), layout="constrained")
ax.scatter(*points.T, c=found, cmap="coolwarm", s=10)

# %%
# Joint diagonalisation
# ---------------------
#
# The rotation that makes several lagged covariances as diagonal as it can separates mixed sources
# (SOBI: Belouchrani, Abed-Meraim, Cardoso and Moulines, IEEE Trans. Signal Process. 45, 1997).

t = np.linspace(0.0, 1.0, 2000)
S = np.stack([np.sin(14 * t), np.sign(np.sin(37 * t)), (5 * t) % 1.0 - 0.5], axis=1)
S = (S - S.mean(axis=0)) / S.std(axis=0)
mixed = S @ rng.standard_normal((3, 3))
centred = mixed - mixed.mean(axis=0)
whitening = np.linalg.inv(np.linalg.cholesky(np.cov(centred.T))).T
W = centred @ whitening
lags = [W[:-lag].T @ W[lag:] / len(W) for lag in (5, 20, 60, 120)]
lags = [0.5 * (C + C.T) for C in lags]


def off_diagonal(X):
    value, slope = 0.0, np.zeros_like(X)
    for C in lags:
        image = C @ X
        rest = X.T @ image
        rest -= np.diag(np.diag(rest))
        value += np.sum(rest**2)
        slope += 4.0 * image @ rest
    return value, slope


turned = ob.solve(ob.StiefelProblem(ob.SmoothFunction(off_diagonal, 3), ob.NoPenalty(), 3))
recovered = W @ turned.x
correlation = np.abs(np.corrcoef(S.T, recovered.T)[:3, 3:]).max(axis=1)
print(f"each source is found, correlations from {correlation.min():.2f} on")

sources, axes = plt.subplots(1, 2, figsize=(8, 2.6))
for ax, signals, title in zip(axes, (mixed, recovered), ("mixed", "recovered"), strict=True):
    ax.plot(t, signals / np.abs(signals).max(axis=0) + [0.0, 2.5, 5.0], lw=0.8)
    ax.set(title=title, yticks=[])

# %%
# Sparse discriminants
# --------------------
#
# The objective tr Xᵀ(S_w − S_b)X plus an ℓ0 penalty is low for directions in which the means of
# classes differ more than the samples of a class do. The loadings are exactly orthogonal.

X, classes = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
means = np.stack([X[classes == k].mean(axis=0) for k in range(3)])
within = (X - means[classes]).T @ (X - means[classes]) / len(X)
between = X.T @ X / len(X) - within
criterion = ob.Quadratic(within - between)
directions = ob.solve(ob.StiefelProblem(criterion, ob.L0(0.02), 2), max_work=0.5)
projected = X @ directions.x
nearest = np.linalg.norm(projected[:, None] - (means @ directions.x)[None], axis=2).argmin(axis=1)
right = np.mean(nearest == classes)
print(f"{directions.n_nonzero} loadings of 26, {right:.0%} nearest to their class")

discriminants, ax = plt.subplots(figsize=(4, 3), layout="constrained")
ax.scatter(*projected.T, c=classes, cmap="viridis", s=12)
