"""Meanings of the options of the command line, and messages about wrong options."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas
import pytest

import orthobcd as ob
from orthobcd import cli

from ..conftest import ROOT
from .test_outputs import orthobcd

short = pytest.mark.usefixtures("short_searches")
pytestmark = pytest.mark.timeout(300)
NAMES = ["height", "width", "depth", "7", "two words", 'with, "marks"', "x3"]
A = np.random.default_rng(0).standard_normal((30, 7)).round(6)
A[:, 1] += A[:, 0]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pandas.DataFrame(A, columns=NAMES).to_csv("data.csv", index=False)
    np.save("data.npy", A)
    return tmp_path


def report_of(*arguments: str) -> dict:
    assert cli.main([*arguments, "--report", "r.json", "--force"]) == 0
    return json.loads(Path("r.json").read_text(encoding="utf-8"))


def components_of(*arguments: str) -> np.ndarray:
    assert cli.main([*arguments, "--out", "c.npz", "--force"]) == 0
    with np.load("c.npz") as archive:
        return archive["components"]


FITS = {
    "alpha": (["sparse-pca", "-r", "3", "--alpha", "0.3"], {"alpha": 0.3}),
    "l1": (["sparse-pca", "-r", "3", "--penalty", "l1"], {"penalty": "l1"}),
    "absolute": (
        ["sparse-pca", "-r", "2", "--alpha", "3", "--alpha-scale", "absolute"],
        {"alpha": 3.0, "alpha_scale": "absolute"},
    ),
    "count": (["sparse-pca", "-r", "3", "--n-nonzero", "8"], {"n_nonzero": 8}),
    "counts": (["sparse-pca", "--n-nonzero", "4,3,2"], {"n_nonzero": [4, 3, 2]}),
    "two counts": (["sparse-pca", "-r", "2", "--n-nonzero", "1,7"], {"n_nonzero": [1, 7]}),
    "features": (["sparse-pca", "-r", "2", "--n-features", "3"], {"n_features": 3}),
    "scaled": (
        ["sparse-pca", "-r", "2", "--scale", "--n-nonzero", "5", "--random-state", "3"],
        {"scale": True, "n_nonzero": 5, "random_state": 3},
    ),
    "not centred": (
        ["sparse-pca", "-r", "2", "--no-center", "--n-nonzero", "5"],
        {"center": False, "n_nonzero": 5},
    ),
    "nonnegative": (["nonneg-pca", "-r", "3"], {}),
    "nonnegative count": (["nonneg-pca", "-r", "3", "--n-nonzero", "5"], {"n_nonzero": 5}),
    "nonnegative counts": (["nonneg-pca", "--n-nonzero", "3,1"], {"n_nonzero": [3, 1]}),
}


@short
@pytest.mark.parametrize("kind", FITS)
def test_a_report_holds_what_a_fit_is_made_of(kind, folder):
    (command, *options), expected = FITS[kind]
    report = report_of(command, "data.csv", *options)
    estimator = ob.SparsePCA if command == "sparse-pca" else ob.NonnegativePCA
    settings = report["settings"]
    assert settings.items() >= expected.items()
    assert set(settings) == set(estimator().get_params())
    fit = estimator(**settings).fit(A)
    V = components_of(command, "data.csv", *options)
    np.testing.assert_array_equal(V, fit.components_)
    assert report["command"] == command
    assert report["feature_names"] == NAMES
    np.testing.assert_array_equal(report["mean"], fit.mean_)
    if fit.scale_ is None:
        assert report["scale"] is None
    else:
        np.testing.assert_array_equal(report["scale"], fit.scale_)
    for name in ("explained_variance", "explained_variance_ratio"):
        np.testing.assert_array_equal(report[name], getattr(fit, f"{name}_"))
    assert report["n_components"] == len(V)


COLUMNS = {
    "names": (["--columns", "depth,height, two words"], [2, 0, 4]),
    "quoted": (["--columns", 'width,"with, ""marks"""'], [1, 5]),
    "indices": (["--columns", "5,0"], [5, 0]),
    "a name that is a number": (["--columns", "7,0"], [3, 0]),
    "dropped": (["--drop", "two words,0"], [1, 2, 3, 5, 6]),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("sparse-pca", ["-r", "2"]),
        ("nonneg-pca", ["-r", "2"]),
        ("hyperbolic", ["--positive", "1"]),
        ("certify", ["c.npy"]),
    ],
)
def test_columns_are_those_of_the_data(command, more, kind, folder):
    options, kept = COLUMNS[kind]
    np.save("c.npy", np.eye(len(kept))[:1])
    np.save("part.npy", A[:, kept])
    part = report_of(command, "part.npy", *more)
    whole = report_of(command, "data.csv", *more, *options)
    assert whole["objective"] == part["objective"]
    assert whole["feature_names"] == [NAMES[k] for k in kept]
    name = options[0][2:]
    assert len(whole[name]) == options[1].replace("with, ", "").count(",") + 1
    assert whole["n_features"] == len(kept)


def test_columns_of_words_are_left_out(folder):
    pandas.DataFrame(A, columns=NAMES).assign(who="somebody").to_csv("words.csv", index=False)
    assert cli.main(["sparse-pca", "words.csv"]) == 2
    left = report_of("sparse-pca", "words.csv", "--drop", "who")
    assert left["objective"] == report_of("sparse-pca", "data.csv")["objective"]


SUPPORTS = {
    "included in all": (["--include", "depth"], lambda S: S[:, 2].all()),
    "by number": (["--include", "2,5"], lambda S: S[:, [2, 5]].all()),
    "in each": (
        ["--include", "depth;two words,0"],
        lambda S: S[0, 2] and S[1, 4] and S[1, 0],
    ),
    "in one": (["--include", ";depth"], lambda S: S[1, 2]),
    "excluded": (["--exclude", "width,height"], lambda S: not S[:, :2].any()),
    "excluded from each": (
        ["--exclude", "width;height"],
        lambda S: not S[0, 1] and not S[1, 0],
    ),
    "both": (
        ["--include", "depth", "--exclude", "1"],
        lambda S: S[:, 2].all() and not S[:, 1].any(),
    ),
}


@short
@pytest.mark.parametrize("kind", SUPPORTS)
@pytest.mark.parametrize("command", ["sparse-pca", "nonneg-pca"])
def test_features_in_and_out_of_supports(command, kind, folder):
    options, holds = SUPPORTS[kind]
    if command == "nonneg-pca" and kind in ("included in all", "by number", "both"):
        pytest.skip("nonnegative components have no feature in common")
    both = ["-r", "2", "--n-nonzero", "4,4", "--report", "r.json"]
    named = components_of(command, "data.csv", *both, *options)
    assert (np.count_nonzero(named, axis=1) <= 4).all()
    estimator = ob.SparsePCA if command == "sparse-pca" else ob.NonnegativePCA
    settings = json.loads(Path("r.json").read_text(encoding="utf-8"))["settings"]
    np.testing.assert_array_equal(named, estimator(**settings).fit(A).components_)
    # An included feature may have the loading zero if that is best.
    assert holds(named != 0.0) or command == "nonneg-pca"


@short
def test_features_without_names_are_called_as_they_are_shown(folder):
    common = ["sparse-pca", "data.npy", "-r", "2", "--n-nonzero", "5", "--exclude"]
    by_number = components_of(*common, "1,0")
    np.testing.assert_array_equal(components_of(*common, "x1,x0"), by_number)
    assert not by_number[:, :2].any()


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("packed", [False, True])
def test_numbers_with_a_decimal_comma(decimal, packed, folder):
    text = pandas.DataFrame(A).to_csv(sep=";", decimal=decimal, header=False, index=False).encode()
    name = "table.csv.gz" if packed else "table.csv"
    Path(name).write_bytes(gzip.compress(text) if packed else text)
    found = components_of("sparse-pca", name, "-r", "2", "--decimal", decimal)
    np.testing.assert_array_equal(found, components_of("sparse-pca", "data.npy", "-r", "2"))


@short
def test_missing_values(folder, capsys):
    holes = A.copy()
    holes[[3, 9], [1, 4]] = np.nan
    pandas.DataFrame(holes, columns=NAMES).to_csv("holes.csv", index=False)
    np.save("holes.npy", holes)
    fit = ob.SparsePCA(2, n_nonzero=6, missing="em", random_state=0, n_jobs=-1).fit(holes)
    options = ["-r", "2", "--n-nonzero", "6", "--missing", "em"]
    for name in ("holes.csv", "holes.npy"):
        np.testing.assert_array_equal(components_of("sparse-pca", name, *options), fit.components_)
        capsys.readouterr()
        assert cli.main(["sparse-pca", name, "-r", "2"]) == 2
        assert "--missing em" in capsys.readouterr().err
        assert cli.main(["nonneg-pca", name, "-r", "2"]) == 2
        assert "--missing em" in capsys.readouterr().err


@short
@pytest.mark.parametrize("options", [[], ["--scale"], ["--no-center"]])
@pytest.mark.parametrize("command", ["sparse-pca", "nonneg-pca"])
def test_certificates_of_data_with_gaps_are_those_of_the_fit(command, options, folder):
    holes = A.copy()
    holes[[3, 9], [1, 4]] = np.nan
    np.save("holes.npy", holes)
    common = ["--n-nonzero", "5", "--missing", "em", *options]
    components_of(command, "holes.npy", "-r", "2", *common)
    penalty = ["--penalty", "nonnegative"] if command == "nonneg-pca" else []
    report = report_of("certify", "holes.npy", "c.npz", *common, *penalty)
    fit = ob.SparsePCA if command == "sparse-pca" else ob.NonnegativePCA
    assert report["objective"] == pytest.approx(fit.load("c.npz").objective_, rel=1e-9)
    assert cli.main(["certify", "holes.npy", "c.npz", "--n-nonzero", "5"]) == 2


@short
def test_hyperbolic_eigenvalues_of_data_with_gaps(folder):
    """Those of complete data without gaps, and near these with a gap in a feature of rank one."""
    rng = np.random.default_rng(0)
    full = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 5))
    full += 1e-3 * rng.standard_normal(full.shape)
    holes = full.copy()
    holes[[7, 20, 31], [0, 3, 4]] = np.nan
    np.save("full.npy", full)
    np.save("holes.npy", holes)
    options = ["--positive", "2", "--ridge", "1"]
    plain = report_of("hyperbolic", "full.npy", *options)["eigenvalues"]
    assert report_of("hyperbolic", "full.npy", *options, "--missing", "em")["eigenvalues"] == plain
    found = report_of("hyperbolic", "holes.npy", *options, "--missing", "em")["eigenvalues"]
    np.testing.assert_allclose(np.sort(found), np.sort(plain), rtol=0.01)
    assert cli.main(["hyperbolic", "holes.npy", *options]) == 2


def by_process(arguments: list[str], content: bytes) -> None:
    done = orthobcd(*arguments, input=content)
    assert done.returncode == 0, done.stderr


def in_this_process(arguments: list[str], content: bytes) -> None:
    """The data come through a pipe of this process, which holds 4096 bytes on every system."""
    assert len(content) <= 4096
    reading, writing = os.pipe()
    with open(writing, "wb") as stream:
        stream.write(content)
    with open(reading, encoding="utf-8") as stdin, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", stdin)
        assert cli.main(arguments) == 0


@pytest.mark.slow
@pytest.mark.parametrize("command", ["sparse-pca", "hyperbolic", "certify"])
def test_data_from_a_pipe(command, folder):
    np.save("c.npy", np.eye(7)[:2])
    more = {"sparse-pca": ["-r", "2"], "hyperbolic": ["--positive", "4"], "certify": ["c.npy"]}
    own = [command, "-", *more[command], "--report", "r.json", "--force"]
    of_the_file = report_of(command, "data.csv", *more[command])
    ways = [(in_this_process, Path("data.csv").read_bytes())]
    ways += [(in_this_process, gzip.compress(Path("data.npy").read_bytes()))]
    if command == "sparse-pca":
        ways += [(by_process, content) for _, content in ways]
    for run, content in ways:
        Path("r.json").unlink()
        run(own, content)
        report = json.loads(Path("r.json").read_text(encoding="utf-8"))
        assert report["data"] == "-"
        assert report["objective"] == of_the_file["objective"]


LIMITS = {
    "count": (["--n-nonzero", "5"], ob.Cardinality(5), ["--n-nonzero", "5"]),
    "counts": (["--n-nonzero", "3,2"], ob.Cardinality([3, 2]), ["--n-nonzero", "3,2"]),
    "features": (["--n-features", "3"], ob.RowSparse(count=3), ["--n-features", "3"]),
    "penalty": (["--alpha", "4", "--alpha-scale", "absolute"], ob.L0(4.0), ["--lam", "4"]),
}


@short
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("kind", LIMITS)
def test_certificates_with_a_bound_and_of_limits(kind, scale, folder, capsys):
    options, penalty, limit = LIMITS[kind]
    scaled = ["--scale"] if scale else []
    V = components_of("sparse-pca", "data.csv", "-r", "2", *options, *scaled)
    report = report_of("certify", "data.csv", "c.npz", *limit, *scaled, "--bound")
    data = A / A.std(axis=0) if scale else A
    problem = ob.SparsePCAProblem(data, 2, penalty, center=True)
    certificate = ob.certify(problem, V.T, bound=True)
    assert report["objective"] == pytest.approx(certificate.objective, rel=1e-12)
    assert report["lower_bound"] <= report["objective"]
    assert report["gap"] == pytest.approx(certificate.gap, abs=1e-6)
    assert report["bound_method"] == certificate.bound_method
    out = capsys.readouterr().out
    assert f"objective            {certificate.objective:.9g}"[:28] in out
    assert "lower bound" in out
    assert "gap" in out
    assert ("largest pair gain" in out) == (kind == "penalty")
    # Without the option there is no lower bound.
    assert report_of("certify", "data.csv", "c.npz", *limit, *scaled)["lower_bound"] is None


@short
def test_a_certificate_of_a_nonnegative_limit(folder):
    V = components_of("nonneg-pca", "data.csv", "-r", "2", "--n-nonzero", "4")
    common = ["certify", "data.csv", "c.npz", "--penalty", "nonnegative", "--n-nonzero", "4"]
    report = report_of(*common)
    problem = ob.SparsePCAProblem(A, 2, ob.Cardinality(4, nonnegative=True), center=True)
    assert report["objective"] == pytest.approx(ob.certify(problem, V.T).objective, rel=1e-12)
    assert report["settings"]["n_nonzero"] == 4


USAGE = {
    "sparse-pca": [
        ["--n-jobs", "0"], ["--n-jobs", "-2"], ["--n-jobs", "two"], ["--n-jobs", "1.5"],
        ["--random-state", "-1"], ["--random-state", "4294967296"], ["--random-state", "x"],
        ["--n-components", "0"], ["-r", "many"], ["--alpha", "-1"], ["--alpha", "nan"],
        ["--alpha", "high"], ["--n-nonzero", "0"], ["--n-nonzero", "5,0"], ["--n-nonzero", "5,x"],
        ["--n-nonzero", ""], ["--n-features", "0"], ["--n-features", "few"],
        ["--max-time", "-1"], ["--max-time", "inf"], ["--image-shape", "28"],
        ["--effort", "0"], ["--effort", "-1"], ["--effort", "nan"], ["--effort", "much"],
        ["--decimal", ";"], ["--missing", "mean"], ["--penalty", "l3"],
        ["--alpha", "1", "--n-nonzero", "5"], ["--n-nonzero", "5", "--n-features", "5"],
        ["--columns", "0,1", "--drop", "2"], ["--fly"],
    ],
    "nonneg-pca": [["--n-nonzero", "-3"], ["--missing", "mean"], ["--n-features", "3"]],
    "hyperbolic": [
        ["--positive", "0"], ["--positive", "all"], ["--positive", "2", "--seed", "-1"],
        ["--positive", "2", "--seed", str(2**64)], ["--positive", "2", "--n-threads", "0"],
        ["--positive", "2", "--ridge", "-1"], [],
    ],
    "certify": [["c.npy", "--lam", "x"], ["c.npy", "--lam", "1", "--n-nonzero", "3"], []],
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "arguments"), [(c, one) for c, several in USAGE.items() for one in several]
)
def test_wrong_usage_is_told_in_words(command, arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main([command, "data.csv", *arguments])
    assert caught.value.code == 2
    said = capsys.readouterr().err
    # The message contains no name of internal code.
    assert re.search(r"invalid \w+ value|\b_\w+", said.rpartition("error:")[2]) is None


def test_a_command_and_its_data_are_needed(capsys):
    for arguments in ([], ["fly"], ["sparse-pca"]):
        with pytest.raises(SystemExit) as caught:
            cli.main(arguments)
        assert caught.value.code == 2
        assert "usage:" in capsys.readouterr().err


WRONG = {
    "components": (["sparse-pca", "data.csv", "-r", "8"], "--n-components"),
    "counts": (["sparse-pca", "data.csv", "-r", "2", "--n-nonzero", "5,5,3"], "--n-nonzero"),
    "count": (["sparse-pca", "data.csv", "--n-nonzero", "8,3"], "--n-nonzero"),
    "small count": (["nonneg-pca", "data.csv", "-r", "3", "--n-nonzero", "2"], "--n-nonzero"),
    "features": (["sparse-pca", "data.csv", "-r", "3", "--n-features", "2"], "--n-features"),
    "more features": (["sparse-pca", "data.csv", "--n-features", "8"], "--n-features"),
    "l1 features": (
        ["sparse-pca", "data.csv", "-r", "2", "--penalty", "l1", "--n-features", "3"],
        "--n-features",
    ),
    "include alone": (["sparse-pca", "data.csv", "--include", "depth"], "--include"),
    "exclude alone": (["nonneg-pca", "data.csv", "--exclude", "depth"], "--exclude"),
    "unknown": (
        ["sparse-pca", "data.csv", "-r", "2", "--n-nonzero", "5", "--include", "breadth"],
        "--include",
    ),
    "too many lists": (
        ["sparse-pca", "data.csv", "-r", "2", "--n-nonzero", "5", "--include", "0;1;2"],
        "include",
    ),
    "in and out": (
        [
            "sparse-pca", "data.csv", "-r", "2", "--n-nonzero", "5", "--include", "0",
            "--exclude", "height",
        ],
        "exclude",
    ),
    "columns": (["sparse-pca", "data.csv", "--columns", "breadth,width"], "columns"),
    "one column": (["sparse-pca", "data.csv", "--columns", "width"], "2 features"),
    "drop": (["hyperbolic", "data.csv", "--positive", "1", "--drop", "7,9"], "drop"),
    "decimal": (["sparse-pca", "comma.csv"], "not numeric"),
    "certify count": (["certify", "data.csv", "c.npy", "--n-nonzero", "1"], "--n-nonzero"),
    "certify counts": (["certify", "data.csv", "c.npy", "--n-nonzero", "1,2,3"], "--n-nonzero"),
    "certify features": (["certify", "data.csv", "c.npy", "--n-features", "1"], "--n-features"),
    "both": (
        ["certify", "data.csv", "c.npy", "--penalty", "nonnegative", "--n-features", "3"],
        "--n-features",
    ),
    "bound of no point": (["certify", "data.csv", "ones.npy", "--lam", "1", "--bound"], "feasible"),
    "twice from a pipe": (["certify", "-", "-"], "COMPONENTS"),
    "signature": (["hyperbolic", "data.csv", "--signature", "huge.npy"], "huge.npy"),
    "huge": (["sparse-pca", "huge.npy"], "huge.npy"),
    "constant": (["sparse-pca", "tiny.npy"], "X"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_a_user_got_wrong_is_exit_code_2(name, folder, capsys):
    np.save("c.npy", np.eye(7)[:2])
    np.save("ones.npy", np.ones((2, 7)))
    np.save("tiny.npy", A * 1e-200)
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 100)}
    with open("huge.npy", "wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
    pandas.DataFrame(A).to_csv("comma.csv", sep=";", decimal=",", index=False)
    arguments, reason = WRONG[name]
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out.startswith("note: ") if out else True
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert reason in err
    assert "unexpected" not in err


def test_the_page_names_every_command(capsys):
    """And shows a call of each, but `demo`, which has a row."""
    text = (ROOT / "docs/command-line.md").read_text("utf-8")
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    commands = re.findall(r"^ {4}([a-z]+(?:-[a-z]+)*)(?: {2,}|$)", capsys.readouterr().out, re.M)
    assert {"sparse-pca", "transform", "demo"} <= set(commands)
    for command in commands:
        assert re.search(rf"^\| `{command}[ `]", text, re.M), command
        assert command in ("demo", "hyperbolic") or f"orthobcd {command} " in text, command
