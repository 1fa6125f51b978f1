"""Signatures and J-orthogonal starts in NumPy."""

import numpy as np
from scipy import linalg as sl


def signs(n, p):
    return np.r_[np.ones(p, int), -np.ones(n - p, int)]


def reference_start(n, p, seed=1, scale=0.5):
    """U1, U2, V1, V2 by QR with diag R > 0, then the rapidities."""
    rng = np.random.default_rng(seed)

    def orthogonal(k):
        q, r = np.linalg.qr(rng.standard_normal((k, k)))
        return q * np.sign(np.diag(r))

    u1, u2, v1, v2 = orthogonal(p), orthogonal(n - p), orthogonal(p), orthogonal(n - p)
    k = min(p, n - p)
    t = scale * rng.standard_normal(k)
    boost, i = np.eye(n), np.arange(k)
    boost[i, i] = boost[p + i, p + i] = np.cosh(t)
    boost[i, p + i] = boost[p + i, i] = np.sinh(t)
    return sl.block_diag(u1, u2) @ boost @ sl.block_diag(v1, v2).T
