"""Checks of sizes, starts, exceptions and models from files."""

from __future__ import annotations

import io
import json
import pickle

import numpy as np
import pytest

import orthobcd as ob
from orthobcd import _core

A = np.random.default_rng(0).standard_normal((12, 8))
C = -A.T @ A
J = [1, 1, 1, 1, -1, -1, -1, -1]

SIZES = {
    "C": lambda s: ob.Quadratic(C * s),
    "linear": lambda s: ob.Quadratic(C * 0.0, linear=A[:8] * s),
    "D": lambda s: ob.Quadratic(C, D=np.eye(3) * s),
    "A": lambda s: ob.GramQuadratic(A * s),
    "scale": lambda s: ob.GramQuadratic(A, scale=s),
    "A of PCA": lambda s: ob.SparsePCAProblem(A * s, 2, ob.L0(1.0), center=True),
    "A of nonnegative PCA": lambda s: ob.NonnegativePCAProblem(A * s, 2),
    "A of pencils": lambda s: ob.HyperbolicEigenvalueProblem(A * s, J),
    "C of hyperbolic PCA": lambda s: ob.HyperbolicPCAProblem(-C * s, J, 2),
    "A of a loss": lambda s: ob.LogisticLoss(A * s, A[:, :3], np.ones(12)),
    "B of a loss": lambda s: ob.LogisticLoss(A, A[:, :3] * s, np.ones(12)),
    "D of a probe": lambda s: ob.HyperbolicStructuralProbeProblem(A * s, J),
    "X": lambda s: ob.SparsePCA(2).fit(A * s),
}


@pytest.mark.parametrize("size", [1e160, 1e-160])
@pytest.mark.parametrize("case", SIZES)
def test_products_that_overflow_or_vanish_are_refused(case, size):
    if (case, size) == ("D", 1e-160):
        size = 1e-130
    name = "C" if (case, size) == ("D", 1e-130) else case.split()[0]
    with pytest.raises(ValueError, match=rf"\b{name}\b.*magnitude"):
        SIZES[case](size)


@pytest.mark.parametrize("size", [1e308, 1e121])
def test_weights_that_overflow_are_refused(size):
    for make in (ob.L0, ob.L1, lambda s: ob.L1(np.full((8, 3), s))):
        with pytest.raises(ValueError, match=r"\blam\b"):
            make(size)


def test_python_and_the_core_accept_the_same():
    assert _core.COEFFICIENTS == (1e-120, 1e120)
    assert _core.DATA == (1e-50, 1e50)


@pytest.mark.parametrize("size", [0.0, 1e-118, 1e-40, 1e40, 1e118])
@pytest.mark.parametrize("penalty", [ob.L0, ob.L1, None], ids=["l0", "l1", "nonnegative"])
def test_what_is_accepted_is_valued(size, penalty):
    h = ob.NonNegative() if penalty is None else penalty(0.5 * size)
    problem = ob.StiefelProblem(ob.Quadratic(C * size), h, 2)
    result = ob.solve(problem, solver=ob.OBCD(), max_sweeps=50)
    assert np.isfinite(result.objective)
    assert result.feasibility < 1e-12
    value = 0.5 * np.vdot(result.x, C @ result.x) * size
    assert result.smooth_value == pytest.approx(value, rel=1e-12)
    assert np.diff(result.history["objective"]).max(initial=0.0) <= 0.0


def test_small_and_large_data_are_fitted():
    known = ob.NonnegativePCA(2, random_state=0).fit(A).explained_variance_ratio_.sum()
    for size in (1e-45, 1e45):
        pca = ob.NonnegativePCA(2, random_state=0).fit(A * size)
        np.testing.assert_allclose(
            pca.explained_variance_.sum(), known * np.var(A * size, axis=0, ddof=1).sum(), rtol=1e-3
        )


# Starts ------------------------------------------------------------------------------------------


def test_a_negative_start_is_refused_under_a_mixed_signature():
    problem = ob.JOrthogonalProblem(ob.Quadratic(-C), J, ob.NonNegative())
    for solver in (ob.JOBCD(), None):
        with pytest.raises(ValueError, match=r"\bx0\b"):
            ob.solve(problem, "random", solver=solver)
        result = ob.solve(problem, solver=solver, max_sweeps=3)
        assert result.x.min() >= 0.0


def test_logistic_losses_are_solved_by_default():
    rng = np.random.default_rng(0)
    loss = ob.LogisticLoss(rng.standard_normal((40, 6)), rng.standard_normal((40, 6)), np.ones(40))
    for signs in ([1, 1, 1, -1, -1, -1], [1] * 6, [-1] * 6):
        problem = ob.JOrthogonalProblem(loss, signs)
        result = ob.solve(problem, max_sweeps=30)
        first = result.history["objective"][0]
        assert result.objective < first
        j = np.diag(np.asarray(signs, float))
        gap = np.linalg.norm(result.x.T @ j @ result.x - j)
        assert gap <= 1e-11 * max(1.0, np.vdot(result.x, result.x))


def test_the_probe_is_not_certified():
    probe = ob.HyperbolicStructuralProbeProblem(A, J)
    with pytest.raises(TypeError, match=r"problem must not have a HyperbolicStructuralProbe"):
        ob.certify(probe, np.eye(8))


def test_there_is_one_random_j_orthogonal():
    from orthobcd_bench import baselines

    assert not hasattr(baselines, "random_j_orthogonal")


# Exceptions --------------------------------------------------------------------------------------

PROBLEM = ob.StiefelProblem(ob.Quadratic(C), ob.L1(0.5), 3)


class Closed(Exception):
    """Takes no attributes."""

    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError("no attributes here")


def raising(error: BaseException):
    def callback(*_: object) -> None:
        raise error

    return callback


SOLVES = {
    "OBCD": lambda call: ob.solve(PROBLEM, "random", solver=ob.OBCD(), callback=call),
    "Auto": lambda call: ob.solve(PROBLEM, callback=call),
    "Path": lambda call: ob.solve(PROBLEM, solver=ob.Continuation(), callback=call),
    "JOBCD": lambda call: ob.solve(ob.HyperbolicEigenvalueProblem(A, J), "random", callback=call),
    "sum": lambda call: ob.solve(ob.HyperbolicStructuralProbeProblem(A, J), callback=call),
    "count": lambda call: ob.solve(
        ob.StiefelProblem(ob.Quadratic(C), ob.Cardinality(12), 3), callback=call
    ),
    "rows": lambda call: ob.solve(
        ob.StiefelProblem(ob.Quadratic(C), ob.RowSparse(1.0), 3), callback=call
    ),
}


@pytest.mark.parametrize("name", SOLVES)
def test_what_a_callback_raises_comes_out(name):
    for kind in (KeyboardInterrupt, SystemExit, ValueError):
        error = kind("mine")
        with pytest.raises(kind) as caught:
            SOLVES[name](raising(error))
        assert caught.value is error
        assert isinstance(error.result, ob.Result)
    closed = Closed("mine")
    with pytest.raises(Closed) as caught_closed:
        SOLVES[name](raising(closed))
    assert caught_closed.value is closed


# Models from files -------------------------------------------------------------------------------

TRIPLES = np.stack([np.arange(12), np.zeros(12, int), (np.arange(12) + 1) % 12], axis=1)


def model(**options: object) -> ob.UltraE:
    few = {"n_negatives": 4, "max_epochs": 2, "valid_every": 1, **options}
    return ob.UltraE(12, 1, 4, **few)


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
        if name in arrays and name != "header":
            arrays[name] = change(arrays[name])
        elif name in header:
            header[name] = change
        else:
            header["options"][name] = change
    arrays["header"] = np.array(json.dumps(header))
    np.savez(path, **arrays)


def nan_in(array):
    array = array.copy()
    array.flat[0] = np.nan
    return array


CHANGES = {
    "nan state": {"state_0": nan_in},
    "nan best": {"best_0": nan_in},
    "infinite relations": {"state_1": lambda a: a * np.inf},
    "too many entities": {"n_entities": 10**12},
    "one entity more": {"n_entities": 13},
    "two relations": {"n_relations": 2},
    "dim": {"dim": 6},
    "rows": {"state_0": lambda a: a[:-1]},
    "columns": {"state_0": lambda a: a[:, :-1]},
    "memory": {"state_2": lambda a: np.zeros((1, 7))},
    "type": {"best_1": lambda a: a.astype(complex)},
    "curve": {"history_loss": lambda a: a[:-1]},
    "validations": {"history_valid_mrr": lambda a: np.append(a, 0.5)},
    "epochs": {"n_epochs": 7},
    "epochs as text": {"n_epochs": "two"},
    "best epoch": {"best_epoch": 9},
    "status": {"status": "done"},
    "relations": {"relations": "some"},
    "margin": {"margin": "wide"},
    "best mrr": {"best_mrr": "high"},
    "signature": {"signature": lambda a: a[:-1]},
}


@pytest.mark.parametrize("relations", ["jobcd", "csdm", "frozen"])
def test_a_model_comes_back(relations, tmp_path):
    saved = model(relations=relations).fit(TRIPLES, TRIPLES[:3])
    saved.save(tmp_path / "model.npz")
    loaded = ob.UltraE.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.entities_, saved.entities_)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]


@pytest.mark.parametrize("case", CHANGES)
def test_changed_models_are_refused(case, tmp_path):
    path = tmp_path / "model.npz"
    model().fit(TRIPLES, TRIPLES[:3]).save(path)
    changed(path)
    ob.UltraE.load(path)
    changed(path, **CHANGES[case])
    with pytest.raises(ValueError, match=r"model\.npz is not a file of UltraE\.save"):
        ob.UltraE.load(path)


def test_a_checkpoint_with_a_nan_is_refused(tmp_path):
    path = tmp_path / "state.npz"
    model(max_epochs=1).fit(TRIPLES, checkpoint=path)
    changed(path, state_0=nan_in)
    with pytest.raises(ValueError, match="state_0"):
        model(max_epochs=2).fit(TRIPLES, checkpoint=path)


def truncated(path):
    path.write_bytes(path.read_bytes()[:-200])


def array_file() -> bytes:
    content = io.BytesIO()
    np.save(content, np.eye(2))
    return content.getvalue()


def damaged(path):
    content = bytearray(path.read_bytes())
    content[100:140] = bytes(40)
    path.write_bytes(bytes(content))


FILES = {
    "empty": lambda p: p.write_bytes(b""),
    "text": lambda p: p.write_text("hello"),
    "zip": lambda p: p.write_bytes(b"PK\x03\x04" + bytes(30)),
    "truncated": truncated,
    "damaged": damaged,
    "pickle": lambda p: p.write_bytes(pickle.dumps({})),
    "other arrays": lambda p: np.savez(p, x=np.eye(2)),
    "one array": lambda p: p.write_bytes(array_file()),
    "header of a list": lambda p: np.savez(p, header=np.array("[1]"), signature=np.ones(2)),
    "header of a number": lambda p: np.savez(p, header=np.array("1")),
    "header no json": lambda p: np.savez(p, header=np.array("{"), signature=np.ones(2)),
    "empty header": lambda p: np.savez(p, header=np.array("{}"), signature=np.ones(2)),
    "options a number": lambda p: np.savez(
        p, header=np.array('{"options": 3, "status": 1, "triples": []}'), signature=np.ones(2)
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_other_files_are_refused(case, tmp_path):
    path = tmp_path / "model.npz"
    model().fit(TRIPLES).save(path)
    FILES[case](path)
    with pytest.raises(ValueError, match=r"model\.npz is not a file of UltraE\.save"):
        ob.UltraE.load(path)


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        ob.UltraE.load(tmp_path / "none.npz")


# State of a fitted estimator ---------------------------------------------------------------------


def test_a_fitted_estimator_keeps_no_points_of_its_path():
    X = np.random.default_rng(0).standard_normal((30, 40))
    for options in ({"n_nonzero": 20}, {"alpha": 0.2}):
        pca = ob.SparsePCA(3, solver=ob.OBCD(), random_state=0, **options).fit(X)
        path = pca.path_
        assert path.results == ()
        assert len(path) == len(path.alphas) == len(path.objective) > 1
        assert path.n_nonzero[0] <= path.n_nonzero[-1]
        assert len(pickle.dumps(path)) < 8 * 40 * 3 * len(path)
    explicit = ob.regularization_path(X, 3, n_alphas=3)
    assert len(explicit.results) == len(explicit) == 3
