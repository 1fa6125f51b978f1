"""The command line: results, files, exit codes, and one line per error."""

from __future__ import annotations

import csv
import functools
import gzip
import io
import json
import re
import shlex
import subprocess
import sys

import numpy as np
import pandas
import pytest
from scipy import sparse

import orthobcd as ob
from orthobcd import cli
from orthobcd import io as files

from ..conftest import ROOT, SAFE_PATH, orthobcd, random_sparse

pytestmark = pytest.mark.timeout(600)  # of processes and whole pages, on a busy machine too
NAMES = [f"gene {j}" for j in range(8)]
A = np.random.default_rng(0).standard_normal((30, 8)).round(6)
A[:, :3] += 2.0 * np.random.default_rng(1).standard_normal((30, 1)).round(6)


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("data.csv", A, delimiter=",", header=",".join(NAMES), comments="", fmt="%.6f")
    return "data.csv"


def test_sparse_pca_of_a_csv_with_a_header(table, tmp_path, capsys):
    code = cli.main(
        [
            "sparse-pca", table, "-r", "2", "--n-nonzero", "6", "--out", "c.csv",
            "--report", "r.json", "--plot", "c.png",
        ]
    )  # fmt: skip
    out = capsys.readouterr().out
    assert code == 0
    assert "30 samples, 8 features" in out
    assert "gene 0" in out
    with open("c.csv", encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    assert header == NAMES
    V = np.array(rows, dtype=float)
    pca = ob.SparsePCA(2, n_nonzero=6, random_state=0).fit(files.read_matrix(table)[0])
    # Written to full precision.
    np.testing.assert_array_equal(V, pca.components_)
    report = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert report["n_nonzero"] == 6
    assert report["feasibility"] < 1e-12
    assert report["status"] == "converged"
    assert report["version"] == ob.__version__
    np.testing.assert_allclose(report["explained_variance_ratio"], pca.explained_variance_ratio_)
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_components_can_be_certified(table, capsys):
    assert cli.main(["sparse-pca", table, "-r", "2", "--out", "c.npz", "--report", "r.json"]) == 0
    with open("r.json", encoding="utf-8") as stream:
        alpha = json.load(stream)["alpha"]
    capsys.readouterr()
    code = cli.main(["certify", table, "c.npz", "--lam", str(alpha), "--report", "cert.json"])
    assert code == 0
    assert "largest pair gain" in capsys.readouterr().out
    with open("cert.json", encoding="utf-8") as stream:
        report = json.load(stream)
    assert report["feasibility"] < 1e-12
    assert report["block2_gap"] <= 1e-8 * abs(report["objective"])
    assert report["n_pairs"] == 28


def test_certify_says_how_infeasible(table, capsys):
    np.save("ones.npy", np.ones((2, 8)))
    assert cli.main(["certify", table, "ones.npy"]) == 0
    distance = np.linalg.norm(np.ones((2, 2)) * 8 - np.eye(2))
    assert f"feasibility          {distance:.2e}" in capsys.readouterr().out


def test_hyperbolic(table, capsys):
    code = cli.main(
        ["hyperbolic", table, "--positive", "5", "--report", "r.json", "--out", "x.npz"]
    )
    assert code == 0
    with open("r.json", encoding="utf-8") as stream:
        report = json.load(stream)
    signs = np.where(np.arange(8) < 5, 1.0, -1.0)
    expected = np.linalg.eigvals(signs[:, None] * (A.T @ A))
    np.testing.assert_allclose(
        np.sort(report["eigenvalues"]), np.sort(expected.real), rtol=1e-6, atol=1e-6
    )
    np.save("signs.npy", signs)
    assert cli.main(["hyperbolic", table, "--signature", "signs.npy"]) == 0
    np.save("signs.npy", signs[:3])
    assert cli.main(["hyperbolic", table, "--signature", "signs.npy"]) == 2
    assert "signature" in capsys.readouterr().err


@pytest.mark.long
def test_a_sparse_file_of_a_hundred_thousand_columns(tmp_path):
    rng = np.random.default_rng(0)
    data = random_sparse(300, 100_000, 1e-4, seed=1)
    topics = sparse.csr_array(rng.standard_normal((300, 2)) * 3.0)
    columns = np.zeros((2, 100_000))
    columns[0, 500:510] = columns[1, 70_000:70_008] = 1.0
    sparse.save_npz(tmp_path / "wide.npz", (data + topics @ sparse.csr_array(columns)).tocsr())
    done = orthobcd(
        "sparse-pca", "wide.npz", "-r", "2", "--n-nonzero", "18", "--out", "c.npz", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    V = np.load(tmp_path / "c.npz")["components"]
    used = np.flatnonzero(np.any(V != 0.0, axis=0))
    np.testing.assert_array_equal(used, [*range(500, 510), *range(70_000, 70_008)])


WRONG = {
    "missing": (["sparse-pca", "nowhere.csv"], "no such file"),
    "broken": (["sparse-pca", "broken.csv"], "number of columns changed"),
    "kind": (["sparse-pca", "data.xlsx"], "unknown kind"),
    "shape": (["nonneg-pca", "data.csv", "--image-shape", "3x3"], "--image-shape"),
    "out": (["sparse-pca", "data.csv", "--out", "c.txt"], "--out must end in"),
    "folder": (["sparse-pca", "data.csv", "--report", "none/r.json"], "no folder"),
    "certify": (["certify", "data.csv", "three.npy"], "has 3 features"),
    "positive": (["hyperbolic", "data.csv", "--positive", "9"], "--positive"),
    "demo": (["demo", "data.csv", "--components", "9"], "--components"),
    "demo of a broken file": (["demo", "broken.csv"], "number of columns changed"),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_clear_line(name, table, capsys):
    from pathlib import Path

    Path("broken.csv").write_text("a,b\n1,2\n3\n")
    Path("data.xlsx").write_bytes(b"PK")
    np.save("three.npy", np.eye(3))
    arguments, text = WRONG[name]
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert text in err
    assert err.count("\n") == 1
    # With --debug the original exception is raised, with its traceback.
    with pytest.raises((files.UnreadableFile, cli.WrongArgument)):
        cli.main([*arguments, "--debug"])


def test_a_bug_is_one_line_too_and_a_traceback_with_debug(table, monkeypatch, capsys):
    @functools.wraps(ob.SparsePCA.fit)
    def breaks(*arguments: object, **options: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("orthobcd.sklearn.SparsePCA.fit", breaks)
    assert cli.main(["sparse-pca", table]) == 1
    err = capsys.readouterr().err
    assert "RuntimeError: a bug" in err
    assert "--debug" in err
    with pytest.raises(RuntimeError, match="a bug"):
        cli.main(["sparse-pca", table, "--debug"])


@pytest.mark.parametrize("command", [[], *[[c] for c in ("sparse-pca", "certify", "demo")]])
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main([*command, "--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert "orthobcd" in out
    if command != ["demo"]:
        assert "examples:" in out
        assert "exit codes:" in out


SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CALL = re.compile(r"^(?:zcat (\S+) \| )?orthobcd (.*)$", re.MULTILINE)


@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize("page", ["README.md", "docs/command-line.md"])
def test_the_calls_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    """One after the other, in a folder with the files that they read."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(rng.standard_normal((40, 25)), columns=[f"g{j}" for j in range(25)])
    for name in ("data.csv", "genes.csv", "new.csv"):
        table.to_csv(name, index=False)
    table.assign(patient="p").to_csv("genes.csv.gz", index=False)
    np.save("images.npy", rng.uniform(size=(20, 784)))
    calls = CALL.findall("".join(SHELL.findall((ROOT / page).read_text(encoding="utf-8"))))
    assert len(calls) >= 2
    for packed, arguments in calls:
        if packed:
            content = gzip.decompress((tmp_path / packed).read_bytes())
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert cli.main(shlex.split(arguments)) == 0, capsys.readouterr().err


def test_the_script_and_the_module_are_the_same(tmp_path):
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="orthobcd")
    assert script.load() is cli.main
    done = orthobcd("--version", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.strip() == f"orthobcd {ob.__version__}"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_interrupt_writes_what_there_is(tmp_path):
    import signal
    import time

    rng = np.random.default_rng(0)
    np.save(tmp_path / "big.npy", rng.standard_normal((200, 400)))
    process = subprocess.Popen(
        [
            sys.executable, *SAFE_PATH, "-m", "orthobcd", "sparse-pca", "big.npy", "-r", "8",
            "--max-time", "60", "-v", "--out", "c.npz",
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    # The process is interrupted after the first line of progress.
    assert process.stderr is not None
    seen = ""
    deadline = time.monotonic() + 300.0
    while "nonzeros" not in seen and time.monotonic() < deadline:
        seen += process.stderr.read(80)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "interrupted" in out
    V = np.load(tmp_path / "c.npz")["components"]
    np.testing.assert_allclose(V @ V.T, np.eye(8), atol=1e-12)
