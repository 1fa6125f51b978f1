"""`support_stability`: how often features are chosen in subsamples."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine

import orthobcd as ob
from orthobcd.sklearn import selection
from orthobcd.sklearn.base import prepare_subsample_fit

from .samples import planted

short = pytest.mark.usefixtures("short_searches")


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


@pytest.mark.parametrize("options", [{"alpha": 0.1}, {"alpha": 0.1, "penalty": "l1"}])
def test_penalised_fits_to_subsamples_have_a_small_work_limit(options, monkeypatch):
    seen = []
    fit = ob.SparsePCA.fit

    def recorded(self, X, *rest, **more):
        out = fit(self, X, *rest, **more)
        seen.append(self.result_.work)
        return out

    monkeypatch.setattr(ob.SparsePCA, "fit", recorded)
    X = load_wine().data
    stability = ob.support_stability(
        ob.SparsePCA(3, scale=True, random_state=0, **options), X, n_subsamples=3, random_state=0
    )
    parts = seen[1:]
    assert len(parts) == 3
    assert max(parts) <= 0.3
    assert stability.frequencies.shape == (3, 13)
    assert 0.0 <= stability.frequencies.min() <= stability.frequencies.max() <= 1.0


@pytest.mark.parametrize("solver", [None, ob.Auto(makers=["path"]), ob.OBCD(), ob.Continuation()])
def test_searches_of_subsamples_start_at_the_components_of_all(solver):
    whole = ob.SparsePCA(2, n_nonzero=6, random_state=0).fit(load_wine().data)
    part = prepare_subsample_fit(ob.SparsePCA(2, n_nonzero=6, solver=solver), whole, 0.25)
    if solver is None or isinstance(solver, ob.Auto):
        assert part.solver == (solver or ob.Auto())
        assert (part.warm_start, part.max_work) == (True, 0.25)
        assert part.components_ is whole.components_
    else:
        assert (part.solver, part.warm_start, part.max_work) == (solver, False, None)
        assert not hasattr(part, "components_")


def test_searches_of_subsamples_without_work_end_at_the_components_of_all(monkeypatch):
    monkeypatch.setattr(selection, "WORK", 0.0)
    pca = ob.SparsePCA(2, n_nonzero=6, random_state=0)
    found = ob.support_stability(pca, load_wine().data, n_subsamples=3, random_state=0)
    np.testing.assert_array_equal(found.frequencies, found.components != 0.0)
