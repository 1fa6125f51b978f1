"""Files of fitted estimators: one npz without pickles, which the command line writes and reads.

Beside the arrays that `orthobcd.io.load_components` reads, a file has a header of JSON: the class,
the parameters and the fitted attributes. Objects are made by their constructors, of known classes
only, so that a file cannot run code.
"""

from __future__ import annotations

import enum
import inspect
import json
import os
import re
from dataclasses import is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import model_selection
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import penalties, regularization, result, solvers
from .._core import Moments
from .._internal.archive import (
    Filed,
    check_arrays,
    not_saved_by,
    packed,
    read_arrays,
    unpacked,
    write_npz,
)
from .._internal.reading import errors_as
from .._internal.writing import replacing
from ..io.components import component_arrays
from .missing import Gaussian

if TYPE_CHECKING:
    from typing_extensions import Self

FORMAT = 1
"""Number of the format of the files; a reader refuses later ones."""

FITTED = re.compile(r"[a-z][a-z0-9_]*_|_[a-z][a-z_]*")
"""Names of fitted attributes."""


class Saved(BaseEstimator, Filed):  # type: ignore[misc]
    """Methods of estimators that write themselves to a file and read themselves from one."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file (NumPy's npz, without pickles).

        `load`, ``orthobcd transform`` and `orthobcd.io.load_components` read it.

        Parameters
        ----------
        path : path
            The file; an old one is replaced atomically.

        Raises
        ------
        NotFittedError
            Before `fit`.
        TypeError
            If a parameter is an object of a class outside this package, scikit-learn's splitters
            aside; pickle or joblib can write such an estimator.
        OSError
            If the file cannot be written.
        """
        arrays = arrays_of(self)
        with replacing(path) as part:
            write_npz(part, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        header, arrays = read_arrays(path, cls.__name__)
        with errors_as(lambda error: not_saved_by(path, cls.__name__, error)):
            made: Self = _made(cls, header, arrays)
            return made


def arrays_of(estimator: Saved) -> dict[str, Any]:
    """The arrays of the file of an estimator: those of components, and all others with a header."""
    check_is_fitted(estimator)
    kind, parameters = type(estimator).__name__, estimator.get_params(deep=False)
    fitted = {name: v for name, v in vars(estimator).items() if name not in parameters}
    arrays: dict[str, Any] = {}
    classes = saved_classes()
    try:
        header = {
            "kind": kind,
            "format": FORMAT,
            "parameters": packed(parameters, arrays, "parameters", classes),
            "fitted": {k: packed(v, arrays, k.strip("_"), classes) for k, v in fitted.items()},
        }
    except TypeError as error:
        raise TypeError(f"{error}; pickle or joblib can write this {kind}") from error
    shared = component_arrays(
        fitted["components_"],
        fitted.get("feature_names_in_", ()),
        mean=fitted.get("mean_"),
        scale=fitted.get("scale_"),
        settings=parameters,
    )
    return {"header": np.array(json.dumps(header)), **arrays, **shared}


def load_estimator(path: str | os.PathLike[str]) -> Any:
    """The fitted estimator of any class in a file; None if the file is not one of `Saved.save`."""
    if not os.path.isfile(path):
        return None
    try:
        header, arrays = read_arrays(path, "Saved")
    except (OSError, ValueError):
        return None
    found = saved_classes().get(str(header.get("kind")), object)
    name = found.__name__ if issubclass(found, Saved) else "an estimator"
    with errors_as(lambda error: not_saved_by(path, name, error)):
        if not issubclass(found, Saved):
            raise ValueError(f"it holds a {header.get('kind')}")
        return _made(found, header, arrays)


def _made(cls: type[Any], header: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The estimator of a class from header and arrays of its file."""
    if header["kind"] != cls.__name__:
        raise ValueError(f"it holds a {header['kind']}")
    if header["format"] > FORMAT:
        raise ValueError("a later version of orthobcd wrote it")
    parameters, fitted = (
        unpacked(header[part], arrays, saved_classes()) for part in ("parameters", "fitted")
    )
    estimator = cls(**parameters)
    for name in fitted:
        if not FITTED.fullmatch(name) or callable(getattr(cls, name, None)):
            raise ValueError(f"{name} is no fitted attribute")
    vars(estimator).update(fitted)
    _check(fitted)
    return estimator


def _check(fitted: dict[str, Any]) -> None:
    """Raises an error if fitted attributes do not fit together."""
    r, n = np.shape(fitted["components_"])
    names = fitted.get("feature_names_in_")
    if fitted["n_features_in_"] != n or not (names is None or np.shape(names) == (n,)):
        raise ValueError(f"n_features_in_ and feature_names_in_ must be of {n} features")
    shapes = {name: value.shape for name, value in fitted.items() if isinstance(value, np.ndarray)}
    shapes.pop("feature_names_in_", None)
    known = {
        "mean_": (n,),
        "scale_": (n,),
        "explained_variance_": (r,),
        "explained_variance_ratio_": (r,),
        "score_correlation_": (r, r),
    }
    if fitted.get("scale_") is None:
        del known["scale_"]
    check_arrays(fitted, shapes | {name: known[name] for name in known if name in fitted})


@cache
def saved_classes() -> dict[str, type]:
    """Classes of parameters and fitted attributes, by name."""
    found: list[type] = [Moments, np.random.RandomState, Gaussian, *_below(Saved)]
    for module in (penalties, solvers, result, regularization):
        own = (c for _, c in inspect.getmembers(module, inspect.isclass))
        kept = (c for c in own if c.__module__ == module.__name__)
        found += (c for c in kept if is_dataclass(c) or issubclass(c, enum.Enum))
    splitters = [c for c in vars(model_selection).values() if hasattr(c, "get_n_splits")]
    found += filter(inspect.isclass, splitters)
    return {c.__name__: c for c in found}


def _below(cls: type) -> list[type]:
    """The classes of this package that inherit from a class."""
    package = __name__.partition(".")[0]
    below: list[type] = []
    one: type
    for one in cls.__subclasses__():
        below += [one, *_below(one)]
    return [one for one in below if one.__module__.partition(".")[0] == package]
