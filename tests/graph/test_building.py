"""Building graphs, factor by factor and in bulk, against a plain numpy model."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Reference
from strategies import labelings, models

from fginfer import AbsDiff, FactorGraph, ModelError, Potts, SqDiff


def build(cards, factors):
    graph, reference = FactorGraph(cards), Reference(cards)
    for scope, table, weight, transposed in factors:
        graph.add_factor(scope, table, weight=weight, transposed=transposed)
        reference.add(scope, table, weight, transposed)
    return graph, reference


@settings(deadline=None)
@given(models(), st.data())
def test_scores_agree_with_numpy(model, data):
    cards, factors = model
    graph, reference = build(cards, factors)
    labels = data.draw(labelings(cards))
    assert graph.n_factors == len(factors)
    assert graph.score(labels) == pytest.approx(reference.score(labels), rel=1e-12, abs=1e-9)
    parts = graph.constant + graph.unary_scores(labels).sum() + graph.factor_scores(labels).sum()
    assert parts == pytest.approx(reference.score(labels), rel=1e-12, abs=1e-9)


@settings(deadline=None)
@given(models(), st.data())
def test_adding_after_use_and_pickling(model, data):
    cards, factors = model
    graph, reference = FactorGraph(cards), Reference(cards)
    labels = data.draw(labelings(cards))
    for scope, table, weight, transposed in factors:
        graph.add_factor(scope, table, weight=weight, transposed=transposed)
        reference.add(scope, table, weight, transposed)
        assert graph.score(labels) == pytest.approx(reference.score(labels), rel=1e-12, abs=1e-9)
    again = pickle.loads(pickle.dumps(graph))
    assert again.score(labels) == graph.score(labels)
    assert again.n_factors == graph.n_factors
    assert again.factors() == graph.factors()


def test_equal_tables_are_stored_once():
    graph = FactorGraph([3] * 50)
    table = np.arange(9.0).reshape(3, 3)
    for i in range(49):
        graph.add_factor([i, i + 1], table.copy(), weight=1 + i % 3)
        graph.add_factor([i, i + 1], Potts(0, -1))
    assert graph.to_arrays().n_tables == 2
    assert graph.table_entries == 150 + 9 + 2
    graph.add_factor([0, 2], table)  # after the model was built
    assert graph.score([0] * 50) == 0
    assert graph.to_arrays().n_tables == 2


def test_negative_weights_share_one_negated_table():
    graph = FactorGraph([3] * 10)
    for i in range(9):
        graph.add_factor([i, i + 1], np.arange(9.0), weight=-1.0 - i)
    assert graph.to_arrays().n_tables == 1
    assert graph.score([2] * 10) == -8 * 45


def test_zero_weight_lifts_constraints():
    graph = FactorGraph([2, 2, 2])
    graph.add_factor([0, 1], [[-np.inf, 0], [0, -np.inf]], weight=0)
    graph.add_factor([0, 1, 2], np.full((2, 2, 2), -np.inf), weight=0)
    graph.add_factor([0], [-np.inf, 1], weight=0)
    assert graph.score([0, 0, 0]) == 0


def test_difference_tables_that_reward_distance():
    graph = FactorGraph([3, 4, 3])
    graph.add_factor([0, 1], AbsDiff(-2.0, 2.0))
    graph.add_factor([0, 1], SqDiff(1.0), weight=-3)
    graph.add_factor([2, 1], AbsDiff(2.0, 2.0), weight=-1, transposed=True)
    assert graph.score([0, 3, 0]) == 4 + 27 + 4


def test_bulk_equals_factor_by_factor():
    rng = np.random.default_rng(0)
    cards = rng.integers(1, 5, 30)
    edges = np.array([rng.choice(30, 2, replace=False) for _ in range(200)])
    implicit = [Potts(1, -2), AbsDiff(1.5, 2), SqDiff(-0.5), AbsDiff(2.0)]
    ids, weights = rng.integers(0, 4, 200), rng.choice([-2.0, 0.0, 1.0, 3.0], 200)
    unaries = [rng.normal(size=k) for k in cards]
    bulk = FactorGraph.from_arrays(cards, unaries, edges, ids, implicit, weights, constant=2.5)
    one = FactorGraph(cards)
    one.add_factor([], 2.5)
    for i, u in enumerate(unaries):
        one.add_factor([i], u)
    for (i, j), t, w in zip(edges, ids, weights, strict=True):
        one.add_factor([i, j], implicit[t], weight=w)
    for _ in range(20):
        x = rng.integers(0, cards)
        assert bulk.score(x) == pytest.approx(one.score(x), rel=1e-12)
        np.testing.assert_allclose(bulk.factor_scores(x), one.factor_scores(x))


def test_bulk_with_dense_shared_transposed_and_negated_tables():
    rng = np.random.default_rng(1)
    tables = rng.normal(size=(2, 3, 4))
    cards = [3, 4, 3, 4]
    edges = [[0, 1], [1, 2], [2, 3], [3, 0]]
    graph = FactorGraph.from_arrays(cards, None, edges, [0, 1, 1, 0], tables, [1, -2, 3, 1], [False, True, False, True])
    for _ in range(10):
        x = rng.integers(0, cards)
        expected = tables[0][x[0], x[1]] - 2 * tables[1][x[2], x[1]] + 3 * tables[1][x[2], x[3]] + tables[0][x[0], x[3]]
        assert graph.score(x) == pytest.approx(expected)
    graph.set_table(1, np.ones((3, 4)))  # changes the negated twin, too
    x = [0, 0, 0, 0]
    assert graph.score(x) == pytest.approx(2 * tables[0][0, 0] - 2 + 3)


@settings(deadline=None)
@given(models(max_factors=12), st.data())
def test_bulk_against_numpy(model, data):
    cards, factors = model
    pairs = [f for f in factors if len(f[0]) == 2]
    graph = FactorGraph.from_arrays(
        cards,
        edges=[f[0] for f in pairs],
        tables=[f[1] for f in pairs],
        weights=[f[2] for f in pairs],
        transposed=[f[3] for f in pairs],
    )
    reference = Reference(cards)
    for f in pairs:
        reference.add(*f)
    labels = data.draw(labelings(cards))
    assert graph.score(labels) == pytest.approx(reference.score(labels), rel=1e-12, abs=1e-9)


def good_arrays():
    graph = FactorGraph([2, 3, 2])
    graph.add_factor([0, 1], np.zeros((2, 3)), weight=2)
    graph.add_factor([0, 2], Potts(0, 1))
    graph.add_factor([1, 0], np.zeros((2, 3)), transposed=True)
    graph.add_factor([0, 1, 2], np.zeros((2, 3, 2)))
    a = graph.to_arrays()
    return replace(a, **{f.name: np.array(getattr(a, f.name)) for f in fields(a) if f.name != "constant"})


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_damaged_arrays_are_refused_or_harmless(data):
    """Any array cut, extended or overwritten: ModelError or a model that evaluates, never a crash."""
    arrays = good_arrays()
    name = data.draw(st.sampled_from([f.name for f in fields(arrays) if f.name != "constant"]))
    array = getattr(arrays, name)
    how = data.draw(st.sampled_from(["cut", "extend", "set", "none"]))
    if how == "cut":
        array = array[: data.draw(st.integers(0, max(0, len(array) - 1)))]
    elif how == "extend":
        array = np.concatenate([array, array[:1]])
    elif how == "none":
        array = None if name in ("unary", "factor_weight", "factor_transposed", "table_kind", "params") else array
    elif len(array):
        array = array.copy()
        low, high = (0, 255) if array.dtype == np.uint8 else (-(2**31), 2**31 - 1)
        array[data.draw(st.integers(0, len(array) - 1))] = data.draw(
            st.one_of(st.integers(low, high), st.integers(0, 5))
        )
    try:
        graph = FactorGraph.from_model_arrays(replace(arrays, **{name: array}))
    except ModelError:
        return
    graph.score(np.zeros(graph.n_variables, np.int32))


def test_bulk_of_higher_arity():
    table = np.arange(8.0).reshape(1, 2, 2, 2)
    graph = FactorGraph.from_arrays([2] * 4, edges=[[0, 1, 2], [3, 2, 1]], tables=table, weights=[2, 0])
    assert graph.score([1, 0, 1, 1]) == 10


def test_handles_are_shared_on_purpose_only():
    graph = FactorGraph([2, 2, 2])
    mine = graph.add_table(np.zeros((2, 2)))
    graph.add_factor([0, 1], mine)
    graph.add_factor([1, 2], np.zeros((2, 2)))
    graph.add_factor([0, 2], mine, weight=-1)
    graph.add_factor([2, 0], mine, transposed=True)
    assert graph.score([1, 0, 1]) == 0
    graph.add_factor([0, 1], np.zeros((2, 2)))  # after a build: still not `mine`
    graph.set_table(mine, [[1, 2], [3, 4]])
    assert graph.factor_scores([1, 0, 1]).tolist() == [3, 0, -4, 4, 0]


def test_empty_and_one_label_models():
    assert FactorGraph([]).score([]) == 0
    graph = FactorGraph([1, 1])
    graph.add_factor([0, 1], [[7.0]])
    assert graph.score([0, 0]) == 7
    assert FactorGraph.from_arrays([2, 2], edges=[], tables=[]).score([0, 1]) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: g.add_factor([0, 9], np.zeros((2, 2))), "factor 0 refers to variable 9"),
        (lambda g: g.add_factor([0, -1], np.zeros((2, 2))), "variable -1"),
        (lambda g: g.add_factor([0, 0], np.zeros((2, 2))), "variable 0 twice"),
        (
            lambda g: g.add_factor([0, 1], np.zeros((3, 2))),
            r"factor 0: variables \[0, 1\] need a table of shape \(2, 3\)",
        ),
        (lambda g: g.add_factor([0, 1], [[0, 0, np.nan], [0, 0, 0]]), r"entry \(0, 2\) is NaN"),
        (lambda g: g.add_factor([0], [0, np.inf]), r"entry \(1,\) is \+inf"),
        (lambda g: g.add_factor([0], "ab"), "not an array of numbers"),
        (lambda g: g.add_factor([0], Potts(0, 1)), "pairwise"),
        (lambda g: g.add_factor([0, 1, 2], Potts(0, 1)), "arity 2"),
        (lambda g: g.add_factor([0, 1], Potts(np.nan, 1)), "finite or -inf"),
        (lambda g: g.add_factor([0, 1], AbsDiff(np.inf)), "finite weight"),
        (lambda g: g.add_factor([0, 1], AbsDiff(1, 0)), "truncation > 0"),
        (lambda g: g.add_factor([0, 1], np.zeros((2, 3)), weight=np.nan), "weight is nan"),
        (lambda g: g.add_factor([0, 1], np.full((2, 3), -np.inf), weight=-1), "negative weight"),
        (lambda g: g.add_factor([0], [1e308, 0], weight=1e10), "overflows"),
        (lambda g: g.add_factor([0, 1], np.full((2, 3), -1e308), weight=1e10) or g.score([0, 0, 0]), "overflows"),
        (lambda g: [g.add_factor([0], [-1e308, 0]) for _ in range(2)], "add up to more than a double holds"),
        (lambda g: g.add_factor([0.5], [0, 0]), "list of integers"),
        (lambda g: g.add_factor(0, [0, 0]), "list of integers"),
        (lambda g: g.score([0, 0]), "3 labels"),
        (lambda g: g.score([0, 0, 2]), "label 2 of variable 2"),
        (lambda g: g.score([0, 0, -1]), "label -1 of variable 2"),
        (lambda g: g.score([0, 0, 2**40]), "out of range"),
        (lambda g: g.score([0.0, 0.0, 0.5]), "integers"),
        (lambda g: g.set_unary(3, [0, 0]), "no variable 3"),
        (lambda g: g.set_unary(0, [0, np.nan]), "NaN"),
        (lambda g: g.set_table(0, [0]), "no dense table 0"),
        (lambda g: FactorGraph([2, 0]), "variable 1 has 0 labels"),
        (lambda g: FactorGraph([2.5]), "integers"),
        (lambda g: FactorGraph([2**31]), "2\\^31"),
        (lambda g: FactorGraph(np.full(20_000, 2**31 - 1)), "do not fit in memory"),
        (
            lambda g: FactorGraph.from_arrays([2, 2], edges=[[0, 2]], tables=[Potts(0, 1)]),
            "factor 0 refers to variable 2",
        ),
        (lambda g: FactorGraph.from_arrays([2, 2], edges=[[0, 0]], tables=[Potts(0, 1)]), "variable 0 twice"),
        (lambda g: FactorGraph.from_arrays([2, 2], edges=[[0, 1]], tables=[np.zeros((2, 3))]), "factor 0: variable 1"),
        (lambda g: FactorGraph.from_arrays([2, 2], edges=[[0, 1]], table_ids=[1], tables=[Potts(0, 1)]), "table 1"),
        (lambda g: FactorGraph.from_arrays([2, 2], edges=[[0, 1]], tables=[Potts(0, 1)] * 3), "table_ids"),
        (lambda g: FactorGraph.from_arrays([2, 2], edges=[[0, 1]]), "need tables"),
        (lambda g: FactorGraph.from_arrays([2, 2], [[0, 0], [0, 0, 0]]), "variable 1 has 2 labels"),
        (lambda g: FactorGraph.from_arrays([2, 2], [0, 0, 0]), "4 in all"),
        (lambda g: FactorGraph.from_arrays([2, 2], [0, 0, 0, np.nan]), "variable 1, entry 1 is NaN"),
    ],
)
def test_bad_input_is_named(call, message):
    graph = FactorGraph([2, 3, 2])
    with pytest.raises(ModelError, match=message):
        call(graph)


def test_huge_factors_are_refused_before_allocation():
    graph = FactorGraph([2**20] * 4)
    with pytest.raises(ModelError, match=str(2**80)):
        graph.add_factor([0, 1, 2, 3], np.zeros(5))
