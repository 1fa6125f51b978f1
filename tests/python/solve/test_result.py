"""`Result` in files and as text, meanings of options, and errors about missing extras."""

from __future__ import annotations

import sys
from dataclasses import is_dataclass

import numpy as np
import pytest

import orthobcd as ob
from orthobcd import _core

from ..estimators.test_save import changed

A = np.random.default_rng(0).standard_normal((30, 8))
J = [1, 1, 1, 1, -1, -1, -1, -1]
PROBLEM = ob.SparsePCAProblem(A, 3, ob.L0(1.0))

RESULTS = {
    "auto": lambda: ob.solve(PROBLEM, max_sweeps=30),
    "continuation": lambda: ob.solve(PROBLEM, solver=ob.Continuation()),
    "eigenvalues": lambda: ob.solve(ob.HyperbolicEigenvalueProblem(A, J)),
    "sampled": lambda: ob.solve(
        ob.HyperbolicEigenvalueProblem(A, J), solver=ob.VRJOBCD(max_epochs=5)
    ),
    "pairs": lambda: ob.solve(PROBLEM, solver=ob.OBCD(), max_sweeps=5),
    "rows": lambda: ob.solve(ob.SparsePCAProblem(A, 2, ob.RowSparse(4)), max_work=0.01),
    "proved": lambda: ob.solve(
        ob.SparsePCAProblem(A, 2, ob.Cardinality(5)), gap_tol=0.1, max_work=0.05
    ),
}


def same(one: object, two: object) -> bool:
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[k], two[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(same, one, two))
    if is_dataclass(one):
        return same(vars(one), vars(two))
    return bool(np.array_equal(one, two))


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_comes_back(kind, tmp_path):
    result = RESULTS[kind]()
    path = tmp_path / "result.npz"
    result.save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.npz"]
    np.load(path, allow_pickle=False).close()
    loaded = ob.Result.load(path)
    for name in result.__dataclass_fields__:
        assert same(getattr(result, name), getattr(loaded, name)), name
    assert repr(loaded) == repr(result)
    assert loaded.message == result.message


@pytest.mark.parametrize("kind", RESULTS)
def test_every_solver_passes_the_same_door(kind, monkeypatch):
    """The core has one function that solves, and a solve calls it once."""
    doors = [name for name in _core.__all__ if name.startswith("solve")]
    assert doors == ["solve"]
    solve, calls = _core.solve, []
    monkeypatch.setattr(_core, "solve", lambda *given: (calls.append(1), solve(*given))[1])
    result = RESULTS[kind]()
    assert len(calls) == 1
    assert result.history["objective"][-1] == result.objective


def test_other_and_changed_files_are_refused(tmp_path):
    path, good = tmp_path / "result.npz", tmp_path / "good.npz"
    RESULTS["continuation"]().save(good)

    def given(name, value):
        return lambda header, _: header["parameters"].update({name: value})

    def flat(header, arrays):
        arrays[header["parameters"]["x"]["__array__"]] = np.ones(3)

    def shorter(header, arrays):
        name = header["parameters"]["history"]["objective"]["__array__"]
        arrays[name] = arrays[name][1:]

    wrong = {
        "x": "hello",
        "history": {"objective": "falls"},
        "path": [{"x": 3}],
        "status": "splendid",
        "starts": [{"strategy": 1}],
    }
    for change in (flat, shorter, *(given(*pair) for pair in wrong.items())):
        changed(good, path, change)
        with pytest.raises(ValueError, match=r"result\.npz is not a file of Result\.save"):
            ob.Result.load(path)
    changed(good, path, lambda header, arrays: header.update(kind="Ranking"))
    with pytest.raises(ValueError, match="it holds a Ranking"):
        ob.Result.load(path)
    with pytest.raises(FileNotFoundError):
        ob.Result.load(tmp_path / "none.npz")


def test_every_status_has_a_message():
    from orthobcd.result import MESSAGES

    assert set(MESSAGES) == set(ob.Status)
    assert "max_sweeps" in ob.solve(PROBLEM, max_sweeps=0).message


@pytest.mark.parametrize("full", [True, False])
def test_a_sweep_is_a_number_of_pairs_and_an_epoch_one_of_rows(full):
    problem = ob.HyperbolicEigenvalueProblem(A, J)
    epochs = ob.solve(problem, solver=ob.VRJOBCD(full, max_epochs=12), tol=0.0)
    sweeps = ob.solve(problem, solver=ob.VRJOBCD(full), tol=0.0, max_sweeps=6)
    for result in (epochs, sweeps):
        assert result.status is ob.Status.MAX_SWEEPS
        assert result.n_sweeps == result.n_iterations // 28
        assert result.extra["n_epochs"] == result.extra["component_gradients"][-1] // 30
        assert len(result.extra["component_gradients"]) == len(result.history["seconds"])
    assert epochs.extra["n_epochs"] == 12
    assert sweeps.n_sweeps == 6
    assert not ob.solve(problem).extra


def test_columns_of_x_are_components():
    problem = ob.hyperbolic.HyperbolicPCAProblem(A.T @ A, J, n_principal=2)
    assert problem.n_components == problem.shape[1] == ob.solve(problem).x.shape[1] == 8
    assert problem.n_principal == 2


def test_arrays_are_shown_by_their_shapes():
    from scipy.sparse import csc_array

    shown = repr(ob.SparsePCAProblem(csc_array(np.eye(9)), 2, ob.L0(0.5)))
    assert shown == (
        "SparsePCAProblem(A=<csc 9x9, 9 stored>, n_components=2, penalty=L0(lam=0.5), center=False)"
    )


def test_a_missing_package_names_its_extra(monkeypatch, tmp_path):
    for name in ("pyarrow", "pyarrow.csv", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    path = tmp_path / "graph.tsv"
    path.write_text("a\tb\tc\n")
    with pytest.raises(ImportError, match=r"pyarrow.*orthobcd\[files\]"):
        ob.kg.load_triples(path)
    with pytest.raises(ImportError, match=r"matplotlib.*orthobcd\[plot\]"):
        ob.plot.path(ob.regularization_path(A, 2, n_alphas=2))
