"""`VRJOBCD`: steps with variance reduction; `LogisticLoss` on all signatures."""

import numpy as np
import pytest

import orthobcd as ob

from ..reference import signs


def test_variance_reduced_does_not_stop_early():
    A = np.random.default_rng(0).standard_normal((2000, 12))
    problem = ob.HyperbolicEigenvalueProblem(A, signs(12, 6))
    result = ob.solve(problem, "random", solver=ob.VRJOBCD())
    assert result.status is ob.Status.CONVERGED
    optimum = ob.certify(problem, np.eye(12)).optimum
    assert result.objective <= optimum * (1.0 + 1e-9)


@pytest.mark.parametrize("penalty", [ob.NoPenalty(), ob.L0(0.01), ob.L1(0.02)])
@pytest.mark.parametrize("p", [3, 6])
def test_variance_reduced_with_a_penalty_and_one_sign(penalty, p):
    rng = np.random.default_rng(4)
    A, B = rng.standard_normal((200, 6)), rng.standard_normal((200, 6))
    y = rng.choice([-1.0, 1.0], 200)
    j = signs(6, p)
    x0 = ob.hyperbolic.random_j_orthogonal(j, 0.3, seed=1)

    def value(x):
        loss = np.logaddexp(0.0, -y * np.einsum("ki,ij,kj->k", A, x, B)).mean()
        if isinstance(penalty, ob.L0):
            return loss + penalty.lam * np.count_nonzero(x)
        return loss + (penalty.lam * np.abs(x).sum() if isinstance(penalty, ob.L1) else 0.0)

    problem = ob.JOrthogonalProblem(ob.LogisticLoss(A, B, y), j, penalty)
    result = ob.solve(problem, x0, solver=ob.VRJOBCD(max_epochs=40))
    assert value(x0) == pytest.approx(result.history["objective"][0], rel=1e-12)
    assert value(result.x) == pytest.approx(result.objective, rel=1e-12)
    assert result.objective < 0.99 * value(x0)
    drift = np.abs(result.x.T @ (j[:, None] * result.x) - np.diag(j)).max()
    assert drift <= 1e-13 * np.sum(result.x**2)


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
        if -1 in given and 1 in given:
            with pytest.raises(TypeError, match="solver"):
                ob.solve(problem, solver=ob.JOBCD())
