"""The demo: its table, its picture, every kind of file, every kind of broken file."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import orthobcd as ob
from orthobcd import cli, demo
from orthobcd.data import Gram

from ..conftest import orthobcd

pytestmark = pytest.mark.timeout(600)  # of processes and whole pages, on a busy machine too


@pytest.fixture(scope="module")
def digits() -> list[demo.Row]:
    from sklearn.datasets import load_digits

    return demo.compare(load_digits().data, 6)


@pytest.mark.slow
def test_ours_is_orthonormal_and_explains_more(digits):
    ours = [i for i, row in enumerate(digits) if row.method.startswith("OBCD l0")]
    assert len(ours) == len(demo.SHARES)
    for i in ours:
        mine, thin, ortho = digits[i : i + 3]
        assert mine.nonzeros == thin.nonzeros == np.count_nonzero(mine.x)
        assert mine.method == f"OBCD l0, {mine.nonzeros} loadings"
        assert mine.gap < 1e-12 < 1e-3 < thin.gap
        assert mine.explained > thin.explained
        assert mine.objective < thin.objective
        assert ortho.gap < 1e-12
        assert ortho.nonzeros > 2 * mine.nonzeros
    nonnegative = digits[-1]
    assert nonnegative.method == "OBCD nonnegative"
    assert nonnegative.x.min() >= 0.0
    assert nonnegative.gap < 1e-12


@pytest.mark.slow
def test_all_rows_have_the_same_objective(digits):
    """That of the problem without a penalty, computed in another way."""
    from sklearn.datasets import load_digits

    data = load_digits().data
    problem = ob.SparsePCAProblem(data, 6, ob.NoPenalty(), center=True)
    total = float(np.sum((data - data.mean(axis=0)) ** 2))
    for row in digits:
        squares = np.sum(((data - data.mean(axis=0)) @ row.x) ** 2)
        assert row.objective == pytest.approx(-0.5 * squares, rel=1e-12)
        if row.gap < 1e-9:
            assert row.objective == pytest.approx(ob.certify(problem, row.x).objective)
            assert row.explained == pytest.approx(-2.0 * row.objective / total)
        assert row.objective >= digits[0].objective


@pytest.mark.slow
def test_explained_variance(digits):
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    share = PCA(6).fit(load_digits().data).explained_variance_ratio_.sum()
    assert digits[0].explained == pytest.approx(share, rel=1e-9)
    assert all(row.explained < share for row in digits[1:])
    # The explained variance of a basis that is not orthonormal depends only on its span.
    gram = Gram.of_rows(load_digits().data, center=True)
    x = np.random.default_rng(0).standard_normal((64, 3))
    mix = np.random.default_rng(1).standard_normal((3, 3))
    explained = demo.valued(gram, "", x, 0.0).explained
    for same in (x @ mix, np.hstack([x, x])):
        assert demo.valued(gram, "", same, 0.0).explained == pytest.approx(explained)


@pytest.mark.slow
def test_table_is_aligned(digits):
    lines = demo.table(digits).splitlines()
    assert len(lines) == len(digits) + 2
    assert len({len(line) for line in lines}) == 1


@pytest.mark.slow
def test_the_command(digits, tmp_path, monkeypatch, capsys):
    """Without data it compares the digits with 8 components; here it shows a table of 6."""
    from sklearn.datasets import load_digits

    def compare(data: np.ndarray, r: int) -> list[demo.Row]:
        np.testing.assert_array_equal(data, load_digits().data)
        assert r == 8
        return digits

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "compare", compare)
    assert cli.main(["demo", "--out", "here"]) == 0
    said = capsys.readouterr()
    assert "OBCD l0" in said.out
    assert said.err == ""
    picture = (tmp_path / "here" / "components.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert (tmp_path / "here" / "table.txt").read_text(encoding="utf-8") in said.out


A = np.random.default_rng(0).standard_normal((20, 6)).round(6)
S = np.where(np.abs(A) > 0.5, A, 0.0)


@pytest.mark.slow
def test_the_command_on_a_file(tmp_path):
    sparse.save_npz(tmp_path / "csr.npz", sparse.csr_array(S))
    done = orthobcd("demo", "csr.npz", "--out", ".", "--components", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "20 samples, 6 features, 2 components" in done.stdout
