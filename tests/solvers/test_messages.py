"""Messages from outside: whatever they are, what is said with them is true, or they are refused."""

from __future__ import annotations

import dataclasses
from itertools import product
from math import inf, nan

import numpy as np
import pytest

from fginfer import FactorGraph, Result, SettingsError, Solver, available_methods, solve

MESSAGE_PASSING = ("gdmm", "trws", "mplp", "ad3", "psdd", "bnb")  # methods that take messages


def triangles(scale: float, seed: int = 0) -> FactorGraph:
    rng = np.random.default_rng(seed)
    graph = FactorGraph([3] * 4)
    for i in range(4):
        graph.add_factor([i], scale * rng.normal(size=3))
    for i in range(4):
        for j in range(i):
            graph.add_factor([i, j], graph.add_table(scale * rng.normal(size=(3, 3))))
    return graph


def optimum(graph: FactorGraph) -> float:
    return max(graph.score(labels) for labels in product(range(3), repeat=4))


def with_messages(graph: FactorGraph, messages: np.ndarray) -> Result:
    return dataclasses.replace(solve(graph, "trws", max_iterations=1), messages=messages)


@pytest.mark.parametrize("method", MESSAGE_PASSING)
@pytest.mark.parametrize("size", [1.0, 1e20, 1e100, 1e149, 1e180, 1e250, 1e300])
def test_huge_messages(method: str, size: float) -> None:
    """gdmm took labels with multipliers above 2^599 for forbidden ones, and the model for infeasible."""
    graph = triangles(1.0)
    best = optimum(graph)
    for seed in range(6):
        messages = size * np.random.default_rng(seed).normal(size=6 * 2 * 3)
        solver = Solver(graph, method, max_iterations=20, gap=0.0)
        if method == "gdmm" and size > 1e150:
            with pytest.raises(SettingsError, match=r"message entry .* is too large"):
                solver.warm_start(with_messages(graph, messages))
        else:
            solver.warm_start(with_messages(graph, messages))
        solver.run()
        result = solver.result()
        assert result.status != "infeasible"
        assert result.bound is None or result.bound >= best
        assert not result.is_optimal or result.score == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("method", MESSAGE_PASSING)
@pytest.mark.parametrize("value", [inf, -inf, nan])
def test_messages_that_are_no_numbers_are_refused(method: str, value: float) -> None:
    graph = triangles(1.0)
    with pytest.raises(SettingsError, match="message entry 5 is not finite"):
        Solver(graph, method).warm_start(with_messages(graph, np.where(np.arange(36) == 5, value, 0.0)))


@pytest.mark.parametrize("method", sorted(set(available_methods()) - {"assignment"}))  # which takes pairs alone
@pytest.mark.parametrize(("before", "after"), [(1e200, 1e-200), (1e-200, 1e200), (1.0, 1e-300), (1e300, 1.0)])
def test_an_update_to_numbers_of_another_size(method: str, before: float, after: float) -> None:
    """The old messages cannot be said in the unit of the new scores: they are no start, and no error."""
    graph, other = triangles(before), triangles(after, seed=1)
    with Solver(graph, method, max_iterations=20) as solver:
        solver.run()
        for i in range(4):
            graph.set_unary(i, other.unary(i))
        for table in range(6):
            graph.set_table(table, other.table(table))
        solver.update()
        solver.run()
        result, best = solver.result(), optimum(graph)
        assert result.bound is None or result.bound >= best
        assert not result.is_optimal or result.score == best
