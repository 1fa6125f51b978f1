"""Other packages as competitors, each imported only when called: pymanopt and scikit-learn."""

from __future__ import annotations

import logging
import warnings

import numpy as np

from orthobcd import L1, NonnegativePCAProblem, Problem, Result, SparsePCAProblem
from orthobcd._internal.checks import FloatArray

from .geometry import orthonormality_error, polar, tangent
from .oracle import oracle_of
from .recorder import Recorder
from .smoothed import is_smooth, smoothed_objective
from .starts import principal_components, varimax_spectral


def pymanopt_smoothed(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
    epsilons: tuple[float, ...] = (1e-2, 1e-3, 1e-4),
) -> Result:
    """pymanopt's conjugate gradients on the (smoothed) objective, one run per ε.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; ℓ1 or no penalty, the varimax-rotated spectral start.
    epsilons : tuple of float
        Successive values of ε in the smoothing ``√(x² + ε²)``.
    """
    import pymanopt
    from pymanopt.manifolds import Stiefel
    from pymanopt.optimizers import ConjugateGradient

    oracle = oracle_of(problem)
    if not (is_smooth(oracle) or isinstance(oracle.penalty, L1)) or oracle.is_nonnegative:
        raise ValueError("pymanopt is run on smooth and ℓ1 problems only")
    recorder = Recorder(oracle, x0, varimax_spectral, max_time=max_time, seed=seed)
    manifold = Stiefel(oracle.n, oracle.r)
    x = recorder.x0
    stages = (1.0,) if is_smooth(oracle) else epsilons
    for index, epsilon in enumerate(stages):
        function = smoothed_objective(oracle, epsilon)

        @pymanopt.function.numpy(manifold)  # type: ignore[untyped-decorator, unused-ignore]
        def cost(point: FloatArray) -> float:
            return function(point)[0]  # noqa: B023

        @pymanopt.function.numpy(manifold)  # type: ignore[untyped-decorator, unused-ignore]
        def gradient(point: FloatArray) -> FloatArray:
            return tangent(point, function(point)[1])  # noqa: B023

        left = (max_time - recorder.seconds) / (len(stages) - index)
        if left <= 0.01:
            break
        optimizer = ConjugateGradient(
            max_time=left, max_iterations=10**7, min_gradient_norm=1e-8, verbosity=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = optimizer.run(
                pymanopt.Problem(manifold, cost, riemannian_gradient=gradient),
                initial_point=x,
            )
        x = polar(np.asarray(run.point))
        recorder.n_iterations += int(run.iterations)
        recorder.submit(x)
    return recorder.result(x, method="pymanopt")


def sklearn_sparse_pca(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """scikit-learn's ``SparsePCA``, its components scaled to unit norm and then projected.

    The components V of the package are not orthogonal: ``extra["package_infeasibility"]`` is
    ‖VVᵀ − I‖_F. The package's weight α is searched on a short grid until the time limit.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; a problem with a data matrix. ``x0`` is only scored,
        and a fit that has begun is not interrupted.
    """
    from sklearn.decomposition import SparsePCA

    if not isinstance(problem, (SparsePCAProblem, NonnegativePCAProblem)):
        raise ValueError("scikit-learn needs the data matrix of a SparsePCAProblem")
    oracle = oracle_of(problem)
    recorder = Recorder(oracle, x0, principal_components, max_time=max_time, seed=seed)
    data = problem.A.toarray() if hasattr(problem.A, "toarray") else problem.A
    logging.getLogger("sklearn").setLevel(logging.ERROR)
    x = recorder.x0
    gap, best = np.inf, np.inf
    for alpha in (1.0, 3.0, 10.0, 0.3):
        if recorder.out_of_time:
            break
        model = SparsePCA(
            oracle.r, alpha=alpha, max_iter=30, tol=1e-4, method="cd", random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(data)
        components = np.asarray(model.components_).T
        recorder.n_iterations += int(model.n_iter_)
        norms = np.linalg.norm(components, axis=0)
        if (norms <= 0.0).any():
            continue
        trial = components / norms
        value = recorder.submit(trial, sparse=trial)
        if value < best:
            best, x, gap = value, trial, orthonormality_error(trial)
    return recorder.result(x, method="sklearn SparsePCA", package_infeasibility=gap)
