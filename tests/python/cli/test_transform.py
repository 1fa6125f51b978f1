"""``orthobcd transform`` applies saved estimators to new data."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas
import pytest

import orthobcd as ob
from orthobcd import cli
from orthobcd.io import FileNote, read_matrix
from orthobcd.io import write_components as write

pytestmark = pytest.mark.usefixtures("short_searches")
NAMES = [f"gene {j}" for j in range(7)]
A = (np.random.default_rng(0).standard_normal((40, 7)) * np.arange(1.0, 8.0) + 5.0).round(6)
NEW = A[:9] + 1.0
FIT = ["sparse-pca", "data.csv", "-r", "2", "--n-nonzero", "5", "--max-time", "1", "--out", "c.npz"]


def put(path: str, data: np.ndarray, names=NAMES) -> None:
    header = ",".join(names) if names else ""
    np.savetxt(path, data, delimiter=",", header=header, comments="", fmt="%.6f")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put("data.csv", A)
    return tmp_path


def scores_of(path: str) -> np.ndarray:
    return np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)


@pytest.mark.parametrize("command", ["sparse-pca", "nonneg-pca"])
@pytest.mark.parametrize("options", [[], ["--scale"], ["--no-center"]])
def test_transform_is_that_of_the_estimator(here, command, options, capsys):
    fit = [command, "data.csv", "-r", "2", "--n-nonzero", "6", "--max-time", "1", *options]
    assert cli.main([*fit, "--out", "c.npz"]) == 0
    put("new.csv", NEW)
    assert cli.main(["transform", "new.csv", "c.npz", "--out", "s.csv"]) == 0
    assert "9 samples in 2 components" in capsys.readouterr().out
    kind = ob.SparsePCA if command == "sparse-pca" else ob.NonnegativePCA
    saved = kind.load("c.npz")
    about = A.mean(axis=0) if "--no-center" not in options else np.zeros(7)
    scale = A.std(axis=0, ddof=0) if "--scale" in options else np.ones(7)
    np.testing.assert_allclose(saved.mean_ * scale, about, atol=1e-12)
    expected = (NEW - about) / scale @ saved.components_.T
    np.testing.assert_allclose(scores_of("s.csv"), expected, atol=1e-9)
    frame = pandas.DataFrame(NEW, columns=NAMES)
    np.testing.assert_allclose(saved.transform(frame), expected, atol=1e-9)
    assert saved.feature_names_in_.tolist() == NAMES
    assert saved.n_nonzero == 6


def test_columns_are_found_by_name(here):
    assert (
        cli.main(["sparse-pca", "data.csv", "-r", "2", "--n-nonzero", "5", "--out", "c.npz"]) == 0
    )
    expected = ob.SparsePCA.load("c.npz").transform(pandas.DataFrame(NEW, columns=NAMES))
    order = [3, 1, 6, 0, 2, 5, 4]
    put("mixed.csv", np.column_stack([NEW[:, order], NEW[:, 0]]), [NAMES[j] for j in order] + ["x"])
    assert cli.main(["transform", "mixed.csv", "c.npz", "--out", "s.npy"]) == 0
    np.testing.assert_allclose(np.load("s.npy"), expected, atol=1e-9)
    np.save("bare.npy", NEW[:1])
    assert (
        cli.main(["transform", "bare.npy", "c.npz", "--out", "one.csv", "--report", "r.json"]) == 0
    )
    np.testing.assert_allclose(scores_of("one.csv"), expected[:1], atol=1e-12)
    report = json.loads((here / "r.json").read_text())
    assert report["feature_names"] == NAMES
    assert report["settings"]["n_nonzero"] == 5


def test_what_does_not_fit_is_refused(here, capsys):
    assert (
        cli.main(["sparse-pca", "data.csv", "-r", "2", "--n-nonzero", "5", "--out", "c.npz"]) == 0
    )
    put("few.csv", NEW[:, :5], NAMES[:5])
    np.save("few.npy", NEW[:, :5])
    write("c.csv", np.eye(2, 7), NAMES)
    write("bare.npz", np.eye(2, 7), NAMES)
    for data, components, reason in (
        ("few.csv", "c.npz", "lacks 2 of the 7 features of c.npz: gene 5, gene 6"),
        ("few.npy", "c.npz", "has 5 features, c.npz has 7"),
        ("data.csv", "c.csv", "c.csv is not a file of SparsePCA.save: it is no archive"),
        ("data.csv", "bare.npz", "it has no header; --out FILE.npz of a fit writes one"),
        ("data.csv", "none.npz", "No such file"),
    ):
        capsys.readouterr()
        assert cli.main(["transform", data, components, "--out", "s.csv"]) == 2
        assert reason in capsys.readouterr().err
    assert cli.main(["transform", "data.csv", "c.npz", "--out", "s.npz"]) == 2
    assert not (here / "s.csv").exists()


@pytest.mark.parametrize("command", ["sparse-pca", "nonneg-pca"])
@pytest.mark.parametrize("options", [[], ["--scale"], ["--no-center"]])
def test_scores_of_data_with_gaps(here, command, options, capsys):
    """They are those of the estimator, in a file and on the standard output."""
    gaps = pandas.DataFrame(A.copy(), columns=NAMES)
    gaps.iloc[[3, 9], [1, 4]] = np.nan
    gaps.to_csv("gaps.csv", index=False)
    fit = [command, "gaps.csv", "-r", "2", "--n-nonzero", "6", "--missing", "em", *options]
    assert cli.main([*fit, "--out", "c.npz"]) == 0
    kind = ob.SparsePCA if command == "sparse-pca" else ob.NonnegativePCA
    expected = kind.load("c.npz").transform(gaps)
    assert cli.main(["transform", "gaps.csv", "c.npz", "--out", "s.csv"]) == 2
    assert "--missing em takes them into account" in capsys.readouterr().err
    assert cli.main(["transform", "gaps.csv", "c.npz", "--out", "s.csv", "--missing", "em"]) == 0
    np.testing.assert_array_equal(scores_of("s.csv"), expected)
    capsys.readouterr()
    assert cli.main(["transform", "gaps.csv", "c.npz", "--missing", "em"]) == 0
    assert capsys.readouterr().out == (here / "s.csv").read_text()
    assert cli.main(["transform", "data.csv", "c.npz"]) == 0
    assert cli.main([command, "data.csv", "-r", "2", "--n-nonzero", "6", "--out", "d.npz"]) == 0
    capsys.readouterr()
    assert cli.main(["transform", "gaps.csv", "d.npz", "--missing", "em"]) == 2
    assert "gaps.csv: X must have no missing value" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_scores_have_the_names_of_the_samples(here, ending, capsys):
    """The index of the data is that of the scores, in a file and on the standard output."""
    assert cli.main([*FIT]) == 0
    samples = ["patient 1", 'a, "b"', "007", *map(str, range(6))]
    new = pandas.DataFrame(NEW, index=samples, columns=NAMES)
    new.to_csv("new.csv") if ending == ".csv" else new.to_parquet("new.parquet")
    assert cli.main(["transform", f"new{ending}", "c.npz", "--out", "s.csv"]) == 0
    scores = pandas.read_csv("s.csv", index_col=0, float_precision="round_trip")
    assert list(scores.index) == samples
    assert list(scores.columns) == ["component 0", "component 1"]
    np.testing.assert_array_equal(scores, ob.SparsePCA.load("c.npz").transform(new))
    capsys.readouterr()
    assert cli.main(["transform", f"new{ending}", "c.npz"]) == 0
    assert capsys.readouterr().out == (here / "s.csv").read_text()
    assert cli.main(["transform", f"new{ending}", "c.npz", "--out", "s.npy"]) == 0
    np.testing.assert_array_equal(np.load("s.npy"), scores)
    # Scores are data with an index.
    with pytest.warns(FileNote, match=r"s.csv: its unnamed first column is the index"):
        np.testing.assert_array_equal(read_matrix("s.csv")[0], scores)


@pytest.mark.parametrize("options", [["--index"], ["--index", "--no-header"], ["--columns", "a,b"]])
def test_a_first_column_of_names(here, options):
    header = [] if "--no-header" in options else ["patient,a,b,c,d,e,f,g"]
    rows = [f"no {k}," + ",".join(map(repr, row)) for k, row in enumerate(NEW.tolist())]
    (here / "new.csv").write_text("\n".join([*header, *rows]))
    pca = ob.SparsePCA(1, n_nonzero=1, center=False, random_state=0)
    pca.fit(pandas.DataFrame(A, columns=list("abcdefg")))
    pca.components_ = np.eye(1, 7)
    pca.save("c.npz")
    code = cli.main(["transform", "new.csv", "c.npz", "--out", "s.csv", *options])
    if options[0] == "--columns":
        assert code == 2
        return
    assert code == 0
    lines = (here / "s.csv").read_text().splitlines()
    assert lines[0] == ",component 0"
    assert lines[3] == f"no 2,{float(NEW[2, 0])!r}"


def test_messages_leave_the_scores_on_the_standard_output_alone(here, capsys):
    assert cli.main([*FIT]) == 0
    new = pandas.DataFrame(NEW, columns=NAMES)
    new.to_csv("new.csv")
    capsys.readouterr()
    assert cli.main(["transform", "new.csv", "c.npz", "--report", "r.json"]) == 0
    out, err = capsys.readouterr()
    table = pandas.read_csv(io.StringIO(out), index_col=0, float_precision="round_trip")
    np.testing.assert_array_equal(table, ob.SparsePCA.load("c.npz").transform(new))
    assert "note: new.csv" in err
    assert "wrote r.json" in err


def test_files_of_any_estimator_are_applied(here, capsys):
    put("new.csv", NEW, NAMES[::-1])
    for estimator in (
        ob.SparsePCA(2, n_nonzero=5, random_state=0, scale=True),
        ob.OrthogonalNMF(2, random_state=0),
        ob.SparsePCACV(2, n_alphas=2, cv=2, random_state=0),
    ):
        data = np.abs(A)
        estimator.fit(data)
        estimator.feature_names_in_ = np.array(NAMES, dtype=object)
        estimator.save("c.npz")
        put("abs.csv", data[:, ::-1], NAMES[::-1])
        assert cli.main(["transform", "abs.csv", "c.npz", "--out", "s.csv", "--force"]) == 0
        del estimator.feature_names_in_
        np.testing.assert_allclose(scores_of("s.csv"), estimator.transform(data), atol=1e-9)
    estimator.best_estimator_.loadings().save("c.npz")
    capsys.readouterr()
    assert cli.main(["transform", "abs.csv", "c.npz"]) == 2
    assert "it holds a Loadings" in capsys.readouterr().err
