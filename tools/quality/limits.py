"""Lateness of solves after a time limit and after Ctrl-C, on one thread.

``python tools/quality/limits.py`` (needs the package and scipy) solves one problem per row in
a process of its own: dense and sparse data, three penalties, 5 and 50 components. Making the data
and the problem is not counted. A row has

* the lateness of the solve for every time limit (seconds; wanted: 0.1 + 5 % of the limit),
* the lateness for a limit of 1 s with a callback that sleeps 0.3 s (wanted: one sleep more),
* the time from Ctrl-C, pressed at random moments, to the return (worst; wanted: 0.2),
* the share of the wall-clock time that the process was running, and the worst lateness times that
  share; with a share below .9 the machine was busy, and the row is not reliable.

A solve that is still running ``--cap`` seconds after its time is killed and shown as ``>cap``.
``--rows 'sparse 20000 l1*'`` chooses rows by name (kind, size, penalty, components).
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import os
import random
import select
import signal
import subprocess
import sys
import time
from typing import IO, Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402

import orthobcd as ob  # noqa: E402

# Started in the background of a script, this process and its children would ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

KINDS = ("dense", "sparse")
SIZES = (1000, 5000, 20_000)
PENALTIES = ("l0", "l1", "nonnegative")
COMPONENTS = (5, 50)
LIMITS = (0.0, 0.01, 0.1, 1.0, 5.0)

SAMPLES_PER_COLUMN = 0.25
"""Rows of the data for each of its columns."""

DENSITY = 0.01
"""Share of nonzeros of sparse data."""

WEIGHT = {"l0": 0.1, "l1": 0.3}
"""λ relative to the mean diagonal entry of AᵀA: some hundreds of nonzeros."""

SLEEP = 0.3
"""Seconds that the sleeping callback sleeps."""

SLEEPING_LIMIT = 1.0

LATEST_PRESS = 4.0
"""Latest Ctrl-C in seconds: one comes after ``LATEST_PRESS`` · u³ for uniform u, mostly early."""

ENOUGH = 600.0
"""Time limit of a solve that Ctrl-C is to end."""


def problem(kind: str, n: int, penalty: str, r: int) -> Any:
    """The problem of a row, as its user would state it."""
    rng = np.random.default_rng(n)
    m = int(SAMPLES_PER_COLUMN * n)
    if kind == "sparse":
        A: Any = sp.random_array((m, n), density=DENSITY, rng=rng, format="csc")
        total = float(A.power(2).sum())
    else:
        # A few strong directions over noise.
        A = rng.standard_normal((m, n))
        A += rng.standard_normal((m, 10)) @ rng.standard_normal((10, n))
        total = float(np.sum(A**2))
    if penalty == "nonnegative":
        return ob.NonnegativePCAProblem(A, r)
    weight = WEIGHT[penalty] * total / n
    return ob.SparsePCAProblem(A, r, ob.L0(weight) if penalty == "l0" else ob.L1(weight))


def solver(name: str) -> Any:
    """The solver to measure."""
    return {"auto": None, "obcd": ob.OBCD(), "path": ob.Continuation()}[name]


def work(row: str, name: str) -> None:
    """Make the problem; then solve once for every line read, and print the time of the return."""
    kind, n, penalty, r = row.split()
    instance = problem(kind, int(n), penalty, int(r))
    method = solver(name)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        options = json.loads(line)
        if options.pop("sleeps", False):
            options["callback"] = lambda progress: time.sleep(SLEEP)
        print(json.dumps({"started": time.time()}), flush=True)
        used, begun = time.process_time(), time.perf_counter()
        try:
            result = ob.solve(instance, solver=method, n_threads=1, **options)
            status, objective = result.status.name, result.objective
        except KeyboardInterrupt:
            status, objective = "RAISED", None
        returned, seconds = time.time(), time.perf_counter() - begun
        answer = {
            "returned": returned,
            "seconds": seconds,
            "busy": (time.process_time() - used) / max(seconds, 1e-9),
            "status": status,
            "objective": objective,
        }
        print(json.dumps(answer), flush=True)


class Child:
    """A process that solves the problem of one row."""

    def __init__(self, row: str, name: str) -> None:
        command = [sys.executable, "-P", __file__, "--work", row, "--solver", name]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin: IO[str] = self.process.stdin
        self.stdout: IO[str] = self.process.stdout
        if self.read(ENOUGH) is None:
            raise RuntimeError(f"the problem of {row!r} was not made")

    def read(self, seconds: float) -> dict[str, Any] | None:
        """The next answer; None if there is none in time."""
        if not select.select([self.stdout], [], [], max(seconds, 0.0))[0]:
            return None
        line = self.stdout.readline()
        return json.loads(line) if line else None

    def ask(self, **options: Any) -> float | None:
        """Start a solve; returns the time of its begin."""
        self.stdin.write(json.dumps(options) + "\n")
        self.stdin.flush()
        answer = self.read(ENOUGH)
        return None if answer is None else float(answer["started"])

    def press(self) -> float:
        sent = time.time()
        self.process.send_signal(signal.SIGINT)
        return sent

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.stdin.close()
        self.stdout.close()


def late(child: Child, limit: float, cap: float, **options: Any) -> tuple[float, float] | None:
    """Seconds over a time limit, and the share of time that the process ran; None if killed."""
    child.ask(max_time=limit, **options)
    answer = child.read(limit + cap)
    return None if answer is None else (answer["seconds"] - limit, answer["busy"])


def latency(child: Child, moment: float, cap: float) -> float | str | None:
    """Seconds from Ctrl-C to the return; the status if the solve ended before; None when killed."""
    child.ask(max_time=ENOUGH, effort=math.inf)
    answer = child.read(moment)
    if answer is not None:
        return str(answer["status"])
    sent = child.press()
    answer = child.read(cap)
    return None if answer is None else max(float(answer["returned"]) - sent, 0.0)


def measure(row: str, options: argparse.Namespace) -> dict[str, Any]:
    """All figures of a row; a process that had to be killed is replaced."""
    child = Child(row, options.solver)
    figures: dict[str, Any] = {"row": row, "late": {}, "sleeping": None, "presses": []}
    busy: list[float] = []
    alone: list[float] = []

    def again(found: Any) -> Any:
        nonlocal child
        if found is None:
            child.close()
            child = Child(row, options.solver)
        return found

    try:
        for limit in options.limits:
            found = again(late(child, limit, options.cap))
            figures["late"][limit] = None if found is None else found[0]
            if found is None:
                alone.append(options.cap)
            else:
                alone.append(found[0] * found[1])
                if found[0] + limit > 0.05:
                    busy.append(found[1])
        if options.presses:
            found = again(late(child, SLEEPING_LIMIT, options.cap, sleeps=True))
            figures["sleeping"] = None if found is None else found[0]
        rng = random.Random(row)
        for _ in range(options.presses):
            moment = LATEST_PRESS * rng.random() ** 3
            figures["presses"].append(again(latency(child, moment, options.cap)))
    finally:
        child.close()
    figures["busy"] = min(busy, default=float("nan"))
    figures["alone"] = max(alone, default=float("nan"))
    return figures


def shown(value: float | None, wanted: float, cap: float) -> str:
    """A figure as text, marked if it exceeds ``wanted``."""
    if value is None:
        return f">{cap:g} !"
    return f"{value:.3f}{' !' if value > wanted else '  '}"


def tolerance(limit: float) -> float:
    """Largest lateness of a solve, in seconds."""
    return 0.1 + 0.05 * limit


PRESS_WANTED = 0.2


def line(figures: dict[str, Any], options: argparse.Namespace) -> str:
    cap = options.cap
    cells = [shown(v, tolerance(t), cap) for t, v in figures["late"].items()]
    if options.presses:
        cells.append(shown(figures["sleeping"], tolerance(SLEEPING_LIMIT) + SLEEP, cap))
        measured = [press for press in figures["presses"] if not isinstance(press, str)]
        worst = None if None in measured else max(measured, default=0.0)
        cells.append(shown(worst, PRESS_WANTED, cap))
    ended = [press for press in figures["presses"] if isinstance(press, str)]
    note = f"  {len(ended)} ended before: {ended[0]}" if ended else ""
    text = "".join(f"{cell:>10}" for cell in cells)
    return f"{figures['row']:28}{text}{figures['busy']:9.2f}{figures['alone']:9.2f}{note}"


def worst(rows: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """The worst of every column, with its row."""
    lines = []

    def add(name: str, values: list[tuple[Any, str]], wanted: float) -> None:
        known = [(np.inf if value is None else value, row) for value, row in values]
        if known:
            value, row = max(known)
            figure = shown(None if value == np.inf else value, wanted, options.cap)
            lines.append(f"worst {name:24} {figure:>10}  ({row})")

    for limit in options.limits:
        values = [(figures["late"][limit], figures["row"]) for figures in rows]
        add(f"over {limit:g} s", values, tolerance(limit))
    if options.presses:
        values = [(figures["sleeping"], figures["row"]) for figures in rows]
        add("with a sleeping callback", values, tolerance(SLEEPING_LIMIT) + SLEEP)
        pressed = [
            (press, figures["row"])
            for figures in rows
            for press in figures["presses"]
            if not isinstance(press, str)
        ]
        add("after Ctrl-C", pressed, PRESS_WANTED)
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", default=["*"], help="patterns of names of rows")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--limits", nargs="*", type=float, default=LIMITS)
    parser.add_argument("--presses", type=int, default=4, help="times that Ctrl-C is pressed")
    parser.add_argument("--cap", type=float, default=20.0, help="seconds to wait for a late solve")
    parser.add_argument("--solver", choices=("auto", "obcd", "path"), default="auto")
    parser.add_argument("--list", action="store_true", help="only name the rows")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.solver)
        return 0
    names = [
        f"{kind} {n} {penalty} {r}"
        for n in options.sizes
        for kind in KINDS
        for penalty in PENALTIES
        for r in COMPONENTS
    ]
    names = [
        name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in options.rows)
    ]
    if options.list:
        print("\n".join(names))
        return 0
    heads = [f"{limit:g} s" for limit in options.limits]
    heads += ["sleeping", "Ctrl-C"] if options.presses else []
    columns = "".join(f"{head:>10}" for head in heads)
    print(f"{'seconds late after':28}{columns}{'running':>9}{'worst':>9}")
    rows = []
    for name in names:
        rows.append(measure(name, options))
        print(line(rows[-1], options), flush=True)
    print(worst(rows, options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
