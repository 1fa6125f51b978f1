"""A small run of tools/quality/fuzz.py, and failures that the script must detect."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace

import numpy as np
import pytest

import orthobcd as ob

from ..conftest import ROOT

pytest.importorskip("hypothesis")
from .. import promises
from ..strategies import numbered

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="waits for pipes with select")

spec = importlib.util.spec_from_file_location("fuzz", ROOT / "tools" / "quality" / "fuzz.py")
fuzz = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzz)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_small_cases_of_all_options_and_scales():
    answers = fuzz.run(range(250), seed=1, jobs=2, timeout=20.0)
    assert not [answer for answer in answers if answer["failures"]], fuzz.table(answers)
    # Some scales are above the accepted limits, but most cases run.
    assert sum(answer["refused"] is not None for answer in answers) < 125


@pytest.mark.slow
@pytest.mark.timeout(600)  # for a process to start on a busy machine
def test_a_hang_is_noticed():
    (answer,) = fuzz.run(range(1), seed=1, jobs=1, timeout=0.0)
    assert answer["failures"][0][0] == "hang"
    assert answer["text"] == numbered(1, 0).text


def test_a_case_is_fixed_by_its_number():
    assert numbered(1, 7).text == numbered(1, 7).text != numbered(1, 8).text


def test_what_does_not_hold_is_noticed():
    C = np.diag([1.0, 2.0, 3.0, 4.0])
    problem = ob.StiefelProblem(ob.Quadratic(-C), ob.L1(0.1), 2)
    x0 = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 2)))[0]
    result = ob.solve(problem, x0, solver=ob.OBCD())

    def kinds(found: ob.Result) -> set[str]:
        failures = promises.check(
            found,
            lambda x: promises.quadratic_value(-C, None, None, x),
            problem.penalty,
            np.eye(2),
            [],
        )
        return {kind for kind, _ in failures}

    assert kinds(result) == set()
    assert kinds(replace(result, x=result.x * (1 + 1e-9))) == {"infeasible", "value"}
    assert kinds(replace(result, smooth_value=np.nan)) == {"nonfinite"}
    rising = {**result.history, "objective": result.history["objective"].copy()}
    rising["objective"][-1] = rising["objective"][-2] + 1e-12
    assert kinds(replace(result, history=rising)) == {"rises"}
    assert promises.not_above(
        replace(result, objective=ob.value(problem, x0).objective + 1e-6),
        lambda x: promises.quadratic_value(-C, None, None, x),
        problem.penalty,
        x0,
    )
