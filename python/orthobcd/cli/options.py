"""The options of the commands, with their help texts."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import __version__
from ..io.matrices import KINDS
from .commands import certify, hyperbolic, nonneg_pca, sparse_pca
from .transform import transform

EPILOG = """\
exit codes:
  0    success
  1    an unexpected error (--debug shows the traceback)
  2    a wrong argument, or a file that cannot be read or written
  130  interrupted by Ctrl-C (SIGTERM: 143, SIGHUP: 129); the best components so far and the
       checkpoint are still written
"""

EXAMPLES = """\
examples:
  orthobcd sparse-pca genes.csv -r 5 --n-nonzero 100 --scale --out components.csv
  orthobcd nonneg-pca images.npy -r 10 --image-shape 28x28 --plot parts.png
  orthobcd hyperbolic data.npz --positive 8 --report report.json
  orthobcd certify genes.csv components.csv --lam 12.5
  orthobcd transform new.csv components.npz --out scores.csv
  orthobcd demo

"orthobcd COMMAND --help" shows the options of a command.

"""

SPARSE_EXAMPLES = """\
examples:
  orthobcd sparse-pca data.csv -r 5 --n-nonzero 100 --scale --out components.csv
  orthobcd sparse-pca genes.csv.gz --n-nonzero 20,20,10 --drop patient,age --exclude batch
  orthobcd sparse-pca words.mtx.gz -r 20 --alpha 0.05 --max-time 60 -v --report report.json
  orthobcd sparse-pca digits.npy -r 8 --image-shape 8x8 --plot components.png
  zcat genes.csv.gz | orthobcd sparse-pca - -r 5 --n-features 40 --out components.npz --force
  orthobcd sparse-pca big.parquet -r 5 --n-nonzero 100 --max-memory 2GB --out components.csv

"""

NONNEGATIVE_EXAMPLES = """\
examples:
  orthobcd nonneg-pca genes.csv -r 5 --out components.csv
  orthobcd nonneg-pca images.npy -r 10 --image-shape 28x28 --plot parts.png

"""

HYPERBOLIC_EXAMPLES = """\
examples:
  orthobcd hyperbolic data.csv --positive 8 --out basis.npz
  orthobcd hyperbolic data.npy --signature signs.npy --ridge 0.1 --report report.json

"""

CERTIFY_EXAMPLES = """\
examples:
  orthobcd sparse-pca genes.csv -r 5 --alpha 0.1 --out components.csv --report report.json
  orthobcd certify genes.csv components.csv --lam 12.5      (alpha in report.json)
  orthobcd certify genes.csv components.csv --n-nonzero 100 --bound --max-time 60
  orthobcd certify genes.csv parts.npz --penalty nonnegative

"""


TRANSFORM_EXAMPLES = """\
examples:
  orthobcd sparse-pca genes.csv -r 5 --n-nonzero 100 --scale --out components.npz
  orthobcd transform new.csv components.npz --out scores.csv
  zcat new.csv.gz | orthobcd transform - components.npz > scores.csv

"""


def parser() -> argparse.ArgumentParser:
    """The parser of all commands and options."""
    top = argparse.ArgumentParser(
        prog="orthobcd",
        description="Exactly orthonormal sparse and nonnegative components of a data file.",
        epilog=EXAMPLES + EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"orthobcd {__version__}")
    own = top.add_subparsers(metavar="COMMAND", dest="command", required=True)

    def command(
        name: str, run: Callable[[Any], int], summary: str, examples: str
    ) -> argparse.ArgumentParser:
        one = own.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=examples + EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        one.add_argument("data", metavar="DATA", help=f"samples in rows: {KINDS}")
        one.set_defaults(run=run)
        return one

    sparse = command("sparse-pca", sparse_pca, "orthonormal sparse components", SPARSE_EXAMPLES)
    _add_sparse(sparse)
    nonnegative = command(
        "nonneg-pca", nonneg_pca, "orthonormal nonnegative components", NONNEGATIVE_EXAMPLES
    )
    nonnegative.add_argument("--n-nonzero", **COUNTS)
    for one in (sparse, nonnegative):
        _add_estimator(one)
    pencil = command(
        "hyperbolic",
        hyperbolic,
        "hyperbolic eigenvalues: min tr(X'(A'A + ridge I)X) with X'JX = J",
        HYPERBOLIC_EXAMPLES,
    )
    _add_hyperbolic(pencil)
    proof = command(
        "certify", certify, "feasibility, stationarity and bound of components", CERTIFY_EXAMPLES
    )
    _add_certify(proof)
    applied = command(
        "transform", transform, "coordinates of data in saved components", TRANSFORM_EXAMPLES
    )
    applied.add_argument(
        "components",
        metavar="COMPONENTS",
        help=".npz as --out writes it: with mean, scale and names; features are found by name",
    )
    applied.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        help="write coordinates, .csv or .npy (default: as .csv to the standard output)",
    )
    for one in (sparse, nonnegative, pencil, proof, applied):
        _add_files(one)
    for name, summary in (
        ("bench", "says where the comparison with other methods is"),
        ("demo", "compares sparse and nonnegative PCA with thresholded PCA"),
    ):
        own.add_parser(name, help=summary, add_help=False)
    return top


# Values ------------------------------------------------------------------------------------------


def _whole(least: int, most: int | None = None, *, or_minus_one: bool = False) -> Any:
    """An argparse type: whole numbers in a range."""
    above = f"at least {least}" if most is None else f"between {least} and {most}"
    allowed = f"-1 or {above}" if or_minus_one else above

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = None
        inside = value is not None and value >= least and (most is None or value <= most)
        if value is None or not (inside or (or_minus_one and value == -1)):
            raise argparse.ArgumentTypeError(f"must be a whole number, {allowed}, got {text!r}")
        return value

    return parse


def _nonnegative(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a nonnegative number, got {text!r}")
    return value


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0.0:
        raise argparse.ArgumentTypeError(f"must be a positive number or inf, got {text!r}")
    return value


def _counts(text: str) -> int | list[int]:
    """Parses one number, or numbers separated by commas."""
    counts = [_whole(1)(part) for part in text.split(",")]
    return counts if len(counts) > 1 else int(counts[0])


def _names(text: str) -> list[str]:
    """Parses names separated by commas; a name with a comma is quoted."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def _names_each(text: str) -> list[list[str]]:
    """Parses names for all components, or a list for each component, separated by semicolons."""
    return [_names(part) for part in text.split(";")]


def _shape(text: str) -> tuple[int, int]:
    try:
        height, width = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must look like 28x28, got {text!r}") from None
    return height, width


COUNTS: dict[str, Any] = {
    "type": _counts,
    "metavar": "K",
    "help": "largest number of nonzero loadings in all, or per component, as 5,5,3",
}


# Groups of options -------------------------------------------------------------------------------


def _add_sparse(one: argparse.ArgumentParser) -> None:
    one.add_argument("--penalty", choices=("l0", "l1"), default="l0", help="penalty (default l0)")
    size = one.add_mutually_exclusive_group()
    size.add_argument("--alpha", type=_nonnegative, help="weight of the penalty (default 0.1)")
    size.add_argument("--n-nonzero", **{**COUNTS, "help": COUNTS["help"] + "; instead of alpha"})
    size.add_argument(
        "--n-features",
        type=_whole(1),
        metavar="Q",
        help="largest number of features used by all components; instead of alpha",
    )
    one.add_argument(
        "--alpha-scale",
        choices=("relative", "absolute"),
        default="relative",
        help="relative (default): in units of the least weight with one feature per component",
    )


def _add_estimator(one: argparse.ArgumentParser) -> None:
    """Adds options with the names of the estimators' parameters."""
    one.add_argument(
        "-r",
        "--n-components",
        type=_whole(1),
        metavar="R",
        help="default: as many as --n-nonzero has numbers, or min(10, samples, features)",
    )
    for name, what in (
        ("include", "features in the support of every component"),
        ("exclude", "features whose loadings are zero in all components"),
    ):
        one.add_argument(
            f"--{name}",
            type=_names_each,
            metavar="NAMES",
            help=f"with --n-nonzero: {what}, as a,b,7; or per component, as 'a,b;7'",
        )
    _add_preparation(one)
    one.add_argument(
        "--random-state", type=_whole(0, 2**32 - 1), default=0, help="seed (default 0)"
    )
    one.add_argument(
        "--n-jobs",
        type=_whole(1, or_minus_one=True),
        default=-1,
        help="threads; -1: all cores (default)",
    )
    one.add_argument(
        "--effort",
        type=_positive,
        default=1.0,
        help="patience of the search (default 1); inf: use all of --max-time",
    )
    one.add_argument(
        "--max-memory",
        metavar="SIZE",
        help="read .npy and .parquet by blocks; most memory for second moments, as 2GB",
    )
    _add_common(one)
    one.add_argument("--plot", metavar="FILE.png", type=Path, help="draw the components")
    one.add_argument("--image-shape", type=_shape, metavar="HxW", help="draw images of this size")


def _add_hyperbolic(one: argparse.ArgumentParser) -> None:
    signs = one.add_mutually_exclusive_group(required=True)
    signs.add_argument(
        "--positive", type=_whole(1), metavar="P", help="J is +1 for the first P features, else -1"
    )
    signs.add_argument(
        "--signature", type=Path, metavar="FILE.npy", help="array of +1 and -1, one per feature"
    )
    one.add_argument(
        "--ridge", type=_nonnegative, default=0.0, help="added to the diagonal of A'A (default 0)"
    )
    one.add_argument("--seed", type=_whole(0, 2**64 - 1), default=0, help="seed (default 0)")
    one.add_argument("--n-threads", type=_whole(1), help="threads (default: all cores)")
    _add_common(one)


def _add_certify(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "components", metavar="COMPONENTS", help=".csv or .npz as --out writes them, or .npy"
    )
    one.add_argument(
        "--penalty",
        choices=("l0", "l1", "nonnegative", "none"),
        default="l0",
        help="penalty (default l0)",
    )
    size = one.add_mutually_exclusive_group()
    size.add_argument(
        "--lam", type=_nonnegative, default=0.0, help="weight of the penalty (default 0)"
    )
    size.add_argument("--n-nonzero", **{**COUNTS, "help": COUNTS["help"] + "; instead of l0 or l1"})
    size.add_argument(
        "--n-features",
        type=_whole(1),
        metavar="Q",
        help="largest number of features used by all components; instead of a penalty",
    )
    one.add_argument("--bound", action="store_true", help="bound the optimum from below")
    one.add_argument(
        "--max-time",
        type=_nonnegative,
        metavar="SECONDS",
        help="time limit, for pairs and bound (default: none)",
    )
    one.add_argument(
        "--gap-tol",
        type=_nonnegative,
        default=1e-6,
        help="gap at which the search for a better bound ends (default 1e-6)",
    )
    _add_preparation(one)


def _add_preparation(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--center",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="subtract the means of the features",
    )
    one.add_argument(
        "--scale", action="store_true", help="divide features by their standard deviation"
    )


def _add_common(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--max-time", type=_nonnegative, metavar="SECONDS", help="time limit (default: none)"
    )
    one.add_argument("-v", "--verbose", action="store_true", help="show a live line of progress")
    one.add_argument(
        "--checkpoint",
        metavar="FILE",
        help="save the progress to FILE; the same call continues from it",
    )
    one.add_argument(
        "--checkpoint-every",
        type=_nonnegative,
        default=60.0,
        metavar="SECONDS",
        help="least time between two writes of the checkpoint (default 60)",
    )
    one.add_argument(
        "--out", metavar="FILE", type=Path, help="write components: .csv, or .npz for transform"
    )


def _add_files(one: argparse.ArgumentParser) -> None:
    """Adds the options of reading the data file and of writing files."""
    kept = one.add_mutually_exclusive_group()
    for name, what in (
        ("columns", "read only these columns, in this order"),
        ("drop", "leave out these columns, which need not be numeric"),
    ):
        kept.add_argument(
            f"--{name}",
            type=_names,
            metavar="NAMES",
            help=f"{what}: names or indices from 0, as a,b,7",
        )
    one.add_argument(
        "--decimal",
        choices=(".", ","),
        default=".",
        help="decimal mark of a table as text (default .)",
    )
    for name, what in (
        ("header", "the first line of a table as text names the columns"),
        ("index", "the first column of a table as text is an index of the rows, and left out"),
    ):
        one.add_argument(
            f"--{name}",
            action=argparse.BooleanOptionalAction,
            default="auto",
            help=f"{what} (default: found from the contents)",
        )
    one.add_argument(
        "--comment",
        metavar="C",
        help="character from which on a line is a comment (default: lines at the top with #)",
    )
    one.add_argument(
        "--missing",
        choices=("em",),
        help="em: take missing values into account by the EM algorithm; an error by default",
    )
    one.add_argument("--report", metavar="FILE.json", type=Path, help="write a report")
    one.add_argument("--force", action="store_true", help="replace existing files")
    one.add_argument("--debug", action="store_true", help="show the traceback of an error")
