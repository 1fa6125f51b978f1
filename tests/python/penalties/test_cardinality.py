"""`Cardinality` and `RowSparse`: limits on nonzero entries and on nonzero rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

import orthobcd as ob

A = np.random.default_rng(3).standard_normal((60, 15)) @ np.diag(np.linspace(0.5, 2.0, 15))
C = A.T @ A
QUICK = {"max_work": 0.05, "n_threads": 1}


def problem(penalty: ob.Cardinality | ob.RowSparse, r: int = 4) -> ob.SparsePCAProblem:
    return ob.SparsePCAProblem(A, r, penalty)


def top(rows: tuple[int, ...], r: int = 1) -> float:
    """What the best r components on some rows explain."""
    return float(np.linalg.eigvalsh(C[np.ix_(rows, rows)])[-r:].sum())


@pytest.mark.parametrize("count", [4, 7, 20, 33, 60, [3, 3, 3, 3], [7, 4, 2, 1]])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_within_the_limit(count, nonnegative):
    result = ob.solve(problem(ob.Cardinality(count, nonnegative=nonnegative)), **QUICK)
    x = result.x
    used = np.count_nonzero(x, axis=0)
    assert np.all(used <= count) if isinstance(count, list) else used.sum() <= count
    assert np.linalg.norm(x.T @ x - np.eye(4)) < 1e-12
    assert result.n_nonzero == used.sum()
    assert not nonnegative or x.min() >= 0.0
    assert result.smooth_value == pytest.approx(-0.5 * np.sum((A @ x) ** 2))
    assert result.objective == result.smooth_value
    assert np.all(np.diff(result.history["objective"]) <= 0.0)
    assert result.status is ob.Status.MAX_WORK or result.converged
    if not nonnegative and count != 60:
        # For data in general position the whole limit is used.
        assert used.sum() == np.sum(count)


@pytest.mark.parametrize("size", [(100, 30, 3), (80, 64, 5), (20, 90, 5), (30, 200, 8)])
@pytest.mark.parametrize("each", [2, 4, 7])
def test_the_whole_limit_is_used_however_little_the_work(size, each):
    """Correlated features, some of them constant; points without a search are filled as well."""
    m, n, r = size
    each = min(each, (n - 6) // r)
    rng = np.random.default_rng(m + each)
    X = rng.standard_normal((m, 6)) @ rng.standard_normal((6, n)) + rng.standard_normal((m, n))
    X[:, rng.permutation(n)[:5]] = 0.0
    X -= X.mean(axis=0)
    for limit in ([each] * r, each * r, list(range(each, each + r))):
        for work in (1e-4, 1e-3, 5e-3, 2e-2):
            found = ob.solve(
                ob.SparsePCAProblem(X, r, ob.Cardinality(limit)), max_work=work, n_threads=1
            )
            assert np.count_nonzero(found.x) == np.sum(limit), (limit, work)


@pytest.mark.slow
@pytest.mark.parametrize("count", [[20, 20, 20], 60])
def test_moves_made_together_keep_the_limit(count):
    """Of correlated features: two rows at a time join where there is room for two."""
    for seed in (5, 9, 11):
        rng = np.random.default_rng(seed)
        factors = rng.standard_normal((200, 6)) @ rng.standard_normal((6, 34))
        S = np.corrcoef((factors + rng.standard_normal((200, 34))).T)
        problem = ob.StiefelProblem(ob.Quadratic(-S), ob.Cardinality(count), 3)
        used = np.count_nonzero(ob.solve(problem, max_work=0.4, n_threads=1).x, axis=0)
        assert np.all(used <= count) if isinstance(count, list) else used.sum() <= count


@pytest.mark.parametrize("count", [12, [4, 3, 3, 2]])
@pytest.mark.parametrize(
    ("include", "exclude"),
    [
        ([[1], [], [], []], [0]),
        ([], [2, 5]),
        ([[1], [], [2, 3], []], [0, 14]),
        ([], [[1, 2], [3], [], list(range(10))]),
    ],
)
def test_a_sum_with_nonnegativity_keeps_every_condition(count, include, exclude):
    plain = ob.Cardinality(count, include=include, exclude=exclude)
    whole = ob.Cardinality(count, nonnegative=True, include=include, exclude=exclude)
    for both in (plain + ob.NonNegative(), ob.NonNegative() + plain, whole + ob.NonNegative()):
        assert type(both) is ob.Cardinality
        assert vars(both) == vars(whole)
    x = ob.solve(problem(plain + ob.NonNegative()), **QUICK).x
    assert x.min() >= 0.0
    for t in range(4):
        assert not x[exclude[t] if np.ndim(exclude[0]) else exclude, t].any()


def test_rows_against_every_set():
    best = max(top(rows, 3) for rows in combinations(range(15), 6))
    result = ob.solve(problem(ob.RowSparse(count=6), 3), **QUICK)
    assert -2.0 * result.objective == pytest.approx(best, rel=1e-12)
    assert np.count_nonzero(result.x.any(axis=1)) == 6
    lam = 0.02 * np.trace(C)
    penalized = ob.solve(problem(ob.RowSparse(lam), 3), **QUICK)
    rows = np.count_nonzero(penalized.x.any(axis=1))
    assert penalized.penalty_value == pytest.approx(lam * rows)
    assert penalized.objective <= result.objective + 6 * lam


@pytest.mark.slow
def test_starts_keep_the_limit():
    at = problem(ob.Cardinality([4, 4, 3, 3]))
    best = ob.solve(at, **QUICK)
    again = ob.solve(at, best.x, max_work=0.0)
    assert again.objective <= best.objective
    for start in ("identity", "random", "spectral"):
        assert np.all(np.count_nonzero(ob.solve(at, start, **QUICK).x, axis=0) <= [4, 4, 3, 3])


@pytest.mark.parametrize("penalty", [ob.Cardinality(12), ob.RowSparse(count=6)])
def test_limits_and_callback(penalty):
    at = problem(penalty)
    stopped = ob.solve(at, callback=lambda progress: True)
    assert stopped.status is ob.Status.INTERRUPTED
    none = ob.solve(at, max_time=0.0)
    assert none.status is ob.Status.MAX_TIME
    assert none.feasibility < 1e-12
    timed = ob.solve(at, max_time=0.3)
    assert timed.converged or timed.seconds >= 0.28
    seen: list[float] = []
    result = ob.solve(at, **QUICK, callback=lambda progress: seen.append(progress.objective))
    assert np.all(np.diff(seen) <= 0.0)
    assert seen[-1] == result.objective
    target = ob.solve(at, target=0.9 * result.objective)
    assert target.status is ob.Status.TARGET


@pytest.mark.parametrize(
    ("error", "name", "call"),
    [
        (ValueError, "count", lambda: ob.Cardinality(0)),
        (TypeError, "count", lambda: ob.Cardinality(2.0)),
        (ValueError, "count", lambda: ob.Cardinality([3, 0])),
        (TypeError, "include", lambda: ob.Cardinality(5, include=3)),
        (TypeError, "exclude", lambda: ob.Cardinality(5, exclude=[1, [2]])),
        (ValueError, "exclude", lambda: ob.Cardinality(5, exclude=[-1])),
        (ValueError, "count", lambda: problem(ob.Cardinality(3))),
        (ValueError, "count", lambda: problem(ob.Cardinality(61))),
        (ValueError, "count", lambda: problem(ob.Cardinality([3, 3]))),
        (ValueError, "count", lambda: problem(ob.Cardinality([16, 1, 1, 1]))),
        (ValueError, "exclude", lambda: problem(ob.Cardinality(8, exclude=[15]))),
        (ValueError, "include", lambda: problem(ob.Cardinality(8, include=[[0]]))),
        (ValueError, "lam", lambda: ob.RowSparse()),
        (ValueError, "lam", lambda: ob.RowSparse(1.0, count=3)),
        (ValueError, "lam", lambda: ob.RowSparse(-1.0)),
        (ValueError, "count", lambda: problem(ob.RowSparse(count=3))),
        (
            ValueError,
            "cardinality",
            lambda: ob.solve(problem(ob.Cardinality(8, exclude=range(12)))),
        ),
        (
            TypeError,
            "solver",
            lambda: ob.solve(problem(ob.Cardinality(8)), solver=ob.OBCD()),
        ),
        (
            TypeError,
            "solver",
            lambda: ob.solve(problem(ob.RowSparse(1.0)), solver=ob.Continuation()),
        ),
        (ValueError, "x0", lambda: ob.solve(problem(ob.Cardinality(8)), 2.0 * np.eye(15, 4))),
        (
            TypeError,
            "smooth",
            lambda: ob.StiefelProblem(
                ob.SmoothFunction(lambda x: (0.0, 0.0 * x), 4), ob.Cardinality(3), 2
            ),
        ),
        (
            TypeError,
            "penalty",
            lambda: ob.JOrthogonalProblem(
                ob.Quadratic(np.eye(4)), [1, 1, 1, -1], ob.Cardinality(4)
            ),
        ),
    ],
)
def test_refused(error, name, call):
    with pytest.raises(error, match=rf"\b{name}\b"):
        call()


@pytest.mark.parametrize("decay", [0.0, 1.0])
@pytest.mark.parametrize(
    "limit",
    [
        ob.Cardinality(60),
        ob.Cardinality([20, 10, 30]),
        ob.Cardinality(60, nonnegative=True),
        ob.Cardinality([20, 10, 30], include=[[90], [], [70, 80]], exclude=[[95], [], [60]]),
        ob.RowSparse(count=20),
    ],
)
def test_a_good_point_comes_before_anything_else(limit, decay):
    """Where there is no time for more than a few products, it still is no set of unit vectors."""
    rng = np.random.default_rng(0)
    m, n, nonzeros = 300, 20_000, 200_000
    columns = rng.integers(0, n, nonzeros)
    values = rng.standard_normal(nonzeros) * (1.0 + columns) ** (-0.5 * decay)
    data = sp.csr_matrix((values, (rng.integers(0, m, nonzeros), columns)), shape=(m, n))
    result = ob.solve(ob.SparsePCAProblem(data, 3, limit), max_time=1e-6, n_threads=1)
    # The first point consists of unit vectors.
    assert result.objective < result.history["objective"][0]
    assert np.linalg.norm(result.x.T @ result.x - np.eye(3)) < 1e-12
    if not getattr(limit, "nonnegative", False):
        assert np.count_nonzero(result.x) == 60


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.6, 0.9])
@pytest.mark.parametrize(("m", "n"), [(60, 25), (20, 120), (40, 900)])
def test_a_penalty_on_rows_is_never_above_the_rows_of_largest_leverage(m, n, share):
    """Plain points: doubling numbers of rows of large leverage, with their leading eigenvectors."""
    r = 3
    for seed in range(2):
        A = np.random.default_rng([m, n, seed]).standard_normal((m, n))
        A /= np.linalg.norm(A, axis=0)
        lam = 0.5 * share
        leverage = np.linalg.norm(np.linalg.svd(A, full_matrices=False)[2][:r], axis=0)
        order = np.argsort(-leverage)
        plain = np.inf
        for count in (2 * r, 4 * r, 8 * r):
            values = np.linalg.svd(A[:, order[:count]], compute_uv=False)[:r] ** 2
            plain = min(plain, lam * count - 0.5 * values.sum())
        problem = ob.StiefelProblem(ob.GramQuadratic(A), ob.RowSparse(lam), r)
        result = ob.solve(problem, max_work=0.05, seed=seed)
        assert result.objective <= plain + 1e-9 * (abs(plain) + lam * n)
        assert result.feasibility <= 1e-12
