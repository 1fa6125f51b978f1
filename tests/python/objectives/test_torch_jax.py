"""`SmoothFunction` by automatic differentiation with torch and jax."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob

from .test_smooth_function import RNG, B, problem, quartic


def test_torch():
    torch = pytest.importorskip("torch")
    target = torch.from_numpy(B)
    smooth = ob.SmoothFunction.from_torch(lambda x: 0.25 * ((x - target) ** 4).sum(), 12)
    agrees(smooth)


class Tensor:
    """A stand-in for a tensor of PyTorch, with what `from_torch` uses of it."""

    def __init__(self, array, dtype="torch.float64", requires_grad=False):
        self.array, self.dtype, self.requires_grad = np.asarray(array), dtype, requires_grad

    def requires_grad_(self):
        return Tensor(self.array, self.dtype, True)

    def detach(self):
        return Tensor(self.array, self.dtype)

    def cpu(self):
        return self

    def double(self):
        return Tensor(self.array.astype(np.float64))

    def numpy(self):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad")
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array.astype(self.dtype.removeprefix("torch."))

    def __array__(self, dtype=None, copy=None):
        return self.numpy()


def plain(value):
    return value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)


def evaluated(smooth, x):
    return tuple(map(plain, smooth.value_and_gradient(x.copy())))


def stand_in(value, gradient):
    """A module like torch whose automatic gradient is the given one."""
    import contextlib
    import types

    def grad(of, point, grad_outputs=None, allow_unused=False, create_graph=False):
        assert of.requires_grad
        if gradient is None and not allow_unused:
            raise RuntimeError("One of the differentiated Tensors appears to not have been used")
        kept = None if gradient is None else Tensor(gradient(point.array), requires_grad=True)
        return (kept,)

    return types.SimpleNamespace(
        from_numpy=Tensor,
        zeros_like=lambda point: Tensor(np.zeros(point.array.shape)),
        enable_grad=contextlib.nullcontext,
        autograd=types.SimpleNamespace(grad=grad),
    )


@pytest.mark.parametrize(
    ("dtype", "precision"),
    [("float64", 2.0**-52), ("float32", 2.0**-23), ("float16", 2.0**-10), ("bfloat16", 2.0**-7)],
)
@pytest.mark.parametrize("needs_grad", [True, False])
def test_tensors_of_every_kind(dtype, precision, needs_grad, monkeypatch):
    """Values of low precision raise the tolerance; values without a graph have no gradient."""

    def value(point):
        number = 0.25 * float(((point.array - B) ** 4).sum())
        return Tensor(number, f"torch.{dtype}", needs_grad)

    torch = stand_in(value, lambda x: (x - B) ** 3)
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    smooth = ob.SmoothFunction.from_torch(value, 12)
    x = np.linalg.qr(RNG.standard_normal((12, 3)))[0]
    found, gradient, fine = smooth._evaluate(x.copy())
    assert found == pytest.approx(quartic(x)[0], rel=2.0 * precision)
    assert fine == precision
    np.testing.assert_allclose(gradient, quartic(x)[1] if needs_grad else 0.0 * x, rtol=1e-15)
    assert smooth.hessian_product(x, x).requires_grad or not needs_grad


@pytest.mark.parametrize("constant", [3.0, 2, np.float32(1.5), Tensor(4.0)])
def test_a_number_that_is_no_tensor_of_the_graph_is_a_constant(constant, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", stand_in(None, None))
    smooth = ob.SmoothFunction.from_torch(lambda x: constant, 4)
    value, gradient = evaluated(smooth, np.eye(4, 2))
    assert (value, gradient.any()) == (float(np.asarray(constant)), False)
    result = ob.solve(ob.StiefelProblem(smooth, ob.NoPenalty(), 2))
    assert result.objective == value
    # A number that depends on X, as by ``.item()``, contradicts the gradient of a constant.
    cut = ob.SmoothFunction.from_torch(lambda x: float(x.array[0, 0]), 4)
    with pytest.raises(ValueError, match="smooth"):
        ob.solve(ob.StiefelProblem(cut, ob.NoPenalty(), 2), seed=1)


def test_a_tensor_of_the_graph_that_does_not_use_x(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", stand_in(None, None))
    smooth = ob.SmoothFunction.from_torch(lambda x: Tensor(4.0, requires_grad=True), 4)
    value, gradient = evaluated(smooth, np.eye(4, 2))
    assert (value, gradient.any()) == (4.0, False)
    assert not plain(smooth.hessian_product(np.eye(4, 2), np.eye(4, 2))).any()


def test_jax():
    jax = pytest.importorskip("jax")
    smooth = ob.SmoothFunction.from_jax(lambda x: 0.25 * jax.numpy.sum((x - B) ** 4), 12)
    agrees(smooth)


def agrees(smooth):
    """The automatic gradient is the one by hand, in double precision."""
    x = np.linalg.qr(RNG.standard_normal((12, 3)))[0]
    value, gradient = evaluated(smooth, x)
    assert value == pytest.approx(quartic(x)[0], rel=1e-13)
    assert value.dtype == gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, quartic(x)[1], rtol=1e-12, atol=1e-13)
    result = ob.solve(ob.StiefelProblem(smooth, ob.NoPenalty(), 3))
    assert result.objective == pytest.approx(ob.solve(problem(quartic)).objective, rel=1e-9)


@pytest.mark.parametrize("package", ["torch", "jax"])
def test_a_missing_package_names_the_extra(package, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    make = getattr(ob.SmoothFunction, f"from_{package}")
    with pytest.raises(ImportError, match=rf"orthobcd\[{package}\]"):
        make(lambda x: x.sum(), 4)
