"""Smooth objectives that are sums over data rows and not quadratic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._checks import FloatArray, as_data, as_float_array


@dataclass(frozen=True, eq=False)
class LogisticLoss:
    """``f(X) = (1/N) Σ log(1 + exp(−y_i a_iᵀ X b_i))``, for `JOBCD` with a Jacobi update.

    Parameters
    ----------
    A : array_like of shape (N, n)
        Left factors a_i.
    B : array_like of shape (N, r)
        Right factors b_i.
    labels : array_like of shape (N,)
        y_i, +1 or −1.

    Raises
    ------
    ValueError, TypeError
        If the shapes do not fit, an entry is not finite, the largest magnitude of A or B is neither
        0 nor between 1e-50 and 1e50, or a label is not ±1.
    """

    A: FloatArray
    B: FloatArray
    labels: FloatArray

    def __post_init__(self) -> None:
        A, B = as_data("A", self.A), as_data("B", self.B)
        labels = as_float_array("labels", self.labels, 1)
        if B.shape[0] != A.shape[0]:
            raise ValueError(f"B must have {A.shape[0]} rows as A has, got shape {B.shape}")
        if labels.shape[0] != A.shape[0] or not (np.abs(labels) == 1.0).all():
            raise ValueError(f"labels must hold {A.shape[0]} values of +1 and -1")
        for name, value in (("A", A), ("B", B), ("labels", labels)):
            object.__setattr__(self, name, value)

    @property
    def n_rows(self) -> int:
        """Number of rows n of X."""
        return int(self.A.shape[1])

    @property
    def n_columns(self) -> int:
        """Number of columns r of X."""
        return int(self.B.shape[1])
