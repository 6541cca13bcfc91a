"""Random fields over the weights that the training examples use, as CRFsuite has them by default.

With hundreds of labels nearly all pairs of a feature and a label, and of two labels, are never seen together. A weight
for each of them takes memory, and only ever says that what was not seen is unlikely."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fginfer.core.crf import CrfLoss
from fginfer.core.learn import Edges
from fginfer.core.optimise import Optimiser
from fginfer.learn.data.examples import Encoded, Reals

Places = NDArray[np.int64]


def observed_weights(data: Encoded, parent: NDArray[np.int32] | None, dimension: int) -> Places:
    """The weights that score a true labeling of some example, ascending. Tables of typed edges are kept whole."""
    k = data.n_labels
    inner = 0 if parent is None else len(parent) - k
    columns = inner + k
    nodes = _paths(np.asarray(data.truth, np.int64) + inner, parent)
    used = ((data.rows != 0).T.astype(np.int64) @ nodes.tocsr()).tocoo()
    unary = data.rows.shape[1] * columns
    parts = [np.unique(used.row.astype(np.int64) * columns + used.col)]
    if dimension > unary:
        parts.append(unary + _pairs(data, k, dimension - unary))
    return np.concatenate(parts)


def _paths(nodes: Places, parent: NDArray[np.int32] | None) -> sp.coo_matrix:
    """(tokens, nodes): the node of each token, and those above it."""
    rows, columns = [np.arange(len(nodes))], [nodes]
    at, tokens = nodes, np.arange(len(nodes))
    while parent is not None and len(at):
        above = parent[at].astype(np.int64)
        tokens, at = tokens[above >= 0], above[above >= 0]
        rows.append(tokens)
        columns.append(at)
    row, column = np.concatenate(rows), np.concatenate(columns)
    width = int(column.max(initial=-1)) + 1 if parent is None else len(parent)
    return sp.coo_matrix((np.ones(len(row), np.int64), (row, column)), shape=(len(nodes), width))


def _pairs(data: Encoded, k: int, size: int) -> Places:
    if size != k * k or data.edge_rows is not None:
        return np.arange(size, dtype=np.int64)
    truth = np.asarray(data.truth, np.int64)
    if data.edges == Edges.CHAIN:
        first = np.setdiff1d(np.arange(len(truth)), data.token_begin[1:] - 1)
        second = first + 1
    else:
        assert data.edge_begin is not None
        assert data.edge_u is not None
        assert data.edge_v is not None
        base = np.repeat(data.token_begin[:-1], np.diff(data.edge_begin))
        first, second = base + data.edge_u, base + data.edge_v
    return np.unique(truth[first] * k + truth[second])


class ObservedLoss:
    """A :class:`CrfLoss` as a function of some of its weights; all others are zero."""

    def __init__(self, loss: CrfLoss, places: Places) -> None:
        self.whole, self.places = loss, places
        self.dimension, self.threads, self.n_examples = len(places), loss.threads, loss.n_examples
        self._w = np.zeros(loss.dimension)  # memory that nobody has written to is not there
        self._set: Places = places[:0]  # where it is not zero

    @property
    def info(self) -> Any:
        return self.whole.info

    @property
    def late(self) -> bool:
        return self.whole.late

    def set_deadline(self, deadline: float = inf) -> None:
        self.whole.set_deadline(deadline)

    def spread(self, w: Reals) -> Reals:
        """All weights, in memory that the next call writes to again."""
        self._w[self._set] = 0.0
        some = np.flatnonzero(w)
        self._set = self.places[some]
        self._w[self._set] = w[some]
        return self._w

    def _where(self, where: Places | None) -> Places:
        return self.places if where is None else self.places[where]

    def value(self, w: Reals, where: Places | None = None) -> float:
        return self.whole.value(self.spread(w), self._where(where))

    def gradient(self, w: Reals, where: Places | None = None) -> Reals:
        """At the w of the last :meth:`value`."""
        return self.whole.gradient(self._w, self._where(where))

    def serve(self, optimiser: Optimiser) -> bool:
        q = optimiser.ask()
        if q is None:
            return False
        if q.value:
            value = self.value(q.w, q.where)
        elif q.curvature:
            assert q.gradient is not None
            value, q.gradient[:] = 0.0, self.whole.curvature(self._w, self._where(q.where), q.gradient)
        else:
            assert q.gradient is not None
            value, q.gradient[:] = 0.0, self.gradient(q.w, q.where)
        if self.late:
            return False
        optimiser.answer(value)
        return True
