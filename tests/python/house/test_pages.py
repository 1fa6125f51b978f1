"""The code of README.md, of each page of the documentation and of the docstrings runs."""

from __future__ import annotations

import contextlib
import doctest
import enum
import gzip
import importlib
import importlib.util
import inspect
import io
import re
from pathlib import Path

import pytest

import orthobcd

from ..conftest import ROOT
from .printed import check_printed

BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def blocks(name: str) -> list[tuple[str, str]]:
    """Code, and the output that the page shows below it."""
    return BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))


FILES = sorted((ROOT / "docs").rglob("*.md"))
GUIDE = (ROOT / "docs/guide.md").read_text(encoding="utf-8")

PAGES = [
    name
    for name in ("README.md", *(path.relative_to(ROOT).as_posix() for path in FILES))
    if blocks(name)
]
"""Pages with Python code."""


def test_pages_with_code_are_found():
    assert {"docs/index.md", "docs/own-objective.md", "docs/migrating.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_pages(page, tmp_path, monkeypatch):
    """The blocks of a page run one after the other; they may use what earlier ones define.

    Each prints what the page shows below it, and nothing where the page shows nothing. Numbers
    are compared up to 10 % or one unit of the last digit that is shown, counts exactly.
    """
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for index, (block, shown) in enumerate(blocks(page)):
        missing = [
            name
            for name in re.findall(r"^(?:import|from) (\w+)", block, re.MULTILINE)
            if importlib.util.find_spec(name) is None
        ]
        if missing == ["torch"]:  # the tests do not install torch
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block, f"{page} block {index}", "exec"), names)
        check_printed(out.getvalue(), shown)


def test_the_long_blocks_run_on_a_small_graph(tmp_path, monkeypatch):
    """Those of knowledge graphs, which take minutes on the graphs that they name."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/knowledge-graphs.md").read_text(encoding="utf-8")
    long = re.findall(r"^```\{code-block\} python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(long) == 2
    for block in long:
        (graph,) = re.findall(r'f"(\w+)_{part}\.tsv\.gz"', block)
        for part in ("train", "valid", "test"):
            lines = [f"{k}\tr{k % 2}\t{(k + 1) % 300}\n" for k in range(300)]
            Path(f"{graph}_{part}.tsv.gz").write_bytes(gzip.compress("".join(lines).encode()))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block, "knowledge-graphs.md", "exec"), {"ob": orthobcd})
        assert "all " in out.getvalue()


USERS = ["index", "guide", "benchmarks", *re.findall(r"^[\w-]+$", GUIDE, re.MULTILINE)]
"""Pages for users: the front page, the guide and the benchmarks."""

MOST_WORDS = 14_000
"""Most words of the pages for users, tables and code included."""


def test_the_pages_for_users_are_short():
    texts = [(ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in USERS]
    assert len(texts) > 20
    assert sum(len(text.split()) for text in texts) <= MOST_WORDS


@pytest.mark.parametrize("page", FILES, ids=[path.stem for path in FILES])
def test_a_page_begins_with_a_paragraph(page):
    """Not with a table, code or another title; an included page is that of another file."""
    text = page.read_text(encoding="utf-8")
    assert re.match(r"# [^\n]+\n\n[^\s#|]", text) or text.startswith("```{include}")
    assert not re.match(r"# [^\n]+\n\n```", text)
    # Sphinx writes pages of its own under these names, and pages of the site below them are lost.
    assert page.stem not in {"search", "genindex"}


@pytest.mark.parametrize("page", FILES, ids=[path.stem for path in FILES])
def test_files_that_a_page_names_exist(page):
    """By their path in the repository, in `src` or in the package, or by their name alone."""
    if "results" in page.parts:  # of the day of the measurement
        return
    for name in re.findall(r"`([\w./-]+\.(?:rs|py))`", page.read_text(encoding="utf-8")):
        found = any((ROOT / base / name).exists() for base in (".", "src", "python/orthobcd"))
        for folder in ("src", "python", "tests", "benchmarks"):
            found |= "/" not in name and any((ROOT / folder).rglob(name))
        assert found, name


PACKAGE = Path(orthobcd.__file__).parent

EXAMPLES = sorted(
    path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
    for path in PACKAGE.rglob("*.py")
    if re.search(r"^ *>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
)
"""Modules with examples in their docstrings."""


def test_there_are_docstrings_with_examples():
    assert {"solving", "certificate", "sklearn.sparse_pca", "io.matrices"} <= set(EXAMPLES)


@pytest.mark.parametrize("module", EXAMPLES)
def test_docstrings(module, tmp_path, monkeypatch):
    draws = module == "plot" or "plot()" in examples_of(module)
    monkeypatch.chdir(tmp_path)
    found = importlib.import_module(f"orthobcd.{module}")
    lines = re.findall(r"^ *>>> ", inspect.getsource(found), re.MULTILINE)
    result = doctest.testmod(found)
    if draws:
        importlib.import_module("matplotlib.pyplot").close("all")
    assert result == (0, len(lines))


def examples_of(module: str) -> str:
    """The lines of examples in a module of the package."""
    path = PACKAGE / f"{module.replace('.', '/')}.py"
    return "\n".join(re.findall(r"^ *(?:>>>|\.\.\.) .*", path.read_text(encoding="utf-8"), re.M))


def test_the_wheel_is_tested():
    """Not the source tree: the package must come from where it was installed."""
    assert ROOT / "python" not in Path(orthobcd.__file__).resolve().parents


SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", re.M | re.S)
NAMES = re.compile(r"^\*{0,2}(\w+(?:, \w+)*)(?: : .+)?$", re.MULTILINE)
MODULES = ["", "plot", *orthobcd.MODULES]
INTERNAL = {"__version__", "plot", "DISTANCE_EPSILON", "Penalty"}
"""Names without an example: a number, a module, a constant, a base."""


def home_of(module: str) -> object:
    return importlib.import_module(f"orthobcd.{module}" if module else "orthobcd")


PUBLIC = {
    name: getattr(home_of(module), name)
    for module in MODULES
    for name in home_of(module).__all__
    if name not in INTERNAL
}
"""Every public name of the package once, with its object."""
REFERENCE = "\n".join(path.read_text() for path in sorted((ROOT / "docs/api").glob("*.md")))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_a_page_and_an_example(name):
    """In the reference once, with an example (which `test_docstrings` runs)."""
    entries = re.findall(rf"^\.\. auto\w+:: orthobcd\.(?:\w+\.)*{name}$", REFERENCE, re.M)
    assert len(entries) == 1
    assert "\n>>> " in inspect.getdoc(PUBLIC[name])


def test_the_top_level_is_short():
    assert len(orthobcd.__all__) <= 50


@pytest.mark.parametrize("name", PUBLIC)
def test_every_argument_is_documented(name):
    """Each parameter stands in a section of the docstring (attributes in that of a result)."""
    thing = PUBLIC[name]
    assert "__doc__" in vars(thing) or inspect.isfunction(thing), "its own, not its base's"
    text = inspect.getdoc(thing)
    assert not text.startswith(f"{name}("), "what dataclass() writes where there is none"
    if inspect.isclass(thing) and issubclass(thing, (UserWarning, ValueError)):
        return
    if inspect.isclass(thing) and issubclass(thing, enum.Enum):
        source = inspect.getsource(thing)
        for member in thing:
            assert re.search(rf'^    {member.name} = .+\n    """\S', source, re.M), member
        return
    documented = {
        argument
        for title, section in SECTION.findall(text)
        if title in {"Parameters", "Attributes"}
        for group in NAMES.findall(section)
        for argument in group.split(", ")
    }
    if name != "Problem":  # a protocol has no constructor
        assert documented >= set(inspect.signature(thing).parameters)


def methods(thing: type) -> dict[str, object]:
    """Public methods of a class that this package defines, inherited ones too."""
    found = {}
    for name in dir(thing):
        value = inspect.getattr_static(thing, name)
        function = getattr(value, "__func__", value)
        own = inspect.isfunction(function) and function.__module__.startswith("orthobcd")
        if own and not name.startswith("_"):
            found[name] = function
    return found


CLASSES = [name for name, thing in PUBLIC.items() if inspect.isclass(thing)]

ON_A_PAGE = {"from_jax", "from_torch"}
"""Methods whose examples are on the page of objectives, because they need optional packages."""

NEVER_RAISE = {"get_params", "nearest", "index_at_most"}
"""Methods that accept every value of their arguments."""

SHOWN = "\n".join(map(examples_of, EXAMPLES))
"""Every line of an example."""


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_is_documented_and_shown(name):
    """Each has its parameters, its errors if it has parameters, and a call in an example."""
    thing = PUBLIC[name]
    for method, function in methods(thing).items():
        text = inspect.getdoc(getattr(thing, method))  # its own, or that of a base class
        arguments = [a for a in inspect.signature(function).parameters if a not in {"self", "cls"}]
        sections = dict(SECTION.findall(text))
        listed = {
            argument
            for group in NAMES.findall(sections.get("Parameters", ""))
            for argument in group.split(", ")
        }
        assert listed >= set(arguments), f"{name}.{method}"
        assert not arguments or "Raises" in sections or method in NEVER_RAISE, f"{name}.{method}"
        page = (ROOT / "docs/own-objective.md").read_text(encoding="utf-8")
        where = page if method in ON_A_PAGE else SHOWN
        assert f".{method}(" in where, f"{name}.{method}"
