"""Russian doll search; tests/solvers/test_proofs.py compares it with brute force."""

from __future__ import annotations

import numpy as np
import pytest

from fginfer import FactorGraph, Solver, SolverError, solve


def observations(seed: int, n: int = 60, window: int = 8, shuffled: bool = False, unit: float = 1.0) -> FactorGraph:
    """What a satellite may take along its way: leaving a picture out costs 1, 2 or 50; two or three that are near each
    other exclude each other."""
    rng = np.random.default_rng(seed)
    cards = rng.choice([2, 4], n)
    name = rng.permutation(n) if shuffled else np.arange(n)
    named = np.empty(n, int)
    named[name] = cards
    graph = FactorGraph(named.tolist())
    for i in range(n):
        unary = np.zeros(cards[i])
        unary[0] = -unit * rng.choice([1, 2, 50])
        graph.add_factor([name[i]], unary)
        others = i + 1 + rng.permutation(window)[:4]
        for j in others[others < n]:
            graph.add_factor([name[i], name[j]], exclusion(rng, (cards[i], cards[j])))
        if i + window < n:
            j, k = i + 1 + rng.permutation(window)[:2]
            graph.add_factor([name[i], name[j], name[k]], exclusion(rng, (cards[i], cards[j], cards[k])))
    return graph


def exclusion(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    table = np.where(rng.random(shape) < 0.6, -np.inf, 0.0)
    for axis in range(len(shape)):  # what leaves one out is allowed
        np.moveaxis(table, axis, 0)[0] = 0.0
    return table


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_observations_are_proven_as_by_other_proofs(seed: int, shuffled: bool) -> None:
    graph = observations(seed, n=30, shuffled=shuffled)
    results = [solve(graph, method, gap=0.0) for method in ("dolls", "edac", "bnb")]
    assert [(r.status, r.score) for r in results] == 3 * [("optimal", results[0].score)]


def test_scores_that_are_no_whole_steps_are_proven_from_finer_costs() -> None:
    """Without a labeling in hand penalties make costs coarse; with it, and those far away, they are made again."""
    rng = np.random.default_rng(5)
    graph = FactorGraph([3] * 12)
    for i in range(11):
        graph.add_factor([i, i + 1], np.where(rng.random((3, 3)) < 0.3, -1e14, -rng.random((3, 3))))
    result, other = solve(graph, "dolls", gap=0.0), solve(graph, "bnb", gap=0.0)
    assert (result.status, result.score) == ("optimal", other.score)


def test_the_unit_changes_nothing() -> None:
    ways = [solve(observations(1, unit=2.0**k), "dolls", gap=0.0) for k in (0, -300, 400)]
    for k, result in zip((0, -300, 400), ways, strict=True):
        assert result.status == "optimal"
        assert result.score == ways[0].score * 2.0**k
        assert result.iterations == ways[0].iterations
        assert np.array_equal(result.labels, ways[0].labels)


def test_a_labeling_in_hand_is_improved_on_or_proven() -> None:
    graph = observations(2)
    best = solve(graph, "dolls", gap=0.0)
    again = solve(graph, "dolls", gap=0.0, warm_start=best.labels)
    assert (again.status, again.score) == ("optimal", best.score)
    assert again.iterations <= best.iterations


def test_bounds_rise_doll_by_doll_and_labelings_come_early() -> None:
    graph = observations(3)
    best = solve(graph, "dolls", gap=0.0).score
    with Solver(graph, "dolls", gap=0.0) as solver:
        solver.run(iterations=20)
        early = solver.result()
        assert early.score is not None
        assert early.score <= best <= early.bound < 0.0


def test_contradictions_and_nothing_at_all() -> None:
    differ = np.where(np.eye(2) > 0, -np.inf, 0.0)
    graph = FactorGraph([2, 2, 2])
    for i, j in ((0, 1), (1, 2), (0, 2)):
        graph.add_factor([i, j], differ)
    assert solve(graph, "dolls").status == "infeasible"
    assert solve(FactorGraph([]), "dolls").status == "optimal"
    alone = FactorGraph([3, 1])
    alone.add_factor([0], np.array([0.0, 2.0, 1.0]))
    assert (solve(alone, "dolls").score, solve(alone, "dolls").status) == (2.0, "optimal")


def test_a_model_that_is_too_large_is_refused() -> None:
    graph = FactorGraph([5000, 5000])
    graph.add_factor([0, 1], np.zeros((5000, 5000)))
    with pytest.raises(SolverError, match="too large for dolls"):
        solve(graph, "dolls")


@pytest.mark.parametrize("gap", [0.0, 1e-6])
def test_slices_of_one_doll_end_as_one_run(gap: float) -> None:
    rng = np.random.default_rng(8)
    graph = FactorGraph([3] * 10)
    for i in range(9):
        graph.add_factor([i, i + 1], np.where(rng.random((3, 3)) < 0.2, -1e12, np.log(rng.integers(1, 4, (3, 3)) / 7)))
    whole = solve(graph, "dolls", gap=gap)
    with Solver(graph, "dolls", gap=gap) as solver:
        while solver.run(iterations=1) == "running":
            pass
        end = solver.result()
    assert (end.status, end.score, end.bound, end.iterations) == (
        whole.status, whole.score, whole.bound, whole.iterations)  # fmt: skip
