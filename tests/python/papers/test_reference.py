"""The NumPy reference of the tests, and the package beside it."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob

from .. import reference

pytestmark = pytest.mark.long


@pytest.mark.parametrize("kind", reference.PENALTIES)
@pytest.mark.parametrize("concave", [True, False])
def test_reference_solvers_agree(kind, concave, rng):
    """The papers' breakpoint search, corrected, against a dense grid: the two oracles agree."""
    for _ in range(25):
        r = int(rng.integers(1, 5))
        Z = rng.standard_normal((2, r))
        if kind == "nonnegative":
            Z = np.abs(Z) * (rng.random((2, r)) < 0.7)
        G = rng.standard_normal((2, r))
        M = rng.standard_normal((2, 2))
        M = -(M @ M.T) if concave else M + M.T
        S = Z @ Z.T
        lam = float(rng.random())
        _, V = reference.breakpoint_pair(Z, G, np.kron(S, M), 0.0, kind, lam)
        at, _ = reference.grid_pair(Z, G, M, S, kind, lam)
        new = V @ Z
        new[np.abs(new) < 1e-12] = 0.0
        E = V - np.eye(2)
        value = np.sum(E * (G @ Z.T)) + 0.5 * np.trace(M @ E @ S @ E.T)
        value += float(reference.penalty_value(kind, lam, new.ravel()))
        assert value <= at + 1e-9
        assert at <= value + 1e-6


@pytest.mark.parametrize("kind", reference.PENALTIES)
def test_one_pair_is_solved_globally(kind, rng):
    """n = 2: a solve is one pair problem, so its value is the global optimum."""
    penalties = {"none": ob.NoPenalty(), "l0": ob.L0(0.4), "l1": ob.L1(0.4)}
    lam = {"l0": 0.4, "l1": 0.4}.get(kind, 0.0)
    for trial in range(40):
        r = 1 + trial % 2
        C = rng.standard_normal((2, 2))
        C = C + C.T
        linear = rng.standard_normal((2, r))
        x0 = np.linalg.qr(rng.standard_normal((2, 2)))[0][:, :r]
        if kind == "nonnegative":
            x0 = np.eye(2)[:, :r] if trial % 4 < 2 else np.eye(2)[::-1][:, :r]
        problem = ob.StiefelProblem(
            ob.Quadratic(C, linear=linear), penalties.get(kind, ob.NonNegative()), r
        )
        solver = ob.OBCD(working_set="cyclic", proximal=0.0)
        result = ob.solve(problem, x0, solver=solver, tol=0.0, max_sweeps=50)
        f0 = 0.5 * np.sum(x0 * (C @ x0)) + np.sum(linear * x0)
        best, _ = reference.grid_pair(x0, C @ x0 + linear, C, x0 @ x0.T, kind, lam)
        assert result.objective <= f0 + best + 1e-9
        assert result.objective >= f0 + best - 1e-5


@pytest.mark.parametrize("kind", reference.PENALTIES)
def test_as_good_as_the_reference_loop(kind):
    """The same method in plain NumPy, several starts: neither is better on average."""
    rng = np.random.default_rng(3)
    n, r, lam = 8, 2, 1.0
    A = rng.standard_normal((12, n))
    C = -A.T @ A
    penalty = {"none": ob.NoPenalty(), "l0": ob.L0(lam), "l1": ob.L1(lam)}.get(
        kind, ob.NonNegative()
    )
    problem = ob.StiefelProblem(ob.Quadratic(C), penalty, r)
    ours, theirs = [], []
    for seed in range(60):
        x0 = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, r)))[0]
        if kind == "nonnegative":
            x0 = np.zeros((n, r))
            x0[: n // 2, 0] = x0[n // 2 :, 1] = 1 / np.sqrt(n // 2)
        solver = ob.OBCD(working_set="random")
        ours.append(ob.solve(problem, x0, solver=solver, seed=seed).objective)
        if seed < 3:
            X, history = reference.obcd(C, x0, kind, lam, sweeps=8, seed=seed)
            assert np.linalg.norm(X.T @ X - np.eye(r)) < 1e-9
            theirs.append(history[-1])
    scale = abs(min(theirs))
    assert min(ours) <= min(theirs) + 1e-6 * scale
    assert np.mean(ours) <= np.mean(theirs) + 0.1 * scale
