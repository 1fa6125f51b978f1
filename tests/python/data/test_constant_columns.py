"""One rule says which columns are constant, whatever computes their standard deviation."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as pyplot
import numpy as np
import pytest
from scipy import sparse

import orthobcd as ob
from orthobcd._core import CONSTANT
from orthobcd.data import Gram

pytestmark = pytest.mark.usefixtures("short_searches")

M = 200
CONSTANTS = [[], [1.0], [0.1], [14.62, 1e8 / 3.0], [0.1, 0.2, 0.3], [1e-9, -7.7e12]]


def data(values: list[float], m: int = M) -> np.ndarray:
    """Six columns with two factors, then the constant ones."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((m, 2)), 3, axis=1) + 0.5 * rng.standard_normal((m, 6))
    return np.column_stack([X, *(np.full(m, v) for v in values)])


def chunked(X: np.ndarray) -> Any:
    return pytest.importorskip("dask.array").from_array(X, chunks=(60, X.shape[1]))


def covariance(pca: Any, X: np.ndarray) -> Any:
    return pca.fit_covariance(np.cov(X, rowvar=False), len(X), X.mean(axis=0))


def gap(X: np.ndarray) -> np.ndarray:
    """A missing value in each column."""
    out = X.copy()
    out[np.arange(X.shape[1]) + 3, np.arange(X.shape[1])] = np.nan
    return out


FITS = {
    "array": lambda pca, X: pca.fit(X),
    "Fortran": lambda pca, X: pca.fit(np.asfortranarray(X)),
    "CSR": lambda pca, X: pca.fit(sparse.csr_array(X)),
    "CSC": lambda pca, X: pca.fit(sparse.csc_array(X)),
    "blocks": lambda pca, X: pca.fit([X[:70], X[70:]]),
    "weights": lambda pca, X: pca.fit(X, sample_weight=np.linspace(0.5, 1.5, len(X))),
    "Dask": lambda pca, X: pca.fit(chunked(X)),
    "partial_fit": lambda pca, X: pca.partial_fit(X[:70], update=False).partial_fit(X[70:]),
    "covariance": covariance,
    "em": lambda pca, X: pca.set_params(missing="em").fit(X),
    "em of gaps": lambda pca, X: pca.set_params(missing="em").fit(gap(X)),
}


@pytest.mark.covering(2)
@pytest.mark.parametrize("values", CONSTANTS, ids=str)
@pytest.mark.parametrize("precision", ["auto", "fast"])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("fit", FITS)
def test_constant_columns_change_nothing(fit, scale, precision, values):
    """Components, variances and scores are those of the other columns alone."""
    make = lambda: ob.SparsePCA(  # noqa: E731
        2, n_nonzero=6, scale=scale, precision=precision, random_state=0, solver=ob.OBCD()
    )
    X = data(values)
    pca, alone = FITS[fit](make(), X), FITS[fit](make(), X[:, :6])
    assert not pca.components_[:, 6:].any()
    np.testing.assert_allclose(pca.explained_variance_, alone.explained_variance_, rtol=1e-6)
    ratios = alone.explained_variance_ratio_
    np.testing.assert_allclose(pca.explained_variance_ratio_, ratios, rtol=1e-6)
    if scale:
        assert (pca.scale_[6:] == 1.0).all()
    moved = X[:2].copy()
    moved[:, 6:] += 1e-6
    np.testing.assert_allclose(pca.transform(moved), alone.transform(X[:2, :6]), atol=1e-6)


@pytest.mark.parametrize("fit", ["array", "CSR", "weights"])
@pytest.mark.parametrize("values", CONSTANTS[1:], ids=str)
def test_constant_columns_of_wide_data(fit, values):
    """Moments of wide data refer to the samples."""
    X = np.column_stack(
        [data([], 8), data([], 8)[:, ::-1] ** 3, np.zeros((8, 60)), *[[v] * 8 for v in values]]
    )
    pca = FITS[fit](ob.SparsePCA(2, n_nonzero=6, scale=fit != "CSR", random_state=0), X)
    assert not pca.components_[:, 12:].any()
    assert pca.scale_ is None or (pca.scale_[12:] == 1.0).all()


@pytest.mark.parametrize("values", CONSTANTS, ids=str)
@pytest.mark.parametrize("m", [50, 20_000])
def test_choices_count_no_constant_column(m, values):
    X = data(values, m)
    found = ob.choose_n_components(X, n_repeats=4, random_state=0)
    known = np.linalg.eigvalsh(np.corrcoef(X[:, :6], rowvar=False))[::-1] * m / (m - 1)
    np.testing.assert_allclose(found.values[:5], known[:5], rtol=1e-9)
    np.testing.assert_allclose(found.values[6:], 0.0, atol=1e-12)
    assert found.n_components == 2


@pytest.mark.parametrize("values", CONSTANTS[1:], ids=str)
def test_folds_are_scaled_by_the_rule(values):
    make = lambda: ob.SparsePCACV(2, n_alphas=3, cv=3, scale=True, random_state=0)  # noqa: E731
    X = data(values)
    np.testing.assert_allclose(make().fit(X).scores_, make().fit(X[:, :6]).scores_, rtol=1e-3)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("values", CONSTANTS[1:], ids=str)
def test_pictures_have_no_correlation_with_a_constant(container, values):
    pyplot.close("all")
    X = data(values)
    pca = ob.SparsePCA(2, n_nonzero=6, scale=True, random_state=0).fit(X[:, :6])
    wide = ob.SparsePCA(2, n_nonzero=6, scale=True, random_state=0).fit(X)
    tips = [
        np.array([a.xy for a in ob.plot.correlation_circle(p, container(Y)).texts if a.arrow_patch])
        for p, Y in ((pca, X[:, :6]), (wide, X))
    ]
    assert np.isfinite(tips[1]).all()
    ax = ob.plot.correlation_circle(wide, container(X))
    assert np.abs(ax.collections[0].get_offsets()[-len(values) :]).max() == 0.0
    lines = [ob.plot.scree(p, container(Y)).lines[-1] for p, Y in ((pca, X[:, :6]), (wide, X))]
    np.testing.assert_allclose(lines[1].get_ydata(), lines[0].get_ydata(), rtol=1e-6)


@pytest.mark.parametrize("side", [0.25, 4.0])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_the_rule_on_both_sides(container, side):
    """The largest variance of a constant is `CONSTANT` times its mean square."""
    spread = np.sqrt(side * CONSTANT)
    column = 1.0 + spread * np.where(np.arange(2**10) % 2, 1.0, -1.0)
    moments = Gram.of_rows(container(column[:, np.newaxis]), True, True)
    assert (moments.scale[0] == 1.0) == (side < 1.0)
    assert (moments.variances[0] == 0.0) == (side < 1.0)
    pca = ob.SparsePCA(1, scale=True).fit(np.column_stack([column, np.arange(2.0**10)]))
    assert (pca.scale_[0] == 1.0) == (side < 1.0)
