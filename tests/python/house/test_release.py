"""Requirements of a release: consistent values, absolute links, pinned actions, reachable pages."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest

import orthobcd

from ..conftest import ROOT

tomllib = pytest.importorskip("tomllib")


@pytest.fixture(scope="module")
def owner():
    spec = importlib.util.spec_from_file_location("owner", ROOT / "tools/owner.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_files_show_the_values_of_the_owner(owner):
    for name in owner.FIELDS:
        assert owner.filled(name, owner.values()) == (ROOT / name).read_text("utf-8"), name


def test_another_owner_changes_every_file(owner):
    known = {key: f"{value.replace('OWNER', 'somebody')}x" for key, value in owner.values().items()}
    for name, fields in owner.FIELDS.items():
        text = owner.filled(name, known)
        assert text != (ROOT / name).read_text("utf-8"), name
        assert all(known[key] in text for _, key in fields), name
        assert owner.PLACEHOLDER not in text, name


def test_a_release_with_placeholders_is_refused(owner):
    placeholders = any(owner.PLACEHOLDER in value for value in owner.values().values())
    if placeholders:
        with pytest.raises(SystemExit, match="must be set"):
            owner.main(["--release"])
    else:
        owner.main(["--release"])


def test_the_readme_of_the_package_index_has_absolute_links_to_what_exists(owner):
    text = (ROOT / "README.md").read_text("utf-8")
    links = owner.LINK.findall(text)
    assert len(links) > 8
    for link in links:
        assert (ROOT / link.partition("#")[0]).is_file(), link
    known = owner.values() | {"repository": "https://github.com/a/b", "documentation": "https://c"}
    whole = owner.absolute(text, known)
    assert not owner.LINK.findall(whole)
    assert "](https://c/how-it-works.html)" in whole
    assert f"](https://raw.githubusercontent.com/a/b/v{orthobcd.__version__}/docs/images/" in whole


def test_the_version_stands_in_one_place(owner):
    version = owner.values()["version"]
    assert orthobcd.__version__ == version
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert "version" in project["dynamic"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text("utf-8"))["package"]
    assert [p["version"] for p in lock if p["name"] == "orthobcd"] == [version]


def test_this_python_is_in_the_classifiers():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda p: p.name
)
def test_workflows_pin_actions_and_permissions(path):
    text = path.read_text("utf-8")
    uses = re.findall(r"uses: (.+)$", text, re.MULTILINE)
    assert uses
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", one) for one in uses), uses
    assert "\npermissions: {}\n" in text
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


PAGE = re.compile(r"\]\(([\w/-]+\.md)(?:#[\w-]+)?\)")
TOC = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)


def linked(page: str) -> set[str]:
    """Pages that a page of the manual links to, in its text or in a list of contents."""
    folder = (ROOT / "docs" / page).parent
    text = (ROOT / "docs" / page).read_text("utf-8")
    found = {folder / link for link in PAGE.findall(text)}
    for block in TOC.findall(text):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                name = re.sub(r".*<(.*)>", r"\1", line)
                found |= set(folder.glob(f"{name}.md"))
    return {path.resolve().relative_to(ROOT / "docs").as_posix() for path in found}


QUESTIONS = (
    *("how-many-loadings", "own-objective", "bounds", "data", "start", "reading"),
    *("how-it-works", "citing", "install", "choosing", "migrating", "hyperbolic", "faq"),
    *("knowledge-graphs", "command-line", "symbols", "guarantees", "benchmarks", "papers"),
    *("theory", "architecture", "contributing", "changelog", "releasing", "searching"),
)


def test_every_question_is_two_clicks_from_the_front_page():
    first = linked("index.md")
    second = first.union(*(linked(page) for page in first))
    assert {f"{name}.md" for name in QUESTIONS} <= second


def test_every_page_is_reachable_and_every_link_leads_to_a_page():
    reached, front = {"index.md"}, {"index.md"}
    while front:
        front = set().union(*(linked(page) for page in front)) - reached
        assert all((ROOT / "docs" / page).is_file() for page in front), front
        reached |= front
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert reached == pages


MEASURED = sorted([*ROOT.glob("docs/results/*.md"), *ROOT.glob("benchmarks/results/*.md")])


@pytest.mark.parametrize("path", MEASURED, ids=[path.stem for path in MEASURED])
def test_measured_tables_have_a_date_and_a_command(path):
    text = path.read_text("utf-8")
    assert re.search(r"^Measured 20\d\d-\d\d-\d\d\b", text, re.MULTILINE)
    assert re.search(r"^ *(python|Rscript|cargo|orthobcd-bench) .", text, re.MULTILINE)
