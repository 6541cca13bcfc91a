"""A model whose labelings keep their distance from given ones, written with counters and hard constraints."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.folding import CONSTANT, Leftovers
from fginfer.graph import FactorGraph
from fginfer.tables import TableRef

Labels = NDArray[np.int32]


def apart(graph: FactorGraph, answers: Sequence[Labels], distance: int) -> FactorGraph:
    """The graph with variables behind its own that count, up to `distance`, where a labeling differs from each answer.

    A counter that ends below the distance is forbidden, and all others are functions of the labels: every labeling
    that is left has exactly one continuation, with the same score. So any method solves the model, and whatever it
    may lose among equal labelings, the best score is that of the labelings which keep their distance.
    """
    if graph.rules:
        return _apart_by_rules(graph, answers, distance)
    order = _along_edges(graph)
    n, counters = graph.n_variables, [min(k + 1, distance) + 1 for k in range(graph.n_variables)]
    out = FactorGraph(np.concatenate([graph.cards, np.tile(np.array(counters, np.int32), len(answers))]))
    _copy_into(graph, out)
    for a, labels in enumerate(answers):
        first = n * (a + 1)
        for k, v in enumerate(order):
            differs = np.arange(graph.cards[v]) != labels[v]
            if k == 0:
                out.add_factor([v, first], _count(np.zeros(1, int), differs, counters[0])[0])
            else:
                before = np.arange(counters[k - 1])
                out.add_factor([first + k - 1, v, first + k], _count(before, differs, counters[k]))
        out.add_factor([first + n - 1], [0.0 if c == distance else -inf for c in range(counters[-1])])
    out.cutoff = graph.cutoff
    return out


def _apart_by_rules(graph: FactorGraph, answers: Sequence[Labels], distance: int) -> FactorGraph:
    """The same for a graph that has constraints already: one more for each answer."""
    out = graph.copy()
    for labels in answers:
        out.add_at_least(distance, [(v, int(label), False) for v, label in enumerate(labels)])
    return out


def _count(before: NDArray[np.int64], differs: NDArray[np.bool_], size: int) -> NDArray[np.float64]:
    """0 where the last axis is the count after the others, -inf elsewhere."""
    after = np.minimum(before[:, None] + differs[None, :], size - 1)
    table: NDArray[np.float64] = np.where(np.arange(size) == after[:, :, None], 0.0, -inf)
    return table


def _copy_into(graph: FactorGraph, out: FactorGraph) -> None:
    out.add_factor([], graph.constant)
    for v in range(graph.n_variables):
        out.add_factor([v], graph.unary(v))
    for variable, rows in Leftovers(graph.to_arrays()).rows.items():
        for row in rows:
            out.add_factor([] if variable == CONSTANT else [variable], row if variable != CONSTANT else row[0])
    shared: dict[int, TableRef] = {}
    for factor in graph.factors():
        if factor.table not in shared:
            shared[factor.table] = out.add_table(graph.table(factor.table))
        variables = [int(v) for v in factor.variables]
        out.add_factor(variables, shared[factor.table], weight=factor.weight, transposed=factor.transposed)


def _along_edges(graph: FactorGraph) -> list[int]:
    """The variables, neighbours soon after each other, so that counters make the model little wider."""
    beside: list[list[int]] = [[] for _ in range(graph.n_variables)]
    for factor in graph.factors():
        variables = [int(v) for v in factor.variables]
        for v in variables:
            beside[v] += [u for u in variables if u != v]
    seen, order = set[int](), list[int]()
    for root in sorted(range(graph.n_variables), key=lambda v: len(beside[v])):
        stack = [root]
        while stack:
            v = stack.pop()
            if v not in seen:
                seen.add(v)
                order.append(v)
                stack += [u for u in beside[v] if u not in seen]
    return order
