"""Features and kernels so large that products leave the range of doubles are refused, not answered with NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fginfer.errors import DataError
from fginfer.learn import ChainCRF, Example, GraphCRF, KernelStructuredSVM, StructuredSVM
from fginfer.learn.data.magnitudes import LARGEST


def sequences() -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 2)) for _ in range(30)]
    return X, [(x[:, 0] > 0).astype(int) for x in X]


def trained(kind: str) -> tuple[Any, Any]:
    """A model, and rows in the form of its input that hold 1."""
    X, y = sequences()
    if kind == "multiclass":
        return StructuredSVM(model="multiclass", max_iter=5).fit(np.concatenate(X), np.concatenate(y)), np.ones((3, 2))
    if kind == "kernel":
        return KernelStructuredSVM(kernel="linear", max_iter=5).fit(X, y), [np.ones((3, 2))]
    if kind == "graph":
        edges = np.array([[k, k + 1] for k in range(5)])
        chains = [Example(x, edges=edges) for x in X]
        return GraphCRF(max_iter=5).fit(chains, y), [Example(np.ones((6, 2)), edges=edges)]
    return (ChainCRF if kind == "crf" else StructuredSVM)(max_iter=5).fit(X, y), [np.ones((3, 2))]


def times(X: Any, factor: float) -> Any:
    if isinstance(X, Example):
        return Example(X.features * factor, edges=X.edges)
    return X * factor if isinstance(X, np.ndarray) else [times(x, factor) for x in X]


@pytest.mark.parametrize("kind", ["crf", "graph", "svm", "multiclass", "kernel"])
def test_features_beyond_all_products_are_refused(kind: str) -> None:
    model, X = trained(kind)
    for question in ("predict", "decision_function", "predict_marginals"):
        ask = getattr(model, question, None)
        if ask is None:
            continue
        for size in (1.0, LARGEST if kind != "kernel" else 1e70):
            found = ask(times(X, size))
            assert np.isfinite(np.concatenate([np.ravel(part) for part in found])).all()
        for size in (1e308, -1e308, 1e151):
            with pytest.raises(DataError, match=r"above 1e\+150; scale them"):
                ask(times(X, size))


def test_sparse_rows_and_training() -> None:
    X, y = sequences()
    X[4][2, 1] = 1e300
    for rows in (X, [sp.csr_matrix(x) for x in X]):
        for estimator in (ChainCRF(), StructuredSVM(solver="gdmm"), StructuredSVM(solver="dcd")):
            with pytest.raises(
                DataError, match=r"example 4: features hold numbers above 1e\+150; scale them, in row 2"
            ):
                estimator.fit(rows, y)


def test_values_of_a_kernel() -> None:
    X, y = sequences()
    with pytest.raises(DataError, match=r"finite values of at most 1e\+150"):
        KernelStructuredSVM(kernel="linear").fit(times(X, 1e149), y)
