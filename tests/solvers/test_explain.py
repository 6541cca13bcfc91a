"""explain against enumeration: what contradicts itself, that all of it is needed, and the cheapest way out."""

from __future__ import annotations

from itertools import chain, combinations, product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fginfer
from fginfer import FactorGraph, Potts, explain, relax
from fginfer.core import clock
from fginfer.errors import ModelError, SettingsError

HARD = st.sampled_from([-inf, -inf, 0.0, 1.0])


@st.composite
def graphs(draw: st.DrawFn) -> FactorGraph:
    """Small graphs most of whose states are forbidden."""
    cards = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    graph = FactorGraph(cards)
    for _ in range(draw(st.integers(1, 7))):
        scope = draw(st.permutations(range(len(cards))))[: draw(st.integers(1, min(3, len(cards))))]
        size = int(np.prod([cards[v] for v in scope]))
        graph.add_factor(scope, draw(st.lists(HARD, min_size=size, max_size=size)))
    if draw(st.booleans()):
        graph.add_at_most(1, [(v, 0) for v in range(len(cards))])
    return graph


Things = list[tuple[str, int]]


def allows(graph: FactorGraph, things: Things, evidence: dict[int, int]) -> bool:
    """Whether some labeling breaks none of these."""
    unaries = [graph.unary(v) for v in range(graph.n_variables)]
    factors = graph.factors()
    tables = [np.asarray(graph.table(f.table)) for f in factors]
    for x in product(*(range(c) for c in graph.cards)):
        broken = False
        for kind, at in things:
            if kind == "labels":
                broken |= bool(unaries[at][x[at]] == -inf)
            elif kind == "evidence":
                broken |= x[at] != evidence[at]
            elif kind == "rule":
                broken |= graph.rules[at].score([x[v] for v in graph.rules[at].variables]) == -inf
            else:
                broken |= bool(tables[at][tuple(x[v] for v in factors[at].variables)] == -inf)
        if not broken:
            return True
    return False


def everything(graph: FactorGraph, evidence: dict[int, int]) -> Things:
    return [
        *(("labels", v) for v in range(graph.n_variables)),
        *(("factor", f) for f in range(len(graph.factors()))),
        *(("rule", r) for r in range(len(graph.rules))),
        *(("evidence", v) for v in evidence),
    ]


@settings(max_examples=150, deadline=None)
@given(graphs(), st.data())
def test_what_is_blamed_contradicts_itself_and_all_of_it_is_needed(graph: FactorGraph, data: st.DataObject):
    evidence = {}
    if data.draw(st.booleans()):
        evidence = {0: data.draw(st.integers(0, int(graph.cards[0]) - 1))}
    found = explain(graph, evidence=evidence or None)
    things = everything(graph, evidence)
    assert found.infeasible == (not allows(graph, things, evidence))
    if not found.infeasible:
        assert str(found) == "a labeling is allowed"
        return
    places = {handle: place for place, handle in graph.factor_log.handles().items()}
    blamed = [places[f] for f in found.factors]
    blamed += [("labels", v) for v in found.labels] + [("evidence", v) for v in found.evidence]
    assert found.minimal
    assert len(found.text) == len(blamed)
    assert not allows(graph, blamed, evidence)
    for left_out in blamed:
        assert allows(graph, [t for t in blamed if t != left_out], evidence)
    hard = [t for t in things if not allows(graph, [t], evidence) or t[0] != "labels" or -inf in graph.unary(t[1])]
    fewest = next(
        len(gone)
        for gone in chain.from_iterable(combinations(hard, k) for k in range(len(hard) + 1))
        if allows(graph, [t for t in hard if t not in gone], evidence)
    )
    assert (found.cost, len(found.relaxation), found.cheapest) == (fewest, fewest, True)


def odd_ring() -> tuple[FactorGraph, list[object]]:
    graph = FactorGraph(variables={name: ["red", "blue"] for name in "abcde"})
    differ = Potts(-inf, 0.0)
    ring = [graph.add_factor([i, (i + 1) % 5], differ, name=f"edge {i}") for i in range(5)]
    graph.add_factor(["a", "c"], [[0.0, 3.0], [1.0, 0.0]])
    return graph, ring


def test_handles_names_weights_and_progress():
    graph, ring = odd_ring()
    said: list[str] = []
    found = explain(graph, weights={"edge 2": 0.25, ring[3]: 7}, callback=said.append)
    assert list(found.factors) == ring
    assert found.relaxation == ("factor edge 2 over variable c, variable d",) or "edge 2" in found.relaxation[0]
    assert (found.cost, found.cheapest, found.minimal) == (0.25, True, True)
    assert "edge 4" in str(found)
    assert "5 of them proven to be needed" in said[-1]


def test_the_cutoff_is_told_beside():
    graph = FactorGraph([2])
    graph.add_factor([0], [0.0, 1.0])
    graph.cutoff = 5.0
    found = explain(graph)
    assert (found.infeasible, found.cutoff, found.factors) == (True, 5.0, ())
    assert "cutoff 5" in str(found)


def test_no_time():
    found = explain(odd_ring()[0], time_limit=0.0)
    assert found.infeasible is None
    assert "time" in str(found)


def test_pigeons_in_a_long_list_of_constraints():
    """A needle: of 400 constraints ten contradict each other."""
    graph = FactorGraph([4] * 105)
    differ = Potts(-inf, 0.0)
    needle = [graph.add_factor([i, j], differ) for i, j in combinations(range(5), 2)]
    for i in range(5, 104):
        for j in range(3):
            graph.add_factor(
                [i, i + 1 if j == 0 else 5 + (i * 7 + j) % 90 + (1 if (i * 7 + j) % 90 + 5 == i else 0)], differ
            )
    found = explain(graph)
    assert list(found.factors) == needle
    assert found.cost == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"time_limit": -1}, "time_limit must be"),
        ({"weights": [1]}, "weights must be a dict"),
        ({"weights": {"edge 1": -1}}, "must be a number >= 0"),
        ({"weights": {"edge 9": 1}}, "no factor named"),
        ({"callback": 3}, "callback must be a function"),
        ({"evidence": {"a": "green"}}, "green"),
    ],
)
def test_bad_input(settings: dict[str, object], message: str):
    with pytest.raises((SettingsError, ModelError), match=message):
        explain(odd_ring()[0], **settings)


def test_many_labels_in_order():
    """Variables that have one label each of many: a circle of `less than`, of which every step is needed."""
    labels = np.arange(12)
    less = np.where(labels[:, None] < labels[None, :], 0.0, -inf)
    graph = FactorGraph([12] * 9)
    circle = [graph.add_factor([i, (i + 1) % 5], less) for i in range(5)]
    for i in range(5, 8):
        graph.add_factor([i, i + 1], less)
    found = explain(graph)
    assert found.minimal
    assert list(found.factors) == circle
    assert (found.cheapest, found.cost) == (True, 1.0)


def test_a_way_out_takes_no_longer_than_the_search(monkeypatch: pytest.MonkeyPatch):
    given = []
    monkeypatch.setattr(relax, "solve", lambda graph, **settings: given.append(settings["time_limit"]) or real(graph))
    monkeypatch.setattr(relax, "SECONDS", 1e-9)
    real, before = fginfer.solve, clock.now()
    explain(odd_ring()[0])
    assert 0.0 < given[0] <= clock.now() - before
    explain(odd_ring()[0], time_limit=50.0)
    assert 40.0 < given[1] <= 50.0
