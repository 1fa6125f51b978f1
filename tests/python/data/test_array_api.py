"""Arrays of other libraries, by the array API standard."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from orthobcd._internal.gram import coordinates, explained_squares
from orthobcd.sklearn.data import namespace_of, on_device

CODE = """
import numpy as np, sklearn, orthobcd as ob
import array_api_strict as xp
X = np.random.default_rng(0).standard_normal((60, 5)) + 3.0
for scale in (False, True):
    pca = ob.NonnegativePCA(2, random_state=0, scale=scale).fit(X)
    with sklearn.config_context(array_api_dispatch=True):
        for dtype, tolerance in ((xp.float64, 1e-12), (xp.float32, 1e-5)):
            data = xp.asarray(X, dtype=dtype)
            scores = pca.transform(data)
            assert type(scores) is type(data) and scores.dtype == dtype
            assert np.abs(np.asarray(scores) - pca.transform(X)).max() < tolerance
            assert abs(pca.score(data) - pca.score(X)) < tolerance
        for bad in (data[:, :3], data[0, :], data * float("nan")):
            try:
                pca.transform(bad)
            except ValueError as error:
                assert str(error).startswith("X must have"), error
            else:
                raise AssertionError
print("done")
"""


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("scale", [None, np.arange(1.0, 6.0)])
def test_arrays_of_other_libraries_in_this_process(dtype, scale):
    """What `transform` and `score` call for them; integers become numbers of single precision."""
    xp = pytest.importorskip("array_api_strict")
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (7, 5)).astype(dtype)
    axes, mean = rng.standard_normal((5, 2)), rng.standard_normal(5)
    wanted = X / (1.0 if scale is None else scale) - mean
    data = xp.asarray(X)
    scores = coordinates(*on_device(xp, data, axes, mean, scale))
    kind = xp.float64 if dtype == "float64" else xp.float32
    assert type(scores) is type(data)
    assert scores.dtype == kind
    near = {"rtol": 1e-12 if kind == xp.float64 else 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(np.asarray(scores), wanted @ axes, **near)
    parts = explained_squares(*on_device(xp, data, axes, mean, scale), xp=xp)
    np.testing.assert_allclose(parts, [np.sum((wanted @ axes) ** 2), np.sum(wanted**2)], **near)
    for bad in (data[:, :4], data[0, :], xp.astype(data, kind) * float("nan")):
        with pytest.raises(ValueError, match="X must have"):
            on_device(xp, bad, axes, mean, scale)
    assert namespace_of(data) is None


@pytest.mark.slow
def test_arrays_of_other_libraries():
    pytest.importorskip("array_api_strict")
    # SciPy reads the variable when it is imported.
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    run = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=False
    )
    assert run.stdout == "done\n", run.stderr
