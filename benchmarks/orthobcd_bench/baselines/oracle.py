"""First-order access to a problem: values, gradients, proximal maps, curvature.

Every baseline uses the same `Oracle`, so that baselines differ only in their updates. A gradient
costs each of them the same: one product with C (n × n), or with A and its transpose.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from orthobcd import (
    L0,
    L1,
    Cardinality,
    GramQuadratic,
    NonNegative,
    NoPenalty,
    Problem,
    Quadratic,
)
from orthobcd._internal.checks import FloatArray
from orthobcd.objectives import Smooth
from orthobcd.penalties import Penalty

COUNT_TOLERANCE = 1e-6
"""Magnitude above which the papers count an entry as nonzero. The bench uses this only for the
score "at the projection", never for a feasible point."""

CONCAVE = 1e-6
"""Largest eigenvalue of C of a concave f, relative to ‖C‖; eigenvalues up to this are rounding."""

__all__ = ["COUNT_TOLERANCE", "Oracle", "Problem", "oracle_of"]


class _SmoothPart(Protocol):
    """Value and gradient of f."""

    def value_and_gradient(self, x: FloatArray) -> tuple[float, FloatArray]: ...

    def curvature_product(self, x: FloatArray) -> FloatArray: ...


class _DenseQuadratic:
    """``½⟨X, C X D⟩ + ⟨linear, X⟩``."""

    def __init__(self, smooth: Quadratic) -> None:
        self.C, self.linear, self.D = smooth.C, smooth.linear, smooth.D

    def curvature_product(self, x: FloatArray) -> FloatArray:
        product: FloatArray = self.C @ x
        return product

    def value_and_gradient(self, x: FloatArray) -> tuple[float, FloatArray]:
        gradient: FloatArray = self.C @ x
        if self.D is not None:
            gradient = gradient @ self.D
        value = 0.5 * float(np.vdot(x, gradient))
        if self.linear is not None:
            value += float(np.vdot(self.linear, x))
            gradient = gradient + self.linear
        return value, gradient


class _GramPart:
    """``½·scale·‖(A − 1 meanᵀ) X‖²``, without AᵀA."""

    def __init__(self, smooth: GramQuadratic) -> None:
        self.A, self.scale, self.mean = smooth.A, smooth.scale, smooth.mean
        self.At = self.A.T.tocsr() if scipy.sparse.issparse(self.A) else self.A.T

    def _scores(self, x: FloatArray) -> FloatArray:
        scores: FloatArray = self.A @ x
        return scores if self.mean is None else scores - self.mean @ x

    def _pull_back(self, scores: FloatArray) -> FloatArray:
        product: FloatArray = self.scale * (self.At @ scores)
        if self.mean is not None:
            column_sums = self.scale * np.sum(scores, axis=0)
            product = product - np.multiply.outer(self.mean, column_sums)
        return product

    def curvature_product(self, x: FloatArray) -> FloatArray:
        return self._pull_back(self._scores(x))

    def value_and_gradient(self, x: FloatArray) -> tuple[float, FloatArray]:
        scores = self._scores(x)
        value = 0.5 * self.scale * float(np.vdot(scores, scores))
        return value, self._pull_back(scores)


class Oracle:
    """First-order access to ``f + h``, with the bounds by which methods choose their steps.

    Parameters
    ----------
    smooth : Quadratic or GramQuadratic
        f.
    penalty : L0, L1, NonNegative, NoPenalty or Cardinality
        h; a limit has the value 0.
    n_components : int
        Number of columns r of X.
    """

    def __init__(self, smooth: Smooth, penalty: Penalty, n_components: int) -> None:
        if not isinstance(smooth, (Quadratic, GramQuadratic)):
            name = type(smooth).__name__
            raise TypeError(f"smooth must be a Quadratic or GramQuadratic, got {name}")
        self.smooth: Quadratic | GramQuadratic = smooth
        self.penalty = penalty
        self.n = smooth.n_rows
        self.r = n_components
        self._part: _SmoothPart
        if isinstance(smooth, Quadratic):
            self._part = _DenseQuadratic(smooth)
        else:
            self._part = _GramPart(smooth)
        self._lipschitz: float | None = None
        self._diagonal: FloatArray | None = None
        self._concave: bool | None = None

    @property
    def weight(self) -> float | FloatArray:
        """λ of an ℓ0 or ℓ1 penalty, 0 otherwise."""
        return self.penalty.lam if isinstance(self.penalty, (L0, L1)) else 0.0

    @property
    def is_nonnegative(self) -> bool:
        """True if h is the constraint X ≥ 0."""
        return isinstance(self.penalty, NonNegative)

    def value_and_gradient(self, x: FloatArray) -> tuple[float, FloatArray]:
        """f(x) and ∇f(x); x of shape (n, r)."""
        return self._part.value_and_gradient(x)

    def gradient(self, x: FloatArray) -> FloatArray:
        """∇f(x); x of shape (n, r)."""
        return self._part.value_and_gradient(x)[1]

    def curvature(self, x: FloatArray) -> FloatArray:
        """C x, without D and linear term."""
        return self._part.curvature_product(x)

    def smooth_value(self, x: FloatArray) -> float:
        """f(x)."""
        return self._part.value_and_gradient(x)[0]

    def penalty_value(self, x: FloatArray, tolerance: float = 0.0) -> float:
        """h(x), entries up to ``tolerance`` counted as zeros by ℓ0; no penalty for X ≥ 0."""
        if isinstance(self.penalty, L0):
            return float(np.sum(self.penalty.lam * (np.abs(x) > tolerance)))
        if isinstance(self.penalty, L1):
            return float(np.sum(self.penalty.lam * np.abs(x)))
        return 0.0

    def objective(self, x: FloatArray, tolerance: float = 0.0) -> float:
        """f(x) + h(x)."""
        return self.smooth_value(x) + self.penalty_value(x, tolerance)

    def proximal(self, z: FloatArray, step: float) -> FloatArray:
        """``argmin_y h(y) + ‖y − z‖²/(2·step)``, entry by entry.

        Hard thresholding at √(2·step·λ) for ℓ0, soft thresholding at step·λ for ℓ1, clipping
        at 0 for X ≥ 0, z itself without a penalty.
        """
        if isinstance(self.penalty, L0):
            return np.where(z * z > 2.0 * step * self.penalty.lam, z, 0.0)
        if isinstance(self.penalty, L1):
            return soft_threshold(z, step * self.penalty.lam)
        if isinstance(self.penalty, NonNegative):
            return np.maximum(z, 0.0)
        return z

    @property
    def survival_weight(self) -> float:
        """The β from which on ``prox_{h/β}`` changes a unit vector little: 4λ for ℓ0, 2λ for ℓ1.

        Below this β the sparse copy of an ADMM method converges to zero for any ``‖C‖``.
        """
        if isinstance(self.penalty, L0):
            return 4.0 * float(np.max(self.penalty.lam))
        return 2.0 * float(np.max(self.weight)) if isinstance(self.penalty, L1) else 0.0

    def subgradient(self, x: FloatArray) -> FloatArray:
        """Γ of the papers: ∇f for ℓ0 and X ≥ 0, ∇f + λ sign(x) with sign(0) = +1 for ℓ1."""
        gradient = self.gradient(x)
        if isinstance(self.penalty, L1):
            return gradient + self.penalty.lam * np.where(x >= 0.0, 1.0, -1.0)
        return gradient

    @property
    def lipschitz(self) -> float:
        """``‖C‖`` (times ``‖D‖``), or the norm of the linear term if larger: f's scale on St."""
        if self._lipschitz is None:
            operator = scipy.sparse.linalg.LinearOperator(
                (self.n, self.n), matvec=self._column_product, dtype=np.float64
            )
            start = np.random.default_rng(0).standard_normal(self.n)
            if self.n < 40:
                spectrum = np.linalg.eigvalsh(self._part.curvature_product(np.eye(self.n)))
                largest = float(np.abs(spectrum).max())
            else:
                largest = (
                    float(
                        np.abs(
                            scipy.sparse.linalg.eigsh(
                                operator,
                                k=1,
                                which="LM",
                                tol=1e-3,
                                v0=start,
                                return_eigenvectors=False,
                            )[0]
                        )
                    )
                    * 1.001
                )
            smooth = self.smooth
            if isinstance(smooth, Quadratic) and smooth.D is not None:
                largest *= float(np.linalg.norm(smooth.D, 2))
            if isinstance(smooth, Quadratic) and smooth.linear is not None:
                # on the manifold a linear term adds up to its norm to the curvature of f
                largest = max(largest, float(np.linalg.norm(smooth.linear, 2)))
            self._lipschitz = max(largest, np.finfo(float).tiny)
        return self._lipschitz

    @property
    def is_concave(self) -> bool:
        """True if f is concave, to rounding: C has no eigenvalue above `CONCAVE` ‖C‖."""
        if self._concave is None:
            smooth = self.smooth
            if isinstance(smooth, GramQuadratic):
                self._concave = smooth.scale <= 0.0
            elif smooth.D is not None:
                self._concave = False
            elif self.n < 40:
                largest = float(np.linalg.eigvalsh(smooth.C)[-1])
                self._concave = largest <= CONCAVE * self.lipschitz
            else:
                # f is concave exactly if −C + CONCAVE ‖C‖ I has a Cholesky factor
                shifted = -smooth.C
                shifted[np.diag_indices(self.n)] += CONCAVE * self.lipschitz
                self._concave = scipy.linalg.lapack.dpotrf(shifted, overwrite_a=1)[1] == 0
        return self._concave

    def _column_product(self, vector: Any) -> FloatArray:
        column = np.asarray(vector, dtype=np.float64).reshape(self.n, 1)
        return self._part.curvature_product(column).ravel()

    @property
    def diagonal(self) -> FloatArray:
        """Diagonal of the curvature matrix C; negative entries where f is concave."""
        if self._diagonal is None:
            if isinstance(self.smooth, Quadratic):
                self._diagonal = np.diag(self.smooth.C).copy()
            else:
                data = self.smooth.A
                if scipy.sparse.issparse(data):
                    squares = np.asarray(data.multiply(data).sum(axis=0)).ravel()
                else:
                    squares = np.einsum("ij,ij->j", data, data)
                if self.smooth.mean is not None:
                    squares = squares - data.shape[0] * self.smooth.mean**2
                self._diagonal = self.smooth.scale * squares
        return self._diagonal

    def lowest_eigenvectors(self) -> FloatArray:
        """The r eigenvectors of C with the smallest eigenvalues (n × r): the spectral start."""
        if isinstance(self.smooth, Quadratic) and (self.n <= 400 or self.r > self.n // 8):
            return np.asarray(scipy.linalg.eigh(self.smooth.C, subset_by_index=(0, self.r - 1))[1])
        operator = scipy.sparse.linalg.LinearOperator(
            (self.n, self.n), matvec=self._column_product, dtype=np.float64
        )
        start = np.random.default_rng(0).standard_normal(self.n)
        subspace = min(self.n - 1, max(3 * self.r, 40))
        return np.asarray(
            scipy.sparse.linalg.eigsh(
                operator, k=self.r, which="SA", ncv=subspace, tol=1e-4, v0=start
            )[1]
        )


def soft_threshold(z: FloatArray, threshold: float | FloatArray) -> FloatArray:
    """``sign(z)·max(|z| − threshold, 0)``."""
    return z - np.clip(z, -threshold, threshold)


def oracle_of(problem: Problem) -> Oracle:
    """The oracle of a problem on the Stiefel manifold.

    Raises
    ------
    TypeError
        If ``problem`` is not a problem on the Stiefel manifold, or its penalty is not supported.
    """
    if not isinstance(problem, Problem) or problem.signature is not None:
        raise TypeError(
            "problem must be a StiefelProblem, SparsePCAProblem or NonnegativePCAProblem, "
            f"got {type(problem).__name__}"
        )
    if not isinstance(problem.penalty, (L0, L1, NonNegative, NoPenalty, Cardinality)):
        raise TypeError(f"penalty {type(problem.penalty).__name__} is not known to the baselines")
    return Oracle(problem.smooth, problem.penalty, problem.shape[1])
