"""Scores that are subnormal beside a constant that a variable of one label takes off again: of all that scores are
judged by, nothing is left but themselves."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import inf, isfinite

import numpy as np
import pytest

from fginfer import FactorGraph, available_methods, solve


def made(seed: int) -> tuple[FactorGraph, Fraction]:
    """A cycle of three variables, and the best score in exact arithmetic (products as they are rounded)."""
    rng = np.random.default_rng(seed)
    constant, tiny = float(rng.choice([1.0, 2.0**-120])), float(rng.choice([1e-310, 5e-322]))
    graph = FactorGraph([1, 2, 2, 2])
    graph.add_factor([], constant)
    graph.add_factor([0], [-constant])
    terms = []
    for i in (1, 2, 3):
        unary = rng.integers(-5, 6, 2) * tiny
        graph.add_factor([i], unary)
        terms.append(((i,), unary))
    for scope in ((1, 2), (2, 3), (1, 3)):
        weight = float(rng.choice([1.0, 1e-100, 1e-200]))
        table = rng.integers(-7, 8, (2, 2)) * (tiny / weight)
        graph.add_factor(scope, table, weight=weight)
        terms.append((scope, weight * table))
    totals = [
        sum(Fraction(float(t[tuple(x[v] for v in scope)])) for scope, t in terms)
        for x in product([0], [0, 1], [0, 1], [0, 1])
    ]
    return graph, Fraction(max(totals))


@pytest.mark.parametrize("path", ["short", "parts"])
@pytest.mark.parametrize("method", sorted(set(available_methods()) - {"assignment"}))  # which takes pairs alone
def test_nothing_false_is_said(method: str, path: str) -> None:
    """gdmm chose a rho that nothing can be divided by and said infeasible, bnb took nodes for single labelings, edac
    counted no error of products, and auto took parts that have no unit for what solvers take."""
    options: list[dict[str, object]] = [{}]
    if method == "auto":
        rules = {"tiny_states": 0, "quick_work": 0, "quick_passes": 0} if path == "parts" else {}
        options = [{"rules": rules}, {"rules": rules, "presolve": False}]
    if method == "gdmm":
        options += [{"sweep": "off", "search": "off", "access": "dense"}, {"formulation": "tables"}]
    for seed in range(24):
        graph, best = made(seed)
        for more in options:
            result = solve(graph, method, max_iterations=30, gap=0.0, **more)  # type: ignore[arg-type]
            assert result.status != "infeasible"
            assert result.bound is not None
            assert result.bound == inf or Fraction(result.bound) >= best
            if result.is_optimal:
                assert result.score is not None
                assert isfinite(result.score)
                assert Fraction(result.score) == best


def test_products_that_are_subnormal_lose_more_than_their_last_digit() -> None:
    """edac said optimal of 8.9999999999999e-310: costs are products of differences, scores differences of products."""
    graph = FactorGraph([1, 2, 2])
    graph.add_factor([], 1e-30)
    graph.add_factor([0], [-1e-30])
    graph.add_factor([1], np.array([5, -5]) * 1e-310)
    graph.add_factor([2], np.array([-1, 2]) * 1e-310)
    graph.add_factor([1, 2], np.array([[5, 2], [3, 4]]) * (1e-310 / 0.3), weight=0.3)
    best = max(graph.score([0, a, b]) for a in range(2) for b in range(2))
    result = solve(graph, "edac", gap=0.0)
    assert result.bound is not None
    assert result.bound >= best
    assert not result.is_optimal or result.score == best
