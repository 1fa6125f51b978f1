"""Same seed, same bits, for every number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob

PENALTIES = {
    "none": ob.NoPenalty(),
    "l0": ob.L0(30.0),
    "l1": ob.L1(5.0),
    "nonnegative": ob.NonNegative(),
}


def run(smooth, penalty: str, solver: ob.OBCD, seed: int, n_threads: int) -> ob.Result:
    start = "partition" if penalty == "nonnegative" else "random"
    problem = ob.StiefelProblem(smooth, PENALTIES[penalty], 12)
    sweeps = 1 if solver.update == "jacobi" else 2
    return ob.solve(
        problem, start, solver=solver, max_sweeps=sweeps, seed=seed, n_threads=n_threads
    )


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("update", ["gauss-seidel", "jacobi"])
@pytest.mark.parametrize("gram", [False, True])
def test_same_bits_on_one_and_two_threads(penalty, update, gram):
    # n·r·n exceeds the least work that is done in parallel.
    A = np.random.default_rng(2).standard_normal((90, 450))
    smooth = ob.GramQuadratic(A) if gram else ob.Quadratic(-A.T @ A)
    solver = ob.OBCD(update=update)
    results = [run(smooth, penalty, solver, 11, threads) for threads in (1, 2, 2)]
    for other in results[1:]:
        assert np.array_equal(results[0].x, other.x)
        assert results[0].objective == other.objective
        assert results[0].n_updates == other.n_updates
        assert results[0].n_iterations == other.n_iterations


@pytest.mark.parametrize("working_set", ["random", "tiled", "wss-sv", "wss-or"])
def test_the_seed_decides(working_set):
    A = np.random.default_rng(2).standard_normal((30, 40))
    problem = ob.SparsePCAProblem(A, 4, ob.L1(1.0))
    solver = ob.OBCD(working_set=working_set)

    def x(seed: int) -> np.ndarray:
        return ob.solve(problem, "random", solver=solver, max_sweeps=2, seed=seed).x

    assert np.array_equal(x(5), x(5))
    assert not np.array_equal(x(5), x(6))


def test_a_callback_changes_nothing():
    A = np.random.default_rng(2).standard_normal((30, 40))
    problem = ob.SparsePCAProblem(A, 4, ob.L1(1.0))
    quiet = ob.solve(problem, "random", max_sweeps=20)
    watched = ob.solve(problem, "random", max_sweeps=20, callback=lambda _: False)
    assert np.array_equal(quiet.x, watched.x)
