"""Tables as people write them, broken archives, and files that are replaced as a whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import orthobcd as ob
from orthobcd import cli
from orthobcd import io as files
from orthobcd._internal.writing import HOST, replacing, write_text

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

A = np.random.default_rng(0).standard_normal((12, 4)).round(6)
NAMES = ["height", "width", "depth", "weight"]
FRAME = pandas.DataFrame(A, columns=NAMES)


def read(path, note: str | None = None):
    """What a file holds; with a note if one is expected, without any if not."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data, names = files.read_matrix(path)
    assert [issubclass(w.category, files.FileNote) for w in caught] == [True] * (note is not None)
    if note is not None:
        assert note in str(caught[0].message)
    return data, names


def shuffled():
    return FRAME.set_index(np.random.default_rng(1).permutation(1000)[:12])


def worded():
    return FRAME.set_index(pandas.Index([f"gene {k}" for k in range(12)]))


TABLES = {
    "pandas' default": (lambda p: FRAME.to_csv(p), "index", NAMES),
    "from one": (lambda p: FRAME.set_index(np.arange(1, 13)).to_csv(p), "index", NAMES),
    "shuffled index": (lambda p: shuffled().to_csv(p), "index", NAMES),
    "words as index": (lambda p: worded().to_csv(p), "index", NAMES),
    "read and written again": (
        lambda p: FRAME.reset_index(names="Unnamed: 0").to_csv(p, index=False),
        "index",
        NAMES,
    ),
    "without index": (lambda p: FRAME.to_csv(p, index=False), None, NAMES),
    "without header": (lambda p: FRAME.to_csv(p, index=False, header=False), None, []),
    "semicolons": (lambda p: FRAME.to_csv(p, index=False, sep=";"), None, NAMES),
    "numbers as names": (
        lambda p: pandas.DataFrame(A).to_csv(p, index=False),
        "header",
        ["0", "1", "2", "3"],
    ),
    "years as names": (
        lambda p: pandas.DataFrame(A, columns=range(1990, 1994)).to_csv(p, index=False),
        "header",
        ["1990", "1991", "1992", "1993"],
    ),
    "quoted numbers as names": (
        lambda p: Path(p).write_text(
            '"10","20","5","7"\n' + FRAME.to_csv(index=False, header=False)
        ),
        "header",
        ["10", "20", "5", "7"],
    ),
    "savetxt's header": (
        lambda p: np.savetxt(p, A, delimiter=",", header=",".join(NAMES)),
        None,
        NAMES,
    ),
    "BOM and CRLF": (
        lambda p: FRAME.to_csv(p, index=False, encoding="utf-8-sig", lineterminator="\r\n"),
        None,
        NAMES,
    ),
}


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".txt", ".dat", ""])
@pytest.mark.parametrize("kind", TABLES)
def test_tables(kind, ending, tmp_path):
    write, note, names = TABLES[kind]
    path = tmp_path / f"table{ending}"
    write(path)
    data, found = read(path, note)
    np.testing.assert_allclose(data, A, rtol=1e-15)
    assert found == names


def test_both_an_index_and_numbers_as_names(tmp_path):
    pandas.DataFrame(A).to_csv(tmp_path / "a.csv")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data, names = files.read_matrix(tmp_path / "a.csv")
    assert len(caught) == 2
    np.testing.assert_allclose(data, A)
    assert names == ["0", "1", "2", "3"]


def test_blanks_separate_too(tmp_path):
    for ending in (".txt", ".dat"):
        np.savetxt(tmp_path / f"a{ending}", A, fmt="%12.6f")
        np.testing.assert_allclose(read(tmp_path / f"a{ending}")[0], A)


def test_counting_data_are_data(tmp_path):
    whole = np.arange(20.0).reshape(5, 4)
    np.savetxt(tmp_path / "a.csv", whole, delimiter=",", fmt="%d")
    data, names = read(tmp_path / "a.csv")
    np.testing.assert_array_equal(data, whole)
    assert names == []


@pytest.mark.parametrize("name", ["a.svmlight", "a.txt", "a.dat", "a"])
def test_svmlight_is_told_by_its_pairs(name, tmp_path):
    from sklearn.datasets import dump_svmlight_file

    S = np.where(np.abs(A) > 0.5, A, 0.0)
    S[0] = 0.0
    S[:, -1] = 1.0
    dump_svmlight_file(S, np.ones(12), str(tmp_path / name))
    data, _ = read(tmp_path / name)
    np.testing.assert_allclose(data.toarray(), S)


def test_an_index_of_pandas_in_parquet(tmp_path):
    shuffled().to_parquet(tmp_path / "a.parquet")
    data, names = read(tmp_path / "a.parquet", "index")
    np.testing.assert_array_equal(data, A)
    assert names == NAMES


def holes():
    frame = FRAME.copy()
    frame.iloc[[3, 7], 1] = np.nan
    return frame


BAD = {
    "missing": (lambda p: holes().to_csv(p, index=False), r"'width' has 2 missing .* sample 4"),
    "missing by name": (
        lambda p: holes().to_csv(p, index=False, na_rep="NA"),
        r"'width' has 2 missing",
    ),
    "words": (
        lambda p: FRAME.assign(depth="deep").to_csv(p, index=False),
        r"'depth' is not numeric: 'deep'",
    ),
    "late words": (
        lambda p: p.write_text("a,b\n" + "1,2\n" * 50_000 + "3,x\n"),
        r"'b' is not numeric: 'x'",
    ),
    "ragged": (lambda p: p.write_text("1,2,3\n4,5\n"), "number of columns changed from 3 to 2"),
    "header": (lambda p: p.write_text("a,b\n1,2,3\n4,5,6\n"), "2 names for 3 columns"),
    "nothing": (lambda p: p.write_text(""), "no data"),
    "only a header": (lambda p: p.write_text("a,b\n"), "at least 2 samples"),
}


@pytest.mark.parametrize("name", BAD)
def test_one_line_says_what_is_wrong(name, tmp_path, capsys):
    path = tmp_path / "a.csv"
    BAD[name][0](path)
    with pytest.raises(files.UnreadableFile, match=BAD[name][1]):
        files.read_matrix(path)
    assert cli.main(["sparse-pca", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(files.UnreadableFile, match="folder"):
        files.read_matrix(tmp_path)


def test_the_command_says_what_it_left_out(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "a.csv")
    out = str(tmp_path / "c.csv")
    assert cli.main(["sparse-pca", str(tmp_path / "a.csv"), "-r", "2", "--out", out]) == 0
    said, err = capsys.readouterr()
    assert err == ""
    assert said.startswith("note: ")
    assert "12 samples, 4 features" in said
    assert files.read_matrix(out)[1] == NAMES


INDPTR = {
    "falling": [0, 9, 2, 3],
    "negative": [0, -1, 2, 3],
    "not from zero": [1, 1, 2, 3],
    "too long": [0, 1, 2, 30],
    "too few": [0, 1, 3],
}
INDICES = {"too large": [0, 1, 70_000_000], "negative": [0, -5, 1]}


def broken(kind: str, indptr, indices):
    """A matrix whose arrays were changed after it was made."""
    S = getattr(sparse, f"{kind}_array")(np.diag([1.0, 2.0, 3.0]))
    S.indptr = np.asarray(indptr, dtype=S.indptr.dtype)
    S.indices = np.asarray(indices, dtype=S.indices.dtype)
    return S


CASES = [(name, indptr, [0, 1, 2]) for name, indptr in INDPTR.items()]
CASES += [(name, [0, 1, 2, 3], indices) for name, indices in INDICES.items()]


@pytest.mark.parametrize("kind", ["csc", "csr"])
@pytest.mark.parametrize(("name", "indptr", "indices"), CASES, ids=[c[0] for c in CASES])
def test_broken_sparse_matrices_are_refused(kind, name, indptr, indices, tmp_path):
    S = broken(kind, indptr, indices)
    for call in (
        ob.GramQuadratic,
        lambda X: ob.SparsePCAProblem(X, 2, ob.L0(1.0), center=True),
        lambda X: ob.NonnegativePCAProblem(X, 2),
        lambda X: ob.HyperbolicEigenvalueProblem(X, [1, 1, -1]),
        lambda X: ob.lam_max(X, 2),
    ):
        with pytest.raises(ValueError, match=r"\bA\b"):
            call(S)
    fitted = ob.NonnegativePCA(1, random_state=0).fit(np.eye(3) + 1.0)
    for call in (ob.SparsePCA(2).fit, ob.NonnegativePCA(2).fit, fitted.transform, fitted.score):
        with pytest.raises(ValueError, match=r"\bX\b"):
            call(S)
    np.savez(
        tmp_path / "a.npz",
        format=np.array(kind.encode()),
        shape=np.array([3, 3]),
        data=S.data,
        indptr=np.asarray(indptr),
        indices=np.asarray(indices),
    )
    with pytest.raises(files.UnreadableFile, match="ind"):
        files.read_matrix(tmp_path / "a.npz")


def test_room_beyond_the_last_entry_is_allowed():
    S = sparse.csc_array(np.diag([1.0, 2.0, 3.0]))
    S.indices, S.data = np.append(S.indices, [7, 7]), np.append(S.data, [np.nan, 5.0])
    assert ob.GramQuadratic(S).A.nnz == 3


def test_other_broken_matrices_are_refused(tmp_path):
    B = sparse.bsr_array(np.eye(4), blocksize=(2, 2))
    B.indices = np.array([0, 9], dtype=B.indices.dtype)
    with pytest.raises(ValueError, match=r"\bA\b"):
        ob.GramQuadratic(B)
    C = sparse.coo_array(np.eye(3))
    np.savez(
        tmp_path / "a.npz", format=b"coo", shape=C.shape, data=C.data, row=C.row, col=C.col + 9
    )
    with pytest.raises(files.UnreadableFile):
        files.read_matrix(tmp_path / "a.npz")


# Writing -----------------------------------------------------------------------------------------

KILLED = """
import sys, time
from orthobcd._internal.writing import replacing
with replacing(sys.argv[1]) as part:
    with part.open("w") as stream:
        stream.write("half of ")
        stream.flush()
        print("writing", flush=True)
        time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_killed_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "components.csv"
    path.write_text("old")
    with subprocess.Popen(
        [sys.executable, "-P", "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "writing\n"
        # One that is alive is let be.
        write_text(path, "new")
        assert len(list(tmp_path.iterdir())) == 2
        child.send_signal(signal.SIGKILL)
    assert path.read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 2
    write_text(path, "newer")
    assert [entry.name for entry in tmp_path.iterdir()] == ["components.csv"]
    assert path.read_text() == "newer"


def test_a_failed_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    write_text(path, "old")

    def fail() -> None:
        with replacing(path) as part:
            part.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
    assert path.read_text() == "old"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions and links")
def test_permissions_and_links_are_kept(tmp_path):
    path, link = tmp_path / "a.csv", tmp_path / "link.csv"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_text(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    write_text(tmp_path / "fresh", "x")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o666 & ~mask
    # A device is written to, not replaced.
    write_text(os.devnull, "gone")


def test_only_parts_of_this_file_are_removed(tmp_path):
    dead = 2**22 + 7
    stale = tmp_path / f".a.{HOST}-{dead}-0123abcd.part.csv"
    others = [
        tmp_path / name
        for name in (
            f".b.{HOST}-{dead}-0123abcd.part.csv",
            f".a.{HOST}-{dead}-0123abcd.part.npz",
            f".a.elsewhere-{dead}-0123abcd.part.csv",
            f".a.{HOST}-{os.getpid()}-0123abcd.part.csv",
        )
    ]
    for path in (stale, *others):
        path.write_text("")
    files.write_components(tmp_path / "a.csv", A, NAMES)
    assert not stale.exists()
    assert all(path.exists() for path in others)


@pytest.mark.parametrize("name", ["c.csv", "c.npz"])
def test_components_survive_a_failure(name, tmp_path, monkeypatch):
    path = tmp_path / name
    files.write_components(path, A, NAMES)
    before = path.read_bytes()
    time.sleep(0.01)

    def fail(*arguments: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="full"):
        files.write_components(path, 2.0 * A, NAMES)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1
