"""Training data as flat arrays: what the estimators accept, checked and encoded before anything is trained.

Accepted inputs, by model:

* ``"multiclass"``: X is (n, d), y has n labels.
* ``"multilabel"``: X is (n, d), y is an (n, L) indicator matrix (dense or sparse) or a list of n collections of labels.
* ``"chain"``: X is a list of (T_i, d) arrays (dense or CSR) and y a list of T_i labels each; or one concatenated
  (T, d) array, one concatenated y, and ``offsets`` with n + 1 entries.
  An element of the list may be an :class:`Example` instead.
* ``"graph"``: X is a list of :class:`Example` with edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from fginfer.errors import DataError

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """One sequence or graph: features (T, d), and what is optional.

    edges: (E, 2) token positions; edge_types: E numbers, one table of pairwise weights each type; or edge_features:
    (E, g), one table each feature; candidates: T collections of labels that are allowed; weight: T loss weights.
    """

    features: Any
    edges: ArrayLike | None = None
    edge_types: ArrayLike | None = None
    edge_features: Any = None
    candidates: Sequence[Iterable[Any]] | None = None
    weight: ArrayLike | None = None


@dataclass(frozen=True)
class Choices:
    """One example whose tokens each choose one of their own alternatives: ``rows`` holds the features of all
    alternatives, token by token, ``counts`` how many each token has. In a parse of n tokens each has n + 1: its head,
    from 1, or 0 for the root."""

    rows: Any
    counts: ArrayLike


@dataclass
class Encoded:
    """Everything the core needs (fgi_learn_data), apart from the truth, which is zeros until :meth:`with_truth`."""

    kind: int  # 0 labels, 1 choices, 2 sets
    edges: int  # 0 none, 1 chain, 2 list
    token_begin: Longs
    rows: sp.csr_matrix
    n_labels: int
    truth: Ints
    truth_begin: Longs | None = None
    choice_begin: Longs | None = None
    choice: Ints | None = None
    edge_begin: Longs | None = None
    edge_u: Ints | None = None
    edge_v: Ints | None = None
    n_edge_features: int = 1
    edge_rows: sp.csr_matrix | None = None
    token_weight: Reals | None = None
    cost: Reals | None = None
    projective: bool = False

    @property
    def n_examples(self) -> int:
        return len(self.token_begin) - 1


def _csr(features: Any, what: str) -> sp.csr_matrix:
    """A finite float64 CSR matrix with int32-sized column numbers."""
    if sp.issparse(features):
        matrix = sp.csr_matrix(features, dtype=np.float64)
    else:
        try:
            dense = np.asarray(features, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"{what}: features are not a rectangular array of numbers ({error})") from None
        if dense.ndim != 2:
            raise DataError(f"{what}: features must have two dimensions (tokens, features), they have {dense.ndim}")
        matrix = sp.csr_matrix(dense)
    if not np.isfinite(matrix.data).all():
        raise DataError(f"{what}: features hold NaN or infinity")
    return matrix


def stack_features(
    X: Any, offsets: ArrayLike | None, n_features: int | None = None
) -> tuple[sp.csr_matrix, Longs, list[Example] | None]:
    """All feature rows, the first row of each example (n + 1 entries), and the examples when X was a list."""
    if offsets is not None or not isinstance(X, (list, tuple)):
        rows = _csr(X, "X")
        begin = np.arange(rows.shape[0] + 1) if offsets is None else np.asarray(offsets, dtype=np.int64)
        if begin.ndim != 1 or len(begin) < 2 or begin[0] != 0 or begin[-1] != rows.shape[0]:
            raise DataError(f"offsets must run from 0 to the number of rows, {rows.shape[0]}")
        examples = None
    else:
        if not X:
            raise DataError("X is empty")
        examples = [x if isinstance(x, Example) else Example(x) for x in X]
        parts = [_csr(e.features, f"example {i}") for i, e in enumerate(examples)]
        for i, part in enumerate(parts):
            if part.shape[1] != parts[0].shape[1]:
                raise DataError(f"example {i} has {part.shape[1]} features a token, example 0 has {parts[0].shape[1]}")
        rows = sp.vstack(parts, format="csr")
        begin = np.concatenate([[0], np.cumsum([part.shape[0] for part in parts])])
    lengths = np.diff(begin)
    if (lengths <= 0).any():
        raise DataError(f"example {int(np.argmax(lengths <= 0))} is empty")
    if n_features is not None and rows.shape[1] != n_features:
        raise DataError(f"X has {rows.shape[1]} features, the model was trained with {n_features}")
    return rows, begin.astype(np.int64), examples


def add_intercept(rows: sp.csr_matrix) -> sp.csr_matrix:
    return sp.csr_matrix(sp.hstack([rows, np.ones((rows.shape[0], 1))], format="csr"))


def flatten_labels(y: Any, begin: Longs, concatenated: bool) -> NDArray[Any]:
    """One label a token, checked against the lengths of the examples."""
    if concatenated:
        flat = np.asarray(y)
        if flat.ndim != 1 or len(flat) != begin[-1]:
            raise DataError(f"y must have one label for each of the {begin[-1]} rows of X, its shape is {flat.shape}")
        return flat
    if len(y) != len(begin) - 1:
        raise DataError(f"X has {len(begin) - 1} examples, y has {len(y)}")
    parts = [np.asarray(part) for part in y]
    for i, part in enumerate(parts):
        if part.ndim != 1 or len(part) != begin[i + 1] - begin[i]:
            raise DataError(f"example {i} has {begin[i + 1] - begin[i]} tokens, its labels have the shape {part.shape}")
    return np.concatenate(parts)


def encode_labels(flat: NDArray[Any], classes: NDArray[Any]) -> Ints:
    """Positions in the sorted `classes`; an unknown label is an error that names it."""
    try:
        position = np.searchsorted(classes, flat)
    except TypeError:
        raise DataError(f"labels of type {flat.dtype} do not compare with the trained ones ({classes.dtype})") from None
    position = np.minimum(position, len(classes) - 1)
    wrong = classes[position] != flat
    if wrong.any():
        raise DataError(f"label {flat[int(np.argmax(wrong))]!r} was not seen in training")
    return position.astype(np.int32)


def label_sets(y: Any, n: int) -> tuple[list[NDArray[Any]], NDArray[Any] | None]:
    """Multilabel targets as one array of labels an example; labels of an indicator matrix are its columns."""
    if sp.issparse(y) or (isinstance(y, np.ndarray) and y.ndim == 2):
        matrix = sp.csr_matrix(y)
        if matrix.shape[0] != n:
            raise DataError(f"X has {n} examples, y has {matrix.shape[0]}")
        if not np.isin(matrix.data, (0, 1)).all():
            raise DataError("an indicator matrix holds zeros and ones only")
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return np.split(matrix.indices.astype(np.int64), matrix.indptr[1:-1]), np.arange(matrix.shape[1])
    if len(y) != n:
        raise DataError(f"X has {n} examples, y has {len(y)}")
    return [np.unique(np.asarray(list(labels))) for labels in y], None


def encode_sets(sets: list[NDArray[Any]], classes: NDArray[Any]) -> tuple[Ints, Longs]:
    begin = np.concatenate([[0], np.cumsum([len(s) for s in sets])]).astype(np.int64)
    filled = [s for s in sets if len(s)]
    flat = encode_labels(np.concatenate(filled), classes) if filled else np.zeros(0, np.int32)
    return flat, begin


def encode_candidates(
    examples: list[Example] | None, begin: Longs, classes: NDArray[Any]
) -> tuple[Longs | None, Ints | None]:
    """Candidate lists per token as (begin, labels); (None, None) when no example has any."""
    if examples is None or all(e.candidates is None for e in examples):
        return None, None
    everything = np.arange(len(classes), dtype=np.int32)
    known: dict[Any, Ints] = {}  # many tokens share a list: each is encoded once
    parts: list[Ints] = []
    for i, e in enumerate(examples):
        length = int(begin[i + 1] - begin[i])
        if e.candidates is None:
            parts += [everything] * length
            continue
        if len(e.candidates) != length:
            raise DataError(f"example {i} has {length} tokens and {len(e.candidates)} candidate lists")
        for labels in e.candidates:
            key = tuple(labels)
            if key not in known:
                if not key:
                    raise DataError(f"example {i} has a token without candidates")
                known[key] = np.unique(encode_labels(np.asarray(key), classes))
            parts.append(known[key])
    sizes = np.fromiter((len(p) for p in parts), np.int64, len(parts))
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.concatenate(parts)


def encode_edges(
    examples: list[Example], begin: Longs, n_edge_features: int | None
) -> tuple[Longs, Ints, Ints, int, sp.csr_matrix | None]:
    """Edge lists of graphs: (edge_begin, u, v, number of pairwise features, features of the edges or None)."""
    pairs, rows = [], []
    for i, e in enumerate(examples):
        edge = np.zeros((0, 2), np.int64) if e.edges is None else np.asarray(e.edges)
        if edge.size == 0:
            edge = edge.reshape(0, 2)
        if edge.ndim != 2 or edge.shape[1] != 2 or not np.issubdtype(edge.dtype, np.integer):
            raise DataError(f"example {i}: edges must be an (E, 2) array of token numbers")
        length = begin[i + 1] - begin[i]
        if ((edge < 0) | (edge >= length)).any() or (edge[:, 0] == edge[:, 1]).any():
            raise DataError(f"example {i}: an edge does not join two different tokens between 0 and {length - 1}")
        pairs.append(edge)
        if e.edge_types is not None and e.edge_features is not None:
            raise DataError(f"example {i}: give edge types or edge features, not both")
        if e.edge_types is not None:
            types = np.asarray(e.edge_types)
            if types.shape != (len(edge),) or (types < 0).any():
                raise DataError(f"example {i}: there must be one edge type, 0 or more, for each of {len(edge)} edges")
            ones = np.ones(len(edge))
            rows.append(
                sp.csr_matrix((ones, (np.arange(len(edge)), types)), shape=(len(edge), int(types.max(initial=0)) + 1))
            )
        elif e.edge_features is not None:
            part = _csr(e.edge_features, f"edges of example {i}")
            if part.shape[0] != len(edge):
                raise DataError(f"example {i} has {len(edge)} edges and {part.shape[0]} rows of edge features")
            rows.append(part)
    flat = np.concatenate(pairs)
    edge_begin = np.concatenate([[0], np.cumsum([len(p) for p in pairs])]).astype(np.int64)
    width, matrix = 1, None
    if rows:
        if len(rows) != len(examples):
            raise DataError("either all examples have edge types or features, or none")
        width = max(part.shape[1] for part in rows) if n_edge_features is None else n_edge_features
        if any(part.shape[1] > width for part in rows):
            raise DataError(f"an edge type or feature is beyond the {width} seen in training")
        for part in rows:
            part.resize(part.shape[0], width)
        matrix = sp.vstack(rows, format="csr")
    return (
        edge_begin,
        np.ascontiguousarray(flat[:, 0], np.int32),
        np.ascontiguousarray(flat[:, 1], np.int32),
        width,
        matrix,
    )


def encode_choices(X: Any, n_features: int | None) -> tuple[sp.csr_matrix, Longs, Longs]:
    """(feature rows, first token of each example, first alternative of each token)."""
    if not isinstance(X, (list, tuple)) or not X or not all(isinstance(x, Choices) for x in X):
        raise DataError("X must be a list of Choices")
    parts = [_csr(x.rows, f"example {i}") for i, x in enumerate(X)]
    counts = [np.asarray(x.counts, np.int64) for x in X]
    for i, (part, count) in enumerate(zip(parts, counts, strict=True)):
        if count.ndim != 1 or not len(count) or (count < 1).any():
            raise DataError(f"example {i}: every token needs at least one alternative")
        if count.sum() != part.shape[0]:
            raise DataError(f"example {i}: {part.shape[0]} rows of features for {count.sum()} alternatives")
        if part.shape[1] != (parts[0].shape[1] if n_features is None else n_features):
            raise DataError(f"example {i} has {part.shape[1]} features, expected {n_features or parts[0].shape[1]}")
    begin = np.concatenate([[0], np.cumsum([len(c) for c in counts])]).astype(np.int64)
    return (
        sp.vstack(parts, format="csr"),
        begin,
        np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64),
    )


def encode_weights(examples: list[Example] | None, begin: Longs) -> Reals | None:
    if examples is None or all(e.weight is None for e in examples):
        return None
    parts = []
    for i, e in enumerate(examples):
        length = int(begin[i + 1] - begin[i])
        part = np.ones(length) if e.weight is None else np.asarray(e.weight, np.float64)
        if part.shape != (length,) or not np.isfinite(part).all() or (part < 0).any():
            raise DataError(f"example {i}: weights must be {length} finite numbers that are not negative")
        parts.append(part)
    return np.concatenate(parts)
