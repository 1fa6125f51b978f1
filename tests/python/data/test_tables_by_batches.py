"""Tables outside memory, sources that change between passes, arrays of other libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orthobcd as ob
from orthobcd._internal.gram import coordinates, explained_squares
from orthobcd.sklearn.data import filled, namespace_of, on_device

RNG = np.random.default_rng(0)
NAMES = list("abcdef")
X = RNG.standard_normal((5000, 6)).astype(np.float32) @ np.diag([3, 2, 1, 1, 1, 1]).astype("f4")


def make() -> Any:
    return ob.NonnegativePCA(2, random_state=0)


def readers() -> dict[str, Any]:
    def dataset(path: Path) -> Any:
        return pytest.importorskip("pyarrow.dataset").dataset(path)

    def lazy(path: Path) -> Any:
        return pytest.importorskip("polars").scan_parquet(path)

    def relation(path: Path) -> Any:
        return pytest.importorskip("duckdb").read_parquet(str(path))

    return {"pyarrow": dataset, "polars": lazy, "duckdb": relation}


def written(path: Path, columns: dict[str, Any]) -> Path:
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pa.table(columns), path, row_group_size=900)
    return path


@pytest.mark.parametrize("kind", readers())
def test_tables_are_read_by_batches(tmp_path, kind):
    pd = pytest.importorskip("pandas")
    path = written(tmp_path / "x.parquet", dict(zip(NAMES, X.T, strict=True)))
    data = readers()[kind](path)
    frame = pd.DataFrame(X, columns=NAMES)
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
    columns = {name: np.abs(10.0 * X[:50, 0]).astype(name) for name in kinds}
    columns["bool"] = X[:50, 1] > 0.0
    path = written(tmp_path / "x.parquet", columns)
    wanted = make().fit(np.column_stack(list(columns.values())).astype(np.float64))
    got = make().fit(readers()[kind](path))
    np.testing.assert_allclose(got.mean_, wanted.mean_, rtol=1e-12)
    assert list(got.feature_names_in_) == [*kinds, "bool"]


def test_batches_without_a_row_are_left_out():
    pa = pytest.importorskip("pyarrow")
    full = pa.record_batch({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    found = list(filled([full.slice(0, 0), full, full.slice(1, 1), full.slice(2)]))
    assert [table.num_rows for table in found] == [2, 1]


def changing(change: Any) -> Any:
    """Blocks to which ``change`` is applied from the second pass on."""
    passes = []

    def blocks() -> Any:
        passes.append(1)
        parts = [X[k : k + 1000].copy() for k in range(0, 5000, 1000)]
        return iter(parts if len(passes) == 1 else change(parts))

    return blocks


def altered(parts: list[Any]) -> list[Any]:
    parts[3][7, 1] += 1e-3
    return parts


CHANGES = {
    "an entry": (altered, r"block 3 of X .*differs from the first pass"),
    "the order": (lambda parts: parts[:2] + parts[:1:-1], r"block 2 of X .*differs"),
    "a block less": (lambda parts: parts[:4], r"block 4 of X .*is missing"),
    "a block more": (lambda parts: [*parts, X[:9]], r"block 5 of X .*ends with row 5,009"),
    "another size": (lambda parts: [parts[0][:500], *parts[1:]], r"block 0 of X .*row 500"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_source_that_changes_between_passes_is_detected(what):
    change, words = CHANGES[what]
    with pytest.raises(ValueError, match=words):
        make().fit_transform(changing(change))
    same = make().fit_transform(changing(lambda parts: parts))
    np.testing.assert_allclose(same, make().fit(X).transform(X), atol=1e-9)


def test_a_file_that_shrinks_is_detected():
    class Rows:
        shape, dtype = (5000, 6), X.dtype

        def __getitem__(self, rows: slice) -> Any:
            return X[:4500][rows]

    with pytest.raises(ValueError, match=r"block 2 of X|it had 5000 rows, now 4500"):
        make().fit(Rows())


CODE = """
import numpy as np, sklearn, orthobcd as ob
import array_api_strict as xp
X = np.random.default_rng(0).standard_normal((60, 5)) + 3.0
for scale in (False, True):
    pca = ob.NonnegativePCA(2, random_state=0, scale=scale).fit(X)
    with sklearn.config_context(array_api_dispatch=True):
        for dtype, tolerance in ((xp.float64, 1e-12), (xp.float32, 1e-5)):
            data = xp.asarray(X, dtype=dtype)
            scores = pca.transform(data)
            assert type(scores) is type(data) and scores.dtype == dtype
            assert np.abs(np.asarray(scores) - pca.transform(X)).max() < tolerance
            assert abs(pca.score(data) - pca.score(X)) < tolerance
        for bad in (data[:, :3], data[0, :], data * float("nan")):
            try:
                pca.transform(bad)
            except ValueError as error:
                assert str(error).startswith("X must have"), error
            else:
                raise AssertionError
print("done")
"""


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("scale", [None, np.arange(1.0, 6.0)])
def test_arrays_of_other_libraries_in_this_process(dtype, scale):
    """What `transform` and `score` call for them; integers become numbers of single precision."""
    xp = pytest.importorskip("array_api_strict")
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (7, 5)).astype(dtype)
    axes, mean = rng.standard_normal((5, 2)), rng.standard_normal(5)
    wanted = X / (1.0 if scale is None else scale) - mean
    data = xp.asarray(X)
    scores = coordinates(*on_device(xp, data, axes, mean, scale))
    kind = xp.float64 if dtype == "float64" else xp.float32
    assert type(scores) is type(data)
    assert scores.dtype == kind
    near = {"rtol": 1e-12 if kind == xp.float64 else 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(np.asarray(scores), wanted @ axes, **near)
    parts = explained_squares(*on_device(xp, data, axes, mean, scale), xp=xp)
    np.testing.assert_allclose(parts, [np.sum((wanted @ axes) ** 2), np.sum(wanted**2)], **near)
    for bad in (data[:, :4], data[0, :], xp.astype(data, kind) * float("nan")):
        with pytest.raises(ValueError, match="X must have"):
            on_device(xp, bad, axes, mean, scale)
    assert namespace_of(data) is None


@pytest.mark.slow
def test_arrays_of_other_libraries():
    pytest.importorskip("array_api_strict")
    # SciPy reads the variable when it is imported.
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    run = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=False
    )
    assert run.stdout == "done\n", run.stderr
