"""Reports from finished tasks: Markdown in the papers' form, convergence figures, JSON.

Reports are made from the lines of ``results.jsonl`` alone, and can be made again without a run.
"""

from __future__ import annotations

import json
import math
import shutil
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orthobcd._internal.writing import replacing, write_text

from .baselines import HYPERBOLIC_METHODS, METHODS
from .baselines.manpg import INNER_TOLERANCE
from .data import ORIGINS, dataset
from .published import Published, published
from .suites import (
    HYBRIDS,
    HYPERBOLIC_HYBRIDS,
    HYPERBOLIC_OURS,
    OURS,
    PROBE_HYBRIDS,
    PROBE_OURS,
    Row,
    Table,
)

Record = dict[str, Any]

MARKED = 0.1
"""Least relative decrease of the objective, from the first method to the hybrid, for a (+)."""

TIE = 1e-6
"""Difference of objectives that share a place, relative to the row's best or, if less, its spread.

The spread counts if a constant dominates the objective: at a large λ, λr is 99.99 % of it.
"""

ROUNDING = 1e-10
"""Difference of objectives that always share a place, relative to the row's best."""

PENALTIES = {
    "l0": "ℓ0",
    "l1": "ℓ1",
    "nonneg": "X ≥ 0",
    "count": "k nonzeros a component",
    "hyperbolic": "Hyperbolic",
    "probe": "Structural probe",
}
"""Names of the penalties, for readers."""

ORDER = (
    *(*OURS, *HYPERBOLIC_OURS, *PROBE_OURS, *METHODS, *HYPERBOLIC_METHODS),
    *(*HYBRIDS, *HYPERBOLIC_HYBRIDS, *PROBE_HYBRIDS),
)
"""Columns of the tables."""

LEGEND = """\
A cell is the objective minus the lowest of its row, as the median over the seeds, at a feasible
point: orthonormal to 1e-11, with exact zeros and X ≥ 0 exactly. **Best**, *second* and <u>third</u>
are marked; objectives within 1e-6 of the lowest, or within 1e-6 of the spread of the row if that is
less, share a place.

- Round brackets: the papers' score, if it is another number. It is the objective at the projection
  (entries up to 1e-6 count as zeros, negative parts are ignored), minus the same lowest objective.
- Square brackets: ‖XᵀJX − J‖_F, for problems with XᵀJX = J.
- `ladmm@random` names the start, where there are several. `ladmm+obcd-r` runs LADMM and then
  OBCD-R, each for half of the time; with `--polish S`, OBCD-R runs for S seconds after LADMM's
  whole time.
- (+), the papers' mark: `ladmm+obcd-r` is lower than `ladmm` by more than a tenth of the objective.
- †: the method never left its start. ‡: the same, and the start is a stationary point.
- Rows "seeds": the cell for the best and for the worst seed, where they differ.
- Rows "MiB": the most memory that the method took beside its problem and its start, in a process of
  its own with `--jobs 2` or more; the median of the seeds, and a range of more than 1 MiB.
- Rows "paper": the published figures, the paper's own best and the gaps above it.
- Rows "surrogate" (thin curves in the figures): f + 1000‖min(0, X)‖_F at the last point of a method
  that may leave X ≥ 0, minus the same lowest objective. The surrogate can be below the optimum: a
  negative entry of size ε costs 1000ε and gains ε times the slope of f, which is up to ‖A‖².

The papers' w1a has another column order, and their randn is another draw. The objectives
here and in the papers should therefore agree in size, but not in their digits."""


@dataclass(frozen=True)
class Run:
    """Finished tasks of one suite, with their settings and environment.

    Attributes
    ----------
    tables : tuple of Table
        Tables of the suite.
    records : list of dict
        Finished tasks.
    settings : dict
        Options of the command line.
    environment : dict
        Versions, machine, commit.
    """

    tables: tuple[Table, ...]
    records: list[Record]
    settings: dict[str, Any]
    environment: dict[str, Any]

    def line(self, row: Row) -> dict[str, list[Record]]:
        """Finished tasks of a row by method, in the order of the columns."""
        asked = set(row.methods)
        found: dict[str, list[Record]] = defaultdict(list)
        for record in self.records:
            name, _, start = record["method"].partition("@")
            label = name if start in ("", row.starts[0]) else record["method"]
            if record["row"] == row.id and (label in asked or not asked):
                found[label].append(record)
        return dict(sorted(found.items(), key=lambda item: _position(item[0])))

    def stuck(self) -> list[tuple[Row, str]]:
        """Rows and methods that never left their start."""
        rows = {row.id: row for table in self.tables for row in table.rows}
        return [(row, label) for row in rows.values() for label in stuck(self.line(row))]


DEFAULT = "orthobcd (default)"
"""Title of the column of `auto`."""


def _position(label: str) -> tuple[str, int]:
    """Sort key of columns: the default solver first, then the order of the suites."""
    name, _, start = label.partition("@")
    if name == "auto":
        return start, -1
    return start, ORDER.index(name) if name in ORDER else len(ORDER)


def write_all(run: Run, folder: Path) -> list[Path]:
    """Write every report; figures only with matplotlib. Returns the files written."""
    lines = ["# Comparison", "", *_head(run), LEGEND, "", *_data([run]), "", *_sections(run)]
    text = "\n".join(lines)
    markdown = folder / "comparison.md"
    write_text(markdown, text.rstrip() + "\n")
    written = [markdown, write_json(run, folder / "run.json")]
    return written + write_figures(run, folder / "figures")


def write_json(run: Run, path: Path) -> Path:
    """Write versions, machine, commit, settings and all results without their histories."""
    results = [{k: v for k, v in record.items() if k != "history"} for record in run.records]
    content = {"environment": run.environment, "settings": run.settings, "results": results}
    write_text(path, json.dumps(content, indent=1) + "\n")
    return path


def median_objective(records: list[Record], field: str = "objective") -> float:
    """Median over seeds; infinite if any seed failed."""
    values = [record.get(field, math.inf) for record in records]
    return float(statistics.median(values)) if values else math.inf


def places(scores: dict[str, float]) -> dict[str, int]:
    """Place 1, 2, 3, ... of every method; near-equal objectives share a place."""
    order = sorted((s, name) for name, s in scores.items() if math.isfinite(s))
    result: dict[str, int] = {}
    place, held = 0, -math.inf
    if order:
        best, worst = order[0][0], order[-1][0]
        tie = max(TIE * min(abs(best), worst - best), ROUNDING * abs(best))
    for score, name in order:
        if place == 0 or score > held + tie:
            place, held = place + 1, score
        result[name] = place
    return result


def stuck(line: dict[str, list[Record]]) -> list[str]:
    """Methods of a row that never left their start and did not prove it stationary.

    Methods that share the row's first place are excluded: their start is the best point.
    """
    place = places({label: median_objective(found) for label, found in line.items()})
    return [
        label
        for label, found in line.items()
        if place.get(label, 0) > 1 and any(record.get("stuck", False) for record in found)
    ]


def _head(run: Run) -> list[str]:
    settings, environment = run.settings, run.environment
    machine = environment.get("machine", {})
    packages = environment.get("packages", {})
    versions = ", ".join(f"{name} {found}" for name, found in packages.items() if found)
    jobs = settings.get("jobs", 1)
    loads = [record["load"] for record in run.records if record.get("load") is not None]
    busy = f", {statistics.median(loads):.2g} processes at work (median)" if loads else ""
    return [
        f"Suite `{settings['suite']}`{' (full)' if settings.get('full') else ''}, "
        f"{settings['time']:g} s per method and row, {settings['seeds']} seed(s), every method on "
        f"one core{f', {jobs} at a time' if jobs > 1 else ''}. {machine.get('processor', '')}, "
        f"{machine.get('cpus', '?')} cores{busy}, "
        f"Python {environment.get('python', '?')}, {versions}, "
        f"commit `{str(environment.get('commit'))[:10]}`.",
        "",
    ]


def _data(runs: list[Run]) -> list[str]:
    """Lines about the preparation of the data of the runs."""
    rows = (row for run in runs for table in run.tables for row in table.rows if run.line(row))
    return data_lines(list(dict.fromkeys(row.data for row in rows)))


def data_lines(names: list[str]) -> list[str]:
    """Lines about the preparation of data sets and the public sources of their files."""
    lines = ["Data:", "", *(f"- {name}: {dataset(name).description}." for name in names)]
    files = dict.fromkeys(dataset(name).file for name in names if dataset(name).file)
    if files:
        lines += ["", *FILES_HEAD.rstrip().splitlines(), ""]
    return lines + [f"- `{file}`: {ORIGINS[file]}." for file in files if file in ORIGINS]


def _sections(run: Run) -> list[str]:
    """Every table, notes about its cells, and our default solver beside the competitors."""
    lines: list[str] = []
    for table in run.tables:
        rows = [row for row in table.rows if run.line(row)]
        if not rows:
            continue
        lines += [f"## {table.title}", ""]
        if table.note:
            lines += [table.note, ""]
        lines += [*_table(run, table, rows), ""]
        notes = [note for row in rows for note in _notes(row, run.line(row))]
        if notes:
            lines += [*notes, ""]
    return lines + _beside(run)


def _table(run: Run, table: Table, rows: list[Row]) -> list[str]:
    """A line for each row, a column for each method, the paper's figures below ours."""
    labels = {label for row in rows for label in run.line(row)}
    columns = sorted(labels, key=_position)
    titles = [DEFAULT if label == "auto" else label for label in columns]
    lines = ["| row | F_min | " + " | ".join(titles) + " |", "|---" * (len(columns) + 2) + "|"]
    for row in rows:
        line = run.line(row)
        scores = {label: median_objective(found) for label, found in line.items()}
        best, place = min(scores.values()), places(scores)
        held = stuck(line)
        cells = [
            _cell(row, line[label], scores[label], best, place.get(label, 0))
            + (" (+)" if _improves(label, scores) else "")
            + (" †" if label in held else "")
            if label in line
            else ""
            for label in columns
        ]
        lines.append(f"| {row.title} | {best:.8g} | " + " | ".join(cells) + " |")
        paper = published(table.title, row, float(run.settings["time"]))
        below = [_seeds_line(row, line, best, columns), _memory_line(line, columns)]
        below.append(_surrogate_line(line, best, columns))
        below += [_paper_line(paper, row, columns)] if paper else []
        lines += [text for text in below if text]
    return lines


def _improves(label: str, scores: dict[str, float]) -> bool:
    """True if a hybrid has the papers' mark (+)."""
    name, at, start = label.partition("@")
    first, plus, _ = name.partition("+")
    begun = scores.get(f"{first}{at}{start}", math.inf)
    if not plus or not math.isfinite(begun):
        return False
    return scores[label] < begun - MARKED * abs(begun)


def _cell(row: Row, found: list[Record], score: float, best: float, place: int) -> str:
    if not math.isfinite(score):
        return "failed"
    kept = ""
    if row.is_mixed:
        kept = f" [{statistics.median(record['feasibility'] for record in found):.1g}]"
    if row.unbounded:
        return f"{score:.3g}{kept}"
    gap = score - best
    text = "0" if gap == 0.0 else f"{gap:.3g}"
    text = {1: f"**{text}**", 2: f"*{text}*", 3: f"<u>{text}</u>"}.get(place, text)
    projected = median_objective(found, "objective_at_projection")
    if abs(projected - score) > TIE * max(1.0, abs(score)):
        text += f" ({projected - best:.3g})"
    stationary = all(
        "@" in record["method"]
        and record["status"] == "CONVERGED"
        and record["objective"] == record["start_objective"]
        for record in found
    )
    return (f"{text} ‡" if stationary and place > 1 else text) + kept


def _line(head: str, columns: list[str], cells: dict[str, str]) -> str:
    """A line below a row with the cells of some methods, empty without cells."""
    texts = [cells.get(label, "") for label in columns]
    return f"| {head} | {' | '.join(texts)} |" if any(texts) else ""


def _seeds_line(row: Row, line: dict[str, list[Record]], best: float, columns: list[str]) -> str:
    """The best and the worst seed of each method."""
    base = 0.0 if row.unbounded else best
    cells = {}
    for label, found in line.items():
        values = [record.get("objective", math.inf) - base for record in found]
        ends = [f"{v:.3g}" if math.isfinite(v) else "failed" for v in (min(values), max(values))]
        cells[label] = " to ".join(ends) if ends[0] != ends[1] else ""
    return _line("seeds |", columns, cells)


def _memory_line(line: dict[str, list[Record]], columns: list[str]) -> str:
    """The median and the range of the memory of each method."""
    cells = {}
    for label, found in line.items():
        values = [record["memory"] for record in found if record.get("memory") is not None]
        if values:
            low, high = min(values), max(values)
            spread = f" ({low:.0f}–{high:.0f})" if high - low > 1.0 else ""
            cells[label] = f"{statistics.median(values):.0f}{spread}"
    return _line("MiB |", columns, cells)


def _surrogate(found: list[Record]) -> float | None:
    """The median surrogate objective of the last points of a method that may leave X ≥ 0."""
    values = [record.get("surrogate") for record in found]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _surrogate_line(line: dict[str, list[Record]], best: float, columns: list[str]) -> str:
    values = {label: _surrogate(found) for label, found in line.items()}
    cells = {label: f"{v - best:.3g}" for label, v in values.items() if v is not None}
    return _line("surrogate |", columns, cells)


def _paper_line(paper: Published, row: Row, columns: list[str]) -> str:
    base, cells = paper.f_min if row.unbounded else 0.0, {}
    for label in columns:
        name, _, start = label.partition("@")
        gap = paper.gaps.get(f"{name}@{start or row.starts[0]}")
        cells[label] = "" if gap is None else f"{gap + base:.3g}"
    return _line(f"paper, {paper.seconds:g} s | {paper.f_min:.6g}", columns, cells)


def _notes(row: Row, line: dict[str, list[Record]]) -> list[str]:
    lines = [f"- † `{label}` never left its start on {row.title}." for label in stuck(line)]
    for label, found in line.items():
        errors = sorted({record["error"] for record in found if "error" in record})
        lines += [f"- `{label}` failed on {row.title}: {error}" for error in errors]
        outside = [record.get("package_infeasibility") or 0.0 for record in found]
        if max(outside) > 0.0:
            lines.append(f"- `{label}` returned ‖VVᵀ − I‖ = {max(outside):.2g} on {row.title}.")
        inner = max(record.get("inner_residual") or 0.0 for record in found)
        if inner > INNER_TOLERANCE:
            lines.append(
                f"- `{label}` solved a tangent problem only to {inner:.2g}, not to "
                f"{INNER_TOLERANCE:g}, on {row.title}."
            )
    return lines


def _beside(run: Run) -> list[str]:
    """The worst seed of `auto` beside the best competitor, and the time to the same objective."""
    rows = {row.id: row for table in run.tables for row in table.rows}
    found = []
    for row in rows.values():
        line = run.line(row)
        ours = [record for record in line.get("auto", []) if "error" not in record]
        scores = {
            label: median_objective(records)
            for label, records in line.items()
            if label.partition("@")[0] in METHODS
        }
        if not ours or not scores:
            continue
        winner = min(scores, key=lambda label: scores[label])
        theirs, worst = scores[winner], max(record["objective"] for record in ours)
        size = max(abs(theirs), 1e-300)
        times = [_reached(record["history"], theirs + TIE * size) for record in ours]
        found.append(
            (row, worst, theirs, winner, (theirs - worst) / size, statistics.median(times))
        )
    if not found:
        return []
    better = sum(gap > TIE for *_, gap, _ in found)
    worse = sum(gap < -TIE for *_, gap, _ in found)
    reached = statistics.median(time for *_, time in found)
    lines = [
        "## The default solver beside the competitors",
        "",
        f"The worst seed of `auto` is better than the best competitor on {better} of {len(found)} "
        f"rows, equal (to {TIE:g}) on {len(found) - better - worse} and worse on {worse}. The "
        'column "reached" has the seconds until `auto` was as low as that competitor at its end; '
        f"their median is {reached:.2g}.",
        "",
        "| penalty | row | `auto` | best competitor | its name | lower by | reached |",
        "|---" * 7 + "|",
    ]
    for row, worst, theirs, winner, gap, time in sorted(found, key=lambda item: item[4]):
        share = f"**{gap:.1e}**" if gap < -TIE else f"{gap:+.1e}"
        when = f"{time:.1f}" if math.isfinite(time) else "–"
        name = PENALTIES[row.penalty]
        lines.append(
            f"| {name} | {row.title} | {worst:.8g} | {theirs:.8g} | {winner} | {share} | {when} |"
        )
    return lines


def _reached(history: dict[str, Any], level: float) -> float:
    """Seconds until an objective was at most ``level``; infinite if never."""
    pairs = zip(history["seconds"], history["objective"], strict=True)
    return next((float(seconds) for seconds, value in pairs if value <= level), math.inf)


def write_figures(run: Run, folder: Path) -> list[Path]:
    """Draw objective minus the row's best against seconds, on log axes; [] without matplotlib."""
    try:
        import matplotlib

        matplotlib.use("Agg")
    except ImportError:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    rows = {row.id: row for table in run.tables for row in table.rows if not row.unbounded}
    written = []
    for row in rows.values():
        finished = {
            label: found[0] for label, found in run.line(row).items() if "history" in found[0]
        }
        if finished:
            written.append(_figure(row, finished, folder / f"{row.id}.png"))
    return written


def _figure(row: Row, finished: dict[str, Record], path: Path) -> Path:
    import matplotlib.pyplot as plt

    best = min(min(record["history"]["objective"]) for record in finished.values())
    # the best method ends at 0, which a log axis cannot show: its curve ends at the floor
    floor = 1e-7 * max(1e-300, abs(best))
    figure, axes = plt.subplots(figsize=(8.0, 4.8), constrained_layout=True)
    order = sorted(finished, key=lambda label: float(finished[label]["objective"]))
    colours = plt.get_cmap("tab10")
    for index, label in enumerate(order):
        history = finished[label]["history"]
        seconds = [max(value, 1e-4) for value in history["seconds"]]
        gaps = [max(value - best, 0.5 * floor) for value in history["objective"]]
        ends = [*seconds, max(seconds[-1], finished[label]["time_limit"])]
        curves = [(gaps, label, 1.4)]
        if "surrogate" in history:
            outside = [max(value - best, 0.5 * floor) for value in history["surrogate"]]
            curves.append((outside, "_nolegend_", 0.6))
        for curve, name, width in curves:
            axes.step(
                ends,
                [*curve, curve[-1]],
                where="post",
                label=name,
                color=colours(index % 10),
                linestyle=("-", "--", ":")[index // 10 % 3],
                linewidth=width,
            )
    top = max(max(record["history"]["objective"]) - best for record in finished.values())
    axes.set(
        xscale="log", yscale="log", xlabel="seconds", title=f"{PENALTIES[row.penalty]}: {row.title}"
    )
    axes.set_ylim(floor, 2.0 * max(top, 2.0 * floor))
    axes.set_ylabel("objective − best")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), title="best first")
    with replacing(path) as part:
        figure.savefig(part, dpi=90)
    plt.close(figure)
    return path


FILES_HEAD = """\
The files in the data folder, samples in rows, and the public GitHub repositories (at a commit) that
hold their contents. A name that ends in `.csr.npz` is a sparse matrix, written with
`scipy.sparse.save_npz(name, csr_matrix)`; the others are dense, `np.savez(name, X=matrix)`. The
values are not scaled. A copy with another norm holds other data.
"""

DOCUMENT_HEAD = """\
# Comparison

Measured {dates}. Every method has the same rows, the same time and as many cores. `orthobcd-bench`
makes this page (see `orthobcd-bench --help`), from runs that anybody can repeat:

    pip install . ./benchmarks
"""


def write_document(runs: list[tuple[Path, Run]], path: Path) -> list[Path]:
    """Write all runs to one Markdown file, with one figure per table in ``images`` beside it.

    Parameters
    ----------
    runs : list of (Path, Run)
        Each run and the folder with its figures.
    path : Path
        The file to write.
    """
    images = path.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    written = [path]
    commands = [f"    {_command(run.settings)}" for _, run in runs]
    dates = sorted({run.environment["date"] for _, run in runs if "date" in run.environment})
    head = DOCUMENT_HEAD.format(
        dates=" to ".join(dict.fromkeys((*dates[:1], *dates[-1:])) or ["?"])
    )
    lines = [*head.rstrip().splitlines(), *commands, "", LEGEND, ""]
    lines += [*_data([run for _, run in runs]), ""]
    for folder, run in runs:
        lines += [f"# Suite {run.settings['suite']}", "", *_head(run), *_sections(run), ""]
        for table in run.tables:
            source = next(
                (
                    found
                    for row in table.rows
                    if (found := folder / "figures" / f"{row.id}.png").exists() and run.line(row)
                ),
                None,
            )
            if source is not None:
                name = f"{path.stem}-{source.name}"
                shutil.copyfile(source, images / name)
                written.append(images / name)
                lines += [f"![{table.title}](images/{name})", ""]
    write_text(path, "\n".join(lines).rstrip() + "\n")
    return written


def _command(settings: dict[str, Any]) -> str:
    """The command line of a run."""
    parts = [f"orthobcd-bench --suite {settings['suite']} --data DIR --time {settings['time']:g}"]
    parts += [f"--{name} {settings.get(name) or 1}" for name in ("seeds", "jobs")]
    # the full tables of a suite may have another polish
    polish = settings.get("polish", 0.0)
    parts += [f"--polish {polish:g}"] if polish or settings.get("full") else []
    parts += ["--full"] if settings.get("full") else []
    parts += [
        f"--{name} {' '.join(settings[name])}" for name in ("methods", "rows") if settings.get(name)
    ]
    return " ".join(parts)
