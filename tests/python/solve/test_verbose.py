"""`verbose`: the live line, the log, and silence where none is asked for."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import orthobcd as ob

A = np.random.default_rng(0).standard_normal((40, 12))
PROBLEM = ob.SparsePCAProblem(A, 3, ob.L0(3.0))


def test_verbose_logs_and_silence_is_the_default(caplog):
    with caplog.at_level("INFO", logger="orthobcd"):
        ob.solve(PROBLEM, max_sweeps=2)
        assert not caplog.records
        ob.solve(PROBLEM, max_sweeps=2, verbose=True)
    assert any("objective" in record.getMessage() for record in caplog.records)


def test_silence_is_the_default(capfd):
    ob.solve(PROBLEM, max_sweeps=3)
    ob.regularization_path(A, 3, n_alphas=3)
    out, err = capfd.readouterr()
    assert out == err == ""


def test_the_line_of_a_solve(capfd):
    result = ob.solve(PROBLEM, solver=ob.OBCD(), verbose=True)
    out, err = capfd.readouterr()
    assert out == ""
    # One line, rewritten in place.
    assert err.count("\n") == 1
    last = err.split("\r")[-1]
    assert f"objective {result.objective:.8g}, {result.n_nonzero} nonzeros" in last


def test_time_left_and_stages(capfd):
    ob.regularization_path(A, 3, n_alphas=4, verbose=True)
    err = capfd.readouterr().err
    assert "path 4 of 4" in err.split("\r")[-1]
    assert err.count("\n") == 1
    ob.solve(PROBLEM, max_time=0.3, verbose=True)
    err = capfd.readouterr().err
    assert " s left" in err
    assert "%" in err


def test_the_line_of_an_estimator(capfd):
    pca = ob.SparsePCA(3, n_nonzero=12, verbose=True, random_state=0).fit(A)
    err = capfd.readouterr().err
    assert "12 nonzeros" in err.split("\r")[-1]
    assert err.count("\n") == 1
    assert pca.n_nonzero_ == 12


def test_the_line_is_closed_when_a_callback_fails(capfd):

    def fails(progress: ob.Progress) -> None:
        raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError, match="from the callback"):
        ob.solve(PROBLEM, verbose=True, callback=fails)
    assert capfd.readouterr().err.endswith("\n")


def test_without_tqdm_the_log_is_shown(monkeypatch, capfd):
    import logging

    logger = logging.getLogger("orthobcd")
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "level", logging.NOTSET)
    ob.solve(PROBLEM, max_sweeps=3, verbose=True)
    assert "objective" in capfd.readouterr().err
