"""`SmoothFunction`, any smooth f: objectives that solves reach, errors, `check_gradient`."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pytest

import orthobcd as ob

RNG = np.random.default_rng(3)
B = RNG.standard_normal((12, 3))


def quartic(x: np.ndarray) -> tuple[float, np.ndarray]:
    """¼ Σ(x − b)⁴."""
    away = x - B
    return 0.25 * float(np.sum(away**4)), away**3


def problem(f: Any, penalty: Any = None, n: int = 12, r: int = 3, **options: Any) -> Any:
    smooth = ob.SmoothFunction(f, n, **options)
    return ob.StiefelProblem(smooth, penalty or ob.NoPenalty(), r)


M = (lambda a: a @ a.T / 12)(RNG.standard_normal((12, 12)))
J = [1, 1, -1, 1, -1, 1]


def quadratic(x: np.ndarray) -> tuple[float, np.ndarray]:
    """½⟨X, MX⟩ + ⟨B, X⟩."""
    image = M @ x
    return float(0.5 * np.vdot(x, image) + np.vdot(B, x)), image + B


def wells(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Minima at ±√0.6 of every entry."""
    away = x**2 - 0.6
    return float(np.sum(away**2)) / 4, away * x


@pytest.mark.parametrize(
    "penalty", [ob.NoPenalty(), ob.L1(0.05), ob.L0(0.02), ob.NonNegative()], ids=repr
)
def test_solves_with_every_penalty(penalty):
    lipschitz = 3.0 * (1.0 + np.abs(B).max()) ** 2
    given = problem(quartic, penalty, lipschitz=lipschitz)
    result = ob.solve(given)
    assert result.converged
    assert result.feasibility < 1e-12
    assert (np.diff(result.history["objective"]) <= 0.0).all()
    certificate = ob.certify(given, result.x)
    assert certificate.block2_gap <= 1e-9 * certificate.magnitude
    if isinstance(penalty, ob.NoPenalty):
        assert certificate.criticality <= 1e-6 * np.linalg.norm(quartic(result.x)[1])
    assert certificate.objective == pytest.approx(result.objective, rel=1e-14)
    assert np.isnan(ob.certify(problem(quartic, penalty), result.x).block2_gap)


def test_calls_get_a_fresh_array_each_and_only_one_a_step():
    seen = []

    def watched(x):
        assert x.dtype == np.float64
        assert x.flags.c_contiguous
        assert x.flags.writeable
        seen.append(x)
        return quartic(x)

    result = ob.solve(problem(watched), seed=2)
    kept = [x.copy() for x in seen]
    assert all((a == b).all() for a, b in zip(seen, kept, strict=True))
    assert len({x.ctypes.data for x in seen}) == len(seen)
    assert len(seen) <= result.n_sweeps + 5

    def spoils(x):
        value, gradient = quartic(x)
        x[:] = np.nan
        return value, gradient

    np.testing.assert_array_equal(ob.solve(problem(spoils), seed=2).x, result.x)


@pytest.mark.parametrize(
    ("penalty", "solver", "last"),
    [
        (ob.NoPenalty(), None, 6),
        (ob.L1(0.05), None, 6),
        (ob.L1(0.05), ob.Auto(), 40),
        (ob.L1(0.05), ob.Continuation(), 40),
    ],
)
def test_exceptions_come_out_with_the_best_point(penalty, solver, last):
    calls = []

    def raises(x):
        calls.append(1)
        if len(calls) == last:
            raise LookupError("mine")
        return quartic(x)

    with pytest.raises(LookupError, match="mine") as caught:
        ob.solve(problem(raises, penalty), solver=solver, max_work=1.0)
    result = caught.value.result  # type: ignore[attr-defined]
    assert len(calls) == last
    assert result.feasibility < 1e-12
    assert result.objective < result.history["objective"][0]
    assert quartic(result.x)[0] == pytest.approx(result.smooth_value, rel=1e-12)
    calls[:] = [1] * (last - 1)
    with pytest.raises(LookupError):
        ob.certify(problem(raises, penalty), result.x)


def test_check_gradient():
    def wrong(x):
        value, gradient = quartic(x)
        gradient[3, 1] *= -1.5
        gradient[0] += 0.3
        return value, gradient

    x = np.linalg.qr(RNG.standard_normal((12, 3)))[0]
    assert ob.check_gradient(wrong, x) > 1e-2
    assert ob.check_gradient(quartic, x) < 1e-7
    assert ob.check_gradient(ob.SmoothFunction(quadratic, 12, 3), x) < 1e-7


@pytest.mark.parametrize(
    "penalty", [ob.NoPenalty(), ob.L1(0.05), ob.L0(0.02), ob.NonNegative()], ids=repr
)
def test_a_search_is_no_worse_than_a_descent(penalty):
    """Every heuristic that needs no quadratic form, the same bits for every number of threads."""
    given = problem(quartic, penalty)
    start = ob.solve(given, max_sweeps=0, seed=3)
    descent = ob.solve(given, start.x, solver=ob.OBCD())
    first, second = (
        ob.solve(given, start.x, solver=ob.Auto(), max_work=0.2, n_threads=k) for k in (1, 2)
    )
    np.testing.assert_array_equal(first.x, second.x)
    assert first.feasibility < 1e-12
    assert (np.diff(first.history["objective"]) <= 0.0).all()
    assert first.objective <= descent.objective + 1e-3 * abs(descent.objective)
    assert first.objective == pytest.approx(quartic(first.x)[0] + first.penalty_value, rel=1e-12)
    assert first.search.profile["n_rows"] == 12
    assert len(first.search.runs) > 1


def test_a_search_with_a_mixed_signature():
    given = ob.JOrthogonalProblem(ob.SmoothFunction(wells, 6), J, ob.L1(0.05))
    descent = ob.solve(given, seed=1)
    result = ob.solve(given, descent.x, solver=ob.Auto(), max_work=0.01)
    assert result.objective <= descent.objective
    assert result.feasibility < 1e-12 * np.linalg.norm(result.x) ** 2


@pytest.mark.parametrize("penalty", [ob.NoPenalty(), ob.L1(0.05), ob.L0(0.02), ob.NonNegative()])
def test_the_default_solver_does_not_depend_on_limits(penalty):
    given = problem(quartic, penalty)
    for limits in ({}, {"max_time": 600.0}, {"max_work": 600.0}, {"max_sweeps": 2}):
        result = ob.solve(given, **limits)
        assert (result.search is None) == isinstance(penalty, ob.NoPenalty)


@pytest.mark.parametrize("lams", [None, [0.5, 0.2, 0.05]])
def test_continuation(lams):
    given = problem(quartic, ob.L1(0.05))
    result = ob.solve(given, solver=ob.Continuation(lams=lams), seed=1)
    assert result.feasibility < 1e-12
    assert result.path[-1].lam == 0.05
    assert len({point.lam for point in result.path}) == len(result.path) > 2
    assert np.isnan(result.path[0].explained_variance)
    assert result.path[0].n_nonzero <= result.path[-1].n_nonzero + 3


def test_the_search_never_calls_twice_at_once():
    inside = []

    def alone(x):
        assert not inside
        inside.append(1)
        time.sleep(0.0)
        answer = quartic(x)
        inside.clear()
        return answer

    result = ob.solve(problem(alone, ob.L1(0.05)), solver=ob.Auto(), max_work=0.05, n_threads=2)
    assert result.feasibility < 1e-12


def test_callbacks_limits_and_the_same_bits():
    given = problem(quartic, ob.L1(0.05))
    first, second = (ob.solve(given, seed=5, n_threads=k) for k in (1, 2))
    np.testing.assert_array_equal(first.x, second.x)
    assert ob.solve(given, max_sweeps=0).status is ob.Status.MAX_SWEEPS
    assert ob.solve(given, max_time=0.0).status is ob.Status.MAX_TIME
    assert ob.solve(given, target=1e9).status is ob.Status.TARGET
    assert ob.solve(given, callback=lambda progress: True).status is ob.Status.INTERRUPTED


def test_what_is_not_for_it_says_so():
    given = problem(quartic, ob.L1(0.05))
    mixed = ob.JOrthogonalProblem(ob.SmoothFunction(quartic, 12, 3), [1] * 11 + [-1])
    with pytest.raises(TypeError, match="JOBCD or Auto for a SmoothFunction"):
        ob.solve(mixed, solver=ob.VRJOBCD())
    with pytest.raises(ValueError, match="spectral"):
        ob.solve(given, "spectral")
    with pytest.raises(ValueError, match="side moves only rows"):
        ob.solve(given, solver=ob.OBCD(side="columns"))
    with pytest.raises(TypeError, match="value_and_gradient"):
        ob.SmoothFunction(3, 4)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n_rows"):
        ob.SmoothFunction(quartic, 1)
    with pytest.raises(ValueError, match="lipschitz"):
        ob.SmoothFunction(quartic, 12, lipschitz=0.0)
    with pytest.raises(ValueError, match="n_components"):
        ob.StiefelProblem(ob.SmoothFunction(quartic, 12, 3), ob.NoPenalty(), 2)


@pytest.mark.parametrize("penalty", [ob.NoPenalty(), ob.L0(0.3), ob.L1(0.3)])
@pytest.mark.parametrize("curvature", ["exact", "scalar"])
@pytest.mark.parametrize("rule", ["random", "cyclic", "wss-sv"])
def test_the_curvature_matrix_makes_pairs_those_of_eq_8(penalty, curvature, rule):
    """With C of a quadratic form its pairs have the same steps, up to rounding."""
    n, r = 9, 3
    rng = np.random.default_rng(5)
    C = rng.standard_normal((n, n))
    C = C + C.T
    # The scalar curvature of a quadratic form is that of C less a multiple of I; here it is 0.
    C -= np.trace(C) / n * np.eye(n)
    start = np.linalg.qr(rng.standard_normal((n, r)))[0]
    smooth = ob.SmoothFunction(lambda X: (0.5 * np.sum(X * (C @ X)), C @ X), n, curvature=C)
    assert smooth.lipschitz == pytest.approx(np.linalg.norm(C, 2))
    ended = []
    for f in (smooth, ob.Quadratic(C)):
        solver = ob.OBCD(working_set=rule, curvature=curvature, proximal=0.0)
        problem = ob.StiefelProblem(f, penalty, r)
        ended.append(ob.solve(problem, start, solver=solver, max_sweeps=1, seed=3))
    np.testing.assert_allclose(ended[0].x, ended[1].x, atol=1e-9)


def test_a_curvature_matrix_and_blocks_are_checked():
    for bad in (np.eye(3), np.ones(4), np.triu(np.ones((4, 4))), np.full((4, 4), np.nan)):
        with pytest.raises(ValueError, match="curvature"):
            ob.SmoothFunction(quartic, 4, curvature=bad)
    for rule in ("random", "tiled"):
        with pytest.raises(ValueError, match=r"block_size must be 2 where f is not quad.*got 3"):
            ob.solve(problem(quartic), solver=ob.OBCD(working_set=rule, block_size=3))


def away_from_b(scale=1.0, gradient="right"):
    """½‖X − B‖⁴ times a scale, or a constant, with a gradient of its own or a wrong one."""
    B = np.random.default_rng(7).standard_normal((8, 2))

    def value_and_gradient(x):
        square = np.sum((x - B) ** 2)
        if gradient == "constant":
            return 3.0 * scale, np.zeros_like(x)
        slope = 2.0 * square * (x - B)
        slope = {"right": slope, "zero": 0.0 * x, "normal": 1.0 * x}[gradient]
        return 0.5 * square**2 * scale, slope * scale

    return value_and_gradient


ANY_PENALTY = (ob.NoPenalty(), ob.L1(0.1), ob.L0(0.1), ob.NonNegative())
LIMITS = ({}, {"max_work": 0.01}, {"x0": "identity"}, {"solver": ob.OBCD(working_set="cyclic")})


def is_refused(f, penalty, words):
    """By every constraint, with and without limits, and as a finite sum."""
    smooth = ob.SmoothFunction(f, 8, 2)
    problems = [ob.StiefelProblem(smooth, penalty, 2)] * len(LIMITS)
    problems += [
        ob.JOrthogonalProblem(smooth, [1] * 4 + [-1] * 4, h, 2) for h in (penalty, ob.NoPenalty())
    ]
    for lipschitz in (None, 100.0):
        terms = ob.FiniteSum(lambda x, _: f(x), 5, 8, 2, lipschitz)
        problems.append(ob.StiefelProblem(terms, ob.NoPenalty(), 2))
    for given, limits in itertools.zip_longest(problems, LIMITS, fillvalue={}):
        with pytest.raises(ValueError, match=words):
            ob.solve(given, **limits)


@pytest.mark.parametrize("exponent", [-199, -130, -123, 121, 130, 160, 250])
@pytest.mark.parametrize("penalty", ANY_PENALTY)
def test_a_scale_whose_squares_are_no_numbers_is_refused(exponent, penalty):
    words = r"smooth must have .* between 1e-120 and 1e120"
    is_refused(away_from_b(10.0**exponent), penalty, words)


@pytest.mark.parametrize("exponent", [-119, -60, 60, 117])
def test_a_scale_whose_squares_are_numbers_changes_nothing(exponent):
    plain, other = (
        ob.solve(ob.StiefelProblem(ob.SmoothFunction(away_from_b(s), 8, 2), ob.NoPenalty(), 2))
        for s in (1.0, 10.0**exponent)
    )
    assert other.converged
    assert other.objective / 10.0**exponent == pytest.approx(plain.objective, rel=1e-10)


@pytest.mark.parametrize("gradient", ["zero", "normal"])
@pytest.mark.parametrize("penalty", ANY_PENALTY)
def test_a_wrong_gradient_without_tangent_part_is_refused(gradient, penalty):
    """Nothing would move: one difference quotient tells."""
    is_refused(away_from_b(gradient=gradient), penalty, "must return the gradient of its value")


def test_a_constant_and_an_optimal_start_converge_at_once():
    constant = ob.SmoothFunction(away_from_b(gradient="constant"), 8, 2)
    for penalty in (ob.NoPenalty(), ob.L1(0.1)):
        result = ob.solve(ob.StiefelProblem(constant, penalty, 2), "identity")
        assert result.converged
        assert (result.x == np.eye(8, 2)).all()
    problem = ob.StiefelProblem(ob.SmoothFunction(away_from_b(), 8, 2), ob.NoPenalty(), 2)
    best = ob.solve(problem, tol=1e-18)
    again = ob.solve(problem, best.x)
    assert again.converged
    assert again.objective == pytest.approx(best.objective, rel=1e-12)
    # At a minimum of zero value and zero gradient all differences are rounding errors.
    near = ob.SmoothFunction(
        lambda x: (np.sum((x - np.eye(8, 2)) ** 2), 2 * (x - np.eye(8, 2))), 8, 2
    )
    assert ob.solve(ob.StiefelProblem(near, ob.NoPenalty(), 2), "identity").converged
