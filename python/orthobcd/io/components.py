"""Files of components, as the command line writes and reads them."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._internal.archive import write_npz
from .._internal.checks import DataLike, FloatArray, as_float_array, check_sparse, is_sparse
from .._internal.gram import coordinates
from .._internal.names import feature_names
from .._internal.reading import errors_as, open_npz, open_source, reason_of
from .._internal.writing import replacing
from .errors import UnreadableFile, refusing
from .matrices import read_matrix
from .tables import value_of


@dataclass(frozen=True, eq=False, repr=False)
class SavedComponents:
    """Components with all that `transform` needs, and the settings of the fit.

    Attributes
    ----------
    components : ndarray of shape (n_components, n_features)
        The components, as rows.
    features : tuple of str
        Names of the features.
    mean : ndarray of shape (n_features,)
        Means of the features, in units of ``scale``; subtracted before the components are applied.
    scale : ndarray of shape (n_features,) or None
        Numbers by which features are divided first; None for no division.
    settings : dict of str to object
        Parameters of the estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from orthobcd.io import SavedComponents
    >>> saved = SavedComponents(np.eye(2), ("a", "b"), np.ones(2))
    >>> saved.transform([[3.0, 1.0]]).tolist()
    [[2.0, 0.0]]
    """

    components: FloatArray
    features: tuple[str, ...]
    mean: FloatArray
    scale: FloatArray | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        r, n = self.components.shape
        return f"SavedComponents({r} components of {n} features)"

    def transform(self, X: DataLike) -> FloatArray:
        """Coordinates of X in the components: ``(X / scale − mean) componentsᵀ``.

        Parameters
        ----------
        X : array_like or scipy.sparse matrix of shape (n_samples, n_features)
            Data, with the features in the order of ``features``.

        Returns
        -------
        ndarray of shape (n_samples, n_components)

        Raises
        ------
        ValueError, TypeError
            If X is not valid data of these features.
        """
        given: Any = X
        if is_sparse(given):
            check_sparse("X", given)
        data = given if is_sparse(given) else as_float_array("X", given, 2)
        n = self.components.shape[1]
        if data.shape[1] != n:
            raise ValueError(f"X must have the {n} features of the components, got {data.shape[1]}")
        return coordinates(data, self.components.T, self.mean, self.scale)


def write_components(
    path: str | os.PathLike[str],
    components: Any,
    names: Sequence[str] = (),
    *,
    mean: FloatArray | None = None,
    scale: FloatArray | None = None,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Write components to a .csv table or a .npz archive; an old file is replaced atomically.

    Parameters
    ----------
    path : path
        The file. ".csv": a row per component, a column per feature, feature names as header.
        ".npz": arrays ``components`` and ``feature_names``, and ``mean``, ``scale`` and
        ``settings`` (JSON) as far as they are given; `load_components` reads them.
    components : ndarray of shape (n_components, n_features), or fitted estimator
        The components, written to full precision. An estimator writes a .npz file by its ``save``,
        and knows names, mean, scale and settings itself.
    names : sequence of str
        Names of the features; those of the estimator, or ``x0``, ``x1``, … if empty, as in
        scikit-learn.
    mean, scale : ndarray of shape (n_features,), optional
        ``mean_`` and ``scale_`` of the fit.
    settings : mapping of str to object, optional
        Parameters of the fit; those that JSON cannot hold are written as text.

    Raises
    ------
    ValueError
        If the path has another ending, components are no matrix, mean or scale have another
        length, or names, mean, scale or settings are given beside an estimator.
    TypeError
        If components are an estimator of another package, or not numeric.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from orthobcd.io import write_components
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "components.csv"
    >>> write_components(path, np.eye(2), ["height", "width"])
    >>> path.read_text().splitlines()[0]
    'height,width'
    """
    ending = Path(path).suffix.lower()
    if ending not in (".csv", ".npz"):
        raise ValueError(f"path must end in .csv or .npz, got {path}")
    if hasattr(components, "get_params"):
        if not hasattr(components, "save"):
            kind = type(components).__name__
            raise TypeError(f"components must be a matrix or an estimator of orthobcd, got {kind}")
        if len(names) or not (mean is None and scale is None and settings is None):
            raise ValueError("names, mean, scale and settings must not be given with an estimator")
        if ending == ".npz":
            components.save(path)
            return
        check_is_fitted(components)
        names = getattr(components, "feature_names_in_", ())
        components = components.components_
    arrays = component_arrays(components, names, mean=mean, scale=scale, settings=settings)
    with replacing(path) as part:
        put_components(part, ending, arrays)


def put_components(part: Path, ending: str, arrays: Mapping[str, Any]) -> None:
    """Writes the arrays of a file of components to ``part`` directly, in a format by its ending."""
    if ending == ".npz":
        write_npz(part, arrays)
        return
    with part.open("w", encoding="utf-8", newline="") as stream:
        names = arrays["feature_names"].tolist()
        # Numbers are names if they are quoted.
        are_numbers = None not in map(value_of, names)
        quoted = csv.writer(stream, quoting=csv.QUOTE_ALL)
        (quoted if are_numbers else csv.writer(stream)).writerow(names)
        rows = ([repr(float(value)) for value in row] for row in arrays["components"])
        csv.writer(stream).writerows(rows)


def component_arrays(
    components: Any,
    names: Sequence[str],
    *,
    mean: FloatArray | None = None,
    scale: FloatArray | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The arrays of a file that `load_components` reads."""
    rows = as_float_array("components", components, 2)
    n = rows.shape[1]
    arrays = {"components": rows, "feature_names": np.array(feature_names(list(names) or None, n))}
    for name, values in (("mean", mean), ("scale", scale)):
        if values is not None:
            arrays[name] = as_float_array(name, values, 1)
            if len(arrays[name]) != n:
                raise ValueError(f"{name} must have {n} entries, got {len(arrays[name])}")
    if settings is not None:
        arrays["settings"] = np.array(json.dumps(dict(settings), default=_jsonable))
    return arrays


def _jsonable(value: Any) -> Any:
    """A JSON value for an object that JSON does not support."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def load_components(path: str | os.PathLike[str]) -> SavedComponents:
    """Read components with mean, scale, names and settings from a .npz file.

    Parameters
    ----------
    path : path
        A file that `write_components` or ``orthobcd sparse-pca --out FILE.npz`` wrote.

    Returns
    -------
    SavedComponents

    Raises
    ------
    UnreadableFile
        If the file is not readable, holds no components, or was written without a mean.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from orthobcd.io import load_components, write_components
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "components.npz"
    >>> write_components(path, np.eye(2), ["height", "width"], mean=np.ones(2))
    >>> load_components(path).features
    ('height', 'width')
    """
    name = os.fspath(path)
    if not os.path.isfile(name):
        raise UnreadableFile(f"{name}: no such file")

    def unreadable(error: Exception) -> UnreadableFile:
        return UnreadableFile(f"{name}: no file of components: {reason_of(error)}")

    with errors_as(unreadable), open_source(name) as source:
        archive = open_npz(source)
        if "components" not in archive or "mean" not in archive:
            raise ValueError(
                "it has no array components and mean; fit again with --out FILE.npz, which keeps "
                "the mean (a .csv file does not)"
            )
        names = archive["feature_names"].tolist() if "feature_names" in archive else ()
        own = {name: archive[name] for name in ("mean", "scale") if name in archive}
        arrays = component_arrays(archive["components"], names, **own)
        settings = json.loads(str(archive["settings"])) if "settings" in archive else {}
        if not isinstance(settings, dict):
            raise ValueError("settings must be a JSON object")
        features = tuple(arrays["feature_names"].tolist())
        scale = arrays.get("scale")
        return SavedComponents(arrays["components"], features, arrays["mean"], scale, settings)


def read_components(path: str | os.PathLike[str]) -> Any:
    """Reads components, as rows, from a file of `write_components` or of a matrix."""
    name = os.fspath(path)
    if name.lower().endswith(".npz") and os.path.isfile(name):
        with refusing(name, ".npz"), open_source(name) as source:
            archive = open_npz(source)
            if "components" in archive:
                return np.asarray(archive["components"], dtype=np.float64)
    return read_matrix(name, min_rows=1)[0]
