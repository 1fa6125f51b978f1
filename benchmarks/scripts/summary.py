"""Tables of pages of the documentation, from those in docs/results and benchmarks/results.

From the root of a checkout::

    python benchmarks/scripts/summary.py

writes the tables between their marks in the pages; ``--check`` fails if a page is out of date.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
PAGES = [ROOT / "docs" / name for name in ("benchmarks.md", "index.md", "results/comparison.md")]
PENALTIES = {"l0": "ℓ0", "l1": "ℓ1", "nonneg": "X ≥ 0"}
PAPERS = ROOT / "benchmarks" / "results" / "comparison.md"
TIE = 1e-6
"""Relative difference below which two objectives count as equal."""


def tables(name: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Header and rows of each table of a page of results."""
    yield from tables_of((RESULTS / f"{name}.md").read_text(encoding="utf-8"))


def tables_of(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Header and rows of each table of a text."""
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        lines = [
            [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]
            for line in block.splitlines()
        ]
        yield lines[0], lines[2:]


def number(cell: str) -> float:
    """The first number of a cell."""
    return float(re.match(r"[-+]?[\d.]+(?:e[-+]\d+)?", re.sub(r"\*|</?u>", "", cell))[0])


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def digits() -> str:
    """Variance on the digits at equal nonzeros, by orthonormal components with as many nonzeros."""
    _, rows = next(tables("digits"))
    lines = []
    for row in rows:
        others = {"scikit-learn `SparsePCA`": number(row[4]), "PCA, cut": number(row[7])}
        name = max(others, key=others.__getitem__)
        ratio = number(row[1]) / others[name]
        lines.append([row[0], f"**{row[1]}**", f"{others[name]:.2f} ({name})", f"{ratio:.2f}"])
    return table(["nonzeros", "orthobcd (default), %", "best competitor, %", "ratio"], lines)


def front() -> str:
    """Ours beside each competitor at equal loadings: counts of rows, and the range of the ratio."""
    _, matrices = next(tables("loadings"))
    _, wide = next(tables("wide"))
    _, images = next(tables("digits"))
    on_matrices = {
        name: [number(row[3]) / number(row[k]) for row in matrices]
        for name, k in (("nsprcomp", 4 + 2), ("msPCA", 4), ("elasticnet", 4 + 4))
    }
    ratios = {
        "truncated power iterations, in half of our time": [1.0 + number(row[6]) for row in wide],
        **{f"{name}, not orthonormal": found for name, found in on_matrices.items()},
        "scikit-learn `SparsePCA`, made orthonormal": [
            number(row[1]) / number(row[4]) for row in images
        ],
    }
    lines = []
    for name, found in ratios.items():
        more = sum(ratio > 1.0 + TIE for ratio in found)
        less = sum(ratio < 1.0 - TIE for ratio in found)
        counts = [str(more), str(len(found) - more - less), str(less)]
        lines.append([name, *counts, f"{min(found):.2f} to {max(found):.2f}"])
    header = ["competitor", "ours explains more", "equal", "less", "ratio"]
    return table(header, lines)


def objectives() -> str:
    """Counts of problems where the default solver ends below the best competitor, by list."""
    lists = {
        "equal-time": "problems that the rules were tuned on",
        "held-out": "held-out data, worst of three seeds",
        "thousands": "thousands of features, worst of three seeds",
        "functions": "functions that are not quadratic",
    }
    lines = []
    for name, title in lists.items():
        gains = []
        for header, rows in tables(name):
            found = [k for k, cell in enumerate(header) if "lower" in cell]
            if found and {"row", "penalty"} & set(header):
                gains += [number(row[found[0]]) for row in rows]
        better = sum(gain >= TIE for gain in gains)
        worse = sum(gain <= -TIE for gain in gains)
        lines.append(
            [
                *(f"[{title}](results/{name}.md)", str(len(gains)), f"**{better}**"),
                *(str(len(gains) - better - worse), str(worse)),
                *(f"{max(gains):+.1e}", f"{min(gains):+.1e}"),
            ]
        )
    header = ["problems", "number", "lower", "equal", "higher", "largest gain", "largest loss"]
    return table(header, lines)


def papers() -> str:
    """The default solver, the best competitor and the papers' best value on each row of the papers.

    The last table of the suite has the values of the bench; the figure of a paper's table names the
    penalty. Of rows of equal names the one belongs whose objective is nearest. A line below a row
    has the papers' values.
    """
    suite = PAPERS.read_text(encoding="utf-8").split("# Suite paper")[1]
    *_, (_, beside) = tables_of(suite)
    lines: dict[str, list[str]] = {}
    for title, section in re.findall(r"^## P([12] Table \d)$(.*?)(?=^## )", suite, re.M | re.S):
        _, rows = next(tables_of(section))
        kind = re.search(rf"!\[P{title}\]\(\S+-(l0|l1|nonneg)-", suite)[1]
        for k, row in enumerate(rows):
            found = [line for line in beside if line[:2] == [PENALTIES[kind], row[0]]]
            if not found:
                continue
            near = min(found, key=lambda line, row=row: abs(number(line[2]) - number(row[1])))
            below = itertools.takewhile(
                lambda line: line[0] not in {b[1] for b in beside}, rows[k + 1 :]
            )
            published = next((line[1] for line in below if line[0].startswith("paper")), "none")
            name = f"P{title.replace(' Table ', '.')}"
            gain = number(near[5])
            shown = f"{gain:+.1e}" if abs(gain) >= TIE else "equal"
            lines.setdefault("".join(near), [name, near[0], row[0], published, *near[2:5], shown])
    header = [
        "table",
        "h",
        "row",
        "papers' best",
        "ours, worst seed",
        "best competitor",
        "its name",
    ]
    return table([*header, "ours lower by"], list(lines.values()))


TABLES = {
    "digits": digits,
    "front": front,
    "objectives": objectives,
    "papers": papers,
}


def filled(text: str) -> str:
    """The text of a page with new tables."""
    for name, make in TABLES.items():
        mark = re.compile(rf"(<!-- {name}: [^>]*-->\n).*?(\n<!-- end -->)", re.DOTALL)
        text = mark.sub(lambda found, make=make: f"{found[1]}\n{make()}\n{found[2]}", text)
    return text


if __name__ == "__main__":
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = filled(before)
        if "--check" in sys.argv and before != after:
            sys.exit(f"{page} is out of date: python benchmarks/scripts/summary.py")
        page.write_text(after, encoding="utf-8")
