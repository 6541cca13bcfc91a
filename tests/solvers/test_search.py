"""Primal search: optimal on small models, one answer per seed however the run is cut, feasible where possible."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fginfer import AbsDiff, FactorGraph, Potts, solve
from fginfer.core import clock
from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.core.exact import Elimination
from fginfer.engine import Settings
from fginfer.portfolio.members.search import Search


class Run:
    """A bare loop around the C solver."""

    def __init__(self, graph: FactorGraph, seed: int = 0, method: int = lib.FGI_SEARCH, **values: object) -> None:
        options = ffi.new("fgi_settings *", lib.fgi_settings_default())
        options.method, options.seed, options.gap = method, seed, 0.0
        for name, value in values.items():
            setattr(options, name, value)
        self.error, out, self.info = new_error(), ffi.new("fgi_solver **"), ffi.new("fgi_info *")
        check(lib.fgi_solver_create(graph.snapshot().handle, options, out, self.error), self.error)
        self.solver = ffi.gc(out[0], lib.fgi_solver_free)
        self.n = graph.n_variables

    def step(self, iterations: int, seconds: float = -1.0) -> Run:
        check(lib.fgi_solver_run(self.solver, seconds, iterations, self.info), self.error)
        return self

    def labels(self) -> NDArray[np.int32] | None:
        x = np.zeros(self.n, np.int32)
        return x if lib.fgi_solver_labels(self.solver, pointer(x)) else None


def random_graph(
    rng: np.random.Generator, n: int, factors: int, card: int, forbidden: float = 0.0, max_arity: int = 3
) -> FactorGraph:
    cards = rng.integers(1, card + 1, n)
    graph = FactorGraph(cards)
    for _ in range(factors):
        scope = rng.permutation(n)[: rng.integers(1, min(max_arity, n) + 1)]
        if len(scope) == 2 and rng.random() < 0.2:
            graph.add_factor(scope.tolist(), Potts(*rng.normal(size=2).tolist()), weight=rng.random() + 0.1)
            continue
        table = rng.normal(size=cards[scope])
        table[rng.random(table.shape) < forbidden] = -np.inf
        graph.add_factor(scope.tolist(), table, weight=float(rng.random() + 0.1))
    return graph


def optimum(graph: FactorGraph) -> float:
    return max(graph.score(x) for x in product(*(range(k) for k in graph.cards.tolist())))


@given(st.integers(0, 10**9), st.integers(1, 7), st.integers(0, 12), st.sampled_from([0.0, 0.2, 0.5]))
@example(43, 2, 4, 0.0)  # two factors on one variable, whose sum is rounded
@settings(max_examples=60, deadline=None)
def test_small_models_are_solved(seed: int, n: int, factors: int, forbidden: float) -> None:
    graph = random_graph(np.random.default_rng(seed), n, factors, 3, forbidden)
    run = Run(graph, seed).step(60)
    best = optimum(graph)
    if best == -np.inf:
        assert run.labels() is None
        return
    labels = run.labels()
    assert labels is not None
    assert run.info.score == pytest.approx(best, abs=1e-9)
    # A bare method speaks of the plain model, `solve` of the factors as they were given; see docs/how/decisions/0001.
    assert run.info.score == graph.snapshot().plain().score(labels)
    result = solve(graph, "search", seed=seed, max_iterations=60)
    assert result.labels is not None
    assert result.score == graph.score(result.labels)


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_slices_do_not_change_the_answer(seed: int) -> None:
    graph = random_graph(np.random.default_rng(seed), 40, 100, 3, 0.02)
    whole, cut = Run(graph, seed).step(40), Run(graph, seed)
    for _ in range(40):
        cut.step(1, 1e3)
    timed = Run(graph, seed, max_iterations=40)
    while timed.step(-1, 1e-5).info.status == lib.FGI_RUNNING:
        pass
    for other in (cut, timed):
        assert other.info.iterations == whole.info.iterations
        assert other.info.score == whole.info.score
        assert np.array_equal(other.labels(), whole.labels())


def test_a_frustrated_grid_reaches_the_optimum() -> None:
    rng = np.random.default_rng(3)
    side = 7
    edges = [(r * side + c, r * side + c + 1) for r in range(side) for c in range(side - 1)]
    edges += [(r * side + c, r * side + c + side) for r in range(side - 1) for c in range(side)]
    tables = rng.choice([-1.0, 1.0], len(edges))[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    graph = FactorGraph.from_arrays([2] * side**2, rng.normal(size=(side**2, 2)), edges, tables=tables)
    scores = {round(Run(graph, seed).step(300).info.score, 9) for seed in range(4)}
    assert len(scores) == 1
    assert scores == {round(grid_optimum(graph, side), 9)}


def grid_optimum(graph: FactorGraph, side: int) -> float:
    """Dynamic programming over the states of a whole row."""
    states = list(product(range(2), repeat=side))
    pair = {f.variables: graph.table(f.table) for f in graph.factors()}
    best = np.zeros(len(states))
    for r in range(side):
        at = r * side
        inner = np.array(
            [
                sum(graph.unary(at + c)[x[c]] for c in range(side))
                + sum(pair[at + c, at + c + 1][x[c], x[c + 1]] for c in range(side - 1))
                for x in states
            ]
        )
        if r > 0:
            bits = np.array(states)
            between = sum(pair[at - side + c, at + c][bits[:, c][:, None], bits[:, c][None, :]] for c in range(side))
            best = (best[:, None] + between).max(axis=0)
        best = best + inner
    return float(best.max())


@pytest.mark.parametrize("seed", range(3))
def test_a_spin_glass_in_three_dimensions_reaches_the_optimum(seed: int) -> None:
    """Many shallow maxima, and loops everywhere: annealing and tabu search do what exact blocks alone do slowly."""
    rng, side = np.random.default_rng(seed), 4
    graph = FactorGraph([2] * side**3)
    at = np.arange(side**3).reshape(side, side, side)
    for axis in range(3):
        low, high = np.delete(at, -1, axis).ravel(), np.delete(at, 0, axis).ravel()
        for i, j in zip(low, high, strict=True):
            graph.add_factor([i, j], rng.choice([-1.0, 1.0]) * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    exact = Elimination(graph.model)
    assert exact.run()
    assert Run(graph).step(4000).info.score == exact.value


def test_hard_constraints_are_met_where_ascent_gets_stuck() -> None:
    """A ring of inequality constraints with three colours, started from equal labels."""
    n = 31
    graph = FactorGraph([3] * n)
    for i in range(n):
        graph.add_factor([i, (i + 1) % n], np.where(np.eye(3) > 0, -np.inf, 0.0))
        graph.add_factor([i], [5.0, 0.0, -5.0])
    run = Run(graph).step(20)
    assert run.info.score == 5.0 * 15 - 5.0


def test_a_large_graph_is_coloured() -> None:
    """Seven neighbours on average and four colours: hopeless unless the most constrained vertices come first."""
    rng = np.random.default_rng(8)
    edges = {tuple(sorted(rng.choice(800, 2, replace=False).tolist())) for _ in range(2800)}
    graph = FactorGraph([4] * 800)
    for edge in sorted(edges):
        graph.add_factor(edge, np.where(np.eye(4) > 0, -np.inf, 0.0))
    run = Run(graph).step(3)
    assert run.info.score == 0.0
    assert run.info.entries_touched < 1e9  # feasible rounding is counted, too


def test_random_clauses_are_satisfied() -> None:
    """Backtracking gets lost in these, min-conflicts does not."""
    rng = np.random.default_rng(2)
    graph = FactorGraph([2] * 1500)
    for _ in range(5400):
        clause = np.zeros((2, 2, 2))
        clause[tuple(rng.integers(0, 2, 3))] = -np.inf
        graph.add_factor(rng.choice(1500, 3, replace=False), clause)
    graph.add_factor([0], [-np.inf, 0.0])
    assert Run(graph).step(3).info.score == 0.0


def test_a_contradiction_is_proven() -> None:
    graph = FactorGraph([2, 2, 2])
    for i, j in [(0, 1), (1, 2), (2, 0)]:
        graph.add_factor([i, j], np.where(np.eye(2) > 0, -np.inf, 0.0))
    assert Run(graph).step(20).info.status == lib.FGI_INFEASIBLE


def test_an_offered_labeling_is_used() -> None:
    graph = random_graph(np.random.default_rng(5), 30, 60, 3)
    good = Run(graph, 1).step(200)
    other = Run(graph, 2)
    labels = good.labels()
    assert labels is not None
    check(lib.fgi_solver_offer(other.solver, pointer(labels), other.error), other.error)
    assert other.step(5).info.score >= good.info.score


def test_one_label_each_and_no_factors() -> None:
    assert Run(FactorGraph([1, 1])).step(3).info.score == 0.0
    graph = FactorGraph([3, 2])
    graph.add_factor([0], [0.0, 2.0, 1.0])
    assert Run(graph).step(3).info.score == 2.0


def test_elites_are_joined_alike_however_the_run_is_cut() -> None:
    """A frustrated grid: many epochs, and what they found put together, by the same steps in slices of any length."""
    rng = np.random.default_rng(5)
    side = 12
    graph = FactorGraph([2] * side * side)
    for i in range(side * side):
        graph.add_factor([i], rng.normal(size=2))
        for j in (i + 1, i + side):
            if j < side * side and (j == i + side or j % side):
                graph.add_factor([i, j], 10 * rng.uniform(-1, 1) * np.array([[1, -1], [-1, 1]]))
    whole = Run(graph, seed=3).step(3000)
    cut = Run(graph, seed=3)
    while cut.info.iterations < 3000:
        cut.step(3000 - cut.info.iterations, seconds=2e-3)
    np.testing.assert_array_equal(whole.labels(), cut.labels())
    assert whole.info.entries_touched == cut.info.entries_touched
    exact = Elimination(graph.model)
    assert exact.run()
    assert whole.info.score == pytest.approx(exact.value, rel=1e-12)


def test_it_pauses_by_work_in_the_middle_of_moves() -> None:
    """At the same places with the same labeling, whenever the clock was looked at on the way."""
    rng = np.random.default_rng(0)
    n, labels = 60, 30
    edges = np.stack(np.triu_indices(n, 1), 1)
    tables = rng.normal(size=(len(edges), labels, labels))
    graph = FactorGraph.from_arrays([labels] * n, rng.normal(size=(n, labels)), edges, tables=tables)
    whole, sliced = (Search(graph.snapshot(), Settings("auto", gap=0.0)) for _ in range(2))
    grants, grant, piece = 60, 1e6, 4e6  # some moves take tens of grants; a piece of one, such as a large table, two
    moves = []
    for k in range(1, grants + 1):
        for member in (whole, sliced):
            member.owe(grant)
        whole.work_off(np.inf)
        while sliced.busy:
            sliced.work_off(clock.now() + 1e-4)
        assert k * grant <= whole.work <= k * grant + piece
        assert (whole.work, whole.score, whole.iterations) == (sliced.work, sliced.score, sliced.iterations)
        assert np.array_equal(whole.labels(), sliced.labels())
        moves.append(whole.iterations)
    assert any(a == b for a, b in pairwise(moves))  # in the middle of one


@pytest.mark.parametrize("seed", range(3))
def test_dense_models_are_ahead_of_ascent_with_restarts(seed: int) -> None:
    """Annealing and tabu search over all variables: what moves of exact blocks cannot do there."""
    rng, n, card = np.random.default_rng(seed), 150, 6
    edges = np.unique(np.sort(rng.integers(0, n, (6000, 2)), axis=1), axis=0).astype(np.int32)
    edges = edges[edges[:, 0] < edges[:, 1]]
    tables = rng.normal(size=(len(edges), card, card))
    graph = FactorGraph.from_arrays(np.full(n, card), rng.normal(size=(n, card)), edges, tables=tables)
    ascents = Run(graph, seed, method=lib.FGI_ICM).step(200)
    assert Run(graph, seed).step(12).info.score > ascents.info.score


@pytest.mark.parametrize("truncated", [1.0, 3.0])
def test_tables_by_distance_lead_the_same_way_written_out(truncated: float) -> None:
    """Only labels near the old one and the new one are brought up to date: as much as for a table of any kind."""
    rng = np.random.default_rng(int(truncated))
    n, labels = 40, np.arange(12)
    distance = np.abs(labels[:, None] - labels)
    written = -0.3 * np.minimum(distance, truncated)
    bent = written.copy()
    bent[0, -1] -= 1e-9  # no longer by distance alone, so that whole lines are read
    pairs = np.argwhere(np.triu(rng.random((n, n)) < 0.4, 1)).astype(np.int32)
    unary, weights = rng.normal(size=(n, len(labels))), rng.uniform(0.3, 1.3, len(pairs))
    implicit = Potts(0.0, -0.3) if truncated == 1 else AbsDiff(0.3, truncated)
    results = []
    for table in (implicit, written, bent):
        g = FactorGraph.from_arrays(np.full(n, len(labels)), unary, pairs, tables=[table], weights=weights)
        results.append(solve(g, "search", max_iterations=60))
        assert results[-1].score == g.score(results[-1].labels)
    assert results[0].score == results[1].score
    np.testing.assert_array_equal(results[0].labels, results[1].labels)
    assert results[2].score == pytest.approx(results[0].score, rel=1e-6)


@pytest.mark.parametrize("seed", [1, 2])
def test_partitions_do_not_need_few_labels(seed: int) -> None:
    """A multicut with a label for every vertex: where labels are alike, those that nobody has are one choice."""
    rng = np.random.default_rng(seed)
    n = 60
    pairs = np.argwhere(np.triu(rng.random((n, n)) < 0.5, 1)).astype(np.int32)
    weights = rng.normal(size=len(pairs))
    scores = []
    for labels in (8, n):
        g = FactorGraph.from_arrays(
            np.full(n, labels),
            np.zeros((n, labels)),
            pairs,
            table_ids=(weights < 0).astype(np.int32),
            tables=[Potts(0.0, -1.0), Potts(0.0, 1.0)],
            weights=np.abs(weights),
        )
        r = solve(g, "search", seed=seed, max_iterations=200)
        assert r.score == g.score(r.labels)
        scores.append(r.score)
    assert scores[1] >= 0.98 * scores[0]  # .96 and .84 when all labels were looked at
