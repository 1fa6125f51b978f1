"""Tables of pandas, polars, Arrow and DuckDB; a `LazyFrame`, dataset or relation by batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.dataset
import pytest
from pyarrow import parquet
from sklearn.datasets import load_iris

import orthobcd as ob


def test_pandas_and_polars_in_and_out():
    pl = pytest.importorskip("polars")
    data = load_iris(as_frame=True).data
    reference = ob.SparsePCA(2, n_nonzero=5, random_state=0).fit(data)
    columns = [f"sparsepca{k}" for k in range(2)]
    for table, kind, name in (
        (data, pd.DataFrame, "pandas"),
        (pl.from_pandas(data), pl.DataFrame, "polars"),
    ):
        pca = ob.SparsePCA(2, n_nonzero=5, random_state=0).set_output(transform=name)
        scores = pca.fit_transform(table)
        assert isinstance(scores, kind)
        assert list(scores.columns) == columns
        assert name == "polars" or scores.index.equals(data.index)
        assert list(pca.feature_names_in_) == list(data.columns)
        np.testing.assert_array_equal(pca.components_, reference.components_)
        np.testing.assert_allclose(scores.to_numpy(), reference.transform(data))


NAMES = list("abcdef")

LONG = np.random.default_rng(0).standard_normal((5000, 6)).astype(np.float32) @ np.diag(
    [3, 2, 1, 1, 1, 1]
).astype("f4")


def make() -> Any:
    return ob.NonnegativePCA(2, random_state=0)


def readers() -> dict[str, Any]:
    def dataset(path: Path) -> Any:
        return pyarrow.dataset.dataset(path)

    def lazy(path: Path) -> Any:
        return pytest.importorskip("polars").scan_parquet(path)

    def relation(path: Path) -> Any:
        return pytest.importorskip("duckdb").read_parquet(str(path))

    return {"pyarrow": dataset, "polars": lazy, "duckdb": relation}


def written(path: Path, columns: dict[str, Any]) -> Path:
    parquet.write_table(pyarrow.table(columns), path, row_group_size=900)
    return path


@pytest.mark.parametrize("kind", readers())
def test_tables_are_read_by_batches(tmp_path, kind):
    path = written(tmp_path / "x.parquet", dict(zip(NAMES, LONG.T, strict=True)))
    data = readers()[kind](path)
    frame = pd.DataFrame(LONG, columns=NAMES)
    wanted, got = make().fit(frame), make().fit(data)
    np.testing.assert_array_equal(got.components_, wanted.components_)
    assert list(got.feature_names_in_) == NAMES
    np.testing.assert_allclose(got.transform(data), wanted.transform(frame), atol=1e-9)
    assert got.score(data) == pytest.approx(wanted.score(frame), rel=1e-10)
    got.partial_fit(data)
    np.testing.assert_array_equal(got.components_, wanted.components_)
    np.testing.assert_allclose(make().fit_transform(data), wanted.transform(frame), atol=1e-9)


@pytest.mark.parametrize("kind", readers())
def test_columns_that_are_not_numbers_are_named(tmp_path, kind):
    path = written(tmp_path / "x.parquet", {"a": [1.0, 2.0, 3.0], "word": ["x", "y", "z"]})
    with pytest.raises((TypeError, ValueError), match=r"numeric columns only, 'word' is of type"):
        make().fit(readers()[kind](path))
    path = written(tmp_path / "y.parquet", {"a": [1, None, 3], "b": [1, 2, 4]})
    with pytest.raises(ValueError, match=r"block 0 of X .*missing value"):
        make().fit(readers()[kind](path))


@pytest.mark.parametrize("kind", readers())
def test_every_type_of_numbers_is_read(tmp_path, kind):
    """So are tables with row groups without a row."""
    kinds = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
    columns = {name: np.abs(10.0 * LONG[:50, 0]).astype(name) for name in kinds}
    columns["bool"] = LONG[:50, 1] > 0.0
    path = written(tmp_path / "x.parquet", columns)
    wanted = make().fit(np.column_stack(list(columns.values())).astype(np.float64))
    got = make().fit(readers()[kind](path))
    np.testing.assert_allclose(got.mean_, wanted.mean_, rtol=1e-12)
    assert list(got.feature_names_in_) == [*kinds, "bool"]
