"""Dask collections are fitted as arrays, in one graph, and transformed lazily."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import sklearn
from scipy import sparse

import orthobcd as ob
from orthobcd._core import Moments
from orthobcd.data import add_rows
from orthobcd.sklearn.dask import sum_chunks

dask = pytest.importorskip("dask")
pytest.importorskip("dask.callbacks")
da = pytest.importorskip("dask.array")

short = pytest.mark.usefixtures("short_searches")
SMALL = np.abs(np.random.default_rng(0).standard_normal((20, 4)) * [4.0, 3.0, 2.0, 1.0])

TRANSFORMERS = {
    "SparsePCA": lambda: ob.SparsePCA(2, n_nonzero=4, random_state=0),
    "NonnegativePCA": lambda: ob.NonnegativePCA(2, random_state=0),
    "OrthogonalNMF": lambda: ob.OrthogonalNMF(2, random_state=0),
    "SparsePCACV": lambda: ob.SparsePCACV(2, n_alphas=2, cv=2, random_state=0),
}


@pytest.mark.covering(2)
@short
@pytest.mark.parametrize("by", ["set_output", "config"])
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
@pytest.mark.parametrize("kind", ["array", "frame", "array of unknown rows"])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_results_of_dask_collections_stay_lazy(name, kind, output, by):
    array, frame = (pytest.importorskip(f"dask.{kind}") for kind in ("array", "dataframe"))
    table = pandas.DataFrame(SMALL, columns=list("abcd"), index=[f"s{i:02}" for i in range(20)])
    pca = TRANSFORMERS[name]().fit(table if kind == "frame" else SMALL)
    right = pca.transform(table if kind == "frame" else SMALL)
    data: Any = frame.from_pandas(table, npartitions=3)
    if kind != "frame":
        data = array.from_array(SMALL, chunks=(7, 4))
        data = data[data[:, 0] >= 0.0] if "unknown" in kind else data
    if by == "set_output":
        pca.set_output(transform=output)
    with sklearn.config_context(transform_output=output if by == "config" else "default"):
        found = pca.transform(data)
    if output != "pandas":
        assert isinstance(found, array.Array)
        np.testing.assert_allclose(found.compute(), right, atol=1e-12)
        return
    assert isinstance(found, frame.DataFrame)
    computed = found.compute()
    assert list(computed.columns) == list(pca.get_feature_names_out())
    np.testing.assert_allclose(computed.to_numpy(), right, atol=1e-12)
    if kind == "frame":
        assert list(computed.index) == list(table.index)


@short
@pytest.mark.parametrize("output", ["pandas", "polars"])
@pytest.mark.parametrize("name", ["SparsePCA", "NonnegativePCA", "OrthogonalNMF"])
def test_fits_and_transforms_of_dask_collections_stay_lazy(name, output):
    array, frame = (pytest.importorskip(f"dask.{kind}") for kind in ("array", "dataframe"))
    pca = TRANSFORMERS[name]().set_output(transform=output)
    found = pca.fit_transform(array.from_array(SMALL, chunks=(7, 4)))
    assert isinstance(found, frame.DataFrame if output == "pandas" else array.Array)
    in_memory = pca.transform(SMALL)
    assert type(in_memory).__module__.partition(".")[0] == output


RNG = np.random.default_rng(0)
X = (RNG.poisson(3.0, (5000, 8)) + 2.0 * RNG.standard_normal((5000, 1))).astype(np.float32)

MAKE = {
    "sparse": lambda **k: ob.SparsePCA(2, n_nonzero=6, random_state=0, **k),
    "nonnegative": lambda **k: ob.NonnegativePCA(2, random_state=0, **k),
}


@pytest.fixture(autouse=True)
def on_threads() -> Any:
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def chunked(size: int = 700) -> Any:
    return da.from_array(X, chunks=(size, 8))


def collections() -> dict[str, Any]:
    one = dask.delayed(lambda: X)()
    return {
        "array": chunked(),
        "chunks of one row": da.from_array(X[:50], chunks=(1, 8)),
        "one chunk": chunked(5000),
        "sparse": chunked().map_blocks(sparse.csr_matrix),
        "chunks of one task": da.from_delayed(one, X.shape, X.dtype).rechunk((900, 8)),
        "unknown sizes": chunked()[da.ones(5000, chunks=700, dtype=bool)],
        "needs a pass": chunked() - chunked().sum(axis=0) * 0,
    }


def moments_of(data: Any, precision: str) -> tuple[Any, ...]:
    sums, size = sum_chunks(data, precision, None, None, 1, 0)
    assert size == X[: sums.n_rows].max()
    return sums.precision, *sums.read(True, True)


@pytest.mark.parametrize("precision", ["auto", "exact", "fast"])
@pytest.mark.parametrize("workers", [1, 3])
def test_sums_are_those_of_arrays(precision, workers):
    """Whatever the chunks: exact ones bit by bit, fast ones to rounding."""
    with dask.config.set(num_workers=workers):
        for what, data in collections().items():
            sums = Moments(8, "fast" if precision == "fast" else "exact")
            add_rows(sums, X[:50] if data.shape[0] == 50 else X)
            wanted, got = (sums.precision, *sums.read(True, True)), moments_of(data, precision)
            assert got[0] == wanted[0], what
            tolerance = 0.0 if got[0] == "exact" else 1e-11
            for a, b in zip(got[1:], wanted[1:], strict=True):
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=what)


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("size", [1, 5, 7, 8, 9, 100, 3000])
@pytest.mark.parametrize("threads", [1, 3])
def test_few_sums_are_held_at_once(size, threads):
    """One for each thread and for each level of the tree; small chunks share their sums."""
    data, held, made = chunked(size)[:2000], [], []

    class Held(dask.callbacks.Callback):
        def _posttask(self, key: Any, result: Any, dsk: Any, state: Any, worker: Any) -> None:
            held.append(sum(hasattr(one, "sums") for one in state["cache"].values()))
            made.append(hasattr(result, "sums"))

    with dask.config.set(num_workers=threads), Held():
        sums, _ = sum_chunks(data, "fast", None, None, 1, 0)
    assert sums.n_rows == 2000
    most = -(-2000 // max(size, 8)) * 2
    assert sum(made) <= 2 * most
    assert max(held) <= 2 * threads + np.ceil(np.log2(most))


@pytest.mark.parametrize("name", MAKE)
def test_collections_are_fitted_as_arrays(name):
    make = MAKE[name]
    wanted = make().fit(X)
    for what in ("array", "sparse", "unknown sizes"):
        data = collections()[what]
        got = make().fit(data)
        for attribute in ("mean_", "components_", "explained_variance_"):
            value = getattr(got, attribute)
            assert type(value) is np.ndarray
            np.testing.assert_array_equal(value, getattr(wanted, attribute), err_msg=what)
        scores = got.transform(data)
        assert isinstance(scores, da.Array)
        np.testing.assert_array_equal(scores.chunks[0], data.chunks[0])
        np.testing.assert_allclose(scores.compute(), wanted.transform(X), atol=1e-9)
        assert got.score(data) == pytest.approx(wanted.score(X), rel=1e-10)


def test_a_chunk_without_a_row_has_no_coordinates():
    mask = np.repeat([True, False, True], [700, 700, 3600])
    data = chunked()[da.from_array(mask, chunks=700)]
    pca = MAKE["sparse"]().fit(X)
    np.testing.assert_allclose(pca.transform(data).compute(), pca.transform(X[mask]), atol=1e-9)
    assert pca.score(data) == pytest.approx(pca.score(X[mask]))
    few = np.repeat([True, False, True, False, True], [700, 700, 1, 699, 2900])
    data = chunked()[da.from_array(few, chunks=700)]
    np.testing.assert_allclose(MAKE["sparse"]().fit(data).mean_, X[few].mean(axis=0), rtol=1e-6)
    none = chunked()[da.zeros(5000, chunks=700, dtype=bool)]
    assert pca.transform(none).compute().shape == (0, 2)
    with pytest.raises(ValueError, match="X must have at least one row"):
        pca.score(none)


def test_samples_are_added_and_taken_back():
    make = MAKE["nonnegative"]
    data, wanted = chunked(), make().fit(X)
    parts = make().partial_fit(data[:2100]).partial_fit(X[2100:3000]).partial_fit(data[3000:])
    np.testing.assert_array_equal(parts.components_, wanted.components_)
    scores = make().fit_transform(data)
    assert isinstance(scores, da.Array)
    back = wanted.inverse_transform(scores)
    assert isinstance(back, da.Array)
    known = wanted.inverse_transform(wanted.transform(X))
    np.testing.assert_allclose(back.compute(), known, atol=1e-9)
    w = RNG.integers(0, 3, len(X))
    known = make().fit(X, sample_weight=w)
    for weights in (w, da.from_array(w, chunks=700)):
        got = make().fit(data, sample_weight=weights)
        np.testing.assert_array_equal(got.components_, known.components_)
    for bad in (w[:-1], -w, da.from_array(w, chunks=900), da.from_array(w - 1, chunks=700)):
        with pytest.raises(ValueError, match="sample_weight"):
            make().fit(data, sample_weight=bad)


def test_frames_and_labelled_arrays():
    frame = pytest.importorskip("dask.dataframe")
    table = pandas.DataFrame(X, columns=list("abcdefgh"))
    wanted = MAKE["sparse"]().fit(table)
    data = frame.from_pandas(table, npartitions=4)
    got = MAKE["sparse"]().fit(data)
    np.testing.assert_array_equal(got.components_, wanted.components_)
    assert list(got.feature_names_in_) == list("abcdefgh")
    np.testing.assert_allclose(got.transform(data).compute(), wanted.transform(table), atol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        got.transform(data[list("bacdefgh")])


def test_xarray():
    xr = pytest.importorskip("xarray")
    got = MAKE["sparse"]().fit(xr.DataArray(chunked()))
    np.testing.assert_array_equal(got.components_, MAKE["sparse"]().fit(X).components_)


def spoilt(change: Any) -> Any:
    def block(data: Any, block_id: Any = None) -> Any:
        return change(data) if block_id[0] == 2 else data

    return chunked(1000).map_blocks(block, dtype=X.dtype, meta=X[:0])


def raising(_: Any) -> Any:
    raise OSError("the disk is gone")


BAD = {
    "NaN": (lambda: spoilt(lambda b: b * np.nan), r"block 2 of X .*NaN"),
    "width": (lambda: spoilt(lambda b: b[:, :5]), r"block 2 of X .*5 features"),
    "dtype": (lambda: spoilt(lambda b: b.astype(float)), r"block 2 of X .*float32.*float64"),
    "empty": (lambda: spoilt(lambda b: b[:0]), r"block 2 of X .*0 sample"),
    "raises": (lambda: spoilt(raising), r"X could not be read: OSError: the disk is gone"),
    "columns": (
        lambda: chunked().rechunk((700, 4)),
        r"one chunk of columns, got 2; use X.rechunk\(\{1: -1\}\)",
    ),
    "one dimension": (lambda: da.ones(7), "two dimensions"),
    "too wide": (
        lambda: da.ones((9000, 9000), chunks=(1, 9000)),
        "second moments of 9,000 features|9000 features, but",
    ),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_a_bad_chunk_is_named_and_nothing_is_lost(what, how):
    make, words = BAD[what]
    limit = "1GB" if what == "too wide" else None
    pca = MAKE["nonnegative"](max_memory=limit).partial_fit(X[:3000])
    before = pca.components_
    with pytest.raises(ValueError, match=words):
        getattr(pca, how)(make())
    assert pca.components_ is before
    if what in ("NaN", "width", "dtype", "raises"):
        with pytest.raises((ValueError, OSError), match=r"block 2 of X|the disk is gone"):
            pca.transform(make()).compute()


def test_chunks_of_unknown_type_may_have_any():
    """A collection of objects does not say which type its chunks have."""
    blocks = [da.from_delayed(dask.delayed(X[k : k + 1000]), (1000, 8), object) for k in (0, 1000)]
    got = MAKE["sparse"]().fit(da.concatenate(blocks))
    np.testing.assert_array_equal(
        got.components_, MAKE["sparse"]().fit(chunked(1000)[:2000]).components_
    )


def test_a_missing_value_is_refused():
    with pytest.raises(ValueError, match="missing must be None"):
        ob.SparsePCA(2, missing="em").fit(chunked())


def test_nothing_is_computed_twice(tmp_path: Path):
    """A pass makes each chunk once, and tasks that chunks share once."""
    made: list[int] = []
    lock = threading.Lock()

    def part(shared: int, k: int) -> Any:
        with lock:
            made.append(k)
        return X[500 * k : 500 * k + 500] + shared

    def nothing() -> int:
        with lock:
            made.append(-1)
        return 0

    shared = dask.delayed(nothing, pure=True)()
    blocks = [
        da.from_delayed(dask.delayed(part)(shared, k), (500, 8), np.float32) for k in range(10)
    ]
    got = MAKE["sparse"]().fit(da.concatenate(blocks))
    assert sorted(made) == list(range(-1, 10))
    np.testing.assert_array_equal(got.components_, MAKE["sparse"]().fit(X).components_)


def waiting(data: Any, block_id: Any = None, folder: str = "") -> Any:
    """The chunk; in its second chunk a process waits for the file ``killed``."""
    shared, until = Path(folder), time.monotonic() + 600.0
    (shared / f"{block_id[0]}-{os.getpid()}").touch()
    while chunks_of(os.getpid(), shared) > 1 and not (shared / "killed").exists():
        assert time.monotonic() < until, "no process has been killed"
        time.sleep(0.01)
    return data


def chunks_of(pid: int, folder: Path) -> int:
    return len(list(folder.glob(f"*-{pid}")))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_cluster_that_loses_a_worker(tmp_path: Path):
    """Two processes give the bits of one, also if one of them is killed in its second chunk."""
    distributed = pytest.importorskip("distributed")
    wanted = MAKE["nonnegative"](precision="exact").fit(X)
    quiet = {
        "distributed.scheduler.allowed-failures": 10,
    }
    with (
        dask.config.set(scheduler=None, **quiet),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        data = chunked(200).map_blocks(waiting, folder=str(tmp_path), dtype=X.dtype, meta=X[:0])
        pids = list(client.run(os.getpid).values())

        def kill() -> None:
            # Each process has the sum of a chunk, and is in its second chunk.
            while min(chunks_of(pid, tmp_path) for pid in pids) < 2:
                time.sleep(0.01)
            os.kill(pids[0], signal.SIGKILL)
            (tmp_path / "killed").touch()

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        got = MAKE["nonnegative"](precision="exact").fit(data)
        killer.join()
        np.testing.assert_array_equal(got.components_, wanted.components_)
        np.testing.assert_array_equal(got.mean_, wanted.mean_)
        held = chunked().persist()
        again = MAKE["nonnegative"](precision="exact").fit(held)
        np.testing.assert_array_equal(again.components_, wanted.components_)
        scores = again.transform(held)
        np.testing.assert_allclose(scores.compute(), wanted.transform(X), atol=1e-9)
        with pytest.raises(ValueError, match=r"block 2 of X .*NaN"):
            MAKE["nonnegative"]().fit(spoilt(lambda b: b * np.nan))
