"""Solvers: frozen dataclasses of options, which are checked in the constructor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from ._internal.checks import (
    FRACTION,
    Check,
    Checked,
    FloatArray,
    IntArray,
    Interval,
    as_bool,
    as_choice,
    as_nonnegative,
    one_of,
)

WorkingSet = Literal["random", "cyclic", "wss-sv", "wss-or", "tiled"]
MixedWorkingSet = Literal["tiled", "random", "cyclic"]
RowRule: TypeAlias = Callable[[FloatArray, FloatArray], Sequence[int] | IntArray]
"""A rule of one's own: X and a subgradient of F, both of shape (n, r), to the rows that move."""

Update = Literal["gauss-seidel", "jacobi"]
Curvature = Literal["exact", "scalar"]
Side = Literal["rows", "columns", "both"]
StepRule = Literal["bound", "adaptive", "accumulated"]
Maker = Literal[
    "splitting",
    "smoothed",
    "supports",
    "forward",
    "path",
    "spectral",
    "varimax",
    "dense",
    "partition",
    "exchange",
    "renewed",
    "cycles",
    "random",
    "perturbation",
    "given",
    "opening",
    "grown",
    "rows",
]


RAPIDITY = Interval(float, 0.0, closed="neither", optional=True)


STAGE_TOLERANCE = 1e-5
"""Tolerance of the stages of a path that only lead to the next one, or to a start."""

RATIO = 0.6
"""Default ratio of consecutive λ of a continuation."""


@dataclass(frozen=True)
class OBCD(Checked):
    """Block coordinate descent over rows of X on the Stiefel manifold (the OBCD papers).

    Parameters
    ----------
    working_set : {"tiled", "random", "cyclic", "wss-sv", "wss-or"} or callable, default "tiled"
        Rule that selects the next rows. "tiled": all pairs, tile by tile. "random": uniformly
        random rows. "cyclic": all sets of rows in lexicographic order. "wss-sv": the pair of
        largest violation of stationarity, "wss-or": that of largest guaranteed decrease, both among
        `scored_pairs` sampled pairs. With a `SmoothFunction` "tiled" takes gradient steps and moves
        all pairs of a matching together. Every other rule solves one pair at a time with the
        gradient at the current point (Algorithm 1): one evaluation for every pair that moves.
        A function of X and a subgradient of F, both of shape (n, r), returns the ``block_size``
        rows that move next; a solve that has converged has verified all pairs.
    block_size : int, default 2
        Rows k per block for every rule but "tiled"; 2 with a `SmoothFunction`. A block of k > 2
        rows moves by sweeps over its pairs; without a penalty a singular value decomposition comes
        first. With ``update="jacobi"`` an odd k counts as k + 1. For "cyclic" and k > 2 a sweep is
        a cycle over all C(n, k) sets, at most 10,000,000; otherwise it is n(n−1)/2 visits to pairs.
    update : {"gauss-seidel", "jacobi"}, default "gauss-seidel"
        "gauss-seidel" moves one block after the other; tiles are swept side by side where F falls
        as they promise. "jacobi" sweeps a tile in rounds: all blocks of ``block_size`` rows of a
        round move at once, each with the gradient before the round. With two rows a round is a
        perfect matching of the tile, and every pair meets once a sweep. If F falls by less than
        half of what the blocks promise, the round is undone, and half as many move at once. It
        needs the defaults of ``working_set`` and ``scored_pairs``.
    curvature : {"exact", "scalar"}, default "exact"
        Curvature Q of the pair model, eq. 8 or eq. 9 of the paper. "scalar" is Q = ςI with
        ``ς = ‖ZDZᵀ‖·‖C_BB − cI‖``, c the mean of C's diagonal: Lemma C.2 for C − cI, which changes
        f by a constant; ς does not change if a multiple of I is added to C. For pairs of a
        `SmoothFunction` it is ``ς = L‖Z‖²`` with ``lipschitz=L``, and ``ς = ‖Z‖²‖C_BB‖`` with
        ``curvature=C``, whose exact Q is ``ZZᵀ ⊗ C_BB``.
    side : {"rows", "columns", "both"}, default "rows"
        Side that moves. "rows": X ← VX, as in the papers. "columns": rotations X ← XV, which leave
        ``‖AX‖`` unchanged and lower h (a sparsifying rotation). "both": rows and columns in turn.
    proximal : float, default 1e-5
        Weight of ``½‖V − I‖²`` in the pair problem, nonnegative, relative to the curvature κ of f:
        half the spread of C's eigenvalues (times ``‖D‖``). Every accepted move lowers F by at least
        ``proximal·κ/2 · ||V − I||²`` (Theorem 4.2). When a sweep has converged, the term is
        dropped, because it can hide a decrease.
    tile_size : int, default 64
        Rows per tile of the tiled rule; an odd number counts as one more.
    scored_pairs : int, optional
        Number of partners of a random row from which "wss-sv" and "wss-or" choose; min(n − 1, 20)
        by default. With n(n−1)/2 or more all pairs are scored, as the papers define the rules.

    Raises
    ------
    ValueError, TypeError
        If an option is not one of its choices, out of range, or not allowed with ``update``.

    Notes
    -----
    With the defaults (tiled, "gauss-seidel", "exact", "rows") Riemannian gradient steps lower a
    quadratic form without penalty; where they are slow, Newton's method follows, as for a
    `SmoothFunction`. Some penalties are continuous at 0 and draw entries to zero (`L1`, `CappedL1`,
    `MCP`, `SCAD`). For them proximal steps on the tangent space follow a sweep that lowers F by
    at most a thousandth of its magnitude. Each of these steps counts as a sweep. Exact pairs
    verify the convergence of gradient and proximal steps; if a pair lowers F, the solve continues.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.OBCD(working_set="cyclic").block_size
    2
    """

    working_set: WorkingSet | RowRule = "tiled"
    block_size: int = 2
    update: Update = "gauss-seidel"
    curvature: Curvature = "exact"
    side: Side = "rows"
    proximal: float = 1e-5
    tile_size: int = 64
    scored_pairs: int | None = None

    _checks: ClassVar[Mapping[str, Check]] = {
        "working_set": one_of(WorkingSet, or_function=True),
        "update": one_of(Update),
        "curvature": one_of(Curvature),
        "side": one_of(Side),
        "block_size": Interval(int, 2),
        "tile_size": Interval(int, 2),
        "proximal": Interval(float, 0.0),
        "scored_pairs": Interval(int, 1, optional=True),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_jacobi(self, "working_set", "scored_pairs")


def _check_jacobi(solver: OBCD | JOBCD, *names: str) -> None:
    """Raises a ValueError if an option of the row rule is set with ``update="jacobi"``."""
    if solver.update != "jacobi":
        return
    defaults = {option.name: option.default for option in fields(solver)}
    for name in names:
        if (value := getattr(solver, name)) != defaults[name]:
            raise ValueError(
                f"{name} must be {defaults[name]!r} with update='jacobi', which sweeps tiles; "
                f"got {value!r}"
            )


def _lams(name: str, lams: Any) -> tuple[float, ...] | None:
    """Nonnegative numbers as a tuple; None for None."""
    return None if lams is None else tuple(as_nonnegative(name, lams).tolist())


@dataclass(frozen=True)
class Continuation(Checked):
    """Continuation in λ: every stage starts at the solution of the stage before.

    Parameters
    ----------
    lams : array_like of shape (k,), optional
        Values of λ in the order in which they are solved, decreasing or increasing. If the penalty
        is not an `L0` or `L1` with one ``lam``, the values are factors of the whole penalty, whose
        own λ is 1. The λ of the problem is solved last if ``lams`` does not have it. By default λ
        falls by `ratio` from `orthobcd.lam_max` to the λ of the problem; with a linear term, a
        metric D, another penalty or a given ``x0`` it falls from a bound on `lam_max`.
    ratio : float, default 0.6
        Factor between consecutive default values, strictly between 0 and 1.
    solver : OBCD, optional
        Solver of every stage; ``OBCD(working_set="tiled")`` by default.

    Raises
    ------
    ValueError, TypeError
        If an option is out of range.

    Notes
    -----
    The penalty must draw entries to zero. Unless ``x0`` is given, a decreasing path starts at the r
    rows with the largest ``−C_ii``, the closed-form optimum for a large λ; an increasing path
    starts at the spectral solution. A stage other than the last ends when a sweep lowers F by at
    most 1e-5 relative. ``result.path`` holds a `PathPoint` for every stage.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.SparsePCAProblem(np.diag([3.0, 2.0, 1.0]), 1, ob.L0(0.1))
    >>> result = ob.solve(problem, solver=ob.Continuation(lams=[1.0, 0.3]))
    >>> [point.lam for point in result.path]
    [1.0, 0.3, 0.1]
    """

    lams: Sequence[float] | FloatArray | None = None
    ratio: float = RATIO
    solver: OBCD = field(default_factory=OBCD)

    _checks: ClassVar[Mapping[str, Check]] = {
        "lams": _lams,
        "ratio": FRACTION,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.solver, OBCD):
            raise TypeError(f"solver must be an OBCD, got {type(self.solver).__name__}")


@dataclass(frozen=True)
class Stages:
    """Options of a continuation or a path, as the core reads them.

    Attributes
    ----------
    lams, ratio, solver
        As in `Continuation`.
    stage_tol : float
        Tolerance of every stage but the last.
    n_nonzero : int or None
        Number of nonzeros at which the path ends; None for its last λ.
    """

    lams: Any
    ratio: float
    solver: OBCD
    stage_tol: float = STAGE_TOLERANCE
    n_nonzero: int | None = None


def _makers(name: str, makers: Any) -> tuple[str, ...] | None:
    """Names of heuristics as a checked tuple; None for None."""
    if makers is None:
        return None
    if isinstance(makers, str):
        raise TypeError(f"{name} must be a sequence of names, got a string")
    checked = tuple(as_choice(name, maker, get_args(Maker)) for maker in makers)
    if not checked:
        raise ValueError(f"{name} must not be empty")
    return checked


@dataclass(frozen=True)
class Auto(Checked):
    """Search by several makers of points; the default.

    Parameters
    ----------
    makers : sequence of str, optional
        Makers that run, instead of those chosen for the problem: "splitting" (annealed ADMM),
        "smoothed" (gradient descent on a smoothed penalty), "supports" (annealed disjoint
        supports), "forward" (forward selection on disjoint supports), "path" (decreasing λ from
        the closed-form optimum), "partition" (for X ≥ 0 alternates between the columns and the
        assignment of rows to them, else random), "spectral", "varimax", "dense" (random), "given"
        (the point ``x0``). Improvements of the best point: most of these, "exchange" (adds and
        drops of single entries; for ℓ0, where C is not available), "renewed" (replaces some
        columns by random ones; for a `SmoothFunction`) and "cycles" (even permutations of the
        rows; for ``determinant=1``). With a mixed signature: "random" and "perturbation". Under a
        limit on nonzeros, starts of descents: "given", "splitting", "opening" (the best points that
        need no search) and "grown" (columns one after the other, by truncated powers); on rows:
        "given", "opening" and "rows" (selections, truncated powers, random rows).

    Raises
    ------
    ValueError, TypeError
        If an option is out of range.

    Notes
    -----
    A search is a fixed sequence of rounds of jobs, which depends on the problem and the seed alone.
    ``max_time``, ``max_work`` and Ctrl-C cut it after a job: more time or work never gives a higher
    objective, and ``max_work=result.work`` repeats the search with the same bits. Jobs run in
    parallel; the number of threads changes nothing else. The search ends by itself: at a known
    optimum, without a penalty that favours zeros when different starts have led to the same point,
    when as much work again has brought nothing, or after some multiple of the work of a step;
    ``effort`` of `solve` scales this.
    ``max_sweeps`` limits the pair sweeps of all descents together, and excludes improvements.

    For ℓ0 and thousands of rows, the search leaves out rows that cannot pay for one entry. At its
    end the incumbent descends on all rows.

    ``result.search`` holds the profile of the problem, work and gain of every run, and the name of
    the run that found the returned point.

    With a mixed signature (`JOrthogonalProblem`) the starts are ``x0`` and ``R @ x0`` for random
    J-orthogonal R. From each start, pairs of rows and columns alternate with tangent
    proximal-gradient steps until neither lowers F: pairs alone stop at kinks that are not critical
    points. Then the incumbent is perturbed and descends again.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((30, 12))
    >>> problem = ob.SparsePCAProblem(A, 2, ob.L0(1.0))
    >>> result = ob.solve(problem, solver=ob.Auto(makers=["path", "varimax"]))
    >>> {run.heuristic for run in result.search.runs} <= {"path", "varimax", "polish"}
    True
    """

    makers: Sequence[Maker] | None = None

    _checks: ClassVar[Mapping[str, Check]] = {"makers": _makers}


@dataclass(frozen=True)
class JOBCD(Checked):
    """Block coordinate descent with ``XᵀJX`` fixed (the JOBCD paper, with column moves).

    For objectives whose pairs have an exact model (`Quadratic`, `GramQuadratic`, the pencil
    problems) and for a `SmoothFunction`; for sums over data rows see `VRJOBCD`.

    Parameters
    ----------
    update : {"gauss-seidel", "jacobi"}, default "gauss-seidel"
        "gauss-seidel": one pair after the other, each with the current gradient (GS-JOBCD).
        "jacobi": all pairs of a perfect matching of a tile at once, from one gradient, as in
        `OBCD`; it needs the default of ``working_set``. (J-JOBCD of the paper moves one matching of
        all rows under a bound on the curvature: ``VRJOBCD(full_gradient=True,
        step_rule="bound")``.)
    side : {"both", "rows", "columns"}, default "both"
        Side that moves. "rows": X ← VX, as in the paper. "columns": X ← XV (for ``½⟨X, CX⟩`` the
        J-Jacobi eigenvalue method, which converges quadratically). "both": rows and columns in
        turn; "both" means "rows" where columns cannot move, and for the update "jacobi".
    curvature : {"exact", "scalar"}, default "exact"
        Curvature of the model of a pair of rows. "scalar" is Q = ςI, eq. 4 of the paper, with
        ``ς = ‖ZDZᵀ‖·‖C_BB − cJ_B‖``, c the mean of the J_ii·C_ii; for a `SmoothFunction` with
        ``lipschitz=L`` ``ς = L‖Z‖²``. The scalar model has a minimum even if the pair is unbounded
        below; such a pair then moves in bounded steps, until ‖X‖² leaves its bounds.
    proximal : float, default 1e-5
        Weight θ ≥ 0 of ``½‖V − I‖²`` in the pair problem, relative to the curvature of f: half the
        spread of C's eigenvalues (times ``‖D‖``). For an objective
        ``½⟨X, CXD⟩ + ⟨linear, X⟩`` the term is dropped when a sweep has converged.
    rapidity_bound : float, optional
        Largest |μ| of one hyperbolic move, V = [[cosh μ, sinh μ], [sinh μ, cosh μ]]. With a bound,
        or with ``curvature="scalar"``, an unbounded problem is lowered until ‖X‖² exceeds 1e8 n
        (1e8 ‖X⁰‖² if larger); else the solve ends at the first unbounded pair. The status is
        ``UNBOUNDED`` in both cases, and the point is the last one within the bounds.
    working_set : {"tiled", "random", "cyclic"} or callable, default "tiled"
        Rule that selects the next rows in the update "gauss-seidel", as in `OBCD`.
    tile_size : int, default 64
        Rows per tile of the tiled rule; an odd number counts as one more.

    Raises
    ------
    ValueError, TypeError
        If an option is not one of its choices, out of range, or not allowed with ``update``.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> problem = ob.JOrthogonalProblem(ob.Quadratic(np.eye(3)), [1, 1, -1])
    >>> ob.solve(problem, "random", solver=ob.JOBCD(update="jacobi")).converged
    True
    """

    update: Update = "gauss-seidel"
    side: Side = "both"
    curvature: Curvature = "exact"
    proximal: float = 1e-5
    rapidity_bound: float | None = None
    working_set: MixedWorkingSet | RowRule = "tiled"
    tile_size: int = 64

    _checks: ClassVar[Mapping[str, Check]] = {
        "update": one_of(Update),
        "side": one_of(Side),
        "curvature": one_of(Curvature),
        "proximal": Interval(float, 0.0),
        "rapidity_bound": RAPIDITY,
        "working_set": one_of(MixedWorkingSet, or_function=True),
        "tile_size": Interval(int, 2),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.side == "columns" and self.update == "jacobi":
            raise ValueError("side must be 'rows' or 'both' with the update 'jacobi'")
        _check_jacobi(self, "working_set")


@dataclass(frozen=True)
class VRJOBCD(Checked):
    """Jacobi block coordinate descent for sums over data rows, ``XᵀJX`` fixed (VR-J-JOBCD).

    For a `FiniteSum` on either constraint, a `JOrthogonalProblem` with a `LogisticLoss` or a
    `GramQuadratic` without means, a `HyperbolicEigenvalueProblem`, and a
    `HyperbolicStructuralProbeProblem`. Every iteration estimates the gradient from some of the N
    rows, corrected by their gradients at the previous point (variance reduction). The estimate is
    used to solve all pairs of random matchings.

    Parameters
    ----------
    full_gradient : bool, default False
        Use the gradient of all rows at every iteration (J-JOBCD) instead of the estimate.
    batch_size : int, optional
        Rows b of a full gradient estimate; all N by default.
    small_batch_size : int, optional
        Rows b′ of a correction; ⌈√N⌉ by default. An iteration makes a full estimate with
        probability b′/(b + b′).
    side : {"rows", "both", "columns"}, default "rows"
        Side that moves; "both" and "columns" for a `HyperbolicStructuralProbeProblem` only.
    proximal : float, default 1e-5
        Weight θ ≥ 0 of ``½‖V − I‖²``, relative to the curvature of the pair models.
    rapidity_bound : float, optional
        Largest |μ| of one hyperbolic move; with ``step_rule="accumulated"`` 1 by default.
    step_rule : {"bound", "adaptive", "accumulated"}, optional
        Rule that limits the steps. "bound": a bound on the curvature that holds everywhere, plus a
        term for the error of a sampled gradient (the default where f has a bound). "adaptive": the
        curvature is lowered where F falls as predicted and raised elsewhere; F never rises; needs
        ``full_gradient``. "accumulated": every pair has its own step, from the mean of its squared
        slopes so far, and follows the mean of its slopes (as Adam). With a limit on time, sweeps or
        epochs the steps fall linearly to 0 at the limit. This rule needs no bound and allows no
        penalty; F may rise, and the best point is returned (the default of
        `HyperbolicStructuralProbeProblem` and of a `FiniteSum` without ``lipschitz``).
    step : float, default 0.1
        With the rule "accumulated": approximate ‖ΔX‖/‖X‖ of the first iteration; with k matchings
        the first angle or rapidity of a pair is step/√k. Halved when F rises above its first value.
    matchings : int, default 1
        Disjoint matchings of rows solved per gradient, one after the other, each on the model
        updated by the matchings before. 1 is the paper's Jacobi update; n − 1 matchings contain
        every pair once.
    max_epochs : int, optional
        Limit on passes over the data: number of evaluated component gradients over N. At the limit
        the status is ``MAX_SWEEPS``.

    Raises
    ------
    ValueError, TypeError
        If an option is not one of its choices, out of range, or not allowed with another option.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.standard_normal((40, 4)), rng.standard_normal((40, 4))
    >>> loss = ob.LogisticLoss(A, B, np.sign(rng.standard_normal(40)))
    >>> problem = ob.JOrthogonalProblem(loss, [1, 1, -1, -1])
    >>> ob.solve(problem, solver=ob.VRJOBCD(max_epochs=20)).extra["n_epochs"]
    20
    """

    full_gradient: bool = False
    batch_size: int | None = None
    small_batch_size: int | None = None
    side: Side = "rows"
    proximal: float = 1e-5
    rapidity_bound: float | None = None
    step_rule: StepRule | None = None
    step: float = 0.1
    matchings: int = 1
    max_epochs: int | None = None

    _checks: ClassVar[Mapping[str, Check]] = {
        "full_gradient": as_bool,
        "batch_size": Interval(int, 1, optional=True),
        "small_batch_size": Interval(int, 1, optional=True),
        "side": one_of(Side),
        "proximal": Interval(float, 0.0),
        "rapidity_bound": RAPIDITY,
        "step_rule": one_of(StepRule, or_none=True),
        "step": Interval(float, 0.0, closed="neither"),
        "matchings": Interval(int, 1),
        "max_epochs": Interval(int, 0, optional=True),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step_rule == "adaptive" and not self.full_gradient:
            raise ValueError("step_rule must not be 'adaptive' without full_gradient=True")
        for name in ("batch_size", "small_batch_size"):
            if getattr(self, name) is not None and self.full_gradient:
                raise ValueError(f"{name} must be None with full_gradient=True")


SEARCH, DESCENT = Auto(), OBCD()
"""Default solvers, with and without a search."""

Solver: TypeAlias = OBCD | Continuation | Auto | JOBCD | VRJOBCD
"""All solvers."""
