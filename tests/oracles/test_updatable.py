"""Tables and vectors that change, against a dense copy."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import ModelError
from fginfer.oracles import Ranking, UpdatableTable
from tests.oracles.strategies import dense_argmax, messages, scores, states, tables


@pytest.mark.slow
@pytest.mark.parametrize("path", ["auto", "search"])
@given(st.data(), st.tuples(st.integers(1, 15), st.integers(1, 15)), st.booleans())
@settings(max_examples=60, deadline=None)
def test_updates_and_questions(path: str, data: st.DataObject, shape: tuple[int, int], from_zeros: bool) -> None:
    dense = np.zeros(shape) if from_zeros else data.draw(tables(shape))
    table = UpdatableTable(shape, None if from_zeros else dense, path=path)
    changes = st.tuples(
        st.integers(0, shape[0] - 1), st.integers(0, shape[1] - 1), st.one_of(scores, st.sampled_from([0.0, -inf]))
    )
    for _ in range(6):
        rows, cols, values = zip(*data.draw(st.lists(changes, min_size=1, max_size=8)), strict=True)
        if data.draw(st.booleans()):
            table.set(rows, cols, values)
            for a, b, v in zip(rows, cols, values, strict=True):
                dense[a, b] = v
        else:
            table.add(rows, cols, values)
            for a, b, v in zip(rows, cols, values, strict=True):
                dense[a, b] += v
        assert np.array_equal(table.to_array(), dense)
        given_messages = [data.draw(messages(n)) for n in shape]
        excluded, hint = data.draw(states(shape)), data.draw(states(shape))
        expected = dense_argmax(dense, given_messages, excluded)
        assert table.argmax(given_messages, excluded=excluded, hint=hint) == expected


def test_memory_is_that_of_the_entries() -> None:
    """The bigram table of 4424 labels (2e7 entries) before and after learning a few."""
    table = UpdatableTable((4424, 4424))
    assert table.memory < 2_000_000
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 4424, (2, 20_000))
    table.add(rows, cols, rng.normal(size=20_000))
    assert table.memory < 5_000_000
    before = table.touched
    for _ in range(200):
        a, b = rng.integers(0, 4424, 2)
        table.argmax([{int(a): 0.3, int(b): -0.2}, {int(b): 0.1}], excluded=(int(a), int(b)))
    assert (table.touched - before) / 200 < 50


def test_bad_updates_change_nothing() -> None:
    table = UpdatableTable((2, 2))
    with pytest.raises(ModelError):
        table.set([0, 2], [0, 0], [1.0, 1.0])
    with pytest.raises(ModelError):
        table.add([0, 1], [0, 0], [1.0, inf])
    assert table[0, 0] == 0.0
    with pytest.raises(ModelError):
        UpdatableTable((2, 2), [[0.0, inf], [0.0, 0.0]])


@given(st.data(), st.integers(1, 30), st.sampled_from([-inf, 0.0]))
@settings(max_examples=50, deadline=None)
def test_ranking(data: st.DataObject, n: int, floor: float) -> None:
    values = data.draw(tables((n,)))
    ranking = Ranking(values, floor)
    there = values > floor
    for _ in range(8):
        item = data.draw(st.integers(0, n - 1))
        if data.draw(st.booleans()):
            assert ranking.take(item) == there[item]
            there[item] = False
        else:
            values[item] = data.draw(scores)
            ranking.set(item, values[item])
            there[item] = values[item] > floor
        left = np.where(there, values, -inf)
        state, value = dense_argmax(left, [{}], None)
        assert ranking.top() == (None if state is None else (state[0], value))
        message, excluded = data.draw(messages(n)), data.draw(states((n,)))
        expected = dense_argmax(left, [message], excluded)
        assert ranking.argmax(message, excluded=None if excluded is None else excluded[0]) == expected


def test_ranking_is_taken_off_in_order() -> None:
    values = np.random.default_rng(0).integers(-50, 50, 1000) / 8.0
    ranking = Ranking(values, floor=0.0)
    taken = []
    while (top := ranking.top()) is not None:
        taken.append(top[0])
        ranking.take(top[0])
    assert taken == sorted(np.flatnonzero(values > 0), key=lambda k: (-values[k], k))
