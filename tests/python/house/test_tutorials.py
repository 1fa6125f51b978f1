"""The tutorials of the site run, with the claims that they make."""

from __future__ import annotations

import importlib.util

import pytest

from ..conftest import ROOT
from .printed import check_printed

pytestmark = pytest.mark.timeout(600)  # of processes and whole pages, on a busy machine too

FOLDER = ROOT / "docs" / "tutorials"
SPEC = importlib.util.spec_from_file_location("tutorials", ROOT / "docs" / "_ext" / "tutorials.py")
tutorials = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tutorials)
PLAIN = ("digits_as_images", "from_sklearn_pca", "gallery", "how_sparse", "structural_probe")
REAL = {
    "gene_expression": "leukemia_golub.npz",
    "knowledge_graph": "wn18rr_train.tsv.gz",
    "text_topics": "tdt2.csr.npz",
}
"""Tutorials on data that scikit-learn does not ship, with the files that they need."""


SPREAD = {"knowledge_graph": (0.3, 0.05), "structural_probe": (0.2, 0.0)}
"""Relative and absolute tolerance of tutorials whose training depends on the last bits."""


def run(name: str, tmp_path) -> None:
    import matplotlib.pyplot as plt

    script = FOLDER / f"{name}.py"
    printed, names = tutorials.run(script)
    names["save"](tmp_path)
    plt.close("all")
    written = {path.name for path in tmp_path.iterdir()}
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    # The page shows what each part prints,
    shown = tutorials.outputs(script)
    assert printed.keys() == shown.keys()
    for part, lines in printed.items():
        check_printed(lines, shown[part], SPREAD.get(name, (0.1, 0.0)))
    # every part of the code,
    assert tutorials.CELL.findall(page) == list(tutorials.parts(script))
    # and every figure that is written, and they are committed.
    assert written
    for figure in written:
        assert f"../images/{figure}" in page
        assert (ROOT / "docs" / "images" / figure).exists()


@pytest.mark.parametrize("name", PLAIN)
def test_tutorial(name, tmp_path):
    run(name, tmp_path)


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_tutorial_on_real_data(name, tmp_path, data_dir, monkeypatch):
    if not (data_dir / REAL[name]).exists():
        pytest.skip(f"{data_dir / REAL[name]} is not there")
    monkeypatch.setenv("ORTHOBCD_DATA", str(data_dir))
    run(name, tmp_path)


def test_every_tutorial_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == {
        *PLAIN,
        *REAL,
    }
