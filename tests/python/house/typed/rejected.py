"""Wrong calls: the type checkers must refuse every line that ends with `# wrong`."""

from __future__ import annotations

import numpy as np

import orthobcd as ob

A = np.eye(4)
problem = ob.SparsePCAProblem(A, 2, ob.L0(0.5))

ob.OBCD(working_set="tield")  # wrong
ob.OBCD(curvature="bound")  # wrong
ob.OBCD(alpha=1e-5)  # wrong
ob.JOBCD(update="vr-jacobi")  # wrong
ob.VRJOBCD(step_rule="adam")  # wrong
ob.Continuation(solver=ob.Auto())  # wrong
ob.Auto(makers=["spectre"])  # wrong
ob.Auto(n_starts=3)  # wrong
ob.MCP("large", 1)  # wrong
ob.Box("low", 1)  # wrong
ob.L1(0.1) + ob.Cardinality(3)  # wrong
ob.L1(0.1) + 0.1  # wrong
ob.StiefelProblem(A, ob.L0(1.0), 2)  # wrong
ob.StiefelProblem(ob.Quadratic(A), ob.L0(1.0), 4, determinant=-1)  # wrong
ob.SparsePCAProblem(A, 2, "l0")  # wrong
ob.NonnegativePCAProblem(A)  # wrong
ob.HyperbolicEigenvalueProblem(A, [1, 1, -1, -1], sense="least")  # wrong
ob.solve(A)  # wrong
ob.solve(problem, solver="auto")  # wrong
ob.solve(problem, max_time="1 s")  # wrong
ob.certify(ob.Quadratic(A), A)  # wrong
ob.regularization_path(A, 2, "l2")  # wrong
ob.SparsePCA(2, alpha_scale="percent")  # wrong
wrong: int = ob.solve(problem)  # wrong
