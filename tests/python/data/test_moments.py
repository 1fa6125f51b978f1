"""Sums over blocks of rows: equal numbers give equal moments for any storage and blocks."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from orthobcd._core import Moments
from orthobcd.data import add_rows

KINDS = ["fast", "exact"]

ROWS = 2048
"""Rows that are summed at once."""

TYPES = [
    *(np.float64, np.float32, np.bool_),
    *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
]


def summed(parts: Any, kind: str, weights: Any = None, threads: int = 1) -> Moments:
    sums = Moments(parts[0].shape[1], kind)
    for k, part in enumerate(parts):
        add_rows(sums, part, None if weights is None else weights[k], threads)
    return sums


def negative(sums: Moments, center: bool = True, scale: bool = False) -> np.ndarray:
    return sums.read(center, scale)[1]


def blocks(X: Any, size: int) -> list[Any]:
    return [X[k : k + size] for k in range(0, X.shape[0], size)]


def numbers(m: int, n: int, seed: int = 0) -> np.ndarray:
    """Whole numbers from 0 to 100, half of them 0."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 101, (m, n)) * rng.integers(0, 2, (m, n))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 3), (30, 7), (ROWS, 2), (ROWS + 1, 33)])
def test_moments_are_those_of_numpy(kind, center, shape):
    X = numbers(*shape).astype(float)
    mean, got, deviation = summed([X], kind).read(center, True)
    about = X - X.mean(axis=0) if center else X
    scale = np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    wanted = -(about.T @ about) / np.outer(scale, scale)
    np.testing.assert_allclose(deviation, scale, rtol=1e-13)
    np.testing.assert_allclose(mean, X.mean(axis=0) / scale, rtol=1e-13)
    np.testing.assert_allclose(got, wanted, atol=1e-12 * max(np.abs(wanted).max(), 1.0))
    np.testing.assert_array_equal(got, got.T)


def _reversed(X: Any) -> Any:
    """The same CSC matrix with the rows of every column in descending order."""
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        for own in (X.indices, X.data):
            own[start:stop] = own[start:stop][::-1].copy()
    X.has_sorted_indices = False
    return X


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", TYPES)
def test_types_and_layouts_do_not_change_a_bit(kind, dtype):
    X = (numbers(3000, 9) if dtype is not np.bool_ else numbers(3000, 9) > 40).astype(dtype)
    wanted = negative(summed([X.astype(np.float64)], kind))
    spellings = {
        "as it is": X,
        "by columns": np.asfortranarray(X),
        "every second": X.repeat(2, axis=0)[::2].repeat(2, axis=1)[:, ::2],
        "backwards": X[::-1].copy()[::-1],
        "read-only": np.frombuffer(X.tobytes(), dtype=dtype).reshape(X.shape),
        "csr": sparse.csr_array(X),
        "csc": sparse.csc_array(X),
        "unsorted": _reversed(sparse.csc_array(X)),
        "wide indices": sparse.csr_array(X),
    }
    wide = spellings["wide indices"]
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for name, given in spellings.items():
        np.testing.assert_array_equal(negative(summed([given], kind)), wanted, name)


@pytest.mark.parametrize("kinds", [("exact", "exact"), ("fast", "fast"), ("fast", "exact")])
@pytest.mark.parametrize("n", [1, 40, 300])
def test_merged_sums_are_those_of_all_samples(kinds, n):
    """Of pickled sums too, and of sums without samples."""
    X = np.random.default_rng(2).standard_normal((4500, n)) + 3.0
    one, two = summed([X[:2100]], kinds[0]), summed([X[2100:]], kinds[1])
    assert one.nbytes == (8 if kinds[0] == "fast" else 16) * n * (n + 1) // 2
    whole = Moments(n, kinds[0])
    assert whole.nbytes == 0
    for part in (one, pickle.loads(pickle.dumps(two)), Moments(n, kinds[1])):
        whole.merge(part)
    assert (whole.n_rows, whole.weight) == (4500, 4500.0)
    wanted = negative(summed([X], "exact"))
    tolerance = 0.0 if kinds == ("exact", "exact") else 1e-12 * np.abs(wanted).max()
    np.testing.assert_allclose(negative(whole), wanted, rtol=0.0, atol=tolerance)


@pytest.mark.parametrize("shift", [0.0, 1e3, -1e5, 1e8])
@pytest.mark.parametrize("weighted", [None, "integers", "numbers"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_sums_are_those_of_fractions(shift, weighted, dtype):
    """To the last bit, for entries of all sizes and means far from zero."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((700, 3)) * np.exp(4.0 * rng.standard_normal((700, 3))) + shift
    X = X.astype(dtype)
    weights = {"integers": rng.integers(0, 4, len(X)).astype(float), "numbers": rng.random(len(X))}
    w = weights.get(weighted)
    got = summed([X], "exact", None if w is None else [w]).read(True, False)[1]
    rows = [[Fraction(float(x)) for x in row] for row in X]
    count = [Fraction(1)] * len(X) if w is None else [Fraction(float(x)) for x in w]
    total = sum(count)
    mean = [sum(c * row[j] for c, row in zip(count, rows, strict=True)) / total for j in range(3)]
    for i in range(3):
        for j in range(3):
            exact = -sum(
                c * (row[i] - mean[i]) * (row[j] - mean[j])
                for c, row in zip(count, rows, strict=True)
            )
            size = float(np.sqrt(got[i, i] * got[j, j]))
            assert abs(float(Fraction(float(got[i, j])) - exact)) <= 2.0**-53 * size


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [5, ROWS, 2 * ROWS + 9])
def test_copies_and_pickles_are_apart(kind, m):
    X = np.random.default_rng(3).standard_normal((m, 6))
    sums = summed([X], kind)
    before = negative(sums.copy())
    others = [sums.copy(), copy.deepcopy(sums), pickle.loads(pickle.dumps(sums))]
    for other in others:
        assert (other.n_rows, other.weight, other.precision) == (m, m, kind)
        np.testing.assert_array_equal(negative(other.copy()), before)
    sums.add(np.ones((ROWS, 6)))
    for other in others:
        np.testing.assert_array_equal(negative(other.copy()), before)
        other.add(np.ones((ROWS, 6)))
        np.testing.assert_array_equal(negative(other), negative(sums))


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_state_is_one_error(kind):
    sums = summed([np.random.default_rng(4).standard_normal((2100, 3))], kind)
    make, given, state = sums.__reduce__()
    empty = make(*given)
    nested: list[Any] = []
    for _ in range(10_000):
        nested = [nested]
    bad = [None, (), nested, {}, "state", bytes(state), state.astype(float), state[None]]
    bad += [state[:end] for end in (0, 1, 2, 9, len(state) // 2, len(state) - 1)]
    bad += [np.append(state, state[:1]), np.full(99, 255, np.uint8), state[::-1]]
    for value in bad:
        with pytest.raises(ValueError, match="state must be that of a Moments"):
            empty.__setstate__(value)
    assert empty.n_rows == 0
    with pytest.raises(ValueError, match="state"):
        make(4, kind).__setstate__(state)
    with pytest.raises(ValueError, match="state"):
        make(3, next(other for other in KINDS if other != kind)).__setstate__(state)


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_arguments_add_nothing(kind):
    sums = summed([np.eye(3)], kind)
    for data, weights, words in (
        (np.eye(2), None, "3 columns"),
        (np.eye(3), np.ones(2), "weights"),
        (np.eye(3), -np.ones(3), "weights"),
        (np.eye(3), np.full(3, np.nan), "weights"),
    ):
        with pytest.raises(ValueError, match=words):
            sums.add(data, weights)
    for data in (np.ones(3), np.eye(3, dtype=complex), "rows", None):
        with pytest.raises(TypeError):
            sums.add(data)
    assert sums.n_rows == 3
    with pytest.raises(ValueError, match="3 features"):
        sums.merge(Moments(4, kind))
    with pytest.raises(ValueError, match="precision"):
        Moments(3, "double")
    with pytest.raises(ValueError, match="n_features"):
        Moments(0, kind)
    with pytest.raises(ValueError, match="positive weight"):
        Moments(3, kind).read(True, False)
    with pytest.raises(MemoryError, match="features"):
        Moments(10**9, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_given_up_sums_are_empty(kind):
    X = numbers(50, 4)
    sums = summed([X], kind)
    wanted = negative(sums)
    np.testing.assert_array_equal(sums.read(True, False, keep=False)[1], wanted)
    assert (sums.n_rows, sums.weight, sums.precision) == (0, 0.0, kind)
    add_rows(sums, X)
    np.testing.assert_array_equal(negative(sums), wanted)
