"""J-orthogonal matrices: random ones, and hyperbolic CS, QR and polar factors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._internal.checks import (
    FloatArray,
    Signs,
    as_data,
    as_float,
    as_float_array,
    as_int,
    as_signature,
)

BREAKDOWN_TOLERANCE = 1e-10
"""A pivot ``±R_jj²``, which is a difference, counts as zero if it is at most this times the terms
of the difference. The real part of an eigenvalue counts as zero up to this times the eigenvalue."""

PASSES = 2
"""Factorizations of ``QᵀJQ``; the second removes the rounding error that the first amplifies."""

POLAR_STEPS = 60
"""Largest number of Newton steps for the polar factor; if it exists, about ten are needed."""


def hyperbolic_qr(A: ArrayLike, signature: ArrayLike) -> tuple[FloatArray, FloatArray, Signs]:
    """The hyperbolic QR factorization ``A = QR`` with ``QᵀJQ = diag(±1)``.

    Parameters
    ----------
    A : array_like of shape (n, r)
        The matrix, n ≥ r.
    signature : array_like of shape (n,)
        The diagonal of J: +1 and −1 in any order.

    Returns
    -------
    Q : ndarray of shape (n, r)
        ``QᵀJQ = diag(signs)``; a valid ``x0`` of a `JOrthogonalProblem`.
    R : ndarray of shape (r, r)
        Upper triangular with positive diagonal.
    signs : ndarray of shape (r,)
        ±1; all +1 iff ``AᵀJA`` is positive definite.

    Raises
    ------
    ValueError, TypeError
        If A has more columns than rows, or if J is singular (to 1e-10) on the span of the first k
        columns of A for some k; then the factorization does not exist.

    Notes
    -----
    ``AᵀJA = Rᵀ diag(signs) R`` is factored without pivoting for the orthonormal factor of A, then
    again for Q, as in CholeskyQR2. The error of QᵀJQ is of the order of rounding of ‖Q‖².
    Bojanczyk, Higham and Patel, SIAM J. Matrix Anal. Appl. 24 (2003).

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> Q, R, signs = ob.hyperbolic.hyperbolic_qr([[2.0, 1.0], [1.0, 3.0], [0.0, 1.0]], [1, 1, -1])
    >>> bool(np.allclose(Q.T @ np.diag([1, 1, -1]) @ Q, np.diag(signs)))
    True
    """
    a, j = _tall(A, signature)
    Q, R, signs, failed = _hyperbolic_qr(a, j)
    if failed is not None:
        raise ValueError(
            f"A has no hyperbolic QR factorization: AᵀJA of its first {failed + 1} columns is "
            "singular"
        )
    return Q, R, signs


def indefinite_least_squares(A: ArrayLike, b: ArrayLike, signature: ArrayLike) -> FloatArray:
    """Indefinite least squares: the x that minimises ``(b − Ax)ᵀJ(b − Ax)``.

    Parameters
    ----------
    A : array_like of shape (n, r)
        The matrix, n ≥ r.
    b : array_like of shape (n,) or (n, k)
        Right-hand sides; each column has its own solution.
    signature : array_like of shape (n,)
        The diagonal of J: +1 and −1 in any order.

    Returns
    -------
    ndarray of shape (r,) or (r, k)
        The unique minimiser; ``AᵀJ(b − Ax) = 0``.

    Raises
    ------
    ValueError, TypeError
        If ``AᵀJA`` is not positive definite (to 1e-10); then there is no minimiser, or more than
        one.

    Notes
    -----
    ``x = R⁻¹QᵀJb`` with the factorization of `hyperbolic_qr`, and one step of refinement.
    Chandrasekaran, Gu and Sayed, SIAM J. Matrix Anal. Appl. 20 (1998).

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A, b = np.array([[2.0], [1.0]]), np.array([4.0, 2.5])
    >>> ob.hyperbolic.indefinite_least_squares(A, b, [1, -1]).round(12)
    array([1.83333333])
    """
    a, j = _tall(A, signature)
    one = np.ndim(b) == 1
    right = as_float_array("b", b, 1 if one else 2)
    if right.shape[0] != a.shape[0]:
        raise ValueError(f"b must have {a.shape[0]} rows, got shape {right.shape}")
    right = right.reshape(a.shape[0], -1)
    Q, R, signs, failed = _hyperbolic_qr(a, j)
    if failed is not None or (signs < 0).any():
        how = "singular" if failed is not None else "not positive definite"
        raise ValueError(f"A must make AᵀJA positive definite: it is {how}, no single x is best")
    x = np.zeros((a.shape[1], right.shape[1]))
    for _ in range(2):
        x += np.linalg.solve(R, Q.T @ (j * (right - a @ x)))
    return x[:, 0] if one else x


def indefinite_polar(A: ArrayLike, signature: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The indefinite polar decomposition ``A = QS``: Q J-orthogonal, JS symmetric.

    Parameters
    ----------
    A : array_like of shape (n, n)
        The matrix, nonsingular.
    signature : array_like of shape (n,)
        The diagonal of J: +1 and −1 in any order.

    Returns
    -------
    Q : ndarray of shape (n, n)
        ``QᵀJQ = J`` to rounding of ‖Q‖².
    S : ndarray of shape (n, n)
        ``(JS)ᵀ = JS``; all eigenvalues have positive real parts. A = QS to rounding of ‖Q‖²‖A‖.

    Raises
    ------
    ValueError, TypeError
        If A is not square or singular (to rounding), or if ``J AᵀJA`` has an eigenvalue within an
        angle of 1e-10 of the negative real axis; then the decomposition does not exist.

    Notes
    -----
    ``S = (J AᵀJA)^½``. Q is the limit of Newton's iteration ``X ← ½(X + JX⁻ᵀJ)`` from A, scaled by
    the determinant.
    Higham, Mackey, Mackey and Tisseur, SIAM J. Matrix Anal. Appl. 26 (2005).

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> Q, S = ob.hyperbolic.indefinite_polar([[3.0, 1.0], [0.5, 2.0]], [1, -1])
    >>> bool(np.allclose(Q @ S, [[3.0, 1.0], [0.5, 2.0]]))
    True
    """
    a, j = _tall(A, signature)
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"A must be square, got shape {a.shape}")
    singular = np.linalg.svd(a, compute_uv=False)
    if singular[-1] > len(a) * np.finfo(float).eps * singular[0]:
        q, converged = _newton(a, j)
        form = q.T @ (j * a)
        S = j * (0.5 * (form + form.T))
        if converged and _is_root(S) and _drift(q, j) <= BREAKDOWN_TOLERANCE * np.vdot(q, q):
            return q, S
    raise ValueError(
        "A has no indefinite polar decomposition: J AᵀJA has an eigenvalue on the closed negative "
        "real axis"
    )


def _is_root(S: FloatArray) -> bool:
    """True if all eigenvalues of S have positive real parts: S is the principal root of S²."""
    values = np.linalg.eigvals(S)
    return bool((values.real > BREAKDOWN_TOLERANCE * np.abs(values)).all())


def _drift(q: FloatArray, j: FloatArray) -> float:
    """The distance of QᵀJQ from J, given by its diagonal as a column."""
    return float(np.linalg.norm(q.T @ (j * q) - np.diag(j[:, 0])))


def _tall(A: ArrayLike, signature: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Checked A, with at most as many columns as rows, and the diagonal of J as a column."""
    a = as_data("A", A)
    if a.shape[1] > a.shape[0]:
        raise ValueError(f"A must not have more columns than rows, got shape {a.shape}")
    return a, as_signature(signature, a.shape[0]).astype(np.float64)[:, np.newaxis]


def _signed_cholesky(S: FloatArray) -> tuple[FloatArray, Signs, int | None]:
    """R upper triangular and signs with ``S = Rᵀ diag(signs) R``; the column with a zero pivot, or
    None."""
    r = len(S)
    R, signs = np.zeros((r, r)), np.ones(r, dtype=np.int8)
    for k in range(r):
        before = R[:k, k] * signs[:k]
        pivot = S[k, k] - before @ R[:k, k]
        if abs(pivot) <= BREAKDOWN_TOLERANCE * (1.0 + R[:k, k] @ R[:k, k]):
            return R, signs, k
        signs[k] = 1 if pivot > 0.0 else -1
        R[k, k] = np.sqrt(abs(pivot))
        R[k, k + 1 :] = signs[k] * (S[k, k + 1 :] - before @ R[:k, k + 1 :]) / R[k, k]
    return R, signs, None


def _hyperbolic_qr(
    a: FloatArray, j: FloatArray
) -> tuple[FloatArray, FloatArray, Signs, int | None]:
    """Q, R, the signs, and the column at which the factorization fails, or None."""
    Q, R = np.linalg.qr(a)
    signs = np.ones(a.shape[1], dtype=np.int8)
    pivots = np.abs(np.diag(R))
    dependent = np.flatnonzero(pivots <= BREAKDOWN_TOLERANCE * np.linalg.norm(a, axis=0))
    if dependent.size:
        return Q, R, signs, int(dependent[0])
    for k in range(PASSES):
        S = Q.T @ (j * Q)
        left = S - np.diag(signs)
        # To first order, where the square of the distance is rounding of QᵀJQ.
        if k and np.sum(left**2) <= np.finfo(np.float64).eps * np.sum(Q**2):
            T = np.eye(len(S)) + signs[:, np.newaxis] * (
                np.triu(left) - 0.5 * np.diag(np.diag(left))
            )
        else:
            T, signs, failed = _signed_cholesky(S)
            if failed is not None:
                return Q, R, signs, failed
        Q, R = np.linalg.solve(T.T, Q.T).T, T @ R
    flip = np.sign(np.diag(R))
    return Q * flip, R * flip[:, np.newaxis], signs, None


def _newton(a: FloatArray, j: FloatArray) -> tuple[FloatArray, bool]:
    """The J-orthogonal factor of a nonsingular matrix, and whether the iteration converged."""
    q, settled = a, False
    for _ in range(POLAR_STEPS):
        try:
            inverse = j * np.linalg.inv(q).T * j.T
        except np.linalg.LinAlgError:
            return q, False
        scale = np.exp(-np.linalg.slogdet(q)[1] / len(q)) if not settled else 1.0
        after = 0.5 * (scale * q + inverse / scale)
        change, size = float(np.linalg.norm(after - q)), float(np.linalg.norm(after))
        q = after
        if settled and change <= 1e-8 * size:
            return q, bool(size > 0.0)
        settled = settled or change <= 1e-2 * size
    return q, False


def hyperbolic_cs(
    X: ArrayLike, signature: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """The hyperbolic CS decomposition of a J-orthogonal matrix.

    Let the p rows and columns of positive sign come first, then the q = n − p of negative sign,
    each in their order. Then ``X = diag(U1, U2) · S · diag(V1, V2)ᵀ`` with ``c² − s² = 1`` and, for
    p ≥ q, ``S = [[diag(c), 0, diag(s)], [0, I, 0], [diag(s), 0, diag(c)]]``; for q > p the identity
    is in the lower block.

    Parameters
    ----------
    X : array_like of shape (n, n)
        The matrix; ``XᵀJX = J`` up to 1e-8·‖X‖² and 0.1.
    signature : array_like of shape (n,)
        +1 and −1 in any order.

    Returns
    -------
    U1 : ndarray of shape (p, p)
    U2 : ndarray of shape (q, q)
    c, s : ndarray of shape (min(p, q),)
        Hyperbolic cosines and (nonnegative) sines, descending.
    V1 : ndarray of shape (p, p)
    V2 : ndarray of shape (q, q)

    Raises
    ------
    ValueError, TypeError
        If X is not J-orthogonal or the signature is not valid.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> X = ob.hyperbolic.random_j_orthogonal([1, 1, -1], seed=3)
    >>> U1, U2, c, s, V1, V2 = ob.hyperbolic.hyperbolic_cs(X, [1, 1, -1])
    >>> bool(np.allclose(c**2 - s**2, 1.0))
    True
    """
    x = as_float_array("X", X, 2)
    signs = as_signature(signature)
    if x.shape != (signs.size, signs.size):
        raise ValueError(f"X must have shape ({signs.size}, {signs.size}), got {x.shape}")
    return _core.hyperbolic_cs(x, signs)


def random_j_orthogonal(signature: ArrayLike, scale: float = 0.5, seed: int = 0) -> FloatArray:
    """A random J-orthogonal matrix.

    Parameters
    ----------
    signature : array_like of shape (n,)
        +1 and −1 in any order.
    scale : float, default 0.5
        Standard deviation of the rapidities, none of which may exceed 12: then the entries reach
        8e4, and ``XᵀJX = J`` holds to 1e-5. In the hyperbolic CS decomposition c and s are cosh
        and sinh of ``scale``·N(0, 1), and the orthogonal factors are uniformly random.
    seed : int, default 0
        Seed; the same seed gives the same matrix.

    Returns
    -------
    ndarray of shape (n, n)
        X with ``XᵀJX = J``.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> X, J = ob.hyperbolic.random_j_orthogonal([1, 1, -1]), np.diag([1.0, 1.0, -1.0])
    >>> bool(np.allclose(X.T @ J @ X, J))
    True
    """
    signs = as_signature(signature)
    size, start = as_float("scale", scale, 0.0), as_int("seed", seed, 0)
    return _core.random_j_orthogonal(signs, size, start)
