"""`SparsePCA`, and what it shares with other estimators: attributes, options, and errors."""

from __future__ import annotations

import tracemalloc
import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import orthobcd as ob

short = pytest.mark.usefixtures("short_searches")
pytestmark = pytest.mark.timeout(600)  # of fits, scikit-learn's own too, on a busy machine

BOTH = [
    lambda **k: ob.SparsePCA(n_components=4, **k),
    lambda **k: ob.SparsePCA(n_components=4, penalty="l1", **k),
    lambda **k: ob.NonnegativePCA(n_components=4, **k),
]


@short
@pytest.mark.parametrize("make", BOTH)
def test_the_largest_loading_is_positive(make):
    for seed in range(4):
        X = np.random.default_rng(seed).standard_normal((20, 9))
        components = make(random_state=seed).fit(X).components_
        assert (components.max(axis=1) == np.abs(components).max(axis=1)).all()


@short
@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("seed", range(5))
def test_equal_samples_explain_no_more_than_all(make, seed):
    sample = np.random.default_rng(seed).standard_normal(10)
    pca = make(random_state=0).fit(np.tile(sample[[0, 1, 2, 1, 2, 1, 6, 0, 8, 8]], (3, 1)))
    assert (pca.explained_variance_ratio_ <= 1.0).all()
    assert (pca.explained_variance_ratio_ >= 0.0).all()


@short
@pytest.mark.parametrize("make", BOTH)
def test_attributes(make):
    X = load_digits().data
    pca = make(random_state=0).fit(X)
    V = pca.components_
    assert V.shape == (4, 64)
    np.testing.assert_allclose(V @ V.T, np.eye(4), atol=1e-12)
    assert pca.n_nonzero_ == np.count_nonzero(V) < V.size
    np.testing.assert_allclose(pca.mean_, X.mean(axis=0))
    scores = pca.transform(X)
    np.testing.assert_allclose(scores, (X - X.mean(axis=0)) @ V.T, atol=1e-9)
    np.testing.assert_allclose(pca.explained_variance_, scores.var(axis=0, ddof=1))
    np.testing.assert_allclose(
        pca.explained_variance_ratio_, scores.var(axis=0) / X.var(axis=0).sum()
    )
    assert np.all(np.diff(pca.explained_variance_) <= 0.0)
    assert np.all(V[np.arange(4), np.abs(V).argmax(axis=1)] > 0.0)
    assert pca.score(X) == pytest.approx(pca.explained_variance_ratio_.sum())
    assert pca.score(X) < PCA(4).fit(X).explained_variance_ratio_.sum()
    assert pca.n_features_in_ == 64
    assert isinstance(pca.result_, ob.Result)
    assert pca.get_feature_names_out()[0] == f"{type(pca).__name__.lower()}0"
    # The nearest point of the span.
    back = pca.inverse_transform(scores)
    np.testing.assert_allclose(pca.transform(back), scores, atol=1e-8)
    assert np.sum((X - back) ** 2) == pytest.approx(
        (1 - pca.score(X)) * np.sum((X - X.mean(axis=0)) ** 2)
    )


@short
@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix"])
@pytest.mark.parametrize("scale", [False, True])
def test_sparse_and_dense_data(make, kind, scale):
    X = load_digits().data[:300]
    S = getattr(sparse, kind)(X)
    pca = make(random_state=0, scale=scale).fit(S)
    # The same estimator on either form of the same data.
    np.testing.assert_allclose(pca.transform(S), pca.transform(X), atol=1e-9)
    assert pca.score(S) == pytest.approx(pca.score(X))
    assert pca.score(S) == pytest.approx(pca.explained_variance_ratio_.sum())
    np.testing.assert_allclose(pca.mean_ * (1.0 if pca.scale_ is None else pca.scale_), X.mean(0))
    dense = make(random_state=0, scale=scale).fit(X)
    if scale:
        np.testing.assert_allclose(pca.scale_, dense.scale_)
        varying = X.std(axis=0) > 0
        np.testing.assert_allclose(pca.scale_[varying], X.std(axis=0)[varying])


def test_solvers_and_limits():
    X = load_digits().data
    quick, best = (
        ob.SparsePCA(4, alpha=0.05, solver=solver, random_state=0).fit(X)
        for solver in (ob.OBCD(), None)
    )
    # A single descent may be as good or slightly better.
    assert best.objective_ <= quick.objective_ + 1e-3 * abs(quick.objective_)
    path = ob.SparsePCA(4, alpha=0.05, solver=ob.Continuation()).fit(X)
    assert path.result_.path
    with pytest.raises(TypeError, match="solver"):
        ob.SparsePCA(4, solver="auto").fit(X)
    timed = ob.SparsePCA(4, n_nonzero=30, max_time=0.5).fit(X)
    assert timed.n_nonzero_ == 30
    # The components are orthonormal even without any time.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        none = ob.SparsePCA(4, n_nonzero=30, max_time=0.0).fit(X)
    np.testing.assert_allclose(none.components_ @ none.components_.T, np.eye(4), atol=1e-12)


@pytest.mark.long
def test_many_features():
    """The search is on some of the features first, and no worse for it."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((30, 4)) @ rng.standard_normal((4, 2600))
    X = (factors + rng.standard_normal((30, 2600))) * rng.pareto(2.0, 2600)
    path = ob.SparsePCA(4, alpha=0.1, solver=ob.OBCD(), random_state=0).fit(X)
    large = ob.SparsePCA(4, alpha=0.1, random_state=0).fit(X)
    assert large.result_.search.profile["n_rows_chosen"] < 2600
    assert large.objective_ <= path.objective_ + 1e-3 * abs(path.objective_)
    assert ob.SparsePCA(4, n_nonzero=33, max_time=0.5, random_state=0).fit(X).n_nonzero_ == 33
    assert ob.NonnegativePCA(4, max_time=0.5, random_state=0).fit(X).components_.min() >= 0.0


def test_grid_search_in_a_pipeline():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(
        StandardScaler(), ob.SparsePCA(2, random_state=0), LogisticRegression()
    )
    search = GridSearchCV(pipeline, {"sparsepca__alpha": [0.01, 0.1, 0.9]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    alone = GridSearchCV(ob.SparsePCA(2), {"alpha": [1e-3, 1.0]}, cv=3).fit(X)
    assert alone.best_params_ == {"alpha": 1e-3}


@short
def test_alpha_scales():
    X = load_digits().data
    relative = ob.SparsePCA(3, alpha=0.2, random_state=0).fit(X)
    assert relative.alpha_ == pytest.approx(0.2 * relative.alpha_max_)
    absolute = ob.SparsePCA(3, alpha=relative.alpha_, alpha_scale="absolute", random_state=0)
    np.testing.assert_allclose(absolute.fit(X).components_, relative.components_, atol=1e-9)
    single = ob.SparsePCA(3, alpha=1.0).fit(X)
    assert single.n_nonzero_ == 3


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (ValueError, {"n_nonzero": [4]}),
        (ValueError, {"n_nonzero": [4, 5]}),
        (TypeError, {"n_nonzero": [2.0, 2]}),
        (ValueError, {"include": [0]}),
        (ValueError, {"exclude": [0]}),
    ],
)
def test_bad_parameters(error, arguments):
    (name,) = arguments
    with pytest.raises(error, match=rf"\b{name}\b"):
        ob.SparsePCA(**{"n_components": 2, **arguments}).fit(load_iris().data)


@short
@pytest.mark.parametrize("penalty", ["l0", "l1"])
@pytest.mark.parametrize(
    "limit",
    [
        {"n_nonzero": 4},
        {"n_nonzero": [2, 2]},
        {"n_features": 3},
        {"n_features": 3, "center": False},
    ],
)
@pytest.mark.parametrize("alpha", [0.1, 0.0, 2.5])
def test_a_weight_beside_a_limit_is_refused(penalty, limit, alpha):
    name, count = next(iter(limit.items()))
    both = clone(ob.SparsePCA(2, penalty=penalty, alpha=alpha, **limit))
    assert both.get_params()["alpha"] == alpha
    X = load_iris().data
    for fit in (both.fit, both.partial_fit, lambda X: both.fit_covariance(np.cov(X.T))):
        with pytest.raises(ValueError, match=rf"alpha=.*{alpha}.*{name}=") as caught:
            fit(X)
        assert str(count) in str(caught.value)
    if penalty == "l0":
        both.set_params(alpha=None).fit(X)


@pytest.mark.parametrize("penalty", ["l0", "l1"])
def test_the_default_weight(penalty):
    X = load_iris().data
    given = ob.SparsePCA(2, penalty=penalty, alpha=0.1, random_state=0).fit(X)
    default = ob.SparsePCA(2, penalty=penalty, random_state=0).fit(X)
    assert default.get_params()["alpha"] is None
    assert default.alpha_ == given.alpha_ == pytest.approx(0.1 * given.alpha_max_)
    np.testing.assert_array_equal(default.components_, given.components_)


@pytest.mark.parametrize("make", BOTH)
def test_the_number_of_threads_changes_no_bit(make):
    X = load_digits().data
    one, two = (make(random_state=0, n_jobs=jobs).fit(X).components_ for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


@short
def test_no_variance_is_negative():
    """Of two centred samples the second component has no variance, up to rounding."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((2, 2)) * 10.0 ** rng.uniform(-12, 0, 2)
        pca = ob.SparsePCA(2, n_nonzero=4, penalty="l1", scale=True, random_state=0).fit(X)
        assert pca.explained_variance_.min() >= 0.0
        assert pca.explained_variance_ratio_.min() >= 0.0
        assert np.isfinite(pca.score_correlation_).all()


@short
@pytest.mark.parametrize("make", [ob.SparsePCA, ob.NonnegativePCA])
def test_one_feature_is_the_component(make):
    X = np.array([[1.0], [2.0], [4.0]])
    pca = make().fit(X)
    np.testing.assert_array_equal(pca.components_, [[1.0]])
    np.testing.assert_allclose(pca.explained_variance_, X.var(ddof=1))
    np.testing.assert_allclose(pca.explained_variance_ratio_, 1.0)
    assert (pca.result_, pca.n_iter_, pca.n_nonzero_, pca.objective_) == (None, 1, 1, 0.0)
    np.testing.assert_allclose(pca.transform(X), X - X.mean())


@short
def test_unsorted_columns_of_sparse_data():
    X = sparse.random(60, 8, 0.4, format="csc", random_state=0)
    order = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in pairwise(X.indptr)])
    mixed = sparse.csc_matrix((X.data[order], X.indices[order], X.indptr), shape=X.shape)
    assert not mixed.has_sorted_indices
    wanted = ob.SparsePCA(2, random_state=0).fit(X)
    got = ob.SparsePCA(2, random_state=0).fit(mixed)
    np.testing.assert_array_equal(got.components_, wanted.components_)
    np.testing.assert_array_equal(got.explained_variance_, wanted.explained_variance_)


@short
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


def test_warm_start_keeps_the_components():
    X = load_digits().data
    pca = ob.SparsePCA(3, alpha=0.05, warm_start=True, random_state=0).fit(X)
    first = pca.components_.copy()
    pca.fit(X)
    assert pca.path_ is None
    np.testing.assert_allclose(pca.components_, first, atol=1e-4)
