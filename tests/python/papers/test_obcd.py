"""Claims of the OBCD papers on small instances, that the package is checked by.

Numbers are those of the first version (P1), Corollary 3.2 and Theorem 3.7 those of the second (P2);
docs/theory.md has the table of all claims.
"""

from __future__ import annotations

import itertools
import re
import time

import numpy as np
import pytest

import orthobcd as ob

from ..blocks import block_measure, block_search, norm2, orthogonal
from ..conftest import ROOT

pytestmark = pytest.mark.long


@pytest.mark.timing
def test_appendix_c3_a_step_costs_nr_and_not_n2r():
    """Four times as many rows: a pair that moves costs about four times as much, not sixteen."""

    def cost(n: int) -> float:
        C = np.random.default_rng(0).standard_normal((n, n))
        problem = ob.StiefelProblem(ob.Quadratic(C + C.T), ob.L0(1e-6), 10)
        solver = ob.OBCD(working_set="random", proximal=0.0)
        seconds, moves = [], []
        for limit in (0.2, 1.2):
            begun = time.process_time()
            result = ob.solve(problem, "random", solver=solver, max_time=limit, n_threads=1)
            seconds.append(time.process_time() - begun)
            moves.append(result.n_updates)
            assert result.n_updates > 0.9 * result.n_iterations
        return (seconds[1] - seconds[0]) / (moves[1] - moves[0])

    assert cost(2000) < 9.0 * cost(500)


def instance(seed: int, n: int, r: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """C symmetric, L, X on the Stiefel manifold."""
    rng = np.random.default_rng(seed)
    C = rng.standard_normal((n, n))
    X = orthogonal(rng, n)[:, :r]
    return C + C.T, rng.standard_normal((n, r)), X


def stiefel(C, L, penalty=None) -> ob.StiefelProblem:
    return ob.StiefelProblem(ob.Quadratic(C, linear=L), penalty or ob.NoPenalty(), L.shape[1])


@pytest.mark.parametrize("k", [3, 4, 6, 12])
@pytest.mark.parametrize("curvature", ["exact", "scalar"])
def test_appendix_c4_blocks_of_k_rows_by_a_decomposition(k, curvature):
    """k = n has one block, so that its first step is known: it is the optimum if f is linear."""
    n, r = 12, 3
    for seed in range(5):
        C, _, X = instance(seed, n, r)
        problem = ob.StiefelProblem(ob.Quadratic(C), ob.NoPenalty(), r)
        solver = ob.OBCD(update="jacobi", block_size=k, curvature=curvature, proximal=0.0)
        moved_once = ob.solve(problem, X, solver=solver, max_sweeps=1, seed=seed).x
        assert np.sum(moved_once * (C @ moved_once)) < np.sum(X * (C @ X))
        if k == n:
            values, S, c = np.linalg.eigvalsh(C), X @ X.T, np.trace(C) / n
            scalar = c * S + np.abs(values - c).max() * np.eye(n)
            weight = values[-1] * S if curvature == "exact" else scalar
            U, _, Vt = np.linalg.svd(C @ S - weight)
            step = -U @ Vt @ X
            # Sweeps over the pairs of the block follow the step with exact curvature.
            assert np.sum(moved_once * (C @ moved_once)) <= np.sum(step * (C @ step)) + 1e-9
            if curvature == "scalar":
                np.testing.assert_allclose(moved_once, step, atol=1e-8)
        L = np.random.default_rng(seed).standard_normal((n, n))
        linear = ob.StiefelProblem(ob.Quadratic(np.zeros((n, n)), L), ob.NoPenalty(), n)
        result = ob.solve(linear, "identity", solver=solver, seed=seed)
        optimum = -np.linalg.svd(L)[1].sum()
        assert result.converged
        assert (
            optimum * (1 + 1e-12) <= result.objective <= (1.0 if k == n else 0.8) * optimum + 1e-8
        )


def coupled(n: int, rho: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """f(X) = −⟨A, X⟩ on the orthogonal matrices, A_ij = −ρ but for ones on the diagonal; X = I.

    I is the best in the block B iff A_BB is positive semidefinite, which has the eigenvalues 1 + ρ
    and 1 − (k − 1)ρ: X = I is a block-k stationary point iff ρ ≤ 1/(k − 1).
    """
    A = np.full((n, n), -rho) + (1.0 + rho) * np.eye(n)
    return np.zeros((n, n)), -A, np.eye(n)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_theorem_3_7_every_inclusion_is_strict(k):
    """(c), (d): block-k stationary and not block-(k + 1) stationary, from both sides of 1/k."""
    n, alpha = 5, 1e-5
    for rho, larger in ((1.01 / k, False), (0.99 / k, True)):
        C, L, X = coupled(n, rho)

        def best(size, C=C, L=L, X=X):
            B = list(range(size))
            P = L[B][:, B] @ X[B][:, B].T - alpha * np.eye(size)
            return -np.linalg.svd(P)[1].sum() - np.trace(P)

        assert abs(best(k)) < 1e-12
        assert (abs(best(k + 1)) < 1e-12) == larger
        certificate = ob.certify(stiefel(C, L), X)
        assert certificate.criticality < 1e-12
        assert certificate.block2_gap < 1e-12
        if k < 4:
            gain, V = block_search(C, L, X, list(range(k)), alpha)
            assert gain == 0.0
            assert norm2(V - np.eye(k)) == 0.0
        if k == 2:
            found = block_search(C, L, X, [0, 2, 4], alpha)[0]
            assert found == pytest.approx(best(3), abs=1e-7)
            assert (block_measure(C, L, X, 3, alpha) == 0.0) == larger
            assert block_measure(C, L, X, 2, alpha) == 0.0
    # (b) in reverse: a block-2 stationary point that is far from optimal; larger blocks leave it.
    C, L, X = coupled(n, 1.01 / 2)
    optimum = -np.linalg.svd(L)[1].sum()
    stays = ob.solve(stiefel(C, L), X, solver=ob.OBCD())
    assert (stays.x == X).all()
    assert stays.objective > optimum + 0.1
    leaves = ob.solve(stiefel(C, L), X, solver=ob.OBCD(working_set="cyclic", block_size=5))
    assert leaves.objective == pytest.approx(optimum, rel=1e-9)


@pytest.mark.parametrize("k", [3, 4])
def test_theorem_3_7_cycles_of_larger_blocks_leave_block_2_stationary_points(k):
    """All C(n, k) blocks: a point that is not block-k stationary is left for one that is."""
    n, solver = 7, ob.OBCD(working_set="cyclic", block_size=k)
    C, L, X = coupled(n, 0.99 / (k - 1))
    rests = ob.solve(stiefel(C, L), X, solver=solver)
    assert (rests.x == X).all()
    assert rests.converged
    assert rests.n_sweeps == 1
    C, L, X = coupled(n, 1.01 / (k - 1))
    result = ob.solve(stiefel(C, L), X, solver=solver)
    assert result.converged
    assert result.feasibility < 1e-13
    assert result.objective < result.history["objective"][0] - 1e-3
    assert (np.diff(result.history["objective"]) <= 0.0).all()
    for B in itertools.combinations(range(n), k):
        P = L[list(B)] @ result.x[list(B)].T
        assert -np.linalg.svd(P)[1].sum() - np.trace(P) > -1e-9
    # Only the last block can move; a solve that ends before a whole cycle would miss this block.
    A = np.eye(n)
    A[-k:, -k:] = coupled(k, 1.01 / (k - 1))[1] * -1.0
    hidden = ob.solve(stiefel(C, -A), X, solver=solver)
    assert hidden.objective < hidden.history["objective"][0] - 1e-3


def test_theorem_3_7_a_in_reverse_critical_and_not_block_2_stationary():
    C, X = np.diag([1.0, 2.0, 3.0]), np.eye(3)[:, 1:]
    certificate = ob.certify(stiefel(C, np.zeros((3, 2))), X)
    assert certificate.criticality == 0.0
    assert certificate.block2_gap == pytest.approx(1.0)
    assert block_search(C, np.zeros((3, 2)), X, [0, 2], 1e-5)[0] == pytest.approx(-1.0, abs=1e-4)


def test_theorem_3_7_a_holds_without_a_penalty():
    for seed in range(10):
        C, L, X = instance(seed, 7, 3)
        problem = stiefel(C, L)
        before = ob.certify(problem, X).criticality
        result = ob.solve(problem, X, solver=ob.OBCD(proximal=0.0), tol=0.0, max_sweeps=3000)
        certificate = ob.certify(problem, result.x)
        assert certificate.block2_gap <= 1e-13 * certificate.magnitude
        assert certificate.criticality < 1e-5 * before


@pytest.mark.parametrize("kind", ["smooth", "l0", "l1"])
def test_theorem_3_7_b_global_optima_are_block_stationary(kind):
    rng = np.random.default_rng(7)
    A = rng.standard_normal((8, 5))
    penalty = {"smooth": ob.NoPenalty(), "l0": ob.L0(60.0), "l1": ob.L1(60.0)}[kind]
    problem = ob.SparsePCAProblem(A, 2, penalty)
    X = ob.solve(problem).x
    certificate = ob.certify(problem, X)
    assert certificate.is_optimal
    assert certificate.block2_gap <= 1e-12 * certificate.magnitude
    if kind != "l0":
        lam = 60.0 if kind == "l1" else 0.0
        for k in (2, 3):
            for B in itertools.combinations(range(5), k):
                gain, _ = block_search(-A.T @ A, np.zeros((5, 2)), X, list(B), 1e-5, lam)
                assert gain >= -1e-10 * certificate.magnitude


def test_theorem_3_7_a_is_false_for_l0():
    """n = 4, r = 2: f falls at the rate 3 while the zeros stay, which takes four rows at once."""
    c = np.sqrt(0.5)
    X = np.array([[c, 0.0], [0.0, c], [0.5, 0.5], [0.5, -0.5]])
    kept = X != 0.0
    # Tangent, with the zeros of X, and orthogonal to the turn of the last two rows.
    T = np.where(kept, np.array([[c, 0.0], [0.0, 2 * c], [-0.5, -1.0], [-0.5, 1.0]]), 0.0)
    assert norm2(X.T @ T + T.T @ X) < 1e-28
    assert T[2] @ X[3] - T[3] @ X[2] == pytest.approx(0.0, abs=1e-15)
    T *= 3.0 / np.linalg.norm(T)
    problem = stiefel(np.zeros((4, 4)), -40.0 * X - T, ob.L0(1.0))
    certificate = ob.certify(problem, X)
    assert certificate.block2_gap == 0.0
    assert certificate.criticality == pytest.approx(3.0)
    stays = ob.solve(problem, X, solver=ob.OBCD())
    assert (stays.x == X).all()
    moves = ob.solve(problem, X)
    assert moves.objective < stays.objective - 0.1
    assert moves.n_nonzero == stays.n_nonzero == np.count_nonzero(kept)


def test_the_page_names_tests_that_are_there():
    page = (ROOT / "docs/theory.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.(?:rs|py))::(\w+)`", page))
    assert len(named) > 40
    for file, name in named:
        (path,) = [ROOT / file] if "/" in file else (ROOT / "tests").rglob(file)
        text = path.read_text(encoding="utf-8")
        assert re.search(rf"^(?:def|fn) {name}\(", text, re.MULTILINE), f"{file}::{name}"
    for other in ("theory.md", "papers.md"):
        rows = (ROOT / "docs" / other).read_text(encoding="utf-8").splitlines()
        cells = [re.split(r"(?<!\\)\|", row)[1:-1] for row in rows if row.startswith("|")]
        assert len(cells) > 50
        assert all(cell.strip() for row in cells for cell in row)
