"""The compiled core. Private: use the functions and classes of `orthobcd`."""

from os import PathLike
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from .data import Precision
from .kg.ultra_e import UltraE
from .problems import Problem
from .solvers import JOBCD, OBCD, VRJOBCD, Auto, Stages
from .solving import Solve

__all__ = [
    "COEFFICIENTS",
    "CONSTANT",
    "DATA",
    "WORK_UNIT",
    "Checkpoint",
    "Moments",
    "Pseudohyperboloid",
    "Stop",
    "StructuralProbe",
    "__version__",
    "basis_factorization",
    "certify",
    "default_work",
    "hyperbolic_cs",
    "implies_nonnegative",
    "instructions",
    "j_orthogonal_start",
    "largest_lam",
    "lower_bound",
    "makers",
    "penalty_value",
    "random_j_orthogonal",
    "rotate_loadings",
    "solve",
    "start_point",
    "ultra_e_epoch",
    "ultra_e_init",
    "ultra_e_ranks",
    "ultra_e_scores",
    "value",
]

__version__: str
# The vector instructions of the kernels: avx512, avx2, scalar or other.
instructions: str

COEFFICIENTS: tuple[float, float]
CONSTANT: float
DATA: tuple[float, float]

_Matrix: TypeAlias = NDArray[np.float64]
_Callback: TypeAlias = Any
_Returned: TypeAlias = tuple[dict[str, Any], BaseException | None]

def solve(
    problem: Problem,
    x0: str | _Matrix | None,
    project_x0: bool,
    how: Auto | OBCD | JOBCD | VRJOBCD | Stages,
    run: Solve,
    callback: _Callback | None,
) -> _Returned: ...

WORK_UNIT: float

def implies_nonnegative(penalty: Any) -> bool: ...
def penalty_value(penalty: Any, x: _Matrix) -> float: ...
def default_work(problem: Problem) -> float: ...
def makers() -> list[str]: ...
def largest_lam(problem: Problem, n_threads: int | None) -> float | None: ...
def value(problem: Problem, x: _Matrix, n_threads: int | None) -> dict[str, Any]: ...
def certify(problem: Problem, x: _Matrix, run: Solve) -> dict[str, Any]: ...
def lower_bound(
    problem: Problem,
    at: tuple[float, float],
    gap_tol: float,
    run: Solve,
) -> tuple[dict[str, Any], bool, BaseException | None]: ...
def random_j_orthogonal(signature: NDArray[np.int8], scale: float, seed: int) -> _Matrix: ...
def rotate_loadings(
    v: _Matrix,
    criterion: str,
    n_starts: int,
    seed: int,
    n_threads: int | None,
    max_time: float | None,
) -> tuple[_Matrix, _Matrix, NDArray[np.float64]]: ...
def j_orthogonal_start(x0: _Matrix, signature: NDArray[np.int8]) -> _Matrix: ...
def hyperbolic_cs(
    x: _Matrix, signature: NDArray[np.int8]
) -> tuple[_Matrix, _Matrix, _Matrix, _Matrix, _Matrix, _Matrix]: ...
def basis_factorization(d: _Matrix) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
def start_point(
    problem: Problem,
    x0: str | _Matrix,
    project_x0: bool,
    run: Solve,
) -> _Matrix: ...

_Vector: TypeAlias = NDArray[np.float64]
_Signs: TypeAlias = NDArray[np.int8]
_Triples: TypeAlias = NDArray[np.int64]
_State: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]

@final
class Pseudohyperboloid:
    def __new__(cls, signature: _Signs, radius: float) -> Pseudohyperboloid: ...
    def inner(self, x: _Matrix, y: _Matrix) -> _Vector: ...
    def inner_pairs(self, x: _Matrix, y: _Matrix) -> _Matrix: ...
    def double_projection(self, x: _Matrix) -> _Matrix: ...
    def double_projection_gradient(self, x: _Matrix, cotangent: _Matrix) -> _Matrix: ...
    def inverse_double_projection(self, y: _Matrix) -> _Matrix: ...
    def distance_gradient(self, x: _Matrix, y: _Matrix) -> tuple[_Vector, _Matrix, _Matrix]: ...
    def distance_pairs(self, x: _Matrix, y: _Matrix) -> _Matrix: ...

@final
class Moments:
    """Sums over samples that arrive in blocks of rows: weight, means and second moments."""

    def __new__(cls, n_features: int, precision: Precision) -> Moments: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def weight(self) -> float: ...
    @property
    def precision(self) -> Precision: ...
    def copy(self) -> Moments: ...
    def add(
        self, rows: _Matrix, weights: _Vector | None = None, n_threads: int | None = ...
    ) -> None: ...
    def merge(self, other: Moments, n_threads: int | None = ...) -> None: ...
    @property
    def nbytes(self) -> int: ...
    def make_fast(self) -> None: ...
    def buffered(self) -> tuple[_Matrix, _Vector | None] | None: ...
    def read(
        self, center: bool, scale: bool, keep: bool = True, n_threads: int | None = ...
    ) -> tuple[_Vector, _Matrix, _Vector | None]: ...
    def __reduce__(self) -> tuple[type[Moments], tuple[int, Precision], Any]: ...
    def __setstate__(self, state: Any) -> None: ...

@final
class Checkpoint:
    def __new__(cls, path: str | PathLike[str], every: float) -> Checkpoint: ...

@final
class Stop:
    def __new__(cls) -> Stop: ...
    def obey(self) -> None: ...
    def set(self) -> None: ...

@final
class StructuralProbe:
    def __new__(
        cls,
        d: _Matrix,
        targets: _Matrix | None,
        signature: _Signs,
        radius: float,
        scale: float,
        n_threads: int | None = None,
    ) -> StructuralProbe: ...
    def value_and_gradient(self, x: _Matrix) -> tuple[float, _Matrix]: ...
    def mean_distances(self, x: _Matrix) -> tuple[float, float]: ...
    def with_scale(self, scale: float) -> StructuralProbe: ...

def ultra_e_init(
    n_entities: int,
    n_relations: int,
    signature: _Signs,
    options: UltraE,
    scale: float,
    angle: float,
) -> _State: ...
def ultra_e_epoch(
    state: _State,
    triples: _Triples,
    signature: _Signs,
    options: UltraE,
    epoch: int,
    n_threads: int | None,
) -> tuple[_State, float | None, Exception | None]: ...
def ultra_e_scores(
    state: _State, triples: _Triples, signature: _Signs, options: UltraE, n_threads: int | None
) -> _Vector: ...
def ultra_e_ranks(
    state: _State,
    triples: _Triples,
    known: _Triples,
    signature: _Signs,
    options: UltraE,
    n_threads: int | None,
) -> _Matrix: ...
