"""The compiled core. Private: use the functions and classes of `orthobcd`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .problems import Penalty, Smooth
from .solvers import OBCD

__all__ = ["__version__", "solve_stiefel", "start_point"]

__version__: str

def solve_stiefel(
    smooth: Smooth,
    penalty: Penalty,
    n_components: int,
    x0: str | NDArray[np.float64],
    project_x0: bool,
    solver: OBCD,
    limits: tuple[float | None, int | None, float | None, float | None],
    seed: int,
    n_threads: int | None,
    callback: Callable[[float, float, float, int, NDArray[np.float64]], bool] | None,
) -> tuple[dict[str, Any], Exception | None]: ...
def start_point(
    smooth: Smooth,
    n_components: int,
    x0: str | NDArray[np.float64],
    nonnegative: bool,
    project_x0: bool,
    seed: int,
    n_threads: int | None,
) -> NDArray[np.float64]: ...
