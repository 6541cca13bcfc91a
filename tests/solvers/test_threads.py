"""The same bits, whatever the number of threads and however a run is cut into slices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fginfer import AbsDiff, FactorGraph, Potts, Result, Solver, solve

RNG = np.random.default_rng


def raster(height: int, width: int) -> np.ndarray:
    index = np.arange(height * width).reshape(height, width)
    right, down = (index[:, :-1], index[:, 1:]), (index[:-1], index[1:])
    return np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in (right, down)])


def random_edges(n: int, m: int) -> np.ndarray:
    edges = RNG(1).integers(0, n, (m, 2))
    return edges[edges[:, 0] != edges[:, 1]]


def model(cards: np.ndarray, edges: np.ndarray, *, forbidden: float = 0.0) -> FactorGraph:
    """Dense tables of their own; some states forbidden, but none of an all-zero labeling."""
    rng = RNG(2)
    graph = FactorGraph(cards)
    for i, card in enumerate(cards):
        graph.add_factor([i], rng.normal(size=card))
    for i, j in edges:
        table = rng.normal(size=(cards[i], cards[j]))
        table[rng.random(table.shape) < forbidden] = -np.inf
        table[0, 0] = 0.5
        graph.add_factor([int(i), int(j)], table)
    return graph


def shared(n: int, labels: int, edges: np.ndarray, table: object) -> FactorGraph:
    rng = RNG(3)
    weights = rng.uniform(0.5, 1, len(edges))
    return FactorGraph.from_arrays([labels] * n, rng.normal(size=(n, labels)), edges, tables=[table], weights=weights)


def smooth(labels: int) -> np.ndarray:
    """A table of which little has to be read."""
    return -0.1 * np.abs(np.subtract.outer(np.arange(labels), np.arange(labels))) + RNG(9).random((labels, labels))


def ternary(n: int, labels: int) -> FactorGraph:
    rng = RNG(8)
    graph = FactorGraph([labels] * n)
    for _ in range(n):
        i, j, k = rng.choice(n, 3, replace=False)
        graph.add_factor([int(i), int(j), int(k)], rng.normal(size=(labels,) * 3))
    return graph


def path(n: int) -> np.ndarray:
    return np.stack([np.arange(n - 1), np.arange(1, n)], 1)


def complete(n: int) -> np.ndarray:
    return np.stack(np.triu_indices(n, 1), 1)


MODELS: dict[str, Callable[[], FactorGraph]] = {
    "grid of few labels": lambda: shared(200 * 150, 4, raster(200, 150), Potts(0, -1.0)),
    "grid of binary labels": lambda: shared(300 * 100, 2, raster(300, 100), RNG(0).normal(size=(2, 2))),
    "grid of many labels": lambda: shared(60 * 60, 20, raster(60, 60), RNG(0).normal(size=(20, 20))),
    "random graph": lambda: shared(30000, 3, random_edges(30000, 60000), RNG(0).normal(size=(3, 3))),
    "mixed labels": lambda: model(RNG(4).integers(1, 12, 2500), random_edges(2500, 5000)),
    "hard constraints": lambda: model(RNG(5).integers(2, 6, 3000), raster(60, 50), forbidden=0.3),
    "complete": lambda: model(np.full(40, 30), complete(40)),
    "chain": lambda: shared(200, 60, path(200), AbsDiff(0.1)),
    "chain of large tables": lambda: shared(12, 200, path(12), RNG(0).normal(size=(200, 200))),
    "chain of many labels, some forbidden": lambda: model(RNG(6).integers(150, 260, 9), path(9), forbidden=0.3),
    "complete, mixed labels": lambda: model(RNG(7).integers(1, 260, 12), complete(12), forbidden=0.2),
    "large tables that many factors share": lambda: shared(40, 300, random_edges(40, 90), smooth(300)),
    "factors of three": lambda: ternary(1500, 12),
    "star": lambda: model(
        np.concatenate([[40], np.full(400, 25)]), np.stack([np.zeros(400, int), np.arange(1, 401)], 1)
    ),
}


def same(a: Result, b: Result) -> None:
    assert (a.status, a.iterations) == (b.status, b.iterations)
    assert (a.score, a.bound) == (b.score, b.bound)
    assert np.array_equal(a.labels, b.labels)
    if a.messages is not None:
        assert np.array_equal(a.messages, b.messages)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", ["trws", "gdmm"])
def test_threads_and_slices_change_no_bit(method: str, name: str) -> None:
    graph = MODELS[name]()
    iterations = 12
    alone = solve(graph, method, max_iterations=iterations, gap=0.0)
    for threads in (2, 3):
        same(solve(graph, method, max_iterations=iterations, gap=0.0, threads=threads), alone)
    solver = Solver(graph, method, max_iterations=iterations, gap=0.0, threads=2)
    while solver.run(seconds=0.003) == "running":
        pass
    same(solver.result(), alone)


def test_infeasible_in_a_wave() -> None:
    """A contradiction in the middle of a grid is found by whoever visits it."""
    labels, edges = 3, raster(120, 120)
    table = np.zeros((labels, labels))
    graph = FactorGraph.from_arrays([labels] * 120**2, np.zeros((120**2, labels)), edges, tables=[table])
    graph.add_factor([7000, 7001], np.full((labels, labels), -np.inf))
    for threads in (1, 2, 4):
        for method in ("trws", "gdmm"):
            assert solve(graph, method, threads=threads).status == "infeasible"


def test_infeasible_in_a_wave_of_factors_of_three() -> None:
    graph = ternary(1500, 8)
    graph.add_factor([700, 701, 702], np.full((8, 8, 8), -np.inf))
    for threads in (1, 2, 4):
        assert solve(graph, "trws", threads=threads).status == "infeasible"


def test_warm_starts_and_updates_with_threads() -> None:
    graph = MODELS["grid of few labels"]()
    results = []
    for threads in (1, 3):
        solver = Solver(graph, "trws", threads=threads, gap=0.0)
        solver.run(iterations=5)
        again = Solver(graph, "trws", threads=threads, gap=0.0, warm_start=solver.result())
        again.run(iterations=5)
        again.update()
        again.run(iterations=3)
        results.append(again.result())
    same(*results)


@pytest.mark.parametrize("method", ["trws", "gdmm"])
def test_a_warm_start_in_the_middle_of_a_sweep_begins_a_new_one(method: str) -> None:
    """Threads went on with the rest of the old one: other numbers, and bounds that were none."""
    graph = MODELS["grid of few labels"]()
    start = solve(graph, method, max_iterations=3, gap=0.0)
    results = []
    for threads, seconds in ((1, 0.0), *((2, 1e-5 * 2**k) for k in range(8))):
        solver = Solver(graph, method, threads=threads, gap=0.0)
        solver.run(iterations=4)
        solver.run(seconds=seconds)
        solver.warm_start(start)
        before = solver.progress().iterations
        solver.run(iterations=3)
        results.append((solver.progress().iterations - before, solver.progress().bound))
    assert len(set(results)) == 1


def test_infeasible_where_all_threads_work_on_a_node() -> None:
    """Tables large enough to be shared out: the contradiction is in a message, and in the sums of a node."""
    n, labels = 6, 200
    for message in (True, False):
        graph = shared(n, labels, path(n), RNG(0).normal(size=(labels, labels)))
        if message:
            graph.add_factor([3, 4], np.full((labels, labels), -np.inf))
        else:  # what one neighbour leaves the other forbids
            lower = np.where(np.arange(labels) < labels // 2, 0.0, -np.inf)
            graph.add_factor([2, 3], np.tile(lower, (labels, 1)))
            graph.add_factor([3, 4], np.tile(lower[::-1, None], (1, labels)))
        for threads in (1, 2, 4):
            for method in ("trws", "gdmm"):
                assert solve(graph, method, threads=threads).status == "infeasible"


@pytest.mark.parametrize("name", ["chain of large tables", "complete"])
def test_single_precision_with_threads(name: str) -> None:
    graph = MODELS[name]()
    alone, together = (solve(graph, "trws", precision=2, max_iterations=6, gap=0.0, threads=t) for t in (1, 3))
    same(together, alone)


@pytest.mark.slow
def test_auto_with_threads_on_a_large_model() -> None:
    graph = shared(50 * 50, 20, raster(50, 50), RNG(0).normal(size=(20, 20)))
    alone, together = (solve(graph, "auto", max_iterations=3, gap=0.0, threads=t) for t in (1, 3))
    same(together, alone)
