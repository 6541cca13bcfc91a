"""From what users have (sparse or dense rows; classes, label lists, indicator matrices) to what the core takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fginfer.core.arrays import begins, owners
from fginfer.core.extreme import ExtremeData, Ints, Lines
from fginfer.errors import DataError
from fginfer.learn.data.sequences import is_column_of_lists

MOST = 2**31 - 1  # rows, features and labels are counted with 32 bits


def rows_of(X: Any) -> Lines:
    """A matrix, sparse or not, as single-precision compressed rows; NaN and infinities are DataErrors."""
    if isinstance(X, Lines):
        return X
    matrix = X.tocsr(copy=False) if sp.issparse(X) else sp.csr_matrix(np.atleast_2d(np.asarray(X)))
    if max(matrix.shape) > MOST:
        raise DataError(f"X of shape {matrix.shape}: there can be 2^31 - 1 rows and features")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    with np.errstate(over="ignore"):
        value = np.ascontiguousarray(matrix.data, np.float32)
    begin, index = np.ascontiguousarray(matrix.indptr, np.int64), np.ascontiguousarray(matrix.indices, np.int32)
    return Lines(begin, index, value, matrix.shape[1]).check("X")


def plain_labels(y: Any) -> Any:
    """y without pandas: a column of lists as a list, a table as an array; everything else as it is."""
    if is_column_of_lists(y):
        return list(y)
    return y.to_numpy() if hasattr(y, "iloc") and y.ndim == 2 else y


def is_listed(y: Any) -> bool:
    """True for a list (or array) of label lists, one a row; rows may have different numbers of labels, or none."""
    if sp.issparse(y) or isinstance(y, str | bytes) or not isinstance(y, Sequence | np.ndarray) or not len(y):
        return False
    if isinstance(y, np.ndarray) and y.dtype != object:
        return False
    inner = all(isinstance(labels, Iterable) and not isinstance(labels, str | bytes) for labels in y)
    return inner and not any(isinstance(labels, np.ndarray) and labels.ndim != 1 for labels in y)


def is_zero_one_table(y: Any) -> bool:
    """True for a list of equally long lists of 0 and 1 that cannot be label lists, as a label would be there twice."""
    if (
        not is_listed(y)
        or len({len(row) for row in y}) != 1
        or not all(isinstance(row, Sequence | np.ndarray) for row in y)
    ):
        return False
    return any(len(set(row)) < len(row) for row in y) and {x for row in y for x in row} <= {0, 1}


def is_indicator(y: Any) -> bool:
    return bool(sp.issparse(y) or (isinstance(y, np.ndarray) and y.ndim == 2))


def labels_of(y: Any, classes: NDArray[Any] | None = None) -> tuple[Lines, NDArray[Any]]:
    """(labels of every row, classes). With `classes` (those of a model), a label that is not among them is an error."""
    if is_indicator(y):
        return _of_indicator(y, classes)
    lists = y if is_listed(y) else np.asarray(y).reshape(-1, 1)
    counts = np.fromiter((len(labels) for labels in lists), np.int64, len(lists))
    flat = [label for labels in lists for label in labels]
    if is_listed(y):
        kinds = {isinstance(label, str | np.str_) for label in flat}
        if len(kinds) > 1:
            raise DataError("labels are partly text, partly numbers")
    every = np.asarray(flat) if flat else np.zeros(0, np.int64 if classes is None else classes.dtype)
    if every.ndim != 1 or every.dtype.kind not in "biuUSfO":
        raise DataError("labels must be numbers or text")
    if every.dtype.kind == "f" and not np.isfinite(every).all():
        raise DataError("a label is NaN or infinite")
    known = np.unique(every) if classes is None else classes
    number = _number(every, known)
    begin = begins(counts)
    index = np.empty(len(number), np.int32)
    order = np.lexsort((number, np.repeat(np.arange(len(counts)), counts)))
    index[:] = number[order]
    first = np.ones(len(index), bool)  # a label that a row lists twice is one label, as everywhere
    first[1:] = index[1:] != index[:-1]
    first[begin[:-1][begin[:-1] < len(index)]] = True
    kept = np.concatenate([[0], np.cumsum(first)])
    return Lines(kept[begin], index[first], None, len(known)), known


def truth_of(y: Any, classes: NDArray[Any]) -> Lines:
    """Labels of rows to compare a model with. Those that it does not know come after its own: they count as missed, as
    in other evaluations of extreme classification, where test rows have labels that no training row had."""
    y = plain_labels(y)
    if is_indicator(y):
        return labels_of(y, classes)[0]
    lines, own = labels_of(y)
    if (own.dtype.kind in "US") != (classes.dtype.kind in "US") and len(own):
        return labels_of(y, classes)[0]  # says which label it is
    place = np.minimum(np.searchsorted(classes, own), len(classes) - 1)
    unknown = classes[place] != own
    number = np.where(unknown, len(classes) + np.cumsum(unknown) - 1, place)
    row = owners(lines.begin)
    index = number[lines.index]
    order = np.lexsort((index, row))
    return Lines(lines.begin, index[order].astype(np.int32), None, len(classes) + int(unknown.sum()))


def is_column(y: Any) -> bool:
    return not sp.issparse(y) and np.ndim(y) == 2 and np.shape(y)[1] == 1


def unit_rows(lines: Lines) -> Lines:
    """Every row scaled to unit length; rows of zeros stay."""
    if lines.value is None or not lines.nnz:
        return lines
    squares = np.asarray(lines.value, np.float64) ** 2
    filled = np.diff(lines.begin) > 0
    norms = np.zeros(lines.n)
    norms[filled] = np.sqrt(np.add.reduceat(squares, lines.begin[:-1][filled]))
    scale = 1.0 / np.where(norms > 0.0, norms, 1.0)
    value = (lines.value * np.repeat(scale, np.diff(lines.begin))).astype(np.float32)
    return Lines(lines.begin, lines.index, value, lines.width)


def _number(every: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    place = np.searchsorted(classes, every) if len(classes) else np.zeros(len(every), np.int64)
    place = np.minimum(place, max(0, len(classes) - 1))
    wrong = np.ones(len(every), bool) if not len(classes) else classes[place] != every
    if np.any(wrong):
        raise DataError(f"the label {every[np.argmax(wrong)]!r} is not among the {len(classes)} classes of the model")
    return np.asarray(place, np.int64)


def _of_indicator(y: Any, classes: NDArray[Any] | None) -> tuple[Lines, NDArray[Any]]:
    matrix = sp.csr_matrix(y, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not np.all(matrix.data == 1):
        raise DataError("an indicator matrix holds 0 and 1 only")
    if classes is not None and matrix.shape[1] != len(classes):
        raise DataError(f"the indicator matrix has {matrix.shape[1]} columns, the model {len(classes)} classes")
    begin, index = np.ascontiguousarray(matrix.indptr, np.int64), np.ascontiguousarray(matrix.indices, np.int32)
    known = np.arange(matrix.shape[1]) if classes is None else classes
    return Lines(begin, index, None, matrix.shape[1]), known


def training_data(rows: Lines, labels: Lines, by_label: bool) -> ExtremeData:
    """What a solver needs; `by_label`: with the transposes, for PPD-Sparse."""
    if rows.n != labels.n:
        raise DataError(f"X has {rows.n} rows, y has labels of {labels.n}")
    if rows.n == 0:
        raise DataError("there are no rows to learn from")
    return ExtremeData(rows, labels, *((rows.transposed(), labels.transposed()) if by_label else (None, None)))


def select(lines: Lines, chosen: NDArray[Any]) -> Lines:
    """Some lines of a matrix, in the order given."""
    counts = lines.begin[1:][chosen] - lines.begin[:-1][chosen]
    begin = begins(counts)
    take = np.repeat(lines.begin[:-1][chosen] - begin[:-1], counts) + np.arange(begin[-1])
    value = None if lines.value is None else np.asarray(lines.value[take])
    return Lines(begin, np.asarray(lines.index[take]), value, lines.width)


def stacked(parts: list[Lines], width: int) -> Lines:
    """Matrices one below the other."""
    counts = np.concatenate([np.diff(p.begin) for p in parts]) if parts else np.zeros(0, np.int64)
    index: Ints = np.concatenate([p.index for p in parts]) if parts else np.zeros(0, np.int32)
    value = np.concatenate([p.value for p in parts if p.value is not None]) if parts else np.zeros(0, np.float32)
    return Lines(begins(counts), index, value, width)
