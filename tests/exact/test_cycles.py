"""Bounds from frustrated cycles: against brute force and elimination, tight where they should be, whatever the unit."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fginfer
from fginfer import FactorGraph, Result, Solver
from fginfer.core.exact import Elimination

from .models import SHAPES, brute_force, close, random_graph

seeds = st.integers(0, 2**31)


def glass(n: int, edges: list[tuple[int, int]], seed: int, field: float = 0.0, whole: bool = False) -> FactorGraph:
    """Spins that want to be equal or different to their neighbours, by more or less."""
    rng = np.random.default_rng(seed)
    strength = rng.choice([-1.0, 1.0], len(edges)) if whole else rng.normal(size=len(edges))
    h = field * rng.normal(size=n)
    signs = np.array([[1.0, -1.0], [-1.0, 1.0]])
    return FactorGraph.from_arrays(
        np.full(n, 2), np.stack([-h, h], 1), np.array(edges, np.int32), tables=strength[:, None, None] * signs
    )


def grid(height: int, width: int, wrapped: bool = False) -> list[tuple[int, int]]:
    right = [(y * width + x, y * width + (x + 1) % width) for y in range(height) for x in range(width)]
    down = [(y * width + x, (y + 1) % height * width + x) for y in range(height) for x in range(width)]
    return [(i, j) for i, j in right + down if wrapped or i < j]


def optimum(graph: FactorGraph) -> float:
    exact = Elimination(graph.model)
    assert exact.run()
    assert exact.value is not None
    return exact.value


def cycles(graph: FactorGraph, **settings: object) -> Result:
    return fginfer.solve(graph, "cycles", gap=0.0, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_bounds_of_models_of_all_kinds(name: str, seed: int) -> None:
    """What is no pair of binary variables counts as the most it can be."""
    graph = random_graph(seed, SHAPES[name])
    best = brute_force(graph)
    result = cycles(graph, max_iterations=30)
    if best == -inf:
        assert result.score is None
        return
    assert result.bound is not None
    assert result.bound >= best - 1e-9 * max(1.0, abs(best))
    assert result.score is None or result.score <= best + 1e-9 * max(1.0, abs(best))
    if result.status == "optimal":
        assert result.score is not None
        assert close(result.score, best)


@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_spins_against_brute_force(seed: int) -> None:
    """Sparse and dense, with fields and without, parallel edges, ties."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 11))
    pairs = [tuple(int(i) for i in rng.permutation(n)[:2]) for _ in range(int(rng.integers(1, 4 * n)))]
    graph = glass(n, pairs, seed, field=float(rng.choice([0.0, 0.3, 3.0])), whole=bool(rng.random() < 0.4))  # type: ignore[arg-type]
    best = brute_force(graph)
    result = cycles(graph, max_iterations=int(rng.choice([1, 2, 5, 200])))
    assert result.bound is not None
    assert result.score is not None
    assert result.score <= best + 1e-12 * abs(best)
    assert result.bound >= best - 1e-12 * abs(best)
    assert result.status != "optimal" or close(result.score, best)


@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_planar_graphs_without_fields_are_proven(seed: int) -> None:
    """There the packing is as good as the optimum. Spins of one size have many optima, and bounds in steps."""
    graph = glass(7 * 9, grid(7, 9), seed, whole=seed % 2 == 0)
    result = cycles(graph)
    assert result.status == "optimal"
    assert result.score == pytest.approx(optimum(graph), rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_strengths_of_all_sizes(seed: int) -> None:
    """Steps that ran away left a gap of 16 % for minutes on one torus of twelve."""
    rng = np.random.default_rng(seed)
    edges = grid(12, 16, wrapped=True)
    graph = glass(12 * 16, edges, seed, field=0.3)
    for k, factor in enumerate(graph.factors()):
        graph.set_table(factor.table, np.exp(0.5 * seed * rng.normal()) * graph.table(factor.table))
        assert factor.variables == edges[k]
    result = cycles(graph, max_iterations=200)
    assert result.status == "optimal"


@pytest.mark.parametrize("seed", range(4))
def test_frustrated_grids_with_fields_are_proven(seed: int) -> None:
    graph = glass(9 * 9, grid(9, 9, wrapped=True), seed, field=0.4)
    result = cycles(graph)
    assert result.status == "optimal"
    assert result.score == pytest.approx(optimum(graph), rel=1e-12)


def test_dense_models_are_bounded_and_then_split() -> None:
    graph = glass(14, [(i, j) for i in range(14) for j in range(i)], 1)
    root, best = cycles(graph, max_iterations=8), brute_force(graph)
    local = fginfer.solve(graph, "trws", max_iterations=50)
    assert local.bound is not None
    assert root.bound is not None
    assert best - 1e-9 <= root.bound < best + 0.3 * (local.bound - best)
    result = cycles(graph)
    assert result.status == "optimal"
    assert result.score == pytest.approx(best, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_trees_end_with_the_optimum(seed: int) -> None:
    """Dense glasses, whole or real, with fields or cut off at the optimum: each ends, and says nothing false."""
    rng = np.random.default_rng(seed)
    n, density = int(rng.integers(6, 13)), float(rng.choice([0.5, 1.0]))
    edges = [(i, j) for i in range(n) for j in range(i) if rng.random() < density]
    graph = glass(n, edges, seed, field=float(rng.choice([0.0, 1.0])), whole=bool(rng.random() < 0.5))
    best = brute_force(graph)
    result = cycles(graph)
    assert result.status == "optimal"
    assert result.score == pytest.approx(best, rel=1e-12, abs=1e-12)
    assert result.bound is not None
    assert result.bound >= best - 1e-12 * abs(best)
    assert cycles(graph, cutoff=best + 1e-6 * abs(best) + 1e-9).status == "infeasible"


@pytest.mark.parametrize(("n", "density"), [(24, 1.0), (40, 0.4)])
def test_a_tree_in_slices_is_the_same_tree(n: int, density: float) -> None:
    rng = np.random.default_rng(n)
    edges = [(i, j) for i in range(n) for j in range(i) if rng.random() < density]
    graph = glass(n, edges, 1, whole=True)
    whole = cycles(graph)
    assert whole.status == "optimal"
    assert whole.statistics["nodes"] > 3
    assert whole.score == fginfer.solve(graph, "sdp").score
    solver = Solver(graph, "cycles", gap=0.0)
    while solver._run_engine(0.0, -1) == "running":
        pass
    solver.run()
    sliced = solver.result()
    assert (sliced.status, sliced.score, sliced.bound) == (whole.status, whole.score, whole.bound)
    assert (sliced.iterations, sliced.statistics["nodes"]) == (whole.iterations, whole.statistics["nodes"])


@pytest.mark.parametrize("penalty", [1e9, 1e15, 1e20, 1e31])
def test_scores_that_vanish_beside_penalties(penalty: float) -> None:
    """Where rounding leaves no edge, more than one labeling may be left: it said optimal of -1 where 2 is."""
    graph = FactorGraph([2] * 4)
    graph.set_unary(0, [-penalty, -1.0])
    graph.set_unary(3, [-penalty, 0.0])
    graph.add_factor((2, 1), [[0.5, 1.0], [-penalty, 0.0]])
    graph.add_factor((2, 3), [[1.0, 2.0], [-penalty, 0.0]])
    graph.add_factor((1, 3), [[0.0, -penalty], [-penalty, 0.0]])
    graph.add_factor((3, 1), [[1.0, 0.0], [0.0, 1.0]])
    result, best = cycles(graph), brute_force(graph)
    assert result.bound is not None
    assert result.bound >= best
    assert result.status != "optimal" or result.score == best


@pytest.mark.parametrize("k", [-900, -77, 450, 900])
def test_the_unit_changes_nothing(k: int) -> None:
    graph = glass(10 * 10, grid(10, 10, wrapped=True), 5, field=0.3)
    scaled = FactorGraph([2] * 100)
    for i in range(100):
        scaled.set_unary(i, np.ldexp(graph.unary(i), k))
    for factor in graph.factors():
        scaled.add_factor(factor.variables, np.ldexp(factor.weight * graph.table(factor.table), k))
    one, other = cycles(graph, max_iterations=9), cycles(scaled, max_iterations=9)
    assert (one.status, one.iterations) == (other.status, other.iterations)
    assert one.score is not None
    assert one.bound is not None
    assert (np.ldexp(one.score, k), np.ldexp(one.bound, k)) == (other.score, other.bound)
    np.testing.assert_array_equal(one.labels, other.labels)


def test_slices_and_labelings_from_outside() -> None:
    graph = glass(20 * 20, grid(20, 20, wrapped=True), 2, field=0.2)
    whole = cycles(graph)
    solver = Solver(graph, "cycles", gap=0.0)
    while solver._run_engine(0.0, -1) == "running":
        pass
    solver.run()
    sliced = solver.result()
    assert (sliced.status, sliced.score, sliced.bound) == (whole.status, whole.score, whole.bound)
    assert sliced.iterations == whole.iterations
    known = cycles(graph, warm_start=whole.labels)
    assert known.status == "optimal"
    assert known.score == whole.score


def test_a_single_label_is_no_spin() -> None:
    graph = FactorGraph([2, 1, 2])
    graph.set_unary(0, [0.0, 0.25])
    graph.add_factor((0, 1), [[1.0], [0.5]])
    graph.add_factor((0, 2), [[0.0, 2.0], [2.0, 0.0]])
    graph.add_factor((1, 2), [[0.0, 3.0]])
    result = cycles(graph)
    assert result.status == "optimal"
    assert result.score == brute_force(graph)
    assert result.labels is not None
    assert result.labels.tolist() == [0, 0, 1]


def test_auto_proves_what_trees_do_not() -> None:
    graph = glass(24 * 24, grid(24, 24, wrapped=True), 8, field=0.3)
    result = fginfer.solve(graph, gap=0.0, max_iterations=60)
    assert result.status == "optimal"
    assert result.score == pytest.approx(cycles(graph).score, rel=1e-12)
