"""A small graph and a model of it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import orthobcd as ob

N_ENTITIES, N_RELATIONS, DIM = 40, 3, 8


def graph(seed=0):
    """Cycles, reflections and a tree: (train, valid)."""
    k = np.arange(N_ENTITIES)
    triples = np.concatenate(
        [
            np.stack([k, 0 * k, (k + 1) % N_ENTITIES], axis=1),
            np.stack([k, 0 * k + 1, N_ENTITIES - 1 - k], axis=1),
            np.stack([k[1:], 0 * k[1:] + 2, (k[1:] - 1) // 2], axis=1),
        ]
    )
    order = np.random.default_rng(seed).permutation(len(triples))
    return triples[order[20:]], triples[order[:20]]


TRAIN, VALID = graph()


def model(**options):
    """As UltraE has it, with as many signs +1 as −1 and a logistic loss, but small."""
    defaults = {"n_negatives": 6, "batch_size": 16, "max_epochs": 6, "valid_every": 2}
    defaults |= {"signature": [1] * 4 + [-1] * 4, "radius": 1.0, "loss": "logistic"}
    return ob.kg.UltraE(N_ENTITIES, N_RELATIONS, DIM, **(defaults | options))


def arrays_of(estimator):
    """The arrays of the file of a model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        estimator.save(path)
        with np.load(path) as archive:
            return dict(archive)


def state_of(estimator, name="state"):
    """Rows of entities, relation matrices and the memory of their updates ("state" or "best")."""
    arrays = arrays_of(estimator)
    return tuple(arrays[f"{name}.{k}"] for k in range(3))


def with_state(estimator, state):
    """The model of a file with another state."""
    changed = {f"best.{k}": array for k, array in enumerate(state)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        np.savez(path, **{**arrays_of(estimator), **changed})
        return ob.kg.UltraE.load(path)
