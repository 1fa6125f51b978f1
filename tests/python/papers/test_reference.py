"""The two solvers of the pair problem in the NumPy reference agree."""

from __future__ import annotations

import numpy as np
import pytest

from .. import reference

pytestmark = pytest.mark.long


@pytest.mark.parametrize("kind", reference.PENALTIES)
@pytest.mark.parametrize("concave", [True, False])
def test_reference_solvers_agree(kind, concave, rng):
    """The papers' breakpoint search, corrected, against a dense grid: the two oracles agree."""
    for _ in range(25):
        r = int(rng.integers(1, 5))
        Z = rng.standard_normal((2, r))
        if kind == "nonnegative":
            Z = np.abs(Z) * (rng.random((2, r)) < 0.7)
        G = rng.standard_normal((2, r))
        M = rng.standard_normal((2, 2))
        M = -(M @ M.T) if concave else M + M.T
        S = Z @ Z.T
        lam = float(rng.random())
        _, V = reference.breakpoint_pair(Z, G, np.kron(S, M), 0.0, kind, lam)
        at, _ = reference.grid_pair(Z, G, M, S, kind, lam)
        new = V @ Z
        new[np.abs(new) < 1e-12] = 0.0
        E = V - np.eye(2)
        value = np.sum(E * (G @ Z.T)) + 0.5 * np.trace(M @ E @ S @ E.T)
        value += float(reference.penalty_value(kind, lam, new.ravel()))
        assert value <= at + 1e-9
        assert at <= value + 1e-6
