"""All methods on random mixtures of tables and constraints, against enumeration in exact rationals."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import Automaton, FactorGraph, Result, Solver, available_methods, k_best, solve, solve_many
from tests.constraints.definitions import constraints

NEAR = Fraction(1, 10**9)
values = st.sampled_from([0.0, 1.0, -1.5, 0.25, 2.0, 3.5])


@st.composite
def mixtures(draw: Any) -> Any:
    """A graph with tables and constraints, and the exact score of each labeling."""
    cards = draw(st.lists(st.integers(1, 3), min_size=2, max_size=5))
    graph, terms = FactorGraph(cards), []
    for v, card in enumerate(cards):
        unary = draw(st.lists(values, min_size=card, max_size=card))
        graph.add_factor([v], unary)
        terms.append(lambda x, v=v, unary=unary: Fraction(unary[x[v]]))
    for _ in range(draw(st.integers(0, 3))):
        i, j = draw(st.permutations(range(len(cards))))[:2]
        size = cards[i] * cards[j]
        table = np.array(draw(st.lists(values, min_size=size, max_size=size))).reshape(cards[i], cards[j])
        graph.add_factor([i, j], table)
        terms.append(lambda x, i=i, j=j, table=table: Fraction(float(table[x[i], x[j]])))
    texts = []
    for _ in range(draw(st.integers(1, 3))):
        said = draw(constraints(cards))
        said.add(graph)
        terms.append(said.score)
        texts.append(said.text)
    truth = {x: sum((term(x) for term in terms), Fraction(0)) for x in product(*map(range, cards))}
    return graph, truth, texts


def check(result: Result, truth: dict[Any, Any], text: Any) -> None:
    best = max(truth.values())
    if result.labels is not None:
        assert abs(Fraction(result.score) - truth[tuple(result.labels.tolist())]) <= NEAR, text
    else:
        assert result.status != "optimal", text
    if result.bound is not None:
        assert result.bound >= best - (0 if best == -inf else NEAR), text
    if result.status == "optimal":
        assert abs(Fraction(result.score) - best) <= NEAR, text
    if result.status == "infeasible":
        assert best == -inf, text
    if result.marginals is not None:
        assert len(result.marginals) == len(next(iter(truth))), text
    for point in result.trace:
        assert point.score is None or point.score <= best + NEAR, text
        assert point.bound is None or point.bound >= best - (0 if best == -inf else NEAR), text


def check_the_end(result: Result, best: Any, text: Any) -> None:
    """The answer is the best, with a proof. Bounds have room for what rounding may take from prices: where scores
    nearly cancel, that is more than a proof allows, and the status says so."""
    if best == -inf:
        assert result.status == "infeasible", text
    elif result.status != "optimal":
        assert result.status in ("gap_reached", "converged"), text
        assert abs(best) < 1, text
        assert 0 < result.bound - result.score <= 1e-12, text
        assert abs(Fraction(result.score) - best) <= NEAR, text


@settings(max_examples=25, deadline=None)
@given(mixtures())
@pytest.mark.parametrize("method", sorted(set(available_methods()) - {"assignment"}))  # which takes pairs alone
def test_no_method_says_anything_false(method: str, case: Any) -> None:
    graph, truth, text = case
    check(solve(graph, method, max_iterations=60, time_limit=5.0), truth, (method, text))


@settings(max_examples=150, deadline=None)
@given(mixtures())
def test_auto_proves_what_is_best(case: Any) -> None:
    graph, truth, text = case
    result = solve(graph)
    check(result, truth, text)
    check_the_end(result, max(truth.values()), text)


@settings(max_examples=60, deadline=None)
@given(mixtures(), st.integers(0, 2**32 - 1))
def test_evidence_starts_and_cutoffs(case: Any, seed: int) -> None:
    graph, truth, text = case
    rng = np.random.default_rng(seed)
    x = [int(rng.integers(k)) for k in graph.cards]
    fixed = {v: x[v] for v in range(len(x)) if rng.random() < 0.4}
    agreeing = {y: s for y, s in truth.items() if all(y[v] == a for v, a in fixed.items())}
    result = solve(graph, evidence=fixed, warm_start=x)
    check(result, agreeing, text)
    check_the_end(result, max(agreeing.values()), text)
    middle = float(rng.integers(-6, 12)) + 0.375  # no sum of the scores
    best = max(truth.values())
    above = solve(graph, cutoff=middle)
    assert (above.labels is None) == (best <= middle), text
    again = solve(graph, warm_start=solve(graph))
    check(again, truth, text)


@settings(max_examples=20, deadline=None)
@given(mixtures())
def test_the_best_labelings_in_order(case: Any) -> None:
    graph, truth, text = case
    order = sorted((s for s in truth.values() if s > -inf), reverse=True)[:4]
    found = list(k_best(graph, 4))
    assert [round(r.score, 9) for r in found] == [round(float(s), 9) for s in order], text
    assert len({tuple(r.labels.tolist()) for r in found}) == len(found)


@pytest.mark.parametrize("scale", [1.0, 0.25, 2.0**-30, 2.0**40])
def test_an_automaton_with_scores_that_cancel_is_solved(scale: float) -> None:
    """Scores in quarters add up without rounding, so that the best total, 0, needs no allowance."""
    graph = FactorGraph([2] * 40)
    graph.add_factor([], -40 * scale)
    graph.add_regular(range(40), Automaton([(0, 1, 0, scale)], {0: 0.0}))
    result = solve(graph)
    assert (result.status, result.score, result.bound) == ("optimal", 0.0, 0.0)


def queens(n: int) -> FactorGraph:
    graph = FactorGraph([n] * n)
    graph.add_all_different(range(n))
    for start in range(-n + 1, n):
        for sign in (1, -1):
            line = [(i, sign * i + start + (0 if sign > 0 else n - 1)) for i in range(n)]
            line = [(i, k) for i, k in line if 0 <= k < n]
            if len(line) > 1:
                graph.add_at_most(1, line)
    return graph


def test_queens() -> None:
    result = solve(queens(8))
    x = result.labels.tolist()
    assert len(set(x)) == len({a + i for i, a in enumerate(x)}) == len({a - i for i, a in enumerate(x)}) == 8


def test_more_pigeons_than_holes_are_refuted() -> None:
    graph = FactorGraph([9] * 10)
    graph.add_all_different(range(10))
    assert solve(graph).status == "infeasible"


def test_a_solver_takes_new_numbers_and_travels() -> None:
    graph = FactorGraph([2] * 9)
    for v in range(9):
        graph.add_factor([v], [0.0, v + 1.0])
    rule = graph.add_at_most(2, [(v, 1) for v in range(9)])
    with Solver(graph) as solver:
        solver.run()
        assert solver.result().score == 17.0
        graph.set_unary(0, [0.0, 50.0])
        solver.update()
        solver.run()
        result = solver.result()
        assert (result.score, result.status) == (59.0, "optimal")
        assert len(result.labels) == 9
        other = pickle.loads(pickle.dumps(solver))
        other.run()
        assert other.result().score == 59.0
        graph.set_weight(rule, 0)
        solver.update()
        solver.run()
        assert solver.result().score == 94.0
    graphs = [graph.copy(), queens(6)]
    assert [r.score for r in solve_many(graphs, workers=2)] == [94.0, 0.0]


def test_a_solver_lowers_again_where_labels_come_back() -> None:
    graph = FactorGraph([3] * 3)
    graph.add_all_different(range(3))
    graph.set_unary(0, [1.0, -inf, -inf])
    with Solver(graph) as solver:
        solver.run()
        assert solver.result().labels[0] == 0
        graph.set_unary(0, [1.0, 0.0, 5.0])
        solver.update()
        solver.run()
        assert (solver.result().score, int(solver.result().labels[0])) == (5.0, 2)


def test_large_constraints_solve() -> None:
    n = 1000
    rng = np.random.default_rng(0)
    gain = rng.normal(size=n).round(3)
    graph = FactorGraph([2] * n)
    graph.set_unaries(np.stack([np.zeros(n), gain], 1))
    graph.add_at_most(40, [(v, 1) for v in range(n)])
    result = solve(graph)
    assert result.status in ("optimal", "gap_reached")
    assert result.score == pytest.approx(np.sort(gain)[-40:].sum())
    n = 100_000
    graph = FactorGraph([2] * n)
    graph.set_unaries(np.tile([0.0, -1.0], (n, 1)))
    graph.set_unary(777, [0.0, -0.5])
    graph.add_clause([(v, 1) for v in range(n)])
    result = solve(graph)
    assert result.status in ("optimal", "gap_reached")
    assert (result.score, int(result.labels[777])) == (-0.5, 1)
