"""The method "assignment": quadratic assignment against all permutations."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Solver, SolverError, solve


def draw(n: int, places: int, seed: int, kind: str) -> FactorGraph:
    """Each variable has its own order of the places, and lacks some; further states are forbidden now and then."""
    rng = np.random.default_rng(seed)
    own = [rng.permutation(places)[: max(1, places - int(rng.integers(0, 2)))] for _ in range(n)]
    graph = FactorGraph([len(labels) for labels in own])

    def scores(*shape: int) -> np.ndarray:
        if kind == "whole":
            return rng.integers(-20, 20, shape).astype(float)
        return rng.normal(size=shape) * float(rng.choice([1e-200, 1.0, 1e9]))

    for i in range(n):
        graph.set_unary(i, scores(len(own[i])))
        for j in range(i):
            table = scores(len(own[i]), len(own[j]))
            table[own[i][:, None] == own[j][None, :]] = -inf
            if rng.random() < 0.1:
                table[rng.integers(len(own[i])), rng.integers(len(own[j]))] = -inf
            graph.add_factor([i, j], table) if rng.random() < 0.5 else graph.add_factor([j, i], table.T)
    return graph


def best_of(graph: FactorGraph) -> float:
    return max(graph.score(list(x)) for x in np.ndindex(*graph.cards.tolist()))


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 4), more=st.integers(0, 2), seed=st.integers(0, 10**6), kind=st.sampled_from(["whole", "real"]))
def test_it_proves_the_optimum(n: int, more: int, seed: int, kind: str) -> None:
    graph = draw(n, n + more, seed, kind)
    best = best_of(graph)
    try:
        result = solve(graph, "assignment", gap=0.0)
    except SolverError:  # a further state was forbidden, and places are no longer told apart
        with pytest.raises(SolverError, match="no assignment"):
            solve(graph, "assignment")
        return
    if best == -inf:
        assert result.status == "infeasible"
        return
    assert result.score == best
    assert result.bound is not None
    assert Fraction(result.bound) >= Fraction(best)
    assert result.status == "optimal" or (kind == "real" and result.status == "converged")


@settings(max_examples=30, deadline=None)
@given(n=st.integers(3, 5), seed=st.integers(0, 10**6), iterations=st.integers(1, 12))
def test_a_bound_holds_at_any_moment(n: int, seed: int, iterations: int) -> None:
    graph = draw(n, n, seed, "whole")
    try:
        result = solve(graph, "assignment", max_iterations=iterations)
    except SolverError:
        return
    assert result.bound is None or result.bound >= best_of(graph)


def placements(n: int, seed: int) -> FactorGraph:
    rng = np.random.default_rng(seed)
    graph = FactorGraph([n] * n)
    differ = np.where(np.eye(n, dtype=bool), -inf, 0.0)
    for i in range(n):
        for j in range(i):
            graph.add_factor([i, j], differ - rng.integers(1, 10) * rng.integers(1, 10, (n, n)))
    return graph


def test_cutoffs_at_and_below_the_optimum() -> None:
    graph = placements(6, 1)
    best = max(graph.score(list(order)) for order in permutations(range(6)))
    assert solve(graph, "assignment", cutoff=best).status == "infeasible"
    above = solve(graph, "assignment", cutoff=best - 1)
    assert (above.status, above.score) == ("optimal", best)


def test_a_cutoff_between_labelings_that_rounding_alone_tells_apart() -> None:
    graph = FactorGraph([2, 2])
    graph.add_factor([0], [35.092811569216785, 35.09281156921779])
    graph.add_factor([1], [35.092811569216785, 35.09281156921579])
    graph.add_factor([0, 1], [[0.0, -inf], [-inf, 0.0]])
    scores = sorted(graph.score(labels) for labels in ([0, 0], [1, 1]))
    assert scores[0] < scores[1]
    result = solve(graph, "assignment", cutoff=scores[0])
    assert result.status == "optimal"
    assert result.score == scores[1]


def test_slices_change_nothing() -> None:
    graph = placements(9, 5)
    whole = solve(graph, "assignment", max_iterations=40)
    solver = Solver(graph, "assignment", max_iterations=40)
    while solver.run(0.0005) == "running":
        pass
    sliced = solver.result()
    assert (whole.score, whole.bound, whole.iterations) == (sliced.score, sliced.bound, sliced.iterations)
    assert whole.statistics["nodes"] == sliced.statistics["nodes"]


def test_auto_asks_it() -> None:
    """Twelve things on a grid of 3 x 4, as Nugent's: local bounds are far off. Threads change nothing."""
    rng = np.random.default_rng(0)
    x, y = np.divmod(np.arange(12), 4)
    distance = abs(x[:, None] - x) + abs(y[:, None] - y)
    differ = np.where(np.eye(12, dtype=bool), -inf, 0.0)
    graph = FactorGraph([12] * 12)
    for i in range(12):
        for j in range(i):
            graph.add_factor([i, j], differ - rng.choice([0, 0, 1, 2, 3, 5]) * distance)
    result, other = solve(graph), solve(graph, threads=2)
    assert result.status == other.status == "optimal"
    assert result.proved_by == other.proved_by == "assignment"
    assert result.score == other.score


def cube(corners: int) -> np.ndarray:
    """In how many digits the numbers of two corners differ."""
    return np.array([[float((a ^ b).bit_count()) for b in range(corners)] for a in range(corners)])


def alike(n: int, places: int, seed: int) -> tuple[FactorGraph, int]:
    """Places on a ring, a line, a cube or all alike, and things with few flows; and the optimum."""
    rng = np.random.default_rng(seed)
    at = np.arange(places)
    apart = abs(at[:, None] - at)
    distance = [np.minimum(apart, places - apart), apart, cube(places), apart > 0][seed % 4]
    flow = np.triu(rng.choice([0, 0, 1, 2], (n, n)), 1)
    own = rng.choice([0, 1], places) * (rng.random() < 0.3)
    graph = FactorGraph([places] * n)
    differ = np.where(np.eye(places, dtype=bool), -inf, 0.0)
    for i in range(n):
        graph.set_unary(i, -own.astype(float))
        for j in range(i + 1, n):
            graph.add_factor([i, j], differ - float(flow[i, j]) * distance)
    orders = np.array(list(permutations(range(places), n)))
    costs = own[orders].sum(1)
    for i in range(n):
        for j in range(i + 1, n):
            costs = costs + flow[i, j] * distance[orders[:, i], orders[:, j]].astype(int)
    return graph, -int(costs.min())


@settings(max_examples=60, deadline=None)
@given(n=st.integers(2, 6), more=st.integers(0, 2), seed=st.integers(0, 10**6))
def test_what_can_be_exchanged_is_tried_once(n: int, more: int, seed: int) -> None:
    graph, best = alike(n, n + more, seed)
    result = solve(graph, "assignment", gap=0.0)
    assert (result.status, result.score) == ("optimal", best)
    assert result.bound is not None
    assert result.bound >= best
    assert solve(graph, "assignment", cutoff=best).status == "infeasible"


def test_a_cube_takes_few_nodes() -> None:
    """Sixteen things on the corners of a cube of four dimensions, which has 384 symmetries."""
    rng = np.random.default_rng(3)
    distance = cube(16)
    differ = np.where(np.eye(16, dtype=bool), -inf, 0.0)
    graph = FactorGraph([16] * 16)
    for i in range(16):
        for j in range(i):
            graph.add_factor([i, j], differ - float(rng.random() < 0.2 and i < 10) * distance)
    result = solve(graph, "assignment", max_iterations=3000)
    assert result.status == "optimal"


@pytest.mark.parametrize("n", [0, 41])
def test_other_models_are_refused_by_name(n: int) -> None:
    with pytest.raises(SolverError, match="assignment takes models of 1 to 40"):
        solve(FactorGraph([2] * n), "assignment")
    graph = FactorGraph([2] * 3)
    graph.add_factor([0, 1, 2], np.zeros((2, 2, 2)))
    with pytest.raises(SolverError, match="not all variables must differ"):
        solve(graph, "assignment")


def test_what_a_poor_start_rounds_away_still_counts() -> None:
    """Costs are rounded as the first labeling allows: labels that it cannot tell apart are no exchangeable places."""
    graph = FactorGraph([2, 2, 2])
    graph.add_factor([0], [-3.34e18, 0.5])
    graph.add_factor([1], [-2517.75, -12.5])
    graph.add_factor([2], [-0.25, -np.inf])
    graph.add_factor([0, 2], np.full((2, 2), -0.0625))
    result = solve(graph, "assignment", warm_start=[0, 0, 0], gap=0)
    assert (result.score, result.status) == (-12.3125, "optimal")
