"""The layers of the packages: imports have no cycle, files and functions are short."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from .conftest import ROOT

PACKAGES = [ROOT / "python" / "orthobcd", ROOT / "benchmarks" / "orthobcd_bench"]
ROOMS = (
    "_core",
    "_internal",
    "penalties",
    "objectives",
    "derivatives",
    "problems",
    "solvers",
    "result",
    "hyperbolic",
    "certificate",
    "solving",
    "regularization",
    "rotation",
    "kg",
    "io",
    "sklearn",
    "anndata",
    "plot",
    "demo",
    "cli",
    "__main__",
)
"""The modules of the package in order: each imports only modules before it."""

FILES = sorted([f for p in PACKAGES for f in p.rglob("*.py")])


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imported(tree: ast.Module, package: list[str]) -> set[str]:
    """Modules of the package that a module imports relatively, at its top or inside functions."""
    found = set()
    waiting = [node for node in tree.body if not is_for_types(node)]
    while waiting:
        node = waiting.pop()
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            stem = [*base, *(node.module.split(".") if node.module else [])]
            found |= {".".join([*stem, alias.name]) for alias in node.names}
            found.add(".".join(stem))
    return found


def graph_of(root: Path) -> dict[str, set[str]]:
    """The modules of a package and what each imports of it; without the package itself."""
    modules = {}
    for path in root.rglob("*.py"):
        parts = list(path.relative_to(root.parent).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = imported(ast.parse(path.read_text(encoding="utf-8")), parts[:-1])
    # The root package is excluded: users import it, and modules may read its version.
    del modules[root.name]
    return {name: (uses & set(modules)) - {name} for name, uses in modules.items()}


@pytest.mark.parametrize("root", PACKAGES, ids=lambda p: p.name)
def test_imports_make_no_circle(root):
    TopologicalSorter(graph_of(root)).prepare()


def test_nothing_runs_back_up():
    for name, uses in graph_of(PACKAGES[0]).items():
        room = ROOMS.index(name.split(".")[1])
        assert all(ROOMS.index(used.split(".")[1]) <= room for used in uses), (name, uses)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_files_and_functions_are_short(path: Path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 600
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            begin = node.body[0].end_lineno if ast.get_docstring(node) else node.lineno
            assert node.end_lineno - begin <= 80, node.name


def test_scripts_import_names_that_their_neighbours_define():
    """A script of the benchmarks runs seldom, so nothing else tells that its import is gone."""
    trees = {
        path.stem: ast.parse(path.read_text(encoding="utf-8"))
        for path in (ROOT / "benchmarks" / "scripts").glob("*.py")
    }
    found = 0
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in trees:
                defined = {
                    target.id if isinstance(target, ast.Name) else getattr(target, "name", None)
                    for at in ast.walk(trees[node.module])
                    for target in (at, *getattr(at, "targets", ()), getattr(at, "target", None))
                }
                for alias in node.names:
                    found += 1
                    assert alias.name in defined, (name, node.module, alias.name)
    assert found > 5
