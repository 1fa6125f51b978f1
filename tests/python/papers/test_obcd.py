"""Claims of the OBCD papers on small instances, in plain NumPy and with the package.

Numbers are those of the first version (P1), Corollary 3.2 and Theorem 3.7 those of the second (P2);
docs/theory.md has the table of all claims.
"""

from __future__ import annotations

import itertools
import re
import time
from math import comb

import numpy as np
import pytest

import orthobcd as ob

from .. import reference
from ..blocks import block_measure, block_search, changes, moved, norm2, objective, orthogonal
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


def block_factors(D: np.ndarray, k: int) -> list[tuple[list[int], np.ndarray]]:
    """Blocks B and orthogonal V, every B used once, whose product in this order is D.

    Dᵀ is reduced column by column: the blocks with smallest row j leave a multiple of e_j in column
    j, by QR, and the block of the last k rows takes what remains.
    """
    n = len(D)
    R, factors = D.T.copy(), []
    for B in map(list, itertools.combinations(range(n), k)):
        if B[0] == n - k:
            V = R[np.ix_(B, B)].T
        else:
            Q, T = np.linalg.qr(R[B, B[0]][:, None], mode="complete")
            V = Q.T * np.copysign(1.0, T[0, 0])
        R[B] = V @ R[B]
        factors.append((B, V))
    return factors


@pytest.mark.parametrize(("n", "k"), [(4, 2), (5, 2), (5, 3), (6, 3), (6, 4), (5, 5)])
@pytest.mark.parametrize("sign", [1, -1])
def test_corollary_3_2_blocks_reach_every_orthogonal_matrix(n, k, sign):
    rng = np.random.default_rng(10 * n + k)
    for D in (orthogonal(rng, n), np.eye(n)[rng.permutation(n)], -np.eye(n)):
        if np.sign(np.linalg.det(D)) != sign:
            D = D * np.r_[-1.0, np.ones(n - 1)]
        factors = block_factors(D, k)
        assert len({tuple(B) for B, _ in factors}) == len(factors) == comb(n, k)
        X0, product = orthogonal(rng, n)[:, :2], np.eye(n)
        X = X0
        for B, V in factors:
            assert norm2(V.T @ V - np.eye(k)) < 1e-24
            product, X = moved(product, B, V), moved(X, B, V)
        assert norm2(product - D) < 1e-24
        assert norm2(X - D @ X0) < 1e-24


def test_lemma_a3_the_cayley_retraction_is_confined_to_rotations():
    rng = np.random.default_rng(0)
    for n in (2, 3, 6):
        for tau in (-3.0, 0.1, 50.0):
            A = rng.standard_normal((n, n))
            A = A - A.T
            Q = np.linalg.solve(np.eye(n) + tau / 2 * A, np.eye(n) - tau / 2 * A)
            assert norm2(Q.T @ Q - np.eye(n)) < 1e-22
            assert np.linalg.det(Q) == pytest.approx(1.0)
    # The minimum of Example A of appendix C.1 is a reflection. Descent by Cayley steps from a
    # rotation ends above the minimum, one pair solve does not.
    A = np.array([[1.0, 0.0], [-1.0, -1.0]])
    X = np.eye(2)
    for _ in range(300):
        W = -2.0 * (A @ X.T - X @ A.T)
        X = np.linalg.solve(np.eye(2) + 0.05 * W, np.eye(2) - 0.05 * W) @ X
    assert norm2(A @ X.T - X @ A.T) < 1e-20
    result = ob.solve(stiefel(np.zeros((2, 2)), -2.0 * A), np.eye(2), solver=ob.OBCD())
    reached = norm2(A) + 2.0 + result.objective
    assert reached == pytest.approx(norm2(A) + 2.0 - 2.0 * np.linalg.svd(A)[1].sum())
    assert reached < norm2(X - A) - 1.0


def test_lemmas_a1_and_a4_sums_over_all_blocks():
    rng = np.random.default_rng(1)
    n = 6
    W = rng.standard_normal((n, n))
    diagonal = norm2(np.diag(W))
    for k in range(2, n + 1):
        blocks = itertools.combinations(range(n), k)
        total = sum(norm2(W[np.ix_(B, B)]) for B in blocks)
        expected = comb(n - 2, k - 2) * (norm2(W) - diagonal) + k / n * comb(n, k) * diagonal
        assert total == pytest.approx(expected, rel=1e-13)
    # Lemma A.1: all coefficients are positive for k > 1, so W = 0 if all blocks vanish.
    assert min(min(comb(n - 2, k - 2), k / n * comb(n, k)) for k in range(2, n + 1)) > 0
    assert all((W - np.diag(np.diag(W)))[i, i] == 0 for i in range(n))


def test_lemmas_a2_a5_a8_a9():
    rng = np.random.default_rng(2)
    for _ in range(200):
        A, C = rng.standard_normal((2, 4, 4))
        skew = np.linalg.norm(A - A.T)
        assert skew <= 2 * np.linalg.norm(A - C) + np.linalg.norm(C - C.T)
        # The factor 2 is needed: with the symmetric part of A it is an equation.
        symmetric = 0.5 * (A + A.T)
        assert skew == pytest.approx(2 * np.linalg.norm(A - symmetric))
        # An orthogonal matrix has a diagonal triangular factor of ±1.
        R = np.linalg.qr(orthogonal(rng, 5))[1]
        assert norm2(R - np.diag(np.sign(np.diag(R)))) < 1e-24
        a, b, theta = rng.standard_normal(3)
        t = np.tan(theta)
        pair = np.sign(np.cos(theta)) * np.array([1.0, t]) / np.hypot(1.0, t)
        assert pair == pytest.approx([np.cos(theta), np.sin(theta)], abs=1e-12)
        at = np.arctan2(-b, -a)
        least = -np.hypot(a, b)
        assert a * np.cos(at) + b * np.sin(at) == pytest.approx(least)
        assert a * np.cos(theta) + b * np.sin(theta) >= least - 1e-14


def test_lemmas_a6_and_a7_projection_and_residual():
    rng = np.random.default_rng(3)
    n, r = 6, 3
    for _ in range(20):
        X, G = orthogonal(rng, n)[:, :r], rng.standard_normal((n, r))
        projected = G - 0.5 * X @ (X.T @ G + G.T @ X)
        # The tangent space is the kernel of Y ↦ XᵀY + YᵀX; the nearest point by least squares.
        rows = []
        for i, j in itertools.combinations_with_replacement(range(r), 2):
            E = np.zeros((r, r))
            E[i, j] += 1.0
            E[j, i] += 1.0
            rows.append((X @ E).ravel())
        normal = np.array(rows).T
        nearest = G.ravel() - normal @ np.linalg.lstsq(normal, G.ravel(), rcond=None)[0]
        assert norm2(projected.ravel() - nearest) < 1e-24
        distance, residual = np.linalg.norm(projected), np.linalg.norm(G - X @ G.T @ X)
        assert 0.5 * residual - 1e-12 <= distance <= residual + 1e-12


def test_lemmas_a10_and_a11_sequences():
    rng = np.random.default_rng(4)
    for _ in range(200):
        # e and p fall as slowly as the assumption allows, from any start.
        p, e = np.sort(rng.random(30))[::-1], [rng.random()]
        for drop in p[:-1] - p[1:]:
            e.append(np.sqrt(e[-1] * drop))
        for i in range(1, 29):
            assert sum(e[i + 1 :]) <= e[i] + 2.0 * p[i] + 1e-14
    for tau in (0.5, 1.0, 2.0):
        d, values = 1.0, []
        for _ in range(5_000):
            low, high = 0.0, d
            for _ in range(50):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if middle ** (tau + 1) < d - middle else (low, middle)
            d = low
            values.append(d)
        slope = np.log(values[-1] / values[499]) / np.log(10.0)
        assert slope == pytest.approx(-1.0 / tau, rel=0.03)


def test_lemmas_c1_and_c2_the_curvature_of_a_block():
    rng = np.random.default_rng(5)
    n, r = 5, 3
    for k in (2, 3):
        X = orthogonal(rng, n)[:, :r]
        B = sorted(rng.choice(n, k, replace=False).tolist())
        U, Z = np.eye(n)[:, B], X[B]
        H1, H2 = rng.standard_normal((r, r)), rng.standard_normal((n, n))
        H1, H2 = H1 @ H1.T, H2 @ H2.T
        lift = np.kron(Z.T, U)
        Q = lift.T @ np.kron(H1, H2) @ lift
        assert np.allclose(Q, np.kron(Z @ H1 @ Z.T, H2[np.ix_(B, B)]), atol=1e-12)
        assert np.allclose(2.5 * lift.T @ lift, np.kron(2.5 * Z @ Z.T, np.eye(k)), atol=1e-12)
        sigma = np.linalg.norm(Z @ H1 @ Z.T, 2) * np.linalg.norm(H2[np.ix_(B, B)], 2)
        assert np.linalg.eigvalsh(Q)[-1] == pytest.approx(sigma)
        # The footnote of P2 swaps the factors: vec stacks columns, so H = D ⊗ C.
        V = orthogonal(rng, k)
        delta = moved(X, B, V) - X
        E = (V - np.eye(k)).ravel(order="F")
        assert np.trace(delta.T @ H2 @ delta @ H1) == pytest.approx(E @ Q @ E)
        wrong = lift.T @ np.kron(H2, H1) @ lift
        assert abs(E @ wrong @ E - E @ Q @ E) > 1e-3 * abs(E @ Q @ E)


def test_lemma_2_3_and_2_5_the_subproblem_without_a_penalty():
    rng = np.random.default_rng(6)
    for k in (2, 3, 4):
        for _ in range(50):
            P = rng.standard_normal((k, k))
            U, _, Vt = np.linalg.svd(P)
            least = np.sum(-U @ Vt * P)
            trials = np.array([orthogonal(rng, k) for _ in range(50)])
            assert (np.einsum("mij,ij->m", trials, P) >= least - 1e-12).all()
    for _ in range(100):
        V = orthogonal(rng, 2)
        angle = np.arctan2(V[0, 1], V[1, 1])
        assert norm2(V - reference.branch(angle, bool(np.linalg.det(V) < 0))) < 1e-24


def jacobi(C, X, weights) -> np.ndarray:
    """X after all pairs (0, 1), (2, 3), … have moved at once, Q = ςI."""
    G = C @ X
    for i, weight in enumerate(weights):
        B = [2 * i, 2 * i + 1]
        U, _, Vt = np.linalg.svd(G[B] @ X[B].T - weight * np.eye(2))
        X = moved(X, B, -U @ Vt)
    return X


def test_appendix_c4_jacobi_needs_the_global_curvature():
    risen = {"block": 0, "global": 0, "printed": 0}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, r = 8, 2
        v = rng.standard_normal((n, 1))
        # The blocks of a matrix of rank one have the norms of the parts of v, squared.
        C, X = v @ v.T, orthogonal(rng, n)[:, :r]
        Z = X.reshape(n // 2, 2, r)
        size = np.linalg.norm(Z, 2, axis=(1, 2)) ** 2
        block = size * np.sum(v.reshape(n // 2, 2) ** 2, axis=1)
        whole = [np.linalg.norm(C, 2) * size.max()] * 4
        # Eq. 29 as printed leaves the weight out of P.
        for name, weights in (("block", block), ("global", whole), ("printed", [0.0] * 4)):
            Y = jacobi(C, X, weights)
            risen[name] += np.sum(Y * (C @ Y)) > np.sum(X * (C @ X)) * (1 + 1e-12)
    assert risen["global"] == 0
    assert risen["block"] > 5
    assert risen["printed"] > 100


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


@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_theorem_3_7_c_a_smaller_block_is_a_part_of_a_larger_one(lam):
    """K of V ⊕ 1 on B ∪ {j} is K of V on B, so the larger block finds no less."""
    for seed in range(3):
        C, L, X = instance(seed, 5, 2)
        rng = np.random.default_rng(seed)
        for _ in range(20):
            V = orthogonal(rng, 2)
            larger = np.eye(3)
            larger[:2, :2] = V
            both = [
                changes(W[None], C, L, X, B, 0.3)[0]
                + lam * (np.abs(W @ X[B]).sum() - np.abs(X[B]).sum())
                for W, B in ((V, [1, 3]), (larger, [1, 3, 4]))
            ]
            assert both[0] == pytest.approx(both[1], abs=1e-12)
        for B in ([0, 1, 2], [1, 3, 4]):
            pairs = [
                block_search(C, L, X, list(pair), 0.3, lam)[0]
                for pair in itertools.combinations(B, 2)
            ]
            assert block_search(C, L, X, B, 0.3, lam)[0] <= min(pairs) + 1e-7


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


def resting() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """λ = 1, ℓ1: no pair of rows can move, and yet F falls at the rate 0.88 along the manifold."""
    c = np.sqrt(0.5)
    X = np.array([[0.0, 1.0], [c, 0.0], [c, 0.0]])
    L = -5.0 * X
    L[1:, 1] += 0.95 * (1.0 + c) * np.array([-1.0, 1.0])
    return np.zeros((3, 3)), L, X


def test_theorem_3_7_a_is_false_for_l1():
    C, L, X = resting()
    assert block_measure(C, L, X, 2, 1e-5, 1.0) == 0.0
    gain, V = block_search(C, L, X, [0, 1, 2], 1e-5, 1.0)
    assert gain < -0.05
    after = moved(X, [0, 1, 2], V)
    assert objective(C, L, after, "l1", 1.0) < objective(C, L, X, "l1", 1.0) - 0.05
    assert block_measure(C, L, X, 3, 1e-5, 1.0) > 0.01
    # A curve through X along which F falls to first order.
    c = np.sqrt(0.5)
    omega = np.array([[0.0, -c, c], [c, 0.0, 0.0], [-c, 0.0, 0.0]])
    t = 1e-6
    Y = np.linalg.solve(np.eye(3) - 0.5 * t * omega, np.eye(3) + 0.5 * t * omega) @ X
    rate = (objective(C, L, X, "l1", 1.0) - objective(C, L, Y, "l1", 1.0)) / t
    assert rate == pytest.approx(0.88, abs=0.01)
    # The point refutes Lemma 4.4(b) and Theorem 4.6 for ℓ1: the constant sequence has c̃ = 0.
    certificate = ob.certify(stiefel(C, L, ob.L1(1.0)), X)
    assert certificate.block2_measure == 0.0
    assert certificate.criticality == pytest.approx(rate, abs=1e-3)


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
    pages = (ROOT / "docs/theory.md", ROOT / "benchmarks/results/errors-found.md")
    page = "".join(path.read_text(encoding="utf-8") for path in pages)
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
