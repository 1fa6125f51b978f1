"""Solves with a mixed signature and of sums over data rows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import _core
from .._internal.checks import FloatArray, is_sparse
from ..objectives import ByFunction, FiniteSum, GramQuadratic, LogisticLoss, Quadratic
from ..penalties import NoPenalty
from ..problems import Problem, as_start, samples
from ..result import Hyperbolic, Status, WellPosedness
from ..solvers import JOBCD, VRJOBCD, Auto
from .factorizations import random_j_orthogonal
from .pencil import eigenvectors
from .posedness import decided, is_definite
from .probe import HyperbolicStructuralProbeProblem
from .problems import HyperbolicEigenvalueProblem, PencilProblem

logger = logging.getLogger("orthobcd")

STARTS = ("identity", "random", "cs")

RANDOM_SCALE = 0.5
"""Standard deviation of the rapidities of the start "random"."""

CS_SCALE = 0.65
"""Standard deviation of the rapidities of the start "cs"; E[sinh²] is that of the paper's starts.
"""

PROBE_TOL = 1e-4
"""Default ``tol`` of a `HyperbolicStructuralProbeProblem`."""

SUMS = (LogisticLoss, HyperbolicStructuralProbeProblem)
"""Objectives whose pairs have no exact model; only `VRJOBCD` solves them."""


def default_solver(problem: Problem) -> JOBCD | VRJOBCD | Auto:
    """The default solver: `VRJOBCD` for sums, `Auto` for a penalised quadratic and for a definite
    pencil (C, J), whose eigenvectors are a minimiser, else `JOBCD`."""
    if isinstance(problem, HyperbolicStructuralProbeProblem):
        return VRJOBCD(full_gradient=True, side="both", matchings=problem.n_rows)
    if isinstance(problem.smooth, LogisticLoss):
        return VRJOBCD(full_gradient=True)
    if samples(problem):
        return VRJOBCD()
    alone = isinstance(problem.penalty, NoPenalty) or isinstance(problem.smooth, ByFunction)
    return JOBCD() if alone and not _is_definite_pencil(problem) else Auto()


def _is_definite_pencil(problem: Problem) -> bool:
    """True if f is ``½ tr(XᵀCXD)`` with C positive definite and D diagonal and nonnegative."""
    smooth = problem.smooth
    if isinstance(smooth, Quadratic):
        D = smooth.D
        diagonal = D is None or (np.array_equal(D, np.diag(np.diag(D))) and np.diag(D).min() >= 0.0)
        return smooth.linear is None and diagonal and is_definite(smooth.C)
    # AᵀA is not definite for fewer samples than features.
    dense = isinstance(smooth, GramQuadratic) and smooth.scale > 0.0
    return dense and smooth.A.shape[0] >= smooth.n_rows


def check_solver(problem: Problem, solver: Any) -> None:
    """Refuses a solver that cannot solve a problem with a mixed signature."""
    smooth, name = problem.smooth, type(problem.smooth).__name__
    got = type(solver).__name__
    if not isinstance(solver, (Auto, JOBCD, VRJOBCD)):
        kind = type(problem).__name__
        raise TypeError(f"solver must be a JOBCD, VRJOBCD or Auto for a {kind}, got {got}")
    sampled = isinstance(solver, VRJOBCD)
    if not sampled and isinstance(smooth, SUMS):
        raise TypeError(f"solver must be a VRJOBCD for a {name}, got {got}")
    if sampled and isinstance(smooth, ByFunction) and not isinstance(smooth, FiniteSum):
        raise TypeError(f"solver must be a JOBCD or Auto for a {name}, got {got}")


def describe(problem: Problem, returned: dict[str, Any], posed: WellPosedness | None) -> None:
    """Adds what a mixed signature has to the core's dict, and sets the status by ``posed``."""
    recession = returned.pop("recession")
    if recession is not None:
        logger.warning(
            "the objective is unbounded below along %s %s: rapidity → %s∞, signs %s",
            recession["kind"],
            recession["pair"],
            "+" if recession["direction"] > 0 else "−",
            recession["signs"],
        )
    if posed is not None:
        told = (Status.INTERRUPTED.value, Status.TARGET.value, Status.UNBOUNDED.value)
        if not posed.attained and returned["status"] not in told:
            returned["status"] = (Status.DIVERGED if posed.finite else Status.UNBOUNDED).value
    x = values = None
    if isinstance(problem, PencilProblem):
        x = returned["x"]
        image = problem.matrix @ x
        solved = returned.get("strategy") == "pencil"  # the core has checked that XᵀMX is diagonal
        if returned["status"] == Status.CONVERGED.value and not solved:
            x = eigenvectors(problem, x, image)
        if x is not returned["x"]:
            image = problem.matrix @ x
        values = problem.signature * np.einsum("ik,ik->k", x, image)
    returned["hyperbolic"] = Hyperbolic(values, x, posed, recession)


def for_sum(problem: Problem, solver: VRJOBCD) -> VRJOBCD:
    """The solver with ``step_rule`` set to the default of the problem."""
    probe = isinstance(problem, HyperbolicStructuralProbeProblem)
    if solver.side != "rows" and not probe:
        raise ValueError(f"side must be 'rows' for a {type(problem).__name__}")
    if solver.step_rule is not None:
        return solver
    if isinstance(problem.smooth, FiniteSum) and problem.smooth.lipschitz is None:
        if solver.full_gradient:
            return replace(solver, step_rule="adaptive")
        if not isinstance(problem.penalty, NoPenalty):
            raise ValueError("lipschitz must be given to sample a FiniteSum with a penalty")
        return replace(solver, step_rule="accumulated")
    return replace(solver, step_rule="accumulated" if probe else "bound")


def as_sum(problem: Problem) -> Any:
    """The problem with f as a sum over data rows, of which `VRJOBCD` samples some.

    The rows are contiguous, while those of a `GramQuadratic` are not.
    """
    smooth = problem.smooth
    if isinstance(smooth, (LogisticLoss, FiniteSum, HyperbolicStructuralProbeProblem)):
        return problem
    if isinstance(problem, HyperbolicEigenvalueProblem):
        data, scale = problem.A, 2.0 if problem.sense == "min" else -2.0
        if problem.ridge < 0.0:
            raise ValueError("ridge must be nonnegative with VRJOBCD")
    elif isinstance(smooth, GramQuadratic) and smooth.mean is None:
        data, scale = smooth.A, smooth.scale
    else:
        raise ValueError(
            "solver must not be VRJOBCD here, which needs a sum (FiniteSum, LogisticLoss, "
            "GramQuadratic without mean, hyperbolic eigenvalues, structural probe)"
        )
    dense = np.ascontiguousarray(data.toarray() if is_sparse(data) else data)
    ridge = getattr(problem, "ridge", 0.0)
    if ridge > 0.0:
        dense = np.vstack([dense, np.sqrt(ridge) * np.eye(dense.shape[1])])
    rows = SimpleNamespace(A=dense, scale=scale, mean=None)
    return SimpleNamespace(
        smooth=rows, penalty=problem.penalty, signature=problem.signature, shape=problem.shape
    )


def posedness_of(problem: Problem, allowed: Callable[[float], bool]) -> WellPosedness | None:
    """Well-posedness of a pencil problem, with a warning if there is no minimum; else None.

    None, too, if an eigendecomposition, of a work in multiply-adds, is not ``allowed``.
    """
    if not isinstance(problem, PencilProblem):
        return None
    if isinstance(problem, HyperbolicEigenvalueProblem) and problem.sense == "max":
        # Unbounded unless A = 0; the solve finds an unbounded pair.
        return None
    if not problem.weights.any():
        # The objective is constant for every matrix.
        return None
    signs = problem.signature.astype(np.float64)
    posed = decided(problem.matrix, signs, allowed)
    if posed is not None and not posed.attained:
        logger.warning("%s: %s", type(problem).__name__, posed.message)
    return posed


def start_point(problem: Problem, x0: Any, seed: int) -> FloatArray:
    """The start with a name, or the checked array."""
    signs, (n, r) = problem.signature, problem.shape
    assert signs is not None
    if x0 is None:
        free = isinstance(problem.smooth, ByFunction)
        nonnegative = getattr(problem.penalty, "nonnegative", False)
        x0 = "random" if free and not nonnegative else "identity"
    start = as_start(x0, STARTS, (n, r))
    if isinstance(start, str):
        if start == "identity":
            return np.eye(n, r)
        scale = RANDOM_SCALE if start == "random" else CS_SCALE
        return np.ascontiguousarray(random_j_orthogonal(signs, scale, seed)[:, :r])
    assert start is not None
    return _core.j_orthogonal_start(start, signs) if r == n else start
