"""`warm_start`: a fit begins with the components of the last one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import orthobcd as ob

pytestmark = pytest.mark.timeout(600)  # of fits, scikit-learn's own too, on a busy machine


def test_warm_start_keeps_the_components():
    X = load_digits().data
    pca = ob.SparsePCA(3, alpha=0.05, warm_start=True, random_state=0).fit(X)
    first = pca.components_.copy()
    pca.fit(X)
    assert pca.path_ is None
    np.testing.assert_allclose(pca.components_, first, atol=1e-4)
