"""The result of a solve: best point, status, history and reports of a search."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._internal.archive import Filed

__all__ = [
    "Bound",
    "Hyperbolic",
    "PathPoint",
    "Result",
    "Search",
    "SearchRun",
    "Status",
    "WellPosedness",
]


class Status(enum.Enum):
    """Reason for the end of a solve; the result always holds the best feasible point found.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.Status("converged") is ob.Status.CONVERGED
    True
    """

    CONVERGED = "converged"
    """No pair (of rows, of columns, or of both) lowers F by more than the tolerance.

    A pass over all pairs at the returned point found no larger decrease; each pair was solved
    globally with the exact curvature and without proximal term. For a sum over data rows the pairs
    are those of the model with the bound on the curvature. With ``step_rule="accumulated"``, which
    has no such model, the lowest F fell by at most the tolerance over three passes over the data.
    """
    MAX_TIME = "max_time"
    """``max_time`` seconds have passed."""
    MAX_SWEEPS = "max_sweeps"
    """``max_sweeps`` sweeps or ``max_epochs`` epochs are done."""
    MAX_WORK = "max_work"
    """``max_work`` is done, or the work after which a search ends by itself (see ``effort``)."""
    INTERRUPTED = "interrupted"
    """Ctrl-C, or the callback returned True."""
    TARGET = "target"
    """The objective reached ``target``."""
    PROVED = "proved"
    """The objective is proved to be within ``gap_tol`` of the optimum."""
    UNBOUNDED = "unbounded"
    """F is unbounded below: along a pair of rows or columns, or as `well_posedness` shows."""
    DIVERGED = "diverged"
    """The iterates grow without bound: the infimum is not attained."""
    NOISE = "noise"
    """The values of a `SmoothFunction` carry noise, which hides whether F can be lowered further.

    Single precision inside the function is one cause. The result is the lowest value met; a ``tol``
    above the noise, relative to the magnitude of F, ends the solve earlier, with ``CONVERGED``.
    """


MESSAGES = {
    Status.CONVERGED: "converged: no pair lowers the objective by more than the tolerance",
    Status.MAX_TIME: "max_time has passed",
    Status.MAX_SWEEPS: "max_sweeps or max_epochs is done",
    Status.MAX_WORK: "max_work, or the work of a default search, is done",
    Status.INTERRUPTED: "interrupted by Ctrl-C or the callback",
    Status.TARGET: "the objective reached target",
    Status.PROVED: "the objective is proved to be within gap_tol of the optimum",
    Status.UNBOUNDED: "the objective falls without bound",
    Status.DIVERGED: "the infimum is not attained: the iterates grow without bound",
    Status.NOISE: (
        "the noise in the values of the function hides any further decrease; a tol above the "
        "noise, relative to the magnitude of F, ends the solve earlier"
    ),
}


@dataclass(frozen=True, eq=False, repr=False)
class PathPoint:
    """One stage of a continuation.

    Attributes
    ----------
    lam : float
        λ of the stage.
    objective : float
        F at ``x`` with the λ of the stage.
    n_nonzero : int
        Number of nonzero entries of ``x``.
    explained_variance : float
        f over ½ tr(C): for PCA the share of the total variance that ``x`` explains.
    feasibility : float
        ``||XᵀX − I||_F``.
    x : ndarray of shape (n, r)
        The point at which the stage ended.
    status : Status
        Why the stage ended.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.SparsePCAProblem(np.diag([3.0, 2.0, 1.0]), 1, ob.L0(0.1))
    >>> ob.solve(problem, solver=ob.Continuation(lams=[1.0])).path[0].n_nonzero
    1
    """

    lam: float
    objective: float
    n_nonzero: int
    explained_variance: float
    feasibility: float
    x: NDArray[np.float64]
    status: Status

    def __repr__(self) -> str:
        return (
            f"PathPoint(lam={self.lam:.6g}, objective={self.objective:.8g}, "
            f"nonzeros={self.n_nonzero}, explained={self.explained_variance:.1%}, "
            f"status={self.status.name})"
        )


@dataclass(frozen=True)
class SearchRun:
    """One run of a heuristic of `Auto`.

    Attributes
    ----------
    heuristic : str
        Name of the heuristic; "polish" for a descent by exact pairs and tangent steps alone.
    improve : bool
        True for an improvement (from the incumbent), False for a restart.
    seconds : float
        Time from the start of the solve to the end of the run.
    work : float
        Work of the run, its polish included; a unit is about a second of one core.
    objective : float
        F of the point that the run reached.
    gain : float
        F of the incumbent when the run began, less ``objective``; 0 if that is negative.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((30, 12))
    >>> result = ob.solve(ob.SparsePCAProblem(A, 2, ob.L0(1.0)))
    >>> min(run.objective for run in result.search.runs) == result.objective
    True
    """

    heuristic: str
    improve: bool
    seconds: float
    work: float
    objective: float
    gain: float


@dataclass(frozen=True, eq=False)
class Bound:
    """A lower bound on F over all feasible points, and its proof.

    Let ``C = −M`` for ``f = ½⟨X, MX⟩``. For any symmetric Λ and any orthonormal columns u_t::

        Σ u_tᵀ C u_t ≤ Σ_top-r eigenvalues of Λ + Σ_t max uᵀ(C − Λ)u

    where the maximum of term t is over the unit vectors that are feasible as column t. The lower
    bound on F is ``-0.5`` times the right side of this inequality.

    Attributes
    ----------
    value : float
        Lower bound on F over all feasible X; rounded downwards.
    gap : float
        F of the point less ``value``, relative to the larger of `Certificate.magnitude` and 1e-6 of
        ``½r‖C‖``. Relative to a smaller number, rounding alone would be a gap of 1e-6.
    method : str
        "eigenvalues": only the largest eigenvalues of C are used. "fantope": the second sum is
        bounded in closed form: by K times the largest magnitude in C − Λ for K nonzeros in all, or
        K = k√r for k nonzero rows; by K times the largest entry of C − Λ for K nonzeros and X ≥ 0;
        by 0 for an ℓ0 penalty if no entry of C − Λ exceeds 2λ, for a penalty on nonzero rows if
        none exceeds 2λ/√r, and for X ≥ 0 if none is positive. "lagrangian": the sparse maxima are
        bounded by branch and bound. "branch-and-bound": it branches on which row may be nonzero in
        which column (for a `RowSparse`, on which row may be nonzero), with a Λ at every node.
    multiplier : ndarray of shape (n, n) or None
        Λ of the best bound from a single Λ; None where C was not formed.
    n_nodes : int
        Number of nodes of the branch and bound.
    features_excluded : ndarray of int
        Rows, ascending, that are proved to be zero in every feasible point whose F is at most that
        of the point. Only branch and bound over a `Cardinality` proves such rows.
    history : dict of str to ndarray
        "seconds" and "bound": the bound over time.
    interrupted : bool
        Whether Ctrl-C, or the callback of `solve`, ended the search for a better bound.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.StiefelProblem(ob.Quadratic(-np.diag([2.0, 1.0])), ob.L0(0.1), 1)
    >>> bound = ob.certify(problem, [[1.0], [0.0]], bound=True).bound
    >>> bound.method, round(bound.value, 6)
    ('fantope', -0.9)
    """

    value: float
    gap: float
    method: str
    multiplier: NDArray[np.float64] | None
    n_nodes: int
    features_excluded: NDArray[np.int64]
    history: dict[str, NDArray[np.float64]]
    interrupted: bool = False


@dataclass(frozen=True, repr=False)
class Search:
    """Report of a search of `Auto`: the profile of the problem and all runs.

    Attributes
    ----------
    profile : dict
        Properties by which the search chose its heuristics: the size, whether f is ``quadratic``,
        the kind of ``penalty``, whether a solution is likely to be ``dense`` (a
        ``penalty_share`` below 1: h over |f| less its constant part, at the rotated spectral
        solution), the smallest over the largest of the r leading curvatures (``flatness``), the
        work of a step (``step_work``), and the number of rows that the search sees
        (``n_rows_chosen``, None for all rows). Empty if the time limit passed before.
    runs : tuple of SearchRun
        The runs, in the order in which they were planned.
    strategy : str
        Name of the run that found the returned point: a heuristic, followed by " again" for an
        improvement; or a method that gives a known optimum, such as "spectral".
    bound : Bound or None
        With ``gap_tol`` of `solve`: the lower bound on F, and its gap to the returned point.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((30, 12))
    >>> ob.solve(ob.SparsePCAProblem(A, 2, ob.L0(1.0))).search.profile["penalty"]
    'count'
    """

    profile: dict[str, Any]
    runs: tuple[SearchRun, ...]
    strategy: str
    bound: Bound | None = None

    def __repr__(self) -> str:
        heuristics = {run.heuristic for run in self.runs}
        return f"Search({len(self.runs)} runs of {len(heuristics)} heuristics)"


@dataclass(frozen=True)
class WellPosedness:
    """Finiteness and attainment of ``inf tr(XᵀMX)`` over ``XᵀJX = J``.

    Attributes
    ----------
    finite : bool
        Whether M − λJ is positive semidefinite for some λ.
    attained : bool
        Whether some X reaches the infimum.
    shift : float
        A λ that maximises the smallest eigenvalue of M − λJ (0 if M is positive semidefinite).
    ridge : float
        A ridge to add to M that makes the infimum attained; 0 if it is attained without one.
    message : str
        The result in words.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.hyperbolic.well_posedness([[1.0, 0.0], [0.0, 1.0]], [1, -1]).attained
    True
    """

    finite: bool
    attained: bool
    shift: float
    ridge: float
    message: str


@dataclass(frozen=True, eq=False)
class Hyperbolic:
    """What a solve with a mixed signature returns beside its point.

    Attributes
    ----------
    eigenvalues : ndarray of shape (r,) or None
        Hyperbolic eigenvalues, of a `HyperbolicEigenvalueProblem` or `HyperbolicPCAProblem`: the
        diagonal of ``J XᵀMX``, at convergence eigenvalues of JM. Entry k belongs to column k of
        ``eigenvectors`` and has the type ``signature[k]``.
    eigenvectors : ndarray of shape (n, r) or None
        Hyperbolic eigenvectors, as columns: ``x`` of the result. After a converged solve that moves
        rows alone they are ``x`` times the rotation that makes ``XᵀMX`` diagonal and leaves F
        unchanged.
    well_posedness : WellPosedness or None
        Whether the infimum of these two problems is finite and attained.
    recession : dict or None
        If the status is `Status.UNBOUNDED`: a pair and a direction along which F falls without
        bound.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.HyperbolicEigenvalueProblem(np.diag([2.0, 1.0]), [1, -1])
    >>> ob.solve(problem).hyperbolic.eigenvalues.round(6).tolist()
    [4.0, -1.0]
    """

    eigenvalues: NDArray[np.float64] | None = None
    eigenvectors: NDArray[np.float64] | None = None
    well_posedness: WellPosedness | None = None
    recession: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Result(Filed):
    """The best feasible point of a solve, its status and the history of the solve.

    Attributes
    ----------
    x : ndarray of shape (n, r)
        The point; a new array.
    objective, smooth_value, penalty_value : float
        F(x) = f(x) + h(x) and its two parts, recomputed at ``x``.
    feasibility : float
        ``||XᵀJX − X0ᵀJX0||_F``, where X0ᵀJX0 is the identity on the Stiefel manifold, plus
        ``||min(X, 0)||_F`` for a nonnegative problem.
    status : Status
        Why the solve ended.
    n_iterations : int
        Pairs visited: solved, or skipped because their best move is provably the identity.
    n_sweeps : int
        ``n_iterations`` in units of n(n−1)/2, rounded down; a sweep of the columns counts as one.
        For cyclic sets of k > 2 rows a sweep is a cycle over all C(n, k) sets.
    n_updates : int
        Number of pairs that moved.
    seconds : float
        Wall-clock time.
    seed : int
        The seed that reproduces the solve.
    history : dict of str to ndarray
        ``"seconds"``, ``"objective"``, ``"feasibility"``, ``"n_iterations"``: row 0 is the start,
        the last row is the returned point; ``"objective"`` never rises.
    extra : dict
        Additional values of particular solvers. With `VRJOBCD` ``"n_epochs"``, passes over the
        data, and ``"component_gradients"``, an array with a number for every row of ``history``: an
        epoch is as many component gradients as the sum has terms.
    path : tuple of PathPoint
        With `Continuation`: every stage, in order.
    work : float or None
        Counted work, in the units of ``max_work`` of `solve`: a unit is about a second of one core.
        With `Auto` it is the work of the runs and of their common preparation. None with `VRJOBCD`.
    search : Search or None
        With `Auto`: profile of the problem, work and gain of every run, which one found ``x``, and
        the lower bound of ``gap_tol``.
    hyperbolic : Hyperbolic or None
        With a mixed signature: eigenvalues, well-posedness, and a direction of recession.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.StiefelProblem(ob.Quadratic(-np.diag([1.0, 2.0])), ob.NoPenalty(), 1)
    >>> result = ob.solve(problem)
    >>> result.objective, result.status.name
    (-1.0, 'CONVERGED')
    >>> result.save("result.npz")
    >>> ob.Result.load("result.npz").objective
    -1.0
    """

    x: NDArray[np.float64]
    objective: float
    smooth_value: float
    penalty_value: float
    feasibility: float
    status: Status
    n_iterations: int
    n_sweeps: int
    n_updates: int
    seconds: float
    seed: int
    history: dict[str, NDArray[np.float64]]
    extra: dict[str, Any] = field(default_factory=dict)
    path: tuple[PathPoint, ...] = ()
    work: float | None = None
    search: Search | None = None
    hyperbolic: Hyperbolic | None = None

    @property
    def message(self) -> str:
        """The status in words."""
        return MESSAGES[self.status]

    @property
    def converged(self) -> bool:
        """True if the status is `Status.CONVERGED`."""
        return self.status is Status.CONVERGED

    @property
    def n_nonzero(self) -> int:
        """Number of entries of ``x`` that are not exactly zero."""
        return int(np.count_nonzero(self.x))

    def __repr__(self) -> str:
        n, r = self.x.shape
        return (
            f"Result({n}x{r}, objective={self.objective:.8g}, status={self.status.name}, "
            f"nonzeros={self.n_nonzero}, feasibility={self.feasibility:.1e}, "
            f"sweeps={self.n_sweeps}, seconds={self.seconds:.2f})"
        )

    def _check_loaded(self) -> None:
        curves = [np.asarray(curve) for curve in self.history.values()]
        matrices = [np.asarray(x) for x in (self.x, *(point.x for point in self.path))]
        if len({curve.shape for curve in curves}) > 1 or any(c.ndim != 1 for c in curves):
            raise ValueError("history must hold curves of one length")
        if any(matrix.ndim != 2 for matrix in matrices):
            raise ValueError("x must be a matrix")
        if any(array.dtype.kind not in "fiu" for array in (*curves, *matrices)):
            raise ValueError("x and history must hold numbers")
        if not isinstance(self.status, Status):
            raise TypeError("status must be a Status")
