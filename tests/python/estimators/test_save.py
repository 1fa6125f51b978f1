"""`save` and `load`: a loaded estimator is the saved one, in bits; other files are refused."""

from __future__ import annotations

import copy
import json
import pickle
import re
import zipfile
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import model_selection
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

import orthobcd as ob
from orthobcd.io import write_components
from orthobcd.sklearn import saving

from ..files.test_damaged_files import flagged, npy, saved, zipped

short = pytest.mark.usefixtures("short_searches")


def test_pickles_are_no_larger_than_twice_their_arrays():
    X = load_digits().data
    for make in (ob.SparsePCA, ob.NonnegativePCA):
        pca = make(5, random_state=0).fit(X)
        arrays = [v for v in vars(pca).values() if isinstance(v, np.ndarray)]
        arrays += [v for v in vars(pca.result_).values() if isinstance(v, np.ndarray)]
        arrays += list(pca.result_.history.values())
        assert len(pickle.dumps(pca)) <= 2 * sum(a.nbytes for a in arrays) + 4096


X = load_wine().data
GAPS = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
WEIGHTS = np.random.default_rng(1).random(len(X)) + 0.5


def frame():
    return load_wine(as_frame=True).data


SHARED = {"random_state": 0, "scale": True}

FITS: dict[str, Any] = {
    "number": lambda: ob.SparsePCA(3, n_nonzero=12, **SHARED).fit(X),
    "numbers": lambda: ob.SparsePCA(3, n_nonzero=np.array([5, 4, 3]), **SHARED).fit(X),
    "weight": lambda: ob.SparsePCA(3, alpha=0.2, **SHARED).fit(X, sample_weight=WEIGHTS),
    "path": lambda: ob.SparsePCA(2, n_nonzero=9, penalty="l1", **SHARED).fit(X),
    "features": lambda: ob.SparsePCA(2, n_features=5, **SHARED).fit(frame()),
    "names": lambda: ob.SparsePCA(2, n_nonzero=6, exclude=("ash", "hue"), **SHARED).fit(frame()),
    "solver": lambda: ob.SparsePCA(2, solver=ob.OBCD(tile_size=8), **SHARED).fit(X),
    "nested solver": lambda: ob.SparsePCA(
        2, solver=ob.Continuation(lams=[30.0, 3.0], solver=ob.OBCD()), **SHARED
    ).fit(X),
    "certified": lambda: ob.SparsePCA(1, n_nonzero=3, certify=True, **SHARED).fit(X),
    "gaps": lambda: ob.SparsePCA(3, n_nonzero=12, missing="em", **SHARED).fit(GAPS),
    "parts": lambda: (
        ob.SparsePCA(3, n_nonzero=12, **SHARED).partial_fit(X[:60]).partial_fit(X[60:])
    ),
    "covariance": lambda: ob.SparsePCA(2, n_nonzero=6, **SHARED).fit_covariance(
        np.cov(X.T), 50, X.mean(axis=0)
    ),
    "sparse": lambda: ob.SparsePCA(2, n_nonzero=6, random_state=0).fit(sparse.csr_array(X)),
    "one feature": lambda: ob.SparsePCA(1, n_nonzero=1).fit(X[:, :1]),
    "float32": lambda: ob.SparsePCA(2, n_nonzero=6, **SHARED).fit(X.astype(np.float32)),
    "frames out": lambda: (
        ob.SparsePCA(2, n_nonzero=6, **SHARED).set_output(transform="pandas").fit(frame())
    ),
    "state": lambda: ob.NonnegativePCA(3, random_state=np.random.RandomState(3)).fit(X),
    "nonnegative": lambda: ob.NonnegativePCA(3, n_nonzero=9, **SHARED).fit(frame()),
    "nonnegative gaps": lambda: ob.NonnegativePCA(2, missing="em", **SHARED).fit(GAPS),
    "penalty": lambda: ob.SparsePCA(2, penalty=ob.MCP(1.0, 3.0), **SHARED).fit(X),
    "sum": lambda: ob.SparsePCA(2, penalty=ob.L1(0.5) + ob.NonNegative(), **SHARED).fit(frame()),
    "numbers chosen": lambda: ob.SparsePCACV(2, n_nonzeros=[4, 9], cv=3, **SHARED).fit(frame()),
    "clusters": lambda: ob.OrthogonalNMF(3, random_state=0).fit(frame()),
    "chosen": lambda: ob.SparsePCACV(2, n_alphas=3, cv=3, **SHARED).fit(frame()),
    "folds": lambda: ob.SparsePCACV(
        2, n_alphas=3, cv=model_selection.KFold(3, shuffle=True, random_state=1), **SHARED
    ).fit(X),
    "bic": lambda: ob.SparsePCACV(2, alphas=[0.3, 0.1], criterion="bic", **SHARED).fit(X),
}


def fits(kind: str) -> Any:
    """A fitted estimator."""
    return FITS[kind]()


def assert_same(a: Any, b: Any, name: str = "it") -> None:
    """Fails unless two values have the same types and the same bits."""
    assert type(a) is type(b), name
    if isinstance(a, (np.ndarray, np.generic)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), name
        assert np.array_equal(a, b) if a.dtype == object else a.tobytes() == b.tobytes(), name
        assert np.isfortran(np.asarray(a)) == np.isfortran(np.asarray(b)), name
    elif isinstance(a, dict):
        assert a.keys() == b.keys(), name
        for key in a:
            assert_same(a[key], b[key], f"{name}.{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), name
        for k, (one, other) in enumerate(zip(a, b, strict=True)):
            assert_same(one, other, f"{name}.{k}")
    elif isinstance(a, np.random.RandomState):
        assert_same(a.get_state(legacy=False), b.get_state(legacy=False), name)
    elif hasattr(a, "make_fast"):
        assert_same(a.__reduce__()[1:], b.__reduce__()[1:], name)
    elif hasattr(a, "__dict__") and not isinstance(a, type):
        assert_same(vars(a), vars(b), name)
    else:
        assert a == b or (a != a and b != b), name


@short
@pytest.mark.parametrize("kind", FITS)
def test_a_loaded_estimator_is_the_saved_one(kind, tmp_path):
    pca = fits(kind)
    before = copy.deepcopy(pca)
    path = tmp_path / "pca.npz"
    pca.save(path)
    assert_same(pca, before)
    again = type(pca).load(path)
    assert_same(again, pca)
    assert_same(saving.load_estimator(str(path)), pca)
    assert kind == "state" or repr(again) == repr(pca)
    n = pca.n_features_in_
    if kind == "one feature":
        new: Any = X[:9, :1]
    else:
        new = (GAPS if "gaps" in kind else X)[:9, :n]
    if hasattr(pca, "feature_names_in_"):
        new = frame()[:9]
    assert_same(np.asarray(again.transform(new)), np.asarray(pca.transform(new)))
    assert type(again.transform(new)) is type(pca.transform(new))
    assert again.get_feature_names_out().tolist() == pca.get_feature_names_out().tolist()
    assert_same(again.get_params(), pca.get_params())
    if kind == "clusters":
        assert_same(again.predict(new), pca.predict(new))
        return
    assert again.score(new) == pca.score(new)
    assert_same(again.loadings(), pca.loadings())
    assert_same(
        again.inverse_transform(np.eye(9, len(pca.components_))),
        pca.inverse_transform(np.eye(9, len(pca.components_))),
    )
    if kind == "parts":
        assert_same(again.partial_fit(X[:50]).components_, pca.partial_fit(X[:50]).components_)


@short
@pytest.mark.parametrize("kind", ["number", "names", "nonnegative", "chosen", "frames out"])
def test_other_programs_read_the_arrays(kind, tmp_path):
    """`write_components` writes the same file, without pickles, and a table."""
    pca = fits(kind)
    path = tmp_path / "pca.npz"
    write_components(path, pca)
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    assert_same(arrays["components"], pca.components_)
    assert_same(arrays["mean"], pca.mean_)
    assert_same(arrays["scale"], pca.scale_)
    names = getattr(pca, "feature_names_in_", [f"x{k}" for k in range(pca.n_features_in_)])
    write_components(tmp_path / "pca.csv", pca)
    assert (tmp_path / "pca.csv").read_text().splitlines()[0].split(",")[0] == names[0]
    with pytest.raises(ValueError, match="with an estimator"):
        write_components(path, pca, ["a"])
    with pytest.raises(TypeError, match="components must be a matrix or an estimator of orthobcd"):
        write_components(path, PCA())
    with pytest.raises(ValueError, match=r"^components must "):
        write_components(path, np.ones(3), ["a"])


OBJECTS = [
    *(ob.L0(0.5), ob.L1(np.ones((3, 2))), ob.NoPenalty(), ob.NonNegative(), ob.CappedL1(1.0, 0.2)),
    *(ob.MCP(1.0, 3.0), ob.SCAD(1.0, 3.7), ob.Box(-0.5, 0.5), ob.L1(0.1) + ob.NonNegative()),
    ob.PiecewiseQuadratic([-0.1, 0.1], [(-0.05, -1, 0), (0, 0, 10), (-0.05, 1, 0)]),
    *(ob.Cardinality(5), ob.Cardinality([2, 3], include=[[0], [1]], exclude=[[2], []])),
    *(ob.RowSparse(count=3), ob.RowSparse(lam=0.5)),
    *(ob.OBCD(), ob.OBCD(working_set="wss-sv", side="both", scored_pairs=7), ob.JOBCD()),
    *(ob.Continuation(), ob.Continuation(lams=[2.0, 1.0], solver=ob.OBCD(tile_size=8))),
    *(ob.Auto(), ob.Auto(makers=["path", "forward"])),
    *(model_selection.KFold(4), model_selection.StratifiedKFold(3, shuffle=True, random_state=5)),
    *(model_selection.ShuffleSplit(3, test_size=0.2), model_selection.LeaveOneOut()),
    *(
        None,
        True,
        3,
        0.1,
        float("inf"),
        float("nan"),
        "a",
        (1, ("b", 2.5)),
        [1, [None]],
        {"a": (1,)},
    ),
    *({1, 2}, np.float32(0.1), np.int64(7), np.array(["a", "b"]), np.array(["a"], dtype=object)),
    *(np.asfortranarray(np.arange(6.0).reshape(2, 3)), {"__tuple__": [1]}, {}, ()),
]


@short
@pytest.mark.parametrize("value", OBJECTS, ids=repr)
def test_objects_survive(value, tmp_path):
    pca = fits("names").set_params(exclude=value)
    pca.save(tmp_path / "a.npz")
    assert_same(ob.SparsePCA.load(tmp_path / "a.npz").exclude, value)


@short
def test_sequences_of_pandas_become_lists(tmp_path):
    columns = frame().columns[:2]
    for value in (columns, columns.to_series(), columns.array):
        pca = fits("names").set_params(exclude=value)
        pca.save(tmp_path / "a.npz")
        assert ob.SparsePCA.load(tmp_path / "a.npz").exclude == list(columns)


class Mine(ob.SparsePCA):
    """A class of a user."""


class MyPenalty(ob.L1):
    """Another one."""


@short
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("solver", ob.OBCD(working_set=lambda x, g: [0, 1])),
        ("include", iter([1])),
        ("penalty", MyPenalty(0.1)),
        ("random_state", object()),
        ("exclude", [re.compile("a")]),
    ],
)
def test_what_cannot_be_saved_is_named(name, value, tmp_path):
    pca = fits("number").set_params(**{name: value})
    with pytest.raises(TypeError, match=rf"parameters\.{name}.* pickle or joblib"):
        pca.save(tmp_path / "a.npz")
    assert list(tmp_path.iterdir()) == []


@short
def test_own_classes_and_estimators_that_are_not_fitted(tmp_path):
    mine = Mine(2, n_nonzero=6, random_state=0).fit(X)
    mine.save(tmp_path / "a.npz")
    assert_same(Mine.load(tmp_path / "a.npz"), mine)
    with pytest.raises(ValueError, match="it holds a Mine"):
        ob.SparsePCA.load(tmp_path / "a.npz")
    for estimator in (ob.SparsePCA(), ob.NonnegativePCA(), ob.OrthogonalNMF(), ob.SparsePCACV()):
        with pytest.raises(NotFittedError):
            estimator.save(tmp_path / "b.npz")
    assert not (tmp_path / "b.npz").exists()


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "a.npz"
    fits("gaps").save(path)
    return path


def refused(path, cls=ob.SparsePCA):
    with pytest.raises(ValueError, match=rf"a\.npz is not a file of {cls.__name__}\.save"):
        cls.load(path)


def changed(good, path, change) -> None:
    """Writes a saved file after ``change(header, arrays)``."""
    with np.load(good) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(str(arrays.pop("header")))
    change(header, arrays)
    np.savez(path, header=np.array(json.dumps(header)), **arrays)


def header_of(text: str) -> bytes:
    return zipped({"header": saved(np.array(text))})


NESTED = (
    '{"kind": "SparsePCA", "format": 1, "fitted": {}, "parameters": '
    + '{"a":' * 9000
    + "1"
    + "}" * 9001
)

FOREIGN = {
    "nested": lambda p: p.write_bytes(header_of("[" * 100_000 + "]" * 100_000)),
    "nested dicts": lambda p: p.write_bytes(header_of(NESTED)),
    "a list": lambda p: p.write_bytes(header_of("[1]")),
    "many digits": lambda p: p.write_bytes(header_of('{"kind": ' + "1" * 9000 + "}")),
    "a huge header": lambda p: p.write_bytes(zipped({"header": npy("()", "<U1000000000")})),
    "encrypted": lambda p: p.write_bytes(flagged(header_of("{}"))),
    "nothing": lambda p: p.write_bytes(b""),
    "text": lambda p: p.write_text("height,width\n1,2\n"),
    "arrays": lambda p: np.savez(p, X=X),
    "components": lambda p: write_components(p, np.eye(2, 3)),
    "a matrix": lambda p: sparse.save_npz(p, sparse.csr_array(X)),
    "a result": lambda p: ob.solve(ob.SparsePCAProblem(X, 2, ob.L0(1.0))).save(p),
    "loadings": lambda p: fits("number").loadings().save(p),
    "another estimator": lambda p: fits("nonnegative").save(p),
    "a pickle": lambda p: np.savez(p, header=np.array({"a": 1}, dtype=object)),
    "a zip": lambda p: zipfile.ZipFile(p, "w").writestr("a.txt", "a"),
}


@short
@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_are_refused(name, tmp_path):
    FOREIGN[name](tmp_path / "a.npz")
    refused(tmp_path / "a.npz")
    with pytest.raises(FileNotFoundError):
        ob.SparsePCA.load(tmp_path / "none.npz")


@short
def test_cut_files_are_refused(good, tmp_path):
    content = good.read_bytes()
    for k in range(24):
        (tmp_path / "a.npz").write_bytes(content[: len(content) * k // 24])
        refused(tmp_path / "a.npz")


@short
def test_files_without_an_array_or_with_another_one_are_refused(good, tmp_path):
    path = tmp_path / "a.npz"
    with np.load(good) as archive:
        names = [name for name in archive.files if name != "header"]
    for name in names:
        changed(good, path, lambda _, arrays, name=name: arrays.pop(name))
        refused(path)
        for other in (
            lambda a: a.astype("U8"),
            lambda a: a + 1j,
            lambda a: a[..., :-1] if a.ndim else a.astype("U8"),
            lambda a: np.full(a.shape, np.nan),
        ):

            def change(_, arrays, name=name, other=other):
                arrays[name] = other(np.asarray(arrays[name]))

            if name.startswith(("result", "model")):
                continue
            changed(good, path, change)
            refused(path)


def put(*place: str, value: Any):
    def change(header, _) -> None:
        *above, last = place
        for name in above:
            header = header[name]
        header[last] = value

    return change


CHANGES = {
    "kind": put("kind", value="OrthogonalNMF"),
    "kinds": put("kind", value=["SparsePCA"]),
    "later": put("format", value=2),
    "no number": put("format", value="one"),
    "parameters": put("parameters", value=[1]),
    "parameter": put("parameters", "depth", value=3),
    "class": put("parameters", "solver", value={"__object__": ["system", [["ls"], {}, None]]}),
    "dotted": put("parameters", "solver", value={"__object__": ["os.system", [["ls"], {}, None]]}),
    "options": put("parameters", "solver", value={"__object__": ["OBCD", [[], {"x": 1}, None]]}),
    "wrong option": put(
        "parameters", "solver", value={"__object__": ["OBCD", [[], {"block_size": -1}, None]]}
    ),
    "huge moments": put(
        "fitted", "_sums", value={"__object__": ["Moments", [[10**9, "exact"], {}, 1]]}
    ),
    "method": put("fitted", "transform", value=1),
    "private method": put("fitted", "_pieces", value=1),
    "dunder": put("fitted", "__class__", value=1),
    "plain": put("fitted", "alpha", value=1),
    "result": put("fitted", "result_", value={"__object__": ["Result", [[], {"x": 1}, None]]}),
    "no components": put("fitted", "components_", value=None),
    "vector": put("fitted", "components_", value={"__array__": "mean"}),
    "features": put("fitted", "n_features_in_", value=5),
    "names": put("fitted", "feature_names_in_", value={"__names__": ["a"]}),
    "mean": put("fitted", "mean_", value=None),
    "fitted": put("fitted", value={}),
    "reference": put("fitted", "mean_", value={"__array__": "none"}),
    "mark": put("fitted", "mean_", value={"__code__": "1"}),
}


@short
@pytest.mark.parametrize("name", CHANGES)
def test_changed_headers_are_refused(name, good, tmp_path):
    changed(good, tmp_path / "a.npz", CHANGES[name])
    refused(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"a\.npz is not a file of"):
        saving.load_estimator(tmp_path / "a.npz")
