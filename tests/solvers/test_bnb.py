"""Branch and bound: equal to brute force, bounds that hold at any moment, slices that change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Solver, solve
from tests.exact.models import Shape, brute_force, random_arrays

SHAPES = (
    Shape(),
    Shape(forbidden=0.2, integers=True),
    Shape(variables=7, labels=4, factors=14, arity=2, forbidden=0.1),
    Shape(variables=9, factors=25, arity=2, binary=True, max_states=512),
)


def make(seed: int) -> FactorGraph:
    return FactorGraph.from_model_arrays(random_arrays(np.random.default_rng(seed), SHAPES[seed % len(SHAPES)]))


@given(st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_equals_brute_force(seed: int) -> None:
    graph = make(seed)
    best = brute_force(graph)
    result = solve(graph, method="bnb", gap=0.0)
    if best == -np.inf:
        assert result.status == "infeasible"
        assert result.labels is None
        return
    assert result.status == "optimal"
    assert result.score == pytest.approx(best, abs=1e-9, rel=1e-9)
    assert result.bound is not None
    assert result.bound >= best
    assert result.labels is not None
    assert graph.score(result.labels) == result.score


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_stops_anywhere_with_a_valid_bound_and_the_same_end(seed: int) -> None:
    graph = make(seed)
    best = brute_force(graph)
    whole = solve(graph, method="bnb")
    solver = Solver(graph, method="bnb")
    while solver.run(iterations=1) == "running":
        now = solver.result()
        assert now.bound is None or now.bound >= best
        assert now.score is None or now.score <= best + 1e-9 * max(1.0, abs(best))
        assert now.status == "iteration_limit"
    end = solver.result()
    assert end.status == whole.status
    assert end.iterations == whole.iterations
    assert end.score == whole.score
    assert (end.labels is None) == (whole.labels is None)
    assert whole.labels is None or np.array_equal(end.labels, whole.labels)


def test_an_offered_optimum_only_needs_a_proof() -> None:
    graph = make(6)
    known = solve(graph, method="bnb")
    assert known.labels is not None
    solver = Solver(graph, method="bnb")
    solver.offer(known.labels)
    assert solver.run() == "optimal"
    assert solver.result().score == known.score
    assert solver.result().iterations <= known.iterations
