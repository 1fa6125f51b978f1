"""Files of components, as the command line writes and reads them."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._internal.archive import write_npz
from .._internal.checks import as_float_array
from .._internal.names import feature_names
from .._internal.reading import open_npz, open_source
from .._internal.writing import replacing
from .errors import refusing
from .matrices import read_matrix
from .tables import value_of


def write_components(
    path: str | os.PathLike[str], components: Any, names: Sequence[str] = ()
) -> None:
    """Write components to a .csv table or a .npz archive; an old file is replaced atomically.

    Parameters
    ----------
    path : path
        The file. ".csv": a row per component, a column per feature, feature names as header.
        ".npz": the arrays ``components`` and ``feature_names``, or, of an estimator, the file of
        its ``save``.
    components : ndarray of shape (n_components, n_features), or fitted estimator
        The components, written to full precision.
    names : sequence of str
        Names of the features; those of the estimator, or ``x0``, ``x1``, … if empty, as in
        scikit-learn.

    Raises
    ------
    ValueError
        If the path has another ending, components are no matrix, or names are of another number or
        given beside an estimator.
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
        if len(names):
            raise ValueError("names must not be given with an estimator")
    with replacing(path) as part:
        put_components(part, ending, components, names)


def put_components(part: Path, ending: str, components: Any, names: Sequence[str]) -> None:
    """Writes components or an estimator to ``part`` directly, in the format of an ending."""
    if hasattr(components, "get_params"):
        if ending == ".npz":
            components.save(part)
            return
        check_is_fitted(components)
        names = getattr(components, "feature_names_in_", ())
        components = components.components_
    rows = as_float_array("components", components, 2)
    names = feature_names(list(names) or None, rows.shape[1])
    if ending == ".npz":
        write_npz(part, {"components": rows, "feature_names": names})
        return
    with part.open("w", encoding="utf-8", newline="") as stream:
        # Numbers are names if they are quoted.
        are_numbers = None not in map(value_of, names)
        quoted = csv.writer(stream, quoting=csv.QUOTE_ALL)
        (quoted if are_numbers else csv.writer(stream)).writerow(names)
        csv.writer(stream).writerows([repr(float(value)) for value in row] for row in rows)


def read_components(path: str | os.PathLike[str]) -> Any:
    """Reads components, as rows, from a file of `write_components` or of a matrix."""
    name = os.fspath(path)
    if name.lower().endswith(".npz") and os.path.isfile(name):
        with refusing(name, ".npz"), open_source(name) as source:
            archive = open_npz(source)
            if "components" in archive:
                return np.asarray(archive["components"], dtype=np.float64)
    return read_matrix(name, min_rows=1)[0]
