"""The cheapest things to drop from a graph that allows nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from fginfer.graph import FactorGraph
from fginfer.hard_parts import HardParts
from fginfer.solve import solve

SECONDS = 0.25  # for the way out, where there is no time limit and the search took no longer (chosen)


@dataclass(frozen=True)
class Relaxed:
    """Groups to drop, what that costs, and whether nothing is cheaper."""

    dropped: list[int]
    cost: float
    proven: bool


def cheapest(
    parts: HardParts, costs: Sequence[float], left: Callable[[], float | None], spent: float
) -> Relaxed | None:
    """A solve of the graph in which breaking a group costs what it is worth; None: no time. Without a time limit it
    may take the seconds that were `spent` before: an explanation is not to wait for a proof that nothing is cheaper.

    A table has its cost instead of -inf. A group of several tables has a switch, a variable that turns all of them off.
    """
    graph, switches = FactorGraph(parts.cards), dict[int, int]()
    for g, tables in enumerate(parts.tables):
        hard = [(list(scope), np.where(scores == -inf, -inf, 0.0)) for scope, scores in tables]
        if len(hard) == 1:
            graph.add_factor(hard[0][0], np.where(hard[0][1] == -inf, -costs[g], 0.0))
            continue
        switches[g] = graph.add_variable(2)
        graph.add_factor([switches[g]], [0.0, -costs[g]])
        for scope, scores in hard:
            graph.add_factor([*scope, switches[g]], np.stack([scores, np.zeros_like(scores)], axis=-1))
    limit = left()
    result = solve(graph, gap=0.0, time_limit=max(SECONDS, spent) if limit is None else limit, trace=False, dual=False)
    if result.labels is None or result.score is None:
        return None
    labels, dropped = result.labels, list[int]()
    for g, tables in enumerate(parts.tables):
        if g in switches:
            broken = bool(labels[switches[g]])
        else:
            own, table = tables[0]
            broken = bool(table[tuple(int(labels[v]) for v in own)] == -inf)
        if broken:
            dropped.append(g)
    return Relaxed(dropped, float(sum(costs[g] for g in dropped)), result.status == "optimal")
