"""Time ends a run, it never steers it: the smallest slices there are end where one long run ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fginfer import FactorGraph, Solver, available_methods


def chain(seed: int) -> FactorGraph:
    rng = np.random.default_rng(seed)
    graph = FactorGraph([3] * 40)
    for i in range(40):
        graph.add_factor([i], rng.normal(size=3) + 2)
        if i:
            graph.add_factor([int(rng.integers(max(0, i - 3), i)), i], rng.normal(size=(3, 3)))
    return graph


def answer(solver: Solver) -> tuple[Any, ...]:
    r = solver.result()
    return r.status, r.score, r.bound, r.iterations, None if r.labels is None else r.labels.tolist()


@pytest.mark.parametrize("method", sorted(set(available_methods()) - {"assignment", "auto"}))
@pytest.mark.parametrize("gap", [0.0, 0.05, 0.15, 0.3, 0.6, 1e9])
def test_slices_of_no_time(method: str, gap: float) -> None:
    for seed in range(6):
        settings: dict[str, Any] = {"gap": gap, "max_iterations": 12, "warm_start": np.full(40, seed % 3)}
        one = Solver(chain(seed), method, **settings)
        one.run()
        many = Solver(chain(seed), method, **settings)
        while many._run_engine(0.0, -1) == "running":
            pass
        many.run()
        assert answer(many) == answer(one)


def test_slices_of_no_time_in_the_middle_of_a_large_factor() -> None:
    rng = np.random.default_rng(0)
    graph = FactorGraph.from_arrays(
        np.full(2, 300), rng.normal(size=(2, 300)), [[0, 1]], tables=rng.normal(size=(1, 300, 300))
    )
    one = Solver(graph, "ad3", max_iterations=6, gap=0.0)
    one.run()
    many = Solver(graph, "ad3", max_iterations=6, gap=0.0)
    pauses = 0
    while many._run_engine(0.0, -1) == "running":
        pauses += 1
    many.run()
    assert answer(many) == answer(one)
    assert np.array_equal(many.result().messages, one.result().messages)
    assert pauses > 3 * 6  # more than there are passes over the factor
