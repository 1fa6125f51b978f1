"""Limits on the memory that reading a file may take, to the byte, and how they are told."""

from __future__ import annotations

import gzip
import io

import pytest

from orthobcd._internal import reading

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
