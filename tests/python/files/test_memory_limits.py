"""Limits on the memory that reading a file may take, to the byte, and how they are told."""

from __future__ import annotations

import gzip
import io
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from orthobcd._internal import reading
from orthobcd.io import UnreadableFile, read_matrix
from orthobcd.io.matrices import READERS
from orthobcd.io.selection import Selection

MANY = 10**18


@pytest.mark.parametrize(
    ("count", "text"),
    [
        *((0, "0 bytes"), (999, "999 bytes"), (1000, "1 kB"), (999_000, "999 kB")),
        *((10**6, "1 MB"), (999 * 10**6, "999 MB"), (10**9, "1 GB"), (10**12, "1 TB")),
        *((123 * 10**15, "1.23e+05 TB"), (MANY - 10**15, "9.99e+05 TB")),
        *((MANY, "over 1,000,000 TB"), (5 * MANY, "over 1,000,000 TB")),
    ],
)
def test_sizes_as_text(count, text):
    assert reading._bytes(count) == text


def test_arrays_of_objects_are_no_matrices(tmp_path):
    names = np.array([["a", "b"], ["c", "d"]], dtype=object)
    values = np.arange(6.0).reshape(2, 3)
    np.savez(tmp_path / "a.npz", names=names, values=values)
    np.testing.assert_array_equal(read_matrix(tmp_path / "a.npz")[0], values)
    np.savez(tmp_path / "b.npz", values=values, row_of_values=values[0])
    np.testing.assert_array_equal(read_matrix(tmp_path / "b.npz")[0], values)
    np.savez(tmp_path / "c.npz", names=names)
    with pytest.raises(UnreadableFile, match="need one matrix"):
        read_matrix(tmp_path / "c.npz")


def test_what_a_file_may_take():
    """64 MiB, or 500 times its size; a quarter of these are bytes of text."""
    most = {0: 2**26, 2**26 // 500: 2**26, 10**6: 5 * 10**8}
    for size, limit in most.items():
        assert reading.allowed(size) == limit
        assert reading.unpacked(size) == limit // 4
        reading.check_need("it", limit, size)
        with pytest.raises(ValueError, match=r"it would take .* are the most for a file of"):
            reading.check_need("it", limit + 1, size)


@pytest.mark.parametrize("by", [1, 7, 1000])
def test_contents_are_unpacked_up_to_the_limit(by):
    content = bytes(range(250)) * 4
    packed = gzip.compress(content)

    def read(limit: int) -> bytes:
        with io.BufferedReader(reading.Unpacked(io.BytesIO(packed), limit), by) as stream:
            return stream.read()

    assert read(1000) == content
    with pytest.raises(ValueError, match="unpacks to more than 999 bytes"):
        read(999)


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 3, 4)])
@pytest.mark.parametrize("kind", ["f8", "f4", "i2", "?"])
def test_an_array_is_as_large_as_its_header_says(shape, kind):
    stream = io.BytesIO()
    np.save(stream, np.ones(shape, kind))
    size = len(stream.getvalue())
    assert reading.layout_of(io.BytesIO(stream.getvalue()), size) == (shape, np.dtype(kind))
    with pytest.raises(ValueError, match="would take"):
        reading.layout_of(io.BytesIO(stream.getvalue()), size - 1)


class Recording(reading.Source):
    """A file that keeps what its reader needs."""

    def check_need(self, what: str, need: int) -> None:
        needs.append(need)


needs: list[int] = []


def needed(ending: str, content: bytes) -> list[int]:
    needs.clear()
    stream: Any = io.BytesIO(content)
    source = Recording(f"a{ending}", stream, len(content), False, False)
    READERS[ending](source, Selection(None, None))
    return needs


@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (7, 2)])
def test_what_a_file_declares_is_checked(rows, columns):
    """8 bytes for a number and 16 for an entry, and sparse matrices 8 per row and column."""
    market = "%%MatrixMarket matrix"
    values = "1.5\n" * (rows * columns)
    array = f"{market} array real general\n{rows} {columns}\n{values}".encode()
    assert needed(".mtx", array) == [8 * rows * columns]
    entries = f"{market} coordinate real general\n{rows} {columns} 2\n1 1 2.0\n2 2 3.0\n"
    assert needed(".mtx", entries.encode()) == [8 * (rows + columns), 32]
    stream = io.BytesIO()
    table = pyarrow.table({str(k): np.ones(rows) for k in range(columns)})
    parquet.write_table(table, stream)
    assert needed(".parquet", stream.getvalue()) == [8 * rows * columns]


@pytest.mark.parametrize("sizes", ["3 4 5 6", "3", "3 4 1"])
@pytest.mark.parametrize("layout", ["array", "coordinate"])
def test_a_line_of_sizes_has_two_or_three(sizes, layout, tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text(f"%%MatrixMarket matrix {layout} real general\n{sizes}\n1 1 2.0\n")
    if layout == "coordinate" and sizes == "3 4 1":
        assert read_matrix(path)[0].shape == (3, 4)
        return
    with pytest.raises(UnreadableFile, match="a line of sizes"):
        read_matrix(path)


def test_a_header_is_no_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("height,width\n")
    with pytest.raises(UnreadableFile, match=r"at least 1 samples and 2 features, got \(0, 2\)"):
        read_matrix(path, min_rows=1)
    path.write_text("height,width\n1,2\n")
    assert read_matrix(path, min_rows=1)[0].shape == (1, 2)
    with pytest.raises(UnreadableFile, match=r"at least 2 samples"):
        read_matrix(path)
