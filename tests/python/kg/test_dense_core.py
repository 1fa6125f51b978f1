"""`dense_core`: the part of a graph in which all are known often."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob

from .graphs import TRAIN


@pytest.mark.parametrize("shift", [1, 10**6, 2**62])
def test_the_dense_core_depends_on_the_order_of_the_numbers_alone(shift):
    triples = TRAIN
    core, entities, relations = ob.kg.dense_core(triples, 12)
    far = triples + np.array([shift, 0, shift])
    same, moved, kinds = ob.kg.dense_core(far, 12)
    np.testing.assert_array_equal(same, core)
    np.testing.assert_array_equal(moved, entities + shift)
    np.testing.assert_array_equal(kinds, relations)


def test_dense_core_by_hand():
    # 5 is linked to 4, and 4 to the square 0-3; of 1 and 3 (both of degree 2) 3 is removed.
    square = [[0, 7, 1], [1, 7, 2], [2, 7, 3], [3, 7, 0], [0, 2, 2]]
    core, entities, relations = ob.kg.dense_core([*square, [4, 7, 0], [5, 9, 4]], 4)
    assert core.tolist() == [[0, 1, 1], [1, 1, 2], [2, 1, 3], [3, 1, 0], [0, 0, 2]]
    assert entities.tolist() == [0, 1, 2, 3]
    assert relations.tolist() == [2, 7]
    smaller, entities, _ = ob.kg.dense_core(square, 3)
    assert entities.tolist() == [0, 1, 2]
    assert smaller.tolist() == [[0, 1, 1], [1, 1, 2], [0, 0, 2]]
    with pytest.raises(ValueError, match="n_entities"):
        ob.kg.dense_core(square, 0)
