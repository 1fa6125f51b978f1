"""`biplot`, `scores`, `scree` and `correlation_circle`; labels do not overlap."""

from __future__ import annotations

import itertools
import pickle

import matplotlib.pyplot as plt
import numpy as np
import pandas
import pytest
from scipy import sparse as scipy_sparse
from sklearn.decomposition import PCA

import orthobcd as ob
from orthobcd import plot
from orthobcd._internal.names import LONGEST, shortened, shortened_names


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def data(n: int, m: int = 120) -> np.ndarray:
    rng = np.random.default_rng(n)
    return rng.standard_normal((m, 4)) @ rng.standard_normal((4, n)) + 0.3 * rng.standard_normal(
        (m, n)
    )


def labels_of(ax, names) -> dict[str, object]:
    shown = set(shortened_names(names))
    texts = [text for text in ax.texts if text.get_visible()]
    return {text.get_text(): text for text in texts if text.get_text() in shown}


def check_apart(ax, names) -> None:
    """Labels lie inside the axes and do not overlap, at the size at which they are saved."""
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in labels_of(ax, names).values()]
    assert boxes
    frame = ax.get_window_extent()
    for box in boxes:
        assert min(box.x0 - frame.x0, frame.x1 - box.x1) >= -1.0
        assert min(box.y0 - frame.y0, frame.y1 - box.y1) >= -1.0
    for one, other in itertools.combinations(boxes, 2):
        assert min(one.x1, other.x1) <= max(one.x0, other.x0) or min(one.y1, other.y1) <= max(
            one.y0, other.y0
        )


@pytest.mark.parametrize("n", [5, 30, 45])
@pytest.mark.parametrize("draw", [plot.biplot, plot.correlation_circle])
@pytest.mark.parametrize("long", [False, True])
def test_labels_do_not_collide(n, draw, long):
    names = [
        f"a measurement of something with the number {j}" if long else f"f{j}" for j in range(n)
    ]
    X = data(n)
    pca = PCA(2).fit(X)
    ax = draw(pca, X, feature_names=names, n_labels=n)
    check_apart(ax, names)
    if n <= 30 and not long:
        assert len(labels_of(ax, names)) == n
    left_out = [text.get_text() for text in ax.texts if "without a name" in text.get_text()]
    missing = n - len(labels_of(ax, names))
    assert left_out == ([f"{missing} shorter arrows without a name"] if missing else [])


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
@pytest.mark.parametrize("n", [5, 40])
def test_labels_and_legends_are_inside_when_the_layout_changes(layout, n):
    names = [f"a measurement with the number {j}" for j in range(n)]
    groups = [f"group {i % 8} of samples" for i in range(120)]
    X = data(n)
    pca = PCA(2).fit(X)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout=layout)
    plot.biplot(pca, X, groups=groups, ax=left, feature_names=names)
    plot.scores(pca, X, groups=groups, ax=right)
    check_apart(left, names)
    assert left.get_legend().get_window_extent().x1 <= right.get_window_extent().x0
    assert right.get_legend().get_window_extent().x1 <= figure.bbox.x1
    figure.set_size_inches(9, 5)
    check_apart(left, names)
    again = pickle.loads(pickle.dumps(figure))
    check_apart(again.axes[0], names)


@pytest.mark.parametrize("components", [(0, 1), (2, 0)])
def test_biplot_draws_scores_and_used_features(components):
    X = data(12)
    pca = ob.SparsePCA(3, n_nonzero=9, random_state=0).fit(X)
    ax = plot.biplot(pca, X, components=components)
    drawn = np.asarray(ax.collections[0].get_offsets())
    np.testing.assert_array_equal(drawn, pca.transform(X)[:, list(components)])
    used = np.flatnonzero(pca.components_[list(components)].any(axis=0))
    assert set(labels_of(ax, [f"x{j}" for j in range(12)])) == {f"x{j}" for j in used}
    # Arrows have the directions of the loadings, with a common factor.
    arrows = [text for text in ax.texts if text.arrowprops and text.get_text() == ""]
    tips = {
        tuple(np.round(text.xy, 9)) for text in arrows if text.arrow_patch.get_linewidth() > 0.8
    }
    scaled = pca.components_[list(components)].T[used]
    factors = {round(np.linalg.norm(tip), 6) for tip in tips}
    lengths = np.linalg.norm(scaled, axis=1)
    largest = max(factors) / lengths.max()
    assert factors == {round(length * largest, 6) for length in lengths}


def test_groups_have_ellipses_that_cover_them():
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.standard_normal((2000, 3)) * [3, 2, 1] + shift for shift in (0.0, 20.0)]
    )
    groups = np.repeat(["a name that is much too long for a legend", "b"], 2000)
    pca = PCA(2).fit(X)
    for ax in (plot.scores(pca, X, groups=groups), plot.biplot(pca, X, groups=groups)):
        legend = [text.get_text() for text in ax.get_legend().get_texts()]
        assert legend == shortened_names(list(dict.fromkeys(groups.tolist())))
        assert max(map(len, legend)) <= LONGEST
        edges = [patch for patch in ax.patches if not patch.get_fill()]
        assert len(edges) == 2
        for patch, name in zip(edges, dict.fromkeys(groups.tolist()), strict=True):
            own = ax.transData.transform(pca.transform(X)[groups == name])
            inside = patch.get_transform().transform_path(patch.get_path()).contains_points(own)
            assert inside.mean() == pytest.approx(0.95, abs=0.02)


def test_small_groups_and_odd_labels_are_drawn():
    X = data(6, 9)
    pca = PCA(2).fit(X)
    groups = np.array([1, 1, 1, 1, 1, 2, 2, None, "x"], dtype=object)
    ax = plot.scores(pca, X, groups=groups)
    ax.figure.canvas.draw()
    assert len(ax.get_legend().get_texts()) == 4


@pytest.mark.parametrize("scale", [False, True])
def test_scree_shows_shares_and_bounds(scale):
    X = data(8) * np.arange(1.0, 9.0)
    pca = ob.SparsePCA(2, n_nonzero=6, scale=scale, certify=True, random_state=0).fit(X)
    ax = plot.scree(pca, X)
    lines = {line.get_label(): line for line in ax.lines}
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, 100 * pca.explained_variance_ratio_)
    total = 100 * pca.explained_variance_ratio_.sum()
    assert lines["sum"].get_ydata()[-1] == pytest.approx(total)
    bound = lines["certified bound"].get_ydata()[0]
    dense = PCA(2).fit(X / X.std(axis=0, ddof=0) if scale else X).explained_variance_ratio_
    np.testing.assert_allclose(
        lines["principal components"].get_ydata(), 100 * np.cumsum(dense), rtol=1e-9
    )
    assert total <= bound * (1 + 1e-12)
    assert bound <= 100 * dense.sum() * (1 + 1e-9)
    ax.figure.canvas.draw()
    assert all(float(tick).is_integer() for tick in ax.get_xticks())
    assert "certified bound" not in {line.get_label() for line in plot.scree(PCA(2).fit(X)).lines}


def test_sparse_and_dense_data_give_the_same_picture():
    X = np.where(np.abs(data(7)) > 1.0, data(7), 0.0)
    pca = ob.SparsePCA(2, n_nonzero=6, random_state=0).fit(X)
    for draw in (plot.correlation_circle, plot.scree):
        one, other = (draw(pca, given) for given in (X, scipy_sparse.csr_array(X)))
        for a, b in zip(one.texts, other.texts, strict=True):
            np.testing.assert_allclose(a.xy, b.xy, atol=1e-9)
        for a, b in zip(one.lines, other.lines, strict=True):
            np.testing.assert_allclose(a.get_ydata(), b.get_ydata(), atol=1e-7)


def test_correlations_are_those_of_numpy():
    X = data(5)
    X[:, 4] = 3.0
    pca = PCA(2).fit(X)
    ax = plot.correlation_circle(pca, X)
    scores = pca.transform(X)
    for text in labels_of(ax, [f"x{j}" for j in range(4)]).values():
        j = int(text.get_text()[1:])
        expected = [np.corrcoef(X[:, j], scores[:, k])[0, 1] for k in range(2)]
        np.testing.assert_allclose(text.xy, expected, atol=1e-9)


def test_one_component_and_given_axes():
    X = data(5)
    pca = ob.SparsePCA(1, n_nonzero=2, random_state=0).fit(X)
    for draw in (plot.biplot, plot.scores, plot.correlation_circle, plot.scree):
        _, given = plt.subplots()
        assert draw(pca, X, ax=given) is given
        given.figure.canvas.draw()


def test_names_of_the_fit_come_first():
    frame = pandas.DataFrame(data(6), columns=[f"gene {j}" for j in range(6)])
    pca = ob.SparsePCA(2, n_nonzero=4, random_state=0).fit(frame)
    assert any(text.get_text().startswith("gene ") for text in plot.biplot(pca, frame).texts)


@pytest.mark.parametrize(
    ("error", "name", "call"),
    [
        (ValueError, "components", lambda p, X: plot.biplot(p, X, components=(0, 0))),
        (ValueError, "components", lambda p, X: plot.scores(p, X, components=(0, 2))),
        (TypeError, "components", lambda p, X: plot.scores(p, X, components=1)),
        (ValueError, "groups", lambda p, X: plot.biplot(p, X, groups=[1, 2])),
        (ValueError, "feature_names", lambda p, X: plot.biplot(p, X, feature_names=["a"])),
        (ValueError, "n_labels", lambda p, X: plot.biplot(p, X, n_labels=-1)),
        (ValueError, "fitted", lambda p, X: plot.scores(PCA(2), X)),
        (ValueError, "fitted", lambda p, X: plot.scree(PCA(2))),
    ],
)
def test_refused(error, name, call):
    X = data(5)
    with pytest.raises(error, match=name):
        call(PCA(2).fit(X), X)


@pytest.mark.parametrize("longest", [3, 8, 24])
def test_shortened_names(longest):
    for length in range(1, 60):
        name = "".join(chr(97 + j % 26) for j in range(length))
        short = shortened(name, longest)
        assert len(short) <= longest
        assert (short == name) == (length <= longest)
        assert short[0] == name[0]
        if length > longest:
            assert "…" in short
            assert short[-1] == name[-1]


@pytest.mark.parametrize("longest", [12, 24])
@pytest.mark.parametrize(
    "pattern",
    [
        "concentration of the substance with the number {} in the second sample",
        "{} is at the beginning of the name of this feature",
        "the name of this feature has at its end {}",
        "a" * 40 + "{}" + "b" * 40,
        "{0} and, far away from there in a long name, once more {0}",
        "short {}",
    ],
)
def test_different_names_are_shortened_to_different_ones(pattern, longest):
    for count in (2, 60, 300):
        names = [pattern.format(k) for k in range(count)]
        short = shortened_names(names, longest)
        assert len(set(short)) == count
        assert max(map(len, short)) <= longest
        if max(map(len, names)) <= longest:
            assert short == names
    prefixes = ["a" * k for k in range(1, 80)]
    assert len(set(shortened_names(prefixes, longest))) == len(prefixes)
    assert shortened_names([names[0], names[0]]) == shortened_names([names[0]]) * 2
