"""Second moments, exact or fast: equal numbers give equal fits, and the time limit counts them."""

from __future__ import annotations

import time
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import orthobcd as ob
from orthobcd import data as door
from orthobcd._core import Moments
from orthobcd.data import EXACT_WORK, SCALING, Gram, is_exact
from orthobcd.sklearn import base

from ..conftest import random_sparse

ESTIMATORS = [
    lambda **k: ob.SparsePCA(2, alpha=0.3, solver=ob.OBCD(), random_state=0, **k),
    lambda **k: ob.NonnegativePCA(2, solver=ob.OBCD(), random_state=0, **k),
    lambda **k: ob.OrthogonalNMF(2, solver=ob.OBCD(), random_state=0, **k),
]
SEARCHES = [
    lambda **k: ob.SparsePCA(2, n_nonzero=8, random_state=0, **k),
    lambda **k: ob.SparsePCA(2, random_state=0, **k),
]
SHAPES = [(90, 6), (150, 30), (20, 300)]
ROWS = 2048
"""Rows that are summed at once."""


@cache
def counts(m: int, n: int) -> np.ndarray:
    """Whole numbers from 0 to 255, some features in groups."""
    rng = np.random.default_rng(m + n)
    factors = rng.gamma(2.0, size=(m, 3)) @ rng.gamma(1.0, size=(3, n))
    return np.minimum(rng.poisson(4.0 * factors), 255).astype(np.float64)


SPELLINGS: dict[str, Any] = {
    "float32": lambda X: X.astype(np.float32),
    "uint8": lambda X: X.astype(np.uint8),
    "int16": lambda X: X.astype(np.int16),
    "int64": lambda X: X.astype(np.int64),
    "by columns": np.asfortranarray,
    "every second": lambda X: X.repeat(2, axis=0)[::2],
}


@pytest.mark.covering
@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize("precision", ["auto", "fast", "exact"])
@pytest.mark.parametrize(
    ("make", "shape"), [*product(ESTIMATORS, SHAPES), *product(SEARCHES, SHAPES[:1])]
)
def test_equal_numbers_have_equal_fits(make, precision, shape):
    X = counts(*shape)
    wanted = make(precision=precision).fit(X)
    for spelling, given in SPELLINGS.items():
        got = make(precision=precision).fit(given(X))
        np.testing.assert_array_equal(got.components_, wanted.components_, spelling)
        assert got.precision_ == wanted.precision_
        assert precision in ("auto", got.precision_)


@pytest.mark.parametrize("shift", [0.0, 1.0, 1e8])
@pytest.mark.parametrize("order", ["random", "sorted", "first block light", "first block none"])
@pytest.mark.parametrize("shape", [(5, 1), (50, 7), (2 * ROWS + 77, 5), (ROWS + 1, 300)])
def test_fast_moments_are_the_exact_ones_to_rounding(shape, order, shift):
    """Fast ones lose what the distance of the first block from the others is in deviations, exact
    ones with weights that are not whole what 84 bits of the squares are."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) * np.exp(rng.standard_normal(shape[1])) + shift
    weights = None
    first = min(ROWS, shape[0] // 2)
    if order == "sorted":
        X = np.sort(X, axis=0)
    elif order != "random":
        weights = rng.gamma(1.0, size=shape[0])
        weights[:first] *= 1e-9 if order == "first block light" else 0.0
        X[:first] += 1e3
    sums = Moments(shape[1], "exact"), Moments(shape[1], "fast")
    for one in sums:
        one.add(X, weights)
    _, _, deviation = sums[0].read(True, True)
    away = np.abs(np.average(X, axis=0, weights=weights) - X[:first].mean(axis=0)) / deviation
    allowed = 1e-14 * (10.0 + (0.0 if order == "first block none" else away.max()))
    if weights is not None:
        allowed += 2.0**-80 * np.max(np.average(X, axis=0, weights=weights) / deviation) ** 2
    for center in (True, False):
        exact, fast = (-one.read(center, False)[1] for one in sums)
        sizes = np.sqrt(np.diag(exact))
        assert np.abs((fast - exact) / np.outer(sizes, sizes)).max() < allowed
    (exact_mean, _, _), (mean, _, fast_deviation) = (one.read(True, True) for one in sums)
    np.testing.assert_allclose(fast_deviation, deviation, rtol=allowed)
    np.testing.assert_allclose(mean, exact_mean, rtol=allowed, atol=allowed)


@pytest.mark.parametrize("n", [1, 30, 64, 1000, 4096])
def test_auto_is_exact_up_to_its_limit(n):
    most = int(EXACT_WORK // (n * (n + SCALING)))
    assert is_exact("auto", most, n)
    assert not is_exact("auto", most + 1, n)
    for m in (1, most, most + 1, 10**9):
        assert is_exact("exact", m, n)
        assert not is_exact("fast", m, n)


@pytest.mark.parametrize("limit", [0.0, 2e4, 6e4, np.inf])
@pytest.mark.parametrize("precision", ["auto", "fast", "exact"])
def test_parts_are_summed_as_the_whole(monkeypatch, limit, precision):
    monkeypatch.setattr(door, "EXACT_WORK", limit)
    X = counts(130, 8)
    make = lambda: ESTIMATORS[0](precision=precision)  # noqa: E731
    parts = make()
    for k in range(0, 130, 26):
        parts.partial_fit(X[k : k + 26])
        whole = make().fit(X[: k + 26])
        assert parts.precision_ == whole.precision_
        np.testing.assert_allclose(parts.mean_, whole.mean_, rtol=1e-13)
        np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-9)
    np.testing.assert_allclose(parts.explained_variance_, whole.explained_variance_, rtol=1e-12)


def test_precision_at_the_door():
    X = counts(40, 6)
    for make in ESTIMATORS:
        with pytest.raises(ValueError, match=r"'precision'.*'auto'.*'double'"):
            make(precision="double").fit(X)
        with pytest.raises(TypeError, match="precision"):
            make(precision=64).fit(X)
    wide = random_sparse(30, 5000, 0.01, seed=0)
    with pytest.raises(ValueError, match=r"precision must be 'auto' or 'fast'.*4096.*5000"):
        ob.SparsePCA(1, precision="exact").fit(wide)
    assert ob.SparsePCA(1, n_nonzero=3, max_time=0.1).fit(wide).precision_ == "fast"
    pca = ob.SparsePCA(2, precision="fast", random_state=0).partial_fit(X)
    with pytest.raises(ValueError, match="precision must be 'auto' or 'fast'"):
        pca.set_params(precision="exact").partial_fit(X)
    gapped = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    with pytest.raises(ValueError, match="precision"):
        ob.SparsePCA(2, missing="em", precision="exact").fit(gapped)
    assert ob.SparsePCA(2).fit_covariance(np.eye(6)).precision_ == "exact"


@pytest.mark.parametrize("how", ["fit", "partial_fit", "fit_covariance"])
@pytest.mark.parametrize("make", ESTIMATORS)
def test_the_time_limit_counts_from_the_call(monkeypatch, make, how):
    """The moments take longer than the limit: nothing is left for the search."""
    if not hasattr(make(), how):
        pytest.skip("it has no such fit")

    def slow(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            time.sleep(0.2)
            return function(*arguments)

        return call

    for module, name in (
        (Gram, "of"),
        (base, "sums_to_extend"),
        (base, "as_covariance"),
    ):
        monkeypatch.setattr(module, name, slow(getattr(module, name)))
    X = counts(60, 30)
    given = np.cov(X.T) if how == "fit_covariance" else X
    ended = getattr(make(max_time=0.1), how)(given).result_
    assert ended.status is ob.Status.MAX_TIME
    assert ended.n_updates == 0
    assert getattr(make(max_time=60.0), how)(given).result_.n_updates > 0


@pytest.mark.timing
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.uint8])
def test_a_short_limit_is_kept_on_many_samples(kind):
    X = counts(20_000, 300).astype(kind)
    for make in (ob.SparsePCA, ob.NonnegativePCA):
        begun = time.perf_counter()
        make(5, max_time=0.5, random_state=0).fit(X)
        assert time.perf_counter() - begun < 1.5
