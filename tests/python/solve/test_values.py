"""Optima that are known: large λ, eigenvalues, Procrustes; and the NumPy reference."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob

from .. import reference


def oracle(C: np.ndarray, lam: float, r: int) -> float:
    """λr − ½ Σ of the r largest variances: the optimum once λ exceeds what two entries can gain."""
    return lam * r - 0.5 * float(np.sort(np.diag(C))[-r:].sum())


@pytest.mark.parametrize("penalty", [ob.L0, ob.L1])
@pytest.mark.parametrize("working_set", ["random", "tiled"])
def test_large_lambda_randn(penalty, working_set):
    A = np.random.default_rng(0).standard_normal((500, 1000))
    lam, r = 1000.0, 20
    problem = ob.SparsePCAProblem(A, r, penalty(lam))
    result = ob.solve(problem, "identity", solver=ob.OBCD(working_set=working_set), max_sweeps=100)
    assert result.objective == pytest.approx(oracle(A.T @ A, lam, r), rel=1e-10)
    assert result.n_nonzero == r


@pytest.mark.data
@pytest.mark.parametrize("penalty", [ob.L0, ob.L1])
def test_large_lambda_w1a(penalty, w1a):
    lam, r = 1000.0, 20
    result = ob.solve(
        ob.SparsePCAProblem(w1a, r, penalty(lam)),
        "identity",
        solver=ob.OBCD(working_set="random"),
        max_sweeps=30,
    )
    C = (w1a.T @ w1a).toarray()
    assert result.objective == pytest.approx(oracle(C, lam, r), rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("working_set", "block_size"), [("tiled", 2), ("random", 4)])
def test_eigenvalues_without_penalty(working_set, block_size):
    n, r = 80, 6
    # Pure noise: the gaps between eigenvalues are small.
    A = np.random.default_rng(1).standard_normal((110, n))
    C = A.T @ A
    optimum = -0.5 * float(np.linalg.eigvalsh(C)[-r:].sum())
    result = ob.solve(
        ob.StiefelProblem(ob.Quadratic(-C), ob.NoPenalty(), r),
        "identity",
        solver=ob.OBCD(working_set=working_set, block_size=block_size),
        target=optimum * (1 - 1e-6),
        max_sweeps=100_000,
        tol=0.0,
    )
    assert result.objective == pytest.approx(optimum, rel=1e-6)
    assert result.objective >= optimum * (1 + 1e-12)


def procrustes_successes(block_size: int) -> int:
    """How many of 200 random A and starts end at the optimum of min ‖X − A‖² on St(4, 4)."""
    n = 4
    count = 0
    for seed in range(200):
        A = np.random.default_rng(seed).standard_normal((n, n))
        problem = ob.StiefelProblem(ob.Quadratic(np.zeros((n, n)), linear=-A), ob.NoPenalty(), n)
        optimum = -float(np.linalg.svd(A, compute_uv=False).sum())
        result = ob.solve(
            problem,
            "random",
            solver=ob.OBCD(working_set="random", block_size=block_size),
            seed=seed,
            tol=0.0,
            max_sweeps=500,
        )
        assert result.objective >= optimum * (1 + 1e-12)
        count += abs(result.objective - optimum) < 1e-8 * abs(optimum)
    return count


def test_procrustes_pairs():
    # Pairs alone end at local optima here, for which the paper proposes larger blocks.
    assert procrustes_successes(2) >= 165


def test_procrustes_whole_block():
    assert procrustes_successes(4) == 200


@pytest.mark.parametrize("kind", reference.PENALTIES)
@pytest.mark.parametrize("concave", [True, False])
def test_reference_solvers_agree(kind, concave, rng):
    """The papers' breakpoint search, corrected, against a dense grid: the two oracles agree."""
    for _ in range(25):
        r = int(rng.integers(1, 5))
        Z = rng.standard_normal((2, r))
        if kind == "nonnegative":
            Z = np.abs(Z) * (rng.random((2, r)) < 0.7)
        G = rng.standard_normal((2, r))
        M = rng.standard_normal((2, 2))
        M = -(M @ M.T) if concave else M + M.T
        S = Z @ Z.T
        lam = float(rng.random())
        _, V = reference.breakpoint_pair(Z, G, np.kron(S, M), 0.0, kind, lam)
        at, _ = reference.grid_pair(Z, G, M, S, kind, lam)
        new = V @ Z
        new[np.abs(new) < 1e-12] = 0.0
        E = V - np.eye(2)
        value = np.sum(E * (G @ Z.T)) + 0.5 * np.trace(M @ E @ S @ E.T)
        value += float(reference.penalty_value(kind, lam, new.ravel()))
        assert value <= at + 1e-9
        assert at <= value + 1e-6


@pytest.mark.parametrize("kind", reference.PENALTIES)
def test_one_pair_is_solved_globally(kind, rng):
    """n = 2: a solve is one pair problem, so its value is the global optimum."""
    penalties = {"none": ob.NoPenalty(), "l0": ob.L0(0.4), "l1": ob.L1(0.4)}
    lam = {"l0": 0.4, "l1": 0.4}.get(kind, 0.0)
    for trial in range(40):
        r = 1 + trial % 2
        C = rng.standard_normal((2, 2))
        C = C + C.T
        linear = rng.standard_normal((2, r))
        x0 = np.linalg.qr(rng.standard_normal((2, 2)))[0][:, :r]
        if kind == "nonnegative":
            x0 = np.eye(2)[:, :r] if trial % 4 < 2 else np.eye(2)[::-1][:, :r]
        problem = ob.StiefelProblem(
            ob.Quadratic(C, linear=linear), penalties.get(kind, ob.NonNegative()), r
        )
        solver = ob.OBCD(working_set="cyclic", proximal=0.0)
        result = ob.solve(problem, x0, solver=solver, tol=0.0, max_sweeps=50)
        f0 = 0.5 * np.sum(x0 * (C @ x0)) + np.sum(linear * x0)
        best, _ = reference.grid_pair(x0, C @ x0 + linear, C, x0 @ x0.T, kind, lam)
        assert result.objective <= f0 + best + 1e-9
        assert result.objective >= f0 + best - 1e-5


@pytest.mark.parametrize("kind", reference.PENALTIES)
def test_as_good_as_the_reference_loop(kind):
    """The same method in plain NumPy, several starts: neither is better on average."""
    rng = np.random.default_rng(3)
    n, r, lam = 8, 2, 1.0
    A = rng.standard_normal((12, n))
    C = -A.T @ A
    penalty = {"none": ob.NoPenalty(), "l0": ob.L0(lam), "l1": ob.L1(lam)}.get(
        kind, ob.NonNegative()
    )
    problem = ob.StiefelProblem(ob.Quadratic(C), penalty, r)
    ours, theirs = [], []
    for seed in range(60):
        x0 = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, r)))[0]
        if kind == "nonnegative":
            x0 = np.zeros((n, r))
            x0[: n // 2, 0] = x0[n // 2 :, 1] = 1 / np.sqrt(n // 2)
        solver = ob.OBCD(working_set="random")
        ours.append(ob.solve(problem, x0, solver=solver, seed=seed).objective)
        if seed < 3:
            X, history = reference.obcd(C, x0, kind, lam, sweeps=8, seed=seed)
            assert np.linalg.norm(X.T @ X - np.eye(r)) < 1e-9
            theirs.append(history[-1])
    scale = abs(min(theirs))
    assert min(ours) <= min(theirs) + 1e-6 * scale
    assert np.mean(ours) <= np.mean(theirs) + 0.1 * scale


def test_gram_equals_quadratic(rng):
    """AᵀA formed, dense data, sparse data: one function."""
    sparse = pytest.importorskip("scipy.sparse")
    A = np.where(rng.random((30, 25)) < 0.4, rng.standard_normal((30, 25)), 0.0)
    mean = A.mean(axis=0)
    centred = A - mean
    x = np.linalg.qr(rng.standard_normal((25, 4)))[0]
    objectives = {
        False: [
            ob.Quadratic(-A.T @ A),
            ob.GramQuadratic(A),
            ob.GramQuadratic(sparse.csr_array(A)),
            ob.GramQuadratic(sparse.coo_matrix(A)),
        ],
        True: [
            ob.Quadratic(-centred.T @ centred),
            ob.GramQuadratic(centred),
            ob.GramQuadratic(A, mean=mean),
            ob.GramQuadratic(sparse.csc_array(A), mean=mean),
        ],
    }
    for centre, several in objectives.items():
        problems = [ob.StiefelProblem(smooth, ob.L1(0.3), 4) for smooth in several]
        problems += [
            ob.SparsePCAProblem(pca, 4, ob.L1(0.3), center=centre)
            for pca in (A, sparse.csr_array(A))
        ]
        solver = ob.OBCD(working_set="cyclic")
        results = [ob.solve(problem, x, solver=solver, max_sweeps=3) for problem in problems]
        # All problems have the same values at the points that any of them visits.
        for at in [x, *(result.x for result in results)]:
            expected = ob.certify(problems[0], at)
            for problem in problems:
                certificate = ob.certify(problem, at)
                for name in ("objective", "block2_gap", "criticality"):
                    one, other = getattr(certificate, name), getattr(expected, name)
                    assert one == pytest.approx(other, rel=1e-9, abs=1e-10)
        for result in results:
            assert result.feasibility < 1e-12
            assert result.objective < ob.certify(problems[0], x).objective


def test_entrywise_weights(rng):
    """Equal entrywise weights are the scalar weight; a huge one keeps its entry zero."""
    A = rng.standard_normal((20, 10))
    x0 = np.linalg.qr(rng.standard_normal((10, 3)))[0]
    solver = ob.OBCD(working_set="cyclic")
    one = ob.SparsePCAProblem(A, 3, ob.L1(0.7))
    each = ob.SparsePCAProblem(A, 3, ob.L1(np.full((10, 3), 0.7)))
    for x in (x0, ob.solve(one, x0, solver=solver).x, ob.solve(each, x0, solver=solver).x):
        at, same = ob.certify(one, x), ob.certify(each, x)
        assert same.objective == pytest.approx(at.objective, rel=1e-12)
        assert same.block2_gap == pytest.approx(at.block2_gap, rel=1e-9, abs=1e-10)
        assert same.criticality == pytest.approx(at.criticality, rel=1e-9)
    weights = rng.random((10, 3))
    weights[2, 1] = 1e4
    result = ob.solve(ob.SparsePCAProblem(A, 3, ob.L1(weights)), "identity", solver=solver)
    assert result.x[2, 1] == 0.0
    assert result.penalty_value == pytest.approx(float(np.sum(weights * np.abs(result.x))))


def test_scale_invariance(rng):
    """Scaling data and penalty together scales the objective and nothing else."""
    A = rng.standard_normal((20, 12))
    base = ob.solve(ob.SparsePCAProblem(A, 3, ob.L1(0.5)), "random", solver=ob.OBCD(proximal=0.0))
    for power in (-200, -40, 40, 200):
        scale = 2.0**power
        scaled = ob.solve(
            ob.StiefelProblem(ob.Quadratic(-(A.T @ A) * scale), ob.L1(0.5 * scale), 3),
            "random",
            solver=ob.OBCD(proximal=0.0),
        )
        assert scaled.objective / scale == pytest.approx(base.objective, rel=1e-9)


@pytest.mark.parametrize("center", [False, True])
def test_wide_data_is_used_as_it_is(center):
    data = np.random.default_rng(0).standard_normal((5, 40)) + 1.0
    wide = ob.SparsePCAProblem(data, 3, ob.L1(0.5), center)
    narrow = ob.SparsePCAProblem(data[:, :39], 3, ob.L1(0.5), center)
    assert isinstance(wide.smooth, ob.GramQuadratic)
    assert isinstance(narrow.smooth, ob.Quadratic)
    used = data - data.mean(axis=0) if center else data
    formed = ob.StiefelProblem(ob.Quadratic(-used.T @ used), ob.L1(0.5), 3)
    for result in (ob.solve(wide, seed=1), ob.solve(formed, seed=1)):
        x = result.x
        value = -0.5 * np.sum((used @ x) ** 2) + 0.5 * np.abs(x).sum()
        assert result.objective == pytest.approx(value)
        for problem in (wide, formed):
            certificate = ob.certify(problem, x)
            assert certificate.objective == pytest.approx(value, rel=1e-12)
            assert certificate.block2_gap <= 1e-9 * abs(value)
