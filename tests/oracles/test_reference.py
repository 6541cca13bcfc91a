"""The algorithm as printed, in Python: its bound is a bound, it reaches the relaxation, and the core agrees."""

from __future__ import annotations

import numpy as np
import pytest

import fginfer
from fginfer.reference import ReferenceGdmm


def model(seed: int, cycle: bool) -> fginfer.FactorGraph:
    rng = np.random.default_rng(seed)
    edges = [(0, 1), (1, 2), (2, 3)] + [(0, 3)] * cycle
    graph = fginfer.FactorGraph([5, 4, 5, 4])
    for i in range(4):
        graph.set_unary(i, rng.normal(size=graph.cards[i]))
    for i, j in edges:
        table = rng.normal(size=(graph.cards[i], graph.cards[j]))
        table[0, 0] = -np.inf
        graph.add_factor([i, j], table)
    return graph


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cycle", [False, True])
@pytest.mark.parametrize("eta", [None, 0.3])
def test_algorithm_8_as_printed(seed: int, cycle: bool, eta: float | None) -> None:
    graph = model(seed, cycle)
    optimum = fginfer.solve(graph).score
    method, bounds = ReferenceGdmm(graph, rho=0.7, eta=eta), []
    for _ in range(400):
        method.iterate()
        bounds.append(method.bound())
    assert min(bounds) >= optimum - 1e-9
    core = fginfer.solve(graph, "gdmm", access="sorted", sweep="off", gap=0.0, max_iterations=3000)
    assert bounds[-1] == pytest.approx(core.bound, abs=2e-3)
    if not cycle:
        assert graph.score(method.labels()) == pytest.approx(optimum)
    assert all(len(f.y) <= 4 for f in method.factors)  # active sets stay small


def test_implicit_and_shared_tables() -> None:
    graph = fginfer.FactorGraph([4, 4, 4])
    graph.set_unary(0, [0.0, 0.0, 2.0, 0.0])
    graph.set_unary(2, [0.5, 0.0, 0.0, 0.0])
    graph.add_factor([0, 1], fginfer.Potts(1.0, 0.0), weight=2.0)
    graph.add_factor([1, 2], fginfer.AbsDiff(0.25, 2.0))
    method = ReferenceGdmm(graph, rho=0.5)
    for _ in range(300):
        method.iterate()
    assert method.bound() == pytest.approx(fginfer.solve(graph).score, abs=1e-3)
    graph.add_factor([0, 1, 2], np.zeros((4, 4, 4)))
    with pytest.raises(ValueError, match="pairwise"):
        ReferenceGdmm(graph)
