"""Step lengths and line search of the gradient baselines.

References
----------
Barzilai and Borwein 1988, "Two-point step size gradient methods" (both lengths, in turn); Zhang
and Hager 2004, "A nonmonotone line search technique and its application to unconstrained
optimization".
"""

from __future__ import annotations

import numpy as np

from orthobcd._internal.checks import FloatArray

MEMORY = 0.85
"""Weight of the past in the reference value: 0 is a monotone search, 1 the plain average."""

ARMIJO = 1e-4
"""Smallest decrease of an accepted step, as a share of the predicted decrease."""


class BarzilaiBorwein:
    """The next trial length: the long and the short Barzilai–Borwein length in turn.

    Parameters
    ----------
    length : float
        First trial length.
    """

    def __init__(self, length: float) -> None:
        self.length = length
        self.restart()

    def restart(self) -> None:
        """Begin with the long length again."""
        self._long = True

    def update(self, moved: FloatArray, turned: FloatArray) -> None:
        """Computes the length from the last move and the change of the gradient along it."""
        inner = abs(float(np.vdot(moved, turned)))
        if inner > 0.0:
            ends = moved if self._long else turned
            squared = float(np.vdot(ends, ends))
            self.length = squared / inner if self._long else inner / squared
            self._long = not self._long


class Reference:
    """Reference value of the line search: an average of the past values.

    Parameters
    ----------
    value : float
        Objective at the start.
    """

    def __init__(self, value: float) -> None:
        self._average, self._mass = value, 1.0

    def accepts(self, value: float, predicted: float) -> bool:
        """True if ``value`` is low enough, given the decrease that the slope predicts."""
        return value <= self._average - ARMIJO * predicted

    def update(self, value: float) -> None:
        """Add the value of an accepted step to the average."""
        mass = MEMORY * self._mass + 1.0
        self._average = (MEMORY * self._mass * self._average + value) / mass
        self._mass = mass
