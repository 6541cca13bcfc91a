"""Methods that search to a proof: equal to brute force, bounds that hold at any moment, slices that change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import Solver, solve
from tests.exact.models import brute_force, check_optimum, proof_graph

METHODS = pytest.mark.parametrize("method", ["bnb", "edac", "dolls"])


@METHODS
@given(seed=st.integers(0, 10**6))
@settings(max_examples=200, deadline=None)
def test_equals_brute_force(method: str, seed: int) -> None:
    graph = proof_graph(seed)
    best = brute_force(graph)
    result = solve(graph, method=method, gap=0.0)
    check_optimum(graph, result, best)


@METHODS
@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_stops_anywhere_with_a_valid_bound_and_the_same_end(method: str, seed: int) -> None:
    graph = proof_graph(seed)
    best = brute_force(graph)
    whole = solve(graph, method=method)
    solver = Solver(graph, method=method)
    explored = 0.0
    while solver.run(iterations=1) == "running":
        now = solver.result()
        assert explored <= now.statistics["explored"] <= 1.0
        explored = now.statistics["explored"]
        assert now.bound is None or now.bound >= best
        assert now.score is None or now.score <= best + 1e-9 * max(1.0, abs(best))
        assert now.status == "iteration_limit"
    end = solver.result()
    assert (end.status, end.iterations, end.score) == (whole.status, whole.iterations, whole.score)
    assert (end.labels is None) == (whole.labels is None)
    assert whole.labels is None or np.array_equal(end.labels, whole.labels)
