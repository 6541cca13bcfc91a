"""log Z and marginals of factor graphs against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Potts, marginals, write
from fginfer.core.beliefs import Beliefs
from fginfer.errors import ModelError, SettingsError, SolverError


def random_graph(seed, forbidden):
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 4, rng.integers(1, 6))
    graph = FactorGraph(cards)
    for _ in range(rng.integers(0, 7)):
        scope = rng.permutation(len(cards))[: rng.integers(1, min(3, len(cards)) + 1)]
        table = 3 * rng.standard_normal(cards[scope])
        if forbidden:
            table[rng.random(table.shape) < 0.2] = -np.inf
        graph.add_factor(scope, table)
    return graph


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), forbidden=st.booleans())
def test_they_are_those_of_enumeration(seed, forbidden):
    graph = random_graph(seed, forbidden)
    answers = np.array(list(itertools.product(*(range(k) for k in graph.cards))))
    scores = np.array([graph.score(a) for a in answers])
    if scores.max() == -np.inf:
        with pytest.raises(ModelError, match="no labeling"):
            marginals(graph)
        return
    found = marginals(graph)
    log_z = np.logaddexp.reduce(scores)
    assert found.log_z == pytest.approx(log_z, rel=1e-12, abs=1e-12)
    p = np.exp(scores - log_z)
    for v, own in enumerate(found.variables):
        np.testing.assert_allclose(own, [p[answers[:, v] == y].sum() for y in range(graph.cards[v])], atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), forbidden=st.booleans(), memory=st.sampled_from([60, 200, 500]))
def test_little_memory_holds_variables_and_changes_nothing(seed, forbidden, memory):
    graph = random_graph(seed, forbidden)
    try:
        found = marginals(graph)
    except ModelError:
        return
    least = 40 * int(graph.cards.sum()) + 60  # what unary tables and their sums take
    again = marginals(graph, memory=max(memory, least))
    assert again.log_z == pytest.approx(found.log_z, rel=1e-11, abs=1e-11)
    for a, b in zip(again.variables, found.variables, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)


def test_variables_are_held_where_memory_is_short():
    rng = np.random.default_rng(0)
    graph = FactorGraph.grid((5, 5), rng.normal(size=(5, 5, 3)), Potts(0.5, 0.0))
    held = Beliefs(graph.snapshot(), False, memory=8000)
    assert len(held.cut) >= 2
    assert held.runs == 3.0 ** len(held.cut)
    found, again = marginals(graph), marginals(graph, memory=8000)
    assert again.log_z == pytest.approx(found.log_z, rel=1e-12)
    np.testing.assert_allclose(np.concatenate(again.variables), np.concatenate(found.variables), atol=1e-12)


def test_forbidden_states_far_below_the_best_still_count():
    """exp(-1000) of the best is nothing, unless what is better turns out to be forbidden."""
    graph = FactorGraph([2, 2, 2])
    graph.add_factor([0, 1], [[0.0, -1000.0], [-1000.0, -1000.5]])
    graph.add_factor([1, 2], [[0.0, 0.0], [-2000.0, -1999.0]])
    graph.add_factor([2, 0], [[-5000.0, -np.inf], [-np.inf, -np.inf]])
    graph.add_factor([1], [-np.inf, 0.0])
    found = marginals(graph)
    assert found.log_z == pytest.approx(-1000 - 2000 - 5000, rel=1e-14)
    assert [p.tolist() for p in found.variables] == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]


def test_large_forests_are_summed():
    n = 30_000
    graph = FactorGraph.from_arrays(
        [2] * n, np.zeros((n, 2)), np.stack([np.arange(n - 1), np.arange(1, n)], 1), tables=[Potts(1.0, 0.0)]
    )
    found = marginals(graph)
    assert found.log_z == pytest.approx(np.log(2) + (n - 1) * np.log(np.e + 1), rel=1e-12)


def test_large_scores_and_long_chains():
    graph = FactorGraph([2] * 500)
    for i in range(499):
        graph.add_factor([i, i + 1], Potts(700.0, -700.0))
    graph.add_factor([0], [1.0, 0.0])
    found = marginals(graph)
    assert found.log_z == pytest.approx(700 * 499 + np.log(np.e + 1), rel=1e-12)
    np.testing.assert_allclose(found.variables[-1], np.array([np.e, 1]) / (np.e + 1), rtol=1e-9)


def test_what_does_not_fit_is_refused_before_it_is_tried():
    graph = FactorGraph([10] * 12)
    for i, j in itertools.combinations(range(12), 2):
        graph.add_factor([i, j], Potts(1.0, 0.0))
    with pytest.raises(SolverError, match="limit"):
        marginals(graph, memory=1e6)
    with pytest.raises(SettingsError):
        marginals(graph, memory=0)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), everything=st.booleans())
def test_with_evidence_they_are_those_of_the_labelings_that_agree_with_it(seed, everything):
    graph, rng = random_graph(seed, False), np.random.default_rng(seed)
    seen = range(graph.n_variables) if everything else rng.permutation(graph.n_variables)[:2].tolist()
    evidence = {v: int(rng.integers(graph.cards[v])) for v in seen}
    answers = np.array(list(itertools.product(*(range(k) for k in graph.cards))))
    answers = answers[(answers[:, list(evidence)] == list(evidence.values())).all(1)]
    scores = np.array([graph.score(a) for a in answers])
    log_z = np.logaddexp.reduce(scores)
    found = marginals(graph, evidence=evidence)
    assert found.log_z == pytest.approx(log_z, abs=1e-9)
    assert found.log_z <= marginals(graph).log_z + 1e-9
    for v, card in enumerate(graph.cards):
        wanted = [np.exp(scores[answers[:, v] == label] - log_z).sum() for label in range(card)]
        np.testing.assert_allclose(found.variables[v], wanted, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), memory=st.sampled_from([200, 1 << 30]))
def test_constraints_count_like_factors(seed, memory):
    rng = np.random.default_rng(seed)
    graph = FactorGraph(rng.integers(1, 4, rng.integers(2, 6)))
    graph.add_factor([0, 1], rng.standard_normal(graph.cards[:2]))
    literals = [(int(v), int(rng.integers(graph.cards[v])), bool(rng.integers(2))) for v in rng.integers(0, 2, 4)]
    everyone = [(v, int(rng.integers(graph.cards[v]))) for v in range(graph.n_variables)]
    graph.add_cardinality(everyone, rng.standard_normal(len(everyone) + 1))
    graph.add_linear(literals, [1.0, 2.0, -1.0, 0.5], -1.0, 2.0, penalty=0.75, per_unit=bool(rng.integers(2)))
    graph.add_at_least(1, literals)
    answers = np.array(list(itertools.product(*(range(k) for k in graph.cards))))
    scores = np.array([graph.score(a) for a in answers])
    if scores.max() == -np.inf:
        with pytest.raises(ModelError, match="no labeling"):
            marginals(graph, memory)
        return
    found, log_z = marginals(graph, memory), np.logaddexp.reduce(scores)
    assert found.log_z == pytest.approx(log_z, abs=1e-9)
    assert [len(p) for p in found.variables] == graph.cards.tolist()
    for v, own in enumerate(found.variables):
        np.testing.assert_allclose(
            own, [np.exp(scores[answers[:, v] == y] - log_z).sum() for y in range(graph.cards[v])], atol=1e-9
        )


def test_a_constraint_that_is_a_choice_of_the_best_is_refused():
    graph = FactorGraph([2] * 3)
    graph.add_sparse([0, 1, 2], [[0, 0, 1], [1, 1, 1]], [1.0, 2.0], default=0.0)
    with pytest.raises(SolverError, match="no tables whose sums"):
        marginals(graph)


def test_a_file_and_names(tmp_path):
    graph = FactorGraph(variables={"rain": ["no", "yes"], "wet": 2})
    graph.add_factor(["rain", "wet"], [[1.0, 0.0], [0.5, 2.0]])
    write(graph, tmp_path / "m.npz")
    found = marginals(tmp_path / "m.npz", evidence={"rain": "yes"})
    assert found.variables[1].tolist() == marginals(graph, evidence={0: 1}).variables[1].tolist()


def test_evidence_that_there_cannot_be():
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], [[0.0, -np.inf], [0.0, 0.0]])
    with pytest.raises(ModelError, match="no labeling"):
        marginals(graph, evidence={0: 0, 1: 1})
    for evidence in ({2: 0}, {0: 2}, [0]):
        with pytest.raises(ModelError):
            marginals(graph, evidence=evidence)
    assert marginals(graph, evidence={}).log_z == marginals(graph).log_z
