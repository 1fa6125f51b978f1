"""The options of the commands, made from the signatures and docstrings of what they call."""

from __future__ import annotations

import argparse
import csv
import inspect
import re
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

from .. import HyperbolicEigenvalueProblem, __version__, solve
from .._internal.checks import Closed, Interval
from ..certificate import certify as prove
from ..io import read_matrix
from ..io.matrices import KINDS
from ..sklearn import NonnegativePCA, SparsePCA
from .commands import certify, demo, fit, hyperbolic, transform

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

    _add_estimator(
        command("sparse-pca", fit, "orthonormal sparse components", SPARSE_EXAMPLES), SparsePCA
    )
    summary = "orthonormal nonnegative components"
    _add_estimator(command("nonneg-pca", fit, summary, NONNEGATIVE_EXAMPLES), NonnegativePCA)
    summary = "hyperbolic eigenvalues: min tr(X'(A'A + ridge I)X) with X'JX = J"
    _add_hyperbolic(command("hyperbolic", hyperbolic, summary, HYPERBOLIC_EXAMPLES))
    summary = "feasibility, stationarity and bound of components"
    _add_certify(command("certify", certify, summary, CERTIFY_EXAMPLES))
    summary = "coordinates of data in saved components"
    _add_transform(command("transform", transform, summary, TRANSFORM_EXAMPLES))
    _add_demo(own)
    return top


# Values ------------------------------------------------------------------------------------------


def _number(
    kind: type[int] | type[float],
    low: float,
    closed: Closed = "both",
    *,
    most: float | None = None,
    also: float | None = None,
) -> Any:
    """An argparse type: numbers from ``low`` to ``most``, or the number ``also``."""
    check = Interval(kind, low, most, closed)

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            whole = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"must be {whole}, got {text!r}") from None
        if value == also:
            return value
        try:
            return check("it", value)
        except ValueError as error:
            other = "" if also is None else f"; {also:g} is allowed, too"
            raise argparse.ArgumentTypeError(f"{str(error)[3:]}{other}") from None

    return parse


COUNT, NONNEGATIVE = _number(int, 1), _number(float, 0.0)


def _counts(text: str) -> int | list[int]:
    """Parses one number, or numbers separated by commas."""
    counts = [COUNT(part) for part in text.split(",")]
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


PARSERS: dict[str, Any] = {
    "n_nonzero": _counts,
    "include": _names_each,
    "exclude": _names_each,
    "columns": _names,
    "drop": _names,
    "random_state": _number(int, 0, most=2**32 - 1),
    "seed": _number(int, 0, most=2**64 - 1),
    "n_jobs": _number(int, 1, also=-1),
    "effort": _number(float, 0.0, "neither", also=inf),
}
"""How to read the values of parameters that are neither positive whole nor nonnegative numbers."""

BY_TYPE: dict[str, Any] = {"int": COUNT, "float": NONNEGATIVE, "path": Path}

METAVARS = {"int": "N", "float": "X", "path": "FILE", "sequence": "NAMES", "str": "TEXT"}
"""What stands for a value in a help text, by the first word of its documented type."""

SHORT = {"n_components": ("-r",), "verbose": ("-v",)}

COUNTS: dict[str, Any] = {
    "type": _counts,
    "metavar": "N,N,…",
    "help": "largest number of nonzero loadings in all, or per component, as 5,5,3",
}


def documented(owner: Any, name: str) -> tuple[str, str]:
    """The type of a parameter and the first sentence about it, from a numpydoc docstring."""
    pattern = rf"^(?:\w+, )*{name}(?:, \w+)* : (.*)\n((?:    .*\n|\n)+)"
    found = re.search(pattern, f"{inspect.getdoc(owner)}\n", re.MULTILINE)
    if found is None:
        # "As in `SparsePCA`".
        return documented(SparsePCA, name)
    text = re.sub(r" \([^)]*\)|, see `.*?`", "", " ".join(found[2].split()))
    text = re.split(r"[.;](?: |$)", text)[0].replace("%", "%%")
    for option in inspect.signature(owner).parameters:
        text = text.replace(f"``{option}``", "--" + option.replace("_", "-"))
    return found[1], (text[0].lower() + text[1:]).replace("``", "")


def add(one: Any, owner: Any, *names: str, **changes: Any) -> None:
    """Adds parameters of a function or class as options, ``--max-time`` for ``max_time``.

    ``changes`` replace what the docstring and the signature say.
    """
    for name in names:
        kind, text = documented(owner, name)
        default = inspect.signature(owner).parameters[name].default
        choices = re.findall(r'"(.+?)"', kind.partition("}")[0]) if kind[0] == "{" else []
        word = re.split(r"\W", kind)[0]
        how: dict[str, Any] = {"default": default, "help": text}
        if word == "bool" or "True" in kind:
            how["action"] = "store_true" if default is False else argparse.BooleanOptionalAction
        elif choices:
            how["choices"] = choices
        else:
            how["metavar"] = METAVARS.get(word)
            how["type"] = PARSERS.get(name, BY_TYPE.get(word))
        how |= changes
        if isinstance(how["default"], str | float | int) and not isinstance(how["default"], bool):
            how["help"] += f" (default {how['default']})"
        one.add_argument(*SHORT.get(name, ()), f"--{name.replace('_', '-')}", **how)


# Groups of options -------------------------------------------------------------------------------


def _add_estimator(one: argparse.ArgumentParser, owner: Any) -> None:
    """Adds the parameters of an estimator, and of its method ``fit``."""
    one.set_defaults(estimator=owner)
    without = {"missing", "solver", "warm_start", "certify"}
    # As the docstring has them: the signature begins with those of the base classes.
    documentation = str(inspect.getdoc(owner))
    left = [name for name in inspect.signature(owner).parameters if name not in without]
    begins = {
        name: [m.start() for m in re.finditer(rf"^(\w+, )*{name}\b", documentation, re.M)]
        for name in left
    }
    left.sort(key=begins.__getitem__)
    size = one.add_mutually_exclusive_group()
    special: dict[str, dict[str, Any]] = {
        "n_components": {"help": "default: as many as --n-nonzero has numbers, else at most 10"},
        "include": {"metavar": "A,B[;C]"},
        "exclude": {"metavar": "A,B[;C]"},
        "penalty": {"help": "penalty on the nonzero loadings, or on their absolute values"},
        "n_nonzero": COUNTS,
        "random_state": {"default": 0},
        "n_jobs": {"default": -1, "help": "threads; -1: all cores"},
        "max_memory": {
            "type": str,
            "help": "read .npy and .parquet by blocks; most memory for second moments, as 2GB",
        },
    }
    for name in left:
        group = size if name in ("alpha", "n_nonzero", "n_features") else one
        add(group, owner, name, **special.get(name, {}))
    add(one, owner.fit, "checkpoint", "checkpoint_every")
    one.add_argument("--plot", metavar="FILE.png", type=Path, help="draw the components")
    one.add_argument("--image-shape", type=_shape, metavar="HxW", help="draw images of this size")
    _add_files(one)


def _add_hyperbolic(one: argparse.ArgumentParser) -> None:
    signs = one.add_mutually_exclusive_group(required=True)
    signs.add_argument(
        "--positive", type=COUNT, metavar="P", help="J is +1 for the first P features, else -1"
    )
    signs.add_argument(
        "--signature", type=Path, metavar="FILE.npy", help="array of +1 and -1, one per feature"
    )
    add(one, HyperbolicEigenvalueProblem, "ridge")
    add(one, solve, "max_time", "seed", "verbose", "checkpoint", "checkpoint_every")
    add(one, solve, "n_threads", default=None, help="number of threads (default: all cores)")
    _add_files(one)


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
        "--lam", type=NONNEGATIVE, default=0.0, help="weight of the penalty (default 0)"
    )
    size.add_argument("--n-nonzero", **COUNTS)
    text = "largest number of features used by all components; instead of a penalty"
    add(size, SparsePCA, "n_features", help=text)
    add(one, prove, "bound", "max_time", "gap_tol")
    add(one, SparsePCA, "center", "scale")
    _add_files(one, out=None)


def _add_transform(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "components",
        metavar="COMPONENTS",
        help=".npz as --out writes it: with mean, scale and names; features are found by name",
    )
    _add_files(one, "write coordinates, .csv or .npy (default: as .csv to the standard output)")


def _add_demo(own: Any) -> None:
    summary = "compares sparse and nonnegative PCA with thresholded PCA"
    one = own.add_parser("demo", help=summary, description=summary.capitalize() + ".")
    one.set_defaults(run=demo)
    kinds = f"samples in rows: {KINDS} (default: scikit-learn's digits)"
    one.add_argument("data", nargs="?", help=kinds)
    where = "folder for table.txt and components.png (default out/demo)"
    one.add_argument("--out", type=Path, default=Path("out/demo"), help=where)
    one.add_argument("--components", type=COUNT, metavar="N", help="number of components")
    _add_writing(one)


def _add_files(
    one: argparse.ArgumentParser, out: str | None = "write components: .csv, or .npz for transform"
) -> None:
    """Adds the options of reading the data file and of writing files."""
    kept = one.add_mutually_exclusive_group()
    add(
        kept, read_matrix, "columns", help="read only these, in this order: names or indices, a,b,7"
    )
    add(kept, read_matrix, "drop", help="leave out these columns, which need not be numeric")
    add(one, read_matrix, "decimal", "comment", "header", "index")
    one.add_argument(
        "--missing",
        choices=("em",),
        help="em: take missing values into account by the EM algorithm; an error by default",
    )
    if out is not None:
        one.add_argument("--out", metavar="FILE", type=Path, help=out)
    one.add_argument("--report", metavar="FILE.json", type=Path, help="write a report")
    _add_writing(one)


def _add_writing(one: argparse.ArgumentParser) -> None:
    one.add_argument("--force", action="store_true", help="replace existing files")
    one.add_argument("--debug", action="store_true", help="show the traceback of an error")
