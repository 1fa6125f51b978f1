"""
Probing distances
=================

A structural probe asks for a linear map of representations after which their distances follow
given, meaningful distances. Here the map is J-orthogonal and the distances are those on the
:doc:`pseudo-hyperboloid </ultrahyperbolic>`. Half of the pixels count as "time" (sign −1):
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import orthobcd as ob
from orthobcd.hyperbolic import distance, double_projection

digits = load_digits().data / 16.0
pixels = np.argsort(-digits.var(axis=0))[:40]
D = digits[:300, pixels] - digits[:, pixels].mean(axis=0)
signature = np.repeat([1, -1], 20)

# %%
# Euclidean distances are the target, scaled so that both kinds have the same mean at X = I;
# without the scaling X diverges, because Euclidean distances grow faster than those on the
# pseudo-hyperboloid.

problem = ob.hyperbolic.HyperbolicStructuralProbeProblem(D, signature)
solver = ob.VRJOBCD(full_gradient=True, side="both", matchings=40, max_epochs=200)
result = ob.solve(problem, solver=solver, tol=0.0)

before, after = problem.value(np.eye(40)), result.objective
epochs = result.extra["n_epochs"]
print(f"mean squared error {before:.4f} before, {after:.4f} after {epochs} gradients")
print(f"‖XᵀJX − J‖ / ‖X‖² = {result.feasibility / np.sum(result.x**2):.0e}")
print(f"‖X‖² / n = {np.sum(result.x**2) / 40:.2f}")

# %%
# The map is feasible to rounding. The squared error falls by a quarter; one linear map cannot fit
# all distances:

target = problem.scale * np.linalg.norm(D[:, None] - D[None], axis=2)
pairs = np.triu_indices(len(D), 1)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharex=True, sharey=True, layout="constrained")
correlations = []
for ax, X, name in zip(axes, (np.eye(40), result.x), ("X = I", "after the probe"), strict=True):
    Q = double_projection(D @ X, signature)
    d = distance(Q, Q, signature, pairwise=True)
    correlations.append(np.corrcoef(target[pairs], d[pairs])[0, 1])
    ax.hexbin(target[pairs], d[pairs], gridsize=45, bins="log", cmap="magma_r", linewidths=0.1)
    ax.axline((0, 0), slope=1, color="0.4", linewidth=1, linestyle="--")
    ax.set(title=f"{name}: correlation {correlations[-1]:.2f}", xlabel="Euclidean distance, scaled")
axes[0].set_ylabel("distance on the pseudo-hyperboloid")
