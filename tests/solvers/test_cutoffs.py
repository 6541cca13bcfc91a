"""Cutoffs: what is said where one has made penalties hard constraints, and where it is out of all range."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import fginfer.portfolio.policy as policy
import fginfer.portfolio.team as team
from fginfer import FactorGraph, available_methods, solve

# A graph without triangles that three colours do not suffice for (Groetzsch).
RING = [(i, (i + 1) % 5) for i in range(5)]
EDGES = RING + [(5 + i, (i + 1) % 5) for i in range(5)] + [(5 + i, (i - 1) % 5) for i in range(5)]
EDGES += [(10, 5 + i) for i in range(5)]


def colouring(others: int, penalty: float) -> FactorGraph:
    """Three colours for that graph, and a part of `others` variables that has nothing to do with it."""
    rng = np.random.default_rng(3)
    graph = FactorGraph([3] * (11 + others))
    for i, j in EDGES:
        table = -0.01 * rng.random((3, 3))
        np.fill_diagonal(table, -penalty)
        graph.add_factor([i, j], table)
    for i in range(11, 11 + others):
        graph.add_factor([i], rng.normal(size=3))
        for j in range(11, i):
            graph.add_factor([i, j], rng.normal(size=(3, 3)))
    return graph


@pytest.mark.parametrize("others", [0, 8])
@pytest.mark.parametrize("few", [2000, -1])  # factors of a part that is eliminated at once
def test_bounds_where_a_cutoff_has_made_penalties_hard(others: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is above the cutoff, but there are labelings: a bound below them would be false."""
    for name in ("TINY_STATES", "QUICK_WORK", "QUICK_PASSES"):  # through presolve and parts
        monkeypatch.setattr(policy, name, 0)
    monkeypatch.setattr(team, "FEW_FACTORS", few)
    graph = colouring(others, 1e9)
    found = solve(graph, "search", max_iterations=20).score
    assert found is not None
    assert found < -1e8
    result = solve(graph, cutoff=-1000.0)
    assert result.status == "infeasible"
    assert result.bound is not None
    assert result.bound >= found
    assert solve(colouring(others, inf)).bound == -inf


@pytest.mark.parametrize("method", available_methods())
def test_cutoffs_out_of_all_range(method: str) -> None:
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], 1e-300 * np.array([[1.0, 2.0], [3.0, 0.0]]))
    above = solve(graph, method, cutoff=1e308, max_iterations=20)
    assert (above.status, above.labels) == ("infeasible", None)
    assert above.bound is not None
    assert above.bound >= 3e-300
    assert solve(graph, method, cutoff=-1e308, max_iterations=20).is_optimal
