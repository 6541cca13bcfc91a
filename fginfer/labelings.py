"""What a graph hands in and out besides numbers: label counts and labelings, checked, and its factors as a list."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.arrays import ModelArrays
from fginfer.errors import ModelError
from fginfer.names import Names, variable_text
from fginfer.options import is_number

_MOST_ENTRIES = 2**45  # more scores than any machine can hold: refused before an allocation is tried
_MOST = np.iinfo(np.int32).max


class Factor(NamedTuple):
    """One factor: its scores are weight * table, with the table read as table[x_second, x_first] if transposed."""

    variables: tuple[int, ...]
    table: int
    weight: float
    transposed: bool


def factor_list(a: ModelArrays) -> list[Factor]:
    """The factors over two or more variables."""
    begin, vars_ = a.factor_begin().tolist(), a.vars.tolist()
    weights = [1.0] * a.n_factors if a.factor_weight is None else a.factor_weight.tolist()
    flips = [0] * a.n_factors if a.factor_transposed is None else a.factor_transposed.tolist()
    return [
        Factor(tuple(vars_[begin[f] : begin[f + 1]]), t, weights[f], bool(flips[f]))
        for f, t in enumerate(a.factor_table.tolist())
    ]


def check_index(what: str, given: Any) -> int:
    """The number of a variable or table; ModelError unless it is an integer."""
    if not is_number(given, whole=True):
        raise ModelError(f"a {what} is named by its number, an integer, not {given!r}")
    return int(given)


def check_cards(cards: ArrayLike, names: Names | None = None) -> NDArray[np.int32]:
    """Label counts as the core takes them, read-only."""
    given = np.asarray(cards)
    if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
        raise ModelError("cards must be a list of label counts (integers), one for each variable, such as [2, 2, 3]")
    if given.size and (given.min() < 1 or given.max() > _MOST):
        bad = int(np.argmax((given < 1) | (given > _MOST)))
        raise ModelError(f"{variable_text(names, bad)} has {given[bad]} labels; between 1 and 2^31-1 are possible")
    if given.size and int(given.sum(dtype=np.int64)) > _MOST_ENTRIES:
        raise ModelError(f"{given.sum(dtype=np.int64)} labels in all do not fit in memory")
    out = given.astype(np.int32)
    out.setflags(write=False)
    return out


def check_labels(labels: ArrayLike, cards: NDArray[np.int32], names: Names | None = None) -> NDArray[np.int32]:
    """A labeling as the core takes it; the core checks the ranges."""
    try:
        x = np.asarray(labels)
    except ValueError:
        raise ModelError(f"a labeling needs {len(cards)} labels, not lists of several lengths") from None
    if x.shape != cards.shape:
        kind = type(labels).__name__
        given = f"an array of shape {x.shape}" if x.ndim else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
        hint = "; give its labels" if hasattr(labels, "labels") else ""
        raise ModelError(f"a labeling needs {len(cards)} labels, not {given}{hint}")
    if x.dtype != np.int32:
        if x.size and not np.issubdtype(x.dtype, np.integer):
            raise ModelError(f"labels must be integers, not {x.dtype}")
        if x.size and (x.min() < 0 or x.max() > _MOST):
            check_range(x, cards, names)
    return np.ascontiguousarray(x, np.int32)


def check_range(x: NDArray[Any], cards: NDArray[np.int32], names: Names | None = None) -> NDArray[Any]:
    """The labeling; ModelError if a label is out of range."""
    bad = np.flatnonzero((x < 0) | (x >= cards))
    if len(bad):
        i = int(bad[0])
        raise ModelError(f"label {x[i]} of {variable_text(names, i)} is out of range 0..{cards[i] - 1}")
    return x


def scores_at(
    x: NDArray[np.int32], cards: NDArray[np.int32], unary: NDArray[np.float64], begin: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The unary score of each variable at its label."""
    check_range(x, cards)
    scores: NDArray[np.float64] = unary[begin[:-1] + x]
    return scores


class DenseShapes:
    """The shapes of dense tables, as copies: a view of a model would make its next change copy all tables."""

    def __init__(self, arrays: ModelArrays) -> None:
        self._begin, self._dims = arrays.dims_begin(), arrays.dims.copy()

    def __getitem__(self, table: int) -> tuple[int, ...]:
        if not 0 <= table < len(self._begin) - 1 or self._begin[table] == self._begin[table + 1]:
            raise ModelError(f"there is no dense table {table}")
        return tuple(self._dims[self._begin[table] : self._begin[table + 1]].tolist())
