"""Bounds from triples of variables, against enumeration in exact arithmetic and the linear program they stand for."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import inf
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Potts, Solver, SolverError, solve
from tests.lp import local_polytope_optimum

Terms = list[tuple[tuple[int, ...], np.ndarray]]


class Factor(NamedTuple):
    variables: tuple[int, ...]
    table: np.ndarray


def draw(seed: int, n: int, kind: str) -> tuple[FactorGraph, Terms]:
    """A model with many triples: factors in both directions, twice over the same variables, of scores of any size."""
    rng = np.random.default_rng(seed)
    cards, terms = rng.integers(1, 4, n).tolist(), []
    scopes: list[tuple[int, ...]] = [(i,) for i in range(n)]
    scopes += [pair for pair in combinations(range(n), 2) if rng.random() < 0.8]
    scopes += [scopes[k] for k in rng.integers(0, len(scopes), 2)]
    for scope in scopes:
        variables = scope if rng.random() < 0.5 else scope[::-1]
        shape = tuple(cards[v] for v in variables)
        table = rng.integers(-5, 6, shape).astype(float)
        if kind != "whole":
            table = rng.normal(size=shape) * float(rng.choice([1e-3, 1.0, 1e6]))
        if kind == "hard":
            table = np.where(rng.random(shape) < 0.25, -inf, table)
        terms.append((variables, table))
    graph = FactorGraph(cards)
    for variables, table in terms:
        graph.add_factor(list(variables), table)
    return graph, terms


def best_of(graph: FactorGraph, terms: Terms) -> Any:
    scores = []
    for x in product(*map(range, graph.cards)):
        entries = [float(table[tuple(x[v] for v in variables)]) for variables, table in terms]
        scores.append(-inf if -inf in entries else sum(map(Fraction, entries), Fraction(0)))
    return max(scores)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from(["whole", "real", "hard"]), st.integers(1, 12))
def test_a_bound_holds_at_any_moment(seed: int, n: int, kind: str, iterations: int) -> None:
    graph, terms = draw(seed, n, kind)
    best = best_of(graph, terms)
    result = solve(graph, method="triples", max_iterations=iterations, gap=0)
    assert best == -inf or (result.bound is not None and Fraction(result.bound) >= best)
    assert all(p.bound is None or best == -inf or Fraction(p.bound) >= best for p in result.trace)
    if result.score is not None:
        assert best > -inf
        assert result.score <= float(best) + 1e-9 * max(1, abs(best))
    if result.status == "infeasible":
        assert best == -inf
    if result.status == "optimal":
        assert result.score == pytest.approx(float(best), rel=1e-12, abs=1e-12)


def relaxed(graph: FactorGraph, terms: Terms) -> float:
    """The linear program: every three variables have a distribution that agrees with those of their pairs."""
    pairs = {pair: np.zeros([graph.cards[v] for v in pair]) for pair in combinations(range(graph.n_variables), 2)}
    unary = [np.zeros(k) for k in graph.cards]
    for variables, table in terms:
        if len(variables) == 1:
            unary[variables[0]] += table
        else:
            ascends = variables[0] < variables[1]
            pairs[tuple(sorted(variables))] += table if ascends else table.T  # type: ignore[index]
    # A variable for every pair of variables, whose labels are their states; triples make these agree.
    cards = list(graph.cards)
    names = {pair: len(cards) + k for k, pair in enumerate(pairs)}
    cards += [table.size for table in pairs.values()]
    unary += [table.ravel() for table in pairs.values()]
    factors = []
    for (i, j), table in pairs.items():
        for v, axis in ((i, 0), (j, 1)):
            ties = np.full((graph.cards[v], table.size), -inf)
            for x in np.ndindex(*table.shape):
                ties[x[axis], np.ravel_multi_index(x, table.shape)] = 0.0
            factors.append(Factor((v, names[i, j]), ties))
    for i, j, k in combinations(range(graph.n_variables), 3):
        joint = [graph.cards[v] for v in (i, j, k)]
        cards.append(int(np.prod(joint)))
        unary.append(np.zeros(cards[-1]))
        for axes in ((0, 1), (1, 2), (0, 2)):
            pair = tuple((i, j, k)[a] for a in axes)
            ties = np.full((pairs[pair].size, cards[-1]), -inf)
            for x in np.ndindex(*joint):
                ties[np.ravel_multi_index([x[a] for a in axes], pairs[pair].shape), np.ravel_multi_index(x, joint)] = (
                    0.0
                )
            factors.append(Factor((names[pair], len(cards) - 1), ties))
    return local_polytope_optimum(cards, unary, factors)


@pytest.mark.parametrize("seed", range(4))
def test_it_comes_near_the_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, terms = FactorGraph([3] * 6), []
    for pair in combinations(range(6), 2):
        terms.append((pair, rng.normal(size=(3, 3))))
        graph.add_factor(list(pair), terms[-1][1])
    least, result = relaxed(graph, terms), solve(graph, method="triples", max_iterations=300, gap=0)
    local = solve(graph, method="gdmm", max_iterations=2000, gap=0).bound
    assert least - 1e-9 <= result.bound <= least + 0.05 * (local - least)


def crowd(seed: int, n: int, k: int) -> FactorGraph:
    rng = np.random.default_rng(seed)
    graph = FactorGraph([k] * n)
    for pair in combinations(range(n), 2):
        graph.add_factor(list(pair), rng.normal(size=(k, k)))
    return graph


def test_it_sees_what_local_relaxations_do_not() -> None:
    graph = crowd(0, 20, 4)
    tight, local = solve(graph, "triples", max_iterations=40), solve(graph, "trws", max_iterations=400)
    assert tight.bound - tight.score < 0.5 * (local.bound - tight.score)
    assert tight.statistics["triples"] > 100


def test_slices_change_nothing() -> None:
    whole = solve(crowd(1, 12, 3), "triples", max_iterations=15, gap=0)
    solver = Solver(crowd(1, 12, 3), "triples", gap=0)
    for _ in range(15):
        solver.run(iterations=1)
    assert (solver.result().bound, solver.result().score) == (whole.bound, whole.score)


@pytest.mark.parametrize("k", [-901, 1, 300])
def test_the_unit_of_the_scores_changes_nothing(k: int) -> None:
    tables = [np.random.default_rng(3).normal(size=(3, 3)) for _ in range(10)]
    found = []
    for unit in (1.0, 2.0**k):
        graph = FactorGraph([3] * 5)
        for pair, table in zip(combinations(range(5), 2), tables, strict=True):
            graph.add_factor(list(pair), unit * table)
        result = solve(graph, "triples", max_iterations=10, gap=0)
        found.append((result.bound / unit, result.score / unit))
    assert found[0] == found[1]


def test_models_it_says_little_about() -> None:
    """No triple at all, rules instead of tables, factors of three variables, variables of one label."""
    graph = FactorGraph([2, 1, 3, 2])
    graph.add_factor([0, 2], Potts(1.0, -1.0))
    graph.add_factor([1, 3], [[0.5, 0.25]])
    assert solve(graph, "triples").status == "optimal"
    graph.add_factor([0, 2, 3], np.arange(12.0).reshape(2, 3, 2))
    result = solve(graph, "triples", max_iterations=30)
    assert result.bound >= solve(graph).score
    wide = FactorGraph([2, 2, 2])
    wide.add_factor([0, 1, 2], np.arange(8.0).reshape(2, 2, 2))
    for graph in (FactorGraph([]), FactorGraph([3]), wide):
        assert solve(graph, "triples", max_iterations=3).status == "optimal"


def test_what_is_too_large_is_refused() -> None:
    n = 400_000
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    graph = FactorGraph.from_arrays(np.full(n, 2), edges=edges, tables=Potts(1.0, 0.0))
    with pytest.raises(SolverError, match="too large for triples: more than 131072 factors"):
        solve(graph, "triples")
