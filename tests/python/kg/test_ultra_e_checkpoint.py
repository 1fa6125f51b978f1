"""`checkpoint` of `UltraE.fit`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import orthobcd as ob

from ..conftest import ROOT
from .graphs import N_ENTITIES, TRAIN, VALID, model


def test_checkpoint_gives_the_same_curve(tmp_path):
    whole = model(max_epochs=7).fit(TRAIN, VALID)
    path = tmp_path / "half.npz"
    model(max_epochs=4).fit(TRAIN, VALID, checkpoint=path)
    resumed = model(max_epochs=7).fit(TRAIN, VALID, checkpoint=path)
    for name in ("epoch", "loss", "valid_epoch", "valid_mrr"):
        # The seventh epoch is validated because it is the last, as the fourth was.
        np.testing.assert_array_equal(resumed.history_[name], whole.history_[name])
    np.testing.assert_array_equal(resumed.entities_, whole.entities_)
    np.testing.assert_array_equal(resumed.relations_, whole.relations_)
    for other in ({"seed": 1}, {"margin": 4.0}, {"signature": np.tile([1, -1], 4)}):
        with pytest.raises(ValueError, match=next(iter(other))):
            model(max_epochs=7, **other).fit(TRAIN, VALID, checkpoint=path)
    with pytest.raises(ValueError, match="triples"):
        model(max_epochs=7).fit(TRAIN[1:], VALID, checkpoint=path)


def full(*arguments):
    raise OSError(28, "No space left on device")


UNWRITABLE = {
    "no folder": ("none/state.npz", None, {}),
    "too long": ("n" * 300 + ".npz", None, {}),
    "full": ("state.npz", ("os.replace", full), {}),
    "not JSON": ("state.npz", None, {"entity_names": list(map(complex, range(N_ENTITIES)))}),
}


@pytest.mark.parametrize("way", UNWRITABLE)
def test_a_checkpoint_that_cannot_be_written_does_not_end_training(way, tmp_path, monkeypatch):
    name, broken, options = UNWRITABLE[way]
    if broken is not None:
        monkeypatch.setattr(*broken)
    whole = model().fit(TRAIN, VALID)
    with pytest.warns(RuntimeWarning, match="checkpoint") as caught:
        trained = model(**options).fit(TRAIN, VALID, checkpoint=tmp_path / name)
    # Every due write is tried again.
    assert len(caught) == trained.n_epochs_ == 6
    np.testing.assert_array_equal(trained.entities_, whole.entities_)
    np.testing.assert_array_equal(trained.relations_, whole.relations_)
    assert list(tmp_path.iterdir()) == []
    # If warnings are errors, the model is that of the first epoch.
    strict = model(**options)
    with pytest.raises(RuntimeWarning, match="checkpoint"):
        strict.fit(TRAIN, checkpoint=tmp_path / name)
    assert strict.score_triples(TRAIN).shape == (len(TRAIN),)
    # The last write, after a callback that stops, warns too.
    with pytest.warns(RuntimeWarning, match="checkpoint"):
        stopped = model(**options).fit(
            TRAIN, checkpoint=tmp_path / name, checkpoint_every=4, callback=lambda event: True
        )
    assert stopped.status_ is ob.Status.INTERRUPTED


def test_a_checkpoint_is_written_again_when_there_is_room(tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    replace, calls = os.replace, []

    def sometimes(*arguments):
        calls.append(arguments)
        return full() if len(calls) in (2, 3) else replace(*arguments)

    monkeypatch.setattr("os.replace", sometimes)
    with pytest.warns(RuntimeWarning, match="No space left") as caught:
        model(max_epochs=4).fit(TRAIN, VALID, checkpoint=path)
    assert len(caught) == 2
    assert ob.kg.UltraE.load(path).n_epochs_ == 4


KILLED = """
import sys, numpy as np
sys.path.insert(0, {root!r})
from tests.python.kg.graphs import TRAIN, VALID, model
model(max_epochs=60, valid_every=5).fit(
    TRAIN, VALID, checkpoint={path!r},
    callback=lambda event: print(int(event["epoch"]), flush=True),
)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_fit_goes_on_with_the_same_curve(tmp_path):
    path = tmp_path / "state.npz"
    script = KILLED.format(root=str(ROOT), path=str(path))
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        while int(child.stdout.readline()) < 17:
            pass
        os.kill(child.pid, signal.SIGKILL)
    done = ob.kg.UltraE.load(path).n_epochs_
    assert 17 <= done < 60
    resumed = model(max_epochs=60, valid_every=5).fit(TRAIN, VALID, checkpoint=path)
    whole = model(max_epochs=60, valid_every=5).fit(TRAIN, VALID)
    for name in ("epoch", "loss", "valid_epoch", "valid_mrr"):
        np.testing.assert_array_equal(resumed.history_[name], whole.history_[name])
    np.testing.assert_array_equal(resumed.entities_, whole.entities_)
