"""Code lines of the crate by module: without tests, comments and blank lines.

``python tools/quality/code_lines.py [--folder src] [--detail]`` prints a table. Columns are
lines, functions above 80 lines, functions with more than 7 parameters, named constants, and float
literals outside of constants other than 0, 0.5, 1 and 2. ``--detail`` lists these literals.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

LONGEST = 80
"""Largest number of lines of a function, from its name to its last brace."""

WIDEST = 7
"""Largest number of parameters of a function."""

PLAIN = {0.0, 0.5, 1.0, 2.0}
"""Values of literals that need no name."""

FUNCTION = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:const\s+)?fn\s+(\w+)")
CONSTANT = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:const|static)\s+(\w+):")
LITERAL = re.compile(r"(?<![\w.])(\d[\d_]*\.\d*(?:e-?\d+)?|\d+e-?\d+)")


def code(path: Path) -> list[tuple[int, str]]:
    """The code lines of a file with their numbers: up to its tests."""
    lines = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if line.startswith("#[cfg(test)]"):
            break
        text = line.strip()
        if text and not text.startswith("//"):
            lines.append((number, line))
    return lines


def files(folder: Path) -> Iterator[tuple[Path, list[tuple[int, str]]]]:
    """The files of the crate other than tests, with their code lines."""
    for path in sorted(folder.rglob("*.rs")):
        if path.name != "tests.rs" and "tests" not in path.parts:
            yield path, code(path)


def functions(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str, int, int]]:
    """Line number, name, code lines and parameters of every function."""
    for at, (number, line) in enumerate(lines):
        found = FUNCTION.match(line)
        if found is None:
            continue
        text, depth, opened, end = "", 0, False, at
        for end in range(at, len(lines)):
            text += lines[end][1] + "\n"
            bare = re.sub(r"'.'|\"(?:\\.|[^\"\\])*\"", "", lines[end][1])
            depth += bare.count("{") - bare.count("}")
            opened = opened or "{" in bare
            if (opened and depth <= 0) or (not opened and bare.rstrip().endswith(";")):
                break
        yield number, found.group(1), end - at + 1, parameters(text[text.index("fn ") :])


def parameters(text: str) -> int:
    """The number of parameters of a function, each entry of a tuple pattern counted."""
    text = re.sub(r"->", "  ", text)
    begin = re.search(r"\w+\s*(?:<[^(]*>)?\(", text)
    if begin is None:
        return 0
    depth, angles, count, filled = 1, 0, 0, False
    for character in text[begin.end() :]:
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth == 0:
                break
        elif character in "<>":
            angles += 1 if character == "<" else -1
        elif character == "," and depth == 1 and angles == 0:
            count, filled = count + 1, False
            continue
        filled = filled or not character.isspace()
    return count + int(filled)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[2] / "src")
    parser.add_argument("--detail", action="store_true")
    options = parser.parse_args()
    counts: dict[str, list[int]] = {}
    notes: list[str] = []
    for path, lines in files(options.folder):
        place = path.relative_to(options.folder)
        module = place.parts[0].removesuffix(".rs")
        row = counts.setdefault(module, [0] * 5)
        row[0] += len(lines)
        for number, name, length, width in functions(lines):
            row[1] += length > LONGEST
            row[2] += width > WIDEST
            if length > LONGEST or width > WIDEST:
                notes.append(f"{place}:{number} {name}: {length} lines, {width} parameters")
        inside = False
        for number, line in lines:
            constant = CONSTANT.match(line)
            row[3] += constant is not None
            inside = inside or constant is not None
            values = [] if inside else LITERAL.findall(line)
            bare = [value for value in values if float(value.replace("_", "")) not in PLAIN]
            row[4] += len(bare)
            notes.extend(f"{place}:{number} literal {value}" for value in bare)
            inside = inside and not line.rstrip().endswith(";")
    print("| module | code lines | long functions | wide functions | constants | bare literals |")
    print("|---|---|---|---|---|---|")
    total = [sum(column) for column in zip(*counts.values(), strict=True)]
    by_size = sorted(counts.items(), key=lambda item: -item[1][0])
    for name, row in [*by_size, ("all", total)]:
        print(f"| {name} | {' | '.join(f'{value:,}' for value in row)} |")
    if options.detail:
        print("\n".join(["", *notes]))


if __name__ == "__main__":
    main()
