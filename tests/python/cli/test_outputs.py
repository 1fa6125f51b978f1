"""Outputs are checked before the work and written before printing; inputs are never replaced."""

from __future__ import annotations

import functools
import io
import json
import os
import pkgutil
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import orthobcd as ob
from orthobcd import cli
from orthobcd._internal.writing import replacing

from ..conftest import SAFE_PATH

posix = pytest.mark.skipif(sys.platform == "win32", reason="devices and limits of POSIX")
pytestmark = pytest.mark.timeout(300)
NAMES = [f"gene {j}" for j in range(6)]
A = np.random.default_rng(0).standard_normal((20, 6)).round(6)
COMPONENTS = ("sparse-pca", "nonneg-pca")

COMMANDS = {
    "sparse-pca": ["-r", "2", "--n-nonzero", "5"],
    "nonneg-pca": ["-r", "2"],
    "hyperbolic": ["--positive", "4"],
    "certify": ["components.npz"],
}

OUTPUTS = {
    "sparse-pca": ("out", "report", "plot"),
    "nonneg-pca": ("out", "report", "plot"),
    "hyperbolic": ("out", "report"),
    "certify": ("report",),
}

ENDINGS = {"out": ".csv", "report": ".json", "plot": ".png"}
CASES = [(command, output) for command, own in OUTPUTS.items() for output in own]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_table(Path("data.csv"))
    np.savez("components.npz", components=np.eye(6)[:2])
    return tmp_path


def write_table(path: Path, names=NAMES) -> None:
    rows = [",".join(names), *(",".join(map(repr, row)) for row in A.tolist())]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def never(monkeypatch) -> None:
    """No work is done; what stands in for a function keeps its signature, the source of options."""

    for name in (
        "orthobcd.sklearn.SparsePCA.fit",
        "orthobcd.sklearn.NonnegativePCA.fit",
        "orthobcd.solve",
        "orthobcd.certificate.certify",
    ):

        @functools.wraps(pkgutil.resolve_name(name))
        def work(*arguments: object, **options: object) -> None:
            raise AssertionError("the work has begun")

        monkeypatch.setattr(name, work)


def refused(capsys, command: str, *arguments: str, data: str = "data.csv") -> str:
    """The one line that says why a command was refused."""
    assert cli.main([command, data, *COMMANDS[command], *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


SPELLINGS = {
    "the same": lambda p: p,
    "another folder": lambda p: p.parent / "sub" / ".." / p.name,
    "absolute": lambda p: p.absolute(),
    "link": lambda p: linked(p, os.symlink),
    "hard link": lambda p: linked(p, os.link),
}


def linked(path: Path, link) -> Path:
    other = path.with_name(f"other{path.suffix}")
    link(path, other)
    return other


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(("command", "output"), CASES)
def test_an_input_is_never_written_to(
    command, output, spelling, force, folder, capsys, monkeypatch
):
    never(monkeypatch)
    (folder / "sub").mkdir()
    # The input has the ending of the output; the check comes before its contents are read.
    data = Path(f"input{ENDINGS[output]}")
    write_table(data)
    before = data.read_bytes()
    target = str(SPELLINGS[spelling](data))
    said = refused(capsys, command, f"--{output}", target, *force, data=str(data))
    assert f"--{output}" in said
    assert "is read" in said
    assert data.read_bytes() == before


@pytest.mark.parametrize("r", [1, 2])
def test_the_picture_has_the_names_of_the_features(r, folder):
    """matplotlib writes each text of an SVG as a comment beside its outlines."""
    how = ["-r", str(r), "--n-nonzero", str(2 * r), "--out", "c.csv", "--plot", "c.svg"]
    assert cli.main(["sparse-pca", "data.csv", *how]) == 0
    loadings, names = ob.io.read_matrix("c.csv", min_rows=1)
    used = {name for name, own in zip(names, loadings.T, strict=True) if own.any()}
    texts = set(re.findall("<!-- (.*) -->", Path("c.svg").read_text(encoding="utf-8")))
    assert {text for text in texts if text.startswith("gene")} == used
    assert {f"component {k}" for k in range(r)} <= texts


def test_other_inputs_are_inputs(folder, capsys, monkeypatch):
    never(monkeypatch)
    os.symlink("components.npz", "c.json")
    assert "components.npz" in refused(capsys, "certify", "--report", "c.json", "--force")
    np.save("signs.npy", np.ones(6))
    os.symlink("signs.npy", "s.csv")
    arguments = ["hyperbolic", "data.csv", "--signature", "signs.npy", "--out", "s.csv", "--force"]
    assert cli.main(arguments) == 2
    assert "signs.npy" in capsys.readouterr().err


def a_folder(path: Path) -> None:
    path.mkdir()


def there(path: Path) -> None:
    path.write_text("old")


def read_only(path: Path) -> None:
    path.write_text("old")
    path.chmod(0o444)


def in_a_read_only_folder(path: Path) -> None:
    path.parent.chmod(0o555)


ROOT = hasattr(os, "geteuid") and os.geteuid() == 0

WAYS = {
    "a folder": ("x/name", a_folder, "directory"),
    "no folder": ("none/name", lambda p: None, "no folder"),
    "below a file": ("data.csv/name", lambda p: None, "no folder"),
    "too long": ("x/" + "n" * 300, lambda p: None, "name too long"),
    "there": ("x/name", there, "--force"),
    "another kind": ("x/name.zip", lambda p: None, "must end in"),
    "read-only": ("x/name", read_only, "ermission"),
    "read-only folder": ("x/name", in_a_read_only_folder, "ermission"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("command", "output"), CASES)
def test_what_cannot_be_written_is_found_before_the_work(
    command, output, way, folder, capsys, monkeypatch
):
    if ROOT and way.startswith("read-only"):
        pytest.skip("root may write everywhere")
    never(monkeypatch)
    (folder / "x").mkdir()
    stem, make, reason = WAYS[way]
    path = Path(stem if stem.endswith(".zip") else stem + ENDINGS[output])
    make(path)
    force = ["--force"] if way == "read-only" else []
    said = refused(capsys, command, f"--{output}", str(path), *force)
    assert f"--{output}" in said
    assert reason.lower() in said.lower()
    (folder / "x").chmod(0o755)
    assert [entry.name for entry in (folder / "x").iterdir()] in ([], [path.name])


def test_a_full_disk_is_found_before_the_work(folder, capsys, monkeypatch):
    never(monkeypatch)

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    for command, output in CASES:
        said = refused(capsys, command, f"--{output}", f"name{ENDINGS[output]}")
        assert "No space left" in said
    assert sorted(entry.name for entry in folder.iterdir()) == ["components.npz", "data.csv"]


def test_outputs_are_different_files(folder, capsys, monkeypatch):
    never(monkeypatch)
    os.symlink("c.csv", "r.json")
    said = refused(capsys, "sparse-pca", "--out", "c.csv", "--report", "r.json")
    assert "--report must not be the file of --out" in said


def test_a_missing_package_for_pictures_is_found_before_the_work(folder, capsys, monkeypatch):
    never(monkeypatch)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "orthobcd[plot]" in refused(capsys, "sparse-pca", "--plot", "p.png")


@pytest.mark.parametrize("command", COMMANDS)
def test_files_are_replaced_by_force_alone(command, folder, capsys):
    paths = {output: Path(f"file{ENDINGS[output]}") for output in OUTPUTS[command]}
    for output, path in paths.items():
        path.write_text("old")
        arguments = [command, "data.csv", *COMMANDS[command], f"--{output}", str(path)]
        assert cli.main(arguments) == 2
        assert path.read_text() == "old"
        assert cli.main([*arguments, "--force"]) == 0
        assert path.read_bytes() != b"old"
    assert f"wrote {path}" in capsys.readouterr().out


def test_what_appears_during_the_work_is_not_replaced(folder, capsys, monkeypatch):
    fit = ob.SparsePCA.fit

    @functools.wraps(fit)
    def slow(self, *arguments, **options):
        Path("c.csv").write_text("of somebody else")
        return fit(self, *arguments, **options)

    monkeypatch.setattr("orthobcd.sklearn.SparsePCA.fit", slow)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert cli.main(["sparse-pca", "data.csv", *COMMANDS["sparse-pca"], "--out", "c.csv"]) == 2
    assert Path("c.csv").read_text() == "of somebody else"
    err = capsys.readouterr().err
    # The components are in a temporary folder.
    kept = Path(err.strip().rpartition("it is in ")[2])
    assert kept.read_text(encoding="utf-8").startswith("gene 0,")


def test_names_as_long_as_a_file_system_takes(tmp_path):
    for length in (255, 235, 175):
        path = tmp_path / ("n" * (length - 4) + ".csv")
        for text in ("old", "new"):
            with replacing(path) as part:
                part.write_text(text)
        assert path.read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(OSError, match="too long"), replacing(tmp_path / ("n" * 300)) as part:
        part.write_text("new")


def orthobcd(*arguments: str, limit: int | None = None, **options):
    """A process, whose files have at most ``limit`` bytes."""

    def limited() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    environment = {**os.environ, **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, *SAFE_PATH, "-m", "orthobcd", *arguments],
        stderr=subprocess.PIPE,
        env=environment,
        check=False,
        preexec_fn=None if limit is None else limited,
        **{"stdout": subprocess.PIPE, **options},
    )


@pytest.mark.slow
@posix
@pytest.mark.parametrize("name", ["c.npz", pytest.param("c.csv", marks=pytest.mark.long)])
def test_a_disk_that_fills_up_leaves_nothing_half_written(name, tmp_path):
    data = tmp_path / "wide.npy"
    np.save(data, np.random.default_rng(0).standard_normal((4, 2000)))
    path = tmp_path / name
    arguments = ["sparse-pca", str(data), "-r", "2", "--max-time", "0.1", "--out", str(path)]
    for old in (None, b"old"):
        if old is not None:
            path.write_bytes(old)
            arguments.append("--force")
        # The limit suffices for the block of the check before the solve, not for the components.
        done = orthobcd(*arguments, limit=4500, env={"TMPDIR": str(tmp_path)})
        assert done.returncode == 2
        assert f"error: --out: {path}: ".encode() in done.stderr
        assert done.stderr.count(b"\n") == 1
        # The summary is still printed.
        assert b"4 samples, 2000 features" in done.stdout
        assert (path.read_bytes() if path.exists() else None) == old
        assert {entry.name for entry in tmp_path.iterdir()} <= {"wide.npy", name}


@pytest.mark.slow
@posix
def test_no_room_at_all_is_found_before_the_work(tmp_path):
    data = tmp_path / "data.csv"
    write_table(data)
    done = orthobcd(
        "sparse-pca", str(data), "-r", "2", "--report", str(tmp_path / "r.json"), limit=1000
    )
    assert done.returncode == 2
    assert done.stdout == b""
    assert [entry.name for entry in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_device_and_a_full_standard_output(folder):
    os.symlink("/dev/full", "c.csv")
    done = orthobcd("sparse-pca", "data.csv", *COMMANDS["sparse-pca"], "--out", "good.csv")
    assert done.returncode == 0
    full = orthobcd(
        "sparse-pca", "data.csv", *COMMANDS["sparse-pca"], "--out", "c.csv", "--report", "r.json",
        env={"TMPDIR": str(folder)},
    )  # fmt: skip
    assert full.returncode == 2
    assert b"No space left" in full.stderr
    kept = Path(full.stderr.decode().strip().rpartition("it is in ")[2])
    assert kept.read_bytes() == Path("good.csv").read_bytes()
    assert json.loads(Path("r.json").read_text(encoding="utf-8"))["n_nonzero"] == 5
    with open("/dev/full", "wb") as stdout:
        said = orthobcd(
            "sparse-pca", "data.csv", *COMMANDS["sparse-pca"], "--out", "d.csv", stdout=stdout
        )
    assert said.returncode == 2
    assert said.stderr.count(b"\n") == 1
    assert Path("d.csv").read_bytes() == Path("good.csv").read_bytes()


@pytest.mark.slow
@posix
def test_a_reader_of_the_output_may_go(folder):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as stdout:
        done = orthobcd(
            "sparse-pca", "data.csv", *COMMANDS["sparse-pca"], "--out", "c.csv", stdout=stdout
        )
    assert done.returncode == 0
    assert done.stderr == b""
    assert Path("c.csv").exists()


def in_this_process(arguments: list[str], encoding: str) -> bytes:
    """What a command prints where the standard output has an encoding."""
    printed = io.BytesIO()
    with (
        io.TextIOWrapper(printed, encoding=encoding) as stdout,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("sys.stdout", stdout)
        assert cli.main(arguments) == 0
        stdout.flush()
        return printed.getvalue()


def by_process(arguments: list[str], encoding: str) -> bytes:
    done = orthobcd(*arguments, env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("command", "encoding", "run"),
    [
        *product(COMPONENTS, ["ascii", "latin-1", "utf-8", "cp1252"], [in_this_process]),
        ("sparse-pca", "ascii", by_process),
    ],
)
def test_names_that_the_output_cannot_encode(command, encoding, run, folder, short_searches):
    names = ["größe", "ширина", "深さ", "naïve", "\N{SNOWMAN}", "\N{MUSICAL SYMBOL G CLEF}"]
    write_table(Path("data.csv"), names)
    more = ["--n-nonzero", "20"] if command == "sparse-pca" else []
    arguments = [command, "data.csv", "-r", "6", *more, "--out", "c.csv", "--report", "r.json"]
    said = run(arguments, encoding).decode(encoding)
    assert "größe" in said or "gr\\xf6\\xdfe" in said
    assert Path("c.csv").read_text(encoding="utf-8").splitlines()[0].split(",") == names
    report = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert report["feature_names"] == names


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="file names of bytes")
def test_a_file_name_that_is_no_text(folder):
    name = os.fsdecode(b"d\xff.csv")
    os.rename("data.csv", name)
    done = orthobcd("sparse-pca", name, *COMMANDS["sparse-pca"], "--report", "r.json")
    assert done.returncode == 0, done.stderr
    assert json.loads(Path("r.json").read_text(encoding="utf-8"))["data"] == name


@pytest.mark.parametrize("name", ["table.txt", "components.png"])
def test_the_demo_replaces_neither_data_nor_files(name, folder, capsys, monkeypatch):
    def work(*arguments: object, **options: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr("orthobcd.demo.compare", work)
    write_table(Path(name))
    before = Path(name).read_bytes()
    for arguments, reason in (
        ([name, "--out", ".", "--force"], "which is read"),
        (["data.csv", "--out", "."], "--force"),
        (["data.csv", "--out", "data.csv"], "File exists"),
    ):
        assert cli.main(["demo", *arguments]) == 2
        assert reason in capsys.readouterr().err
        assert Path(name).read_bytes() == before
