"""Max-marginals, the oracle's other question, against their definition; and scans with messages on all labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fginfer import FactorGraph, ModelError, SqDiff
from fginfer.oracles import GraphOracle, UpdatableTable
from tests.oracles.strategies import KINDS, dense_argmax, less_messages, messages, one_factor, tables


def by_definition(
    table: NDArray[np.float64], given_messages: list[dict[int, float]], variable: int
) -> NDArray[np.float64]:
    value = less_messages(table, [{} if k == variable else m for k, m in enumerate(given_messages)])
    best: NDArray[np.float64] = value.max(axis=tuple(k for k in range(table.ndim) if k != variable))
    return best


def same(found: NDArray[np.float64], expected: NDArray[np.float64], size: float) -> None:
    """Up to the rounding of sums of numbers of this size."""
    assert found.shape == expected.shape
    assert np.array_equal(np.isneginf(found), np.isneginf(expected))
    there = ~np.isneginf(expected)
    assert np.all(np.abs(found[there] - expected[there]) <= 1e-14 * size)


@given(st.data(), KINDS)
@settings(max_examples=60, deadline=None)
def test_against_the_definition(data: st.DataObject, kind: str) -> None:
    graph, table = data.draw(one_factor(kind))
    shape = table.shape
    given_messages = [data.draw(messages(n)) for n in shape]
    size = 1 + np.abs(table[table > -np.inf]).max(initial=0.0)
    size += sum(max(map(abs, m.values()), default=0.0) for m in given_messages)
    for variable in range(len(shape)):
        expected = by_definition(table, given_messages, variable)
        if kind == "updatable":
            for kept in ("scan", "search"):
                changing = UpdatableTable(shape, table, path=kept)  # type: ignore[arg-type]
                same(changing.max_marginals(variable, given_messages), expected, size)
        else:
            same(GraphOracle(graph).max_marginals(0, variable, given_messages), expected, size)


@given(st.data(), st.sampled_from(["pairwise", "transposed", "squares"]), st.sampled_from([1e16, 1e100, 2.0**600]))
@settings(max_examples=60, deadline=None)
def test_scans_where_messages_rule_labels_out(data: st.DataObject, kind: str, huge: float) -> None:
    """Exact to the last bit, whatever the messages of labels that cannot be best."""
    shape = (data.draw(st.integers(2, 20)), data.draw(st.integers(2, 20)))
    graph, table = FactorGraph(shape), data.draw(tables(shape))
    if kind == "squares":
        a, b = np.indices(shape)
        table = -0.3 * np.minimum((a - b) ** 2, 4.0)
        graph.add_factor([0, 1], SqDiff(0.3, 4.0))
    elif kind == "transposed":
        graph.add_factor([0, 1], table.T, transposed=True)
    else:
        graph.add_factor([0, 1], table)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    given_messages = []
    for n in shape:
        values = rng.normal(size=n) if data.draw(st.booleans()) else rng.integers(-2, 3, n) / 3
        values[rng.random(n) < 0.3] = huge
        given_messages.append(dict(enumerate(values.tolist())))
    expected = dense_argmax(table, given_messages, None)
    for path in ("auto", "scan", "search"):
        assert tuple(GraphOracle(graph).best(0, 1, given_messages, path=path)[0]) == expected


def test_what_is_refused() -> None:
    graph = FactorGraph([2, 3])
    graph.add_factor([0, 1], np.zeros((2, 3)))
    oracle, table = GraphOracle(graph), UpdatableTable((2, 3))
    with pytest.raises(ModelError, match="no factor 1"):
        oracle.max_marginals(1, 0)
    for ask in (lambda: oracle.max_marginals(0, 2), lambda: table.max_marginals(-1)):
        with pytest.raises(ModelError, match="no variable"):
            ask()
    with pytest.raises(ModelError, match="ascending"):
        oracle.max_marginals(0, 0, [None, {5: 1.0}])
    assert oracle.max_marginals(0, 1).tolist() == [0.0, 0.0, 0.0]
    assert oracle.work["calls"] == 1
