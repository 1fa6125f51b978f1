"""Arrays of other libraries, by the array API standard."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import numpy as np, sklearn, orthobcd as ob
import array_api_strict as xp
X = np.random.default_rng(0).integers(0, 9, (60, 5)).astype(float)
for scale in (False, True):
    pca = ob.NonnegativePCA(2, random_state=0, scale=scale).fit(X)
    assert type(pca.transform(xp.asarray(X))) is np.ndarray
    with sklearn.config_context(array_api_dispatch=True):
        for name, tolerance in (("float64", 1e-12), ("float32", 1e-5), ("int64", 1e-5)):
            data = xp.asarray(X, dtype=getattr(xp, name))
            scores = pca.transform(data)
            # Integers become numbers of single precision.
            kind = xp.float64 if name == "float64" else xp.float32
            assert type(scores) is type(data) and scores.dtype == kind
            assert np.abs(np.asarray(scores) - pca.transform(X)).max() < tolerance
            assert abs(pca.score(data) - pca.score(X)) < tolerance
        wide = xp.concat([data, data], axis=1)
        shape = "X must have shape (n_samples, 5), got "
        for bad, said in (
            (data[:, :3], f"{shape}(60, 3)"),
            (wide, f"{shape}(60, 10)"),
            (data[:, :0], f"{shape}(60, 0)"),
            (data[0, :], f"{shape}(5,)"),
            (xp.astype(data, kind) * float("nan"), "X must have no missing or infinite value"),
        ):
            for method in (pca.transform, pca.score):
                try:
                    method(bad)
                except ValueError as error:
                    assert str(error) == said, error
                else:
                    raise AssertionError(said)
print("done")
"""


@pytest.mark.slow
def test_arrays_of_other_libraries():
    pytest.importorskip("array_api_strict")
    # SciPy reads the variable when it is imported.
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    run = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=False
    )
    assert run.stdout == "done\n", run.stderr
