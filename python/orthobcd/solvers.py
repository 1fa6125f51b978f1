"""Solvers: frozen dataclasses with their options, checked when they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias, get_args

from ._internal.checks import (
    Checked,
    FloatArray,
    as_bool,
    as_choice,
    as_float,
    as_float_array,
    as_fraction,
    as_int,
    as_optional_float,
    as_optional_int,
)

__all__ = ["JOBCD", "OBCD", "VRJOBCD", "Auto", "Continuation", "Phase", "Solver"]

WorkingSet = Literal["random", "cyclic", "wss-sv", "wss-or", "tiled"]
MixedWorkingSet = Literal["tiled", "random", "cyclic"]
Update = Literal["gauss-seidel", "jacobi"]
Curvature = Literal["exact", "scalar"]
Side = Literal["rows", "columns", "both"]
StepRule = Literal["bound", "adaptive", "accumulated"]
Strategy = Literal[
    "splitting",
    "smoothed",
    "reheated",
    "supports",
    "forward",
    "path",
    "sparse",
    "spectral",
    "varimax",
    "dense",
    "partition",
]
Change = Literal["exchange", "renewed", "cycles"]
Mixed = Literal["random", "kick"]


STAGE_TOLERANCE = 1e-5
"""Tolerance of the stages of a continuation that only lead to the last one."""

RATIO = 0.6
"""Ratio of one λ of a continuation to the one before, unless told otherwise."""


@dataclass(frozen=True)
class OBCD(Checked):
    """Block coordinate descent over rows of X on the Stiefel manifold (the OBCD papers).

    Parameters
    ----------
    working_set : {"tiled", "random", "cyclic", "wss-sv", "wss-or"}, default "tiled"
        Which rows come next: all pairs tile by tile; uniformly random rows; all sets of rows in
        lexicographic order; the largest violation of stationarity, or the largest guaranteed
        decrease, among `scored_pairs` sampled pairs. With a `SmoothFunction` every rule but "tiled"
        solves a pair at a time, each with the gradient at the current point (Algorithm 1), which
        is one evaluation for every pair that moves; "tiled" takes gradient steps and whole
        matchings.
    block_size : int, default 2
        Rows k per block for every rule but "tiled", 2 with a `SmoothFunction`. Without a penalty
        a block of k > 2 rows moves by a singular value decomposition, then by sweeps over its
        pairs; with one, by sweeps over its pairs. For "cyclic" and k > 2 a sweep is a cycle over
        all C(n, k) sets, at most 10,000,000; otherwise it is n(n−1)/2 visits to pairs.
    update : {"gauss-seidel", "jacobi"}, default "gauss-seidel"
        Jacobi moves all pairs of a random perfect matching at once, in parallel; ``working_set``,
        ``block_size``, ``tile_size`` and ``scored_pairs`` then keep their defaults.
    curvature : {"exact", "scalar"}, default "exact"
        Curvature Q of the pair model, eq. 8 or eq. 9 of the paper. "scalar" is Q = ςI with
        ``ς = ‖ZDZᵀ‖·‖C_BB − cI‖`` (Lemma C.2 for C − cI, which changes f by a constant), c the mean
        of C's diagonal: the same for C plus a multiple of I. For pairs of a `SmoothFunction` with
        ``lipschitz=L`` it is ``ς = L‖Z‖²``.
    side : {"rows", "columns", "both"}, default "rows"
        What moves: rows (the papers), columns (rotations X ← XV, which leave ``‖AX‖`` alone and
        lower h: a sparsifying rotation), or both in turn.
    proximal : float, default 1e-5
        Weight of ``½‖V − I‖²`` in the pair problem, nonnegative, relative to the curvature κ of f,
        half the spread of C's eigenvalues (times ``‖D‖``): every accepted move lowers F by at least
        ``proximal·κ/2 · ||V − I||²`` (Theorem 4.2) until a sweep settles; then the term is dropped,
        so that it hides no decrease.
    tile_size : int, default 64
        Rows per tile of the tiled rule.
    scored_pairs : int, optional
        Pairs that "wss-sv" and "wss-or" score, sampled uniformly, before they choose; min(n, 200)
        by default, as in the papers' experiments. With n(n−1)/2 or more all pairs are scored, as
        the rules are printed.

    Raises
    ------
    ValueError, TypeError
        If an option is not one of its choices, out of range, or has no meaning beside ``update``.

    Notes
    -----
    With the defaults (tiled, "gauss-seidel", "exact", "rows") a quadratic form without penalty is
    lowered by Riemannian gradient steps, and by Newton's method where these are slow, as a
    `SmoothFunction` is. With a penalty that is continuous at 0 and draws entries to zero (`L1`,
    `CappedL1`, `MCP`, `SCAD`) proximal steps on the tangent space follow a sweep that lowers F by
    at most a thousandth of its magnitude. Each of these steps counts as a sweep. In either case
    exact pairs verify convergence, and go on where they lower F.

    Examples
    --------
    >>> import orthobcd as ob
    >>> ob.OBCD(working_set="cyclic").block_size
    2
    """

    working_set: WorkingSet = "tiled"
    block_size: int = 2
    update: Update = "gauss-seidel"
    curvature: Curvature = "exact"
    side: Side = "rows"
    proximal: float = 1e-5
    tile_size: int = 64
    scored_pairs: int | None = None

    def __post_init__(self) -> None:
        as_choice("working_set", self.working_set, get_args(WorkingSet))
        as_choice("update", self.update, get_args(Update))
        as_choice("curvature", self.curvature, get_args(Curvature))
        as_choice("side", self.side, get_args(Side))
        self._set(
            block_size=as_int("block_size", self.block_size, 2),
            tile_size=as_int("tile_size", self.tile_size, 2),
            proximal=as_float("proximal", self.proximal, minimum=0.0),
            scored_pairs=as_optional_int("scored_pairs", self.scored_pairs, 1),
        )
        _check_jacobi(self, "working_set", "block_size", "tile_size", "scored_pairs")


def _check_jacobi(solver: OBCD | JOBCD, *names: str) -> None:
    """Refuse options that say which rows come next beside random matchings of all rows."""
    if solver.update != "jacobi":
        return
    defaults = {option.name: option.default for option in fields(solver)}
    for name in names:
        if (value := getattr(solver, name)) != defaults[name]:
            raise ValueError(
                f"{name} must be {defaults[name]!r} with update='jacobi', which moves random "
                f"matchings of all rows; got {value!r}"
            )


@dataclass(frozen=True)
class Continuation(Checked):
    """Decreasing λ of a sparse problem: warm starts from the closed-form optimum of a large λ.

    Parameters
    ----------
    lams : array_like of shape (k,), optional
        Values of λ in the order in which they are solved; decreasing or increasing. For another
        penalty than `L0` and `L1` of one ``lam``, multiples of the penalty, whose own λ is 1. The
        problem's own λ is solved last if it is not among them. By default λ falls by `ratio` to
        the problem's own from `orthobcd.lam_max` (from a bound on it with a linear term, a metric
        D, another penalty or a given ``x0``).
    ratio : float, default 0.6
        Factor between consecutive default values, strictly between 0 and 1.
    solver : OBCD, optional
        Solves every stage; ``OBCD(working_set="tiled")`` by default.

    Raises
    ------
    ValueError, TypeError
        If an option is out of range.

    Notes
    -----
    The penalty has to draw entries to zero. A decreasing path starts from the r rows with the
    largest ``−C_ii``, an increasing one from the spectral solution, unless ``x0`` is given. A stage
    other than the last ends when a sweep lowers F by at most 1e-5 relative. ``result.path`` holds a
    `PathPoint` for every stage.

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

    def __post_init__(self) -> None:
        if self.lams is not None:
            lams = as_float_array("lams", self.lams, 1)
            if (lams < 0.0).any():
                raise ValueError(f"lams must be nonnegative, the smallest is {lams.min():g}")
            self._set(lams=tuple(float(lam) for lam in lams))
        self._set(ratio=as_fraction("ratio", self.ratio))
        if not isinstance(self.solver, OBCD):
            raise TypeError(f"solver must be an OBCD, got {type(self.solver).__name__}")

    @property
    def stage_tol(self) -> float:
        """Tolerance of a stage other than the last."""
        return STAGE_TOLERANCE

    @property
    def n_nonzero(self) -> None:
        """None: the path ends at the problem's λ."""
        return None


def _names(argument: str, names: Any, allowed: tuple[str, ...]) -> tuple[str, ...] | None:
    """Checked names of heuristics."""
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"{argument} must be a sequence of names, got a string")
    checked = tuple(as_choice(argument, name, allowed) for name in names)
    if not checked:
        raise ValueError(f"{argument} must not be empty")
    return checked


@dataclass(frozen=True)
class Phase(Checked):
    """A phase of the search of `Auto`.

    Parameters
    ----------
    heuristics : sequence of str, optional
        Which heuristics (see `Auto`; with a mixed signature "random" and "kick"), each as often as
        it is named; by default all that fit the problem, as far as there is room. With ``improve``
        also "exchange" (single entries join the support and leave it; ℓ0, where C is not to be
        had), "renewed" (random columns in place of some; a `SmoothFunction`) and "cycles" (even
        permutations of the rows; ``determinant=1``).
    best : int, optional
        Instead: so many of those that came out best in the phase before.
    hopeful : int, optional
        Instead: so many of those that fit the problem, the most hopeful ones.
    improve : bool, default False
        Begin at the best point, in rounds, by what each has gained for its work, not from scratch.
    share : float, default 0.5
        Share, in (0, 1], of the time or work that is left when the phase begins.
    max_rounds : int, optional
        Rounds at most, with ``improve``.
    polish : int, optional
        How many of the points are polished by exact pairs and tangent steps when the phase is over;
        by default each that comes out near the best point, at once.

    Raises
    ------
    ValueError, TypeError
        If an option is out of range.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((30, 12))
    >>> plan = [ob.Phase(("path", "varimax"), polish=1), ob.Phase(improve=True, max_rounds=2)]
    >>> result = ob.solve(ob.SparsePCAProblem(A, 2, ob.L0(1.0)), solver=ob.Auto(plan=plan))
    >>> [run.heuristic for run in result.search.runs][:2]
    ['path', 'varimax']
    """

    heuristics: Sequence[Strategy | Change | Mixed] | None = None
    best: int | None = None
    hopeful: int | None = None
    improve: bool = False
    share: float = 0.5
    max_rounds: int | None = None
    polish: int | None = None

    def __post_init__(self) -> None:
        self._set(
            best=as_optional_int("best", self.best, 1),
            hopeful=as_optional_int("hopeful", self.hopeful, 1),
            improve=as_bool("improve", self.improve),
            share=as_float("share", self.share, minimum=0.0),
            max_rounds=as_optional_int("max_rounds", self.max_rounds, 1),
            polish=as_optional_int("polish", self.polish, 0),
        )
        if not 0.0 < self.share <= 1.0:
            raise ValueError(f"share must be above 0 and at most 1, got {self.share}")
        self._set(
            heuristics=_names(
                "heuristics",
                self.heuristics,
                (*get_args(Strategy), *get_args(Change), *get_args(Mixed)),
            )
        )


@dataclass(frozen=True)
class Auto(Checked):
    """Several starts of different nature, the best kept, polished and perturbed: the default.

    Parameters
    ----------
    n_starts : int, optional
        Number of starts; by default every heuristic that fits the problem, as far as there is room.
    strategies : sequence of str, optional
        Which heuristics start, in this order, instead of those chosen for the problem: "splitting"
        (annealed ADMM), "smoothed" (gradient descent on a smoothed penalty), "reheated" (the same
        over a short range of the smoothing, raised again and again; ℓ1), "supports" (annealed
        disjoint supports), "forward" (forward selection on disjoint supports), "path" (decreasing λ
        from the closed-form optimum), "sparse" (the same from random rows), "partition" (columns
        and owners of a partition in turn for X ≥ 0, else random), "spectral", "varimax", "dense"
        (random).
    plan : sequence of Phase, optional
        The phases of the search, instead of the default: short runs of all heuristics that fit the
        problem, longer runs of those that came out best, then changes of the best point by whatever
        gains most for its work.

    Raises
    ------
    ValueError, TypeError
        If an option is out of range.

    Notes
    -----
    Heuristics run one per core. With ``max_work`` or without a limit work is counted and the result
    depends on the seed alone; with ``max_time`` the clock decides how long each runs. Without any
    limit the work follows the size of the problem: a second or two up to 1000 rows, at most about
    ten. ``max_sweeps`` limits the pair sweeps of all descents together.

    Of thousands of rows the search takes those first that can matter, or that the leading
    components draw most, and completes what it finds on all of them.

    ``result.strategy`` names what found the returned point, ``result.search`` says how the problem
    looked, what ran, what it cost and what it gained.

    With a mixed signature (`JOrthogonalProblem`) the starts are ``x0`` and ``R @ x0`` for random
    J-orthogonal R. From each, pairs of rows and columns and tangent proximal-gradient steps take
    turns until neither lowers F: pairs alone lock at kinks, away from critical points. Then the
    best point is kicked and descended from again. ``strategies`` must be None there.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> A = np.random.default_rng(0).standard_normal((30, 12))
    >>> problem = ob.SparsePCAProblem(A, 2, ob.L0(1.0))
    >>> result = ob.solve(problem, solver=ob.Auto(strategies=["path", "varimax"]))
    >>> [start.strategy for start in result.starts][:2]
    ['path', 'varimax']
    """

    n_starts: int | None = None
    strategies: Sequence[Strategy] | None = None
    plan: Sequence[Phase] | None = None

    def __post_init__(self) -> None:
        self._set(
            n_starts=as_optional_int("n_starts", self.n_starts, 1),
            strategies=_names("strategies", self.strategies, get_args(Strategy)),
        )
        if self.plan is not None:
            phases = tuple(self.plan)
            if not phases or not all(isinstance(phase, Phase) for phase in phases):
                raise TypeError("plan must be a sequence of Phase, with one at least")
            self._set(plan=phases)


@dataclass(frozen=True)
class JOBCD(Checked):
    """Block coordinate descent with ``XᵀJX`` fixed (the JOBCD paper, and column moves).

    For objectives whose pairs have an exact model (`Quadratic`, `GramQuadratic`, the pencil
    problems); sums over data rows have `VRJOBCD`.

    Parameters
    ----------
    update : {"gauss-seidel", "jacobi"}, default "gauss-seidel"
        One pair after the other, each with the current gradient (GS-JOBCD), or all pairs of a
        random perfect matching at once, in parallel (J-JOBCD); ``working_set`` and ``tile_size``
        then keep their defaults.
    side : {"both", "rows", "columns"}, default "both"
        What moves: X ← VX as in the paper, X ← XV (for ``½⟨X, CX⟩`` alone the J-Jacobi eigenvalue
        method, quadratically convergent), or both in turn; "both" is "rows" where columns cannot
        move, and for the update "jacobi".
    curvature : {"exact", "scalar"}, default "exact"
        Curvature of the model of a pair of rows. "scalar" is Q = ςI, eq. 4 of the paper, with
        ``ς = ‖ZDZᵀ‖·‖C_BB − cJ_B‖``, c the mean of the J_ii·C_ii; for a `SmoothFunction` with
        ``lipschitz=L`` ``ς = L‖Z‖²``. The scalar model has a minimum where the pair has none: such
        a pair is followed, in bounded steps.
    proximal : float, default 1e-5
        Weight θ ≥ 0 of ``½‖V − I‖²`` in the pair problem, relative to the curvature of f, half the
        spread of C's eigenvalues (times ``‖D‖``). For an objective
        ``½⟨X, CXD⟩ + ⟨linear, X⟩`` the term is dropped once a sweep settles.
    rapidity_bound : float, optional
        Largest |μ| of one hyperbolic move, V = [[cosh μ, sinh μ], [sinh μ, cosh μ]]. With it an
        unbounded problem is followed instead of reported.
    working_set : {"tiled", "random", "cyclic"}, default "tiled"
        Which rows come next in the update "gauss-seidel".
    tile_size : int, default 64
        Rows per tile of the tiled rule.
    adaptive : bool, default True
        Update "jacobi": try less curvature than the bound that is safe for all pairs together,
        and back off where F does not fall enough.

    Raises
    ------
    ValueError, TypeError
        If an option is not one of its choices, out of range, or has no meaning beside ``update``.

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
    working_set: MixedWorkingSet = "tiled"
    tile_size: int = 64
    adaptive: bool = True

    def __post_init__(self) -> None:
        as_choice("update", self.update, get_args(Update))
        as_choice("side", self.side, get_args(Side))
        as_choice("curvature", self.curvature, get_args(Curvature))
        as_choice("working_set", self.working_set, get_args(MixedWorkingSet))
        as_bool("adaptive", self.adaptive)
        if self.side == "columns" and self.update == "jacobi":
            raise ValueError("side must be 'rows' or 'both' with the update 'jacobi'")
        self._set(
            proximal=as_float("proximal", self.proximal, minimum=0.0),
            rapidity_bound=as_optional_float(
                "rapidity_bound", self.rapidity_bound, minimum=0.0, exclusive=True
            ),
            tile_size=as_int("tile_size", self.tile_size, 2),
        )
        _check_jacobi(self, "working_set", "tile_size")


@dataclass(frozen=True)
class VRJOBCD(Checked):
    """Jacobi block coordinate descent for sums over data rows, ``XᵀJX`` fixed (VR-J-JOBCD).

    For a `FiniteSum` on either constraint, a `JOrthogonalProblem` with a `LogisticLoss` or a
    `GramQuadratic` without means, a `HyperbolicEigenvalueProblem`, and a
    `HyperbolicStructuralProbeProblem`. Every iteration
    estimates the gradient from some of the N rows, corrected by what the rows said before (variance
    reduction), and solves all pairs of random matchings on it.

    Parameters
    ----------
    full_gradient : bool, default False
        Take the gradient of all rows at every iteration (J-JOBCD) instead of the estimate.
    batch_size : int, optional
        Rows b of a full gradient estimate; all N by default.
    small_batch_size : int, optional
        Rows b′ of a correction; ⌈√N⌉ by default. A full estimate comes with
        probability b′/(b + b′).
    side : {"rows", "both", "columns"}, default "rows"
        What moves; the others than "rows" for a `HyperbolicStructuralProbeProblem` only.
    proximal : float, default 1e-5
        Weight θ ≥ 0 of ``½‖V − I‖²``, relative to the curvature of the pair models.
    rapidity_bound : float, optional
        Largest |μ| of one hyperbolic move; with ``step_rule="accumulated"`` 1 by default.
    step_rule : {"bound", "adaptive", "accumulated"}, optional
        What limits the steps. "bound": a bound on the curvature that holds everywhere, with what
        pays for a sampled gradient's error (the default where f has one). "adaptive": a curvature
        that is lowered where F falls as predicted, raised where it does not; F
        never rises; needs ``full_gradient``. "accumulated": every pair has its own step, from the
        mean of its squared slopes so far, and follows the mean of its slopes (as Adam); with
        a limit on time, sweeps or epochs the steps fall linearly to 0 where that ends; needs no
        bound; F may rise and the best point is returned; not with a penalty (the default of
        `HyperbolicStructuralProbeProblem` and of a `FiniteSum` without ``lipschitz``).
    step : float, default 0.1
        With the rule "accumulated": ‖ΔX‖/‖X‖ of the first iteration, roughly; with k matchings
        the first angle or rapidity of a pair is step/√k. Halved when F rises above its first value.
    matchings : int, default 1
        Disjoint matchings of rows solved per gradient, one after the other, each on the model as
        the ones before have left it. 1 is the paper's Jacobi update; n − 1 hold every pair once.
    max_epochs : int, optional
        Limit on passes over the data: component gradients evaluated over N. The status is then
        ``MAX_SWEEPS``.

    Raises
    ------
    ValueError, TypeError
        If an option is not one of its choices, out of range, or has no meaning beside another.

    Examples
    --------
    >>> import numpy as np, orthobcd as ob
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.standard_normal((40, 4)), rng.standard_normal((40, 4))
    >>> loss = ob.LogisticLoss(A, B, np.sign(rng.standard_normal(40)))
    >>> problem = ob.JOrthogonalProblem(loss, [1, 1, -1, -1])
    >>> ob.solve(problem, solver=ob.VRJOBCD(max_epochs=20)).n_epochs
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

    def __post_init__(self) -> None:
        as_bool("full_gradient", self.full_gradient)
        as_choice("side", self.side, get_args(Side))
        if self.step_rule is not None:
            as_choice("step_rule", self.step_rule, get_args(StepRule))
        if self.step_rule == "adaptive" and not self.full_gradient:
            raise ValueError("step_rule must not be 'adaptive' without full_gradient=True")
        for name in ("batch_size", "small_batch_size"):
            size = as_optional_int(name, getattr(self, name), 1)
            if size is not None and self.full_gradient:
                raise ValueError(f"{name} must be None with full_gradient=True")
            self._set(**{name: size})
        self._set(
            proximal=as_float("proximal", self.proximal, minimum=0.0),
            rapidity_bound=as_optional_float(
                "rapidity_bound", self.rapidity_bound, minimum=0.0, exclusive=True
            ),
            step=as_float("step", self.step, minimum=0.0, exclusive=True),
            matchings=as_int("matchings", self.matchings, 1),
            max_epochs=as_optional_int("max_epochs", self.max_epochs, 0),
        )


Solver: TypeAlias = OBCD | Continuation | Auto | JOBCD | VRJOBCD
"""Any of the solvers."""
