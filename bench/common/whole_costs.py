"""Models whose costs are whole numbers, so that toulbar2 is exact on them.

A cost is what toulbar2 is given; our score is minus the cost times a step, so that both speak about the same labelings
whether scores are integers, decimals or anything else. FORBIDDEN is a hard constraint.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer import FactorGraph

FORBIDDEN = -1
Costs = NDArray[np.int64]
STEPS = (1.0, 0.1, 1 / 3, 2.0**-20, 1e9, 1e-9, 0.7)


@dataclass
class LargeCase:
    """A random model as costs, before any solver has seen it."""

    seed: int
    kind: str
    cards: list[int]
    step: float
    factors: list[tuple[tuple[int, ...], Costs]] = field(default_factory=list)

    def add(self, scope: Any, costs: Any) -> None:
        self.factors.append((tuple(int(v) for v in scope), np.asarray(costs, np.int64)))

    def graph(self, exponent: int = 0) -> FactorGraph:
        """Scores are minus the costs, times the step, times 2^exponent."""
        graph = FactorGraph(self.cards)
        unaries: dict[int, list[Costs]] = {}
        for scope, costs in self.factors:
            if len(scope) == 1:
                unaries.setdefault(scope[0], []).append(costs)
            else:
                graph.add_factor(list(scope), np.ldexp(self.scores(costs), exponent))
        for i, several in unaries.items():  # several are one: what adding them rounds is no business of solvers
            banned = np.any([costs == FORBIDDEN for costs in several], axis=0)
            scores = self.scores(np.where(banned, FORBIDDEN, np.sum(several, axis=0)))
            graph.add_factor([i], np.ldexp(scores, exponent))
        return graph

    def scores(self, costs: Costs) -> NDArray[np.float64]:
        return np.where(costs == FORBIDDEN, -np.inf, 0.0 - costs * self.step)

    def cost(self, labels: Any) -> int | None:
        """What a labeling costs; None: it is forbidden."""
        total = 0
        for scope, costs in self.factors:
            at = int(costs[tuple(int(labels[v]) for v in scope)])
            if at == FORBIDDEN:
                return None
            total += at
        return total
