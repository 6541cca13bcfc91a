"""Small problems of extreme classification, and the objectives computed in the plainest way."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fginfer.core.extreme import ExtremeData, Lines
from fginfer.extreme.data import labels_of, rows_of, training_data


def random_problem(seed=0, n=60, d=40, k=12, density=0.2, most=3):
    """Sparse rows with labels that depend on them: (csr matrix, label lists)."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, density, random_state=rng, format="csr", dtype=np.float32)
    X.data = (X.data + 0.1).astype(np.float32)
    hidden = rng.normal(size=(d, k))
    scores = X @ hidden + 0.1 * rng.normal(size=(n, k))
    y = [sorted(np.argsort(-scores[i])[: rng.integers(1, most + 1)].tolist()) for i in range(n)]
    return X, y


def data_of(X, y, k, by_label=True) -> ExtremeData:
    return training_data(rows_of(X), labels_of(y, np.arange(k))[0], by_label)


def settings(**given):
    """fgi_ppd_settings with defaults for tests; lam stands for lambda."""
    out = {
        "loss": 1, "C": 1.0, "lambda": 0.05, "positive_weight": 1.0, "learn_bias": 1, "bias": 0.0, "tol": 1e-6,
        "max_outer": 2000, "max_inner": 50, "admit": 0.5, "admit_least": 4, "sparsify": 0.0, "seed": 0,
    }  # fmt: skip
    out.update({("lambda" if name == "lam" else name): value for name, value in given.items()})
    return out


def same_lines(a: Lines, b: Lines) -> bool:
    return all(np.array_equal(x, z) for x, z in ((a.begin, b.begin), (a.index, b.index), (a.value, b.value)))


def same_model(a, b) -> bool:
    """Bit for bit."""
    return same_lines(a.weights, b.weights) and np.array_equal(a.bias, b.bias)
