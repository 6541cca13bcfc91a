"""solve_many with models that follow each other: the answers of solve, model by model, whoever works on them."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, ModelError, Potts, SettingsError, solve, solve_many
from tests.again.test_following import RULES, image


def frames(rng: np.random.Generator, graph: FactorGraph, n: int) -> np.ndarray:
    """A video: each is the one before with a few changes, or with noise everywhere."""
    unary = np.array(graph.table_arrays().unary)
    out = np.empty((n, len(unary)))
    for k in range(n):
        which = rng.choice(len(unary), size=6, replace=False)
        unary[which] += rng.normal(size=6)
        out[k] = unary if k % 4 else unary + 0.02 * rng.normal(size=len(unary))
    return out


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=5, deadline=None)
def test_each_model_is_solved(seed: int, warm: bool) -> None:
    rng = np.random.default_rng(seed)
    graph = image(rng, (9, 8), 3)
    shared = graph.add_table(rng.normal(size=(3, 3)))
    graph.add_factor([0, 71], shared)
    n = 40 if warm else 5
    unaries, tables = frames(rng, graph, n), rng.normal(size=(n, 3, 3)) if seed % 2 else None
    unaries[3, 0] = -inf
    extra = {} if tables is None else {"tables": {shared: tables}}
    found = solve_many(graph, unaries=unaries, warm=warm, workers=1, rules=RULES, **extra)
    again = solve_many(graph, unaries=list(unaries), warm=warm, workers=3, rules=RULES, **extra)
    for k in range(n):
        assert np.array_equal(found[k].labels, again[k].labels)
        assert found[k].bound == again[k].bound
        graph.set_unaries(unaries[k])
        if tables is not None:
            graph.set_table(shared, tables[k])
        fresh = solve(graph, rules=RULES)
        assert found[k].status == fresh.status
        assert found[k].score == graph.score(found[k].labels) == pytest.approx(fresh.score, rel=1e-9)
        assert found[k].bound >= fresh.score


@pytest.mark.parametrize("method", [None, "trws", "gdmm", "bnb"])
def test_graphs_of_one_structure(method: str | None) -> None:
    rng = np.random.default_rng(0)
    graphs = []
    for _ in range(4):  # built one by one, the structure is equal, not the same
        graphs.append(FactorGraph.grid((5, 4), np.zeros((5, 4, 2)), Potts(0, -0.3)))
        graphs[-1].add_factor([0, 19], graphs[-1].add_table(rng.normal(size=(2, 2))))
    for graph in graphs:
        graph.set_unaries(rng.normal(size=(20, 2)))
        graph.add_clause([(0, 1), (7, 1)])
    graphs[2].cutoff = 1e6
    limit = {"max_iterations": 200} if method in ("trws", "gdmm") else {}
    found = solve_many(graphs, method, warm=True, workers=2, **limit)
    assert [r.labels is None for r in found] == [False, False, True, False]
    for graph, result in zip(graphs, found, strict=True):
        exact = solve(graph)
        if result.score is None:
            assert exact.status == "infeasible"
            continue
        assert result.score == graph.score(result.labels)
        assert result.score <= exact.score <= result.bound + 1e-9
        assert method in ("trws", "gdmm") or result.status == exact.status


def test_few_changes_are_followed() -> None:
    graph = image(np.random.default_rng(1), (30, 30), 3)
    unaries = np.repeat(np.array(graph.table_arrays().unary)[np.newaxis], 5, axis=0)
    for k in range(1, 5):
        unaries[k:, 3 * k] += 1.0
    found = solve_many(graph, unaries=unaries, warm=True, rules=RULES)
    assert [r.proved_by for r in found[1:]] == ["again"] * 4


def test_what_is_refused() -> None:
    graph = FactorGraph([2, 2])
    handle = graph.add_table(np.eye(2))
    graph.add_factor([0, 1], handle)
    good = np.zeros((3, 4))
    bad = good.copy()
    bad[2, 1] = np.nan
    other, third = FactorGraph([2, 2]), FactorGraph([2, 3])
    for call, error, match in (
        (lambda: solve_many(graph, unaries=bad, warm=True), ModelError, "model 2: .*NaN"),
        (lambda: solve_many(graph, unaries=good[:, :3], warm=True), ModelError, "model 0: .*one score per label"),
        (lambda: solve_many(graph, unaries=good, tables={handle: np.zeros((2, 2, 2))}), ModelError, "as many models"),
        (lambda: solve_many(graph, unaries=good, tables={handle: np.zeros((3, 2, 3))}), ModelError, "model 0: "),
        (lambda: solve_many(graph, unaries=good, tables={9: np.zeros((3, 2, 2))}), ModelError, "no table 9"),
        (lambda: solve_many(graph, unaries=3), ModelError, "entry per model"),
        (lambda: solve_many(graph), SettingsError, "takes a list"),
        (lambda: solve_many([graph], unaries=good), SettingsError, "one graph"),
        (lambda: solve_many([graph, other], warm=True), ModelError, "model 1: it has other variables or factors"),
        (lambda: solve_many([graph, third], warm=True), ModelError, "model 1: it has other variables"),
        (lambda: solve_many([graph, 3]), SettingsError, "number 1 is a int"),  # type: ignore[list-item]
        (lambda: solve_many([graph], warm="yes"), SettingsError, "warm"),  # type: ignore[arg-type]
        (lambda: solve_many([graph], warm=True, evidence={0: 1}), SettingsError, "evidence does not go"),
        (lambda: solve_many([graph], warm=True, client="tcp://x"), SettingsError, "leave out the client"),
    ):
        with pytest.raises(error, match=match):
            call()
    assert solve_many([], warm=True) == []
    assert solve_many(graph, unaries=good[:0]) == []
    assert [r.status for r in solve_many(graph, unaries=good, warm=True, workers=2)] == ["optimal"] * 3
