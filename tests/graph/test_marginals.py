"""log Z and marginals of factor graphs against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Potts, marginals
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
