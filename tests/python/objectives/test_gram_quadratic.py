"""`GramQuadratic`: AᵀA formed or not is one function, that of `Quadratic`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import orthobcd as ob


def test_gram_equals_quadratic(rng):
    """AᵀA formed, dense data, sparse data: one function."""
    A = np.where(rng.random((30, 25)) < 0.4, rng.standard_normal((30, 25)), 0.0)
    mean = A.mean(axis=0)
    centred = A - mean
    x = np.linalg.qr(rng.standard_normal((25, 4)))[0]
    objectives = {
        False: [
            ob.Quadratic(-A.T @ A),
            ob.GramQuadratic(A),
            ob.GramQuadratic(sparse.csr_array(A)),
            ob.GramQuadratic(sparse.coo_matrix(A)),
        ],
        True: [
            ob.Quadratic(-centred.T @ centred),
            ob.GramQuadratic(centred),
            ob.GramQuadratic(A, mean=mean),
            ob.GramQuadratic(sparse.csc_array(A), mean=mean),
        ],
    }
    for centre, several in objectives.items():
        problems = [ob.StiefelProblem(smooth, ob.L1(0.3), 4) for smooth in several]
        problems += [
            ob.SparsePCAProblem(pca, 4, ob.L1(0.3), center=centre)
            for pca in (A, sparse.csr_array(A))
        ]
        solver = ob.OBCD(working_set="cyclic")
        results = [ob.solve(problem, x, solver=solver, max_sweeps=3) for problem in problems]
        # All problems have the same values at the points that any of them visits.
        for at in [x, *(result.x for result in results)]:
            expected = ob.certify(problems[0], at)
            for problem in problems:
                certificate = ob.certify(problem, at)
                for name in ("objective", "block2_gap", "criticality"):
                    one, other = getattr(certificate, name), getattr(expected, name)
                    assert one == pytest.approx(other, rel=1e-9, abs=1e-10)
        for result in results:
            assert result.feasibility < 1e-12
            assert result.objective < ob.certify(problems[0], x).objective


@pytest.mark.parametrize("center", [False, True])
def test_wide_data_is_used_as_it_is(center):
    data = np.random.default_rng(0).standard_normal((5, 40)) + 1.0
    wide = ob.SparsePCAProblem(data, 3, ob.L1(0.5), center)
    narrow = ob.SparsePCAProblem(data[:, :39], 3, ob.L1(0.5), center)
    assert isinstance(wide.smooth, ob.GramQuadratic)
    assert isinstance(narrow.smooth, ob.Quadratic)
    used = data - data.mean(axis=0) if center else data
    formed = ob.StiefelProblem(ob.Quadratic(-used.T @ used), ob.L1(0.5), 3)
    for result in (ob.solve(wide, seed=1), ob.solve(formed, seed=1)):
        x = result.x
        value = -0.5 * np.sum((used @ x) ** 2) + 0.5 * np.abs(x).sum()
        assert result.objective == pytest.approx(value)
        for problem in (wide, formed):
            certificate = ob.certify(problem, x)
            assert certificate.objective == pytest.approx(value, rel=1e-12)
            assert certificate.block2_gap <= 1e-9 * abs(value)
