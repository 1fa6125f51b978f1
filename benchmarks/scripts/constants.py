"""Constants of the search, halved and doubled: how many results change, and how.

``python benchmarks/scripts/constants.py --jobs 2 > constants.md`` copies the crate below `target`
and makes every numeric constant of the rooms `support`, `heuristic` and `search/cardinality` a
function there that reads a factor from the environment. It builds the copy, and solves the same
problems with each factor. Results go to a file beside the copy, so that an interrupted run goes on;
`target/constants` must be deleted where the crate has changed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "target/constants"
ROOMS = ("support", "heuristic", "search/cardinality")

CONSTANT = re.compile(
    r"^(pub(?:\([^)]*\))? )?const ([A-Z_0-9]+): (f64|usize|u32|\(f64, f64\)) = ([^;]+);", re.M
)

SAME = 1e-6
"""Changes of F that count, relative to F."""

FACTOR = """
/// The factor of a constant.
pub(crate) trait Scaled {
    fn scaled(self, key: &str) -> Self;
}

fn factor(key: &str) -> f64 {
    let chosen = std::env::var("ORTHOBCD_CONSTANT").unwrap_or_default();
    chosen.split_once('=').filter(|one| one.0 == key).map_or(1.0, |one| one.1.parse().unwrap())
}

impl Scaled for f64 {
    fn scaled(self, key: &str) -> Self { self * factor(key) }
}

impl Scaled for usize {
    fn scaled(self, key: &str) -> Self {
        let scaled = (self as f64 * factor(key)).round() as usize;
        if factor(key) == 1.0 { self } else { scaled.max(1) }
    }
}

impl Scaled for u32 {
    fn scaled(self, key: &str) -> Self { (f64::from(self) * factor(key)).round() as u32 }
}

impl Scaled for (f64, f64) {
    fn scaled(self, key: &str) -> Self { (self.0 * factor(key), self.1 * factor(key)) }
}
"""


def called(text: str, name: str) -> str:
    """The code with a call wherever it names the constant."""
    lines, imported = [], False
    for line in text.split("\n"):
        code = line.strip()
        imported = imported or bool(re.match(r"(pub(\([^)]*\))? )?use ", code))
        if not imported and not code.startswith("//") and f"fn {name}(" not in code:
            used = rf"(?<![\w`])(?<!(?<!\.)\.)((?:\w+::)*){name}\b(?![:(])"
            line = re.sub(used, r"\g<0>()", line)
        imported = imported and not code.endswith(";")
        lines.append(line)
    return "\n".join(lines)


def instrumented(source: Path) -> list[str]:
    """Rewrites the constants below `source`; returns their keys and values."""
    files = {path: path.read_text("utf-8") for path in source.rglob("*.rs")}
    found = []
    for path in files:
        folder = path.parent.relative_to(source).as_posix()
        if folder not in ROOMS:
            continue
        for match in CONSTANT.finditer(files[path].partition("\n#[cfg(test)]\nmod tests")[0]):
            public, name, kind, value = match.groups()
            # What stands in a pattern, a length, another constant or a new name must stay constant.
            length = rf"\[[^\]]*; {name}\]"
            other = rf"const [A-Z_0-9]+:[^=]*=[^;]*\b{name}\b"
            fixed = re.compile(rf"\b{name} (=>|as [A-Z])|{length}|{other}")
            if any(fixed.search(text) for text in files.values()):
                continue
            key = f"{path.relative_to(source).as_posix()}:{name}"
            head = f"#[allow(non_snake_case)]\n{public or ''}fn {name}() -> {kind}"
            body = f'crate::constants::Scaled::scaled({value}, "{key}")'
            users = [path]
            if public or path.name == "mod.rs":
                for user in files.keys() - {path}:
                    near = "|super" if user.parent == path.parent else ""
                    home = f"(?:{path.stem}|{path.parent.name}{near})"
                    named = rf"use [^;]*\b{home}::[^;]*\b{name}\b[^;]*;|\b{home}::{name}\b"
                    users += [user] if re.search(named, files[user]) else []
            for user in users:
                text = files[user].replace(match[0], f"{head} {{ {body} }}")
                files[user] = called(text, name)
            found.append(f"{key}={value}")
    for path, text in files.items():
        path.write_text(text, "utf-8")
    (source / "constants.rs").write_text(FACTOR, "utf-8")
    library = source / "lib.rs"
    text = library.read_text("utf-8")
    library.write_text(text.replace("\nmod ", "\nmod constants;\nmod ", 1), "utf-8")
    return found


def build() -> list[str]:
    """Makes the copy with its package."""
    constants = COPY / "constants.json"
    if not constants.exists():
        shutil.rmtree(COPY, ignore_errors=True)
        for name in ("src", "python", "benches"):
            shutil.copytree(ROOT / name, COPY / name)
        for name in ("Cargo.toml", "Cargo.lock", "README.md"):
            shutil.copy(ROOT / name, COPY)
        (COPY / "examples").symlink_to(ROOT / "examples")
        (COPY / "tests").symlink_to(ROOT / "tests")
        keys = instrumented(COPY / "src")
        command = ["cargo", "build", "--release", "--locked", "--package", "orthobcd-python"]
        target = os.environ.get("CARGO_TARGET_DIR", COPY / "target")
        environment = {**os.environ, "CARGO_TARGET_DIR": str(target), "RUSTFLAGS": "-Awarnings"}
        subprocess.run(command, cwd=COPY, env=environment, check=True)
        library = Path(target) / "release/lib_core.so"
        shutil.copy(library, COPY / "python/orthobcd/_core.abi3.so")
        constants.write_text(json.dumps(keys), "utf-8")
    found: list[str] = json.loads(constants.read_text("utf-8"))
    return found


def problems() -> Iterator[tuple[str, Any, float]]:
    """Problems with the work of their searches."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer, load_digits

    import orthobcd as ob

    rng = np.random.default_rng(7)
    cancer, digits = load_breast_cancer().data, load_digits().data
    sets = {
        "cancer": (cancer - cancer.mean(axis=0)) / cancer.std(axis=0),
        "digits": digits - digits.mean(axis=0),
        "noise": rng.standard_normal((150, 300)),
        "factors": rng.standard_normal((200, 8)) @ rng.standard_normal((8, 250)),
        "wide": rng.standard_normal((60, 8)) @ rng.standard_normal((8, 1500)),
        "decay": rng.standard_normal((100, 90)) * np.exp(-np.arange(90) / 25),
    }
    for name in ("factors", "wide"):
        sets[name] = sets[name] + 0.5 * rng.standard_normal(sets[name].shape)
    for kind, name, r, limit in (
        ("limit", "cancer", 4, ob.Cardinality([5] * 4)),
        ("limit", "digits", 6, ob.Cardinality([8] * 6)),
        ("limit", "factors", 8, ob.Cardinality([10] * 8)),
        ("limit", "wide", 5, ob.Cardinality([20] * 5)),
        ("limit in all", "digits", 5, ob.Cardinality(60)),
        ("limit in all", "decay", 8, ob.Cardinality(200)),
        ("nonnegative limit", "digits", 5, ob.Cardinality([8] * 5, nonnegative=True)),
        ("rows", "digits", 4, ob.RowSparse(count=15)),
        ("rows", "noise", 5, ob.RowSparse(count=30)),
    ):
        yield f"{kind} {name}", ob.SparsePCAProblem(sets[name], r, limit), 0.03
    for kind, name, r in (
        *(("l0", "digits", 5), ("l0", "noise", 5), ("l0", "wide", 5)),
        *(("l1", "digits", 5), ("l1", "factors", 8)),
        *(("nonnegative", "digits", 5), ("nonnegative", "factors", 8)),
    ):
        largest = 0.5 * (sets[name] ** 2).sum(axis=0).max()
        penalties = {
            "l0": ob.L0(0.1 * largest),
            "l1": ob.L1(0.04 * largest**0.5),
            "nonnegative": ob.NonNegative(),
        }
        yield f"{kind} {name}", ob.SparsePCAProblem(sets[name], r, penalties[kind]), 0.06


def solve() -> None:
    """Prints the objectives of all problems as JSON."""
    import orthobcd as ob

    found = {
        f"{name} {seed}": ob.solve(problem, max_work=work, seed=seed, n_threads=1).objective
        for name, problem, work in problems()
        for seed in (0, 1, 2)
    }
    print(json.dumps(found))


def objectives(constant: str = "") -> dict[str, float]:
    """The objectives with a factor of a constant; none if a search fails with it."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(COPY / "python"),
        "ORTHOBCD_CONSTANT": constant,
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, __file__, "--solve"]
    ran = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, check=not constant
    )
    return json.loads(ran.stdout) if ran.returncode == 0 else {}


def cell(before: dict[str, float], after: dict[str, float]) -> tuple[str, bool]:
    """The numbers of higher and lower results and the mean change, and whether any changed."""
    if not after:
        return "not allowed | | ", True
    changes = [(after[key] - value) / max(abs(value), 1e-300) for key, value in before.items()]
    higher, lower = (sum(sign * change > SAME for change in changes) for sign in (1, -1))
    if not higher + lower:
        return "0 | 0 | 0", False
    return f"{higher} | {lower} | {sum(changes) / len(changes):+.0e}", True


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--solve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.solve:
        solve()
        return
    keys = [key.partition("=") for key in build()]
    stored = COPY / "objectives.jsonl"
    known = dict(map(json.loads, stored.read_text("utf-8").splitlines())) if stored.exists() else {}
    wanted = ["", *(f"{key}={factor}" for key, _, _ in keys for factor in (0.5, 2))]

    def note(constant: str) -> None:
        found = objectives(constant)
        known[constant] = found
        with stored.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps([constant, found]) + "\n")

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(note, [one for one in wanted if one not in known]))
    unchanged: dict[str, list[str]] = {}
    print("| constant | value | halved: higher | lower | mean | doubled: higher | lower | mean |")
    print("|---|---|---|---|---|---|---|---|")
    for key, _, value in keys:
        cells = [cell(known[""], known[f"{key}={factor}"]) for factor in (0.5, 2)]
        if any(changed for _, changed in cells):
            print(f"| `{key}` | {value} | {cells[0][0]} | {cells[1][0]} |")
        else:
            path, _, name = key.partition(":")
            unchanged.setdefault(path, []).append(name)
    print("\nWithout any change:\n")
    for path, names in unchanged.items():
        print(f"- `{path}`: {', '.join(names)}")


if __name__ == "__main__":
    main()
