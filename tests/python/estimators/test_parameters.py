"""Every door of an estimator refuses parameters of a wrong kind before it reads the data."""

from __future__ import annotations

import re

import numpy as np
import pytest

import orthobcd as ob

ESTIMATORS = [ob.SparsePCA, ob.SparsePCACV, ob.NonnegativePCA, ob.OrthogonalNMF]

BOOLEANS = ("center", "scale", "uncorrelated", "warm_start", "verbose", "certify")
CHOICES = {
    "precision": ["auto", "fast", "exact"],
    "missing": ["em"],
    "alpha_scale": ["relative", "absolute"],
    "penalty": ["l0", "l1"],
    "criterion": ["cv", "bic", "ebic"],
    "rule": ["one_se", "best"],
}
DOORS = {
    "fit": lambda made: made.fit(np.eye(6, 4)),
    "fit_transform": lambda made: made.fit_transform(np.eye(6, 4)),
    "blocks": lambda made: made.fit(lambda: pytest.fail("the data is read")),
    "partial_fit": lambda made: made.partial_fit(np.eye(6, 4)),
    "fit_covariance": lambda made: made.fit_covariance(np.eye(4)),
}


def grid():
    for kind in ESTIMATORS:
        for name in kind().get_params(deep=False):
            if name in BOOLEANS:
                yield from ((kind, name, wrong, "bool") for wrong in ("no", 2, None, [True]))
            elif name in CHOICES:
                allowed = CHOICES[name][-1]
                yield from ((kind, name, wrong, allowed) for wrong in ("other", b"l0", 3, ["em"]))
            elif name == "solver":
                yield from ((kind, name, wrong, "Auto") for wrong in ("auto", ob.Auto, 1))


@pytest.mark.parametrize(("kind", "name", "wrong", "allowed"), list(grid()))
def test_the_error_names_the_parameter_what_was_given_and_what_is_allowed(
    kind, name, wrong, allowed
):
    for door, call in DOORS.items():
        made = kind()
        if kind is ob.SparsePCACV and door == "fit_covariance":
            made.criterion = "bic"
        if not hasattr(made, door) and door != "blocks":
            continue
        made.set_params(**{name: wrong})
        with pytest.raises((ValueError, TypeError)) as caught:
            call(made)
        for part in (f"'{name}'", allowed, repr(wrong)):
            assert re.search(re.escape(part), str(caught.value)), (door, str(caught.value))


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_numpy_booleans_and_all_choices_are_taken(kind):
    X = np.abs(np.random.default_rng(0).standard_normal((30, 5)))
    for name in kind().get_params(deep=False):
        for value in [np.True_] if name in BOOLEANS else CHOICES.get(name, ()):
            made = kind(1, max_work=0.01).set_params(**{name: value})
            made.fit(X)
