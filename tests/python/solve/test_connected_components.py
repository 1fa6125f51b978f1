"""Square X: O(n) has two components, O(p, q) four; a solve does not stay in that of its start."""

import numpy as np
import pytest

import orthobcd as ob

FREE = ob.NoPenalty()


def linear(M):
    return ob.SmoothFunction(lambda X: (-float(np.sum(M * X)), -M), len(M))


ROADS = [
    {},
    {"max_work": 1.0},
    {"solver": ob.OBCD()},
    {"solver": ob.Auto(), "max_time": 0.2},
    {"x0": "identity"},
    {"x0": "reflection"},
]


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.parametrize("road", ROADS, ids=repr)
def test_a_users_function_reaches_the_better_component(n, road):
    for seed in range(6):
        M = np.random.default_rng(seed).standard_normal((n, n))
        best = -np.linalg.svd(M, compute_uv=False).sum()
        options = dict(road)
        if options.get("x0") == "reflection":
            options["x0"] = np.diag([-1.0] + [1.0] * (n - 1))
        result = ob.solve(ob.StiefelProblem(linear(M), FREE, n), seed=seed, n_threads=1, **options)
        assert result.objective <= best + 1e-6 * abs(best)
        history = result.history["objective"]
        assert (np.diff(history) <= 0.0).all()
        assert history[-1] == result.objective


@pytest.mark.parametrize("scaled", [False, True])
def test_functions_with_hessians_and_quadratics(scaled):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n = 4
        M = rng.standard_normal((n, n))
        D = np.diag(rng.random(n) + 0.5) if scaled else np.eye(n)
        C = rng.standard_normal((n, n))
        C = 0.05 * (C + C.T)
        f = ob.Quadratic(C, linear=-M, D=D)

        def by_function(X, C=C, M=M, D=D):
            image = C @ X @ D
            return 0.5 * float(np.sum(X * image)) - float(np.sum(M * X)), image - M

        def product(X, V, C=C, D=D):
            return C @ V @ D

        g = ob.SmoothFunction(by_function, n, hessian_product=product)
        # Exact pairs of a quadratic stay where no reflection of two rows lowers F.
        found = [
            ob.solve(ob.StiefelProblem(smooth, FREE, n), x0, solver=solver, n_threads=1).objective
            for smooth, solver in ((f, None), (g, ob.OBCD()))
            for x0 in ("identity", np.diag([-1.0] + [1.0] * (n - 1)))
        ]
        assert np.ptp(found) <= 1e-7 * abs(found[0])


@pytest.mark.parametrize("penalty", [ob.L1(0.05), ob.L0(0.05), ob.NonNegative()], ids=repr)
def test_penalties(penalty):
    """Monomial matrices: the best signed permutation has either determinant."""
    for seed in range(4):
        n = 4
        rng = np.random.default_rng(seed)
        target = np.eye(n)[rng.permutation(n)]
        M = target + 0.1 * rng.random((n, n))
        found = [
            ob.solve(ob.StiefelProblem(linear(M), penalty, n), x0, n_threads=1, solver=ob.OBCD())
            for x0 in (np.eye(n), np.eye(n)[[1, 0, 2, 3]])
        ]
        assert found[0].objective == pytest.approx(found[1].objective, rel=1e-6)


@pytest.mark.parametrize("signs", [[1, -1], [1, 1, -1], [1, -1, 1, -1]], ids=str)
def test_the_four_components_of_mixed_signs(signs):
    """‖X − T‖² has its minimum 0 at a J-orthogonal T of any component."""
    n = len(signs)
    for seed in range(6):
        T = ob.hyperbolic.random_j_orthogonal(signs, 0.3, seed=seed)
        f = ob.SmoothFunction(lambda X, T=T: (float(np.sum((X - T) ** 2)), 2.0 * (X - T)), n)
        result = ob.solve(ob.JOrthogonalProblem(f, signs), "identity", n_threads=1)
        assert result.objective <= 1e-8
        assert result.feasibility <= 1e-11


def test_limits_hold_for_all_components():
    calls = 0
    M = np.random.default_rng(0).standard_normal((6, 6))

    def f(X):
        nonlocal calls
        calls += 1
        return -float(np.sum(M * X)), -M

    problem = ob.StiefelProblem(ob.SmoothFunction(f, 6), FREE, 6)
    free = ob.solve(problem, "identity", n_threads=1)
    for most in (1, 3, free.n_sweeps - 1):
        result = ob.solve(problem, "identity", n_threads=1, max_sweeps=most)
        assert result.n_sweeps <= most
        assert result.status is ob.Status.MAX_SWEEPS
    assert free.converged
