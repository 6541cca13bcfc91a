"""What all sources share: n best states, batches by threads, scale updates; and inner products against numpy."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from fginfer import FactorGraph, FginferError, ModelError
from fginfer.oracles import Argmax, GraphOracle, InnerProducts, Messages, Ranking, UpdatableTable
from tests.oracles.strategies import KINDS, less_messages, messages, one_factor, tables


def sorted_states(
    table: NDArray[np.float64], given_messages: list[dict[int, float]], excluded: list[tuple[int, ...]], n: int
) -> list[Argmax]:
    """The definition of the n best: all of them sorted."""
    value = less_messages(table, given_messages)
    for state in excluded:
        value[state] = -inf
    order = np.argsort(-value.ravel(), kind="stable")[:n]
    best = [
        Argmax(tuple(int(a) for a in np.unravel_index(s, table.shape)), float(value.flat[s]))
        for s in order
        if value.flat[s] > -inf
    ]
    return best + [Argmax(None, -inf)] * (n - len(best))


@given(st.data(), KINDS)
@settings(max_examples=60, deadline=None)
def test_n_best(data: st.DataObject, kind: str) -> None:
    graph, table = data.draw(one_factor(kind))
    shape = table.shape
    given_messages = [data.draw(messages(n)) for n in shape]
    excluded = [tuple(data.draw(st.integers(0, n - 1)) for n in shape) for _ in range(data.draw(st.integers(0, 3)))]
    n = data.draw(st.integers(1, 9))
    expected = sorted_states(table, given_messages, excluded, n)
    if kind == "updatable":
        for kept in ("scan", "search"):
            changing = UpdatableTable(shape, table, path=kept)  # type: ignore[arg-type]
            for path in ("auto", "scan", "search"):
                assert changing.best(n, given_messages, excluded=excluded, path=path) == expected
        return
    oracle = GraphOracle(graph)
    for path in ("auto", "scan", "search"):
        assert oracle.best(0, n, given_messages, excluded=excluded, path=path) == expected


@given(st.data(), st.integers(1, 25), st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_ranking_n_best(data: st.DataObject, n: int, wanted: int) -> None:
    values = data.draw(tables((n,)))
    message = data.draw(messages(n))
    excluded = data.draw(st.lists(st.integers(0, n - 1), max_size=3))
    expected = sorted_states(values, [message], [(k,) for k in excluded], wanted)
    assert Ranking(values).best(wanted, message, excluded=excluded) == expected


def test_batches_are_single_questions() -> None:
    """By one thread and by three: the same answers as one at a time."""
    rng = np.random.default_rng(0)
    size = 120
    graph = FactorGraph([size] * 3)
    shared = graph.add_table(rng.normal(size=(size, size)).round(1))
    for i, j in ((0, 1), (1, 2), (0, 2)):
        graph.add_factor([i, j], shared, weight=1.0 + i)
    n = 200
    factors = rng.integers(0, 3, n)
    given_messages = [
        {int(a): float(v) for a, v in zip(rng.choice(size, k, replace=False), rng.normal(size=k), strict=True)}
        for k in rng.integers(0, 20, 2 * n)
    ]
    begin = np.r_[0, np.cumsum([len(m) for m in given_messages])]
    labels = np.concatenate([np.array(sorted(m), np.int32) for m in given_messages])
    values = np.concatenate([np.array([m[a] for a in sorted(m)]) for m in given_messages])
    excluded, hints = rng.integers(-1, size**2, n), rng.integers(-1, size**2, n)
    batch = Messages(begin, labels, values)
    one, three = GraphOracle(graph), GraphOracle(graph, threads=3)
    table = UpdatableTable((size, size), graph.table(shared), threads=2)
    found = three.ask(factors, batch, excluded=excluded, hints=hints, n_best=3)
    again = one.ask(factors, batch, excluded=excluded, n_best=3)
    assert np.array_equal(found.states, again.states)
    assert np.array_equal(found.values, again.values)
    changing = table.ask(n, batch, excluded=excluded)
    for k in range(n):
        two = given_messages[2 * k : 2 * k + 2]
        without = None if excluded[k] < 0 else divmod(int(excluded[k]), size)
        single = one.best(int(factors[k]), 3, two, excluded=without)
        assert [np.ravel_multi_index(s.state, (size, size)) for s in single if s.state] == found.states[k].tolist()
        assert [s.value for s in single] == found.values[k].tolist()
        assert table.argmax(two, excluded=without).value == changing.values[k]
    assert three.work["calls"] == n
    assert three.work["scans"] < n  # most are searched to their end
    with pytest.raises(ModelError, match="factors must be"):
        one.ask([3])
    with pytest.raises(ModelError, match="begin must be"):
        one.ask([0, 1], Messages([0, 1], [0], [1.0]))
    with pytest.raises(ModelError, match="ascending"):
        one.ask([0], Messages([0, 2, 2], [3, 2], [1.0, 1.0]))


@given(st.data(), st.tuples(st.integers(1, 12), st.integers(1, 12)))
@settings(max_examples=60, deadline=None)
def test_scaled_tables(data: st.DataObject, shape: tuple[int, int]) -> None:
    """Powers of two: the scaled entries are exact. Others: within rounding of a table that was multiplied out."""
    dense = data.draw(tables(shape))
    table = UpdatableTable(shape, dense, path=data.draw(st.sampled_from(["scan", "search"])))
    for _ in range(4):
        factor = data.draw(st.sampled_from([0.5, 0.25, 2.0, 2.0**-180, 2.0**180, 0.0, 1 / 3]))
        exact = factor != 1 / 3
        table.scale(factor)
        dense = np.where(dense == -inf, 0.0 if factor == 0 else -inf, dense * factor if factor else 0.0)
        a, b = data.draw(st.integers(0, shape[0] - 1)), data.draw(st.integers(0, shape[1] - 1))
        table.set([a], [b], [1.5])
        dense[a, b] = 1.5
        now = table.to_array()
        assert np.allclose(now, dense, rtol=1e-12, atol=1e-200)
        if exact:
            dense = now
        given_messages = [data.draw(messages(n)) for n in shape]
        assert table.argmax(given_messages) == sorted_states(now, given_messages, [], 1)[0]
        dense = now
    with pytest.raises(ModelError):
        table.scale(-1.0)
    with pytest.raises(ModelError):
        table.scale(inf)


def test_small_tables_are_scanned_and_large_ones_searched() -> None:
    """The rule for tables that change; rounding at the size of the messages hides no state from the scan."""
    rng = np.random.default_rng(1)
    for k, scans in ((26, 50), (200, 0)):
        dense = rng.normal(size=(k, k)).round(2)
        table = UpdatableTable((k, k), dense)
        for _ in range(50):
            size = 10.0 ** rng.integers(-3, 12)
            given_messages = [dict(enumerate((size * rng.normal(size=k)).tolist())) for _ in "ab"]
            assert table.argmax(given_messages) == sorted_states(dense, given_messages, [], 1)[0]
        assert table.work["scans"] == scans


def test_small_tables_of_a_model_are_scanned_and_large_ones_searched() -> None:
    rng = np.random.default_rng(2)
    for k, scans in ((39, 1), (70, 0)):  # 1521 and 4900 entries
        dense = rng.normal(size=(k, k)).round(2)
        graph = FactorGraph.from_arrays([k, k], np.zeros((2, k)), [(0, 1)], [0], [dense])
        oracle = GraphOracle(graph)
        two = [{1: 0.5}, {2: -0.5}]
        oracle.best(0, 2, two, path="search")  # makes the lists
        assert oracle.argmax(0, two) == sorted_states(dense, two, [], 1)[0]
        assert oracle.work["scans"] == scans


def test_scaling_costs_nothing() -> None:
    rng = np.random.default_rng(0)
    table = UpdatableTable((2000, 2000))
    table.add(rng.integers(0, 2000, 30_000), rng.integers(0, 2000, 30_000), rng.normal(size=30_000))
    for _ in range(2000):  # a thousand halvings and more: the scale is folded in on the way
        table.scale(0.7)
        table.add([3], [4], [1.0])
    assert table[3, 4] == pytest.approx(sum(0.7**k for k in range(60)), rel=1e-9)
    before = table.touched
    assert table.argmax([{3: 5.0}, None]).value < 1e-100
    assert table.touched - before < 20_000


# ---- inner products ----


def plain_scores(w: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Added up feature by feature, as the core does it."""
    scores = np.zeros(len(w))
    for f, value in enumerate(x):
        scores += value * w[:, f]
    return scores


@given(st.data(), st.integers(1, 20), st.integers(0, 6), st.sampled_from(["labels", "features", "sparse"]))
@settings(max_examples=80, deadline=None)
def test_inner_products(data: st.DataObject, n_labels: int, n_features: int, layout: str) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    w = rng.integers(-3, 4, (n_labels, n_features)) * (rng.random((n_labels, n_features)) < 0.5) / 3
    X = rng.integers(-2, 3, (4, n_features)) * (rng.random((4, n_features)) < 0.7) / 7
    if layout == "sparse":
        products = InnerProducts.sparse(n_labels, n_features, sparse.csr_matrix(w), threads=2)
        assert products.nonzeros == np.count_nonzero(w)
    else:
        products = InnerProducts(w.T.copy() if layout == "features" else w, by_feature=layout == "features")
    message = data.draw(messages(n_labels))
    excluded = data.draw(st.lists(st.integers(0, n_labels - 1), max_size=3))
    n = data.draw(st.integers(1, 5))
    gone = [(k,) for k in excluded]
    for x in X:
        expected = sorted_states(plain_scores(w, x), [message], gone, n)
        assert products.best(x, n, message, excluded=excluded) == expected
        assert products.best(sparse.csr_matrix(x.reshape(1, -1)), n, message, excluded=excluded) == expected
    parts = data.draw(st.integers(1, n_labels))
    part = rng.integers(0, parts, len(X))
    found = products.ask(sparse.csr_matrix(X), parts=parts, part=part, n_best=n)
    for k, x in enumerate(X):
        begin, end = n_labels * int(part[k]) // parts, n_labels * (int(part[k]) + 1) // parts
        outside = [(y,) for y in range(n_labels) if not begin <= y < end]
        best = sorted_states(plain_scores(w, x), [{}], outside, n)
        assert found.states.reshape(len(X), n)[k].tolist() == [-1 if s.state is None else s.state[0] for s in best]
        assert found.values.reshape(len(X), n)[k].tolist() == [s.value for s in best]


def test_inner_products_are_live_and_take_updates() -> None:
    w = np.zeros((3, 2))
    dense, changing = InnerProducts(w), InnerProducts.sparse(3, 2)
    assert dense.argmax([1.0, 1.0]).state == changing.argmax([1.0, 1.0]).state == (0,)
    w[2, 1] = 1.0
    changing.add([2, 2], [1, 1], [0.25, 0.75])
    assert dense.argmax([1.0, 1.0]) == changing.argmax([1.0, 1.0]) == Argmax((2,), 1.0)
    changing.scale(0.5)
    dense.scale(0.5)
    assert dense.argmax([1.0, 1.0]) == changing.argmax([1.0, 1.0]) == Argmax((2,), 0.5)
    assert changing[2, 1] == 0.5
    assert changing[0, 0] == 0.0
    changing.set(2, 1, 0.0)
    assert changing.nonzeros == 0
    changing.scale(0.0)
    changing.add(1, 0, 2.0)
    assert changing[1, 0] == 2.0
    with pytest.raises(FginferError, match="change them in place"):
        dense.add(0, 0, 1.0)
    for bad in ([1.0], [1.0, inf]):
        with pytest.raises(ModelError):
            dense.argmax(bad)
    with pytest.raises(ModelError):
        changing.add(3, 0, 1.0)


def test_sparse_products_cost_their_rows() -> None:
    """A hundred thousand labels, of which a question looks at those its features mention."""
    rng = np.random.default_rng(0)
    n_labels, n_features = 100_000, 500
    products = InnerProducts.sparse(n_labels, n_features)
    products.add(rng.integers(0, n_labels, 5000), rng.integers(0, n_features, 5000), rng.normal(size=5000))
    X = sparse.random(200, n_features, 0.02, format="csr", random_state=1)
    products.ask(X)
    assert products.work["products"] < 200 * 10 * 40
    assert products.touched < 200 * 10 * 40


def test_rankings_take_one_value_or_several() -> None:
    ranking = Ranking([3.0, 1.0, 2.0])
    ranking.set([1, 2], [9.0, 5.0])
    assert [a.state for a in ranking.best(3)] == [(1,), (2,), (0,)]
    ranking.set([0, 1], 7.0)
    ranking.set(2, 8.0)
    assert [a.value for a in ranking.best(3)] == [8.0, 7.0, 7.0]


GRAPH = FactorGraph([3, 3])
GRAPH.add_factor([0, 1], np.eye(3))


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: GraphOracle("model.uai"), "FactorGraph"),  # type: ignore[arg-type]
        (lambda: GraphOracle(GRAPH).argmax(0, [{0.5: 1.0}, None]), "whole numbers"),  # type: ignore[dict-item]
        (lambda: GraphOracle(GRAPH).argmax(0, ["a", None]), "dict"),  # type: ignore[list-item]
        (lambda: GraphOracle(GRAPH).ask([0.0]), "whole numbers"),
        (lambda: UpdatableTable((3, 3)).add([0.5], [0], 1.0), "whole numbers"),
        (lambda: UpdatableTable((3, 3)).add([2**40], [0], 1.0), "between"),
        (lambda: UpdatableTable((3, 3)).add([0, 1, 2], [0, 1], 1.0), "as many of each"),
        (lambda: UpdatableTable((3, 3)).ask(-1), "-1 questions"),
        (lambda: UpdatableTable((3, 3)).ask(3, hints=[1, 2]), "3 numbers"),
        (lambda: Ranking([1.0]).best(1, excluded=[(0,)]), "no state"),  # type: ignore[list-item]
        (lambda: Ranking([1.0, 2.0]).set([0, 1], [1.0, 2.0, 3.0]), "as many values"),
        (lambda: InnerProducts.sparse(2, 2).add([0.5], [0], 1.0), "whole numbers"),
    ],
)
def test_input_of_the_wrong_kind_gets_our_errors(ask: Callable[[], object], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        ask()


def test_scaled_weights_never_leave_the_numbers() -> None:
    products = InnerProducts.sparse(3, 4)
    products.set([0, 1], [0, 0], [1e-5, -1.0])
    products.scale(1e-50)
    products.add([1], [1], [1e280])  # 1e330 in units of the scale
    assert products.argmax([1.0, 1.0, 0.0, 0.0]) == ((1,), 1e280)
    assert products[0, 0] == pytest.approx(1e-55, rel=1e-12)
    products.scale(1e20)
    products.set([2], [2], [1e-300])  # next to nothing in these units
    assert products[2, 2] == pytest.approx(1e-300, rel=1e-12)
    with pytest.raises(ModelError, match="not a number"):
        products.scale(1e10)
    assert products[1, 1] == pytest.approx(1e300, rel=1e-12)
    products.set([0], [3], [1.7e308])
    with pytest.raises(ModelError, match="not finite"):
        products.add([0], [3], [1.7e308])


def test_scales_far_from_one_leave_indexed_answers_exact() -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(300, 8))
    products = InnerProducts.sparse(300, 8, sparse.csr_array(weights))
    products.index()
    for factor in (2.0**150, 2.0**100, 2.0**-120, 2.0**-160):
        products.scale(factor)
        weights = weights * factor
        x = rng.normal(size=8)
        label = int(np.argmax(weights @ x))
        assert int(products.ask(x[None], path="search").states[0]) == label
        products.set([label], [0], [0.0])
        weights[label, 0] = 0.0


def test_sums_that_are_no_numbers_are_refused() -> None:
    table = UpdatableTable((2, 2), path="search")
    table.set([0], [1], [1.7e308])
    with pytest.raises(ModelError, match="not a number"):
        table.add([0], [1], [1.7e308])
    assert table.argmax() == ((0, 1), 1.7e308)
