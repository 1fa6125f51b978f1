"""Rust code with switches: the code has all mutants, one of which can be switched on.

``a + b`` becomes ``(if crate::switch::on(17) { a - b } else { a + b })``, with ``a`` and ``b``
evaluated once, and so on for comparisons, logic, signs and results of functions. The module
`SWITCH` of the crate reads the number of the mutant from the environment variable ``MUTANT``. If
this number is `RECORDING`, all mutants are off, and the numbers of those that are reached are
written to the file ``MUTANTS_REACHED``.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import tree_sitter
import tree_sitter_rust

ROOT = Path(__file__).parents[2]

PARTS = {
    "pair": ("pair/**/*.rs",),
    "penalty": ("penalty/**/*.rs",),
    "block": ("block.rs", "block/**/*.rs"),
    "certificate": ("certificate/*.rs",),
    "bound": ("certificate/bound/*.rs",),
    "run": ("limits.rs", *(f"solver/{name}.rs" for name in ("ledger", "limits", "monitor"))),
}
"""Files below src whose code is changed."""

CHANGED = {
    r"(const INSTANCES: usize =) [\d_]+;": r"\1 600;",
    r"(const ANGLES: usize =) [\d_]+;": r"\1 3000;",
    r"(const FEWER_ANGLES: usize =) [\d_]+;": r"\1 600;",
    r"with_cases\([\d_]+\)": "with_cases(200)",
    r"#\[inline\(always\)\]": "#[inline]",
}
"""Changes of the copy: fewer instances in tests, and small functions, which compile quickly.

Without ``inline(always)`` the vector instructions are slow, so that the copy runs without them.
"""

PROFILE = """
[profile.dev]
opt-level = 1
debug = false
debug-assertions = false
overflow-checks = false
incremental = false
codegen-units = 32
[profile.dev.package."*"]
opt-level = 3
[profile.test]
inherits = "dev"
"""
"""Replaces the profiles of the manifest: little optimisation, for one build of a few minutes."""

LINTS = ("warnings", "arithmetic_overflow", "overflowing_literals", "unconditional_panic")
"""Lints that the code with mutants may violate."""

PAIRS = (("<", "<="), (">", ">="), ("==", "!="), ("+", "-"), ("*", "/"), ("+=", "-="), ("*=", "/="))
OPERATORS = {"&&": "||", "||": "&&", **dict(PAIRS), **{new: old for old, new in PAIRS}}

NUMBERS = {f"{kind}{size}" for kind in "iu" for size in (8, 16, 32, 64, "size")}

UNCHANGED = {
    *("attribute_item", "inner_attribute_item", "const_item", "static_item", "const_block"),
    *("macro_definition", "macro_invocation", "array_type", "type_item", "struct_item"),
    *("enum_item", "line_comment", "block_comment"),
}
"""Syntax that keeps its text: no code of a run, or code that the compiler evaluates."""

UNCHANGED_FIELDS = {"pattern", "type", "return_type", "type_arguments", "type_parameters"}

SWITCH = """//! Switches one mutant on.
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

const UNSET: u32 = u32::MAX;
const RECORDING: u32 = u32::MAX - 1;
static ACTIVE: AtomicU32 = AtomicU32::new(UNSET);
static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

#[inline(always)]
pub fn on(k: u32) -> bool {
    let active = ACTIVE.load(Relaxed);
    active == k || (active >= RECORDING && slow(k))
}

unsafe extern "C" {
    safe fn atexit(end: extern "C" fn()) -> i32;
}

#[cold]
#[inline(never)]
fn slow(k: u32) -> bool {
    if ACTIVE.load(Relaxed) == UNSET {
        let number = std::env::var("MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        ACTIVE.store(number, Relaxed);
        if number == RECORDING {
            atexit(mutants_write);
        }
    }
    if ACTIVE.load(Relaxed) == RECORDING {
        REACHED[k as usize].store(true, Relaxed);
    }
    ACTIVE.load(Relaxed) == k
}

/// Writes the mutants that were reached.
extern "C" fn mutants_write() {
    let reached = (0..COUNT).filter(|&k| REACHED[k].load(Relaxed));
    let text = reached.map(|k| format!("{k}\\n")).collect::<String>();
    if let Ok(path) = std::env::var("MUTANTS_REACHED") {
        let _ = std::fs::write(path, text);
    }
}
"""

RECORDING = 2**32 - 2
"""Number that switches no mutant on and records those that are reached."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of a file."""

    part: str
    path: str
    line: int
    change: str

    def __str__(self) -> str:
        return f"src/{self.path}:{self.line}  {self.change}"


class Writer:
    """Writes files with all mutants that are not in ``not_viable``."""

    def __init__(self, not_viable: set[str]) -> None:
        self.not_viable = not_viable
        self.mutants: list[Mutant] = []
        self.part = self.path = ""

    def add(self, node: Any, change: str) -> int | None:
        """The number of a new mutant, from 1; None if it does not compile."""
        mutant = Mutant(self.part, self.path, node.start_point.row + 1, change)
        self.mutants.append(mutant)
        return None if str(mutant) in self.not_viable else len(self.mutants)

    def render(self, node: Any) -> str:
        """The text of a node."""
        if node.type in UNCHANGED or not node.child_count:
            return str(node.text.decode())
        if node.type == "function_item":
            return self.function(node)
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if node.type in ("binary_expression", "compound_assignment_expr"):
            return self.binary(node, self.render(left), self.render(right))
        if node.type == "unary_expression" and node.children[0].type in "-!":
            operand = self.render(node.children[-1])
            sign = node.children[0].type
            number = self.add(node, f"{shown(node)}  without {sign}")
            if number is None:
                return f"{sign}{operand}"
            code = f"if {on(number)} {{ v__ }} else {{ {sign}v__ }}"
            return marked(number, f"(match {operand} {{ v__ => {code} }})")
        return self.joined(node)

    def joined(self, node: Any) -> str:
        """The text of a node with the changes of its children."""
        pieces, end, skip = [], node.start_byte, False
        for index, child in enumerate(node.children):
            pieces.append(
                node.text[end - node.start_byte : child.start_byte - node.start_byte].decode()
            )
            field = node.field_name_for_child(index)
            raw = skip or field in UNCHANGED_FIELDS or field == "length"
            guard = child.child_by_field_name("condition")
            if child.type == "match_pattern" and guard is not None:
                head = child.text[: guard.start_byte - child.start_byte].decode()
                pieces.append(head + self.render(guard))
            else:
                pieces.append(child.text.decode() if raw else self.render(child))
            if child.type == "attribute_item":
                skip = skip or child.text in (b"#[cfg(test)]", b"#[test]")
            elif "comment" not in child.type:
                skip = False
            end = child.end_byte
        return "".join(pieces)

    def binary(self, node: Any, left: str, right: str) -> str:
        """The text of an operator and its operands."""
        operator = node.child_by_field_name("operator").type
        old = f"{left} {operator} {right}"
        new = OPERATORS.get(operator)
        if new is None:
            return old
        number = self.add(node, f"{shown(node)}  ({operator} -> {new})")
        if number is None:
            return old
        if operator in ("&&", "||"):
            negated = "" if operator == "&&" else "!"
            code = f"({{ let s__ = {negated}{on(number)}; "
            code += f"if ({left}) != s__ {{ {right} }} else {{ s__ }} }})"
        elif node.type == "compound_assignment_expr":
            code = f"{{ let r__ = {right}; "
            code += f"if {on(number)} {{ {left} {new} r__ }} else {{ {left} {operator} r__ }} }}"
        else:
            by = "&" if operator in ("<", "<=", ">", ">=", "==", "!=") else ""
            code = f"(match ({by}({left}), {by}({right})) {{ (l__, r__) => "
            code += f"if {on(number)} {{ l__ {new} r__ }} else {{ l__ {operator} r__ }} }})"
        return marked(number, code)

    def function(self, node: Any) -> str:
        """The text of a function, with other results at the head of its body."""
        if any("const" in child.text.decode().split() for child in node.children[:2]):
            return str(node.text.decode())
        body = node.child_by_field_name("body")
        kind = node.child_by_field_name("return_type")
        name = node.child_by_field_name("name").text.decode()
        heads = []
        for value in values(kind.text.decode() if kind else "()"):
            if body.text.decode().strip("{} \n") != value:
                number = self.add(node, f"{name}  returns {value or 'at once'}")
                if number is not None:
                    heads.append(marked(number, f"if {on(number)} {{ return {value}; }}"))
        head = str(node.text[: body.start_byte + 1 - node.start_byte].decode())
        return head + "".join(heads) + self.joined(body)[1:]


def on(number: int) -> str:
    """Code that is true if a mutant is switched on."""
    return f"crate::switch::on({number})"


def marked(number: int, code: str) -> str:
    """Code of one mutant between marks, by which an error of the compiler is assigned to it."""
    return f"/*{number}{{*/{code}/*}}{number}*/"


def shown(node: Any) -> str:
    """The text of a node, in one line and not too long."""
    text = " ".join(node.text.decode().split())
    return text if len(text) < 90 else f"{text[:60]} … {text[-25:]}"


def values(kind: str) -> list[str]:
    """Results by which a function of this type is replaced."""
    numbers = {number: ["0", "1"] for number in NUMBERS}
    exact = {"bool": ["true", "false"], "f64": ["0.0", "1.0"], "()": [""], **numbers}
    heads = {"Option<": "None", "Vec<": "Vec::new()", "Result<()>": "Ok(())"}
    return exact.get(kind) or [value for head, value in heads.items() if kind.startswith(head)]


def quickened(text: str) -> str:
    """The text of a file with the changes of the copy."""
    for old, new in CHANGED.items():
        text = re.sub(old, new, text)
    return text


class Crate:
    """The copy of the crate, with all mutants that compile."""

    def __init__(self, out: Path) -> None:
        self.out, self.folder = out, out / "crate"
        self.environment = {
            **os.environ,
            "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(out / "target")),
            "ORTHOBCD_SIMD": "scalar",
            "PROPTEST_CASES": "16",
            "PROPTEST_RNG_SEED": "1",
            "PROPTEST_MAX_SHRINK_ITERS": "0",
            "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "true",
            "OMP_NUM_THREADS": "1",
        }
        self.parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))
        known = out / "not_viable.txt"
        self.not_viable = set(known.read_text().split("\n") if known.exists() else ())
        self.mutants: list[Mutant] = []
        self.copy()
        self.write()
        while self.remove_what_fails():
            self.write()
            known.write_text("\n".join(sorted(self.not_viable)))

    def put(self, name: str, text: str) -> None:
        """Writes a file unless it has this text, so that cargo compiles no more than it must."""
        path = self.folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def copy(self) -> None:
        """Copies the tracked files that have no mutants, with another profile."""
        mutated = {f"src/{name}" for _, name in self.files()}
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
        for name in listed.stdout.split("\n")[:-1]:
            if name.endswith((".rs", ".toml", ".lock", ".md")) and name not in mutated:
                text = quickened((ROOT / name).read_text(encoding="utf-8"))
                if name == "Cargo.toml":
                    text = re.sub(r"\[profile[^\[]*\n(?=\[|$)", "", text) + PROFILE
                elif name == "src/lib.rs":
                    text = text.replace("deny(unsafe_code)", f"allow({', '.join(LINTS)})")
                    text += "\n#[doc(hidden)]\npub mod switch;\n"
                self.put(name, text)

    def files(self) -> list[tuple[str, str]]:
        """The files with mutants, with the part of each."""
        source = ROOT / "src"
        return [
            (part, str(path.relative_to(source)))
            for part, patterns in PARTS.items()
            for path in sorted(path for one in patterns for path in source.glob(one))
            if path.name != "tests.rs"
        ]

    def write(self) -> None:
        """Writes the files with all mutants but those that do not compile."""
        writer = Writer(self.not_viable)
        for writer.part, writer.path in self.files():
            text = quickened((ROOT / "src" / writer.path).read_text(encoding="utf-8"))
            code = writer.render(self.parser.parse(text.encode()).root_node)
            self.put(f"src/{writer.path}", code)
        self.mutants = writer.mutants
        self.put("src/switch.rs", SWITCH.replace("COUNT", str(len(self.mutants) + 1)))

    def cargo(self, *arguments: str) -> list[dict[str, Any]]:
        """The messages of cargo."""
        command = ["cargo", *arguments, "--message-format=json"]
        pipe = subprocess.PIPE
        run = subprocess.run(command, cwd=self.folder, env=self.environment, stdout=pipe, text=True)
        return [json.loads(line) for line in run.stdout.split("\n") if line.startswith("{")]

    def remove_what_fails(self) -> bool:
        """Removes mutants that do not compile; returns whether there were any."""
        messages = self.cargo("check", "--lib", "--locked", "--quiet")
        errors = [one["message"] for one in messages if one["reason"] == "compiler-message"]
        errors = [error for error in errors if error["level"] == "error" and error["spans"]]
        found: set[int] = set()
        for span in (span for error in errors for span in error["spans"] if span["is_primary"]):
            found |= self.culprits(span)
        names = {str(self.mutants[number - 1]) for number in found}
        if errors and not names - self.not_viable:
            raise SystemExit("\n".join(error["rendered"] for error in errors[:5]))
        self.not_viable |= names
        return bool(errors)

    def culprits(self, span: dict[str, Any]) -> set[int]:
        """The innermost mutant around a place in a file, or else those inside it."""
        text = (self.folder / span["file_name"]).read_bytes()
        start, end = span["byte_start"], span["byte_end"]
        opened: dict[int, int] = {}
        ranges = []
        for mark in re.finditer(rb"/\*(\d+)\{\*/|/\*\}(\d+)\*/", text):
            if mark[1]:
                opened[int(mark[1])] = mark.start()
            else:
                ranges.append((opened[int(mark[2])], mark.end(), int(mark[2])))
        around = [one for one in ranges if one[0] <= start and end <= one[1]]
        if around:
            return {min(around, key=lambda one: one[1] - one[0])[2]}
        return {number for low, high, number in ranges if low < end and high > start}

    def tests(self) -> list[tuple[str, str]]:
        """The binaries and names of the tests of the crate."""
        messages = self.cargo("test", "--no-run", "--lib", "--tests", "--locked", "--quiet")
        binaries = [one["executable"] for one in messages if one.get("executable")]
        tests = []
        for binary in binaries:
            listed = subprocess.run(
                [binary, "--list", "--format", "terse"], capture_output=True, text=True, check=True
            )
            names = re.findall(r"^(.*): test$", listed.stdout, re.MULTILINE)
            tests += [(binary, name) for name in names]
        return tests
