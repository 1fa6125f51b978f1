"""Explained variance of ten sparse components of scikit-learn's digits, at equal nonzeros.

Run with ``python scripts/digits.py``; prints the table of docs/results/digits.md. Needs
the extra ``sklearn``. Every method is shown with two orthonormal matrices. The first is the nearest
one with the method's support (found by alternating projections and Newton's method), with the same
number of nonzeros. The second is the nearest one of all (the polar factor), which is dense.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.decomposition import SparsePCA as TheirSparsePCA

from orthobcd import SparsePCA
from orthobcd.demo import keep_largest
from orthobcd_bench.baselines.geometry import polar, project_on_support

COMPONENTS = 10
ALPHAS = (10, 15, 20, 30, 40, 60, 80, 120)
"""Penalty weights of scikit-learn's estimator, which determine its numbers of nonzeros."""


def main() -> None:
    """Print the table."""
    data = load_digits().data
    data = data - data.mean(axis=0)
    total = float(np.sum(data**2))
    axes = PCA(COMPONENTS).fit(data).components_.T

    def explained(x: np.ndarray | None) -> str:
        return "–" if x is None else f"{100 * np.sum((data @ x) ** 2) / total:.2f}"

    def gap(x: np.ndarray) -> str:
        return f"{np.linalg.norm(x.T @ x - np.eye(COMPONENTS)):.1e}"

    def on_support(x: np.ndarray) -> np.ndarray | None:
        return project_on_support(x, (x != 0.0).astype(float))

    print(
        "| nonzeros | **ours**, % | ‖XᵀX − I‖ | sklearn `SparsePCA`: ‖XᵀX − I‖ | on its support, % "
        "| polar factor, % (nonzeros) | PCA cut: ‖XᵀX − I‖ | on its support, % "
        "| polar factor, % (nonzeros) | our seconds |"
    )
    print("|" + "---|" * 10)
    for alpha in ALPHAS:
        with warnings.catch_warnings():
            # scikit-learn's solver may stop at its iteration limit.
            warnings.simplefilter("ignore")
            theirs = TheirSparsePCA(COMPONENTS, alpha=alpha, max_iter=500, random_state=0)
            x = theirs.fit(data).components_.T
        x = x / np.linalg.norm(x, axis=0)
        count = int(np.count_nonzero(x))
        thin = keep_largest(axes, count)
        started = time.perf_counter()
        pca = SparsePCA(COMPONENTS, n_nonzero=count, random_state=0).fit(data)
        seconds = time.perf_counter() - started
        ours = pca.components_.T
        assert np.count_nonzero(ours) == count
        cells = [str(count), f"**{explained(ours)}**", gap(ours)]
        for rival in (x, thin):
            dense = polar(rival)
            cells += [
                gap(rival),
                explained(on_support(rival)),
                f"{explained(dense)} ({np.count_nonzero(dense)})",
            ]
        cells.append(f"{seconds:.1f}")
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
