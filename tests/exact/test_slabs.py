"""Slabs: valid bounds, optimal where the copies agree, the same whatever the slices."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fginfer
from fginfer import FactorGraph
from fginfer.core.exact import Elimination
from fginfer.errors import SolverError

from .models import SHAPES, brute_force, close, random_graph

seeds = st.integers(0, 2**31)


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_bound_and_labels_against_brute_force(name: str, seed: int) -> None:
    graph = random_graph(seed, SHAPES[name])
    best = brute_force(graph)
    result = fginfer.solve(graph, method="slabs", max_iterations=40, gap=0.0)
    if best == -inf:
        assert result.score is None
        return
    assert result.bound is not None
    assert result.bound >= best - 1e-9 * max(1.0, abs(best))
    assert result.score is None or result.score <= best + 1e-9 * max(1.0, abs(best))
    if result.status == "optimal":
        assert result.score is not None
        assert close(result.score, best)


def spin_glass(side: int, seed: int) -> FactorGraph:
    rng = np.random.default_rng(seed)
    graph = FactorGraph([2] * (side * side))
    for i in range(side * side):
        graph.add_factor([i], rng.normal(size=2) * 0.2)
        for j in ([i + 1] if (i + 1) % side else []) + ([i + side] if i + side < side * side else []):
            x = rng.normal()
            graph.add_factor([i, j], [[x, -x], [-x, x]])
    return graph


def test_much_tighter_than_the_local_relaxation_on_a_spin_glass() -> None:
    graph = spin_glass(12, 0)
    exact = Elimination(graph.model)
    assert exact.run()
    optimum = exact.value or 0.0
    slabs = fginfer.solve(graph, method="slabs", max_iterations=30)
    local = fginfer.solve(graph, method="trws", max_iterations=50)
    assert slabs.bound is not None
    assert local.bound is not None
    assert optimum - 1e-9 <= slabs.bound
    assert slabs.bound - optimum < 0.2 * (local.bound - optimum)


def test_slices_do_not_change_the_answer() -> None:
    graph = spin_glass(40, 1)
    whole = fginfer.solve(graph, method="slabs", max_iterations=6)
    sliced = fginfer.solve(graph, method="slabs", max_iterations=6, time_limit=3600.0, threads=2)
    assert whole.bound == sliced.bound
    assert whole.score == sliced.score
    np.testing.assert_array_equal(whole.labels, sliced.labels)


def test_dense_models_are_refused() -> None:
    rng = np.random.default_rng(2)
    graph = FactorGraph([4] * 40)
    for i in range(40):
        for j in range(i):
            graph.add_factor([i, j], rng.normal(size=(4, 4)))
    with pytest.raises(SolverError, match="dense"):
        fginfer.solve(graph, method="slabs", max_iterations=1)
