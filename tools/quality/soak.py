"""Long runs in one process, which test for drift, growth of memory and errors.

``python tools/quality/soak.py`` (needs the installed package and scikit-learn) has two parts:

* ``--updates 1e9`` pairs that move, in descents over several objectives and both constraints. Each
  descent starts at the perturbed end of the descent before. After each descent the feasibility is
  compared with ``FEASIBLE``, and the difference of the reported F from the F of another call at the
  same point, relative to its magnitude, with ``EQUAL``. (Tests in Rust compare tracked values.)
* ``--fits 10000`` fits in a row. Some have invalid arguments, some have a callback that raises or
  stops, some get SIGINT.

Both print the resident memory at the beginning, in the middle and at the end. The exit code is 1 if
a bound is exceeded, or if resident memory grows by more than ``GROWTH`` bytes in the second half.
"""

from __future__ import annotations

import argparse
import collections
import os
import signal
import sys
import threading
import time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import orthobcd as ob

# Started in the background of a script, this process would ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

FEASIBLE = 1e-12
EQUAL = 1e-9
GROWTH = 64 << 20


def resident() -> int:
    """Bytes of resident memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def problems(rng: np.random.Generator) -> dict[str, Any]:
    """Problems of several objectives, penalties and both constraints."""
    A = rng.standard_normal((60, 40))
    signs = np.where(np.arange(40) < 36, 1, -1)
    linear = rng.standard_normal((40, 4))
    return {
        "l1": ob.SparsePCAProblem(A, 4, ob.L1(3.0)),
        "l0": ob.SparsePCAProblem(A, 4, ob.L0(1.0)),
        "mcp": ob.SparsePCAProblem(A, 4, ob.MCP(3.0, 3.0)),
        "nonnegative": ob.SparsePCAProblem(A, 4, ob.NonNegative()),
        "linear": ob.StiefelProblem(ob.Quadratic(A.T @ A, linear=linear), ob.L1(0.5), 4),
        "gram": ob.StiefelProblem(ob.GramQuadratic(A), ob.L1(0.5), 4),
        "mixed": ob.JOrthogonalProblem(ob.Quadratic(A.T @ A), signs, ob.L1(0.5), 6),
    }


def perturbed(x: np.ndarray, signs: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """A feasible point near X; for a mixed signature a new feasible point."""
    if signs is not None:
        found = ob.hyperbolic.random_j_orthogonal(signs, 0.5, int(rng.integers(2**31)))
        return found[:, : x.shape[1]]
    q, _ = np.linalg.qr(x + 0.3 * rng.standard_normal(x.shape))
    return q


def descents(updates: float) -> bool:
    """Runs descents until ``updates`` pairs have moved; returns whether all bounds were kept."""
    rng = np.random.default_rng(0)
    counts: collections.Counter[str] = collections.Counter()
    worst: dict[str, list[float]] = {}
    made, memory, fine = 0, [resident()], True
    own = problems(rng)
    points: dict[str, np.ndarray | None] = dict.fromkeys(own)
    begun = time.process_time()
    while made < updates:
        for name, problem in own.items():
            signs = problem.signature
            x = points[name]
            start: Any = None if x is None else perturbed(x, signs, rng)
            if name == "nonnegative":
                start = "partition"
            solver = ob.OBCD() if signs is None else ob.JOBCD()
            seed = int(rng.integers(2**31))
            found = ob.solve(problem, start, solver=solver, tol=1e-13, seed=seed, n_threads=1)
            # Without sweeps a solve evaluates F at its start.
            fresh = ob.solve(problem, found.x, solver=solver, max_sweeps=0).objective
            size = abs(found.smooth_value) + abs(found.penalty_value) + 1.0
            scale = 1.0 if signs is None else max(1.0, float(np.sum(found.x**2)))
            drift = found.feasibility / scale
            differs = abs(fresh - found.objective) / size
            known = worst.setdefault(name, [0.0, 0.0])
            worst[name] = [max(known[0], drift), max(known[1], differs)]
            fine &= drift <= FEASIBLE and differs <= EQUAL
            counts[name] += found.n_updates
            made += found.n_updates
            points[name] = found.x
        if len(memory) == 1 and made >= updates / 2:
            memory.append(resident())
    memory.append(resident())
    print(f"{made} updates in {time.process_time() - begun:.0f} processor seconds")
    print("| problem | updates | feasibility | difference of F, relative |")
    print("|---|---|---|---|")
    for name, (drift, differs) in worst.items():
        print(f"| {name} | {counts[name]} | {drift:.1e} | {differs:.1e} |")
    return said(memory) and fine


def fits(count: int) -> bool:
    """Runs fits, some of which raise, stop or get Ctrl-C; returns whether memory is constant."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((40, 20))
    problem = ob.SparsePCAProblem(A, 3, ob.L0(2.0))
    ends: collections.Counter[str] = collections.Counter()

    class Raised(Exception):
        pass

    def raising(progress: ob.Progress) -> None:
        raise Raised

    def fit(k: int) -> str:
        kind = k % 6
        if kind == 0:
            ob.SparsePCA(3, n_nonzero=10, random_state=k, max_time=0.01).fit(A)
        elif kind == 1:
            ob.SparsePCA(3, n_nonzero=1000).fit(A)
        elif kind == 2:
            ob.solve(problem, max_work=0.001, seed=k, callback=raising)
        elif kind == 3:
            ob.solve(problem, max_work=0.001, seed=k, callback=lambda progress: True)
        elif kind == 4:
            pressed = threading.Timer(0.003, signal.raise_signal, (signal.SIGINT,))
            pressed.start()
            try:
                ob.solve(problem, max_time=0.02, seed=k)
            finally:
                pressed.join()
        else:
            ob.solve(ob.SparsePCAProblem(A, 3, ob.Cardinality(12)), max_work=0.001, seed=k)
        return "returned"

    memory = [resident()]
    begun = time.process_time()
    for k in range(count):
        try:
            ends[fit(k)] += 1
        except (ValueError, Raised, KeyboardInterrupt) as error:
            ends[type(error).__name__] += 1
        if k == count // 2:
            memory.append(resident())
    memory.append(resident())
    print(f"{count} fits in {time.process_time() - begun:.0f} processor seconds: {dict(ends)}")
    return said(memory)


def said(memory: list[int]) -> bool:
    """Prints resident memory; returns whether it is constant in the second half."""
    print("resident, MB: " + " ".join(f"{size / 2**20:.1f}" for size in memory))
    return memory[-1] - memory[-2] <= GROWTH


def main() -> int:
    """Runs both parts; returns the exit code."""
    parser = argparse.ArgumentParser(description="Long runs in one process.")
    parser.add_argument("--updates", type=float, default=1e9, help="pairs that move")
    parser.add_argument("--fits", type=int, default=10_000)
    options = parser.parse_args()
    fine = True
    if options.updates > 0:
        fine &= descents(options.updates)
    if options.fits > 0:
        fine &= fits(options.fits)
    return not fine


if __name__ == "__main__":
    sys.exit(main())
