"""The greedy rules do not stop before a stationary point."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob

RULES = ("wss-sv", "wss-or")


def binary(m: int, n: int, seed: int) -> np.ndarray:
    """Data of 0 and 1, of columns with different frequencies."""
    rng = np.random.default_rng(seed)
    return (rng.random((m, n)) < rng.uniform(0.05, 0.6, n)).astype(float)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("lam", [0.1, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_columns_leave_rows_without_variance(rule, lam, seed):
    """The start selects them: all scores of such a row are 0, and other rows always have others."""
    n, r = 120, 6
    A = np.random.default_rng(seed).standard_normal((200, n))
    A[:, :r] = 0.0
    problem = ob.SparsePCAProblem(A, r, ob.L0(lam))
    solver = ob.OBCD(working_set=rule)
    result = ob.solve(problem, "identity", solver=solver, max_sweeps=6, seed=seed)
    assert np.abs(result.x[:r]).max() < 0.5


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("scored_pairs", [None, 10**6])
@pytest.mark.parametrize("seed", range(3))
def test_a_pair_that_cannot_move_is_not_chosen_for_ever(rule, scored_pairs, seed):
    """For a large λ the r columns of largest variance are optimal, and every exchange is a pair."""
    A = binary(200, 40, seed)
    r, lam = 5, 1e4
    problem = ob.SparsePCAProblem(A, r, ob.L0(lam))
    solver = ob.OBCD(working_set=rule, scored_pairs=scored_pairs)
    result = ob.solve(problem, "identity", solver=solver, max_sweeps=6, seed=seed)
    optimum = lam * r - 0.5 * np.sort(np.sum(A**2, axis=0))[-r:].sum()
    assert result.objective == pytest.approx(optimum, rel=1e-12)


def test_options_of_the_rule():
    assert ob.OBCD().scored_pairs is None
    with pytest.raises(ValueError, match="scored_pairs must be at least 1, got 0"):
        ob.OBCD(working_set="wss-sv", scored_pairs=0)
