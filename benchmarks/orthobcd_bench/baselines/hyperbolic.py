"""Baselines under a hyperbolic constraint: XᵀJX = J, J = diag(±1), n × n.

For any smooth f: Riemannian gradient with Cayley steps and Barzilai–Borwein lengths (from the left
and from the right), and UMCM. For ``min tr(XᵀAX)``: ADMM, and CSDM, which moves the factors of the
hyperbolic CS decomposition (all of them, or Givens rotations only). An iterate of an infeasible
method is scored at the limit of Newton's iteration for the constraint, ``X ← ½X(3I − JXᵀJX)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from orthobcd import Result
from orthobcd._internal.checks import FloatArray, as_float_array, is_sparse

from .geometry import cayley, polar, random_stiefel
from .recorder import Judge, Logbook
from .scoring import FeasiblePoint
from .settings import CSDM_STEP, HYPERBOLIC_ADMM_RHO, UMCM_BETA
from .steps import BarzilaiBorwein, Reference

DIVERGED_NORM = 1e8
"""‖X‖_F²/n beyond which a run ends as diverged; its infimum may be finite but not attained."""

CRITICALITY = 1e-14
"""‖K‖_F of a converged point of `cayley_gradient`, in units of ‖A‖₂ ‖X‖_F²."""


class GroupProblem:
    """A smooth f on the J-orthogonal matrices.

    Attributes
    ----------
    signature : ndarray of shape (n,)
        ±1 in any order.
    size : float
        ‖∇f(X)‖ is about twice this times ‖X‖.
    """

    signature: FloatArray
    size: float

    def value_and_gradient(self, x: FloatArray) -> tuple[float, FloatArray]:
        """f and its gradient at ``x``."""
        raise NotImplementedError

    def value(self, x: FloatArray) -> float:
        """f at ``x``."""
        return self.value_and_gradient(x)[0]

    def infeasibility(self, x: FloatArray) -> float:
        """``‖XᵀJX − J‖_F``."""
        product = x.T @ (self.signature[:, np.newaxis] * x)
        product[np.diag_indices_from(product)] -= self.signature
        return float(np.linalg.norm(product))

    def diverges(self, x: FloatArray) -> bool:
        """True if ‖X‖_F²/n exceeds `DIVERGED_NORM`, or is not a number."""
        return not float(np.vdot(x, x)) <= DIVERGED_NORM * x.shape[0]


class SmoothProblem(GroupProblem):
    """Any problem with ``value_and_gradient`` and ``signature``, as structural probes are."""

    def __init__(self, problem: Any) -> None:
        self.signature = np.asarray(problem.signature, dtype=np.float64)
        self._evaluate = problem.value_and_gradient
        start = reference_start(self.signature)
        slope = float(np.linalg.norm(self._evaluate(start)[1]))
        self.size = max(0.5 * slope / float(np.linalg.norm(start)), 1e-300)

    def value_and_gradient(self, x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = self._evaluate(x)
        return float(value), gradient


class TraceProblem(GroupProblem):
    """``min tr(XᵀAX)`` over J-orthogonal X.

    Parameters
    ----------
    matrix : array_like of shape (n, n)
        A, symmetric; bounded below on the group if positive semidefinite.
    signature : array_like of shape (n,)
        ±1 in any order.

    Attributes
    ----------
    size : float
        ‖A‖₂.
    """

    def __init__(self, matrix: Any, signature: Any) -> None:
        matrix = as_float_array("matrix", matrix, 2)
        self.signature = as_float_array("signature", signature, 1)
        n = self.signature.size
        if matrix.shape != (n, n):
            raise ValueError(f"matrix must be {n} × {n}, got {matrix.shape}")
        if not np.all(np.abs(self.signature) == 1.0):
            raise ValueError("signature must contain only +1 and −1")
        self.matrix = 0.5 * (matrix + matrix.T)
        self.size = float(np.abs(np.linalg.eigvalsh(self.matrix)).max())

    def value(self, x: FloatArray) -> float:
        """tr(XᵀAX)."""
        return float(np.vdot(x, self.matrix @ x))

    def value_and_gradient(self, x: FloatArray) -> tuple[float, FloatArray]:
        """tr(XᵀAX) and 2AX."""
        image = self.matrix @ x
        return float(np.vdot(x, image)), 2.0 * image

    def infimum(self) -> float:
        """``Σ|eig(JA)|``, the infimum for positive semidefinite A."""
        values = np.linalg.eigvals(self.signature[:, np.newaxis] * self.matrix)
        return float(np.sum(np.abs(values)))


def trace_problem(problem: Any) -> TraceProblem:
    """Returns ``problem`` if it is a `TraceProblem`, else one of a hyperbolic eigenvalue problem.

    An eigenvalue problem has ``A``, ``signature``, ``sense`` and ``ridge``, as
    ``orthobcd.HyperbolicEigenvalueProblem`` has. The matrix is ``±(AᵀA + ridge·I)``, minus for
    ``sense="max"``.
    """
    if isinstance(problem, TraceProblem):
        return problem
    data = problem.A
    gram = data.T @ data
    matrix = np.asarray(gram.todense() if is_sparse(gram) else gram, dtype=np.float64)
    matrix = matrix + float(getattr(problem, "ridge", 0.0)) * np.eye(matrix.shape[0])
    sign = -1.0 if getattr(problem, "sense", "min") == "max" else 1.0
    return TraceProblem(sign * matrix, np.asarray(problem.signature, dtype=np.float64))


def group_problem(problem: Any) -> GroupProblem:
    """The `TraceProblem` of an eigenvalue problem, else a `SmoothProblem`."""
    if hasattr(problem, "value_and_gradient") and not isinstance(problem, GroupProblem):
        return SmoothProblem(problem)
    return trace_problem(problem)


def reference_start(signature: FloatArray) -> FloatArray:
    """The start of the reference values: J-orthogonal, rapidities ½·N(0, 1), always the same.

    For a sorted signature (+1 first) the Haar factors U₁, U₂, V₁, V₂ are drawn in this order, then
    the rapidities. Other random J-orthogonal matrices:
    `orthobcd.hyperbolic.random_j_orthogonal`.
    """
    plus, minus = np.flatnonzero(signature > 0), np.flatnonzero(signature < 0)
    rng = np.random.default_rng(1)
    u1, u2, v1, v2 = (
        random_stiefel(size, size, rng) for size in (plus.size, minus.size, plus.size, minus.size)
    )
    rapidity = 0.5 * rng.standard_normal(min(plus.size, minus.size))
    return assemble(Factors(plus, minus, u1, u2, v1, v2, rapidity))


def repair(x: FloatArray, signature: FloatArray, *, max_iterations: int = 30) -> FloatArray | None:
    """Newton's iteration ``X ← ½X(3I − JXᵀJX)``, or None if it does not reach XᵀJX = J."""
    column = signature[:, np.newaxis]
    best = np.inf
    identity = np.eye(x.shape[0])
    for _ in range(max_iterations):
        gram = column * (x.T @ (column * x))
        error = float(np.linalg.norm(gram - identity))
        if not np.isfinite(error) or error > max(1e8, 10.0 * best):
            return None
        if error <= 1e-12 or (error >= 0.5 * best and error < 1e-9):
            return x
        best = min(best, error)
        x = 0.5 * (x @ (3.0 * identity - gram))
    return None


def logbook(problem: GroupProblem, x0: FloatArray | None, max_time: float, seed: int) -> Logbook:
    def feasible(x: FloatArray, sparse: FloatArray | None, thorough: bool) -> FeasiblePoint:
        close = x if problem.infeasibility(x) <= 1e-9 * (1.0 + float(np.vdot(x, x))) else None
        mended = close if close is not None else repair(x, problem.signature)
        if mended is None:
            assert book.best is not None
            return book.best
        return FeasiblePoint(mended, problem.value(mended))

    n = problem.signature.size
    judge = Judge(feasible, problem.infeasibility, problem.value, problem.value, lambda x: 0.0)

    def start() -> FloatArray:
        if x0 is None:
            return reference_start(problem.signature)
        x = as_float_array("x0", x0, 2)
        if x.shape != (n, n):
            raise ValueError(f"x0 must have shape {(n, n)}, got {x.shape}")
        if problem.infeasibility(x) > 1e-6 * (1.0 + float(np.vdot(x, x))):
            raise ValueError("x0 must satisfy XᵀJX = J")
        return x

    book = Logbook(judge, start, max_time=max_time, seed=seed)
    return book


def cayley_gradient(
    problem: Any,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
    side: str = "right",
) -> Result:
    """Riemannian gradient descent with Cayley steps and Barzilai–Borwein lengths.

    From the right ``X ← X·cay(τK)``, K = −½(B − JBᵀJ), B = Xᵀ∇f; from the left
    ``X ← cay(τK)·X`` with B = ∇f Xᵀ; ``cay(K) = (I − K/2)⁻¹(I + K/2)`` is in the group. Step
    lengths and line search are those of `orthobcd_bench.baselines.steps`.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; a random start with the seed 1.
    side : {"right", "left"}, default "right"
        Side on which the group acts.

    References
    ----------
    Gao, Son, Absil and Stykel 2021 (Cayley steps on the symplectic group, the same algebra).
    """
    group = group_problem(problem)
    book = logbook(group, x0, max_time, seed)
    column, row = group.signature[:, np.newaxis], group.signature[np.newaxis, :]

    def evaluate(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = group.value_and_gradient(x)
        inner = x.T @ gradient if side == "right" else gradient @ x.T
        return value, -0.5 * (inner - column * inner.T * row)

    x = book.x0
    value, descent = evaluate(x)
    norm = float(np.linalg.norm(descent))
    lengths = BarzilaiBorwein(0.1 / max(norm, 1e-300))
    reference = Reference(value)
    diverged = False
    while not (converged := norm <= CRITICALITY * group.size * float(np.vdot(x, x))):
        diverged = group.diverges(x)
        if diverged or not book.step(x):
            break
        length = lengths.length
        for _ in range(30):
            move = cayley(length * descent)
            trial = x @ move if side == "right" else move @ x
            trial_value, trial_descent = evaluate(trial)
            if reference.accepts(trial_value, length * norm * norm):
                break
            length *= 0.3
        else:
            converged = True  # no descent is left beyond rounding
            break
        # in the Lie algebra the step is length·K; differences of K need no transport
        lengths.update(length * descent, trial_descent - descent)
        reference.update(trial_value)
        x, descent = trial, trial_descent
        if book.n_iterations % 50 == 0:
            mended = repair(x, group.signature)
            if mended is not None:
                x = mended
                descent = evaluate(x)[1]
        norm = float(np.linalg.norm(descent))
    return book.result(
        x,
        method=f"Cayley gradient ({side})",
        converged=converged,
        diverged=diverged,
    )


def umcm(
    problem: Any,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """Unconstrained multiplier correction: gradient steps with the closed-form multiplier.

    ``X ← X − τ(∇f − JXΛ + β JX(XᵀJX − J))`` with Λ = sym(JXᵀ∇f) and alternating
    Barzilai–Borwein τ.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; a random start with the seed 1.

    References
    ----------
    Gao, Liu and Yuan 2019 (PLAM/PCAL, the Stiefel original).
    """
    group = group_problem(problem)
    book = logbook(group, x0, max_time, seed)
    column = group.signature[:, np.newaxis]
    norm = group.size
    weight = UMCM_BETA * norm
    target = np.diag(group.signature)

    def force(x: FloatArray) -> FloatArray:
        gradient = group.value_and_gradient(x)[1]
        dual = column * (x.T @ gradient)
        flipped = column * x
        gap = x.T @ flipped - target
        pull: FloatArray = gradient - flipped @ (0.5 * (dual + dual.T)) + weight * (flipped @ gap)
        return pull

    x = book.x0
    pull = force(x)
    cautious = 0.1 / (norm * max(1.0, float(np.linalg.norm(x, 2)) ** 2) * (1.0 + UMCM_BETA))
    lengths = BarzilaiBorwein(cautious)
    diverged = False
    best = x
    while not diverged and book.step(x):
        limit = 0.3 * float(np.linalg.norm(x)) / max(float(np.linalg.norm(pull)), 1e-300)
        trial = x - min(lengths.length, limit) * pull
        trial_pull = force(trial)
        if group.diverges(trial) or not np.isfinite(trial_pull).all():
            diverged = True
        elif group.infeasibility(trial) > 0.5 * float(np.sqrt(x.shape[0])):
            # the closed-form multiplier is not valid here: return to the best point, small step
            mended = repair(best, group.signature)
            x = best if mended is None else mended
            pull = force(x)
            cautious *= 0.5
            lengths.length = cautious
        else:
            lengths.update(trial - x, trial_pull - pull)
            x, pull = trial, trial_pull
            if group.infeasibility(x) < 0.1:
                best = x
    return book.result(x, method="UMCM", diverged=diverged)


def admm(
    problem: Any,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
    rho: float = HYPERBOLIC_ADMM_RHO,
    curvature: float | None = None,
) -> Result:
    """ADMM on the bilinear constraints XᵀJY = J, X = Y.

    Both blocks are least-squares problems: ``(2A + ρNNᵀ + ρI) X = ρ(N(J − U)ᵀ + Y − V)`` with
    N = JY, then ``(PPᵀ + I) Y = P(J − U) + X + V`` with P = JX, and the scaled duals
    ``U += XᵀJY − J``, ``V += X − Y``. With ``curvature`` the X-step minimises
    ``⟨∇f(Z), X⟩ + L/2‖X − Z‖²`` for f, Z being the last X.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; a random start with the seed 1.
    rho : float, optional
        ρ in units of `GroupProblem.size`; `HYPERBOLIC_ADMM_RHO` by default. Without ``curvature``
        ρ is at least −2.2 λ_min(A).
    curvature : float, optional
        L in units of `GroupProblem.size`, for a problem with ``value_and_gradient``.
    """
    group = trace_problem(problem) if curvature is None else SmoothProblem(problem)
    book = logbook(group, x0, max_time, seed)
    column, target = group.signature[:, np.newaxis], np.diag(group.signature)
    identity = np.eye(group.signature.size)
    weight = rho * group.size
    hessian = (curvature or 0.0) * group.size * identity
    if isinstance(group, TraceProblem):
        # an indefinite A needs ρ > −2 λ_min(A) to keep the first system positive definite
        weight = max(weight, -2.2 * float(np.linalg.eigvalsh(group.matrix)[0]))
        hessian = 2.0 * group.matrix
    x = y = book.x0
    gradient = group.value_and_gradient(x)[1]
    # duals that make the start consistent: ρU ≈ −Λ balances ∇f = JXΛ
    dual = column * (x.T @ gradient)
    u = -0.5 * (dual + dual.T) / (2.0 * weight)
    v = np.zeros_like(x)
    diverged = False
    while not diverged and book.step(0.5 * (x + y)):
        flipped = column * y
        system = hessian + weight * (flipped @ flipped.T + identity)
        known = weight * (flipped @ (target - u).T + y - v)
        if curvature is not None:
            known += hessian @ x - group.value_and_gradient(x)[1]
        try:
            x = scipy.linalg.solve(system, known, assume_a="pos")
            flipped = column * x
            y = scipy.linalg.solve(
                flipped @ flipped.T + identity,
                flipped @ (target - u) + x + v,
                assume_a="pos",
            )
        except (np.linalg.LinAlgError, ValueError):
            diverged = True
        else:
            u = u + x.T @ (column * y) - target
            v = v + x - y
            diverged = group.diverges(y)
    name = "ADMM" if curvature is None else "linearised ADMM"
    return book.result(0.5 * (x + y), method=name, diverged=diverged)


Indices = np.ndarray[tuple[int], np.dtype[np.intp]]


@dataclass
class Factors:
    """A hyperbolic CS decomposition: ``X = diag(U₁, U₂)·boost(t)·diag(V₁, V₂)ᵀ``."""

    plus: Indices
    minus: Indices
    u1: FloatArray
    u2: FloatArray
    v1: FloatArray
    v2: FloatArray
    rapidity: FloatArray


def boost_matrix(p: int, q: int, rapidity: FloatArray) -> FloatArray:
    """``[[C, S], [Sᵀ, C]]`` on the first min(p, q) rows of either block."""
    boost = np.eye(p + q)
    k = np.arange(rapidity.size)
    boost[k, k] = boost[p + k, p + k] = np.cosh(rapidity)
    boost[k, p + k] = boost[p + k, k] = np.sinh(rapidity)
    return boost


def assemble(factors: Factors) -> FloatArray:
    """X from its factors, rows and columns in the signature's own order."""
    p, q = factors.plus.size, factors.minus.size
    middle = boost_matrix(p, q, factors.rapidity)
    left = scipy.linalg.block_diag(factors.u1, factors.u2)
    right = scipy.linalg.block_diag(factors.v1, factors.v2)
    order = np.concatenate([factors.plus, factors.minus])
    x = np.empty((p + q, p + q))
    x[np.ix_(order, order)] = left @ middle @ right.T
    return x


def factorise(x: FloatArray, signature: FloatArray) -> Factors:
    """The hyperbolic CS decomposition of a J-orthogonal x."""
    plus, minus = np.flatnonzero(signature > 0), np.flatnonzero(signature < 0)
    p, q = plus.size, minus.size
    size = min(p, q)
    upper, corner = x[np.ix_(plus, plus)], x[np.ix_(plus, minus)]
    lower = x[np.ix_(minus, minus)]
    u1, singular, v2t = np.linalg.svd(corner, full_matrices=True)
    rapidity = np.arcsinh(singular[:size])
    cosh_p, cosh_q = np.ones(p), np.ones(q)
    cosh_p[:size] = cosh_q[:size] = np.cosh(rapidity)
    v1 = ((u1.T @ upper) / cosh_p[:, np.newaxis]).T
    u2 = (lower @ v2t.T) / cosh_q
    return Factors(plus, minus, u1, polar(u2), polar(v1), v2t.T, rapidity)


class FactorDescent:
    """Adagrad on the factors U₁, U₂, V₁, V₂ and the rapidities of a J-orthogonal matrix.

    Parameters
    ----------
    x : ndarray of shape (n, n)
        The start.
    signature : ndarray of shape (n,)
        ±1 in any order.
    factors : {"full", "givens"}
        Moves of the orthogonal factors, see `csdm`.
    """

    def __init__(self, x: FloatArray, signature: FloatArray, factors: str) -> None:
        self._now = factorise(x, signature)
        self._factors = factors
        self._sums: list[FloatArray] = [np.zeros(())] * 5

    def step(self, gradient: FloatArray, length: float) -> FloatArray:
        """Move against ``gradient`` by angles of about ``length``; returns the new matrix."""
        now = self._now
        p, q, k = now.plus.size, now.minus.size, np.arange(now.rapidity.size)
        order = np.concatenate([now.plus, now.minus])
        left = scipy.linalg.block_diag(now.u1, now.u2)
        right = scipy.linalg.block_diag(now.v1, now.v2)
        image = left.T @ gradient[np.ix_(order, order)] @ right
        middle = boost_matrix(p, q, now.rapidity)
        one, two = image @ middle.T, image.T @ middle
        one, two = one - one.T, two - two.T
        slope = (image[k, k] + image[p + k, p + k]) * np.sinh(now.rapidity)
        slope = slope + (image[k, p + k] + image[p + k, k]) * np.cosh(now.rapidity)
        slopes = [one[:p, :p], one[p:, p:], two[:p, :p], two[p:, p:], slope]
        self._sums = [total + part * part for total, part in zip(self._sums, slopes, strict=True)]
        moves = [
            -length * part / np.sqrt(total + 1e-30)
            for total, part in zip(self._sums, slopes, strict=True)
        ]
        u1, u2, v1, v2 = (
            rotate(factor, move, self._factors)
            for factor, move in zip((now.u1, now.u2, now.v1, now.v2), moves[:4], strict=True)
        )
        self._now = Factors(now.plus, now.minus, u1, u2, v1, v2, now.rapidity + moves[4])
        return assemble(self._now)


def csdm(
    problem: Any,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
    factors: str = "full",
    step: float = CSDM_STEP,
) -> Result:
    """`FactorDescent` of a smooth f; the best point is returned.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; a random start with the seed 1.
    factors : {"full", "givens"}, default "full"
        "full": the orthogonal factors move by Cayley-like rotations. "givens": each moves only by
        one Givens rotation per pair of consecutive columns, as in UltraE, and not every X is
        reached.
    step : float, optional
        First step length; `CSDM_STEP` by default.

    References
    ----------
    Xiong and coauthors 2022, "Ultrahyperbolic knowledge graph embeddings" (UltraE).
    """
    group = group_problem(problem)
    book = logbook(group, x0, max_time, seed)
    descent = FactorDescent(book.x0, group.signature, factors)
    x = best = book.x0
    least = np.inf
    while book.step(best) and not (diverged := group.diverges(x)):
        value, gradient = group.value_and_gradient(x)
        if value < least:
            least, best = value, x
        x = descent.step(gradient, step)
    return book.result(best, method=f"CSDM ({factors})", diverged=diverged)


def rotate(u: FloatArray, skew: FloatArray, factors: str) -> FloatArray:
    """u times the rotation generated by ``skew`` (Cayley), or by its Givens pairs alone."""
    if factors == "full":
        turned: FloatArray = u @ cayley(skew)
        return turned
    rotated = u.copy()
    first = np.arange(0, u.shape[1] - 1, 2)
    angle = skew[first, first + 1]
    cosine, sine = np.cos(angle), np.sin(angle)
    rotated[:, first] = cosine * u[:, first] - sine * u[:, first + 1]
    rotated[:, first + 1] = sine * u[:, first] + cosine * u[:, first + 1]
    return rotated
