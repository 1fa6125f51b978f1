"""`LogisticLoss` on all signatures."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob

from .reference_starts import signs


def test_logistic_losses_are_solved_by_default():
    rng = np.random.default_rng(0)
    loss = ob.LogisticLoss(rng.standard_normal((40, 6)), rng.standard_normal((40, 6)), np.ones(40))
    for given in ([1, 1, 1, -1, -1, -1], [1] * 6, [-1] * 6):
        problem = ob.JOrthogonalProblem(loss, given)
        result = ob.solve(problem, max_sweeps=30)
        first = result.history["objective"][0]
        assert result.objective < first
        j = np.diag(np.asarray(given, float))
        gap = np.linalg.norm(result.x.T @ j @ result.x - j)
        assert gap <= 1e-11 * max(1.0, np.vdot(result.x, result.x))


def test_logistic_loss_descends():
    rng = np.random.default_rng(2)
    loss = ob.LogisticLoss(
        rng.standard_normal((200, 6)), rng.standard_normal((200, 6)), rng.choice([-1.0, 1.0], 200)
    )
    problem = ob.JOrthogonalProblem(loss, signs(6, 3))
    for full in (True, False):
        solver = ob.VRJOBCD(full_gradient=full, max_epochs=50)
        result = ob.solve(problem, "random", solver=solver)
        assert result.objective < 0.99 * result.history["objective"][0]
        assert result.feasibility <= 1e-12 * np.linalg.norm(result.x) ** 2
    with pytest.raises(TypeError, match="solver"):
        ob.solve(problem, solver=ob.JOBCD())
