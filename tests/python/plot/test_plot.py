"""Plots draw the right data into the given axes, and refuse invalid arguments.

`components`, `convergence`, `feasibility`, `path` and `search`.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas
import pytest

import orthobcd as ob
from orthobcd import plot
from orthobcd.plot.curves import FLOOR

A = np.random.default_rng(0).standard_normal((40, 12))
A[:, :4] += 3.0 * np.random.default_rng(1).standard_normal((40, 1))
PROBLEM = ob.SparsePCAProblem(A, 3, ob.L0(3.0))


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def results() -> dict[str, ob.Result]:
    return {name: ob.solve(PROBLEM, name, solver=ob.OBCD()) for name in ("identity", "spectral")}


def rendered(ax) -> None:
    """Drawing does not fail or warn."""
    ax.figure.canvas.draw()


@pytest.mark.parametrize("x", ["seconds", "n_iterations"])
def test_convergence(results, x):
    ax = plot.convergence(results, x=x)
    rendered(ax)
    assert ax.get_yscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["identity", "spectral"]
    best = min(result.objective for result in results.values())
    line = ax.lines[0]
    history = results["identity"].history
    np.testing.assert_allclose(
        line.get_ydata(), (history["objective"] - best)[: len(line.get_ydata())]
    )
    np.testing.assert_array_equal(line.get_xdata(), history[x][: len(line.get_xdata())])
    label = {"seconds": "seconds", "n_iterations": "pairs visited"}[x]
    assert ax.get_xlabel() == plot.feasibility(results, x=x).get_xlabel() == label
    # Lines differ in more than their colour.
    assert ax.lines[0].get_linestyle() != ax.lines[1].get_linestyle()


def test_one_result_into_given_axes(results):
    _, given = plt.subplots()
    ax = plot.convergence(results["identity"], optimum=-1e6, ax=given)
    assert ax is given
    assert ax.get_legend() is None
    assert len(ax.lines[0].get_ydata()) == len(results["identity"].history["seconds"])


def test_feasibility(results):
    ax = plot.feasibility(results)
    rendered(ax)
    drawn = ax.lines[0].get_ydata()
    np.testing.assert_array_equal(
        drawn, np.maximum(results["identity"].history["feasibility"], FLOOR)
    )
    assert drawn.max() < 1e-12


def test_path():
    path = ob.regularization_path(A, 3, n_alphas=6)
    ax = plot.path({"l0": path}, mark=10)
    rendered(ax)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), path.n_nonzero)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), 100 * path.explained_variance_ratio)
    assert ax.lines[1].get_xdata()[0] == 10


def test_bars_show_the_largest_loadings_by_name(results):
    x = results["identity"].x.T
    names = [f"feature {j}" for j in range(12)]
    axes = plot.components(x, feature_names=names, n_top=3, titles=["a", "b", "c"])
    assert len(axes) == 3
    rendered(axes[0])
    for row, ax, title in zip(x, axes, "abc", strict=True):
        order = np.argsort(-np.abs(row), kind="stable")[: min(3, np.count_nonzero(row))]
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert labels == [names[j] for j in order]
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], row[order])
        assert ax.get_title() == title


def test_images():
    x = np.zeros((2, 12))
    x[0, :3] = [0.5, -0.5, 0.1]
    x[1, 5] = 1.0
    axes = plot.components(x, image_shape=(3, 4))
    rendered(axes[0])
    image = axes[0].images[0].get_array()
    assert image.shape == (3, 4)
    # Exact zeros are not coloured.
    assert np.ma.count(np.ma.masked_invalid(image)) == 3


def test_heat_map_leaves_unused_features_out(results):
    x = results["identity"].x.T
    ax = plot.components(x, kind="heatmap")
    rendered(ax)
    assert ax.images[0].get_array().shape == (3, np.count_nonzero(np.any(x != 0.0, axis=0)))
    shown = np.nan_to_num(np.asarray(ax.images[0].get_array().filled(np.nan)))
    labels = [label.get_text() for label in ax.get_xticklabels()]
    for column, label in zip(shown.T, labels, strict=True):
        np.testing.assert_array_equal(column, x[:, int(label[1:])])


def test_an_estimator_brings_its_names():
    frame = pandas.DataFrame(A, columns=[f"gene {j}" for j in range(12)])
    pca = ob.SparsePCA(2, n_nonzero=6, random_state=0).fit(frame)
    ax = plot.components(pca)[0]
    assert ax.get_yticklabels()[0].get_text().startswith("gene ")


@pytest.mark.parametrize(
    ("error", "name", "call"),
    [
        (ValueError, "x must", lambda: plot.convergence({}, x="hours")),
        (TypeError, "Result", lambda: plot.convergence({"a": 1})),
        (TypeError, "Result", lambda: plot.feasibility({})),
        (ValueError, "kind", lambda: plot.components(np.eye(2), kind="pie")),
        (ValueError, "feature_names", lambda: plot.components(np.eye(2), feature_names=["a"])),
        (ValueError, "titles", lambda: plot.components(np.eye(2), titles=["a"])),
        (ValueError, "image_shape", lambda: plot.components(np.eye(2), image_shape=(3, 3))),
        (ValueError, "image_shape", lambda: plot.components(np.eye(2), kind="images")),
    ],
)
def test_refused(error, name, call):
    with pytest.raises(error, match=name):
        call()


def test_search():
    result = ob.solve(PROBLEM, max_work=0.02)
    ax = plot.search(result)
    rendered(ax)
    assert ax.get_yscale() == "log"
    named = {text.get_text() for text in ax.get_legend().get_texts()}
    made = {run.heuristic for run in result.search.runs} - {"polish"}
    assert named == made | {"best point"}
    _, given = plt.subplots()
    assert plot.search(result, ax=given) is given
    with pytest.raises(ValueError, match="by Auto"):
        plot.search(ob.solve(PROBLEM, solver=ob.OBCD()))
    with pytest.raises(TypeError, match="must be a Result"):
        plot.search("result")
