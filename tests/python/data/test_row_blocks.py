"""Data read by blocks of rows, once or in passes, gives the fit of the same data in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas
import pyarrow as pa
import pytest
from scipy import sparse

import orthobcd as ob
from orthobcd import data as door
from orthobcd.data import (
    as_bytes,
    concatenate_blocks,
    is_in_memory,
    is_sliced,
    slices_of,
    tables_of_batches,
    text_of,
)
from orthobcd.solving import Solve

try:
    import zarr
except ImportError:  # The third version needs Python 3.11.
    zarr = None

short = pytest.mark.usefixtures("short_searches")

MAKE = {
    "sparse": lambda **k: ob.SparsePCA(2, n_nonzero=6, random_state=0, **k),
    "nonnegative": lambda **k: ob.NonnegativePCA(2, random_state=0, **k),
}

RNG = np.random.default_rng(0)
X = (RNG.poisson(3.0, (5000, 8)) + 2.0 * RNG.standard_normal((5000, 1))).astype(np.float32)


def test_batches_without_a_row_are_left_out():
    full = pa.record_batch({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    found = list(tables_of_batches([full.slice(0, 0), full, full.slice(1, 1), full.slice(2)]))
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
        MAKE["nonnegative"]().fit_transform(changing(change))
    same = MAKE["nonnegative"]().fit_transform(changing(lambda parts: parts))
    np.testing.assert_allclose(same, MAKE["nonnegative"]().fit(X).transform(X), atol=1e-9)


def test_a_file_that_shrinks_is_detected():
    class Rows:
        shape, dtype = X.shape, X.dtype

        def __getitem__(self, rows: slice) -> Any:
            return X[:4500][rows]

    with pytest.raises(ValueError, match=r"block 2 of X|it had 5000 rows, now 4500"):
        MAKE["nonnegative"]().fit(Rows())


def pieces(size: int, data: Any = X) -> list[Any]:
    return [data[k : k + size] for k in range(0, data.shape[0], size)]


def chunks(size: int, data: Any) -> Any:
    """A Dask array."""
    array = pytest.importorskip("dask.array")
    return array.from_array(data, chunks=(size, data.shape[1]))


@short
@pytest.mark.parametrize("rows", [1, 7, 30, 100])
@pytest.mark.parametrize("work", [99, 100, 101])
def test_blocks_of_unknown_number_are_as_exact_as_a_list(rows, work, monkeypatch):
    """Sums of 100 samples are exact if their work is at most the limit."""
    data = X[:100].astype(np.float64)
    monkeypatch.setattr(door, "EXACT_WORK", work * 8 * (8 + door.SCALING))
    blocks = pieces(rows, data)
    for given in (blocks, lambda: iter(blocks)):
        pca = ob.SparsePCA(1, n_nonzero=2, random_state=0).fit(given)
        assert pca.precision_ == ("exact" if work >= 100 else "fast")
    parts = ob.SparsePCA(1, n_nonzero=2, random_state=0)
    for block in blocks:
        parts.partial_fit(block, update=block is blocks[-1] and len(data) > 1)
    assert parts.precision_ == ("exact" if work >= 100 else "fast")


def containers(folder: Path) -> dict[str, Any]:
    np.save(folder / "x.npy", X)
    h5 = h5py.File(folder / "x.h5", "w").create_dataset("x", data=X, chunks=(300, 8))
    arrays = {}
    if zarr is not None:
        where = folder / "x.zarr"
        arrays["zarr"] = zarr.create_array(where, shape=X.shape, dtype=X.dtype, chunks=(3000, 8))
        arrays["zarr"][:] = X
    return {
        **arrays,
        "memory map": np.load(folder / "x.npy", mmap_mode="r"),
        "h5py": h5,
        "blocks of 23": pieces(23),
        "blocks of 1000": tuple(pieces(1000)),
        "one block": [X],
        "sparse blocks": [
            sparse.csr_array(b) if k % 2 else sparse.csc_array(b) for k, b in enumerate(pieces(900))
        ],
        "callable": lambda: iter(pieces(1500)),
        "callable that returns a list": lambda: pieces(5000),
    }


@short
@pytest.mark.slow
@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("precision", ["auto", "exact", "fast"])
def test_containers_are_fitted_as_arrays(tmp_path, name, precision):
    make = MAKE[name]
    wanted = make(precision=precision).fit(X)
    for what, data in containers(tmp_path).items():
        got = make(precision=precision).fit(data)
        assert got.precision_ == wanted.precision_, what
        tolerance = 0.0 if got.precision_ == "exact" else 1e-10
        for attribute in ("mean_", "components_", "explained_variance_"):
            np.testing.assert_allclose(
                getattr(got, attribute),
                getattr(wanted, attribute),
                rtol=tolerance,
                atol=tolerance,
                err_msg=what,
            )
        np.testing.assert_allclose(got.transform(data), wanted.transform(X), atol=1e-9)
        assert got.score(data) == pytest.approx(wanted.score(X), rel=1e-10)
        again = make(precision=precision).partial_fit(data)
        np.testing.assert_allclose(again.mean_, wanted.mean_, rtol=1e-12)


@short
@pytest.mark.parametrize("name", MAKE)
def test_iterators_are_for_what_reads_once(name):
    pca = MAKE[name]()
    with pytest.raises(TypeError, match=r"only once; use partial_fit, or a callable"):
        pca.fit(iter(pieces(1000)))
    pca.partial_fit(iter(pieces(1000)))
    whole = MAKE[name]().fit(X)
    np.testing.assert_array_equal(pca.components_, whole.components_)
    scores = pca.transform(iter(pieces(700)))
    np.testing.assert_allclose(scores, pca.transform(X), atol=1e-9)
    back = pca.inverse_transform(iter(pieces(64, scores)))
    np.testing.assert_allclose(back, pca.inverse_transform(scores), atol=1e-9)
    assert pca.score(iter(pieces(7))) == pytest.approx(pca.score(X), rel=1e-10)


@short
@pytest.mark.parametrize("given", ["callable", "blocks", "memory map"])
def test_weights_follow_the_rows(tmp_path, given):
    w = RNG.integers(0, 3, len(X))
    np.save(tmp_path / "x.npy", X)
    data = {
        "callable": lambda: iter(pieces(999)),
        "blocks": pieces(999),
        "memory map": np.load(tmp_path / "x.npy", mmap_mode="r"),
    }[given]
    wanted = MAKE["sparse"]().fit(X, sample_weight=w)
    got = MAKE["sparse"]().fit(data, sample_weight=w)
    np.testing.assert_array_equal(got.components_, wanted.components_)
    for bad in (w[:-1], np.append(w, 1), -w, np.full(len(X), np.nan)):
        with pytest.raises(ValueError, match="sample_weight"):
            MAKE["sparse"]().fit(data, sample_weight=bad)


def broken(k: int, block: Any) -> list[Any]:
    return [block if i == k else part for i, part in enumerate(pieces(1000))]


def raising() -> Any:
    yield X[:1000]
    yield X[1000:2000]
    raise OSError("the disk is gone")


def with_nan() -> np.ndarray:
    block = X[:1000].copy()
    block[3, 4] = np.nan
    return block


BAD = {
    "NaN": (lambda: broken(2, with_nan()), r"block 2 of X .*NaN"),
    "width": (lambda: broken(2, X[:1000, :5]), r"block 2 of X .*5 features"),
    "dtype": (lambda: broken(2, X[:1000].astype(float)), r"block 2 of X .*dtype float32.*float64"),
    "empty": (lambda: broken(2, X[:0]), r"block 2 of X .*0 sample"),
    "text": (lambda: broken(2, np.full((9, 8), "a")), r"block 2 of X"),
    "raises": (lambda: raising, r"block 2 of X could not be read: OSError: the disk is gone"),
    "no blocks": (lambda: lambda: iter([]), "X must have at least one block"),
    "not blocks": (lambda: lambda: 3, "block 0 of X could not be read.*must return an iterator"),
}


@short
@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_a_bad_block_is_named_and_nothing_is_lost(what, how):
    make, words = BAD[what]
    pca = MAKE["sparse"]().partial_fit(X[:3000])
    before = pca.components_
    with pytest.raises(ValueError, match=words):
        getattr(pca, how)(make())
    assert pca.components_ is before
    pca.partial_fit(X[3000:])
    np.testing.assert_array_equal(pca.components_, MAKE["sparse"]().fit(X).components_)


@short
def test_a_bad_block_is_named_where_nothing_is_summed():
    pca = MAKE["sparse"]().fit(X)
    for call in (pca.transform, pca.score):
        with pytest.raises(ValueError, match=r"block 1 of X .*NaN"):
            call([X, with_nan()])
    with pytest.raises(ValueError, match=r"block 1 of X .*\(n_samples, 2\)"):
        pca.inverse_transform([np.ones((3, 2)), np.ones((3, 4))])


@short
@pytest.mark.parametrize("make", MAKE.values())
@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_too_many_features_are_refused_before_anything_is_allocated(make, how):
    read = []

    def rows() -> Any:
        for _ in range(3):
            read.append(1)
            yield np.ones((2, 30_000), np.float32)

    words = r"second moments of 30,000 features take 7\.2 GB.*max_memory = 2\.0 GB; choose features"
    with pytest.raises(ValueError, match=words):
        getattr(make(max_memory="2GB"), how)(rows)
    assert len(read) == 1
    with pytest.raises(ValueError, match="max_memory"):
        make(max_memory=100).fit(X)
    assert make(max_memory=16 * 64).fit(X).components_.shape == (2, 8)


@short
def test_bytes_are_read_as_they_are_written():
    for text, wanted in (
        ("2GB", 2e9),
        ("500 MiB", 500 * 2**20),
        ("1e3kb", 1e6),
        (7, 7.0),
        ("7", 7.0),
        ("7 b", 7.0),
    ):
        assert as_bytes("max_memory", text) == wanted
    for power, letter in enumerate("kmgt", 1):
        assert as_bytes("max_memory", f"3 {letter}B") == 3.0 * 1000**power
        assert as_bytes("max_memory", f"3{letter}iB") == 3.0 * 1024**power
    assert as_bytes("max_memory", None) is None
    for bad in ("", "GB", "-1GB", "2 apples", "0", "1e999", "1.2.3GB", "e", "5ib"):
        with pytest.raises(ValueError, match="max_memory must be bytes"):
            as_bytes("max_memory", bad)
    for bad in (0, -1.0, np.inf):
        with pytest.raises(ValueError, match="max_memory"):
            as_bytes("max_memory", bad)
    with pytest.raises(TypeError, match="max_memory"):
        as_bytes("max_memory", [1])


@short
@pytest.mark.parametrize("make", MAKE.values())
def test_one_block_says_what_features_there_are(make):
    names = [f"f{k}" for k in range(X.shape[1])]
    for how in ("fit", "partial_fit"):
        pca = getattr(make(), how)([pandas.DataFrame(X, columns=names)])
        assert pca.n_features_in_ == X.shape[1]
        assert list(pca.feature_names_in_) == names


@short
def test_what_is_read_by_slices(tmp_path):
    """Files are; an array in memory, here or of another library, a table and a list are not."""

    class File:
        shape, dtype = (5, 3), np.dtype(np.float32)

        def __getitem__(self, rows: slice) -> np.ndarray:
            return np.ones((5, 3), np.float32)[rows]

    class Elsewhere(File):
        def __dlpack__(self) -> None: ...

    class Table(File):
        iloc = None

    class Vector(File):
        shape = (5,)

    class Untyped(File):
        dtype = None

    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert is_sliced(File())
    assert is_sliced(mapped)
    assert not is_sliced(mapped[0])
    for other in (X, X.tolist(), Elsewhere(), Table(), Vector(), Untyped()):
        assert not is_sliced(other)
    for one in (X, sparse.csr_array(X)):
        assert is_in_memory(one)
    for other in (mapped, File(), [X]):
        assert not is_in_memory(other)


@short
@pytest.mark.parametrize(
    ("chunks", "step"),
    [
        (None, 2048),
        ((300, 8), 1800),
        ((3000, 8), 3000),
        ((2048, 8), 2048),
        ((0, 8), 2048),
        ((), 2048),
    ],
)
def test_slices_are_of_whole_chunks(chunks, step):
    """About 2048 rows of a file at once, so that no chunk is read twice."""

    class File:
        shape = X.shape

        def __init__(self) -> None:
            self.chunks = chunks

        def __getitem__(self, rows: slice) -> np.ndarray:
            return X[rows]

    found = list(slices_of(File()))
    assert [len(part) for part in found[:-1]] == [step] * (len(X) // step)
    np.testing.assert_array_equal(np.vstack(found), X)


@short
@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("size", [1e-40, 1e-3, 1e40])
@pytest.mark.parametrize("cut", [pieces, chunks], ids=["blocks", "Dask"])
def test_blocks_of_small_and_large_entries(name, size, cut):
    """A block may be zero, and have smaller entries than the data as a whole must have."""
    data = size * X[:300].astype(np.float64)
    data[:100] = 0.0
    got = MAKE[name]().fit(cut(100, data))
    wanted = MAKE[name]().fit(data)
    np.testing.assert_allclose(got.mean_, wanted.mean_, rtol=1e-12)
    np.testing.assert_allclose(got.explained_variance_, wanted.explained_variance_, rtol=1e-9)
    for wrong in (1e-60 * data / size, 1e60 * data / size):
        with pytest.raises(ValueError, match="magnitude"):
            MAKE[name]().fit(cut(100, wrong))


@short
@pytest.mark.parametrize(
    ("size", "text"),
    [
        *((0.0, "0 bytes"), (999.0, "999 bytes"), (1e3, "1.0 kB"), (1.5e3, "1.5 kB")),
        *((1e6, "1.0 MB"), (1.5e6, "1.5 MB"), (1e9, "1.0 GB"), (1.5e12, "1500.0 GB")),
    ],
)
def test_sizes_as_text(size, text):
    assert text_of(size) == text


@short
def test_joined_blocks_are_sparse_if_all_are():
    dense, thin = X[:30], sparse.csc_array(X[30:50])
    for parts in ([thin, thin], [thin]):
        assert sparse.issparse(concatenate_blocks(parts))
        np.testing.assert_array_equal(
            concatenate_blocks(parts).toarray(), np.vstack([X[30:50]] * len(parts))
        )
    for parts in ([dense, thin], [thin, dense], [dense, X[30:50]]):
        assert isinstance(concatenate_blocks(parts), np.ndarray)
        assert concatenate_blocks(parts).shape == (50, 8)


@short
@pytest.mark.parametrize("total", [None, 4000])
def test_the_line_of_a_pass_has_rows_speed_and_time_left(total, monkeypatch):
    class Clock:
        now = 100.0

    class Line(Solve):
        def show(self, text: str) -> None:
            shown.append(text)

    shown: list[str] = []
    monkeypatch.setattr("time.perf_counter", lambda: Clock.now)
    line = Line()
    line.show_rows(1, total)
    Clock.now += 2.0
    line.show_rows(1000, total)
    line.show_rows(1001, total)
    Clock.now += 2.0
    line.show_rows(3000, total)
    of, left = ("", ("", "")) if total is None else (" of 4,000", (", 6 s left", ", 1 s left"))
    assert shown == [
        f"second moments: 1,000{of} rows, 500 rows/s{left[0]}",
        f"second moments: 3,000{of} rows, 750 rows/s{left[1]}",
    ]


@short
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_callable_may_know_its_number_of_rows(more):
    """The number decides the precision before the first block, and is checked at the end."""

    class Source:
        shape = len(X) + more, X.shape[1]

        def __call__(self) -> Any:
            return iter(pieces(700, X))

    pca = ob.NonnegativePCA(2, random_state=0)
    if more:
        with pytest.raises(ValueError, match=rf"it had {len(X) + more} rows, now {len(X)}"):
            pca.fit(Source())
        return
    np.testing.assert_array_equal(pca.fit(Source()).components_, pca.fit(X).components_)


@short
def test_missing_values_are_for_data_in_memory():
    with pytest.raises(ValueError, match="missing must be None"):
        ob.SparsePCA(2, missing="em").fit([X, X])


@short
def test_a_clustering_reads_blocks(tmp_path):
    A = np.abs(RNG.standard_normal((60, 5)))
    np.save(tmp_path / "a.npy", A)
    wanted = ob.OrthogonalNMF(2, random_state=0).fit(A)
    file = np.load(tmp_path / "a.npy", mmap_mode="r")
    for data in (pieces(25, A), file, lambda: pieces(7, A), chunks(25, A)):
        got = ob.OrthogonalNMF(2, random_state=0).fit(data)
        np.testing.assert_array_equal(got.labels_, wanted.labels_)
        np.testing.assert_allclose(got.transform(data), wanted.transform(A), atol=1e-12)
        np.testing.assert_array_equal(got.predict(data), wanted.predict(A))
    for k, data in enumerate((chunks(25, -A), [A, -A])):
        with pytest.raises(ValueError, match=rf"block {k} of X .*Negative"):
            ob.OrthogonalNMF(2).fit(data)
    with pytest.raises(ValueError, match=r"block 1 of X .*4 features"):
        ob.OrthogonalNMF(2).fit([A, A[:, :4]])
    with pytest.raises(ValueError, match="second moments of 60 samples"):
        ob.OrthogonalNMF(2, max_memory=1000).fit(A)


@short
@pytest.mark.parametrize("how", ["whole", "some missing"])
def test_missing_values_of_a_memory_map(tmp_path, how):
    data = X[:60].copy()
    if how == "some missing":
        data[::7, 3] = np.nan
    np.save(tmp_path / "x.npy", data)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    make = lambda: ob.SparsePCA(2, n_nonzero=6, random_state=0, missing="em")  # noqa: E731
    np.testing.assert_array_equal(make().fit(mapped).components_, make().fit(data).components_)
