"""Approximate marginals with two bounds on log Z, for models that are too wide for elimination."""

from __future__ import annotations

from math import inf, log, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.beliefs import by_variable
from fginfer.core import clock
from fginfer.errors import ModelError, SolverError
from fginfer.gibbs import Averages, Block
from fginfer.graph import FactorGraph
from fginfer.log_z_above import Above
from fginfer.log_z_below import Below
from fginfer.solve import solve
from fginfer.sum_product import SumProduct

Reals = NDArray[np.float64]

ROUNDS = 500  # iterations of belief propagation (chosen)
EVALUATIONS = 60  # evaluations of the upper bound, where there is no time limit (chosen)
SWEEPS = 100  # sweeps of Gibbs sampling, where there is no time limit (chosen)
STEPS = 300  # iterations of the solve that finds a labeling to start from, where there is no time limit (chosen)
FIRST_SHARE = 0.1  # part of the time limit for belief propagation, and for a labeling to start from (chosen)
ABOVE_SHARE = 0.4  # part of the time limit after which the upper bound has had enough (chosen)
BELOW_SHARE = 0.9  # part of the time limit after which the chain ends and mean fields raise the lower bound (chosen)
FIELDS = 12  # mean fields around a block (chosen)
SETTLED = 0.01  # change of a probability below which Bethe's log Z is a better guess than the lower bound (chosen)
COVERED = 0.9  # so much of the probability is in what was seen: its sums are then better than averages (chosen)
NOTHING = "no labeling is allowed: the probabilities do not exist"


class Estimate(NamedTuple):
    """What marginals are made of: log Z is between low and high, and probably near log_z."""

    log_z: float
    variables: list[Reals]
    low: float
    high: float


class Approximation:
    """Works in three steps, each of which leaves an answer: messages, an upper bound, exact sums of blocks."""

    def __init__(self, graph: FactorGraph, seed: int, time_limit: float | None) -> None:
        self._graph, self._seed, self._limit = graph, seed, time_limit
        self._start = clock.now()
        self._messages: SumProduct | None = None
        self._above: Above | None = None
        self._averages: Averages | None = None
        self._most, self._low = inf, -inf

    def _until(self, share: float) -> float:
        return inf if self._limit is None else self._start + share * self._limit

    def run(self) -> None:
        """ModelError where no labeling is allowed."""
        graph, limit = self._graph, self._limit
        if SumProduct.fits(graph):
            self._messages = SumProduct(graph)
            self._messages.run(ROUNDS, self._until(FIRST_SHARE))
        first = solve(
            graph,
            seed=self._seed,
            max_iterations=None if limit is not None else STEPS,
            time_limit=None if limit is None else 2 * FIRST_SHARE * limit,
            trace=False,
            dual=False,
        )
        if first.status == "infeasible":
            raise ModelError(NOTHING)
        if first.bound is not None:  # as many labelings as there are, none of which scores more
            many = float(np.log(graph.cards.astype(float)).sum())
            self._most = first.bound + many + 1e-12 * (abs(first.bound) + many)
        self._above = Above(graph, self._seed, self._until(ABOVE_SHARE))
        rounds = EVALUATIONS if limit is None else 10**9
        self._above.run(rounds, self._until(ABOVE_SHARE))
        if self._above.bound == -inf:
            raise ModelError(NOTHING)
        if first.labels is not None:
            self._averages = Averages(graph, graph.snapshot(), first.labels, self._seed)
            self._averages.run(SWEEPS if limit is None else 10**9, self._until(BELOW_SHARE))
            self._raise_low()

    def _raise_low(self) -> None:
        """Mean fields around the blocks, from the averages of the chain."""
        averages = self._averages
        if averages is None or not averages.complete:
            return
        for block in averages.blocks:
            if clock.now() < self._until(1.0):
                below = Below(self._graph, block.cut, averages.probabilities())
                below.run(FIELDS, self._until(1.0))
                self._low = max(self._low, below.bound)

    def estimate(self) -> Estimate:
        """From what has been done so far; SolverError where that is nothing."""
        arrays = self._graph.table_arrays()
        slack = float(np.abs(arrays.leftover).sum())
        messages, averages = self._messages, self._averages
        low, high = -inf, self._most if self._above is None else min(self._most, self._above.bound + slack)
        best: Block | None = None
        if averages is not None and averages.complete:
            best = max(averages.blocks, key=lambda block: block.log_z_low)
            rounding = slack if self._above is None else slack + self._above.slack
            low = max(best.log_z_low, self._low) - rounding
        log_z = nan
        if best is not None and best.coverage >= COVERED:
            flat, log_z = best.mean, best.log_z_low - log(best.coverage)
        elif averages is not None and averages.complete:
            flat = averages.probabilities()
        elif messages is not None:
            flat = messages.flat()
        else:
            raise SolverError("there was no time for any approximation")
        if not log_z >= low:
            log_z = messages.log_z() if messages is not None and messages.change < SETTLED else low
        return Estimate(min(max(log_z, low), high), by_variable(flat, self._graph.cards), low, high)
