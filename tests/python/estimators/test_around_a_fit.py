"""Functions around a fit: tables of loadings, missing values, choices, clustering."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils.estimator_checks import check_estimator

import orthobcd as ob
from orthobcd.sklearn import Loadings
from orthobcd.sklearn.base import decorrelated
from orthobcd.sklearn.missing import gaussian_of
from orthobcd.sklearn.orthogonal_nmf import _products

short = pytest.mark.usefixtures("short_searches")


def planted(m: int = 200, seed: int = 0, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Data with three sparse orthogonal components among 20 features."""
    rng = np.random.default_rng(seed)
    V = np.zeros((20, 3))
    for k, (start, size) in enumerate(((0, 5), (5, 4), (9, 4))):
        V[start : start + size, k] = 1.0 / np.sqrt(size)
    scores = rng.standard_normal((m, 3)) * np.array([3.0, 2.4, 2.0])
    return scores @ V.T + noise * rng.standard_normal((m, 20)), V


@short
@pytest.mark.parametrize(
    "estimator",
    [
        ob.OrthogonalNMF(),
        ob.OrthogonalNMF(2, solver=ob.OBCD()),
        ob.SparsePCACV(n_alphas=3, cv=2),
        ob.SparsePCACV(n_alphas=3, criterion="ebic"),
        ob.SparsePCA(missing="em"),
    ],
    ids=str,
)
def test_check_estimator(estimator):
    for check in check_estimator(estimator, on_fail=None, on_skip=None):
        assert check["status"] in ("passed", "skipped"), (check["check_name"], check["exception"])
        assert check["status"] == "passed" or "array_api" in check["check_name"]


@short
def test_loadings(tmp_path):
    data = load_iris(as_frame=True).data
    pca = ob.SparsePCA(2, n_nonzero=5, random_state=0).fit(data)
    table = pca.loadings()
    pairs = [pair for k in range(2) for pair in table.of(k)]
    assert len(pairs) == pca.n_nonzero_ == len(table.to_frame())
    for k in range(2):
        sizes = [abs(value) for _, value in table.of(k)]
        assert sizes == sorted(sizes, reverse=True)
        for name, value in table.of(k):
            assert pca.components_[k, list(data.columns).index(name)] == value
    for name, _ in pairs:
        assert name in table.summary()
        assert name in table._repr_html_()
    for ending in ("npz", "json"):
        table.save(tmp_path / f"table.{ending}")
        again = ob.Loadings.load(tmp_path / f"table.{ending}")
        assert again.features == table.features
        np.testing.assert_array_equal(again.components, table.components)
        np.testing.assert_array_equal(again.score_correlation, table.score_correlation)
    (tmp_path / "other.json").write_text('{"kind": "x"}')
    with pytest.raises(ValueError, match="Loadings"):
        ob.Loadings.load(tmp_path / "other.json")
    unnamed = ob.SparsePCA(1, random_state=0).fit(data.to_numpy()).loadings()
    assert unnamed.of(0)[0][0].startswith("x")


@short
def test_score_correlation():
    X = load_breast_cancer().data
    pca = ob.SparsePCA(3, scale=True, random_state=0).fit(X)
    np.testing.assert_allclose(
        pca.score_correlation_, np.corrcoef(pca.transform(X), rowvar=False), atol=1e-10
    )


def test_pickles_are_no_larger_than_twice_their_arrays():
    X = load_digits().data
    for make in (ob.SparsePCA, ob.NonnegativePCA):
        pca = make(5, random_state=0).fit(X)
        arrays = [v for v in vars(pca).values() if isinstance(v, np.ndarray)]
        arrays += [v for v in vars(pca.result_).values() if isinstance(v, np.ndarray)]
        arrays += list(pca.result_.history.values())
        assert len(pickle.dumps(pca)) <= 2 * sum(a.nbytes for a in arrays) + 4096


def test_em_of_complete_data_is_its_covariance():
    X, _ = planted()
    model = gaussian_of(X, 3)
    mean, covariance = model.moments(X)
    np.testing.assert_allclose(mean, X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(covariance, np.cov(X.T, bias=True), atol=1e-12)
    np.testing.assert_array_equal(model.completed(X), X)


@pytest.mark.parametrize("correlation", [0.1, 0.8, -0.95])
def test_one_factor_completes_two_features_by_their_regression(correlation):
    """One factor and noise of one variance are any correlation of two features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 2)) @ np.linalg.cholesky([[1, correlation], [correlation, 1]]).T
    X = X * [2.0, 0.1] + [5.0, -3.0]
    model = gaussian_of(X, 1, tolerance=1e-12)
    mean, covariance = model.moments(X)
    gapped = X.copy()
    gapped[:, 1] = np.nan
    slope = covariance[0, 1] / covariance[0, 0]
    wanted = mean[1] + slope * (X[:, 0] - mean[0])
    np.testing.assert_allclose(model.completed(gapped)[:, 1], wanted, atol=1e-9)


def test_em_completes_by_the_conditional_mean():
    """Against the textbook formula with the whole covariance."""
    X, _ = planted()
    rng = np.random.default_rng(1)
    gapped = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    model = gaussian_of(gapped, 3)
    W, s = model.loadings * model.scale[:, None], model.scale
    cov = W @ W.T + model.noise * np.diag(s**2)
    mean = model.mean * s
    done = model.completed(gapped)
    for row, full in zip(gapped[:20], done[:20], strict=True):
        gaps = np.isnan(row)
        known = ~gaps
        expected = mean[gaps] + cov[np.ix_(gaps, known)] @ np.linalg.solve(
            cov[np.ix_(known, known)], row[known] - mean[known]
        )
        np.testing.assert_allclose(full[gaps], expected, atol=1e-8)
        np.testing.assert_array_equal(full[known], row[known])


@pytest.mark.parametrize("scale", [False, True])
def test_missing_values(scale):
    X, V = planted()
    gapped = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    make = lambda **k: ob.SparsePCA(3, n_nonzero=13, scale=scale, random_state=0, **k)  # noqa: E731
    whole, pca = make().fit(X), make(missing="em").fit(gapped)
    # The variance is within 2 % of that of the complete data, and supports are the planted ones.
    centred = (X - X.mean(axis=0)) / (X.std(axis=0) if scale else 1.0)
    best, got = (np.sum((centred @ fit.components_.T) ** 2) for fit in (whole, pca))
    assert best - got <= 0.02 * best
    found = {frozenset(np.flatnonzero(row)) for row in pca.components_}
    assert found == {frozenset(np.flatnonzero(column)) for column in V.T}
    assert np.isfinite(pca.transform(gapped)).all()
    scores = make(missing="em").fit(X).transform(gapped)
    np.testing.assert_allclose(scores, whole.transform(X), atol=0.5 * np.abs(scores).max())
    with pytest.raises(ValueError, match="sample_weight"):
        make(missing="em").fit(gapped, sample_weight=np.ones(len(X)))
    with pytest.raises(ValueError, match="missing"):
        make(missing="em").partial_fit(gapped)
    with pytest.raises(ValueError, match="has none"):
        make(missing="em").fit(np.where(np.arange(20) == 3, np.nan, X))
    with pytest.raises(ValueError, match="missing"):
        make(missing="mean").fit(X)


ESTIMATORS = [
    ob.SparsePCA(2),
    ob.NonnegativePCA(2),
    ob.OrthogonalNMF(2),
    ob.SparsePCACV(2, n_alphas=2, cv=2),
]


@short
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, np.float32, "frame"])
def test_missing_values_are_refused_with_advice(estimator, container):
    X, _ = planted(30)
    X = np.abs(X)
    whole = clone(estimator).fit(X)
    X[3, 4] = np.nan
    if container == "frame":
        container = pytest.importorskip("pandas").DataFrame
    for call in (
        lambda: clone(estimator).fit(container(X)),
        lambda: whole.transform(container(X)),
        *([lambda: clone(estimator).partial_fit(X)] if hasattr(estimator, "partial_fit") else []),
    ):
        with pytest.raises(ValueError, match=r"X must have no missing value \(NaN\)") as caught:
            call()
        assert "HistGradient" not in str(caught.value)
        nmf = isinstance(estimator, ob.OrthogonalNMF)
        assert ("sklearn.impute" if nmf else "missing='em'") in str(caught.value)
    X[3, 4] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        clone(estimator).fit(container(X))


def test_missing_values_of_sparse_data_are_refused_whatever_missing_is():
    X, _ = planted(30)
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="dense"):
        ob.SparsePCA(2, missing="em").fit(sparse.csr_array(X))


def test_cross_validation_finds_what_was_planted():
    X, V = planted()
    pca = ob.SparsePCACV(3, random_state=0).fit(X)
    found = {frozenset(np.flatnonzero(row)) for row in pca.components_}
    assert found == {frozenset(np.flatnonzero(column)) for column in V.T}
    assert pca.scores_.shape == (15, 5)
    assert pca.n_nonzero_ == pca.best_estimator_.n_nonzero_
    # The optimum of the first penalty of the first fold is known in closed form.
    train, test = X[40:], X[:40] - X[40:].mean(axis=0)
    train = train - train.mean(axis=0)
    alone = ob.SparsePCACV(3, alphas=[100.0], random_state=0).fit(X)
    largest = np.argsort(-train.var(axis=0))[:3]
    share = np.sum(test[:, largest] ** 2) / np.sum(test**2)
    assert alone.scores_[0, 0] == pytest.approx(share, rel=1e-12)
    assert alone.n_nonzero_path_.tolist() == [[3] * 5]


@pytest.mark.parametrize("criterion", ["bic", "ebic"])
def test_information_criteria_find_what_was_planted(criterion):
    X, V = planted()
    pca = ob.SparsePCACV(3, criterion=criterion, random_state=0).fit(X)
    found = {frozenset(np.flatnonzero(row)) for row in pca.components_}
    assert found == {frozenset(np.flatnonzero(column)) for column in V.T}
    # The optimum of the first penalty is known in closed form.
    centred = X - X.mean(axis=0)
    alone = ob.SparsePCACV(3, alphas=[100.0], criterion=criterion, random_state=0).fit(X)
    left = np.sum(centred**2) - np.sort(np.sum(centred**2, axis=0))[-3:].sum()
    bic = np.log(left / X.size) + 3 * np.log(X.size) / X.size
    choices = 2.0 * np.log(60 * 59 * 58 / 6) / X.size if criterion == "ebic" else 0.0
    assert alone.scores_[0, 0] == pytest.approx(bic + choices, rel=1e-9)


def test_one_standard_error_is_no_denser_than_the_best():
    X, _ = planted(noise=2.0)
    fits = {
        rule: ob.SparsePCACV(3, n_alphas=9, rule=rule, random_state=0).fit(X)
        for rule in ("one_se", "best")
    }
    assert fits["one_se"].best_index_ <= fits["best"].best_index_
    parallel = ob.SparsePCACV(3, n_alphas=9, random_state=0, n_jobs=2).fit(X)
    np.testing.assert_array_equal(parallel.scores_, fits["one_se"].scores_)
    S = sparse.csr_array(np.where(np.abs(X) > 2.0, X, 0.0))
    assert ob.SparsePCACV(2, n_alphas=4, cv=3, random_state=0).fit(S).scores_.shape == (4, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"criterion": "aic"}, "criterion"),
        ({"rule": "two"}, "rule"),
        ({"alphas": [-1.0]}, "alphas"),
        ({"penalty": "l2"}, "penalty"),
    ],
)
def test_choices_at_the_door(options, words):
    with pytest.raises(ValueError, match=words):
        ob.SparsePCACV(2, **options).fit(load_iris().data)


@pytest.mark.parametrize("short_searches", [0.2], indirect=True, ids=["work-0.2"])
def test_stability(short_searches):
    X, V = planted()
    pca = ob.SparsePCA(3, n_nonzero=13, random_state=0)
    stability = ob.support_stability(pca, X, n_subsamples=6, random_state=0)
    support = stability.components != 0.0
    assert {frozenset(np.flatnonzero(row)) for row in support} == {
        frozenset(np.flatnonzero(column)) for column in V.T
    }
    assert stability.frequencies[support].min() > 0.5 > stability.frequencies[~support].max()
    again = ob.support_stability(pca, X, n_subsamples=6, random_state=0, n_jobs=2)
    np.testing.assert_array_equal(again.frequencies, stability.frequencies)
    with pytest.raises(TypeError, match="estimator"):
        ob.support_stability(KMeans(), X)
    assert not hasattr(pca, "components_")
    assert clone(pca).n_nonzero == 13


@short
@pytest.mark.parametrize("make", [ob.SparsePCA, ob.NonnegativePCA])
@pytest.mark.parametrize(
    "limits",
    [
        {"n_nonzero": [6, 2, 4]},
        {"n_nonzero": [3, 3, 5], "exclude": [["f0"], [], []]},
        {"n_nonzero": 13, "include": [["f19"], [], ["f18"]]},
        {"n_nonzero": [5, 4, 4], "include": [["f12"], [], []]},
    ],
)
def test_stability_is_of_components_with_the_same_limit(make, limits):
    """No component of a subsample has more features than the one that it is counted for."""
    pandas = pytest.importorskip("pandas")
    X, _ = planted(60, noise=2.0)
    frame = pandas.DataFrame(np.abs(X), columns=[f"f{i}" for i in range(20)])
    pca = make(3, **limits, random_state=0)
    found = ob.support_stability(pca, frame, n_subsamples=3, random_state=0)
    assert found.features == tuple(frame.columns)
    for t in range(3):
        if np.ndim(limits["n_nonzero"]):
            assert found.frequencies[t].sum() <= limits["n_nonzero"][t] + 1e-9
        for name in limits.get("exclude", [[]] * 3)[t]:
            assert found.frequencies[t, found.features.index(name)] == 0.0


@short
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_stability_without_names(container):
    X, _ = planted(60)
    found = ob.support_stability(ob.SparsePCA(2, n_nonzero=6), container(X), n_subsamples=2)
    assert found.features == tuple(f"x{i}" for i in range(20))


@pytest.mark.parametrize("method", ["parallel", "held_out"])
def test_number_of_components(method):
    X, _ = planted()
    choice = ob.choose_n_components(X, method, most=6, random_state=0)
    assert choice.n_components == 3
    assert choice.values.shape == choice.thresholds.shape == (6,)
    noise = np.random.default_rng(0).standard_normal((200, 20))
    assert ob.choose_n_components(noise, method, most=4, random_state=0).n_components == 1
    with pytest.raises(ValueError, match="method"):
        ob.choose_n_components(X, "scree")


@short
def test_pictures():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, _ = planted(60)
    for thing in (
        ob.SparsePCACV(2, n_alphas=4, cv=3, random_state=0).fit(X),
        ob.SparsePCACV(2, n_alphas=4, criterion="bic", random_state=0).fit(X),
        ob.support_stability(ob.SparsePCA(2, n_nonzero=9, random_state=0), X, n_subsamples=3),
        ob.choose_n_components(X, most=4),
    ):
        ax = thing.plot()
        ax.figure.canvas.draw()
        assert ax.has_data()
        matplotlib.pyplot.close("all")


def blocks(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Samples of four kinds, each a multiple of a profile, with noise."""
    rng = np.random.default_rng(seed)
    profiles = rng.random((4, 30)) * (rng.random((4, 30)) < 0.4)
    labels = rng.integers(0, 4, 80)
    data = rng.uniform(0.5, 2.0, (80, 1)) * profiles[labels] + 0.05 * rng.random((80, 30))
    return data, labels


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_orthogonal_nmf(container):
    A, labels = blocks()
    nmf = ob.OrthogonalNMF(4, random_state=0).fit(container(A))
    X, Y = nmf.membership_, nmf.components_
    np.testing.assert_allclose(X.T @ X, np.eye(4), atol=1e-12)
    assert X.min() >= 0.0
    assert Y.min() >= 0.0
    np.testing.assert_allclose(Y, X.T @ A, atol=1e-9)
    assert nmf.reconstruction_err_ == pytest.approx(np.linalg.norm(A - X @ Y))
    assert nmf.result_.objective == pytest.approx(-0.5 * np.sum(Y**2))
    assert (np.count_nonzero(X, axis=1) <= 1).all()
    assert normalized_mutual_info_score(labels, nmf.labels_) == pytest.approx(1.0)
    np.testing.assert_array_equal(nmf.predict(container(A)), nmf.labels_)
    # No other memberships with a single entry each fit the samples better.
    W = nmf.transform(container(A))
    assert (np.count_nonzero(W, axis=1) <= 1).all()
    for k in range(4):
        alone = np.maximum(A @ Y[k], 0.0) / (Y[k] @ Y[k])
        left = np.linalg.norm(A - np.outer(alone, Y[k]), axis=1)
        assert (np.linalg.norm(A - W @ Y, axis=1) <= left + 1e-12).all()
    assert nmf.fit_predict(container(A)).shape == (80,)
    with pytest.raises(ValueError, match=r"(?i)negative"):
        ob.OrthogonalNMF(2).fit(container(-A))
    with pytest.raises(ValueError, match="n_components"):
        ob.OrthogonalNMF(81).fit(A)


@pytest.mark.parametrize("count", [1, 20, 21, 25])
def test_a_table_shows_twenty_loadings_of_a_component(count):
    components = np.zeros((1, 30))
    components[0, :count] = np.linspace(0.9, 0.1, count)
    names = tuple(f"f{k}" for k in range(30))
    table = Loadings(components, names, np.ones(1), np.ones(1), np.eye(1))
    for text in (table.summary(), table._repr_html_()):
        assert f"{count} loadings" in text
        assert text.count(" +0.") == min(count, 20)
        assert (f"and {count - 20} smaller ones" in text) == (count > 20)


@pytest.mark.parametrize("shape", [(5000, 3), (3, 5000)])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_products_of_a_clustering_are_of_all_rows(shape, container):
    rng = np.random.default_rng(0)
    A, x = rng.uniform(size=shape), rng.uniform(size=(shape[0], 2))
    products, total = _products(container(A), x)
    np.testing.assert_allclose(products, A.T @ x)
    assert total == pytest.approx(np.sum(A**2))


def test_one_sample_is_a_cluster():
    A, _ = blocks()
    nmf = ob.OrthogonalNMF().fit(A[:1])
    np.testing.assert_array_equal(nmf.membership_, [[1.0]])
    np.testing.assert_allclose(nmf.components_, A[:1])
    assert (nmf.result_, nmf.n_iter_, nmf.labels_[0]) == (None, 1, 0)
    two = ob.OrthogonalNMF(2, random_state=0).fit(A[[0, -1]])
    np.testing.assert_allclose(two.membership_.sum(axis=0), [1.0, 1.0])
    assert set(two.labels_) == {0, 1}


def test_samples_of_zeros_have_a_label():
    A, _ = blocks()
    A[3] = 0.0
    nmf = ob.OrthogonalNMF(4, random_state=0).fit(A)
    assert 0 <= nmf.labels_[3] < 4
    assert not nmf.transform(A[3:4]).any()


@pytest.mark.parametrize(
    ("cardinality", "turns"),
    [(None, False), (14, False), (16, True), ([6, 6, 4], True), ([6, 5, 5], False)],
)
def test_components_that_share_features_can_be_uncorrelated(cardinality, turns):
    """Two on six features with five each, one on four others."""
    rng = np.random.default_rng(0)
    V = np.zeros((12, 3))
    V[:6, :2] = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    V[6:10, 2] = 0.5
    for k, row in ((0, 0), (1, 1)):
        angle = np.arctan2(V[row, k], V[row, 1 - k])
        c, s = np.cos(angle), np.sin(angle)
        V[:, [k, 1 - k]] = V[:, [k, 1 - k]] @ np.array([[c, s], [-s, c]])
        if k == 0:
            V[row, k] = 0.0
            break
    second = V.T @ np.cov(rng.standard_normal((12, 40))) @ V
    turned = decorrelated(V, second, cardinality)
    np.testing.assert_allclose(turned.T @ turned, np.eye(3), atol=1e-12)
    inner = (V.T @ turned).T @ second @ (V.T @ turned)
    assert (abs(inner[0, 1]) < 1e-12) == turns
    assert np.trace(inner) == pytest.approx(np.trace(second))
    if not turns:
        np.testing.assert_array_equal(turned, V)


@pytest.mark.parametrize("r", [2, 3, 5])
def test_full_components_can_be_uncorrelated(r):
    """A rotation that keeps the number of nonzeros is one that is allowed."""
    rng = np.random.default_rng(r)
    V = np.linalg.qr(rng.standard_normal((9, r)))[0]
    second = np.cov(rng.standard_normal((9, 40)))
    turned = decorrelated(V, V.T @ second @ V, None)
    inner = turned.T @ second @ turned
    np.testing.assert_allclose(inner, np.diag(np.diag(inner)), atol=1e-12)


@short
def test_uncorrelated_keeps_what_is_explained():
    X = load_breast_cancer().data
    plain, turned = (
        ob.SparsePCA(3, n_nonzero=12, scale=True, uncorrelated=u, random_state=0).fit(X)
        for u in (False, True)
    )
    assert turned.n_nonzero_ <= 12
    assert turned.score(X) == pytest.approx(plain.score(X), rel=1e-12)
    np.testing.assert_allclose(turned.components_ @ turned.components_.T, np.eye(3), atol=1e-12)
    with pytest.raises(ValueError, match="uncorrelated"):
        ob.SparsePCA(2, penalty="l1", uncorrelated=True).fit(X)
