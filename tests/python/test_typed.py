"""The type hints are right: documented calls pass mypy --strict and pyright, wrong calls fail."""

from __future__ import annotations

import importlib.util
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import SAFE_PATH

HERE = Path(__file__).parent / "typed"
ACCEPTED, REJECTED = HERE / "accepted.py", HERE / "rejected.py"


def mypy(path: Path, folder: Path) -> set[int]:
    """Lines with errors."""
    config = folder / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\n[mypy-scipy.*]\nignore_missing_imports = True\n")
    options = ["--config-file", config, "--cache-dir", folder / "cache", "--no-error-summary"]
    command = [sys.executable, *SAFE_PATH, "-m", "mypy", *options, path]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert answer.returncode in (0, 1), answer.stdout + answer.stderr
    return {int(line) for line in re.findall(r"\.py:(\d+): error", answer.stdout)}


def pyright(path: Path, folder: Path) -> set[int]:
    """Lines with errors."""
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    command = [sys.executable, *SAFE_PATH, "-m", "basedpyright", "--outputjson", "-p", folder]
    command += ["--pythonpath", sys.executable, path]
    answer = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, cwd=folder, check=False
    )
    found = json.loads(answer.stdout)["generalDiagnostics"]
    return {d["range"]["start"]["line"] + 1 for d in found if d["severity"] == "error"}


CHECKERS = {"mypy": mypy, "basedpyright": pyright}


@pytest.fixture(params=CHECKERS)
def checker(request):
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return CHECKERS[request.param]


@pytest.mark.timeout(600)
def test_documented_calls_are_accepted(checker, tmp_path):
    assert checker(ACCEPTED, tmp_path) == set()


@pytest.mark.timeout(600)
def test_wrong_calls_are_rejected(checker, tmp_path):
    lines = REJECTED.read_text().splitlines()
    wrong = {k for k, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(wrong) >= 15
    assert checker(REJECTED, tmp_path) == wrong


def test_documented_calls_run():
    assert len(re.findall(r"\bob\.\w+\(", ACCEPTED.read_text())) >= 30
    runpy.run_path(str(ACCEPTED))
