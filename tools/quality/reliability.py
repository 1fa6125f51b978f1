"""Load, time limits and too little memory: tables of benchmarks/results/reliability.md.

``python tools/quality/reliability.py --part load,time,memory`` (needs the installed
package, scikit-learn, and the test dependencies) prints

* load: 16 threads and 8 processes that fit at once, against the same fits one after the other,
* time: the excess over the limit of each public function with ``max_time``, over sizes,
* memory: the outcome of a call under 40 limits on address space; the small solve that follows each
  call in the same process must succeed (tests/python/solve/test_memory.py has the calls).

The exit code is 1 if a bound is exceeded.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402

import orthobcd as ob  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2]))

THREADS, PROCESSES = 16, 8
MOST = 1.3
"""Largest processor time of fits at once, relative to the same fits one after the other."""

LIMITS = (0.2, 1.0)
"""Time limits in seconds."""

REPEATS = 3
"""Calls for each limit; the least late one counts, because other load only adds time."""

STEPS = [round(2 * 1.16**k) for k in range(40)]
"""Limits on address space in megabytes beyond that of the process, from 2 to 650."""


# Load ---------------------------------------------------------------------------------------------


def fit(k: int) -> tuple[str, float]:
    """Fit number k by counted work: a hash of its result, and its processor seconds if alone."""
    rng = np.random.default_rng(k)
    A = rng.standard_normal((120, 80)) * np.linspace(1.0, 3.0, 80)
    penalty = [ob.L0(40.0), ob.L1(20.0), ob.Cardinality(60), ob.NonNegative()][k % 4]
    begun = time.process_time()
    result = ob.solve(ob.SparsePCAProblem(A, 5, penalty), max_work=1.0, seed=k, n_threads=2)
    seconds = time.process_time() - begun
    return hashlib.sha256(result.x.tobytes()).hexdigest(), seconds


def in_a_process(k: int) -> tuple[str, float]:
    """`fit` in a process of its own."""
    command = [sys.executable, "-P", __file__, "--fit", str(k)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    ended, seconds = json.loads(done.stdout)
    return ended, seconds


def load() -> bool:
    """Prints the table of fits at once; returns whether the bounds were kept."""
    alone = [fit(k) for k in range(THREADS)]
    print("| fits at once | same bits as alone | processor seconds alone | at once | ratio |")
    print("|---|---|---|---|---|")
    fine = True
    for what, count, run in (("threads", THREADS, fit), ("processes", PROCESSES, in_a_process)):
        begun = time.process_time()
        with ThreadPoolExecutor(count) as pool:
            ends = list(pool.map(run, range(count)))
        used = time.process_time() - begun if run is fit else sum(end[1] for end in ends)
        known = sum(seconds for _, seconds in alone[:count])
        same = sum(end[0] == one[0] for end, one in zip(ends, alone, strict=False))
        print(f"| {count} {what} | {same} | {known:.1f} | {used:.1f} | {used / known:.2f} |")
        fine &= same == count and used <= MOST * known
    return fine


# Time ---------------------------------------------------------------------------------------------


def data(m: int, n: int) -> np.ndarray:
    """Ten strong directions over noise."""
    rng = np.random.default_rng(n)
    return rng.standard_normal((m, n)) + rng.standard_normal((m, 10)) @ rng.standard_normal((10, n))


def solves(A: np.ndarray) -> dict[str, Callable[[float], Any]]:
    """Functions that solve for data, by name; each takes a time limit."""
    n = A.shape[1]
    weight = 0.1 * float(np.sum(A**2)) / n
    problem = ob.SparsePCAProblem(A, 10, ob.L0(weight))
    counted = ob.SparsePCAProblem(A, 10, ob.Cardinality(200))
    signs = np.where(np.arange(n) < 0.9 * n, 1, -1)
    mixed = ob.HyperbolicEigenvalueProblem(A, signs, ridge=1.0)
    x = np.eye(n, 10)
    calls: dict[str, Callable[[float], Any]] = {
        "solve, L0": lambda limit: ob.solve(problem, max_time=limit, effort=math.inf),
        "solve, Cardinality": lambda limit: ob.solve(counted, max_time=limit, effort=math.inf),
        "regularization_path": lambda limit: ob.regularization_path(A, 10, max_time=limit),
        "certify": lambda limit: ob.certify(counted, x, bound=True, max_time=limit),
    }
    if n <= 1000:
        calls["solve, hyperbolic"] = lambda limit: ob.solve(mixed, max_time=limit)
    return calls


def fits(A: np.ndarray) -> dict[str, Callable[[float], Any]]:
    """Methods of estimators for data, by name; each takes a time limit."""

    def pca(limit: float, **options: Any) -> ob.SparsePCA:
        return ob.SparsePCA(
            10, n_nonzero=200, max_time=limit, effort=math.inf, random_state=0, **options
        )

    def blocks(limit: float) -> ob.SparsePCA:
        return pca(limit).fit(list(np.array_split(A, 10)))

    def proved(limit: float) -> ob.SparsePCA:
        # The bound can take the time limit once more.
        return pca(limit, certify=True).fit(A)

    positive = np.abs(A)
    calls: dict[str, Callable[[float], Any]] = {
        "SparsePCA.fit": lambda limit: pca(limit).fit(A),
        "SparsePCA.fit, blocks": blocks,
        "SparsePCA.fit, certify": lambda limit: proved(0.5 * limit),
        "SparsePCA.partial_fit": lambda limit: pca(limit).partial_fit(A),
        "NonnegativePCA.fit": lambda limit: ob.NonnegativePCA(
            10, max_time=limit, effort=math.inf
        ).fit(A),
        "OrthogonalNMF.fit": lambda limit: ob.OrthogonalNMF(
            10, max_time=limit, effort=math.inf
        ).fit(positive),
        "SparsePCACV.fit": lambda limit: ob.SparsePCACV(10, cv=3, max_time=limit).fit(A),
    }
    if A.shape[1] <= 1000:
        C = np.cov(A, rowvar=False)
        calls["SparsePCA.fit_covariance"] = lambda limit: pca(limit).fit_covariance(C, len(A))
    return calls


def excess(call: Callable[[float], Any], limit: float) -> float:
    """The least seconds beyond the limit."""
    late = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        call(limit)
        late.append(time.perf_counter() - begun - limit)
    return min(late)


def times(pattern: str) -> bool:
    """Prints the table of time limits; returns whether the bounds were kept."""
    warnings.simplefilter("ignore")
    fine = True
    print("| call | data | " + " | ".join(f"beyond {limit:g} s" for limit in LIMITS) + " | kept |")
    print("|---|---|" + "---|" * (len(LIMITS) + 1))
    for m, n in ((2000, 300), (250, 1000), (300, 5000)):
        A = data(m, n)
        for name, call in {**solves(A), **fits(A)}.items():
            if not fnmatch.fnmatch(name, pattern):
                continue
            late = [excess(call, limit) for limit in LIMITS]
            kept = all(
                seconds <= 0.05 * limit + 0.1 for seconds, limit in zip(late, LIMITS, strict=True)
            )
            shown = " | ".join(f"{seconds:+.2f}" for seconds in late)
            print(f"| {name} | {m}×{n} | {shown} | {'yes' if kept else '**no**'} |", flush=True)
            fine &= kept
    return fine


# Memory -------------------------------------------------------------------------------------------


def memory() -> bool:
    """Prints the table of limits on address space; returns whether every process went on."""
    from tests.python.solve.test_memory import CALLS, PREPARED

    fine = True
    print("| call | limits | result | MemoryError | small solves that follow |")
    print("|---|---|---|---|---|")
    for name, call in CALLS.items():
        code = f"{PREPARED}{call}\ntry_all(call, {STEPS})"
        command = [sys.executable, "-P", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        counts = Counter(done.stdout.split())
        if done.returncode:
            print(done.stderr[-500:], file=sys.stderr)
        followed = "all succeed" if done.returncode == 0 else f"exit code {done.returncode}"
        print(
            f"| {name} | {len(STEPS)} | {counts['done']} | {counts['memory']} | {followed} |",
            flush=True,
        )
        fine &= done.returncode == 0 and counts.total() == len(STEPS)
    return fine


PARTS: dict[str, Callable[..., bool]] = {
    "load": load,
    "time": times,
    "memory": memory,
}


def main() -> int:
    """Prints the tables; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--part", default=",".join(PARTS))
    parser.add_argument("--calls", default="*", help="of the table of times, as a pattern")
    parser.add_argument("--fit", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit is not None:
        print(json.dumps(fit(options.fit)))
        return 0
    fine = True
    for part in options.part.split(","):
        fine &= times(options.calls) if part == "time" else PARTS[part]()
        print()
    return not fine


if __name__ == "__main__":
    sys.exit(main())
