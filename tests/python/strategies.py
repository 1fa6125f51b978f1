"""Random problems, penalties, options, layouts and starts of all kinds and scales.

`Case` is one problem with its options. `tools/quality/fuzz.py` runs numbered cases. `cases` is
a strategy of hypothesis for the property tests; hypothesis shrinks the choices of a failing case.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, get_args

import numpy as np
import scipy.sparse as sp
from hypothesis import reject
from hypothesis import strategies as st

import orthobcd as ob
from orthobcd.solvers import Maker

from .promises import (
    FEASIBLE,
    ROUNDING,
    Failures,
    Long,
    check,
    check_certificate,
    gram_value,
    infeasibility,
    logistic_value,
    not_above,
    quadratic_value,
    same_bits,
)

DECADES = 150
"""Largest magnitude of the decimal exponent of a scale of data or penalties."""

SLOW = 1e-3
"""Proximal weight above which a descent makes short steps, so that its sweeps are limited. Sweeps
are also limited if rounding counts as a decrease."""

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


def strided(array: np.ndarray) -> np.ndarray:
    """A view of every second row and every third column."""
    wide = np.zeros((2 * array.shape[0], 3 * array.shape[1]))
    wide[::2, ::3] = array
    return wide[::2, ::3]


def read_only(array: np.ndarray) -> np.ndarray:
    """A copy that cannot be written."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def unsorted(matrix: Any) -> Any:
    """CSR, the entries of each row in reverse order."""
    csr = matrix.tocsr(copy=True)
    for start, end in itertools.pairwise(csr.indptr):
        csr.indices[start:end] = csr.indices[start:end][::-1].copy()
        csr.data[start:end] = csr.data[start:end][::-1].copy()
    csr.has_sorted_indices = False
    return csr


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "big-endian": lambda a: a.astype(">f8"),
    "strided": strided,
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "list": lambda a: a.tolist(),
}
"""Layouts of a dense matrix that change no value."""

SPARSE_LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "lil": sp.lil_array,
    "unsorted": unsorted,
}
"""Layouts of a sparse matrix that change no value."""


class Choices(Protocol):
    """Where the choices of a case come from."""

    rng: np.random.Generator

    def integer(self, low: int, high: int) -> int:
        """An integer, low ≤ k < high."""

    def number(self, low: float, high: float) -> float:
        """A number between low and high."""


class Numbered:
    """The choices of the case `number` of a seed."""

    def __init__(self, seed: int, number: int) -> None:
        self.rng = np.random.default_rng([seed, number])

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def number(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))


class Drawn:
    """Choices of hypothesis; arrays are random, by a seed that hypothesis chooses."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high - 1))

    def number(self, low: float, high: float) -> float:
        return self.draw(st.floats(low, high))


class Case:
    """One problem, its options, and F in extended precision; `text` says what it is."""

    problem: Callable[[], Any]

    def __init__(self, choices: Choices, kinds: Sequence[str] = ()) -> None:
        self.choices = choices
        self.rng = choices.rng
        self.words: list[str] = []
        self.n = self.integer(2, 13)
        self.r = self.integer(1, self.n + 1)
        self.scale = self.a_scale()
        self.signs: np.ndarray | None = None
        self.lam: Any = None
        self.slow = False
        makers: dict[str, tuple[int, Callable[[], Any]]] = {
            "quadratic": (27, self.quadratic),
            "gram": (20, self.gram),
            "sparse-pca": (13, self.pca),
            "nonnegative-pca": (8, self.pca),
            "j-orthogonal": (16, self.j_orthogonal),
            "eigenvalue": (9, self.eigenvalue),
            "at-count": (4, self.at_count),
            "estimator": (3, self.estimator),
        }
        weighted = [kind for kind in kinds or makers for _ in range(makers[kind][0])]
        self.kind = str(self.pick(*weighted))
        self.say(self.kind, f"n={self.n} r={self.r}")
        self.run: Callable[[], Failures] = makers[self.kind][1]()

    # Choices ----------------------------------------------------------------------------------

    def say(self, *words: Any) -> None:
        self.words.extend(str(word) for word in words)

    @property
    def text(self) -> str:
        return " ".join(self.words)

    __repr__ = text.fget

    def integer(self, low: int, high: int) -> int:
        return self.choices.integer(low, high)

    def number(self, low: float, high: float) -> float:
        return self.choices.number(low, high)

    def chance(self, probability: float) -> bool:
        return self.number(0.0, 1.0) >= 1.0 - probability

    def pick(self, *choices: Any) -> Any:
        return choices[self.integer(0, len(choices))]

    def a_scale(self) -> float:
        """1, a power of two, or log-uniform."""
        kind = self.pick("one", "one", "power", "uniform", "uniform")
        if kind == "one":
            return 1.0
        if kind == "power":
            bits = int(DECADES * np.log2(10))
            return 2.0 ** self.integer(-bits, bits + 1)
        return 10.0 ** self.number(-DECADES, DECADES)

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
            matrix += 10.0 ** self.number(2, 9)
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
        how = self.number(0.0, 1.0)
        if how < 0.7:
            lam = min(size, 1e290) * 10.0 ** self.number(-4, 2)
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
        fields: dict[str, Any] = {
            "update": self.pick("gauss-seidel", "gauss-seidel", "jacobi"),
            "curvature": self.pick("exact", "scalar"),
            "side": self.pick("rows", "rows", "columns", "both"),
            "proximal": self.pick(1e-5, 1e-5, 0.0, 1e-300, 1.0, 1e3, 1e308, self.a_scale()),
        }
        if fields["update"] == "gauss-seidel":
            block_size = self.pick(2, 2, 2, 3, min(4, self.n), self.n)
            fields["working_set"] = self.pick("tiled", "random", "cyclic", "wss-sv", "wss-or")
            fields["block_size"] = max(2, min(block_size, self.n))
            fields["tile_size"] = self.pick(64, 64, 2, 3)
        self.slow = fields["proximal"] > SLOW
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
        return self.auto()

    def auto(self) -> ob.Auto:
        """A search by all makers or by some."""
        makers = None
        if self.chance(0.6):
            makers = tuple(self.pick(*get_args(Maker)) for _ in range(self.integer(1, 4)))
        self.say(ob.Auto(makers=makers))
        return ob.Auto(makers=makers)

    def jobcd(self) -> Any:
        """Any solver for mixed signs."""
        if self.chance(0.15):
            self.say("default")
            return None
        if self.chance(0.25):
            return self.auto()
        update = self.pick("gauss-seidel", "gauss-seidel", "jacobi", "sampled")
        columns = ["columns"] if update == "gauss-seidel" else []
        side = self.pick("rows", "both", *columns)
        common = {
            "proximal": self.pick(1e-5, 1e-5, 0.0, 1.0, self.a_scale()),
            "rapidity_bound": self.pick(None, None, 0.5, 3.0),
        }
        rows: dict[str, Any] = {}
        if update == "gauss-seidel":
            rows["working_set"] = self.pick("tiled", "random", "cyclic")
            rows["tile_size"] = self.pick(64, 2, 3)
        solver: Any
        if update == "sampled":
            sizes = {"batch_size": self.pick(None, 4), "small_batch_size": self.pick(None, 2)}
            solver = ob.VRJOBCD(**sizes, **common)
        else:
            solver = ob.JOBCD(update=update, side=side, **common, **rows)
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
        options: dict[str, Any] = {"seed": self.integer(0, 5), "n_threads": self.pick(1, 2)}
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
        A = self.matrix(self.integer(1, 16), self.n, symmetric=False)
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

    def pca(self) -> Callable[[], Failures]:
        A, dense = self.data()
        center = self.chance(0.5)
        mean = dense.mean(axis=0) if center else None
        self.say(f"center={center}")
        nonnegative, penalty = self.kind == "nonnegative-pca", ob.NonNegative()
        if not nonnegative:
            penalty = self.penalty(float(np.sum((dense - dense.mean(axis=0)) ** 2)) / self.n)
        return self.stiefel(
            lambda: (
                ob.NonnegativePCAProblem(A, self.r, center=center)
                if nonnegative
                else ob.SparsePCAProblem(A, self.r, penalty, center=center)
            ),
            lambda x: gram_value(dense, -1.0, mean, x),
            penalty,
        )

    def stiefel(
        self, problem: Callable[[], Any], smooth: Callable[..., Any], penalty: Any
    ) -> Callable[[], Failures]:
        self.problem = problem
        solver, x0 = self.solver(), self.start()
        unlimited = not isinstance(solver, ob.OBCD)
        options = self.limits(0.4 if unlimited else 0.6)
        if self.slow or options.get("tol", 1.0) < 1e-15:
            options.setdefault("max_sweeps", 100)
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
                failures += check_certificate(instance, smooth, result)
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
            N = self.integer(1, 12)
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
            kept = self.integer(0, int((signs > 0).sum()) + 1)
            self.say(f"hyperbolic-pca kept={kept}")
            weights = np.zeros(self.n)
            weights[np.flatnonzero(signs > 0)[kept:]] = 1.0
            M = signs[:, None] * (0.5 * (C + C.T)) * signs
            return self.mixed(
                lambda: ob.hyperbolic.HyperbolicPCAProblem(0.5 * (C + C.T), signs, kept),
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
            x0 = ob.hyperbolic.random_j_orthogonal(signs, width, int(self.rng.integers(99)))[
                :, : self.r
            ]
            x0 = np.ascontiguousarray(x0)
        # Sweeps are always limited, because some of these problems have no minimum.
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
            # The start keeps its constraint up to rounding that is relative to the start.
            size = max(1.0, float(np.sum(x0**2))) if isinstance(x0, np.ndarray) else 1.0
            failures = check(result, smooth, penalty, target, [], J, size)
            if isinstance(x0, np.ndarray):
                failures += not_above(result, smooth, penalty, x0)
            if again:
                failures += same_bits(problem(), x0, solver, options, result)
            return failures

        return run

    def at_count(self) -> Callable[[], Failures]:
        C = self.matrix(self.n, self.n, symmetric=True)
        x0 = self.start()
        if not isinstance(x0, np.ndarray):
            x0 = np.linalg.qr(self.rng.standard_normal((self.n, self.r)))[0]
        x0 = self.pick(None, x0)
        count = self.integer(self.r, self.n * self.r + 1)
        shared = max(1, count // self.r)
        penalty = self.pick(
            ob.Cardinality(count),
            ob.Cardinality([min(shared, self.n)] * self.r),
            ob.RowSparse(count=self.integer(self.r, self.n + 1)),
        )
        options = {"max_time": self.pick(None, 0.0, 0.01), "max_work": self.pick(0.0, 0.01, 0.1)}
        self.say(repr(penalty), options)

        def run() -> Failures:
            problem = ob.StiefelProblem(ob.Quadratic(C), penalty, self.r)
            result = ob.solve(problem, x0, **options)
            value = quadratic_value(C, None, None, result.x)
            failures = check(result, lambda x: value, ob.NoPenalty(), np.eye(self.r), [])
            used = np.count_nonzero(result.x, axis=0)
            if isinstance(penalty, ob.RowSparse):
                kept = np.count_nonzero(result.x.any(axis=1)) <= penalty.count
            elif isinstance(penalty.count, tuple):
                kept = bool(np.all(used <= penalty.count))
            else:
                kept = used.sum() <= penalty.count
            if not kept:
                failures.append(("value", f"{used} nonzeros beyond {penalty}"))
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
                count = self.integer(r, self.n * r + 1)
                fields["n_nonzero"] = count
            else:
                fields["alpha"] = 10.0 ** self.number(-4, 1)
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


def numbered(seed: int, number: int) -> Case:
    """The case `number` of a seed."""
    return Case(Numbered(seed, number))


# Strategies ---------------------------------------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn, *kinds: str) -> Case:
    """Cases of some kinds, or of all, whose weights no constructor refuses."""
    try:
        return Case(Drawn(draw), kinds)
    except ValueError:
        reject()


def layouts() -> st.SearchStrategy[tuple[str, str]]:
    """A name of `LAYOUTS` and one of `SPARSE_LAYOUTS`."""
    return st.tuples(st.sampled_from(list(LAYOUTS)), st.sampled_from(list(SPARSE_LAYOUTS)))
