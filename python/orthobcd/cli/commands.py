"""The commands: each reads the data, solves, writes the files and prints a summary."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._internal.checks import is_sparse
from .._internal.extras import need
from .._internal.names import feature_names, shortened_names
from .._internal.reading import STDIN, open_source, read_npy
from ..io import FileNote, UnreadableFile
from ..io.components import read_components
from ..io.errors import MissingValues, refusing
from ..io.matrices import STREAMED, Stream, read_named, stream_of
from ..io.selection import Named, Selection, indices_of
from .outputs import READING, Outputs, check_output
from .terminal import INTERRUPTED, OK, WrongArgument, complain, in_options, say, wrong_arguments


def fit(options: argparse.Namespace) -> int:
    """Runs ``orthobcd sparse-pca`` or ``orthobcd nonneg-pca``; returns the exit code."""
    from ..sklearn.base import default_components

    outputs = Outputs(options, [options.data])
    stream = _streamed(options)
    if stream is None:
        data, names, _ = read_data(options)
        m, n = data.shape
    else:
        data, names, (m, n) = stream, stream.names, stream.shape
        # Rows, rate and time left are on the live line.
        options.verbose = options.verbose or sys.stderr.isatty()
    counts = options.n_nonzero
    r = options.n_components
    if r is None:
        r = len(counts) if isinstance(counts, list) else default_components(m, n)
    shape = options.image_shape
    if shape is not None and shape[0] * shape[1] != n:
        raise WrongArgument(f"--image-shape must have {n} pixels, got {shape[0]}x{shape[1]}")
    features = {name: _features(options, name, names, n) for name in ("include", "exclude")}
    given = vars(options)
    named = {name: given[name] for name in options.estimator().get_params() if name in given}
    pca = options.estimator(**{**named, "n_components": r, **features})
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, wrong_arguments(options):
        warnings.simplefilter("always")
        try:
            pca.fit(data, **_saved(options))
        except KeyboardInterrupt as stop:
            # If there is a result, its components are written.
            if getattr(stop, "result", None) is None:
                raise
    seconds = time.perf_counter() - started
    V, ratios = pca.components_, pca.explained_variance_ratio_
    report = {
        "feature_names": names,
        "settings": pca.get_params(),
        "alpha": getattr(pca, "alpha_", None),
        "alpha_max": getattr(pca, "alpha_max_", None),
        "n_components": r,
        "n_nonzero": pca.n_nonzero_,
        "explained_variance": pca.explained_variance_,
        "explained_variance_ratio": ratios,
        "mean": pca.mean_,
        "scale": pca.scale_,
        "objective": pca.objective_,
        "feasibility": float(np.linalg.norm(V @ V.T - np.eye(r))),
        "status": "converged" if pca.result_ is None else pca.result_.status.value,
        "notes": _notes(caught),
        "seconds": seconds,
    }
    if names:
        pca.feature_names_in_ = np.array(names, dtype=object)
    outputs.components(pca)
    outputs.report((m, n), report)
    outputs.picture(V, names)
    how = "" if stream is None else ", read by blocks"
    say(f"{options.data}: {m} samples, {n} features{how}")
    _say_components(V, ratios, names)
    say(
        f"{pca.n_nonzero_} nonzeros of {V.size}, {100 * float(ratios.sum()):.2f} % of the "
        f"variance, |X'X - I| = {report['feasibility']:.1e}, {report['status']}, {seconds:.2f} s"
    )
    return _close(outputs, report)


def _close(outputs: Outputs, report: dict[str, Any]) -> int:
    """Prints the notes of a report and which files were written; returns the exit code."""
    for line in report["notes"]:
        say(f"note: {line}")
    return outputs.close(INTERRUPTED if report["status"] == "interrupted" else OK)


def _streamed(options: argparse.Namespace) -> Stream | None:
    """The data of a command by blocks of rows, with ``--max-memory``; None if it is read whole."""
    from ..data import as_bytes

    with wrong_arguments(options):
        limit = as_bytes("--max-memory", options.max_memory)
    if limit is None:
        return None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FileNote)
        stream = stream_of(options.data, options.columns, options.drop)
    if stream is None:
        size = os.path.getsize(options.data) if os.path.isfile(options.data) else 0
        if size > limit:
            raise WrongArgument(
                f"--max-memory must be at least the size of {options.data}, which is read whole, "
                f"{size:,} bytes; {' and '.join(STREAMED)} files are read by blocks"
            )
        return None
    if options.missing is not None:
        raise WrongArgument("--missing must not be given with --max-memory: it needs all samples")
    for warning in caught:
        complain(f"note: {warning.message}")
    return stream


def _notes(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """The different messages of warnings, in alphabetical order."""
    return sorted({str(warning.message) for warning in caught})


def _saved(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of a fit for its checkpoint."""
    return {name: getattr(options, name) for name in ("checkpoint", "checkpoint_every")}


def _features(
    options: argparse.Namespace, name: str, names: Sequence[str], n: int
) -> list[Any] | None:
    """Indices of --include or --exclude: for all components, or a list for each component."""
    wanted = getattr(options, name)
    if wanted is None:
        return None
    if options.n_nonzero is None or getattr(options, "penalty", "l0") != "l0":
        raise WrongArgument(f"--{name} needs --n-nonzero, and no --penalty but l0")
    known = names or [f"x{k}" for k in range(n)]
    with wrong_arguments(options):
        lists = [indices_of(f"--{name}", own, known, n) for own in wanted]
    return lists if len(lists) > 1 else lists[0]


def _say_components(V: Any, ratios: Any, names: Sequence[str]) -> None:
    labels = shortened_names(feature_names(names or None, V.shape[1]))
    for k, (row, ratio) in enumerate(zip(V, ratios, strict=True)):
        top = np.argsort(-np.abs(row), kind="stable")[:4]
        parts = [f"{row[j]:+.3f} {labels[int(j)]}" for j in top if row[j] != 0.0]
        count = int(np.count_nonzero(row))
        rest = f" … {count} in all" if count > len(parts) else ""
        say(f"  component {k:<3d} {100 * ratio:6.2f} %  {'  '.join(parts)}{rest}")


def demo(options: argparse.Namespace) -> int:
    """Runs ``orthobcd demo``; returns the exit code."""
    need("plot", "matplotlib").use("Agg")
    from ..demo import run

    files = [options.out / name for name in ("table.txt", "components.png")]
    options.out.mkdir(parents=True, exist_ok=True)
    for file in files:
        check_output("out", file, [options.data or ""], options.force)
    with wrong_arguments(options):
        for text in run(options.data, files, options.components):
            say(text)
    return OK


def hyperbolic(options: argparse.Namespace) -> int:
    """Runs ``orthobcd hyperbolic``; returns the exit code."""
    from .. import HyperbolicEigenvalueProblem, solve

    inputs = [options.data] if options.signature is None else [options.data, options.signature]
    outputs = Outputs(options, inputs)
    data, names, _ = read_data(options)
    m, n = data.shape
    if options.signature is not None:
        with refusing(str(options.signature), ".npy"), open_source(options.signature) as source:
            signs = read_npy(source)
    elif options.positive > n:
        raise WrongArgument(f"--positive must be at most {n}, got {options.positive}")
    else:
        signs = np.where(np.arange(n) < options.positive, 1, -1)
    limits = {name: getattr(options, name) for name in ("max_time", "seed", "n_threads", "verbose")}
    with warnings.catch_warnings(record=True) as caught, wrong_arguments(options):
        warnings.simplefilter("always")
        if _has_gaps(data):
            data = _with_moments(data)
        problem: Any = HyperbolicEigenvalueProblem(data, signs, ridge=options.ridge)
        result = solve(problem, **limits, **_saved(options))
    assert result.hyperbolic is not None
    values = result.hyperbolic.eigenvalues
    assert values is not None
    report = {
        "feature_names": names,
        "settings": {"ridge": options.ridge, **limits},
        "signature": [int(sign) for sign in signs],
        "eigenvalues": values,
        "objective": result.objective,
        "feasibility": result.feasibility,
        "status": result.status.value,
        "notes": _notes(caught),
        "seconds": result.seconds,
    }
    outputs.components(result.x.T, names)
    outputs.report((m, n), report)
    say(f"{options.data}: {m} samples, {n} features, {int(np.sum(signs > 0))} positive signs")
    say("eigenvalues: " + " ".join(f"{value:.6g}" for value in np.sort(values)[::-1]))
    say(
        f"objective {result.objective:.10g}, |X'JX - J| = {result.feasibility:.1e}, "
        f"{result.status.value}, {result.seconds:.2f} s"
    )
    return _close(outputs, report)


def _with_moments(data: Any) -> Any:
    """A matrix A for data with gaps: AᵀA are the second moments by the EM algorithm."""
    from ..sklearn.missing import gram_by_em

    gram = gram_by_em(data, max(1, min(data.shape) - 1), center=False, scale=False)[1]
    values, vectors = np.linalg.eigh(gram.second(np.eye(data.shape[1])))
    return np.sqrt(np.maximum(values, 0.0))[:, np.newaxis] * vectors.T


def certify(options: argparse.Namespace) -> int:
    """Runs ``orthobcd certify``; returns the exit code."""
    from ..certificate import certify as prove

    if options.data == options.components == STDIN:
        raise WrongArgument("COMPONENTS must not be - if DATA is")
    outputs = Outputs(options, [options.data, options.components])
    data, names, _ = read_data(options)
    x = read_components(options.components).T
    m, n = data.shape
    if x.shape[0] != n:
        raise WrongArgument(
            f"{options.components}: has {x.shape[0]} features, {options.data} has {n}"
        )
    limits = {name: getattr(options, name) for name in ("bound", "max_time", "gap_tol")}
    try:
        certificate = prove(_problem(options, data, x.shape[1]), x, **limits)
    except (ValueError, TypeError) as error:
        limit = "--n-nonzero" if options.n_features is None else "--n-features"
        raise WrongArgument(re.sub("^count(?= must)", limit, in_options(error, options))) from error
    settings = ("penalty", "lam", "n_nonzero", "n_features", "center", "scale")
    found = (
        "objective", "feasibility", "block2_gap", "block2_pair", "criticality", "n_pairs",
        "optimum", "is_optimal", "lower_bound", "gap", "bound_method",
    )  # fmt: skip
    report = {
        "components": options.components,
        "feature_names": names,
        "settings": {**{name: getattr(options, name) for name in settings}, **limits},
        **{name: getattr(certificate, name) for name in found},
    }
    outputs.report((m, n), report)
    _say_certificate(certificate, feature_names(names or None, n))
    return outputs.close(OK)


def _problem(options: argparse.Namespace, data: Any, r: int) -> Any:
    """The problem of the given penalty and limits, for r components, as the estimators have it."""
    from .. import SparsePCAProblem
    from ..data import Gram
    from ..sklearn.base import problem_of
    from ..sklearn.missing import gram_by_em

    penalty = _penalty(options)
    if _has_gaps(data):
        return problem_of(gram_by_em(data, r, options.center, options.scale)[1], r, penalty)
    if options.scale:
        return problem_of(Gram.of_rows(data, options.center, True), r, penalty)
    return SparsePCAProblem(data, r, penalty, center=options.center)


def _has_gaps(data: Any) -> bool:
    return not is_sparse(data) and bool(np.isnan(data).any())


def _penalty(options: argparse.Namespace) -> Any:
    """The given penalty or limit."""
    from .. import L0, L1, Cardinality, NonNegative, NoPenalty, RowSparse

    nonnegative = options.penalty == "nonnegative"
    if options.n_nonzero is not None:
        return Cardinality(options.n_nonzero, nonnegative=nonnegative)
    if options.n_features is not None:
        if nonnegative:
            raise WrongArgument("--n-features must not be given with --penalty nonnegative")
        return RowSparse(count=options.n_features)
    kinds: dict[str, Callable[[], Any]] = {
        "l0": lambda: L0(options.lam),
        "l1": lambda: L1(options.lam),
        "nonnegative": NonNegative,
        "none": NoPenalty,
    }
    return kinds[options.penalty]()


def _say_certificate(certificate: Any, labels: Sequence[str]) -> None:
    say(f"objective            {certificate.objective:.12g}")
    say(f"feasibility          {certificate.feasibility:.2e}")
    if certificate.n_pairs:
        pair = certificate.block2_pair
        one, other = shortened_names([labels[k] for k in pair or (0, 0)])
        of = "" if pair is None else f" (features {one} and {other})"
        pairs = f"of {certificate.n_pairs} pairs"
        say(f"largest pair gain    {certificate.block2_gap:.3e}{of}, {pairs}")
        say(f"dist(0, subgradient) {certificate.criticality:.3e}")
    known = "unknown" if certificate.optimum is None else f"{certificate.optimum:.12g}"
    say(f"global optimum       {known}{', reached' if certificate.is_optimal else ''}")
    if certificate.bound is not None:
        say(f"lower bound          {certificate.lower_bound:.12g}, by {certificate.bound_method}")
        say(f"gap                  {certificate.gap:.3e}")


def read_data(options: argparse.Namespace, min_rows: int = 2) -> Named:
    """Reads the data as `read_matrix` does; prints its notes to the standard error."""
    given = {name: getattr(options, name) for name in READING}
    selection = Selection(**given, missing=options.missing is not None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FileNote)
        try:
            with wrong_arguments(options):
                found = read_named(options.data, selection, min_rows)
        except MissingValues as error:
            raise UnreadableFile(f"{error}; --missing em takes them into account") from error
    for warning in caught:
        complain(f"note: {warning.message}")
    return found


def transform(options: argparse.Namespace) -> int:
    """Runs ``orthobcd transform``; returns the exit code."""
    from ..sklearn.saving import load_estimator

    outputs = Outputs(options, [options.data, options.components], (".csv", ".npy"))
    try:
        saved = load_estimator(options.components)
    except ValueError as error:
        hint = "--out FILE.npz of a fit writes one (a .csv file has no means)"
        raise UnreadableFile(f"{error}; {hint}") from error
    features = feature_names(getattr(saved, "feature_names_in_", None), saved.n_features_in_)
    data, names, samples = read_data(options, min_rows=1)
    order = _column_order(options, features, names, data.shape[1])
    with warnings.catch_warnings():
        # The columns are in the order of the names of the fit.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        with wrong_arguments(options, f"{options.data}: "):
            scores = saved.transform(data if order is None else data[:, order])
    outputs.scores(scores, samples)
    report = {
        "components": options.components,
        "feature_names": features,
        "settings": saved.get_params(),
        "n_components": scores.shape[1],
    }
    outputs.report((scores.shape[0], data.shape[1]), report)
    if options.out is not None:
        say(f"{options.data}: {scores.shape[0]} samples in {scores.shape[1]} components")
    return outputs.close(OK)


def _column_order(
    options: argparse.Namespace, features: Sequence[str], names: Sequence[str], n: int
) -> list[int] | None:
    """Columns of the data with the names of the saved features; None if all are in order."""
    place = {name: k for k, name in enumerate(names)}
    missing = [name for name in features if name not in place]
    if not names or len(missing) == len(features):
        # Without names, or with names of another kind, the order decides.
        if n != len(features):
            raise WrongArgument(
                f"{options.data}: has {n} features, {options.components} has {len(features)}"
            )
        return None
    if missing:
        raise WrongArgument(
            f"{options.data}: lacks {len(missing)} of the {len(features)} features of "
            f"{options.components}: {', '.join(missing[:3])}{', …' if len(missing) > 3 else ''}"
        )
    order = [place[name] for name in features]
    return None if order == list(range(n)) else order
