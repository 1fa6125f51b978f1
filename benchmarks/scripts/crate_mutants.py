"""Mutants of the pair solvers and the penalties: the tests must notice every small change.

``python benchmarks/scripts/crate_mutants.py --shard 0/10`` (needs cargo and `cargo-mutants
<https://mutants.rs>`_) runs cargo-mutants in a small crate. The crate has only `MODULES` and
`TESTS`, with fewer instances in a test (`FEWER`), and builds in seconds instead of minutes. The
tests of the other modules may detect mutants that survive.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

MODULES = ("error", "pair", "penalty", "signature", "simd")
"""Modules of the small crate; the modules of `MUTATED` are changed."""

MUTATED = ("pair", "penalty")

TESTS = ("hyperbolic_pair", "pair")

FEWER = {"INSTANCES": 600, "ANGLES": 3000, "FEWER_ANGLES": 600}
"""Reduced values of constants of the tests."""


def small_crate(folder: Path) -> None:
    """Write the crate."""
    (folder / "src").mkdir()
    (folder / "tests").mkdir()
    manifest = (
        (ROOT / "Cargo.toml").read_text(encoding="utf-8").replace('"rlib", "cdylib"', '"rlib"')
    )
    manifest = manifest.replace(
        "[profile.test]\nopt-level = 3", "[profile.test]\nopt-level = 1\ndebug = false"
    )
    (folder / "Cargo.toml").write_text(manifest, encoding="utf-8")
    shutil.copy(ROOT / "Cargo.lock", folder)
    shutil.copytree(ROOT / "benches", folder / "benches")
    for name in MODULES:
        source = ROOT / "src" / name
        if source.is_dir():
            shutil.copytree(source, folder / "src" / name)
        else:
            shutil.copy(source.with_suffix(".rs"), folder / "src")
    public = "".join(f"pub mod {name};\n" for name in MODULES)
    uses = "pub use error::{Error, Result};\npub use signature::Signature;\n"
    (folder / "src/lib.rs").write_text(f"#![allow(dead_code, unused)]\n{public}{uses}")
    shutil.copytree(ROOT / "tests/common", folder / "tests/common")
    common = folder / "tests/common/mod.rs"
    common.write_text(re.sub(r".*\bobserved\b.*\n", "", common.read_text(encoding="utf-8")))
    for name in TESTS:
        text = (ROOT / "tests" / f"{name}.rs").read_text(encoding="utf-8")
        for constant, value in FEWER.items():
            text = re.sub(rf"(const {constant}: usize =) [\d_]+;", rf"\1 {value};", text)
        (folder / "tests" / f"{name}.rs").write_text(text, encoding="utf-8")


def main() -> int:
    """Make the crate and run cargo-mutants."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--shard", default="0/10", help="K/N: every N-th mutant, from the K-th on")
    parser.add_argument("--file", default="*", help="only files of this name")
    parser.add_argument("--out", type=Path, default=Path("out/crate-mutants"))
    options = parser.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    crate = options.out.resolve() / "crate"
    crate.mkdir(parents=True)
    small_crate(crate)
    command = ["cargo", "mutants", "--in-place", "--timeout", "30", "--shard", options.shard]
    command += ["--sharding", "round-robin", "--output", str(options.out.resolve())]
    for name in MUTATED:
        command += ["--file", f"src/{name}/**/{options.file}.rs"]
    environment = {**os.environ, "PROPTEST_CASES": "16"}
    return subprocess.run([*command, "--", "--tests"], cwd=crate, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
