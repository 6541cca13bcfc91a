"""Constraints that stay apart from tables: with prices and mending, no method says anything false."""

from __future__ import annotations

import pickle
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fginfer.lower
from fginfer import FactorGraph, Solver, available_methods, solve
from fginfer.core.rules import MenderHandle
from fginfer.lower import lower_for_solving
from fginfer.rules import Steps
from tests.constraints.definitions import constraints
from tests.constraints.test_solving import check, mixtures

METHODS = ["auto", "trws", "gdmm", "icm", "bnb", "search"]


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """No constraint becomes tables."""
    monkeypatch.setattr(fginfer.lower, "MOST_ENTRIES", -1)


@settings(max_examples=25, deadline=None)
@given(mixtures())
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.usefixtures("apart")
def test_no_method_says_anything_false(method: str, case: Any) -> None:
    graph, truth, text = case
    result = solve(graph, method, max_iterations=15, time_limit=5.0)
    check(result, truth, (method, text))
    if result.labels is not None:
        assert truth[tuple(result.labels.tolist())] > -inf, text


@settings(max_examples=40, deadline=None)
@given(mixtures(), st.integers(0, 2**32 - 1))
@pytest.mark.usefixtures("apart")
def test_starts_cutoffs_and_evidence(case: Any, seed: int) -> None:
    graph, truth, text = case
    rng = np.random.default_rng(seed)
    x = [int(rng.integers(k)) for k in graph.cards]
    fixed = {v: x[v] for v in range(len(x)) if rng.random() < 0.4}
    agreeing = {y: s for y, s in truth.items() if all(y[v] == a for v, a in fixed.items())}
    result = solve(graph, evidence=fixed, warm_start=x, max_iterations=30)
    check(result, agreeing, text)
    if agreeing[tuple(x)] > -inf:
        assert result.score >= float(agreeing[tuple(x)]) - 1e-9, text
    middle = float(rng.integers(-6, 12)) + 0.375  # no sum of the scores
    above = solve(graph, cutoff=middle, max_iterations=30)
    assert above.labels is None or max(truth.values()) > middle, text
    assert above.status != "infeasible" or max(truth.values()) <= middle, text


@settings(max_examples=200, deadline=None)
@given(st.data(), st.lists(st.integers(1, 3), min_size=1, max_size=5))
def test_excess_is_zero_where_a_constraint_is_obeyed(data: Any, cards: list[int]) -> None:
    graph = FactorGraph(cards)
    data.draw(constraints(cards)).add(graph)
    rule = graph.rules[0]
    excess = rule.excess()
    for _ in range(5 if excess is not None else 0):
        x = [data.draw(st.integers(0, cards[v] - 1)) for v in rule.variables]
        assert excess is not None
        assert (excess.score(x) == 0) == (rule.score(x) > -inf)
        assert excess.score(x) <= 0


def test_excess_grows_with_the_distance() -> None:
    steps = Steps.listed([-inf, -inf, 1.0, -inf, -inf, -inf, -inf, 2.0, -inf, -inf])
    assert [steps.excess(0.5)(t) for t in range(10)] == [-1.0, -0.5, 0, -0.5, -1, -1, -0.5, 0, -0.5, -1]


def segmentation(side: int, seed: int) -> tuple[FactorGraph, int]:
    rng = np.random.default_rng(seed)
    n = side * side
    graph, cells = FactorGraph([2] * n), np.arange(n).reshape(side, side)
    graph.set_unaries(rng.normal(size=(n, 2)))
    for pair in (*zip(cells[:, :-1].ravel(), cells[:, 1:].ravel(), strict=True),
                 *zip(cells[:-1].ravel(), cells[1:].ravel(), strict=True)):  # fmt: skip
        graph.add_factor([int(v) for v in pair], [[0.5, 0.0], [0.0, 0.5]])
    return graph, n


@pytest.mark.parametrize("method", ["auto", "trws", "gdmm"])
def test_a_segmentation_with_a_given_number_of_ones(method: str) -> None:
    graph, n = segmentation(40, 0)
    free = solve(graph).score
    graph.add_between(n // 5, n // 5, [(v, 1) for v in range(n)])
    assert lower_for_solving(graph).graph.rules == graph.rules
    result = solve(graph, method, max_iterations=60)
    assert int((result.labels == 1).sum()) == n // 5
    assert result.score <= result.bound < free
    assert result.bound - result.score <= 2e-3 * result.score


def test_many_budgets_of_thousands_of_literals() -> None:
    """Against the linear program's bound: five budgets over the same 2000 things."""
    from scipy.optimize import linprog

    n, m = 1000, 5
    rng = np.random.default_rng(1)
    gain, weights = rng.integers(1, 100, n), rng.integers(1, 1000, (m, n))
    limits = weights.sum(axis=1) // 4
    graph = FactorGraph([2] * n)
    graph.set_unaries(np.stack([np.zeros(n), gain], 1))
    for own, limit in zip(weights, limits, strict=True):
        graph.add_budget([(v, 1) for v in range(n)], own.tolist(), int(limit))
    best = -linprog(-gain, A_ub=weights, b_ub=limits, bounds=(0, 1)).fun
    result = solve(graph, max_iterations=80)
    taken = result.labels == 1
    assert bool((weights[:, taken].sum(axis=1) <= limits).all())
    assert result.score == gain[taken].sum()
    assert 0.995 * best <= result.score <= best + 1e-6
    assert result.bound <= best * 1.005


@pytest.mark.parametrize("method", ["auto", "trws"])
def test_a_solver_follows_changes_and_travels(method: str) -> None:
    graph, n = segmentation(30, 2)
    handle = graph.add_at_most(n // 4, [(v, 1) for v in range(n)])
    with Solver(graph, method) as solver:
        solver.run(iterations=30)
        first = solver.result()
        again = pickle.loads(pickle.dumps(solver))
        again.run(iterations=1)
        assert again.result().score >= first.score
        graph.set_unary(0, [0.0, 100.0])
        solver.update()
        solver.run(iterations=30)
        assert solver.result().labels[0] == 1
        assert solver.result().score > first.score
        graph.remove_factor(handle)
        solver.update()
        solver.run()
        assert solver.result().status in ("optimal", "gap_reached")


def test_the_answer_is_the_same_in_slices_and_by_seeds() -> None:
    graph, n = segmentation(25, 3)
    graph.add_between(n // 3, n // 3, [(v, 1) for v in range(n)])
    whole = solve(graph, max_iterations=20)
    with Solver(graph) as solver:
        for _ in range(20):
            solver.run(iterations=1)
        assert solver.result().score == whole.score
        assert solver.result().bound == whole.bound


def test_mending_changes_no_more_than_it_must() -> None:
    graph = FactorGraph([2] * 10)
    graph.set_unaries(np.stack([np.zeros(10), np.arange(10.0)], 1))
    graph.add_at_most(3, [(v, 1) for v in range(10)])
    rule = graph.rules[0]
    excess = rule.excess()
    assert excess is not None
    variables = np.array(rule.variables)
    mender = MenderHandle(graph.table_snapshot(), [rule.native()], [excess.native()], variables)
    found = mender.run(np.ones(10, np.int32), np.zeros(20), 100_000, 0)
    assert found is not None
    assert found.tolist() == [0] * 7 + [1] * 3


def test_rules_that_do_not_fit_are_refused() -> None:
    graph = FactorGraph([2] * 4)
    graph.add_at_most(1, [(v, 1) for v in range(4)])
    rule = graph.rules[0].native()
    with pytest.raises(fginfer.ModelError, match="rule 0 does not fit"):
        MenderHandle(graph.table_snapshot(), [rule], [None], np.array([0, 1, 2, 9]))


@pytest.mark.parametrize("method", sorted(set(available_methods()) - {"assignment"}))
def test_every_method_takes_a_large_constraint_beside_tables(method: str) -> None:
    graph, n = segmentation(12, 4)
    graph.add_cardinality([(v, 1) for v in range(n)], (-0.1 * np.abs(np.arange(n + 1) - n // 3)).tolist())
    graph.add_budget([(v, 1) for v in range(n)], np.random.default_rng(0).random(n).tolist(), n / 8)
    result = solve(graph, method, max_iterations=6, time_limit=20.0)
    assert result.score == graph.score(result.labels)
    assert result.score <= result.bound
