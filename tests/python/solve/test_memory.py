"""Too little memory gives a MemoryError with the needed size, and never ends the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits on address space")

LIMITS = (1, 8, 30, 60, 100, 150, 220, 300, 400, 600)
"""Megabytes in addition to the interpreter, the libraries and the problem."""

PREPARED = """
import resource, sys
import numpy as np
import orthobcd as ob

def size():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmSize"))

def try_all(call, limits):
    # What has once been asked for is kept by the C library, so the smallest limit comes first.
    outcomes = []
    for limit in limits:
        resource.setrlimit(resource.RLIMIT_AS, (size() + limit * 2**20, resource.RLIM_INFINITY))
        try:
            call()
            outcomes.append("done")
        except MemoryError:
            outcomes.append("memory")
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    small = ob.StiefelProblem(ob.Quadratic(-np.diag([1.0, 2, 3])), ob.L0(0.1), 1)
    assert ob.solve(small, max_work=0.01).objective < -1.3
    print(*outcomes)

rng = np.random.default_rng(0)

def matrix(n):
    c = rng.standard_normal((n, n))
    return ob.Quadratic(c + c.T)
"""

CALLS = {
    "a stored matrix": """
problem = ob.StiefelProblem(matrix(2000), ob.L0(1.0), 20)
call = lambda: ob.solve(problem, max_time=0.1)
""",
    "blocks of rows": """
problem = ob.StiefelProblem(matrix(2000), ob.L1(1.0), 20)
call = lambda: ob.solve(problem, solver=ob.OBCD(update="jacobi"), max_time=0.1, n_threads=2)
""",
    "a limit on nonzeros": """
problem = ob.StiefelProblem(matrix(1500), ob.Cardinality(100), 10)
call = lambda: ob.solve(problem, max_time=0.1)
""",
    "a limit on rows": """
problem = ob.StiefelProblem(matrix(1500), ob.RowSparse(count=50), 10)
call = lambda: ob.solve(problem, max_time=0.1)
""",
    "wide data": """
problem = ob.NonnegativePCAProblem(rng.standard_normal((300, 20_000)), 10)
call = lambda: ob.solve(problem, max_time=0.1)
""",
    "a function": """
slope = rng.standard_normal((50_000, 10))
f = ob.SmoothFunction(lambda x: (float((slope * x).sum()), slope), 50_000, 10)
problem = ob.StiefelProblem(f, ob.L1(0.1), 10)
call = lambda: ob.solve(problem, max_time=0.1)
""",
    "a lower bound": """
problem = ob.StiefelProblem(matrix(1200), ob.L0(1.0), 5)
call = lambda: ob.certify(problem, np.eye(1200, 5), bound=True, max_time=0.2)
""",
    "an estimator": """
data = rng.standard_normal((2000, 1500))
model = ob.SparsePCA(5, n_nonzero=50, max_time=0.1).fit(data[:10])
call = lambda: model.fit(data)
""",
    "mixed signs": """
problem = ob.HyperbolicEigenvalueProblem(rng.standard_normal((600, 600)), np.repeat([1, -1], 300))
call = lambda: ob.solve(problem, max_time=0.1)
""",
}


SOON = ("a stored matrix", "a limit on nonzeros", "a lower bound", "an estimator")
"""The calls of make test."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "what", [w if w in SOON else pytest.param(w, marks=pytest.mark.long) for w in CALLS]
)
def test_too_little_memory_is_an_exception(what: str) -> None:
    """Whatever the limit: a result or a MemoryError, and the process goes on to solve."""
    code = f"{PREPARED}{CALLS[what]}\ntry_all(call, {LIMITS})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    outcomes = ran.stdout.split()
    assert len(outcomes) == len(LIMITS)
    assert outcomes[0] == "memory"
    assert outcomes[-1] == "done"


@pytest.mark.slow
def test_sizes_beyond_any_machine_are_refused_at_once() -> None:
    """The message says how much, and nothing is allocated."""
    code = """
import numpy as np
import orthobcd as ob
f = ob.SmoothFunction(lambda x: (0.0, x), 10**12, 100)
try:
    ob.solve(ob.StiefelProblem(f, ob.L1(0.1), 100), max_time=0.1)
except MemoryError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "GB" in ran.stdout
    assert "(1000000000000, 100)" in ran.stdout
