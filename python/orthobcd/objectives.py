"""Smooth objectives f; their arguments are checked in the constructor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ._core import COEFFICIENTS, DATA
from ._internal.checks import (
    Check,
    Checked,
    DataLike,
    FloatArray,
    IntArray,
    Interval,
    as_callable,
    as_data,
    as_data_matrix,
    as_float,
    as_float_array,
    as_symmetric,
    by_columns,
    check_size,
    is_sparse,
    magnitude,
    plain_array,
    returned_array,
)
from ._internal.extras import need


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Quadratic(Checked):
    """The smooth objective ``½⟨X, C X D⟩ + ⟨linear, X⟩`` with a dense symmetric C.

    Parameters
    ----------
    C : array_like of shape (n, n)
        Symmetric; may be indefinite.
    linear : array_like of shape (n, r), optional
        Linear term; zero by default.
    D : array_like of shape (r, r), optional
        Symmetric; the identity by default.

    Raises
    ------
    ValueError, TypeError
        If an array has the wrong shape, is not finite, C or D is not symmetric, or the largest
        coefficient is neither 0 nor between 1e-120 and 1e120.

    Notes
    -----
    The curvature of a block of rows B with Z = X_B is exact: ``½ tr(C_BB E (Z D Zᵀ) Eᵀ)``
    (OBCD paper, eq. 8 and Lemma C.1). ``C X`` is updated as rows move.

    A zero linear term is dropped, and D = cI is multiplied into C. Problems in either form have the
    same results, bit for bit.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.Quadratic([[2.0, 1.0], [1.0, 3.0]])
    Quadratic(C=<array 2x2>, linear=None, D=None)
    """

    C: FloatArray
    linear: FloatArray | None
    D: FloatArray | None

    def __init__(
        self, C: ArrayLike, linear: ArrayLike | None = None, D: ArrayLike | None = None
    ) -> None:
        matrix = as_symmetric("C", C)
        term = None if linear is None else as_float_array("linear", linear, 2)
        if term is not None and term.shape[0] != matrix.shape[0]:
            raise ValueError(
                f"linear must have as many rows as C ({matrix.shape[0]}), got shape {term.shape}"
            )
        metric = None if D is None else as_symmetric("D", D)
        if term is not None and metric is not None and metric.shape[0] != term.shape[1]:
            r = term.shape[1]
            raise ValueError(f"D must be ({r}, {r}) to match linear, got shape {metric.shape}")
        sizes = [
            missing if array is None else magnitude(array)
            for array, missing in ((matrix, 0.0), (term, 0.0), (metric, 1.0))
        ]
        for name, size in zip(("C", "linear", "D"), sizes, strict=True):
            check_size(name, size, (0.0, COEFFICIENTS[1]))
        product, largest = sizes[0] * sizes[2], sizes[1]
        check_size("linear" if largest > product else "C", max(product, largest))
        self._set(C=matrix, linear=term, D=metric)

    @property
    def n_rows(self) -> int:
        """Number of rows n of X."""
        return int(self.C.shape[0])

    @property
    def is_trace_form(self) -> bool:
        """True if f is a multiple of ``tr(XᵀCX)``: no linear term, and D a multiple of I."""
        if self.linear is not None and self.linear.any():
            return False
        D = self.D
        return D is None or bool((D[0, 0] * np.eye(len(D)) == D).all())

    @property
    def n_columns(self) -> int | None:
        """Number of columns that ``linear`` or ``D`` fixes, or None."""
        for array in (self.linear, self.D):
            if array is not None:
                return int(array.shape[1])
        return None


@dataclass(frozen=True, eq=False, repr=False, init=False)
class GramQuadratic(Checked):
    """The smooth objective ``½·scale·‖A X‖_F²``; the n × n matrix AᵀA is never formed.

    Parameters
    ----------
    A : ndarray or scipy.sparse matrix of shape (m, n)
        Data, stored by columns: sparse as CSC, dense in Fortran order. An array that already has
        this format and is float64 is not copied; do not change it during a solve.
    scale : float, default -1.0
        −1 maximises the explained variance, +1 minimises the residual.
    mean : array_like of shape (n,), optional
        Column means to subtract without densifying: A stands for ``A − 1 meanᵀ``.

    Raises
    ------
    ValueError, TypeError
        If A is empty, not two-dimensional, not finite or an invalid sparse matrix; if its largest
        magnitude is neither 0 nor between 1e-50 and 1e50; or if scale is not finite or takes
        ``scale·AᵀA`` out of the range from 1e-120 to 1e120.

    Notes
    -----
    ``W = A X`` (m × r) is updated as rows move. The cost of a pair is the number of nonzeros in its
    two columns of A times r, independent of n.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> ob.GramQuadratic(np.ones((4, 3)), scale=2.0)
    GramQuadratic(A=<array 4x3>, scale=2.0, mean=None)
    """

    A: Any
    scale: float
    mean: FloatArray | None

    def __init__(self, A: DataLike, scale: float = -1.0, mean: ArrayLike | None = None) -> None:
        data, size = as_data_matrix(A)
        scale = as_float("scale", scale)
        check_size("scale", abs(scale) * size**2)
        means = None if mean is None else as_float_array("mean", mean, 1)
        if means is not None:
            if means.shape[0] != data.shape[1]:
                raise ValueError(f"mean must have {data.shape[1]} entries, got {means.shape[0]}")
            check_size("mean", magnitude(means), (0.0, DATA[1]))
        self._set(A=data if is_sparse(data) else by_columns(data), scale=scale, mean=means)

    @property
    def n_rows(self) -> int:
        """Number of rows n of X (columns of A)."""
        return int(self.A.shape[1])

    @property
    def n_columns(self) -> int | None:
        """None: any number of columns is allowed."""
        return None


@dataclass(frozen=True, eq=False, repr=False, init=False)
class LogisticLoss(Checked):
    """``f(X) = (1/N) Σ log(1 + exp(−y_i a_iᵀ X b_i))``, for `VRJOBCD`.

    Parameters
    ----------
    A : array_like of shape (N, n)
        Left factors a_i.
    B : array_like of shape (N, r)
        Right factors b_i.
    labels : array_like of shape (N,)
        y_i, +1 or −1.

    Raises
    ------
    ValueError, TypeError
        If the shapes do not match, an entry is not finite, the largest magnitude of A or B is
        neither 0 nor between 1e-50 and 1e50, or a label is not ±1.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> ob.LogisticLoss(np.ones((4, 3)), np.ones((4, 2)), [1, -1, 1, 1])
    LogisticLoss(A=<array 4x3>, B=<array 4x2>, labels=<array 4>)
    """

    A: FloatArray
    B: FloatArray
    labels: FloatArray

    def __init__(self, A: ArrayLike, B: ArrayLike, labels: ArrayLike) -> None:
        left, right = as_data("A", A), as_data("B", B)
        signs = as_float_array("labels", labels, 1)
        if right.shape[0] != left.shape[0]:
            raise ValueError(f"B must have {left.shape[0]} rows as A has, got shape {right.shape}")
        if signs.shape[0] != left.shape[0] or not (np.abs(signs) == 1.0).all():
            raise ValueError(f"labels must hold {left.shape[0]} values of +1 and -1")
        self._set(A=left, B=right, labels=signs)

    @property
    def n_rows(self) -> int:
        """Number of rows n of X."""
        return int(self.A.shape[1])

    @property
    def n_columns(self) -> int:
        """Number of columns r of X."""
        return int(self.B.shape[1])


class ByFunction(Checked):
    """Base class of objectives given by a function that returns value and gradient."""

    value_and_gradient: Callable[..., Any]
    n_rows: int
    n_columns: int | None
    lipschitz: float | None
    curvature: Any = None

    _checks: ClassVar[Mapping[str, Check]] = {
        "value_and_gradient": as_callable,
        "n_rows": Interval(int, 2),
        "n_columns": Interval(int, 1, optional=True),
        "lipschitz": Interval(float, 0.0, closed="neither", optional=True),
    }

    @property
    def _product(self) -> Callable[[FloatArray, FloatArray], FloatArray | None] | None:
        """The checked function (X, V) ↦ ∇²f(X)[V], or None."""
        return None

    def _evaluate(self, x: FloatArray, *terms: IntArray) -> tuple[float, FloatArray, float]:
        """f and ∇f at ``x``, checked, and their relative precision; the function owns ``x``."""
        name = getattr(self.value_and_gradient, "__qualname__", repr(self.value_and_gradient))
        shape, returned = x.shape, self.value_and_gradient(x, *terms)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise ValueError(f"{name} must return (value, gradient), got {type(returned).__name__}")
        try:
            (number, fine), (slope, finer) = map(plain_array, returned)
        except ValueError as error:
            raise ValueError(f"{name} must return a number and an array: {error}") from error
        if number.size != 1 or number.dtype.kind not in "fiu":
            raise ValueError(
                f"{name} must return a real number as value, got {type(returned[0]).__name__} "
                f"of dtype {number.dtype}, shape {number.shape}"
            )
        gradient = returned_array(name, "gradient", slope, shape)
        value = float(number.reshape(()))
        if not np.isfinite(value):
            raise ValueError(f"{name} must return a finite value, got NaN or infinity")
        return value, gradient, max(fine, finer)


@dataclass(frozen=True, eq=False, repr=False)
class SmoothFunction(ByFunction):
    """A smooth objective f, given by a function that returns its value and gradient.

    Parameters
    ----------
    value_and_gradient : callable
        Takes X, a new C-contiguous float64 array of shape (n, r); returns f(X) and ∇f(X), an array
        of the same shape. Called once per trial step.
    n_rows : int
        Number of rows n of X, at least 2.
    n_columns : int, optional
        Number of columns r, if the function fixes it.
    lipschitz : float, optional
        A Lipschitz constant of ∇f on the feasible set, in the Frobenius norm. The constant bounds
        the curvature of every step; without it a certificate has no ``block2_gap``.
    hessian_product : callable, optional
        Takes X and V, new float64 arrays of shape (n, r); returns the derivative of ∇f at X along
        V, an array of that shape, or None where f has no second derivative.
    curvature : array_like of shape (n, n), optional
        A symmetric C with ``f(X + E) ≤ f(X) + ⟨∇f(X), E⟩ + ½⟨E, C E⟩`` where E has two nonzero rows
        (eq. 8 of the OBCD paper, H = I ⊗ C). "tiled" uses only ``lipschitz``, which is then ‖C‖.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid. During a solve a ValueError names the function if it does not
        return a finite real number and a finite real array of the shape of X. A ValueError names
        ``smooth`` if the largest magnitude of value and gradient at the start is neither 0 nor
        between 1e-120 and 1e120, or if differences of values disagree with the gradient where its
        steps fail (with mere noise in the values the solve ends with `Status.NOISE`). This error,
        and an exception of the function, which ends the solve and is raised unchanged, has the
        result so far as its attribute ``result``, if it can have attributes.

    Notes
    -----
    At X_k the quadratic ``⟨∇f(X_k), X − X_k⟩ + L/2‖X − X_k‖² + h(X)`` is lowered pair by pair. If F
    falls, the step is accepted; else L is raised. Without ``lipschitz``, L is estimated from the
    steps. Without a penalty most steps are Riemannian gradient steps of Barzilai–Borwein length.
    The solve ends when ``‖grad f‖ ≤ 0.1·√tol·‖∇f‖`` (1e-6 by default) and no pair lowers the
    quadratic. Where ∇f vanishes, a thousandth of the largest ``‖∇f‖`` so far replaces ``‖∇f‖``.

    With ``hessian_product``, slow gradient steps (50 steps that do not lower ``‖grad f‖`` tenfold)
    are followed by Newton's method with a trust region, which converges superlinearly. If Newton's
    method is as slow, or ten of its steps in a row fail, only gradient steps are taken from then
    on. Wrong products make Newton steps fail; `check_hessian` finds a wrong product.

    A gradient (or value) of single precision is converted; tolerances below its precision, 1.2e-7,
    are then raised to 1.2e-7. `OBCD` (on the Stiefel manifold) and `JOBCD` solve such problems. The
    options ``rapidity_bound`` and ``side`` always apply. A ``working_set`` other than "tiled" is
    the papers' algorithm, with a new gradient for every pair; the solver's ``curvature``,
    ``proximal`` (relative to L) and ``scored_pairs`` apply to it only. The default start is
    "random" ("partition" for X ≥ 0).

    Examples
    --------
    ``½‖X − B‖⁴`` on the Stiefel manifold:

    >>> import numpy as np, orthobcd as ob
    >>> B = np.random.default_rng(0).standard_normal((8, 2))
    >>> def f(x):
    ...     square = np.sum((x - B) ** 2)
    ...     return 0.5 * square**2, 2.0 * square * (x - B)
    >>> smooth = ob.SmoothFunction(f, 8, 2)
    >>> result = ob.solve(ob.StiefelProblem(smooth, ob.NoPenalty(), 2))
    >>> u, _, vt = np.linalg.svd(B, full_matrices=False)
    >>> result.converged, bool(np.abs(result.x - u @ vt).max() < 1e-5)
    (True, True)
    """

    value_and_gradient: Callable[[FloatArray], Any]
    n_rows: int
    n_columns: int | None = None
    lipschitz: float | None = None
    hessian_product: Callable[[FloatArray, FloatArray], Any] | None = None
    curvature: ArrayLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hessian_product is not None:
            as_callable("hessian_product", self.hessian_product)
        if self.curvature is None:
            return
        self._set(curvature=as_symmetric("curvature", self.curvature, self.n_rows))
        if self.lipschitz is None:
            self._set(lipschitz=float(np.linalg.norm(self.curvature, 2)) or None)

    @property
    def _product(self) -> Callable[[FloatArray, FloatArray], FloatArray | None] | None:
        if (product := self.hessian_product) is None:
            return None
        name = getattr(product, "__qualname__", repr(product))

        def checked(x: FloatArray, v: FloatArray) -> FloatArray | None:
            shape = x.shape
            image = product(x, v)
            return None if image is None else returned_array(name, "product", image, shape)

        return checked

    @classmethod
    def from_torch(
        cls,
        function: Callable[[Any], Any],
        n_rows: int,
        n_columns: int | None = None,
        lipschitz: float | None = None,
    ) -> SmoothFunction:
        """An objective in PyTorch, in double precision; derivatives are automatic.

        Parameters
        ----------
        function : callable
            Takes a float64 tensor of shape (n, r) on the CPU and returns a scalar, a tensor that
            PyTorch computed from X. Any other number counts as constant. A value of lower precision
            raises the tolerances, as for `SmoothFunction`.
        n_rows, n_columns, lipschitz
            As for `SmoothFunction`.

        Returns
        -------
        SmoothFunction

        Raises
        ------
        ImportError
            If torch is not installed; the extra is ``torch``.
        """
        torch = need("torch", "torch")

        def slope(value: Any, point: Any, **options: Any) -> Any:
            """∇f; zero for a value that PyTorch does not connect with X."""
            if getattr(value, "requires_grad", False):
                (gradient,) = torch.autograd.grad(value, point, allow_unused=True, **options)
                if gradient is not None:
                    return gradient
            return torch.zeros_like(point)

        def value_and_gradient(x: FloatArray) -> tuple[Any, Any]:
            point = torch.from_numpy(x).requires_grad_()
            with torch.enable_grad():
                value = function(point)
            return value, slope(value, point)

        def hessian_product(x: FloatArray, v: FloatArray) -> Any:
            point = torch.from_numpy(x).requires_grad_()
            try:
                with torch.enable_grad():
                    gradient = slope(function(point), point, create_graph=True)
                return slope(gradient, point, grad_outputs=torch.from_numpy(v))
            except (RuntimeError, NotImplementedError):
                # PyTorch can differentiate some operations only once.
                return None

        return cls(
            _named(value_and_gradient, function),
            n_rows,
            n_columns,
            lipschitz,
            _named(hessian_product, function),
        )

    @classmethod
    def from_jax(
        cls,
        function: Callable[[Any], Any],
        n_rows: int,
        n_columns: int | None = None,
        lipschitz: float | None = None,
    ) -> SmoothFunction:
        """An objective in JAX, compiled, in double precision; derivatives are automatic.

        Parameters
        ----------
        function : callable
            Takes a float64 JAX array of shape (n, r) and returns a scalar. JAX traces it; arrays in
            its closure are then converted in double precision.
        n_rows, n_columns, lipschitz
            As for `SmoothFunction`.

        Returns
        -------
        SmoothFunction

        Raises
        ------
        ImportError
            If jax is not installed; the extra is ``jax``.
        """
        jax = need("jax", "jax")
        compiled = jax.jit(jax.value_and_grad(function))
        # `enable_x64` is in `jax` in new releases, in `jax.experimental` in old ones.
        double = (jax if hasattr(jax, "enable_x64") else need("jax", "jax.experimental")).enable_x64

        def value_and_gradient(x: FloatArray) -> tuple[Any, Any]:
            with double(True):
                value, gradient = compiled(x)
                return np.asarray(value), np.asarray(gradient)

        slope = jax.grad(function)
        along = jax.jit(lambda x, v: jax.jvp(slope, (x,), (v,))[1])

        def hessian_product(x: FloatArray, v: FloatArray) -> Any:
            with double(True):
                try:
                    return np.asarray(along(x, v))
                except (TypeError, NotImplementedError):
                    # JAX can differentiate some operations only once, or only in reverse mode.
                    return None

        return cls(
            _named(value_and_gradient, function),
            n_rows,
            n_columns,
            lipschitz,
            _named(hessian_product, function),
        )


@dataclass(frozen=True, eq=False, repr=False)
class FiniteSum(ByFunction):
    """``f(X) = (1/N) Σ f_i(X)``, given by a function that returns the mean over selected terms.

    Parameters
    ----------
    value_and_gradient : callable
        Takes X, a new C-contiguous float64 array of shape (n, r), and an int64 array of term
        indices, ascending; returns the means of f_i(X) and of ∇f_i(X) over these terms, a number
        and an array of the shape of X.
    n_terms : int
        Number of terms N.
    n_rows, n_columns
        As for `SmoothFunction`.
    lipschitz : float, optional
        A Lipschitz constant of every ∇f_i on the feasible set, in the Frobenius norm.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid; during a solve as for `SmoothFunction`.

    Notes
    -----
    `VRJOBCD` samples the terms. `VRJOBCD` is the default solver with ``lipschitz``, which bounds
    its steps, and without a penalty; without ``lipschitz`` its ``step_rule`` is "accumulated". With
    a penalty and without ``lipschitz`` the default is `OBCD` or `JOBCD`, which use all terms.

    Examples
    --------
    The mean squared distance of data from a subspace, ``½‖a_i − XXᵀa_i‖²`` on average:

    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((200, 6)) * [3, 2, 1, 1, 1, 1]
    >>> def away(x, terms):
    ...     a = A[terms]
    ...     rest = a - a @ x @ x.T
    ...     slope = -(rest.T @ (a @ x) + a.T @ (rest @ x))
    ...     return 0.5 * np.sum(rest**2) / len(a), slope / len(a)
    >>> smooth = ob.FiniteSum(away, 200, 6, 2)
    >>> problem = ob.StiefelProblem(smooth, ob.NoPenalty(), 2)
    >>> result = ob.solve(problem, solver=ob.VRJOBCD(max_epochs=60), seed=1)
    >>> best = 0.5 * np.sum(np.linalg.svd(A)[1][2:] ** 2) / 200
    >>> bool(best <= result.objective < 1.01 * best)
    True
    """

    value_and_gradient: Callable[[FloatArray, IntArray], Any]
    n_terms: int
    n_rows: int
    n_columns: int | None = None
    lipschitz: float | None = None

    _checks: ClassVar[Mapping[str, Check]] = {
        "n_terms": Interval(int, 1),
        **ByFunction._checks,
    }

    def _evaluate(self, x: FloatArray, *terms: IntArray) -> tuple[float, FloatArray, float]:
        return super()._evaluate(x, *(terms or (np.arange(self.n_terms),)))


def _named(wrapper: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives ``wrapper`` the name of the user's function, which error messages show."""
    wrapper.__qualname__ = getattr(function, "__qualname__", repr(function))
    return wrapper


Smooth: TypeAlias = Quadratic | GramQuadratic | SmoothFunction | FiniteSum
"""The objectives of a `StiefelProblem`."""
