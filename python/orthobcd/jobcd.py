"""The solver for mixed signatures."""

from __future__ import annotations

from dataclasses import dataclass

from ._checks import as_bool, as_choice, as_float, as_int

UPDATES = ("gauss-seidel", "jacobi", "vr-jacobi")
SIDES = ("rows", "columns", "both")
WORKING_SETS = ("tiled", "random", "cyclic")
CURVATURES = ("bound", "adaptive", "accumulated")


@dataclass(frozen=True)
class JOBCD:
    """Block coordinate descent with ``XᵀJX`` fixed (the JOBCD paper, and column moves).

    Parameters
    ----------
    update : {"gauss-seidel", "jacobi", "vr-jacobi"}, default "gauss-seidel"
        One pair after the other, each with the current gradient (GS-JOBCD); all pairs of a
        random perfect matching at once, in parallel (J-JOBCD); the same with the
        variance-reduced gradient of a finite sum (VR-J-JOBCD), for a problem made from data rows.
    side : {"both", "rows", "columns"}, default "both"
        What moves: X ← VX as in the paper, X ← XV (for ``½⟨X, CX⟩`` alone the J-Jacobi eigenvalue
        method, quadratically convergent), or both in turn; "both" is "rows" where columns cannot
        move, and for the updates "jacobi" and "vr-jacobi" of all problems but the
        `HyperbolicStructuralProbeProblem`.
    theta : float, default 1e-5
        Proximal weight θ ≥ 0, relative to the curvature of f: half the spread of C's eigenvalues
        (times ``‖D‖``), for a sum over data rows the curvature of the pair models. For an objective
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
    batch_size : int, optional
        Update "vr-jacobi": rows b of a full gradient estimate; all N by default.
    small_batch_size : int, optional
        Update "vr-jacobi": rows b′ of a correction; ⌈√N⌉ by default. A full estimate comes with
        probability b′/(b + b′).
    curvature : {"bound", "adaptive", "accumulated"}, optional
        Where the curvature of the pair models of a sum over data rows comes from. "bound": a bound
        that holds everywhere, with what pays for a sampled gradient's error (the default where
        f has one). "adaptive": lowered where F falls as predicted, raised where it does not; F
        never rises; not for a sampled gradient. "accumulated": every pair has its own, from the
        mean of its squared slopes so far, and follows the mean of its slopes (as Adam); with
        ``max_time`` or ``max_sweeps`` the steps fall linearly to 0 where that ends; needs no bound;
        F may rise and the best point is returned; not with a penalty (the default of
        `HyperbolicStructuralProbeProblem`).
    step : float, default 0.1
        With ``curvature="accumulated"``: ‖ΔX‖/‖X‖ of the first iteration, roughly; with k matchings
        the first angle or rapidity of a pair is step/√k. Halved when F rises above its first value.
    matchings : int, optional
        Disjoint matchings of rows solved per gradient, one after the other, each on the model as
        the ones before have left it. 1 is the paper's Jacobi update and the default of
        "jacobi" and "vr-jacobi"; the n − 1 that hold every pair once are the default of
        "gauss-seidel" for a `HyperbolicStructuralProbeProblem`.

    Raises
    ------
    ValueError, TypeError
        If an option is not one of its choices or out of range.
    """

    update: str = "gauss-seidel"
    side: str = "both"
    theta: float = 1e-5
    rapidity_bound: float | None = None
    working_set: str = "tiled"
    tile_size: int = 64
    adaptive: bool = True
    batch_size: int | None = None
    small_batch_size: int | None = None
    curvature: str | None = None
    step: float = 0.1
    matchings: int | None = None

    def __post_init__(self) -> None:
        as_choice("update", self.update, UPDATES)
        as_choice("side", self.side, SIDES)
        as_choice("working_set", self.working_set, WORKING_SETS)
        object.__setattr__(self, "theta", as_float("theta", self.theta, minimum=0.0))
        if self.rapidity_bound is not None:
            bound = as_float("rapidity_bound", self.rapidity_bound, minimum=0.0, exclusive=True)
            object.__setattr__(self, "rapidity_bound", bound)
        object.__setattr__(self, "tile_size", as_int("tile_size", self.tile_size, 2))
        as_bool("adaptive", self.adaptive)
        if self.curvature is not None:
            as_choice("curvature", self.curvature, CURVATURES)
        object.__setattr__(self, "step", as_float("step", self.step, minimum=0.0, exclusive=True))
        for name in ("batch_size", "small_batch_size", "matchings"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, as_int(name, value, 1))
        if self.side == "columns" and self.update != "gauss-seidel":
            raise ValueError(f"side must be 'rows' or 'both' with the update {self.update!r}")
