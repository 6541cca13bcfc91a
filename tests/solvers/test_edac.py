"""Branch and bound on whole-number costs; tests/solvers/test_proofs.py compares it with brute force."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Potts, Solver, SolverError, solve
from fginfer.portfolio.part import Part
from fginfer.portfolio.worker import Worker
from tests.exact.models import brute_force, proof_graph


def frequencies(seed: int, links: int = 8, labels: int = 14, hard: bool = True, far: int = 5) -> FactorGraph:
    """Pairs of links a fixed distance apart, and interference between others that costs 10^k when they are close."""
    rng = np.random.default_rng(seed)
    distance = np.abs(np.subtract.outer(np.arange(labels), np.arange(labels)))
    graph = FactorGraph([labels] * links)
    if hard:
        for i in range(0, links, 2):
            graph.add_factor([i, i + 1], np.where(distance == labels // 2, 0.0, -np.inf))
    for i in range(links):
        for j in range(i + 1 + (i % 2 == 0), links):
            if rng.random() < 0.7:
                graph.add_factor([i, j], np.where(distance <= rng.integers(1, far), -(10.0 ** rng.integers(0, 3)), 0.0))
    return graph


def clauses(rng: np.random.Generator, hard: bool) -> FactorGraph:
    """Clauses of two to four variables, so that most pairs of variables are in several of them."""
    graph = FactorGraph([2] * 8)
    for _ in range(40):
        arity = int(rng.integers(2, 5))
        costs = np.zeros((2,) * arity)
        costs[tuple(rng.integers(0, 2, arity))] = -np.inf if hard and rng.random() < 0.3 else -rng.integers(1, 9)
        graph.add_factor(rng.permutation(8)[:arity].tolist(), costs)
    return graph


def colouring(rng: np.random.Generator, labels: int) -> FactorGraph:
    """Labels that can be renamed: pairs and triples count how many they have that differ."""
    graph = FactorGraph([labels] * 6)
    at = np.indices((labels,) * 3)
    distinct = 1 + (at[1] != at[0]) + ((at[2] != at[0]) & (at[2] != at[1]))
    for _ in range(7):
        differ, same = rng.integers(-9, 9, 2)
        graph.add_factor(rng.permutation(6)[:2].tolist(), np.where(np.eye(labels) > 0, float(same), float(differ)))
        graph.add_factor(rng.permutation(6)[:3].tolist(), rng.integers(-9, 9, 4).astype(float)[distinct])
    return graph


@pytest.mark.parametrize("seed", range(40))
def test_factors_that_become_pairwise_meet(seed: int) -> None:
    graph = clauses(np.random.default_rng(seed), seed % 2 == 1)
    best, result = brute_force(graph), solve(graph, method="edac", gap=0.0)
    assert result.status == ("infeasible" if best == -np.inf else "optimal")
    assert result.score == (None if best == -np.inf else best)


@pytest.mark.parametrize("labels", [2, 3, 4])
@pytest.mark.parametrize("seed", range(10))
def test_labels_that_can_be_renamed(labels: int, seed: int) -> None:
    graph = colouring(np.random.default_rng(seed), labels)
    result = solve(graph, method="edac", gap=0.0)
    assert (result.status, result.score) == ("optimal", brute_force(graph))


def test_one_colouring_of_its_renamings_is_looked_at() -> None:
    """Six variables that must all differ with five labels: 5! branches fewer than one by one."""
    graph = FactorGraph([5] * 6)
    for i in range(6):
        for j in range(i):
            graph.add_factor([i, j], np.where(np.eye(5) > 0, -1.0, 0.0))
    with Solver(graph, method="edac", gap=0.0) as solver:
        while solver.run(1.0) == "running":
            pass
        result = solver.result()
    assert (result.status, result.score) == ("optimal", -1.0)
    assert result.iterations < 60


def sparse(seed: int, whole: bool) -> FactorGraph:
    """A random tree of eight variables and a few factors more, some of three variables, some states forbidden."""
    rng = np.random.default_rng(seed)
    graph = FactorGraph(rng.integers(2, 4, 8).tolist())

    def scores(shape: tuple[int, ...]) -> Any:
        values = -rng.integers(0, 30, shape).astype(float) if whole else rng.normal(size=shape)
        return np.where(rng.random(shape) < 0.1, -np.inf, values)

    cards = graph.cards.tolist()
    for i in range(8):
        graph.add_factor([i], scores((cards[i],)))
    scopes = [[i, int(rng.integers(i))] for i in range(1, 8)]
    scopes += [rng.permutation(8)[: int(rng.integers(2, 4))].tolist() for _ in range(int(rng.integers(0, 6)))]
    for scope in scopes:
        graph.add_factor(scope, scores(tuple(cards[i] for i in scope)))
    return graph


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("seed", range(30))
def test_variables_that_are_dropped_get_their_best_labels(seed: int, whole: bool) -> None:
    graph = sparse(seed, whole)
    best = brute_force(graph)
    result = solve(graph, method="edac", gap=0.0)
    if best == -np.inf:
        assert result.status == "infeasible"
    else:
        assert result.is_optimal
        assert result.score == pytest.approx(best, rel=1e-12, abs=1e-12)


def test_a_cycle_is_not_searched() -> None:
    rng = np.random.default_rng(5)
    graph = FactorGraph([3] * 40)
    for i in range(40):
        graph.add_factor([i, (i + 1) % 40], -rng.integers(0, 100, (3, 3)).astype(float))
    result = solve(graph, method="edac", gap=0.0)
    assert result.is_optimal
    assert result.iterations <= 5
    assert result.score == solve(graph, method="bnb", gap=0.0).score


@given(st.integers(0, 10**6), st.integers(-40, 40))
@settings(max_examples=40, deadline=None)
def test_cutoffs_and_labelings_from_outside(seed: int, above: int) -> None:
    """Only labelings above the cutoff are wanted, whole step or not; one that is offered is as good as one found."""
    graph = proof_graph(seed)
    best = brute_force(graph)
    if best == -np.inf:
        return
    cutoff = best + above / 4
    result = solve(graph, method="edac", gap=0.0, cutoff=cutoff)
    assert result.status == ("optimal" if best > cutoff + 1e-9 else "infeasible") or abs(best - cutoff) <= 1e-9
    found = solve(graph, method="edac", gap=0.0)
    solver = Solver(graph, method="edac", gap=0.0)
    assert found.labels is not None
    solver.offer(found.labels)
    solver.run()
    again = solver.result()
    assert again.status == "optimal"
    assert again.score == found.score
    assert again.iterations <= found.iterations


@pytest.mark.parametrize("hard", [False, True])
def test_frequencies_are_assigned_as_by_branch_and_bound(hard: bool) -> None:
    """Domains that are cut in two, nodes that wait their turn, costs of 1, 10 and 100 in one model."""
    for seed in range(3):
        graph = frequencies(seed, hard=hard)
        by_tree, by_ascent = solve(graph, "edac", gap=0.0), solve(graph, "bnb", gap=0.0)
        assert by_tree.status == by_ascent.status == "optimal"
        assert by_tree.score == by_ascent.score == by_tree.bound


def test_products_that_nearly_cancel_hide_no_better_labeling() -> None:
    """Scores are rounded products, costs are not: from a start close to the best score, a better labeling may cost more
    than what seems to be left to gain (seeds in which it was thrown away)."""
    for seed in (61, 257, 307):
        rng = np.random.default_rng(seed)
        k, big = int(rng.integers(2, 5)), 10.0 ** rng.integers(15, 23)
        rng.normal(size=(k, k))  # as it was drawn when the seeds were found
        first, second = (big * (1 + rng.integers(0, 4, size=(k, k)) * 2.0**-52) for _ in range(2))
        weight, unary = float(rng.choice([0.3, 0.1, 0.7])), rng.normal(size=k)
        graph = FactorGraph([k, k])
        graph.add_factor([0], unary)
        graph.add_factor([0, 1], first, weight=weight)
        graph.add_factor([0, 1], second, weight=-weight)
        scores = [Fraction(u) for u in unary.tolist()]
        rounded = [
            [Fraction(x) - Fraction(y) for x, y in zip(*rows, strict=True)]
            for rows in zip(weight * first, weight * second, strict=True)
        ]
        best = max(scores[a] + rounded[a][b] for a in range(k) for b in range(k))
        for labels in np.ndindex(k, k):
            result = solve(graph, "edac", warm_start=list(labels), gap=0.0)
            assert result.bound is not None
            assert Fraction(result.bound) >= best
            assert result.score is not None
            assert not result.is_optimal or abs(Fraction(result.score) - best) <= 1e-12 * max(abs(best), result.unit)


def test_bounds_rise_before_the_end() -> None:
    """Best-first: the bound of the whole does not wait for the first branch to be searched."""
    graph = frequencies(1, links=14, labels=16, hard=False, far=9)
    bounds = [event.bound for event in solve(graph, "edac", gap=0.0).trace if event.bound is not None]
    assert len(set(bounds)) > 5


@pytest.mark.slow
def test_auto_asks_it_to_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part whose proof takes long. What a member does depends on work alone: twice the same."""
    joined: list[str] = []
    join = Part.join

    def note(self: Part, kind: type[Worker]) -> bool:
        joined.append(kind.name)
        return join(self, kind)

    monkeypatch.setattr(Part, "join", note)
    graph = frequencies(1, links=16, labels=20, far=9)
    result, again = (solve(graph, gap=0.0, time_limit=120, rules={"tree_round": 2}) for _ in range(2))
    assert "edac" in joined
    assert result.status == "optimal"
    assert result.score == solve(graph, "edac", gap=0.0).score
    assert (again.score, again.iterations) == (result.score, result.iterations)


def test_models_that_are_too_large_are_refused_at_once() -> None:
    graph = FactorGraph([3000, 4000])
    graph.add_factor([0, 1], Potts(0.0, 1.0))
    with pytest.raises(SolverError, match="too large for edac"):
        solve(graph, "edac")
    assert solve(graph, time_limit=20).score == 1.0


def test_scores_that_look_alike_beside_a_penalty_are_not_renamings() -> None:
    """In whole-number costs the penalty leaves nothing of the other scores: both labels cost the same there."""
    graph = FactorGraph([2, 2])
    graph.set_unary(0, [-0.04, 1.68])
    graph.add_factor([0, 1], [[0.0, -2.5e20], [-2.5e20, 0.0]])
    graph.add_factor([0, 1], [[0.99, -0.33], [-0.27, 1.43]])
    result = solve(graph, "edac", gap=0.0)
    assert result.status == "optimal"
    assert result.labels is not None
    assert result.labels.tolist() == [1, 1]
    assert result.score == pytest.approx(3.11)


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 1e-290])
def test_costs_too_small_for_a_part_of_them_forbid_nothing(tiny: float) -> None:
    """Counted in 2^-54 of a subnormal number, which is 0, all costs were forbidden, and the model infeasible."""
    graph = FactorGraph([2, 2])
    graph.add_factor([], 1.0)
    graph.add_factor([0], [0.0, tiny])
    graph.add_factor([0, 1], [[0.0, tiny], [tiny, 0.0]])
    for cutoff in (None, 0.0):
        result = solve(graph, "edac", cutoff=cutoff)
        assert result.is_optimal
        assert result.score == 1.0


def test_models_without_costs_in_any_unit() -> None:
    """Where no labeling costs anything, a cost was 1 in every unit: another one had more iterations."""
    found = []
    for k in (0, 900, -900):
        graph = FactorGraph([3, 1])
        graph.add_factor([], float(np.ldexp(1e15 + 1, k)))
        graph.add_factor([1], [float(np.ldexp(2e15, k))])
        result = solve(graph, "edac", cutoff=float(np.ldexp(2.6e15, k)))
        assert result.score is not None
        found.append((result.status, result.iterations, float(np.ldexp(result.score, -k))))
    assert len(set(found)) == 1


def test_tables_of_zeros_in_any_unit() -> None:
    """In another unit all tables have a weight, and nothing is lost by it."""
    found = []
    for k in (0, 900, -900):
        graph = FactorGraph([2, 2, 2])
        graph.add_factor([0, 1], np.zeros((2, 2)))
        graph.add_factor([1, 2], np.ldexp([[-3.0, -4.0], [-2.0, -5.0]], k))
        graph.add_factor([0, 2], np.ldexp([[-1.0, -1.0], [-3.0, -7.0]], k))
        result = solve(graph, "edac")
        assert result.bound is not None
        found.append((result.status, result.iterations, float(np.ldexp(result.bound, -k))))
    assert set(found) == {("optimal", found[0][1], -3.0)}
