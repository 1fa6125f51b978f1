"""The compiled core. Private: use the functions and classes of `orthobcd`."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .jobcd import JOBCD
from .problems import Penalty, Smooth
from .solvers import OBCD

__all__ = [
    "__version__",
    "basis_factorization",
    "certify",
    "hyperbolic_cs",
    "random_j_orthogonal",
    "solve_at_count",
    "solve_auto",
    "solve_finite_sum",
    "solve_j_orthogonal",
    "solve_path",
    "solve_stiefel",
    "start_point",
]

__version__: str

_Matrix: TypeAlias = NDArray[np.float64]
_Limits: TypeAlias = tuple[float | None, int | None, float | None, float | None]
_Callback: TypeAlias = Callable[[float, float, float, int, _Matrix], bool]
_Returned: TypeAlias = tuple[dict[str, Any], Exception | None]

def solve_stiefel(
    smooth: Smooth,
    penalty: Penalty,
    n_components: int,
    x0: str | _Matrix | None,
    project_x0: bool,
    solver: OBCD,
    limits: _Limits,
    seed: int,
    n_threads: int | None,
    callback: _Callback | None,
) -> _Returned: ...
def solve_auto(
    smooth: Smooth,
    penalty: Penalty,
    signature: NDArray[np.int8] | None,
    n_components: int,
    x0: str | _Matrix | None,
    project_x0: bool,
    n_starts: int | None,
    strategies: list[str] | None,
    limits: _Limits,
    seed: int,
    n_threads: int | None,
    callback: _Callback | None,
) -> _Returned: ...
def solve_at_count(
    smooth: Smooth,
    lam: float,
    n_components: int,
    x0: _Matrix,
    n_nonzero: int,
    limits: _Limits,
    seed: int,
    callback: _Callback | None,
) -> _Returned | None: ...
def solve_path(
    smooth: Smooth,
    penalty: Penalty,
    n_components: int,
    x0: str | _Matrix | None,
    project_x0: bool,
    lams: list[float] | None,
    ratio: float,
    solver: OBCD,
    limits: _Limits,
    seed: int,
    n_threads: int | None,
    callback: _Callback | None,
) -> _Returned: ...
def certify(
    smooth: Smooth,
    penalty: Penalty,
    signature: NDArray[np.int8] | None,
    n_components: int,
    x: _Matrix,
    n_threads: int | None,
) -> dict[str, Any]: ...
def solve_j_orthogonal(
    smooth: Any,
    penalty: Penalty,
    signature: NDArray[np.int8],
    x0: _Matrix,
    solver: JOBCD,
    limits: _Limits,
    seed: int,
    n_threads: int | None,
    callback: _Callback | None,
) -> _Returned: ...
def solve_finite_sum(
    sum: Any,
    penalty: Penalty,
    signature: NDArray[np.int8],
    x0: _Matrix,
    options: Any,
    limits: _Limits,
    seed: int,
    n_threads: int | None,
    callback: _Callback | None,
) -> _Returned: ...
def random_j_orthogonal(signature: NDArray[np.int8], scale: float, seed: int) -> _Matrix: ...
def hyperbolic_cs(
    x: _Matrix, signature: NDArray[np.int8]
) -> tuple[_Matrix, _Matrix, _Matrix, _Matrix, _Matrix, _Matrix]: ...
def basis_factorization(d: _Matrix) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
def start_point(
    smooth: Smooth,
    n_components: int,
    x0: str | NDArray[np.float64],
    nonnegative: bool,
    project_x0: bool,
    seed: int,
    n_threads: int | None,
) -> NDArray[np.float64]: ...
