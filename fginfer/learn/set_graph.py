"""SetGraph: the decoding problem of label sets as one factor graph that all examples share."""

from __future__ import annotations

import numpy as np

from fginfer.errors import DataError
from fginfer.graph import FactorGraph
from fginfer.learn.data.examples import Ints, Reals


class SetGraph:
    """A binary variable for each label, a factor for each pair of labels that has ever had a weight.

    Examples differ in their unary scores only. Weights that change are new numbers in the tables; a pair that gets its
    first weight is a factor behind the others, so that messages of before are the beginning of messages of now.
    """

    def __init__(self, n_labels: int, pairs: Ints | None = None) -> None:
        """pairs: those of an earlier run, in the order in which they came."""
        self._k = n_labels
        self.pairs = np.zeros((0, 2), np.int64) if pairs is None else pairs.reshape(-1, 2).astype(np.int64)
        self._known = np.zeros((n_labels, n_labels), bool)
        u, v = self.pairs.T
        if not bool(((u >= 0) & (u < v) & (v < n_labels)).all()):
            raise DataError("the checkpoint does not fit the data: pairs of labels that are none")
        self._known[u, v] = True
        self._weights: Reals = np.zeros(len(self.pairs))
        self._graph: FactorGraph | None = None

    @property
    def n_messages(self) -> int:
        """Two for each variable of each factor."""
        return 4 * len(self.pairs)

    def present(self, scores: Reals, table: Reals | None) -> FactorGraph:
        """The problem with these scores of the labels and weights of the pairs (above the diagonal)."""
        if table is not None:
            self._add_pairs(table)
        on = np.column_stack([np.zeros(self._k), scores])
        if self._graph is None:
            self._graph = self._build(on)
        else:
            self._graph.set_unaries(on)
        if table is not None and len(self.pairs):
            now = table[self.pairs[:, 0], self.pairs[:, 1]]
            changed = np.flatnonzero(now != self._weights)
            self._graph.model.set_tables(changed.astype(np.int32), _tables(now[changed]).ravel())
            self._weights = now
        return self._graph

    def _add_pairs(self, table: Reals) -> None:
        new = np.argwhere(np.triu((table != 0) & ~self._known, 1))
        if len(new):
            self._known[new[:, 0], new[:, 1]] = True
            self.pairs = np.concatenate([self.pairs, new])
            self._weights = np.concatenate([self._weights, np.zeros(len(new))])
            self._graph = None

    def _build(self, on: Reals) -> FactorGraph:
        cards = np.full(self._k, 2)
        if not len(self.pairs):
            return FactorGraph.from_arrays(cards, on)
        each = np.arange(len(self.pairs))
        return FactorGraph.from_arrays(cards, on, self.pairs, each, _tables(self._weights))


def _tables(weights: Reals) -> Reals:
    """A table for each pair: its weight where both labels are on."""
    out = np.zeros((len(weights), 2, 2))
    out[:, 1, 1] = weights
    return out
