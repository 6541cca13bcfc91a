"""Bounds on max-marginals of models that are too wide for elimination, which shrink while there is time."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.beliefs import SLICE
from fginfer.blocks import Links, forest_blocks
from fginfer.core import clock
from fginfer.core.beliefs import Beliefs
from fginfer.core.model import Model
from fginfer.errors import SolverError
from fginfer.graph import FactorGraph
from fginfer.reparametrise import Reparametrised
from fginfer.solve import solve

Reals = NDArray[np.float64]

SHARE = 0.25  # part of the time limit that the first labeling, and the messages, may take (chosen)
PART_MEMORY = 1 << 28  # bytes for the tables of a part of the model (chosen)
PART_WORK = 1e8  # joint states of such a part: about a second (chosen)
PATIENCE = 6  # rounds without a change after which bounds are left as they are (chosen)
SWEEPS = 300  # sweeps of message passing where there is no time limit (chosen)


class Intervals:
    """low <= max-marginal <= high for every label, one after the other; `run` makes them better."""

    def __init__(self, graph: FactorGraph, model: Model, seed: int, time_limit: float | None) -> None:
        self._graph, self._model = graph, model
        self._rng = np.random.default_rng(seed)
        self._end = inf if time_limit is None else clock.now() + time_limit
        self._limit = time_limit
        size = int(model.cards.sum())
        self.low, self.high = np.full(size, -inf), np.full(size, inf)
        self.score, self.bound = -inf, inf
        self._labels: NDArray[np.int32] | None = None
        self._begin = np.concatenate([[0], np.cumsum(model.cards)]).astype(np.int64)

    @property
    def closed(self) -> bool:
        """Nothing is left between the two."""
        return bool(np.array_equal(self.low, self.high))

    def run(self) -> None:
        """Works until the time is over or rounds change nothing."""
        share = None if self._limit is None else SHARE * self._limit
        best = solve(self._graph, time_limit=share, gap=0.0 if share else 1e-3, trace=False, dual=False)
        self.bound = inf if best.bound is None else best.bound
        if best.status == "infeasible":
            self.low[:], self.high[:], self.bound = -inf, -inf, -inf
            return
        if best.labels is not None and best.score is not None:
            self._labels, self.score = best.labels.astype(np.int32), best.score
            self.low[self._begin[:-1] + self._labels] = best.score
        self.high[:] = self.bound
        method = "trws" if self._model.max_arity <= 2 else "mplp"
        dual = solve(self._graph, method, time_limit=share, max_iterations=SWEEPS, trace=False)
        shifted = Reparametrised(self._graph, dual.messages)
        self.high = np.minimum(self.high, shifted.label_bounds())
        links, size, idle = Links(self._graph), 8.0, 0
        while clock.now() < self._end and idle < PATIENCE and not self.closed:
            before = self.low.copy(), self.high.copy()
            self._raise_low()
            size *= 1.5 if self._lower_high(shifted, links, size) else 0.5
            size = min(max(size, 2.0), float(self._graph.n_variables))
            changed = not (np.array_equal(before[0], self.low) and np.array_equal(before[1], self.high))
            idle = 0 if changed else idle + 1

    def _raise_low(self) -> None:
        """Blocks of variables with all of their labels, the others as in the labeling at hand."""
        if self._labels is None:
            return
        for held in forest_blocks(self._graph, self._rng):
            block = Beliefs(self._model, True, held=held)
            block.hold(self._labels[block.cut])
            while not block.run(SLICE):
                if clock.now() >= self._end:
                    return
            self.low = np.minimum(np.maximum(self.low, block.labels()), self.high)
            self.score = max(self.score, min(block.value, self.bound))

    def _lower_high(self, shifted: Reparametrised, links: Links, size: float) -> bool:
        """A part of the model by elimination, what is outside at its maximum; False: the part was too wide."""
        open_vars = np.flatnonzero(np.maximum.reduceat(self.low < self.high, self._begin[:-1]))
        if len(open_vars) == 0:
            return True
        centre = int(open_vars[self._rng.integers(len(open_vars))])
        chosen = links.part(centre, int(size), self._rng)
        try:
            part = Beliefs(shifted.part(chosen), True, PART_MEMORY)
        except SolverError:
            return False
        if part.runs > 1 or part.work > PART_WORK:
            return False
        while not part.run(SLICE):
            if clock.now() >= self._end:
                return True
        found = part.labels() if part.value > -inf else np.full(len(self.high), -inf)
        self.high = np.maximum(np.minimum(self.high, found + shifted.error), self.low)
        self.bound = max(min(self.bound, float(self.high[: self._begin[1]].max(initial=-inf))), self.score)
        return True
