"""The competitors reach known optima, return valid results, and never stay at their start."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy")

from orthobcd import (
    L0,
    L1,
    NonNegative,
    NoPenalty,
    Quadratic,
    SparsePCAProblem,
    StiefelProblem,
)
from orthobcd_bench.baselines import (
    HYPERBOLIC_METHODS,
    METHODS,
    TraceProblem,
    reference_start,
)
from orthobcd_bench.baselines.geometry import (
    multiplier_on_support,
    orthonormality_error,
    project_on_support,
    random_stiefel,
)
from orthobcd_bench.baselines.hyperbolic import assemble, factorise, repair
from orthobcd_bench.baselines.manpg import INNER_TOLERANCE, manpg, tangent_step
from orthobcd_bench.baselines.oracle import oracle_of
from orthobcd_bench.baselines.scoring import best_feasible, round_to_partition
from orthobcd_bench.baselines.smoothed import smoothed_objective

pytestmark = pytest.mark.long

N, R = 30, 4


def _data(seed: int = 3, m: int = 50, n: int = N) -> np.ndarray:
    """A matrix whose columns have well separated norms."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, n)) * np.linspace(1.0, 3.0, n)


def _start(seed: int = 5) -> np.ndarray:
    return random_stiefel(N, R, np.random.default_rng(seed))


def _names(penalty: object) -> list[str]:
    return [name for name, method in METHODS.items() if isinstance(penalty, method.penalties)]


def _cases(*penalties: object) -> list[object]:
    """Every method with every penalty that it can treat."""
    return [
        pytest.param(name, penalty, id=f"{name}-{type(penalty).__name__}")
        for penalty in penalties
        for name in _names(penalty)
    ]


def _run(name: str, problem: object, seconds: float = 0.3, x0: np.ndarray | None = None):
    method = METHODS[name]
    if method.package is not None:
        pytest.importorskip(method.package)
    return method.solve(problem, x0, max_time=seconds, seed=0)


def _check(result, problem) -> None:
    assert result.feasibility < 1e-11
    assert orthonormality_error(result.x) < 1e-11
    oracle = oracle_of(problem)
    assert result.objective == pytest.approx(oracle.objective(result.x), rel=1e-12)
    assert result.objective == pytest.approx(result.smooth_value + result.penalty_value)
    history = result.history
    curves = {"surrogate"} if isinstance(problem.penalty, NonNegative) else set()
    assert set(history) == {"seconds", "objective", "feasibility", "n_iterations", *curves}
    assert len({len(column) for column in history.values()}) == 1
    assert np.all(np.diff(history["objective"]) <= 0.0)
    assert np.all(np.diff(history["seconds"]) >= 0.0)
    assert history["objective"][-1] == pytest.approx(result.objective, rel=1e-12)
    assert "objective_at_projection" in result.extra


@pytest.mark.timing
@pytest.mark.parametrize("name", _names(NoPenalty()))
def test_smooth_optimum(name: str) -> None:
    """Without a penalty every method finds the leading eigenspace."""
    data = _data()
    problem = SparsePCAProblem(data, R, NoPenalty())
    optimum = -0.5 * np.sort(np.linalg.eigvalsh(data.T @ data))[-R:].sum()
    result = _run(name, problem, x0=None if METHODS[name].own_start else _start())
    _check(result, problem)
    loose = {"rsubgrad": 1e-3, "rssm": 1e-3}
    assert result.objective <= optimum * (1.0 - loose.get(name, 1e-6))
    assert result.objective >= optimum * (1.0 + 1e-9)


@pytest.mark.timing
@pytest.mark.parametrize(("name", "penalty"), _cases(L0(1.0), L1(1.0)))
def test_large_weight_optimum(name: str, penalty: L0 | L1) -> None:
    """With a large λ the optimum picks the r largest diagonal entries."""
    data = _data()
    diagonal = np.sort(np.einsum("ij,ij->j", data, data))[::-1]
    lam = 2.0 * diagonal[0]
    problem = SparsePCAProblem(data, R, type(penalty)(lam))
    optimum = lam * R - 0.5 * diagonal[:R].sum()
    result = _run(name, problem)
    _check(result, problem)
    assert result.objective >= optimum - 1e-9 * abs(optimum)
    # every choice of r rows is a local minimum; these methods end at the one near their start
    if name in {"ladmm", "radmm", "manpg", "rsubgrad", "rssm"}:
        rows, columns = np.nonzero(result.x)
        assert sorted(columns) == list(range(R))
        chosen = np.einsum("ij,ij->j", data, data)[rows].sum()
        assert result.objective == pytest.approx(lam * R - 0.5 * chosen, rel=1e-9)
        assert result.objective < 0.5 * result.history["objective"][0]
    else:
        assert result.objective == pytest.approx(optimum, rel=1e-9)


@pytest.mark.timing
@pytest.mark.parametrize(("name", "penalty"), _cases(L0(3.0), L1(5.0), NonNegative()))
def test_leaves_its_start(name: str, penalty: object) -> None:
    """On a moderate problem every method improves on a random start and ends exactly feasible."""
    problem = (
        StiefelProblem(Quadratic(-_data().T @ _data()), penalty, R)
        if name != "sklearn"
        else SparsePCAProblem(_data(), R, penalty)
    )
    x0 = round_to_partition(oracle_of(problem), np.abs(_start())).x
    result = _run(name, problem, seconds=0.2, x0=x0)
    _check(result, problem)
    assert result.objective < result.history["objective"][0] - 1.0
    if isinstance(penalty, NonNegative):
        assert result.x.min() >= 0.0
        assert np.count_nonzero(result.x, axis=1).max() <= 1


@pytest.mark.timing
def test_procrustes_with_linear_term() -> None:
    """Linear terms and indefinite C reach the oracle: min ½‖X − A‖² has the polar factor."""
    target = np.random.default_rng(0).standard_normal((N, R))
    problem = StiefelProblem(Quadratic(np.zeros((N, N)), linear=-target), NoPenalty(), R)
    optimum = -np.linalg.norm(target, "nuc")
    for name in ("smoothed", "manpg"):
        x0 = _start()
        result = METHODS[name].solve(problem, x0, max_time=0.3, seed=0)
        assert result.objective == pytest.approx(optimum, rel=1e-9)


def test_manpg_inner_solver() -> None:
    """The tangent problem is solved to 1e-8: tangency, and optimality of the proximal step."""
    problem = SparsePCAProblem(_data(), R, L1(5.0))
    oracle = oracle_of(problem)
    x = _start()
    gradient = oracle.gradient(x)
    step = 1.0 / oracle.lipschitz
    solved = tangent_step(oracle, x, gradient, step, np.zeros((R, R)))
    v = solved.direction
    assert solved.residual <= INNER_TOLERANCE
    assert np.linalg.norm(x.T @ v + v.T @ x) <= INNER_TOLERANCE
    # stationarity: ∇f + V/t − 2XΛ + λ·∂|X + V| contains 0
    balance = gradient + v / step - 2.0 * x @ solved.multiplier
    point = x + v
    inside = point == 0.0
    assert np.abs(balance[inside]).max() <= 5.0 + 1e-9
    np.testing.assert_allclose(balance[~inside], -5.0 * np.sign(point[~inside]), atol=1e-8)
    result = manpg(problem, x, max_time=0.5, seed=0)
    assert result.extra["inner_residual"] <= INNER_TOLERANCE


@pytest.mark.timing
@pytest.mark.parametrize("ratio", [0.001, 0.1, 1.0, 1e4])
def test_manpg_inner_solver_from_dense_points(ratio: float) -> None:
    """Also where λt kills nearly every entry of a dense X, and Newton steps overshoot."""
    data = np.random.default_rng(0).standard_normal((60, 80))
    lam = ratio * np.linalg.norm(data, 2) ** 2
    problem = SparsePCAProblem(data, 6, L1(lam))
    x0 = random_stiefel(80, 6, np.random.default_rng(1))
    result = manpg(problem, x0, max_time=3.0, seed=0)
    assert result.extra["inner_residual"] <= INNER_TOLERANCE
    assert result.n_iterations >= 3
    assert result.objective < result.history["objective"][0]


@pytest.mark.timing
def test_manpg_reaches_its_published_level() -> None:
    """randn 500 × 1000, ℓ1, λ = 1, r = 10: the OBCD paper prints −1.3e4 for ManPG."""
    data = np.random.default_rng(0).standard_normal((500, 1000))
    result = manpg(SparsePCAProblem(data, 10, L1(1.0)), max_time=2.0, seed=0)
    assert result.objective <= -0.99 * 1.3e4
    assert result.extra["inner_residual"] <= INNER_TOLERANCE


@pytest.mark.timing
def test_ladmm_reaches_its_published_level() -> None:
    """randn 500 × 1000, ℓ0, λ = 1, r = 20: the OBCD paper prints −1.7e4 for LADMM after 30 s."""
    data = np.random.default_rng(0).standard_normal((500, 1000))
    problem = SparsePCAProblem(data, 20, L0(1.0))
    for seconds in (6.0, 30.0):  # the first is enough on a machine that does nothing else
        result = METHODS["ladmm"].solve(problem, max_time=seconds, seed=0)
        if result.objective <= -17000.0:
            break
    assert result.objective <= -17000.0


@pytest.mark.timing
@pytest.mark.parametrize("name", ["ladmm", "spm", "soc-admm", "radmm"])
def test_leaves_a_block_of_unit_vectors(name: str) -> None:
    """From unit vectors inside one diagonal block of C the other, better block is found."""
    rng = np.random.default_rng(0)
    data = np.zeros((60, 40))
    data[:20, :10] = rng.standard_normal((20, 10))
    data[20:, 10:] = 3.0 * rng.standard_normal((40, 30))
    problem = SparsePCAProblem(data, R, L0(2.0))
    result = METHODS[name].solve(problem, np.eye(40, R), max_time=0.4, seed=0)
    inside = -0.5 * np.linalg.norm(data[:20], 2) ** 2 * R
    assert result.objective < 2.0 * inside


def test_bad_start_is_named() -> None:
    problem = SparsePCAProblem(_data(), R, L0(1.0))
    with pytest.raises(ValueError, match="x0"):
        METHODS["ladmm"].solve(problem, np.ones((N, R)), max_time=0.1, seed=0)


@pytest.mark.parametrize("penalty", [L0(2.0), L1(2.0)], ids=["l0", "l1"])
def test_smoothed_gradient_is_the_gradient(penalty: L0 | L1) -> None:
    oracle = oracle_of(SparsePCAProblem(_data(), R, penalty))
    function = smoothed_objective(oracle, 0.1)
    x, direction = _start(1), _start(2)
    h = 1e-6
    slope = (function(x + h * direction)[0] - function(x - h * direction)[0]) / (2.0 * h)
    assert slope == pytest.approx(np.vdot(function(x)[1], direction), rel=1e-6)


def test_support_projection() -> None:
    rng = np.random.default_rng(0)
    x = _start()
    mask = (rng.random((N, R)) < 0.6).astype(float)
    point = project_on_support(x, mask)
    assert point is not None
    assert orthonormality_error(point) < 1e-12
    assert np.all(point[mask == 0.0] == 0.0)
    # a point of the set is not changed
    np.testing.assert_allclose(project_on_support(point, mask), point, atol=1e-12)
    # two columns on the same single row cannot be orthogonal
    mask = np.zeros((N, R))
    mask[0, :2] = 1.0
    mask[1, 2], mask[2, 3] = 1.0, 1.0
    assert project_on_support(x, mask) is None
    # rows without support do not matter
    mask = (rng.random((N, R)) < 0.6).astype(float)
    mask[::3] = 0.0
    point = project_on_support(x, mask)
    assert point is not None
    assert orthonormality_error(point) < 1e-12
    assert np.all(point[mask == 0.0] == 0.0)


def test_columns_that_share_rows_of_small_entries_need_a_preconditioner() -> None:
    r, k = 40, np.arange(40)
    x, residual = np.zeros((2 * r, r)), np.eye(r)
    x[k, k] = 1.0
    # columns k and k + 1 share one row, their entries there from 1e-4 to 1
    x[r + k, k] = x[r + k, (k + 1) % r] = 10.0 ** np.random.default_rng(0).uniform(-4.0, 0.0, r)
    residual[k, (k + 1) % r] = residual[(k + 1) % r, k] = 1.0
    mask = (x != 0.0).astype(float)

    def left(preconditioned: bool) -> float:
        multiplier = multiplier_on_support(
            x, mask, residual, max_iterations=60, preconditioned=preconditioned
        )
        change = x.T @ (mask * (x @ multiplier))
        return float(np.linalg.norm(change + change.T - residual) / np.linalg.norm(residual))

    assert left(True) < 1e-5
    assert left(False) > 0.1


def test_scoring_finds_a_hidden_sparse_point() -> None:
    """A sparse feasible point plus noise is recovered, and ranked below its dense projection."""
    problem = SparsePCAProblem(_data(), R, L0(1.0))
    oracle = oracle_of(problem)
    rng = np.random.default_rng(0)
    hidden = np.zeros((N, R))
    for k in range(R):
        hidden[k::R][:5, k] = rng.standard_normal(5)
    hidden /= np.linalg.norm(hidden, axis=0)
    noisy = hidden + 1e-5 * rng.standard_normal(hidden.shape)
    point = best_feasible(oracle, noisy)
    assert np.count_nonzero(point.x) <= np.count_nonzero(hidden)
    assert point.objective <= oracle.objective(hidden) + 1e-2
    assert orthonormality_error(point.x) < 1e-12


def test_rounding_fills_empty_columns() -> None:
    problem = StiefelProblem(Quadratic(-_data().T @ _data()), NonNegative(), R)
    x = np.zeros((N, R))
    x[:, 0] = 1.0 / np.sqrt(N)
    point = round_to_partition(oracle_of(problem), x).x
    assert orthonormality_error(point) < 1e-12
    assert point.min() >= 0.0


# --- J-orthogonal -------------------------------------------------------------------------


def _trace_problem(m: int = 60, n: int = 16, p: int = 9) -> TraceProblem:
    data = np.random.default_rng(0).standard_normal((m, n))
    signature = np.r_[np.ones(p), -np.ones(n - p)]
    return TraceProblem(data.T @ data, signature)


def test_reference_start_and_infimum() -> None:
    """The recipe of the reference values: randn 100 × 100, p = 50."""
    data = np.random.default_rng(0).standard_normal((100, 100))
    problem = TraceProblem(data.T @ data, np.r_[np.ones(50), -np.ones(50)])
    assert problem.value(reference_start(problem.signature)) == pytest.approx(
        17645.7934005, abs=1e-6
    )
    assert problem.infimum() == pytest.approx(7400.87756305, abs=1e-6)


@pytest.mark.timing
@pytest.mark.parametrize(
    ("name", "gap"),
    [
        ("cayley-right", 1e-11),
        ("cayley-left", 1e-8),
        ("umcm", 1e-5),
        ("j-admm", 1e-3),
        ("csdm", 2e-2),
        ("csdm-givens", 1.0),
    ],
)
def test_hyperbolic_methods(name: str, gap: float) -> None:
    problem = _trace_problem()
    x0 = reference_start(problem.signature)
    result = HYPERBOLIC_METHODS[name](problem, x0, max_time=0.6, seed=0)
    optimum = problem.infimum()
    assert problem.infeasibility(result.x) < 1e-9
    assert result.objective < 0.9 * problem.value(x0)
    assert -1e-10 <= (result.objective - optimum) / optimum <= gap
    assert np.all(np.diff(result.history["objective"]) <= 0.0)


@pytest.mark.timing
def test_unsorted_signature() -> None:
    problem = _trace_problem()
    order = np.random.default_rng(1).permutation(16)
    shuffled = TraceProblem(problem.matrix[np.ix_(order, order)], problem.signature[order])
    assert shuffled.infimum() == pytest.approx(problem.infimum(), rel=1e-10)
    x = reference_start(shuffled.signature)
    assert shuffled.infeasibility(x) < 1e-12
    np.testing.assert_allclose(assemble(factorise(x, shuffled.signature)), x, atol=1e-12)
    result = HYPERBOLIC_METHODS["csdm"](shuffled, x, max_time=0.3, seed=0)
    assert result.objective < 0.9 * shuffled.value(x)


def test_repair() -> None:
    signature = np.r_[np.ones(5), -np.ones(4)]
    x = reference_start(signature)
    noisy = x + 1e-3 * np.random.default_rng(0).standard_normal(x.shape)
    mended = repair(noisy, signature)
    assert mended is not None
    assert TraceProblem(np.eye(9), signature).infeasibility(mended) < 1e-11
    assert repair(np.zeros((9, 9)), signature) is None
