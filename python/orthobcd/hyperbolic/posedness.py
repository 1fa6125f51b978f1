"""Well-posedness of hyperbolic eigenvalue problems: is the infimum finite, is it attained?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from .._internal.checks import FloatArray, as_signature, as_symmetric
from ..data import has_eigenvalues_above
from ..result import WellPosedness

ATTAINED_TOLERANCE = 1e-10
"""J is singular on the kernel of a matrix if an eigenvalue of J restricted to the kernel is at most
this in magnitude. The kernel is spanned by the eigenvectors with eigenvalues up to this times the
largest one."""

DECOMPOSITION = 10.0
"""Cost of an eigendecomposition in multiply-adds of a matrix product, in units of n³."""


def well_posedness(matrix: ArrayLike, signature: ArrayLike) -> WellPosedness:
    """Decide whether ``inf tr(XᵀMX)`` over ``XᵀJX = J`` is finite, and whether it is attained.

    Parameters
    ----------
    matrix : array_like of shape (n, n)
        M, symmetric.
    signature : array_like of shape (n,)
        The diagonal of J: +1 and −1 in any order.

    Returns
    -------
    WellPosedness
        The result, with a ridge that makes the infimum attained.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Notes
    -----
    λ ↦ λ_min(M − λJ) is concave; its maximum is found by bisection on the sign of its supergradient
    −vᵀJv. The cost is a Cholesky factorization if M is positive definite, else one
    eigendecomposition if it is positive semidefinite, else about fifty.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.hyperbolic.well_posedness([[2.0, 0.0], [0.0, -1.0]], [1, -1]).finite
    True
    """
    M = as_symmetric("matrix", matrix)
    posed = decided(M, as_signature(signature, M.shape[0]).astype(np.float64), lambda _: True)
    assert posed is not None
    return posed


def decided(
    M: FloatArray, signs: FloatArray, allowed: Callable[[float], bool]
) -> WellPosedness | None:
    """`well_posedness` for checked arguments; None if an eigendecomposition is not allowed.

    ``allowed`` is called before every eigendecomposition, with its work in multiply-adds.
    """
    if (signs == signs[0]).all():
        return WellPosedness(True, True, 0.0, 0.0, "J is definite: the infimum is attained")
    attained = WellPosedness(True, True, 0.0, 0.0, "the infimum is attained")
    if is_definite(M):
        return attained
    work = DECOMPOSITION * len(M) ** 3
    if not allowed(work):
        return None
    values, vectors = np.linalg.eigh(M)
    size = float(max(abs(values[0]), abs(values[-1]), np.finfo(float).tiny))
    noise = ATTAINED_TOLERANCE * size
    cure = 1e-6 * size
    shift = 0.0
    if values[0] < -noise:
        best = _best_shift(M, signs, size, lambda: allowed(work))
        if best is None:
            return None
        shift, least, values, vectors = best
        if least < -noise:
            return WellPosedness(
                False,
                False,
                shift,
                cure - least,
                "the infimum is −∞: matrix − λ·J is not positive semidefinite for any λ (its "
                f"smallest eigenvalue is at best {least:.6g}, at λ = {shift:.6g}); a ridge above "
                f"{-least:.6g} makes it finite, ridge={cure - least:.6g} makes it attained",
            )
    kernel = vectors[:, values <= noise]
    if kernel.shape[1]:
        restricted = np.linalg.eigvalsh(kernel.T @ (signs[:, None] * kernel))
        mixed = restricted[0] < 0.0 < restricted[-1] if shift != 0.0 else False
        if np.abs(restricted).min() <= ATTAINED_TOLERANCE or mixed:
            return WellPosedness(
                True,
                False,
                shift,
                cure,
                "the infimum is finite but not attained: J is singular on the kernel of the matrix "
                f"(dimension {kernel.shape[1]}), so ‖X‖ grows without bound on the way to it; any "
                f"positive ridge makes it attained, for instance ridge={cure:.3g}",
            )
    return replace(attained, shift=shift)


def is_definite(M: FloatArray) -> bool:
    """True if the smallest eigenvalue is above rounding."""
    return has_eigenvalues_above(M.copy(), ATTAINED_TOLERANCE * float(np.linalg.norm(M, np.inf)))


def _best_shift(
    M: FloatArray, signs: FloatArray, size: float, go_on: Callable[[], bool]
) -> tuple[float, float, FloatArray, FloatArray] | None:
    """The λ that maximises λ_min(M − λJ), with that maximum and the eigendecomposition.

    None if ``go_on()`` is false before an eigendecomposition.
    """
    low, high = -2.0 * size, 2.0 * size
    best: tuple[float, float, FloatArray, FloatArray] | None = None
    for _ in range(60):
        middle = 0.5 * (low + high)
        if not go_on():
            return None
        values, vectors = np.linalg.eigh(M - np.diag(middle * signs))
        if best is None or values[0] > best[1]:
            best = (middle, float(values[0]), values, vectors)
        slope = -float(vectors[:, 0] @ (signs * vectors[:, 0]))
        if slope > 0.0:
            low = middle
        else:
            high = middle
        if high - low <= 1e-15 * size:
            break
    assert best is not None
    return best
