"""Data with known components."""

from __future__ import annotations

import numpy as np


def planted(m: int = 200, seed: int = 0, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Data with three sparse orthogonal components among 20 features."""
    rng = np.random.default_rng(seed)
    V = np.zeros((20, 3))
    for k, (start, size) in enumerate(((0, 5), (5, 4), (9, 4))):
        V[start : start + size, k] = 1.0 / np.sqrt(size)
    scores = rng.standard_normal((m, 3)) * np.array([3.0, 2.4, 2.0])
    return scores @ V.T + noise * rng.standard_normal((m, 20)), V
