"""The command line ``orthobcd``, the same as ``python -m orthobcd``.

Exit codes: 0 when it did what was asked; 1 when something unexpected went wrong; 2 for a wrong
argument or a file that cannot be read or written; 130 after Ctrl-C, the best components so far
being written all the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__
from ._internal.writing import replacing, write_text
from .io import KINDS, FileNote, UnreadableFile, read_matrix, write_components

OK, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130

EPILOG = """\
exit codes:
  0    done
  1    something unexpected went wrong (--debug shows where)
  2    a wrong argument, or a file that cannot be read or written
  130  interrupted by Ctrl-C; the best components so far are written all the same
"""

EXAMPLES = """\
examples:
  orthobcd sparse-pca genes.csv -r 5 --n-nonzero 100 --out components.csv --plot components.png
  orthobcd nonneg-pca images.npy -r 10 --image-shape 28x28 --plot parts.png
  orthobcd hyperbolic data.npz --positive 8 --report report.json
  orthobcd certify genes.csv components.csv --lam 12.5
  orthobcd demo

"orthobcd COMMAND --help" tells more about a command.

"""

BENCH = (
    "orthobcd bench is a package of its own, orthobcd-bench, in the folder benchmarks of the "
    "sources: pip install ./benchmarks, then orthobcd-bench"
)

SPARSE_EXAMPLES = """\
examples:
  orthobcd sparse-pca genes.csv -r 5 --n-nonzero 100 --out components.csv
  orthobcd sparse-pca words.mtx.gz -r 20 --alpha 0.05 --max-time 60 -v --report report.json
  orthobcd sparse-pca digits.npy -r 8 --image-shape 8x8 --plot components.png

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
  orthobcd certify genes.csv parts.npz --penalty nonnegative

"""


class WrongArgument(Exception):
    """An argument that cannot be used; the message is one line for the user."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after ``orthobcd``; those of the process by default.

    Returns
    -------
    int
        The exit code.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["bench"]:
        print(BENCH, file=sys.stderr)
        return WRONG
    if arguments[:1] == ["demo"]:
        from .demo import main as demo

        return demo(arguments[1:])
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except (UnreadableFile, WrongArgument, OSError) as error:
        if options.debug:
            raise
        print(f"error: {_one_line(error)}", file=sys.stderr)
        return WRONG
    except ImportError as error:
        if options.debug:
            raise
        print(f"error: {_one_line(error)}", file=sys.stderr)
        return WRONG
    except Exception as error:
        if options.debug:
            raise
        print(
            f"error: {type(error).__name__}: {_one_line(error)} "
            "(unexpected; run again with --debug to see where)",
            file=sys.stderr,
        )
        return FAILED


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


# Options -----------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    top = argparse.ArgumentParser(
        prog="orthobcd",
        description="Exactly orthonormal sparse and nonnegative components of a data file.",
        epilog=EXAMPLES + EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"orthobcd {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def command(
        name: str, run: Callable[[Any], int], summary: str, examples: str
    ) -> argparse.ArgumentParser:
        one = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=examples + EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        one.add_argument("data", metavar="DATA", help=f"samples in rows: {KINDS}")
        one.add_argument("--report", metavar="FILE.json", type=Path, help="write a report")
        one.add_argument("--debug", action="store_true", help="show the traceback of an error")
        one.set_defaults(run=run)
        return one

    sparse = command("sparse-pca", _sparse, "orthonormal sparse components", SPARSE_EXAMPLES)
    sparse.add_argument("--penalty", choices=("l0", "l1"), default="l0", help="default l0")
    size = sparse.add_mutually_exclusive_group()
    size.add_argument(
        "--alpha", type=_nonnegative, default=0.1, help="weight of the penalty (default 0.1)"
    )
    size.add_argument(
        "--n-nonzero", type=_positive, metavar="K", help="nonzero loadings in all, instead"
    )
    sparse.add_argument(
        "--alpha-scale",
        choices=("relative", "absolute"),
        default="relative",
        help="relative: in units of the weight that leaves one feature per component (default)",
    )
    nonnegative = command(
        "nonneg-pca", _nonneg, "orthonormal nonnegative components", NONNEGATIVE_EXAMPLES
    )
    for one in (sparse, nonnegative):
        _add_estimator(one)
    hyperbolic = command(
        "hyperbolic",
        _hyperbolic,
        "hyperbolic eigenvalues: min tr(X'(A'A + ridge I)X) with X'JX = J",
        HYPERBOLIC_EXAMPLES,
    )
    signs = hyperbolic.add_mutually_exclusive_group(required=True)
    signs.add_argument(
        "--positive", type=_positive, metavar="P", help="J is +1 for the first P features, else -1"
    )
    signs.add_argument(
        "--signature", type=Path, metavar="FILE.npy", help="array of +1 and -1, one per feature"
    )
    hyperbolic.add_argument("--ridge", type=_nonnegative, default=0.0, help="default 0")
    hyperbolic.add_argument("--seed", type=int, default=0, help="default 0")
    hyperbolic.add_argument("--n-threads", type=_positive, help="default: all cores")
    _add_common(hyperbolic)
    certify = command("certify", _certify, "what can be proved about components", CERTIFY_EXAMPLES)
    certify.add_argument(
        "components", metavar="COMPONENTS", help=".csv or .npz as --out writes them, or .npy"
    )
    certify.add_argument(
        "--penalty", choices=("l0", "l1", "nonnegative", "none"), default="l0", help="default l0"
    )
    certify.add_argument("--lam", type=_nonnegative, default=0.0, help="its weight (default 0)")
    _add_preparation(certify)
    for name, summary in (
        ("bench", "where the comparison with other methods is"),
        ("demo", "sparse and nonnegative PCA beside PCA-then-threshold"),
    ):
        commands.add_parser(name, help=summary, add_help=False)
    return top


def _add_estimator(one: argparse.ArgumentParser) -> None:
    """Options named as the parameters of the estimators."""
    one.add_argument(
        "-r",
        "--n-components",
        type=_positive,
        metavar="R",
        help="default min(10, samples, features)",
    )
    _add_preparation(one)
    one.add_argument("--random-state", type=int, default=0, help="seed (default 0)")
    one.add_argument("--n-jobs", type=int, default=-1, help="threads; -1: all cores (default)")
    _add_common(one)
    one.add_argument("--plot", metavar="FILE.png", type=Path, help="draw the components")
    one.add_argument("--image-shape", type=_shape, metavar="HxW", help="draw images of this size")


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
    one.add_argument("--max-time", type=_nonnegative, metavar="SECONDS", help="default: none")
    one.add_argument("-v", "--verbose", action="store_true", help="show a live line of progress")
    one.add_argument("--out", metavar="FILE", type=Path, help="write components, .csv or .npz")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def _nonnegative(text: str) -> float:
    value = float(text)
    if not 0.0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a nonnegative number, got {text}")
    return value


def _shape(text: str) -> tuple[int, int]:
    try:
        height, width = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must look like 28x28, got {text}") from None
    return height, width


# Commands ----------------------------------------------------------------------------------------


def _sparse(options: argparse.Namespace) -> int:
    from .sklearn import SparsePCA

    def make(r: int, n: int) -> Any:
        if options.n_nonzero is not None and not r <= options.n_nonzero <= n * r:
            raise WrongArgument(
                f"--n-nonzero must be between {r} and {n * r}, got {options.n_nonzero}"
            )
        return SparsePCA(
            r,
            penalty=options.penalty,
            alpha=options.alpha,
            alpha_scale=options.alpha_scale,
            n_nonzero=options.n_nonzero,
            **_shared(options),
        )

    return _fit(options, make, {"penalty": options.penalty})


def _nonneg(options: argparse.Namespace) -> int:
    from .sklearn import NonnegativePCA

    return _fit(options, lambda r, n: NonnegativePCA(r, **_shared(options)), {})


def _shared(options: argparse.Namespace) -> dict[str, Any]:
    names = ("center", "scale", "max_time", "random_state", "n_jobs", "verbose")
    return {name: getattr(options, name) for name in names}


def _fit(
    options: argparse.Namespace, make: Callable[[int, int], Any], about: dict[str, Any]
) -> int:
    _check_outputs(options)
    data, names = _read(options.data)
    m, n = data.shape
    from .sklearn.base import default_components

    r = default_components(m, n) if options.n_components is None else options.n_components
    if r > n:
        raise WrongArgument(f"--n-components must be at most {n}, got {r}")
    shape = options.image_shape
    if shape is not None and shape[0] * shape[1] != n:
        raise WrongArgument(f"--image-shape must have {n} pixels, got {shape[0]}x{shape[1]}")
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pca = make(r, n).fit(data)
    seconds = time.perf_counter() - started
    notes = sorted({str(warning.message) for warning in caught})
    V = pca.components_
    status = "converged" if pca.result_ is None else pca.result_.status.value
    report = {
        **about,
        "alpha": getattr(pca, "alpha_", None),
        "alpha_max": getattr(pca, "alpha_max_", None),
        "n_components": r,
        "n_nonzero": pca.n_nonzero_,
        "explained_variance": pca.explained_variance_.tolist(),
        "explained_variance_ratio": pca.explained_variance_ratio_.tolist(),
        "objective": pca.objective_,
        "feasibility": float(np.linalg.norm(V @ V.T - np.eye(r))),
        "status": status,
        "notes": notes,
        "seconds": seconds,
        "random_state": options.random_state,
    }
    print(f"{options.data}: {m} samples, {n} features")
    _print_components(V, pca.explained_variance_ratio_, names)
    print(
        f"{pca.n_nonzero_} nonzeros of {V.size}, "
        f"{100 * float(pca.explained_variance_ratio_.sum()):.2f} % of the variance, "
        f"|X'X - I| = {report['feasibility']:.1e}, {status}, {seconds:.2f} s"
    )
    for note in notes:
        print(f"note: {note}")
    _write(options, V, names, report, (m, n))
    if options.plot is not None:
        _draw(options, V, names)
    return INTERRUPTED if status == "interrupted" else OK


def _draw(options: argparse.Namespace, V: Any, names: list[str]) -> None:
    from ._internal.extras import need

    need("plot", "matplotlib").use("Agg")
    from . import plot

    axes = plot.components(V, feature_names=names or None, image_shape=options.image_shape)
    with replacing(options.plot) as part:
        np.ravel(axes)[0].figure.savefig(part, dpi=150)
    print(f"wrote {options.plot}")


def _print_components(V: Any, ratios: Any, names: list[str]) -> None:
    labels = names or [f"x{j}" for j in range(V.shape[1])]
    for k, (row, ratio) in enumerate(zip(V, ratios, strict=True)):
        top = np.argsort(-np.abs(row), kind="stable")[:4]
        parts = [f"{row[j]:+.3f} {labels[int(j)]}" for j in top if row[j] != 0.0]
        count = int(np.count_nonzero(row))
        rest = f" … {count} in all" if count > len(parts) else ""
        print(f"  {k + 1:3d}  {100 * ratio:6.2f} %  {'  '.join(parts)}{rest}")


def _hyperbolic(options: argparse.Namespace) -> int:
    from . import HyperbolicEigenvalueProblem, solve

    _check_outputs(options)
    data, names = _read(options.data)
    m, n = data.shape
    if options.signature is not None:
        try:
            signs = np.load(options.signature, allow_pickle=False)
        except Exception as error:
            raise UnreadableFile(f"{options.signature}: {_one_line(error)}") from error
    elif options.positive > n:
        raise WrongArgument(f"--positive must be at most {n}, got {options.positive}")
    else:
        signs = np.where(np.arange(n) < options.positive, 1, -1)
    try:
        problem: Any = HyperbolicEigenvalueProblem(data, signs, ridge=options.ridge)
        result = solve(
            problem,
            max_time=options.max_time,
            seed=options.seed,
            n_threads=options.n_threads,
            verbose=options.verbose,
        )
    except (ValueError, TypeError) as error:
        # A signature that does not fit, or a problem without a finite minimum.
        raise WrongArgument(_one_line(error)) from error
    values = result.eigenvalues
    print(f"{options.data}: {m} samples, {n} features, {int(np.sum(signs > 0))} positive signs")
    print("eigenvalues: " + " ".join(f"{value:.6g}" for value in np.sort(values)[::-1]))
    print(
        f"objective {result.objective:.10g}, |X'JX - J| = {result.feasibility:.1e}, "
        f"{result.status.value}, {result.seconds:.2f} s"
    )
    report = {
        "signature": [int(sign) for sign in signs],
        "ridge": options.ridge,
        "eigenvalues": values.tolist(),
        "objective": result.objective,
        "feasibility": result.feasibility,
        "status": result.status.value,
        "seconds": result.seconds,
        "seed": options.seed,
    }
    _write(options, result.x.T, names, report, (m, n))
    return INTERRUPTED if result.status.value == "interrupted" else OK


def _certify(options: argparse.Namespace) -> int:
    from . import L0, L1, NonnegativePCAProblem, NoPenalty, SparsePCAProblem, certify

    _check_outputs(options)
    data, _ = _read(options.data)
    x = _read_components(options.components).T
    m, n = data.shape
    if x.shape[0] != n:
        raise WrongArgument(
            f"{options.components}: has {x.shape[0]} features, {options.data} has {n}"
        )
    center = options.center
    if options.scale:
        from .sklearn.preparation import prepared

        moments, _ = prepared(data, center, True)
        data, center = moments.data, moments.pending
    r = x.shape[1]
    if options.penalty == "nonnegative":
        problem: Any = NonnegativePCAProblem(data, r, center=center)
    else:
        penalty: dict[str, Any] = {
            "l0": L0(options.lam),
            "l1": L1(options.lam),
            "none": NoPenalty(),
        }
        problem = SparsePCAProblem(data, r, penalty[options.penalty], center=center)
    try:
        certificate = certify(problem, x)
    except ValueError as error:
        raise WrongArgument(_one_line(error)) from error
    report = {
        "objective": certificate.objective,
        "feasibility": certificate.feasibility,
        "block2_gap": certificate.block2_gap,
        "block2_pair": certificate.block2_pair,
        "criticality": certificate.criticality,
        "n_pairs": certificate.n_pairs,
        "optimum": certificate.optimum,
        "is_optimal": certificate.is_optimal,
    }
    print(f"objective            {certificate.objective:.12g}")
    print(f"feasibility          {certificate.feasibility:.2e}")
    pair = certificate.block2_pair
    of = "" if pair is None else f" (features {pair[0]} and {pair[1]})"
    print(f"largest pair gain    {certificate.block2_gap:.3e}{of}, of {certificate.n_pairs} pairs")
    print(f"dist(0, subgradient) {certificate.criticality:.3e}")
    known = "unknown" if certificate.optimum is None else f"{certificate.optimum:.12g}"
    print(f"global optimum       {known}{', reached' if certificate.is_optimal else ''}")
    _write(options, None, [], report, (m, n))
    return OK


# Files -------------------------------------------------------------------------------------------


def _read(path: str) -> tuple[Any, list[str]]:
    """`read_matrix`, with what it has to say in a line of its own."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FileNote)
        data, names = read_matrix(path)
    for warning in caught:
        print(f"note: {warning.message}")
    return data, names


def _read_components(path: str) -> Any:
    file = Path(path)
    if file.suffix.lower() == ".npz" and file.is_file():
        try:
            with np.load(file, allow_pickle=False) as archive:
                if "components" in archive:
                    return np.asarray(archive["components"], dtype=np.float64)
        except (OSError, ValueError) as error:
            raise UnreadableFile(f"{file}: not a readable .npz file: {_one_line(error)}") from error
    return read_matrix(file, min_rows=1)[0]


def _check_outputs(options: argparse.Namespace) -> None:
    """Before the work: what is to be written can be."""
    endings = {"out": (".csv", ".npz"), "report": (".json",), "plot": (".png", ".pdf", ".svg")}
    for name, allowed in endings.items():
        path = getattr(options, name, None)
        if path is None:
            continue
        if path.suffix.lower() not in allowed:
            raise WrongArgument(f"--{name} must end in {' or '.join(allowed)}, got {path}")
        if not path.absolute().parent.is_dir():
            raise WrongArgument(f"--{name}: there is no folder {path.absolute().parent}")


def _write(
    options: argparse.Namespace,
    components: Any,
    names: list[str],
    report: dict[str, Any],
    shape: tuple[int, int],
) -> None:
    if components is not None and options.out is not None:
        write_components(options.out, components, names)
        print(f"wrote {options.out}")
    if options.report is not None:
        head = {
            "version": __version__,
            "data": str(options.data),
            "n_samples": shape[0],
            "n_features": shape[1],
        }
        text = json.dumps({**head, **report}, indent=2, ensure_ascii=False)
        write_text(options.report, text + "\n")
        print(f"wrote {options.report}")
