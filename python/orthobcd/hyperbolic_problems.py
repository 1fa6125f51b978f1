"""Problems over matrices that keep ``XᵀJX`` for a signature ``J = diag(±1)``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._checks import FloatArray, as_choice, as_float, as_int
from .finite_sums import LogisticLoss
from .problems import (
    GramQuadratic,
    NoPenalty,
    Penalty,
    Quadratic,
    Smooth,
    _check_problem,
    _data,
    _symmetric,
)

SENSES = ("min", "max")

ATTAINED_TOLERANCE = 1e-10
"""J is singular on the kernel of A when an eigenvalue of J restricted to it is at most this in
magnitude; the kernel is the span of eigenvectors of A up to this times its largest eigenvalue."""


def as_signature(value: Any, n: int | None = None) -> NDArray[np.int8]:
    """``value`` as an array of n signs ±1.

    Raises
    ------
    ValueError, TypeError
        If it is not one-dimensional of length ``n``, or holds anything but +1 and −1.
    """
    raw = np.asarray(value)
    if raw.dtype.kind not in "fiub":
        raise TypeError(f"signature must be an array of +1 and -1, got dtype {raw.dtype}")
    if raw.ndim != 1 or raw.size == 0:
        raise ValueError(f"signature must be one-dimensional and not empty, got shape {raw.shape}")
    if n is not None and raw.shape[0] != n:
        raise ValueError(f"signature must have {n} entries, got {raw.shape[0]}")
    bad = raw[(raw != 1) & (raw != -1)]
    if raw.dtype.kind == "b" or bad.size:
        raise ValueError(
            f"signature must hold only +1 and -1, got {bad[0] if bad.size else bool(raw[0])}"
        )
    return raw.astype(np.int8)


@dataclass(frozen=True, eq=False)
class JOrthogonalProblem:
    """``min f(X) + h(X)`` over matrices with ``XᵀJX`` fixed, ``J = diag(signature)``.

    Parameters
    ----------
    smooth : Quadratic, GramQuadratic or LogisticLoss
        f. A `LogisticLoss` needs a Jacobi update.
    signature : array_like of shape (n,)
        +1 and −1 in any order. All of one sign is the Stiefel manifold, solved as such.
    penalty : L0, L1, NonNegative or NoPenalty, default NoPenalty()
        h.
    n_components : int, optional
        Number of columns r; n by default. ``XᵀJX`` keeps its value at the start, which for
        r = n is J.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.
    """

    smooth: Smooth | LogisticLoss
    signature: Any
    penalty: Penalty = field(default_factory=NoPenalty)
    n_components: int | None = None

    def __post_init__(self) -> None:
        n = getattr(self.smooth, "n_rows", None)
        object.__setattr__(self, "signature", as_signature(self.signature, n))
        columns = self.n_components
        if columns is None:
            columns = self.smooth.n_columns if isinstance(self.smooth, LogisticLoss) else n
        kinds = (Quadratic, GramQuadratic, LogisticLoss)
        r = _check_problem(self.smooth, self.penalty, columns, kinds)
        object.__setattr__(self, "n_components", r)

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        columns = self.n_components
        assert columns is not None
        return columns


class PencilProblem:
    """A problem ``± tr(W XᵀMX)`` over ``XᵀJX = J``, W diagonal: signature, matrix M, no penalty."""

    signature: Any

    def _check(self, name: str, data: Any) -> NDArray[np.int8]:
        """Keep the checked data as ``name`` and the signature that fits it, which is returned."""
        n = int(data.shape[1])
        if n < 2:
            raise ValueError(f"{name} must have at least 2 columns, got {n}")
        signs = as_signature(self.signature, n)
        object.__setattr__(self, name, data)
        object.__setattr__(self, "signature", signs)
        return signs

    def _set(self, matrix: FloatArray, smooth: Quadratic) -> None:
        object.__setattr__(self, "_matrix", matrix)
        object.__setattr__(self, "_smooth", smooth)

    @property
    def smooth(self) -> Quadratic:
        """The objective f."""
        smooth: Quadratic = self.__dict__["_smooth"]
        return smooth

    @property
    def matrix(self) -> FloatArray:
        """The symmetric matrix M of the pencil (M, J)."""
        matrix: FloatArray = self.__dict__["_matrix"]
        return matrix

    @property
    def penalty(self) -> Penalty:
        """None."""
        return NoPenalty()

    @property
    def n_columns(self) -> int:
        """Columns of X: n, X is square."""
        return int(self.signature.shape[0])


@dataclass(frozen=True, eq=False)
class HyperbolicEigenvalueProblem(PencilProblem):
    """``min`` (or ``max``) ``tr(Xᵀ(AᵀA + ridge·I)X)`` over ``XᵀJX = J``: the pencil (AᵀA, J).

    Parameters
    ----------
    A : ndarray or scipy.sparse matrix of shape (m, n)
        Data, samples in rows.
    signature : array_like of shape (n,)
        +1 and −1 in any order.
    sense : {"min", "max"}, default "min"
        "min" has the infimum ``Σ|eig(J(AᵀA + ridge·I))|``. "max" is the problem of the JOBCD paper;
        it is unbounded for every nonzero A and mixed signature, which a solve reports
        with the status ``UNBOUNDED``.
    ridge : float, default 0.0
        Added to the diagonal of AᵀA.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Notes
    -----
    The infimum is finite iff ``AᵀA + ridge·I − λJ`` is positive semidefinite for some λ (Liang, Li
    and Bai, Linear Algebra Appl. 438, 2013), and for a positive semidefinite matrix attained
    iff J is nonsingular on its kernel. `well_posedness` says which; a solve checks it first.

    ``smooth`` is f = ± tr(Xᵀ(AᵀA + ridge·I)X), ``matrix`` is AᵀA + ridge·I.
    """

    A: Any
    signature: Any
    sense: str = "min"
    ridge: float = 0.0

    def __post_init__(self) -> None:
        data = _data(self.A)
        self._check("A", data)
        as_choice("sense", self.sense, SENSES)
        object.__setattr__(self, "ridge", as_float("ridge", self.ridge))
        gram = data.T @ data
        gram = np.asarray(gram.todense() if hasattr(gram, "todense") else gram, dtype=np.float64)
        gram = 0.5 * (gram + gram.T)
        gram[np.diag_indices_from(gram)] += self.ridge
        factor = 2.0 if self.sense == "min" else -2.0
        self._set(gram, Quadratic(factor * gram))

    @property
    def n_components(self) -> int:
        """n: X is square."""
        return self.n_columns


@dataclass(frozen=True, eq=False)
class HyperbolicPCAProblem(PencilProblem):
    """Hyperbolic PCA: ``min tr(W Xᵀ J C J X)`` over ``XᵀJX = J``, a bounded problem.

    W is the diagonal 0/1 matrix of the residual columns: of the p columns of positive sign,
    ``n_components`` are kept as principal directions (with all columns of negative sign), and the
    other p − n_components, the last ones, carry what is lost. The optimum is the sum of the
    p − n_components smallest positive-type eigenvalues of the pencil (JCJ, J).

    Parameters
    ----------
    C : array_like of shape (n, n)
        Symmetric positive semidefinite second-moment matrix.
    signature : array_like of shape (n,)
        +1 and −1 in any order; the hyperboloid model has one −1.
    n_components : int
        Number of principal directions of positive sign kept, 0 ≤ n_components ≤ p.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; the message names it.

    Notes
    -----
    ``smooth`` is f = tr(W XᵀJCJX), ``matrix`` is JCJ. The columns of X other than those of W are
    free up to rotations and boosts that leave W's columns alone.
    """

    C: Any
    signature: Any
    n_components: int

    def __post_init__(self) -> None:
        C = _symmetric("C", self.C)
        signs = self._check("C", C)
        kept = as_int("n_components", self.n_components, 0)
        positive = np.flatnonzero(signs > 0)
        if kept > positive.size:
            raise ValueError(
                f"n_components must be at most the number of positive signs ({positive.size}), "
                f"got {kept}"
            )
        object.__setattr__(self, "n_components", kept)
        weights = np.zeros(signs.size)
        weights[positive[kept:]] = 1.0
        object.__setattr__(self, "_weights", weights)
        matrix = signs[:, None] * C * signs[None, :]
        self._set(matrix, Quadratic(2.0 * matrix, D=np.diag(weights)))

    @property
    def weights(self) -> FloatArray:
        """The diagonal of W."""
        weights: FloatArray = self.__dict__["_weights"]
        return weights


@dataclass(frozen=True)
class WellPosedness:
    """Whether ``inf tr(XᵀMX)`` over ``XᵀJX = J`` is finite and attained.

    Attributes
    ----------
    finite : bool
        Whether M − λJ is positive semidefinite for some λ.
    attained : bool
        Whether some X reaches the infimum.
    shift : float
        A λ that maximises the smallest eigenvalue of M − λJ (0 if M is positive semidefinite).
    ridge : float
        A ridge to add to M that makes the infimum attained; 0 if it is.
    message : str
        The same in words.
    """

    finite: bool
    attained: bool
    shift: float
    ridge: float
    message: str


def well_posedness(matrix: Any, signature: Any) -> WellPosedness:
    """Whether ``inf tr(XᵀMX)`` over ``XᵀJX = J`` is finite, and whether it is attained.

    Parameters
    ----------
    matrix : array_like of shape (n, n)
        Symmetric M.
    signature : array_like of shape (n,)
        J.

    Returns
    -------
    WellPosedness
        The answer, with the ridge that cures an infimum that is not attained.

    Notes
    -----
    λ ↦ λ_min(M − λJ) is concave; its maximum is found by bisection on the sign of its supergradient
    −vᵀJv. One eigendecomposition if M is positive semidefinite, about fifty otherwise.
    """
    M = _symmetric("matrix", matrix)
    signs = as_signature(signature, M.shape[0]).astype(np.float64)
    values, vectors = np.linalg.eigh(M)
    size = float(max(abs(values[0]), abs(values[-1]), np.finfo(float).tiny))
    noise = ATTAINED_TOLERANCE * size
    cure = 1e-6 * size
    if (signs == signs[0]).all():
        return WellPosedness(True, True, 0.0, 0.0, "J is definite: the infimum is attained")
    shift = 0.0
    if values[0] < -noise:
        shift, least, values, vectors = _best_shift(M, signs, size)
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
    return WellPosedness(True, True, shift, 0.0, "the infimum is attained")


def _best_shift(
    M: FloatArray, signs: FloatArray, size: float
) -> tuple[float, float, FloatArray, FloatArray]:
    """The λ that maximises λ_min(M − λJ), and the eigendecomposition there."""
    low, high = -2.0 * size, 2.0 * size
    best: tuple[float, float, FloatArray, FloatArray] | None = None
    for _ in range(60):
        middle = 0.5 * (low + high)
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
