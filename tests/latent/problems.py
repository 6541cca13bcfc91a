"""Mixed regressions with a known truth, shared by the tests of fginfer.latent."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment


def regressions(seed: int, n: int, d: int, k: int, generalized: bool = False) -> tuple[np.ndarray, ...]:
    """Rows, targets and the weights that made them."""
    rng = np.random.default_rng(seed)
    X, W = rng.standard_normal((n, d)), rng.standard_normal((k, d))
    Z = rng.random((n, k)) < 0.5 if generalized else np.eye(k)[rng.integers(k, size=n)]
    return X, (Z * (X @ W.T)).sum(1), W


def parameter_error(W: np.ndarray, truth: np.ndarray) -> float:
    """Relative distance, with the components matched in the best way."""
    apart = ((W[:, None] - truth[None]) ** 2).sum(2)
    return float(np.sqrt(apart[linear_sum_assignment(apart)].sum() / (truth**2).sum()))
