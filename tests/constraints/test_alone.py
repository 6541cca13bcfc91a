"""Constraints that stand alone are answered by their oracles: right, with a bound, at any size."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import Automaton, FactorGraph, Solver, k_best, solve
from fginfer.lower import lower_for_solving
from fginfer.rules.coarse import coarse
from fginfer.rules.question import Question
from tests.constraints.definitions import constraints

NEAR = Fraction(1, 10**9)
real = st.floats(-5, 5).map(lambda v: v if abs(v) > 1e-6 else 0.0)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_one_constraint_and_scores_of_labels(data: Any, cards: list[int]) -> None:
    graph = FactorGraph([*cards, 2, 2])  # two more variables with a table of their own
    unary = [data.draw(st.lists(st.one_of(real, st.just(-inf)), min_size=k, max_size=k)) for k in cards]
    for v, scores in enumerate(unary):
        graph.set_unary(v, scores)
    graph.add_factor([len(cards), len(cards) + 1], [[0.0, 2.0], [1.0, 0.0]])
    said = data.draw(constraints(cards))
    said.add(graph)

    def exact(x: tuple[int, ...]) -> Any:
        terms = [said.score(x), *(unary[v][a] for v, a in enumerate(x))]
        return -inf if -inf in terms else sum(map(Fraction, terms), Fraction(2))

    best = max(exact(x) for x in product(*map(range, cards)))
    result = solve(graph)
    if best == -inf:
        assert result.status == "infeasible", said.text
        return
    assert result.status == "optimal", said.text
    assert abs(Fraction(result.score) - best) <= NEAR, said.text
    assert result.bound >= best - NEAR
    assert result.bound >= result.score


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(1, 9))
def test_weights_of_many_digits(data: Any, n: int) -> None:
    """Sums that do not fit into 64 bits are asked in coarser units, with a valid bound."""
    digits = st.floats(0.01, 1.0)
    weights = [data.draw(digits) * 10.0 ** data.draw(st.integers(-4, 4)) for _ in range(n)]
    gains = data.draw(st.lists(real, min_size=n, max_size=n))
    low = data.draw(st.one_of(st.none(), st.just(sum(weights) * 0.3)))
    high = data.draw(st.sampled_from([sum(weights) * 0.6, sum(weights[: n // 2]), weights[0]]))
    if low is not None and low > high:
        low = None
    penalty, per_unit = data.draw(st.sampled_from([(None, False), (0.7, False), (0.25, True)]))
    graph = FactorGraph([2] * n)
    graph.set_unaries(np.stack([np.zeros(n), gains], 1))
    graph.add_linear([(v, 1) for v in range(n)], weights, low, high, penalty=penalty, per_unit=per_unit)
    rule = graph.rules[0]
    scores = {x: rule.score(x) for x in product((0, 1), repeat=len(rule.variables))}
    both = coarse(rule)
    if both is None:  # no total is free of a price
        assert max(scores.values()) < 0
        return
    for x, score in scores.items():
        assert both[1].score(x) >= score - 1e-12 * abs(score)
        assert both[0].score(x) == -inf or score > -inf
    values = {x: s + sum(gains[v] for v, a in zip(rule.variables, x, strict=True) if a) for x, s in scores.items()}
    flat = np.concatenate([np.array([0.0, gains[v]]) for v in rule.variables] or [np.zeros(0)])
    if not rule.variables:
        return
    question = Question(rule)
    found, best = question.best(flat), max(values.values())
    if best == -inf:
        assert found.labels is None
    elif found.labels is None:
        assert found.above == inf
    else:
        value = values[tuple(found.labels.tolist())]
        assert -inf < value <= best + 1e-12
        assert value + found.above >= best - 1e-12


def test_whole_numbers_are_proven_best() -> None:
    """Scores that are multiples of a step leave no room for rounding, however many there are."""
    n = 5000
    rng = np.random.default_rng(1)
    gain = rng.integers(-8, 9, n) / 4
    graph = FactorGraph([2] * n)
    graph.set_unaries(np.stack([np.zeros(n), gain], 1))
    graph.add_at_most(700, [(v, 1) for v in range(n)])
    result = solve(graph, "trws")
    assert (result.status, result.score) == ("optimal", np.sort(np.maximum(gain, 0))[-700:].sum())
    assert result.bound <= result.score + 1e-11


N_LARGE = 100_000


def budget(weights: Any, limit: float, **options: Any) -> tuple[FactorGraph, Any]:
    gain = np.random.default_rng(2).random(N_LARGE)
    graph = FactorGraph([2] * N_LARGE)
    graph.set_unaries(np.stack([np.zeros(N_LARGE), gain], 1))
    graph.add_linear([(v, 1) for v in range(N_LARGE)], weights, None, limit, **options)
    return graph, gain


@pytest.mark.parametrize("real_weights", [False, True])
def test_a_budget_of_100000_literals(real_weights: bool) -> None:
    rng = np.random.default_rng(3)
    weights = (rng.random(N_LARGE) * 100 if real_weights else rng.integers(1, 100, N_LARGE)).tolist()
    graph, gain = budget(weights, 1e6)
    result = solve(graph)
    assert result.status in ("optimal", "gap_reached")
    taken = result.labels == 1
    assert sum(map(Fraction, np.array(weights)[taken].tolist())) <= 10**6
    order = np.argsort(-gain / np.array(weights))  # fractional: the bound of the linear program
    filled = np.cumsum(np.array(weights)[order]) <= 1e6
    fraction = gain[order][filled].sum() + gain[order][filled.sum()]
    assert fraction - 1.0 <= result.score <= result.bound <= fraction + 1e-3


def test_a_cardinality_of_1000_variables_with_a_score_for_each_count() -> None:
    n = 1000
    rng = np.random.default_rng(4)
    gain, by_count = rng.normal(size=n), rng.normal(size=n + 1) * 3
    graph = FactorGraph([2] * n)
    graph.set_unaries(np.stack([np.zeros(n), gain], 1))
    graph.add_cardinality([(v, 1) for v in range(n)], by_count.tolist())
    result = solve(graph, "gdmm")
    assert result.status in ("optimal", "gap_reached")
    sums = np.concatenate(([0.0], np.cumsum(np.sort(gain)[::-1]))) + by_count
    assert result.score == pytest.approx(sums.max(), abs=1e-9)


def test_an_assignment_of_200_and_sequences_of_10000() -> None:
    from scipy.optimize import linear_sum_assignment

    scores = np.random.default_rng(5).random((200, 200))
    graph = FactorGraph([200] * 200)
    graph.set_unaries(scores)
    graph.add_all_different(range(200))
    result = solve(graph)
    rows, columns = linear_sum_assignment(-scores)
    assert result.status in ("optimal", "gap_reached")
    assert result.score == pytest.approx(scores[rows, columns].sum(), abs=1e-9)
    n = 10_000
    gain = np.random.default_rng(6).random((n, 2))
    graph = FactorGraph([2] * n)
    graph.set_unaries(gain)
    graph.add_regular(range(n), Automaton([(0, 0, 0), (0, 1, 1), (1, 0, 0)], final=[0, 1]))
    last = np.array([gain[0, 0], gain[0, 1]])
    for row in gain[1:]:
        last = np.array([last.max() + row[0], last[0] + row[1]])
    assert solve(graph).score == pytest.approx(last.max(), abs=1e-7)


def test_what_is_settled_follows_changes_and_starts() -> None:
    graph = FactorGraph([2] * 6)
    graph.set_unaries(np.tile([0.0, 1.0], (6, 1)))
    graph.add_at_most(2, [(v, 1) for v in range(4)])
    graph.add_factor([4, 5], [[0.0, 3.0], [3.0, 0.0]])
    with Solver(graph, warm_start=[1, 1, 1, 0, 0, 1]) as solver:
        solver.run()
        assert solver.result().score == 6.0
        graph.set_unary(3, [0.0, 7.0])
        solver.update()
        solver.offer([0] * 6)
        solver.run()
        result = solver.result()
        assert (result.score, result.status, int(result.labels[3])) == (12.0, "optimal", 1)
    assert solve(graph, cutoff=12.0).labels is None
    assert solve(graph, cutoff=11.5).score == 12.0
    assert solve(graph, evidence={3: 0}).score == 6.0


def test_constraints_that_share_variables_do_not_stand_alone() -> None:
    graph = FactorGraph([2] * 4)
    graph.add_at_least(1, [(0, 1), (1, 1)])
    graph.add_at_most(1, [(1, 1), (2, 1)])
    assert lower_for_solving(graph).graph.n_variables >= 4
    assert lower_for_solving(graph).complete([1, 0, 1, 1])[:4].tolist() == [1, 0, 1, 1]


ZERO: dict[str, Any] = {
    "at most": lambda g: g.add_at_most(1, [(0, 1), (1, 1)]),
    "linear": lambda g: g.add_linear([(0, 1), (1, 1)], [0.3, 0.2], 0, 0.4, penalty=0.7),
    "a unit": lambda g: g.add_linear([(1, 1)], [1.5], low=0.1, penalty=0.5, per_unit=True, when=None),
    "budget": lambda g: g.add_budget([(0, 1), (1, 1)], [0.3, 0.7], 1),
    "clause": lambda g: g.add_clause([(0, 0), (1, 0)]),
    "sparse": lambda g: g.add_sparse([1, 0], [], [], 0.0),
    "listed": lambda g: g.add_sparse([0, 1], [[0, 0], [1, 1]], [0.0, -0.3], -0.7),
    "regular": lambda g: g.add_regular([0, 1], Automaton([(0, 0, 0), (0, 1, 0, -0.7), (0, 2, 0, -0.1)], {0: 0.0})),
}


@pytest.mark.parametrize("costs", [None, 0.1, 1.0])
@pytest.mark.parametrize("name", ZERO)
def test_a_best_total_of_0_is_proven(name: str, costs: float | None) -> None:
    """Rounding is judged by the unit of the model, which has no other scale where the best score is 0."""
    graph = FactorGraph([2, 3])
    if costs is not None:
        graph.set_unary(0, [0.0, -costs])
        graph.set_unary(1, [0.0, -0.7 * costs, -0.3 * costs])
    ZERO[name](graph)
    best = max(graph.score(x) for x in product(range(2), range(3)))
    for method in ("auto", "trws"):
        result = solve(graph, method)
        assert (result.status, result.score) == ("optimal", best)
        assert result.gap is not None
        assert result.gap < 1e-12
    assert len(list(k_best(graph, 6))) == sum(graph.score(x) > -inf for x in product(range(2), range(3)))


def test_scores_that_cancel_in_a_model_without_a_choice() -> None:
    graph = FactorGraph([1, 2])
    graph.set_unary(0, [-2.0])
    graph.add_sparse([0], [[0]], [2.0], -inf)
    result = solve(graph)
    assert (result.status, result.score, result.bound) == ("optimal", 0, 0)
    assert [r.labels.tolist() for r in k_best(graph, 5)] == [[0, 0], [0, 1]]
