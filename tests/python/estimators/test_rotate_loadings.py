"""`rotate_loadings`: invariants, hidden zeros, and equal loadings in other forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import orthobcd as ob


def h(x: np.ndarray, criterion: str) -> float:
    return float(np.abs(x).sum() if criterion == "l1" else np.count_nonzero(x))


def orthogonal(rng: np.random.Generator, r: int) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((r, r)))[0]


@pytest.mark.covering(2)
@pytest.mark.parametrize("criterion", ["l1", "l0"])
@pytest.mark.parametrize(("n", "r"), [(1, 1), (2, 2), (7, 3), (30, 5), (9, 9), (40, 1)])
@pytest.mark.parametrize("kind", ["unit", "scaled", "deficient", "zero", "huge"])
def test_span_and_variance_are_kept(criterion, n, r, kind):
    rng = np.random.default_rng(n * 10 + r)
    V = np.linalg.qr(rng.standard_normal((n, r)))[0]
    if kind == "scaled":
        V = V * rng.uniform(0.1, 10.0, r)
    elif kind == "deficient":
        V = np.outer(V[:, 0], np.ones(r))
    elif kind == "zero":
        V = 0.0 * V
    elif kind == "huge":
        V = V * 2.0**100
    loadings, R = ob.rotate_loadings(V, criterion, n_starts=2)
    size = float(np.abs(V).max()) or 1.0
    np.testing.assert_allclose(R.T @ R, np.eye(r), atol=1e-13)
    np.testing.assert_allclose(loadings / size, V @ R / size, atol=1e-12)
    np.testing.assert_allclose(loadings @ loadings.T / size**2, V @ V.T / size**2, atol=1e-12)
    assert h(loadings, criterion) <= h(V, criterion) * (1 + 1e-15)


@pytest.mark.covering
@pytest.mark.parametrize("criterion", ["l1", "l0"])
@pytest.mark.parametrize("r", [2, 3, 5])
@pytest.mark.parametrize("scaled", [False, True])
def test_hidden_zeros_are_found(criterion, r, scaled):
    """Columns with a quarter of nonzeros come back from any rotation, up to order and sign."""
    rng = np.random.default_rng(r)
    S = np.zeros((max(30, 10 * r), r))
    mask = rng.uniform(size=S.shape) < 0.25
    S[mask] = rng.standard_normal(mask.sum())
    S *= rng.uniform(0.2, 3.0, r) if scaled else 1.0
    loadings, _ = ob.rotate_loadings(S @ orthogonal(rng, r), criterion)
    assert np.count_nonzero(loadings) <= np.count_nonzero(S)
    likeness = np.abs(loadings.T @ S) / np.linalg.norm(loadings, axis=0)[:, None]
    likeness /= np.linalg.norm(S, axis=0)
    assert likeness.max(axis=1).min() > 1.0 - 1e-9


@pytest.mark.slow
def test_two_columns_reach_the_global_minimum():
    """With two columns the ℓ1 norm has its minima where an entry vanishes: all are tried."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        V = rng.standard_normal((12, 2)) * [1.0, 3.0]
        angles = np.arctan2(-V[:, 0], V[:, 1])
        values = []
        for angle, shift in itertools.product(angles, (0.0, np.pi / 2)):
            c, s = np.cos(angle + shift), np.sin(angle + shift)
            values.append(np.abs(V @ np.array([[c, -s], [s, c]])).sum())
        loadings, _ = ob.rotate_loadings(V)
        assert np.abs(loadings).sum() <= min(values) * (1 + 1e-13)


@pytest.mark.parametrize("criterion", ["l1", "l0"])
def test_no_pair_of_columns_lowers_the_end(criterion):
    rng = np.random.default_rng(5)
    V = rng.laplace(size=(25, 4)) * [1.0, 2.0, 0.5, 3.0]
    loadings, _ = ob.rotate_loadings(V, criterion)
    for i, j in itertools.combinations(range(4), 2):
        for angle in np.linspace(0.0, np.pi, 721):
            c, s = np.cos(angle), np.sin(angle)
            turned = loadings.copy()
            turned[:, [i, j]] = loadings[:, [i, j]] @ np.array([[c, -s], [s, c]])
            assert h(turned, criterion) >= h(loadings, criterion) * (1 - 1e-12)


@pytest.mark.slow
def test_the_result_does_not_depend_on_threads_layout_or_powers_of_two():
    V = np.random.default_rng(7).standard_normal((15, 4))
    first = ob.rotate_loadings(V, n_threads=1)
    for other in (
        ob.rotate_loadings(V, n_threads=3),
        ob.rotate_loadings(np.asfortranarray(V)),
        ob.rotate_loadings(V.tolist()),
    ):
        np.testing.assert_array_equal(first[0], other[0])
        np.testing.assert_array_equal(first[1], other[1])
    loadings, R = ob.rotate_loadings(2.0**40 * V)
    np.testing.assert_array_equal(R, first[1])
    np.testing.assert_array_equal(loadings, 2.0**40 * first[0])


@pytest.mark.parametrize("criterion", ["l1", "l0"])
@pytest.mark.parametrize("limit", [0.0, 1e-4, 0.02])
def test_a_time_limit_keeps_the_best_so_far(criterion, limit):
    V = np.random.default_rng(9).standard_normal((200, 8)) * np.arange(1.0, 9.0)
    loadings, R = ob.rotate_loadings(V, criterion, max_time=limit)
    np.testing.assert_allclose(R.T @ R, np.eye(8), atol=1e-13)
    np.testing.assert_allclose(loadings, V @ R, atol=1e-11)
    assert h(loadings, criterion) <= h(V, criterion) * (1 + 1e-15)


@pytest.mark.slow
def test_a_search_that_ends_by_itself_ends_before_its_limit():
    V = np.random.default_rng(10).standard_normal((20, 4))
    for alone, limited in zip(
        ob.rotate_loadings(V), ob.rotate_loadings(V, max_time=100.0), strict=True
    ):
        np.testing.assert_array_equal(alone, limited)


@pytest.mark.slow
def test_more_starts_are_never_worse():
    V = np.random.default_rng(8).standard_normal((20, 5))
    values = [np.abs(ob.rotate_loadings(V, n_starts=k)[0]).sum() for k in (1, 2, 4, 8)]
    assert all(b <= a for a, b in itertools.pairwise(values))


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.0, 1e-18, 1e-6])
def test_rows_of_almost_zero_do_not_matter(size):
    """Constant features have loadings of rounding or zero: all of their entries are small."""
    rng = np.random.default_rng(4)
    V = np.linalg.qr(rng.standard_normal((20, 4)))[0]
    whole = np.vstack([V, size * rng.standard_normal((12, 4))])
    alone, _ = ob.rotate_loadings(V)
    loadings, _ = ob.rotate_loadings(whole)
    h = np.abs(loadings[:20]).sum()
    # The second term bounds the sum of the entries of the further rows.
    assert h <= np.abs(alone).sum() * (1 + 1e-12) + 60 * 4 * size


@pytest.mark.parametrize(
    ("error", "match", "arguments"),
    [
        (ValueError, "V must have", {"V": np.ones((2, 3))}),
        (ValueError, "V must not be empty", {"V": np.ones((2, 0))}),
        (ValueError, "V", {"V": [[np.nan]]}),
        (ValueError, "V", {"V": [1.0]}),
        (ValueError, "criterion", {"criterion": "l2"}),
        (TypeError, "criterion", {"criterion": 1}),
        (ValueError, "n_starts", {"n_starts": 0}),
        (ValueError, "seed", {"seed": -1}),
        (ValueError, "n_threads", {"n_threads": 0}),
        (ValueError, "max_time", {"max_time": -1.0}),
        (TypeError, "max_time", {"max_time": "1"}),
    ],
)
def test_refused(error, match, arguments):
    with pytest.raises(error, match=match):
        ob.rotate_loadings(**{"V": np.eye(3), **arguments})
