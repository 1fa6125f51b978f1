"""A killed or interrupted fit continues from its checkpoint and ends with the same bits."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orthobcd as ob
from orthobcd.cli import main

from ..conftest import SAFE_PATH

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX")
pytestmark = pytest.mark.timeout(300)

RNG = np.random.default_rng(0)
A = RNG.standard_normal((40, 30))
SMOOTH = ob.Quadratic(A.T @ A)
SIGNS = np.where(np.arange(30) < 26, 1, -1)


def function() -> ob.SmoothFunction:
    C = A.T @ A

    def value_and_gradient(x):
        cx = C @ x
        return -0.5 * float(np.sum(x * cx)) + 0.01 * float(np.sum(x**4)), 0.04 * x**3 - cx

    return ob.SmoothFunction(value_and_gradient, 30)


def problems() -> dict[str, tuple[object, dict[str, object]]]:
    of = ob.SparsePCAProblem
    return {
        "l0": (of(A, 3, ob.L0(8.0)), {"max_work": 0.05}),
        "l1": (of(A, 3, ob.L1(4.0)), {"max_work": 0.05, "seed": 3}),
        "nonnegative": (of(A, 3, ob.NonNegative()), {"max_work": 0.05}),
        "no limit": (of(A[:, :12], 2, ob.L0(8.0)), {}),
        "sweeps": (of(A, 3, ob.L1(4.0)), {"max_sweeps": 50}),
        "named": (of(A, 3, ob.L0(8.0)), {"solver": ob.Auto(makers=["splitting", "path"])}),
        "entries": (of(A, 3, ob.Cardinality(20)), {"max_work": 0.08}),
        "columns": (of(A, 3, ob.Cardinality([9, 6, 3])), {"max_work": 0.08}),
        "rows": (of(A, 3, ob.RowSparse(8)), {"max_work": 0.08}),
        "proved": (of(A[:, :10], 2, ob.Cardinality(6)), {"max_work": 0.3, "gap_tol": 1e-3}),
        "path": (of(A, 3, ob.L0(8.0)), {"solver": ob.Continuation()}),
        "descent": (of(A, 3, ob.L1(4.0)), {"solver": ob.OBCD(), "x0": "random"}),
        "function": (
            ob.StiefelProblem(function(), ob.L1(0.3), 3),
            {"max_work": 0.01},
        ),
        "mixed": (ob.JOrthogonalProblem(SMOOTH, SIGNS, ob.L1(0.5), 4), {"max_work": 0.05}),
    }


PROBLEMS = problems()


@cache
def finished() -> bytes:
    """The checkpoint of the complete solve "l0"."""
    problem, options = PROBLEMS["l0"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "solve.checkpoint"
        ob.solve(problem, checkpoint=path, **options)
        return path.read_bytes()


def assert_same(one: ob.Result, other: ob.Result) -> None:
    np.testing.assert_array_equal(one.x, other.x)
    assert (one.objective, one.status, one.work) == (other.objective, other.status, other.work)
    # n_iterations also counts descents beyond the work limit, whose number depends on n_threads.
    assert one.n_updates == other.n_updates


class Stopping:
    """A callback that stops a solve at its `calls`-th call."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, progress: ob.Progress) -> bool:
        self.left -= 1
        return self.left <= 0


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_an_interrupted_solve_ends_with_the_same_bits(name, tmp_path):
    problem, options = PROBLEMS[name]
    whole = ob.solve(problem, n_threads=2, **options)
    for calls in (1, 2, 4):
        path = tmp_path / f"{calls}.checkpoint"
        stopped = ob.solve(
            problem, callback=Stopping(calls), checkpoint=path, checkpoint_every=0, **options
        )
        resumed = ob.solve(problem, checkpoint=path, n_threads=1, **options)
        assert resumed.objective <= stopped.objective or name in ("path", "proved")
        assert_same(resumed, whole)
        assert_same(ob.solve(problem, checkpoint=path, **options), whole)


@pytest.mark.slow
def test_a_time_limit_holds_for_both_calls(tmp_path):
    problem, _ = PROBLEMS["l1"]
    path = tmp_path / "solve.checkpoint"
    options = {"max_time": 2.0, "effort": math.inf, "checkpoint": path, "checkpoint_every": 0}
    stopped = ob.solve(problem, callback=Stopping(12), **options)
    assert stopped.status is ob.Status.INTERRUPTED
    begun = time.perf_counter()
    resumed = ob.solve(problem, **options)
    taken = time.perf_counter() - begun
    assert resumed.objective <= stopped.objective
    assert resumed.seconds >= 1.5 or resumed.converged
    assert taken <= resumed.seconds - 0.5 * stopped.seconds + 0.3


CHANGES = {
    "penalty": lambda: (ob.SparsePCAProblem(A, 3, ob.L0(9.0)), {}),
    "problem": lambda: (ob.StiefelProblem(SMOOTH, ob.L0(8.0), 3), {}),
    "shape": lambda: (ob.SparsePCAProblem(A, 2, ob.L0(8.0)), {}),
    "seed": lambda: (PROBLEMS["l0"][0], {"seed": 1}),
    "max_work": lambda: (PROBLEMS["l0"][0], {"max_work": 0.15}),
    "effort": lambda: (PROBLEMS["l0"][0], {"effort": 2.0}),
    "tol": lambda: (PROBLEMS["l0"][0], {"tol": 1e-8}),
    "target": lambda: (PROBLEMS["l0"][0], {"target": -1.0}),
    "gap_tol": lambda: (PROBLEMS["l0"][0], {"gap_tol": 0.1}),
    "solver": lambda: (PROBLEMS["l0"][0], {"solver": ob.Auto(makers=["path"])}),
    "x0": lambda: (PROBLEMS["l0"][0], {"x0": "random"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_solve_is_refused_with_the_reason(name, tmp_path):
    path = tmp_path / "solve.checkpoint"
    _, options = PROBLEMS["l0"]
    path.write_bytes(before := finished())
    other, changed = CHANGES[name]()
    with pytest.raises(ValueError, match=f"^checkpoint .*{name}"):
        ob.solve(other, checkpoint=path, **{**options, **changed})
    assert path.read_bytes() == before


def test_arguments_are_checked(tmp_path):
    problem, _ = PROBLEMS["l0"]
    for path, every, error in [
        (3, 60.0, TypeError),
        ("", 60.0, ValueError),
        (tmp_path, 60.0, ValueError),
        (tmp_path / "a", -1.0, ValueError),
        (tmp_path / "a", np.nan, ValueError),
        (tmp_path / "a", "x", TypeError),
    ]:
        with pytest.raises(error, match=r"^checkpoint"):
            ob.solve(problem, checkpoint=path, checkpoint_every=every)
    with pytest.raises(ValueError, match=r"^checkpoint must be None for VRJOBCD"):
        ob.solve(
            ob.HyperbolicEigenvalueProblem(A, SIGNS),
            solver=ob.VRJOBCD(),
            checkpoint=tmp_path / "a",
        )
    assert not (tmp_path / "a").exists()


def test_a_file_that_cannot_be_written_is_a_warning(tmp_path):
    problem, options = PROBLEMS["l0"]
    path = tmp_path / "missing" / "solve.checkpoint"
    with pytest.warns(RuntimeWarning, match="cannot be written: .*; the fit goes on") as caught:
        found = ob.solve(problem, checkpoint=path, checkpoint_every=0, **options)
    assert len(caught) == 1
    assert_same(found, ob.solve(problem, **options))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="cannot be written"):
            ob.solve(problem, checkpoint=path, **options)


@pytest.mark.slow
def test_estimators_continue(tmp_path, short_searches):
    data = A - A.mean(axis=0)
    fits = {
        "alpha": ob.SparsePCA(3, alpha=0.1, max_time=None, random_state=0),
        "l1 count": ob.SparsePCA(3, penalty="l1", n_nonzero=20, random_state=0),
        "count": ob.SparsePCA(3, n_nonzero=12, random_state=0),
        "features": ob.SparsePCA(3, n_features=8, random_state=0),
        "nonnegative": ob.NonnegativePCA(3, random_state=0),
        "nmf": ob.OrthogonalNMF(3, random_state=0),
    }
    for name, estimator in fits.items():
        X = np.abs(data) if name == "nmf" else data[:, :14]
        whole = estimator.fit(X).components_.copy()
        path = tmp_path / name
        estimator.fit(X, checkpoint=path, checkpoint_every=0)
        np.testing.assert_array_equal(estimator.components_, whole)
        estimator.fit(X, checkpoint=path)
        np.testing.assert_array_equal(estimator.components_, whole)
        changed = X.copy()
        changed[3, 2] += 0.5
        with pytest.raises(ValueError, match=r"^checkpoint .* is of (other data|a solve)"):
            estimator.fit(changed, checkpoint=path)
    with pytest.raises(ValueError, match=r"^random_state must be an integer"):
        ob.SparsePCA(2).fit(data, checkpoint=tmp_path / "none")


INTERRUPTED_FIT = """
import signal, sys
import numpy as np
import orthobcd as ob
X = np.random.default_rng(0).standard_normal((60, 24))
what = sys.argv[2]
if what == "pca":
    ob.SparsePCA(3, n_nonzero=9, max_time=None, random_state=0).fit(
        X, checkpoint=sys.argv[1], checkpoint_every=0)
elif what == "path":
    ob.regularization_path(X, 4, n_alphas=30, checkpoint=sys.argv[1], checkpoint_every=0)
elif what == "cv":
    ob.SparsePCACV(3, n_alphas=6, cv=3, random_state=0).fit(
        X, checkpoint=sys.argv[1], checkpoint_every=0)
else:
    ob.support_stability(ob.SparsePCA(3, n_nonzero=9, random_state=0), X, n_subsamples=6,
        random_state=0, checkpoint=sys.argv[1], checkpoint_every=0)
"""


def written(path: Path) -> dict[str, int]:
    """Times at which the complete files of a checkpoint were written; it is a file or a folder."""
    files = [path] if path.is_file() else path.glob("[!.]*")
    return {file.name: file.stat().st_mtime_ns for file in files}


def killed_with_a_file(command: list[str], path: Path, **options: Any) -> None:
    """Runs Python with ``command`` and kills the process soon after it writes a checkpoint."""
    known = written(path)
    process = subprocess.Popen([sys.executable, *command], **options)
    until = time.monotonic() + 100.0
    while written(path) == known and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    time.sleep(0.02)
    process.kill()
    process.wait()
    assert path.exists()


@pytest.mark.slow
@posix
@pytest.mark.parametrize(
    "what",
    ["pca", "cv", *(pytest.param(w, marks=pytest.mark.long) for w in ("path", "stability"))],
)
def test_killed_estimators_end_alike(what, tmp_path):
    X = np.random.default_rng(0).standard_normal((60, 24))

    def fit(**saved):
        if what == "pca":
            return ob.SparsePCA(3, n_nonzero=9, random_state=0).fit(X, **saved).components_
        if what == "path":
            path = ob.regularization_path(X, 4, n_alphas=30, **saved)
            return [path.alphas, *(one.x for one in path.results)]
        if what == "cv":
            cv = ob.SparsePCACV(3, n_alphas=6, cv=3, random_state=0).fit(X, **saved)
            return np.vstack([cv.scores_.ravel()[:1], [cv.alpha_]]), cv.components_
        pca = ob.SparsePCA(3, n_nonzero=9, random_state=0)
        return ob.support_stability(pca, X, n_subsamples=6, random_state=0, **saved).frequencies

    path = tmp_path / "saved"
    killed_with_a_file([*SAFE_PATH, "-c", INTERRUPTED_FIT, str(path), what], path)
    for resumed, whole in zip(fit(checkpoint=path), fit(), strict=True):
        np.testing.assert_array_equal(resumed, whole)


COMMANDS = {
    "sparse-pca": ["-r", "3", "--n-nonzero", "9"],
    "nonneg-pca": ["-r", "3"],
    "hyperbolic": ["--positive", "20"],
}


def begun(command: str) -> list[str]:
    """Writes data and the components of an uninterrupted command, and returns its arguments."""
    np.save("data.npy", np.random.default_rng(0).standard_normal((50, 24)))
    options = [command, "data.npy", *COMMANDS[command]]
    assert main([*options, "--out", "whole.npz"]) == 0
    return options


@pytest.mark.slow
@posix
@pytest.mark.parametrize(
    "command",
    [c if c == "sparse-pca" else pytest.param(c, marks=pytest.mark.long) for c in COMMANDS],
)
def test_a_killed_command_ends_alike(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = [*begun(command), "--checkpoint-every", "0"]
    options += ["--checkpoint", "saved", "--out", "out.npz"]
    killed_with_a_file([*SAFE_PATH, "-m", "orthobcd", *options], Path("saved"))
    assert main([*options, "--force"]) == 0
    resumed, whole = (np.load(name)["components"] for name in ("out.npz", "whole.npz"))
    np.testing.assert_array_equal(resumed, whole)
    assert {p.name for p in tmp_path.iterdir()} == {"data.npy", "out.npz", "saved", "whole.npz"}
    # Other data are refused: the command has read the file.
    np.save("data.npy", np.random.default_rng(1).standard_normal((50, 24)))
    capsys.readouterr()
    assert main([*options, "--force"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: checkpoint")
    assert (said.out, said.err.count("\n")) == ("", 1)


@pytest.mark.slow
@posix
@pytest.mark.parametrize("way", ["no folder", "read-only"])
def test_fits_go_on_where_nothing_can_be_written(way, tmp_path, monkeypatch, short_searches):
    X = A[:, :12]
    path = tmp_path / "folder" / "saved"
    if way == "no folder":

        def refuse(*arguments: Any, **options: Any) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr("os.makedirs", refuse)
    elif os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    else:
        path.parent.mkdir(mode=0o555)
    fits: dict[str, Any] = {
        "cv": lambda **saved: ob.SparsePCACV(2, n_alphas=3, cv=2, random_state=0).fit(X, **saved),
        "stability": lambda **saved: ob.support_stability(
            ob.SparsePCA(2, n_nonzero=8, random_state=0),
            X,
            n_subsamples=2,
            random_state=0,
            **saved,
        ),
        "path": lambda **saved: ob.regularization_path(X, 2, n_alphas=3, **saved),
        "pca": lambda **saved: ob.SparsePCA(2, n_nonzero=8, random_state=0).fit(X, **saved),
    }
    for name, fit in fits.items():
        with pytest.warns(RuntimeWarning, match="cannot be written: .*; the fit goes on") as caught:
            found = fit(checkpoint=path, checkpoint_every=0)
        assert len(caught) == len({str(warning.message) for warning in caught})
        for one, other in zip(results_of(name, found), results_of(name, fit()), strict=True):
            np.testing.assert_array_equal(one, other)


def results_of(name: str, found: Any) -> list[Any]:
    if name == "path":
        return [one.x for one in found.results]
    return [found.frequencies] if name == "stability" else [found.components_]


LIMITED = """
import resource, signal, sys
from orthobcd.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@posix
@pytest.mark.parametrize(
    "command",
    [c if c == "sparse-pca" else pytest.param(c, marks=pytest.mark.long) for c in COMMANDS],
)
def test_a_command_goes_on_without_its_checkpoint(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = [*begun(command), "--checkpoint-every", "0"]
    outputs = ["--out", "out.npz", "--report", "report.json"]
    capsys.readouterr()
    assert main([*options, "--checkpoint", "none/saved", *outputs]) == 0
    said = capsys.readouterr()
    assert (said.out.count("note: the checkpoint"), said.err) == (1, "")
    notes = json.loads(Path("report.json").read_text())["notes"]
    assert ["cannot be written" in note for note in notes] == [True]
    np.testing.assert_array_equal(
        *(np.load(name)["components"] for name in ("out.npz", "whole.npz"))
    )
    line = [sys.executable, *SAFE_PATH, "-c", LIMITED, *options, "--checkpoint", "saved"]
    full = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (full.returncode, full.stderr, full.stdout.count("File too large")) == (0, "", 1)
    assert {path.suffix for path in tmp_path.iterdir()} == {".npy", ".npz", ".json"}


@pytest.mark.slow
@posix
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGHUP, marks=pytest.mark.long),
        pytest.param(signal.SIGINT, marks=pytest.mark.long),
    ],
)
def test_signals_end_the_command_line_with_its_files(number, tmp_path):
    data = tmp_path / "data.npy"
    np.save(data, np.random.default_rng(0).standard_normal((300, 200)))
    command = [sys.executable, *SAFE_PATH, "-m", "orthobcd", "sparse-pca", str(data), "-r", "6"]
    command += ["--n-nonzero", "200", "--max-time", "60", "--out", str(tmp_path / "out.npz")]
    command += ["--checkpoint", str(tmp_path / "saved"), "--checkpoint-every", "0"]
    # Under nohup SIGHUP is ignored; the child restores its default handler. (With `preexec_fn` this
    # process would fork, of which JAX warns if another test has imported it.)
    restore = (
        "import os, signal, sys; signal.signal(int(sys.argv[1]), signal.SIG_DFL); "
        "os.execv(sys.argv[2], sys.argv[2:])"
    )
    command = [sys.executable, "-c", restore, str(int(number)), *command]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    until = time.monotonic() + 100.0
    while not (tmp_path / "saved").exists() and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.2)
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode == {signal.SIGINT: 130}.get(number, 128 + number)
    V = np.load(tmp_path / "out.npz")["components"]
    np.testing.assert_allclose(V @ V.T, np.eye(6), atol=1e-12)
    assert (tmp_path / "saved").stat().st_size > V.size
