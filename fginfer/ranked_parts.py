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
from fginfer.blocks import Links, random_forest
from fginfer.by_shape import factors_by_shape
from fginfer.core.arrays import ModelArrays, begins
from fginfer.core.beliefs import Beliefs
from fginfer.core.model import Model
from fginfer.core.ranked import Ranking
from fginfer.errors import SolverError
from fginfer.graph import FactorGraph
from fginfer.reparametrise import Reparametrised

Reals = NDArray[np.float64]

FIRST_EXTRA = 32  # labels beside those of the best labeling that the first model has (chosen)
MORE = 3  # times as many has the next one (chosen)
PARTS = 3  # forests whose exact maxima bound labels (chosen)
PART_MEMORY = 1 << 26  # bytes for the tables of a forest (chosen)
EFFORT = 2e6  # work of the search for an order (chosen)
LAST_EFFORT = 2e7  # where all labels are left, and a solve for every answer is what comes else (chosen)


class Narrowed:
    """A model with some labels a variable; `whole` makes its labelings those of the model it was made of."""

    def __init__(self, model: Model, keep: NDArray[np.bool_]) -> None:
        begin, counts = begins(model.cards), np.add.reduceat(keep, begins(model.cards)[:-1], dtype=np.int64)
        kept = np.flatnonzero(keep)
        labels = (kept - np.repeat(begin[:-1], counts)).astype(np.int32)
        self._first, self._free = labels[begins(counts)[:-1]], np.flatnonzero(counts > 1)
        fixed = np.flatnonzero(counts == 1).astype(np.int32)
        rest = ModelArrays.of_model(model.condition(fixed, np.ascontiguousarray(self._first[fixed])))
        assert rest.unary is not None
        self._labels = labels[np.repeat(counts > 1, counts)]
        self._begin = begins(counts[self._free])
        tables = _restricted(rest, np.split(self._labels, self._begin[1:-1]))
        self.model = ModelArrays(
            cards=counts[self._free].astype(np.int32),
            unary=rest.unary[keep[np.repeat(counts > 1, model.cards)]],
            constant=rest.constant,
            table_arity=np.diff(rest.factor_begin()).astype(np.int32),
            dims=counts[self._free][rest.vars].astype(np.int32),
            values=np.concatenate([np.zeros(0), *tables]),
            factor_table=np.arange(rest.n_factors, dtype=np.int32),
            var_begin=rest.factor_begin(),
            vars=rest.vars,
        ).build()

    def whole(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """A labeling of the whole model."""
        out = self._first.copy()
        out[self._free] = self._labels[self._begin[:-1] + labels]
        return out


def _restricted(arrays: ModelArrays, labels: list[NDArray[np.int32]]) -> list[Reals]:
    """The scores of each factor for these labels of its variables."""
    out = [np.zeros(0)] * arrays.n_factors
    for factors, variables, tables in factors_by_shape(arrays):
        for factor, scope, table in zip(factors.tolist(), variables.tolist(), tables, strict=True):
            is_whole = all(len(labels[v]) == card for v, card in zip(scope, table.shape, strict=True))
            out[factor] = (table if is_whole else table[np.ix_(*(labels[v] for v in scope))]).reshape(-1)
    return out


def _bounds(graph: FactorGraph, messages: Reals | None) -> Reals:
    """No labeling with a label has more than this: from elimination of parts, what is outside at its maximum."""
    shifted, rng, arrays = Reparametrised(graph, messages), np.random.default_rng(0), graph.table_arrays()
    high = shifted.label_bounds()
    pairs = np.flatnonzero(np.diff(arrays.factor_begin()) == 2)
    ends = arrays.vars[arrays.factor_begin()[pairs][:, None] + np.arange(2)].astype(np.int64)
    links = Links(graph) if len(pairs) < arrays.n_factors else None
    for _ in range(PARTS):
        if links is None:
            chosen = pairs[random_forest(graph.n_variables, ends, rng)]
        else:
            chosen = np.array(links.part(int(rng.integers(graph.n_variables)), 1, rng), np.int64)
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
        self._model = graph.snapshot()
        self._high = _bounds(graph, messages) + slack
        begin = np.concatenate([[0], np.cumsum(graph.cards)[:-1]]).astype(np.int64)
        self._mine = begin + best
        self._high[self._mine] = np.maximum(self._high[self._mine], score)
        others = np.delete(self._high, self._mine)
        self._order = np.sort(others[others > -inf])[::-1]
        self._extra = FIRST_EXTRA
        self.threshold, self.complete = inf, False

    def lower(self, memory: float, wanted: int) -> tuple[Narrowed, Ranking]:
        """The next model, or all of the model after a longer search for an order; SolverError where that is too wide
        for elimination, too."""
        if self._extra < len(self._order):
            self.threshold = float(self._order[self._extra - 1])
            try:
                return self._ranked(self._high >= self.threshold, memory, wanted, EFFORT)
            except SolverError:
                pass
        self.threshold, self.complete = -inf, True
        return self._ranked(self._high > -inf, memory, wanted, LAST_EFFORT)

    def _ranked(self, keep: NDArray[np.bool_], memory: float, wanted: int, effort: float) -> tuple[Narrowed, Ranking]:
        keep[self._mine] = True
        if keep.sum() - len(self._mine) > MORE * self._extra and not self.complete:
            raise SolverError("too many labels have the same bound")
        self._extra *= MORE
        narrowed = Narrowed(self._model, keep)
        return narrowed, Ranking(narrowed.model, memory, wanted, effort)
