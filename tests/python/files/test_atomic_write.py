"""Files are written as a whole or not at all, by `write_components` too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from orthobcd import io as files
from orthobcd._internal.writing import replacing, write_text

from ..conftest import SAFE_PATH

A = np.random.default_rng(0).standard_normal((12, 4)).round(6)
NAMES = ["height", "width", "depth", "weight"]

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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_killed_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "components.csv"
    path.write_text("old")
    with subprocess.Popen(
        [sys.executable, *SAFE_PATH, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "writing\n"
        child.send_signal(signal.SIGKILL)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2
    # The next writer overwrites what the killed one left.
    write_text(path, "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["components.csv"]
    assert path.read_text() == "new"


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
