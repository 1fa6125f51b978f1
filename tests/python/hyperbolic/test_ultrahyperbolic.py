"""The pseudo-hyperboloid and the hyperbolic structural probe, against NumPy."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import orthobcd as ob
from orthobcd import hyperbolic as hyp

from .test_hyperbolic import reference_start, signs

RADIUS = 1.3
J = np.array([1, -1, 1, -1, -1])


def reference_distance(inner, radius, eps=1e-8):
    z = np.abs(inner) / radius**2
    d = np.where(z >= 1, np.arccosh(np.maximum(z, 1)), np.arccos(np.minimum(z, 1)))
    return np.where(np.abs(z - 1) <= eps, 0.0, radius * d)


def reference_points(Y, j, radius):
    s, t = Y[:, j > 0], Y[:, j < 0]
    Q = Y.copy()
    stretch = np.sqrt(radius**2 + (s**2).sum(axis=1)) / np.linalg.norm(t, axis=1)
    Q[:, j < 0] = t * stretch[:, None]
    return Q


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


def test_geometry_against_numpy(rng):
    X, Y = rng.standard_normal((2, 7, 5))
    np.testing.assert_allclose(hyp.inner(X, Y, J), (X * J * Y).sum(axis=1), rtol=1e-13)
    pairs = hyp.inner(X, Y[:3], J, pairwise=True)
    np.testing.assert_allclose(pairs, (X * J) @ Y[:3].T, rtol=1e-12, atol=1e-14)
    P, Q = (hyp.double_projection(A, J, RADIUS) for A in (X, Y))
    np.testing.assert_allclose(P, reference_points(X, J, RADIUS), rtol=1e-13)
    np.testing.assert_allclose(hyp.inner(P, P, J), -(RADIUS**2), rtol=1e-12)
    d = hyp.distance(P, Q, J, RADIUS)
    np.testing.assert_allclose(d, reference_distance((P * J * Q).sum(axis=1), RADIUS), rtol=1e-12)
    all_pairs = hyp.distance(P, Q, J, RADIUS, pairwise=True)
    np.testing.assert_allclose(np.diag(all_pairs), d, rtol=1e-12)


def test_double_projection_and_its_inverse(rng):
    Y = hyp.double_projection(rng.standard_normal((6, 5)), J, RADIUS)
    back = hyp.inverse_double_projection(Y, J, RADIUS)
    np.testing.assert_allclose(np.linalg.norm(back[:, J < 0], axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(hyp.double_projection(back, J, RADIUS), Y, rtol=1e-13)
    with pytest.raises(ValueError, match=r"\bX\b.*row 1"):
        hyp.double_projection([[1, 2, 3, 4, 5], [1, 0, 2, 0, 0]], J)
    with pytest.raises(ValueError, match=r"\bY\b"):
        hyp.inverse_double_projection(2.0 * Y, J, RADIUS)


def test_distances_do_not_change_under_isometries(rng):
    P, Q = (hyp.double_projection(rng.standard_normal((9, 5)), J) for _ in range(2))
    X = ob.random_j_orthogonal(J, 0.5, 3)
    np.testing.assert_allclose(
        hyp.distance(P @ X, Q @ X, J), hyp.distance(P, Q, J), rtol=1e-10, atol=1e-12
    )


def test_guards_on_both_sides():
    j = [1, -1]
    eps = hyp.DISTANCE_EPSILON

    def at(inner):
        d, gx, _ = hyp.distance_gradient([[0.0, -inner]], [[0.0, 1.0]], j)
        return d[0], gx[0, 1]

    for near in (1 + 0.9 * eps, 1 - 0.9 * eps, -1 - 0.9 * eps):
        assert at(near) == (0.0, 0.0)
    for t in (1.1 * eps, 1e-3):
        assert at(1 + t)[0] == pytest.approx(np.sqrt(2 * t), rel=1e-3)
        assert at(1 - t)[1] != 0.0
    assert at(0.9 * eps)[1] == 0.0
    assert abs(at(1.1 * eps)[1]) == pytest.approx(1.0)


@pytest.mark.parametrize("radius", [1.0, 0.3])
@pytest.mark.parametrize("R", [0.0, 1.0, 5.0, 8.0, 10.0, 12.0, 15.0, 18.0, 50.0, 200.0])
def test_distances_far_out(R, radius):
    """Points ρ(u sinh R, v cosh R): distances along a ray, of a point to itself, and opposite."""
    signs = np.array([1, -1, 1, -1])

    def point(r, flip=1.0):
        x = np.array([0.6 * np.sinh(r), 0.8 * np.cosh(r), -0.8 * np.sinh(r), 0.6 * np.cosh(r)])
        return radius * (x * np.where(signs > 0, flip, 1.0))[None]

    # Rounding of a direction moves points apart by 1e-16 exp R.
    for apart in (0.0, 2e-4, 0.01, 1.0, 30.0) if R <= 18.0 else (0.0,):
        x, y = point(R), point(R + apart)
        for far in (y, -y):  # distances do not distinguish y and −y
            d, gx, gy = hyp.distance_gradient(x, far, signs, radius)
            assert d[0] == pytest.approx(radius * apart, rel=1e-7, abs=0.0)
            assert (apart == 0.0) == (not gx.any()) == (not gy.any())
            pair = hyp.distance(x, far, signs, radius, pairwise=True)
            assert pair[0, 0] == pytest.approx(d[0], rel=1e-7, abs=0.0)
    opposite = hyp.distance(point(R), point(R, -1.0), signs, radius)
    assert opposite[0] == pytest.approx(2.0 * radius * R, rel=1e-12)


@pytest.mark.parametrize("size", [1e-170, 1e-101, 1e101, 1e170])
def test_sizes_are_checked_at_every_door(size):
    good, j = np.array([[0.3, -1.2, 2.0, 0.4]]), [1, -1, 1, -1]
    bad = size * good
    calls = [
        (hyp.double_projection, (bad, j), "X"),
        (hyp.inverse_double_projection, (bad, j), "Y"),
        (hyp.double_projection_gradient, (bad, good, j), "X"),
        *((f, (bad, good, j), "X") for f in (hyp.inner, hyp.distance, hyp.distance_gradient)),
        *((f, (good, bad, j), "Y") for f in (hyp.inner, hyp.distance, hyp.distance_gradient)),
    ]
    for function, arguments, name in calls:
        with pytest.raises(ValueError, match=rf"{name} must be zero or have its largest magnitude"):
            function(*arguments)
        if function in (hyp.inner, hyp.distance):
            with pytest.raises(ValueError, match=name):
                function(*arguments, pairwise=True)
    for function in (hyp.double_projection, hyp.inverse_double_projection):
        with pytest.raises(ValueError, match="radius must be between"):
            function(good, j, radius=size)
    # Rows of small parts keep them.
    thin = hyp.double_projection([[1.0, 3e-170, 0.0, 4e-170]], j)
    np.testing.assert_allclose(thin, [[1.0, 0.6 * 2**0.5, 0.0, 0.8 * 2**0.5]], rtol=1e-14)


def test_gradients_against_differences(rng):
    X, Y, V = rng.standard_normal((3, 4, 5))
    d, gx, gy = hyp.distance_gradient(X, Y, J, RADIUS)
    pulled = hyp.double_projection_gradient(X, V, J, RADIUS)
    np.testing.assert_array_equal(d, hyp.distance(X, Y, J, RADIUS))
    h = 1e-6
    for k in range(5):
        e = h * np.eye(5)[k]
        for gradient, ahead, behind in (
            (gx, (X + e, Y), (X - e, Y)),
            (gy, (X, Y + e), (X, Y - e)),
        ):
            slope = hyp.distance(*ahead, J, RADIUS) - hyp.distance(*behind, J, RADIUS)
            np.testing.assert_allclose(gradient[:, k], slope / (2 * h), rtol=1e-6, atol=1e-7)
        change = hyp.double_projection(X + e, J, RADIUS) - hyp.double_projection(X - e, J, RADIUS)
        np.testing.assert_allclose(pulled[:, k], (change * V).sum(axis=1) / (2 * h), atol=1e-7)


def test_gradients_against_automatic_differentiation(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
    X, Y, V = rng.standard_normal((3, 6, 5))
    x, y, v, j = (torch.tensor(a, dtype=torch.float64) for a in (X, Y, V, J))
    x.requires_grad_()
    y.requires_grad_()

    def phi(a):
        s, t = a[:, j > 0], a[:, j < 0]
        stretch = torch.sqrt(RADIUS**2 + (s**2).sum(1)) / torch.sqrt((t**2).sum(1))
        out = torch.zeros_like(a)
        out[:, j > 0], out[:, j < 0] = s, t * stretch[:, None]
        return out

    z = ((x * j * y).sum(1)).abs() / RADIUS**2
    safe = torch.where(z >= 1, z, 2.0 * torch.ones_like(z))
    low = torch.where(z < 1, z, 0.5 * torch.ones_like(z))
    d = RADIUS * torch.where(z >= 1, torch.acosh(safe), torch.acos(low))
    d.sum().backward()
    ours = hyp.distance_gradient(X, Y, J, RADIUS)
    np.testing.assert_allclose(ours[0], d.detach().numpy(), rtol=1e-13)
    np.testing.assert_allclose(ours[1], x.grad.numpy(), rtol=1e-12)
    np.testing.assert_allclose(ours[2], y.grad.numpy(), rtol=1e-12)
    x.grad = None
    (phi(x) * v).sum().backward()
    pulled = hyp.double_projection_gradient(X, V, J, RADIUS)
    np.testing.assert_allclose(pulled, x.grad.numpy(), rtol=1e-12, atol=1e-14)


def test_probe_against_numpy(rng):
    for m in (40, 300):  # one block, several
        D, j = probe_data(m)
        X = rng.standard_normal((8, 8))
        T = euclidean(D)
        for radius in (1.0, RADIUS):
            value, gradient = reference_probe(D, T, j, X, radius)
            for given in (T, None):
                problem = ob.HyperbolicStructuralProbeProblem(D, j, given, radius, T_scale=1.0)
                got, slope = problem.value_and_gradient(X)
                assert got == pytest.approx(value, rel=1e-12)
                # An entry may be the difference of much larger terms.
                size = np.abs(gradient).max()
                np.testing.assert_allclose(slope, gradient, rtol=1e-10, atol=1e-11 * size)


@pytest.mark.parametrize(
    ("m", "n", "values"),
    [
        (200, 20, (21.6537477372, 21.764858578, 6.1489361, -1.250184862)),
        (500, 50, (62.2595466401, 62.3264154134, 16.26186, 7.8944987)),
    ],
)
def test_probe_reproduces_the_reference_rows(m, n, values):
    check_row(np.random.default_rng(0).standard_normal((m, n)), values)


def check_row(D, values):
    n = D.shape[1]
    problem = ob.HyperbolicStructuralProbeProblem(D, signs(n, n // 2), T_scale=1.0)
    W = np.random.default_rng(3).standard_normal((n, n))
    at_start, gradient = problem.value_and_gradient(reference_start(n, n // 2))
    got = (problem.value(np.eye(n)), at_start, np.linalg.norm(gradient), np.vdot(gradient, W))
    for ours, printed in zip(got, values, strict=True):
        # Values agree to 1e-9, or to the last printed digit.
        digit = 0.5 * 10.0 ** -len(f"{printed!r}".split(".")[1])
        assert abs(ours - printed) <= max(1e-9 * abs(printed), 1.01 * digit)


@pytest.mark.data
def test_probe_reproduces_the_reference_rows_on_real_data(w1a, data_dir):
    def rows(A, columns):
        D = A[:, np.sort(columns)]
        return D[np.linalg.norm(D[:, D.shape[1] // 2 :], axis=1) > 0][:500]

    A = w1a.toarray()
    D = rows(A, np.argsort(-A.sum(axis=0), kind="stable")[:100])
    check_row(D, (10.8545243471, 10.6630904364, 1.779539403, 3.348851129))
    images = np.load(data_dir / "mnist_test.npz")["X"].astype(float) / 255
    D = rows(images, np.argsort(-images.var(axis=0), kind="stable")[:92])
    check_row(D, (18.3890375165, 18.4387182704, 7.399822659, 10.5838965))


def test_literal_probe_is_constant_and_says_so():
    D, j = probe_data()
    with pytest.warns(UserWarning, match="constant"):
        problem = ob.HyperbolicStructuralProbeProblem(D, j, euclidean(D), transform="literal")
    values = [problem.value(ob.random_j_orthogonal(j, 0.5, seed)) for seed in range(5)]
    assert np.ptp(values) <= 1e-12 * values[0]
    result = ob.solve(problem, "random", max_sweeps=3)
    assert result.objective == pytest.approx(values[0], rel=1e-12)


def test_matched_scale():
    D, j = probe_data()
    problem = ob.HyperbolicStructuralProbeProblem(D, j)
    P = hyp.double_projection(D, j)
    d = hyp.distance(P, P, j, pairwise=True)
    np.fill_diagonal(d, 0.0)
    assert problem.scale == pytest.approx(d.mean() / euclidean(D).mean(), rel=1e-12)
    twice = ob.HyperbolicStructuralProbeProblem(D, j, T_scale=2.0)
    direct = ob.HyperbolicStructuralProbeProblem(D, j, 2.0 * euclidean(D), T_scale=1.0)
    assert twice.value(np.eye(8)) == pytest.approx(direct.value(np.eye(8)), rel=1e-12)


def test_probe_takes_only_what_it_can():
    D, j = probe_data()
    T = euclidean(D)
    build = ob.HyperbolicStructuralProbeProblem
    for arguments, name in (
        ((D, j, T[:5]), "T"),
        ((D, j, T + np.triu(T)), "T"),
        ((np.vstack([D, np.zeros(8)]), j), "D"),
        ((D * np.nan, j), "D"),
        ((D, np.ones(8, int)), "signature"),
        ((D, j, None, 0.0), "radius"),
        ((D, j, None, 1.0, "last"), "transform"),
        ((D, j, None, 1.0, "literal"), "T"),
        ((D, j, None, 1.0, "first", "fit"), "T_scale"),
        ((D, j, None, 1.0, "first", -1.0), "T_scale"),
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
    problem = ob.HyperbolicStructuralProbeProblem(D, j)
    start = ob.random_j_orthogonal(j, 0.3, 1)
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
    assert result.n_epochs in (150, 151)
    again = ob.solve(problem, start, solver=solver, tol=0.0, n_threads=1)
    np.testing.assert_array_equal(again.x, result.x)


def test_probe_converges_and_stops():
    D, j = probe_data(60)
    problem = ob.HyperbolicStructuralProbeProblem(D, j)
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
    problem = ob.HyperbolicStructuralProbeProblem(D, j)
    copy = pickle.loads(pickle.dumps(problem))
    assert copy.scale == problem.scale
    assert copy.value(np.eye(8)) == problem.value(np.eye(8))


def test_ten_thousand_rows_keep_no_square_array():
    resource = pytest.importorskip("resource")
    m = 6000
    script = f"""
import numpy as np, resource, orthobcd as ob
D = np.random.default_rng(0).standard_normal(({m}, 10))
problem = ob.HyperbolicStructuralProbeProblem(D, np.repeat([1, -1], 5), T_scale=1.0)
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


@pytest.mark.timing
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to a child process")
def test_ctrl_c_returns_the_best_probe():
    script = """
import numpy as np, orthobcd as ob
D = np.random.default_rng(0).standard_normal((300, 20))
problem = ob.HyperbolicStructuralProbeProblem(D, np.repeat([1, -1], 10))
told = []
def tell(progress):
    if not told:
        print("started", flush=True)
    told.append(progress)
result = ob.solve(problem, tol=0.0, max_time=60, callback=tell)
print(result.status.name, result.objective < told[0].objective)
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline().strip() == "started"
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=30)
    assert out.split() == ["INTERRUPTED", "True"]
