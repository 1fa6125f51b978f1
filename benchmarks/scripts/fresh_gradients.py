"""Effect of fresh gradients in a pass over all pairs, for an f that is not quadratic, with l1.

The majoriser of a pair has the gradient at the start of the pass, of its matching, or of the pair
itself, as in the papers. F is accepted by its value, and L is adapted to the steps. The output is F
after each pass and the rows of gradients that the pass took, in units of whole gradients.
`python benchmarks/scripts/fresh_gradients.py`
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Function = Callable[[Array], tuple[float, Array]]

N, R, LAM = 20, 4, 0.3
RAISES = 12
ANGLES = np.arange(360) * np.pi / 180.0


def fourth(rng: np.random.Generator) -> Function:
    """-||AX||_4^4/4."""
    A = rng.standard_normal((60, N)) / 2.0
    return lambda x: (-0.25 * float(np.sum((A @ x) ** 4)), -(A.T @ (A @ x) ** 3))


def chain(rng: np.random.Generator) -> Function:
    """Rosenbrock's function of the entries one after the other."""

    def f(x: Array) -> tuple[float, Array]:
        a, b = x.ravel()[:-1], x.ravel()[1:]
        gradient = np.zeros(x.size)
        gradient[:-1] -= 40.0 * a * (b - a * a) + 2.0 * (1.0 - a)
        gradient[1:] += 20.0 * (b - a * a)
        return float(np.sum(10.0 * (b - a * a) ** 2 + (1.0 - a) ** 2)), gradient.reshape(x.shape)

    return f


def logistic(rng: np.random.Generator) -> Function:
    """Softmax regression."""
    A = rng.standard_normal((60, N)) / 2.0
    target = np.eye(R)[np.argmax(A @ np.linalg.qr(rng.standard_normal((N, R)))[0], axis=1)]

    def f(x: Array) -> tuple[float, Array]:
        logits = 5.0 * (A @ x)
        logits -= logits.max(axis=1, keepdims=True)
        weights = np.exp(logits)
        total = weights.sum(axis=1, keepdims=True)
        value = float(np.log(total).sum() - np.sum(logits * target)) / 5.0
        return value, A.T @ (weights / total - target)

    return f


def best_turn(z: Array, gradient: Array) -> tuple[Array, float]:
    """The rows VZ of least <G, VZ> + lam|VZ|_1 on ever finer grids, and its gain on V = I."""
    base = float(np.vdot(gradient, z)) + LAM * float(np.abs(z).sum())
    best, low = z, 0.0
    for sign in (1.0, -1.0):
        angles, width = ANGLES, ANGLES[1]
        for _ in range(4):
            c, s = np.cos(angles)[:, None], np.sin(angles)[:, None]
            first, second = c * z[0] + s * z[1], sign * (c * z[1] - s * z[0])
            penalty = np.abs(first).sum(axis=1) + np.abs(second).sum(axis=1)
            values = first @ gradient[0] + second @ gradient[1] + LAM * penalty - base
            k = int(values.argmin())
            if values[k] < low - 1e-14:
                best, low = np.stack([first[k], second[k]]), float(values[k])
            angles = angles[k] + np.linspace(-width, width, 31)
            width /= 10.0
    return best, low


def descend(f: Function, x: Array, fresh: str, passes: int, curvature: float) -> list[float]:
    order = list(range(N))
    rounds = []
    for _ in range(N - 1):
        rounds.append([(order[k], order[N - 1 - k]) for k in range(N // 2)])
        order = [order[0], order[-1], *order[1:-1]]
    pairs = [pair for matching in rounds for pair in matching]
    groups = {"pass": [pairs], "matching": rounds, "pair": [[pair] for pair in pairs]}[fresh]
    values = [f(x)[0] + LAM * float(np.abs(x).sum())]
    for _ in range(passes):
        value = values[-1]
        for group in groups:
            gradient, tried = f(x)[1], curvature
            for _ in range(RAISES):
                y, predicted = x.copy(), 0.0
                for pair in map(list, group):
                    # On the circle |VZ|^2 is |Z|^2: the model is linear in V.
                    y[pair], change = best_turn(y[pair], gradient[pair] - tried * x[pair])
                    predicted += change
                after = f(y)[0] + LAM * float(np.abs(y).sum())
                if predicted == 0.0 or after - value <= 0.1 * predicted:
                    good = predicted < 0.0 and after - value <= 0.5 * predicted
                    shrink = 0.8 ** (len(group) / len(pairs)) ** 0.5 if good else 1.0
                    x, value, curvature = y, after, shrink * tried
                    break
                tried *= 2.0
        values.append(value)
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--passes", type=int, default=4)
    options = parser.parse_args()
    print("problem seed gradient-of | F after each pass | gradients")
    for make, curvature in ((fourth, 5.0), (chain, 50.0), (logistic, 5.0)):
        for seed in range(options.seeds):
            f = make(np.random.default_rng(0))
            x = np.linalg.qr(np.random.default_rng(seed).standard_normal((N, R)))[0]
            for fresh, each in (("pass", 1), ("matching", N - 1), ("pair", N - 1)):
                values = descend(f, x, fresh, options.passes, curvature)
                shown = " ".join(f"{value:.4f}" for value in values)
                gradients = each * options.passes
                print(f"{make.__name__} {seed} {fresh} | {shown} | {gradients}", flush=True)


if __name__ == "__main__":
    main()
