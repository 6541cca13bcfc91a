"""What every method owes, on models at the edge of what a model can be."""

from __future__ import annotations

import numpy as np
import pytest

from fginfer import FactorGraph, SettingsError, available_methods, solve

METHODS = sorted(set(available_methods()) - {"assignment"})  # it takes pairs alone: test_assignment.py


@pytest.mark.parametrize("method", METHODS)
def test_a_forbidden_constant_is_infeasible(method: str) -> None:
    graph = FactorGraph([2, 3, 2])
    graph.add_factor([], -np.inf)
    graph.add_factor([0, 1], np.eye(2, 3))
    result = solve(graph, method=method, max_iterations=50)
    assert result.status == "infeasible"
    assert result.labels is None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-200, 1e20, 1e200])
def test_scores_of_any_size(method: str, scale: float) -> None:
    rng = np.random.default_rng(3)
    graph = FactorGraph([3, 3, 3, 2])
    tables = {v: rng.normal(size=[graph.cards[i] for i in v]) * scale for v in [(0, 1), (1, 2), (0, 2), (0, 1, 3)]}
    for variables, table in tables.items():
        graph.add_factor(list(variables), table)
    best = max(
        sum(t[tuple(x[i] for i in v)] for v, t in tables.items()) for x in np.ndindex(*(int(k) for k in graph.cards))
    )
    result = solve(graph, method=method, max_iterations=50)
    assert result.status != "infeasible"
    assert result.score is not None
    assert result.score <= best
    assert result.bound is not None
    assert result.bound >= best


def test_named_options() -> None:
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], [[0.0, 1.0], [2.0, 0.0]])
    assert solve(graph, "gdmm", formulation="binary").score == 2.0
    with pytest.raises(SettingsError, match="formulation must be one of auto, tables, binary, not 'dense'"):
        solve(graph, "gdmm", formulation="dense")
    with pytest.raises(SettingsError, match="rho must be a number"):
        solve(graph, "gdmm", rho="large")


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"slabs"}))  # which refuses what is too dense for it
def test_a_result_carries_a_labeling_where_labels_must_differ(method: str) -> None:
    places, rng = 10, np.random.default_rng(0)
    graph = FactorGraph([places] * places)
    graph.set_unaries(rng.normal(size=(places, places)))
    for j in range(places):
        for i in range(j):
            graph.add_factor([i, j], rng.normal(size=(places, places)) + np.where(np.eye(places) > 0, -np.inf, 0))
    result = solve(graph, method=method, max_iterations=100)
    assert result.labels is not None
    assert len(set(result.labels)) == places
