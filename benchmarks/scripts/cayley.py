"""The figure of docs/theory.md: steps with Cayley retraction do not leave the rotations.

Run the script from the root of a checkout::

    python benchmarks/scripts/cayley.py docs/images/cayley.png

Gradient steps with Cayley retraction and OBCD solve Example A of appendix C.1 of the OBCD paper,
and ``min ‖X − A‖²`` over the orthogonal 4 × 4 matrices for 200 random A, each from a random X.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

import orthobcd as ob

EXAMPLE = np.array([[1.0, 0.0], [-1.0, -1.0]])


def cayley(A: np.ndarray, X: np.ndarray, step: float = 0.1, steps: int = 4000) -> np.ndarray:
    """Minimises ‖X − A‖² by X ← (I + ½τW)⁻¹(I − ½τW)X, W = GXᵀ − XGᵀ, G = −2A."""
    eye = np.eye(len(A))
    for _ in range(steps):
        W = -2.0 * (A @ X.T - X @ A.T)
        X = np.linalg.solve(eye + 0.5 * step * W, (eye - 0.5 * step * W) @ X)
    return X


def descend(A: np.ndarray, X: np.ndarray, block_size: int = 2) -> np.ndarray:
    """Minimises ‖X − A‖² by OBCD."""
    problem = ob.StiefelProblem(
        ob.Quadratic(np.zeros_like(A), linear=-2.0 * A), ob.NoPenalty(), len(A)
    )
    solver = ob.OBCD(working_set="random", block_size=block_size)
    return ob.solve(problem, X, solver=solver, max_sweeps=1000).x


def value(A: np.ndarray, X: np.ndarray) -> float:
    return float(np.sum((X - A) ** 2))


def example(ax: plt.Axes) -> None:
    angles = np.linspace(-np.pi, np.pi, 400)
    c, s = np.cos(angles), np.sin(angles)
    for name, V in (("rotations", [[c, s], [-s, c]]), ("reflections", [[-c, s], [s, c]])):
        ax.plot(angles, np.sum((np.array(V) - EXAMPLE[:, :, None]) ** 2, axis=(0, 1)), label=name)
    starts = np.linspace(-np.pi, np.pi, 12, endpoint=False) + 0.1
    rotations = [np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]]) for t in starts]
    for name, method, marker in (("Cayley steps", cayley, "o"), ("OBCD", descend, "*")):
        ends = [method(EXAMPLE, X) for X in rotations]
        at = [np.arctan2(X[0, 1], X[1, 1]) for X in ends]
        values = [value(EXAMPLE, X) for X in ends]
        ax.plot(at, values, marker, color="black", markersize=9, label=f"ends of {name}")
        print(f"example A, {name}: {min(values):.6f} to {max(values):.6f}")
    ax.set(xlabel="angle", ylabel="‖X − A‖²", title="example A, 12 starts at rotations")
    ax.legend(fontsize=8)


def random_problems(ax: plt.Axes, n: int = 4, count: int = 200) -> None:
    methods = {
        "Cayley": cayley,
        "OBCD, k = 2": descend,
        f"OBCD, k = {n}": lambda A, X: descend(A, X, n),
    }
    rng = np.random.default_rng(0)
    gaps: dict[str, list[float]] = {name: [] for name in methods}
    same = []
    for _ in range(count):
        A, X = rng.standard_normal((n, n)), np.linalg.qr(rng.standard_normal((n, n)))[0]
        U, _, Vt = np.linalg.svd(A)
        same.append(np.linalg.det(A) * np.linalg.det(X) > 0.0)
        for name, method in methods.items():
            gaps[name].append(value(A, method(A, X)) - value(A, U @ Vt))
    where = np.array(same)
    for k, (name, found) in enumerate(gaps.items()):
        shown = np.maximum(found, 1e-12)
        for sign, marker, label in ((True, "o", "equal"), (False, "x", "different")):
            part = shown[where == sign]
            shift = k + rng.uniform(-0.3, 0.3, len(part))
            label = f"determinants {label}" if k == 0 else None
            ax.semilogy(shift, part, marker, color=f"C{int(sign)}", markersize=4, label=label)
            reached = int((part < 1e-6).sum())
            print(f"{name}, equal determinants {sign}: {reached} of {len(part)} reach the optimum")
    ax.set(ylabel="‖X − A‖² above the optimum", title=f"{count} random problems, n = {n}")
    ax.set_xticks(range(len(gaps)), gaps)
    ax.legend(fontsize=8)


def main(path: str) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    example(left)
    random_problems(right)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
