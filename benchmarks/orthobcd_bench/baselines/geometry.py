"""The Stiefel manifold St(n, r): projections, retractions, and its intersection with a support."""

from __future__ import annotations

import numpy as np

from orthobcd._internal.checks import FloatArray

FIRST_RESIDUAL, LAST_RESIDUAL = 1e-2, 1e-6
"""Bounds of the relative residual of a Gauss–Newton step, which is the error between these."""

LEAST_NORM_STEPS, PRECONDITIONED_STEPS = 60, 200
"""Most conjugate gradient iterations of a Gauss–Newton step, plain and preconditioned."""

GAUSS_NEWTON_STEPS = 60
"""Largest number of Gauss–Newton steps onto a support."""

ORTHONORMAL = 1e-13
"""``‖XᵀX − I‖_F`` at which steps onto a support end."""

LEAST_DIAGONAL = 1e-12
"""Smallest entry of a preconditioner, relative to the largest entry."""


def symmetric_part(matrix: FloatArray) -> FloatArray:
    """``(M + Mᵀ)/2``."""
    return 0.5 * (matrix + matrix.T)


def polar(x: FloatArray) -> FloatArray:
    """The orthonormal polar factor of x (n × r): the closest point of St(n, r).

    Uses ``x (xᵀx)^{−½}`` from an r × r eigenvalue problem, and one Newton–Schulz step that restores
    orthonormality to rounding. If xᵀx is ill conditioned, uses the SVD. The cost is O(n r² + r³).
    """
    values, vectors = np.linalg.eigh(x.T @ x)
    if values[0] <= 1e-7 * values[-1] or not np.isfinite(values[-1]):
        left, _, right = np.linalg.svd(x, full_matrices=False)
        closest: FloatArray = left @ right
        return closest
    q = x @ ((vectors / np.sqrt(values)) @ vectors.T)
    refined: FloatArray = 1.5 * q - 0.5 * (q @ (q.T @ q))
    return refined


def tangent(x: FloatArray, direction: FloatArray) -> FloatArray:
    """Orthogonal projection of ``direction`` onto the tangent space at x."""
    projected: FloatArray = direction - x @ symmetric_part(x.T @ direction)
    return projected


def orthonormality_error(x: FloatArray) -> float:
    """``‖XᵀX − I‖_F``."""
    return float(np.linalg.norm(x.T @ x - np.eye(x.shape[1])))


def random_stiefel(n: int, r: int, rng: np.random.Generator) -> FloatArray:
    """A uniformly distributed point of St(n, r)."""
    q, triangular = np.linalg.qr(rng.standard_normal((n, r)))
    uniform: FloatArray = q * np.where(np.diag(triangular) >= 0.0, 1.0, -1.0)
    return uniform


def multiplier_on_support(
    x: FloatArray,
    mask: FloatArray,
    residual: FloatArray,
    *,
    tolerance: float = 1e-13,
    max_iterations: int = 200,
    preconditioned: bool = False,
) -> FloatArray:
    """The symmetric Λ with ``Xᵀ(M∘XΛ) + (M∘XΛ)ᵀX = residual``, by conjugate gradients.

    ``M`` is the 0/1 support mask. The operator is symmetric and positive semidefinite on
    symmetric matrices (its quadratic form is 2‖M∘XΛ‖²). If the operator is singular, Λ is the
    least-norm solution of the solvable part. The diagonal of the operator spreads if columns share
    only rows of small entries. The diagonal as preconditioner then saves iterations, but the
    solution of a singular system has a larger norm. An iteration costs O(n r²).
    """
    solution = np.zeros_like(residual)
    remaining = symmetric_part(residual)
    squared = float(np.vdot(remaining, remaining))
    target = tolerance**2 * max(squared, np.finfo(float).tiny)
    diagonal = np.ones_like(residual)
    if preconditioned:
        diagonal = (x * x).T @ mask
        diagonal += diagonal.T
        largest = max(np.max(diagonal), np.finfo(float).tiny)
        diagonal = np.maximum(diagonal, LEAST_DIAGONAL * largest)
    scaled = remaining / diagonal
    direction = scaled.copy()
    product = float(np.vdot(remaining, scaled))
    for _ in range(max_iterations):
        if squared <= target:
            break
        image = x.T @ (mask * (x @ direction))
        image = image + image.T
        curvature = float(np.vdot(direction, image))
        if curvature <= 1e-14 * float(np.vdot(direction, diagonal * direction)):
            break
        step = product / curvature
        solution += step * direction
        remaining -= step * image
        squared = float(np.vdot(remaining, remaining))
        scaled = remaining / diagonal
        updated = float(np.vdot(remaining, scaled))
        direction = scaled + (updated / product) * direction
        product = updated
    return solution


def project_on_support(x: FloatArray, mask: FloatArray) -> FloatArray | None:
    """A point of ``{XᵀX = I, X = 0 outside the mask}`` close to x, or None if none was reached.

    A few alternating projections (polar factor, mask) move x near the set. Gauss–Newton steps of
    least norm inside the mask, ``X ← X + M∘XΛ``, then converge quadratically if the constraints
    are independent on the support. If the constraints are nearly dependent, a few conjugate
    gradients per step stay closer to x than exact steps. If these steps fail, preconditioned steps
    are tried. The result is orthonormal to rounding and its zeros are exact.

    Parameters
    ----------
    x : ndarray of shape (n, r)
        Start of the projections.
    mask : ndarray of shape (n, r)
        1.0 on the support, 0.0 outside.
    """
    if (np.sum(mask, axis=0) == 0.0).any():
        return None
    used = np.any(mask != 0.0, axis=1)
    if not used.all():
        point = np.zeros_like(x)
        inner = project_on_support(x[used], mask[used])
        if inner is None:
            return None
        point[used] = inner
        return point
    found = _gauss_newton(x, mask, preconditioned=False)
    return _gauss_newton(x, mask, preconditioned=True) if found is None else found


def _gauss_newton(x: FloatArray, mask: FloatArray, *, preconditioned: bool) -> FloatArray | None:
    """`project_on_support` with one kind of steps, on a support without empty rows."""
    conjugate_gradients = PRECONDITIONED_STEPS if preconditioned else LEAST_NORM_STEPS
    current = mask * x
    identity = np.eye(x.shape[1])
    best_error = np.inf
    alternating = 3
    stalled = 0
    for iteration in range(GAUSS_NEWTON_STEPS):
        gap = identity - current.T @ current
        error = float(np.linalg.norm(gap))
        if error <= ORTHONORMAL:
            break
        if error < 1e-11 and error > 0.5 * best_error:
            break
        stalled = stalled + 1 if error > 0.9 * best_error else 0
        if stalled > 12 or not np.isfinite(error):
            return None
        best_error = min(best_error, error)
        if iteration < alternating or error > 0.7:
            current = mask * polar(current)
        else:
            inexact = float(np.clip(error, LAST_RESIDUAL, FIRST_RESIDUAL))
            multiplier = multiplier_on_support(
                current,
                mask,
                gap,
                tolerance=inexact,
                max_iterations=conjugate_gradients,
                preconditioned=preconditioned,
            )
            current = current + mask * (current @ multiplier)
    return current if orthonormality_error(current) <= 1e-11 else None


def cayley(skew: FloatArray) -> FloatArray:
    """``(I − K/2)⁻¹(I + K/2)``: in the group if K is in its Lie algebra (skew for rotations)."""
    half = 0.5 * skew
    identity = np.eye(skew.shape[0])
    return np.asarray(np.linalg.solve(identity - half, identity + half), dtype=np.float64)
