"""log Z and marginals of factor graphs against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Potts, marginals
from fginfer.errors import ModelError, SettingsError, SolverError
from fginfer.forest_marginals import forest_marginals


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
@given(seed=st.integers(0, 10**6), forbidden=st.booleans())
def test_forests_by_the_oracle_are_as_by_elimination(seed, forbidden):
    """Trees with several factors on an edge, both ways round, and variables of different sizes."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 5, rng.integers(2, 8))
    factors = [((v,), 2 * rng.standard_normal(k)) for v, k in enumerate(cards)]
    for v in range(1, len(cards)):
        for _ in range(rng.integers(0, 3)):
            scope = (v, v // 2) if rng.random() < 0.5 else (v // 2, v)
            table = 3 * rng.standard_normal(cards[list(scope)])
            if forbidden:
                table[rng.random(table.shape) < 0.2] = -np.inf
            factors.append((scope, table))
    found = forest_marginals(factors, cards, 1e9)
    if found is None:  # the padded tables would be too large, or every variable has one label
        assert cards.max() == 1 or sum(t.size for s, t in factors if len(s) == 2) < cards.max() ** 2 * len(cards)
        return
    graph = FactorGraph(cards)
    for scope, table in factors:
        graph.add_factor(list(scope), table)
    triple = [0, 1, len(cards) - 1] if len(cards) > 2 else None
    if triple is None:
        return
    graph.add_factor(triple, np.zeros(cards[triple]))  # says nothing, but is no pair: buckets
    if found[0] == -np.inf:
        with pytest.raises(ModelError, match="no labeling"):
            marginals(graph)
        return
    other = marginals(graph)
    assert found[0] == pytest.approx(other.log_z, rel=1e-11, abs=1e-11)
    for a, b in zip(found[1], other.variables, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)


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


def test_evidence_that_there_cannot_be():
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], [[0.0, -np.inf], [0.0, 0.0]])
    with pytest.raises(ModelError, match="no labeling"):
        marginals(graph, evidence={0: 0, 1: 1})
    for evidence in ({2: 0}, {0: 2}, [0]):
        with pytest.raises(ModelError):
            marginals(graph, evidence=evidence)
    assert marginals(graph, evidence={}).log_z == marginals(graph).log_z
