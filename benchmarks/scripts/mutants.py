"""Mutants of the Python package: small changes of the code, each of which must fail a test.

``python benchmarks/scripts/mutants.py --count 160`` (needs the installed package and the test
dependencies) takes a random sample of changes (a comparison, a constant, an operator, a condition)
in the modules of `PARTS`. Each change is written to a copy of the installed package, and the tests
of the module that are not ``slow`` run until one fails. The script prints the score by module, and
the mutants that survive. ``--only PATH:LINE`` runs the mutants of one line.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import copy
import importlib
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).parents[2]

PARTS = {
    "_internal/checks.py": "input door result",
    "_internal/reading.py": "files input saved_components tables_by_batches",
    "certificate.py": "certify",
    "io": "files saved_components tables_by_batches knowledge_graphs cli_streaming hostile_files",
    "sklearn": "--quick moment_fits choices row_moments estimators regularization row_blocks "
    "around_a_fit adapters dask precision input tables_by_batches",
}
"""Files or folders of the package, and the tests that must detect a change."""

LIBRARIES = (
    "h5py",
    "matplotlib.pyplot",
    "pandas",
    "pyarrow.parquet",
    "scipy.sparse.linalg",
    "sklearn.utils.estimator_checks",
)
"""Libraries that the tests import, without packages with plugins of pytest."""

PATIENCE = 4.0
"""Time after which a mutant counts as detected, relative to the time of the unchanged tests."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """The changes of one node."""
    other = copy.deepcopy(node)
    if isinstance(other, ast.Compare) and len(other.ops) == 1:
        other.ops = [COMPARISONS[type(other.ops[0])]()]
        yield other
    elif isinstance(other, ast.BoolOp):
        other.op = ast.Or() if isinstance(other.op, ast.And) else ast.And()
        yield other
    elif isinstance(other, ast.BinOp) and type(other.op) in OPERATORS:
        other.op = OPERATORS[type(other.op)]()
        yield other
    elif isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.Not):
        yield other.operand
    elif isinstance(other, ast.Constant) and isinstance(other.value, bool):
        other.value = not other.value
        yield other
    elif isinstance(other, ast.Constant) and isinstance(other.value, (int, float)):
        other.value = other.value + 1 if other.value < 1e3 else other.value * 2
        yield other
    elif isinstance(other, (ast.If, ast.IfExp)):
        other.test = ast.UnaryOp(ast.Not(), other.test)
        yield other


class Spots(ast.NodeVisitor):
    """Nodes that can change, without texts, types and imports for types."""

    def __init__(self) -> None:
        self.found: list[ast.AST] = []

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, (ast.JoinedStr, ast.AnnAssign, ast.arg, ast.Raise, ast.Import)):
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                self.visit(node.value)
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        self.found.append(node)
        for name, child in ast.iter_fields(node):
            if name in ("returns", "decorator_list"):
                continue
            for one in child if isinstance(child, list) else [child]:
                if isinstance(one, ast.AST):
                    self.visit(one)


class Replace(ast.NodeTransformer):
    """Replaces one node by another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else super().generic_visit(node)


class Mutant:
    """One change of a module; without ``old`` the module as it is."""

    def __init__(
        self, part: str, path: Path, old: ast.AST | None = None, new: ast.AST | None = None
    ) -> None:
        self.part, self.path, self.old, self.new = part, path, old, new
        self.text = f"{path.as_posix()}:"
        if old is not None and new is not None:
            shown = (ast.unparse(node).partition("\n")[0] for node in (old, new))
            self.text += f"{getattr(old, 'lineno', 0)}  {'  ->  '.join(shown)}"

    def code(self, tree: ast.Module) -> str:
        """The code of the changed module; the module ``tree`` is not changed."""
        if self.old is None or self.new is None:
            return ast.unparse(tree)
        # A deep copy of the tree, except for the node ``self.old``.
        copied = copy.deepcopy(tree, {id(self.old): self.old})
        return ast.unparse(Replace(self.old, self.new).visit(copied))


def mutants(package: Path, trees: dict[Path, ast.Module]) -> Iterator[Mutant]:
    """All mutants of the modules of `PARTS`; puts the modules into ``trees``."""
    for part in PARTS:
        whole = package / part
        for path in sorted(whole.rglob("*.py")) if whole.is_dir() else [whole]:
            inside = path.relative_to(package)
            tree = trees[inside] = ast.parse(path.read_text(encoding="utf-8"))
            spots = Spots()
            spots.visit(tree)
            for old in spots.found:
                for new in changed(old):
                    yield Mutant(part, inside, old, new)


def noticed(
    mutant: Mutant, package: Path, trees: dict[Path, ast.Module], seconds: float = math.inf
) -> bool:
    """True if the tests, in a new process, fail or take more than ``seconds``."""
    path = package / mutant.path
    known = path.read_text(encoding="utf-8")
    path.write_text(mutant.code(trees[mutant.path]), encoding="utf-8")
    child = os.fork()
    if child == 0:
        os.setsid()
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
        names = PARTS[mutant.part].split()
        tests = [name if name[0] == "-" else f"tests/python/test_{name}.py" for name in names]
        options = [
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "not timing and not long and not slow",
        ]
        code = 1
        with contextlib.suppress(BaseException):
            code = int(pytest.main([*options, *tests]))
        os._exit(min(code, 100))
    until = time.monotonic() + seconds
    status = None
    while status is None and time.monotonic() < until:
        ended, found = os.waitpid(child, os.WNOHANG)
        status = found if ended else None
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
    path.write_text(known, encoding="utf-8")
    return status is None or status != 0


def main() -> None:
    """Runs the sample and prints the score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=160)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--only", help="PATH:LINE")
    options = parser.parse_args()
    counts: collections.Counter[tuple[str, bool]] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "orthobcd"
        shutil.copytree(INSTALLED, package, ignore=shutil.ignore_patterns("__pycache__"))
        os.environ["PYTHONPATH"] = folder
        sys.path.insert(0, folder)
        trees: dict[Path, ast.Module] = {}
        all_of = [one for one in mutants(package, trees) if one.part in options.parts.split(",")]
        if options.only:
            sample = [one for one in all_of if one.text.startswith(f"{options.only}  ")]
        else:
            sample = random.Random(options.seed).sample(all_of, min(options.count, len(all_of)))
        os.chdir(ROOT)
        seconds = {}
        for part in {one.part: one for one in sample}.values():
            begun = time.monotonic()
            if noticed(Mutant(part.part, part.path), package, trees):
                raise RuntimeError(f"the tests of {part.part} fail without a change")
            seconds[part.part] = PATIENCE * (time.monotonic() - begun)
        for mutant in sample:
            found = noticed(mutant, package, trees, seconds[mutant.part])
            counts[mutant.part, found] += 1
            if not found:
                print(mutant.text, flush=True)
    print(f"\n{len(all_of)} mutants\n\n| part | sample | noticed |\n|---|---|---|")
    for part in PARTS:
        killed, survived = counts[part, True], counts[part, False]
        print(f"| {part} | {killed + survived} | {killed} |")
    killed = sum(count for (_, found), count in counts.items() if found)
    print(f"| all | {counts.total()} | {killed} ({killed / counts.total():.0%}) |")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    import pytest

    # The imports of the tests take seconds: they are done once, before the mutants fork.
    for name in LIBRARIES:
        importlib.import_module(name)
    INSTALLED = next(
        p / "orthobcd" for p in map(Path, sys.path) if (p / "orthobcd/_core.pyi").exists()
    )
    main()
