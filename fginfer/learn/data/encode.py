"""From what a user passes to `fit` or `predict` to the arrays of the core, by model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.learn import Edges, Kind
from fginfer.errors import DataError, SettingsError
from fginfer.learn.data import examples as d
from fginfer.learn.data.labels import (
    candidate_classes,
    candidate_lists,
    check_truth_is_candidate,
    encode_candidates,
    encode_labels,
    encode_sets,
    flatten_labels,
    label_sets,
    place,
)
from fginfer.learn.data.parsing import is_projective

TOKEN_MODELS = ("chain", "graph", "multiclass")
CHOICE_MODELS = ("choices", "matching", "parse")
MODELS = (*TOKEN_MODELS, "multilabel", *CHOICE_MODELS)
EDGES = {"multiclass": Edges.NONE, "chain": Edges.CHAIN, "graph": Edges.LIST}


def encode(
    model: str,
    X: Any,
    y: Any = None,
    *,
    offsets: ArrayLike | None = None,
    classes: NDArray[Any] | None = None,
    n_features: int | None = None,
    n_edge_features: int | None = None,
    edge_kind: str | None = None,
    intercept: bool = True,
    pairwise: bool = True,
    cost: Any = None,
    reachable: bool = True,
) -> tuple[d.Encoded, NDArray[Any]]:
    """(arrays, classes). With classes=None they are found in y (training); otherwise labels must be among them.

    reachable: whether the true answer must be one that the model can give: a candidate, a projective tree."""
    if model not in MODELS:
        raise SettingsError(f"model must be one of {', '.join(MODELS)}, not {model!r}")
    if cost is not None and model in CHOICE_MODELS:
        raise SettingsError(f"a loss matrix belongs to models with labels, not to {model}")
    if model in CHOICE_MODELS:
        return _choices(model, X, y, offsets, n_features, reachable)
    X = _inputs(model, X, offsets, pairwise)
    rows, begin, examples = d.stack_features(X, offsets, n_features, model == "chain")
    if intercept:
        rows = d.add_intercept(rows)
    weight = d.encode_weights([e.weight for e in examples or ()], begin)
    if model == "multilabel":
        out, classes = _sets(rows, begin, y, classes, pairwise)
        out.token_weight, out.cost = weight, check_cost(cost, len(classes), model, classes)
        return out, classes
    lists = candidate_lists(examples, begin)
    if y is not None:
        flat = flatten_labels(y, begin, d.is_listed(X, offsets))
        if classes is None:
            classes = candidate_classes(lists, np.unique(flat))
    if classes is None:
        raise DataError("training requires y to be passed, but the target y is None")
    out = d.Encoded(
        Kind.LABELS, EDGES[model] if pairwise else Edges.NONE, begin, rows, len(classes), np.zeros(begin[-1], np.int32)
    )
    out.choice_begin, out.choice = encode_candidates(lists, begin, classes)
    out.token_weight = weight
    _add_edges(out, examples, edge_kind, n_edge_features)
    if y is not None:
        out.truth = encode_labels(flat, classes, begin)
    if out.choice_begin is not None and out.choice is not None:
        if y is None:
            out.truth = out.choice[out.choice_begin[:-1]]
        if reachable:
            check_truth_is_candidate(out.truth, out.choice_begin, out.choice, begin, classes)
    out.cost = check_cost(cost, len(classes), model, classes)
    return out, classes


def _inputs(model: str, X: Any, offsets: ArrayLike | None, pairwise: bool) -> Any:
    """X in a form that the model takes."""
    if model in ("multiclass", "multilabel"):
        if offsets is not None:
            raise SettingsError(f"offsets belong to chains and graphs, not to {model} problems")
        X = X if isinstance(X, d.Example) or hasattr(X, "shape") else np.asarray(X)
    elif model == "graph" and isinstance(X, d.Example) and offsets is None:
        raise DataError("graphs are a list of Example objects with edges, or one Example with offsets")
    elif offsets is None and not d.is_listed(X, None):
        own = "a sequence of its own" if model == "chain" else "a graph of one token"
        warn(f"X is one table without offsets: every row is {own}", UserWarning, stacklevel=5)
    if model == "graph" and d.is_listed(X, offsets):
        X = [d.as_graph(x, i, pairwise) for i, x in enumerate(X)]
    _check_parts(model, [X] if isinstance(X, d.Example) else X if d.is_listed(X, offsets) else ())
    return X


def _add_edges(out: d.Encoded, examples: Any, edge_kind: str | None, n_edge_features: int | None) -> None:
    if out.edges == Edges.LIST:
        out.edge_begin, out.edge_u, out.edge_v = d.encode_edges(examples, out.token_begin)
    if out.edges != Edges.NONE:
        counts = np.diff(out.token_begin) - 1 if out.edge_begin is None else np.diff(out.edge_begin)
        out.edge_kind, out.n_edge_features, out.edge_rows = d.encode_edge_features(
            examples, counts, edge_kind, n_edge_features
        )


def _check_parts(model: str, examples: Sequence[Any]) -> None:
    """Nothing that a model has no use for is passed over in silence."""
    for i, e in enumerate(examples):
        if not isinstance(e, d.Example):
            continue
        if model != "graph" and e.edges is not None:
            raise DataError(f"example {i}: only graphs have edge lists, this model is {model}")
        if model not in ("chain", "graph") and (e.edge_types is not None or e.edge_features is not None):
            raise DataError(f"example {i}: only chains and graphs have edge types or features, this model is {model}")
        if model == "multilabel" and e.candidates is not None:
            raise DataError(f"example {i}: candidate lists belong to tokens with one label, this model is {model}")


def _choices(
    model: str, X: Any, y: Any, offsets: ArrayLike | None, n_features: int | None, reachable: bool
) -> tuple[d.Encoded, NDArray[Any]]:
    rows, begin, choice_begin, weight = d.encode_choices(X, offsets, n_features)
    counts = np.diff(choice_begin)
    out = d.Encoded(Kind.CHOICES, Edges.NONE, begin, rows, 0, np.zeros(begin[-1], np.int32), choice_begin=choice_begin)
    out.projective, out.token_weight = model == "parse", weight
    if out.projective and (counts != np.repeat(np.diff(begin), np.diff(begin)) + 1).any():
        raise DataError("in a parse of n tokens each needs n + 1 alternatives: the root and every token")
    if y is not None:
        flat = flatten_labels(y, begin, offsets is None)
        wrong = (flat < 0) | (flat >= counts) if np.issubdtype(flat.dtype, np.integer) else np.ones(len(flat), bool)
        if wrong.any():
            t = int(np.argmax(wrong))
            raise DataError(
                f"{place(t, begin)}: y must hold the numbers of the alternatives chosen, from 0 to {counts[t] - 1}, "
                f"not {flat[t]}"
            )
        out.truth = flat.astype(np.int32)
        if out.projective and reachable:
            for i, heads in enumerate(np.split(out.truth, begin[1:-1])):
                if not is_projective(heads):
                    raise DataError(f"example {i}: its heads are not a projective tree with one root")
    return out, np.arange(int(counts.max()))


def _sets(
    rows: Any, begin: d.Longs, y: Any, classes: NDArray[Any] | None, pairwise: bool
) -> tuple[d.Encoded, NDArray[Any]]:
    n = len(begin) - 1
    sets: list[NDArray[Any]] = [np.zeros(0, np.int64)] * n
    if y is not None:
        sets, columns = label_sets(y, n)
        if classes is None:
            filled = [s for s in sets if len(s)]
            if columns is None and not filled:
                raise DataError("no example has a label")
            classes = np.unique(np.concatenate(filled)) if columns is None else columns
        elif columns is not None and len(columns) != len(classes):
            raise DataError(f"y has {len(columns)} columns, the model was trained with {len(classes)} labels")
    if classes is None:
        raise DataError("training requires y to be passed, but the target y is None")
    if len(classes) == 0:
        raise DataError("y has no columns: there are no labels")
    truth, truth_begin = encode_sets(sets, classes)
    edges = Edges.CHAIN if pairwise else Edges.NONE
    return d.Encoded(Kind.SETS, edges, begin, rows, len(classes), truth, truth_begin), classes


def _called(cost: Any, classes: NDArray[Any], model: str) -> Any:
    """What a user's function says: cost(truth, answer), or for label sets cost(label), a pair."""
    labels = classes.tolist()
    if model == "multilabel":
        return [cost(label) for label in labels]
    return [[0.0 if a == b else cost(a, b) for b in labels] for a in labels]


def check_cost(cost: Any, n: int, model: str, classes: NDArray[Any] | None = None) -> d.Reals | None:
    """A user's losses: cost[truth][answer], or for label sets what missing a label and one too many cost, once for all
    labels or a row a label; or, where the classes are known, a function that gives these."""
    if cost is None:
        return None
    try:
        given = _called(cost, classes, model) if callable(cost) and classes is not None else cost
        matrix = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"loss is a loss matrix, cost[truth][answer], or a function that gives one ({error})") from None
    if model == "multilabel":
        if matrix.shape not in ((2,), (n, 2)):
            raise DataError(f"the loss of label sets has the shape (2,) or ({n}, 2), this has {matrix.shape}")
        matrix = np.tile(matrix, (n, 1)) if matrix.ndim == 1 else matrix
    elif matrix.shape != (n, n):
        raise DataError(f"the loss matrix has the shape {matrix.shape}, there are {n} labels")
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise DataError("the loss matrix must be finite and not negative")
    if model != "multilabel" and np.diagonal(matrix).any():
        raise DataError("the loss matrix must be zero on its diagonal")
    return matrix
