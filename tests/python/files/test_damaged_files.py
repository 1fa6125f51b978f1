"""Damaged files give one clear ValueError that names the file."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile

import numpy as np
import pytest

import orthobcd as ob
from orthobcd.io import read_matrix

# Writers -----------------------------------------------------------------------------------------


def npy(shape: str, kind: str = "<f8", body: bytes = bytes(64), version: int = 1) -> bytes:
    """A .npy file whose header claims a shape and a type."""
    return raw_npy(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}", body)


def raw_npy(header: str, body: bytes = bytes(64)) -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def saved(array: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


def flagged(content: bytes) -> bytes:
    """An archive whose members claim to be encrypted."""
    out = bytearray(content)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        out[out.index(mark) + offset] |= 1
    return bytes(out)


def compressed(kind: str, shape, **arrays) -> bytes:
    """What ``scipy.sparse.save_npz`` writes."""
    members = {"format": saved(kind.encode()), "shape": saved(np.asarray(shape))}
    return zipped({**members, **{name: saved(array) for name, array in arrays.items()}})


CSR = {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2])}


NESTED = "(" * 4000 + ")" * 4000

COORDINATES = b"%%MatrixMarket matrix coordinate real general\n"

MATRICES = {
    "huge.npy": npy("(1000000000, 100)"),
    "overflow.npy": npy("(4294967296, 4294967296)"),
    "negative.npy": npy("(-1, -8)"),
    "a-little-more.npy": npy("(2, 5)"),
    "objects.npy": npy("(1000000000, 2)", "|O"),
    "nested.npy": raw_npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {NESTED}}}"),
    "minus.npy": raw_npy("-" * 9000 + "1"),
    "long-header.npy": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + bytes(64),
    "version.npy": b"\x93NUMPY\x09\x00" + bytes(64),
    "fields.npy": raw_npy(
        "{'descr': [('a', '<f8'), ('b', '<f8')], 'fortran_order': False, 'shape': (2, 2)}"
    ),
    "huge.npy.gz": gzip.compress(npy("(1000000000, 100)")),
    "huge.npz": zipped({"X": npy("(1000000000, 100)")}),
    "encrypted.npz": flagged(zipped({"X": saved(np.eye(3))})),
    "nested.npz": zipped({"X": raw_npy(NESTED)}),
    "empty.npz": b"",
    "dia-1e12.npz": compressed("dia", (10**12, 10**12), data=np.ones((1, 2)), offsets=[0]),
    "real-shape.npz": compressed("csr", (2.0, 1e12), **CSR),
    "negative-shape.npz": compressed("csr", (-3, 2), **CSR),
    "long-shape.npz": compressed("csr", np.arange(9), **CSR),
    "kind.npz": compressed("xyz", (2, 2), **CSR),
    "entries.mtx": COORDINATES + b"3 3 1000000000000\n1 1 1\n",
    "negative.mtx": COORDINATES + b"-3 3 1\n1 1 1\n",
    "overflow.mtx": COORDINATES + b"3 3 1" + b"0" * 40 + b"\n",
    "no-sizes.mtx": COORDINATES + b"",
    "words.mtx": COORDINATES + b"a b c\n",
    "columns-1e30.svmlight": b"1 1" + b"0" * 30 + b":1\n1 1:1\n",
    "negative.svmlight": b"1 -5:1\n1 1:1\n",
    "garbage.parquet": b"PAR1" + bytes(range(256)) + b"PAR1",
    "garbage.npy": b"not an array",
    "garbage.npz": b"not an archive",
    "words.csv": b"a,b\nc,d\n",
    "words.svmlight": b"hello world\n",
    "picture.png": b"\x89PNG",
    "vector.npy": saved(np.ones(5)),
    "text.npy": saved([["a", "b"], ["c", "d"]]),
    "infinite.npy": saved(np.full((3, 3), np.inf)),
    "two.npz": zipped({"first": saved(np.eye(3)), "second": saved(np.eye(3))}),
}

TRIPLES = {
    "triples-1e8.tsv": b"0\t0\t99999999\n",
    "triples-relation.tsv": b"0\t99999999\t0\n",
    "triples-1e18.tsv": b"0\t0\t999999999999999999\n",
    "triples-1e30.tsv": b"0\t0\t1" + b"0" * 30 + b"\n",
    "triples-broken.tsv.gz": gzip.compress(b"0\t0\t0\n" * 99)[:-20],
    "triples-fields.tsv": b"0\t0\n",
    "triples-later.tsv": b"0\t0\t1\n" * 500 + b"0\t0\n",
    "triples-four.tsv": b"0\t0\t1\t1\n",
    "triples-archive.tsv": zipped({"X": saved(np.eye(2))}),
}


@pytest.mark.parametrize("name", [*MATRICES, *TRIPLES])
def test_one_value_error_names_the_file(name, tmp_path):
    reader, content = ob.kg.load_triples, TRIPLES.get(name)
    if content is None:
        reader, content = read_matrix, MATRICES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        reader(tmp_path / name)
    assert name in str(caught.value) or str(caught.value).startswith("paths")


@pytest.mark.parametrize("where", ["X.npy", "a.npz"])
def test_nothing_is_read_with_pickle(where, tmp_path):
    class Bad:
        def __reduce__(self):
            return (pytest.fail, ("a file ran code",))

    objects = np.array([[Bad(), Bad()]] * 2)
    if where.endswith(".npy"):
        np.save(tmp_path / where, objects)
    else:
        np.savez(tmp_path / where, header=objects, X=objects)
    classes = ob.Result, ob.kg.UltraE, ob.Loadings, ob.SparsePCA
    for reader in (read_matrix, ob.kg.load_triples, *(one.load for one in classes)):
        with pytest.raises(ValueError, match=where[:1]):
            reader(tmp_path / where)
