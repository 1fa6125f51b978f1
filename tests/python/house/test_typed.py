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

from ..conftest import SAFE_PATH

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "typed"
ACCEPTED, REJECTED = HERE / "accepted.py", HERE / "rejected.py"


def mypy_errors(folder: Path) -> set[tuple[str, int]]:
    config = folder / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\n[mypy-scipy.*]\nignore_missing_imports = True\n")
    options = ["--config-file", config, "--cache-dir", folder / "cache", "--no-error-summary"]
    command = [sys.executable, *SAFE_PATH, "-m", "mypy", *options, ACCEPTED, REJECTED]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert answer.returncode in (0, 1), answer.stdout + answer.stderr
    found = re.findall(r"^(.+\.py):(\d+): error", answer.stdout, re.MULTILINE)
    return {(Path(name).name, int(line)) for name, line in found}


def pyright_errors(folder: Path) -> set[tuple[str, int]]:
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    command = [sys.executable, *SAFE_PATH, "-m", "basedpyright", "--outputjson", "-p", folder]
    command += ["--pythonpath", sys.executable, ACCEPTED, REJECTED]
    answer = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, cwd=folder, check=False
    )
    found = [d for d in json.loads(answer.stdout)["generalDiagnostics"] if d["severity"] == "error"]
    return {(Path(d["file"]).name, d["range"]["start"]["line"] + 1) for d in found}


CHECKERS = {"mypy": mypy_errors, "basedpyright": pyright_errors}


@pytest.fixture(
    scope="module", params=["mypy", pytest.param("basedpyright", marks=pytest.mark.long)]
)
def errors(request, tmp_path_factory) -> set[tuple[str, int]]:
    """Files and lines with errors, of one run of a checker on both files."""
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return CHECKERS[request.param](tmp_path_factory.mktemp(request.param))


@pytest.mark.timeout(600)
def test_documented_calls_are_accepted(errors):
    assert {line for name, line in errors if name == ACCEPTED.name} == set()


@pytest.mark.timeout(600)
def test_wrong_calls_are_rejected(errors):
    lines = REJECTED.read_text().splitlines()
    wrong = {k for k, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(wrong) >= 15
    assert {name for name, _ in errors} == {REJECTED.name}
    assert {line for _, line in errors} == wrong


def test_documented_calls_run():
    assert len(re.findall(r"\bob\.\w+\(", ACCEPTED.read_text())) >= 30
    runpy.run_path(str(ACCEPTED))
