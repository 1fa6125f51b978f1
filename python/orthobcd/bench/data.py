"""The data sets of the suites, and the rule for taking a subset of their columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SUBSET_SEED = 0
"""Columns of a subset: ``sorted(default_rng(0).permutation(nonzero columns)[:k])``."""


class MissingDataError(FileNotFoundError):
    """A data file of the suite is not in the data folder."""


@dataclass(frozen=True)
class Dataset:
    """A data matrix and how it is prepared.

    Attributes
    ----------
    file : str
        File name in the data folder; empty for generated data.
    scale : float
        The values are divided by this.
    unit_columns : bool
        Columns are scaled to unit norm.
    columns : int or None
        Size of the seeded column subset; None takes all columns.
    transpose : bool
        Rows and columns swapped.
    shape : tuple of int
        (m, n) of generated standard normal data.
    """

    file: str = ""
    scale: float = 1.0
    unit_columns: bool = False
    columns: int | None = None
    transpose: bool = False
    shape: tuple[int, int] = (0, 0)


DATASETS: dict[str, Dataset] = {
    "randn-500-1000": Dataset(shape=(500, 1000)),
    "randn-200-300": Dataset(shape=(200, 300)),
    "w1a": Dataset("w1a.csr.npz"),
    "mnist-test": Dataset("mnist_test.npz", scale=255.0),
    "mnist-train": Dataset("mnist_train.npz", scale=255.0),
    "cifar-1000": Dataset("cifar10_subset.npz", scale=255.0, columns=1000),
    "tdt2-1000": Dataset("tdt2.csr.npz", columns=1000),
    "20news": Dataset("20news100.csr.npz"),
    "arcene-1000": Dataset("arcene.npz", scale=1000.0, columns=1000),
    "colon": Dataset("colon_alon.npz", unit_columns=True),
    "leukemia-1000": Dataset("leukemia_golub.npz", unit_columns=True, columns=1000),
}


def check_available(name: str, folder: Path | None) -> None:
    """Raise `MissingDataError` if the file of a data set is not in ``folder``."""
    spec = DATASETS.get(name.removesuffix("-290"))
    if spec is None or not spec.file:
        return
    if folder is None or not (folder / spec.file).exists():
        raise MissingDataError(f"{spec.file} is not in the data folder ({folder})")


def load(name: str, folder: Path | None) -> Any:
    """The matrix of a data set: ndarray, or a scipy sparse matrix.

    Raises
    ------
    MissingDataError
        If its file is not in ``folder``.
    """
    import scipy.sparse

    spec = DATASETS[name]
    if not spec.file:
        return np.random.default_rng(0).standard_normal(spec.shape)
    check_available(name, folder)
    assert folder is not None
    path = folder / spec.file
    if spec.file.endswith(".csr.npz"):
        matrix: Any = scipy.sparse.load_npz(path).astype(np.float64)
    else:
        with np.load(path) as archive:
            matrix = archive["X"].astype(np.float64)
    if spec.columns is not None:
        squares = matrix.multiply(matrix) if scipy.sparse.issparse(matrix) else matrix * matrix
        filled = np.flatnonzero(np.asarray(squares.sum(axis=0)).ravel() > 0.0)
        order = np.random.default_rng(SUBSET_SEED).permutation(filled)
        matrix = matrix[:, np.sort(order[: spec.columns])]
    if spec.scale != 1.0:
        matrix = matrix / spec.scale
    if spec.unit_columns:
        norms = np.linalg.norm(matrix, axis=0)
        matrix = matrix / np.where(norms > 0.0, norms, 1.0)
    return matrix


def gram(matrix: Any) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """AᵀA, dense and symmetric."""
    import scipy.sparse

    product = matrix.T @ matrix
    dense = product.toarray() if scipy.sparse.issparse(product) else np.asarray(product)
    symmetric: np.ndarray[tuple[int, int], np.dtype[np.float64]] = 0.5 * (dense + dense.T)
    return symmetric
