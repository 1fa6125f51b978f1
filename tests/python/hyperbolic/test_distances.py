"""Points and distances of the pseudo-hyperboloid, against NumPy.

`inner`, `distance`, `distance_gradient`, `double_projection`, `double_projection_gradient`,
`inverse_double_projection` and `DISTANCE_EPSILON`.
"""

from __future__ import annotations

import numpy as np
import pytest

from orthobcd import hyperbolic as hyp


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


RADIUS = 1.3
J = np.array([1, -1, 1, -1, -1])


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
