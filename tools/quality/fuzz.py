"""Small random problems over all options and scales; each checks the properties of every solve.

``python tools/quality/fuzz.py --cases 10000 --seed 0 --jobs 2`` (needs the installed package,
scikit-learn and hypothesis) solves the cases of tests/python/strategies.py in separate processes.
A process is killed and replaced if a case uses more CPU time than ``--timeout``, or `PATIENCE`
times ``--timeout`` on the clock. The failures are printed by kind with their case numbers:

* hang, crash (a signal, an abort or a panic), raised (an exception other than a refused argument),
* unnamed (a refusal whose message does not begin with an argument), warning,
* nonfinite (a reported value, or an entry of the point),
* rises (the history, a callback's values, or the end above the start),
* infeasible (beyond 1e-12; relative to ‖X‖² where signs are mixed; X ≥ 0 exactly),
* value (the reported objective is not F at the reported point),
* optimal (a certificate's optimum above the value at a feasible point),
* bits (another result with another number of threads, without a time limit).

``--minutes 60`` (``make -f tools/maintain.mk fuzz MINUTES=60``) runs new cases until the time
limit; the default seed is then the number of the day.

Refusals that name an argument are expected, and counted by message. Seed and number determine a
case: ``--seed 0 --only 17`` shows case 17 and runs it in this process.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import orthobcd as ob

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.python.promises import outcome
from tests.python.strategies import numbered

MEMORY = 4 << 30
"""Bytes that a worker may map: a huge allocation then crashes only one case."""

PATIENCE = 10
"""Ratio of wall-clock limit to CPU time limit of a case, because a busy machine delays cases."""

LOOK = 0.25
"""Seconds between two looks at the CPU time of a worker."""

MOST = 1_000_000
"""Largest number of cases of a run with a time limit."""

EXAMPLES = 12
"""Case numbers printed per kind of failure."""


def report(seed: int, number: int) -> dict[str, Any]:
    """Run a case: the outcome, its number, and the seconds it took."""
    begun = time.perf_counter()
    answer = outcome(lambda: numbered(seed, number))
    return {**answer, "number": number, "seconds": time.perf_counter() - begun}


# Processes ----------------------------------------------------------------------------------------


def work(seed: int) -> None:
    """Read case numbers, one per line; answer each with one line."""
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The imports of the estimators take seconds: they are done once, before the first case.
    assert ob.SparsePCA is not None
    print(flush=True)
    for line in sys.stdin:
        print(json.dumps(report(seed, int(line)), default=str), flush=True)


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used; without /proc the time on the clock."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return time.perf_counter()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Worker:
    """A process that runs cases, replaced when it hangs or dies."""

    def __init__(self, seed: int, timeout: float) -> None:
        self.seed, self.timeout = seed, timeout
        self.process: subprocess.Popen[str] | None = None

    def ask(self, number: int) -> dict[str, Any]:
        """The answer to a case, or a failure "crash" or "hang" of the process."""
        if self.process is None:
            command = [sys.executable, "-P", __file__, "--work", "--seed", str(self.seed)]
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            assert self.process.stdout is not None
            self.process.stdout.readline()
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
        ready = self.wait(process)
        line = process.stdout.readline() if ready else ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        if ready:
            code = process.wait()
            what = ("crash", signal.Signals(-code).name if code < 0 else f"exit status {code}")
        else:
            what = ("hang", f"more than {self.timeout:g} s of CPU time")
        self.close()
        text = numbered(self.seed, number).text
        seconds = 0.0 if ready else self.timeout
        return {
            "number": number,
            "text": text,
            "failures": [what],
            "refused": None,
            "seconds": seconds,
        }

    def wait(self, process: subprocess.Popen[str]) -> bool:
        """Wait for an answer or the end of the process; False if it hangs."""
        begun, used = time.perf_counter(), cpu_seconds(process.pid)
        while time.perf_counter() - begun < PATIENCE * self.timeout:
            if select.select([process.stdout], [], [], LOOK)[0]:
                return True
            if cpu_seconds(process.pid) - used > self.timeout:
                return False
        return False

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                assert pipe is not None
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self.process = None


def run(
    cases: range,
    seed: int,
    jobs: int,
    timeout: float,
    progress: bool = False,
    until: float = float("inf"),
) -> list[dict[str, Any]]:
    """All answers, in the order of the numbers; after the time ``until`` no case begins."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in cases:
        waiting.put(number)
    answers: list[dict[str, Any]] = []

    def serve() -> None:
        worker = Worker(seed, timeout)
        try:
            while time.monotonic() < until:
                answers.append(worker.ask(waiting.get_nowait()))
                if progress and len(answers) % 500 == 0:
                    print(f"{len(answers)} of {len(cases)}", file=sys.stderr, flush=True)
        except queue.Empty:
            pass
        finally:
            worker.close()

    threads = [threading.Thread(target=serve) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(answers) != len(cases) and until == float("inf"):
        raise RuntimeError(f"{len(cases) - len(answers)} cases were not run")
    return sorted(answers, key=lambda answer: answer["number"])


def table(answers: list[dict[str, Any]]) -> str:
    """Failures by kind, refusals by message, and the slowest cases."""
    kinds: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for answer in answers:
        for kind in {kind for kind, _ in answer["failures"]}:
            kinds[kind].append(answer)
    failed = sum(bool(answer["failures"]) for answer in answers)
    refused = collections.Counter(answer["refused"] for answer in answers if answer["refused"])
    lines = [f"{len(answers)} cases, {failed} failed, {refused.total()} refused at the door"]
    run_kinds = collections.Counter(answer.get("kind", "not made") for answer in answers)
    lines += [f"  {count:6}  {kind}" for kind, count in run_kinds.most_common()]
    for kind, bad in sorted(kinds.items()):
        numbers = [str(answer["number"]) for answer in bad]
        more = " ..." if len(numbers) > EXAMPLES else ""
        lines.append(f"{kind:12}{len(bad):6}  cases {' '.join(numbers[:EXAMPLES])}{more}")
    for kind, bad in sorted(kinds.items()):
        lines.append(f"\n{kind}:")
        for answer in bad[:EXAMPLES]:
            said = next(text for name, text in answer["failures"] if name == kind)
            lines.append(f"  {answer['number']:6}  {said[:160]}")
            lines.append(f"          {answer.get('text', '')}")
    if refused:
        lines.append("\nrefused:")
    lines += [f"  {count:6}  {message[:150]}" for message, count in refused.most_common()]
    slow = sorted(answers, key=lambda answer: -answer["seconds"])[:5]
    lines.append("\nslowest:")
    lines += [f"  {a['number']:6}  {a['seconds']:.1f} s  {a.get('text', '')}" for a in slow]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--minutes", type=float, help="instead of --cases: so long")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=20.0, help="CPU seconds per case")
    parser.add_argument("--only", type=int, help="show and run this case alone, here")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.seed is None:
        options.seed = 0 if options.minutes is None else datetime.date.today().toordinal()
    if options.work:
        work(options.seed)
        return 0
    if options.only is not None:
        print(numbered(options.seed, options.only).text, flush=True)
        answer = report(options.seed, options.only)
        print(f"{answer['seconds']:.3f} s, refused: {answer['refused']}")
        print(*(f"{kind}: {text}" for kind, text in answer["failures"]), sep="\n")
        return bool(answer["failures"])
    until, count = float("inf"), options.cases
    if options.minutes is not None:
        until, count = time.monotonic() + 60.0 * options.minutes, MOST
    cases = range(options.first, options.first + count)
    answers = run(cases, options.seed, options.jobs, options.timeout, True, until)
    print(f"seed {options.seed}")
    print(table(answers))
    return any(answer["failures"] for answer in answers)


if __name__ == "__main__":
    sys.exit(main())
