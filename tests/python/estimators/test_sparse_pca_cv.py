"""`SparsePCACV`: numbers of loadings to choose from, and what it has of the other estimators."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import orthobcd as ob

pytest.importorskip("sklearn")
from sklearn.base import clone

from orthobcd.sklearn.base import OrthonormalPCA


def planted(seed: int = 0, m: int = 120, n: int = 16) -> np.ndarray:
    """Two components of four features each, and noise."""
    rng = np.random.default_rng(seed)
    V = np.zeros((n, 2))
    V[:4, 0] = V[5:9, 1] = 0.5
    return rng.standard_normal((m, 2)) * [5.0, 4.0] @ V.T + rng.standard_normal((m, n))


@pytest.mark.parametrize("criterion", ["cv", "bic", "ebic"])
@pytest.mark.parametrize("grid", [[2, 4, 8, 16, 32], (32, 8, 2, 8, 16), np.array([2, 8, 20])])
def test_the_planted_number_of_loadings_is_chosen(grid, criterion):
    X = planted()
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
    X = planted(seed)
    grid = [2, 4, 6, 8, 12, 16, 24, 32]
    one_se, best = (
        ob.SparsePCACV(2, n_nonzeros=grid, rule=rule, random_state=0).fit(X)
        for rule in ("one_se", "best")
    )
    np.testing.assert_array_equal(one_se.scores_, best.scores_)
    mean = best.scores_.mean(axis=1)
    assert best.best_index_ == np.argmax(mean)
    error = best.scores_[best.best_index_].std(ddof=1) / np.sqrt(5)
    within = mean >= mean.max() - error
    assert one_se.best_index_ == np.flatnonzero(within)[0] <= best.best_index_


def test_it_is_an_estimator_like_the_others():
    X = planted()
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
    X = planted()
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
        ob.SparsePCACV(2, **options).fit(planted())
