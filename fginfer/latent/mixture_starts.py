"""Where the local search of a mixture of regressions starts: components made from a solution of the lasso."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fginfer.latent.em import Mixture
from fginfer.latent.losses import MixtureLoss

Reals = NDArray[np.float64]
TRIALS = 12  # brief searches for each start that is kept


def round_components(loss: MixtureLoss, c: Reals, k: int, generalized: bool, seed: int) -> Reals:
    """K weight vectors from a solution of the lasso, filled up at random where it has too few."""
    weights = loss.weights(c) if len(c) else np.zeros((0, loss.X.shape[1]))
    if generalized:
        chosen = weights[np.argsort(-c, kind="stable")[:k]]
    else:
        patterns, counts = np.unique(loss.atoms.T, axis=0, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:k]
        chosen = patterns[order].astype(np.float64) @ weights
    if len(chosen) < k:
        rng = np.random.default_rng([seed, len(c)])
        size = float(np.sqrt((weights * weights).mean())) if weights.any() else _usual_size(loss.X, loss.y)
        chosen = np.concatenate([chosen, size * rng.standard_normal((k - len(chosen), loss.X.shape[1]))])
    return chosen


def _usual_size(X: Reals, y: Reals) -> float:
    """The usual size of an entry of weights whose outputs are as large as y, in whatever units X and y are."""
    inputs, outputs = (float(np.sqrt((v * v).sum() / len(y))) for v in (X, y))
    return outputs / inputs if inputs and outputs else 1.0


def span_starts(mixture: Mixture, weights: Reals, count: int, rng: np.random.Generator) -> Reals:
    """(count, K, inputs): the best of many brief searches, led by the span of the lasso's weights.

    Those weights lie near the span of the true components long before they are the components: at 100 inputs, 3
    components and 1500 samples their leading four directions have three quarters of it. In a space of so few dimensions
    local search is cheap and seldom stuck; so where the span is small against the inputs, the search is restricted to
    it. Else every second search starts near it.
    """
    d = mixture.X.shape[1]
    if len(weights) == 0 or count == 0:
        return np.zeros((0, mixture.k, d))
    directions = np.linalg.svd(weights, full_matrices=True)[2]
    leading = min(mixture.k + 1, d)
    if 8 * leading <= d:
        found = _brief(_within(mixture, directions[:leading]), np.ones(leading), count, 60, rng)
        out: Reals = found @ directions[:leading]
        return out
    return _brief(mixture, np.where(np.arange(d) < leading, 1.0, 0.3)[:, None] * directions, count, 10, rng)


def _within(mixture: Mixture, directions: Reals) -> Mixture:
    kind = mixture.X.dtype
    inputs = mixture.X @ directions.T.astype(kind)
    return Mixture(inputs, mixture.y, mixture.k, mixture.generalized, mixture.relative_ridge, kind, mixture.late)


def _brief(mixture: Mixture, shape: Reals, count: int, rounds: int, rng: np.random.Generator) -> Reals:
    """The best of random starts after so many rounds; every second one has the given shape (factors, or a matrix)."""
    d = mixture.X.shape[1]
    W = rng.standard_normal((TRIALS * count, mixture.k, d))
    W[::2] = W[::2] @ shape if shape.ndim == 2 else W[::2] * shape
    lengths = np.sqrt(np.maximum((W * W).sum(2, keepdims=True), 1e-30))
    W *= np.sqrt(mixture.unit / max(float((mixture.X * mixture.X).mean()), 1e-30)) / lengths
    fits = mixture.run(W, True, rounds, own=True, tol=1e-3)
    return fits.weights[np.argsort(fits.costs, kind="stable")[:count]].astype(np.float64)
