"""Constraints as sources: each equals the table that it stands for, and keeps its promises where no table could be."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fginfer import FactorGraph, ModelError
from fginfer.oracles import Argmax, RuleOracle
from fginfer.rules import Rule, SumRule
from fginfer.rules.steps import Piece, Steps
from tests.constraints.definitions import constraints
from tests.oracles.test_sources import sorted_states

Messages = list[dict[int, float]]
some_cards = st.lists(st.integers(1, 4), min_size=1, max_size=5)
dyadic = st.integers(-12, 12).map(lambda k: k / 4)


@st.composite
def messages(draw: Any, cards: list[int], values: Any) -> Messages:
    """Some labels have one, and now and then a label is forbidden."""
    out: Messages = []
    for card in cards:
        one = draw(st.dictionaries(st.integers(0, card - 1), values, max_size=card))
        if draw(st.integers(0, 5)) == 0:
            one[draw(st.integers(0, card - 1))] = 2.0**600
        out.append(one)
    return out


@st.composite
def said(draw: Any) -> tuple[FactorGraph, Rule]:
    """A constraint that is about some variable."""
    graph = FactorGraph(draw(some_cards))
    draw(constraints(graph.cards.tolist())).add(graph)
    rules = [rule for rule in graph.rules if rule.variables]
    if not rules:
        graph.add_clause([(0, 0)])
        rules = [rule for rule in graph.rules if rule.variables]
    if not rules:
        graph.add_sparse([0], [[0]], 1.0, 0.0)
        rules = [graph.rules[-1]]
    return graph, rules[0]


def expanded(rule: Rule, shape: tuple[int, ...]) -> NDArray[np.float64]:
    return np.array([rule.score(x) for x in product(*map(range, shape))]).reshape(shape)


def forbidden(table: NDArray[np.float64], given_messages: Messages) -> NDArray[np.float64]:
    """The table without the labels that messages forbid."""
    out = table.copy()
    for k, message in enumerate(given_messages):
        for label, value in message.items():
            if value >= 2.0**599:
                out[(slice(None),) * k + (label,)] = -inf
    return out


def small(given_messages: Messages) -> Messages:
    return [{a: v for a, v in message.items() if v < 2.0**599} for message in given_messages]


def is_dyadic(table: NDArray[np.float64]) -> bool:
    finite = table[table > -inf] * 64
    return bool((finite == np.round(finite)).all())


@settings(max_examples=500, deadline=None)
@given(st.data(), said(), st.integers(1, 7), st.booleans())
def test_best_states_are_those_of_the_table(data: Any, case: Any, n: int, exactly: bool) -> None:
    _, rule = case
    oracle = RuleOracle(rule)
    table = expanded(rule, oracle.shape)
    values = dyadic if exactly else st.floats(-5, 5).map(lambda v: v if abs(v) > 1e-6 else 0.0)
    deltas = data.draw(messages(list(oracle.shape), values))
    states = st.tuples(*(st.integers(0, k - 1) for k in oracle.shape))
    excluded = data.draw(st.lists(states, max_size=3))
    expected = sorted_states(forbidden(table, deltas), small(deltas), excluded, n)
    assert oracle.best(n, deltas, excluded=excluded, path="scan") == expected
    found = oracle.best(n, deltas, excluded=excluded)
    if exactly and is_dyadic(table):
        assert found == expected
    for one, other in zip(found, expected, strict=True):
        assert (one.state is None) == (other.state is None)
        assert one.value == pytest.approx(other.value, abs=1e-9)
        if one.state is not None:  # and the value is summed as a scan sums it
            value = float(table[one.state])
            for message, label in zip(deltas, one.state, strict=True):
                value -= message.get(label, 0.0)
            assert one.value == value
            assert one.state not in excluded


@settings(max_examples=400, deadline=None)
@given(st.data(), said())
def test_max_marginals_are_those_of_the_table(data: Any, case: Any) -> None:
    _, rule = case
    oracle = RuleOracle(rule)
    table = expanded(rule, oracle.shape)
    deltas = data.draw(messages(list(oracle.shape), dyadic))
    for k in range(len(oracle.shape)):
        others = [{} if q == k else message for q, message in enumerate(deltas)]
        value = forbidden(table, others)
        for q, message in enumerate(small(others)):
            for label, delta in message.items():
                value[(slice(None),) * q + (label,)] -= delta
        best = np.moveaxis(value, k, 0).reshape(oracle.shape[k], -1).max(axis=1)
        np.testing.assert_allclose(oracle.max_marginals(k, deltas), best, rtol=0, atol=1e-9)


@settings(max_examples=400, deadline=None)
@given(st.data(), said())
def test_propagation_leaves_what_has_support_and_gives_the_reason(data: Any, case: Any) -> None:
    _, rule = case
    oracle = RuleOracle(rule)
    shape = oracle.shape
    allowed = [np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n))) for n in shape]

    def supported(masks: list[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
        left = [np.zeros(n, bool) for n in shape]
        for x in product(*map(np.flatnonzero, masks)):
            if rule.score(x) > -inf:
                for mask, label in zip(left, x, strict=True):
                    mask[label] = True
        return left

    left = oracle.propagate(allowed)
    assert [m.tolist() for m in left] == [m.tolist() for m in supported(allowed)]
    assert [m.tolist() for m in left] == [m.tolist() for m in rule.propagate(allowed)] or not any(map(any, left))
    gone = [(k, a) for k, n in enumerate(shape) for a in range(n) if allowed[k][a] and not left[k][a]]
    for k, label in gone[:2]:
        reason = oracle.reason(allowed, k, label)
        assert k not in reason
        for dropped in (None, *reason):
            masks = [
                np.array(m) if q in reason and q != dropped else np.ones(len(m), bool) for q, m in enumerate(allowed)
            ]
            assert supported(masks)[k][label] == (dropped is not None)
    stays = [(k, a) for k, n in enumerate(shape) for a in range(n) if left[k][a]]
    for k, label in stays[:1]:
        with pytest.raises(ModelError, match="is not removed"):
            oracle.reason(allowed, k, label)


@settings(max_examples=300, deadline=None)
@given(st.data(), said())
def test_a_tally_follows_its_moves(data: Any, case: Any) -> None:
    _, rule = case
    oracle = RuleOracle(rule)
    state = [data.draw(st.integers(0, n - 1)) for n in oracle.shape]
    tally = oracle.tally(state)
    for _ in range(4):
        moved = data.draw(st.dictionaries(st.integers(0, len(state) - 1), st.integers(0, 3), max_size=3))
        moved = {k: label % oracle.shape[k] for k, label in moved.items()}
        after = [moved.get(k, label) for k, label in enumerate(state)]
        assert tally.score == oracle.score(state) == pytest.approx(rule.score(state), abs=1e-12)
        assert tally.after(moved) == oracle.score(after)
        if data.draw(st.booleans()):
            tally.move(moved)
            state = after


# -- sums that are too large for dynamic programming ------------------------------------------------------------------


@st.composite
def large_sums(draw: Any) -> SumRule:
    """Few variables, so that a scan can tell, with adds so far apart that totals are not counted."""
    unit = draw(st.sampled_from([1, 999_983, 10_000_019]))
    adds = []
    for _ in range(draw(st.integers(1, 6))):
        own = draw(st.lists(st.integers(0, 40), min_size=1, max_size=4))
        adds.append(tuple((a - min(own)) * unit + draw(st.integers(0, 3)) * (a > min(own)) for a in own))
    total = sum(max(add) for add in adds) + 20_000_000
    adds.append((0, 20_000_000))
    starts = sorted({0, *draw(st.lists(st.integers(1, total), max_size=4))})
    pieces = [
        Piece(start, draw(st.sampled_from([0.0, -inf, 1.5, -2.0])), draw(st.sampled_from([0.0, 2.0**-20, -(2.0**-21)])))
        for start in starts
    ]
    return SumRule("large", tuple(range(len(adds))), tuple(adds), Steps(tuple(pieces), total))


@settings(max_examples=500, deadline=None)
@given(st.data(), large_sums())
def test_large_sums_are_solved_as_a_scan_does(data: Any, rule: SumRule) -> None:
    oracle = RuleOracle(rule)
    deltas = data.draw(messages(list(oracle.shape), dyadic))
    expected = oracle.best(1, deltas, path="scan")[0]
    found = oracle.best(1, deltas)[0]
    assert found.value == pytest.approx(expected.value, abs=1e-9)
    allowed = [
        np.array([d.get(a, 0.0) < 2.0**599 for a in range(n)]) for d, n in zip(deltas, oracle.shape, strict=True)
    ]
    left = oracle.propagate(allowed)
    for x in product(*map(np.flatnonzero, allowed)):  # bounds keep what has support
        if rule.score(x) > -inf:
            assert all(mask[label] for mask, label in zip(left, x, strict=True))


def test_a_budget_of_a_hundred_thousand_literals() -> None:
    rng = np.random.default_rng(3)
    n = 100_000
    weights, values = rng.integers(1, 10**6, n), rng.integers(1, 10**6, n).astype(float)
    graph = FactorGraph([2] * n)
    limit = int(weights.sum()) // 3
    graph.add_budget([(i, 1) for i in range(n)], weights.tolist(), limit)
    oracle = RuleOracle(graph.rules[0])
    found = oracle.argmax([{1: -v} for v in values])
    assert found.state is not None
    taken = np.array(found.state, bool)
    assert weights[taken].sum() <= limit
    assert found.value == values[taken].sum()
    order = np.argsort(-values / weights, kind="stable")  # the fractional bound
    room = np.cumsum(weights[order])
    k = int(np.searchsorted(room, limit, "right"))
    bound = values[order[:k]].sum() + (limit - room[k - 1]) * values[order[k]] / weights[order[k]]
    assert bound * (1 - 1e-7) <= found.value <= bound
    assert oracle.touched < 10**8
    assert oracle.memory < 10**7


@pytest.mark.parametrize("n", [1000, 20_000])
def test_a_large_cardinality_in_linear_memory(n: int) -> None:
    graph = FactorGraph([2] * n)
    graph.add_cardinality([(i, 1) for i in range(n)], [float(-((c - n // 2) ** 2)) / 8 for c in range(n + 1)])
    oracle = RuleOracle(graph.rules[0])
    rng = np.random.default_rng(n)
    gains = rng.integers(-4000, 4000, n) / 8
    found = oracle.argmax([{1: -float(g)} for g in gains])
    prefix = np.concatenate(([0.0], np.cumsum(np.sort(gains)[::-1])))
    by_count = prefix - (np.arange(n + 1) - n // 2) ** 2 / 8
    assert found.value == by_count.max()
    assert found.state is not None
    assert sum(found.state) == int(by_count.argmax())
    assert oracle.memory < 200 * n
    assert oracle.touched < 100 * n


def test_ties_of_many_states_go_to_the_lowest() -> None:
    graph = FactorGraph([3] * 200)
    graph.add_between(50, 60, [(i, i % 3) for i in range(200)])
    oracle = RuleOracle(graph.rules[0])
    state = oracle.argmax().state
    assert state is not None
    # Label 0 is true for every third variable: 67 literals would be; seven of them, as late as may be, are not.
    true = [i for i in range(200) if state[i] == i % 3]
    assert len(true) == 60
    assert true == list(range(0, 180, 3))
    assert all(state[i] == (i >= 180 and i % 3 == 0) for i in range(200))


def test_what_states_without_a_number_do() -> None:
    graph = FactorGraph([2] * 100)
    graph.add_at_least(3, [(i, 1) for i in range(100)])
    oracle = RuleOracle(graph.rules[0])
    two = oracle.best(2)
    assert [sum(x.state or ()) for x in two] == [3, 3]
    assert two[0].state != two[1].state
    with pytest.raises(Exception, match="too many states for a scan"):
        oracle.best(1, path="scan")


BAD: dict[str, tuple[Any, str]] = {
    "no rule": (lambda: RuleOracle(3), "must be one of graph.rules"),  # type: ignore[arg-type]
    "about nothing": (lambda: RuleOracle(_rule(lambda g: g.add_clause([]))), "about no variable"),
    "messages": (lambda: _three().argmax([None]), "3 messages are needed"),
    "label": (lambda: _three().argmax([{5: 1.0}, None, None]), "labels must be ascending"),
    "nan": (lambda: _three().argmax([{0: float("nan")}, None, None]), "must be finite"),
    "variable": (lambda: _three().max_marginals(3), "no variable 3"),
    "state": (lambda: _three().score([0, 0]), "3 labels in range"),
    "large label": (lambda: _three().score([0, 0, 2]), "3 labels in range"),
    "mask": (lambda: _three().propagate([[1, 1], [1, 1]]), "a mask for each variable"),
    "reason": (lambda: _three().reason([[1, 1]] * 3, 0, 7), "no label 7 of variable 0"),
    "move": (lambda: _three().tally([0, 0, 0]).after({4: 0}), "no label 0 of variable 4"),
    "n best": (lambda: _three().best(0), "1 or more"),
    "path": (lambda: _three().best(1, path="fast"), "path must be one of"),
    "64 bits": (lambda: RuleOracle(_rule(lambda g: g.add_budget([(0, 1), (1, 1)], [2**70, 3], 2**70))), "64 bits"),
}


def _rule(add: Any) -> Rule:
    graph = FactorGraph([2, 2, 2])
    add(graph)
    return graph.rules[0]


def _three() -> RuleOracle:
    return RuleOracle(_rule(lambda g: g.add_clause([(0, 1), (1, 1), (2, 0)])))


@pytest.mark.parametrize("name", BAD)
def test_bad_questions_are_refused(name: str) -> None:
    ask, message = BAD[name]
    with pytest.raises(ModelError, match=re.escape(message)):
        ask()


def test_bounds_of_a_best_state_include_what_rounding_may_hide() -> None:
    graph = FactorGraph([2] * 12)
    graph.add_cardinality([(i, 1) for i in range(12)], [0.1 * c * c - 0.7 * c for c in range(13)])
    native = graph.rules[0].native()
    rng = np.random.default_rng(0)
    for _ in range(20):
        gains = rng.normal(size=24)
        labels, above, _ = native.best(gains)
        assert labels is not None

        def exact(x: Any, gains: NDArray[np.float64] = gains) -> Fraction:
            return Fraction(native.score(np.array(x, np.int32))) + sum(
                Fraction(float(gains[2 * k + a])) for k, a in enumerate(x)
            )

        assert exact(labels.tolist()) + Fraction(above) >= max(exact(x) for x in product(range(2), repeat=12))
        assert 0 <= above < 1e-9


def test_answers_are_plain() -> None:
    assert _three().argmax() == Argmax((0, 0, 0), 0.0)
