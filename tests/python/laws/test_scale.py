"""Results do not depend on the unit of the data; after CONVERGED no pair lowers F."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import orthobcd as ob

RULES: list[dict[str, Any]] = [
    {},
    {"working_set": "cyclic"},
    {"working_set": "random"},
    {"working_set": "wss-sv"},
    {"working_set": "wss-or"},
    {"working_set": "wss-sv", "scored_pairs": 10**6},
    {"working_set": "random", "block_size": 4},
    {"update": "jacobi"},
    {"curvature": "scalar"},
    {"side": "both"},
]


def gaussian(seed: int, m: int = 30, n: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((m, n))


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize(
    "penalty", [ob.NoPenalty(), ob.L0(0.8), ob.L1(0.8), ob.NonNegative()], ids=str
)
def test_converged_leaves_no_pair(rule: dict[str, Any], penalty: Any) -> None:
    solver = ob.OBCD(**rule)
    for seed in range(3):
        problem = ob.SparsePCAProblem(gaussian(seed), 3, penalty)
        result = ob.solve(problem, solver=solver, seed=seed)
        assert result.converged
        certificate = ob.certify(problem, result.x)
        assert certificate.block2_gap <= 1e-10 * certificate.magnitude


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("penalty", [ob.L0, ob.L1])
def test_a_power_of_two_changes_no_bit(rule: dict[str, Any], penalty: Any) -> None:
    solver = ob.OBCD(**rule)
    a = gaussian(1)

    def run(unit: float) -> ob.Result:
        problem = ob.SparsePCAProblem(a * unit, 3, penalty(unit * unit))
        return ob.solve(problem, x0="identity", solver=solver)

    expected = run(1.0)
    for unit in (2.0**-100, 2.0**-20, 2.0**20, 2.0**100):
        found = run(unit)
        np.testing.assert_array_equal(found.x, expected.x)
        assert found.objective == expected.objective * unit * unit


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


def test_scored_pairs_is_checked() -> None:
    assert ob.OBCD().scored_pairs is None
    with pytest.raises(ValueError, match="scored_pairs"):
        ob.OBCD(scored_pairs=0)
    with pytest.raises(TypeError, match="scored_pairs"):
        ob.OBCD(scored_pairs=1.5)  # type: ignore[arg-type]
