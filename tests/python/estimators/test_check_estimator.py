"""The checks and tags of scikit-learn."""

from __future__ import annotations

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import orthobcd as ob

pytestmark = pytest.mark.timeout(600)  # of fits, scikit-learn's own too, on a busy machine


@pytest.mark.usefixtures("short_searches")
@pytest.mark.parametrize(
    "estimator",
    [
        ob.SparsePCA(),
        ob.SparsePCA(penalty="l1", scale=True),
        pytest.param(ob.SparsePCA(n_components=1, center=False), marks=pytest.mark.long),
        ob.NonnegativePCA(),
        pytest.param(ob.NonnegativePCA(scale=True), marks=pytest.mark.long),
        ob.OrthogonalNMF(),
        ob.OrthogonalNMF(2, solver=ob.OBCD()),
        ob.SparsePCACV(n_alphas=3, cv=2),
        pytest.param(ob.SparsePCACV(n_alphas=3, criterion="ebic"), marks=pytest.mark.long),
        ob.SparsePCA(missing="em"),
    ],
    ids=str,
)
def test_check_estimator(estimator):
    for check in check_estimator(estimator, on_fail=None, on_skip=None):
        assert check["status"] in ("passed", "skipped"), (check["check_name"], check["exception"])
        # Only checks that need other libraries may be skipped.
        assert check["status"] == "passed" or "array_api" in check["check_name"]


@pytest.mark.parametrize("make", [ob.SparsePCA, ob.NonnegativePCA, ob.OrthogonalNMF])
def test_tags_say_what_data_may_be(make):
    inputs = get_tags(make()).input_tags
    assert inputs.sparse
    assert inputs.positive_only == (make is ob.OrthogonalNMF)
    assert not inputs.allow_nan
    if make is ob.SparsePCA:
        assert get_tags(make(missing="em")).input_tags.allow_nan
