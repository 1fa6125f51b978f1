"""Newton's method for a smooth f with products with its Hessian, and `check_hessian`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import orthobcd as ob

from .test_smooth_function import wells

RNG = np.random.default_rng(11)
N, R = 40, 4
BASIS = np.linalg.qr(RNG.standard_normal((N, N)))[0]
C = BASIS @ np.diag(1.002 ** np.arange(N)) @ BASIS.T
C = 0.5 * (C + C.T)
D = np.diag([1.0, 1.3, 1.7, 2.1])
J = [1, 1, -1, 1, -1, 1]


class Brockett:
    """½⟨X, CXD⟩ with close eigenvalues, where gradient steps are slow; counts its calls."""

    def __init__(self) -> None:
        self.values: list[np.ndarray] = []
        self.products = 0

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        self.values.append(x.copy())
        image = C @ x @ D
        return 0.5 * float(np.vdot(x, image)), image

    def product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        self.products += 1
        return C @ v @ D

    def problem(self, product: Any = True) -> ob.StiefelProblem:
        chosen = self.product if product is True else product
        smooth = ob.SmoothFunction(self.value_and_gradient, N, R, hessian_product=chosen)
        return ob.StiefelProblem(smooth, ob.NoPenalty(), R)


BEST = 0.5 * float(np.sort(np.linalg.eigvalsh(C))[:R] @ np.sort(np.diag(D))[::-1])


def slope(x: np.ndarray) -> float:
    """‖grad f‖/‖∇f‖ at the point of the manifold nearest to x."""
    gradient = C @ x @ D
    inner = x.T @ gradient
    tangent = gradient - x @ (inner + inner.T) / 2
    return float(np.linalg.norm(tangent) / np.linalg.norm(gradient))


def test_the_end_is_superlinear():
    f = Brockett()
    result = ob.solve(f.problem(), tol=1e-20, seed=1)
    assert result.converged
    assert result.feasibility < 1e-12
    assert (np.diff(result.history["objective"]) <= 0.0).all()
    assert result.objective == pytest.approx(BEST, rel=1e-13)
    assert slope(result.x) <= 1e-11
    assert f.products > 0
    # The last steps converge superlinearly.
    slopes = [s for s in map(slope, f.values) if s > 1e-13]
    last = np.log10(np.minimum.accumulate(slopes))
    last = last[np.flatnonzero(np.diff(last, prepend=0.0))][-4:]
    gained = -np.diff(last)
    assert gained[-1] > 1.5 * gained[0] or gained.min() > 2.0, last


@pytest.mark.parametrize("kind", ["negative", "random", "none", "zero"])
def test_a_wrong_hessian_ends_well(kind):
    f = Brockett()
    rng = np.random.default_rng(5)
    wrong = {
        "negative": lambda x, v: -(C @ v @ D),
        "random": lambda x, v: rng.standard_normal(v.shape),
        "none": lambda x, v: None,
        "zero": lambda x, v: 0.0 * v,
    }[kind]
    result = ob.solve(f.problem(wrong), seed=1, max_sweeps=20_000)
    assert result.converged
    assert (np.diff(result.history["objective"]) <= 0.0).all()
    assert result.objective == pytest.approx(BEST, rel=1e-7)
    if kind != "none":
        smooth = f.problem(wrong).smooth
        assert ob.check_hessian(smooth, np.eye(N, R)) > 0.1


def test_what_products_may_return():
    f = Brockett()
    bad: dict[str, Any] = {
        "shape": lambda x, v: v[1:],
        "finite": lambda x, v: v * np.nan,
        "real": lambda x, v: v * 1j,
    }
    for words, product in bad.items():
        with pytest.raises(ValueError, match=f"<lambda> must return a .*{words}") as caught:
            ob.solve(f.problem(product), seed=1)
        assert caught.value.result.feasibility < 1e-12  # type: ignore[attr-defined]

    def raises(x, v):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        ob.solve(f.problem(raises), seed=1)
    with pytest.raises(TypeError, match="hessian_product must be callable, got int"):
        ob.SmoothFunction(f.value_and_gradient, N, hessian_product=3)  # type: ignore[arg-type]
    single = ob.solve(f.problem(lambda x, v: (C @ v @ D).astype(np.float32)), seed=1)
    assert single.converged


def test_mixed_signatures_and_curved_functions():
    calls = []

    def product(x, v):
        calls.append(1)
        return (3.0 * x**2 - 0.6) * v

    assert ob.check_hessian(ob.SmoothFunction(wells, 6, hessian_product=product), np.eye(6)) < 1e-7
    calls.clear()
    for signature in (J, [1] * 6):
        smooth = ob.SmoothFunction(wells, 6, hessian_product=product)
        given = ob.JOrthogonalProblem(smooth, signature)
        result = ob.solve(given, seed=1, tol=1e-18)
        assert result.converged, result
        assert result.feasibility < 1e-12 * np.linalg.norm(result.x) ** 2
        assert (np.diff(result.history["objective"]) <= 0.0).all()


def test_check_hessian_asks_for_one():
    f = Brockett()
    with pytest.raises(TypeError, match="hessian_product"):
        ob.check_hessian(f.problem(None).smooth, np.eye(N, R))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="None"):
        ob.check_hessian(f.problem(lambda x, v: None).smooth, np.eye(N, R))  # type: ignore[arg-type]
    assert ob.check_hessian(f.problem().smooth, np.eye(N, R)) < 1e-7  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("package", ["jax", "torch"])
def test_automatic_products(package):
    library = pytest.importorskip(package)
    make = getattr(ob.SmoothFunction, f"from_{package}")
    quartic = make(lambda x: 0.25 * ((x - 0.3) ** 4).sum(), 12)
    x = np.linalg.qr(RNG.standard_normal((12, 3)))[0]
    v = RNG.standard_normal((12, 3))
    np.testing.assert_allclose(
        quartic.hessian_product(x.copy(), v.copy()), 3.0 * (x - 0.3) ** 2 * v, rtol=1e-12
    )
    assert ob.check_hessian(quartic, x) < 1e-7
    linear = make(lambda x: x.sum(), 12)
    np.testing.assert_array_equal(linear.hessian_product(x.copy(), v.copy()), 0.0 * v)
    assert library is not None
