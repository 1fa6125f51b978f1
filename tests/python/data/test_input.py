"""Bad input is refused before any work, by a message that names the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import orthobcd as ob

from ..conftest import SHORT
from ..strategies import LAYOUTS

A = np.random.default_rng(0).standard_normal((12, 8))
C = -A.T @ A
NAN = np.where(np.eye(8, dtype=bool), np.nan, C)
INF = np.where(np.eye(12, 8, dtype=bool), np.inf, A)
SKEW = C + np.triu(np.ones((8, 8)), 1)
GOOD = ob.StiefelProblem(ob.Quadratic(C), ob.L0(1.0), 3)


def problem(**changes: Any) -> ob.StiefelProblem:
    fields = {"smooth": ob.Quadratic(C), "penalty": ob.L1(0.5), "n_components": 3}
    return ob.StiefelProblem(**{**fields, **changes})


BAD_VALUES = {
    "C not square": ("C", lambda: ob.Quadratic(A)),
    "C one-dimensional": ("C", lambda: ob.Quadratic(np.ones(4))),
    "C three-dimensional": ("C", lambda: ob.Quadratic(np.ones((2, 2, 2)))),
    "C empty": ("C", lambda: ob.Quadratic(np.zeros((0, 0)))),
    "C NaN": ("C", lambda: ob.Quadratic(NAN)),
    "C infinite": ("C", lambda: ob.Quadratic(np.where(np.eye(8) > 0, np.inf, C))),
    "C not symmetric": ("C", lambda: ob.Quadratic(SKEW)),
    "linear rows": ("linear", lambda: ob.Quadratic(C, linear=np.ones((7, 3)))),
    "linear NaN": ("linear", lambda: ob.Quadratic(C, linear=np.full((8, 3), np.nan))),
    "linear one-dimensional": ("linear", lambda: ob.Quadratic(C, linear=np.ones(8))),
    "D not symmetric": ("D", lambda: ob.Quadratic(C, D=np.triu(np.ones((3, 3))))),
    "D not square": ("D", lambda: ob.Quadratic(C, D=np.ones((3, 2)))),
    "D against linear": ("D", lambda: ob.Quadratic(C, np.ones((8, 3)), np.eye(2))),
    "D NaN": ("D", lambda: ob.Quadratic(C, D=np.full((3, 3), np.nan))),
    "A empty": ("A", lambda: ob.GramQuadratic(np.zeros((0, 5)))),
    "A no features": ("A", lambda: ob.GramQuadratic(np.zeros((5, 0)))),
    "A NaN": ("A", lambda: ob.GramQuadratic(np.full((3, 3), np.nan))),
    "A infinite": ("A", lambda: ob.GramQuadratic(INF)),
    "A one-dimensional": ("A", lambda: ob.GramQuadratic(np.ones(5))),
    "scale NaN": ("scale", lambda: ob.GramQuadratic(A, scale=np.nan)),
    "mean length": ("mean", lambda: ob.GramQuadratic(A, mean=np.zeros(5))),
    "mean NaN": ("mean", lambda: ob.GramQuadratic(A, mean=np.full(8, np.nan))),
    "l0 negative": ("lam", lambda: ob.L0(-1.0)),
    "l0 NaN": ("lam", lambda: ob.L0(np.nan)),
    "l0 infinite": ("lam", lambda: ob.L0(np.inf)),
    "l1 negative": ("lam", lambda: ob.L1(-1e-9)),
    "l1 NaN": ("lam", lambda: ob.L1(np.nan)),
    "l1 negative weight": ("lam", lambda: ob.L1(np.full((8, 3), -1.0))),
    "l1 NaN weight": ("lam", lambda: ob.L1(np.full((8, 3), np.nan))),
    "l1 one-dimensional": ("lam", lambda: ob.L1(np.ones(8))),
    "l0 one-dimensional": ("lam", lambda: ob.L0(np.ones(3))),
    "l1 shape": ("lam", lambda: problem(penalty=ob.L1(np.ones((8, 2))))),
    "r zero": ("n_components", lambda: problem(n_components=0)),
    "r negative": ("n_components", lambda: problem(n_components=-1)),
    "r above n": ("n_components", lambda: problem(n_components=9)),
    "r against linear": (
        "n_components",
        lambda: problem(smooth=ob.Quadratic(C, linear=np.ones((8, 2)))),
    ),
    "r against D": ("n_components", lambda: problem(smooth=ob.Quadratic(C, D=np.eye(2)))),
    "n one": ("n = 1", lambda: problem(smooth=ob.Quadratic([[1.0]]), n_components=1)),
    "pca r above n": ("n_components", lambda: ob.SparsePCAProblem(A, 9, ob.L0(1.0))),
    "pca r zero": ("n_components", lambda: ob.SparsePCAProblem(A, 0, ob.L0(1.0))),
    "pca n one": ("n = 1", lambda: ob.SparsePCAProblem(np.ones((5, 1)), 1, ob.L0(1.0))),
    "pca empty": ("A", lambda: ob.SparsePCAProblem(np.zeros((0, 4)), 1, ob.L0(1.0))),
    "pca NaN": ("A", lambda: ob.SparsePCAProblem(INF, 2, ob.L0(1.0))),
    "nonneg r above n": ("n_components", lambda: ob.NonnegativePCAProblem(A, 9)),
    "nonneg NaN": ("A", lambda: ob.NonnegativePCAProblem(INF, 2)),
    "working_set unknown": ("working_set", lambda: ob.OBCD(working_set="greedy")),
    "update unknown": ("update", lambda: ob.OBCD(update="both")),
    "curvature unknown": ("curvature", lambda: ob.OBCD(curvature="loose")),
    "side unknown": ("side", lambda: ob.OBCD(side="left")),
    "k above n": ("block_size", lambda: ob.solve(GOOD, solver=ob.OBCD(block_size=9))),
    "cycle too long": (
        "block_size",
        lambda: ob.solve(
            ob.StiefelProblem(ob.Quadratic(np.eye(393)), ob.NoPenalty(), 1),
            solver=ob.OBCD(working_set="cyclic", block_size=3),
        ),
    ),
    "x0 unknown": ("x0", lambda: ob.solve(GOOD, "best")),
    "x0 shape": ("x0", lambda: ob.solve(GOOD, np.eye(8))),
    "x0 one-dimensional": ("x0", lambda: ob.solve(GOOD, np.ones(8))),
    "x0 NaN": ("x0", lambda: ob.solve(GOOD, np.full((8, 3), np.nan))),
    "x0 not orthonormal": ("x0", lambda: ob.solve(GOOD, np.ones((8, 3)))),
    "x0 slightly off": ("x0", lambda: ob.solve(GOOD, np.eye(8)[:, :3] * (1 + 1e-6))),
    "x0 negative": (
        "x0",
        lambda: ob.solve(ob.NonnegativePCAProblem(A, 3), -np.eye(8)[:, :3]),
    ),
    "x0 rank": ("x0", lambda: ob.solve(GOOD, np.ones((8, 3)), project_x0=True)),
    "target NaN": ("target", lambda: ob.solve(GOOD, target=np.nan)),
    "n_threads zero": ("n_threads", lambda: ob.solve(GOOD, n_threads=0)),
}

BAD_TYPES = {
    "C text": ("C", lambda: ob.Quadratic([["a", "b"], ["c", "d"]])),
    "C complex": ("C", lambda: ob.Quadratic(C.astype(complex))),
    "C ragged": ("C", lambda: ob.Quadratic([[1.0], [1.0, 2.0]])),
    "C None": ("C", lambda: ob.Quadratic(None)),
    "A objects": ("A", lambda: ob.GramQuadratic(np.array([[object()]]))),
    "lam text": ("lam", lambda: ob.L0("one")),
    "lam object": ("lam", lambda: ob.L0({1: 2})),
    "lam None": ("lam", lambda: ob.L1(None)),
    "lam bool": ("lam", lambda: ob.L0(True)),
    "smooth": ("smooth", lambda: problem(smooth=C)),
    "penalty": ("penalty", lambda: problem(penalty=0.5)),
    "n_components float": ("n_components", lambda: problem(n_components=3.0)),
    "n_components bool": ("n_components", lambda: problem(n_components=True)),
    "center": ("center", lambda: ob.SparsePCAProblem(A, 3, ob.L0(1.0), center=1)),
    "working_set": ("working_set", lambda: ob.OBCD(working_set=3)),
    "problem": ("problem", lambda: ob.solve(C)),
    "solver": ("solver", lambda: ob.solve(GOOD, solver="obcd")),
    "x0 text array": ("x0", lambda: ob.solve(GOOD, np.full((8, 3), "a"))),
    "seed None": ("seed", lambda: ob.solve(GOOD, seed=None)),
    "n_threads float": ("n_threads", lambda: ob.solve(GOOD, n_threads=2.0)),
    "callback": ("callback", lambda: ob.solve(GOOD, callback=3)),
    "verbose": ("verbose", lambda: ob.solve(GOOD, verbose="yes")),
    "project_x0": ("project_x0", lambda: ob.solve(GOOD, project_x0="yes")),
}


@pytest.mark.parametrize("case", BAD_VALUES)
def test_bad_value(case):
    name, call = BAD_VALUES[case]
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        call()


# NumPy 1.23 warns before it makes an array of objects of a ragged list.
@pytest.mark.filterwarnings("ignore:Creating an ndarray from ragged")
@pytest.mark.parametrize("case", BAD_TYPES)
def test_bad_type(case):
    name, call = BAD_TYPES[case]
    with pytest.raises(TypeError, match=rf"\b{name}\b"):
        call()


def test_bad_sparse():
    bad = sparse.csr_array(A)
    bad.data[0] = np.nan
    for call in (ob.GramQuadratic, lambda S: ob.SparsePCAProblem(S, 2, ob.L0(1.0))):
        with pytest.raises(ValueError, match=r"\bA\b"):
            call(bad)
        with pytest.raises(ValueError, match=r"\bA\b"):
            call(sparse.csr_array((0, 4)))
    with pytest.raises(TypeError, match=r"\bC\b"):
        ob.Quadratic(sparse.csr_array(C))
    with pytest.raises(TypeError, match=r"\bA\b"):
        ob.GramQuadratic(sparse.csr_array(A.astype(complex)))


OTHERS = {
    **LAYOUTS,
    "integer": lambda a: a.astype(np.int32),
    "uint8": lambda a: a.astype(np.uint8),
    "bool": lambda a: a.astype(bool),
    "float32": lambda a: a.astype(np.float32),
    "float16": lambda a: a.astype(np.float16),
}


def test_dense_data_are_kept_by_columns_and_once():
    A = np.random.default_rng(2).standard_normal((70, 700))
    by_columns = np.asfortranarray(A)
    problems = [ob.SparsePCAProblem(data, 2, ob.L0(1.0)) for data in (A, by_columns)]
    for problem in problems:
        assert problem.A is problem.smooth.A
        assert problem.A.flags.f_contiguous
        np.testing.assert_array_equal(problem.A, A)
    assert np.shares_memory(problems[1].A, by_columns)
    first, second = (ob.solve(p, solver=ob.OBCD(), max_sweeps=2).x for p in problems)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("layout", OTHERS)
def test_every_layout_is_accepted(layout):
    whole = (np.random.default_rng(1).random((9, 6)) < 0.5).astype(float)
    change = OTHERS[layout]
    gram = whole.T @ whole
    small = gram / 8.0 if layout == "float16" else gram
    symmetric = (small > 1.0).astype(float) if layout == "bool" else small
    start = np.eye(6)[:, :2]

    def solve(smooth, x0):
        problem = ob.StiefelProblem(smooth, ob.L1(0.1), 2)
        return ob.solve(problem, x0, max_work=SHORT).objective

    assert solve(ob.GramQuadratic(change(whole)), change(start)) == solve(
        ob.GramQuadratic(whole), start
    )
    assert solve(ob.Quadratic(change(symmetric)), start) == solve(ob.Quadratic(symmetric), start)
    pca, plain = (ob.SparsePCAProblem(data, 2, ob.L0(0.1)) for data in (change(whole), whole))
    assert ob.solve(pca, max_work=SHORT).objective == ob.solve(plain, max_work=SHORT).objective


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_every_sparse_format_is_accepted(kind):
    dense = np.where(np.abs(A) > 0.7, A, 0.0)
    whole = ob.SparsePCAProblem(dense, 2, ob.L0(0.5))
    points = (np.eye(8, 2), ob.solve(whole, max_work=SHORT).x)
    for dtype in (np.float64, np.float32):
        for container in (f"{kind}_matrix", f"{kind}_array"):
            S = getattr(sparse, container)(dense.astype(dtype))
            problem = ob.SparsePCAProblem(S, 2, ob.L0(0.5))
            for x in points:
                expected = ob.value(whole, x).objective
                assert ob.value(problem, x).objective == pytest.approx(expected, rel=1e-5)
            found = ob.solve(problem, max_work=SHORT)
            assert found.objective == pytest.approx(ob.value(whole, found.x).objective, rel=1e-5)


@pytest.mark.parametrize("index", [-1, 2, 3, 9])
def test_indices_of_block_matrices_count_blocks(index):
    """Of four columns in blocks of two, which are blocks 0 and 1."""
    S = sparse.bsr_array(np.eye(4), blocksize=(2, 2))
    np.testing.assert_array_equal(ob.GramQuadratic(S).A.toarray(), np.eye(4))
    S.indices = np.array([0, index], dtype=S.indices.dtype)
    with pytest.raises(ValueError, match="A must have valid indices"):
        ob.GramQuadratic(S)


@pytest.mark.parametrize("kind", ["row", "col"])
def test_indices_of_coordinates_are_checked(kind):
    S = sparse.coo_array(np.eye(3))
    getattr(S, kind)[1] = 3
    with pytest.raises(ValueError, match="A must have valid indices"):
        ob.GramQuadratic(S)
    with pytest.raises(ValueError, match=r"A must have 2 dimension"):
        ob.GramQuadratic(sparse.coo_array(np.ones(3)))


def test_duplicate_entries_are_added():
    rows, cols = np.array([0, 0, 1, 2]), np.array([0, 0, 1, 2])
    S = sparse.coo_array((np.array([1.0, 2.0, 1.0, 1.0]), (rows, cols)), shape=(3, 3))
    result = ob.solve(ob.StiefelProblem(ob.GramQuadratic(S), ob.NoPenalty(), 1))
    assert result.objective == pytest.approx(-4.5)


def test_the_input_is_left_alone():
    data = A.copy()
    x0 = np.eye(8)[:, :3]
    kept = x0.copy()
    ob.solve(ob.SparsePCAProblem(data, 3, ob.L0(1.0), center=True), x0)
    assert np.array_equal(data, A)
    assert np.array_equal(x0, kept)


def test_an_infeasible_start_can_be_projected():
    x0 = np.random.default_rng(3).standard_normal((8, 3))
    result = ob.solve(GOOD, x0, project_x0=True, max_sweeps=0)
    assert result.feasibility < 1e-13
    u, _, vt = np.linalg.svd(x0, full_matrices=False)
    np.testing.assert_allclose(result.x, u @ vt, atol=1e-12)
    nonneg = ob.solve(ob.NonnegativePCAProblem(A, 3), x0, project_x0=True, max_sweeps=0)
    assert nonneg.x.min() >= 0.0
    assert nonneg.feasibility < 1e-13


def test_dataclasses_are_frozen():
    for value, field in ((GOOD, "n_components"), (ob.L0(1.0), "lam"), (ob.OBCD(), "proximal")):
        with pytest.raises(AttributeError):
            setattr(value, field, 2)


@pytest.mark.parametrize("size", [1e-100, 1e-9, 1.0, 1e100])
def test_asymmetry_is_relative_to_the_size_of_a_matrix(size):
    for scale, good in ((1e-15, True), (1e-6, False)):
        nearly = size * C
        nearly[0, 1] += scale * size
        if good:
            assert ob.Quadratic(nearly).n_rows == len(C)
        else:
            with pytest.raises(ValueError, match="C must be symmetric"):
                ob.Quadratic(nearly)


def test_a_matrix_that_is_symmetric_up_to_rounding_is_made_symmetric():
    nearly = C.copy()
    nearly[0, 1] *= 1 + 1e-15
    assert nearly[0, 1] != nearly[1, 0]
    made = ob.Quadratic(nearly).C
    np.testing.assert_array_equal(made, made.T)
    np.testing.assert_allclose(made, C, rtol=1e-14)
    np.testing.assert_array_equal(ob.Quadratic(C).C, C)


def test_sizes_that_overflow_or_vanish_are_refused():
    for fine in (0.0, 1e-50, 1e50):
        ob.GramQuadratic(np.full((2, 2), fine))
    for size in (0.99e-50, 1.01e50):
        with pytest.raises(ValueError, match=r"^A must be zero or .* between 1e-50 and 1e\+50"):
            ob.GramQuadratic(np.full((2, 2), size))
    ob.Quadratic(np.full((2, 2), 1e120), linear=np.full((2, 1), 1e120))
    with pytest.raises(ValueError, match=r"^C must be at most 1e\+120"):
        ob.Quadratic(np.full((2, 2), 1.01e120))
    with pytest.raises(ValueError, match=r"^linear must be at most 1e\+120"):
        ob.Quadratic(np.eye(2), linear=np.full((2, 1), 1.01e120))
