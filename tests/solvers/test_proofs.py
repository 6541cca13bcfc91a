"""Methods that search to a proof: equal to brute force, bounds that hold at any moment, slices that change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Solver, solve
from tests.exact.models import Shape, brute_force, random_arrays

SHAPES = (
    Shape(),
    Shape(integers=True),
    Shape(forbidden=0.2, integers=True),
    Shape(variables=7, labels=4, factors=14, arity=2, forbidden=0.1),
    Shape(variables=6, labels=4, factors=9, arity=3, integers=True, forbidden=0.3),
    Shape(variables=9, factors=25, arity=2, binary=True, max_states=512),
    Shape(variables=9, factors=25, arity=2, binary=True, max_states=512, integers=True),
)
METHODS = pytest.mark.parametrize("method", ["bnb", "edac"])


def make(seed: int) -> FactorGraph:
    return FactorGraph.from_model_arrays(random_arrays(np.random.default_rng(seed), SHAPES[seed % len(SHAPES)]))


@METHODS
@given(seed=st.integers(0, 10**6))
@settings(max_examples=200, deadline=None)
def test_equals_brute_force(method: str, seed: int) -> None:
    graph = make(seed)
    best = brute_force(graph)
    result = solve(graph, method=method, gap=0.0)
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


@METHODS
@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_stops_anywhere_with_a_valid_bound_and_the_same_end(method: str, seed: int) -> None:
    graph = make(seed)
    best = brute_force(graph)
    whole = solve(graph, method=method)
    solver = Solver(graph, method=method)
    while solver.run(iterations=1) == "running":
        now = solver.result()
        assert now.bound is None or now.bound >= best
        assert now.score is None or now.score <= best + 1e-9 * max(1.0, abs(best))
        assert now.status == "iteration_limit"
    end = solver.result()
    assert (end.status, end.iterations, end.score) == (whole.status, whole.iterations, whole.score)
    assert (end.labels is None) == (whole.labels is None)
    assert whole.labels is None or np.array_equal(end.labels, whole.labels)
