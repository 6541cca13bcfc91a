"""Training data as flat arrays: what the estimators accept, checked and encoded before anything is trained.

Accepted inputs, by model:

* ``"multiclass"``: X is (n, d), y has n labels.
* ``"multilabel"``: X is (n, d), y is an (n, L) indicator matrix (dense or sparse) or a list of n collections of labels.
* ``"chain"``: X is a list of (T_i, d) arrays (dense or CSR) and y a list of T_i labels each; or one concatenated
  (T, d) array, one concatenated y, and ``offsets`` with n + 1 entries.
* ``"graph"``: X is a list of :class:`Example` with edges, or of tuples (features, edges[, edge_features]);
  or one Example with the tokens of all graphs (edges hold their places in it), one concatenated y, and ``offsets``.
* ``"choices"``, ``"matching"``, ``"parse"``: X is a list of :class:`Choices`; or one, with ``offsets`` of its tokens.

Wherever an array of features may stand, an Example may, too: with candidate lists, weights, edge types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from fginfer.core.arrays import begins
from fginfer.core.learn import Edges, Kind
from fginfer.core.learn import Ints as Ints
from fginfer.core.learn import Longs as Longs
from fginfer.core.learn import Reals as Reals
from fginfer.errors import DataError
from fginfer.learn.data.magnitudes import are_sound, complaint, unsound
from fginfer.learn.data.sequences import is_list


@dataclass(frozen=True)
class Example:
    """One sequence or graph (or, with ``offsets``, many, one after the other): features (T, d), and what is optional.

    edges: (E, 2) token positions, of a graph; edge_types: E numbers, one table of pairwise weights each type; or
    edge_features: (E, g), one table each feature; the edges of a chain are its T - 1 pairs of neighbours.
    candidates: T collections of labels that are allowed (None: all). weight: T weights of the loss.
    """

    features: Any
    edges: ArrayLike | None = None
    edge_types: ArrayLike | None = None
    edge_features: Any = None
    candidates: Sequence[Iterable[Any] | None] | None = None
    weight: ArrayLike | None = None


@dataclass(frozen=True)
class Choices:
    """One example whose tokens each choose one of their own alternatives: ``rows`` holds the features of all
    alternatives, token by token, ``counts`` how many each token has. In a parse of n tokens each has n + 1: its head,
    from 1, or 0 for the root. weight: a weight of the loss for each token."""

    rows: Any
    counts: ArrayLike
    weight: ArrayLike | None = None


@dataclass
class Encoded:
    """Everything the core needs (fgi_learn_data). edge_kind: what edge_rows were made of ("", "types", "features")."""

    kind: Kind
    edges: Edges
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
    edge_kind: str = ""

    @property
    def n_examples(self) -> int:
        return len(self.token_begin) - 1


def as_graph(x: Any, i: int, pairwise: bool = True) -> Any:
    """An Example, also from a tuple (features, edges) or (features, edges, edge_features); features alone have no
    edges, which only a model without pairwise weights can do without."""
    if isinstance(x, Example):
        return x
    if isinstance(x, tuple) and len(x) in (2, 3):
        return Example(x[0], edges=x[1], edge_features=x[2] if len(x) == 3 else None)
    if pairwise:
        raise DataError(
            f"example {i}: a graph needs its edges: an Example with edges, or a tuple (features, edges) or (features, "
            "edges, edge_features); for independent tokens set pairwise=False"
        )
    return Example(x)


# ---- features


def _advice(features: Any) -> str:
    """What to do with a pandas table that has columns of texts."""
    texts = hasattr(features, "to_dict") and any(
        kind in ("object", "str", "string") for kind in map(str, features.dtypes)
    )
    return "; give texts as dicts, one a token: table.to_dict('records')" if texts else ""


def _csr(features: Any, what: str) -> sp.csr_matrix:
    """A finite float64 CSR matrix with int32-sized column numbers."""
    if sp.issparse(features):
        if np.issubdtype(features.dtype, np.complexfloating):
            raise DataError(f"{what}: complex features are not supported")
        matrix = sp.csr_matrix(features, dtype=np.float64)
        if not matrix.has_canonical_format:  # norms of rows need every column once; the user's matrix stays as it is
            matrix = matrix.copy()
            matrix.sum_duplicates()
    else:
        try:
            dense = np.asarray(features)
            if dense.dtype.kind not in "biufO":
                raise ValueError(f"{dense.dtype}")
            dense = dense.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{what}: features are not a rectangular array of numbers ({error}){_advice(features)}"
            ) from None
        if dense.ndim != 2:
            raise DataError(f"{what}: features must have two dimensions (tokens, features), they have {dense.ndim}")
        matrix = sp.csr_matrix(dense)
    if not are_sound(matrix.data):
        at = int(np.argmax(unsound(matrix.data)))
        row = int(np.searchsorted(matrix.indptr, at, "right")) - 1
        raise DataError(f"{what}: features hold {complaint(matrix.data[at])}, in row {row}")
    if matrix.shape[1] >= 2**31:
        raise DataError(f"{what}: {matrix.shape[1]} features are more than 32 bits can count")
    return matrix


def is_listed(X: Any, offsets: ArrayLike | None) -> bool:
    """Whether X is a list of examples, not one table of rows."""
    if offsets is not None:
        return False
    if isinstance(X, np.ndarray):
        return X.ndim == 3 or (X.ndim == 1 and X.dtype == object)
    if not is_list(X):
        return False
    first = next(iter(X), None)
    if first is None or isinstance(first, Example) or sp.issparse(first):
        return True
    try:
        return np.ndim(first) != 1
    except ValueError:  # ragged
        return True


def stack_features(
    X: Any, offsets: ArrayLike | None, n_features: int | None = None, chain: bool = False
) -> tuple[sp.csr_matrix, Longs, list[Example] | None]:
    """All feature rows, the first row of each example (n + 1 entries), and the examples (without features where X was
    one table; None if they have nothing else)."""
    examples: list[Example] | None
    if not is_listed(X, offsets):
        whole = X if isinstance(X, Example) else Example(X)
        rows = _csr(whole.features, "X")
        begin = np.arange(rows.shape[0] + 1) if offsets is None else check_offsets(offsets, rows.shape[0])
        if rows.shape[0] == 0:
            raise DataError("X is empty")
        examples = _split_example(whole, begin, chain)
    else:
        if len(X) == 0:
            raise DataError("X is empty")
        examples = [x if isinstance(x, Example) else Example(x) for x in X]
        rows, begin = _stack([e.features for e in examples])
    if n_features is not None and rows.shape[1] != n_features:
        raise DataError(f"X has {rows.shape[1]} features, the model was trained with {n_features}")
    return rows, begin.astype(np.int64), examples


def _stack(parts: list[Any]) -> tuple[sp.csr_matrix, Longs]:
    """Rows of all examples, and where they begin."""
    plain = all(isinstance(p, np.ndarray) and p.ndim == 2 and p.dtype.kind in "biuf" for p in parts)
    if not plain:  # one by one: sparse, nested lists, or wrong
        parts = [_csr(part, f"example {i}") for i, part in enumerate(parts)]
    for i, part in enumerate(parts):
        if part.shape[1] != parts[0].shape[1]:
            raise DataError(f"example {i} has {part.shape[1]} features a token, example 0 has {parts[0].shape[1]}")
        if part.shape[0] == 0:
            raise DataError(f"example {i} is empty")
    begin = begins([part.shape[0] for part in parts])
    if not plain:
        return sp.vstack(parts, format="csr"), begin
    whole = np.concatenate(parts).astype(np.float64)
    if not are_sound(whole):
        row = int(np.argmax(unsound(whole).any(axis=1)))
        example = int(np.searchsorted(begin, row, "right")) - 1
        raise DataError(f"example {example}: features hold {complaint(whole[row])}, in row {row - begin[example]}")
    return sp.csr_matrix(whole), begin


def check_offsets(offsets: ArrayLike, n: int) -> Longs:
    """n + 1 increasing row numbers, from 0 to the number of rows."""
    begin = np.asarray(offsets)
    if begin.ndim != 1 or len(begin) < 2 or not np.issubdtype(begin.dtype, np.integer):
        raise DataError("offsets must be a list of at least two whole numbers")
    if begin[0] != 0 or begin[-1] != n:
        raise DataError(f"offsets must run from 0 to the number of rows, {n}, not from {begin[0]} to {begin[-1]}")
    steps = np.diff(begin.astype(np.int64))
    if (steps <= 0).any():
        at = int(np.argmax(steps <= 0))
        if steps[at] == 0:
            raise DataError(f"example {at} is empty: offsets {at} and {at + 1} are both {begin[at]}")
        raise DataError(f"offsets must increase: after {begin[at]} comes {begin[at + 1]}")
    return begin.astype(np.int64)


def _split_example(whole: Example, begin: Longs, chain: bool) -> list[Example] | None:
    """The examples of a concatenation, without their features."""
    given = (whole.edges, whole.edge_types, whole.edge_features, whole.candidates, whole.weight)
    if all(part is None for part in given):
        return None
    n, tokens = len(begin) - 1, int(begin[-1])
    for name, part in (("candidate lists", whole.candidates), ("weights", whole.weight)):
        if part is not None and len(part) != tokens:  # type: ignore[arg-type]
            raise DataError(f"X has {tokens} rows and {len(part)} {name}")  # type: ignore[arg-type]
    pairs: Any = None
    if whole.edges is not None:
        pairs = _check_pairs(whole.edges, "X", tokens)
        owner = np.searchsorted(begin, pairs, "right") - 1
        if (owner[:, 0] != owner[:, 1]).any():
            a, b = pairs[int(np.argmax(owner[:, 0] != owner[:, 1]))]
            raise DataError(f"the edge ({a}, {b}) joins two examples")
        order = np.argsort(owner[:, 0], kind="stable")
        pairs = (pairs - begin[owner])[order]
        ends = np.cumsum(np.bincount(owner[:, 0], minlength=n))
    else:
        ends = np.cumsum(np.diff(begin) - 1) if chain else np.zeros(n, np.int64)
        order = np.arange(ends[-1])
    rows: dict[str, Any] = {"edges": pairs}
    for name, part in (("edge_types", whole.edge_types), ("edge_features", whole.edge_features)):
        if part is None:
            continue
        array = _csr(part, "edges of X") if name == "edge_features" else np.asarray(part)
        if array.ndim == 0 or array.shape[0] != len(order):
            given_rows = array.shape[0] if array.ndim else "no list of"
            raise DataError(f"X has {len(order)} edges and {given_rows} {name.replace('_', ' ')}")
        rows[name] = array[order]
    cuts = np.concatenate([[0], ends])
    return [
        Example(
            None,
            **{name: None if part is None else part[cuts[i] : cuts[i + 1]] for name, part in rows.items()},
            candidates=None if whole.candidates is None else whole.candidates[begin[i] : begin[i + 1]],
            weight=None if whole.weight is None else np.asarray(whole.weight)[begin[i] : begin[i + 1]],
        )
        for i in range(n)
    ]


def add_intercept(rows: sp.csr_matrix) -> sp.csr_matrix:
    return sp.csr_matrix(sp.hstack([rows, np.ones((rows.shape[0], 1))], format="csr"))


# ---- edges


def _check_pairs(edges: ArrayLike, what: str, tokens: int) -> Longs:
    pairs = np.asarray(edges)
    if pairs.size == 0:
        pairs = np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise DataError(f"{what}: edges must be an (E, 2) array of token numbers")
    wrong = ((pairs < 0) | (pairs >= tokens)).any(axis=1) | (pairs[:, 0] == pairs[:, 1])
    if wrong.any():
        a, b = pairs[int(np.argmax(wrong))]
        raise DataError(f"{what}: the edge ({a}, {b}) does not join two different tokens between 0 and {tokens - 1}")
    return pairs.astype(np.int64)


def encode_edges(examples: list[Example] | None, begin: Longs) -> tuple[Longs, Ints, Ints]:
    """Edge lists of graphs: (edge_begin, u, v)."""
    if examples is None:
        return np.zeros(len(begin), np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32)
    lengths = np.diff(begin)
    pairs = [
        _check_pairs(() if e.edges is None else e.edges, f"example {i}", lengths[i]) for i, e in enumerate(examples)
    ]
    flat = np.concatenate(pairs)
    edge_begin = begins([len(p) for p in pairs])
    return edge_begin, np.ascontiguousarray(flat[:, 0], np.int32), np.ascontiguousarray(flat[:, 1], np.int32)


def encode_edge_features(
    examples: list[Example] | None, counts: Longs, kind: str | None, width: int | None
) -> tuple[str, int, sp.csr_matrix | None]:
    """(kind, number of pairwise features, their rows or None). `counts`: edges of each example. In training `kind` and
    `width` are None; afterwards they are those of the training data, which new data must have, too."""
    rows: list[sp.csr_matrix] = []
    for i, e in enumerate(examples or ()):
        own = "types" if e.edge_types is not None else "features" if e.edge_features is not None else ""
        if e.edge_types is not None and e.edge_features is not None:
            raise DataError(f"example {i}: give edge types or edge features, not both")
        if counts[i] == 0:
            continue
        if kind is None:
            kind = own
        if own != kind:
            raise DataError(f"example {i}: its edges have {own or 'no types'}, others have {kind or 'no types'}")
        if own:
            rows.append(_edge_types(e, i, int(counts[i])) if own == "types" else _edge_features(e, i, int(counts[i])))
    kind = kind or ""
    if examples is None and kind and counts.sum():
        raise DataError(f"the model was trained with edge {kind}, X has none")
    if not rows:
        return kind, width or 1, None
    if width is None:
        width = max(part.shape[1] for part in rows)
    for part in rows:
        if part.shape[1] > width or (kind == "features" and part.shape[1] != width):
            raise DataError(f"an edge has {part.shape[1]} {kind}, beyond the {width} seen in training")
        part.resize(part.shape[0], width)
    return kind, width, sp.vstack(rows, format="csr")


def _edge_types(e: Example, i: int, n: int) -> sp.csr_matrix:
    types = np.asarray(e.edge_types)
    if types.shape != (n,) or not np.issubdtype(types.dtype, np.integer) or (types < 0).any():
        raise DataError(f"example {i}: there must be one edge type, 0 or more, for each of {n} edges")
    return sp.csr_matrix((np.ones(n), (np.arange(n), types)), shape=(n, int(types.max()) + 1))


def _edge_features(e: Example, i: int, n: int) -> sp.csr_matrix:
    part = _csr(e.edge_features, f"edges of example {i}")
    if part.shape[0] != n:
        raise DataError(f"example {i} has {n} edges and {part.shape[0]} rows of edge features")
    return part


# ---- choices and weights


def encode_choices(
    X: Any, offsets: ArrayLike | None, n_features: int | None
) -> tuple[sp.csr_matrix, Longs, Longs, Reals | None]:
    """(feature rows, first token of each example, first alternative of each token, weights of the tokens)."""
    if isinstance(X, Choices) and offsets is not None:
        begin = check_offsets(offsets, len(np.asarray(X.counts)))
        X = [X]
    elif not is_list(X) or not len(X) or not all(isinstance(x, Choices) for x in X):
        raise DataError("X must be a list of Choices, or one Choices with offsets")
    else:
        if offsets is not None:
            raise DataError("offsets belong to one Choices with all tokens, X is a list")
        begin = begins([len(np.asarray(x.counts)) for x in X])
    parts = [_csr(x.rows, f"example {i}") for i, x in enumerate(X)]
    counts = [np.asarray(x.counts) for x in X]
    for i, (part, count) in enumerate(zip(parts, counts, strict=True)):
        if count.ndim != 1 or not len(count) or not np.issubdtype(count.dtype, np.integer) or (count < 1).any():
            raise DataError(f"example {i}: every token needs at least one alternative")
        if count.sum() != part.shape[0]:
            raise DataError(f"example {i}: {part.shape[0]} rows of features for {count.sum()} alternatives")
        if part.shape[1] != (parts[0].shape[1] if n_features is None else n_features):
            raise DataError(f"example {i} has {part.shape[1]} features, expected {n_features or parts[0].shape[1]}")
    ends = begins([len(c) for c in counts])
    weight = encode_weights([x.weight for x in X], ends)
    return (
        sp.vstack(parts, format="csr"),
        begin,
        begins(np.concatenate(counts)),
        weight,
    )


def encode_weights(weights: Sequence[Any], begin: Longs) -> Reals | None:
    """One weight of the loss a token; None when there are none."""
    if all(w is None for w in weights):
        return None
    parts = []
    for i, w in enumerate(weights):
        length = int(begin[i + 1] - begin[i])
        try:
            part = np.ones(length) if w is None else np.asarray(w, np.float64)
        except (TypeError, ValueError):
            part = np.zeros(0)
        if part.shape != (length,) or not np.isfinite(part).all() or (part < 0).any():
            raise DataError(f"example {i}: weights must be {length} finite numbers that are not negative")
        parts.append(part)
    return np.concatenate(parts)
