"""Members that end with a proof, by branching, and when that is likely to be."""

from __future__ import annotations

from itertools import pairwise
from math import inf

from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.portfolio.relaxations import Relaxation

LEAST_EXPLORED = 0.05  # of a tree: before, how long it takes to its end is a guess
NEXT_LOOK, LOOKS = 1.5, 2  # times the work of the look before; how many tell how fast it gets on


class Tree(Relaxation):
    """A search tree that ends with a proof. It is not told bounds: its own shows whether it gets on."""

    def __init__(self, model: Model, settings: Settings, share: float = 1.0, threads: int = 1) -> None:
        super().__init__(model, settings, share, threads)
        self._seen_at: list[tuple[float, float]] = [(0.0, 0.0)]  # work, and what was explored by then

    def _end_chunk(self) -> None:
        if self.work >= NEXT_LOOK * self._seen_at[-1][0]:
            self._seen_at = [*self._seen_at[-LOOKS:], (self.work, float(self.engine.info.explored))]

    def work_left(self) -> float:
        """What it is likely to take to its end, by how fast it has been done with branches of late; inf: not known. The
        slowest of some looks counts: a large branch that ends at once says nothing about the others."""
        seen = self._seen_at
        slowest = min((b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(seen)) if len(seen) > LOOKS else 0.0
        explored = float(self.engine.info.explored)
        return max(0.0, 1.0 - explored) / slowest if explored >= LEAST_EXPLORED and slowest > 0 else inf

    @property
    def _begins(self) -> bool:
        """It is still at the root."""
        return bool(self.engine.info.oracle_calls <= 1)

    @property
    def complete(self) -> bool:
        return self._ended_to_rounding


class Proof(Tree):
    """Branch and bound: few nodes, with the bounds of TRW-S."""

    name = "bnb"


class QuickTree(Tree):
    """Depth-first search: many nodes, with the bounds of soft arc consistency."""

    name = "edac"


class Dolls(Tree):
    """Depth-first search in a static order, with the optima of its last variables as bounds."""

    name = "dolls"

    def work_left(self) -> float:
        """The largest dolls may take many times as long as all others: not known."""
        return inf
