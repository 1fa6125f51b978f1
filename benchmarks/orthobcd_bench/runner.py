"""Runs tasks, each in a fresh process on cores of its own, and writes each to disk at once."""

from __future__ import annotations

import importlib
import json
import math
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import orthobcd as ob
from orthobcd import HyperbolicEigenvalueProblem, Result, Status
from orthobcd._internal.checks import FloatArray
from orthobcd.penalties import Penalty

from .baselines import HYPERBOLIC_METHODS, METHODS, PROBE_METHODS, methods_for
from .baselines.geometry import random_stiefel
from .baselines.hyperbolic import reference_start
from .baselines.oracle import oracle_of
from .baselines.recorder import HELD
from .baselines.starts import varimax_spectral
from .data import load
from .suites import (
    HYBRIDS,
    HYPERBOLIC_HYBRIDS,
    HYPERBOLIC_OURS,
    OURS,
    PROBE_HYBRIDS,
    PROBE_OURS,
    Row,
)

HISTORY_POINTS = 200
"""Approximate number of points to which a longer convergence history is thinned."""

IMPROVED = 1e-9
"""Relative decrease of the objective below which it counts as unchanged."""

PROBE_ROWS = 500
"""Largest number of rows of the data of a structural probe."""

RAPIDITY_BOUND = 1e-2
"""Largest rapidity of our moves on the unbounded hyperbolic rows."""

SOLVERS: dict[str, Any] = {
    "obcd-tiled": ob.OBCD(working_set="tiled"),
    "obcd-r": ob.OBCD(working_set="random"),
    "obcd-sv": ob.OBCD(working_set="wss-sv"),
    "obcd-or": ob.OBCD(working_set="wss-or"),
    "path": ob.Continuation(),
    "auto": ob.Auto(),
    "jobcd-rows": ob.JOBCD(side="rows"),
    "jobcd-columns": ob.JOBCD(side="columns"),
    "jobcd-both": ob.JOBCD(side="both"),
    "jobcd-jacobi": ob.JOBCD(update="jacobi", side="rows"),
    "default": None,
    "j-jobcd": ob.VRJOBCD(full_gradient=True),
    "vr-j-jobcd": ob.VRJOBCD(),
    "gs-jobcd": ob.JOBCD(side="rows", working_set="random"),
}
"""Our solvers by name."""

OWN_START = {"auto", "path", *(name for name, method in METHODS.items() if method.own_start)}
"""Methods that make their own start."""


@dataclass(frozen=True)
class Task:
    """One method on one row with one seed.

    Attributes
    ----------
    row : Row
        The problem.
    method : str
        ``"name"`` of a method that makes its own start, ``"name@start"`` of any other.
    seed : int
        Seed of the start and of the method.
    seconds : float
        Time limit.
    polish : float, default 0.0
        Seconds of the second method of a hybrid, whose first method then has the whole time limit;
        with 0 each has half of the limit.
    """

    row: Row
    method: str
    seed: int
    seconds: float
    polish: float = 0.0

    @property
    def key(self) -> str:
        """Name of the task in ``results.jsonl``."""
        polish = f"+{self.polish:g}s" if self.polish else ""
        return f"{self.row.id}|{self.method}|seed{self.seed}|{self.seconds:g}s{polish}"


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
        Folder of the data files.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._problem: tuple[str, Any] | None = None
        self._start: tuple[tuple[str, str, int], FloatArray] | None = None

    def methods(self, row: Row) -> list[str]:
        """All methods of a row, ours first, with the names of their starts."""
        if row.penalty == "probe":
            there = [*PROBE_OURS, *PROBE_METHODS, *PROBE_HYBRIDS]
        elif row.penalty == "hyperbolic":
            there = [*HYPERBOLIC_OURS, *HYPERBOLIC_METHODS, *HYPERBOLIC_HYBRIDS]
        else:
            theirs = methods_for(_penalty(row.penalty, 1.0, row.r))
            without = {"nonneg": ("path",), "count": OURS[:-1]}.get(row.penalty, ())
            ours = [name for name in OURS if name not in without]
            there = [*ours, *theirs, *(name for name in HYBRIDS if name.split("+")[0] in theirs)]
        if row.methods:
            asked = [method.partition("@") for method in row.methods]
            named = [(name, start or row.starts[0]) for name, _, start in asked if name in there]
        else:
            named = [(name, start) for start in row.starts for name in there]
        return list(
            dict.fromkeys(name if name in OWN_START else f"{name}@{start}" for name, start in named)
        )

    def problem(self, row: Row) -> Any:
        """The problem of a row; kept until the next call for another row."""
        if self._problem is None or self._problem[0] != row.id:
            self._problem = (row.id, self._build(row))
        return self._problem[1]

    def start(self, row: Row, name: str, seed: int) -> FloatArray:
        """A start by name; every one is feasible. The last one is kept."""
        key = (row.id, name, seed)
        if self._start is None or self._start[0] != key:
            self._start = (key, _start(self.problem(row), name, seed))
        return self._start[1]

    def _build(self, row: Row) -> Any:
        matrix = load(row.data, self.folder)
        signature = np.where(np.arange(matrix.shape[1]) < row.r, 1.0, -1.0)
        if row.penalty == "probe":
            matrix = matrix.toarray() if hasattr(matrix, "nnz") else matrix
            filled = np.linalg.norm(matrix[:, signature < 0.0], axis=1) > 0.0
            return ob.hyperbolic.HyperbolicStructuralProbeProblem(
                matrix[filled][:PROBE_ROWS], signature
            )
        if row.penalty == "hyperbolic":
            if row.unbounded:
                half = np.sqrt(0.5) * matrix
                return HyperbolicEigenvalueProblem(half, signature, sense="max")
            return HyperbolicEigenvalueProblem(matrix, signature, ridge=row.ridge)
        if row.normalised:
            values = matrix.data if hasattr(matrix, "nnz") else matrix
            matrix = matrix * ((np.sqrt(2.0) if row.penalty == "l0" else 1.0) / _norm(values))
        lam = row.lam
        if row.relative:
            squares = matrix.multiply(matrix) if hasattr(matrix, "nnz") else matrix * matrix
            lam *= float(np.asarray(squares.sum(axis=0)).max())
        if row.penalty == "nonneg":
            return ob.NonnegativePCAProblem(matrix, row.r)
        return ob.SparsePCAProblem(matrix, row.r, _penalty(row.penalty, lam, row.r))

    def run(self, task: Task) -> dict[str, Any]:
        """Run one task; a failure is recorded, not raised.

        ``"memory"`` is the largest resident memory of the process during the method, less that
        before, in MiB (Linux only): in a fresh process the memory of the method alone.
        """
        record = _described(task)
        try:
            problem = self.problem(task.row)
            start = task.method.partition("@")[2]
            x0 = self.start(task.row, start, task.seed) if start else None
            before = _resident_memory()
            with threadpool_limits(limits=1):
                result = _solve(task, problem, x0)
            after = _resident_memory()
        except Exception as error:
            return {**record, "error": f"{type(error).__name__}: {error}"}
        history = result.history
        keep = _thinned(history["seconds"])
        projection = result.extra.get("objective_at_projection", result.objective)
        return {
            **record,
            "objective": float(result.objective),
            "objective_at_projection": float(projection),
            "feasibility": float(result.feasibility),
            "last_infeasibility": float(result.extra.get("last_infeasibility", result.feasibility)),
            "package_infeasibility": result.extra.get("package_infeasibility"),
            "inner_residual": result.extra.get("inner_residual"),
            "surrogate": result.extra.get("surrogate"),
            "start_objective": float(history["objective"][0]),
            "stuck": _stuck(result, x0),
            "nonzeros": int(np.count_nonzero(result.x)),
            "status": result.status.name,
            "n_iterations": int(result.n_iterations),
            "seconds": float(result.seconds),
            "memory": None if before is None or after is None else after[1] - before[0],
            "history": {
                name: np.asarray(history[name])[keep].tolist()
                for name in ("seconds", "objective", "surrogate")
                if name in history
            },
        }


def _penalty(name: str, lam: float, r: int) -> Penalty:
    if name == "l0":
        return ob.L0(lam)
    if name == "l1":
        return ob.L1(lam)
    return ob.Cardinality((int(lam),) * r) if name == "count" else ob.NonNegative()


def _start(problem: Any, name: str, seed: int) -> FloatArray:
    """A start by name; every one is feasible."""
    if name == "cs":
        return reference_start(problem.signature)
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


def _thinned(seconds: FloatArray) -> NDArray[np.intp]:
    """Rows of a history to store: the first, the last, and one for each of geometric times."""
    last = len(seconds) - 1
    if last < HISTORY_POINTS:
        return np.arange(last + 1)
    times = np.geomspace(max(float(seconds[1]), 1e-4), float(seconds[-1]), HISTORY_POINTS)
    return np.unique([0, *np.searchsorted(seconds, times, side="right") - 1, last])


def _norm(values: Any) -> float:
    return float(np.linalg.norm(values))


def _stuck(result: Result, x0: FloatArray | None) -> bool:
    """True if a method never left its start and did not prove that the start is stationary."""
    objective = result.history["objective"]
    if objective[-1] < objective[0] - IMPROVED * abs(objective[0]):
        return False
    away = np.inf if x0 is None else _norm(result.x - x0) / _norm(x0)
    return bool(result.extra.get("moved", away) < HELD) and result.status is not Status.CONVERGED


def _solve(task: Task, problem: Any, x0: FloatArray | None) -> Result:
    name = task.method.partition("@")[0]
    if "+" not in name:
        return _run(name, task, problem, x0, task.seconds)
    return _hybrid(task, problem, x0)


def _run(name: str, task: Task, problem: Any, x0: FloatArray | None, seconds: float) -> Result:
    """One method, ours or a baseline, from x0 or its own start."""
    if ":" in name:
        method = custom_method(name)
        found: Result = method(problem, x0, max_time=seconds, seed=task.seed)
        return found
    if name in METHODS:
        return METHODS[name].solve(problem, x0, max_time=seconds, seed=task.seed)
    mixed = PROBE_METHODS if task.row.penalty == "probe" else HYPERBOLIC_METHODS
    if name in mixed:
        return mixed[name](problem, x0, max_time=seconds, seed=task.seed)
    solver = SOLVERS[name]
    if name == "gs-jobcd":
        f = ob.SmoothFunction(problem.value_and_gradient, problem.n_rows)
        problem = ob.JOrthogonalProblem(f, problem.signature)
    if task.row.unbounded:
        solver = replace(solver, rapidity_bound=RAPIDITY_BOUND)
    solved: Result = ob.solve(
        problem,
        x0,
        solver=solver,
        max_time=seconds,
        effort=math.inf,
        seed=task.seed,
        n_threads=1,
    )
    return solved


def custom_method(name: str) -> Callable[..., Result]:
    """The function that ``"module:function"`` names.

    Raises
    ------
    ValueError, ImportError, AttributeError
        If there is no such function.
    """
    module, _, function = name.partition(":")
    if not function:
        raise ValueError("must be written MODULE:FUNCTION")
    method: Callable[..., Result] = getattr(importlib.import_module(module), function)
    return method


def _hybrid(task: Task, problem: Any, x0: FloatArray | None) -> Result:
    """Runs the competitor, then our solver from the competitor's feasible point."""
    first, second = task.method.partition("@")[0].split("+")
    half = 0.5 * task.seconds
    begun = _run(first, task, problem, x0, task.seconds if task.polish else half)
    ended = _run(second, task, problem, begun.x, task.polish or half)
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
        extra={"objective_at_projection": ended.objective, "moved": begun.extra["moved"]},
    )


def _described(task: Task) -> dict[str, Any]:
    """The fields of a record that describe its task.

    ``"load"`` is the mean number of running processes in the minute before. If the load exceeds the
    number of cores, the method had less processor time than its limit.
    """
    return {
        "key": task.key,
        "row": task.row.id,
        "method": task.method,
        "seed": task.seed,
        "time_limit": task.seconds + task.polish,
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def _resident_memory() -> tuple[float, float] | None:
    """Resident memory of this process in MiB, now and the largest since the last call."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the largest begins anew
    except OSError:
        return None
    kibibytes = {line.split()[0]: float(line.split()[1]) for line in lines if line.endswith("kB")}
    return kibibytes["VmRSS:"] / 1024.0, kibibytes["VmHWM:"] / 1024.0


def run_tasks(
    bench: Bench, tasks: list[Task], store: Store, say: Callable[[str], None], jobs: int = 1
) -> Iterator[dict[str, Any]]:
    """Run the tasks that are not in the store, row by row; show progress and time left.

    Parameters
    ----------
    bench : Bench
        Runs a task.
    tasks : list of Task
        All tasks.
    store : Store
        Finished tasks; each new one is on disk before it is yielded.
    say : callable
        Takes lines of progress.
    jobs : int, default 1
        Number of tasks at a time, each in a fresh process that is bound to a core. With 1 the tasks
        run in this process.
    """
    waiting = [task for task in tasks if task.key not in store.records]
    if len(waiting) < len(tasks):
        say(f"{len(tasks) - len(waiting)} of {len(tasks)} tasks are done already")
    begun = time.perf_counter()
    promised = sum(task.seconds for task in waiting)
    spent = 0.0
    finished = map(bench.run, waiting) if jobs == 1 else _parallel(bench, waiting, jobs)
    by_key = {task.key: task for task in waiting}
    for number, record in enumerate(finished, 1):
        store.add(record)
        spent += by_key[record["key"]].seconds
        left = (time.perf_counter() - begun) / spent * (promised - spent)
        say(
            f"[{number}/{len(waiting)}] {record['row']} {record['method']}: "
            f"{record.get('objective', record.get('error'))} ({left / 60.0:.1f} min left)"
        )
        yield record


def _parallel(bench: Bench, tasks: list[Task], jobs: int) -> Iterator[dict[str, Any]]:
    """Yields records in the order of their completion; the workers end with this generator."""
    methods = multiprocessing.get_all_start_methods()
    # A fork of a process that has imported everything is also fresh, and starts at once.
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload([__name__])
    there = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    cores: queue.SimpleQueue[set[int]] = queue.SimpleQueue()
    for worker in range(jobs):
        cores.put({there[worker % len(there)]} if there else set())

    def run_fresh(task: Task) -> dict[str, Any]:
        own = cores.get()
        try:
            with ProcessPoolExecutor(1, context, _begin_worker, (own,)) as process:
                return process.submit(bench.run, task).result()
        except BrokenProcessPool:
            return {**_described(task), "error": "the process of the task was killed"}
        finally:
            cores.put(own)

    executor = ThreadPoolExecutor(jobs)
    try:
        for future in as_completed([executor.submit(run_fresh, task) for task in tasks]):
            yield future.result()
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()


def _begin_worker(own: set[int]) -> None:
    """Bind this process to its own cores; only the parent handles Ctrl-C."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if own:
        os.sched_setaffinity(0, own)


def _end_with_parent() -> None:
    """End this worker when its parent ends; else it would wait for tasks for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
