"""The bench resumes, reports, and never leaves a method out."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")

from orthobcd.baselines import METHODS, methods_for
from orthobcd.bench import run
from orthobcd.bench.data import DATASETS, MissingDataError, load
from orthobcd.bench.report import places, write_all
from orthobcd.bench.runner import Bench, Store
from orthobcd.bench.suites import OURS, SUITES, Row
from orthobcd.problems import L0

QUICK = ["--suite", "quick", "--rows", "randn-200-300-l0", "--time", "0.1"]


def _run(out: Path, *extra: str) -> int:
    return run([*QUICK, "--out", str(out), *extra])


def _without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orthobcd.bench.report.write_figures", lambda records, folder: [])


def test_reports_and_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run adds what is missing and redoes nothing; a torn line is dropped."""
    _without_figures(monkeypatch)
    assert _run(tmp_path, "--methods", "ladmm", "forward") == 0
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert len(lines) == 2
    # a killed run leaves half a line behind
    (tmp_path / "results.jsonl").write_text("\n".join(lines) + "\n" + lines[0][:40])
    assert _run(tmp_path, "--methods", "ladmm", "forward", "spm") == 0
    store = Store(tmp_path)
    assert {record["method"] for record in store.records.values()} == {"ladmm", "forward", "spm"}
    kept = (tmp_path / "results.jsonl").read_text().splitlines()
    assert kept[:2] == lines
    with (tmp_path / "results.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 3
    assert all(float(row["feasibility"]) < 1e-11 for row in rows)
    content = json.loads((tmp_path / "run.json").read_text())
    assert content["environment"]["packages"]["numpy"] == np.__version__
    markdown = (tmp_path / "comparison.md").read_text()
    assert "| F_min |" in markdown
    assert "**0**" in markdown


def test_same_table_after_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C loses the running task only; what was finished enters the final table unchanged."""
    _without_figures(monkeypatch)
    original = Bench.run
    calls = []

    def interrupted(self: Bench, task):  # type: ignore[no-untyped-def]
        calls.append(task)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(self, task)

    monkeypatch.setattr(Bench, "run", interrupted)
    methods = ["--methods", "ladmm", "spm", "forward"]
    assert _run(tmp_path, *methods) == 130
    first = Store(tmp_path).records
    assert len(first) == 1
    assert (tmp_path / "comparison.md").exists()
    monkeypatch.setattr(Bench, "run", original)
    assert _run(tmp_path, *methods) == 0
    final = Store(tmp_path).records
    assert len(final) == 3
    for key, record in first.items():
        assert final[key] == record
    table = (tmp_path / "comparison.md").read_text()
    assert _run(tmp_path, *methods) == 0
    assert (tmp_path / "comparison.md").read_text() == table


def test_failures_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_figures(monkeypatch)

    def broken(task, problem, x0):  # type: ignore[no-untyped-def]
        raise ValueError("no luck")

    monkeypatch.setattr("orthobcd.bench.runner._solve", broken)
    assert _run(tmp_path, "--methods", "ladmm") == 1
    assert "no luck" in (tmp_path / "comparison.md").read_text()


def test_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    record = {
        "key": "a",
        "row": "a-row",
        "data": "x",
        "penalty": "l0",
        "lam": 1.0,
        "relative": False,
        "normalised": False,
        "r": 2,
        "start": "identity",
        "method": "ladmm",
        "objective": -2.0,
        "start_objective": -1.0,
        "feasibility": 0.0,
        "history": {"seconds": [0.0, 1.0], "objective": [-1.0, -2.0]},
    }
    paths = write_all([record], tmp_path, {"suite": "quick"})
    assert paths[-1].suffix == ".png"
    assert paths[-1].stat().st_size > 1000


def test_every_method_is_in_the_quick_suite() -> None:
    bench = Bench(None)
    present = {name for row in SUITES["quick"].rows for name in bench.methods(row)}
    installed = {name for row in ("l0", "l1", "nonneg") for name in _named(row)}
    assert installed <= present
    assert {"obcd-tiled", "obcd-r"} <= present
    assert set(OURS).isdisjoint(METHODS)


def _named(penalty: str) -> set[str]:
    from orthobcd.bench.runner import _penalty

    return set(methods_for(_penalty(penalty, 1.0)))


def test_suites_name_known_data() -> None:
    for suite in SUITES.values():
        ids = [row.id for row in suite.rows]
        assert len(ids) == len(set(ids))
        for row in suite.rows:
            assert row.data in DATASETS or row.penalty == "hyperbolic"


def test_missing_data_is_named() -> None:
    with pytest.raises(MissingDataError, match="w1a"):
        load("w1a", None)


def test_places_share_ties() -> None:
    ranks = places({"a": 1.0, "b": 1.0 + 1e-9, "c": 2.0, "d": float("inf")})
    assert ranks == {"a": 1, "b": 1, "c": 2}


def test_starts_are_feasible() -> None:
    bench = Bench(None)
    for start in ("identity", "random", "varimax", "partition"):
        problem, x0 = bench.prepare(Row("randn-200-300", "l0", 5, 1.0, start=start), 0)
        assert np.linalg.norm(x0.T @ x0 - np.eye(5)) < 1e-12
        assert problem.penalty.lam == 1.0
    problem, x0 = bench.prepare(Row("randn-20-12", "hyperbolic", 7, start="cs"), 0)
    assert problem.infeasibility(x0) < 1e-12


def test_relative_weight() -> None:
    problem, _ = Bench(None).prepare(Row("randn-200-300", "l0", 5, 0.5, relative=True), 0)
    largest = float(np.max(-np.diag(problem.smooth.C)))
    assert problem.penalty.lam == pytest.approx(0.5 * largest)
    assert isinstance(problem.penalty, L0)


def test_bad_options() -> None:
    for argv in (["--time", "0"], ["--seeds", "0"], ["--methods", "nonsense"]):
        with pytest.raises(SystemExit):
            run([*argv])
