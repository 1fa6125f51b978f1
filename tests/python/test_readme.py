"""The code of README.md, of the first page of the site and of the docstrings runs."""

from __future__ import annotations

import doctest
import importlib
import re

import pytest

import orthobcd

from .conftest import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(name: str) -> list[str]:
    return BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))


PAGES = ["README.md", "docs/index.md", "docs/hyperbolic.md", "docs/ultrahyperbolic.md"]


@pytest.mark.parametrize("page", PAGES)
def test_there_is_a_python_example(page):
    assert blocks(page)


@pytest.mark.parametrize(
    ("page", "index"), [(page, k) for page in PAGES for k in range(len(blocks(page)))]
)
def test_pages(page, index, tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks(page)[index], f"{page} block {index}", "exec"), {})


@pytest.mark.parametrize(
    "module", ["orthobcd", "orthobcd._solve", "orthobcd.problems", "orthobcd.estimators"]
)
def test_docstrings(module):
    failed, _ = doctest.testmod(importlib.import_module(module), raise_on_error=False)
    assert failed == 0


def test_the_wheel_is_tested():
    """Not the source tree: the package must come from where it was installed."""
    assert (
        ROOT / "python"
        not in importlib.import_module("pathlib").Path(orthobcd.__file__).resolve().parents
    )


def test_everything_public_is_documented():
    for name in orthobcd.__all__:
        if not name.startswith("__"):
            assert getattr(orthobcd, name).__doc__, name
