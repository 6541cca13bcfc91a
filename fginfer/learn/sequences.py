"""What scikit-learn's tools need to work on lists of sequences: arrays of them, scalers for them, and a scorer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from fginfer.errors import DataError
from fginfer.learn.data.sequences import Sequences, in_the_form_of


def as_sequences(parts: Iterable[Any]) -> Sequences:
    """X or y as a list of sequences with which all of scikit-learn's tools work: `cross_val_predict`,
    ``cross_val_score(..., scoring="accuracy")`` and ``GridSearchCV`` with any measure of labels (each token counts
    once), `train_test_split`. What is predicted for such a list is one, too.

    >>> as_sequences([[1, 2], [3]]).shape
    (2,)
    """
    return Sequences(parts)


def token_accuracy(estimator: Any, X: Any, y: Any) -> float:
    """Share of tokens with the right label, on any lists: ``scoring=token_accuracy``. ``scoring="accuracy"`` is the
    same, but scikit-learn's own measures take y only from :func:`as_sequences`, not as a plain list of lists.

    >>> from sklearn.model_selection import cross_val_score
    >>> from fginfer.learn import StructuredSVM
    >>> X, y = [[[0.0], [1.0]]] * 4, [["a", "b"]] * 4
    >>> cross_val_score(StructuredSVM(), X, y, scoring=token_accuracy, cv=2).tolist()
    [1.0, 1.0]
    """
    return float(estimator.score(X, y))


class PerToken(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer of tables (a scaler, a selector) for lists of tables: fitted on the tokens of all sequences, and
    applied to each. In a pipeline: ``make_pipeline(PerToken(StandardScaler()), StructuredSVM())``.

    >>> from sklearn.preprocessing import StandardScaler
    >>> PerToken(StandardScaler()).fit_transform([[[0.0], [2.0]], [[4.0]]])[1].round(3).tolist()
    [[1.225]]
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fits the transformer on the tokens of all sequences."""
        self.transformer_ = clone(self.transformer).fit(_stacked(X))
        return self

    def transform(self, X: Any) -> Any:
        """Each sequence, transformed."""
        check_is_fitted(self, "transformer_")
        sizes = np.cumsum([len(_table(x)) if not sp.issparse(x) else x.shape[0] for x in X])
        whole = self.transformer_.transform(_stacked(X))
        parts = [whole[a:b] for a, b in zip([0, *sizes[:-1]], sizes, strict=True)]
        return in_the_form_of(X, parts)


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
