"""The layers of the packages: imports without a cycle, names of one module, short ways."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from ..conftest import ROOT

PACKAGES = [ROOT / "python" / "orthobcd", ROOT / "benchmarks" / "orthobcd_bench"]
ROOMS = (
    "_core",
    "_internal",
    "data",
    "penalties",
    "objectives",
    "derivatives",
    "problems",
    "solvers",
    "result",
    "hyperbolic",
    "solving",
    "certificate",
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

STATIONS = [
    ({"n_nonzero": 20}, 8, 94),
    ({"alpha": 0.2}, 8, 91),
    ({"penalty": "l1", "n_nonzero": 20}, 9, 92),
]
"""Options, and the largest numbers of files and functions that `SparsePCA.fit` then passes."""

WITHOUT_PUBLIC_NAME = {
    "_core": "the compiled core, which tests replace or call for a part of it",
    "replacing": "a file that is half written",
    "write_text": "a file that is half written",
    "LONGEST": "longest names of features in pictures",
    "shortened": "names in pictures",
    "shortened_names": "names in pictures",
    "_evaluate": "precision that the core reads of a function",
}
"""Private names of the package that tests use, and what no public name shows."""

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


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def defined(tree: ast.Module) -> set[str]:
    """Private names that a module defines: functions, classes, variables, attributes of self."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return set(filter(private, found))


TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
DEFINED = {path: defined(tree) for path, tree in TREES.items()}
TESTS = {
    path: ast.parse(path.read_text(encoding="utf-8"))
    for path in (ROOT / "tests" / "python").rglob("*.py")
}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_no_module_uses_private_names_of_another(path: Path):
    """Private modules aside. An object of another module has its public names alone, too."""
    others = set().union(*(names for other, names in DEFINED.items() if other != path))
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.ImportFrom) and node.level:
            names = {alias.name for alias in node.names} - {"_core", "_internal"}
            assert not any(map(private, names)), (node.lineno, names)
        if isinstance(node, ast.Attribute) and private(node.attr):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "model")
            own |= isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "super"
            known = own or node.attr in DEFINED[path] or node.attr not in others
            # The core reads these names of every function.
            known |= node.attr in ("_evaluate", "_product")
            assert known, (node.lineno, node.attr)


def private_uses(tree: ast.Module) -> set[str]:
    """Private names of the package that a test imports, reads of an object or replaces.

    Names with an underscore at the end are those of Jupyter.
    """
    names, imported = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("orthobcd"):
            own = {alias.name for alias in node.names}
            imported |= own if "_internal" in node.module else set(filter(private, own))
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("attr"):
            names |= {arg.value for arg in node.args if isinstance(arg, ast.Constant)}
    others = set().union(*DEFINED.values()) - defined(tree)
    return imported | {n for n in names & others if private(n) and not n.endswith("_")}


def test_tests_use_public_names():
    """So that the package can change inside without a change of its tests."""
    used = set()
    for path, tree in TESTS.items():
        found = private_uses(tree)
        assert found <= set(WITHOUT_PUBLIC_NAME), (path, found - set(WITHOUT_PUBLIC_NAME))
        used |= found
    assert used == set(WITHOUT_PUBLIC_NAME)


def test_each_public_name_has_a_file_of_tests():
    """The docstring of a file has the names that are tested there."""
    found = set()
    for path, tree in TESTS.items():
        if path.name.startswith("test_"):
            said = re.findall(r"`([\w.]+)`", ast.get_docstring(tree) or "")
            used = {getattr(n, "attr", getattr(n, "id", "")) for n in ast.walk(tree)}
            used |= {n.name for n in ast.walk(tree) if isinstance(n, ast.alias)}
            found |= used & {name.rpartition(".")[2] for name in said}
    for module in ("", ".hyperbolic", ".io", ".kg", ".plot"):
        names = set(importlib.import_module(f"orthobcd{module}").__all__) - {"plot", "Problem"}
        assert names <= found, (module, names - found)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_estimators_have_types(path: Path):
    """A function that takes any estimator reads and writes what no type checker sees."""
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.arg) and node.arg in ("estimator", "pca", "nmf"):
            assert node.annotation is not None, node.lineno
            assert ast.unparse(node.annotation) != "Any", (node.lineno, node.arg)


@pytest.mark.parametrize(("options", "files", "functions"), STATIONS)
def test_a_fit_passes_few_stations(options, files, functions):
    """Files of the package that a reader visits between `fit` and the core."""
    import numpy as np

    import orthobcd as ob

    home = str(Path(ob.__file__).parent)
    X = np.random.default_rng(0).standard_normal((50, 12))
    pca = ob.SparsePCA(3, random_state=0, **options)
    passed = set()

    def note(frame, event, argument):
        code = frame.f_code
        # comprehensions are no functions that a reader visits; Python 3.12 has no frames of them
        ours = code.co_filename.startswith(home) and not code.co_name.startswith("<")
        if event == "call" and ours:
            passed.add((code.co_filename, code.co_name))

    sys.setprofile(note)
    try:
        pca.fit(X)
    finally:
        sys.setprofile(None)
    assert len({file for file, _ in passed}) <= files
    assert len(passed) <= functions


def test_scripts_import_no_neighbour():
    """A script of the benchmarks runs seldom, so nothing else tells that such an import is gone."""
    paths = list((ROOT / "benchmarks" / "scripts").glob("*.py"))
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.module not in {other.stem for other in paths}, (path, node.module)


def test_each_constant_of_the_crate_has_a_comment_of_its_own():
    """A comment above several constants does not say which of its clauses is whose."""
    for path in (ROOT / "src").rglob("*.rs"):
        if "tests" in path.relative_to(ROOT).as_posix():
            continue
        lines = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests {")[0].split("\n")
        for at, line in enumerate(lines):
            if found := re.match(r"(?:pub(?:\([^)]*\))? )?const ([A-Z_0-9]+):", line):
                above = [text for text in lines[:at] if not text.startswith("#[")]
                assert above[-1].startswith("///"), (path, found[1])
