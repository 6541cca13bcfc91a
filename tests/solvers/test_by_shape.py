"""Factors in groups of one shape against the scores of the graph; random forests against a union of trees."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest

from fginfer import AbsDiff, FactorGraph, Potts, k_best, ranked_parts
from fginfer.blocks import Trees, random_forest
from fginfer.by_shape import factors_by_shape


@pytest.mark.parametrize("seed", range(20))
def test_tables_have_the_scores_of_the_graph(seed: int):
    rng = np.random.default_rng(seed)
    graph = FactorGraph(rng.integers(1, 4, 5))
    shared = [graph.add_table(rng.normal(size=(3, 2))), graph.add_table(Potts(1.0, -np.inf)), AbsDiff(-0.5, 2.0)]
    graph.add_table(shared[2])
    for _ in range(12):
        scope = rng.permutation(5)[: rng.integers(1, 4)]
        weight, sizes = float(rng.choice([0.0, 0.5, 2.0])), graph.cards[scope]
        if len(scope) == 2 and rng.random() < 0.5:
            graph.add_factor(scope, shared[rng.integers(1, 3)], weight=weight)
        elif len(scope) == 2 and (sizes == [3, 2]).all():
            graph.add_factor(scope, shared[0], weight=weight)
        elif len(scope) == 2 and (sizes == [2, 3]).all():
            graph.add_factor(scope, shared[0], weight=weight, transposed=True)
        else:
            table = np.where(rng.random(sizes) < 0.2, -np.inf, rng.normal(size=sizes))
            graph.add_factor(scope, table, weight=weight)
    arrays = graph.table_arrays()
    assert arrays.unary is not None
    begin = np.cumsum(graph.cards) - graph.cards
    for x in product(*(range(c) for c in graph.cards)):
        labels = np.array(x)
        total = arrays.constant + arrays.unary[begin + labels].sum()
        for _, scopes, tables in factors_by_shape(arrays):
            total += sum(table[tuple(labels[scope])] for scope, table in zip(scopes, tables, strict=True))
        assert total == pytest.approx(graph.score(x), abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_forests_close_no_cycle_and_nothing_is_left_out(seed: int):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    ends = np.array([rng.choice(n, 2, replace=False) for _ in range(rng.integers(0, 80))], np.int64).reshape(-1, 2)
    chosen, trees = random_forest(n, ends, rng).tolist(), Trees(n)
    assert all(trees.join(ends[k].tolist()) for k in chosen)
    assert not any(trees.join(pair) for pair in ends.tolist())


def test_where_few_labels_are_too_many_the_whole_model_is_ranked(monkeypatch: pytest.MonkeyPatch):
    """A long search for an order comes before a solve for every answer."""
    rng = np.random.default_rng(0)
    graph = FactorGraph.grid((4, 4), rng.normal(size=(4, 4, 3)), Potts(0.3, 0.0))
    expected = [r.score for r in k_best(graph, 30)]

    def refuse(*_: object) -> None:
        raise ranked_parts.SolverError("too wide")

    monkeypatch.setattr(sys.modules["fginfer.k_best"], "_Ranked", refuse)
    monkeypatch.setattr(ranked_parts, "EFFORT", 1.0)
    found = k_best(graph, 30)
    assert [r.score for r in found] == expected
    assert {r.method for r in found.found[1:]} == {"elimination"}
