"""The command ``transform``: coordinates of new data in saved components."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .._internal.names import listed
from .._internal.terminal import say
from ..io.components import SavedComponents, load_components
from .commands import read_data
from .outputs import Outputs
from .terminal import OK, WrongArgument


def transform(options: argparse.Namespace) -> int:
    """Runs ``orthobcd transform``; returns the exit code."""
    outputs = Outputs(options, [options.data, options.components], (".csv", ".npy"))
    saved = load_components(options.components)
    data, names = read_data(options, min_rows=1)
    order = _order(options, saved, names, data.shape[1])
    scores = saved.transform(data if order is None else data[:, order])
    outputs.scores(scores)
    report = {
        "components": options.components,
        "feature_names": list(saved.features),
        "settings": saved.settings,
        "n_components": scores.shape[1],
    }
    outputs.report((scores.shape[0], data.shape[1]), report)
    say(f"{options.data}: {scores.shape[0]} samples in {scores.shape[1]} components")
    return outputs.close(OK)


def _order(
    options: argparse.Namespace, saved: SavedComponents, names: Sequence[str], n: int
) -> list[int] | None:
    """Columns of the data with the names of the saved features; None if all are in order."""
    place = {name: k for k, name in enumerate(names)}
    missing = [name for name in saved.features if name not in place]
    if not names or len(missing) == len(saved.features):
        # Without names, or with names of another kind, the order decides.
        if n != len(saved.features):
            raise WrongArgument(
                f"{options.data}: has {n} features, {options.components} has {len(saved.features)}"
            )
        return None
    if missing:
        raise WrongArgument(
            f"{options.data}: lacks {len(missing)} of the {len(saved.features)} features of "
            f"{options.components}: {listed(missing)}"
        )
    order = [place[name] for name in saved.features]
    return None if order == list(range(n)) else order
