"""Small random problems over all options and scales, each checked for what every solve promises.

``python scripts/fuzz.py --cases 10000 --seed 0 --jobs 2`` (needs the installed package and
scikit-learn) solves them in processes of their own, killed and replaced when a case uses more CPU
time than ``--timeout`` (or `PATIENCE` times that on the clock), and prints the failures by kind
with the numbers of their cases:

* hang, crash (a signal, an abort or a panic), raised (anything but a refusal at the door),
* unnamed (a refusal whose message does not begin with an argument), warning,
* nonfinite (a value that is reported, or an entry of the point),
* rises (the history, a callback's values, or the end above the start),
* infeasible (beyond 1e-12; relative to ‖X‖² where signs are mixed; X ≥ 0 exactly),
* value (the reported objective is not F at the reported point),
* optimal (a certificate's optimum above the value at a feasible point),
* bits (another result with another number of threads, without a time limit).

Refusals that name an argument are no failures; they are counted by message. A case is fixed by
the seed and its number: ``--seed 0 --only 17`` shows case 17 and runs it in this process.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import json
import os
import queue
import re
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any, get_args

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import orthobcd as ob
from orthobcd.solvers import Strategy

DECADES = 150
"""Scales of data and penalties are 10^±DECADES at most."""

FEASIBLE = 1e-12

CLOSE = 1e-11
"""Largest error of a reported objective, relative to the sizes of f and h."""

ROUNDING = 1e-14
"""Error allowed in an entry of (A − mean) X, relative to (|A| + |mean|) |X|."""

MEMORY = 4 << 30
"""Bytes a worker may map: a wild allocation ends as a crash of one case."""

PATIENCE = 10
"""A case may wait for a busy machine: it hangs after this many times its CPU time on the clock."""

LOOK = 0.25
"""Seconds between two looks at the CPU time of a worker."""

EXAMPLES = 12
"""Case numbers printed per kind of failure."""

ARGUMENTS = re.compile(
    r"A|C|D|X|adaptive|alpha|alpha_scale|batch_size|block_size|callback|center|curvature|full_gradient|"
    r"lam|lams|labels|linear|matchings|matrix|max_epochs|max_sweeps|max_time|mean|n_components|n_nonzero|"
    r"n_starts|n_threads|penalty|problem|project_x0|proximal|rapidity_bound|ratio|ridge|scale|seed|"
    r"sense|side|signature|small_batch_size|smooth|solver|step|step_rule|strategies|target|"
    r"tile_size|tol|update|working_set|x|x0"
)
"""What the message of a refusal begins with."""

SPECIAL = (
    "zeros",
    "ones",
    "rank-1",
    "identity",
    "ties",
    "diagonal",
    "duplicates",
    "shifted",
    "one-entry",
    "mixed-scales",
)

Long = np.longdouble


class Case:
    """One problem, its options, and F in extended precision; `text` says what it is."""

    def __init__(self, seed: int, number: int) -> None:
        self.rng = np.random.default_rng([seed, number])
        self.words: list[str] = []
        self.n = int(self.rng.integers(2, 13))
        self.r = int(self.rng.integers(1, self.n + 1))
        self.scale = self.a_scale()
        self.signs: np.ndarray | None = None
        self.lam: Any = None
        kinds: dict[str, tuple[float, Callable[[], Any]]] = {
            "quadratic": (0.27, self.quadratic),
            "gram": (0.2, self.gram),
            "sparse-pca": (0.13, self.sparse_pca),
            "nonnegative-pca": (0.08, self.nonnegative_pca),
            "j-orthogonal": (0.16, self.j_orthogonal),
            "eigenvalue": (0.09, self.eigenvalue),
            "at-count": (0.04, self.at_count),
            "estimator": (0.03, self.estimator),
        }
        chances = [chance for chance, _ in kinds.values()]
        self.kind = str(self.rng.choice(list(kinds), p=np.array(chances) / sum(chances)))
        self.say(self.kind, f"n={self.n} r={self.r}")
        self.run = kinds[self.kind][1]()

    # Choices ----------------------------------------------------------------------------------

    def say(self, *words: Any) -> None:
        self.words.extend(str(word) for word in words)

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def a_scale(self) -> float:
        """1, a power of two, or log-uniform."""
        kind = self.pick("one", "one", "power", "uniform", "uniform")
        if kind == "one":
            return 1.0
        if kind == "power":
            bits = int(DECADES * np.log2(10))
            return float(2.0 ** int(self.rng.integers(-bits, bits + 1)))
        return float(10.0 ** self.rng.uniform(-DECADES, DECADES))

    def matrix(self, m: int, n: int, symmetric: bool) -> np.ndarray:
        """Ordinary or special data of about unit size, times the scale of the case."""
        rng = self.rng
        kind = self.pick(*SPECIAL) if self.chance(0.45) else "randn"
        matrix = rng.standard_normal((m, n))
        if kind == "zeros":
            matrix = np.zeros((m, n))
        elif kind == "ones":
            matrix = np.ones((m, n))
        elif kind == "rank-1":
            left = rng.standard_normal(m)
            matrix = np.outer(left, left[:n] if symmetric else rng.standard_normal(n))
        elif kind == "identity":
            matrix = np.eye(m, n)
        elif kind == "ties":
            matrix = rng.integers(-1, 2, (m, n)).astype(float)
        elif kind == "diagonal":
            matrix = np.zeros((m, n))
            np.fill_diagonal(matrix, rng.integers(-3, 4, min(m, n)))
        elif kind == "duplicates":
            matrix = matrix[rng.integers(0, (m + 1) // 2, m)][:, rng.integers(0, (n + 1) // 2, n)]
        elif kind == "shifted":
            matrix += 10.0 ** rng.uniform(2, 9)
        elif kind == "one-entry":
            matrix = np.zeros((m, n))
            matrix[rng.integers(m), rng.integers(n)] = 1.0
        elif kind == "mixed-scales":
            matrix *= 10.0 ** rng.uniform(-12, 0, n)
        if symmetric:
            matrix = matrix + matrix.T if self.chance(0.5) else self.pick(-1, 1) * matrix @ matrix.T
            matrix = 0.5 * (matrix + matrix.T)
        self.say(kind, f"scale={self.scale:.3g}")
        return matrix * self.scale

    def penalty(self, size: float) -> Any:
        """Any penalty, its weight near `size` or of a scale of its own."""
        kind = self.pick("l0", "l0", "l1", "l1", "l1-entries", "nonnegative", "none")
        if kind == "none":
            self.say("none")
            return ob.NoPenalty()
        if kind == "nonnegative":
            self.say("nonnegative")
            return ob.NonNegative()
        how = self.rng.random()
        if how < 0.7:
            lam = min(size, 1e290) * 10.0 ** self.rng.uniform(-4, 2)
        elif how < 0.9:
            lam = self.a_scale()
        else:
            lam = self.pick(0.0, 1e-320, 1e290)
        if kind == "l0":
            self.say(f"l0={lam:.3g}")
            self.lam = lam
            return ob.L0(lam)
        if kind == "l1-entries":
            self.say(f"l1-entries={lam:.3g}")
            self.lam = lam * self.rng.integers(0, 3, (self.n, self.r)) * self.rng.random()
            return ob.L1(self.lam)
        self.say(f"l1={lam:.3g}")
        self.lam = lam
        return ob.L1(lam)

    def obcd(self) -> ob.OBCD:
        fields = {
            "working_set": self.pick("tiled", "random", "cyclic", "wss-sv", "wss-or"),
            "update": self.pick("gauss-seidel", "gauss-seidel", "jacobi"),
            "curvature": self.pick("exact", "scalar"),
            "side": self.pick("rows", "rows", "columns", "both"),
            "block_size": self.pick(2, 2, 2, 3, min(4, self.n), self.n),
            "proximal": self.pick(1e-5, 1e-5, 0.0, 1e-300, 1.0, 1e3, 1e308, self.a_scale()),
            "tile_size": self.pick(64, 64, 2, 3),
        }
        fields["block_size"] = max(2, min(fields["block_size"], self.n))
        self.say(ob.OBCD(**fields))
        return ob.OBCD(**fields)

    def solver(self) -> Any:
        """Any solver for orthonormal columns."""
        kind = self.pick("obcd", "obcd", "obcd", "auto", "auto", "default", "path")
        if kind == "obcd":
            return self.obcd()
        if kind == "default":
            self.say("default")
            return None
        if kind == "path":
            self.say("Continuation")
            lams = None
            if self.lam is not None and self.chance(0.3):
                lams = float(np.max(self.lam)) * np.array([4.0, 2.0, 1.0])
                lams = lams if np.isfinite(lams).all() else None
                self.say("lams")
            solver = self.obcd() if self.chance(0.5) else ob.OBCD()
            return ob.Continuation(lams=lams, ratio=self.pick(0.6, 0.3, 0.9), solver=solver)
        strategies = None
        if self.chance(0.6):
            size = int(self.rng.integers(1, 4))
            strategies = tuple(str(name) for name in self.rng.choice(get_args(Strategy), size))
        starts = self.pick(None, None, 1, 3)
        self.say(ob.Auto(n_starts=starts, strategies=strategies))
        return ob.Auto(n_starts=starts, strategies=strategies)

    def jobcd(self) -> Any:
        """Any solver for mixed signs."""
        if self.chance(0.15):
            self.say("default")
            return None
        if self.chance(0.25):
            starts = self.pick(None, 1, 2)
            self.say(f"Auto({starts})")
            return ob.Auto(n_starts=starts)
        update = self.pick("gauss-seidel", "gauss-seidel", "jacobi", "vr-jacobi")
        common = {
            "proximal": self.pick(1e-5, 1e-5, 0.0, 1.0, self.a_scale()),
            "rapidity_bound": self.pick(None, None, 0.5, 3.0),
        }
        solver: Any
        if update == "vr-jacobi":
            full = self.chance(0.3)
            sizes = (None, None) if full else (self.pick(None, 4), self.pick(None, 2))
            solver = ob.VRJOBCD(full, *sizes, **common)
        else:
            columns = ["columns"] if update == "gauss-seidel" else []
            solver = ob.JOBCD(
                update=update,
                side=self.pick("rows", "both", *columns),
                working_set=self.pick("tiled", "random", "cyclic"),
                tile_size=self.pick(64, 2, 3),
                adaptive=self.pick(True, False),
                **common,
            )
        self.say(solver)
        return solver

    def start(self) -> Any:
        """A named start, an array, or None."""
        n, r, rng = self.n, self.r, self.rng
        kind = self.pick(
            None, None, "identity", "random", "spectral", "partition", "array", "array", "special"
        )
        if kind not in ("array", "special"):
            self.say(f"x0={kind}")
            return kind
        if kind == "array":
            self.say("x0=qr")
            return np.linalg.qr(rng.standard_normal((n, r)))[0]
        how = self.pick("permutation", "off-1e-9", "off-0.1", "groups", "zeros", "tiny", "huge")
        self.say(f"x0={how}")
        x = np.eye(n)[:, rng.permutation(n)[:r]]
        if how == "permutation":
            return x * rng.choice([-1.0, 1.0], r)
        if how == "off-1e-9":
            return x + 1e-9 * rng.standard_normal((n, r)) / n
        if how == "off-0.1":
            return np.abs(x + 0.1 * rng.standard_normal((n, r)))
        if how == "groups":
            x = np.zeros((n, r))
            x[rng.permutation(n), np.arange(n) % r] = rng.random(n) + 0.01
            return x / np.linalg.norm(x, axis=0)
        if how == "zeros":
            return np.zeros((n, r))
        return x + (1e-200 if how == "tiny" else 1e200) * rng.random((n, r))

    def limits(self, limited: float = 0.5) -> dict[str, Any]:
        """Options of `solve` that end it."""
        options: dict[str, Any] = {"seed": int(self.rng.integers(5)), "n_threads": self.pick(1, 2)}
        if self.chance(limited):
            options["max_sweeps"] = self.pick(0, 1, 2, 5, 20)
        if self.chance(0.2):
            options["max_time"] = self.pick(0.0, 0.001, 0.01, 0.05)
        if self.chance(0.3):
            options["tol"] = self.pick(0.0, 1e-300, 1e-14, 1e-6, 1e-2, 1.0, 1e300)
        if self.chance(0.1):
            options["target"] = self.pick(0.0, -1.0, 1.0) * self.a_scale()
        self.say(*(f"{name}={value}" for name, value in options.items()))
        return options

    # Problems ---------------------------------------------------------------------------------

    def quadratic(self) -> Callable[[], Failures]:
        C = self.matrix(self.n, self.n, symmetric=True)
        linear = D = None
        if self.chance(0.4):
            size = self.scale if self.chance(0.8) else self.a_scale()
            linear = size * self.rng.standard_normal((self.n, self.r))
            self.say("linear")
        if self.chance(0.3):
            D = np.diag(self.rng.integers(-1, 3, self.r).astype(float))
            if self.chance(0.5):
                B = self.rng.standard_normal((self.r, self.r))
                D = B + B.T
            self.say("D")
        penalty = self.penalty(float(np.abs(C).max()))
        return self.stiefel(
            lambda: ob.StiefelProblem(ob.Quadratic(C, linear, D), penalty, self.r),
            lambda x: quadratic_value(C, linear, D, x),
            penalty,
        )

    def data(self) -> tuple[Any, np.ndarray]:
        """Dense or sparse data, and the same dense."""
        A = self.matrix(int(self.rng.integers(1, 16)), self.n, symmetric=False)
        if not self.chance(0.4):
            return A, A
        A = np.where(self.rng.random(A.shape) < 0.5, A, 0.0)
        self.say("sparse")
        return self.pick(sp.csc_array, sp.csr_array, sp.coo_array)(A), A

    def gram(self) -> Callable[[], Failures]:
        A, dense = self.data()
        scale = float(self.pick(-1.0, -1.0, 1.0, self.a_scale(), -self.a_scale()))
        mean = dense.mean(axis=0) if self.chance(0.4) else None
        self.say(f"gram-scale={scale:.3g}", *(["mean"] if mean is not None else []))
        with np.errstate(over="ignore"):
            penalty = self.penalty(abs(scale) * float(np.sum(dense**2)) / self.n)
        return self.stiefel(
            lambda: ob.StiefelProblem(ob.GramQuadratic(A, scale, mean), penalty, self.r),
            lambda x: gram_value(dense, scale, mean, x),
            penalty,
        )

    def sparse_pca(self) -> Callable[[], Failures]:
        A, dense = self.data()
        center = self.chance(0.5)
        mean = dense.mean(axis=0) if center else None
        self.say(f"center={center}")
        penalty = self.penalty(float(np.sum((dense - dense.mean(axis=0)) ** 2)) / self.n)
        return self.stiefel(
            lambda: ob.SparsePCAProblem(A, self.r, penalty, center=center),
            lambda x: gram_value(dense, -1.0, mean, x),
            penalty,
        )

    def nonnegative_pca(self) -> Callable[[], Failures]:
        A, dense = self.data()
        center = self.chance(0.5)
        mean = dense.mean(axis=0) if center else None
        self.say(f"center={center}")
        return self.stiefel(
            lambda: ob.NonnegativePCAProblem(A, self.r, center=center),
            lambda x: gram_value(dense, -1.0, mean, x),
            ob.NonNegative(),
        )

    def stiefel(
        self, problem: Callable[[], Any], smooth: Callable[..., Any], penalty: Any
    ) -> Callable[[], Failures]:
        solver, x0 = self.solver(), self.start()
        unlimited = not isinstance(solver, ob.OBCD)
        options = self.limits(0.4 if unlimited else 0.6)
        options["project_x0"] = isinstance(x0, np.ndarray) and self.chance(0.5)
        self.say("project" if options["project_x0"] else "")
        again, certified, stop = self.chance(0.05), self.chance(0.1), self.pick(1, 2, 5)
        called = self.chance(0.1)

        def run() -> Failures:
            instance = problem()
            seen: list[float] = []
            if called:
                options["callback"] = lambda p: seen.append(p.objective) or len(seen) >= stop
            result = ob.solve(instance, x0, solver=solver, **options)
            failures = check(result, smooth, penalty, np.eye(self.r), seen)
            if isinstance(x0, np.ndarray) and not options["project_x0"]:
                failures += not_above(result, smooth, penalty, x0)
            if again:
                failures += same_bits(instance, x0, solver, options, result)
            if certified:
                failures += check_certificate(instance, result)
            return failures

        return run

    def signature(self) -> np.ndarray:
        signs = self.rng.choice([-1, 1], self.n)
        if self.chance(0.9):
            signs[:2] = (1, -1)
        self.say("J=" + "".join("+" if sign > 0 else "-" for sign in signs))
        return signs

    def j_orthogonal(self) -> Callable[[], Failures]:
        n, rng = self.n, self.rng
        signs = self.signature()
        if self.chance(0.6):
            self.r = n
        r = self.r
        loss = self.chance(0.1)
        smooth: Any
        value: Any
        if loss:
            N = int(rng.integers(1, 12))
            A, B = self.matrix(N, n, symmetric=False), rng.standard_normal((N, r))
            labels = rng.choice([-1.0, 1.0], N)
            self.say("logistic")
            smooth, value = (
                lambda: ob.LogisticLoss(A, B, labels),
                lambda x: logistic_value(A, B, labels, x),
            )
        elif self.chance(0.6):
            C = self.matrix(n, n, symmetric=True)
            if self.chance(0.6):
                C = C @ (C / max(float(np.abs(C).max()), 1e-300))
            C = 0.5 * (C + C.T)
            linear = self.scale * rng.standard_normal((n, r)) if self.chance(0.3) else None
            smooth, value = (
                lambda: ob.Quadratic(C, linear),
                lambda x: quadratic_value(C, linear, None, x),
            )
        else:
            G, dense = self.data()
            scale = float(self.pick(1.0, 1.0, 1.0, -1.0))
            mean = dense.mean(axis=0) if self.chance(0.2) else None
            smooth, value = (
                lambda: ob.GramQuadratic(G, scale, mean),
                lambda x: gram_value(dense, scale, mean, x),
            )
        penalty = self.penalty(self.scale if self.chance(0.5) else self.scale**2)
        return self.mixed(
            lambda: ob.JOrthogonalProblem(smooth(), signs, penalty, r), value, penalty, signs
        )

    def eigenvalue(self) -> Callable[[], Failures]:
        signs = self.signature()
        self.r = self.n
        penalty = ob.NoPenalty()
        if self.chance(0.3):
            C = self.matrix(self.n, self.n, symmetric=True)
            C = C @ (C / max(float(np.abs(C).max()), 1e-300))
            kept = int(self.rng.integers(0, max(int((signs > 0).sum()), 0) + 1))
            self.say(f"hyperbolic-pca kept={kept}")
            weights = np.zeros(self.n)
            weights[np.flatnonzero(signs > 0)[kept:]] = 1.0
            M = signs[:, None] * (0.5 * (C + C.T)) * signs
            return self.mixed(
                lambda: ob.HyperbolicPCAProblem(0.5 * (C + C.T), signs, kept),
                lambda x: quadratic_value(2.0 * M, None, np.diag(weights), x),
                penalty,
                signs,
            )
        A, dense = self.data()
        sense = self.pick("min", "min", "min", "max")
        ridge = float(self.pick(0.0, 1.0, 1e-3, 1e-8) * self.scale**2)
        self.say(sense, f"ridge={ridge:.3g}")
        sign = 2.0 if sense == "min" else -2.0

        def value(x: Any) -> Any:
            f, error = gram_value(dense, sign, None, x)
            extra = sign / 2 * Long(ridge) * np.sum(x * x)
            return f + extra, error + ROUNDING * abs(extra)

        return self.mixed(
            lambda: ob.HyperbolicEigenvalueProblem(A, signs, sense, ridge), value, penalty, signs
        )

    def mixed(
        self, problem: Callable[[], Any], smooth: Any, penalty: Any, signs: np.ndarray
    ) -> Callable[[], Failures]:
        definite = bool((signs == signs[0]).all())
        solver = self.solver() if definite and self.chance(0.3) else self.jobcd()
        kind = self.pick(None, None, "identity", "random", "cs", "array")
        self.say(f"x0={kind}")
        width = float(self.pick(0.3, 1.0, 3.0))
        x0: Any = kind
        if kind == "array":
            x0 = ob.random_j_orthogonal(signs, width, int(self.rng.integers(99)))[:, : self.r]
            x0 = np.ascontiguousarray(x0)
        # Some of these have no minimum, and no end: sweeps are always limited.
        options = self.limits(1.0)
        again = self.chance(0.05)

        def run() -> Failures:
            result = ob.solve(problem(), x0, solver=solver, **options)
            target = np.diag(signs).astype(float)[: self.r, : self.r]
            if definite:
                target = np.eye(self.r)
            elif isinstance(x0, np.ndarray):
                long = x0.astype(Long)
                target = long.T @ (signs[:, None] * long)
            J = np.ones(self.n) if definite else signs
            failures = check(result, smooth, penalty, target, [], J)
            if isinstance(x0, np.ndarray):
                failures += not_above(result, smooth, penalty, x0)
            if again:
                failures += same_bits(problem(), x0, solver, options, result)
            return failures

        return run

    def at_count(self) -> Callable[[], Failures]:
        C = self.matrix(self.n, self.n, symmetric=True)
        self.lam = self.a_scale()
        penalty = ob.L0(self.lam)
        x0 = self.start()
        if not isinstance(x0, np.ndarray):
            x0 = np.linalg.qr(self.rng.standard_normal((self.n, self.r)))[0]
        count = int(self.rng.integers(self.r, self.n * self.r + 1))
        options = {"max_time": self.pick(None, None, 0.0, 0.01), "tol": self.pick(None, 0.0, 1e-3)}
        self.say(f"count={count}", options)

        def run() -> Failures:
            problem = ob.StiefelProblem(ob.Quadratic(C), penalty, self.r)
            result = ob.minimize_at_count(problem, x0, count, **options)
            if result is None:
                return []
            failures = check(
                result, lambda x: quadratic_value(C, None, None, x), penalty, np.eye(self.r), []
            )
            if result.n_nonzero != count:
                failures.append(("value", f"{result.n_nonzero} nonzeros, not {count}"))
            return failures

        return run

    def estimator(self) -> Callable[[], Failures]:
        A, _ = self.data()
        m = A.shape[0]
        self.r = r = min(self.r, 5)
        fields: dict[str, Any] = {"center": self.chance(0.7), "scale": self.chance(0.3)}
        fields["max_time"] = self.pick(None, None, None, 0.02)
        count = None
        if self.chance(0.3):
            make: Any = ob.NonnegativePCA
        else:
            make = ob.SparsePCA
            how = self.pick("count", "relative", "absolute")
            fields["penalty"] = self.pick("l0", "l1")
            if how == "count":
                count = int(self.rng.integers(r, self.n * r + 1))
                fields["n_nonzero"] = count
            else:
                fields["alpha"] = float(10.0 ** self.rng.uniform(-4, 1))
                fields["alpha_scale"] = how
        self.say(make.__name__, f"r={r}", f"samples={m}", fields)

        def run() -> Failures:
            model = make(r, random_state=0, **fields).fit(A)
            x = np.asarray(model.components_).T
            failures: Failures = []
            gap = infeasibility(x, np.ones(len(x)), np.eye(r))
            if not gap <= FEASIBLE:
                failures.append(("infeasible", f"components are off by {gap:.2e}"))
            if make is ob.NonnegativePCA and not x.min() >= 0.0:
                failures.append(("infeasible", f"a component has the entry {x.min()}"))
            for name in ("explained_variance_ratio_", "explained_variance_"):
                values = np.asarray(getattr(model, name))
                if not np.isfinite(values).all():
                    failures.append(("nonfinite", f"{name} {values}"))
                if np.any(values < 0.0) or (name.endswith("ratio_") and values.sum() > 1 + 1e-9):
                    failures.append(("value", f"{name} {values}"))
            return failures

        return run


# Values in extended precision: f at x, and the rounding that is allowed ---------------------------

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
    # A rounded AᵀA is off by eps·|A|ᵀ|A|; a rounded product by the error of its entries.
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


def infeasibility(x: Any, signs: Any, target: Any) -> Any:
    """‖XᵀJX − target‖_F, relative to ‖X‖² where signs are mixed."""
    long = np.asarray(x, Long)
    gap = np.sqrt(np.sum((long.T @ (signs[:, None] * long) - target) ** 2))
    return gap if (signs > 0).all() else gap / max(Long(1), np.sum(long * long))


# Checks -----------------------------------------------------------------------------------------


def check(
    result: ob.Result,
    smooth: Callable[..., Any],
    penalty: Any,
    target: Any,
    seen: list[float],
    signs: Any = None,
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
    gap = infeasibility(x, signs, target)
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
    # A start that is feasible to 1e-8 may be moved as far.
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


def check_certificate(problem: Any, result: ob.Result) -> Failures:
    certificate = ob.certify(problem, result.x, n_threads=1)
    failures: Failures = []
    for name in ("objective", "block2_gap", "block2_measure", "criticality", "feasibility"):
        if not np.isfinite(getattr(certificate, name)):
            failures.append(("nonfinite", f"certificate's {name} {getattr(certificate, name)}"))
    size = abs(certificate.smooth_value) + abs(certificate.penalty_value)
    if certificate.optimum is not None and certificate.optimality_gap < -1e-9 * size:
        failures.append(("optimal", f"{result.objective} is below {certificate.optimum}"))
    return failures


def report(seed: int, number: int) -> dict[str, Any]:
    """Run a case: what it is, the seconds it took, failures, and the refusal if it was refused."""
    begun = time.perf_counter()
    answer: dict[str, Any] = {"number": number, "failures": [], "refused": None}
    case = None
    try:
        case = Case(seed, number)
        answer["text"] = case.text
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # How an estimator says that a number of nonzeros was not met, which is no failure.
            warnings.simplefilter("ignore", ConvergenceWarning)
            answer["failures"] = case.run()
    except Warning as warning:
        answer["failures"] = [("warning", f"{type(warning).__name__}: {warning}")]
    except (ValueError, TypeError) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        first = re.split(r"\W", str(error), maxsplit=1)[0]
        if not ARGUMENTS.fullmatch(first):
            place = f"{os.path.basename(where.filename)}:{where.lineno}"
            answer["failures"] = [("unnamed", f"{type(error).__name__}: {error} at {place}")]
        else:
            answer["refused"] = re.sub(r"[-+\d.]+(e[-+]?\d+)?", "#", str(error))
    except BaseException as error:
        kind = "crash" if type(error).__name__ == "PanicException" else "raised"
        answer["failures"] = [(kind, f"{type(error).__name__}: {error}")]
        if isinstance(error, KeyboardInterrupt):
            raise
    answer["seconds"] = time.perf_counter() - begun
    return answer


# Processes ----------------------------------------------------------------------------------------


def work(seed: int) -> None:
    """Read numbers of cases, one a line; answer each with one line."""
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What the estimators import takes seconds, once, before the first case.
    assert ob.SparsePCA is not None
    print(flush=True)
    for line in sys.stdin:
        print(json.dumps(report(seed, int(line)), default=str), flush=True)


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used; where /proc does not tell, the time on the clock."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return time.perf_counter()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Worker:
    """A process that runs cases, replaced when it hangs or dies."""

    def __init__(self, seed: int, timeout: float) -> None:
        self.seed, self.timeout = seed, timeout
        self.process: subprocess.Popen[str] | None = None

    def ask(self, number: int) -> dict[str, Any]:
        """The answer to a case, or what became of the process."""
        if self.process is None:
            command = [sys.executable, "-P", __file__, "--work", "--seed", str(self.seed)]
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            assert self.process.stdout is not None
            self.process.stdout.readline()
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
        ready = self.wait(process)
        line = process.stdout.readline() if ready else ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        if ready:
            code = process.wait()
            what = ("crash", signal.Signals(-code).name if code < 0 else f"exit status {code}")
        else:
            what = ("hang", f"more than {self.timeout:g} s of CPU time")
        self.close()
        text = Case(self.seed, number).text
        seconds = 0.0 if ready else self.timeout
        return {
            "number": number,
            "text": text,
            "failures": [what],
            "refused": None,
            "seconds": seconds,
        }

    def wait(self, process: subprocess.Popen[str]) -> bool:
        """Wait for an answer or the end of the process; False if it hangs."""
        begun, used = time.perf_counter(), cpu_seconds(process.pid)
        while time.perf_counter() - begun < PATIENCE * self.timeout:
            if select.select([process.stdout], [], [], LOOK)[0]:
                return True
            if cpu_seconds(process.pid) - used > self.timeout:
                return False
        return False

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                assert pipe is not None
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self.process = None


def run(
    cases: range, seed: int, jobs: int, timeout: float, progress: bool = False
) -> list[dict[str, Any]]:
    """All answers, in the order of the numbers."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in cases:
        waiting.put(number)
    answers: list[dict[str, Any]] = []

    def serve() -> None:
        worker = Worker(seed, timeout)
        try:
            while True:
                answers.append(worker.ask(waiting.get_nowait()))
                if progress and len(answers) % 500 == 0:
                    print(f"{len(answers)} of {len(cases)}", file=sys.stderr, flush=True)
        except queue.Empty:
            pass
        finally:
            worker.close()

    threads = [threading.Thread(target=serve) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(answers) != len(cases):
        raise RuntimeError(f"{len(cases) - len(answers)} cases were not run")
    return sorted(answers, key=lambda answer: answer["number"])


def table(answers: list[dict[str, Any]]) -> str:
    """Failures by kind, refusals by message, and the slowest cases."""
    kinds: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for answer in answers:
        for kind in {kind for kind, _ in answer["failures"]}:
            kinds[kind].append(answer)
    failed = sum(bool(answer["failures"]) for answer in answers)
    refused = collections.Counter(answer["refused"] for answer in answers if answer["refused"])
    lines = [f"{len(answers)} cases, {failed} failed, {refused.total()} refused at the door"]
    for kind, bad in sorted(kinds.items()):
        numbers = [str(answer["number"]) for answer in bad]
        more = " ..." if len(numbers) > EXAMPLES else ""
        lines.append(f"{kind:12}{len(bad):6}  cases {' '.join(numbers[:EXAMPLES])}{more}")
    for kind, bad in sorted(kinds.items()):
        lines.append(f"\n{kind}:")
        for answer in bad[:EXAMPLES]:
            said = next(text for name, text in answer["failures"] if name == kind)
            lines.append(f"  {answer['number']:6}  {said[:160]}")
            lines.append(f"          {answer.get('text', '')}")
    if refused:
        lines.append("\nrefused:")
    lines += [f"  {count:6}  {message[:150]}" for message, count in refused.most_common()]
    slow = sorted(answers, key=lambda answer: -answer["seconds"])[:5]
    lines.append("\nslowest:")
    lines += [f"  {a['number']:6}  {a['seconds']:.1f} s  {a.get('text', '')}" for a in slow]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=20.0, help="CPU seconds per case")
    parser.add_argument("--only", type=int, help="show and run this case alone, here")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.seed)
        return 0
    if options.only is not None:
        print(Case(options.seed, options.only).text, flush=True)
        answer = report(options.seed, options.only)
        print(f"{answer['seconds']:.3f} s, refused: {answer['refused']}")
        print(*(f"{kind}: {text}" for kind, text in answer["failures"]), sep="\n")
        return bool(answer["failures"])
    cases = range(options.first, options.first + options.cases)
    answers = run(cases, options.seed, options.jobs, options.timeout, progress=True)
    print(table(answers))
    return any(answer["failures"] for answer in answers)


if __name__ == "__main__":
    sys.exit(main())
