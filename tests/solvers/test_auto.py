"""The portfolio: right on every kind of model, honest when stopped, the same for any number of threads and slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fginfer.portfolio.auto as auto
import fginfer.portfolio.members.elimination as elimination
import fginfer.portfolio.members.proof as trees
import fginfer.portfolio.stages as policy
import fginfer.portfolio.team as team
from fginfer import FactorGraph, Potts, SettingsError, Solver, solve
from fginfer.core.exact import Elimination
from fginfer.engine import Settings
from fginfer.portfolio.ledger import Account
from fginfer.portfolio.rules import Rules
from fginfer.portfolio.team import Trial
from fginfer.portfolio.worker import View, Worker
from tests.exact.models import SHAPES, brute_force, check_optimum, random_graph

KINDS = tuple(SHAPES.values())


def grid(side: int, seed: int, labels: int = 2, strength: float = 1.0) -> FactorGraph:
    rng = np.random.default_rng(seed)
    graph = FactorGraph([labels] * side**2)
    for i in range(side**2):
        graph.add_factor([i], rng.normal(size=labels))
        for j in ([i + 1] if (i + 1) % side else []) + ([i + side] if i + side < side**2 else []):
            graph.add_factor([i, j], rng.normal(size=(labels, labels)) * strength)
    return graph


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=100, deadline=None)
def test_equals_brute_force(seed: int, reduce: bool) -> None:
    graph = random_graph(seed, KINDS[seed % len(KINDS)])
    best = brute_force(graph)
    result = solve(graph, presolve=reduce, gap=0.0)
    check_optimum(graph, result, best, slack=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_every_stage_of_the_policy_finds_the_optimum(seed: int) -> None:
    graph = grid(5, seed, labels=3, strength=2.0)
    known = solve(graph, method="bnb", gap=0.0)
    rules = {"quick_work": 0.0, "quick_passes": 0.0}
    assert solve(graph, gap=0.0, rules=rules).score == pytest.approx(known.score)
    assert solve(graph, gap=0.0, presolve=False, rules=rules).score == pytest.approx(known.score)
    rules |= {"elimination_round": 1, "long_pass": 10.0}  # huge: one relaxation, then a search; elimination ends it
    result = solve(graph, gap=0.0, presolve=False, rules=rules)
    assert result.status == "optimal"
    assert result.score == pytest.approx(known.score)


def hard() -> FactorGraph:
    return grid(14, 5, labels=4, strength=3.0)


@pytest.mark.slow
def test_threads_and_slices_change_nothing() -> None:
    graph = hard()
    runs = [solve(graph, threads=threads, max_iterations=6) for threads in (1, 2, 4)]
    solver = Solver(graph, max_iterations=6)
    while solver.run(seconds=0.002) == "running":
        pass
    runs.append(solver.result())
    for run in runs:
        assert run.status == runs[0].status == "iteration_limit"
        assert run.score == runs[0].score
        assert run.bound == runs[0].bound
        assert np.array_equal(run.labels, runs[0].labels)


@pytest.mark.slow
def test_threads_and_slices_change_nothing_where_iterations_are_long() -> None:
    """An iteration of every member is more than a round: members pause in the middle of theirs, at the same places."""
    rng = np.random.default_rng(0)
    n, labels = 60, 40
    edges = np.stack(np.triu_indices(n, 1), 1)
    tables = rng.normal(size=(len(edges), labels, labels))
    graph = FactorGraph.from_arrays([labels] * n, rng.normal(size=(n, labels)), edges, tables=tables)
    runs = [solve(graph, threads=threads, max_iterations=9, gap=0.0) for threads in (1, 2, 3)]
    solver = Solver(graph, threads=2, max_iterations=9, gap=0.0)
    while solver.run(seconds=0.003) == "running":
        pass
    for run in [*runs, solver.result()]:
        assert run.status == "iteration_limit"
        assert (run.score, run.bound) == (runs[0].score, runs[0].bound)
        assert np.array_equal(run.labels, runs[0].labels)


def five_grids() -> FactorGraph:
    rng = np.random.default_rng(0)
    index = np.arange(5 * 144).reshape(5, 12, 12)
    right, down = (index[:, :, :-1], index[:, :, 1:]), (index[:, :-1], index[:, 1:])
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in (right, down)])
    tables = 3.0 * rng.normal(size=(len(edges), 4, 4))
    return FactorGraph.from_arrays([4] * index.size, rng.normal(size=(index.size, 4)), edges, tables=tables)


@pytest.mark.slow
def test_threads_change_nothing_where_a_model_falls_into_parts() -> None:
    graph = five_grids()
    runs = [solve(graph, threads=threads, max_iterations=5, gap=0.0) for threads in (1, 2, 4)]
    for run in runs:
        assert run.status == "iteration_limit"
        assert run.score == graph.score(run.labels)
        assert (run.score, run.bound) == (runs[0].score, runs[0].bound)
        assert np.array_equal(run.labels, runs[0].labels)


@pytest.mark.slow
def test_points_of_the_trace_are_no_higher_than_the_tables_say() -> None:
    """Labels of parts are not put together in every round: their point is what they have at least."""
    graph = five_grids()
    engine = auto.AutoEngine(graph, Settings("auto", gap=0.0))
    seen = 0
    while engine.run(-1.0, 1) == "running" and seen < 20:
        told = max((score for _, score, _ in engine.policy.known.points), default=-np.inf)
        labels = engine.now().labels
        division = engine.policy.division
        if labels is None or division is None or division.unexpanded == -np.inf:
            continue
        assert told <= graph.score(labels) <= told + 1e-9 * abs(told)
        seen += 1
    assert seen > 0


def test_a_limit_is_a_status_and_the_trace_only_improves() -> None:
    graph = hard()
    result = solve(graph, time_limit=0.2)
    assert result.status == "time_limit"
    assert result.score is not None
    assert result.bound is not None
    assert result.bound > result.score
    assert result.trace[-1].score == result.score
    assert result.trace[-1].bound == result.bound
    for before, after in zip(result.trace, result.trace[1:], strict=False):
        assert after.seconds >= before.seconds
        assert before.score is None or (after.score is not None and after.score >= before.score)
        assert before.bound is None or (after.bound is not None and after.bound <= before.bound)


def test_components_are_solved_apart() -> None:
    rng = np.random.default_rng(0)
    graph = FactorGraph([3] * 40)
    total = 0.0
    for start in range(0, 40, 8):
        part = FactorGraph([3] * 8)
        for i in range(8):
            for j in range(i):
                table = rng.normal(size=(3, 3))
                part.add_factor([i, j], table)
                graph.add_factor([start + i, start + j], table)
        total += solve(part, method="bnb", gap=0.0).score or 0.0
    for reduce in (True, False):
        result = solve(graph, gap=0.0, presolve=reduce)
        assert result.status == "optimal"
        assert result.score == pytest.approx(total)


def test_models_without_a_choice() -> None:
    assert solve(FactorGraph([])).score == 0.0
    lonely = FactorGraph([3, 1])
    lonely.add_factor([0], [0.0, 2.0, 1.0])
    lonely.add_factor([], 5.0)
    result = solve(lonely)
    assert (result.score, result.status) == (7.0, "optimal")
    assert result.labels is not None
    assert result.labels.tolist() == [1, 0]


def test_contradiction_is_infeasible() -> None:
    graph = FactorGraph([2, 2, 2])
    for i, j in ((0, 1), (1, 2), (0, 2)):
        graph.add_factor([i, j], Potts(-np.inf, 0.0))
    assert solve(graph).status == "infeasible"


def test_warm_start_is_never_lost() -> None:
    graph = hard()
    first = solve(graph, time_limit=0.3)
    again = solve(graph, time_limit=0.0, warm_start=first)
    assert again.score == first.score


def test_update_keeps_the_labels_and_starts_the_clock_anew() -> None:
    graph = grid(6, 0, labels=3)
    solver = Solver(graph)
    solver.run()
    before = solver.result()
    graph.set_unary(0, [9.0, 0.0, 0.0])
    solver.update()
    solver.run()
    after = solver.result()
    assert after.score == pytest.approx(solve(graph).score)
    assert before.score != after.score
    assert all(0.0 <= point.seconds <= after.seconds + 0.1 for point in after.trace)


def test_unknown_option() -> None:
    with pytest.raises(SettingsError, match="rho"):
        solve(hard(), method="auto", rho=1.0)


def test_tight_relaxations_cost_no_more_than_sweeps() -> None:
    """Sweeps alone end it: branch and bound, presolve and rounds never begin."""
    rng = np.random.default_rng(0)
    graph = FactorGraph.grid((60, 60), rng.normal(size=(60, 60, 4)), Potts(0.0, -0.3))
    result = solve(graph, "auto", gap=1e-6)
    sweeps = solve(graph, "trws", gap=1e-6)
    assert sweeps.status in ("optimal", "gap_reached")
    assert result.status in ("optimal", "gap_reached")
    assert result.iterations == 0
    assert result.score == sweeps.score


def test_chains_of_many_labels_cost_no_more_than_sweeps() -> None:
    rng = np.random.default_rng(1)
    edges = np.stack([np.arange(29), np.arange(1, 30)], 1).astype(np.int32)
    graph = FactorGraph.from_arrays(
        np.full(30, 400), rng.normal(size=(30, 400)), edges, tables=[rng.normal(size=(400, 400))]
    )
    result = solve(graph)
    assert result.status == "optimal"
    assert result.iterations == 0  # no round of the portfolio
    assert result.score == pytest.approx(solve(graph, method="trws").score)


def test_what_sweeps_have_found_counts_at_any_time() -> None:
    """A run that ends among the first sweeps has their labeling and bound."""
    rng = np.random.default_rng(1)
    graph = FactorGraph.grid((80, 80), rng.normal(size=(80, 80, 4)), Potts(0.0, -0.6))
    solver = Solver(graph, "auto", max_iterations=1)
    bounds = []
    while solver.run(seconds=0.001) == "running":
        bounds.append(solver.progress().bound)
    seen = [bound for bound in bounds if bound is not None]
    assert len(set(seen)) > 2  # more than the trivial one, and the last
    assert seen == sorted(seen, reverse=True)


def warehouses(stores: int, houses: int, seed: int) -> FactorGraph:
    """Every store is supplied from an open house: weak bounds for sweeps, a few nodes for soft arc consistency."""
    rng = np.random.default_rng(seed)
    graph = FactorGraph([2] * houses + [houses] * stores)
    for w in range(houses):
        graph.add_factor([w], [0.0, -rng.integers(300, 900)])
    for s in range(houses, houses + stores):
        graph.add_factor([s], -rng.integers(0, 1000, houses).astype(float))
        for w in range(houses):
            table = np.zeros((2, houses))
            table[0, w] = -np.inf
            graph.add_factor([w, s], table)
    return graph


def test_a_few_nodes_of_soft_arc_consistency_come_before_presolve(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = warehouses(40, 15, 0)
    monkeypatch.setattr(policy, "reduce_and_divide", lambda run: pytest.fail("edac was not asked first"))
    result = solve(graph, gap=0.0)
    assert result.status == "optimal"
    assert result.score == solve(graph, "edac", gap=0.0).score


def test_an_order_of_elimination_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def make(*args: Any) -> Elimination:
        made.append(Elimination(*args))
        return made[-1]

    monkeypatch.setattr(elimination, "Elimination", make)
    rng, side = np.random.default_rng(0), 14
    graph = FactorGraph([2] * side**2)
    for i in range(side**2):
        for j in (i // side * side + (i + 1) % side, (i + side) % side**2):  # a torus of spins, many of them frustrated
            graph.add_factor([i, j], rng.choice([-1.0, 1.0]) * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    rules = {"at_once": 0.0}  # too much at first, not in a later round
    solve(graph, gap=0.0, presolve=False, max_iterations=Rules.elimination_round, rules=rules)
    assert len(made) == 1


class Ending(Worker):
    """A member that ends, or does not, once it has worked."""

    name, score, bound = "ending", 0.0, 10.0

    def __init__(self, end: str, score: float) -> None:
        self.end, self.score, self.account, self.worked = end, score, Account(end), 0

    @classmethod
    def make(cls, team: View) -> None:
        return None

    @property
    def busy(self) -> bool:
        return not self.worked

    def owe(self, work: float) -> None:
        raise AssertionError

    def work_off(self, deadline: float) -> None:
        self.worked += 1
        self.status = self.end

    def labels(self) -> None:
        return None


def test_nobody_works_after_a_proof_and_what_others_did_does_not_count() -> None:
    state = team.Team(grid(2, 0).model, None, Settings("auto", 0.0, 0, 1, None, -np.inf, 0.0), 1e9)
    first, proof, late = Ending("running", 1.0), Ending("optimal", 2.0), Ending("running", 3.0)
    state.members = [first, proof, late]
    assert len(state.busy) == 3
    state.work_off(np.inf)
    assert [w.worked for w in (first, proof, late)] == [1, 1, 0]
    assert state.busy == []
    late.work_off(np.inf)  # as with threads, beside the proof
    assert state.best()[1] == 2.0
    state.collect()
    assert state.status == "optimal"
    assert state.score == 2.0


def test_where_bounds_of_dense_binary_models_are_hopeless_the_search_is_first() -> None:
    """Proofs, sweeps and presolve, none of which got on, took most of the time."""
    n, neighbours = 400, 40
    rng = np.random.default_rng(0)
    edges = np.unique(np.sort(rng.integers(0, n, (n * neighbours // 2, 2)), 1), axis=0).astype(np.int32)
    edges = edges[edges[:, 0] < edges[:, 1]]
    tables = rng.normal(size=(len(edges), 1, 1)) * np.array([[1.0, -1.0], [-1.0, 1.0]])
    graph = FactorGraph.from_arrays(np.full(n, 2), np.zeros((n, 2)), edges, tables=tables)
    found = []
    for threads in (1, 2):
        engine = auto.AutoEngine(graph, Settings("auto", 0.0, 0, threads))
        engine.run(-1.0, 10)
        assert engine.policy.division is not None
        members = engine.policy.division.parts[0].members
        work = {m.name: m.work for m in members}
        semidefinite = work.pop("sdp")  # whose bound is near: it may have as much
        assert work["search"] > 0.8 * sum(work.values())
        assert work["search"] > 0.8 * semidefinite
        found.append(engine.result())
        engine.close()
    assert (found[0].score, found[0].bound) == (found[1].score, found[1].bound)
    assert found[0].bound is not None
    assert found[0].score is not None
    assert found[0].bound > 1.5 * found[0].score


def complete(n: int) -> FactorGraph:
    rng = np.random.default_rng(0)
    graph = FactorGraph([3] * n)
    for i in range(n):
        for j in range(i):
            graph.add_factor([i, j], rng.normal(size=(3, 3)))
    return graph


def test_trees_of_the_trial_go_on_where_presolve_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = complete(20)
    members: list[object] = []
    end_round = Trial.end_round

    def watched(self: Trial) -> None:
        end_round(self)
        members[:] = self.members

    monkeypatch.setattr(Trial, "end_round", watched)
    steps = auto.AutoEngine(graph, Settings("auto", 0.0, options={"rules": {"quick_work": 1e4}})).policy
    while steps.status == "running" and steps.iterations == 0:
        steps.step()
    now = steps.division
    assert now is not None
    assert isinstance(now.parts[0], team.Team)
    assert {type(m) for m in members} == {trees.Proof, trees.QuickTree}
    assert all(any(m is other for other in now.parts[0].members) for m in members)


def watch_first_trial(
    graph: FactorGraph, monkeypatch: pytest.MonkeyPatch, rules: dict[str, float]
) -> tuple[policy.Policy, list[Trial]]:
    """A run up to the end of the first round of its trial."""
    trials: list[Trial] = []
    end_round = Trial.end_round
    monkeypatch.setattr(Trial, "end_round", lambda self: (trials.append(self), end_round(self))[1])
    steps = auto.AutoEngine(graph, Settings("auto", 0.0, options={"rules": rules})).policy
    while steps.status == "running" and not trials:
        steps.step()
    return steps, trials


def test_the_proof_of_a_tiny_model_goes_on_in_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[trees.Proof] = []
    create = trees.Proof.__init__
    monkeypatch.setattr(trees.Proof, "__init__", lambda self, *a: (made.append(self), create(self, *a))[1])
    steps, trials = watch_first_trial(complete(12), monkeypatch, {"tiny_iterations": 2, "quick_work": 1e3})
    assert trials[0].has("bnb")
    assert len(made) == 1
    assert steps.known.score > -np.inf


def test_the_proof_of_a_small_model_begins_with_the_messages_of_the_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = grid(12, 2, labels=4, strength=1.0)
    begins: list[float] = []
    start_from = Trial.start_from

    def watched(self: Trial, messages: object) -> None:
        start_from(self, messages)
        begins.extend(m.bound for m in self.members if isinstance(m, trees.Proof) and m.engine.run(0.01, 1))

    monkeypatch.setattr(Trial, "start_from", watched)
    watch_first_trial(graph, monkeypatch, {"tiny_states": 0, "most_sweeps": 16})
    cold = Solver(graph, "bnb", gap=0.0)
    cold.run(iterations=1)
    assert begins[0] < cold.progress().bound
    assert solve(graph).score == pytest.approx(solve(graph, "bnb").score)


def tree(kind: type[trees.Tree], looks: list[tuple[float, float]]) -> trees.Tree:
    made = kind(grid(2, 0).model, Settings("auto", 0.0, 0, 1, None, -np.inf, 0.0))
    made._seen_at = looks
    made.engine.info.explored = looks[-1][1]
    return made


def test_a_tree_that_is_likely_to_end_soon_has_most_of_the_work() -> None:
    steady = tree(trees.Proof, [(1e6, 0.1), (2e6, 0.2), (3e6, 0.3)])
    jump = tree(trees.QuickTree, [(1e6, 0.0), (2e6, 0.5), (3e6, 0.5)])
    slow = tree(trees.QuickTree, [(1e6, 0.1), (2e6, 0.11), (3e6, 0.12)])
    assert steady.work_left() == pytest.approx(7e6)
    assert slow.work_left() == pytest.approx(88e6)
    assert jump.work_left() == np.inf  # one large branch says nothing
    assert tree(trees.Proof, [(0.0, 0.0), (1e6, 0.2)]).work_left() == np.inf  # nor does one look
    state = team.Team(grid(2, 0).model, None, Settings("auto", 0.0, 0, 1, None, -np.inf, 0.0), 1e9)
    state.members = [steady, slow]
    assert team.let_end(state.members)
    assert (steady.share, slow.share) == (Rules.first_share, Rules.later_share)
    state.members = [jump]
    assert not team.let_end(state.members)
    assert jump.share == 1.0
