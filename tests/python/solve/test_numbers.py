"""Numbers of options: of the right type, finite, and within their bounds, which both sides show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import orthobcd as ob

A = np.random.default_rng(0).standard_normal((9, 5))
TRIPLES = np.array([[0, 0, 1], [1, 0, 2], [2, 0, 0]])


def solve(**options: Any) -> Any:
    return ob.solve(ob.SparsePCAProblem(A, 2, ob.L0(0.1)), **{"max_work": 0.001, **options})


def path(**options: Any) -> Any:
    return ob.regularization_path(A, 2, **{"n_alphas": 2, **options})


def pca(**options: Any) -> Any:
    options = {"n_components": 2, "max_work": 0.001, **options}
    return ob.SparsePCA(**options).fit(A)


def embedding(**options: Any) -> Any:
    options = {"dim": 3, "n_entities": 3, "n_relations": 1, "max_epochs": 0, **options}
    return ob.kg.UltraE(**options).fit(TRIPLES)


def choice(**options: Any) -> Any:
    return ob.choose_n_components(A, n_repeats=2, **options)


TINY = np.nextafter(0.0, 1.0)
BELOW_1, ABOVE_1 = np.nextafter(1.0, 0.0), np.nextafter(1.0, 2.0)
BELOW_0 = -TINY
NUMBERS: list[tuple[Callable[..., Any], str, list[Any], list[Any]]] = [
    (ob.OBCD, "block_size", [2, np.int8(3)], [1, 0]),
    (ob.OBCD, "tile_size", [2], [1]),
    (ob.OBCD, "proximal", [0, 0.0, np.float32(0.5)], [BELOW_0]),
    (ob.OBCD, "scored_pairs", [None, 1], [0]),
    (ob.JOBCD, "rapidity_bound", [None, TINY], [0.0, -1.0]),
    (ob.JOBCD, "tile_size", [2], [1]),
    (ob.VRJOBCD, "batch_size", [None, 1], [0]),
    (ob.VRJOBCD, "small_batch_size", [None, 1], [0]),
    (ob.VRJOBCD, "step", [TINY], [0.0]),
    (ob.VRJOBCD, "matchings", [1], [0]),
    (ob.VRJOBCD, "max_epochs", [None, 0], [-1]),
    (ob.Continuation, "ratio", [TINY, BELOW_1], [0.0, 1.0]),
    (solve, "max_time", [None, 0.0], [BELOW_0]),
    (solve, "max_sweeps", [None, 0], [-1]),
    (solve, "tol", [None, 0.0], [BELOW_0]),
    (solve, "effort", [TINY], [0.0]),
    (solve, "max_work", [0.0], [BELOW_0]),
    (solve, "seed", [0, 2**64 - 1], [-1, 2**64]),
    (solve, "random_state", [0, 2**64 - 1], [-1, 2**64]),
    (path, "ratio", [0.5], [0.0, 1.0]),
    (path, "n_alphas", [1], [0]),
    (path, "n_nonzero", [2, 10], [1, 11]),
    (pca, "n_components", [1, 5], [0, 6]),
    (pca, "n_nonzero", [2, 10], [1, 11]),
    (pca, "n_features", [2, 5], [1, 6]),
    (pca, "alpha", [0.0], [BELOW_0]),
    (pca, "tol", [0.0], [BELOW_0]),
    (choice, "quantile", [0.0, 1.0], [BELOW_0, ABOVE_1]),
    (choice, "max_components", [1], [0]),
    (embedding, "dim", [2], [1]),
    (embedding, "margin", [-1.0], []),
    (embedding, "radius", [0.5], [0.0]),
    (embedding, "relation_angle", [0.0], [BELOW_0]),
    (embedding, "rate_decay", [1.0], [0.0, ABOVE_1]),
    (embedding, "moment_decay", [TINY, BELOW_1], [0.0, 1.0]),
    (embedding, "relation_curvature", [None, 1.0], [0.0]),
    (embedding, "patience", [None, 1], [0]),
    (embedding, "batch_size", [1], [0]),
]
CASES = [pytest.param(*case, id=f"{case[0].__name__}-{case[1]}") for case in NUMBERS]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("call", "name", "inside", "outside"), CASES)
def test_bounds_are_known_from_both_sides(
    call: Callable[..., Any], name: str, inside: list[Any], outside: list[Any]
) -> None:
    for number in inside:
        call(**{name: number})
    for number in outside:
        with pytest.raises(ValueError, match=rf"^{name} .*(at least|at most|than|between|must)"):
            call(**{name: number})


@pytest.mark.parametrize(("call", "name", "inside", "outside"), CASES)
def test_what_is_no_finite_number_is_refused(
    call: Callable[..., Any], name: str, inside: list[Any], outside: list[Any]
) -> None:
    whole = isinstance(inside[-1], (int, np.integer)) and not isinstance(inside[-1], bool)
    for wrong in ("1", True, 1j, [1], 0.5 if whole and name != "proximal" else "0.5"):
        with pytest.raises((TypeError, ValueError), match=name):
            call(**{name: wrong})
    for endless in (float("nan"), -float("inf"), -(10**400)):
        with pytest.raises((TypeError, ValueError), match=name):
            call(**{name: endless})


EXCLUDED: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (ob.OBCD, {"update": "jacobi", "working_set": "random"}, "working_set"),
    (ob.OBCD, {"update": "jacobi", "scored_pairs": 3}, "scored_pairs"),
    (ob.JOBCD, {"update": "jacobi", "working_set": "cyclic"}, "working_set"),
    (ob.JOBCD, {"update": "jacobi", "side": "columns"}, "side"),
    (ob.VRJOBCD, {"step_rule": "adaptive", "full_gradient": False}, "step_rule"),
    (ob.VRJOBCD, {"batch_size": 3, "full_gradient": True}, "batch_size"),
    (ob.VRJOBCD, {"small_batch_size": 3, "full_gradient": True}, "small_batch_size"),
    (solve, {"seed": 3, "random_state": 1}, "seed"),
    (pca, {"alpha": 0.1, "n_nonzero": 4}, "alpha"),
    (pca, {"alpha": 0.1, "n_features": 4}, "alpha"),
    (pca, {"n_features": 4, "n_nonzero": 4}, "n_features"),
    (pca, {"n_features": 4, "certify": True}, "certify"),
    (embedding, {"weight_decay": 2.0, "learning_rate": 0.5}, "weight_decay"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("call", "options", "name"),
    [pytest.param(*case, id=f"{case[0].__name__}-{'-'.join(case[1])}") for case in EXCLUDED],
)
def test_options_that_exclude_each_other_are_refused(
    call: Callable[..., Any], options: dict[str, Any], name: str
) -> None:
    """Each of them alone is allowed; the error names one that must change."""
    for one in options:
        # This rule needs another option than the default.
        if options[one] != "adaptive":
            call(**{one: options[one]})
    with pytest.raises(ValueError, match=name):
        call(**options)
