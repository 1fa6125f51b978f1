"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ORTHOBCD_DATA", ROOT.parent / "shared" / "data"))

SAFE_PATH = ["-P"] if sys.version_info >= (3, 11) else []
"""Option of Python by which it searches no module in the folder of the tests."""


SHORT = 0.01
"""Limit on the counted work of `short_searches`: 0.02 s of processor time."""


def random_sparse(rows: int, columns: int, density: float, seed: int) -> Any:
    """A random CSR array with entries between 0 and 1, by any version of SciPy."""
    from scipy import sparse

    rng = np.random.default_rng(seed)
    row, column = np.divmod(
        np.unique(rng.integers(rows * columns, size=round(density * rows * columns))), columns
    )
    return sparse.csr_array((rng.uniform(size=len(row)), (row, column)), shape=(rows, columns))


# Pictures need no screen, in this process and in those that tests start.
os.environ.setdefault("MPLBACKEND", "Agg")

# A background process of a script ignores Ctrl-C, as do its children, in which tests need Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


def orthobcd(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command in a process of its own."""
    command = [sys.executable, *SAFE_PATH, "-m", "orthobcd", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


class OffByAnUlp(np.random.Generator):
    """Its normal and uniform numbers are one unit in the last place larger or smaller."""

    @staticmethod
    def moved(x: float | np.ndarray) -> float | np.ndarray:
        up = np.atleast_1d(x).view(np.int64).reshape(np.shape(x)) % 2 == 0
        off = np.nextafter(x, np.where(up, np.inf, -np.inf))
        return off if isinstance(x, np.ndarray) else float(off)

    def standard_normal(self, *args, **kwargs):
        return self.moved(super().standard_normal(*args, **kwargs))

    def normal(self, *args, **kwargs):
        return self.moved(super().normal(*args, **kwargs))

    def random(self, *args, **kwargs):
        return self.moved(super().random(*args, **kwargs))


# `make test-portable`: no test may depend on the last bits of its data.
if os.environ.get("ORTHOBCD_TEST_ULP"):
    drawn = np.random.default_rng
    np.random.default_rng = lambda seed=None: OffByAnUlp(drawn(seed).bit_generator)  # type: ignore[assignment]


def covering(cases: list[pytest.Item], strength: int) -> list[pytest.Item]:
    """Few of the cases, which have all combinations of the values of ``strength`` parameters."""

    def values(case: Any) -> list[tuple[str, Any]]:
        plain = (str, int, float)
        params = case.callspec.params
        return [(k, v if isinstance(v, plain) else id(v)) for k, v in params.items()]

    each = [set(combinations(values(case), strength)) for case in cases]
    missing, chosen = set[Any]().union(*each), []
    while missing:
        best = max(range(len(cases)), key=lambda k: len(each[k] & missing))
        missing -= each[best]
        chosen.append(cases[best])
    return chosen


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks cases of `covering` tests as `long`, and the first case of a test as `quick`."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not {mark.name for mark in item.iter_markers()} & {"long", "timing"}:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        marker = cases[0].get_closest_marker("covering")
        if marker is not None:
            chosen = {id(case) for case in covering(cases, *marker.args or (1,))}
            for case in cases:
                if id(case) not in chosen:
                    case.add_marker("long")
            cases = [case for case in cases if id(case) in chosen]
        if cases[0].get_closest_marker("slow") is None:
            cases[0].add_marker("quick")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240607)


@pytest.fixture
def short_searches(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Searches of estimators that have no ``max_work`` end after little counted work.

    For tests that hold for any components, such as those that compare two fits with each other.
    The parameter of the fixture, if there is one, is the limit.
    """
    import orthobcd as ob
    from orthobcd.sklearn import base

    def limited(*arguments: Any, solver: Any = None, **options: Any) -> ob.Result:
        if options.get("max_work") is None and (solver is None or isinstance(solver, ob.Auto)):
            options["max_work"] = getattr(request, "param", SHORT)
        return ob.solve(*arguments, solver=solver, **options)

    monkeypatch.setattr(base, "solve", limited)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets; the test is skipped where there is none."""
    if not DATA.is_dir():
        pytest.skip(f"no data sets in {DATA} (set ORTHOBCD_DATA)")
    return DATA


@pytest.fixture(scope="session")
def w1a(data_dir: Path):
    """The LIBSVM data set w1a, 2477 x 300, sparse."""
    sparse = pytest.importorskip("scipy.sparse")
    path = data_dir / "w1a.csr.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return sparse.load_npz(path).astype(np.float64)
