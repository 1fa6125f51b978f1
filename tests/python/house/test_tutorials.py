"""The tutorials of the site run, with the claims that they make."""

from __future__ import annotations

import runpy

import pytest

from ..conftest import ROOT

# Of whole pages, on a busy machine too.
pytestmark = pytest.mark.timeout(600)

FOLDER = ROOT / "docs" / "tutorials"
CLAIMS = {
    "digits_as_images": """
        sparse.n_nonzero_ == 120
        sparse.explained_variance_ratio_.sum() > 0.69
        used.max() == 1
        parts.components_.min() == 0.0
    """,
    "from_sklearn_pca": """
        pca.n_nonzero_ == 20
        abs(accuracy - 0.951) < 0.01
        rows[2]["nonzeros"] == rows[1]["nonzeros"] == 20
        rows[1]["explained"] < rows[2]["explained"] < rows[0]["explained"]
        rows[2]["‖VVᵀ − I‖"] < 1e-12 < rows[1]["‖VVᵀ − I‖"]
    """,
    "applications": """
        ground.converged
        localised.feasibility < 1e-12
        match.max(axis=0).min() > 0.98
        errors[0] > 0.5 and errors[1] < 0.5 * errors[0]
        agreement > 0.98
        correlation.min() > 0.9
        directions.n_nonzero < 20
        right > 0.9
    """,
    "how_sparse": """
        choice.n_components == 3
        ((pca.components_ != 0) == (V.T != 0)[abs(pca.components_ @ V).argmax(axis=1)]).all()
        stability.frequencies[chosen].min() > 0.8
        patient.score(X) > 0.98 * pca.score(X)
    """,
    "structural_probe": """
        after < 0.95 * before
        correlations[1] > correlations[0]
        result.feasibility <= 1e-12 * np.sum(result.x**2)
    """,
    "gene_expression": """
        pca.n_nonzero_ == 120
        np.linalg.norm(pca.components_ @ pca.components_.T - np.eye(4)) < 1e-12
        accuracy > 0.75 > max(np.mean(y), 1 - np.mean(y))
    """,
    "knowledge_graph": """
        curves["jobcd"][120] > 0.6
        curves["jobcd"][120] > curves["frozen"][120] + 0.1
    """,
    "text_topics": """
        pca.n_nonzero_ == 90
        min(int(row["of its 200 strongest stories"].rstrip("%")) for row in rows) > 60
    """,
}
"""What each tutorial says of its results."""

FILES = {
    "gene_expression": "leukemia_golub.npz",
    "knowledge_graph": "wn18rr_train.tsv.gz",
    "text_topics": "tdt2.csr.npz",
}
"""The files of tutorials on data that scikit-learn does not ship."""


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.data) if n in FILES else n for n in CLAIMS]
)
def test_tutorial(name, request, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    if name in FILES:
        data = request.getfixturevalue("data_dir")
        if not (data / FILES[name]).exists():
            pytest.skip(f"{data / FILES[name]} is not there")
        monkeypatch.setenv("ORTHOBCD_DATA", str(data))
    found = runpy.run_path(str(FOLDER / f"{name}.py"))
    figures = plt.get_fignums()
    plt.close("all")
    assert figures
    for claim in CLAIMS[name].strip().splitlines():
        assert eval(claim.strip(), found), claim


def test_every_tutorial_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(CLAIMS)
