"""A small graph and a model of it."""

from __future__ import annotations

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
