"""`FiniteSum`: batches of a function's terms on both constraints; errors of the function."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

import orthobcd as ob

M, N, R = 60, 6, 2
J = [1, 1, 1, 1, -1, -1]
A = np.random.default_rng(0).standard_normal((M, N)) * [3.0, 2.0, 1.0, 1.0, 1.0, 1.0]
B = np.random.default_rng(1).standard_normal((M, R))
LARGEST = float((np.linalg.norm(A, axis=1) ** 2).max())


def fit(x, terms):
    """½‖Xᵀa_i − b_i‖²."""
    a, rest = A[terms], A[terms] @ x - B[terms]
    return 0.5 * np.sum(rest**2) / len(a), a.T @ rest / len(a)


def away(x, terms):
    """½‖a_i − XXᵀa_i‖²."""
    a = A[terms]
    rest = a - a @ x @ x.T
    return 0.5 * np.sum(rest**2) / len(a), -(rest.T @ (a @ x) + a.T @ (rest @ x)) / len(a)


def total(function):
    return ob.SmoothFunction(lambda x: function(x, np.arange(M)), N, R)


def on(constraint, smooth, penalty=None):
    penalty = ob.NoPenalty() if penalty is None else penalty
    if constraint == "stiefel":
        return ob.StiefelProblem(smooth, penalty, R)
    return ob.JOrthogonalProblem(smooth, J, penalty, R)


constraints = pytest.mark.parametrize("constraint", ["stiefel", "mixed"])


@constraints
@pytest.mark.parametrize(
    "penalty", [ob.NoPenalty(), ob.L1(0.2), ob.L0(0.2), ob.CappedL1(0.5, 0.3)], ids=repr
)
def test_mini_batches_reach_what_all_terms_reach(constraint, penalty):
    problem = on(constraint, ob.FiniteSum(fit, M, N, R, lipschitz=LARGEST), penalty)
    start = ob.solve(problem, solver=ob.VRJOBCD(max_epochs=0), seed=1)
    result = ob.solve(problem, solver=ob.VRJOBCD(max_epochs=300), seed=1)
    assert result.feasibility < 1e-12 * max(1.0, np.linalg.norm(result.x) ** 2)
    assert np.all(np.diff(result.history["objective"]) <= 0.0)
    value = fit(result.x, np.arange(M))[0]
    assert result.smooth_value == pytest.approx(value, rel=1e-12)
    assert result.objective == pytest.approx(value + result.penalty_value, rel=1e-12)
    assert result.objective < start.objective
    if isinstance(penalty, ob.L0):
        return  # ℓ0 has many local optima, some of them poor.
    full = OBCD_OR_JOBCD[constraint]
    whole = ob.solve(on(constraint, total(fit), penalty), start.x, solver=full, max_sweeps=300)
    # There are several optima.
    assert result.objective <= 0.5 * (start.objective + whole.objective)


OBCD_OR_JOBCD = {"stiefel": ob.OBCD(), "mixed": ob.JOBCD()}


@constraints
def test_every_term_is_asked_for_and_batches_are_batches(constraint):
    sizes, seen = set(), set()

    def watched(x, terms):
        assert terms.dtype == np.int64
        assert np.all(np.diff(terms) > 0)
        assert x.flags.c_contiguous
        sizes.add(len(terms))
        seen.update(terms.tolist())
        return fit(x, terms)

    problem = on(constraint, ob.FiniteSum(watched, M, N, R, lipschitz=LARGEST))
    solver = ob.VRJOBCD(batch_size=20, small_batch_size=5, max_epochs=10)
    result = ob.solve(problem, solver=solver, seed=3)
    assert sizes == {5, 20, M}
    assert seen == set(range(M))
    assert result.extra["n_epochs"] == 10
    again = ob.solve(problem, solver=solver, seed=3)
    assert (again.x == result.x).all()


@constraints
def test_without_a_lipschitz_constant(constraint):
    """Steps of their own size without a penalty, all terms at once with one."""
    problem = on(constraint, ob.FiniteSum(away, M, N, R))
    result = ob.solve(problem, solver=ob.VRJOBCD(max_epochs=40), seed=1)
    assert result.objective < result.history["objective"][0]
    assert result.extra["n_epochs"] == 40
    sparse = on(constraint, ob.FiniteSum(away, M, N, R), ob.L1(0.1))
    with pytest.raises(ValueError, match=r"^lipschitz must be given to sample"):
        ob.solve(sparse, solver=ob.VRJOBCD(max_epochs=5))
    for solver in (ob.VRJOBCD(full_gradient=True, max_epochs=20), None):
        result = ob.solve(sparse, solver=solver, max_sweeps=30)
        assert np.all(np.diff(result.history["objective"]) <= 0.0)
    result = ob.solve(sparse, solver=OBCD_OR_JOBCD[constraint], max_sweeps=30)
    assert result.objective <= result.history["objective"][0]


def test_the_whole_sum_is_a_smooth_function():
    smooth = ob.FiniteSum(fit, M, N, R, lipschitz=LARGEST)
    x = np.linalg.qr(np.random.default_rng(2).standard_normal((N, R)))[0]
    assert ob.check_gradient(smooth, x) < 1e-6
    first = ob.certify(ob.StiefelProblem(smooth, ob.L1(0.1), R), x)
    second = ob.certify(
        ob.StiefelProblem(
            ob.SmoothFunction(lambda x: fit(x, np.arange(M)), N, R, LARGEST), ob.L1(0.1), R
        ),
        x,
    )
    assert first.objective == pytest.approx(second.objective, rel=1e-14)
    assert first.criticality == pytest.approx(second.criticality, rel=1e-12)
    assert repr(smooth).startswith("FiniteSum(")


def test_bad_arguments_name_themselves():
    for argument, make in {
        "value_and_gradient": lambda: ob.FiniteSum(None, M, N),
        "n_rows": lambda: ob.FiniteSum(fit, M, 1.5),
    }.items():
        with pytest.raises(TypeError, match=f"^{argument} must"):
            make()
    for argument, make in {
        "n_terms": lambda: ob.FiniteSum(fit, 0, N),
        "n_columns": lambda: ob.FiniteSum(fit, M, N, 0),
        "lipschitz": lambda: ob.FiniteSum(fit, M, N, R, 0.0),
        "small_batch_size": lambda: ob.solve(
            on("stiefel", ob.FiniteSum(fit, M, N, R, LARGEST)),
            solver=ob.VRJOBCD(small_batch_size=M + 1),
        ),
    }.items():
        with pytest.raises(ValueError, match=f"^{argument} must"):
            make()
    for constraint in ("stiefel", "mixed"):
        whole = ob.solve(
            on(constraint, ob.FiniteSum(fit, M, N, R)), solver=ob.Auto(), max_work=0.001
        )
        assert whole.feasibility < 1e-12 * max(1.0, np.linalg.norm(whole.x) ** 2)


def problems(function):
    """The same function of X, as a whole and as a sum, on both constraints, with its solver."""
    smooth = ob.SmoothFunction(lambda x: function(x, np.arange(M)), N, R)
    sums = ob.FiniteSum(function, M, N, R, lipschitz=LARGEST)
    for constraint, full in OBCD_OR_JOBCD.items():
        yield on(constraint, smooth), full
        yield on(constraint, sums), ob.VRJOBCD(small_batch_size=7, max_epochs=50)
        yield on(constraint, sums), full


def after(calls, function):
    """``function`` in place of `fit` from some call on."""
    count = 0

    def first_right(x, terms):
        nonlocal count
        count += 1
        return fit(x, terms) if count <= calls else function(x, terms)

    return first_right


@pytest.mark.parametrize("calls", [0, 5])
def test_an_exception_comes_out_as_it_is_with_the_best_point(calls):
    class Own(Exception):
        pass

    def raises(x, terms):
        raise Own("as it is")

    for k in range(6):
        problem, solver = list(problems(after(calls, raises)))[k]
        with pytest.raises(Own, match="as it is") as caught:
            ob.solve(problem, solver=solver, seed=1)
        if calls:
            result = caught.value.result
            assert result.feasibility < 1e-12 * max(1.0, np.linalg.norm(result.x) ** 2)
            assert np.isfinite(result.objective)
            assert result.objective == pytest.approx(fit(result.x, np.arange(M))[0], rel=1e-9)


WRONG = {
    "NaN": (lambda x, terms: (np.nan, x), "a finite value"),
    "infinite": (lambda x, terms: (0.0, np.full_like(x, np.inf)), "a finite gradient"),
    "shape": (lambda x, terms: (0.0, x.T), "gradient of shape"),
    "flat": (lambda x, terms: (0.0, x.ravel()), "gradient of shape"),
    "value": (lambda x, terms: (x, x), "real number as value"),
    "objects": (lambda x, terms: ("one", x), ""),
    "boolean": (lambda x, terms: (True, x), ""),
    "none": (lambda x, terms: None, ""),
    "one": (lambda x, terms: 0.0, r"\(value, gradient\)"),
    "complex": (lambda x, terms: (0.0, x.astype(complex)), "real gradient"),
    "strings": (lambda x, terms: (0.0, x.astype(str)), ""),
    "ragged": (lambda x, terms: (0.0, [[1.0], [1.0, 2.0]]), "a number and an array"),
}


@pytest.mark.parametrize("calls", [0, 5])
@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_answer_is_an_error_that_names_the_function(calls, kind):
    wrong, message = WRONG[kind]
    for k in range(6):
        asked = []
        culprit = after(calls, lambda *of: asked.append(1) or wrong(*of))  # noqa: B023
        problem, solver = list(problems(culprit))[k]
        with pytest.raises(
            ValueError, match=rf"(first_right|lambda).* must return.*{message}"
        ) as caught:
            ob.solve(problem, solver=solver, seed=1)
        result = caught.value.result
        assert len(asked) == 1
        assert result.status is ob.Status.INTERRUPTED
        assert result.feasibility < 1e-12 * max(1.0, np.linalg.norm(result.x) ** 2)
        assert np.isfinite(result.objective) == (calls > 0)


def test_views_of_the_input_and_single_precision():
    """f = ½‖X‖² + ⟨B, X⟩ returns X itself as part of its gradient, or the same memory changed."""
    target = np.random.default_rng(5).standard_normal((N, R))

    def plain(x, terms):
        return 0.5 * np.sum(x**2) + np.sum(target * x), x + target

    def view(x, terms):
        value = 0.5 * np.sum(x**2) + np.sum(target * x)
        x += target
        return value, x

    def transposed(x, terms):
        value, gradient = plain(x, terms)
        return value, np.asfortranarray(gradient)[:, :]

    def single(x, terms):
        value, gradient = plain(x, terms)
        return np.float32(value), gradient.astype(np.float32)

    for other, close in ((view, 0.0), (transposed, 0.0), (single, 1e-5)):
        for (first, solver), (second, _) in zip(problems(plain), problems(other), strict=True):
            results = [
                ob.solve(problem, "random", solver=solver, seed=2, max_sweeps=200)
                for problem in (first, second)
            ]
            size = np.linalg.norm(results[0].x) ** 2 + np.linalg.norm(target)
            assert abs(results[0].objective - results[1].objective) <= close * size
            if close == 0.0:
                assert (results[0].x == results[1].x).all()


def test_a_function_may_solve_a_problem_itself():
    inner = ob.StiefelProblem(ob.Quadratic(np.diag([1.0, 2.0, 3.0])), ob.NoPenalty(), 1)

    def nested(x, terms):
        assert ob.solve(inner, max_sweeps=2, n_threads=1).objective < 2.0
        ob.solve(on("stiefel", total(fit)), max_sweeps=2, n_threads=1)
        return fit(x, terms)

    for (problem, solver), (plain, _) in zip(problems(nested), problems(fit), strict=True):
        result = ob.solve(problem, solver=solver, seed=1, max_sweeps=20, n_threads=1)
        assert (result.x == ob.solve(plain, solver=solver, seed=1, max_sweeps=20).x).all()


@pytest.mark.slow
def test_ctrl_c_within_one_call():
    """Also where the function is slow: it ends after the call under way, with the best point."""
    pause = 0.05

    def slow(x, terms):
        until = time.perf_counter() + pause
        while time.perf_counter() < until:
            np.sum(x)
        return fit(x, terms)

    for problem, solver in problems(slow):
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        began = time.perf_counter()
        result = ob.solve(problem, solver=solver, tol=0.0, seed=1, max_time=5.0)
        spent = time.perf_counter() - began
        timer.cancel()
        assert result.feasibility < 1e-12 * max(1.0, np.linalg.norm(result.x) ** 2)
        assert result.status is not ob.Status.MAX_TIME or spent < 5.0
        if result.status is ob.Status.INTERRUPTED:
            assert spent < 0.3 + pause + 0.3
            assert result.objective == pytest.approx(fit(result.x, np.arange(M))[0], rel=1e-9)
