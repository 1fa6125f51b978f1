"""A masked entry, None or NA is a missing value (NaN) wherever an array is given."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import matplotlib.pyplot as pyplot
import numpy as np
import pandas
import pytest
from sklearn.model_selection import cross_val_score

import orthobcd as ob

pytestmark = pytest.mark.usefixtures("short_searches")
RNG = np.random.default_rng(0)
WHOLE = np.repeat(RNG.integers(1, 9, (40, 2)), 3, axis=1) + RNG.integers(0, 3, (40, 6)) * 1.0
GAPS = np.zeros(WHOLE.shape, dtype=bool)
GAPS[3, 1] = GAPS[7, 4] = GAPS[8, 4] = True
FILL = 999999
SIGNS = np.array([1, 1, 1, 1, -1, -1])
FITTED = ob.SparsePCA(2, n_nonzero=6, random_state=0)


class Stored:
    """An array-like whose slices are masked arrays, as a variable of a netCDF file."""

    def __init__(self, array: Any) -> None:
        self._array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, key: Any) -> Any:
        return self._array[key]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self._array, dtype)


def masked(array: Any, gaps: Any, dtype: Any = np.float64) -> Any:
    """A masked array with a large number below its mask."""
    return np.ma.masked_array(np.where(gaps, FILL, array).astype(dtype), mask=gaps)


def nullable(array: Any, gaps: Any) -> Any:
    kind = pandas.DataFrame if array.ndim == 2 else pandas.Series
    return kind(np.where(gaps, FILL, array).astype(np.int64)).astype("Int64").mask(kind(gaps))


STORAGES: dict[str, Callable[[Any, Any], Any]] = {
    "masked": masked,
    "masked float32": lambda a, gaps: masked(a, gaps, np.float32),
    "masked integers": lambda a, gaps: masked(a, gaps, np.int32),
    "stored": lambda a, gaps: Stored(masked(a, gaps)),
    "stored integers": lambda a, gaps: Stored(masked(a, gaps, np.int16)),
    "rows": lambda a, gaps: list(masked(a, gaps)) if a.ndim == 2 else masked(a, gaps),
    "objects": lambda a, gaps: np.where(gaps, None, a.astype(object)),
    "nullable": nullable,
}


def em() -> ob.SparsePCA:
    return ob.SparsePCA(2, n_nonzero=6, missing="em", random_state=0)


@cache
def fitted(missing: Any = None) -> ob.SparsePCA:
    return ob.SparsePCA(2, n_nonzero=6, missing=missing, random_state=0).fit(WHOLE)


def plotted(draw: Callable[[], Any]) -> Any:
    pyplot.close("all")
    ax = draw()
    points = [np.asarray(c.get_offsets()) for c in ax.collections]
    return [*points, *(np.asarray(line.get_ydata()) for line in ax.lines)]


def chunked(X: Any) -> Any:
    """A Dask array of chunks of rows."""
    array = pytest.importorskip("dask.array")
    return array.from_array(np.asanyarray(X), chunks=(20, 6), asarray=False)


def annotated(X: Any) -> Any:
    adata = pytest.importorskip("anndata").AnnData(np.zeros((40, 6)))
    adata.layers["x"] = np.asanyarray(X)
    from orthobcd.anndata import sparse_pca

    sparse_pca(adata, 2, layer="x", n_nonzero=6, missing="em", random_state=0)
    return adata.obsm["X_sparse_pca"]


def square(X: Any) -> Any:
    """The first six rows."""
    return X.iloc[:6] if hasattr(X, "iloc") else X[:6]


SAMPLES: dict[str, Callable[[Any], Any]] = {
    "fit": lambda X: FITTED.fit(X).components_,
    "em": lambda X: em().fit_transform(X),
    "em scaled": lambda X: em().set_params(scale=True).fit(X).components_,
    "transform": lambda X: fitted().transform(X),
    "em transform": lambda X: fitted("em").transform(X),
    "score": lambda X: fitted("em").score(X),
    "inverse": lambda X: fitted().inverse_transform(X),
    "partial_fit": lambda X: ob.SparsePCA(2, random_state=0).partial_fit(X),
    "NonnegativePCA": lambda X: ob.NonnegativePCA(2, random_state=0).fit(X),
    "NMF": lambda X: ob.OrthogonalNMF(2, random_state=0).fit(X),
    "NMF predict": lambda X: ob.OrthogonalNMF(2, random_state=0).fit(WHOLE).predict(X),
    "CV": lambda X: ob.SparsePCACV(2, n_alphas=2, cv=2, random_state=0).fit(X),
    "choice": lambda X: ob.choose_n_components(X, n_repeats=3, random_state=0),
    "stability": lambda X: (
        ob.support_stability(em(), X, n_subsamples=2, random_state=0).frequencies
    ),
    "path": lambda X: ob.regularization_path(X, 2),
    "lam_max": lambda X: ob.lam_max(X, 2),
    "problem": lambda X: ob.SparsePCAProblem(X, 2, ob.L0(1.0)),
    "nonnegative problem": lambda X: ob.NonnegativePCAProblem(X, 2),
    "Gram": lambda X: ob.GramQuadratic(X),
    "pencil": lambda X: ob.HyperbolicEigenvalueProblem(X, SIGNS),
    "loss": lambda X: ob.LogisticLoss(X, WHOLE, np.ones(40)),
    "rotation": lambda X: ob.rotate_loadings(X, n_starts=1),
    "certify": lambda X: ob.certify(ob.StiefelProblem(ob.Quadratic(np.eye(40)), ob.L0(1.0), 6), X),
    "x0": lambda X: ob.solve(ob.StiefelProblem(ob.Quadratic(np.eye(40)), ob.L0(1.0), 6), X),
    "linear": lambda X: ob.Quadratic(np.eye(40), X),
    "weights of L1": lambda X: ob.L1(X),
    "cs": lambda X: ob.hyperbolic.hyperbolic_qr(X, np.ones(40)),
    "scores": lambda X: plotted(lambda: ob.plot.scores(fitted("em"), X)),
    "biplot": lambda X: plotted(lambda: ob.plot.biplot(fitted("em"), X)),
    "circle": lambda X: plotted(lambda: ob.plot.correlation_circle(fitted("em"), X)),
    "scree": lambda X: plotted(lambda: ob.plot.scree(fitted("em"), X)),
    "bars": lambda X: plotted(lambda: ob.plot.components(X, kind="heatmap")),
}

ARRAYS: dict[str, Callable[[Any], Any]] = {
    "covariance": lambda X: ob.SparsePCA(2, random_state=0).fit_covariance(square(X)),
    "quadratic": lambda X: ob.Quadratic(square(X)),
    "blocks": lambda X: ob.SparsePCA(2, random_state=0).fit([X, X]),
    "function": lambda X: ob.SparsePCA(2, random_state=0).fit(lambda: iter([X])),
    "transform of blocks": lambda X: fitted("em").transform(iter([X, X])),
    "Dask": lambda X: ob.SparsePCA(2, random_state=0).fit(chunked(X)),
    "Dask transform": lambda X: fitted().transform(chunked(X)).compute(),
    "Dask NMF": lambda X: ob.OrthogonalNMF(2, random_state=0).fit(chunked(X)),
    "Dask problem": lambda X: ob.SparsePCAProblem(chunked(X), 2, ob.L0(1.0)),
    "cross-validation": lambda X: cross_val_score(em(), X, cv=3),
    "anndata": annotated,
}

FLOATS: dict[str, Callable[[Any], Any]] = {
    "sample_weight": lambda w: ob.SparsePCA(2, random_state=0).fit(WHOLE, sample_weight=w),
    "weights of partial_fit": lambda w: ob.SparsePCA(2, random_state=0).partial_fit(
        WHOLE, sample_weight=w
    ),
    "weights of blocks": lambda w: ob.SparsePCA(2, random_state=0).fit([WHOLE], sample_weight=w),
    "weights of Dask": lambda w: ob.SparsePCA(2, random_state=0).fit(
        chunked(WHOLE), sample_weight=w
    ),
    "mean": lambda w: ob.SparsePCA(2, random_state=0).fit_covariance(np.eye(40), mean=w),
    "mean of data": lambda w: ob.GramQuadratic(np.eye(40), mean=w),
    "weights of a path": lambda w: ob.regularization_path(WHOLE, 2, alphas=w),
    "alphas": lambda w: ob.SparsePCACV(2, alphas=w, cv=2, random_state=0).fit(WHOLE),
    "labels": lambda w: ob.LogisticLoss(WHOLE, WHOLE, w),
    "signature": lambda w: ob.HyperbolicEigenvalueProblem(WHOLE.T, w),
    "breakpoints": lambda w: ob.PiecewiseQuadratic(w, np.zeros((41, 3))),
}


def outcome(call: Callable[[Any], Any], argument: Any) -> Any:
    """The type and text of the error, or the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(argument)
        except (ValueError, TypeError) as error:
            return [type(error), str(error)]


def parts(value: Any) -> Any:
    """Arrays and numbers of a result."""
    if isinstance(value, (list, tuple)):
        return [part for one in value for part in parts(one)]
    for name in ("components_", "x", "lam", "C", "A", "smooth", "values", "objective"):
        if getattr(value, name, None) is not None:
            return parts(getattr(value, name))
    return [value]


def check(call: Callable[[Any], Any], given: Any, filled: Any) -> None:
    found, right = parts(outcome(call, given)), parts(outcome(call, filled))
    assert len(found) == len(right), (found, right)
    for one, other in zip(found, right, strict=True):
        if isinstance(other, str):
            # Of data that is read by blocks the error names the block first.
            assert one.endswith(other)
        elif isinstance(other, type):
            assert issubclass(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("door", "storage"),
    [
        *product(SAMPLES, STORAGES),
        *product(ARRAYS, [name for name in STORAGES if name.startswith("masked")]),
    ],
)
def test_a_masked_entry_is_missing(door, storage):
    filled = np.where(GAPS, np.nan, WHOLE)
    if "32" in storage:
        filled = filled.astype(np.float32)
    check({**SAMPLES, **ARRAYS}[door], STORAGES[storage](WHOLE, GAPS), filled)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("door", FLOATS)
def test_a_masked_number_of_a_vector_is_refused(door, storage):
    gaps = np.arange(40) == 5
    kind, text = outcome(FLOATS[door], STORAGES[storage](np.ones(40), gaps))
    assert issubclass(kind, (ValueError, TypeError))
    assert "NaN" in text or "nan" in text
    check(FLOATS[door], STORAGES[storage](np.ones(40), gaps), np.where(gaps, np.nan, 1.0))


@pytest.mark.covering
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("door", SAMPLES)
def test_without_a_missing_entry_the_storage_does_not_matter(door, storage):
    whole = WHOLE.astype(np.float32) if "32" in storage else WHOLE
    check(SAMPLES[door], STORAGES[storage](WHOLE, np.zeros_like(GAPS)), whole)


def test_masked_triples_and_limits_are_refused():
    triples = np.stack([np.arange(12), np.zeros(12, int), (np.arange(12) + 1) % 12], axis=1)
    gaps = triples == 5
    for call in (
        lambda: ob.kg.UltraE(12, 1, 4, max_epochs=1).fit(masked(triples, gaps, np.int64)),
        lambda: ob.kg.UltraE(dim=4, max_epochs=1).fit(
            np.ma.masked_array(triples.astype(str), mask=gaps)
        ),
        lambda: ob.Cardinality(masked([3, 4], [0, 1], np.int64)),
        lambda: ob.SparsePCA(2, n_nonzero=masked([3, 4], [0, 1], np.int64)).fit(WHOLE),
    ):
        with pytest.raises((TypeError, ValueError), match="must"):
            call()


@pytest.mark.parametrize("part", ["value", "gradient"])
def test_a_masked_value_of_a_function_is_refused(part):
    def f(x: Any) -> Any:
        value, gradient = np.ma.masked_array(np.sum(x**2)), np.ma.masked_array(2.0 * x)
        (value if part == "value" else gradient)[...] = np.ma.masked
        return value, gradient

    problem = ob.StiefelProblem(ob.SmoothFunction(f, 4, 2), ob.NoPenalty(), 2)
    with pytest.raises(ValueError, match=f"finite {part}, got NaN"):
        ob.solve(problem, "random")
