"""`HyperbolicStructuralProbeProblem`, against NumPy."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

import orthobcd as ob
from orthobcd import hyperbolic as hyp
from orthobcd.hyperbolic import HyperbolicStructuralProbeProblem

from .test_distances import reference_distance, reference_points

A = np.random.default_rng(0).standard_normal((12, 8))
J = [1, 1, 1, 1, -1, -1, -1, -1]


def test_the_probe_is_not_certified():
    probe = HyperbolicStructuralProbeProblem(A, J)
    with pytest.raises(TypeError, match=r"problem must not have a HyperbolicStructuralProbe"):
        ob.certify(probe, np.eye(8))


RADIUS = 1.3


def reference_probe(D, T, j, X, radius=1.0):
    """f and ∇f of the transform-first probe."""
    m = len(D)
    Y = D @ X
    Q = reference_points(Y, j, radius)
    g = Q @ (j[:, None] * Q.T)
    z = np.abs(g) / radius**2
    d = reference_distance(g, radius)
    slope = np.where(z >= 1, 1.0, -1.0) * np.sign(g)
    slope = slope / (radius * np.sqrt(np.maximum(np.abs(z**2 - 1), 1e-300)))
    slope[(np.abs(z - 1) <= 1e-8) | (z <= 1e-8)] = 0.0
    error = d - T
    np.fill_diagonal(error, 0.0)
    G = 2 * (2 * error * slope / m**2) @ (Q * j)
    s, t = Y[:, j > 0], Y[:, j < 0]
    r, norm = np.sqrt(radius**2 + (s**2).sum(axis=1)), np.linalg.norm(t, axis=1)
    unit = t / norm[:, None]
    along = (G[:, j < 0] * unit).sum(axis=1)
    back = np.empty_like(Y)
    back[:, j > 0] = G[:, j > 0] + (along / r)[:, None] * s
    back[:, j < 0] = (r / norm)[:, None] * (G[:, j < 0] - along[:, None] * unit)
    return (error**2).sum() / m**2, D.T @ back


def euclidean(D):
    return np.linalg.norm(D[:, None] - D[None], axis=2)


def probe_data(m=40, n=8, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, n)), rng.permutation(np.repeat([1, -1], n // 2))


def test_probe_against_numpy(rng):
    for m in (40, 300):  # one block, several
        D, j = probe_data(m)
        X = rng.standard_normal((8, 8))
        T = euclidean(D)
        for radius in (1.0, RADIUS):
            value, gradient = reference_probe(D, T, j, X, radius)
            for given in (T, None):
                problem = HyperbolicStructuralProbeProblem(D, j, given, radius, T_scale=1.0)
                got, slope = problem.value_and_gradient(X)
                assert got == pytest.approx(value, rel=1e-12)
                # An entry may be the difference of much larger terms.
                size = np.abs(gradient).max()
                np.testing.assert_allclose(slope, gradient, rtol=1e-10, atol=1e-11 * size)


def test_the_printed_probe_is_constant():
    """Q = φ(D)X has the distances of φ(D) for every isometry X."""
    D, j = probe_data()
    P = hyp.double_projection(D, j)
    wanted = hyp.distance(P, P, j, pairwise=True)
    for seed in range(5):
        Q = P @ ob.hyperbolic.random_j_orthogonal(j, 0.5, seed)
        np.testing.assert_allclose(hyp.distance(Q, Q, j, pairwise=True), wanted, atol=1e-7)


def test_matched_scale():
    D, j = probe_data()
    problem = HyperbolicStructuralProbeProblem(D, j)
    P = hyp.double_projection(D, j)
    d = hyp.distance(P, P, j, pairwise=True)
    np.fill_diagonal(d, 0.0)
    assert problem.scale == pytest.approx(d.mean() / euclidean(D).mean(), rel=1e-12)
    twice = HyperbolicStructuralProbeProblem(D, j, T_scale=2.0)
    direct = HyperbolicStructuralProbeProblem(D, j, 2.0 * euclidean(D), T_scale=1.0)
    assert twice.value(np.eye(8)) == pytest.approx(direct.value(np.eye(8)), rel=1e-12)


def test_probe_takes_only_what_it_can():
    D, j = probe_data()
    T = euclidean(D)
    build = HyperbolicStructuralProbeProblem
    for arguments, name in (
        ((D, j, T[:5]), "T"),
        ((D, j, T + np.triu(T)), "T"),
        ((np.vstack([D, np.zeros(8)]), j), "D"),
        ((D * np.nan, j), "D"),
        ((D, np.ones(8, int)), "signature"),
        ((D, j, None, 0.0), "radius"),
        ((D, j, None, 1.0, "fit"), "T_scale"),
        ((D, j, None, 1.0, -1.0), "T_scale"),
    ):
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            build(*arguments)
    problem = build(D, j)
    with pytest.raises(ValueError, match=r"\bX\b"):
        problem.value(np.eye(7))
    with pytest.raises(ValueError, match=r"\bstep_rule\b"):
        ob.solve(problem, solver=ob.VRJOBCD(full_gradient=True, step_rule="bound"))
    with pytest.raises(ValueError, match=r"\bstep_rule\b"):
        ob.VRJOBCD(step_rule="adaptive")
    for solver in (ob.Auto(), ob.JOBCD()):
        with pytest.raises(TypeError, match=r"\bsolver\b"):
            ob.solve(problem, solver=solver)
    eigen = ob.HyperbolicEigenvalueProblem(D, j)
    with pytest.raises(ValueError, match=r"\bside\b"):
        ob.solve(eigen, solver=ob.VRJOBCD(side="both"))


@pytest.mark.parametrize("rule", ["every pair", "accumulated", "adaptive", "sampled"])
@pytest.mark.parametrize("side", ["both", "rows"])
def test_probe_solves(rule, side):
    D, j = probe_data(60)
    problem = HyperbolicStructuralProbeProblem(D, j)
    start = ob.hyperbolic.random_j_orthogonal(j, 0.3, 1)
    solver = ob.VRJOBCD(
        full_gradient=rule != "sampled",
        step_rule="adaptive" if rule == "adaptive" else "accumulated",
        side=side,
        matchings=8 if rule == "every pair" else 1,
        max_epochs=150,
    )
    result = ob.solve(problem, start, solver=solver, tol=0.0)
    first = problem.value(start)
    assert result.status is ob.Status.MAX_SWEEPS
    assert result.objective == pytest.approx(problem.value(result.x), rel=1e-12)
    assert result.objective < 0.98 * first
    assert result.feasibility <= 1e-12 * np.linalg.norm(result.x) ** 2
    assert result.history["objective"][0] == pytest.approx(first, rel=1e-12)
    assert (np.diff(result.history["objective"]) <= 0).all()
    assert result.extra["component_gradients"][-1] <= 152 * 60
    assert result.extra["n_epochs"] in (150, 151)
    again = ob.solve(problem, start, solver=solver, tol=0.0, n_threads=1)
    np.testing.assert_array_equal(again.x, result.x)


def test_probe_converges_and_stops():
    D, j = probe_data(60)
    problem = HyperbolicStructuralProbeProblem(D, j)
    result = ob.solve(problem, tol=1e-2)
    assert result.converged
    kept = []
    stopped = ob.solve(problem, callback=lambda p: kept.append(p) or len(kept) == 3, tol=0.0)
    assert stopped.status is ob.Status.INTERRUPTED
    assert stopped.objective <= kept[-1].objective

    def fail(progress):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        ob.solve(problem, callback=fail)


def test_probe_survives_pickling():
    D, j = probe_data()
    problem = HyperbolicStructuralProbeProblem(D, j)
    copy = pickle.loads(pickle.dumps(problem))
    assert copy.scale == problem.scale
    assert copy.value(np.eye(8)) == problem.value(np.eye(8))


@pytest.mark.slow
def test_ten_thousand_rows_keep_no_square_array():
    resource = pytest.importorskip("resource")
    m = 6000
    script = f"""
import numpy as np, resource, orthobcd as ob
D = np.random.default_rng(0).standard_normal(({m}, 10))
problem = ob.hyperbolic.HyperbolicStructuralProbeProblem(D, np.repeat([1, -1], 5), T_scale=1.0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
problem.value_and_gradient(np.eye(10))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
    assert resource
    grown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100
    ).stdout
    # An m×m array would be 288 MB.
    assert float(grown) < 0.2 * 8 * m * m
