"""Headers, indices, comments and missing values of tables, and the `FileNote` of a guess."""

from __future__ import annotations

import warnings

import numpy as np
import pandas
import pytest

from orthobcd import cli
from orthobcd.io import FileNote, UnreadableFile, read_matrix, write_components

RNG = np.random.default_rng(0)
START = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def same_numbers_in_any_order():
    """Each test begins with the same numbers: of three rows the rule may judge wrongly."""
    RNG.bit_generator.state = START


BODIES = {
    "absorbances": lambda m, n: RNG.random((m, n)).round(4),
    "counts": lambda m, n: RNG.poisson(3.0, (m, n)) * RNG.integers(10**4, 10**6, (m, n)),
    "binary": lambda m, n: RNG.integers(0, 2, (m, n)),
    "signed": lambda m, n: (1e-3 * RNG.standard_normal((m, n))).round(7),
}
HEADERS = {
    "wavelengths": lambda n: [400 + 2 * k for k in range(n)],
    "half steps": lambda n: [900.0 + 2.5 * k for k in range(n)],
    "falling wavenumbers": lambda n: [round(3999.7 - 1.93 * k, 1) for k in range(n)],
    "chemical shifts": lambda n: [round(9.99 - 0.01 * k, 2) for k in range(n)],
    "m/z": lambda n: [round(50.0 * 1.31**k, 4) for k in range(n)],
    "years": lambda n: [1990 + 5 * k for k in range(n)],
    "columns": lambda n: list(range(n)),
    "underscores": lambda n: [f"{k // 4 + 1}_{k % 4 + 1}" for k in range(n)],
    "months": lambda n: [f"2019_{k:02d}" for k in range(1, n + 1)],
    "hexadecimal": lambda n: [f"0x{k:02x}" for k in range(n)],
}
WRITERS = {
    "frame": lambda frame, path: frame.to_csv(path, index=False),
    "frame and index": lambda frame, path: frame.to_csv(path),
    "frame and names of rows": lambda frame, path: named_rows(frame).to_csv(path),
    "tabs": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "blanks": lambda frame, path: frame.to_csv(path, index=False, sep=" "),
    "write.table": lambda frame, path: write_table(frame, path, " "),
    "write.csv": lambda frame, path: named_rows(frame).to_csv(path, quoting=2),
    "comment": lambda frame, path: path.write_text("# of 7 May\n" + frame.to_csv(index=False)),
    "savetxt": lambda frame, path: path.write_text("#" + frame.to_csv(index=False)),
}


def named_rows(frame):
    return frame.set_axis([f"row {k}" for k in range(len(frame))])


def write_table(frame, path, separator):
    """What R's ``write.table`` writes: quoted names, one fewer than there are columns."""
    names = separator.join(f'"{name}"' for name in frame.columns)
    rows = named_rows(frame).to_csv(sep=separator, quoting=2, header=False)
    path.write_text(f"{names}\n{rows}")


def quiet(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FileNote)
        return read_matrix(*arguments, **options)


@pytest.mark.covering(2)
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("body", BODIES)
def test_names_of_any_kind_are_a_header(writer, header, body, tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    for shape in ((4, 3), (7, 4), (3, 9), (30, 12)):
        values, names = BODIES[body](*shape), HEADERS[header](shape[1])
        WRITERS[writer](pandas.DataFrame(values, columns=names), path)
        data, found = quiet(path)
        np.testing.assert_array_equal(data, values)
        assert found == [str(name) for name in names]
        assert quiet(path, header=True)[1] == found


SEPARATORS = {",": "a, x,0 x;1", ";": "x,0 a b", "\t": "x,0 a b x;1", " ": "x,0 x;1 a"}


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("quoting", [0, 1, 2])
@pytest.mark.parametrize("index", [False, True])
def test_separators_in_names_separate_nothing(separator, quoting, index, tmp_path, monkeypatch):
    names = [f"{SEPARATORS[separator]} {k}" for k in range(7)]
    if separator == " ":
        names = [name.replace(" ", ",") for name in names] if quoting == 0 else names
    frame = pandas.DataFrame(RNG.standard_normal((9, 7)).round(3), columns=names)
    if index:
        frame = named_rows(frame)
    quoting = 1 if index and separator == " " else quoting
    frame.to_csv(tmp_path / "a.txt", sep=separator, quoting=quoting, index=index)
    data, found = quiet(tmp_path / "a.txt")
    np.testing.assert_array_equal(data, frame.to_numpy())
    assert found == names


@pytest.mark.parametrize("rows", [2, 3, 30])
@pytest.mark.parametrize("header", ["wavelengths", "half steps", "chemical shifts", "years"])
def test_two_columns_far_from_the_numbers_below(rows, header, tmp_path):
    """Two numbers always rise or fall, so that they must be ten times off."""
    values, names = 0.5 * RNG.random((rows, 2)) + 0.2, HEADERS[header](2)
    for scale, is_header in ((1.0, True), (names[0], False)):
        frame = pandas.DataFrame((scale * values).round(4), columns=names)
        frame.to_csv(tmp_path / "a.csv", index=False)
        data, found = quiet(tmp_path / "a.csv")
        assert found == (list(map(str, names)) if is_header else [])
        assert len(data) == rows + (not is_header)
        frame.to_csv(tmp_path / "a.csv", index=True)
        assert quiet(tmp_path / "a.csv")[1] == list(map(str, names))


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("missing", [False, True])
def test_frames_of_few_columns_are_read_as_they_were(columns, first, missing, tmp_path):
    """Column numbers beside an index are names, from two columns on."""
    frame = pandas.DataFrame(RNG.random((3, columns)).round(3))
    frame.index = frame.index + first
    frame.to_csv(tmp_path / "a.csv")
    if columns == 1:
        with pytest.raises(UnreadableFile):
            quiet(tmp_path / "a.csv", missing=missing)
        return
    data, names = quiet(tmp_path / "a.csv", missing=missing)
    np.testing.assert_array_equal(data, frame.to_numpy())
    assert names == [str(k) for k in range(columns)]


SAMPLES = {
    "normal": lambda m, n: RNG.standard_normal((m, n)).round(3),
    "lognormal": lambda m, n: np.exp(RNG.standard_normal((m, n))).round(3),
    "answers": lambda m, n: RNG.integers(1, 6, (m, n)),
    "binary": lambda m, n: RNG.integers(0, 2, (m, n)),
    "cumulative": lambda m, n: RNG.random((m, n)).cumsum(axis=1).round(3),
    "whole and consecutive": lambda m, n: np.arange(m * n).reshape(m, n),
    "linear": lambda m, n: np.outer(np.arange(1, m + 1), np.arange(1, n + 1)) * 10.0,
    "growing": lambda m, n: 3.0 ** np.arange(m)[:, None] * np.cumsum(np.arange(1, n + 1)),
    "columns of any unit": lambda m, n: (
        RNG.standard_normal((m, n)) * 10.0 ** RNG.integers(-3, 4, n)
    ).round(6),
    "constant": lambda m, n: np.full((m, n), 7),
}


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("n", [2, 3, 5, 12])
@pytest.mark.parametrize("m", [3, 30])
def test_samples_are_no_header(kind, m, n, tmp_path):
    """Ten files of each kind; a first sample in order, too, is a sample among its like."""
    for k in range(10):
        values = np.asarray(SAMPLES[kind](m, n), dtype=float)
        if k > 5 and n < 12 and kind in ("normal", "lognormal", "columns of any unit"):
            values[0] = np.sort(values[0])
        np.savetxt(tmp_path / "a.csv", values, delimiter=",", fmt="%.17g")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data, names = read_matrix(tmp_path / "a.csv")
        np.testing.assert_array_equal(data, values)
        assert names == []


@pytest.mark.parametrize("ending", [".csv", ".txt", ""])
def test_options_decide(ending, tmp_path):
    path = tmp_path / f"a{ending}"
    path.write_text("400,401,402,403\n7,.2,.3,.4\n9,.6,.7,.9\n8,.1,.1,.2\n")
    body = [[7, 0.2, 0.3, 0.4], [9, 0.6, 0.7, 0.9], [8, 0.1, 0.1, 0.2]]
    for header in ("auto", True, False):
        for index in ("auto", True, False):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                data, names = read_matrix(path, header=header, index=index)
            said = [str(w.message) for w in caught]
            assert len(said) == (header == "auto")
            assert all("taken for a header; header=False (--no-header)" in text for text in said)
            rows = body if header else [[400, 401, 402, 403], *body]
            first = 1 if index is True else 0
            np.testing.assert_array_equal(data, np.array(rows)[:, first:])
            assert names == (["400", "401", "402", "403"][first:] if header else [])
    path.write_text("id,a,b\nx,1,2\ny,3,4\n")
    with pytest.raises(UnreadableFile, match="'id' is not numeric: 'x'"):
        read_matrix(path)
    np.testing.assert_array_equal(read_matrix(path, index=True)[0], [[1, 2], [3, 4]])
    assert read_matrix(path, index=True, columns=["b", "a"])[1] == ["b", "a"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("header", 1), ("header", "yes"), ("index", "id"), ("index", None), ("comment", "//")],
)
def test_wrong_options_are_named(name, value, tmp_path):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        read_matrix(tmp_path / "a.csv", **{name: value})


ROWS = ("a,b,c", "1,2.5,3", "4,5,6.5", "7,8,9")
COMMENTED = {
    "first": (0, "% instrument 7"),
    "between": (2, "%1,2,3"),
    "last": (4, "% the end"),
    "in a line": (1, "1,2.5,3 % a note, with commas"),
    "in the header": (0, "a,b,c % names"),
}


@pytest.mark.parametrize("mark", ["%", "#", ";"])
@pytest.mark.parametrize("where", COMMENTED)
@pytest.mark.parametrize("separator", [",", "\t", " "])
def test_comments(mark, where, separator, tmp_path, monkeypatch):
    place, text = COMMENTED[where]
    rows = [row.replace(",", separator) for row in ROWS]
    line = text.replace(",", separator).replace("%", mark)
    # A comment in a line takes the place of the line.
    rows[place : place + ("in " in where)] = [line]
    (tmp_path / "a.txt").write_text("\r\n".join([*rows, ""]))
    data, names = quiet(tmp_path / "a.txt", comment=mark)
    np.testing.assert_array_equal(data, [[1, 2.5, 3], [4, 5, 6.5], [7, 8, 9]])
    assert names == ["a", "b", "c"]
    if where == "first" and mark == "#":
        np.testing.assert_array_equal(quiet(tmp_path / "a.txt")[0], data)


@pytest.mark.parametrize("separator", [",", "\t", " "])
def test_a_commented_header_above_words(separator, tmp_path, monkeypatch):
    """The words of samples are no header; a line of words alone is."""
    for text, rows in (
        ("#name,x,y\nr1,1,2\nr2,3,4\n", [[1, 2], [3, 4]]),
        ("# of May\n#name,x,y\nr1,1,2\nr2,NA,4\n", [[1, 2], [np.nan, 4]]),
        ("# of May\nname,x,y\nr1,1,2\nr2,3,4\n", [[1, 2], [3, 4]]),
        ("# 1 of 3\nname,x,y\nr1,1,2\nr2,3,4\n", [[1, 2], [3, 4]]),
    ):
        (tmp_path / "a.txt").write_text(text.replace(",", separator))
        data, names = quiet(tmp_path / "a.txt", drop=["name"], missing=True)
        np.testing.assert_array_equal(data, rows)
        assert names == ["x", "y"]


def test_a_mark_in_quotes_is_no_comment(tmp_path):
    (tmp_path / "a.csv").write_text('"a#1","b ""#"" 2"\n1,2 # "so"\n3,4\n')
    data, names = quiet(tmp_path / "a.csv", comment="#")
    np.testing.assert_array_equal(data, [[1, 2], [3, 4]])
    assert names == ["a#1", 'b "#" 2']


@pytest.mark.parametrize("separator", [",", "\t", " "])
@pytest.mark.parametrize("blank", ["", " ", "    "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_are_no_samples(separator, blank, end, tmp_path, monkeypatch):
    rows = [separator.join(row) for row in (["a", "b", "c"], ["1", "2", "3"], ["4", "5", "6.5"])]
    for place in range(4):
        lines = [*rows[:place], blank, *rows[place:], blank, blank]
        (tmp_path / "a.txt").write_bytes(end.join(lines).encode())
        data, names = quiet(tmp_path / "a.txt", missing=True)
        np.testing.assert_array_equal(data, [[1, 2, 3], [4, 5, 6.5]])
        assert names == ["a", "b", "c"]


@pytest.mark.parametrize("text", ["höhe,b\n1,2\n3,4\n", "a,b\n1,2\nö,4\n"])
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_text_of_another_encoding_is_named(text, encoding, tmp_path):
    (tmp_path / "a.csv").write_bytes(text.encode(encoding))
    with pytest.raises(UnreadableFile, match=r"not UTF-8 text, at b|is not numeric"):
        read_matrix(tmp_path / "a.csv")


GAPS = ("", " ", "  ", "NA", " NA ", "#N/A", "<NA>", ".", "NaN", "nan", "NULL", "N/A", "?", '""')
TRUTHS = ("TRUE", "FALSE", "True", "False", "true", "false")


@pytest.mark.covering(2)
@pytest.mark.parametrize("cell", [*GAPS, *TRUTHS])
@pytest.mark.parametrize("place", [(0, 0), (0, 1), (1, 2), (3999, 0), (3999, 2)])
@pytest.mark.parametrize("header", [True, False])
def test_cells_of_words(cell, place, header, tmp_path, monkeypatch):
    """Missing values and booleans, in the first line, the first column and far down."""
    values = np.arange(12_000.0).reshape(4000, 3) % 7.0 + 0.5
    cells = [[f"{value:g}" for value in row] for row in values]
    cells[place[0]][place[1]] = cell
    values[place] = np.nan if cell in GAPS else float(cell.lower() == "true")
    header_line = "a,b,c\n" if header else ""
    (tmp_path / "a.csv").write_text(header_line + "".join(",".join(row) + "\n" for row in cells))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data, names = read_matrix(tmp_path / "a.csv", missing=True)
    np.testing.assert_array_equal(data, values)
    assert names == (["a", "b", "c"] if header else [])


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("seed", range(3))
def test_components_are_read_as_they_were_written(header, seed, tmp_path):
    """Names that are numbers in any order stay names."""
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.permutation(np.array(HEADERS[header](5), dtype=object))]
    components = np.where(rng.random((2, 5)) < 0.5, 0.0, rng.standard_normal((2, 5)))
    write_components(tmp_path / "c.csv", components, names)
    data, found = quiet(tmp_path / "c.csv")
    np.testing.assert_array_equal(data, components)
    assert found == names


def test_the_command_takes_the_options(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    values = RNG.random((6, 4)).round(3)
    frame = pandas.DataFrame(values, columns=[400, 402, 404, 406])
    frame.to_csv("a.csv", index=False)
    command = ["sparse-pca", "a.csv", "-r", "1", "--n-nonzero", "2", "--report", "r.json"]
    for options, shape, said in (
        ([], "6 samples, 4 features", "note: a.csv: its first line, 400,402,404,406, is taken"),
        (["--header"], "6 samples, 4 features", ""),
        (["--no-header"], "7 samples, 4 features", ""),
        (["--header", "--index"], "6 samples, 3 features", ""),
        (["--comment", "4"], "needs", None),
    ):
        code = cli.main([*command, *options, "--force"])
        out, err = capsys.readouterr()
        if said is None:
            assert code == 2
            continue
        assert code == 0
        assert shape in out
        assert err.startswith(said)
        assert (err == "") == (said == "")
