"""Branch and bound; tests/solvers/test_proofs.py compares it with brute force."""

from __future__ import annotations

import numpy as np
import pytest

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


def test_an_offered_optimum_only_needs_a_proof() -> None:
    graph = make(6)
    known = solve(graph, method="bnb")
    assert known.labels is not None
    solver = Solver(graph, method="bnb")
    solver.offer(known.labels)
    assert solver.run() == "optimal"
    assert solver.result().score == known.score
    assert solver.result().iterations <= known.iterations


@pytest.mark.parametrize("unit", [1.0, 0.3, 1e-4, 250.0])
def test_scores_in_whole_steps_have_bounds_in_whole_steps(unit: float) -> None:
    rng = np.random.default_rng(int(unit))
    graph = FactorGraph([2] * 12)
    for _ in range(70):
        table = np.zeros((2, 2))
        table[tuple(rng.integers(0, 2, 2))] = np.log(np.exp(-unit * rng.integers(1, 3)))  # not quite a multiple
        graph.add_factor(rng.choice(12, 2, replace=False), table)
    best = brute_force(graph)
    solver = Solver(graph, method="bnb", gap=0.0)
    while solver.run(iterations=1) == "running":
        bound = solver.result().bound
        assert bound is not None
        assert bound >= best
        assert bound / unit == pytest.approx(round(bound / unit), abs=1e-4)
    assert solver.result().score == pytest.approx(best)


def test_steps_of_different_size_are_told_apart() -> None:
    """Half a step, and steps so fine that rounding hides them, must not be taken for whole ones."""
    for fine in (0.5, 1e-3, 1e-7, 1e-10):
        graph = FactorGraph([2, 2, 2])
        graph.add_factor([0, 1], [[0.0, 3.0], [3.0, 0.0]])
        graph.add_factor([1, 2], [[2.0, 3.0], [0.0, 3.0 + fine]])
        graph.add_factor([0, 2], [[0.0, 0.0], [0.0, 0.0]])
        solver = Solver(graph, method="bnb", gap=0.0)
        solver.offer([1, 0, 1])  # the second best
        solver.run()
        assert solver.result().score == pytest.approx(6.0 + fine, rel=1e-9)
