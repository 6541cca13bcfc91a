"""Cutoffs: what is said where one has made penalties hard constraints, and where it is out of all range."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest

from fginfer import FactorGraph, available_methods, solve

# A graph without triangles that three colours do not suffice for (Groetzsch).
RING = [(i, (i + 1) % 5) for i in range(5)]
EDGES = RING + [(5 + i, (i + 1) % 5) for i in range(5)] + [(5 + i, (i - 1) % 5) for i in range(5)]
EDGES += [(10, 5 + i) for i in range(5)]

TO_PARTS = {"tiny_states": 0, "quick_work": 0, "quick_passes": 0}  # through presolve and parts


def colouring(others: int, penalty: float) -> FactorGraph:
    """Three colours for that graph, and a part of `others` variables that has nothing to do with it."""
    rng = np.random.default_rng(3)
    graph = FactorGraph([3] * (11 + others))
    for i, j in EDGES:
        table = -0.01 * rng.random((3, 3))
        np.fill_diagonal(table, -penalty)
        graph.add_factor([i, j], table)
    for i in range(11, 11 + others):
        graph.add_factor([i], rng.normal(size=3))
        for j in range(11, i):
            graph.add_factor([i, j], rng.normal(size=(3, 3)))
    return graph


@pytest.mark.parametrize("others", [0, 8])
@pytest.mark.parametrize("few", [2000, -1])  # factors of a part that is eliminated at once
def test_bounds_where_a_cutoff_has_made_penalties_hard(others: int, few: int) -> None:
    """Nothing is above the cutoff, but there are labelings: a bound below them would be false."""
    rules = {**TO_PARTS, "few_factors": few}
    graph = colouring(others, 1e9)
    found = solve(graph, "search", max_iterations=20).score
    assert found is not None
    assert found < -1e8
    result = solve(graph, cutoff=-1000.0, rules=rules)
    assert result.status == "infeasible"
    assert result.bound is not None
    assert result.bound >= found
    assert solve(colouring(others, inf), rules=rules).bound == -inf


@pytest.mark.parametrize("method", sorted(set(available_methods()) - {"assignment"}))  # which takes pairs alone
def test_cutoffs_out_of_all_range(method: str) -> None:
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], 1e-300 * np.array([[1.0, 2.0], [3.0, 0.0]]))
    above = solve(graph, method, cutoff=1e308, max_iterations=20)
    assert (above.status, above.labels) == ("infeasible", None)
    assert above.bound is not None
    assert above.bound >= 3e-300
    assert solve(graph, method, cutoff=-1e308, max_iterations=20).is_optimal


def whole(seed: int, largest: float) -> FactorGraph:
    """Two parts, one of which is a cycle, with costs of some units beside one of `largest`."""
    rng = np.random.default_rng(seed)
    graph = FactorGraph([3] * 9)
    graph.add_factor([0], -largest - rng.integers(0, 5, 3))
    for i, j in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (5, 6), (6, 7), (7, 8), (8, 5)]:
        graph.add_factor([i, j], 0.0 - rng.integers(0, 6, (3, 3)))
    return graph


@pytest.mark.parametrize("method", ["auto", "bnb", "edac"])
@pytest.mark.parametrize("path", ["short", "presolve", "members"])
def test_whole_costs_are_compared_exactly(method: str, path: str) -> None:
    """Beside 10^13 a cost of 1 is below 1e-12: a total just below the bound was called infeasible."""
    rules: dict[str, float] = {} if path == "short" else dict(TO_PARTS)
    if path == "members":
        rules["few_factors"] = -1
    options: dict[str, Any] = {"rules": rules} if method == "auto" else {}
    for seed in range(3):
        small, large = whole(seed, 0.0), whole(seed, 1e13)
        best = solve(small).score
        assert best is not None
        for k in (0, 900):
            scaled = large if k == 0 else _scaled(large, k)
            at = solve(scaled, method, cutoff=float(np.ldexp(best - 1e13, k)), **options)
            assert (at.status, at.labels) == ("infeasible", None)
            above = solve(scaled, method, cutoff=float(np.ldexp(best - 1e13 - 1, k)), **options)
            assert (above.status, above.score) == ("optimal", np.ldexp(best - 1e13, k))


def _scaled(graph: FactorGraph, k: int) -> FactorGraph:
    out = FactorGraph(graph.cards)
    for i in range(graph.n_variables):
        out.add_factor([i], np.ldexp(graph.unary(i), k))
    for f in graph.factors():
        out.add_factor(f.variables, np.ldexp(graph.table(f.table), k))
    return out


@pytest.mark.parametrize("method", ["auto", "bnb"])
def test_scores_that_are_rounded_may_be_at_the_cutoff(method: str) -> None:
    """The sum itself is a little above the double that it is rounded to, which is what is compared."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph = FactorGraph([3] * 5)
        for i in range(5):
            graph.add_factor([i], rng.normal(size=3))
            graph.add_factor([i, (i + 1) % 5], rng.normal(size=(3, 3)))
        best = solve(graph, method).score
        assert best is not None
        assert solve(graph, method, cutoff=best).status == "infeasible"
        assert solve(graph, method, cutoff=np.nextafter(best, -inf)).score == best


def test_largest_whole_score_up_to_a_bound() -> None:
    graph = FactorGraph([2, 2])
    graph.add_factor([0], [1e13, 1e13 + 4])
    graph.add_factor([0, 1], [[0.0, 2.0], [-2.0, 8.0]])
    floor = graph.model.floor
    assert floor(1e13 + 11.5) == floor(1e13 + 10) == 1e13 + 10
    assert floor(1e13 + 9.998046875) == 1e13 + 8
    assert floor(inf) == inf
    graph.add_factor([1], [0.0, 0.1])  # no step that doubles hold
    assert graph.model.floor(1e13 + 11.5) == 1e13 + 11.5


@pytest.mark.parametrize("method", ["bnb", "edac", "auto"])
def test_a_bound_is_not_below_an_optimum_that_no_double_has(method: str) -> None:
    """The best total, in whole steps, is rounded to the very cutoff: what is said of it is not that it is there."""
    step, constant = float.fromhex("0x1.5145b2ed5ec9bp+155"), float.fromhex("-0x1.f9e88c640e2e8p+156")
    g = FactorGraph([4, 4])
    g.add_factor([], constant)
    g.add_factor([0], [0.0, -np.inf, -np.inf, -step])
    g.add_factor([1], [-np.inf, 0.0, -step, -step])
    g.add_factor([0, 1], 2 * step * (np.eye(4) - 1))
    best = Fraction(constant) - 2 * Fraction(step)  # 0 and 1; or 3 and 3
    assert Fraction(float(best)) != best
    r = solve(g, method, cutoff=float(best), gap=0.0)
    assert r.labels is None
    assert r.bound is not None
    assert Fraction(r.bound) >= best
