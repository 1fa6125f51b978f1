"""Runs tasks one after another and writes each finished one to disk before the next begins."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import problems as ob_problems
from .._checks import FloatArray
from ..baselines import HYPERBOLIC_METHODS, METHODS, TraceProblem, methods_for
from ..baselines.geometry import random_stiefel
from ..baselines.hyperbolic import random_j_orthogonal
from ..baselines.oracle import oracle_of
from ..baselines.starts import varimax_spectral
from ..result import Result
from .data import DATASETS, gram, load
from .suites import HYBRIDS, HYPERBOLIC_OURS, OURS, Row

HISTORY_POINTS = 200
"""A stored convergence history is thinned to at most this many points."""


@dataclass(frozen=True)
class Task:
    """One method on one row with one seed."""

    row: Row
    method: str
    seed: int
    seconds: float

    @property
    def key(self) -> str:
        """Names the task in ``results.jsonl``."""
        return f"{self.row.id}|{self.method}|seed{self.seed}|{self.seconds:g}s"


class Store:
    """Finished tasks, one JSON line each; a torn last line (a killed run) is dropped."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "results.jsonl"
        self.records: dict[str, dict[str, Any]] = {}
        if self.path.exists():
            text = self.path.read_text(encoding="utf-8")
            for line in text.splitlines():
                try:
                    record = json.loads(line)
                except json.JSONDecodeError:
                    continue
                self.records[record["key"]] = record
            if text and not text.endswith("\n"):
                with self.path.open("a", encoding="utf-8") as stream:
                    stream.write("\n")

    def add(self, record: dict[str, Any]) -> None:
        """Append one record and push it to the disk."""
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        self.records[record["key"]] = record


class Bench:
    """Prepares rows (data, problem, start) and runs methods on them.

    Parameters
    ----------
    folder : Path or None
        Where the data files are.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._prepared: tuple[tuple[Row, int], Any, FloatArray] | None = None

    def methods(self, row: Row) -> list[str]:
        """Names of all methods that can take part in a row, ours first."""
        if row.penalty == "hyperbolic":
            return [*(n for n in HYPERBOLIC_OURS if _ours(n) is not None), *HYPERBOLIC_METHODS]
        names = [name for name in OURS if _ours(name) is not None]
        theirs = methods_for(_penalty(row.penalty, 1.0))
        if _ours("obcd-r") is not None:
            names += [name for name in HYBRIDS if name.split("+")[0] in theirs]
        return [*names, *theirs]

    def prepare(self, row: Row, seed: int) -> tuple[Any, FloatArray]:
        """The problem and the start of a row; kept until another row is asked for."""
        if self._prepared is None or self._prepared[0] != (row, seed):
            problem, x0 = self._build(row, seed)
            self._prepared = ((row, seed), problem, x0)
        return self._prepared[1], self._prepared[2]

    def _build(self, row: Row, seed: int) -> tuple[Any, FloatArray]:
        if row.penalty == "hyperbolic":
            return self._hyperbolic(row)
        matrix = load(row.data, self.folder)
        if row.normalised:
            values = matrix.data if hasattr(matrix, "nnz") else matrix
            matrix = matrix / float(np.linalg.norm(values))
        lam = row.lam
        if row.relative:
            squares = matrix.multiply(matrix) if hasattr(matrix, "nnz") else matrix * matrix
            lam *= float(np.asarray(squares.sum(axis=0)).max())
        problem: ob_problems.Problem
        if row.penalty == "nonneg":
            problem = ob_problems.NonnegativePCAProblem(matrix, row.r)
        else:
            problem = ob_problems.SparsePCAProblem(matrix, row.r, _penalty(row.penalty, lam))
        return problem, _start(problem, row.start, seed)

    def _hyperbolic(self, row: Row) -> tuple[Any, FloatArray]:
        if row.data in DATASETS:
            matrix = load(row.data, self.folder)
        elif row.data == "w1a-290":
            matrix = load("w1a", self.folder)[:, :290]
        else:
            _, m, n = row.data.split("-")
            matrix = np.random.default_rng(0).standard_normal((int(m), int(n)))
        curvature = gram(matrix) + row.ridge * np.eye(matrix.shape[1])
        signature = np.where(np.arange(matrix.shape[1]) < row.r, 1.0, -1.0)
        problem = TraceProblem(curvature, signature)
        return problem, random_j_orthogonal(signature)

    def run(self, task: Task) -> dict[str, Any]:
        """Run one task; a failure is recorded, not raised."""
        record: dict[str, Any] = {
            "key": task.key,
            "row": task.row.id,
            "data": task.row.data,
            "penalty": task.row.penalty,
            "lam": task.row.lam,
            "relative": task.row.relative,
            "r": task.row.r,
            "start": task.row.start,
            "normalised": task.row.normalised,
            "method": task.method,
            "seed": task.seed,
            "time_limit": task.seconds,
        }
        problem, x0 = self.prepare(task.row, task.seed)
        try:
            result = _solve(task, problem, x0)
        except Exception as error:
            return {**record, "error": f"{type(error).__name__}: {error}"}
        history = result.history
        keep = np.unique(
            np.linspace(0, len(history["seconds"]) - 1, HISTORY_POINTS).round().astype(int)
        )
        projection = result.extra.get("objective_at_projection", result.objective)
        return {
            **record,
            "objective": float(result.objective),
            "objective_at_projection": float(projection),
            "feasibility": float(result.feasibility),
            "last_infeasibility": float(result.extra.get("last_infeasibility", result.feasibility)),
            "package_infeasibility": result.extra.get("package_infeasibility"),
            "start_objective": float(history["objective"][0]),
            "nonzeros": int(np.count_nonzero(result.x)),
            "status": result.status.name,
            "n_iterations": int(result.n_iterations),
            "seconds": float(result.seconds),
            "history": {
                "seconds": np.asarray(history["seconds"])[keep].tolist(),
                "objective": np.asarray(history["objective"])[keep].tolist(),
            },
        }


def _penalty(name: str, lam: float) -> ob_problems.Penalty:
    if name == "l0":
        return ob_problems.L0(lam)
    if name == "l1":
        return ob_problems.L1(lam)
    return ob_problems.NonNegative()


def _start(problem: ob_problems.Problem, name: str, seed: int) -> FloatArray:
    """A start by name; every one is feasible."""
    oracle = oracle_of(problem)
    if name == "varimax":
        return varimax_spectral(oracle)
    if name == "random":
        return random_stiefel(oracle.n, oracle.r, np.random.default_rng(seed))
    x = np.zeros((oracle.n, oracle.r))
    if name == "partition":
        order = np.random.default_rng(seed).permutation(oracle.n)
        for column, group in enumerate(np.array_split(order, oracle.r)):
            x[group, column] = 1.0 / np.sqrt(group.size)
        return x
    x[np.arange(oracle.r), np.arange(oracle.r)] = 1.0
    return x


def _ours(name: str) -> Any | None:
    """One of our solvers by name, or None if this build does not have it."""
    import orthobcd as ob

    makers: dict[str, tuple[str, dict[str, Any]]] = {
        "obcd-tiled": ("OBCD", {"working_set": "tiled"}),
        "obcd-r": ("OBCD", {"working_set": "random"}),
        "obcd-sv": ("OBCD", {"working_set": "wss-sv"}),
        "obcd-or": ("OBCD", {"working_set": "wss-or"}),
        "path": ("Path", {}),
        "auto": ("Auto", {}),
        "jobcd-rows": ("JOBCD", {"side": "rows"}),
        "jobcd-columns": ("JOBCD", {"side": "columns"}),
        "jobcd-both": ("JOBCD", {"side": "both"}),
        "jobcd-jacobi": ("JOBCD", {"update": "jacobi", "side": "rows"}),
    }
    kind, options = makers[name]
    maker = getattr(ob, kind, None)
    if maker is None:
        return None
    try:
        return maker(**options)
    except (TypeError, ValueError):
        return None


def _solve(task: Task, problem: Any, x0: FloatArray) -> Result:
    name, seconds, seed = task.method, task.seconds, task.seed
    if task.row.penalty == "hyperbolic":
        if name in HYPERBOLIC_METHODS:
            return HYPERBOLIC_METHODS[name](problem, x0, max_time=seconds, seed=seed)
        return _solve_ours(name, _as_ours(problem), x0, seconds, seed)
    if name in METHODS:
        baseline = METHODS[name]
        start = None if baseline.own_start else x0
        return baseline.solve(problem, start, max_time=seconds, seed=seed)
    if name in HYBRIDS:
        return _hybrid(task, problem, x0)
    start = None if name in ("auto", "path") else x0
    return _solve_ours(name, problem, start, seconds, seed)


def _as_ours(problem: TraceProblem) -> Any:
    """The hyperbolic row as our own problem class: A is a square root of the matrix."""
    import orthobcd as ob

    # ½⟨X, (2A) X⟩ = tr(XᵀAX)
    maker: Any = ob.JOrthogonalProblem  # type: ignore[attr-defined, unused-ignore]
    return maker(ob.Quadratic(2.0 * problem.matrix), problem.signature)


def _solve_ours(
    name: str, problem: Any, x0: FloatArray | None, seconds: float, seed: int
) -> Result:
    import orthobcd as ob

    solved: Result = ob.solve(problem, x0, solver=_ours(name), max_time=seconds, seed=seed)
    return solved


def _hybrid(task: Task, problem: Any, x0: FloatArray) -> Result:
    """Half of the time for the competitor, the other half for OBCD-R from its feasible point."""
    first, second = task.method.split("+")
    baseline = METHODS[first]
    half = 0.5 * task.seconds
    begun = baseline.solve(problem, x0, max_time=half, seed=task.seed)
    ended = _solve_ours(second, problem, begun.x, half, task.seed)
    history = {
        name: np.concatenate([begun.history[name], ended.history[name]])
        for name in ("seconds", "objective", "feasibility", "n_iterations")
    }
    history["seconds"][len(begun.history["seconds"]) :] += begun.seconds
    return Result(
        x=ended.x,
        objective=ended.objective,
        smooth_value=ended.smooth_value,
        penalty_value=ended.penalty_value,
        feasibility=ended.feasibility,
        status=ended.status,
        n_iterations=begun.n_iterations + ended.n_iterations,
        n_sweeps=ended.n_sweeps,
        n_updates=ended.n_updates,
        seconds=begun.seconds + ended.seconds,
        seed=task.seed,
        history=history,
        extra={"objective_at_projection": ended.objective},
    )


def run_tasks(
    bench: Bench, tasks: list[Task], store: Store, say: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Run what is not in the store yet, row by row, with progress and time left."""
    waiting = [task for task in tasks if task.key not in store.records]
    if len(waiting) < len(tasks):
        say(f"{len(tasks) - len(waiting)} of {len(tasks)} tasks are done already")
    begun = time.perf_counter()
    promised = sum(task.seconds for task in waiting)
    spent = 0.0
    for number, task in enumerate(waiting, 1):
        elapsed = time.perf_counter() - begun
        pace = elapsed / spent if spent > 0.0 else 1.1
        left = pace * (promised - spent)
        say(f"[{number}/{len(waiting)}] {task.row.id} {task.method} (left: {left / 60.0:.1f} min)")
        record = bench.run(task)
        spent += task.seconds
        store.add(record)
        yield record
