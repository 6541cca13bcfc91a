"""Every change of a graph happens whole or not at all, and changes no factor that it is not about."""

from __future__ import annotations

import pickle
from copy import deepcopy
from fractions import Fraction
from itertools import product
from math import inf, nan
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import AbsDiff, FactorGraph, ModelError, Potts, SqDiff, TableRef, solve

CARDS = [2, 3, 2]


def everything(graph: FactorGraph) -> tuple[Any, ...]:
    """All that a graph says about itself, bit for bit."""
    arrays = vars(graph.to_arrays()).items()
    held = {k: v.tobytes() if isinstance(v, np.ndarray) else v for k, v in arrays}
    scores = [graph.score(x) for x in product(*map(range, graph.cards.tolist()))]
    return held, graph.cutoff, graph.n_factors, graph.factors(), scores, graph._roles.copy(), graph.names


def fresh(built: bool) -> tuple[FactorGraph, TableRef]:
    graph = FactorGraph(CARDS)
    mine = graph.add_table(np.arange(6.0).reshape(2, 3))
    graph.add_factor([0], [1.0, 2.0])
    graph.add_factor([0, 1], mine)
    graph.add_factor([2, 1], mine, weight=-2)
    graph.add_factor([0, 2], Potts(0, -1))
    graph.cutoff = -50
    if built:
        graph.score([0, 0, 0])
    return graph, mine


OTHER = FactorGraph(CARDS).add_table(np.zeros((2, 3)))
ZEROS = np.zeros((2, 3))
FULL = np.full((2, 3), -1e308)
REFUSED: dict[str, Any] = {
    "factor: variables no list": lambda g, t: g.add_factor(0, ZEROS),
    "factor: variables of words": lambda g, t: g.add_factor(["a", "b"], ZEROS),
    "factor: variable twice": lambda g, t: g.add_factor([0, 0], ZEROS),
    "factor: variable beyond": lambda g, t: g.add_factor([0, 3], ZEROS),
    "factor: variable fractional": lambda g, t: g.add_factor([0, 1.0], ZEROS),
    "factor: shape": lambda g, t: g.add_factor([1, 0], ZEROS),
    "factor: NaN at the end": lambda g, t: g.add_factor([0, 1], [0, 0, 0, 0, 0, nan]),
    "factor: +inf": lambda g, t: g.add_factor([0, 1], [0, 0, 0, 0, 0, inf]),
    "factor: words": lambda g, t: g.add_factor([0], ["1", "2"]),
    "factor: complex": lambda g, t: g.add_factor([0], [1j, 2]),
    "factor: ragged": lambda g, t: g.add_factor([0, 1], [[1, 2], [3]]),
    "factor: nothing": lambda g, t: g.add_factor([0], None),
    "factor: implicit of three": lambda g, t: g.add_factor([0, 1, 2], Potts(0, 1)),
    "factor: implicit of three, no weight": lambda g, t: g.add_factor([0, 1, 2], Potts(0, 1), weight=0),
    "factor: implicit of words": lambda g, t: g.add_factor([0, 1], Potts("a", 1)),
    "factor: implicit NaN": lambda g, t: g.add_factor([0, 1], SqDiff(nan)),
    "factor: handle of another graph": lambda g, t: g.add_factor([0, 1], OTHER),
    "factor: handle made by hand": lambda g, t: g.add_factor([0, 1], TableRef(t.index)),
    "factor: handle, wrong scope": lambda g, t: g.add_factor([1, 0], t),
    "factor: handle, three variables": lambda g, t: g.add_factor([0, 1, 2], t, weight=-1),
    "factor: weight NaN": lambda g, t: g.add_factor([0, 1], ZEROS, weight=nan),
    "factor: weight of words": lambda g, t: g.add_factor([0, 1], ZEROS, weight="2"),
    "factor: weight None": lambda g, t: g.add_factor([0, 1], ZEROS, weight=None),
    "factor: -inf weighed negatively": lambda g, t: g.add_factor([0, 1], np.full((2, 3), -inf), weight=-1),
    "factor: weight overflows": lambda g, t: g.add_factor([0, 1], FULL, weight=1e10),
    "factor: difference overflows": lambda g, t: g.add_factor([0, 1], SqDiff(1e308), weight=1e10),
    "factor: transposed by a word": lambda g, t: g.add_factor([0, 1], ZEROS, transposed="no"),
    "factor: transposed, three": lambda g, t: g.add_factor([0, 1, 2], np.zeros((2, 3, 2)), transposed=True),
    "table: NaN": lambda g, t: g.add_table([[0, nan]]),
    "table: flat": lambda g, t: g.add_table([0, 1]),
    "table: words": lambda g, t: g.add_table("ab"),
    "table: ragged": lambda g, t: g.add_table([[1, 2], [3]]),
    "table: implicit": lambda g, t: g.add_table(AbsDiff(1, 0)),
    "unary: no variable": lambda g, t: g.set_unary(3, [0, 0]),
    "unary: variable -1": lambda g, t: g.set_unary(-1, [0, 0]),
    "unary: variable a word": lambda g, t: g.set_unary("a", [0, 0]),
    "unary: variable fractional": lambda g, t: g.set_unary(0.5, [0, 0]),
    "unary: NaN": lambda g, t: g.set_unary(0, [0, nan]),
    "unary: length": lambda g, t: g.set_unary(0, [0, 0, 0]),
    "unary: words": lambda g, t: g.set_unary(0, "ab"),
    "unaries: NaN at the end": lambda g, t: g.set_unaries([0, 0, 0, 0, 0, 0, nan]),
    "unaries: length": lambda g, t: g.set_unaries([0] * 6),
    "unaries: words": lambda g, t: g.set_unaries("ab"),
    "unaries: nothing": lambda g, t: g.set_unaries(None),
    "unaries: rows of the wrong variables": lambda g, t: g.set_unaries([[0, 0, 0], [0, 0], [0, 0]]),
    "set_table: no such": lambda g, t: g.set_table(99, [0]),
    "set_table: -1": lambda g, t: g.set_table(-1, [0]),
    "set_table: a word": lambda g, t: g.set_table("t", ZEROS),
    "set_table: fractional": lambda g, t: g.set_table(0.5, ZEROS),
    "set_table: handle of another graph": lambda g, t: g.set_table(OTHER, ZEROS),
    "set_table: -inf beside a negative weight": lambda g, t: g.set_table(t, [[0, 0, 0], [0, 0, -inf]]),
    "set_table: -inf into the negative": lambda g, t: g.set_table(g._roles.negatives[0], [0, 0, 0, 0, 0, -inf]),
    "set_table: NaN": lambda g, t: g.set_table(t, [0, 0, 0, 0, 0, nan]),
    "set_table: shape": lambda g, t: g.set_table(t, np.zeros((3, 2))),
    "set_table: weighted it overflows": lambda g, t: g.set_table(t, FULL * 1.7),
    "set_table: sums overflow": lambda g, t: g.set_table(t, FULL * 0.7),
    "set_table: implicit": lambda g, t: g.set_table(g.factors()[2].table, ZEROS),
    "cutoff: NaN": lambda g, t: setattr(g, "cutoff", nan),
    "cutoff: +inf": lambda g, t: setattr(g, "cutoff", inf),
    "cutoff: a word": lambda g, t: setattr(g, "cutoff", "1"),
    "cutoff: None": lambda g, t: setattr(g, "cutoff", None),
    "name: labels twice": lambda g, t: g.name(0, "a", ["x", "x"]),
    "name: labels too few": lambda g, t: g.name(1, "a", ["x", "y"]),
    "name: empty": lambda g, t: g.name(0, "", ["x", "y"]),
    "read: table of another graph": lambda g, t: g.table(OTHER),
    "read: no such table": lambda g, t: g.table(99),
    "read: no such variable": lambda g, t: g.unary("a"),
}


@pytest.mark.parametrize("built", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_changes_nothing(name: str, built: bool) -> None:
    graph, mine = fresh(built)
    before = everything(graph.copy())
    with pytest.raises(ModelError):
        REFUSED[name](graph, mine)
    assert everything(graph) == before
    graph.add_factor([0, 1], mine)  # and it can go on
    assert graph.n_factors == before[2] + 1
    graph.score([0, 0, 0])


@pytest.mark.parametrize("built", [False, True])
def test_sums_that_overflow_are_refused_when_they_are_added(built: bool) -> None:
    for change in (
        lambda g: g.add_factor([0, 1], FULL),
        lambda g: g.set_unary(1, [-1e308, 0, 0]),
        lambda g: g.add_factor([1], [-1e308, 0, 0]),
        lambda g: g.add_factor([], -1e308),
        lambda g: g.set_unaries([-1e308] + [0] * 6),
    ):
        graph, mine = fresh(False)
        graph.add_factor([0, 1], FULL)
        if built:
            graph.score([0, 0, 0])
        before = everything(graph.copy())
        with pytest.raises(ModelError, match="overflow"):
            change(graph)
        assert everything(graph) == before
        graph.add_factor([0, 1], mine)
        graph.score([0, 0, 0])


def test_products_that_underflow_are_refused_when_they_are_added() -> None:
    graph = FactorGraph([2, 2])
    with pytest.raises(ModelError, match="underflow"):
        graph.add_factor([0, 1], np.full((2, 2), 3e-308), weight=1e-10)
    graph.add_factor([0, 1], np.ones((2, 2)))
    assert graph.score([0, 0]) == 1


BAD_BULK: dict[str, Any] = {
    "cards": dict(cards=[2, 0, 2]),
    "unaries: NaN": dict(unaries=[[0, 0], [0, 0, 0], [0, nan]]),
    "unaries: words": dict(unaries=["ab", "cd", "ef"]),
    "unaries: transposed": dict(cards=[2] * 3, unaries=np.zeros((2, 3)), edges=None, tables=None),
    "edges: fractional": dict(edges=[[0, 1.5]]),
    "edges: ragged": dict(edges=[[0, 1], [1]]),
    "tables: words": dict(tables=["ab"]),
    "tables: a number": dict(tables=3),
    "tables: NaN": dict(tables=[np.full((2, 3), nan)]),
    "weights: words": dict(weights=["a"]),
    "weights: NaN": dict(weights=[nan]),
    "weights: too many": dict(weights=[1, 2]),
    "transposed: words": dict(transposed=["no"]),
    "transposed: too many": dict(transposed=[True, False]),
    "constant: a word": dict(constant="1"),
    "constant: NaN": dict(constant=nan),
    "ids: fractional": dict(table_ids=[0.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_BULK)
def test_bad_bulk_input_is_a_model_error(name: str) -> None:
    good: dict[str, Any] = dict(cards=CARDS, unaries=[[0, 0], [0, 0, 0], [0, 0]], edges=[[0, 1]], tables=[ZEROS])
    FactorGraph.from_arrays(**good)
    with pytest.raises(ModelError):
        FactorGraph.from_arrays(**{**good, **BAD_BULK[name]})


def test_an_anonymous_array_joins_no_table_that_set_table_reaches() -> None:
    table = np.array([[1.0, 2.0], [3.0, 4.0]])
    graph = FactorGraph.from_arrays([2, 2, 2], edges=[[0, 1]], tables=[table], weights=[-1])
    graph.add_factor([1, 2], -table)  # equal to the hidden negative
    graph.add_factor([0, 2], table)  # equal to the one with an id
    graph.set_table(0, np.full((2, 2), 10.0))
    assert graph.factor_scores([0, 0, 0]).tolist() == [-10, -1, 1]
    graph.add_factor([1, 2], np.full((2, 2), 10.0))
    graph.add_factor([1, 2], np.full((2, 2), -10.0))
    graph.set_table(0, np.zeros((2, 2)))
    assert graph.factor_scores([0, 0, 0]).tolist() == [0, -1, 1, 10, -10]


def test_the_number_of_a_factor_changes_all_that_list_it() -> None:
    graph, table = FactorGraph([2, 2, 2]), np.ones((2, 2))
    graph.add_factor([0, 1], table)
    graph.add_factor([1, 2], table)
    numbers = [f.table for f in graph.factors()]
    assert numbers[0] == numbers[1]
    graph.set_table(numbers[0], 5 * table)
    graph.add_factor([0, 2], 5 * table)  # comes later: it does not join what was changed by its number
    graph.set_table(numbers[0], 7 * table)
    assert graph.factor_scores([0, 0, 0]).tolist() == [7, 7, 5]


def test_the_negative_of_a_table_follows_it_both_ways() -> None:
    graph, mine = fresh(True)
    negative = graph.factors()[1].table
    assert negative != mine.index
    graph.set_table(negative, np.full((2, 3), -3.0))
    assert np.array_equal(graph.table(mine), np.full((2, 3), 3.0))
    assert graph.factor_scores([0, 0, 0]).tolist()[:2] == [3, -6]


@pytest.mark.parametrize("how", ["removed", "no weight", "positive"])
def test_a_table_without_factors_of_negative_weight_may_forbid(how: str) -> None:
    graph = FactorGraph([2, 2])
    table = graph.add_table([[1.0, 2.0], [3.0, 4.0]])
    tie = graph.add_factor([0, 1], table, weight=-1.0)
    forbidding = [[0.0, -inf], [5.0, 0.0]]
    with pytest.raises(ModelError, match="negative weight"):
        graph.set_table(table, forbidding)
    graph.push()
    if how == "removed":
        graph.remove_factor(tie)
    else:
        graph.set_weight(tie, 0.0 if how == "no weight" else 2.0)
    graph.set_table(table, forbidding)
    factor = {"removed": 0.0, "no weight": 0.0, "positive": 2.0}[how]
    assert [graph.score([1, 0]), graph.score([0, 0])] == [5 * factor, 0]
    with pytest.raises(ModelError, match="negative weight"):
        graph.add_factor([0, 1], table, weight=-1.0)
    graph.set_table(table, [[0.0, 1.0], [2.0, 3.0]])  # finite again: negative weights may come back
    graph.add_factor([0, 1], table, weight=-3.0)
    assert graph.score([1, 1]) == 3 * factor - 9
    graph.pop()
    assert graph.score([1, 1]) == -4
    graph.set_table(table, [[0.0, 1.0], [2.0, 7.0]])
    assert graph.score([1, 1]) == -7


def test_copies_and_pickles_take_the_handles_of_their_graph() -> None:
    graph, mine = fresh(True)
    again_mine = pickle.loads(pickle.dumps(mine))
    assert again_mine == mine
    for other in (graph.copy(), pickle.loads(pickle.dumps(graph)), deepcopy(graph)):
        other.set_table(again_mine, np.full((2, 3), 9.0))
        assert other.factor_scores([0, 0, 0])[0] == 9
        assert graph.factor_scores([0, 0, 0])[0] == 0
        later = graph.add_table(np.zeros((2, 3)))  # made after the copy: it is the graph's alone
        other.add_table(np.ones((2, 3)))
        with pytest.raises(ModelError, match="handle"):
            other.add_factor([0, 1], later)
    left = graph.condition({2: 0}).graph
    with pytest.raises(ModelError, match="handle"):
        left.set_table(mine, ZEROS)


def test_unaries_in_the_wrong_shape_name_both() -> None:
    graph = FactorGraph([3] * 6)
    graph.set_unaries(np.arange(18.0).reshape(6, 3))
    assert graph.unary(1).tolist() == [3, 4, 5]
    graph.set_unaries([[1.0, 2.0, 3.0]] * 6)
    with pytest.raises(ModelError, match=r"\(18,\) or \(6, 3\), not \(3, 6\)"):
        graph.set_unaries(np.zeros((3, 6)))
    assert graph.unary(5).tolist() == [1, 2, 3]


def test_rewards_have_handles_too() -> None:
    graph = FactorGraph([3, 3])
    far = graph.add_table(AbsDiff(-2.0))
    assert graph.table(far) == AbsDiff(-2.0)
    graph.add_factor([0, 1], far)
    graph.add_factor([0, 1], far, weight=-1)
    assert graph.factor_scores([0, 2]).tolist() == [4, -4]
    bulk = FactorGraph.from_arrays([3, 3], edges=[[0, 1]], tables=[SqDiff(-1.0)])
    assert bulk.table(0) == SqDiff(-1.0)


def test_networkx_keeps_the_cutoff() -> None:
    graph, _ = fresh(True)
    graph.cutoff = 1e6
    for kind in ("bipartite", "markov"):
        back = FactorGraph.from_networkx(graph.to_networkx(kind))
        assert back.cutoff == 1e6
        assert solve(back).status == "infeasible"
    assert FactorGraph.from_networkx(networkx.Graph()).cutoff == -inf


# -- sequences of changes, beside a dict of fractions -----------------------------------------------------------------


class Model:
    """What the graph should be: factors as (scope, table name or scores, weight); tables by name; all in fractions."""

    def __init__(self) -> None:
        self.unary: dict[int, list[Fraction]] = {i: [Fraction(0)] * k for i, k in enumerate(CARDS)}
        self.tables: dict[TableRef, list[Any]] = {}
        self.factors: list[tuple[tuple[int, ...], Any, Fraction]] = []

    def score(self, x: tuple[int, ...]) -> Any:
        total: Any = sum((self.unary[i][a] for i, a in enumerate(x)), Fraction(0))
        for scope, table, weight in self.factors:
            at = 0
            for i in scope:
                at = at * CARDS[i] + x[i]
            entry = (self.tables[table] if isinstance(table, TableRef) else table)[at]
            if weight != 0:
                total = -inf if entry == -inf or total == -inf else total + weight * entry
        return total


SCORES = st.integers(-3, 3).map(float)
PAIRS = ((0, 1), (2, 1))


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_sequences_with_refusals_in_between(data: Any) -> None:
    graph, model = FactorGraph(CARDS), Model()
    for _ in range(data.draw(st.integers(1, 12))):
        step = data.draw(st.sampled_from(["table", "named", "anonymous", "unary", "set", "set", "refused", "copy"]))
        scores = data.draw(st.lists(SCORES, min_size=6, max_size=6))
        weight = data.draw(st.sampled_from([1.0, -1.0, 2.0, 0.0]))
        scope = data.draw(st.sampled_from(PAIRS))
        refs = list(model.tables)
        exact = [Fraction(s) for s in scores]
        if step == "table":
            model.tables[graph.add_table(np.reshape(scores, (2, 3)))] = exact
        elif step == "named" and refs:
            ref = data.draw(st.sampled_from(refs))
            graph.add_factor(scope, ref, weight=weight)
            model.factors.append((scope, ref, Fraction(weight)))
        elif step == "anonymous":
            same = data.draw(st.sampled_from([None, *refs]))
            values = exact if same is None else model.tables[same]
            graph.add_factor(scope, np.reshape([float(v) for v in values], (2, 3)), weight=weight)
            model.factors.append((scope, list(values), Fraction(weight)))
        elif step == "unary":
            i = data.draw(st.integers(0, 2))
            graph.set_unary(i, scores[: CARDS[i]])
            model.unary[i] = exact[: CARDS[i]]
        elif step == "set" and refs:
            ref = data.draw(st.sampled_from(refs))
            graph.set_table(ref, scores)
            model.tables[ref] = exact
        elif step == "refused":
            name = data.draw(st.sampled_from(sorted(n for n in REFUSED if "implicit" not in n and "negative" not in n)))
            bad = REFUSED[name]
            if refs and "overflow" not in name:
                with pytest.raises(ModelError):
                    bad(graph, refs[0])
        elif step == "copy":
            graph = data.draw(st.sampled_from([graph.copy, lambda g=graph: pickle.loads(pickle.dumps(g))]))()
        if data.draw(st.booleans()):
            for x in product(*map(range, CARDS)):
                assert graph.score(x) == model.score(x)
    for x in product(*map(range, CARDS)):
        assert graph.score(x) == model.score(x)


def test_named_graphs_refuse_what_others_refuse() -> None:
    graph = FactorGraph(variables={"a": 2, "b": 3})
    for bad in (
        lambda: graph.add_factor(0, ZEROS),
        lambda: graph.add_factor(["a", "c"], ZEROS),
        lambda: graph.set_unary(np.array([0, 1]), [0, 0]),
        lambda: graph.set_unary(True, [0, 0, 0]),
        lambda: graph.name("b", "a", ["x", "y", "z"]),
        lambda: FactorGraph(variables={"a": np.array([2, 3])}),
    ):
        with pytest.raises(ModelError):
            bad()
    assert graph.names is not None
    assert graph.names.labels(1) is None
    assert graph.n_factors == 0
