"""max_marginals and sample against enumeration."""

from __future__ import annotations

from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Potts, marginals, max_marginals, sample, solve
from fginfer.errors import ModelError, SettingsError, SolverError
from fginfer.intervals import Intervals
from fginfer.reparametrise import Reparametrised

SCORES = st.sampled_from([-inf, -3.0, -1.0, 0.0, 0.0, 1.0, 2.0, 0.5])


@st.composite
def graphs(draw: st.DrawFn) -> FactorGraph:
    cards = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    graph = FactorGraph(cards)
    for _ in range(draw(st.integers(0, 6))):
        scope = draw(st.permutations(range(len(cards))))[: draw(st.integers(1, min(3, len(cards))))]
        size = int(np.prod([cards[v] for v in scope]))
        graph.add_factor(scope, draw(st.lists(SCORES, min_size=size, max_size=size)))
    return graph


def by_definition(graph: FactorGraph, evidence: dict[int, int] | None = None) -> list[list[float]]:
    best = [[-inf] * int(c) for c in graph.cards]
    for x in product(*(range(c) for c in graph.cards)):
        if all(x[v] == label for v, label in (evidence or {}).items()):
            for v, label in enumerate(x):
                best[v][label] = max(best[v][label], graph.score(x))
    return best


@settings(max_examples=100, deadline=None)
@given(graphs(), st.sampled_from([1 << 30, 600]))
def test_they_are_those_of_enumeration(graph: FactorGraph, memory: float):
    expected = by_definition(graph)
    if max(map(max, expected)) == -inf:
        with pytest.raises(ModelError, match="no labeling is allowed"):
            max_marginals(graph, memory=memory)
        return
    found = max_marginals(graph, memory=memory)
    if not found.exact:
        return
    assert [x.tolist() for x in found.variables] == expected
    assert found.score == found.bound == max(expected[0])


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(0, 9))
def test_intervals_hold_what_enumeration_finds(graph: FactorGraph, seed: int):
    expected = np.concatenate([np.array(x) for x in by_definition(graph)])
    found = Intervals(graph, graph.snapshot(), seed, None)
    found.run()
    assert np.all(found.low <= expected)
    assert np.all(expected <= found.high)
    assert found.score <= expected.max() <= found.bound + 1e-9
    assert not found.closed or np.array_equal(found.low, expected)


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(0, 9))
def test_moved_scores_are_the_same_scores(graph: FactorGraph, seed: int):
    size = sum(int(graph.cards[v]) for f in graph.factors() for v in f.variables)
    moved = Reparametrised(graph, np.random.default_rng(seed).normal(size=size))
    whole = moved.part(range(graph.table_arrays().n_factors))
    expected = np.concatenate([np.array(x) for x in by_definition(graph)])
    for x in product(*(range(c) for c in graph.cards)):
        score = whole.score(np.array(x, np.int32))
        assert score == pytest.approx(graph.score(x), abs=1e-9) or graph.score(x) == -inf == score
    assert np.all(moved.label_bounds() >= expected)
    first = np.zeros(graph.n_variables, np.int32)
    assert moved.part([]).score(first) >= whole.score(first) - 1e-9


def test_wide_models_get_intervals_that_hold_their_labelings():
    rng = np.random.default_rng(2)
    graph = FactorGraph.grid((12, 12), rng.normal(size=(12, 12, 2)), Potts(0.7, 0.0))
    exact = max_marginals(graph)
    found = max_marginals(graph, memory=2000)
    assert exact.exact
    assert not found.exact
    open_labels = 0
    for low, value, high in zip(found.low, exact.variables, found.high, strict=True):
        assert np.all(low <= value + 1e-9)
        assert np.all(value <= high + 1e-9)
        open_labels += np.count_nonzero(high - low > 1e-6)
    assert open_labels < 0.5 * 288  # most of them are exact


def test_evidence_variables_and_names():
    graph = FactorGraph(variables={"a": ["x", "y"], "b": ["x", "y"], "c": 2})
    graph.add_factor(["a", "b"], [[3.0, 1.0], [0.0, 2.0]])
    graph.add_factor(["b", "c"], [[0.0, 1.0], [1.0, 0.5]])
    found = max_marginals(graph, ["c", "a"], evidence={"a": "y"})
    expected = by_definition(graph, {0: 1})
    assert [x.tolist() for x in found.variables] == [expected[2], expected[0]]
    assert found.asked == (2, 0)
    assert found.losses()[0].tolist() == [found.score - s for s in expected[2]]


def test_constraints_count():
    graph = FactorGraph([2] * 4)
    for v in range(4):
        graph.add_factor([v], [0.0, 1.0 + v])
    graph.add_at_most(2, [(v, 1) for v in range(4)])
    found = max_marginals(graph)
    assert [x.tolist() for x in found.variables] == by_definition(graph)
    assert len(max_marginals(graph, evidence={3: 0}).variables) == 4


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 5))
def test_samples_have_the_frequencies_of_the_model(graph: FactorGraph, seed: int):
    every = list(product(*(range(c) for c in graph.cards)))
    scores = np.array([graph.score(x) for x in every])
    if scores.max() == -inf:
        with pytest.raises(ModelError, match="no labeling"):
            sample(graph, 3)
        return
    p = np.exp(scores - np.logaddexp.reduce(scores))
    for memory in (1 << 30, 700):
        drawn = sample(graph, 2000, seed, memory=memory)
        if not drawn.exact:
            continue
        counts = dict.fromkeys(every, 0)
        for row in drawn.labels.tolist():
            counts[tuple(row)] += 1
        n = np.array(list(counts.values()))
        assert np.all(n[p == 0] == 0)
        assert np.all(np.abs(n - 2000 * p) <= 7 * np.sqrt(2000 * p) + 7)  # 7 standard deviations
    assert np.array_equal(drawn.labels, sample(graph, 2000, seed, memory=memory).labels)


def test_blocks_of_a_chain_have_the_marginals_of_the_model(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise SolverError("too wide")

    rng = np.random.default_rng(4)
    graph = FactorGraph([2] * 9)
    for v in range(9):
        graph.add_factor([v], rng.normal(size=2))
        for u in range(v):
            graph.add_factor([u, v], 0.3 * rng.normal(size=(2, 2)))
    monkeypatch.setattr("fginfer.samples.beliefs", refuse)
    drawn = sample(graph, 3000)
    assert not drawn.exact
    expected = np.array([p[1] for p in marginals(graph).variables])
    np.testing.assert_allclose(drawn.labels.mean(axis=0), expected, atol=0.06)


def test_samples_keep_to_evidence():
    graph = FactorGraph([2, 3])
    drawn = sample(graph, 50, evidence={1: 2})
    assert drawn.labels.shape == (50, 2)
    assert set(drawn.labels[:, 1].tolist()) == {2}
    assert sample(graph, 0).labels.shape == (0, 2)


def test_the_best_labels_are_those_of_a_solve():
    rng = np.random.default_rng(7)
    graph = FactorGraph.grid((6, 6), rng.normal(size=(6, 6, 3)), Potts(0.5, 0.0))
    found = max_marginals(graph)
    best = solve(graph)
    assert [int(x.argmax()) for x in found.variables] == best.labels.tolist()
    assert found.score == pytest.approx(best.score, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: max_marginals(g, "a"), "variables must be a list"),
        (lambda g: max_marginals(g, [5]), "there are 2|out of range|no variable"),
        (lambda g: max_marginals(g, memory=-1), "memory must be a positive"),
        (lambda g: max_marginals(g, time_limit=-1), "time_limit must be"),
        (lambda g: max_marginals(5), "takes a FactorGraph"),
        (lambda g: sample(g, -1), "n must be 0 samples or more"),
        (lambda g: sample(g, 1.5), "n must be"),
        (lambda g: sample(g, 1, seed=-1), "seed"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises((SettingsError, ModelError), match=message):
        call(FactorGraph([2, 2]))
