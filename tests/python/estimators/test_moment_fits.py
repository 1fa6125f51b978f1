"""Fits from sums over the samples: in parts, weighted, from a covariance, in single precision."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

import orthobcd as ob
from orthobcd._core import Moments
from orthobcd.problems import DENSE_COVARIANCE_LIMIT
from orthobcd.sklearn.data import (
    DEFINITENESS,
    EXACT_WORK,
    SCALING,
    as_covariance,
    gram_of_sums,
    is_exact,
)

pytestmark = pytest.mark.usefixtures("short_searches")


def spread(seed: int = 0, m: int = 500, n: int = 12) -> np.ndarray:
    """Entries of very different sizes, in and between columns."""
    rng = np.random.default_rng(seed)
    sizes = np.exp(3.0 * rng.standard_normal(n) + 4.0 * rng.standard_normal((m, n)))
    return rng.standard_normal((m, n)) * sizes


def moments(*parts: np.ndarray, weights: list[np.ndarray] | None = None) -> np.ndarray:
    sums = Moments(parts[0].shape[1], "exact")
    for k, part in enumerate(parts):
        sums.add(part, None if weights is None else weights[k])
    return -sums.read(True, False)[1]


def test_sums_are_exact():
    """Shifted by 1e8, against rational arithmetic."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3)) + 1e8
    whole = [[int(v * 2**27) for v in row] for row in X]
    got = moments(X)
    for a in range(3):
        for b in range(3):
            products = sum(row[a] * row[b] for row in whole)
            sums = sum(row[a] for row in whole) * sum(row[b] for row in whole)
            exact = float((products - Fraction(sums, len(X))) / Fraction(2) ** 54)
            assert got[a, b] == pytest.approx(exact, rel=1e-12, abs=1e-12 * got[a, a])


def test_order_parts_and_repetition_do_not_matter():
    X = spread()
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 5, len(X))
    whole = moments(X)
    np.testing.assert_array_equal(moments(X[rng.permutation(len(X))]), whole)
    np.testing.assert_array_equal(moments(*np.array_split(X, 20)), whole)
    np.testing.assert_array_equal(moments(sparse.csr_array(X)), whole)
    repeated = moments(X.repeat(weights, axis=0))
    np.testing.assert_array_equal(moments(X, weights=[weights.astype(float)]), repeated)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("load", [load_digits, load_breast_cancer])
def test_partial_fit_is_fit(load, scale):
    X = load().data
    make = lambda: ob.SparsePCA(4, alpha=0.05, scale=scale, random_state=0)  # noqa: E731
    whole, parts = make().fit(X), make()
    for part in np.array_split(X, 20):
        parts.partial_fit(part, update=False)
    assert not hasattr(parts, "components_")
    parts.partial_fit(X[:1])
    again = make().fit(np.vstack([X, X[:1]]))
    np.testing.assert_array_equal(parts.components_, again.components_)
    np.testing.assert_array_equal(parts.mean_, again.mean_)
    np.testing.assert_array_equal(make().fit(X[::-1]).components_, whole.components_)


def test_partial_fit_updates_and_fit_forgets():
    X = load_iris().data
    pca = ob.SparsePCA(2, random_state=0).partial_fit(X[:100])
    np.testing.assert_allclose(pca.mean_, X[:100].mean(axis=0))
    pca.partial_fit(X[100:])
    np.testing.assert_allclose(pca.mean_, X.mean(axis=0))
    pca.fit(X[:50])
    pca.partial_fit(X[50:100])
    np.testing.assert_allclose(pca.mean_, X[50:100].mean(axis=0))
    with pytest.raises(ValueError, match="features"):
        pca.partial_fit(X[:, :3])
    with pytest.raises(ValueError, match="two samples"):
        ob.SparsePCA(2).partial_fit(X[:1])


WRONG = [
    {"n_components": 99},
    {"n_components": 1.5},
    {"tol": -1.0},
    {"max_time": -1.0},
    {"solver": "auto"},
    {"n_jobs": 0},
    {"precision": "double"},
    {"n_nonzero": 1},
    {"n_nonzero": 1000},
    {"include": ["no such feature"], "n_nonzero": 9},
    {"exclude": [0], "n_nonzero": None},
]


@pytest.mark.parametrize("wrong", [*WRONG, {"alpha": -1.0}, {"penalty": "l2"}], ids=str)
@pytest.mark.parametrize("make", [ob.SparsePCA, ob.NonnegativePCA])
@pytest.mark.parametrize("update", [False, True])
def test_a_call_that_raises_changes_nothing(make, wrong, update):
    """Neither what is summed nor what is fitted."""
    right = make(3, random_state=0).get_params()
    if not set(wrong) <= set(right):
        pytest.skip("it has no such parameter")
    X = load_breast_cancer().data[:, :12]
    pca = make(**right).partial_fit(X[:200])
    before = {k: v for k, v in vars(pca).items() if k.endswith("_") and k != "result_"}
    for fit in (
        lambda: pca.partial_fit(X[200:300], update=update),
        lambda: pca.fit(X[5:]),
        lambda: pca.fit_covariance(np.eye(12)),
    ):
        pca.set_params(**wrong)
        with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
            fit()
        pca.set_params(**right)
    for bad in (X[:, :3], np.full((2, 12), np.nan), np.full((2, 12), 1e60)):
        with pytest.raises(ValueError, match="X"):
            pca.partial_fit(bad, update=update)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(pca, name), value, name)
    pca.partial_fit(X[200:])
    np.testing.assert_array_equal(pca.mean_, make(**right).fit(X).mean_)
    np.testing.assert_array_equal(pca.components_, make(**right).fit(X).components_)


@pytest.mark.parametrize("make", [ob.SparsePCA, ob.NonnegativePCA])
def test_weights_are_repetitions(make):
    X = load_digits().data[:300]
    weights = np.random.default_rng(0).integers(0, 4, 300)
    weighted = make(3, random_state=0).fit(X, sample_weight=weights)
    repeated = make(3, random_state=0).fit(X.repeat(weights, axis=0))
    for name in ("components_", "mean_", "explained_variance_", "objective_"):
        np.testing.assert_array_equal(getattr(weighted, name), getattr(repeated, name))
    sparsely = make(3, random_state=0).fit(sparse.csr_array(X), sample_weight=weights)
    np.testing.assert_array_equal(sparsely.components_, weighted.components_)
    parts = make(3, random_state=0)
    for rows in (slice(0, 100), slice(100, 300)):
        parts.partial_fit(X[rows], sample_weight=weights[rows], update=rows.stop == 300)
    np.testing.assert_array_equal(parts.components_, weighted.components_)


@pytest.mark.parametrize("whole", [np.asarray, lambda X: [X]], ids=["array", "blocks"])
def test_the_fewest_samples(whole):
    """Two samples, or a weight above 1 in ``fit``; one sample is kept for later samples."""
    X = load_iris().data
    make = lambda: ob.SparsePCA(1, random_state=0)  # noqa: E731
    assert make().fit(whole(X[:2])).n_iter_ > 0
    assert make().partial_fit(whole(X[:2])).n_iter_ > 0
    for how in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=r"at least two samples|minimum of 2"):
            getattr(make(), how)(whole(X[:1]))
    one = make().partial_fit(whole(X[:1]), update=False)
    np.testing.assert_array_equal(one.partial_fit(whole(X[1:2])).mean_, make().fit(X[:2]).mean_)
    for total in (1.0, 0.5):
        with pytest.raises(ValueError, match="sample_weight must sum to more than 1"):
            make().fit(whole(X[:2]), sample_weight=[total / 2, total / 2])
    assert make().fit(whole(X[:2]), sample_weight=[0.75, 0.75]).n_iter_ > 0
    assert make().partial_fit(whole(X[:2]), sample_weight=[1.0, 1.0]).n_iter_ > 0
    light = {"sample_weight": [0.75, 0.0]}
    with pytest.raises(ValueError, match="at least two samples"):
        make().partial_fit(whole(X[:2]), **light)
    pca = make().partial_fit(whole(X[:2]), update=False, **light)
    assert pca.partial_fit(whole(X[2:4])).n_iter_ > 0


def test_limits_on_samples_and_features():
    """Sums are exact up to a limit on the work; memory is checked where moments are formed."""
    assert EXACT_WORK == 50_000 * 200 * (200 + SCALING)
    assert is_exact("auto", 50_000, 200)
    assert not is_exact("auto", 50_001, 200)
    assert is_exact("exact", 50_001, 200)
    assert not is_exact("fast", 1, 1)
    rows = sparse.csr_array(([1.0, 1.0], ([0, 1], [0, 1])), shape=(9000, DENSE_COVARIANCE_LIMIT))
    with pytest.raises(ValueError, match="max_memory"):
        ob.SparsePCA(1, max_memory="1MB").fit(rows)


def test_weights_of_wide_data():
    """Rows are multiplied by the roots: the explained variance is that of the repeated samples."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 200))
    weights = rng.integers(0, 4, 20)
    repeated = X.repeat(weights, axis=0)
    pca = ob.SparsePCA(2, scale=True, random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_allclose(pca.scale_, repeated.std(axis=0))
    scores = pca.transform(repeated)
    np.testing.assert_allclose(pca.explained_variance_, scores.var(axis=0, ddof=1))
    np.testing.assert_allclose(scores.mean(axis=0), 0.0, atol=1e-12)
    S = sparse.csr_array(np.where(rng.random((4, 5000)) < 0.01, 1.0, 0.0))
    with pytest.raises(ValueError, match="sample_weight needs center=False"):
        ob.SparsePCA(1).fit(S, sample_weight=np.ones(4))
    plain = ob.SparsePCA(1, center=False, random_state=0)
    weighted = ob.SparsePCA(1, center=False, random_state=0).fit(S, sample_weight=[1, 2, 0, 1])
    plain.fit(sparse.vstack([S[[0, 1, 1, 3]]]))
    np.testing.assert_allclose(weighted.explained_variance_, plain.explained_variance_)
    np.testing.assert_array_equal(weighted.mean_, np.zeros(5000))


@pytest.mark.parametrize("bad", [[-1.0] * 150, [0.0] * 150, [1.0] * 149, [np.nan] * 150])
def test_weights_at_the_door(bad):
    with pytest.raises(ValueError, match=r"(?i)weight|nan"):
        ob.SparsePCA(2).fit(load_iris().data, sample_weight=bad)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [False, True])
def test_covariance_of_data_is_data(scale):
    X = load_breast_cancer().data
    S = np.cov(X, rowvar=False)
    data = ob.SparsePCA(3, n_nonzero=12, scale=scale, random_state=0).fit(X)
    pca = ob.SparsePCA(3, n_nonzero=12, scale=scale, random_state=0)
    pca.fit_covariance(S, len(X), X.mean(axis=0))
    np.testing.assert_allclose(pca.mean_, data.mean_, rtol=1e-12)
    # The attributes are right for the found point; the two searches may end at different points.
    second = pca.components_ @ (S / np.outer(pca.scale_, pca.scale_) if scale else S)
    variances = np.sum(second * pca.components_, axis=1)
    np.testing.assert_allclose(pca.explained_variance_, variances, rtol=1e-9)
    scores = pca.transform(X)
    np.testing.assert_allclose(scores.var(axis=0, ddof=1), variances, rtol=1e-9)
    np.testing.assert_allclose(pca.score_correlation_, np.corrcoef(scores.T), atol=1e-9)
    assert pca.n_nonzero_ == 12


@pytest.mark.parametrize("scale", [False, True])
def test_covariance_and_mean_of_data_that_are_not_centred(scale):
    X = load_iris().data
    options = {"scale": scale, "center": False, "random_state": 0}
    data = ob.SparsePCA(2, **options).fit(X)
    pca = ob.SparsePCA(2, **options).fit_covariance(np.cov(X.T), len(X), X.mean(axis=0))
    np.testing.assert_array_equal(pca.mean_, np.zeros(4))
    second = X.T @ X / (len(X) - 1)
    for one in (data, pca):
        C = second if one.scale_ is None else second / np.outer(one.scale_, one.scale_)
        wanted = np.sum((one.components_ @ C) * one.components_, axis=1)
        np.testing.assert_allclose(one.explained_variance_, wanted, rtol=1e-9)
        share = wanted / np.trace(C)
        np.testing.assert_allclose(one.explained_variance_ratio_, share, rtol=1e-9)


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e3])
def test_correlations_of_scores_do_not_depend_on_units(size):
    X = load_iris().data
    correlations = [
        ob.SparsePCA(3, n_nonzero=9, random_state=0).fit(c * X).score_correlation_
        for c in (1.0, size)
    ]
    np.testing.assert_allclose(correlations[1], correlations[0], atol=1e-9)
    np.testing.assert_array_equal(np.diag(correlations[0]), np.ones(3))


@pytest.mark.parametrize("make", [ob.SparsePCA, ob.NonnegativePCA])
def test_one_feature_is_the_component(make):
    X = np.array([[1.0], [2.0], [4.0]])
    pca = make().fit(X)
    np.testing.assert_array_equal(pca.components_, [[1.0]])
    np.testing.assert_allclose(pca.explained_variance_, X.var(ddof=1))
    np.testing.assert_allclose(pca.explained_variance_ratio_, 1.0)
    assert (pca.result_, pca.n_iter_, pca.n_nonzero_, pca.objective_) == (None, 1, 1, 0.0)
    np.testing.assert_allclose(pca.transform(X), X - X.mean())


def test_unsorted_columns_of_sparse_data():
    X = sparse.random(60, 8, 0.4, format="csc", random_state=0)
    order = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in pairwise(X.indptr)])
    mixed = sparse.csc_matrix((X.data[order], X.indices[order], X.indptr), shape=X.shape)
    assert not mixed.has_sorted_indices
    wanted = ob.SparsePCA(2, random_state=0).fit(X)
    got = ob.SparsePCA(2, random_state=0).fit(mixed)
    np.testing.assert_array_equal(got.components_, wanted.components_)
    np.testing.assert_array_equal(got.explained_variance_, wanted.explained_variance_)


def test_a_covariance_keeps_the_names_of_its_features():
    frame = load_iris(as_frame=True).data
    names = list(frame.columns)
    pca = ob.SparsePCA(2, n_nonzero=4, exclude=[names[2]]).fit_covariance(frame.cov(), 150)
    assert list(pca.feature_names_in_) == names == list(pca.loadings().features)
    assert not pca.components_[:, 2].any()
    assert pca.transform(frame).shape == (150, 2)
    pca.set_params(exclude=None).fit_covariance(frame.cov().to_numpy())
    assert not hasattr(pca, "feature_names_in_")
    assert pca.loadings().features[0] == "x0"


@pytest.mark.parametrize("n", [2, 10, 60])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("rank", [1, 0.5, 1.0])
def test_a_covariance_is_semidefinite_to_its_tolerance(n, size, rank):
    rng = np.random.default_rng(n)
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = np.where(np.arange(n) < max(1, int(rank * (n - 1))), rng.uniform(1.0, 3.0, n), 0.0)
    for lowest, words in ((0.9, None), (1.1, "positive semidefinite"), (1e3, "semidefinite")):
        S = size * (basis * values) @ basis.T
        values_below = lowest * DEFINITENESS * n * np.abs(S).max()
        S = S - values_below * np.outer(basis[:, -1], basis[:, -1])
        S = 0.5 * (S + S.T)
        if words is None:
            as_covariance(S)
        else:
            with pytest.raises(ValueError, match=words):
                as_covariance(S)
    as_covariance(np.zeros((n, n)))


def test_covariance_at_the_door():
    pca = ob.SparsePCA(1)
    for bad, words in (
        (np.ones((2, 3)), "square"),
        ([[1.0, 0.5], [0.0, 1.0]], "symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "semidefinite"),
        ([[np.nan, 0.0], [0.0, 1.0]], "S"),
    ):
        with pytest.raises(ValueError, match=words):
            pca.fit_covariance(bad)
    with pytest.raises(ValueError, match="n_samples"):
        pca.fit_covariance(np.eye(2), 1)
    with pytest.raises(ValueError, match="mean"):
        pca.fit_covariance(np.eye(2), 5, mean=[0.0])
    assert pca.fit_covariance(np.eye(2)).components_.shape == (1, 2)


def test_single_precision_is_the_same_numbers():
    X = load_digits().data[:400].astype(np.float32) / np.float32(3.0)
    single = ob.SparsePCA(3, random_state=0).fit(X)
    double = ob.SparsePCA(3, random_state=0).fit(X.astype(np.float64))
    np.testing.assert_array_equal(single.components_, double.components_)
    np.testing.assert_allclose(single.transform(X), double.transform(X.astype(float)), atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 700])
def test_a_covariance_is_checked_beside_one_copy(n):
    factor = np.random.default_rng(n).standard_normal((n + 3, n))
    S = factor.T @ factor
    S = 0.5 * (S + S.T)
    given = S.copy()
    tracemalloc.start()
    try:
        matrix = as_covariance(S)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(S, given)
    # The factorization leaves no trace.
    np.testing.assert_array_equal(matrix, S)
    assert not np.shares_memory(matrix, S)
    if n > 500:
        assert most < 2.2 * S.nbytes


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_dense_data_of_any_type_is_not_copied(dtype):
    X = (100.0 * np.random.default_rng(0).random((200_000, 6))).astype(dtype)
    pca = ob.SparsePCA(1, n_nonzero=2, random_state=0, max_time=0.1)
    pca.fit(X[:100])
    tracemalloc.start()
    pca.fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.5 * 8 * X.size


@pytest.mark.parametrize("shift", [0.0, 1e6, 1e9])
def test_weighted_means_of_wide_data_are_accurate(shift):
    """To two units in the last place, against rational arithmetic."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 1600)) + shift
    weights = rng.uniform(0.5, 2.0, 200)
    pca = ob.SparsePCA(1, n_nonzero=2, random_state=0, max_time=0.0).fit(X, sample_weight=weights)
    exact = [Fraction(w) for w in weights]
    for j in range(0, 1600, 100):
        total = sum(w * Fraction(v) for w, v in zip(exact, X[:, j], strict=True))
        error = abs(Fraction(pca.mean_[j]) - total / sum(exact))
        assert error <= 2.0 * np.spacing(max(shift, 1.0))


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [20, 60])
def test_wide_samples_in_blocks_are_fitted_as_in_memory(scale, weighted, m):
    """Second moments of 400 features are not formed for 20 samples, which are still buffered."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 400)) + 3.0 * rng.standard_normal((m, 1)) * (np.arange(400) < 9)
    weights = rng.integers(1, 4, m).astype(float) if weighted else None

    def of(rows: slice) -> np.ndarray | None:
        return None if weights is None else weights[rows]

    def make() -> ob.SparsePCA:
        return ob.SparsePCA(2, n_nonzero=12, scale=scale, precision="fast", random_state=0)

    whole = make().fit(X, sample_weight=weights)
    blocks = make().fit([X[:7], X[7:]], sample_weight=weights)
    parts = make()
    for k in range(0, m, 5):
        rows = slice(k, k + 5)
        parts.partial_fit(X[rows], sample_weight=of(rows), update=k + 5 == m)
    for other in (blocks, parts):
        same = np.testing.assert_array_equal if m == 20 else np.testing.assert_allclose
        for name in ("mean_", "components_", "explained_variance_", "objective_"):
            same(getattr(other, name), getattr(whole, name), **({} if m == 20 else {"atol": 1e-8}))
    sums = Moments(400, "fast")
    sums.add(X, weights)
    gram = gram_of_sums(sums, True, scale, 1, keep=True)
    assert (gram.negative is None) == (m == 20)
    assert (sums.buffered() is None) == (m != 20)


def test_definiteness_is_tested_from_both_sides():
    S = np.diag([1.0, 0.5, 0.0])
    least = -DEFINITENESS * 3
    for shift, definite in ((0.9 * least, True), (1.1 * least, False)):
        below = S + np.diag([0.0, 0.0, shift])
        if definite:
            np.testing.assert_array_equal(as_covariance(below), below)
        else:
            with pytest.raises(ValueError, match="positive semidefinite"):
                as_covariance(below)
