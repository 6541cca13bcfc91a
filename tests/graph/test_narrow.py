"""Models of the labels that promise most: their labelings are labelings of the whole, with the same scores."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import fginfer
from fginfer import AbsDiff, FactorGraph, ModelError
from fginfer.portfolio.members.search import NarrowSearch

CARDS = 5, 2, 7, 3


def graph_of(seed: int) -> FactorGraph:
    """Tables of two and three variables, one of them shared and turned, an implicit one, hard constraints."""
    rng = np.random.default_rng(seed)
    graph = FactorGraph(CARDS)
    for i, card in enumerate(CARDS):
        graph.add_factor([i], rng.normal(size=card))
    pair = rng.normal(size=(5, 7))
    pair[rng.random(pair.shape) < 0.1] = -np.inf
    graph.add_factor([0, 2], pair)
    graph.add_factor([2, 0], pair.T)
    graph.add_factor([0, 1, 3], rng.normal(size=(5, 2, 3)))
    graph.add_factor([2, 3], AbsDiff(0.5))
    return graph


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("most", [2, 3, 6, 9])
def test_scores_are_those_of_the_whole(seed: int, most: int):
    model = graph_of(seed).snapshot()
    labels = np.random.default_rng(seed).integers(0, CARDS).astype(np.int32)
    few, kept = model.narrow(labels, most)
    assert few.cards.tolist() == [min(most, card) for card in CARDS]
    lists = [row[row >= 0] for row in kept]
    for label, row in zip(labels, lists, strict=True):
        assert label in row
        assert sorted(set(row.tolist())) == row.tolist()
    for state in product(*(range(card) for card in few.cards)):
        whole = np.array([row[a] for row, a in zip(lists, state, strict=True)], np.int32)
        assert few.score(np.array(state, np.int32)) == pytest.approx(model.score(whole), rel=1e-14)


def test_half_are_the_best_beside_the_labeling_and_half_by_themselves():
    unary, table = np.array([0.0, 1, 2, 3, 4, 5]), np.zeros((6, 2))
    table[:2, 1] = 10, 20
    graph = FactorGraph.from_arrays([6, 2], [unary, np.zeros(2)], [[0, 1]], tables=[table])
    _, kept = graph.snapshot().narrow(np.array([2, 1], np.int32), 5)
    assert kept[0].tolist() == [0, 1, 2, 4, 5]
    assert kept[1].tolist() == [0, 1, -1, -1, -1]


def test_wrong_calls():
    model = graph_of(0).snapshot()
    with pytest.raises(ModelError, match="two labels"):
        model.narrow(np.zeros(4, np.int32), 1)
    with pytest.raises(ModelError, match="label 2 of variable 1"):
        model.narrow(np.array([0, 2, 0, 0], np.int32), 3)


@pytest.mark.parametrize("threads", [1, 2])
def test_auto_takes_what_a_search_among_few_labels_finds(monkeypatch: pytest.MonkeyPatch, threads: int):
    """A model that is huge by these sizes: what is said of it is true, and the same whatever the threads."""
    rules = {"long_pass": 1e4, "large_table": 1e3, "narrow_entries": 5e3}
    joined = []
    offer = NarrowSearch.offer
    monkeypatch.setattr(NarrowSearch, "offer", lambda self, labels: (joined.append(1), offer(self, labels))[1])
    rng = np.random.default_rng(0)
    n, k = 10, 120
    edges = np.array([(i, j) for i in range(n) for j in range(i) if rng.random() < 0.5])
    graph = FactorGraph.from_arrays([k] * n, rng.normal(size=(n, k)), edges, tables=[rng.random((k, k))])
    results = [fginfer.solve(graph, "auto", threads=t, max_iterations=12, gap=0.0, rules=rules) for t in (1, threads)]
    assert joined
    for r in results:
        assert r.labels is not None
        assert graph.score(r.labels) == r.score <= r.bound
        assert (r.score, r.bound, r.status) == (results[0].score, results[0].bound, results[0].status)
