"""Every reduction, alone and with all others, keeps the optimum and maps labelings back exactly."""

from __future__ import annotations

import itertools
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Potts
from fginfer.core.presolve import Presolved, Reduction, presolve

from .models import SHAPES, Shape, brute_force, close, random_graph

seeds = st.integers(0, 2**31)


def check_reduced(graph: FactorGraph, reduced: Presolved) -> None:
    best = brute_force(graph)
    if reduced.infeasible:
        assert best == -inf
        return
    best_reduced = -inf
    for x in itertools.product(*(range(k) for k in reduced.model.cards)):
        labels = np.array(x, np.int32)
        score = reduced.model.score(labels)
        best_reduced = max(best_reduced, score)
        if score > -inf:
            assert close(graph.score(reduced.expand(labels)), score)
    assert close(best_reduced, best)


SETS = {r.name or "": r for r in Reduction if r != Reduction.ALL} | {
    "ALL": Reduction.ALL,
    "fix and propagate": Reduction.FIX | Reduction.PROPAGATE,
    "fix and dominate": Reduction.FIX | Reduction.DOMINATE,
    "without fix": Reduction.ALL & ~Reduction.FIX,
}


@pytest.mark.parametrize("chosen", SETS)
@settings(max_examples=40, deadline=None)
@given(seed=seeds, name=st.sampled_from(sorted(SHAPES)))
def test_reductions_keep_the_optimum(chosen: str, seed: int, name: str) -> None:
    graph = random_graph(seed, SHAPES[name])
    check_reduced(graph, presolve(graph.model, SETS[chosen]))


@settings(max_examples=80, deadline=None)
@given(seed=seeds, name=st.sampled_from(sorted(SHAPES)), work=st.floats(1.0, 400.0))
def test_cut_short_anywhere_is_still_valid(seed: int, name: str, work: float) -> None:
    graph = random_graph(seed, SHAPES[name])
    check_reduced(graph, presolve(graph.model, work=work))


def test_goes_on_past_its_limit_where_it_gets_on() -> None:
    rng, n = np.random.default_rng(0), 60000
    edges = rng.integers(0, n, (3 * n, 2)).astype(np.int32)
    edges = edges[edges[:, 0] != edges[:, 1]]
    weights = rng.normal(0, 0.5, len(edges))
    tables = np.array([[[0.0, 0], [0, 1]], [[0.0, 0], [0, -1]]])
    signs = (weights < 0).astype(np.int32)
    unaries = rng.normal(size=(n, 2))
    graph = FactorGraph.from_arrays(
        np.full(n, 2), unaries, edges, table_ids=signs, tables=tables, weights=np.abs(weights)
    )
    reduced = presolve(graph.model)
    assert reduced.statistics.complete
    assert reduced.model.n_variables == 0
    first = 4e6 + 8 * (2 * n + 4 * len(edges))  # less than the limit that it begins with, which counts tables, too
    assert reduced.statistics.work > first
    cut = presolve(graph.model, work=first)
    assert not cut.statistics.complete
    assert cut.model.n_variables > 0
    best = graph.score(reduced.expand(np.zeros(0, np.int32)))
    assert best == pytest.approx(reduced.model.constant, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_random_sets_of_reductions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(seed, Shape(forbidden=0.1, integers=bool(seed % 2)))
    check_reduced(graph, presolve(graph.model, Reduction(int(rng.integers(0, 512)))))


@settings(max_examples=60, deadline=None)
@given(seed=seeds, substitute_only=st.booleans())
def test_functions_of_other_variables_are_substituted(seed: int, substitute_only: bool) -> None:
    rng = np.random.default_rng(seed)
    n, card = int(rng.integers(3, 7)), int(rng.integers(2, 4))
    cards = rng.integers(2, card + 1, n)
    graph = FactorGraph(cards)
    for i in range(n):
        graph.add_factor([i], np.where(rng.random(cards[i]) < 0.1, -inf, rng.normal(size=cards[i])))
    for _ in range(2 * n):
        scope = rng.permutation(n)[: rng.integers(2, 4)]
        graph.add_factor(scope.tolist(), rng.normal(size=cards[scope]), weight=float(rng.choice([0.5, 1.0])))
    for _ in range(int(rng.integers(1, 4))):
        x, y = rng.permutation(n)[:2].tolist()
        if cards[x] == cards[y] and rng.random() < 0.2:
            graph.add_factor([x, y], Potts(0.5, -inf))  # a copy, by an implicit table
            continue
        image = rng.permutation(max(cards[x], cards[y]))[: cards[x]] % cards[y]
        table = np.full((cards[x], cards[y]), -inf)
        table[np.arange(cards[x]), image] = rng.normal(size=cards[x])
        scope, table = ([x, y], table) if rng.random() < 0.5 else ([y, x], table.T)
        graph.add_factor(scope, table)
    reduced = presolve(graph.model, Reduction.SUBSTITUTE if substitute_only else Reduction.ALL)
    check_reduced(graph, reduced)


def test_a_permutation_halves_the_variables() -> None:
    rng = np.random.default_rng(0)
    n, card = 8, 30
    graph = FactorGraph([card] * 2 * n)
    for i, j in itertools.combinations(range(2 * n), 2):
        if j == i + n:
            table = np.full((card, card), -inf)
            table[np.arange(card), rng.permutation(card)] = 0.0
            graph.add_factor([i, j], table)
        elif (i + j) % 3:
            graph.add_factor([i, j], rng.normal(size=(card, card)))
    reduced = presolve(graph.model, Reduction.SUBSTITUTE | Reduction.MERGE)
    assert reduced.statistics.substituted == n
    assert reduced.statistics.variables == n
    labels = rng.integers(0, card, n).astype(np.int32)
    assert graph.score(reduced.expand(labels)) == pytest.approx(reduced.model.score(labels))


def test_a_tree_is_solved_by_leaves() -> None:
    rng = np.random.default_rng(0)
    graph = FactorGraph([3] * 200)
    for i in range(1, 200):
        graph.add_factor([int(rng.integers(0, i)), i], rng.normal(size=(3, 3)))
    reduced = presolve(graph.model, Reduction.LEAVES)
    assert reduced.statistics.variables == 0
    assert reduced.statistics.leaves == 200
    labels = reduced.expand(np.zeros(0, np.int32))
    assert graph.score(labels) == pytest.approx(reduced.model.score(np.zeros(0, np.int32)))


def test_a_cycle_is_solved_by_chains() -> None:
    rng = np.random.default_rng(1)
    graph = FactorGraph([2] * 50)
    for i in range(50):
        graph.add_factor([i, (i + 1) % 50], rng.normal(size=(2, 2)))
    assert presolve(graph.model, Reduction.LEAVES | Reduction.CHAINS | Reduction.MERGE).statistics.variables == 0


def test_shared_and_implicit_tables_stay_shared() -> None:
    rng = np.random.default_rng(2)
    graph = FactorGraph([40] * 30)
    table = graph.add_table(rng.normal(size=(40, 40)) * 5)
    for i in range(30):
        graph.add_factor([i], np.where(np.arange(40) == 7, -inf, rng.normal(size=40)))
        for j in range(i):
            graph.add_factor([i, j], table if (i + j) % 2 else Potts(1.0, 0.0), weight=1.0 + i)
    graph.add_factor([0, 1], np.zeros((40, 40)))
    reduced = presolve(graph.model)
    assert reduced.statistics.factors >= 435 - 60
    assert reduced.model.entries <= 2 * 1600


def test_an_untouched_model_is_not_copied() -> None:
    rng = np.random.default_rng(3)
    graph = FactorGraph([20] * 4)
    for i, j in itertools.combinations(range(4), 2):
        graph.add_factor([i, j], rng.normal(size=(20, 20)) * 10)
    reduced = presolve(graph.model, Reduction.FIX | Reduction.PROPAGATE | Reduction.MERGE | Reduction.SPLIT)
    assert reduced.statistics.variables == 4
    assert "nothing to remove" in reduced.log_line()
    labels = rng.integers(0, 20, 4).astype(np.int32)
    np.testing.assert_array_equal(reduced.expand(labels), labels)


def test_infeasible_models_are_reported() -> None:
    graph = FactorGraph([2, 2, 2])
    different = [[-inf, 0.0], [0.0, -inf]]
    graph.add_factor([0], [-inf, 0.0])
    for pair in ([0, 1], [1, 2], [0, 2]):
        graph.add_factor(pair, different)
    reduced = presolve(graph.model)
    assert reduced.infeasible
    assert "infeasible" in reduced.log_line()


def test_restrict_gives_a_start() -> None:
    graph = FactorGraph([3, 3, 2, 2])
    graph.add_factor([0, 1], [[5.0, -inf, 0.0], [0.0, -inf, 1.0], [0.0, -inf, 5.0]])
    graph.add_factor([1, 2], np.arange(6.0).reshape(3, 2) ** 2)
    graph.add_factor([2, 3], [[0.0, 1.0], [1.0, 0.0]])
    reduced = presolve(graph.model, Reduction.PROPAGATE)
    start = reduced.restrict([2, 1, 0, 1])
    assert start.tolist()[0] == 2
    assert reduced.model.score(start) > -inf
