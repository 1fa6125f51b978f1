"""`regularization_path`, `lam_max`, and `n_nonzero` with ℓ1, which follows a path."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning

import orthobcd as ob
from orthobcd.sklearn.sparse_pca import approach
from orthobcd.solvers import RATIO


def data(seed: int = 0, m: int = 40, n: int = 15) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, n)) * np.linspace(0.5, 2.0, n)


@pytest.mark.parametrize("penalty", ["l0", "l1"])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_lam_max(penalty, center, seed):
    A, r = data(seed), 3
    top = ob.lam_max(A, r, penalty, center=center)
    make = ob.L0 if penalty == "l0" else ob.L1
    C = np.cov(A.T, bias=True) * len(A) if center else A.T @ A
    chosen = np.argsort(-np.diag(C))[:r]
    selection = np.zeros((A.shape[1], r))
    selection[chosen, np.arange(r)] = 1.0

    def solve(lam: float) -> ob.Result:
        return ob.solve(
            ob.SparsePCAProblem(A, r, make(lam), center=center),
            selection,
            solver=ob.OBCD(working_set="cyclic", proximal=0.0),
            tol=0.0,
        )

    above = solve(top * (1 + 1e-9))
    assert above.n_nonzero == r
    assert above.objective == pytest.approx(top * r - 0.5 * np.diag(C)[chosen].sum())
    # lam_max is the smallest such λ for l0; for l1 at most (1 + √2)/2 times the smallest.
    below = solve(top * (1 - 1e-6) if penalty == "l0" else top / 1.2072)
    assert below.n_nonzero > r


def test_path_starts_sparse_and_goes_on_from_each_point():
    A = data()
    path = ob.regularization_path(A, 3, "l0", n_alphas=12, center=True)
    assert len(path) == 12
    assert np.all(np.diff(path.alphas) < 0.0)
    assert path.alphas[0] == pytest.approx(path.alpha_max)
    assert path.n_nonzero[0] == 3
    assert path.n_nonzero[-1] > 10
    C = A - A.mean(axis=0)
    # A point is never worse than the one before it, at its own λ.
    before = path.objective[:-1] + path.n_nonzero[:-1] * np.diff(path.alphas)
    assert np.all(path.objective[1:] <= before + 1e-9 * np.abs(before))
    for k, result in enumerate(path.results):
        assert np.linalg.norm(result.x.T @ result.x - np.eye(3)) < 1e-12
        share = np.sum((C @ result.x) ** 2) / np.sum(C**2)
        assert path.explained_variance_ratio[k] == pytest.approx(share)
        expected = -0.5 * np.sum((C @ result.x) ** 2) + path.alphas[k] * result.n_nonzero
        assert path.objective[k] == pytest.approx(expected)


@pytest.mark.parametrize("penalty", ["l0", "l1"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, list])
def test_data_are_centred_as_estimators_centre_them(container, penalty):
    """By default a constant that is added to a feature changes nothing."""
    A = data(0, 30, 12)
    moved = A + np.arange(12.0)
    top = ob.lam_max(A - A.mean(axis=0), 3, penalty, center=False)
    assert ob.lam_max(container(moved), 3, penalty) == pytest.approx(top, rel=1e-9)
    one, other = (ob.regularization_path(X, 3, penalty, n_alphas=5) for X in (A, container(moved)))
    np.testing.assert_allclose(one.alphas, other.alphas, rtol=1e-9)
    np.testing.assert_allclose(one.objective, other.objective, rtol=1e-3)
    pca = ob.SparsePCA(3, penalty=penalty, alpha=0.1, random_state=0).fit(moved)
    assert pca.alpha_max_ == pytest.approx(top, rel=1e-9)


def test_given_alphas_are_sorted():
    path = ob.regularization_path(data(), 2, "l1", alphas=[1.0, 30.0, 10.0])
    assert path.alphas.tolist() == [30.0, 10.0, 1.0]


@pytest.mark.parametrize("wanted", [3, 7, 12, 20, 30])
def test_number_of_nonzeros(wanted):
    path = ob.regularization_path(data(), 3, "l0", n_nonzero=wanted)
    index = path.nearest(wanted)
    assert abs(path.n_nonzero[index] - wanted) <= 1
    assert abs(path.n_nonzero - wanted).min() == abs(path.n_nonzero[index] - wanted)
    assert np.all(np.diff(path.alphas) <= 0.0)


def test_sparse_data_and_dense_data_agree():
    A = np.where(np.abs(data()) > 1.0, data(), 0.0)
    dense = ob.regularization_path(A, 3, n_alphas=6, center=True)
    csr = ob.regularization_path(sparse.csr_array(A), 3, n_alphas=6, center=True)
    assert csr.alpha_max == pytest.approx(dense.alpha_max)
    np.testing.assert_allclose(csr.alphas, dense.alphas)
    C = A - A.mean(axis=0)
    for path in (dense, csr):
        # The first point of a path is the known optimum; every value is that of its point.
        chosen = np.sort(np.sum(C**2, axis=0))[-3:].sum()
        assert path.objective[0] == pytest.approx(3 * path.alpha_max - 0.5 * chosen, rel=1e-9)
        for lam, value, result in zip(path.alphas, path.objective, path.results, strict=True):
            assert result.feasibility < 1e-12
            at = -0.5 * np.sum((C @ result.x) ** 2) + lam * np.count_nonzero(result.x)
            assert value == pytest.approx(at, rel=1e-9)
            for data_form in (A, sparse.csr_array(A)):
                problem = ob.SparsePCAProblem(data_form, 3, ob.L0(lam), center=True)
                certificate = ob.certify(problem, result.x)
                assert certificate.objective == pytest.approx(at, rel=1e-9)
                assert certificate.block2_gap <= 1e-6 * abs(at)


def test_time_limit_keeps_what_is_there():
    path = ob.regularization_path(data(), 3, max_time=0.0)
    assert len(path) == 1
    assert path.results[0].status is ob.Status.MAX_TIME
    assert path.results[0].feasibility < 1e-12
    assert path.results[0].n_nonzero == 3


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("penalty", {"penalty": "l2"}),
        ("alphas", {"alphas": [-1.0]}),
        ("alphas", {"alphas": []}),
        ("max_time", {"max_time": -1.0}),
        ("seed", {"seed": -1}),
    ],
)
def test_bad_arguments(name, arguments):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        ob.regularization_path(data(), 3, **arguments)


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
    path = ob.regularization.RegularizationPath(
        np.arange(4.0)[::-1], counts, shares, -shares, (), 1.0
    )
    assert [path.index_at_most(k) for k in (1, 2, 4, 5, 8, 9, 20)] == [0, 0, 0, 2, 2, 3, 3]


@pytest.mark.parametrize("top", [1e-6, 0.5, 1.0, 3e7])
@pytest.mark.parametrize("share", [0.0, 1e-9, 1e-4, 0.01, 0.3, RATIO, 0.9999, 1.0, 2.0])
def test_weights_of_a_penalty_approach_the_last_in_even_steps(top, share):
    """Steps of about `RATIO`, down to 1e-4 of the first; the last weight is exact."""
    weights = approach(top, share * top)
    assert weights[-1] == share * top
    if share >= 1.0:
        assert len(weights) == 1
        return
    assert weights[0] == top
    assert (np.diff(weights) < 0.0).all()
    ratios = weights[1:] / weights[:-1]
    steps = ratios[:-1] if share < 1e-4 else ratios
    np.testing.assert_allclose(steps, steps[0])
    assert steps[0] >= RATIO * (1.0 - 1e-9)
    assert len(steps) == 1 or steps[0] <= np.sqrt(RATIO)
    assert list(approach(0.0, top)) == [top]


def test_a_fitted_estimator_keeps_no_points_of_its_path():
    X = np.random.default_rng(0).standard_normal((30, 40))
    for options in ({"penalty": "l1", "n_nonzero": 20}, {"alpha": 0.2}):
        pca = ob.SparsePCA(3, solver=ob.OBCD(), random_state=0, **options).fit(X)
        path = pca.path_
        assert path.results == ()
        assert len(path) == len(path.alphas) == len(path.objective) > 1
        assert path.n_nonzero[0] <= path.n_nonzero[-1]
        assert len(pickle.dumps(path)) < 8 * 40 * 3 * len(path)
    explicit = ob.regularization_path(X, 3, n_alphas=3)
    assert len(explicit.results) == len(explicit) == 3
