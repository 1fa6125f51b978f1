"""Documented calls: every one must pass the type checkers (and runs)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse

import orthobcd as ob
from orthobcd.hyperbolic import distance, double_projection

rng = np.random.default_rng(0)
A = rng.standard_normal((20, 6))
J = [1, 1, 1, 1, -1, -1]
folder = Path(tempfile.mkdtemp())

# objectives, penalties, problems
quadratic: ob.Quadratic = ob.Quadratic([[2.0, 1.0], [1.0, 3.0]])
metric = ob.Quadratic(-A.T @ A, linear=np.zeros((6, 2)), D=np.eye(2))
gram = ob.GramQuadratic(scipy.sparse.csr_array(A), scale=-1.0)
wide = ob.GramQuadratic(A.astype(np.float32), mean=A.mean(axis=0))
weights: ob.L1 = ob.L1(np.ones((6, 2)))
total: ob.Separable = ob.MCP(0.2, gamma=2) + ob.Box(-1, 1) + ob.L0(np.ones((6, 2)))
few: ob.Cardinality = ob.NonNegative() + ob.Cardinality(3)
bent = ob.PiecewiseQuadratic([0.0], [(0, -1, 0), (0, 2, 0)]) + ob.CappedL1(0.1, threshold=0.3)
summed = ob.SparsePCAProblem(A, 2, ob.SCAD(0.1) + ob.NonNegative())
stiefel = ob.StiefelProblem(quadratic, ob.L0(1), 1)
sparse = ob.SparsePCAProblem(A, 2, ob.L0(0.5), center=True)
listed = ob.SparsePCAProblem(A.tolist(), n_components=2, penalty=weights)
parts = ob.NonnegativePCAProblem(A, 2)
mixed = ob.JOrthogonalProblem(gram, J, ob.L1(0.1))
eigen = ob.HyperbolicEigenvalueProblem(A, J, sense="min", ridge=0.5)
pca = ob.hyperbolic.HyperbolicPCAProblem(A.T @ A, J, n_principal=2)
function = ob.SmoothFunction(lambda x: (float(x.sum()), np.ones_like(x)), 6, lipschitz=1)
slopes: float = ob.check_gradient(function, np.eye(6, 2))
turned = ob.StiefelProblem(function, ob.L1(0.1), 6, determinant=1)
curved = ob.SmoothFunction(lambda x: (0.0, 0 * x), 6, hessian_product=lambda x, v: 0 * v)
curves: float = ob.check_hessian(curved, np.eye(6, 2))
free = ob.JOrthogonalProblem(function, J, ob.L1(0.1), n_components=2)
batches: ob.FiniteSum = ob.FiniteSum(lambda x, terms: (0.0, 0.0 * x), 20, 6, lipschitz=1)
sampled = ob.StiefelProblem(batches, ob.MCP(0.1, gamma=2), 2)
loss = ob.LogisticLoss(A, A, np.sign(A[:, 0]))
probe = ob.hyperbolic.HyperbolicStructuralProbeProblem(A, J, radius=2.0, T_scale="match")
problem: ob.Problem = mixed

# solvers
obcd = ob.OBCD(working_set="tiled", block_size=2, update="jacobi", proximal=1e-5)
way = ob.Continuation(lams=np.array([2.0, 1.0]), ratio=0.6, solver=ob.OBCD())
auto = ob.Auto(makers=["path", "spectral"])
sums = ob.VRJOBCD(max_epochs=3, small_batch_size=4)

# solves and certificates
result: ob.Result = ob.solve(sparse, solver=way, seed=1, n_threads=1)
ob.solve(parts, "partition", solver=obcd, callback=lambda progress: progress.seconds > 9)
ob.solve(mixed, "cs", solver=ob.JOBCD(side="rows"), max_sweeps=5)
ob.solve(ob.JOrthogonalProblem(loss, J), solver=sums)
ob.solve(stiefel, [[1.0], [0.0]], solver=auto, tol=1e-8)
hyperbolic = ob.solve(eigen, np.eye(6), max_sweeps=50).hyperbolic
assert hyperbolic is not None
assert hyperbolic.eigenvalues is not None
values: list[float] = hyperbolic.eigenvalues.tolist()
certificate: ob.Certificate = ob.certify(eigen, np.eye(6))
exact: ob.Result = ob.solve(sparse.with_penalty(ob.Cardinality([3, 2])), result.x, max_work=0.01)
result.save(folder / "result.npz")
again: ob.Result = ob.Result.load(folder / "result.npz")
path: ob.regularization.RegularizationPath = ob.regularization_path(A, 2, "l1", alphas=[1.0, 0.5])
largest: float = ob.lam_max(A, 2, center=True)
x = ob.hyperbolic.random_j_orthogonal(J, scale=0.3)
d = distance(double_projection(A, J), double_projection(A[:3], J), J, pairwise=True)

# estimators and graphs
fitted: ob.SparsePCA = ob.SparsePCA(n_components=2, n_nonzero=6, random_state=0).fit(A)
ob.SparsePCA(n_components=2, n_nonzero=np.array([3, 2])).fit(A)
ob.NonnegativePCA(n_components=2, n_nonzero=np.array([3, 2], dtype=np.int32)).fit(A)
ob.Cardinality(np.array([3, 2]))
scores = ob.NonnegativePCA(2, max_time=0.2).fit(A).transform(A)
triples = np.stack([np.arange(6), np.zeros(6, dtype=int), (np.arange(6) + 1) % 6], axis=1)
model: ob.kg.UltraE = ob.kg.UltraE(6, 1, 4, entity_names="abcdef", max_epochs=1).fit(triples)
best: list[tuple[int | str, float]] = model.predict_tails("a", 0, k=2)
