"""The point of it all: entries touched per question grow far more slowly than the table."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fginfer import AbsDiff, FactorGraph, Potts
from fginfer.oracles import GraphOracle


def touched_per_call(table: NDArray[np.float64] | Potts | AbsDiff, k: int, calls: int = 300) -> float:
    """Messages on a dozen labels per side, most of them positive, as in a run of GDMM."""
    graph = FactorGraph([k, k])
    graph.add_factor([0, 1], table)
    oracle, rng = GraphOracle(graph), np.random.default_rng(0)
    pool = rng.choice(k, 40, replace=False)
    for _ in range(calls):
        messages = [
            {int(a): float(rng.normal(0.3, 0.3)) for a in rng.choice(pool, 12, replace=False)} for _ in range(2)
        ]
        oracle.argmax(0, messages)
    assert oracle.calls == calls
    return oracle.touched / calls


def points(k: int) -> NDArray[np.float64]:
    at = np.random.default_rng(k).random((k, 2))
    distance = np.linalg.norm(at[:, None] - at[None], axis=2)
    return -np.minimum(np.abs(distance - 0.2), 0.3)


def graph_distances(k: int) -> NDArray[np.float64]:
    """1/rank-like scores with very many ties and a forbidden diagonal."""
    at = np.random.default_rng(k).random((k, 2))
    hops = 1 + np.floor(np.linalg.norm(at[:, None] - at[None], axis=2) * 4)
    table = 1 / hops
    np.fill_diagonal(table, -np.inf)
    return table


def noise(k: int) -> NDArray[np.float64]:
    return np.random.default_rng(k).normal(size=(k, k))


@pytest.mark.slow
def test_touched_entries_grow_sublinearly() -> None:
    for make in (points, graph_distances, noise):
        small, large = touched_per_call(make(64), 64), touched_per_call(make(1024), 1024)
        assert large < 2 * small + 32, f"{make.__name__}: {small} entries at 64 labels, {large} at 1024"
        assert large < 300


def test_implicit_factors_cost_their_messages() -> None:
    for table in (Potts(0.0, -1.0), AbsDiff(0.1, 5.0), AbsDiff(0.01)):
        assert touched_per_call(table, 4096) < 400


def test_hint_costs_no_more_than_itself() -> None:
    graph = FactorGraph([256, 256])
    graph.add_factor([0, 1], noise(256))
    oracle, rng = GraphOracle(graph), np.random.default_rng(3)
    messages = [dict(enumerate(rng.normal(size=256).tolist())) for _ in range(2)]
    best = oracle.best(0, 1, messages, path="search")
    blind = oracle.touched
    assert oracle.best(0, 1, messages, hint=best[0].state, path="search") == best
    assert oracle.touched - blind <= blind + 1
