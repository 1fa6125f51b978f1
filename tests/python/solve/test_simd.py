"""ORTHOBCD_SIMD: vector instructions change only the last bits of a result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import SAFE_PATH

LEVELS = ["scalar", "avx2", "avx512"]
SCRIPT = """
import json
import numpy as np
import orthobcd as ob

A = np.random.default_rng(0).standard_normal((30, 20))
X = np.linalg.qr(np.random.default_rng(1).standard_normal((20, 4)))[0]
values, ends = [], []
for penalty in (ob.NoPenalty(), ob.L0(2.0), ob.L1(1.0)):
    problem = ob.SparsePCAProblem(A, 4, penalty)
    at = ob.certify(problem, X)
    values += [at.objective, at.block2_gap, at.criticality]
    end = ob.solve(problem, X, solver=ob.OBCD(proximal=0.0), tol=0.0)
    ends.append([end.feasibility, ob.certify(problem, end.x).block2_gap, end.objective])
print(json.dumps([ob._core.instructions, values, ends]))
"""


def run(level: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *SAFE_PATH, "-c", SCRIPT],
        env={**os.environ, "ORTHOBCD_SIMD": level},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_cap_is_kept_and_values_stay():
    best = json.loads(run("").stdout)[0]
    found = {level: json.loads(run(level).stdout) for level in LEVELS}
    expected = found["scalar"][1]
    for level, (used, values, ends) in found.items():
        if best in LEVELS:
            assert used == LEVELS[min(LEVELS.index(level), LEVELS.index(best))]
        assert values == pytest.approx(expected, rel=1e-11)
        for feasibility, gap, objective in ends:
            assert feasibility < 1e-12
            assert gap <= 1e-12 * abs(objective)


@pytest.mark.parametrize("level", ["sse2", "AVX2", "0"])
def test_another_value_is_refused_at_import(level):
    done = run(level)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        f'ValueError: ORTHOBCD_SIMD must be unset or one of scalar, avx2, avx512; got "{level}"'
    )


@pytest.mark.skipif(sys.platform != "linux", reason="made for Linux")
@pytest.mark.parametrize("cpu", ["avx2", "scalar"])
def test_a_command_runs_capped_on_any_processor(cpu, tmp_path):
    # if instructions cannot be hidden, the command runs with only our kernels capped
    script = Path(__file__).parents[2] / "on_older_cpu.sh"
    capped = subprocess.run(
        [script, cpu, "sh", "-c", "echo $ORTHOBCD_SIMD; exit 3"],
        env={**os.environ, "CARGO_TARGET_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (capped.stdout, capped.returncode) == (f"{cpu}\n", 3)
