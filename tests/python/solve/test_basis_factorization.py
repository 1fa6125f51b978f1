"""`basis_factorization`: an orthogonal matrix as a product of plane rotations and reflections."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob


@pytest.mark.parametrize("n", [2, 3, 8, 25])
@pytest.mark.parametrize("sign", [1, -1])
def test_basis_factorization_comes_back(n, sign):
    rng = np.random.default_rng(n)
    D = np.linalg.qr(rng.standard_normal((n, n)))[0]
    if np.sign(np.linalg.det(D)) != sign:
        D[:, 0] *= -1
    factors = ob.basis_factorization(D)
    assert len(factors) == n * (n - 1) // 2
    assert np.abs(factors.matrix() - D).max() < 1e-13
    x = rng.standard_normal((n, 2))
    assert np.abs(factors.apply(x) - D @ x).max() < 1e-13
    determinants = np.linalg.det(factors.matrices)
    assert np.abs(np.abs(determinants) - 1).max() < 1e-13
    assert (determinants < 0).sum() <= 1


def test_bad_input_names_the_argument():
    with pytest.raises(ValueError, match="D must be orthogonal"):
        ob.basis_factorization(2 * np.eye(3))
    with pytest.raises(ValueError, match="D must be square"):
        ob.basis_factorization(np.zeros((3, 2)))
