"""Tables by `read_matrix`, from files, pipes and archives; others are an `UnreadableFile`."""

from __future__ import annotations

import gzip
import io
import os
import threading
import warnings
from pathlib import Path

import numpy as np
import pandas
import pytest
from scipy import sparse

from orthobcd import cli
from orthobcd import io as files


def read(path, note: str | None = None):
    """What a file holds; with a note if one is expected, without any if not."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data, names = files.read_matrix(path)
    assert [issubclass(w.category, files.FileNote) for w in caught] == [True] * (note is not None)
    if note is not None:
        assert note in str(caught[0].message)
    return data, names


A = np.random.default_rng(0).standard_normal((12, 4)).round(6)
NAMES = ["height", "width", "depth", "weight"]
FRAME = pandas.DataFrame(A, columns=NAMES)


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
    "quoted numbers": (
        lambda p: FRAME.to_csv(p, index=False, header=False, quoting=1),
        None,
        [],
    ),
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


@pytest.mark.parametrize("cells", [["7", "3"], ["-1", "1"], ["a", "b"], ["3", "3"], ["0.5", ""]])
def test_an_unnamed_first_column_is_an_index(cells, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f",a,b\n{cells[0]},1,2\n{cells[1]},3,4\n")
    data, names = read(path, "index of the rows; index=True or False")
    np.testing.assert_array_equal(data, [[1.0, 2.0], [3.0, 4.0]])
    assert names == ["a", "b"]
    if "a" not in cells:
        data, names = files.read_matrix(path, missing=True, index=False)
        np.testing.assert_array_equal(data[:, 0], [float(cell or "nan") for cell in cells])
        assert names == ["", "a", "b"]


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


@pytest.mark.parametrize(
    ("first", "is_header"),
    [
        *(([0, 1, 2], True), ([0, 1], False), ([1, 2, 3], False), ([1, 2, 3, 4], True)),
        *(([2019, 2020, 2021, 2022], True), ([1, 2, 3, 5], False), ([0, 1, 3], False)),
    ],
)
def test_consecutive_numbers_are_names_from_three_or_four_on(first, is_header, tmp_path):
    """Three if the first is 0, as pandas counts, else four."""
    rows = np.arange(float(2 * len(first))).reshape(2, -1) ** 2 + 0.5
    table = "\n".join(",".join(map(str, row)) for row in [first, *rows.tolist()])
    (tmp_path / "a.csv").write_text(table)
    data, names = read(tmp_path / "a.csv", "is taken for a header" if is_header else None)
    assert names == (list(map(str, first)) if is_header else [])
    np.testing.assert_array_equal(data, rows if is_header else np.vstack([first, rows]))


def test_an_index_of_pandas_in_parquet(tmp_path):
    shuffled().to_parquet(tmp_path / "a.parquet")
    data, names = read(tmp_path / "a.parquet", "index")
    np.testing.assert_array_equal(data, A)
    assert names == NAMES
    FRAME.assign(depth="deep").to_parquet(tmp_path / "words.parquet")
    with pytest.raises(files.UnreadableFile, match="'depth'"):
        files.read_matrix(tmp_path / "words.parquet")


def holes():
    frame = FRAME.copy()
    frame.iloc[[3, 7], 1] = np.nan
    return frame


BAD = {
    "missing": (
        lambda p: holes().to_csv(p, index=False),
        r"'width' has 2 missing .* sample 3, counted from 0",
    ),
    "missing by name": (
        lambda p: holes().to_csv(p, index=False, na_rep="NA"),
        r"'width' has 2 missing",
    ),
    "words": (
        lambda p: FRAME.assign(depth="deep").to_csv(p, index=False),
        r"'depth' is not numeric: 'deep'",
    ),
    "late words": (
        lambda p: p.write_text("a,b\n" + "1,2\n" * 5_000 + "3,x\n"),
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


CELLS = {
    ".": (["1.5", "-2e3", " 7 ", '"0.25"', "NA", "+3."], [1.5, -2000.0, 7.0, 0.25, np.nan, 3.0]),
    ",": (["1,5", "-2e3", " 7 ", '"0,25"', "", "+3,"], [1.5, -2000.0, 7.0, 0.25, np.nan, 3.0]),
}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("decimal", CELLS)
def test_cells_mean_the_same_to_every_parser(decimal, separator, tmp_path):
    if separator == decimal:
        pytest.skip("one mark for two things")
    cells, values = CELLS[decimal]
    path = tmp_path / "a.csv"
    rows = [separator.join(cells[k:] + cells[:k]) for k in range(6)]
    path.write_text("\r\n".join([separator.join("abcdef"), *rows, "", ""]))
    with pytest.raises(files.UnreadableFile, match="'a' has 1 missing values, the first in sample"):
        files.read_matrix(path, decimal=decimal)
    data, names = files.read_matrix(path, decimal=decimal, missing=True)
    np.testing.assert_array_equal(data, [np.roll(values, -k) for k in range(6)])
    assert names == list("abcdef")
    for word in ("1_0", "0x10", "1.5.2", "x"):
        path.write_text(separator.join("ab") + "\n" + separator.join(["1", word]) + "\n")
        with pytest.raises(files.UnreadableFile, match=f"column 'b' is not numeric: '{word}'"):
            files.read_matrix(path, decimal=decimal)


SELECTED = {
    "names": ({"columns": ["depth", "height"]}, [2, 0]),
    "indices": ({"columns": [3, 0]}, [3, 0]),
    "texts": ({"columns": ["3", "width"]}, [3, 1]),
    "dropped": ({"drop": ["width", 3]}, [0, 2]),
    "none dropped": ({"drop": []}, [0, 1, 2, 3]),
}


@pytest.mark.parametrize("index", ["no index", "numbers", "words"])
@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("name", SELECTED)
def test_columns_of_tables(name, words, index, tmp_path):
    options, expected = SELECTED[name]
    frame = {"no index": FRAME, "numbers": FRAME, "words": worded()}[index]
    left_out = [k for k in range(4) if k not in expected]
    if words and left_out:
        # Columns that are left out may have any contents.
        frame = frame.assign(**{NAMES[k]: "a word" for k in left_out})
    frame.to_csv(tmp_path / "a.csv", index=index != "no index")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", files.FileNote)
        data, names = files.read_matrix(tmp_path / "a.csv", **options)
    np.testing.assert_array_equal(data, A[:, expected])
    assert names == [NAMES[k] for k in expected]


def writers():
    from scipy.io import mmwrite
    from sklearn.datasets import dump_svmlight_file

    S = sparse.csr_array(A)
    return {
        ".npy": lambda p: np.save(p, A),
        ".npz": lambda p: np.savez(p, A),
        ".sparse.npz": lambda p: sparse.save_npz(p, S),
        ".csv": lambda p: FRAME.to_csv(p, index=False),
        ".tsv": lambda p: FRAME.to_csv(p, index=False, sep="\t"),
        ".parquet": lambda p: FRAME.to_parquet(p, index=False),
        ".mtx": lambda p: mmwrite(p, sparse.coo_array(A)),
        ".dense.mtx": lambda p: mmwrite(p, A),
        ".svmlight": lambda p: dump_svmlight_file(A, np.ones(12), str(p)),
    }


@pytest.fixture
def as_stdin(monkeypatch):
    def put(content: bytes) -> str:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        return "-"

    return put


PACKED = (".npy", ".csv", ".tsv", ".mtx", ".dense.mtx", ".svmlight")


@pytest.mark.parametrize("where", ["file", "gz", "stdin", "stdin gz", "pipe"])
@pytest.mark.parametrize("kind", [*PACKED, ".npz", ".sparse.npz", ".parquet"])
@pytest.mark.parametrize("options", [{}, {"columns": [2, 0]}, {"drop": ["1", 3]}])
def test_one_file_wherever_it_comes_from(kind, where, options, tmp_path, as_stdin):
    path = tmp_path / f"a{kind}"
    writers()[kind](path)
    content = path.read_bytes()
    if "gz" in where:
        if kind not in PACKED:
            pytest.skip("packed already")
        content = gzip.compress(content)
    if where.startswith("stdin"):
        source = as_stdin(content)
    elif where == "gz":
        source = tmp_path / f"a{kind}.gz"
        source.write_bytes(content)
    elif where == "pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("no pipes with names")
        # The format of a pipe is found from the contents, whatever its name.
        source = tmp_path / "pipe.of"
        os.mkfifo(source)
        threading.Thread(target=source.write_bytes, args=(content,), daemon=True).start()
    else:
        source = path
    data, names = files.read_matrix(source, **options)
    kept = {"columns": [2, 0], "drop": [0, 2]}[next(iter(options))] if options else [0, 1, 2, 3]
    assert sparse.issparse(data) == (kind in (".sparse.npz", ".mtx", ".svmlight"))
    dense = data.toarray() if sparse.issparse(data) else data
    np.testing.assert_allclose(dense, A[:, kept], rtol=1e-12)
    named = kind in (".csv", ".tsv", ".parquet")
    assert names == ([NAMES[k] for k in kept] if named else [])


@pytest.mark.parametrize("rows", [2, 3, 40])
def test_wide_tables(rows, tmp_path):
    wide = np.random.default_rng(rows).standard_normal((rows, 20_000)).round(3)
    pandas.DataFrame(wide, columns=[f"g{k}" for k in range(20_000)]).to_csv(
        tmp_path / "a.csv", index=False
    )
    data, names = read(tmp_path / "a.csv")
    np.testing.assert_allclose(data, wide, rtol=1e-15)
    assert names[-1] == "g19999"


WRONG_COLUMNS = {
    "not there": ({"columns": ["breadth"]}, "'breadth'"),
    "beyond": ({"columns": [4]}, "below 4"),
    "negative": ({"drop": [-1]}, "below 4"),
    "twice": ({"columns": ["width", 1]}, "once"),
    "of no kind": ({"columns": [1.5]}, "1.5"),
}


@pytest.mark.parametrize("name", WRONG_COLUMNS)
@pytest.mark.parametrize("kind", [".csv", ".npy", ".parquet"])
def test_columns_that_are_not_there(name, kind, tmp_path):
    writers()[kind](tmp_path / f"a{kind}")
    options, reason = WRONG_COLUMNS[name]
    with pytest.raises(files.UnreadableFile, match=rf"{next(iter(options))} must .*") as caught:
        files.read_matrix(tmp_path / f"a{kind}", **options)
    assert reason in str(caught.value) or (name == "twice" and kind == ".npy")
    FRAME.set_axis(["a", "a", "b", "c"], axis=1).to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(files.UnreadableFile, match="2 columns are called 'a'"):
        files.read_matrix(tmp_path / "b.csv", drop=["a"])
    with pytest.raises(ValueError, match="drop"):
        files.read_matrix(tmp_path / "b.csv", columns=[0], drop=[1])
    with pytest.raises(ValueError, match="decimal"):
        files.read_matrix(tmp_path / "b.csv", decimal=";")


@pytest.mark.parametrize("kind", [".npy", ".npz", ".csv", ".parquet"])
def test_missing_values_are_kept_if_that_is_wanted(kind, tmp_path):
    frame = holes()
    path = tmp_path / f"a{kind}"
    if kind in (".npy", ".npz"):
        (np.save if kind == ".npy" else np.savez)(path, frame.to_numpy())
    else:
        (frame.to_csv if kind == ".csv" else frame.to_parquet)(path, index=False)
    with pytest.raises(files.UnreadableFile, match="missing"):
        files.read_matrix(path)
    np.testing.assert_array_equal(files.read_matrix(path, missing=True)[0], frame.to_numpy())
    np.savez(tmp_path / "b.npz", np.array([[1.0, np.inf], [np.nan, 2.0]]))
    with pytest.raises(files.UnreadableFile, match="infinite"):
        files.read_matrix(tmp_path / "b.npz", missing=True)


def test_a_device_is_no_file():
    if not os.path.exists("/dev/zero"):
        pytest.skip("no /dev/zero")
    with pytest.raises(files.UnreadableFile, match="device"):
        files.read_matrix("/dev/zero")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(files.UnreadableFile, match="folder"):
        files.read_matrix(tmp_path)


def test_the_command_says_what_it_left_out(tmp_path, capsys):
    FRAME.to_csv(tmp_path / "a.csv")
    out = str(tmp_path / "c.csv")
    assert cli.main(["sparse-pca", str(tmp_path / "a.csv"), "-r", "2", "--out", out]) == 0
    said, err = capsys.readouterr()
    assert err.startswith("note: ")
    assert "--no-index" in err
    assert "12 samples, 4 features" in said
    assert files.read_matrix(out)[1] == NAMES


def test_a_header_is_no_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("height,width\n")
    with pytest.raises(files.UnreadableFile, match=r"at least 1 samples and 2 features, got"):
        files.read_matrix(path, min_rows=1)
    path.write_text("height,width\n1,2\n")
    assert files.read_matrix(path, min_rows=1)[0].shape == (1, 2)
    with pytest.raises(files.UnreadableFile, match=r"at least 2 samples"):
        files.read_matrix(path)
