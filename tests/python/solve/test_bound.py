"""Lower bounds of `certify` and of solves with `gap_tol`; checks of their arguments.

The crate compares bounds with enumeration of the supports (src/certificate/bound).
"""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

import orthobcd as ob

ROUNDING = 1e-12
"""Largest excess of a bound over a feasible point's objective, relative to the objective."""


def ky_fan(a, r):
    return np.linalg.eigvalsh(a)[-r:].sum()


def columns_problem(seed=0, n=6, counts=(2, 3)):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return ob.StiefelProblem(ob.Quadratic(-(A @ A.T)), ob.Cardinality(counts), len(counts))


def some_point(problem):
    return np.eye(*problem.shape)


def any_problem(seed):
    """A random problem of at most seven rows and three columns, each kind of penalty in turn."""
    rng = np.random.default_rng(seed)
    r = int(rng.integers(1, 4))
    n = int(rng.integers(max(3, r), 8))
    A = rng.standard_normal((n, n)) * rng.lognormal(size=n)
    C = (A @ A.T if rng.random() < 0.5 else A + A.T) * 10.0 ** rng.integers(-3, 4)
    lam, rows = float(0.3 * rng.random() * np.abs(C).max()), int(rng.integers(r, n + 1))
    total = int(rng.integers(r, min(n * r, 4 * r) + 1))
    penalties = [ob.NoPenalty(), ob.L0(lam), ob.L1(lam), ob.L1(lam * rng.random((n, r)))]
    penalties += [ob.NonNegative(), ob.Cardinality(total), ob.RowSparse(lam)]
    penalties += [ob.RowSparse(count=rows), ob.Cardinality([min(n, 2 + t) for t in range(r)])]
    penalty = penalties[seed % len(penalties)]
    return ob.StiefelProblem(ob.Quadratic(-C), penalty, r)


@pytest.mark.parametrize("seed", range(108))
def test_no_feasible_point_is_below(seed):
    problem = any_problem(seed)
    found = ob.solve(problem, max_work=0.01)
    certificate = ob.certify(problem, found.x, bound=True, max_time=0.1)
    size = max(1.0, abs(found.objective))
    assert certificate.objective == pytest.approx(found.objective, rel=1e-9, abs=1e-300)
    assert certificate.lower_bound <= found.objective + ROUNDING * size
    # Square X with an F that is the same everywhere has a magnitude of rounding.
    if certificate.magnitude > ROUNDING * size:
        distance = certificate.objective - certificate.lower_bound
        assert certificate.gap == distance / certificate.magnitude
    assert not found.x[list(certificate.bound.features_excluded)].any()
    # The bound does not depend on the point.
    worse = ob.certify(problem, some_point(problem), bound=True, max_time=0.1)
    assert worse.lower_bound <= found.objective + ROUNDING * size
    if isinstance(problem.penalty, ob.NoPenalty):
        assert certificate.gap <= 1e-5


def test_the_relaxation_can_be_checked_by_hand():
    A = np.random.default_rng(3).standard_normal((30, 20))
    problem = ob.SparsePCAProblem(A, 3, ob.L0(2.0))
    found = ob.certify(problem, some_point(problem), bound=True).bound
    assert found.method == "fantope"
    C = A.T @ A
    assert np.abs(C - found.multiplier).max() <= 4.0 * (1 + 1e-12)
    value = -0.5 * ky_fan(found.multiplier, 3)
    assert value - 1e-6 * abs(value) <= found.value <= value * (1 - 1e-15)


@pytest.mark.slow
def test_history_rises_and_ends_at_the_bound():
    problem = columns_problem(n=5, counts=(2, 2))
    found = ob.certify(problem, some_point(problem), bound=True).bound
    assert (np.diff(found.history["bound"]) > 0).all()
    assert (np.diff(found.history["seconds"]) >= 0).all()
    assert found.history["bound"][-1] == found.value


def test_a_constant_objective_is_proved():
    """Square X: F is the same everywhere, and its magnitude is rounding."""
    for seed in range(10):
        A = np.random.default_rng(seed).standard_normal((5, 5))
        problem = ob.StiefelProblem(ob.Quadratic(A + A.T), ob.NoPenalty(), 5)
        assert abs(ob.certify(problem, np.eye(5), bound=True).gap) <= 1e-6


def test_a_bound_sees_that_entries_are_nonnegative():
    """Entries of C between two groups are negative: mixed signs would gain, X ≥ 0 does not."""
    A = np.random.default_rng(1).standard_normal((5, 5))
    group = np.arange(5) % 2
    C = np.abs(A @ A.T) * np.where(np.add.outer(group, group) == 1, -1.0, 1.0)
    few = ob.Cardinality(4)
    problems = [ob.StiefelProblem(ob.Quadratic(-C), h, 2) for h in (few + ob.NonNegative(), few)]
    x = ob.solve(problems[0], max_work=0.05).x
    signed, free = (ob.certify(problem, x, bound=True) for problem in problems)
    assert signed.gap <= 1e-4 < free.gap
    result = ob.solve(problems[0], gap_tol=1e-4, max_work=0.3)
    assert result.status is ob.Status.PROVED


@pytest.mark.slow
def test_a_gap_that_is_small_enough_ends_the_search():
    problem = columns_problem(n=5, counts=(2, 2))
    loose = ob.certify(problem, some_point(problem), bound=True, gap_tol=1e3).bound
    assert len(loose.history["bound"]) <= 2
    assert loose.value <= ob.certify(problem, some_point(problem), bound=True).lower_bound


@pytest.mark.parametrize("how", ["max_time", "Ctrl-C"])
def test_a_limit_leaves_a_bound(how):
    A = np.random.default_rng(0).standard_normal((60, 60))
    problem = ob.StiefelProblem(ob.Quadratic(-A @ A.T), ob.Cardinality([10, 10]), 2)
    timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    if how == "Ctrl-C":
        timer.start()
    start, most = time.perf_counter(), 0.0 if how == "max_time" else 300
    found = ob.certify(problem, some_point(problem), bound=True, max_time=most)
    assert time.perf_counter() - start < (30 if how == "max_time" else 250)
    assert np.isfinite(found.lower_bound)
    if how == "Ctrl-C":
        timer.join()


def proved(problem, **how):
    result = ob.solve(problem, seed=1, **how)
    size = abs(result.objective)
    certificate = ob.certify(problem, result.x, bound=True, max_time=0.1)
    assert certificate.objective == pytest.approx(result.objective, abs=1e-9 * size)
    bound = result.search.bound
    assert bound.gap == pytest.approx((result.objective - bound.value) / certificate.magnitude)
    assert certificate.lower_bound <= result.objective + ROUNDING * size
    assert bound.value <= result.objective + ROUNDING * size
    assert bound.interrupted == (result.status is ob.Status.INTERRUPTED)
    assert (np.diff(result.history["objective"]) <= 0).all()
    assert (np.diff(result.history["seconds"]) >= 0).all()
    return result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("penalty", "gap_tol"),
    [
        (ob.Cardinality([2, 3]), 1e-6),
        (ob.Cardinality(5), 1e-4),
        (ob.RowSparse(count=4), 1e-6),
        (ob.RowSparse(0.3), 1e-6),
        (ob.L0(0.5), 0.3),
        (ob.NoPenalty(), 1e-9),
    ],
)
def test_a_solve_ends_when_its_point_is_proved(penalty, gap_tol):
    problem = ob.StiefelProblem(columns_problem().smooth, penalty, 2)
    for limit in ({"max_work": 1.0}, {"max_time": 60.0}, {}):
        result = proved(problem, gap_tol=gap_tol, **limit)
        assert result.status is ob.Status.PROVED
        assert result.search.bound.gap <= gap_tol
        assert result.seconds < 30
    assert ob.solve(problem, max_work=0.01).search.bound is None


@pytest.mark.slow
def test_what_is_not_proved_says_so(tmp_path):
    problem = columns_problem(n=30, counts=(8, 8))
    result = proved(problem, gap_tol=0.0, max_work=0.2)
    assert result.status is ob.Status.MAX_WORK
    bound = result.search.bound
    assert bound.gap > 0
    assert result.work < 1.0
    result.save(tmp_path / "result.npz")
    read = ob.Result.load(tmp_path / "result.npz").search.bound
    for name, part in vars(bound).items():
        np.testing.assert_equal(getattr(read, name), part)
    assert proved(problem, gap_tol=0.0, max_time=0.3).status is ob.Status.MAX_TIME
    aimed = proved(problem, gap_tol=0.0, max_work=1.0, target=result.objective)
    assert aimed.status is ob.Status.TARGET
    stopped = proved(problem, gap_tol=0.0, max_work=50.0, callback=lambda progress: True)
    assert stopped.status is ob.Status.INTERRUPTED
    begun = ob.solve(problem, result.x, gap_tol=0.0, max_work=0.01)
    assert begun.objective <= result.objective + ROUNDING * abs(result.objective)


@pytest.mark.parametrize(
    ("penalty", "name"),
    [
        *((ob.L0(np.arange(1.0, 15.0).reshape(7, 2)), "weighted L0"), (ob.MCP(0.1, 3.0), "MCP")),
        *((ob.SCAD(0.1, 3.0), "SCAD"), (ob.Box(-1.0, 1.0), "Box")),
    ],
)
def test_penalties_without_a_bound_are_named(penalty, name):
    problem = ob.StiefelProblem(ob.Quadratic(-np.eye(7)), penalty, 2)
    assert ob.certify(problem, np.eye(7)[:, :2]).bound is None
    with pytest.raises(TypeError, match=f"for a penalty other than .* got a {name}$"):
        ob.certify(problem, np.eye(7)[:, :2], bound=True)


def test_the_certificate_of_a_stranger():
    problem = columns_problem(n=7, counts=(3, 3))
    C = -problem.smooth.C
    thresholded = np.linalg.eigh(C)[1][:, -2:]
    for t in range(2):
        thresholded[np.argsort(np.abs(thresholded[:, t]))[:-3], t] = 0.0
    with pytest.raises(ValueError, match="x must be feasible"):
        ob.certify(problem, thresholded / np.linalg.norm(thresholded, axis=0), bound=True)
    with pytest.raises(ValueError, match="x must be feasible"):
        ob.certify(problem, np.linalg.eigh(C)[1][:, -2:], bound=True)
    plain = ob.certify(problem, np.linalg.eigh(C)[1][:, -2:])
    assert plain.objective == np.inf
    assert np.isnan(plain.gap)
    # Each row keeps only its larger entry: columns with disjoint supports are orthogonal.
    apart = np.where(np.abs(thresholded) < np.abs(thresholded[:, ::-1]), 0.0, thresholded)
    repaired = ob.certify(problem, apart / np.linalg.norm(apart, axis=0), bound=True, max_time=0.3)
    assert repaired.feasibility < 1e-12
    assert 0 < repaired.gap < np.inf
    peer = np.eye(7)[:, :2]
    certificate = ob.certify(problem, peer, bound=True, max_time=0.3)
    assert certificate.objective == pytest.approx(-0.5 * (C[0, 0] + C[1, 1]))
    assert certificate.gap > 0
    assert np.isnan(certificate.block2_gap)
    assert np.isnan(certificate.criticality)


def test_too_many_rows_have_no_gap():
    problem = ob.StiefelProblem(ob.Quadratic(np.eye(5)), ob.RowSparse(count=2), 2)
    x = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 2)))[0]
    assert ob.certify(problem, x).objective == np.inf
    with pytest.raises(ValueError, match="x must be feasible"):
        ob.certify(problem, x, bound=True)


def test_bounds_at_the_door():
    C = np.diag([1.0, 2.0, 3.0])
    x = np.eye(3)[:, :2]
    smooth = ob.Quadratic(C)
    linear = ob.StiefelProblem(ob.Quadratic(C, linear=np.ones((3, 2))), ob.L0(1.0), 2)
    with pytest.raises(ValueError, match="bound must be False"):
        ob.certify(linear, x, bound=True)
    free = ob.SmoothFunction(lambda x: (0.0, np.zeros_like(x)), 3)
    with pytest.raises(TypeError, match="bound must be False"):
        ob.certify(ob.StiefelProblem(free, ob.NoPenalty(), 2), x, bound=True)
    mixed = ob.JOrthogonalProblem(smooth, [1, 1, -1])
    with pytest.raises(ValueError, match="bound must be False"):
        ob.certify(mixed, np.eye(3), bound=True)
    for other in (linear, ob.StiefelProblem(free, ob.NoPenalty(), 2), mixed):
        with pytest.raises((TypeError, ValueError), match="gap_tol must be None"):
            ob.solve(other, gap_tol=0.1)
    with pytest.raises(TypeError, match="gap_tol must be None for a OBCD"):
        ob.solve(ob.StiefelProblem(smooth, ob.L0(1.0), 2), gap_tol=0.1, solver=ob.OBCD())
    with pytest.raises(ValueError, match="gap_tol"):
        ob.solve(ob.StiefelProblem(smooth, ob.L0(1.0), 2), gap_tol=-0.1)
    for wrong in ({"bound": 1}, {"gap_tol": -1.0}, {"max_time": -1.0}):
        with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
            ob.certify(ob.StiefelProblem(smooth, ob.L0(1.0), 2), x, **wrong)


@pytest.mark.parametrize("penalty", ["l0", "l1"])
@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_a_fit_without_a_penalty_is_proved(penalty, size):
    A = size * np.random.default_rng(0).standard_normal((40, 4))
    pca = ob.SparsePCA(2, penalty=penalty, alpha=0.0, certify=True, random_state=0).fit(A)
    top = np.linalg.svd(A - A.mean(axis=0), compute_uv=False)[:2]
    assert pca.lower_bound_ == pytest.approx(-0.5 * np.sum(top**2), rel=1e-9)
    assert pca.objective_ == pytest.approx(pca.lower_bound_, rel=1e-9)
    assert pca.gap_ < 1e-9
    # The penalty is at least its weight times two, so no value is below that of the axes plus this.
    penalised = ob.SparsePCA(2, penalty=penalty, alpha=0.5, certify=True, random_state=0).fit(A)
    least = pca.objective_ + 2.0 * penalised.alpha_
    assert least * (1.0 + 1e-9) < penalised.lower_bound_ <= penalised.objective_ + 1e-9 * size**2


@pytest.mark.parametrize("how", [{"n_nonzero": 4}, {"alpha": 0.3}, {"penalty": "l1", "alpha": 0.5}])
def test_the_gap_of_a_fit(how):
    A = np.random.default_rng(0).standard_normal((40, 7))
    pca = ob.SparsePCA(2, certify=True, max_time=0.4, random_state=0, **how).fit(A)
    assert 0.0 <= pca.gap_ + 1e-12 < 0.5
    assert ob.SparsePCA(2, max_time=0.05, random_state=0, **how).fit(A).gap_ is None
