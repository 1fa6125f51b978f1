"""The bench resumes, reports, and never leaves a method out."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("threadpoolctl")

import orthobcd as ob
from orthobcd import Status
from orthobcd.penalties import L0
from orthobcd_bench import run, runner
from orthobcd_bench.baselines import HYPERBOLIC_METHODS, METHODS, PROBE_METHODS, methods_for
from orthobcd_bench.baselines.oracle import oracle_of
from orthobcd_bench.baselines.scoring import surrogate
from orthobcd_bench.data import DATASETS, LISTS, ORIGINS, dataset
from orthobcd_bench.published import published
from orthobcd_bench.report import Run, data_lines, places, write_all
from orthobcd_bench.runner import Bench, Store, Task
from orthobcd_bench.suites import (
    HYPERBOLIC_HYBRIDS,
    HYPERBOLIC_OURS,
    OURS,
    PAPER_DATA,
    PROBE_HYBRIDS,
    PROBE_OURS,
    SUITES,
    Row,
    Table,
)

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]

QUICK = ["--suite", "quick", "--rows", "randn-200-300-l0", "--time", "0.1"]


def _run(out: Path, *extra: str) -> int:
    return run([*QUICK, "--out", str(out), *extra])


def _record(row: Row, method: str, *objectives: float, seed: int = 0) -> dict[str, Any]:
    """What the bench stores of a method whose objective falls in half of a second each time."""
    return {
        "key": f"{method}|{seed}",
        "row": row.id,
        "method": method,
        "seed": seed,
        "time_limit": 1.0,
        "objective": objectives[-1],
        "start_objective": objectives[0],
        "status": "MAX_TIME",
        "feasibility": 0.0,
        "history": {
            "seconds": [0.5 * k for k in range(len(objectives))],
            "objective": list(objectives),
        },
    }


def _without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orthobcd_bench.report.write_figures", lambda run, folder: [])


@pytest.mark.timing
def test_reports_and_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run adds what is missing and redoes nothing; a torn line is dropped."""
    _without_figures(monkeypatch)
    assert _run(tmp_path, "--methods", "ladmm", "forward") == 0
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert len(lines) == 2
    # a killed run leaves an incomplete last line
    (tmp_path / "results.jsonl").write_text("\n".join(lines) + "\n" + lines[0][:40])
    assert _run(tmp_path, "--methods", "ladmm", "forward", "spm") == 0
    found = {record["method"] for record in Store(tmp_path).records.values()}
    assert found == {"ladmm@varimax", "forward", "spm@varimax"}
    kept = (tmp_path / "results.jsonl").read_text().splitlines()
    assert kept[:2] == lines
    content = json.loads((tmp_path / "run.json").read_text())
    assert len(content["results"]) == 3
    assert all(result["feasibility"] < 1e-11 for result in content["results"])
    assert content["environment"]["packages"]["numpy"] == np.__version__
    markdown = (tmp_path / "comparison.md").read_text()
    assert "| row | F_min | ladmm | spm | forward |" in markdown
    assert "**0**" in markdown


RESUMED = """
import sys
import orthobcd as ob
from orthobcd_bench import run, runner
if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
"""


def _is_there(group: int) -> bool:
    """Whether a process group has a process."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_same_table_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    """A killed run, started again, keeps what was finished and ends with the same table."""
    _without_figures(monkeypatch)
    script = tmp_path / "bench.py"
    script.write_text(RESUMED)
    out = tmp_path / "out"
    methods = ["ladmm", "spm", "radmm", "obcd-tiled", "forward"]
    n_tasks = 4 * len(methods)
    arguments = [*QUICK, "--seeds", "4", "--out", str(out), "--jobs", jobs, "--methods", *methods]
    command = [sys.executable, str(script), *arguments]
    first = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    results = out / "results.jsonl"
    while not results.exists() or results.read_text().count("\n") < 2:
        assert first.poll() is None
        time.sleep(0.02)
    first.kill()
    first.wait()
    # The workers of the killed process end with it.
    for _ in range(3000):
        if not _is_there(first.pid):
            break
        time.sleep(0.02)
    assert not _is_there(first.pid)
    before = Store(out).records
    assert 2 <= len(before) < n_tasks
    code = run(arguments)  # 1 where a busy machine left a method no time to move
    after = Store(out).records
    assert len(after) == n_tasks
    assert not any("error" in record for record in after.values())
    assert {key: after[key] for key in before} == before
    table = (out / "comparison.md").read_text()
    assert run(arguments) == code
    assert Store(out).records == after
    assert (out / "comparison.md").read_text() == table


def test_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C loses the running task only, and leaves reports of the finished ones."""
    _without_figures(monkeypatch)
    original = Bench.run
    calls = []

    def interrupted(self: Bench, task: Task) -> dict[str, object]:
        calls.append(task)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(self, task)

    monkeypatch.setattr(Bench, "run", interrupted)
    assert _run(tmp_path, "--methods", "ladmm", "spm", "forward") == 130
    assert len(Store(tmp_path).records) == 1
    assert (tmp_path / "comparison.md").exists()


@pytest.mark.timing
def test_document_of_finished_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--document`` makes all reports from what was stored and runs nothing."""
    out, document = tmp_path / "out", tmp_path / "docs" / "comparison.md"
    assert _run(out, "--methods", "ladmm", "auto") == 0
    reports = {path.name: path.read_text() for path in out.glob("*.md")}
    environment = json.loads((out / "run.json").read_text())["environment"]
    monkeypatch.setattr(Bench, "run", lambda self, task: pytest.fail("ran"))
    assert run(["--out", str(out), "--document", str(document)]) == 0
    assert {path.name: path.read_text() for path in out.glob("*.md")} == reports
    assert json.loads((out / "run.json").read_text())["environment"] == environment
    text = document.read_text()
    command = "orthobcd-bench --suite quick --data DIR --time 0.1 --seeds 1 --jobs 1"
    assert f"{command} --methods ladmm auto --rows randn-200-300-l0" in text
    assert "- randn-200-300: `default_rng(0).standard_normal((200, 300))`." in text
    assert "## The default solver beside the competitors" in text
    for image in re.findall(r"\((images/[^)]*)\)", text):
        assert (document.parent / image).stat().st_size > 1000


@pytest.mark.timing
def test_stuck_methods_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that keeps a bad start fails the run, unless it shows that it is stationary."""
    _without_figures(monkeypatch)
    original, status = runner._run, Status.MAX_TIME

    def idle(name: str, task: Task, problem: object, x0: np.ndarray, seconds: float):  # type: ignore[no-untyped-def]
        found = original(name, task, problem, x0, seconds)
        if name == "radmm":
            return found
        same = np.full_like(found.history["objective"], found.history["objective"][0])
        history = {**found.history, "objective": same}
        extra = {**found.extra, "moved": 1e-3 if name == "ladmm" else 1.0}
        return replace(
            found, x=x0, objective=float(same[0]), history=history, status=status, extra=extra
        )

    monkeypatch.setattr(runner, "_run", idle)
    methods = ["--methods", "ladmm", "spm", "radmm"]
    assert _run(tmp_path / "a", *methods) == 1
    text = (tmp_path / "a" / "comparison.md").read_text()
    assert "† `ladmm` never left its start" in text
    assert "`spm` never left" not in text
    # methods whose start is the best point of all methods do not count as stuck
    assert _run(tmp_path / "b", "--methods", "ladmm", "spm") == 0
    status = Status.CONVERGED
    assert _run(tmp_path / "c", *methods) == 0
    assert " ‡ |" in (tmp_path / "c" / "comparison.md").read_text()


def test_failures_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_figures(monkeypatch)

    def broken(task, problem, x0):  # type: ignore[no-untyped-def]
        raise ValueError("no luck")

    monkeypatch.setattr("orthobcd_bench.runner._solve", broken)
    assert _run(tmp_path, "--methods", "ladmm") == 1
    assert "no luck" in (tmp_path / "comparison.md").read_text()


def test_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    row = Row("randn-20-10", "l0", 2, 1.0)
    record = _record(row, "ladmm@identity", -1.0, -2.0)
    settings = {"suite": "quick", "time": 1.0, "seeds": 1}
    paths = write_all(Run((Table("T", (row,)),), [record], settings, {}), tmp_path)
    assert paths[-1].suffix == ".png"
    assert paths[-1].stat().st_size > 1000


def test_the_default_solver_stands_beside_the_best_competitor(tmp_path: Path) -> None:
    """Its worst seed counts, other solvers of ours do not, and the time is that of the level."""
    row = Row("w1a", "l0", 10, 10.0)
    records = [
        _record(row, "auto", -1.0, -90.0, -120.0),
        _record(row, "auto", -1.0, -110.0, -110.0, seed=1),
        _record(row, "forward", -1.0, -100.0),
        _record(row, "ladmm@identity", -1.0, -50.0),
        _record(row, "obcd-r@identity", -1.0, -500.0),
    ]
    settings = {"suite": "quick", "time": 1.0, "seeds": 2}
    write_all(Run((Table("T", (row,)),), records, settings, {}), tmp_path)
    page = (tmp_path / "comparison.md").read_text(encoding="utf-8")
    assert "better than the best competitor on 1 of 1 rows" in page
    line = next(line for line in page.splitlines() if line.startswith("| ℓ0 |"))
    assert line == f"| ℓ0 | {row.title} | -110 | -100 | forward | +1.0e-01 | 0.8 |"
    assert "reached" in page


def test_every_method_is_in_the_quick_suite() -> None:
    bench = Bench(None)
    rows = [row for table in SUITES["quick"].tables for row in table.rows]
    present = {name.partition("@")[0] for row in rows for name in bench.methods(row)}
    installed = {
        name
        for row in rows
        if not row.is_mixed
        for name in methods_for(runner._penalty(row.penalty, 1.0, row.r))
    }
    assert (
        installed | {*OURS, *HYPERBOLIC_OURS, *HYPERBOLIC_METHODS, *HYPERBOLIC_HYBRIDS} <= present
    )
    assert set(OURS).isdisjoint(METHODS)


@pytest.mark.parametrize("method", ["truncated-power", "forward-limit", "pca-threshold"])
@pytest.mark.parametrize(("m", "n", "r", "k"), [(12, 40, 3, 5), (60, 20, 4, 5), (9, 30, 1, 30)])
def test_methods_with_a_limit_keep_it(method: str, m: int, n: int, r: int, k: int) -> None:
    """They are feasible, not below the optimum without a limit, nor above r unit vectors."""
    A = np.random.default_rng(m).standard_normal((m, n)) * np.geomspace(1.0, 4.0, n)
    problem = ob.SparsePCAProblem(A, r, ob.Cardinality((k,) * r))
    result = METHODS[method].solve(problem, max_time=5.0, seed=0)
    assert np.count_nonzero(result.x, axis=0).max() <= k
    assert result.feasibility < 1e-11
    assert result.objective == pytest.approx(ob.value(problem, result.x).objective)
    variances = np.sort(np.sum(A * A, axis=0))[::-1]
    bound = -0.5 * np.sort(np.linalg.svd(A, compute_uv=False) ** 2)[::-1][:r].sum()
    assert bound * (1.0 + 1e-12) <= result.objective
    if method != "pca-threshold":
        assert result.objective <= -0.5 * variances[:r].sum() * (1.0 - 1e-12)
    if k == n:
        assert result.objective == pytest.approx(bound, rel=1e-6)


def test_suites_name_known_data() -> None:
    for suite in SUITES.values():
        for table in (*suite.tables, *suite.full):
            ids = [row.id for row in table.rows]
            assert len(ids) == len(set(ids))
            for row in table.rows:
                assert row.data in DATASETS or min(dataset(row.data).shape) > 1


def test_the_page_says_where_every_file_comes_from() -> None:
    assert {spec.file for spec in DATASETS.values()} == set(ORIGINS)
    for origin in ORIGINS.values():
        assert re.search(r" (in|of) [\w.-]+/\s?[\w.-]+@[0-9a-f]{8}", origin), origin
    page = (ROOT / "benchmarks" / "results" / "comparison.md").read_text(encoding="utf-8")
    names = re.findall(r"^- ([a-z0-9-]+): `", page, re.MULTILINE)
    assert {row.data for row in SUITES["quick"].tables[0].rows} <= set(names)
    assert "\n".join(data_lines(names)) in page


def test_selection_is_part_of_the_whole() -> None:
    """Each method of the default paper suite on a row is also in the full one's."""
    bench = Bench(None)
    suite = SUITES["paper"]
    whole = {
        (row.id, method)
        for table in suite.full
        for row in table.rows
        for method in bench.methods(row)
    }
    for table in suite.tables:
        for row in table.rows:
            assert {(row.id, method) for method in bench.methods(row)} <= whole
    data = {row.data for table in suite.tables for row in table.rows}
    assert {*PAPER_DATA, "w1a-290"} <= data


def test_published_figures() -> None:
    """Every w1a and randn row of the papers' tables has its line; spot checks against the print."""
    some = {"mnist-test", "cifar-1000", "tdt2-1000", "20news"}  # not all of their lines
    for table in SUITES["paper"].full:
        for row in table.rows:
            printed = row.data in ("w1a", "randn-500-1000", "w1a-290") or row.unbounded
            found = published(table.title, row, 10.0) is not None
            assert found == printed or (row.data in some and table.title.startswith("P1 Table"))
    for row in SUITES["probe"].full[0].rows:
        printed = row.data in ("w1a-100", "mnist-92")
        assert (published("P3 Table 3", row, 10.0) is not None) == printed
    for table, row, seconds, column, expected in (
        ("P1 Table 1", Row("w1a", "l0", 20, 10.0), 10.0, "spm@identity", (30.0, -5200.0, 4550.0)),
        ("P2 Table 3", Row("w1a", "nonneg", 10), 10.0, "obcd-r@partition", (60.0, -0.167, 0.0)),
        ("P3 Table 3", Row("w1a-100", "probe", 75), 50.0, "csdm@cs", (60.0, 25700.0, 5300.0)),
    ):
        line = published(table, row, seconds)
        assert line is not None
        assert (line.seconds, line.f_min, line.gaps[column]) == expected


def test_places_share_ties() -> None:
    ranks = places({"a": 1.0, "b": 1.0 + 1e-9, "c": 2.0, "d": float("inf")})
    assert ranks == {"a": 1, "b": 1, "c": 2}
    # differences count relative to the spread if a constant dominates, unless they are rounding
    assert places({"a": 1e4, "b": 1e4 + 1e-3, "c": 1e4 + 1.0}) == {"a": 1, "b": 2, "c": 3}
    assert places({"a": 1e4, "b": 1e4 + 1e-7}) == {"a": 1, "b": 1}
    assert places({"a": float("inf")}) == {}


def test_relative_weight() -> None:
    problem = Bench(None).problem(Row("randn-40-30", "l0", 5, 0.5, relative=True))
    largest = float(np.max(-np.diag(problem.smooth.C)))
    assert problem.penalty.lam == pytest.approx(0.5 * largest)
    assert isinstance(problem.penalty, L0)


def test_normalised_rows() -> None:
    """f is −½‖AX‖² with ‖A‖_F = 1 for ℓ1, and twice that for ℓ0, as the second paper has it."""
    for penalty, total in (("l1", 1.0), ("l0", 2.0)):
        row = Row("randn-40-30", penalty, 5, 1.0, normalised=True)
        C = Bench(None).problem(row).smooth.C
        assert -np.trace(C) == pytest.approx(total)


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_hyperbolic_rows(ridge: float) -> None:
    """Ours and the baselines see one problem and reach its known infimum."""
    row = Row("randn-40-12", "hyperbolic", 7, ridge=ridge, starts=("cs",))
    bench = Bench(None)
    problem = bench.problem(row)
    infimum = np.abs(np.linalg.eigvals(problem.signature[:, None] * problem.matrix)).sum()
    for method in ("jobcd-rows", "jobcd-columns", "jobcd-both", "jobcd-jacobi", "cayley-right"):
        record = bench.run(Task(row, f"{method}@cs", 0, 0.4))
        assert record.get("error") is None
        assert record["objective"] == pytest.approx(infimum, rel=1e-5)
        assert not record["stuck"]
    hybrid = bench.run(Task(row, "umcm+jobcd-rows@cs", 0, 0.4))
    assert hybrid["objective"] == pytest.approx(infimum, rel=1e-5)


def test_hybrids_have_half_of_the_time_each_or_a_polish(monkeypatch: pytest.MonkeyPatch) -> None:
    row, limits = Row("randn-40-30", "l0", 5, 1.0), []
    original = runner._run

    def noted(name: str, task: Task, problem: object, x0: np.ndarray, seconds: float):  # type: ignore[no-untyped-def]
        limits.append((name, seconds))
        return original(name, task, problem, x0, 0.05)

    monkeypatch.setattr(runner, "_run", noted)
    bench, hybrid = Bench(None), "ladmm+obcd-r@identity"
    halves, polished = Task(row, hybrid, 0, 0.4), Task(row, hybrid, 0, 0.4, polish=0.3)
    assert bench.run(halves)["time_limit"] == pytest.approx(0.4)
    assert bench.run(polished)["time_limit"] == pytest.approx(0.7)
    assert limits == [("ladmm", 0.2), ("obcd-r", 0.2), ("ladmm", 0.4), ("obcd-r", 0.3)]
    assert halves.key != polished.key


def test_polish_is_that_of_the_papers_in_full_tables_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--suite", "paper", "--time", "10", "--rows", "randn-500-1000-l0-lam1-r20", "--list"]

    def keys(*more: str) -> set[str]:
        assert run([*options, "--methods", "ladmm", "ladmm+obcd-r", *more]) == 0
        return {line.split("|", 1)[1] for line in capsys.readouterr().out.split()}

    def expected(hybrid: str) -> set[str]:
        return {"ladmm@identity|seed0|10s", f"ladmm+obcd-r@identity|seed0|{hybrid}"}

    assert keys() == expected("10s")
    assert keys("--full") == expected("10s+10s")
    assert keys("--polish", "3") == expected("10s+3s")
    assert keys("--full", "--polish", "0") == expected("10s")
    with pytest.raises(SystemExit):
        run([*options, "--polish", "-1"])
    assert "--polish must be at least 0" in capsys.readouterr().err


@pytest.mark.parametrize("asked", [["--full"], ["--full", "--polish", "0"], ["--polish", "3"]])
def test_the_printed_command_asks_for_the_same_tasks(
    asked: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _without_figures(monkeypatch)
    monkeypatch.setattr("orthobcd_bench.cli.run_tasks", lambda *_: iter(()))
    monkeypatch.chdir(tmp_path)
    chosen = ["--methods", "ladmm+obcd-r", "--rows", "randn-500-1000-l0-lam1-r20"]
    options = ["--suite", "paper", "--data", str(tmp_path), *asked, *chosen]
    assert run(options) == 0
    assert run(["--out", "bench-results", "--document", "page.md"]) == 0
    command = re.search(r"^    orthobcd-bench (.*)$", (tmp_path / "page.md").read_text(), re.M)
    assert command is not None
    capsys.readouterr()
    assert run([*options, "--list"]) == 0
    tasks = capsys.readouterr().out
    again = command[1].replace("DIR", str(tmp_path)).split()
    assert run([*again, "--list"]) == 0
    assert capsys.readouterr().out == tasks != ""


@pytest.mark.parametrize(("objective", "marked"), [(-111.0, True), (-109.0, False)])
def test_hybrids_that_gain_a_tenth_are_marked(
    objective: float, marked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_figures(monkeypatch)
    row = Row("w1a", "l0", 20, 1.0)
    records = [
        _record(row, f"{method}@identity", 0.0, value)
        for method, value in (("ladmm", -100.0), ("ladmm+obcd-r", objective), ("spm", -90.0))
    ]
    settings = {"suite": "paper", "time": 1.0, "seeds": 1, "polish": 10.0}
    write_all(Run((Table("P1 Table 2", (row,)),), records, settings, {}), tmp_path)
    text = (tmp_path / "comparison.md").read_text()
    assert (" (+) |" in text) == marked


def test_structural_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody begins at one point, ends below it, and keeps the constraint."""
    _without_figures(monkeypatch)
    row = Row("randn-40-8", "probe", 4, starts=("cs",))
    bench = Bench(None)
    problem, x0 = bench.problem(row), bench.start(row, "cs", 0)
    assert {*PROBE_OURS, *PROBE_METHODS, *PROBE_HYBRIDS} == {
        name.partition("@")[0] for name in bench.methods(row)
    }
    records = [bench.run(Task(row, method, 0, 0.2)) for method in bench.methods(row)]
    for record in records:
        assert record.get("error") is None, record
        assert record["start_objective"] == pytest.approx(problem.value(x0), rel=1e-12)
        assert record["objective"] < record["start_objective"], record["method"]
        assert record["feasibility"] < 1e-8, record["method"]
    table = Table("P3 Table 3", (row,), "As printed.")
    settings = {"suite": "probe", "time": 0.2, "seeds": 1}
    write_all(Run((table,), records, settings, {}), tmp_path)
    text = (tmp_path / "comparison.md").read_text()
    assert "randn-40-8, p = 4" in text
    assert re.search(r"\[\d[^]]*\] \|", text)


def test_surrogate_of_what_leaves_the_orthant(tmp_path: Path) -> None:
    """f + 1000‖min(0, X)‖: a line for whoever may be infeasible, and not bounded by the optimum."""
    row = Row("randn-40-30", "nonneg", 5, starts=("partition",))
    bench = Bench(None)
    ours, theirs = (
        bench.run(Task(row, name, 0, 0.2)) for name in ("obcd-r@partition", "ladmm@partition")
    )
    assert ours["surrogate"] is None
    assert len(theirs["history"]["surrogate"]) == len(theirs["history"]["objective"])
    settings = {"suite": "paper", "time": 0.2, "seeds": 1}
    write_all(Run((Table("t", (row,)),), [ours, theirs], settings, {}), tmp_path)
    assert "| surrogate |" in (tmp_path / "comparison.md").read_text()
    # The best of the three partitions, plus a small entry of row 1 in the other column.
    C = 1e4 * np.array([[1.0, 0.3, 0.0], [0.3, 0.5, 0.3], [0.0, 0.3, 0.9]])
    oracle = oracle_of(ob.NonnegativePCAProblem(np.linalg.cholesky(C).T, 2))
    x = np.zeros((3, 2))
    x[0, 0], x[1:, 1] = 1.0, np.abs(np.linalg.eigh(C[1:, 1:])[1][:, -1])
    optimum = oracle.smooth_value(x)
    for group in ([0, 1], [1, 2], [0, 2]):
        alone = ({0, 1, 2} - set(group)).pop()
        value = -0.5 * (np.linalg.eigvalsh(C[np.ix_(group, group)])[-1] + C[alone, alone])
        assert optimum <= value + 1e-9
    assert surrogate(oracle, x) == pytest.approx(optimum, rel=1e-12)
    x[1, 0] = 0.01
    assert surrogate(oracle, x) < optimum - 1.0


def test_unbounded_hyperbolic_row() -> None:
    """The problem as printed: −½ tr(XᵀDᵀDX), every method below its start, ours far below."""
    row = Row("randn-30-10", "hyperbolic", 5, unbounded=True, starts=("cs",))
    bench = Bench(None)
    data = np.random.default_rng(0).standard_normal((30, 10))
    x0 = bench.start(row, "cs", 0)
    start = -0.5 * np.linalg.norm(data @ x0) ** 2
    for method in bench.methods(row):
        record = bench.run(Task(row, method, 0, 0.2))
        assert record.get("error") is None, method
        assert record["start_objective"] == pytest.approx(start)
        if method.startswith("jobcd-rows"):
            assert record["objective"] < 100.0 * start


def test_bad_options() -> None:
    for argv in (
        ["--time", "0"],
        ["--seeds", "0"],
        ["--jobs", "0"],
        ["--methods", "nonsense"],
        ["--out", "a", "b"],
        ["--out", "nowhere", "--document", "a.md"],
    ):
        with pytest.raises(SystemExit):
            run([*argv])


# Own data and methods ----------------------------------------------------------------------------


def test_every_named_set_is_in_one_list_and_has_a_source(capsys):
    listed = [name for names in LISTS.values() for name in names]
    assert len(set(listed)) == len(listed)
    assert set(DATASETS) - set(listed) == {"w1a-290", "w1a-100", "mnist-92", "cifar-100"}
    assert run(["--list-data"]) == 0
    printed = capsys.readouterr().out
    assert all(f"  {name}: " in printed for name in listed)


def test_own_data_and_an_own_method(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "mine.npy", np.random.default_rng(0).standard_normal((30, 24)))
    (tmp_path / "mymethod.py").write_text(
        "import orthobcd as ob\n"
        "def descend(problem, x0, *, max_time, seed):\n"
        "    return ob.solve(problem, x0, solver=ob.OBCD(), max_time=max_time, seed=seed)\n"
    )
    _without_figures(monkeypatch)
    arguments = ["--data", "mine.npy", "--method", "mymethod:descend", "--rows", "rho0.1-r10"]
    arguments += ["--methods", "mymethod:descend", "--time", "0.1", "--out", "out"]
    assert run(arguments) == 0
    rows = [json.loads(line) for line in (tmp_path / "out/results.jsonl").read_text().splitlines()]
    assert {row["row"] for row in rows} == {f"mine.npy-{h}-rho0.1-r10" for h in ("l0", "l1")}
    assert all("error" not in row for row in rows)
    with pytest.raises(SystemExit):
        run(["--data", "none.npy"])
    with pytest.raises(SystemExit):
        run(["--method", "mymethod:ascend"])


TELLING = """
import os, signal
from pathlib import Path
import numpy as np
import orthobcd as ob
def grow(problem, x0, *, max_time, seed):
    with Path("processes").open("a") as stream:
        print(os.getpid(), file=stream)
    taken = np.ones((seed + 2) * 2**22)
    return ob.solve(problem, x0, solver=ob.OBCD(), max_sweeps=1 + int(taken[0]), seed=seed)
def die(problem, x0, *, max_time, seed):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_several_tasks_at_a_time_have_fresh_processes(tmp_path, monkeypatch):
    """Each says the memory of its method alone; one that is killed does not end the run."""
    monkeypatch.chdir(tmp_path)
    _without_figures(monkeypatch)
    (tmp_path / "telling.py").write_text(TELLING)
    arguments = ["--method", "telling:grow", "--method", "telling:die", "--jobs", "2"]
    arguments += ["--methods", "telling:grow", "telling:die", "--seeds", "3", "--out", "out"]
    assert run([*QUICK, *arguments]) == 1
    processes = (tmp_path / "processes").read_text().split()
    assert len(set(processes)) == 3
    assert str(os.getpid()) not in processes
    records = list(Store(tmp_path / "out").records.values())
    grown = {r["seed"]: r["memory"] for r in records if r["method"].startswith("telling:grow")}
    for seed, memory in grown.items():
        least = 32.0 * (seed + 2)  # MiB of the array
        assert least <= memory < least + 32.0
    killed = [record["error"] for record in records if record["method"].startswith("telling:die")]
    assert killed == ["the process of the task was killed"] * 3
    table = (tmp_path / "out" / "comparison.md").read_text()
    assert f"{grown[1]:.0f} ({grown[0]:.0f}–{grown[2]:.0f})" in table


def test_the_lines_below_a_row_are_the_ranges_of_its_cells(tmp_path, monkeypatch):
    """The best and the worst seed beside the row's lowest median, and the range of the memory."""
    _without_figures(monkeypatch)
    assert _run(tmp_path, "--methods", "ladmm", "spm") in (0, 1)
    seeds = {"ladmm": (-5.0, 1.0, 3.0), "spm": (2.0, 2.0, 2.0)}
    records = [
        {**record, "seed": seed, "objective": -100.0 + gap, "memory": 40.0 + 2.0 * seed}
        for record in Store(tmp_path).records.values()
        for seed, gap in enumerate(seeds[record["method"].partition("@")[0]])
    ]
    for record in records:
        record["objective_at_projection"] = record["objective"]
    settings = {"suite": "quick", "time": 0.1, "seeds": 3}
    write_all(Run(SUITES["quick"].tables, records, settings, {}), tmp_path)
    lines = (tmp_path / "comparison.md").read_text().splitlines()
    assert "| seeds | | -6 to 2 |  |" in lines
    assert "| MiB | | 42 (40–44) | 42 (40–44) |" in lines


def test_the_tables_of_the_benchmark_page_are_those_of_the_results() -> None:
    spec = importlib.util.spec_from_file_location(
        "summary", ROOT / "benchmarks" / "scripts" / "summary.py"
    )
    assert spec is not None
    assert spec.loader is not None
    summary = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(summary)
    for page in summary.PAGES:
        text = page.read_text(encoding="utf-8")
        assert any(f"<!-- {name}: " in text for name in summary.TABLES)
        assert summary.filled(text) == text, "python benchmarks/scripts/summary.py"
