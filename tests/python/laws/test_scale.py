"""Rounding of constant parts of F is no decrease: solves of constant problems converge."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob


def gaussian(seed: int, m: int = 30, n: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((m, n))


@pytest.mark.parametrize("size", [1e-123, 1e-20, 1.0])
@pytest.mark.parametrize("proximal", [0.0, 1e-5, 1e-3])
def test_a_constant_quadratic_term_does_not_make_every_change_count(
    proximal: float, size: float
) -> None:
    linear = size * gaussian(0, 3, 3)
    problem = ob.StiefelProblem(ob.Quadratic(np.full((3, 3), 3.0), linear), ob.L1(0.0), 3)
    solver = ob.OBCD(side="both", proximal=proximal)
    assert ob.solve(problem, "identity", solver=solver, max_sweeps=2000).converged


@pytest.mark.parametrize("spread", [0.0, 6.0, 12.0])
@pytest.mark.parametrize(
    "solver",
    [
        ob.OBCD(),
        ob.OBCD(working_set="random", block_size=5),
        ob.OBCD(working_set="wss-sv", block_size=5),
        ob.OBCD(working_set="cyclic", curvature="scalar"),
        ob.OBCD(update="jacobi"),
    ],
    ids=lambda solver: f"{solver.working_set}-{solver.update}",
)
def test_the_rounding_of_a_constant_is_no_decrease(solver: ob.OBCD, spread: float) -> None:
    """f is constant where X is square; entries of all sizes leave their rounding in the changes."""
    for seed in range(4):
        a = gaussian(seed, 11, 5) * 10.0 ** np.linspace(0.0, spread, 5)
        problem = ob.StiefelProblem(ob.GramQuadratic(a, scale=-1.0), ob.NoPenalty(), 5)
        result = ob.solve(problem, "random", solver=solver, max_sweeps=5000, seed=seed)
        assert result.converged
        trace = -0.5 * np.sum(a * a)
        assert abs(result.objective - trace) <= 1e-13 * abs(trace)
