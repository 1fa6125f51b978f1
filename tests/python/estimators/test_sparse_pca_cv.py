"""`SparsePCACV`: penalty weights and numbers of loadings to choose from."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine

import orthobcd as ob
from orthobcd.sklearn import sparse_pca_cv
from orthobcd.sklearn.base import OrthonormalPCA

from .samples import planted


def decreasing(seed: int = 0, m: int = 120, n: int = 16) -> np.ndarray:
    """Two components of four features each, and noise."""
    rng = np.random.default_rng(seed)
    V = np.zeros((n, 2))
    V[:4, 0] = V[5:9, 1] = 0.5
    return rng.standard_normal((m, 2)) * [5.0, 4.0] @ V.T + rng.standard_normal((m, n))


@pytest.mark.parametrize("criterion", ["cv", "bic", "ebic"])
@pytest.mark.parametrize("grid", [[2, 4, 8, 16, 32], (32, 8, 2, 8, 16), np.array([2, 8, 20])])
def test_the_planted_number_of_loadings_is_chosen(grid, criterion):
    X = decreasing()
    pca = ob.SparsePCACV(2, n_nonzeros=grid, criterion=criterion, random_state=0).fit(X)
    values = sorted({int(k) for k in grid})
    assert pca.n_nonzeros_.tolist() == values
    assert pca.alphas_ is None
    assert pca.alpha_ is None
    folds = 5 if criterion == "cv" else 1
    assert pca.scores_.shape == pca.n_nonzero_path_.shape == (len(values), folds)
    # A limit is met unless more loadings have no gain.
    assert (pca.n_nonzero_path_ <= np.array(values)[:, None]).all()
    assert pca.n_nonzeros_[pca.best_index_] == pca.n_nonzero_ == 8
    np.testing.assert_array_equal(
        pca.components_, ob.SparsePCA(2, n_nonzero=8, random_state=0).fit(X).components_
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_rule_of_one_standard_error(seed):
    """The best held-out variance has more loadings than the fewest within a standard error."""
    X = decreasing(seed)
    grid = [2, 4, 6, 8, 12, 16, 24, 32]
    one_se, best = (
        ob.SparsePCACV(2, n_nonzeros=grid, rule=rule, random_state=0, n_jobs=jobs).fit(X)
        for rule, jobs in (("one_se", 1), ("best", 2))
    )
    np.testing.assert_array_equal(one_se.scores_, best.scores_)
    mean = best.scores_.mean(axis=1)
    assert best.best_index_ == np.argmax(mean)
    error = best.scores_[best.best_index_].std(ddof=1) / np.sqrt(5)
    within = mean >= mean.max() - error
    assert one_se.best_index_ == np.flatnonzero(within)[0] <= best.best_index_


def test_it_is_an_estimator_like_the_others():
    X = decreasing()
    pca = ob.SparsePCACV(2, n_nonzeros=[4, 8], cv=2, random_state=0)
    assert isinstance(pca, OrthonormalPCA)
    assert not hasattr(pca, "partial_fit")
    assert not hasattr(pca, "components_")
    pca = clone(pca).fit(X)
    alone = ob.SparsePCA(2, n_nonzero=8, random_state=0).fit(X)
    fitted = {name for name in vars(alone) if name.endswith("_")} - {"gap_", "lower_bound_"}
    assert fitted <= set(vars(pca))
    best = pca.best_estimator_
    assert type(best) is ob.SparsePCA
    np.testing.assert_array_equal(best.transform(X), pca.transform(X))
    np.testing.assert_array_equal(pca.fit_transform(X), pca.transform(X))
    assert best.score(X) == pca.score(X)
    source = inspect.getsource(type(pca))
    assert "setattr" not in source


@pytest.mark.parametrize("criterion", ["bic", "ebic"])
@pytest.mark.parametrize("scale", [False, True])
def test_a_covariance_is_enough_for_an_information_criterion(criterion, scale):
    X = decreasing()
    pca = ob.SparsePCACV(2, n_nonzeros=[4, 8, 16], criterion=criterion, scale=scale, random_state=0)
    whole = clone(pca).fit(X)
    S = np.cov(X, rowvar=False)
    found = clone(pca).fit_covariance(S, len(X), X.mean(axis=0))
    assert found.best_index_ == whole.best_index_
    np.testing.assert_allclose(found.scores_, whole.scores_, rtol=1e-6)
    np.testing.assert_allclose(found.components_, whole.components_, atol=1e-6)
    with pytest.raises(ValueError, match="criterion"):
        clone(pca).set_params(criterion="cv").fit_covariance(S, len(X))


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (ValueError, {"n_nonzeros": [1]}),
        (ValueError, {"n_nonzeros": [33]}),
        (ValueError, {"n_nonzeros": []}),
        (ValueError, {"n_nonzeros": 5}),
        (ValueError, {"n_nonzeros": [[3, 4]]}),
        (TypeError, {"n_nonzeros": [4.5]}),
        (TypeError, {"n_nonzeros": ["a"]}),
        (ValueError, {"n_nonzeros": [4], "alphas": [0.1]}),
        (ValueError, {"n_nonzeros": [4], "penalty": "l1"}),
    ],
)
def test_refused(error, options):
    with pytest.raises(error, match="n_nonzeros"):
        ob.SparsePCACV(2, **options).fit(decreasing())


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


@pytest.mark.slow
def test_the_rule_of_one_standard_error_divides_by_the_folds_less_one():
    """By data on which the rule with three or with one degree of freedom chooses another weight."""
    others = set()
    for seed in range(60):  # until data of both kinds are met
        X, _ = planted(noise=2.0, seed=seed)
        cv = ob.SparsePCACV(2, n_alphas=15, cv=3, rule="one_se", random_state=0).fit(X)
        mean = cv.scores_.mean(axis=1)
        best = int(np.argmax(mean))
        squares = np.sum((cv.scores_[best] - mean[best]) ** 2)
        chosen = {
            freedom: int(np.flatnonzero(mean >= mean[best] - np.sqrt(squares / freedom / 3))[0])
            for freedom in (1, 2, 3)
        }
        assert cv.best_index_ == chosen[2]
        others |= {freedom for freedom in (1, 3) if chosen[freedom] != chosen[2]}
        if others == {1, 3}:
            break
    assert others == {1, 3}


def test_a_weight_of_zero_is_allowed_and_none_below():
    X = np.random.default_rng(0).standard_normal((12, 4))
    assert list(ob.SparsePCACV(1, alphas=[0.0, 0.5], cv=2).fit(X).alphas_) == [0.5, 0.0]
    with pytest.raises(ValueError, match="alphas must be nonnegative"):
        ob.SparsePCACV(1, alphas=[0.5, -1e-300], cv=2).fit(X)


@pytest.mark.parametrize("criterion", ["cv", "bic", "ebic"])
@pytest.mark.parametrize("rank", [1, 5])
def test_scores_of_a_choice_follow_the_units(criterion, rank):
    """A logarithm of the residual, which rounding bounds from below, or a share of the variance."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, rank)) @ rng.standard_normal((rank, 6))
    options = {"alphas": [0.5, 0.0], "criterion": criterion, "random_state": 0, "cv": 2}
    one, other = (ob.SparsePCACV(1, **options).fit(size * X).scores_ for size in (1.0, 1e3))
    up = 0.0 if criterion == "cv" else 2.0 * np.log(1e3)
    np.testing.assert_allclose(other, one + up, rtol=1e-6, atol=0.0 if rank > 1 else 3.0)
    assert np.isfinite(one).all()


@pytest.mark.parametrize("criterion", ["cv", "bic", "ebic"])
def test_searches_are_begun_while_there_is_time(criterion, monkeypatch):
    """Without time every fold has its first point alone, whose scores are those of all weights."""
    begun = []

    def counted(problem, *rest, **options):
        begun.append(problem)
        return ob.solve(problem, *rest, **options)

    monkeypatch.setattr(sparse_pca_cv, "solve", counted)
    options = {"n_alphas": 4, "cv": 3, "criterion": criterion, "random_state": 0}
    X = load_wine().data
    pca = ob.SparsePCACV(2, max_time=0.0, **options).fit(X)
    folds = 3 if criterion == "cv" else 1
    assert len(begun) == folds
    assert pca.scores_.shape == pca.n_nonzero_path_.shape == (4, folds)
    assert (pca.scores_ == pca.scores_[0]).all()
    assert (pca.n_nonzero_path_ == pca.n_nonzero_path_[0]).all()
    assert pca.components_.shape == (2, 13)
    begun.clear()
    ob.SparsePCACV(2, **options).fit(X)
    assert len(begun) == 4 * folds


@pytest.mark.parametrize("exponent", [-20, 10])
def test_a_residual_of_zero_follows_the_units(exponent):
    """Powers of two change no digit, so all criteria change by the logarithm of the square."""
    X = np.random.default_rng(0).standard_normal((9, 3))
    options = {"alphas": [0.5, 0.0], "criterion": "bic", "random_state": 0}
    one, other = (ob.SparsePCACV(3, **options).fit(s * X).scores_ for s in (1.0, 2.0**exponent))
    np.testing.assert_allclose(other - one, 2.0 * exponent * np.log(2.0), rtol=1e-9)
