"""Weights in memory proportional to what is not zero: the rows of features hold the labels that were touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fginfer.core.arrays import begins, owners
from fginfer.errors import DataError
from fginfer.learn.data.examples import Ints, Longs, Reals

LARGE = 1 << 24  # unary weights from which training keeps them by rows: a dense vector has 128 MB, and there are three


@dataclass(frozen=True)
class RowWeights:
    """Unary weights as rows of features (CSR: `begin`, `label`), their values followed by the tables of pairs."""

    begin: Longs
    label: Ints
    values: Reals
    n_labels: int

    def __post_init__(self) -> None:  # the core trusts them
        if len(self.begin) < 1 or self.begin[-1] != len(self.label) or len(self.values) < len(self.label):
            raise DataError("rows, labels and values do not fit together")

    @property
    def pairs(self) -> Reals:
        return self.values[len(self.label) :]

    @property
    def unary(self) -> sp.csr_matrix:
        """(features, labels)."""
        n = len(self.label)
        return sp.csr_matrix((self.values[:n], self.label, self.begin), shape=(len(self.begin) - 1, self.n_labels))

    @property
    def shape(self) -> tuple[int]:
        """The shape of the vector that it stands for."""
        return ((len(self.begin) - 1) * self.n_labels + len(self.pairs),)

    def __len__(self) -> int:
        return self.shape[0]

    def copy(self) -> RowWeights:
        return RowWeights(self.begin, self.label, self.values.copy(), self.n_labels)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The dense vector, for those who have the memory."""
        whole = np.zeros(len(self))
        where, values = nonzeros(self)
        whole[where] = values
        return whole if dtype is None else whole.astype(dtype)


Weights = Reals | RowWeights


def values_of(weights: Weights) -> Reals:
    """All numbers that may differ from zero."""
    return weights.values if isinstance(weights, RowWeights) else weights


def squared_norm(weights: Weights) -> float:
    values = values_of(weights)
    return float(values @ values)


def split(weights: Weights, width: int, n_labels: int) -> tuple[Any, Reals]:
    """Unary weights, (width, labels), dense or CSR, and the tables of pairs, (features, labels, labels)."""
    if isinstance(weights, RowWeights):
        return weights.unary, weights.pairs.reshape(-1, n_labels, n_labels)
    cut = n_labels * width
    return weights[:cut].reshape(width, n_labels), weights[cut:].reshape(-1, n_labels, n_labels)


def nonzeros(weights: Weights) -> tuple[Longs, Reals]:
    """(places in the dense vector, ascending; values)."""
    if not isinstance(weights, RowWeights):
        where = np.flatnonzero(weights)
        return where.astype(np.int64), weights[where]
    rows = owners(weights.begin)
    unary = len(weights) - len(weights.pairs)
    places = np.concatenate([rows * weights.n_labels + weights.label, np.arange(unary, len(weights), dtype=np.int64)])
    kept = weights.values != 0
    return places[kept], weights.values[kept]


def from_nonzeros(where: NDArray[Any], values: Reals, size: int, n_labels: int, n_pairs: int) -> Weights:
    """The reverse of :func:`nonzeros`: dense, or by rows where that would take too much. Whatever does not fit is a
    DataError."""
    if where.shape != values.shape or where.ndim != 1 or where.dtype.kind != "i" or values.dtype != np.float64:
        raise DataError("its weights are damaged")
    if len(where) and not (where[0] >= 0 and where[-1] < size and (np.diff(where) > 0).all()):
        raise DataError("its weights are damaged")
    if n_labels == 0 or size - n_pairs < LARGE:
        whole = np.zeros(size)
        whole[where] = values
        return whole
    return by_rows(where, values, size, n_labels, n_pairs)


def by_rows(where: NDArray[Any], values: Reals, size: int, n_labels: int, n_pairs: int) -> RowWeights:
    """Rows with a quarter of their labels become whole: those are read quicker."""
    cut = int(np.searchsorted(where, size - n_pairs))
    width = (size - n_pairs) // n_labels
    row, label = np.divmod(where[:cut], n_labels)
    counts = np.bincount(row, minlength=width)
    whole = np.flatnonzero(4 * counts > n_labels)
    if len(whole):
        filler = (whole[:, None] * n_labels + np.arange(n_labels)).ravel()
        places, back = np.unique(np.concatenate([where[:cut], filler]), return_inverse=True)
        unary = np.zeros(len(places))
        unary[back[:cut]] = values[:cut]
        row, label = np.divmod(places, n_labels)
        counts = np.bincount(row, minlength=width)
    else:
        unary = values[:cut]
    pairs = np.zeros(n_pairs)
    pairs[where[cut:] - (size - n_pairs)] = values[cut:]
    begin = begins(counts)
    return RowWeights(begin, label.astype(np.int32), np.concatenate([unary, pairs]), n_labels)
