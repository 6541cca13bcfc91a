"""What a linear model has learned, for people: its largest weights with the names of features and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from fginfer.errors import DataError, SettingsError
from fginfer.learn.data.encode import CHOICE_MODELS
from fginfer.options import check_whole, is_number


class TopWeights:
    """For estimators with ``coef_`` (labels, features), dense or sparse, and ``pairwise_``."""

    model: str
    coef_: Any
    pairwise_: Any
    classes_: Any
    n_features_in_: int

    def top_features(self, n: int = 10, feature_names: Any = None) -> dict[Any, list[tuple[Any, float]]]:
        """The features of the largest weights, by absolute value, of every label: {label: [(feature, weight), ...]}.

        Features have their names where these are known (tokens as dicts, data frames, or `feature_names`), else
        numbers; weights of 0 are left out. Models of choices have one weight a feature: the only key is "choice"."""
        check_is_fitted(self, "weights_")
        check_whole("n", n, 1)
        names = feature_names
        for known in ("feature_names_", "feature_names_in_"):
            names = getattr(self, known, None) if names is None else names
        if names is not None and len(names) != self.n_features_in_:
            raise DataError(f"there are {self.n_features_in_} features and {len(names)} names")
        labels = ["choice"] if self.model in CHOICE_MODELS else list(getattr(self, "nodes_", self.classes_.tolist()))
        coef = self.coef_.tocsr() if sp.issparse(self.coef_) else self.coef_
        out: dict[Any, list[tuple[Any, float]]] = {}
        for k, label in enumerate(labels):
            row = sp.csr_matrix(coef[k])
            places = _largest(row.data, row.indices, n)
            out[label] = [
                (int(j) if names is None else str(names[j]), float(x))
                for j, x in zip(row.indices[places], row.data[places], strict=True)
            ]
        return out

    def top_transitions(self, n: int = 10, edge_feature: int = 0) -> list[tuple[Any, Any, float]]:
        """The pairs of labels with the largest weights, by absolute value: [(label, next label, weight), ...]; of label
        sets the interactions. Weights of 0 are left out. edge_feature: which, where edges have types or features."""
        check_is_fitted(self, "weights_")
        check_whole("n", n, 1)
        tables = self.pairwise_
        if len(tables) == 0:
            raise SettingsError("the model has no weights on pairs of labels")
        if not is_number(edge_feature, whole=True) or not 0 <= edge_feature < len(tables):
            raise SettingsError(
                f"edge_feature must be a whole number from 0 to {len(tables) - 1}, not {edge_feature!r}"
            )
        table = np.triu(tables[edge_feature], 1) if self.model == "multilabel" else tables[edge_feature]
        u, v = np.nonzero(table)
        places = _largest(table[u, v], u * len(table) + v, n)
        labels = self.classes_.tolist()
        return [(labels[a], labels[b], float(table[a, b])) for a, b in zip(u[places], v[places], strict=True)]


def _largest(values: Any, order: Any, n: int) -> Any:
    """Places of the n values of largest magnitude that are not 0, equal ones by `order`."""
    places = np.lexsort((order, -np.abs(values)))[:n]
    return places[values[places] != 0]
