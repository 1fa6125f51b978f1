"""Damaged files give one clear ValueError that names the file."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from scipy import sparse

import orthobcd as ob
from orthobcd.io import read_matrix

# Writers -----------------------------------------------------------------------------------------


def npy(shape: str, kind: str = "<f8", body: bytes = bytes(64), version: int = 1) -> bytes:
    """A .npy file whose header claims a shape and a type."""
    return raw_npy(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}", body)


def raw_npy(header: str, body: bytes = bytes(64)) -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def saved(array) -> bytes:
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
COO = {"data": np.ones(2), "row": np.array([0, 1]), "col": np.array([0, 1])}


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


def a_result(path) -> None:
    rng = np.random.default_rng(0)
    problem = ob.SparsePCAProblem(rng.standard_normal((20, 6)), 2, ob.L0(0.5))
    ob.solve(problem, solver=ob.Continuation(), gap_tol=None, max_sweeps=5).save(path)


def a_model(path) -> None:
    k = np.arange(12)
    cycle = np.stack([k, 0 * k, (k + 1) % 12], axis=1)
    names = [f"e{i}" for i in k]
    ob.kg.UltraE(12, 1, dim=4, n_negatives=4, max_epochs=2, entity_names=names).fit(cycle).save(
        path
    )


def some_loadings(path) -> None:
    X = np.random.default_rng(0).standard_normal((20, 6))
    ob.SparsePCA(2, n_nonzero=4, random_state=0).fit(X).loadings().save(path)


def parts_of(path) -> tuple[dict, dict]:
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(str(arrays.pop("header"))), arrays


def changed(good, path, change) -> None:
    """A saved file after ``change(header, arrays)``."""
    header, arrays = parts_of(good)
    change(header, arrays)
    np.savez(path, header=np.array(json.dumps(header)), **arrays)


def text_as_header(text: str) -> bytes:
    return zipped({"header": saved(np.array(text))})


ARCHIVES = {
    "nested": text_as_header("[" * 100_000 + "]" * 100_000),
    "nested-dicts": text_as_header(
        '{"kind": "Result", "format": 1, "fitted": {}, "parameters": '
        + '{"a":' * 9000
        + "1"
        + "}" * 9001
    ),
    "no-header": zipped({"x": saved(np.eye(2))}),
    "huge-header": zipped({"header": npy("()", "<U1000000000")}),
    "encrypted": flagged(zipped({"header": saved("{}")})),
    "many-digits": text_as_header('{"kind": ' + "1" * 9000 + "}"),
}


def field(name: str, value, part: str = "parameters"):
    def change(header: dict, arrays: dict) -> None:
        header[part][name] = value

    return change


def put(name: str, value):
    def change(header: dict, arrays: dict) -> None:
        arrays[name] = value(arrays[name])

    return change


def without(name: str):
    def change(header: dict, arrays: dict) -> None:
        del arrays[name]

    return change


def large(header: dict, arrays: dict) -> None:
    """A model in 30,000 dimensions, of which the file has none."""
    header["parameters"]["dim"] = 30_000
    header["parameters"]["signature"] = [1, -1] * 15_000


RESULTS = {
    "x": field("x", "hello"),
    "history": field("history", {"objective": "falls"}),
    "path": field("path", [{"x": 3}]),
    "status": field("status", "splendid"),
    "starts": field("starts", [{"strategy": 1, "objective": "a", "seconds": []}]),
    "reference": field("x", {"__array__": "array_99999"}),
}

MODELS = {
    "dimension": large,
    "dimension-only": field("dim", 30_000),
    "entities": field("n_entities", 10**12),
    "relations": field("n_relations", 10**12),
    "negatives": field("n_negatives", 10**30),
    "names": field("entity_names", [[0]] * 12),
    "loss": field("loss", {"a": 1}),
    "twice": put("training.state.1", lambda R: 2.0 * R),
    "twice-best": put("training.best.1", lambda R: 2.0 * R),
    "zero": put("training.state.1", lambda R: 0.0 * R),
    "overflow": put("training.state.1", lambda R: 1e200 * R),
    "off": put("training.best.1", lambda R: R + 1e-6),
    "reals": field("signature", [1.5, -1.5, 1.5, -1.5]),
    "state": put("training.state.0", lambda rows: rows[:, :-1]),
    "history": put("training.history.loss", lambda curve: curve[:1]),
}


PARTS = 32
"""A saved file is cut after each of this many equal parts but the last one."""


def write_damaged(good: Path, bad: Path) -> None:
    """Writes a saved file cut after each part, without each array, and with text in its place."""
    kind, content = good.name.partition("-")[0], good.read_bytes()
    for k in range(1, PARTS):
        cut = bad / f"{kind}-cut{k}{''.join(good.suffixes)}"
        cut.write_bytes(content[: len(content) * k // PARTS])
    if good.suffix == ".npz":
        for name in parts_of(good)[1]:
            changed(good, bad / f"{kind}-without-{name}.npz", without(name))
            changed(good, bad / f"{kind}-text-{name}.npz", put(name, lambda a: a.astype("U8")))


def write_files(folder: Path) -> None:
    """Writes good, bad and large files to a folder."""
    good, bad = folder / "good", folder / "bad"
    good.mkdir()
    bad.mkdir()
    a_result(good / "result-a.npz")
    a_model(good / "ultra-a.npz")
    some_loadings(good / "loadings-a.npz")
    some_loadings(good / "loadings-a.json")
    (good / "triples-a.tsv").write_text("0\t0\t1\n2\t0\t1\n")
    many = "".join(f"{k * k % 97}\t0\t{k}\n" for k in range(200))
    (good / "triples-b.tsv.gz").write_bytes(gzip.compress(many.encode()))
    (good / "a.csv").write_text("1,2\n3,4\n")
    (good / "a.csv.gz").write_bytes(gzip.compress(b"1,2\n3,4\n"))
    (good / "a.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1\n")
    (good / "a.svmlight").write_text("1 1:1 2:1\n1 1:1\n")
    np.savez(good / "a.npz", np.eye(2))
    sparse.save_npz(good / "sparse.npz", sparse.csr_array(np.eye(2)))
    parquet.write_table(pyarrow.table({"a": [1.0, 2.0], "b": [1.0, 2.0]}), good / "a.parquet")
    for name, content in (MATRICES | TRIPLES).items():
        (bad / name).write_bytes(content)
    for name, content in ARCHIVES.items():
        for kind in ("result", "ultra", "loadings"):
            (bad / f"{kind}-{name}.npz").write_bytes(content)
    (bad / "loadings-nested.json").write_text("[" * 100_000)
    (bad / "loadings-list.json").write_text("[1]")
    for saved_file in (
        "result-a.npz",
        "ultra-a.npz",
        "loadings-a.npz",
        "loadings-a.json",
        "triples-b.tsv.gz",
    ):
        write_damaged(good / saved_file, bad)
    for name, change in RESULTS.items():
        changed(good / "result-a.npz", bad / f"result-{name}.npz", change)
    for name, change in MODELS.items():
        changed(good / "ultra-a.npz", bad / f"ultra-{name}.npz", change)


READERS = {
    "result": ob.Result.load,
    "ultra": ob.kg.UltraE.load,
    "triples": ob.kg.load_triples,
    "loadings": ob.Loadings.load,
}


def kind_of(name: str) -> str:
    """The kind of a file by its name: "result", "ultra", …, and "matrix" for `read_matrix`."""
    kind = name.partition("-")[0]
    return kind if kind in ("loadings", "names", "result", "triples", "ultra") else "matrix"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return folder


@pytest.mark.parametrize("kind", ["loadings", "matrix", "result", "triples", "ultra"])
def test_one_value_error_names_the_file(kind, folder):
    paths = [path for path in (folder / "bad").iterdir() if kind_of(path.name) == kind]
    assert len(paths) >= 20
    for path in paths:
        with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
            READERS.get(kind, read_matrix)(path)
        assert path.name in str(caught.value) or str(caught.value).startswith("paths")


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
    for reader in (read_matrix, *READERS.values(), ob.SparsePCA.load):
        with pytest.raises(ValueError, match=where[:1]):
            reader(tmp_path / where)


def test_a_path_and_a_history_are_of_arrays(folder, tmp_path):
    path, good = tmp_path / "result.npz", folder / "good" / "result-a.npz"

    def flat(header: dict, arrays: dict) -> None:
        arrays[header["parameters"]["x"]["__array__"]] = np.ones(3)

    def shorter(header: dict, arrays: dict) -> None:
        name = header["parameters"]["history"]["objective"]["__array__"]
        arrays[name] = arrays[name][1:]

    for change in (flat, shorter):
        changed(good, path, change)
        with pytest.raises(ValueError, match="Result"):
            ob.Result.load(path)
