"""The best labels of a linear model with many classes, found by a search index."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fginfer.errors import DataError, SettingsError
from fginfer.search import SearchIndex
from fginfer.search_questions import as_rows


class TopLabels:
    """Answers "which k classes score highest" for any fitted multiclass model with ``coef_`` (classes, features) and
    ``intercept_``: StructuredSVM(model="multiclass"), or scikit-learn's own linear classifiers.

    >>> from fginfer.learn import StructuredSVM
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], ["right", "up", "down"]
    >>> top = TopLabels(StructuredSVM(model="multiclass").fit(X, y))
    >>> top([[0.9, 0.3]], 2)[0].tolist()
    [['right', 'up']]
    """

    def __init__(self, model: Any, *, clusters: int = 0, n_jobs: int = 1) -> None:
        if not hasattr(model, "coef_"):
            raise SettingsError(f"{type(model).__name__} has no coef_: fit it, or use its own top, predict_topk")
        given = model.coef_  # sparse where the weights of many labels are kept by rows
        rows = np.asarray(given.toarray() if sp.issparse(given) else given, np.float64)
        classes = np.asarray(model.classes_)
        if rows.ndim != 2 or len(rows) != len(classes):
            raise SettingsError("the model must have one row of coef_ for each of its classes")
        shift = np.broadcast_to(np.asarray(model.intercept_, np.float64), len(rows))
        self.classes = classes
        self.index = SearchIndex(np.column_stack([rows, shift]), clusters=clusters, threads=n_jobs)

    def __call__(self, X: Any, k: int = 1, *, probes: int | None = None) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """(classes, scores), (rows, k), best first: exact, or with `probes` from so many clusters."""
        x = as_rows(X.toarray() if sp.issparse(X) else X, what="X")
        if x.shape[1] != self.index.shape[1] - 1:
            raise DataError(f"X must have {self.index.shape[1] - 1} columns, as the model, not {x.shape[1]}")
        found = self.index.search(np.column_stack([x, np.ones(len(x))]), k, probes=probes)
        return self.classes[found.labels], found.values
