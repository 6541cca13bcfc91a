"""The best labelings of a wide model, from a model of the few labels that can be part of them.

Messages give each label a bound on all labelings that have it. Labels whose bound is below a threshold are left out:
what is left is small where a few labelings are much better than the rest, and elimination ranks it. Its labelings at
or above the threshold are the best of the whole model, in order; after them the threshold is lowered.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.beliefs import SLICE
from fginfer.blocks import Links
from fginfer.condition import Conditioned
from fginfer.core.arrays import begins
from fginfer.core.beliefs import Beliefs
from fginfer.core.ranked import Ranking
from fginfer.errors import SolverError
from fginfer.graph import FactorGraph
from fginfer.reparametrise import Reparametrised
from fginfer.table_values import StoredTables
from fginfer.tables import expand

Reals = NDArray[np.float64]

FIRST_EXTRA = 32  # labels beside those of the best labeling that the first model has (chosen)
MORE = 3  # times as many has the next one (chosen)
PARTS = 3  # forests whose exact maxima bound labels (chosen)
PART_MEMORY = 1 << 26  # bytes for the tables of a forest (chosen)
EFFORT = 2e6  # work of the search for an order (chosen)


class Narrowed:
    """A graph with some labels a variable; `whole` makes its labelings those of the graph."""

    def __init__(self, graph: FactorGraph, keep: NDArray[np.bool_]) -> None:
        cards = graph.cards
        rows = np.split(keep, np.cumsum(cards)[:-1])
        counts = np.array([int(row.sum()) for row in rows])
        fixed = {int(v): int(np.argmax(rows[v])) for v in np.flatnonzero(counts == 1)}
        self._given: Conditioned = graph.condition(fixed)
        rest, self._labels = self._given.graph, [np.flatnonzero(rows[v]) for v in np.flatnonzero(counts != 1)]
        self.graph = FactorGraph([len(some) for some in self._labels])
        self.graph.add_factor([], rest.constant)
        arrays = rest.table_arrays()
        assert arrays.unary is not None
        tables, begin = StoredTables(arrays), begins(rest.cards)
        for v, some in enumerate(self._labels):
            self.graph.add_factor([v], arrays.unary[begin[v] + some])
        for factor in rest.factors():
            scope = [int(v) for v in factor.variables]
            shape = [int(rest.cards[v]) for v in scope]
            stored = tables[factor.table]
            table = stored if isinstance(stored, np.ndarray) else expand(stored, shape[0], shape[1])
            dense = table.T if factor.transposed else table.reshape(shape)
            self.graph.add_factor(scope, dense[np.ix_(*(self._labels[v] for v in scope))], weight=factor.weight)

    def whole(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """A labeling of the graph."""
        own = np.array([some[a] for some, a in zip(self._labels, labels.tolist(), strict=True)], np.int32)
        return self._given.expand(own)


def _bounds(graph: FactorGraph, messages: Reals | None) -> Reals:
    """No labeling with a label has more than this: from elimination of parts, what is outside at its maximum."""
    shifted, links, rng = Reparametrised(graph, messages), Links(graph), np.random.default_rng(0)
    high = shifted.label_bounds()
    for _ in range(PARTS):
        chosen = links.part(int(rng.integers(graph.n_variables)), 1, rng)
        try:
            part = Beliefs(shifted.part(chosen), True, PART_MEMORY)
        except SolverError:
            continue
        while not part.run(SLICE):
            pass
        if part.value > -inf:
            high = np.minimum(high, part.labels() + shifted.error)
    return high


class Thresholds:
    """Models of more and more labels around the best labeling; each is sure of what is at or above its threshold."""

    def __init__(
        self, graph: FactorGraph, best: NDArray[np.int32], score: float, messages: Reals | None, slack: float
    ) -> None:
        self._graph = graph
        self._high = _bounds(graph, messages) + slack
        begin = np.concatenate([[0], np.cumsum(graph.cards)[:-1]]).astype(np.int64)
        self._mine = begin + best
        self._high[self._mine] = np.maximum(self._high[self._mine], score)
        others = np.delete(self._high, self._mine)
        self._order = np.sort(others[others > -inf])[::-1]
        self._extra = FIRST_EXTRA
        self.threshold, self.complete = inf, False

    def lower(self, memory: float, wanted: int) -> tuple[Narrowed, Ranking]:
        """The next model; SolverError where it is too wide for elimination."""
        if self._extra < len(self._order):
            self.threshold = float(self._order[self._extra - 1])
        else:
            self.threshold, self.complete = -inf, True
        keep = self._high >= self.threshold if not self.complete else self._high > -inf
        keep[self._mine] = True
        if keep.sum() - len(self._mine) > MORE * self._extra and not self.complete:
            raise SolverError("too many labels have the same bound")
        self._extra *= MORE
        narrowed = Narrowed(self._graph, keep)
        return narrowed, Ranking(narrowed.graph.snapshot(), memory, wanted, EFFORT)
