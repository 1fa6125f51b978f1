"""Hostile files give one clear ValueError and take no more memory than allowed."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from scipy import sparse

import orthobcd as ob
from orthobcd._internal import reading
from orthobcd.io import read_matrix

from ..conftest import SAFE_PATH

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX processes"),
]

ROOM = 768
"""MiB of address space that a reader has in addition to the peak for valid files."""

CHILD = """
import json, resource, sys
from pathlib import Path
import orthobcd as ob
from orthobcd.io import read_matrix

folder, room = Path(sys.argv[1]), int(sys.argv[2])

def read(path):
    kind = path.name.partition("-")[0]
    if kind == "names":
        return ob.kg.load_triples(folder / "good" / "triples-a.tsv", entities=path)
    readers = {"result": ob.Result.load, "ultra": ob.kg.UltraE.load, "triples": ob.kg.load_triples,
               "loadings": LOADINGS}
    return readers.get(kind, read_matrix)(path)

from orthobcd.sklearn.loadings import Loadings
LOADINGS = Loadings.load
# The kernel counts kB, that of macOS bytes.
UNIT = 1 << 20 if sys.platform == "darwin" else 1 << 10
for path in sorted((folder / "good").iterdir()):
    read(path)
if sys.platform == "linux":
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (room << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for path in sorted([*(folder / "bad").iterdir(), *(folder / "large").iterdir()]):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        read(path)
        said = ["nothing", ""]
    except BaseException as error:
        said = [type(error).__name__, str(error), isinstance(error, ValueError)]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps([path.name, grown / UNIT, *said]), flush=True)
"""

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


def packed_zeros(count: int, start: bytes = b"") -> bytes:
    """A gzip file of a start and of zeros, packed 1030 to one."""
    stream = io.BytesIO()
    with gzip.GzipFile(fileobj=stream, mode="wb") as file:
        file.write(start)
        for _ in range(count >> 20):
            file.write(bytes(1 << 20))
    return stream.getvalue()


def repeated(line: bytes, count: int) -> bytes:
    stream = io.BytesIO()
    with gzip.GzipFile(fileobj=stream, mode="wb") as file:
        for _ in range(count >> 16):
            file.write(line * (1 << 16))
    return stream.getvalue()


def bomb(rows: int, columns: int) -> bytes:
    """An archive of one array of zeros."""
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("X.npy", "w", force_zip64=True) as member,
    ):
        member.write(npy(f"({rows}, {columns})", body=b""))
        for _ in range(rows):
            member.write(bytes(8 * columns))
    return stream.getvalue()


def overlapping() -> bytes:
    """Thousands of names for one packed array of 1 MB."""
    whole = bytearray(zipped({"a0000": saved(np.zeros((128, 1024)))}))
    begin = whole.index(b"PK\x01\x02")
    end = whole.index(b"PK\x05\x06")
    entry, count = bytes(whole[begin:end]), 2000
    entries = b"".join(entry.replace(b"a0000", f"a{k:04d}".encode()) for k in range(count))
    tail = bytearray(whole[end:])
    tail[8:12] = struct.pack("<HH", count, count)
    tail[12:16] = struct.pack("<I", len(entries))
    return bytes(whole[:begin]) + entries + bytes(tail)


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


def rows_of_zeros(groups: int) -> bytes:
    stream = io.BytesIO()
    table = pyarrow.table({"a": np.zeros(1 << 20), "b": np.zeros(1 << 20)})
    with parquet.ParquetWriter(stream, table.schema) as writer:
        for _ in range(groups):
            writer.write_table(table)
    return stream.getvalue()


BOMB = bomb(4000, 8192)
"""262 MB of zeros in 260 kB."""

NESTED = "(" * 4000 + ")" * 4000

COORDINATES = b"%%MatrixMarket matrix coordinate real general\n"

MATRICES = {
    "huge.npy": npy("(1000000000, 100)"),
    "overflow.npy": npy("(4294967296, 4294967296)"),
    "negative.npy": npy("(-1, -8)"),
    "a-little-more.npy": npy("(2, 5)"),
    "no-bytes.npy": npy("(1000000000000, 2)", "<U0"),
    "objects.npy": npy("(1000000000, 2)", "|O"),
    "nested.npy": raw_npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {NESTED}}}"),
    "minus.npy": raw_npy("-" * 9000 + "1"),
    "long-header.npy": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + bytes(64),
    "version.npy": b"\x93NUMPY\x09\x00" + bytes(64),
    "fields.npy": raw_npy(
        "{'descr': [('a', '<f8'), ('b', '<f8')], 'fortran_order': False, 'shape': (2, 2)}"
    ),
    "bomb.npy.gz": packed_zeros(1 << 26, npy("(4194304, 2)", body=b"")),
    "huge.npy.gz": gzip.compress(npy("(1000000000, 100)")),
    "bomb.npz": BOMB,
    "overlapping.npz": overlapping(),
    "huge.npz": zipped({"X": npy("(1000000000, 100)")}),
    "bz2.npz": zipped({"X": saved(np.zeros((8, 1024)))}, zipfile.ZIP_BZIP2),
    "lzma.npz": zipped({"X": saved(np.zeros((8, 1024)))}, zipfile.ZIP_LZMA),
    "encrypted.npz": flagged(zipped({"X": saved(np.eye(3))})),
    "nested.npz": zipped({"X": raw_npy(NESTED)}),
    "empty.npz": b"",
    "csr-2e9.npz": compressed("csr", (2, 2_000_000_000), **CSR),
    "csr-1e12.npz": compressed("csr", (2, 10**12), **CSR),
    "csc-1e12.npz": compressed("csc", (10**12, 2), **CSR),
    "coo-1e12.npz": compressed("coo", (2, 10**12), **COO),
    "coo-rows.npz": compressed("coo", (10**12, 2), **COO),
    "dia-1e12.npz": compressed("dia", (10**12, 10**12), data=np.ones((1, 2)), offsets=[0]),
    "bsr-1e12.npz": compressed(
        "bsr", (2, 10**12), data=np.ones((1, 2, 2)), indices=[0], indptr=[0, 1]
    ),
    "real-shape.npz": compressed("csr", (2.0, 1e12), **CSR),
    "negative-shape.npz": compressed("csr", (-3, 2), **CSR),
    "long-shape.npz": compressed("csr", np.arange(9), **CSR),
    "kind.npz": compressed("xyz", (2, 2), **CSR),
    "bomb.csv.gz": repeated(b"0,0\n", 1 << 24),
    "one-line.csv.gz": packed_zeros(1 << 26, b"1,2\n"),
    "array.mtx": b"%%MatrixMarket matrix array real general\n1000000 1000000\n1\n",
    "symmetric.mtx": b"%%MatrixMarket matrix array real symmetric\n1000000 1000000\n1\n",
    "columns-2e9.mtx": COORDINATES + b"2 2000000000 1\n1 1 1\n",
    "columns-1e12.mtx": COORDINATES + b"2 1000000000000 1\n1 1 1\n",
    "entries.mtx": COORDINATES + b"3 3 1000000000000\n1 1 1\n",
    "negative.mtx": COORDINATES + b"-3 3 1\n1 1 1\n",
    "overflow.mtx": COORDINATES + b"3 3 1" + b"0" * 40 + b"\n",
    "no-sizes.mtx": COORDINATES + b"",
    "words.mtx": COORDINATES + b"a b c\n",
    "bomb.mtx.gz": packed_zeros(1 << 26, b"%%MatrixMarket matrix array real general\n9 9\n"),
    "columns-2e9.svmlight": b"1 2000000000:1\n1 1:1\n",
    "columns-1e12.svmlight": b"1 1000000000000:1\n1 1:1\n",
    "columns-1e30.svmlight": b"1 1" + b"0" * 30 + b":1\n1 1:1\n",
    "negative.svmlight": b"1 -5:1\n1 1:1\n",
    "columns-2e9.txt": b"1 2000000000:1\n1 1:1\n",
    "bomb.svmlight.gz": repeated(b"1 1:1\n", 1 << 23),
    "rows.parquet": rows_of_zeros(64),
    "garbage.parquet": b"PAR1" + bytes(range(256)) + b"PAR1",
}

TRIPLES = {
    "triples-1e8.tsv": b"0\t0\t99999999\n",
    "triples-relation.tsv": b"0\t99999999\t0\n",
    "triples-1e18.tsv": b"0\t0\t999999999999999999\n",
    "triples-1e30.tsv": b"0\t0\t1" + b"0" * 30 + b"\n",
    "triples-bomb.tsv.gz": repeated(b"0\t0\t0\n", 1 << 24),
    "triples-broken.tsv.gz": gzip.compress(b"0\t0\t0\n" * 99)[:-20],
    "triples-fields.tsv": b"0\t0\n",
    "triples-later.tsv": b"0\t0\t1\n" * 500 + b"0\t0\n",
    "triples-four.tsv": b"0\t0\t1\t1\n",
    "triples-archive.tsv": zipped({"X": saved(np.eye(2))}),
    "names-bomb.txt.gz": packed_zeros(1 << 26),
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
        '{"kind": "Result", "tree": ' + '{"a":' * 9000 + "1" + "}" * 9001
    ),
    "no-header": zipped({"x": saved(np.eye(2))}),
    "huge-header": zipped({"header": npy("()", "<U1000000000")}),
    "bomb": BOMB,
    "overlapping": overlapping(),
    "encrypted": flagged(zipped({"header": saved("{}")})),
    "many-digits": text_as_header('{"kind": ' + "1" * 9000 + "}"),
}

WRONG_VALUES = ("hello", 7, None, True, [1, 2], {"a": 1}, [[[1]]])
"""Values that replace every field of a result; some are valid for some fields (`ACCEPTED`)."""


def field(name: str, value):
    def change(header: dict, arrays: dict) -> None:
        header["tree"][name] = value

    return change


def option(name: str, value):
    def change(header: dict, arrays: dict) -> None:
        header["options"][name] = value

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
    header["options"]["dim"] = 30_000
    arrays["signature"] = np.repeat(np.array([1, -1], dtype=np.int8), 15_000)


RESULTS = {
    "x": field("x", "hello"),
    "objective": field("objective", "low"),
    "history": field("history", {"objective": "falls"}),
    "path": field("path", [{"x": 3}]),
    "status": field("status", "splendid"),
    "starts": field("starts", [{"strategy": 1, "objective": "a", "seconds": []}]),
    "reference": field("x", {"__array__": "array_99999"}),
}

MODELS = {
    "dimension": large,
    "dimension-only": option("dim", 30_000),
    "entities": option("n_entities", 10**12),
    "relations": option("n_relations", 10**12),
    "negatives": option("n_negatives", 10**30),
    "names": option("entity_names", [[0]] * 12),
    "loss": option("loss", {"a": 1}),
    "twice": put("state_1", lambda R: 2.0 * R),
    "twice-best": put("best_1", lambda R: 2.0 * R),
    "zero": put("state_1", lambda R: 0.0 * R),
    "overflow": put("state_1", lambda R: 1e200 * R),
    "off": put("best_1", lambda R: R + 1e-6),
    "reals": put("signature", lambda s: s * 1.5),
    "state": put("state_0", lambda rows: rows[:, :-1]),
    "history": put("history_loss", lambda curve: curve[:1]),
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
    (folder / "large").mkdir()
    wide = ",".join(map(str, range(300_000)))
    names = ",".join(f"g{k}" for k in range(300_000))
    (folder / "large" / "wide.csv").write_text(f"{names}\n{wide}\n{wide}\n")
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


def read_files(folder: Path) -> dict[str, list]:
    """What readers in a process of limited memory say about each file."""
    done = subprocess.run(
        [sys.executable, *SAFE_PATH, "-c", CHILD, str(folder), str(ROOM)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"},
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (done.returncode, lines[-1:], done.stderr[-500:])
    return {name: said for name, *said in lines}


def kind_of(name: str) -> str:
    """The kind of a file by its name: "result", "ultra", …, and "matrix" for `read_matrix`."""
    kind = name.partition("-")[0]
    return kind if kind in ("loadings", "names", "result", "triples", "ultra") else "matrix"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return folder


@pytest.fixture(scope="module")
def outcomes(folder) -> dict[str, list]:
    return read_files(folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["loadings", "matrix", "names", "result", "triples", "ultra"])
def test_one_value_error_and_little_memory(kind, folder, outcomes):
    names = {path.name for path in (folder / "bad").iterdir() if kind_of(path.name) == kind}
    assert len(names) >= (1 if kind == "names" else 40)
    for name in names:
        grown, error, said, *is_value_error = outcomes[name]
        assert is_value_error == [True], (name, error, said)
        assert "\n" not in said
        assert name in said or said.startswith("paths")
        # MiB: the limit of every small file, the blocks that are read, and memory not yet released.
        assert grown <= 3 * (reading.SMALL >> 20), (name, said)


@pytest.mark.slow
def test_a_wide_table_takes_memory_by_its_size(folder, outcomes):
    grown, kind, said = outcomes["wide.csv"]
    assert (kind, said) == ("nothing", "")
    assert grown < 40 * (folder / "large" / "wide.csv").stat().st_size / (1 << 20)


# Results in this process -------------------------------------------------------------------------

NUMBERS = ("objective", "smooth_value", "penalty_value", "feasibility", "seconds")
ACCEPTED = {
    **dict.fromkeys([*NUMBERS, "n_iterations", "n_sweeps", "n_updates", "seed"], (7,)),
    **dict.fromkeys(["n_epochs", "work", "lower_bound", "gap"], (7, None)),
    **dict.fromkeys(["bound_method"], ("hello", None)),
    **dict.fromkeys(["search", "hyperbolic", "features_excluded"], (None,)),
    "extra": ({"a": 1},),
}
"""Values of `WRONG_VALUES` that are valid for a field of a result."""


@pytest.mark.parametrize("name", ob.Result.__dataclass_fields__)
def test_every_field_of_a_result_has_its_type(name, folder, tmp_path):
    path = tmp_path / "result.npz"
    for value in WRONG_VALUES:
        changed(folder / "good" / "result-a.npz", path, field(name, value))
        if (
            any(value is one or value == one for one in ACCEPTED.get(name, ()))
            and value is not True
        ):
            assert getattr(ob.Result.load(path), name) == value
            continue
        with pytest.raises(ValueError, match=r"is not a file of Result\.save"):
            ob.Result.load(path)


def test_a_path_and_a_history_are_of_arrays(folder, tmp_path):
    path, good = tmp_path / "result.npz", folder / "good" / "result-a.npz"

    def flat(header: dict, arrays: dict) -> None:
        arrays[header["tree"]["x"]["__array__"]] = np.ones(3)

    def shorter(header: dict, arrays: dict) -> None:
        name = header["tree"]["history"]["objective"]["__array__"]
        arrays[name] = arrays[name][1:]

    def complex_numbers(header: dict, arrays: dict) -> None:
        name = header["tree"]["path"][0]["x"]["__array__"]
        arrays[name] = arrays[name] + 1j

    for change in (flat, shorter, complex_numbers):
        changed(good, path, change)
        with pytest.raises(ValueError, match="Result"):
            ob.Result.load(path)


@pytest.mark.parametrize("kind", ["npz", "npy.gz", "csv.gz", "svmlight", "mtx", "npz sparse"])
def test_what_is_allowed_is_read(kind, tmp_path, monkeypatch):
    """Half of what is allowed is read and four times as much is not, for two sizes of files."""
    monkeypatch.setattr(reading, "SMALL", 1 << 16)
    monkeypatch.setattr(reading, "EXPANSION", 8)
    noise = np.random.default_rng(0).integers(0, 256, 1 << 14, dtype=np.uint8)

    def content(need: int, bulk: bool) -> bytes:
        """A file that needs some bytes; with a bulk of numbers it has 16 kB more itself."""
        if kind == "npz":
            members = {"X": npy(f"({need // 8 // 8}, 8)", body=bytes(need // 64 * 64))}
            return zipped(members | ({"more": saved(noise)} if bulk else {}))
        if kind == "npy.gz":
            return gzip.compress(npy(f"({need // 64}, 8)", "<u8", body=bytes(need // 64 * 64)))
        if kind == "csv.gz":
            return gzip.compress(b"1,2\n" * (need // 4))
        last = need // 8 - 3
        lines = "".join(f"1 {k + 1}:1 {k + 300}:2\n" for k in noise[:1000].tolist()) if bulk else ""
        if kind == "svmlight":
            return f"1 1:1\n1 {last}:1\n{lines}".encode()
        if kind == "mtx":
            return COORDINATES + f"%{'-' * len(lines)}\n3 {last} 1\n1 1 1\n".encode()
        arrays = CSR | ({"more": noise} if bulk else {})
        return compressed("csr", (2, last), **arrays)

    packed = kind.endswith("gz")
    path = tmp_path / f"a.{kind.split()[0]}"
    for bulk in (False,) if packed else (False, True):
        size = len(content(1 << 16, bulk))
        most = max(1 << 16, 8 * size) // (reading.PER_BYTE if packed else 1)
        path.write_bytes(content(most // 2, bulk))
        assert read_matrix(path)[0].shape[1] >= 2
        path.write_bytes(content(4 * most, bulk))
        with pytest.raises(ValueError, match=r"would take|unpacks to more|it has"):
            read_matrix(path)
