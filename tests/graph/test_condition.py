"""Conditioning on evidence, against the whole graph."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import labelings, models

from fginfer import FactorGraph, ModelError, Potts, solve


@settings(deadline=None)
@given(models(), st.data())
def test_scores_of_expanded_labelings_are_the_same(model, data):
    cards, factors = model
    graph = FactorGraph(cards)
    for scope, table, weight, transposed in factors:
        graph.add_factor(scope, table, weight=weight, transposed=transposed)
    whole = data.draw(labelings(cards))
    fixed = data.draw(st.sets(st.integers(0, len(cards) - 1)))
    given_ = graph.condition({i: whole[i] for i in fixed})
    assert given_.graph.n_variables == len(cards) - len(fixed)
    assert given_.graph.n_factors == graph.n_factors
    assert given_.expand(given_.reduce(whole)).tolist() == whole
    other = data.draw(labelings(given_.graph.cards))
    assert given_.graph.score(other) == pytest.approx(graph.score(given_.expand(other)), rel=1e-12, abs=1e-9)


def test_sharing_survives():
    table = np.arange(8.0).reshape(2, 2, 2)
    graph = FactorGraph([2] * 41)
    for i in range(0, 39):
        graph.add_factor([40, i, i + 1], table, weight=1 + i)
        graph.add_factor([i, i + 1], Potts(0, -1))
    assert graph.to_arrays().n_tables == 2
    arrays = graph.condition({40: 1}).graph.to_arrays()
    assert arrays.n_tables == 2
    assert sorted(arrays.values.tolist()) == [4.0, 5.0, 6.0, 7.0]
    assert graph.condition({40: 1, 3: 0}).graph.to_arrays().n_tables == 2
    assert graph.condition({}).graph.to_arrays().n_tables == 2


def test_evidence_against_a_hard_constraint_is_infeasible():
    graph = FactorGraph([2, 2, 2])
    graph.add_factor([0, 1], [[0, -np.inf], [-np.inf, 0]])
    graph.add_factor([1, 2], np.zeros((2, 2)))
    given_ = graph.condition({0: 0, 1: 1})
    assert given_.graph.constant == -np.inf
    assert solve(given_.graph, "icm").status == "infeasible"


def test_fixing_everything_leaves_the_constant():
    graph = FactorGraph([2, 3])
    graph.add_factor([0, 1], np.arange(6.0))
    given_ = graph.condition({0: 1, 1: 2})
    assert given_.graph.score([]) == 5
    result = given_.expand_result(solve(given_.graph, "icm"))
    assert (result.status, result.score, result.labels.tolist()) == ("optimal", 5.0, [1, 2])


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({7: 0}, "variable 7; there are 2"),
        ({-1: 0}, "variable -1"),
        ({1: 3}, "label 3, out of range 0..2"),
        ({0: "a"}, "labels of variable 0 have no names"),
    ],
)
def test_bad_evidence(evidence, message):
    with pytest.raises(ModelError, match=message):
        FactorGraph([2, 3]).condition(evidence)


def test_what_rounding_takes_is_not_called_optimal():
    """Evidence adds a penalty that swallows other scores: bounds are raised, and the score is that of the old graph."""
    graph = FactorGraph([2, 2])
    graph.add_factor([0], [0.0, 1.0])
    graph.add_factor([0, 1], [[-1e20, 0.0], [-1e20, 0.0]])
    result = solve(graph, "bnb", evidence={1: 0})
    best = max(graph.score([a, 0]) for a in range(2))
    assert result.score == graph.score(result.labels)
    assert result.bound >= best
    tenths = FactorGraph([2, 2])
    tenths.add_factor([0], [0.1, 0.2])
    tenths.add_factor([0, 1], [[0.2, 0.0], [0.7, 0.3]])
    result = solve(tenths, "bnb", evidence={1: 0})
    assert result.is_optimal
    assert result.score == tenths.score([1, 0])
    assert result.trace[-1].score == result.score
    assert result.bound >= Fraction(0.2) + Fraction(0.7)


def test_a_cutoff_is_about_scores_of_the_whole_graph() -> None:
    """Folded scores are rounded: what is above the cutoff there may not be so in the old graph."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        graph = FactorGraph([3] * 5)
        for i in range(5):
            graph.add_factor([i], rng.normal(size=3))
            for j in range(i):
                graph.add_factor([i, j], rng.normal(size=(3, 3)))
        given = {0: 1, 1: 2, 2: 0}
        labels = [[1, 2, 0, a, b] for a in range(3) for b in range(3)]
        best = max(map(graph.score, labels))
        at_it = solve(graph, "trws", evidence=given, cutoff=best, max_iterations=30)
        assert at_it.labels is None
        below = solve(graph, evidence=given, cutoff=best - 1e-9)
        assert (below.status, below.score) == ("optimal", best)


def test_where_evidence_leaves_no_choice_rounding_is_no_gap() -> None:
    """0.3 - 0.2 - 0.1 is -5.6e-17, of which no digit is certain: how small that is, the whole graph tells."""
    graph = FactorGraph([2, 2, 2])
    graph.add_factor([0, 1], [[0.3, 0.0], [0.0, 0.5]])
    graph.add_factor([1, 2], [[-0.2, 0.0], [0.0, -0.4]])
    graph.add_factor([0, 2], [[-0.1, 0.0], [0.0, -0.6]])
    for known in ({0: 0, 1: 0, 2: 0}, {0: 1, 1: 1, 2: 1}):
        result = solve(graph, evidence=known)
        assert result.is_optimal
        assert result.gap is not None
        assert result.gap <= 1e-12
        assert result.unit == pytest.approx(0.1)
    assert solve(graph, evidence={0: 0, 1: 1, 2: 0}, cutoff=0.0).status == "infeasible"
