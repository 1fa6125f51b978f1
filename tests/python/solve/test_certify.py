"""`certify` and its `Certificate`, against brute force."""

import itertools
from functools import partial

import numpy as np
import pytest

import orthobcd as ob

from .. import reference

value = partial(reference.value, zero=1e-12)


def problems(n=14, r=3, seed=0):
    rng = np.random.default_rng(seed)
    C = rng.standard_normal((n, n))
    smooth = ob.Quadratic(C + C.T, linear=rng.standard_normal((n, r)))
    for penalty in (ob.NoPenalty(), ob.L0(0.3), ob.L1(0.5), ob.NonNegative()):
        yield ob.StiefelProblem(smooth, penalty, r)


@pytest.mark.parametrize("problem", list(problems()), ids=lambda p: type(p.penalty).__name__)
def test_pairs_of_zero_rows_are_proved(problem):
    """The gap itself is that of a grid of moves: a law of `test_properties.py`."""
    n, r = problem.smooth.n_rows, problem.n_components
    x = np.zeros((n, r))
    for k in range(r):
        x[2 * k : 2 * k + 2, k] = 0.6, 0.8
    certificate = ob.certify(problem, x)
    assert isinstance(certificate, ob.Certificate)
    assert certificate.n_pairs == n * (n - 1) // 2
    zero = n - 2 * r
    assert certificate.n_pairs_proved == zero * (zero - 1) // 2
    i, j = certificate.block2_pair
    assert 0 <= i < j < n
    assert certificate.objective == pytest.approx(value(problem, x))


@pytest.mark.parametrize(
    "problem", list(problems(n=60, r=4, seed=1)), ids=lambda p: type(p.penalty).__name__
)
def test_a_solution_certifies(problem):
    result = ob.solve(problem, solver=ob.OBCD(proximal=0.0), tol=0.0, max_sweeps=3000)
    certificate = ob.certify(problem, result.x)
    size = abs(certificate.smooth_value) + abs(certificate.penalty_value)
    assert certificate.block2_gap <= 1e-12 * size
    assert certificate.feasibility < 1e-12
    assert certificate.objective == pytest.approx(result.objective, rel=1e-13)
    assert certificate.block2_measure <= 1e-10


def brute_force_measure(problem, x, points=2001):
    """Definition 4.1: the mean of ‖V − I‖² over all pairs, V their best move, by a refined grid."""

    def values(pair, angles, reflect):
        c, s = np.cos(angles), np.sin(angles)
        V = np.array([[-c, s], [s, c]] if reflect else [[c, s], [-s, c]])
        y = np.repeat(x[None], len(angles), axis=0)
        y[:, pair] = np.einsum("ijt,jk->tik", V, x[list(pair)])
        return value(problem, y)

    total, pairs = 0.0, list(itertools.combinations(range(x.shape[0]), 2))
    for pair in pairs:
        i, j = pair
        moves = [(value(problem, x), 0.0)]
        kinks = np.arctan2(x[j], x[i])[:, None] + np.arange(-4, 4) * np.pi / 2
        special = np.concatenate([kinks.ravel(), -kinks.ravel()])
        for reflect in (False, True):
            angles = np.concatenate([np.linspace(-np.pi, np.pi, points), special])
            width = 2 * np.pi / points
            for _ in range(6):
                found = values(pair, angles, reflect)
                best = angles[np.argmin(found)]
                angles = best + np.append(np.linspace(-width, width, 101), 0.0)
                width /= 40
            moves.append((found.min(), 4.0 if reflect else 4.0 - 4.0 * np.cos(best)))
        least = min(moves)[0]
        total += min(square for found, square in moves if found <= least + 1e-9)
    return total / len(pairs)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("penalty", [ob.NoPenalty(), ob.L0(0.3), ob.L1(0.5), ob.NonNegative()])
def test_measure_is_the_mean_squared_distance_of_the_best_moves(penalty, linear):
    rng = np.random.default_rng(8)
    n, r = 6, 2
    C = rng.standard_normal((n, n))
    smooth = ob.Quadratic(C + C.T, linear=rng.standard_normal((n, r)) if linear else None)
    problem = ob.StiefelProblem(smooth, penalty, r)
    x = np.linalg.qr(rng.standard_normal((n, r)))[0]
    if not isinstance(penalty, ob.NoPenalty):
        x = np.zeros((n, r))
        # No pair of rows has all nonzeros of a column, which would tie with the negative column.
        x[[0, 1, 5], 0] = 2 / 3, 2 / 3, 1 / 3
        x[[2, 3, 4], 1] = 2 / 3, 1 / 3, 2 / 3
    measure = ob.certify(problem, x).block2_measure
    assert measure > 0.1
    assert measure == pytest.approx(brute_force_measure(problem, x), rel=1e-6)


def test_block_two_stationary_but_not_critical():
    c = np.sqrt(0.5)
    x = np.array([[0, 1], [c, 0], [c, 0]])
    linear = -5 * x
    linear[1, 1] -= 0.95 * (1 + c)
    linear[2, 1] += 0.95 * (1 + c)
    problem = ob.StiefelProblem(ob.Quadratic(np.zeros((3, 3)), linear=linear), ob.L1(1.0), 2)
    certificate = ob.certify(problem, x)
    assert certificate.block2_gap == certificate.block2_measure == 0.0
    assert certificate.block2_pair is None
    assert certificate.criticality == pytest.approx(0.88, abs=0.01)
    stays = ob.solve(problem, x, solver=ob.OBCD())
    assert (stays.x == x).all()
    moves = ob.solve(problem, x)
    assert moves.objective < stays.objective - 1e-3
    assert moves.feasibility < 1e-14


MIXED = np.array([1, -1, 1, 1, -1])


def mixed_problems(seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((8, MIXED.size))
    smooth = ob.Quadratic(A.T @ A)
    for penalty in (ob.NoPenalty(), ob.L0(0.3), ob.L1(0.5)):
        for columns in (MIXED.size, 3):
            yield ob.JOrthogonalProblem(smooth, MIXED, penalty, columns)


def mixed_moves(x, pair, signs):
    """X with the pair of rows moved by a grid of rotations or boosts and onto its zeros."""
    i, j = pair
    sheets = list(itertools.product((1, -1), repeat=2))
    if signs[i] == signs[j]:
        kinks = np.arctan2(x[j], x[i])[:, None] + np.arange(4) * np.pi / 2
        for t in np.concatenate([np.linspace(0, 2 * np.pi, 181), kinks.ravel()]):
            c, s = np.cos(t), np.sin(t)
            for sign in (1, -1):
                yield np.array([[c, s], [-sign * s, sign * c]]) @ x[[i, j]]
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.concatenate([-x[j] / x[i], -x[i] / x[j]])
        kinks = np.arctanh(ratios[np.abs(ratios) < 1.0])
    for t in np.concatenate([np.linspace(-3, 3, 301), kinks]):
        for first, second in sheets:
            c, s = np.cosh(t), np.sinh(t)
            yield np.array([[first * c, first * s], [second * s, second * c]]) @ x[[i, j]]


@pytest.mark.parametrize(
    "problem",
    list(mixed_problems()),
    ids=lambda p: f"{type(p.penalty).__name__}-{p.n_components}",
)
def test_mixed_gap_is_that_of_a_grid(problem):
    n, r = MIXED.size, problem.n_components
    x = ob.hyperbolic.random_j_orthogonal(MIXED, 0.4, seed=4)[:, :r]
    base = value(problem, x)
    best = {"rows": 0.0, "columns": 0.0}
    for pair in itertools.combinations(range(n), 2):
        for rows in mixed_moves(x, pair, MIXED):
            y = x.copy()
            y[list(pair)] = rows
            best["rows"] = max(best["rows"], base - value(problem, y))
        # Columns of an indefinite Stiefel point have the signs of XᵀJX.
        for rows in mixed_moves(x.T, pair, MIXED) if max(pair) < r else ():
            y = x.copy()
            y[:, list(pair)] = rows.T
            best["columns"] = max(best["columns"], base - value(problem, y))
    certificate = ob.certify(problem, x)
    kind = max(best, key=best.__getitem__)
    assert certificate.block2_kind == kind
    assert best[kind] - 1e-9 <= certificate.block2_gap <= best[kind] + 1e-2 * abs(base)
    assert certificate.n_pairs == n * (n - 1) // 2 + r * (r - 1) // 2
    assert certificate.objective == pytest.approx(base)
    assert certificate.relative_feasibility < 1e-14
    # The feasibility of a point off the manifold is its exact distance.
    off = ob.certify(problem, 1.01 * x)
    assert off.relative_feasibility == pytest.approx(off.feasibility / np.sum((1.01 * x) ** 2))
    exact = np.linalg.norm(1.01**2 * x.T @ (MIXED[:, None] * x) - np.diag(MIXED[:r]))
    if r == n:
        assert off.feasibility == pytest.approx(exact, rel=1e-9)


def test_mixed_first_order_conditions():
    problem = next(mixed_problems(1))
    n = MIXED.size
    x = ob.hyperbolic.random_j_orthogonal(MIXED, 0.4, seed=2)
    G = problem.smooth.C @ x
    jx = MIXED[:, None] * x
    certificate = ob.certify(problem, x)
    residual = np.linalg.norm(G - jx @ G.T @ x * MIXED)
    assert certificate.stationarity == pytest.approx(residual, rel=1e-12)
    # The distance of G from the normal space {JXΛ : Λ = Λᵀ}, by least squares.
    basis = []
    for i, j in itertools.combinations_with_replacement(range(n), 2):
        symmetric = np.zeros((n, n))
        symmetric[i, j] = symmetric[j, i] = 1.0
        basis.append((jx @ symmetric).ravel())
    basis = np.array(basis).T
    rest = G.ravel() - basis @ np.linalg.lstsq(basis, G.ravel(), rcond=None)[0]
    assert certificate.criticality == pytest.approx(np.linalg.norm(rest), rel=1e-9)
    solved = ob.certify(problem, ob.solve(problem, x).x)
    assert solved.criticality <= 1e-6 * np.linalg.norm(G)
    assert solved.stationarity <= 1e-6 * np.linalg.norm(G)
    assert solved.block2_gap <= 1e-9 * solved.objective


def test_a_panic_is_a_runtime_error():
    """One in the core leaves it as an ordinary exception; PyO3's own is none of `Exception`."""
    problem = ob.SparsePCAProblem(np.eye(6), 2, ob.L1(0.1))

    def interrupting(progress):
        raise panic("of its own")

    with pytest.raises(KeyError):
        ob.solve(problem, callback=lambda progress: {}["missing"], max_work=0.01)
    # Another package can have brought its own class of this name.
    for panic in (c for c in BaseException.__subclasses__() if c.__name__ == "PanicException"):
        try:
            ob.solve(problem, callback=interrupting, max_work=0.01)
        except RuntimeError:
            break
        except panic:
            continue
    for solver in (ob.Auto(), ob.OBCD(), ob.Continuation()):
        with pytest.raises(RuntimeError, match=r"error of its own.*please report"):
            ob.solve(problem, callback=interrupting, max_work=0.01, solver=solver)
    free = ob.SmoothFunction(interrupting, 6, 2)
    for how in (lambda p: ob.solve(p), lambda p: ob.certify(p, np.eye(6)[:, :2])):
        with pytest.raises(RuntimeError, match="please report"):
            how(ob.StiefelProblem(free, ob.NoPenalty(), 2))


def test_hyperbolic_eigenvalues_are_proved():
    A = np.random.default_rng(6).standard_normal((9, MIXED.size))
    problem = ob.HyperbolicEigenvalueProblem(A, MIXED)
    optimum = np.abs(np.linalg.eigvals(MIXED[:, None] * problem.matrix)).sum()
    result = ob.solve(problem)
    certificate = ob.certify(problem, result.x)
    assert certificate.optimum == pytest.approx(optimum, rel=1e-12)
    assert certificate.is_optimal
    assert not ob.certify(problem, np.eye(MIXED.size)).is_optimal
    pca = ob.hyperbolic.HyperbolicPCAProblem(A.T @ A, MIXED, 1)
    proved = ob.certify(pca, ob.solve(pca).x)
    assert proved.is_optimal
    assert not ob.certify(pca, ob.hyperbolic.random_j_orthogonal(MIXED, 0.5, seed=1)).is_optimal
    # The problem of the paper has no minimum; the certificate names an unbounded pair.
    unbounded = ob.certify(
        ob.HyperbolicEigenvalueProblem(A, MIXED, sense="max"), np.eye(MIXED.size)
    )
    assert unbounded.block2_gap == np.inf
    assert unbounded.optimum is None
    i, j = unbounded.block2_pair
    assert MIXED[i] != MIXED[j]


@pytest.mark.parametrize("sign", [1, -1])
def test_definite_signatures_certify_as_stiefel(sign):
    stiefel = list(problems())[2]
    n, r = stiefel.smooth.n_rows, stiefel.n_components
    x = np.linalg.qr(np.random.default_rng(2).standard_normal((n, r)))[0]
    same = ob.JOrthogonalProblem(stiefel.smooth, np.full(n, sign), stiefel.penalty, r)
    assert ob.certify(same, x) == ob.certify(stiefel, x)


@pytest.mark.parametrize("sign", [1, -1])
def test_definite_signatures_have_a_lower_bound(sign):
    A = np.random.default_rng(3).standard_normal((9, 5))
    smooth = ob.GramQuadratic(A)
    x = ob.solve(ob.StiefelProblem(smooth, ob.L0(0.1), 2)).x
    bound = ob.certify(
        ob.JOrthogonalProblem(smooth, np.full(5, sign), ob.L0(0.1), 2), x, bound=True
    )
    stiefel = ob.certify(ob.StiefelProblem(smooth, ob.L0(0.1), 2), x, bound=True)
    assert bound.lower_bound == stiefel.lower_bound
    mixed = ob.JOrthogonalProblem(smooth, [1, 1, 1, 1, -1], ob.L0(0.1), 2)
    with pytest.raises(ValueError, match="for a mixed signature"):
        ob.certify(mixed, np.eye(5)[:, :2], bound=True)


@pytest.mark.parametrize("size", [0.0, 1e-30, 1.0])
def test_a_pencil_of_any_size_has_an_optimum(size):
    A = np.full((1, 2), size)
    problem = ob.HyperbolicEigenvalueProblem(A, [1, -1], ridge=size**2)
    certificate = ob.certify(problem, np.eye(2))
    assert certificate.optimum == pytest.approx(2.0 * np.sqrt(3.0) * size**2)
    if size > 0.0:
        indefinite = ob.HyperbolicEigenvalueProblem(A, [1, -1], ridge=-0.5 * size**2)
        assert ob.certify(indefinite, np.eye(2)).optimum is None


@pytest.mark.parametrize("seed", range(5))
def test_a_pencil_of_rank_one_is_semidefinite_to_rounding(seed):
    a = np.random.default_rng(seed).standard_normal((1, 6))
    signs = np.array([1, 1, 1, 1, -1, -1])
    certificate = ob.certify(ob.HyperbolicEigenvalueProblem(a, signs), np.eye(6))
    assert certificate.optimum == pytest.approx(abs(float(np.sum(signs * a**2))))


def test_bad_input_names_the_argument():
    problem = next(problems())
    with pytest.raises(ValueError, match=r"x must have shape \(14, 3\)"):
        ob.certify(problem, np.zeros((3, 3)))
    with pytest.raises(ValueError, match="x must be finite"):
        ob.certify(problem, np.full((14, 3), np.nan))
    with pytest.raises(TypeError, match="problem must be"):
        ob.certify(None, np.zeros((3, 3)))
