"""describe() and the networkx views."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import labelings, models

from fginfer import AbsDiff, FactorGraph, ModelError, Potts


def ring(n, table, labels=2):
    edges = [[i, (i + 1) % n] for i in range(n)]
    return FactorGraph.from_arrays([labels] * n, edges=edges, tables=[table])


def test_sizes_and_histograms():
    graph = FactorGraph([2, 3, 3, 1, 5])
    graph.add_factor([], 1.0)
    graph.add_factor([0], [0.0, -np.inf])
    graph.add_factor([0, 1], np.zeros((2, 3)))
    graph.add_factor([0, 2], np.zeros((2, 3)))
    graph.add_factor([1, 2], Potts(-np.inf, 0))
    graph.add_factor([0, 1, 2], np.zeros((2, 3, 3)))
    d = graph.describe()
    assert (d.variables, d.factors, d.interactions, d.tables, d.implicit_tables) == (5, 6, 4, 3, 1)
    assert d.arities == {2: 3, 3: 1}
    assert d.labels == {1: 1, 2: 1, 3: 2, 5: 1}
    assert (d.components, d.forest, d.max_labels, d.max_arity) == (3, False, 5, 3)
    assert (d.forbidden_labels, d.constraints) == (1, 1)
    assert (d.binary, d.submodular) == (False, False)
    assert d.table_entries == 14 + 6 + 2 + 18
    assert d.memory > 8 * d.table_entries - 16
    assert d.as_dict()["variables"] == 5


def test_forests_and_cycles():
    chain = FactorGraph.from_arrays([2] * 4, edges=[[0, 1], [1, 2], [2, 3]], tables=[Potts(1, 0)])
    assert chain.describe().forest
    chain.add_factor([1, 0], np.eye(2))  # the same pair again is no cycle
    assert chain.describe().forest
    chain.add_factor([0, 1, 2], np.zeros((2, 2, 2)))  # but this is one
    assert not chain.describe().forest
    assert not ring(5, Potts(1, 0)).describe().forest
    empty = FactorGraph([]).describe()
    assert (empty.components, empty.forest, empty.max_labels) == (0, True, 0)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (Potts(1, 0), True),
        (Potts(0, 1), False),
        (Potts(0, -np.inf), True),
        (Potts(-np.inf, 0), False),
        (AbsDiff(1.0), True),
        (np.array([[1.0, 0.0], [0.5, 0.0]]), True),
        (np.array([[0.0, 1.0], [0.5, 0.0]]), False),
        (np.array([[-np.inf, 1.0], [-np.inf, 0.0]]), True),
    ],
)
def test_submodular(table, expected):
    d = ring(4, table).describe()
    assert (d.binary, d.submodular) == (True, expected)


def test_submodular_is_unknown_for_higher_orders():
    graph = FactorGraph([2, 2, 2])
    graph.add_factor([0, 1, 2], np.zeros(8))
    assert graph.describe().submodular is None


@settings(deadline=None)
@given(models(), st.data())
def test_networkx_round_trip(model, data):
    cards, factors = model
    graph = FactorGraph(cards)
    for scope, table, weight, transposed in factors:
        graph.add_factor(scope, table, weight=weight, transposed=transposed)
    again = FactorGraph.from_networkx(graph.to_networkx())
    labels = data.draw(labelings(cards))
    assert again.score(labels) == pytest.approx(graph.score(labels), rel=1e-12, abs=1e-9)
    markov = graph.to_networkx("markov")
    assert len(markov) == len(cards)
    assert nx.number_connected_components(markov) == graph.describe().components
    for f, factor in enumerate(graph.factors()):
        assert f in markov.edges[factor.variables[:2]]["factors"]


def test_from_networkx_orientation():
    table = np.arange(6.0).reshape(2, 3)
    plain = nx.Graph()
    plain.add_node("a", labels=2)
    plain.add_node("b", unary=[0.0, 0.0, 10.0])
    plain.add_edge("b", "a", table=table, weight=2)  # the first axis is a's: it comes first
    assert FactorGraph.from_networkx(plain).score([1, 2]) == 20.0
    directed = nx.MultiDiGraph()
    directed.add_node("a", labels=2)
    directed.add_node("b", labels=3)
    directed.add_edge("b", "a", table=table.T)
    directed.add_edge("a", "b", table=table)
    assert FactorGraph.from_networkx(directed).score([1, 2]) == 10.0


@pytest.mark.parametrize("kind", ["bipartite", "markov"])
def test_networkx_graphs_come_back(kind):
    rng = np.random.default_rng(0)
    g = FactorGraph([2, 3, 2, 2])
    g.add_factor([], 1.5)
    g.add_factor([1], rng.normal(size=3))
    g.add_factor([1, 0], rng.normal(size=(3, 2)))
    g.add_factor([3, 1, 2], rng.normal(size=(2, 3, 2)))
    g.add_factor([2, 3], Potts(0, -1), weight=2.0)
    g.add_factor([2, 3], rng.normal(size=(2, 2)))
    back = FactorGraph.from_networkx(g.to_networkx(kind))
    for x in np.ndindex(2, 3, 2, 2):
        assert back.score(list(x)) == g.score(list(x))


def test_from_networkx_names_what_is_wrong():
    g = nx.path_graph(2)
    with pytest.raises(ModelError, match="node 0 has neither"):
        FactorGraph.from_networkx(g)
    g.graph["labels"] = 2
    with pytest.raises(ModelError, match="edge 0 - 1 has no 'table'"):
        FactorGraph.from_networkx(g)
    g.edges[0, 1]["table"] = np.zeros((3, 3))
    with pytest.raises(ModelError, match=r"edge 0 - 1: factor 0: variables \[0, 1\]"):
        FactorGraph.from_networkx(g)
    with pytest.raises(ModelError, match="kind"):
        FactorGraph([2]).to_networkx("tree")
