"""The mutants of `mutants.py`: which changes there are, and which lines they concern."""

from __future__ import annotations

import ast
import collections
import copy
import inspect
import types
from collections.abc import Iterator
from pathlib import Path

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


def changes(node: ast.AST) -> Iterator[ast.AST]:
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


def lines(node: ast.AST) -> set[int]:
    """The lines of a node; of a statement with a condition those of the condition."""
    node = node.test if isinstance(node, (ast.If, ast.While)) else node
    return set(range(getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) + 1))


class Spots(ast.NodeVisitor):
    """Nodes that can change, without texts, types and imports for types.

    Each node comes with sets of lines: tests that execute a line of the first set must detect a
    change; where there are none, those of the second set, and so on.
    """

    def __init__(self, tree: ast.Module, length: int) -> None:
        self.found: list[tuple[ast.AST, list[set[int]]]] = []
        self.around = [set(range(1, length + 1))]
        self.readers: dict[str, set[int]] = collections.defaultdict(set)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.readers[node.id].add(node.lineno)
        self.visit(tree)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        skipped: tuple[str, ...] = ("returns", "decorator_list", "annotation")
        statement = isinstance(node, ast.stmt)
        if statement:
            names = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", 0)]
            constants = [name.id for name in names if isinstance(name, ast.Name)]
            if constants and len(self.around) == 1:
                self.around.append(set().union(*(self.readers[name] for name in constants)))
            else:
                self.around.append(lines(node))
        if isinstance(node, (ast.JoinedStr, ast.arg, ast.Raise, ast.Import)):
            skipped = node._fields
        else:
            self.found.append((node, [lines(node), *reversed(self.around)]))
        for name, child in ast.iter_fields(node):
            for one in child if isinstance(child, list) else [child]:
                if name not in skipped and isinstance(one, ast.AST):
                    self.visit(one)
        if statement:
            self.around.pop()


class Replace(ast.NodeTransformer):
    """Replaces one node by another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else super().generic_visit(node)


class Mutant:
    """One change of a module; `Spots` explains ``around``."""

    def __init__(
        self, part: str, path: str, old: ast.AST, new: ast.AST, around: list[set[int]]
    ) -> None:
        self.part, self.path, self.old, self.new, self.around = part, path, old, new, around
        shown = (ast.unparse(node).partition("\n")[0] for node in (old, new))
        place = f"{getattr(old, 'lineno', 0)}:{getattr(old, 'col_offset', 0)}"
        self.text = f"{path}:{place}  {'  ->  '.join(shown)}"

    def changed(self, tree: ast.Module) -> ast.Module:
        """The changed module, with the numbers of lines of ``tree``, which is not changed."""
        # A deep copy of the tree, except for the node ``self.old``.
        copied = copy.deepcopy(tree, {id(self.old): self.old})
        new = ast.copy_location(self.new, self.old)
        module = ast.fix_missing_locations(Replace(self.old, new).visit(copied))
        assert isinstance(module, ast.Module)
        return module


def mutants(
    package: Path, parts: tuple[str, ...], trees: dict[str, ast.Module]
) -> Iterator[Mutant]:
    """All mutants of files or folders of a package; puts the modules into ``trees``."""
    for part in parts:
        whole = package / part
        for path in sorted(whole.rglob("*.py")) if whole.is_dir() else [whole]:
            inside = path.relative_to(package).as_posix()
            text = path.read_text(encoding="utf-8")
            tree = trees[inside] = ast.parse(text)
            for old, around in Spots(tree, text.count("\n")).found:
                for new in changes(old):
                    yield Mutant(part, inside, old, new, around)


def functions(tree: ast.Module, name: str) -> Iterator[types.CodeType]:
    """The code of all functions of a module."""
    codes = [compile(tree, name, "exec", dont_inherit=True)]
    while codes:
        code = codes.pop()
        codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        if code.co_flags & inspect.CO_OPTIMIZED:
            yield code


def inner_lines(tree: ast.Module, name: str) -> set[int]:
    """The lines that run when functions of a module are called, without those that define them."""
    found = set()
    for code in functions(tree, name):
        own = {line for *_, line in code.co_lines() if line}
        found |= own - {code.co_firstlineno} or own
    return found
