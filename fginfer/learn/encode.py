"""From what a user passes to `fit` or `predict` to the arrays of the core, by model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.errors import DataError, SettingsError
from fginfer.learn import data as d

CHOICE_MODELS = ("choices", "matching", "parse")
MODELS = ("chain", "graph", "multilabel", "multiclass", *CHOICE_MODELS)


def encode(
    model: str,
    X: Any,
    y: Any = None,
    *,
    offsets: ArrayLike | None = None,
    classes: NDArray[Any] | None = None,
    n_features: int | None = None,
    n_edge_features: int | None = None,
    intercept: bool = True,
    pairwise: bool = True,
    cost: ArrayLike | None = None,
) -> tuple[d.Encoded, NDArray[Any]]:
    """(arrays, classes). With classes=None they are found in y (training); otherwise labels must be among them."""
    if model not in MODELS:
        raise SettingsError(f"model must be one of {', '.join(MODELS)}, not {model!r}")
    if model in CHOICE_MODELS:
        return _choices(model, X, y, n_features)
    if model in ("multiclass", "multilabel") and offsets is not None:
        raise SettingsError(f"offsets belong to chains, not to {model} problems")
    if model == "graph" and not isinstance(X, (list, tuple)):
        raise DataError("graphs are given as a list of Example objects with edges")
    if model in ("multiclass", "multilabel") and isinstance(X, (list, tuple)):
        X = np.asarray(X)
    rows, begin, examples = d.stack_features(X, offsets, n_features)
    if intercept:
        rows = d.add_intercept(rows)
    if model == "multilabel":
        return _sets(rows, begin, y, classes, pairwise)
    concatenated = examples is None
    if y is not None:
        flat = d.flatten_labels(y, begin, concatenated)
        if flat.dtype.kind == "f" and not np.isfinite(flat).all():
            raise DataError("y holds NaN or infinity")
        if classes is None:
            classes = np.unique(flat)
    if classes is None:
        raise DataError("training requires y to be passed, but the target y is None")
    kinds = {"multiclass": 0, "chain": 1 if pairwise else 0, "graph": 2}
    out = d.Encoded(0, kinds[model], begin, rows, len(classes), np.zeros(begin[-1], np.int32))
    out.choice_begin, out.choice = d.encode_candidates(examples, begin, classes)
    out.token_weight = d.encode_weights(examples, begin)
    if model == "graph":
        assert examples is not None
        out.edge_begin, out.edge_u, out.edge_v, out.n_edge_features, out.edge_rows = d.encode_edges(
            examples, begin, n_edge_features
        )
    if y is not None:
        out.truth = d.encode_labels(flat, classes)
    elif out.choice_begin is not None and out.choice is not None:
        out.truth = out.choice[out.choice_begin[:-1]]
    out.cost = check_cost(cost, len(classes))
    return out, classes


def _choices(model: str, X: Any, y: Any, n_features: int | None) -> tuple[d.Encoded, NDArray[Any]]:
    rows, begin, choice_begin = d.encode_choices(X, n_features)
    counts = np.diff(choice_begin)
    out = d.Encoded(1, 0, begin, rows, 0, np.zeros(begin[-1], np.int32), choice_begin=choice_begin)
    out.projective = model == "parse"
    if y is not None:
        flat = d.flatten_labels(y, begin, False)
        if not np.issubdtype(flat.dtype, np.integer) or (flat < 0).any() or (flat >= counts).any():
            raise DataError("y must hold the numbers of the alternatives chosen, from 0")
        out.truth = flat.astype(np.int32)
    return out, np.arange(int(counts.max()))


def _sets(
    rows: Any, begin: d.Longs, y: Any, classes: NDArray[Any] | None, pairwise: bool
) -> tuple[d.Encoded, NDArray[Any]]:
    n = len(begin) - 1
    sets: list[NDArray[Any]] = [np.zeros(0, np.int64)] * n
    if y is not None:
        sets, columns = d.label_sets(y, n)
        if classes is None:
            filled = [s for s in sets if len(s)]
            if columns is None and not filled:
                raise DataError("no example has a label")
            classes = np.unique(np.concatenate(filled)) if columns is None else columns
    if classes is None:
        raise DataError("training requires y to be passed, but the target y is None")
    truth, truth_begin = d.encode_sets(sets, classes)
    return d.Encoded(2, 1 if pairwise else 0, begin, rows, len(classes), truth, truth_begin), classes


def check_cost(cost: ArrayLike | None, n: int) -> d.Reals | None:
    """A user's loss matrix cost[truth][answer]: finite, not negative, zero on the diagonal."""
    if cost is None:
        return None
    matrix = np.asarray(cost, np.float64)
    if matrix.shape != (n, n):
        raise DataError(f"the loss matrix has the shape {matrix.shape}, there are {n} labels")
    if not np.isfinite(matrix).all() or (matrix < 0).any() or np.diagonal(matrix).any():
        raise DataError("the loss matrix must be finite, not negative, and zero on its diagonal")
    return matrix
