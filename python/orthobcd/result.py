"""What a solve and a certificate return."""

from __future__ import annotations

import contextlib
import enum
import os
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._internal.archive import conforming, not_ours, portable, read_tree, write_tree
from ._internal.reading import blaming

__all__ = ["PathPoint", "Result", "Search", "SearchRun", "StartReport", "Status"]


class Status(enum.Enum):
    """Why a solve ended. Every status comes with the best feasible point found.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.Status("converged") is ob.Status.CONVERGED
    True
    """

    CONVERGED = "converged"
    """No pair of what moves (rows, columns, or both) lowers F by more than the tolerance.

    A pass over all of them, each solved globally with the exact curvature and without proximal
    term, found none at the point that is returned. For a sum over data rows the pairs are those of
    the model with the bound on the curvature; with ``step_rule="accumulated"``, which has no such
    model, the best F has fallen by at most the tolerance over three passes over the data.
    """
    MAX_TIME = "max_time"
    """``max_time`` seconds have passed."""
    MAX_SWEEPS = "max_sweeps"
    """``max_sweeps`` sweeps or ``max_epochs`` epochs are done."""
    MAX_WORK = "max_work"
    """``max_work`` is done, or without any limit the work of a default search."""
    INTERRUPTED = "interrupted"
    """Ctrl-C, or the callback returned True."""
    TARGET = "target"
    """The objective reached ``target``."""
    PROVED = "proved"
    """The objective is proved to be within ``gap_tol`` of the optimum."""
    UNBOUNDED = "unbounded"
    """The objective falls without bound: along one pair of rows or columns, or as is known of M."""
    DIVERGED = "diverged"
    """The iterates grow without bound: the infimum is not attained."""


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
}


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One stage of a continuation.

    Attributes
    ----------
    lam : float
        λ of the stage.
    objective : float
        f + λ-penalty at ``x``, with the stage's λ.
    n_nonzero : int
        Number of nonzero entries of ``x``.
    explained_variance : float
        f relative to ½ tr(C): for PCA the share of the total variance that ``x`` explains.
    feasibility : float
        ``||XᵀX − I||_F``.
    x : ndarray of shape (n, r)
        The stage's point.
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


@dataclass(frozen=True)
class StartReport:
    """One start of `Auto` and what it reached.

    Attributes
    ----------
    strategy : str
        How it came about; a perturbation of the best point is named "... again".
    objective : float
        F of its point.
    seconds : float
        When it was finished, since the start of the solve.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((30, 12))
    >>> problem = ob.SparsePCAProblem(A, 2, ob.L0(1.0))
    >>> ob.solve(problem, solver=ob.Auto(strategies=["path"]), max_sweeps=9).starts[0].strategy
    'path'
    """

    strategy: str
    objective: float
    seconds: float


@dataclass(frozen=True)
class SearchRun:
    """One run of a heuristic of `Auto`.

    Attributes
    ----------
    heuristic : str
        Its name; "polish" for exact pairs and tangent steps alone.
    improve : bool
        Whether it began at the best point, not from scratch.
    restricted : bool
        Whether it worked on some of the rows only (``Search.profile["n_rows_chosen"]``).
    seconds : float
        When it was finished, since the start of the solve.
    work : float
        What it took, with its polish; a unit is about a second of one core.
    objective : float
        F of its point.
    gain : float
        By how much that is below the best F when it began.

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
    restricted: bool
    seconds: float
    work: float
    objective: float
    gain: float


@dataclass(frozen=True)
class Search:
    """What `Auto` did.

    Attributes
    ----------
    profile : dict
        How the problem looked: its size, whether f is ``quadratic``, the kind of penalty, whether a
        solution is likely to be
        dense (``price`` below 1: the penalty over F less h at the rotated spectral solution), how
        alike the leading curvatures are (``flatness``), the work of a step, and on how many rows
        the search began (``n_rows_chosen``, None for all). Empty if the time was up before.
    runs : tuple of SearchRun
        In the order in which they were planned.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((30, 12))
    >>> ob.solve(ob.SparsePCAProblem(A, 2, ob.L0(1.0))).search.profile["penalty"]
    'count'
    """

    profile: dict[str, Any]
    runs: tuple[SearchRun, ...]

    @classmethod
    def _of(cls, parts: dict[str, Any] | None) -> Search | None:
        """From what the core returned, or from a file."""
        if parts is None:
            return None
        runs = (SearchRun(**r) if isinstance(r, dict) else SearchRun(*r) for r in parts["runs"])
        return cls(parts["profile"], tuple(runs))


@dataclass(frozen=True, eq=False)
class Result:
    """The best feasible point of a solve and how it was reached.

    Attributes
    ----------
    x : ndarray of shape (n, r)
        The point; a fresh array.
    objective, smooth_value, penalty_value : float
        F(x) = f(x) + h(x) and its two parts, evaluated afresh at ``x``.
    feasibility : float
        ``||XᵀJX − X0ᵀJX0||_F``, where X0ᵀJX0 is the identity on the Stiefel manifold, plus
        ``||min(X, 0)||_F`` for a nonnegative problem.
    status : Status
        Why the solve ended.
    n_iterations : int
        Pairs visited: solved, or skipped because their best move is provably the identity.
    n_sweeps : int
        ``n_iterations`` in units of n(n−1)/2, rounded down, a sweep of the columns counting as one.
        For cyclic sets of k > 2 rows a sweep is a cycle over all C(n, k) sets.
    n_updates : int
        Pairs that moved.
    seconds : float
        Wall-clock time.
    seed : int
        The seed that reproduces the run.
    history : dict of str to ndarray
        ``"seconds"``, ``"objective"``, ``"feasibility"``, ``"n_iterations"``: row 0 is the start,
        the last row is the returned point; ``"objective"`` never rises.
    extra : dict
        What a particular solver adds.
    strategy : str or None
        With `Auto`: what found the returned point.
    starts : tuple of StartReport
        With `Auto`: every start and perturbation, in order.
    path : tuple of PathPoint
        With `Continuation`: every stage, in order.
    n_epochs : int or None
        With `VRJOBCD`: passes over the data, component gradients evaluated over their number N.
    work : float or None
        Work done, as ``max_work`` of `solve` counts it: a unit is about a second of one core. With
        `Auto` it is that of the runs and of what they begin with. None with `VRJOBCD`.
    search : Search or None
        With `Auto`: how the problem looked, what ran, what it cost and what it gained.
    lower_bound : float or None
        With ``gap_tol`` of `solve`: no feasible point has a smaller F.
    bound_method : str or None
        How that was found, see `Bound`.
    gap : float or None
        With ``gap_tol``: ``(F − lower_bound)`` relative to the magnitude of F, see `Certificate`.
    features_excluded : ndarray of int or None
        With ``gap_tol``: rows that are zero in every feasible point whose F is no larger than
        ``objective``, as far as that is proved, ascending (see `Bound`).

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.StiefelProblem(ob.Quadratic(-np.diag([1.0, 2.0])), ob.NoPenalty(), 1)
    >>> result = ob.solve(problem)
    >>> result.objective, result.status.name
    (-1.0, 'CONVERGED')
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
    strategy: str | None = None
    starts: tuple[StartReport, ...] = ()
    path: tuple[PathPoint, ...] = ()
    n_epochs: int | None = None
    work: float | None = None
    search: Search | None = None
    lower_bound: float | None = None
    bound_method: str | None = None
    gap: float | None = None
    features_excluded: NDArray[np.int64] | None = None

    @property
    def message(self) -> str:
        """The status in words."""
        return MESSAGES[self.status]

    @property
    def converged(self) -> bool:
        """Whether the solve ended because no sweep lowers the objective any more."""
        return self.status is Status.CONVERGED

    @property
    def eigenvalues(self) -> NDArray[np.float64]:
        """Hyperbolic eigenvalues: ``J XᵀMX``'s diagonal, those of JM when it has converged.

        X is `eigenvectors`. Only a `HyperbolicEigenvalueProblem` or `HyperbolicPCAProblem` has
        them; column k of `eigenvectors` is that of entry k, of the type of ``signature[k]``.
        """
        if "eigenvalues" not in self.extra:
            raise AttributeError("eigenvalues: only a hyperbolic eigenvalue problem has them")
        values: NDArray[np.float64] = self.extra["eigenvalues"]
        return values

    @property
    def eigenvectors(self) -> NDArray[np.float64]:
        """Hyperbolic eigenvectors, the columns: ``x`` where its columns have moved.

        Where rows alone have found the minimum, the columns of ``x`` turned to make ``XᵀMX``
        diagonal, which leaves F alone. Where it has not converged, ``x``.
        """
        if "eigenvalues" not in self.extra:
            raise AttributeError("eigenvectors: only a hyperbolic eigenvalue problem has them")
        vectors: NDArray[np.float64] = self.extra.get("eigenvectors", self.x)
        return vectors

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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a file (NumPy's npz, without pickles), replacing an old one.

        Numbers, texts, arrays and nested dicts of ``extra`` are kept, other things left out.

        Parameters
        ----------
        path : path
            Where to.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        header = {field.name: getattr(self, field.name) for field in fields(self)}
        header["extra"] = {k: v for k, v in self.extra.items() if portable(v)}
        header["starts"] = [vars(start) for start in self.starts]
        header["path"] = [vars(point) for point in self.path]
        if self.search is not None:
            runs = [vars(run) for run in self.search.runs]
            header["search"] = {"profile": self.search.profile, "runs": runs}
        write_tree(path, "Result", header)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """The result in a file of `save`.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Result

        Raises
        ------
        ValueError
            If the file is not one.
        OSError
            If it cannot be read.
        """
        header = read_tree(path, "Result")
        with blaming(lambda error: not_ours(path, "Result", error)):
            header["status"] = Status(header["status"])
            header["starts"] = tuple(StartReport(**start) for start in header["starts"])
            header["search"] = Search._of(header["search"])
            points = ({**point, "status": Status(point["status"])} for point in header["path"])
            header["path"] = tuple(PathPoint(**point) for point in points)
            result = conforming(cls(**header))
            shapes = {curve.shape for curve in result.history.values()}
            if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
                raise ValueError("history must hold curves of one length")
            if any(x.ndim != 2 for x in (result.x, *(point.x for point in result.path))):
                raise ValueError("x must be a matrix")
            return result


def as_result(
    returned: dict[str, Any],
    error: BaseException | None,
    seed: int,
    extra: dict[str, Any] | None = None,
) -> Result:
    """The `Result` from what the core returned; raises the callback's ``error`` with it."""
    returned["status"] = Status(returned["status"])
    returned["starts"] = tuple(StartReport(*start) for start in returned.pop("starts", ()))
    returned["search"] = Search._of(returned.pop("search", None))
    points = ({**point, "status": Status(point["status"])} for point in returned.pop("path", ()))
    returned["path"] = tuple(PathPoint(**point) for point in points)
    if (bound := returned.pop("bound", None)) is not None:
        returned["lower_bound"], returned["bound_method"] = bound["value"], bound["method"]
        returned["gap"], returned["features_excluded"] = bound["gap"], bound["features_excluded"]
    result = Result(**returned, seed=seed, extra=extra or {})
    if error is not None:
        # Some exceptions refuse attributes; they are raised all the same.
        with contextlib.suppress(Exception):
            error.result = result  # type: ignore[attr-defined]
        raise error
    return result
