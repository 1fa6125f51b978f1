"""Sparse matrices in files: broken and svmlight ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import orthobcd as ob
from orthobcd import io as files

from .test_tables import read

A = np.random.default_rng(0).standard_normal((12, 4)).round(6)


@pytest.mark.parametrize("name", ["a.svmlight", "a.txt", "a.dat", "a"])
def test_svmlight_is_told_by_its_pairs(name, tmp_path):
    from sklearn.datasets import dump_svmlight_file

    S = np.where(np.abs(A) > 0.5, A, 0.0)
    S[0] = 0.0
    S[:, -1] = 1.0
    dump_svmlight_file(S, np.ones(12), str(tmp_path / name))
    data, _ = read(tmp_path / name)
    np.testing.assert_allclose(data.toarray(), S)


INDPTR = {
    "falling": [0, 9, 2, 3],
    "negative": [0, -1, 2, 3],
    "not from zero": [1, 1, 2, 3],
    "too long": [0, 1, 2, 30],
    "too few": [0, 1, 3],
    "of no entries": [0, 2, 3, 0],
}


def broken(kind: str, indptr, indices):
    """A matrix whose arrays were changed after it was made."""
    S = getattr(sparse, f"{kind}_array")(np.diag([1.0, 2.0, 3.0]))
    S.indptr, S.indices = np.asarray(indptr), np.asarray(indices)
    return S


INDICES = {"too large": [0, 1, 70_000_000], "negative": [0, -5, 1]}
CASES = [(name, indptr, [0, 1, 2]) for name, indptr in INDPTR.items()]
CASES += [(name, [0, 1, 2, 3], indices) for name, indices in INDICES.items()]


@pytest.mark.parametrize("kind", ["csc", "csr"])
@pytest.mark.parametrize(("name", "indptr", "indices"), CASES, ids=[c[0] for c in CASES])
def test_broken_sparse_matrices_are_refused(kind, name, indptr, indices, tmp_path):
    S = broken(kind, indptr, indices)
    for call in (
        ob.GramQuadratic,
        lambda X: ob.SparsePCAProblem(X, 2, ob.L0(1.0), center=True),
        lambda X: ob.NonnegativePCAProblem(X, 2),
        lambda X: ob.HyperbolicEigenvalueProblem(X, [1, 1, -1]),
        lambda X: ob.lam_max(X, 2),
    ):
        with pytest.raises(ValueError, match="A must have valid ind"):
            call(S)
    fitted = ob.NonnegativePCA(1, random_state=0).fit(np.eye(3) + 1.0)
    for call in (ob.SparsePCA(2).fit, ob.NonnegativePCA(2).fit, fitted.transform, fitted.score):
        with pytest.raises(ValueError, match="X must have valid ind"):
            call(S)
    np.savez(
        tmp_path / "a.npz",
        format=np.array(kind.encode()),
        shape=np.array([3, 3]),
        data=S.data,
        indptr=np.asarray(indptr),
        indices=np.asarray(indices),
    )
    with pytest.raises(files.UnreadableFile, match="ind"):
        files.read_matrix(tmp_path / "a.npz")


def test_reals_are_no_indices():
    with pytest.raises(ValueError, match=r"A must have valid ind.* must be integers"):
        ob.GramQuadratic(broken("csc", [0.0, 1.0, 2.0, 3.0], [0, 1, 2]))


def test_room_beyond_the_last_entry_is_allowed():
    S = sparse.csc_array(np.diag([1.0, 2.0, 3.0]))
    S.indices, S.data = np.append(S.indices, [7, 7]), np.append(S.data, [np.nan, 5.0])
    assert ob.GramQuadratic(S).A.nnz == 3


def test_arrays_of_objects_are_no_matrices(tmp_path):
    names = np.array([["a", "b"], ["c", "d"]], dtype=object)
    values = np.arange(6.0).reshape(2, 3)
    np.savez(tmp_path / "a.npz", names=names, values=values)
    np.testing.assert_array_equal(files.read_matrix(tmp_path / "a.npz")[0], values)
    np.savez(tmp_path / "b.npz", values=values, row_of_values=values[0])
    np.testing.assert_array_equal(files.read_matrix(tmp_path / "b.npz")[0], values)
    np.savez(tmp_path / "c.npz", names=names)
    with pytest.raises(files.UnreadableFile, match="need one matrix"):
        files.read_matrix(tmp_path / "c.npz")
