"""Clustering by orthogonal NMF: purity, entropy and normalised mutual information beside others.

Rows have unit length, as in the papers on orthogonal NMF. Without --data only scikit-learn's digits
are clustered: `python benchmarks/scripts/clustering.py --data ../shared/data --seeds 3`
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import normalize

import orthobcd as ob
from orthobcd_bench.baselines import ep4orth


def read(name: str, folder: Path) -> tuple[Any, Any]:
    """Data with rows of unit length, and classes."""
    if name == "digits":
        return normalize(load_digits().data), load_digits().target
    if name == "yale32":
        with np.load(folder / "yale32.npz") as file:
            return normalize(file["X"].reshape(len(file["y"]), -1).astype(float)), file["y"].ravel()
    data = sparse.load_npz(folder / f"{name}.csr.npz").astype(np.float64).tocsr()
    return normalize(data), np.load(folder / f"{name}.labels.npy").ravel()


def purity(truth: Any, labels: Any) -> float:
    """Share of the samples in the largest class of their cluster."""
    largest = [np.unique(truth[labels == k], return_counts=True)[1].max() for k in set(labels)]
    return float(sum(largest)) / len(truth)


def entropy(truth: Any, labels: Any) -> float:
    """Mean entropy of the classes in a cluster, in units of the entropy of equal shares."""
    total = 0.0
    for k in set(labels):
        shares = np.unique(truth[labels == k], return_counts=True)[1] / np.sum(labels == k)
        total -= np.mean(labels == k) * float(np.sum(shares * np.log(shares)))
    return total / np.log(len(np.unique(truth)))


def labels_of(method: str, data: Any, r: int, seed: int, seconds: float) -> Any:
    """Cluster numbers."""
    if method == "OrthogonalNMF":
        return (
            ob.OrthogonalNMF(r, random_state=seed, max_time=seconds, effort=math.inf)
            .fit(data)
            .labels_
        )
    if method == "OrthogonalNMF, default":
        return ob.OrthogonalNMF(r, random_state=seed).fit(data).labels_
    if method == "EP4Orth+":
        problem = ob.NonnegativePCAProblem(data.T, r)
        return np.argmax(ep4orth(problem, max_time=seconds, seed=seed).x, axis=1)
    if method == "k-means":
        return KMeans(r, n_init=10, random_state=seed).fit(data).labels_
    return np.argmax(NMF(r, max_iter=500, random_state=seed).fit_transform(data), axis=1)


METHODS = ("OrthogonalNMF", "OrthogonalNMF, default", "EP4Orth+", "k-means", "NMF + argmax")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    names = ["digits"] + (["yale32", "reuters_t10", "news_t5"] if options.data else [])
    print("| data | method | purity | entropy | NMI | seconds |\n|---|---|---|---|---|---|")
    for name in names:
        data, truth = read(name, options.data or Path())
        r = len(np.unique(truth))
        for method in METHODS:
            rows = []
            for seed in range(options.seeds):
                began = time.perf_counter()
                labels = labels_of(method, data, r, seed, options.seconds)
                spent = time.perf_counter() - began
                mutual = normalized_mutual_info_score(truth, labels)
                rows.append((purity(truth, labels), entropy(truth, labels), mutual, spent))
            a, b, c, spent = np.mean(rows, axis=0)
            print(f"| {name} | {method} | {a:.3f} | {b:.3f} | {c:.3f} | {spent:.1f} |", flush=True)


if __name__ == "__main__":
    main()
