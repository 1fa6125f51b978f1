"""Exact numbers of nonzeros with ℓ1, short fits to subsamples, held-out choices by arrays."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning

import orthobcd as ob
from orthobcd.sklearn import missing, selection, sparse_pca_cv
from orthobcd.sklearn.base import beside
from orthobcd.sklearn.missing import gaussian_of
from orthobcd.sklearn.sparse_pca import approach
from orthobcd.solvers import RATIO


@pytest.mark.parametrize("r", [1, 2, 3])
def test_a_number_on_the_path_has_the_weight_of_the_path(r):
    X = load_wine().data
    met = 0
    for count in range(r, 13):
        pca = ob.SparsePCA(r, penalty="l1", n_nonzero=count, scale=True, random_state=0).fit(X)
        if count in pca.path_.n_nonzero:
            met += 1
            at = list(pca.path_.n_nonzero).index(count)
            assert pca.alpha_ in pca.path_.alphas[pca.path_.n_nonzero == count], at
        assert pca.n_nonzero_ == count
    assert met > 0


@pytest.mark.parametrize("r", [2, 3, 5])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
@pytest.mark.parametrize("scale", [False, True])
def test_l1_has_as_many_nonzeros_as_asked_for(r, load, scale):
    """Also where the path jumps over the number, as for features that are alike."""
    X = load().data
    jumps = 0
    for count in sorted({r, r + 1, 6, 9, 12, 20}):
        pca = ob.SparsePCA(r, penalty="l1", n_nonzero=count, scale=scale, random_state=0).fit(X)
        assert pca.n_nonzero_ == count
        assert np.abs(pca.components_ @ pca.components_.T - np.eye(r)).max() < 1e-12
        F = -0.5 * pca.explained_variance_.sum() * (len(X) - 1)
        F += pca.alpha_ * np.abs(pca.components_).sum()
        assert pca.objective_ == pytest.approx(F, rel=1e-9)
        jumps += count not in pca.path_.n_nonzero
    if load is load_breast_cancer and scale:
        assert jumps > 0


def test_a_number_that_orthogonality_forbids_is_told():
    # Two components of two features have two nonzeros or four.
    X = np.random.default_rng(0).standard_normal((40, 2))
    words = "n_nonzero=3 is not met; the result has 2"
    with pytest.warns(ConvergenceWarning, match=words) as caught:
        pca = ob.SparsePCA(2, penalty="l1", n_nonzero=3, random_state=0).fit(X)
    assert pca.n_nonzero_ == 2
    # The warning is of the line that calls ``fit``.
    assert caught[0].filename == __file__


def test_within_is_the_most_nonzeros_up_to_a_number():
    counts = np.array([2, 5, 5, 9])
    shares = np.array([0.1, 0.3, 0.4, 0.9])
    path = ob.RegularizationPath(np.arange(4.0)[::-1], counts, shares, -shares, (), 1.0)
    assert [path.within(k) for k in (1, 2, 4, 5, 8, 9, 20)] == [0, 0, 0, 2, 2, 3, 3]


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


@pytest.mark.parametrize("solver", [None, ob.Auto(n_starts=3), ob.OBCD(), ob.Continuation()])
def test_searches_of_subsamples_start_at_the_components_of_all(solver):
    whole = ob.SparsePCA(2, n_nonzero=6, random_state=0).fit(load_wine().data)
    part = beside(ob.SparsePCA(2, n_nonzero=6, solver=solver), whole, 0.25)
    if solver is None or isinstance(solver, ob.Auto):
        assert part.solver == (solver or ob.Auto())
        assert (part.warm_start, part._work) == (True, 0.25)
        assert part.components_ is whole.components_
    else:
        assert (part.solver, part.warm_start, part._work) == (solver, False, None)
        assert not hasattr(part, "components_")


def test_searches_of_subsamples_without_work_end_at_the_components_of_all(monkeypatch):
    monkeypatch.setattr(selection, "WORK", 0.0)
    pca = ob.SparsePCA(2, n_nonzero=6, random_state=0)
    found = ob.support_stability(pca, load_wine().data, n_subsamples=3, random_state=0)
    np.testing.assert_array_equal(found.frequencies, found.components != 0.0)


@pytest.mark.parametrize("count", [1, 29, 30, 31, 60])
def test_a_picture_of_frequencies_names_thirty_features_at_most(count):
    pytest.importorskip("matplotlib").use("Agg")
    shares = np.zeros((2, 70))
    shares[0, 3 : 3 + count : 2] = 0.5
    shares[1, 4 : 3 + count : 2] = 1.0
    names = tuple(f"f{k}" for k in range(70))
    ax = ob.sklearn.SupportStability(shares, np.zeros((2, 70)), 4, names).plot()
    np.testing.assert_array_equal(ax.images[0].get_array(), shares[:, 3 : 3 + count])
    assert ax.images[0].get_clim() == (0.0, 1.0)
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert (labels == list(names[3 : 3 + count])) == (count <= 30)
    assert ax.get_xlabel() == ("feature" if count <= 30 else "features chosen at least once")


def slow_completion(model, data):
    """Row by row: each missing entry by its mean given the known ones."""
    out, spreads = data.copy(), np.zeros((data.shape[1],) * 2)
    for i, row in enumerate(data):
        known, gap = ~np.isnan(row), np.isnan(row)
        if not gap.any():
            continue
        w = model.loadings[known]
        inverse = np.linalg.inv(w.T @ w + model.noise * np.eye(w.shape[1]))
        z = inverse @ (w.T @ (row[known] / model.scale[known] - model.mean[known]))
        out[i, gap] = (model.mean[gap] + model.loadings[gap] @ z) * model.scale[gap]
        part = model.loadings[gap] @ (model.noise * inverse) @ model.loadings[gap].T
        spreads[np.ix_(gap, gap)] += part + model.noise * np.eye(gap.sum())
    return out, spreads


@pytest.mark.parametrize("entries", [1, 500, 1 << 21])
@pytest.mark.parametrize("share", [0.02, 0.4])
@pytest.mark.parametrize("r", [1, 3])
def test_missing_values_in_parts_are_those_row_by_row(entries, share, r, monkeypatch):
    monkeypatch.setattr(missing, "ENTRIES", entries)
    rng = np.random.default_rng(r)
    data = rng.standard_normal((50, r)) @ rng.standard_normal((r, 8)) + rng.standard_normal((50, 8))
    data *= np.arange(1.0, 9.0)
    data[rng.uniform(size=data.shape) < share] = np.nan
    data[:, 0] = np.nan_to_num(data[:, 0])
    data[3, 1:] = np.nan
    model = gaussian_of(data, r)
    out, spreads = slow_completion(model, data)
    np.testing.assert_allclose(model.completed(data), out, rtol=1e-9, atol=1e-9)
    mean, covariance = model.moments(data)
    np.testing.assert_allclose(mean, out.mean(axis=0), rtol=1e-9, atol=1e-12)
    scaled = (out - out.mean(axis=0)) / model.scale
    covariance /= np.outer(model.scale, model.scale)
    np.testing.assert_allclose(
        covariance, (scaled.T @ scaled + spreads) / 50, rtol=1e-8, atol=1e-10
    )


@pytest.mark.parametrize("r", [1, 2, 3])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_missing_values_of_few_factors_are_found(r, size):
    """Without noise the values that are there determine the others."""
    rng = np.random.default_rng(r)
    whole = size * (rng.standard_normal((60, r)) @ rng.standard_normal((r, 10)) + 1.0)
    data = np.where(rng.uniform(size=whole.shape) < 0.1, np.nan, whole)
    model = gaussian_of(data, r, tolerance=1e-9)
    mean, covariance = model.moments(data)
    np.testing.assert_allclose(model.completed(data), whole, atol=1e-3 * size)
    np.testing.assert_allclose(mean, whole.mean(axis=0), atol=1e-3 * size)
    np.testing.assert_allclose(covariance, np.cov(whole.T, ddof=0), atol=1e-3 * size**2)


@pytest.mark.parametrize(("n", "r", "factors"), [(1, 1, 1), (2, 1, 1), (2, 5, 1), (6, 2, 2)])
def test_a_model_has_fewer_factors_than_features(n, r, factors):
    """A constant feature is completed by its value; one feature alone by its mean."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((20, n))
    data[:, 0] = 7.0 if n > 1 else data[:, 0]
    gapped = data.copy()
    gapped[:3, 0] = np.nan
    model = gaussian_of(gapped, r)
    mean, _ = model.moments(gapped)
    assert model.loadings.shape == (n, factors)
    assert mean[0] == pytest.approx(np.nanmean(gapped[:, 0]))
    np.testing.assert_allclose(model.completed(gapped)[:3, 0], np.nanmean(gapped[:, 0]))


@pytest.mark.parametrize("top", [1e-6, 0.5, 1.0, 3e7])
@pytest.mark.parametrize("share", [1e-9, 1e-4, 0.01, 0.3, RATIO, 0.9999, 1.0, 2.0])
def test_weights_of_a_penalty_approach_the_last_in_even_steps(top, share):
    """Steps of about `RATIO`, down to 1e-4 of the first; the last weight is exact."""
    weights = approach(top, share * top)
    assert weights[-1] == share * top
    if share >= 1.0:
        assert len(weights) == 1
        return
    assert weights[0] == pytest.approx(top)
    ratios = weights[1:] / weights[:-1]
    steps = ratios[:-1] if share < 1e-4 else ratios
    np.testing.assert_allclose(steps, steps[0])
    assert steps[0] >= RATIO * (1.0 - 1e-9)
    assert len(steps) == 1 or steps[0] <= np.sqrt(RATIO)
    assert list(approach(0.0, top)) == [top]


@pytest.mark.parametrize(("sparser", "chosen"), [(0.45, 0), (0.40, 1)])
def test_the_rule_of_one_standard_error_divides_by_the_folds_less_one(sparser, chosen):
    cv = ob.SparsePCACV(2, criterion="cv", rule="one_se")
    # The standard error of the best mean is 0.577, with 4 or 2 degrees of freedom 0.5 or 0.707.
    cv.scores_ = np.array([[sparser] * 4, [0.0, 2.0, 0.0, 2.0]])
    assert cv._best() == chosen


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


def test_the_default_tolerance_is_small():
    X = np.abs(load_wine().data)
    options = {"solver": ob.OBCD(), "random_state": 0, "scale": True}
    default, same, loose = (
        ob.NonnegativePCA(3, **options, **more).fit(X).objective_
        for more in ({}, {"tol": 1e-10}, {"tol": 1.0})
    )
    assert default == same < loose


def test_the_time_of_a_choice_may_be_any():
    X = load_wine().data[:9, :3]
    for seconds in (0.0, 0.5):
        assert ob.SparsePCACV(1, n_alphas=2, cv=2, max_time=seconds).fit(X).alpha_ >= 0.0
    with pytest.raises(ValueError, match="max_time"):
        ob.SparsePCACV(1, max_time=-0.1).fit(X)


def test_one_component_can_be_the_most_that_is_considered():
    X = np.random.default_rng(0).standard_normal((30, 5)) * [5.0, 1.0, 1.0, 1.0, 1.0]
    with pytest.warns(ConvergenceWarning, match="most=1 stopped the choice"):
        assert len(ob.choose_n_components(X, "held_out", most=1, random_state=0).values) == 1


def test_data_that_no_permutation_changes_have_one_component():
    assert ob.choose_n_components(np.ones((10, 4))).n_components == 1


def test_the_largest_threshold_is_that_of_all_permutations():
    X = np.random.default_rng(0).standard_normal((10, 4))
    options = {"n_repeats": 5, "random_state": 0}
    found = [ob.choose_n_components(X, quantile=q, **options).thresholds for q in (0.0, 0.5, 1.0)]
    assert (found[0] < found[1]).all()
    assert (found[1] < found[2]).all()
    for values in (
        ob.choose_n_components(X, quantile=0.5, **options).values,
        ob.choose_n_components(1e-3 * X + 1.0, quantile=0.5, **options).values,
    ):
        eigenvalues = np.linalg.eigvalsh(np.corrcoef(X.T) * 10 / 9)[::-1]
        np.testing.assert_allclose(values, eigenvalues[:3], rtol=1e-9)
    assert ob.choose_n_components(X, n_repeats=1).n_components >= 1
    for quantile in (-1e-9, 1.0 + 1e-9):
        with pytest.raises(ValueError, match="quantile must be at"):
            ob.choose_n_components(X, quantile=quantile, **options)
    for m, n in ((2, 4), (3, 1)):
        with pytest.raises(ValueError, match="at least 3 samples and 2 features"):
            ob.choose_n_components(X[:m, :n])
    assert len(ob.choose_n_components(X[:3], **options).values) == 2
    assert len(ob.choose_n_components(X[:, :2], **options).values) == 1


@pytest.mark.parametrize("n", [2, 20, 100])
def test_every_feature_keeps_an_entry(n):
    """Without one the completion would raise an error; of three samples all are often left out."""
    X = np.random.default_rng(0).standard_normal((3, n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        choice = ob.choose_n_components(X, "held_out", most=1, n_repeats=24, random_state=0)
    assert np.isfinite(choice.values).all()


def test_a_choice_that_stops_at_most_says_so():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6)) @ rng.standard_normal((6, 12))
    X += 0.05 * rng.standard_normal(X.shape)
    with pytest.warns(ConvergenceWarning, match="most=2 stopped the choice"):
        choice = ob.choose_n_components(X, "held_out", most=2, n_repeats=8, random_state=0)
    assert choice.at_most
    assert "the largest considered" in repr(choice)
    choice = ob.choose_n_components(X, "held_out", most=9, n_repeats=8, random_state=0)
    assert not choice.at_most
    assert choice.values[5] < 0.1 * choice.values[0]
