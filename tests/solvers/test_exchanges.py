"""Exchanges of labels: assignments, on which no variable can change its label alone."""

from __future__ import annotations

from itertools import permutations
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, solve


def quadratic_assignment(n: int, seed: int, rules_apart: bool = False) -> tuple[FactorGraph, np.ndarray, np.ndarray]:
    """Flows between things, distances between places; `rules_apart`: what must differ is in factors of its own."""
    rng = np.random.default_rng(seed)
    flow, distance = (rng.integers(0, 10, (n, n)) for _ in range(2))
    flow, distance = np.triu(flow, 1) + np.triu(flow, 1).T, np.triu(distance, 1) + np.triu(distance, 1).T
    graph = FactorGraph([n] * n)
    differ = np.where(np.eye(n, dtype=bool), -inf, 0.0)
    rule = graph.add_table(differ)
    for i in range(n):
        for j in range(i):
            cost = -2.0 * float(flow[i, j]) * distance
            graph.add_factor([i, j], cost if rules_apart else cost + differ)
            if rules_apart:
                graph.add_factor([j, i], rule)
    return graph, flow, distance


def cost_of(order: tuple[int, ...], flow: np.ndarray, distance: np.ndarray) -> float:
    places = np.array(order)
    return float((flow * distance[np.ix_(places, places)]).sum())


@settings(max_examples=15, deadline=None)
@given(n=st.integers(3, 6), seed=st.integers(0, 10**6), rules_apart=st.booleans())
def test_small_assignments_are_solved(n: int, seed: int, rules_apart: bool) -> None:
    graph, flow, distance = quadratic_assignment(n, seed, rules_apart)
    best = min(cost_of(order, flow, distance) for order in permutations(range(n)))
    result = solve(graph, "search", max_iterations=30)
    assert result.score == -best
    assert cost_of(tuple(result.labels.tolist()), flow, distance) == best


@pytest.mark.parametrize("rules_apart", [False, True])
def test_exchanges_get_where_single_changes_do_not(rules_apart: bool) -> None:
    """At least as good as the best of many descents by exchanges that are written down here."""
    n = 14
    graph, flow, distance = quadratic_assignment(n, 3, rules_apart)
    rng = np.random.default_rng(0)
    best = inf
    for _ in range(10):
        order = rng.permutation(n)
        cost, found = cost_of(tuple(order), flow, distance), True
        while found:
            found = False
            for i in range(n):
                for j in range(i):
                    order[[i, j]] = order[[j, i]]
                    new = cost_of(tuple(order), flow, distance)
                    if new < cost:
                        cost, found = new, True
                    else:
                        order[[i, j]] = order[[j, i]]
        best = min(best, cost)
    result = solve(graph, "search", max_iterations=60)
    assert result.score is not None
    assert -result.score <= best
