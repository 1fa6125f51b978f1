"""Reports from finished tasks: CSV, Markdown in the papers' form, convergence figures, JSON."""

from __future__ import annotations

import csv
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..baselines import HYPERBOLIC_METHODS, METHODS
from .environment import describe
from .published import LEVELS, TABLE_1, TABLE_1_METHODS
from .suites import HYBRIDS, HYPERBOLIC_OURS, OURS

Record = dict[str, Any]

CSV_FIELDS = (
    "row",
    "data",
    "penalty",
    "lam",
    "relative",
    "r",
    "start",
    "normalised",
    "method",
    "seed",
    "time_limit",
    "objective",
    "objective_at_projection",
    "feasibility",
    "last_infeasibility",
    "package_infeasibility",
    "start_objective",
    "nonzeros",
    "status",
    "n_iterations",
    "seconds",
    "error",
)

TIE = 1e-6
"""Objectives closer than this (relative) share a place."""


def write_all(records: Iterable[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write every report; figures only with matplotlib. Returns the files written."""
    listed = [*OURS, *HYPERBOLIC_OURS, *HYBRIDS, *METHODS, *HYPERBOLIC_METHODS]
    position = {name: index for index, name in enumerate(listed)}
    rows = sorted(
        records,
        key=lambda record: (record["row"], position.get(record["method"], 99), record["key"]),
    )
    written = [
        write_csv(rows, folder / "results.csv"),
        write_markdown(rows, folder / "comparison.md", settings),
        write_json(rows, folder / "run.json", settings),
    ]
    return written + write_figures(rows, folder / "figures")


def write_csv(records: list[Record], path: Path) -> Path:
    """One line per task."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, CSV_FIELDS, extrasaction="ignore", restval="")
        writer.writeheader()
        writer.writerows(records)
    return path


def write_json(records: list[Record], path: Path, settings: dict[str, Any]) -> Path:
    """Versions, machine, commit, settings and all results without their histories."""
    results = [{k: v for k, v in record.items() if k != "history"} for record in records]
    content = {"environment": describe(), "settings": settings, "results": results}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def by_row(records: Iterable[Record]) -> dict[str, dict[str, list[Record]]]:
    """Records by row, then by method."""
    table: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        table[record["row"]][record["method"]].append(record)
    return table


def median_objective(records: list[Record], field: str = "objective") -> float:
    """Median over seeds; infinite if any seed failed."""
    values = [record.get(field, math.inf) for record in records]
    return float(statistics.median(values)) if values else math.inf


def places(scores: dict[str, float]) -> dict[str, int]:
    """Place 1, 2, 3, ... of every method; near-equal objectives share a place."""
    order = sorted(scores, key=lambda name: scores[name])
    result: dict[str, int] = {}
    place, held = 0, -math.inf
    for name in order:
        score = scores[name]
        if not math.isfinite(score):
            continue
        if score > held + TIE * max(1.0, abs(held)) or place == 0:
            place, held = place + 1, score
        result[name] = place
    return result


def stuck(records: list[Record]) -> bool:
    """Whether a method never improved on its start (and says no error)."""
    return all(
        "objective" in record
        and record["objective"] >= record["start_objective"] - 1e-9 * abs(record["start_objective"])
        for record in records
    )


def write_markdown(records: list[Record], path: Path, settings: dict[str, Any]) -> Path:
    """Tables like the papers': gaps to the best, best, second and third marked."""
    table = by_row(records)
    lines = [
        "# Comparison",
        "",
        f"Suite `{settings.get('suite', '')}`, {settings.get('time', '')} s per method, "
        f"{settings.get('seeds', 1)} seed(s); made by `orthobcd bench`.",
        "",
        "Cells are the objective minus the row's best, at truly feasible points (orthonormal to "
        "1e-11, zeros exact, X ≥ 0 exact), the median over seeds. **Best**, *second*, "
        "<u>third</u>; objectives within 1e-6 relative share a place. In brackets, where it "
        "differs: the objective at the projection, the papers' score, minus the same best. "
        "`+` rows run each method half of the time.",
        "",
    ]
    kinds = (
        ("l0", "ℓ0 sparse PCA"),
        ("l1", "ℓ1 sparse PCA"),
        ("nonneg", "Nonnegative PCA"),
        ("hyperbolic", "Hyperbolic eigenvalue problem"),
    )
    for kind, title in kinds:
        names = [name for name in table if _first(table[name])["penalty"] == kind]
        if names:
            lines += [f"## {title}", "", *_gap_table(table, names), ""]
    lines += _notes(table)
    lines += _beside_the_papers(table)
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return path


def _first(methods: dict[str, list[Record]]) -> Record:
    return next(iter(methods.values()))[0]


def _gap_table(table: dict[str, dict[str, list[Record]]], names: list[str]) -> list[str]:
    methods = list(dict.fromkeys(method for name in names for method in table[name]))
    lines = ["| method | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    scores = {
        name: {method: median_objective(found) for method, found in table[name].items()}
        for name in names
    }
    best = {name: min(scores[name].values()) for name in names}
    ranks = {name: places(scores[name]) for name in names}
    lines.append("| F_min | " + " | ".join(f"{best[name]:.8g}" for name in names) + " |")
    for method in methods:
        cells = []
        for name in names:
            found = table[name].get(method)
            if found is None:
                cells.append("")
            elif not math.isfinite(scores[name][method]):
                cells.append("failed")
            else:
                cells.append(_cell(found, scores[name][method], best[name], ranks[name][method]))
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def _cell(found: list[Record], score: float, best: float, place: int) -> str:
    gap = score - best
    text = "0" if gap == 0.0 else f"{gap:.3g}"
    text = {1: f"**{text}**", 2: f"*{text}*", 3: f"<u>{text}</u>"}.get(place, text)
    projected = median_objective(found, "objective_at_projection")
    if abs(projected - score) > TIE * max(1.0, abs(score)):
        text += f" ({projected - best:.3g})"
    return text


def _notes(table: dict[str, dict[str, list[Record]]]) -> list[str]:
    lines = []
    for name, methods in table.items():
        for method, found in methods.items():
            errors = sorted({record["error"] for record in found if "error" in record})
            lines += [f"- `{method}` failed on `{name}`: {error}" for error in errors]
            if not errors and stuck(found):
                lines.append(f"- `{method}` did not improve on its start on `{name}`.")
            outside = [record.get("package_infeasibility") for record in found]
            if any(value is not None for value in outside):
                value = max(value for value in outside if value is not None)
                lines.append(f"- `{method}` returned ‖VVᵀ − I‖ = {value:.2g} on `{name}`.")
    return ["## Notes", "", *lines, ""] if lines else []


def _beside_the_papers(table: dict[str, dict[str, list[Record]]]) -> list[str]:
    lines: list[str] = []
    for name, methods in table.items():
        record = _first(methods)
        if record["relative"] or record["normalised"]:
            continue
        key = (record["data"], record["penalty"], float(record["lam"]), record["r"])
        best = min(median_objective(found) for found in methods.values())
        if key in LEVELS:
            level, where = LEVELS[key]
            lines.append(f"| {name} | {level:.3g} ({where}) | {best:.8g} | |")
        table_1 = TABLE_1.get((key[0], key[2], key[3])) if key[1] == "l0" else None
        if table_1 is not None:
            short = "id" if record["start"] == "identity" else "rnd"
            beside = []
            for column, gap in zip(TABLE_1_METHODS, table_1[1], strict=True):
                method, start = column.split(" ")
                if start == f"({short})" and method in methods:
                    ours = median_objective(methods[method])
                    beside.append(f"{method} {table_1[0] + gap:.4g} / {ours:.6g}")
            lines.append(
                f"| {name} | {table_1[0]:.3g} (P1 Table 1, 30 s) | {best:.8g} | "
                + "; ".join(beside)
                + " |"
            )
    if not lines:
        return []
    return [
        "## Beside the papers' figures",
        "",
        "The papers' w1a has another column order and their randn is another draw: levels "
        "compare, digits do not.",
        "",
        "| row | paper's best | best here | method: paper / here |",
        "|---|---|---|---|",
        *lines,
        "",
    ]


def write_figures(records: list[Record], folder: Path) -> list[Path]:
    """Objective minus the row's best against seconds, log axes; nothing without matplotlib."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, methods in by_row(records).items():
        finished = {method: found[0] for method, found in methods.items() if "history" in found[0]}
        if not finished:
            continue
        best = min(min(record["history"]["objective"]) for record in finished.values())
        floor = 1e-9 * max(1.0, abs(best))
        figure, axes = plt.subplots(figsize=(9.0, 5.5), constrained_layout=True)
        order = sorted(finished, key=lambda method: float(finished[method]["objective"]))
        colours = plt.get_cmap("tab20")
        for index, method in enumerate(order):
            history = finished[method]["history"]
            seconds = [max(value, 1e-3) for value in history["seconds"]]
            gaps = [max(value - best, floor) for value in history["objective"]]
            axes.step(
                seconds,
                gaps,
                where="post",
                label=method,
                color=colours(index % 20),
                linestyle="-" if index < 20 else "--",
                linewidth=1.3,
            )
        axes.set(xscale="log", yscale="log", xlabel="seconds", title=name)
        axes.set_ylabel("objective − best")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=110)
        plt.close(figure)
        written.append(path)
    return written
