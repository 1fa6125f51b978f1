"""A J-orthogonal map after which distances on the pseudo-hyperboloid follow given ones."""

# [start:data]
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import orthobcd as ob
from orthobcd.hyperbolic import distance, double_projection

digits = load_digits().data / 16.0
pixels = np.argsort(-digits.var(axis=0))[:40]
D = digits[:300, pixels] - digits[:, pixels].mean(axis=0)
signature = np.repeat([1, -1], 20)
# [end:data]

# [start:solve]
problem = ob.hyperbolic.HyperbolicStructuralProbeProblem(D, signature)
solver = ob.VRJOBCD(full_gradient=True, side="both", matchings=40, max_epochs=200)
result = ob.solve(problem, solver=solver, tol=0.0)

before, after = problem.value(np.eye(40)), result.objective
print(f"mean squared error {before:.4f} before, {after:.4f} after {result.n_epochs} gradients")
print(f"‖XᵀJX − J‖ / ‖X‖² = {result.feasibility / np.sum(result.x**2):.0e}")
print(f"‖X‖² / n = {np.sum(result.x**2) / 40:.2f}")
# [end:solve]

# [start:plot]
from matplotlib.figure import Figure  # noqa: E402

target = problem.scale * np.linalg.norm(D[:, None] - D[None], axis=2)
pairs = np.triu_indices(len(D), 1)
figure = Figure(figsize=(8, 3.6), layout="constrained")
axes = figure.subplots(1, 2, sharex=True, sharey=True)
correlations = []
for ax, X, name in zip(axes, (np.eye(40), result.x), ("X = I", "after the probe"), strict=True):
    Q = double_projection(D @ X, signature)
    d = distance(Q, Q, signature, pairwise=True)
    correlations.append(np.corrcoef(target[pairs], d[pairs])[0, 1])
    ax.hexbin(target[pairs], d[pairs], gridsize=45, bins="log", cmap="magma_r", linewidths=0.1)
    ax.axline((0, 0), slope=1, color="0.4", linewidth=1, linestyle="--")
    ax.set(title=f"{name}: correlation {correlations[-1]:.2f}", xlabel="Euclidean distance, scaled")
axes[0].set_ylabel("distance on the pseudo-hyperboloid")
# [end:plot]

assert after < 0.95 * before
assert correlations[1] > correlations[0]
assert result.feasibility <= 1e-12 * np.sum(result.x**2)


def save(folder: Path) -> None:
    """Write the figure of the page."""
    figure.savefig(folder / "probe-distances.png", dpi=110)
