"""Files of fitted estimators, which the command line writes and reads."""

from __future__ import annotations

import inspect
import os
from functools import cache
from typing import Any

import numpy as np
from sklearn import model_selection
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import penalties, regularization, result, solvers
from .._core import Moments
from .._internal.archive import (
    FITTED,
    Classes,
    Filed,
    check_arrays,
    classes_in,
    not_saved_by,
    object_of,
    read_arrays,
)
from .._internal.reading import errors_as
from .missing import Gaussian


class Saved(BaseEstimator, Filed):  # type: ignore[misc]
    """Base class of estimators that write themselves to a file and read themselves from one."""

    def save(self, path: str | os.PathLike[str]) -> None:
        check_is_fitted(self)
        super().save(path)

    @classmethod
    def _classes(cls) -> Classes:
        return saved_classes()

    def _check_loaded(self) -> None:
        fitted = {name: value for name, value in vars(self).items() if FITTED.fullmatch(name)}
        r, n = np.shape(fitted["components_"])
        names = fitted.get("feature_names_in_")
        if fitted["n_features_in_"] != n or not (names is None or np.shape(names) == (n,)):
            raise ValueError(f"n_features_in_ and feature_names_in_ must be of {n} features")
        arrays = {k: v for k, v in fitted.items() if isinstance(v, np.ndarray) and v is not names}
        known = {
            "mean_": (n,),
            "scale_": (n,),
            "explained_variance_": (r,),
            "explained_variance_ratio_": (r,),
            "score_correlation_": (r, r),
        }
        if fitted.get("scale_") is None:
            del known["scale_"]
        shapes = {name: array.shape for name, array in arrays.items()}
        check_arrays(fitted, shapes | {name: known[name] for name in known if name in fitted})


def load_estimator(path: str | os.PathLike[str]) -> Any:
    """The fitted estimator in a file of `Saved.save`, of any class."""
    header, arrays = read_arrays(path, "SparsePCA")
    found = saved_classes().get(str(header.get("kind")), object)
    name = found.__name__ if issubclass(found, Saved) else "SparsePCA"
    with errors_as(lambda error: not_saved_by(path, name, error)):
        if not issubclass(found, Saved):
            raise ValueError(f"it holds a {header.get('kind')}")
        return object_of(found, header, arrays)


@cache
def saved_classes() -> Classes:
    """Classes of parameters and fitted attributes, by name."""
    found: list[type] = [Moments, np.random.RandomState, Gaussian, *_below(Saved)]
    for module in (penalties, solvers, result, regularization):
        found += classes_in(vars(module).values()).values()
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
