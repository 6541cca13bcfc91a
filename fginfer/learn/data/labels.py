"""Labels as users write them (names or whole numbers), and their positions among the sorted classes of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fginfer.core.arrays import begins
from fginfer.errors import DataError
from fginfer.learn.data.examples import Example, Ints, Longs
from fginfer.learn.data.sequences import is_list

Labels = NDArray[Any]


def place(index: int, begin: Longs) -> str:
    """Where row `index` of the concatenated tokens is, for messages."""
    example = int(np.searchsorted(begin, index, "right")) - 1
    return f"example {example}, token {index - int(begin[example])}"


def label_array(labels: Any, what: str) -> Labels:
    """A one-dimensional array of names or of whole numbers. Numbers never turn into names: 1 and "1" do not mix."""
    try:
        array = labels if isinstance(labels, np.ndarray) else np.asarray(labels)
    except ValueError as error:
        raise DataError(f"{what}: the labels are ragged ({error})") from None
    if array.dtype == object or (array.dtype.kind in "US" and not isinstance(labels, np.ndarray)):
        items = np.asarray(labels, dtype=object).ravel().tolist()
        names, numbers = all(isinstance(x, str) for x in items), all(isinstance(x, Real) for x in items)
        if not names and not numbers:
            raise DataError(f"{what}: labels are all names or all numbers, not {_mixed(items)}")
        array = np.array(items, dtype=str if names else None).reshape(array.shape)
    if array.dtype.kind not in "biufUS":
        raise DataError(f"{what}: labels of type {array.dtype} are neither names nor numbers")
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise DataError(f"{what}: the labels hold NaN or infinity")
        if (array != np.round(array)).any():
            raise DataError(f"{what}: the label {array[array != np.round(array)][0]} is not a whole number")
    return array


def _mixed(items: list[Any]) -> str:
    odd = next((x for x in items if not isinstance(x, (str, Real))), None)
    return f"{type(odd).__name__} {odd!r}" if odd is not None or None in items else "both"


def flatten_labels(y: Any, begin: Longs, listed: bool) -> Labels:
    """One label a token, checked against the lengths of the examples."""
    if not listed:
        flat = label_array(y, "y")
        if flat.ndim != 1 or len(flat) != begin[-1]:
            raise DataError(f"y must have one label for each of the {begin[-1]} rows of X, its shape is {flat.shape}")
        return flat
    if not is_list(y) and not (isinstance(y, np.ndarray) and y.ndim):
        raise DataError(f"y must have a list of labels for each example, it is {type(y).__name__}")
    if len(y) != len(begin) - 1:
        raise DataError(f"X has {len(begin) - 1} examples, y has {len(y)}")
    parts = [label_array(part, f"example {i}") for i, part in enumerate(y)]
    for i, part in enumerate(parts):
        if part.ndim != 1 or len(part) != begin[i + 1] - begin[i]:
            raise DataError(f"example {i} has {begin[i + 1] - begin[i]} tokens, its labels have the shape {part.shape}")
        if _is_text(part) != _is_text(parts[0]):
            raise DataError(f"example {i}: labels are all names or all numbers; those of example 0 are not like these")
    return np.concatenate(parts)


def _is_text(labels: Labels) -> bool:
    return labels.dtype.kind not in "biuf"


def encode_labels(flat: Labels, classes: Labels, begin: Longs | None = None) -> Ints:
    """Positions in the sorted `classes`; an unknown label is an error that names it, and (with `begin`) its place."""
    wrong = np.ones(len(flat), bool)
    position = np.zeros(len(flat), np.int64)
    if _is_text(flat) == _is_text(classes) and len(classes):
        position = np.minimum(np.searchsorted(classes, flat), len(classes) - 1)
        wrong = classes[position] != flat
    if wrong.any():
        at = int(np.argmax(wrong))
        where = "" if begin is None else f"{place(at, begin)}: "
        raise DataError(f"{where}label {flat[at].item()!r} was not seen in training")
    return position.astype(np.int32)


# ---- sets of labels


def label_sets(y: Any, n: int) -> tuple[list[Labels], Labels | None]:
    """Multilabel targets as one array of labels an example, and the columns of an indicator matrix as their names."""
    if labels_are_listed(y):
        return _listed_sets(y, n), None
    matrix = y if sp.issparse(y) else np.asarray(y)
    if matrix.ndim != 2:
        raise DataError(
            "label sets are a matrix of zeros and ones, or a list with the labels of each example; "
            f"y has the shape {matrix.shape}"
        )
    if matrix.dtype.kind not in "biuf" and matrix.dtype != object:
        raise DataError(f"an indicator matrix holds zeros and ones only, not {matrix.dtype}")
    matrix = sp.csr_matrix(matrix, dtype=np.float64, copy=True)
    if matrix.shape[0] != n:
        raise DataError(f"X has {n} examples, y has {matrix.shape[0]}")
    matrix.sum_duplicates()
    odd = ~np.isin(matrix.data, (0, 1))
    if odd.any():
        raise DataError(f"an indicator matrix holds zeros and ones only, not {matrix.data[odd][0]}")
    matrix.eliminate_zeros()
    return np.split(matrix.indices.astype(np.int64), matrix.indptr[1:-1]), np.arange(matrix.shape[1])


def labels_are_listed(y: Any) -> bool:
    """Whether y lists the labels of each example. A list of rows of zeros and ones is an indicator matrix if a label
    were listed twice in it otherwise."""
    if not is_list(y):
        return False
    rows = [row for row in y if isinstance(row, (list, tuple, np.ndarray))]
    if not rows or len(rows) != len(y) or len({len(row) for row in rows}) != 1:
        return True
    array = np.asarray(rows)
    return not (
        array.ndim == 2 and array.dtype.kind in "biuf" and np.isin(array, (0, 1)).all()
        and any(len(set(row)) < len(row) for row in array.tolist())
    )  # fmt: skip


def _listed_sets(y: Sequence[Any], n: int) -> list[Labels]:
    if len(y) != n:
        raise DataError(f"X has {n} examples, y has {len(y)}")
    sets: list[Labels] = []
    for i, labels in enumerate(y):
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise DataError(f"example {i}: expected a collection of labels, not {labels!r}")
        listed = list(labels)
        sets.append(np.unique(label_array(listed, f"example {i}")) if listed else np.zeros(0, int))
    filled = [s for s in sets if len(s)]
    for i, s in enumerate(sets):
        if len(s) and _is_text(s) != _is_text(filled[0]):
            raise DataError(f"example {i}: labels are all names or all numbers; those of other examples are not so")
    return sets


def encode_sets(sets: list[Labels], classes: Labels) -> tuple[Ints, Longs]:
    begin = begins([len(s) for s in sets])
    filled = [s for s in sets if len(s)]
    flat = encode_labels(np.concatenate(filled), classes) if filled else np.zeros(0, np.int32)
    return flat, begin


# ---- candidates


def candidate_lists(examples: list[Example] | None, begin: Longs) -> list[tuple[Any, ...] | None] | None:
    """A tuple of labels a token (None: all labels); None when no example has candidates."""
    if examples is None or all(e.candidates is None for e in examples):
        return None
    lists: list[tuple[Any, ...] | None] = []
    for i, e in enumerate(examples):
        length = int(begin[i + 1] - begin[i])
        if e.candidates is None:
            lists += [None] * length
            continue
        if len(e.candidates) != length:
            raise DataError(f"example {i} has {length} tokens and {len(e.candidates)} candidate lists")
        for t, labels in enumerate(e.candidates):
            if labels is not None and not isinstance(labels, Iterable):
                raise DataError(f"example {i}, token {t}: expected a collection of candidate labels, not {labels!r}")
            lists.append(None if labels is None else tuple(labels))
            if lists[-1] == ():
                raise DataError(f"example {i}, token {t} has no candidate label")
    return lists


def candidate_classes(lists: list[tuple[Any, ...] | None] | None, classes: Labels) -> Labels:
    """The classes found in y, and those that are only candidates."""
    if lists is None:
        return classes
    different = {labels for labels in lists if labels is not None}
    arrays = [label_array(list(labels), "candidates") for labels in different]
    if any(_is_text(a) != _is_text(classes) for a in arrays):
        raise DataError("candidates and y: labels are all names or all numbers")
    found: Labels = np.unique(np.concatenate([classes, *arrays]))
    return found


def encode_candidates(
    lists: list[tuple[Any, ...] | None] | None, begin: Longs, classes: Labels
) -> tuple[Longs | None, Ints | None]:
    """Candidate lists per token as (begin, labels), ascending; (None, None) when there are none."""
    if lists is None:
        return None, None
    known: dict[Any, Ints] = {None: np.arange(len(classes), dtype=np.int32)}  # many tokens share a list
    for t, labels in enumerate(lists):
        if labels not in known:
            where = f"{place(t, begin)}, candidates"
            try:
                known[labels] = np.unique(encode_labels(label_array(list(labels or ()), where), classes))
            except DataError as error:
                raise DataError(f"{where}: {error}") from None
    sizes = np.fromiter((len(known[labels]) for labels in lists), np.int64, len(lists))
    return begins(sizes), np.concatenate([known[k] for k in lists])


def check_truth_is_candidate(truth: Ints, choice_begin: Longs, choice: Ints, begin: Longs, classes: Labels) -> None:
    """Training needs the true label of every token to be allowed."""
    owner = np.repeat(np.arange(len(truth)), np.diff(choice_begin))
    allowed = owner * len(classes) + choice  # ascending
    wanted = np.arange(len(truth)) * len(classes) + truth
    at = np.minimum(np.searchsorted(allowed, wanted), len(allowed) - 1)
    wrong = allowed[at] != wanted
    if wrong.any():
        t = int(np.argmax(wrong))
        name = classes[truth[t]].item()
        raise DataError(f"{place(t, begin)}: the true label {name!r} is not among the candidates")
