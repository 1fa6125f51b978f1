"""The command ``transform``: coordinates of new data in saved components."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence

from .._internal.names import feature_names
from ..io import UnreadableFile
from .commands import read_data
from .outputs import Outputs
from .terminal import OK, WrongArgument, say, wrong_arguments


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
    order = _order(options, features, names, data.shape[1])
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


def _order(
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
