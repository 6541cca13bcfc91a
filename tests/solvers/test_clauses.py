"""clauses: feasible or not, by learning from conflicts; and what trws and auto make of it."""

import itertools

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph

FORBIDDEN = -np.inf


def random_constraints(rng: np.random.Generator, n: int, labels: int, factors: int, tightness: float) -> FactorGraph:
    """Tables of two or three variables whose entries are forbidden at random."""
    cards = [int(c) for c in rng.integers(1, labels + 1, n)]
    graph = FactorGraph(cards)
    for i, c in enumerate(cards):
        unary = rng.normal(size=c)
        unary[rng.random(c) < 0.1] = FORBIDDEN
        graph.add_factor([i], unary)
    for _ in range(factors):
        scope = [int(v) for v in rng.choice(n, size=int(rng.integers(2, 4)), replace=False)]
        table = rng.normal(size=[cards[v] for v in scope])
        table[rng.random(table.shape) < tightness] = FORBIDDEN
        graph.add_factor(scope, table)
    return graph


def is_feasible(graph: FactorGraph) -> bool:
    return any(graph.score(list(x)) > FORBIDDEN for x in itertools.product(*map(range, graph.cards)))


@pytest.mark.parametrize("seed", range(60))
def test_says_what_brute_force_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_constraints(rng, 6, 4, 12, 0.45)
    result = fginfer.solve(graph, "clauses")
    if is_feasible(graph):
        assert result.labels is not None
        assert graph.score(result.labels) == result.score > FORBIDDEN
    else:
        assert result.status == "infeasible"
        assert result.labels is None


def parity(n: int, rng: np.random.Generator) -> FactorGraph:
    """Binary variables and exclusive-ors of four of them, with a solution: what one constraint says about one variable
    is nothing before its last but one is fixed."""
    graph = FactorGraph([2] * n)
    hidden = rng.integers(0, 2, n)
    for i in range(n):
        graph.add_factor([i], rng.normal(size=2))
    states = np.indices((2, 2, 2, 2)).sum(axis=0) % 2
    for _ in range(n - 5):
        scope = [int(v) for v in rng.choice(n, size=4, replace=False)]
        graph.add_factor(scope, np.where(states == hidden[scope].sum() % 2, 0.0, FORBIDDEN))
    return graph


@pytest.mark.parametrize("method", ["clauses", "trws", "auto"])
def test_finds_labelings_behind_conflicts(method: str) -> None:
    graph = parity(60, np.random.default_rng(3))
    result = fginfer.solve(graph, method, max_iterations=200)
    assert result.score is not None
    assert result.score > FORBIDDEN


@pytest.mark.parametrize("method", ["clauses", "trws", "auto"])
def test_proves_that_there_is_none(method: str) -> None:
    """A cycle of an odd number of exclusive-ors, written over pairs, with many labels beside it."""
    graph = FactorGraph([2] * 41 + [3] * 20)
    for i in range(41, 61):
        graph.add_factor([i], [0.0, 1.0, 2.0])
    differ = np.array([[FORBIDDEN, 0.0], [0.0, FORBIDDEN]])
    for i in range(41):
        graph.add_factor([i, (i + 1) % 41], differ)
    result = fginfer.solve(graph, method, max_iterations=500)
    assert result.status == "infeasible"


def test_slices_change_nothing() -> None:
    graph = parity(80, np.random.default_rng(5))
    whole = fginfer.solve(graph, "clauses")
    solver = fginfer.Solver(graph, "clauses")
    while solver.run(iterations=1) == "running":
        pass
    assert np.array_equal(solver.result().labels, whole.labels)
