"""Files of components, as the command line writes and reads them."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._internal.checks import FloatArray
from .._internal.reading import Archive, blaming, opened, reason_of
from .._internal.writing import replacing
from .errors import UnreadableFile
from .matrices import read_matrix


def write_components(path: str | Path, components: FloatArray, names: Sequence[str]) -> None:
    """Write components to a .csv table or a .npz archive; an old file is replaced atomically.

    Parameters
    ----------
    path : str or Path
        The file. ".csv": a row per component, a column per feature, feature names as header.
        ".npz": arrays ``components`` and ``feature_names``.
    components : ndarray of shape (n_components, n_features)
        The components, written to full precision.
    names : sequence of str
        Names of the features; ``x0``, ``x1``, … if empty, as in scikit-learn.

    Raises
    ------
    ValueError
        If the path has another ending.
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
    with replacing(path) as part:
        put_components(part, components, names)


def put_components(part: Path, components: FloatArray, names: Sequence[str]) -> None:
    """Writes components to ``part`` directly, in the format of its ending."""
    labels = list(names) or [f"x{j}" for j in range(components.shape[1])]
    if part.suffix.lower() == ".npz":
        np.savez_compressed(part, components=components, feature_names=np.array(labels))
        return
    with part.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(labels)
        writer.writerows([repr(float(value)) for value in row] for row in components)


def read_components(path: str | os.PathLike[str]) -> Any:
    """Reads components, as rows, from a file of `write_components` or of a matrix.

    Raises
    ------
    UnreadableFile
        If the file holds neither.
    """
    name = os.fspath(path)
    if name.lower().endswith(".npz") and os.path.isfile(name):
        with (
            blaming(
                lambda error: UnreadableFile(
                    f"{name}: not a readable .npz file: {reason_of(error)}"
                )
            ),
            opened(name) as source,
        ):
            archive = Archive(source)
            if "components" in archive:
                return np.asarray(archive["components"], dtype=np.float64)
    return read_matrix(name, min_rows=1)[0]
