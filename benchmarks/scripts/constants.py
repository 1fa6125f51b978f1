"""What the search loses with half and with twice the value of each of its constants.

``python benchmarks/scripts/constants.py build`` (needs cargo, maturin, tree-sitter and
tree-sitter-rust) builds a copy of the package in which each constant and each float literal of
`PARTS` is multiplied by a factor that an environment variable sets. Then

``ORTHOBCD_DATA=<folder> PYTHONPATH=out/constants/package python benchmarks/scripts/constants.py``

solves the problems of `leave_one_out.py` and limits on nonzeros and features, with counted work:
first as the search is, which records the constants that a problem reaches, then with each of these
halved and doubled. The table has a row for each constant: runs, those that ended higher and lower
(by more than 1e-6 of |F|), and the mean and worst change with half and with twice the value.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from objective_changes import SAME, relative

os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).parents[2]

PARTS = ("search", "heuristic", "cardinality", "support", "start", "riemann")
"""Folders of src whose constants are varied."""

NUMBERS = {"f64", "usize", "u32", "u64", "(f64, f64)", "[f64; 2]", "[f64; 3]", "[f64; 5]"}
NUMBERS |= {"[f64; 6]"}
"""Types of constants that are varied."""

PLAIN = {0.0, 0.5, 1.0, 2.0}
"""Values of literals that need no name, as in `code_lines.py`."""

SWITCH = """//! Multiplies one constant by a factor.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
static CHOICE: OnceLock<(u32, f64)> = OnceLock::new();

unsafe extern "C" {
    safe fn atexit(end: extern "C" fn()) -> i32;
}

/// A constant that is varied.
pub trait Scale {
    fn scale(self, factor: f64) -> Self;
}

impl Scale for f64 {
    fn scale(self, factor: f64) -> Self {
        self * factor
    }
}

impl Scale for (f64, f64) {
    fn scale(self, factor: f64) -> Self {
        (self.0 * factor, self.1 * factor)
    }
}

impl<const N: usize> Scale for [f64; N] {
    fn scale(self, factor: f64) -> Self {
        self.map(|value| value * factor)
    }
}

macro_rules! integers {
    ($($kind:ty),*) => {$(impl Scale for $kind {
        fn scale(self, factor: f64) -> Self {
            (self as f64 * factor).round().max(1.0) as $kind
        }
    })*};
}
integers!(usize, u32, u64);

#[inline]
pub fn scaled<T: Scale>(k: u32, value: T) -> T {
    let (active, factor) = *CHOICE.get_or_init(chosen);
    if active == 0 {
        REACHED[k as usize].store(true, Relaxed);
    }
    if active == k { value.scale(factor) } else { value }
}

fn chosen() -> (u32, f64) {
    let text = std::env::var("CONSTANT").unwrap_or_default();
    let Some((number, factor)) = text.split_once(' ') else {
        atexit(write);
        return (0, 1.0);
    };
    (number.parse().unwrap_or(0), factor.parse().unwrap_or(1.0))
}

/// Writes the constants that were reached.
extern "C" fn write() {
    let reached = (0..COUNT).filter(|&k| REACHED[k].load(Relaxed));
    let text = reached.map(|k| format!("{k}\\n")).collect::<String>();
    if let Ok(path) = std::env::var("CONSTANTS_REACHED") {
        let _ = std::fs::write(path, text);
    }
}
"""

UNCHANGED = {
    *("attribute_item", "inner_attribute_item", "const_item", "static_item", "const_block"),
    *(
        "macro_definition",
        "macro_invocation",
        "array_type",
        "type_item",
        "struct_item",
        "use_declaration",
    ),
    *(
        "enum_item",
        "line_comment",
        "block_comment",
        "match_pattern",
        "mod_item",
        "scoped_identifier",
    ),
}
"""Syntax that keeps its text."""

UNCHANGED_FIELDS = {"pattern", "type", "return_type", "length"}


def children(node: Any) -> Iterator[Any]:
    """A node and all nodes below it."""
    yield node
    for child in node.children:
        yield from children(child)


class Writer:
    """Writes files whose constants are multiplied by factors."""

    def __init__(self) -> None:
        import tree_sitter
        import tree_sitter_rust

        self.parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))
        self.names: list[str] = [""]
        self.numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """The number of a constant, from 1."""
        if name not in self.numbers:
            self.numbers[name] = len(self.names)
            self.names.append(name)
        return self.numbers[name]

    def parse(self, path: Path) -> Any:
        """The syntax tree of a file."""
        return self.parser.parse(path.read_bytes()).root_node

    def constants(self, path: Path) -> dict[str, str]:
        """The names of the constants that a file declares, with their values."""
        found = {}
        for node in children(self.parse(path)):
            kind = node.child_by_field_name("type") if node.type == "const_item" else None
            if kind is not None and kind.text.decode() in NUMBERS:
                name = node.child_by_field_name("name").text.decode()
                value = node.child_by_field_name("value")
                found[name] = value.text.decode() if value else ""
        return found

    def render(self, node: Any, known: dict[str, str], path: str) -> str:
        """The text of a node with factors."""
        if node.type in UNCHANGED:
            return str(node.text.decode())
        if not node.child_count:
            text = str(node.text.decode())
            if node.type == "identifier" and text in known:
                return f"crate::constants::scaled({self.number(known[text])}, {text})"
            if (
                node.type == "float_literal"
                and float(text.replace("_", "").replace("f64", "")) not in PLAIN
            ):
                k = self.number(f"{path}:{node.start_point.row + 1} {text}")
                return f"crate::constants::scaled({k}, {text})"
            return text
        pieces, end, skip = [], node.start_byte, False
        for index, child in enumerate(node.children):
            between = node.text[end - node.start_byte : child.start_byte - node.start_byte]
            pieces.append(between.decode())
            raw = skip or node.field_name_for_child(index) in UNCHANGED_FIELDS
            raw = raw or (node.type in ("field_pattern", "tuple_struct_pattern", "range_pattern"))
            pieces.append(child.text.decode() if raw else self.render(child, known, path))
            if child.type == "attribute_item":
                skip = skip or child.text in (b"#[cfg(test)]", b"#[test]")
            elif "comment" not in child.type:
                skip = False
            end = child.end_byte
        return "".join(pieces)


def copy(out: Path) -> list[str]:
    """Writes the copy of the package; returns the names of the constants by number."""
    writer = Writer()
    source = ROOT / "src"
    paths = [path for part in PARTS for path in sorted((source / part).rglob("*.rs"))]
    paths = [path for path in paths if path.name != "tests.rs"]
    own = {path: writer.constants(path) for path in paths}
    owners: dict[str, list[Path]] = defaultdict(list)
    for path, names in own.items():
        for name in names:
            owners[name].append(path)
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    for name in listed.stdout.split("\n")[:-1]:
        if name.startswith(("docs", "benchmarks", "tests")):
            continue
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name) not in own:
            data = (ROOT / name).read_bytes()
            if name == "src/lib.rs":
                data = data.replace(b"deny(unsafe_code)", b"allow(warnings)")
                data += b"\n#[doc(hidden)]\npub mod constants;\n"
            target.write_bytes(data)
    for path, names in own.items():
        shown = str(path.relative_to(source))
        known = {name: f"{shown} {name} = {value}" for name, value in names.items()}
        tree = writer.parse(path)
        for node in children(tree):
            if node.type != "use_declaration":
                continue
            for name in re.findall(r"\b[A-Z][A-Z_]+\b", node.text.decode()):
                if len(owners[name]) == 1:
                    owner = owners[name][0]
                    known[name] = f"{owner.relative_to(source)} {name} = {own[owner][name]}"
        (out / "src" / shown).write_text(writer.render(tree, known, shown), encoding="utf-8")
    text = SWITCH.replace("COUNT", str(len(writer.names)))
    (out / "src" / "constants.rs").write_text(text, encoding="utf-8")
    (out / "names.json").write_text(json.dumps(writer.names, indent=0), encoding="utf-8")
    return writer.names


def problems() -> Iterator[tuple[str, str, Any]]:
    """Kind, label and problem: those of the heuristics, and limits."""
    import leave_one_out
    import numpy as np

    import orthobcd as ob

    folder = Path(os.environ.get("ORTHOBCD_DATA", "../shared/data"))
    yield from leave_one_out.problems(folder)
    for k, (name, matrix) in enumerate(leave_one_out.data(folder)):
        r, n = (5, 10, 20)[k % 3], matrix.shape[1]
        for share in (2, 10):
            limit = ob.Cardinality(max(r, share * n * r // 100 + r))
            yield "nonzeros", f"{name} {share}%", ob.SparsePCAProblem(matrix, r, limit)
        for rows in (2, 5):
            limit = ob.RowSparse(min(n, rows * r))
            yield "features", f"{name} {rows}r", ob.SparsePCAProblem(matrix, r, limit)
        if k % 3 == 0:
            C = leave_one_out.gram(matrix)
            linear = np.random.default_rng(k).standard_normal((n, r)) * np.abs(C).max() / 10
            limit = ob.Cardinality(max(r, n * r // 10))
            smooth = ob.Quadratic(C, linear=linear / np.sqrt(n))
            yield "nonzeros", f"{name} linear", ob.StiefelProblem(smooth, limit, r)


def objective(problem: Any, options: argparse.Namespace, seed: int, **environment: str) -> float:
    """The objective of a solve in a process of its own; NaN if it fails."""
    import orthobcd as ob

    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.environ.update(environment)
        os.close(reader)
        try:
            with open(os.devnull, "w") as quiet:
                os.dup2(quiet.fileno(), 2)
            found = ob.solve(problem, max_work=options.max_work, seed=seed, n_threads=1)
            os.write(writer, repr(float(found.objective)).encode())
        except BaseException:
            os.write(writer, b"nan")
        ctypes.CDLL(None).exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return float(text or b"nan")


def main() -> None:
    """Builds the copy, or prints the changes of each problem as lines of JSON, then the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", nargs="?", choices=("build", "run", "table"), default="run")
    parser.add_argument("--out", type=Path, default=Path("out/constants"))
    parser.add_argument("--max-work", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="kinds of problems")
    parser.add_argument(
        "--every", type=int, nargs=2, default=(1, 0), help="N K: problems K, K + N, ..."
    )
    options = parser.parse_args()
    out = options.out.resolve()
    if options.command == "build":
        build(out)
    elif options.command == "run":
        run(out, options)
    else:
        print("\n".join(table(out)))


def build(out: Path) -> None:
    """Builds the copy and unpacks its wheel."""
    print(len(copy(out / "crate")) - 1, "constants", flush=True)
    (out / "names.json").write_text((out / "crate" / "names.json").read_text())
    command = ["maturin", "build", "--release", "--locked", "--out", str(out / "wheels")]
    subprocess.run(command, cwd=out / "crate", check=True)
    wheel = max((out / "wheels").glob("*.whl"), key=lambda path: path.stat().st_mtime)
    unpacked = [sys.executable, "-m", "zipfile", "-e", str(wheel), str(out / "package")]
    subprocess.run(unpacked, check=True)


def run(out: Path, options: argparse.Namespace) -> None:
    """Appends the changes of each problem to a file."""
    every, start = options.every
    path = out / f"changes-{start}.jsonl"
    for index, (kind, label, problem) in enumerate(problems()):
        if index % every != start or (options.only and kind not in options.only):
            continue
        for seed in range(options.seeds):
            file = str(out / f"reached-{start}.txt")
            base = objective(problem, options, seed, CONSTANTS_REACHED=file)
            reached = [int(k) for k in Path(file).read_text().split() if int(k)]
            changes = {}
            for k in reached:
                values = [
                    objective(problem, options, seed, CONSTANT=f"{k} {factor}")
                    for factor in (0.5, 2)
                ]
                changes[k] = [relative(base, value) for value in values]
            with path.open("a") as lines:
                print(json.dumps([kind, label, seed, changes]), file=lines)
            print(kind, label, seed, len(reached), flush=True)


def table(out: Path) -> Iterator[str]:
    """The lines of the table, the constants that matter most first."""
    import numpy as np

    names = json.loads((out / "names.json").read_text())
    found: dict[int, list[list[float]]] = defaultdict(list)
    for path in sorted(out.glob("changes-*.jsonl")):
        for line in path.read_text().splitlines():
            for k, pair in json.loads(line)[3].items():
                found[int(k)].append(pair)
    columns = ("higher, {}", "lower, {}", "mean", "worst")
    heads = [column.format(name) for name in ("half", "twice") for column in columns]
    yield f"| constant | runs | {' | '.join(heads)} |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    rows, failed, unchanged = [], [], []
    for k, pairs in found.items():
        values = np.array(pairs)
        values = values[np.isfinite(values).all(axis=1)]
        if not len(values):
            failed.append(f"`{names[k]}`")
            continue
        if np.abs(values).max() <= SAME:
            unchanged.append(f"`{names[k]}`")
            continue
        cells = []
        for column in values.T:
            cells += [f"{(column > SAME).sum()}", f"{(column < -SAME).sum()}"]
            cells += [f"{column.mean():+.1e}", f"{column.max():+.1e}"]
        worst = values.mean(axis=0).max()
        rows.append((worst, f"| `{names[k]}` | {len(values)} | {' | '.join(cells)} |"))
    yield from (text for _, text in sorted(rows, reverse=True))
    unused = [f"`{name}`" for k, name in enumerate(names) if k and k not in found]
    for label, some in (("Nothing changes", unchanged), ("Not reached", unused)):
        yield f"\n{label}, {len(some)}: {', '.join(some)}."
    if failed:
        yield f"\nThe solve fails, {len(failed)}: {', '.join(failed)}."


if __name__ == "__main__":
    main()
