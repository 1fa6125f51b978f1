"""Ctrl-C everywhere: a status of `solve`, a `KeyboardInterrupt` with the best result elsewhere."""

from __future__ import annotations

import _thread
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import orthobcd as ob
from orthobcd import _core, solving
from orthobcd.data import Gram
from orthobcd.sklearn import base
from orthobcd.solving import AHEAD, run_in_threads

from ..conftest import ROOT, random_sparse

# Nothing here ends by itself within ten minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]
LIMIT = 600.0
ENDLESS: dict[str, Any] = {"max_time": LIMIT, "effort": math.inf}
RNG = np.random.default_rng(0)
X = np.abs(RNG.standard_normal((90, 60))) @ np.diag(np.linspace(0.5, 3.0, 60))
LONG = RNG.standard_normal((400, 1200))
WIDE = random_sparse(200, 6000, 0.05, seed=1)


def pressed(call: Callable[[], Any], after: float = 0.5) -> Any:
    """What a call returns, or the `KeyboardInterrupt` that it raises, if Ctrl-C is pressed."""
    timer = threading.Timer(after, _thread.interrupt_main)
    timer.start()
    try:
        return call()
    except KeyboardInterrupt as error:
        return error
    finally:
        timer.cancel()
        timer.join()


def orthonormal(x: np.ndarray) -> bool:
    return bool(np.linalg.norm(x.T @ x - np.eye(x.shape[1])) < 1e-12)


C = X.T @ X
MIXED = np.where(np.arange(60) < 40, 1, -1)

SOLVES: dict[str, Callable[[], Any]] = {
    "search": lambda: ob.solve(ob.SparsePCAProblem(X, 5, ob.L0(3.0)), **ENDLESS),
    "descent": lambda: ob.solve(
        ob.SparsePCAProblem(LONG, 30, ob.L1(0.5)), "random", solver=ob.OBCD(), tol=0.0
    ),
    "path": lambda: ob.solve(
        ob.SparsePCAProblem(LONG, 20, ob.L0(0.5)), solver=ob.Continuation(ratio=0.95)
    ),
    "cardinality": lambda: ob.solve(ob.SparsePCAProblem(X, 5, ob.Cardinality(60)), **ENDLESS),
    "rows": lambda: ob.solve(ob.SparsePCAProblem(X, 5, ob.RowSparse(count=20)), **ENDLESS),
    "proof": lambda: ob.solve(
        ob.SparsePCAProblem(X, 5, ob.Cardinality(60)), **ENDLESS, gap_tol=0.0
    ),
    "mixed": lambda: ob.solve(ob.JOrthogonalProblem(ob.Quadratic(C), MIXED, ob.L1(1.0)), **ENDLESS),
}


@pytest.mark.parametrize("case", SOLVES)
def test_a_solve_returns_its_best_point(case):
    result = pressed(SOLVES[case])
    assert isinstance(result, ob.Result)
    assert result.status is ob.Status.INTERRUPTED
    assert result.feasibility < 1e-10
    assert result.objective <= result.history["objective"][0]


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("place", ["callback", "progress"])
@pytest.mark.parametrize("case", [case for case in SOLVES if case != "path"])
def test_ctrl_c_within_a_callback_is_a_status(case, place, verbose, monkeypatch):
    """In the user's callback and in the package's frames around it. A path calls it at its end."""
    calls = []

    def press(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)
        return None

    real = solving.solve

    def watched(*arguments: Any, **options: Any) -> ob.Result:
        return real(*arguments, **{**options, "callback": press, "verbose": verbose})

    if place == "progress":
        monkeypatch.setattr(solving, "Progress", press)
    monkeypatch.setattr(ob, "solve", watched)
    result = SOLVES[case]()
    assert result.status is ob.Status.INTERRUPTED
    assert result.feasibility < 1e-10


FITS: dict[str, Callable[[], Any]] = {
    "weight": lambda: ob.SparsePCA(5, **ENDLESS),
    "l1": lambda: ob.SparsePCA(5, penalty="l1", **ENDLESS),
    "count": lambda: ob.SparsePCA(5, n_nonzero=60, **ENDLESS),
    "features": lambda: ob.SparsePCA(5, n_features=20, **ENDLESS),
    "nonnegative": lambda: ob.NonnegativePCA(5, **ENDLESS),
    "nonnegative count": lambda: ob.NonnegativePCA(5, n_nonzero=30, **ENDLESS),
    "clusters": lambda: ob.OrthogonalNMF(5, **ENDLESS),
    "certified": lambda: ob.SparsePCA(5, **ENDLESS, certify=True),
    "last of a choice": lambda: ob.SparsePCACV(5, alphas=[0.1], criterion="bic", **ENDLESS),
}


@pytest.mark.parametrize("case", FITS)
def test_a_fit_raises_with_its_best_result(case):
    estimator = FITS[case]()
    error = pressed(lambda: estimator.fit(X), 0.7)
    assert isinstance(error, KeyboardInterrupt)
    result = error.result
    assert isinstance(result, ob.Result)
    assert result.status is ob.Status.INTERRUPTED
    assert orthonormal(result.x)
    # The fitted attributes are those of the point of the exception.
    assert estimator.result_ is result
    if case == "clusters":
        assert estimator.membership_.shape == (90, 5)
    else:
        V = estimator.components_
        order = [np.argmax(np.abs(V @ column)) for column in result.x.T]
        assert sorted(order) == list(range(5))
        np.testing.assert_allclose(np.abs(V[order]), np.abs(result.x.T), atol=1e-12)
        assert estimator.explained_variance_ratio_.shape == (5,)


@pytest.mark.parametrize("part", ["pairs", "bound"])
def test_a_fit_raises_with_its_result_while_it_is_certified(monkeypatch, part):
    name = "certify" if part == "pairs" else "lower_bound"
    call = getattr(_core, name)
    timer = threading.Timer(0.3, _thread.interrupt_main)

    def slow(*arguments: Any) -> Any:
        timer.start()
        if part == "pairs":
            timer.join()
        return call(*arguments)

    monkeypatch.setattr(_core, name, slow)
    pca = ob.SparsePCA(1, n_nonzero=10, certify=True, random_state=0)
    with pytest.raises(KeyboardInterrupt) as caught:
        pca.fit(X)
    timer.join()
    assert caught.value.result is pca.result_
    assert pca.result_.status is not ob.Status.INTERRUPTED
    assert (pca.gap_ is None) == (part == "pairs")


@pytest.mark.parametrize("how", ["fit", "partial_fit", "fit_covariance"])
@pytest.mark.parametrize("make", [ob.SparsePCA, ob.NonnegativePCA])
def test_each_kind_of_fit_raises(make, how):
    pca = make(5, **ENDLESS)
    given = np.cov(X.T) if how == "fit_covariance" else X
    error = pressed(lambda: getattr(pca, how)(given))
    assert isinstance(error, KeyboardInterrupt)
    assert error.result is pca.result_
    assert pca.components_.shape == (5, 60)


def test_samples_are_those_of_the_components_after_an_interruption():
    pca = ob.SparsePCA(3, **ENDLESS).partial_fit(X[:30], update=False)
    assert isinstance(pressed(lambda: pca.partial_fit(X[30:60])), KeyboardInterrupt)
    np.testing.assert_allclose(pca.mean_, X[:60].mean(axis=0))
    pca.set_params(max_time=0.1).partial_fit(X[60:])
    np.testing.assert_allclose(pca.mean_, X.mean(axis=0))


PARTS = {
    "path": {"solver": ob.OBCD(), "alpha": 1e-3},
    "path of l1": {"solver": ob.OBCD(), "alpha": 1e-3, "penalty": "l1"},
    "path to a count": {"penalty": "l1", "n_nonzero": 9000},
    "continuation": {"solver": ob.Continuation(), "alpha": 1e-3},
}


@pytest.mark.parametrize("after", [0.1, 1.0])
@pytest.mark.parametrize("case", PARTS)
def test_nothing_follows_a_part_that_was_interrupted(case, after, monkeypatch):
    """No descent after a path, no bisection, no search: seconds after the beginning of the path."""
    pca = ob.SparsePCA(20, tol=0.0, **PARTS[case])
    follow, timer = _core.solve, threading.Timer(after, _thread.interrupt_main)

    def pressed_within(*arguments: Any) -> Any:
        if timer.ident is None:
            timer.start()
        return follow(*arguments)

    monkeypatch.setattr(_core, "solve", pressed_within)
    with pytest.raises(KeyboardInterrupt) as caught:
        pca.fit(LONG)
    timer.join()
    error = caught.value
    assert error.result.status is ob.Status.INTERRUPTED
    assert orthonormal(error.result.x)
    assert pca.result_ is error.result
    # The result is the point of the path, evaluated again and unchanged.
    assert error.result.n_updates == 0 or case == "continuation"


def test_a_path_returns_its_points():
    path = pressed(
        lambda: ob.regularization_path(LONG, 20, n_nonzero=9000, ratio=0.9, tol=0.0), 1.0
    )
    assert [point.status for point in path.results].count(ob.Status.INTERRUPTED) == 1


def test_what_runs_fits_ends_with_the_first():
    fits = []

    class Counted(ob.SparsePCA):
        def fit(self, X, y=None, sample_weight=None):
            fits.append(self)
            return super().fit(X, y, sample_weight)

    search = GridSearchCV(Counted(3, **ENDLESS), {"n_nonzero": [6, 9]}, cv=2)
    for run in (
        lambda: search.fit(X),
        lambda: [Counted(3, **ENDLESS).fit(X) for _ in range(3)],
    ):
        fits.clear()
        assert isinstance(pressed(run), KeyboardInterrupt)
        assert len(fits) == 1


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_stability_of_the_subsamples_that_are_done(n_jobs):
    pca = ob.SparsePCA(2, max_time=0.1, random_state=0)
    run = lambda: ob.support_stability(pca, X, n_subsamples=4000, n_jobs=n_jobs)  # noqa: E731
    error = pressed(run, 1.0)
    assert isinstance(error, KeyboardInterrupt)
    assert isinstance(error.result, ob.sklearn.SupportStability)
    assert 1 <= error.result.n_subsamples < 4000
    assert error.result.frequencies.max() <= 1.0
    assert error.result.frequencies.shape == (2, 60)
    first = pressed(lambda: ob.support_stability(pca.set_params(**ENDLESS), X))
    assert isinstance(first.result, ob.Result)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_choice_of_the_penalty(n_jobs):
    error = pressed(lambda: ob.SparsePCACV(5, n_alphas=20_000, n_jobs=n_jobs).fit(X))
    assert isinstance(error, KeyboardInterrupt)
    assert error.result is None


def test_before_and_after_the_search(monkeypatch):
    """Of moments there is no result yet; while attributes are set it is that of the search."""

    def press(*_: Any) -> None:
        raise KeyboardInterrupt

    pca = ob.SparsePCA(2, n_nonzero=6, random_state=0).fit(X)
    before = pca.components_.copy()
    for where, name in ((Gram, "of"), (base, "correlation")):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, press)
            with pytest.raises(KeyboardInterrupt) as caught:
                pca.fit(X[:40])
        assert (caught.value.result is None) == (name == "of")
    assert isinstance(caught.value.result, ob.Result)
    assert not np.array_equal(caught.value.result.x.T, before)


def dense(n: int, r: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(n).standard_normal((n, r)))[0]


def smooth_function(n: int) -> ob.SmoothFunction:
    return ob.SmoothFunction(lambda x: (0.5 * float(np.sum(x**2)), x), n, lipschitz=1.0)


CERTIFICATES: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
    "l1": lambda: (ob.SparsePCAProblem(WIDE, 10, ob.L1(0.1)), dense(6000, 10)),
    "weights": lambda: (
        ob.SparsePCAProblem(WIDE, 10, ob.L1(np.full((6000, 10), 0.1))),
        dense(6000, 10),
    ),
    "function": lambda: (ob.StiefelProblem(smooth_function(6000), ob.L1(0.1), 10), dense(6000, 10)),
    "mixed": lambda: (
        ob.JOrthogonalProblem(
            ob.Quadratic(np.eye(500)), np.where(np.arange(500) < 300, 1, -1), ob.L1(0.1)
        ),
        np.eye(500) + 0.0,
    ),
}


@pytest.mark.parametrize("case", CERTIFICATES)
def test_certificates(case):
    problem, x = CERTIFICATES[case]()
    assert isinstance(pressed(lambda: ob.certify(problem, x, n_threads=1)), KeyboardInterrupt)
    late = ob.certify(problem, x, max_time=0.0, n_threads=1)
    assert np.isnan(late.block2_gap)
    assert np.isnan(late.block2_measure)
    assert late.block2_pair is None
    assert late.block2_kind is None
    assert late.n_pairs in (0, late.n_pairs_proved)
    assert np.isfinite([late.objective, late.magnitude, late.feasibility]).all()
    assert not late.is_optimal


@pytest.mark.parametrize("penalty", [ob.L0(0.5), ob.L1(0.5), ob.NonNegative(), ob.Cardinality(12)])
def test_a_limit_of_a_certificate_leaves_out_and_changes_nothing(penalty):
    """What is there within a limit is what is there without one."""
    problem = ob.SparsePCAProblem(X, 3, penalty)
    x = ob.solve(problem, max_work=0.01).x
    whole = ob.certify(problem, x)
    same = ob.certify(problem, x, max_time=LIMIT)
    for name in vars(whole):
        np.testing.assert_equal(getattr(same, name), getattr(whole, name), name)
    late = ob.certify(problem, x, max_time=0.0, bound=True)
    for name in ("objective", "smooth_value", "penalty_value", "feasibility", "stationarity"):
        assert getattr(late, name) == getattr(whole, name)
    assert late.lower_bound <= whole.objective
    assert late.optimum in (None, whole.optimum)


def embedding(n: int = 40_000) -> tuple[ob.kg.UltraE, np.ndarray]:
    rng = np.random.default_rng(0)
    triples = np.stack([rng.integers(n, size=n), np.zeros(n, int), rng.integers(n, size=n)], axis=1)
    return ob.kg.UltraE(n, 1, dim=16, max_epochs=0, n_threads=1).fit(triples), triples


def test_ranks_scores_and_validation():
    model, triples = embedding()
    assert isinstance(pressed(lambda: model.rank(triples)), KeyboardInterrupt)
    many = np.tile(triples, (150, 1))
    assert isinstance(pressed(lambda: model.score_triples(many), 0.5), KeyboardInterrupt)
    valid = ob.kg.UltraE(40_000, 1, dim=16, max_epochs=1, valid_every=1, n_threads=1)
    assert pressed(lambda: valid.fit(triples[:64], triples)) is valid
    assert valid.status_ is ob.Status.INTERRUPTED
    assert valid.n_epochs_ == 1


STARTED = {
    "penalty": lambda x0, **k: ob.solve(
        ob.SparsePCAProblem(TALL, 30, ob.L1(0.1)), x0, solver=ob.OBCD(), n_threads=1, **k
    ),
    "nonnegative": lambda x0, **k: ob.solve(
        ob.NonnegativePCAProblem(TALL, 30), x0, solver=ob.OBCD(), n_threads=1, **k
    ),
    "count": lambda x0, **k: ob.solve(
        ob.SparsePCAProblem(TALL, 30, ob.Cardinality(60)), x0, n_threads=1, **k
    ),
}

TALL = np.random.default_rng(3).standard_normal((2000, 3000))


def largest(r: int) -> np.ndarray:
    """Unit columns at the features of largest variance."""
    x = np.zeros((TALL.shape[1], r))
    x[np.argsort(-np.sum(TALL**2, axis=0), kind="stable")[:r], np.arange(r)] = 1.0
    return x


@pytest.mark.parametrize("case", STARTED)
def test_a_spectral_start_ends_with_the_limit(case):
    """Then the solve begins, and ends, at the features of largest variance."""
    late = STARTED[case]("spectral", max_time=0.0)
    assert late.status is ob.Status.MAX_TIME
    if case != "count":
        np.testing.assert_array_equal(late.x, largest(30))
    started = STARTED[case](largest(30), max_time=0.0)
    assert late.objective <= started.objective + 1e-9 * abs(started.objective)


def test_a_spectral_start_ends_with_ctrl_c():
    problem = ob.SparsePCAProblem(TALL, 30, ob.L1(0.1))
    result = pressed(lambda: ob.solve(problem, "spectral", solver=ob.OBCD(), n_threads=1), 0.1)
    assert result.status is ob.Status.INTERRUPTED
    # On a busy machine the start may be complete before Ctrl-C.
    known = ob.solve(problem, largest(30), solver=ob.OBCD(), max_sweeps=0)
    assert result.objective <= known.objective
    assert result.feasibility < 1e-12


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_another_handler_raises_is_raised():
    """Python itself drops what is raised in a weak reference's callback: then it rings again."""

    class Alarm(Exception):
        pass

    def ring(*_: Any) -> None:
        if not over.is_set():
            raise Alarm

    def ringer() -> None:
        pause = 0.5
        while not over.wait(pause):
            os.kill(os.getpid(), signal.SIGUSR1)
            pause = 5.0

    problem, x = CERTIFICATES["l1"]()
    over = threading.Event()
    before = signal.signal(signal.SIGUSR1, ring)
    try:
        for call in (
            lambda: ob.certify(problem, x, n_threads=1),
            lambda: ob.solve(problem, "spectral", solver=ob.OBCD(), n_threads=1, tol=0.0),
            lambda: ob.support_stability(ob.SparsePCA(3, max_time=0.1), X, n_subsamples=5000),
        ):
            over.clear()
            bell = threading.Thread(target=ringer)
            bell.start()
            try:
                with pytest.raises(Alarm):
                    call()
            finally:
                over.set()
                bell.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


BEGUN = """
import json, sys, time
import numpy as np
import orthobcd as ob

told = []

def tell(point):
    if not told:
        print("started", flush=True)
    told.append(getattr(point, "objective", 0.0))
"""

SOLVE = """
A = np.random.default_rng(0).standard_normal((600, 1000))
problem = ob.SparsePCAProblem(A, 20, ob.L1(5.0))
end = ob.solve(problem, "random", solver={}, tol=0.0, callback=tell, max_time=60)
status, good = end.status, end.feasibility < 1e-12 and end.objective < end.history["objective"][0]
"""

CALLS = {
    "tiled": SOLVE.format("ob.OBCD()"),
    "random": SOLVE.format('ob.OBCD(working_set="random")'),
    "jacobi": SOLVE.format('ob.OBCD(update="jacobi")'),
    "greedy": SOLVE.format('ob.OBCD(working_set="wss-or")'),
    "probe": """
D = np.random.default_rng(0).standard_normal((300, 20))
problem = ob.hyperbolic.HyperbolicStructuralProbeProblem(D, np.repeat([1, -1], 10))
end = ob.solve(problem, tol=0.0, max_time=60, callback=tell)
status, good = end.status, end.objective < told[0]
""",
    "UltraE": f"""
sys.path.insert(0, {str(ROOT)!r})
from tests.python.kg.graphs import TRAIN, model
end = model(max_epochs=10**6).fit(TRAIN, callback=tell)
status, good = end.status_, end.n_epochs_ >= 1 and len(end.score_triples(TRAIN)) == len(TRAIN)
""",
}

DONE = """
print(json.dumps(dict(at=time.time(), status=status.name, good=bool(good))), flush=True)
"""


SLOWER = ("probe", "UltraE")
"""Calls that end after a gradient over all pairs of rows, or after a batch of triples."""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to a child process")
@pytest.mark.parametrize(
    "what",
    [what if what == "UltraE" else pytest.param(what, marks=pytest.mark.timing) for what in CALLS],
)
def test_ctrl_c_returns_the_best_point_at_once(what):
    script = BEGUN + CALLS[what] + DONE
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
    assert answer["good"]
    if what not in SLOWER:
        assert answer["at"] - sent < 0.2, f"took {answer['at'] - sent:.3f} s"


@pytest.mark.parametrize("workers", [1, 3, None])
def test_calls_side_by_side_have_their_values_in_order(workers):
    done: list[int] = []
    run_in_threads(lambda k: -k, range(3 * AHEAD + 1), workers, done)
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
        run_in_threads(lambda k: k, items(), 1, done)
    assert len(done) < 100_000
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
