"""`working_set` of `OBCD`: rules for rows that a user writes."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob


def quadratic(n, seed=0):
    a = np.random.default_rng(seed).standard_normal((n, n))
    return ob.Quadratic(a + a.T)


def violation(x, gradient):
    """The pair with the largest |S_ij|, S = XΓᵀ − ΓXᵀ, as the rule "wss-sv" with all pairs."""
    skew = x @ gradient.T
    skew = np.abs(skew - skew.T)
    return np.unravel_index(np.argmax(skew), skew.shape)


def neighbours():
    """Rows i and i + 1, one pair after the other, the first row never."""
    calls = 0

    def rule(x, gradient):
        nonlocal calls
        calls += 1
        n = len(x)
        assert gradient.shape == x.shape
        return np.array([1 + calls % (n - 1), 1 + (calls + 1) % (n - 1)])

    return rule


def test_the_subgradient_is_that_of_the_objective():
    n, lam = 8, 0.3
    smooth = quadratic(n)
    seen = []

    def rule(x, gradient):
        slope = gradient - smooth.C @ x
        assert np.abs(slope).max() <= lam + 1e-12
        seen.append(np.abs(slope - lam * np.sign(x))[x != 0].max())
        return [0, len(seen) % (n - 1) + 1]

    problem = ob.StiefelProblem(smooth, ob.L1(lam), 2)
    ob.solve(problem, "random", solver=ob.OBCD(working_set=rule), max_sweeps=3)
    assert max(seen) < 1e-12


def test_blocks_and_functions_and_mixed_signatures_have_rules():
    n = 10
    smooth = quadratic(n)
    block = ob.OBCD(working_set=lambda x, gradient: np.arange(4), block_size=4)
    problem = ob.StiefelProblem(smooth, ob.L1(0.2), 3)
    assert ob.solve(problem, "random", solver=block).converged

    f = ob.SmoothFunction(lambda x: (0.5 * np.sum(x * (smooth.C @ x)), smooth.C @ x), n, 3)
    problem = ob.StiefelProblem(f, ob.L1(0.2), 3)
    assert ob.solve(problem, "random", solver=ob.OBCD(working_set=neighbours())).converged

    positive = ob.Quadratic(smooth.C @ smooth.C.T)
    problem = ob.JOrthogonalProblem(positive, [1] * (n - 3) + [-1] * 3)
    result = ob.solve(problem, "random", solver=ob.JOBCD(working_set=neighbours()))
    assert result.converged
    assert result.feasibility < 1e-10


@pytest.mark.parametrize("rows", [[0], [1, 1], [0, 9], [-1, 2], [0, 1, 2], None, "ab", 3, [0.5, 1]])
@pytest.mark.parametrize("smooth", ["quadratic", "function"])
def test_wrong_rows_are_refused_and_nothing_is_lost(rows, smooth):
    n, calls = 9, []

    def rule(x, gradient):
        calls.append(1)
        return rows if len(calls) > 20 else [len(calls) % n, (len(calls) + 4) % n]

    f = quadratic(n)
    if smooth == "function":
        C = f.C
        f = ob.SmoothFunction(lambda x: (0.5 * np.sum(x * (C @ x)), C @ x), n, 2)
    problem = ob.StiefelProblem(f, ob.L1(0.1), 2)
    with pytest.raises(ValueError, match="working_set must return 2 different rows") as caught:
        ob.solve(problem, "random", solver=ob.OBCD(working_set=rule))
    x = caught.value.result.x
    assert np.abs(x.T @ x - np.eye(2)).max() < 1e-12


def test_an_exception_is_raised_with_the_result():
    def rule(x, gradient):
        raise KeyError("mine")

    problem = ob.StiefelProblem(quadratic(6), ob.L1(0.1), 2)
    with pytest.raises(KeyError, match="mine") as caught:
        ob.solve(problem, "random", solver=ob.OBCD(working_set=rule))
    assert caught.value.result.x.shape == (6, 2)


def test_what_a_rule_cannot_do_is_refused(tmp_path):
    problem = ob.StiefelProblem(quadratic(6), ob.L1(0.1), 2)
    rule = ob.OBCD(working_set=violation)
    with pytest.raises(ValueError, match="checkpoint must be None"):
        ob.solve(problem, solver=rule, checkpoint=tmp_path / "file")
    with pytest.raises(ValueError, match="working_set must be 'tiled'"):
        ob.OBCD(working_set=violation, update="jacobi")
    with pytest.raises(TypeError, match="working_set must be a string"):
        ob.OBCD(working_set=3)


def test_continuation_follows_a_rule():
    problem = ob.StiefelProblem(quadratic(12), ob.L1(0.1), 2)
    path = ob.Continuation(solver=ob.OBCD(working_set=violation))
    assert ob.solve(problem, solver=path).converged
