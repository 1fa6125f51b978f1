"""The type hints are right: documented calls pass mypy --strict, wrong calls fail."""

from __future__ import annotations

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


@pytest.fixture(scope="module")
def errors(tmp_path_factory) -> set[tuple[str, int]]:
    """Files and lines with errors, of one run of mypy on both files."""
    pytest.importorskip("mypy")
    return mypy_errors(tmp_path_factory.mktemp("mypy"))


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
