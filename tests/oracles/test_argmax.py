"""Every static oracle against the definition: same value, bit for bit, and the lowest of the best states."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import AbsDiff, FactorGraph, ModelError, Potts, SqDiff
from fginfer.oracles import GraphOracle, scores_argmax
from fginfer.reference import ReferenceTable
from tests.oracles.strategies import dense_argmax, messages, scores, states, tables

weights = st.sampled_from([1.0, 0.3, 7.0])


def ask_often(data: st.DataObject, oracle: GraphOracle, table: np.ndarray, asks: int = 4) -> None:
    """Several questions to one oracle: lists grow, marks of the last question must not leak into the next."""
    for _ in range(asks):
        given_messages = [data.draw(messages(n)) for n in table.shape]
        excluded, hint = data.draw(states(table.shape)), data.draw(states(table.shape))
        if data.draw(st.booleans()):  # exclude the answer itself
            excluded = dense_argmax(table, given_messages, None)[0]
        expected = dense_argmax(table, given_messages, excluded)
        assert oracle.argmax(0, given_messages, excluded=excluded, hint=hint) == expected
        assert oracle.scan(0, given_messages, excluded=excluded) == expected


@given(st.data(), st.tuples(st.integers(1, 40), st.integers(1, 40)), weights, st.booleans())
@settings(max_examples=80, deadline=None)
def test_pairwise(data: st.DataObject, shape: tuple[int, int], weight: float, transposed: bool) -> None:
    table = data.draw(tables(shape))
    graph = FactorGraph(shape)
    graph.add_factor([0, 1], table.T if transposed else table, weight=weight, transposed=transposed)
    ask_often(data, GraphOracle(graph), weight * table)


@pytest.mark.slow
@given(st.data(), st.lists(st.integers(1, 9), min_size=3, max_size=4), weights)
@settings(max_examples=60, deadline=None)
def test_three_and_four_variables(data: st.DataObject, shape: list[int], weight: float) -> None:
    table = data.draw(tables(tuple(shape)))
    graph = FactorGraph(shape)
    graph.add_factor(range(len(shape)), table, weight=weight)
    ask_often(data, GraphOracle(graph), weight * table)


@pytest.mark.slow
@given(st.data(), st.tuples(st.integers(1, 25), st.integers(1, 25)), weights)
@settings(max_examples=80, deadline=None)
def test_implicit(data: st.DataObject, shape: tuple[int, int], weight: float) -> None:
    some = st.one_of(scores, st.just(-inf))
    truncation = st.sampled_from([0.5, 1.0, 2.0, 6.5, inf])
    slope = st.sampled_from([0.0, 1.0, 1 / 3])
    implicit = data.draw(
        st.one_of(
            st.builds(Potts, some, some), st.builds(AbsDiff, slope, truncation), st.builds(SqDiff, slope, truncation)
        )
    )
    a, b = np.indices(shape)
    if isinstance(implicit, Potts):
        table = np.where(a == b, implicit.same, implicit.different)
    else:
        distance = np.abs(a - b) if isinstance(implicit, AbsDiff) else (a - b) ** 2
        table = -implicit.weight * np.minimum(distance, implicit.truncation)
    graph = FactorGraph(shape)
    graph.add_factor([0, 1], implicit, weight=weight)
    ask_often(data, GraphOracle(graph), weight * table)


@given(st.data(), st.tuples(st.integers(1, 12), st.integers(1, 12)), weights)
@settings(max_examples=40, deadline=None)
def test_plain_python_reference(data: st.DataObject, shape: tuple[int, int], weight: float) -> None:
    table = data.draw(tables(shape))
    reference = ReferenceTable(table)
    for _ in range(3):
        a, b = data.draw(st.integers(0, shape[0] - 1)), data.draw(st.integers(0, shape[1] - 1))
        table[a, b] = data.draw(scores)
        reference.set(a, b, table[a, b])
        given_messages = [data.draw(messages(n)) for n in shape]
        excluded = data.draw(states(shape))
        expected = dense_argmax(weight * table, given_messages, excluded)
        assert reference.argmax(given_messages, excluded=excluded, weight=weight) == expected


@given(st.data(), st.integers(1, 30), st.integers(0, 5), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_sampled_part(data: st.DataObject, n: int, first: int, step: int) -> None:
    every = data.draw(tables((first + n * step,)))
    message = data.draw(messages(len(every)))
    excluded = data.draw(states(every.shape))
    part = every[first::step]
    keep = np.full(len(every), -inf)
    keep[first::step] = part
    skip = None if excluded is None else excluded[0]
    assert scores_argmax(part, message, first=first, step=step, excluded=skip) == dense_argmax(
        keep, [message], excluded
    )


def test_sources_are_live() -> None:
    """New numbers, and new factors, are what the next answer is about."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(30, 30))
    graph = FactorGraph([30, 30])
    shared = graph.add_table(table)
    graph.add_factor([0, 1], shared)
    oracle = GraphOracle(graph)
    assert oracle.argmax(0, [{3: -1.0}, {4: 2.0}]) == dense_argmax(table, [{3: -1.0}, {4: 2.0}], None)
    graph.set_table(shared, -table)
    assert oracle.argmax(0, [{3: -1.0}, {4: 2.0}]) == dense_argmax(-table, [{3: -1.0}, {4: 2.0}], None)
    graph.add_factor([1, 0], table.T)
    assert oracle.argmax(1).value == table.max()


def test_long_ties_and_long_walks() -> None:
    """Rows of equal entries, most columns with messages: lists are lengthened several times, ties still go low."""
    rng = np.random.default_rng(1)
    table = np.where(rng.random((500, 500)) < 0.9, 0.0, rng.normal(size=(500, 500)))
    graph = FactorGraph([500, 500])
    graph.add_factor([0, 1], table)
    oracle = GraphOracle(graph)
    for n in (0, 5, 100, 400, 499, 500):
        for sign in (1.0, -1.0):
            given_messages = [
                {int(a): sign * float(rng.choice([0.1, 1.0, 3.0])) for a in rng.choice(500, n, replace=False)}
                for _ in range(2)
            ]
            assert oracle.argmax(0, given_messages) == dense_argmax(table, given_messages, None)


def test_bad_questions_are_refused() -> None:
    graph = FactorGraph([2, 3])
    graph.add_factor([0, 1], np.zeros((2, 3)))
    oracle = GraphOracle(graph)
    for bad in ([{2: 1.0}, None], [{-1: 1.0}, None], [{0: inf}, None], [([1, 0], [1.0, 2.0]), None], [None]):
        with pytest.raises(ModelError):
            oracle.argmax(0, bad)  # type: ignore[arg-type]
    with pytest.raises(ModelError):
        oracle.argmax(1)
    with pytest.raises(ModelError):
        oracle.argmax(0, excluded=(0, 3))
    assert oracle.argmax(0).state == (0, 0)
