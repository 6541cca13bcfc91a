"""What scikit-learn's tools need to work on lists of sequences: arrays of them, scalers for them, and a scorer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from fginfer.errors import DataError


def as_sequences(parts: Iterable[Any]) -> NDArray[Any]:
    """A flat array whose entries are the sequences, which `cross_val_predict` and `train_test_split` can take apart.
    What is predicted for such an array is one, too.

    >>> as_sequences([[1, 2], [3]]).shape
    (2,)
    """
    listed = list(parts)
    out = np.empty(len(listed), dtype=object)
    for i, part in enumerate(listed):
        out[i] = part
    return out


def token_accuracy(estimator: Any, X: Any, y: Any) -> float:
    """Share of tokens with the right label: ``scoring=token_accuracy`` where ``scoring="accuracy"`` cannot be, since
    scikit-learn's own measures do not take lists of lists."""
    return float(estimator.score(X, y))


class PerToken(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer of tables (a scaler, a selector) for lists of tables: fitted on the tokens of all sequences, and
    applied to each. In a pipeline: ``make_pipeline(PerToken(StandardScaler()), StructuredSVM())``."""

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> Self:
        self.transformer_ = clone(self.transformer).fit(_stacked(X))
        return self

    def transform(self, X: Any) -> Any:
        check_is_fitted(self, "transformer_")
        sizes = np.cumsum([len(_table(x)) if not sp.issparse(x) else x.shape[0] for x in X])
        whole = self.transformer_.transform(_stacked(X))
        parts = [whole[a:b] for a, b in zip([0, *sizes[:-1]], sizes, strict=True)]
        return as_sequences(parts) if isinstance(X, np.ndarray) else parts


def _table(x: Any) -> Any:
    try:
        table = np.asarray(x, np.float64)
    except (TypeError, ValueError):
        raise DataError("PerToken takes sequences of tables of numbers, (tokens, features) each") from None
    if table.ndim != 2:
        raise DataError(f"a sequence must have the shape (tokens, features), this one has {table.shape}")
    return table


def _stacked(X: Any) -> Any:
    if len(X) == 0:
        raise DataError("X is empty")
    if any(sp.issparse(x) for x in X):
        return sp.vstack([sp.csr_matrix(x) for x in X], format="csr")
    return np.concatenate([_table(x) for x in X])
