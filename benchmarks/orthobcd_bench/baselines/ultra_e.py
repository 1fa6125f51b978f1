"""UltraE with its paper's update of the relations: CSDM, in NumPy."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import orthobcd as ob
from orthobcd import _core
from orthobcd._internal.checks import FloatArray, IntArray
from orthobcd.solving import Solve

from .hyperbolic import FactorDescent

ADAM = (0.9, 1e-8)
"""Decay of the first moment and ε, as in `orthobcd.kg.UltraE`."""


class CsdmUltraE(ob.kg.UltraE):
    """`UltraE` whose relation matrices move by the factors of their hyperbolic CS decomposition.

    Points and biases are trained as in `UltraE`; the matrices by Adagrad on the factors. Only the
    gradient of a batch is compiled: an epoch takes longer than that of a compiled version would.

    Parameters
    ----------
    factors : {"full", "givens"}, default "full"
        Moves of the orthogonal factors, as in `orthobcd_bench.baselines.csdm`.
    step : float, default 0.1
        Angle or rapidity of a first step.
    **options : object
        Arguments of `orthobcd.kg.UltraE`.

    References
    ----------
    Xiong and coauthors 2022, "Ultrahyperbolic knowledge graph embeddings" (UltraE).
    """

    def __init__(self, factors: str = "full", step: float = 0.1, **options: Any) -> None:
        super().__init__(**options, relations="frozen")
        self.factors = factors
        self.step = step
        self._descents: list[FactorDescent] = []

    def _epoch(self, ctrl_c: Solve, train: IntArray) -> dict[str, float] | None:
        begin = time.perf_counter()
        run = self._training
        started = run.n_epochs
        rows, matrices, memory = (array.copy() for array in run.state)
        if started == 0:
            signs = self._signs().astype(np.float64)
            self._descents = [FactorDescent(matrix, signs, self.factors) for matrix in matrices]
        rng = np.random.default_rng([self.seed, started])
        rate = self.learning_rate * self.rate_decay**started
        order, total = rng.permutation(len(train)), 0.0
        for at in range(0, len(train), self.batch_size):
            batch = train[order[at : at + self.batch_size]]
            drawn = rng.permutation(len(rows))[: self.n_negatives]
            state = (rows, matrices, memory)
            loss, points, biases, slopes = _core.ultra_e_gradient(
                state, batch, drawn.tolist(), train, self._signs(), self
            )
            total += loss * len(batch)
            candidates = np.union1d(batch[:, [0, 2]], drawn)
            gradient = np.hstack([points, biases])[candidates]
            rows[candidates] = self._adam(rows[candidates], gradient, rate)
            for relation in np.unique(batch[:, 1]):
                descent = self._descents[relation]
                matrices[relation] = descent.step(slopes[relation], self.step)
        seconds = time.perf_counter() - begin
        return run.epoch((rows, matrices, memory), total / len(train), seconds)

    def _adam(self, rows: FloatArray, gradient: FloatArray, rate: float) -> FloatArray:
        """Rows (z, moments, biases, moments, steps) after a step of Adam along a gradient each."""
        n, (beta1, epsilon), beta2 = self.dim, ADAM, self.moment_decay
        rows[:, -1] += 1.0
        steps = rows[:, -1:]
        length = rate * np.sqrt(1.0 - beta2**steps) / (1.0 - beta1**steps)
        small = epsilon * np.sqrt(1.0 - beta2**steps)
        for from_, g in ((0, gradient[:, :n]), (3 * n, gradient[:, n:])):
            k = g.shape[1]
            value, first, second = (rows[:, from_ + i * k : from_ + (i + 1) * k] for i in range(3))
            first[:] = beta1 * first + (1.0 - beta1) * g
            second[:] = beta2 * second + (1.0 - beta2) * g * g
            value -= length * first / (np.sqrt(second) + small)
        keep = 1.0 - rate * self.weight_decay
        rows[:, :n][:, self._signs() > 0] *= keep
        rows[:, 3 * n : 3 * n + 2] *= keep
        return rows
