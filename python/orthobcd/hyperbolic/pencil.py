"""Eigenvectors of a pencil (M, J) from a minimiser X."""

from __future__ import annotations

import numpy as np

from .._internal.checks import FloatArray
from .problems import PencilProblem

DIAGONAL = 1e-9
"""XᵀMX counts as diagonal if no ``|b_ik|`` exceeds this times ``√(b_ii b_kk)`` or rounding."""

KERNEL = 1e-12
"""Eigenvalues up to this times the largest one count as zero."""

ORTHOGONAL = 1e-10
"""Largest ``‖VᵀJV − J‖``, over ``max(1, ‖V‖²)``, of a V that acts on columns of both signs."""


def eigenvectors(problem: PencilProblem, x: FloatArray, image: FloatArray) -> FloatArray:
    """Transforms groups of columns of X, without changing f, so that XᵀMX becomes diagonal.

    A group is the columns of one sign and one weight, which may be rotated, or all columns of
    weight 0, which may be boosted too. Neither changes ``tr(W XᵀMX)``. At a minimum XᵀMX has
    zeros outside of the blocks of the groups.

    Parameters
    ----------
    problem : PencilProblem
        The problem, with n columns.
    x : ndarray of shape (n, n)
        A minimiser.
    image : ndarray of shape (n, n)
        MX.

    Returns
    -------
    ndarray of shape (n, n)
        The transformed X; ``x`` itself if XᵀMX is already diagonal.
    """
    signs = problem.signature.astype(np.float64)
    weights = problem.weights
    kinds = np.where(weights == 0.0, 0.0, signs * (1.0 + weights))
    product = x.T @ image
    sizes = np.linalg.norm(x, axis=0) * np.sqrt(np.abs(problem.matrix).max())
    noise = np.sqrt(signs.size) * np.finfo(float).eps * np.outer(sizes, sizes)
    turned = x
    for kind in np.unique(kinds):
        alike = np.flatnonzero(kinds == kind)
        block = 0.5 * (product + product.T)[np.ix_(alike, alike)]
        scale = np.sqrt(np.abs(np.outer(np.diag(block), np.diag(block))))
        off = np.abs(block - np.diag(np.diag(block)))
        if (off > np.maximum(DIAGONAL * scale, noise[np.ix_(alike, alike)])).any():
            turned = turned.copy() if turned is x else turned
            turned[:, alike] = x[:, alike] @ _diagonalising(block, signs[alike])
    return turned


def _diagonalising(b: FloatArray, signs: FloatArray) -> FloatArray:
    """V with VᵀJV = J and VᵀBV diagonal; B must be positive semidefinite if the signs differ.

    For the symmetric root R of B, an eigenvector u of RJR gives the eigenvector JRu of (B, J). On
    the kernel of B the eigenvectors of J are used. If J is singular there, or nearly so, V is the
    identity.
    """
    values, vectors = np.linalg.eigh(b)
    if (signs == signs[0]).all():
        return vectors
    zero = values <= KERNEL * values[-1]
    root = (vectors * np.sqrt(np.where(zero, 0.0, values))) @ vectors.T
    pencil, u = np.linalg.eigh(root @ (signs[:, np.newaxis] * root))
    kept = np.argsort(np.abs(pencil))[np.count_nonzero(zero) :]
    kernel = vectors[:, zero]
    types, w = np.linalg.eigh(kernel.T @ (signs[:, np.newaxis] * kernel))
    found = np.hstack([signs[:, np.newaxis] * (root @ u[:, kept]), kernel @ w])
    lengths = np.concatenate([pencil[kept], types])
    positive = np.flatnonzero(lengths > 0.0)
    if np.abs(types).min(initial=1.0) <= KERNEL or positive.size != np.count_nonzero(signs > 0):
        return np.eye(signs.size)
    out = np.empty_like(found)
    scaled = found / np.sqrt(np.abs(lengths))
    out[:, signs > 0] = scaled[:, positive]
    out[:, signs < 0] = np.delete(scaled, positive, axis=1)
    drift = np.linalg.norm(out.T @ (signs[:, np.newaxis] * out) - np.diag(signs))
    return out if drift <= ORTHOGONAL * max(1.0, np.vdot(out, out)) else np.eye(signs.size)
