"""`UltraE.save` and `UltraE.load`: models come back; changed and other files are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import orthobcd as ob

from ..solve.test_callback import raising

TRIPLES = np.stack([np.arange(12), np.zeros(12, int), (np.arange(12) + 1) % 12], axis=1)


def model(**options: object) -> ob.kg.UltraE:
    few = {"n_negatives": 4, "max_epochs": 2, "valid_every": 1, **options}
    return ob.kg.UltraE(12, 1, 4, **few)


def test_keyboard_interrupt_in_a_callback_of_fit_comes_out():
    error = KeyboardInterrupt()
    embedding = model()
    with pytest.raises(KeyboardInterrupt) as caught:
        embedding.fit(TRIPLES, callback=raising(error))
    assert caught.value is error
    assert embedding.n_epochs_ == 1
    assert embedding.status_ is ob.Status.INTERRUPTED


def changed(path, **changes: object) -> None:
    """Write a saved model again with other arrays or another header."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(str(arrays["header"]))
    for name, change in changes.items():
        if name in arrays:
            arrays[name] = change(arrays[name])
        else:
            header["parameters" if name in header["parameters"] else "fitted"][name] = change
    arrays["header"] = np.array(json.dumps(header))
    np.savez(path, **arrays)


def nan_in(array):
    array = array.copy()
    array.flat[0] = np.nan
    return array


CHANGES = {
    "nan state": {"state.0": nan_in},
    "nan best": {"best.0": nan_in},
    "infinite relations": {"state.1": lambda a: a * np.inf},
    "too many entities": {"n_entities": 10**12},
    "one entity more": {"n_entities": 13},
    "two relations": {"n_relations": 2},
    "dim": {"dim": 6},
    "rows": {"state.0": lambda a: a[:-1]},
    "columns": {"state.0": lambda a: a[:, :-1]},
    "memory": {"state.2": lambda a: np.zeros((1, 7))},
    "type": {"best.1": lambda a: a.astype(complex)},
    "curve": {"history.loss": lambda a: a[:-1]},
    "validations": {"history.valid_mrr": lambda a: np.append(a, 0.5)},
    "epochs": {"n_epochs_": 7},
    "epochs as text": {"n_epochs_": "two"},
    "best epoch": {"best_epoch_": 9},
    "status": {"status_": "done"},
    "relations": {"relations": "some"},
    "margin": {"margin": "wide"},
    "best mrr": {"_best_mrr": "high"},
    "negative mrr": {"_best_mrr": -1.0},
    "stale": {"_stale": -1},
    "fingerprint": {"_fingerprint": "none"},
    "fewer arrays": {"_state": {"__tuple__": [{"__array__": "state.0"}]}},
    "signature": {"signature": [1, 1, -1]},
    "reals": {"signature": [1.5, -1.5, 1.5, -1.5]},
    "dimension": {"dim": 30_000, "signature": [1, -1] * 15_000},
    "negatives": {"n_negatives": 10**30},
    "names": {"entity_names": [[0]] * 12},
    "loss": {"loss": {"a": 1}},
    "twice": {"state.1": lambda a: 2.0 * a},
    "off": {"best.1": lambda a: a + 1e-6},
}


@pytest.mark.parametrize("relations", ["jobcd", "page-jobcd", "frozen"])
def test_a_model_comes_back(relations, tmp_path):
    saved = model(relations=relations).fit(TRIPLES, TRIPLES[:3])
    saved.save(tmp_path / "model.npz")
    loaded = ob.kg.UltraE.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.entities_, saved.entities_)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]


def test_a_checkpoint_with_a_nan_is_refused(tmp_path):
    path = tmp_path / "state.npz"
    model(max_epochs=1).fit(TRIPLES, checkpoint=path)
    changed(path, **{"state.0": nan_in})
    with pytest.raises(ValueError, match=r"state\.0"):
        model(max_epochs=2).fit(TRIPLES, checkpoint=path)


@pytest.mark.parametrize("case", CHANGES)
def test_changed_files_are_refused(case, tmp_path):
    path = tmp_path / "model.npz"
    model().fit(TRIPLES, TRIPLES[:3]).save(path)
    changed(path)
    ob.kg.UltraE.load(path)
    changed(path, **CHANGES[case])
    with pytest.raises(ValueError, match=r"model\.npz is not a file of UltraE\.save"):
        ob.kg.UltraE.load(path)


class Mine(ob.kg.UltraE):
    """A class of a user."""


def test_a_model_of_a_subclass_comes_back(tmp_path):
    mine = Mine(12, 1, 4, n_negatives=4, max_epochs=2).fit(TRIPLES)
    mine.save(tmp_path / "model.npz")
    loaded = Mine.load(tmp_path / "model.npz")
    assert type(loaded) is Mine
    np.testing.assert_array_equal(loaded.entities_, mine.entities_)
    with pytest.raises(ValueError, match="it holds a Mine"):
        ob.kg.UltraE.load(tmp_path / "model.npz")
