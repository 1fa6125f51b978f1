"""Stopping from outside: Ctrl-C, callbacks, time."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

import orthobcd as ob
from orthobcd._internal.solve import AHEAD, side_by_side

LONG = """
import json, sys, time
import numpy as np
import orthobcd as ob

A = np.random.default_rng(0).standard_normal((600, {n}))
problem = ob.SparsePCAProblem(A, 20, ob.{penalty})
started = False

def tell(progress):
    global started
    if not started:
        print("started", flush=True)
        started = True

result = ob.solve(problem, "random", solver={solver}, tol=0.0, callback=tell, {limits})
print(json.dumps(dict(at=time.time(), status=result.status.name, feasibility=result.feasibility,
    objective=result.objective, first=float(result.history["objective"][0]))), flush=True)
"""

SOLVERS = {
    "tiled": "ob.OBCD()",
    "random": 'ob.OBCD(working_set="random")',
    "jacobi": 'ob.OBCD(update="jacobi")',
    "greedy": 'ob.OBCD(working_set="wss-or")',
}


@pytest.mark.timing
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to a child process")
@pytest.mark.parametrize("solver", SOLVERS)
def test_ctrl_c_returns_the_best_point_at_once(solver):
    script = LONG.format(n=1000, penalty="L1(5.0)", solver=SOLVERS[solver], limits="max_time=60")
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "started"
        time.sleep(0.5)
        sent = time.time()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    assert child.returncode == 0, err
    answer = json.loads(out)
    assert answer["status"] == "INTERRUPTED"
    assert answer["at"] - sent < 0.2, f"took {answer['at'] - sent:.3f} s"
    assert answer["feasibility"] < 1e-12
    assert answer["objective"] < answer["first"]


A = np.random.default_rng(0).standard_normal((60, 120))
PROBLEM = ob.SparsePCAProblem(A, 8, ob.L1(0.5))


def test_callback_true_stops():
    calls = []

    def stop_at_third(progress: ob.Progress) -> bool:
        calls.append(progress)
        return len(calls) == 3

    result = ob.solve(PROBLEM, "random", callback=stop_at_third, tol=0.0)
    assert result.status is ob.Status.INTERRUPTED
    assert not result.converged
    assert len(calls) == 3
    assert result.objective <= calls[-1].objective


def test_callback_sees_a_descending_feasible_solve():
    seen: list[ob.Progress] = []
    result = ob.solve(PROBLEM, "random", callback=seen.append, max_sweeps=5)
    assert seen[0].n_iterations == 0
    objectives = [p.objective for p in seen]
    assert objectives == sorted(objectives, reverse=True)
    for progress in seen:
        assert progress.x.shape == (120, 8)
        assert np.linalg.norm(progress.x.T @ progress.x - np.eye(8)) < 1e-12
    # Copies, not views of the running state.
    assert not np.array_equal(seen[0].x, result.x)
    seen[0].x[:] = 0.0


def test_callback_returning_none_goes_on():
    calls = []
    result = ob.solve(
        PROBLEM, "random", callback=calls.append, solver=ob.OBCD(), tol=0.0, max_sweeps=3
    )
    assert result.status is ob.Status.MAX_SWEEPS
    assert result.n_sweeps == 3
    assert len(calls) >= 3


def test_failing_callback_raises_with_the_result():
    def fail_later(progress: ob.Progress) -> None:
        if progress.n_iterations > 0:
            raise KeyError("broken")

    with pytest.raises(KeyError, match="broken") as caught:
        ob.solve(PROBLEM, "random", callback=fail_later, tol=0.0)
    result = caught.value.result
    assert isinstance(result, ob.Result)
    assert result.status is ob.Status.INTERRUPTED
    assert result.feasibility < 1e-12
    assert result.objective <= result.history["objective"][0]


def test_system_exit_leaves():
    def leave(_: ob.Progress) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        ob.solve(PROBLEM, callback=leave)


@pytest.mark.timing
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_choice_of_a_weight_keeps_its_time_limit(rng, n_jobs):
    pytest.importorskip("sklearn")
    X = rng.standard_normal((300, 200))
    for limit in (0.3, 1.0):
        # This call imports scikit-learn, before the clock starts.
        chosen = ob.SparsePCACV(5, max_time=limit, random_state=0, n_jobs=n_jobs)
        begun = time.perf_counter()
        chosen.fit(X)
        assert time.perf_counter() - begun <= 1.05 * limit + 0.1
        # Every weight has a score, and the last fit has a result.
        assert np.isfinite(chosen.scores_).all()
        assert chosen.result_.feasibility < 1e-12


@pytest.mark.timing
def test_a_time_limit_counts_from_the_call():
    # 256 MB, of which a solve makes no copy.
    data = np.random.default_rng(0).standard_normal((2000, 16_000))
    problem = ob.SparsePCAProblem(data, 3, ob.L1(2000.0))
    seconds = []
    for _ in range(3):
        begun = time.perf_counter()
        ob.solve(problem, max_time=0.0, n_threads=1)
        seconds.append(time.perf_counter() - begun)
    assert min(seconds) < 0.1, seconds


def test_time_out():
    result = ob.solve(PROBLEM, "random", max_time=0.1, tol=0.0, solver=ob.OBCD(proximal=0.0))
    assert result.status is ob.Status.MAX_TIME
    # A descent ends when the time left is less than that of one more evaluation.
    assert result.seconds >= 0.09
    assert result.objective < result.history["objective"][0]
    none = ob.solve(PROBLEM, "random", max_time=0.0)
    assert none.status is ob.Status.MAX_TIME
    assert none.feasibility < 1e-12


KINDS = [ob.L1(0.05), ob.L0(0.05), ob.CappedL1(0.05, 0.2), ob.MCP(0.05, 3.0), ob.NonNegative()]


@pytest.mark.timing
@pytest.mark.parametrize("nap", [0.001, 0.003])
@pytest.mark.parametrize("penalty", KINDS, ids=str)
def test_restarts_are_kept_if_they_are_slower_than_their_work_says(rng, penalty, nap):
    """Each evaluation takes longer than thousands of small products: time ends the restarts."""
    n = 30
    B = rng.standard_normal((50, n))
    C = -B.T @ B / 50

    def slow(X: np.ndarray) -> tuple[float, np.ndarray]:
        time.sleep(nap)
        G = C @ X
        return float(np.vdot(X, G)) / 2, G

    problem = ob.StiefelProblem(ob.SmoothFunction(slow, n), penalty, 3)
    result = ob.solve(problem, max_time=2.0, seed=0)
    assert result.search is not None
    free = {"given", "polish", "descent", "spectral", "varimax"}
    restarts = [r for r in result.search.runs if r.heuristic not in free]
    assert restarts
    assert all(result.objective <= r.objective for r in restarts)


def test_verbose_logs_and_silence_is_the_default(caplog):
    with caplog.at_level("INFO", logger="orthobcd"):
        ob.solve(PROBLEM, max_sweeps=2)
        assert not caplog.records
        ob.solve(PROBLEM, max_sweeps=2, verbose=True)
    assert any("objective" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("workers", [1, 3, None])
def test_calls_side_by_side_have_their_values_in_order(workers):
    done: list[int] = []
    side_by_side(lambda k: -k, range(3 * AHEAD + 1), workers, done)
    assert done == [-k for k in range(3 * AHEAD + 1)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_is_kept_where_python_drops_its_exception():
    """Within the callback of a weak reference, which can run whenever an object is freed."""

    class Freed:
        pass

    def items() -> Iterator[int]:
        yield 0
        freed = Freed()
        reference = weakref.ref(freed, lambda _: signal.raise_signal(signal.SIGINT))
        del freed
        assert reference() is None
        yield from range(1, 100_000)

    done: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        side_by_side(lambda k: k, items(), 1, done)
    assert len(done) < 100_000
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
