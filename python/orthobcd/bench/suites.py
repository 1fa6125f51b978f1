"""The rows of every suite: data, penalty, r, start, and who takes part."""

from __future__ import annotations

from dataclasses import dataclass

OURS = ("obcd-tiled", "obcd-r", "obcd-sv", "obcd-or", "path", "auto")
"""Our solvers on the Stiefel manifold."""

HYBRIDS = ("ladmm+obcd-r", "spm+obcd-r", "manpg+obcd-r")
"""A competitor for half of the time, OBCD-R from its result for the other half."""

HYPERBOLIC_OURS = ("jobcd-rows", "jobcd-columns", "jobcd-both", "jobcd-jacobi")
"""Our solvers under a hyperbolic constraint."""


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Attributes
    ----------
    data : str
        Name in `orthobcd.bench.data.DATASETS`, or ``"randn-m-n"`` for hyperbolic rows.
    penalty : {"l0", "l1", "nonneg", "hyperbolic"}
        The penalty, or a hyperbolic eigenvalue problem.
    r : int
        Components; the number of positive signs p of a hyperbolic row.
    lam : float
        λ, or ρ with λ = ρ·max C_ii where ``relative``.
    relative : bool
        How λ is given.
    start : {"identity", "random", "varimax", "partition", "cs"}
        The start of every method that does not make its own.
    normalised : bool
        A/‖A‖_F, as in the second paper.
    ridge : float
        Added to the matrix of a hyperbolic row.
    """

    data: str
    penalty: str
    r: int
    lam: float = 0.0
    relative: bool = False
    start: str = "identity"
    normalised: bool = False
    ridge: float = 0.0

    @property
    def id(self) -> str:
        """A name that says everything."""
        parts = [self.data, self.penalty]
        if self.penalty in ("l0", "l1"):
            parts.append(f"{'rho' if self.relative else 'lam'}{self.lam:g}")
        parts.append(f"{'p' if self.penalty == 'hyperbolic' else 'r'}{self.r}")
        if self.normalised:
            parts.append("normalised")
        if self.ridge:
            parts.append(f"ridge{self.ridge:g}")
        parts.append(self.start)
        return "-".join(parts)


@dataclass(frozen=True)
class Suite:
    """Rows and the time each method has for each."""

    rows: tuple[Row, ...]
    seconds: float
    purpose: str


def _quick() -> tuple[Row, ...]:
    return (
        Row("randn-200-300", "l0", 8, 1.0, start="varimax"),
        Row("randn-200-300", "l1", 8, 3.0, start="varimax"),
        Row("randn-200-300", "nonneg", 8, start="partition"),
        Row("w1a", "l0", 10, 10.0, start="varimax"),
        Row("randn-60-40", "hyperbolic", 20, start="cs"),
    )


PAPER_DATA = (
    "w1a",
    "randn-500-1000",
    "mnist-test",
    "cifar-1000",
    "tdt2-1000",
    "20news",
    "arcene-1000",
    "colon",
    "leukemia-1000",
)


def _paper() -> tuple[Row, ...]:
    rows = []
    for data in ("w1a", "randn-500-1000"):  # paper 1, table 1
        for lam in (10.0, 100.0, 1000.0, 10000.0):
            rows += [Row(data, "l0", 20, lam, start=s) for s in ("identity", "random")]
    for data in PAPER_DATA:  # paper 1, tables 2-8
        for r in (20, 50, 100):
            if data == "20news" and r == 100:
                continue
            rows += [Row(data, "l0", r, lam) for lam in (1.0, 300.0, 1000.0)]
        for r in (10, 20, 100):
            if data == "20news" and r == 100:
                continue
            rows += [Row(data, "l1", r, lam) for lam in (1.0, 100.0, 1000.0)]
            rows.append(Row(data, "nonneg", r, start="partition"))
    for data in ("w1a", "randn-500-1000"):  # paper 2, tables 1-3
        for lam in (10.0, 50.0, 100.0, 500.0):
            rows += [Row(data, kind, 20, lam, normalised=True) for kind in ("l0", "l1")]
        rows += [
            Row(data, "nonneg", r, start="partition", normalised=True) for r in (10, 20, 40, 80)
        ]
    return tuple(dict.fromkeys(rows))


def _quality() -> tuple[Row, ...]:
    rows = []
    for data in ("w1a", "mnist-test", "colon", "randn-500-1000"):
        for r in (10, 20):
            for kind in ("l0", "l1"):
                for rho in (1e-4, 1e-3, 1e-2, 1e-1):
                    rows.append(Row(data, kind, r, rho, relative=True, start="varimax"))
            rows.append(Row(data, "nonneg", r, start="partition"))
    return tuple(rows)


def _hyperbolic() -> tuple[Row, ...]:
    return (
        Row("randn-100-100", "hyperbolic", 50, start="cs"),
        Row("randn-300-100", "hyperbolic", 70, start="cs"),
        Row("randn-1000-100", "hyperbolic", 50, start="cs"),
        Row("w1a", "hyperbolic", 150, start="cs", ridge=1.0),
        Row("w1a-290", "hyperbolic", 145, start="cs", ridge=1.0),
    )


SUITES: dict[str, Suite] = {
    "quick": Suite(_quick(), 1.5, "every method once, in minutes"),
    "paper": Suite(_paper(), 10.0, "the rows of the two OBCD papers' tables"),
    "quality": Suite(_quality(), 10.0, "who finds the better point at equal time"),
    "hyperbolic": Suite(_hyperbolic(), 20.0, "the hyperbolic eigenvalue problem"),
}
"""All suites by name."""
