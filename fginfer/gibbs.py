"""Gibbs sampling of large blocks, each summed exactly: averages of exact conditionals, and a lower bound on log Z."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.beliefs import SLICE
from fginfer.blocks import forest_blocks
from fginfer.core import clock
from fginfer.core.beliefs import Beliefs
from fginfer.core.model import Model
from fginfer.errors import SolverError
from fginfer.graph import FactorGraph

Reals = NDArray[np.float64]
Labels = NDArray[np.int32]

BLOCK_MEMORY = 4e6  # bytes for the tables of a block: passes of some 10 ms (chosen)
BLOCK_EFFORT = 2e6  # work of the search for the order of a block (chosen)
TRIES = 8  # blocks of this size, before forests cover what is left (chosen)
BURN_IN = 5  # sweeps whose averages do not count (chosen)
MOST_KEPT = 1 << 18  # joint labels of a cut set whose sums are kept (chosen)


class Block:
    """Some variables, summed exactly given the others; sums of different joint labels of the others add up."""

    def __init__(self, beliefs: Beliefs) -> None:
        self._beliefs = beliefs
        self._sums: dict[bytes, float] = {}
        self._seen_once: set[bytes] = set()
        self.runs, self.log_z_low = 0, -inf
        self.mean = np.zeros(0)  # probabilities, weighted by the sums of the joint labels that were seen
        self.cut = beliefs.cut

    def run(self, labels: Labels, end: float) -> bool:
        """Both passes with the cut set at its labels; False: there was no time."""
        held = labels[self.cut]
        self._beliefs.hold(held)
        while not self._beliefs.run(SLICE):
            if clock.now() >= end:
                return False
        self._keep(held.tobytes(), self._beliefs.value)
        return True

    def _keep(self, key: bytes, value: float) -> None:
        """The sum and the probabilities of a joint label that was not seen before."""
        self.runs += 1
        if key in self._sums or len(self._sums) >= MOST_KEPT:
            self._seen_once.discard(key)
            return
        self._sums[key] = value
        self._seen_once.add(key)
        both = float(np.logaddexp(self.log_z_low, value))
        if not len(self.mean):
            self.mean = np.zeros(self._beliefs.labels().shape)
        if both > -inf:
            share = np.exp(value - both)
            self.mean += share * (self._beliefs.labels() - self.mean)
        self.log_z_low = both

    def draw(self, labels: Labels, state: int) -> Labels:
        """Labels of all variables: new ones of the block given the others."""
        self._beliefs.hold(labels[self.cut])
        while not self._beliefs.run(SLICE, both=False):
            pass
        drawn: Labels = self._beliefs.sample(1, state)[0][0]
        return drawn

    def probabilities(self) -> Reals:
        """P(variable = label) given the cut set."""
        return self._beliefs.labels()

    @property
    def coverage(self) -> float:
        """About how probable the joint labels are that were seen (Good and Turing: those seen once tell of others)."""
        return 1.0 - len(self._seen_once) / self.runs if self.runs else 0.0


def blocks_of(graph: FactorGraph, model: Model, rng: np.random.Generator, memory: float) -> list[Block]:
    """Blocks that are as wide as the memory allows, until every variable is in one; forests for what is left."""
    n = model.n_variables
    covered, out = np.zeros(n, bool), list[Block]()
    for _ in range(TRIES):
        held = (covered & (rng.random(n) < 0.5)).astype(np.uint8)
        try:
            beliefs = Beliefs(model, False, memory, BLOCK_EFFORT, held)
        except SolverError:
            break
        inside = np.ones(n, bool)
        inside[beliefs.cut] = False
        if not (inside & ~covered).any():
            break
        covered |= inside
        out.append(Block(beliefs))
        if covered.all():
            return out
    for held in forest_blocks(graph, rng):
        if (~held.astype(bool) & ~covered).any():
            covered |= ~held.astype(bool)
            out.append(Block(Beliefs(model, False, held=held)))
    return out


class Averages:
    """Conditional probabilities, averaged over a chain of labelings."""

    def __init__(self, graph: FactorGraph, model: Model, start: Labels, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._model, self._labels = model, start.astype(np.int32)
        self.blocks = blocks_of(graph, model, self._rng, BLOCK_MEMORY)
        size = int(model.cards.sum())
        self._sums, self._counts = np.zeros(size), np.zeros(size)
        self._owner = np.repeat(np.arange(model.n_variables), model.cards)
        self.sweeps = 0

    def run(self, sweeps: int, end: float) -> None:
        """So many sweeps over the blocks, or until the clock says `end`."""
        for _ in range(sweeps):
            if self.sweeps == BURN_IN:
                self._sums[:], self._counts[:] = 0.0, 0.0
            for block in self.blocks:
                if not block.run(self._labels, end):
                    return
                inside = np.ones(self._model.n_variables, bool)
                inside[block.cut] = False
                mine = inside[self._owner]
                self._sums[mine] += block.probabilities()[mine]
                self._counts[mine] += 1
                self._labels = block.draw(self._labels, int(self._rng.integers(2**63)))
            self.sweeps += 1
            if clock.now() >= end:
                return

    @property
    def complete(self) -> bool:
        """Whether every variable has been in a block."""
        return bool(self._counts.all())

    def probabilities(self) -> Reals:
        """The averages, one label after the other."""
        return self._sums / self._counts

    @property
    def log_z_low(self) -> float:
        """The best of the blocks' bounds."""
        return max((block.log_z_low for block in self.blocks), default=-inf)
