"""The properties of every solve, checked in extended precision, and the outcome of a case."""

from __future__ import annotations

import itertools
import os
import re
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import orthobcd as ob

FEASIBLE = 1e-12

CLOSE = 1e-11
"""Largest error of a reported objective, relative to the sizes of f and h."""

ROUNDING = 1e-14
"""Error allowed in an entry of (A − mean) X, relative to (|A| + |mean|) |X|."""

ARGUMENTS = re.compile(
    r"A|C|D|X|adaptive|alpha|alphas|alpha_scale|batch_size|block_size|callback|center|curvature|effort|"
    r"full_gradient|random_state|"
    r"lam|lams|labels|linear|matchings|matrix|max_epochs|max_sweeps|max_time|mean|n_components|n_nonzero|"
    r"makers|n_starts|n_threads|penalty|problem|project_x0|proximal|rapidity_bound|ratio|ridge|scale|seed|"
    r"sense|side|signature|small_batch_size|smooth|solver|step|step_rule|target|"
    r"tile_size|tol|update|working_set|x|x0"
)
"""Argument names with which the message of a refusal begins."""

Long = np.longdouble

Failures = list[tuple[str, str]]


def quadratic_value(C: Any, linear: Any, D: Any, x: Any) -> tuple[Any, Any]:
    C, D = C.astype(Long), np.eye(x.shape[1], dtype=Long) if D is None else D.astype(Long)
    f = np.sum(x * (C @ x @ D)) / 2
    size = np.sum(abs(x) * (abs(C) @ abs(x) @ abs(D))) / 2
    if linear is not None:
        f += np.sum(linear.astype(Long) * x)
        size += np.sum(abs(linear.astype(Long) * x))
    return f, CLOSE * size


def gram_value(A: Any, scale: float, mean: Any, x: Any) -> tuple[Any, Any]:
    A = A.astype(Long)
    error = ROUNDING * (abs(A) @ abs(x))
    if mean is not None:
        A = A - A.mean(axis=0)
        error = error + ROUNDING * (abs(mean.astype(Long)) @ abs(x))
    w = A @ x
    f = Long(scale) / 2 * np.sum(w * w)
    # A rounded AᵀA has the error eps·|A|ᵀ|A|; a rounded product has the error of its entries.
    size = np.sum((abs(A) @ abs(x)) ** 2)
    return f, abs(Long(scale)) * (CLOSE * size + np.sum(2 * abs(w) * error + error**2))


def logistic_value(A: Any, B: Any, labels: Any, x: Any) -> tuple[Any, Any]:
    margins = labels * np.einsum("ki,ij,kj->k", A.astype(Long), x, B.astype(Long))
    sizes = np.einsum("ki,ij,kj->k", abs(A).astype(Long), abs(x), abs(B).astype(Long))
    return np.mean(np.logaddexp(Long(0), -margins)), CLOSE * (1 + np.mean(sizes))


def penalty_of(penalty: Any, x: Any) -> Any:
    if isinstance(penalty, ob.L0):
        return Long(penalty.lam) * np.count_nonzero(x)
    if isinstance(penalty, ob.L1):
        return np.sum(np.asarray(penalty.lam, Long) * abs(x))
    return Long(0)


def infeasibility(x: Any, signs: Any, target: Any, size: float = 1.0) -> Any:
    """‖XᵀJX − target‖_F, relative to ‖X‖² or ``size``, if larger, where signs are mixed."""
    long = np.asarray(x, Long)
    gap = np.sqrt(np.sum((long.T @ (signs[:, None] * long) - target) ** 2))
    return gap if (signs > 0).all() else gap / max(Long(size), np.sum(long * long))


# Checks -----------------------------------------------------------------------------------------


def check(
    result: ob.Result,
    smooth: Callable[..., Any],
    penalty: Any,
    target: Any,
    seen: list[float],
    signs: Any = None,
    size: float = 1.0,
) -> Failures:
    failures: Failures = []

    def fail(kind: str, text: str) -> None:
        failures.append((kind, f"{text} ({result.status.name})"))

    x = result.x
    if not np.isfinite(x).all():
        fail("nonfinite", "the point")
        return failures
    for name in ("objective", "smooth_value", "penalty_value", "feasibility", "seconds"):
        if not np.isfinite(getattr(result, name)):
            fail("nonfinite", f"{name} = {getattr(result, name)}")
    signs = np.ones(len(x)) if signs is None else signs
    gap = infeasibility(x, signs, target, size)
    if not gap <= FEASIBLE:
        fail("infeasible", f"off by {float(gap):.2e}, reported {result.feasibility:.2e}")
    if isinstance(penalty, ob.NonNegative) and not x.min() >= 0.0:
        fail("infeasible", f"an entry {x.min()}")
    values = result.history["objective"]
    if not np.isfinite(values).all():
        fail("nonfinite", f"history {values[~np.isfinite(values)][:3]}")
    elif not (np.diff(values) <= 0.0).all():
        fail("rises", f"history by {np.diff(values).max():.3g} at {abs(values[0]):.3g}")
    elif not result.objective <= values[0] or values[-1] != result.objective:
        fail("rises", f"from {values[0]} to {values[-1]}, reported {result.objective}")
    if any(not later <= earlier for earlier, later in itertools.pairwise(seen)):
        fail("rises", f"a callback saw {seen}")
    f, error = smooth(x.astype(Long))
    h = penalty_of(penalty, x.astype(Long))
    allowed = error + CLOSE * abs(h) + Long(np.finfo(float).tiny)
    if np.isfinite(result.objective) and not abs(result.objective - (f + h)) <= allowed:
        fail("value", f"reported {result.objective!r}, is {f + h}, allowed {float(allowed):.2e}")
    return failures


def not_above(result: ob.Result, smooth: Any, penalty: Any, x0: np.ndarray) -> Failures:
    """F at the end is not above F at a feasible start."""
    if isinstance(penalty, ob.NonNegative) and x0.min() < 0.0:
        return []
    f, error = smooth(x0.astype(Long))
    h = penalty_of(penalty, x0.astype(Long))
    # A start that is feasible to 1e-8 may be moved by 1e-8.
    allowed = 1e4 * (error + CLOSE * abs(h)) + Long(np.finfo(float).tiny)
    if isinstance(penalty, ob.L0) and np.count_nonzero(x0) < x0.size:
        allowed += Long(penalty.lam) * (x0.size - np.count_nonzero(x0))
    if np.isfinite(result.objective) and not result.objective <= f + h + allowed:
        return [("rises", f"from F(x0) = {f + h} to {result.objective}")]
    return []


def same_bits(
    problem: Any, x0: Any, solver: Any, options: dict[str, Any], result: ob.Result
) -> Failures:
    if options.get("max_time") is not None or "callback" in options:
        return []
    other = ob.solve(problem, x0, solver=solver, **{**options, "n_threads": 4})
    if np.array_equal(other.x, result.x) and other.objective == result.objective:
        return []
    threads = options["n_threads"]
    return [("bits", f"{result.objective!r} on {threads} threads, {other.objective!r} on 4")]


def check_certificate(problem: Any, smooth: Callable[..., Any], result: ob.Result) -> Failures:
    certificate = ob.certify(problem, result.x, n_threads=1)
    failures: Failures = []
    for name in ("objective", "block2_gap", "block2_measure", "criticality", "feasibility"):
        if not np.isfinite(getattr(certificate, name)):
            failures.append(("nonfinite", f"certificate's {name} {getattr(certificate, name)}"))
    size = abs(certificate.smooth_value) + abs(certificate.penalty_value)
    # The rounding of f at points of this size.
    slack = 1e-9 * size + float(smooth(np.ones_like(result.x))[1])
    if certificate.optimum is not None and certificate.optimality_gap < -slack:
        failures.append(("optimal", f"{result.objective} is below {certificate.optimum}"))
    return failures


def outcome(make: Callable[[], Any]) -> dict[str, Any]:
    """Make and run a case: what it is, its failures, and the refusal if it was refused."""
    answer: dict[str, Any] = {"failures": [], "refused": None}
    try:
        case = make()
        answer["text"] = case.text
        answer["kind"] = case.kind
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # The warning that a number of nonzeros was not met is expected.
            warnings.simplefilter("ignore", ConvergenceWarning)
            # So is advice about units and about as many components as features.
            for advice in ("variances of the features differ", r"n_components=\d+ is the number"):
                warnings.filterwarnings("ignore", advice, UserWarning)
            answer["failures"] = case.run()
    except Warning as warning:
        answer["failures"] = [("warning", f"{type(warning).__name__}: {warning}")]
    except (ValueError, TypeError) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        first = re.split(r"\W", str(error), maxsplit=1)[0]
        # scikit-learn's message about too few samples names no argument.
        if not (ARGUMENTS.fullmatch(first) or str(error).startswith("Found array with")):
            place = f"{os.path.basename(where.filename)}:{where.lineno}"
            answer["failures"] = [("unnamed", f"{type(error).__name__}: {error} at {place}")]
        else:
            answer["refused"] = re.sub(r"[-+\d.]+(e[-+]?\d+)?", "#", str(error))
    except BaseException as error:
        kind = "crash" if type(error).__name__ == "PanicException" else "raised"
        answer["failures"] = [(kind, f"{type(error).__name__}: {error}")]
        if isinstance(error, KeyboardInterrupt):
            raise
    return answer
