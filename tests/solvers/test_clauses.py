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


@pytest.mark.slow
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


def with_penalties(seed: int, penalty: float) -> tuple[FactorGraph, FactorGraph]:
    """Many constraints around a labeling that meets them all, with preferences against it: as penalties, and hard."""
    rng = np.random.default_rng(seed)
    n, labels = 40, 4
    hidden = rng.integers(labels, size=n)
    soft, hard = FactorGraph([labels] * n), FactorGraph([labels] * n)
    for i in range(n):
        unary = rng.uniform(-0.05, 0.0, labels)
        unary[hidden[i]] = -0.05
        soft.add_factor([i], unary)
        hard.add_factor([i], unary)
    for _ in range(4 * n):
        scope = [int(v) for v in rng.choice(n, size=2, replace=False)]
        broken = rng.random((labels, labels)) < 0.45
        broken[tuple(hidden[scope])] = False
        soft.add_factor(scope, np.where(broken, -penalty, 0.0))
        hard.add_factor(scope, np.where(broken, FORBIDDEN, 0.0))
    return soft, hard


@pytest.mark.parametrize("seed", range(4))
def test_meets_penalties_that_stand_for_constraints(seed: int) -> None:
    soft, hard = with_penalties(seed, 10.0)
    found = fginfer.solve(soft, "clauses")
    assert found.score is not None
    assert found.score > -10.0
    best, same = fginfer.solve(soft, time_limit=60), fginfer.solve(hard, time_limit=60)
    assert best.status == "optimal"
    assert best.score == same.score
    assert fginfer.solve(soft, "clauses", warm_start=found).score == found.score  # there is nothing to do


def test_penalties_that_must_be_paid_are_no_contradiction() -> None:
    """Four variables, two labels, all different: the tier cannot be met, and the model is feasible all the same."""
    graph = FactorGraph([2] * 4)
    rng = np.random.default_rng(3)
    for i in range(4):
        graph.add_factor([i], rng.uniform(-0.1, 0.0, 2))
    for i, j in itertools.combinations(range(4), 2):
        graph.add_factor([i, j], -50.0 * np.eye(2))
    result = fginfer.solve(graph, "clauses")
    assert result.status == "converged"
    assert result.score is not None
    assert result.score < -50.0
    best = max(graph.score(list(x)) for x in itertools.product(range(2), repeat=4))
    assert fginfer.solve(graph).score == best


def test_tiers_are_met_from_the_top() -> None:
    """Penalties of 1000 can be met, those of 10 cannot: the first are."""
    graph = FactorGraph([3] * 6)
    rng = np.random.default_rng(5)
    for i in range(6):
        graph.add_factor([i], rng.uniform(-0.1, 0.0, 3))
    for i in range(5):
        graph.add_factor([i, i + 1], -1000.0 * np.eye(3))
    for i, j in itertools.combinations(range(6), 2):
        graph.add_factor([i, j], -10.0 * np.eye(3), weight=0.5)
    for cut in (None, 1):  # whatever the slices
        with fginfer.Solver(graph, method="clauses") as solver:
            while solver.run(10, cut) == "running":
                pass
            score = solver.result().score
        assert score is not None
        assert -1000.0 < score < -5.0
