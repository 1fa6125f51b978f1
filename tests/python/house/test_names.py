"""Names and counting in tables, reprs and the package's namespace; the protocol `Problem`."""

from __future__ import annotations

import re
import subprocess
import sys
from inspect import signature

import numpy as np
import pandas
import pytest

import orthobcd as ob

from ..conftest import SAFE_PATH

LONG = "concentration of the substance with the catalogue number {}, in the second sample"


def data(n: int = 8) -> np.ndarray:
    rng = np.random.default_rng(n)
    return rng.standard_normal((60, 3)) @ rng.standard_normal((3, n)) + rng.standard_normal((60, n))


def named(n: int = 8):
    return pandas.DataFrame(data(n), columns=[LONG.format(j) for j in range(n)])


@pytest.mark.slow
def test_star_import_has_the_estimators():
    code = "from orthobcd import *; SparsePCA, NonnegativePCA, OrthogonalNMF, SparsePCACV, solve"
    subprocess.run([sys.executable, *SAFE_PATH, "-c", code], check=True)
    assert set(ob.__all__) <= set(dir(ob))
    assert len(set(ob.__all__)) == len(ob.__all__)


@pytest.mark.slow
def test_an_import_needs_the_dependencies_only():
    """Packages of the extras are imported at first use; scikit-learn imports pandas itself."""
    code = """
from orthobcd import *
import sys
SparsePCA, solve, plot.biplot
extras = {"anndata", "dask", "jax", "matplotlib", "torch", "tqdm"}
assert not extras & set(sys.modules), extras & set(sys.modules)
"""
    subprocess.run([sys.executable, *SAFE_PATH, "-c", code], check=True)


@pytest.mark.parametrize("module", ["", "io", "kg", "hyperbolic", "sklearn", "plot"])
def test_dir_shows_public_names_only(module):
    where = getattr(ob, module) if module else ob
    names = dir(where)
    assert {"Any", "TYPE_CHECKING", "annotations", "need"} & set(names) == set()
    assert all(not name.startswith("_") or name == "__version__" for name in names)
    if module:
        assert names == sorted(where.__all__)


def test_problems_of_data_or_moments_say_that_they_are_not_centred():
    """In their first lines. The other problems take an objective, ``smooth``."""
    problems = {
        name: getattr(module, name)
        for module in (ob, ob.hyperbolic)
        for name in dir(module)
        if name.endswith("Problem") and isinstance(getattr(module, name), type)
    }
    of_data = {
        name for name, kind in problems.items() if "smooth" not in signature(kind).parameters
    }
    of_data.discard("Problem")  # the protocol
    assert len(of_data) >= 5
    for name, kind in problems.items():
        assert ("not centred" in kind.__doc__.splitlines()[0]) == (name in of_data), name


@pytest.fixture(scope="module")
def things() -> dict[str, object]:
    X = named(40)
    pca = ob.SparsePCA(5, n_nonzero=60, max_work=0.01, random_state=0).fit(X)
    stability = ob.support_stability(pca, X, n_subsamples=2, random_state=0)
    path = ob.regularization_path(data(40), 3)
    graph = ob.kg.TripleFiles(
        (np.zeros((5000, 3), dtype=int),), tuple(map(str, range(9000))), ("is a",)
    )
    return {
        "Loadings": pca.loadings(),
        "Result": pca.result_,
        "Search": pca.result_.search,
        "RegularizationPath": path,
        "PathPoint": path.results[-1],
        "TripleFiles": graph,
        "SupportStability": stability,
        "ComponentChoice": ob.choose_n_components(X, random_state=0),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "Loadings",
        "Result",
        "Search",
        "RegularizationPath",
        "PathPoint",
        "TripleFiles",
        "SupportStability",
        "ComponentChoice",
    ],
)
def test_reprs_are_one_line(things, kind):
    text = repr(things[kind])
    assert text.startswith(f"{kind}(")
    assert text.endswith(")")
    assert len(text) <= 160
    assert "\n" not in text


def test_an_empty_path_has_a_repr():
    none = np.zeros(0)
    path = ob.regularization.RegularizationPath(none, none.astype(int), none, none, (), 1.0)
    assert repr(path) == "RegularizationPath(0 points)"


@pytest.mark.slow
def test_tables_shorten_names_and_count_from_0(things):
    loadings = things["Loadings"]
    text = loadings.summary()
    assert max(map(len, text.splitlines()[1:])) <= 36
    heads = re.findall(r"component (\d+)", text)
    assert heads == [str(k) for k in range(5)]
    assert heads == re.findall(r"component (\d+)", loadings._repr_html_())
    assert heads == [str(k) for k in sorted(set(loadings.to_frame()["component"]))]
    # Data for further computations has the whole names.
    assert set(loadings.to_frame()["feature"]) <= set(loadings.features)
    assert all(name in loadings.features for name, _ in loadings.of(0))


def test_plots_have_names_and_whole_ticks(things):
    import matplotlib.pyplot as plt

    ax = things["SupportStability"].plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        f"component {k}" for k in range(5)
    ]
    for ax in (things["ComponentChoice"].plot(), ob.plot.path(things["RegularizationPath"])):
        ax.figure.canvas.draw()
        assert all(float(tick).is_integer() for tick in ax.get_xticks())
    plt.close("all")
