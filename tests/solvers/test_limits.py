"""Nothing found is ever lost, no limit is ever missed: long runs, failing methods, large models under a clock."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fginfer import FactorGraph, Solver, available_methods, solve
from fginfer.core import clock
from fginfer.engine import NativeEngine, Settings
from fginfer.portfolio import auto
from fginfer.portfolio.ledger import Account
from fginfer.portfolio.members.member import Member
from fginfer.portfolio.part import work_of_round
from fginfer.portfolio.rules import Rules
from fginfer.portfolio.size import Size
from fginfer.portfolio.team import Team
from fginfer.portfolio.worker import View, Worker


def grid(side: int, seed: int = 0, labels: int = 3) -> FactorGraph:
    rng = np.random.default_rng(seed)
    index = np.arange(side * side).reshape(side, side)
    edges = np.concatenate(
        [
            np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], 1),
            np.stack([index[:-1].ravel(), index[1:].ravel()], 1),
        ]
    )
    tables = 2.0 * rng.normal(size=(len(edges), labels, labels))
    return FactorGraph.from_arrays([labels] * side**2, rng.normal(size=(side**2, labels)), edges, tables=tables)


def sparse(n: int, m: int) -> FactorGraph:
    """Binary variables, random edges."""
    rng = np.random.default_rng(0)
    edges = rng.integers(0, n, (m, 2)).astype(np.int32)
    edges = edges[edges[:, 0] != edges[:, 1]]
    unaries = np.zeros((n, 2))
    unaries[:, 1] = rng.normal(size=n)
    weights = rng.normal(0, 0.5, len(edges))
    tables = np.array([[[0.0, 0], [0, 1]], [[0.0, 0], [0, -1]]])
    return FactorGraph.from_arrays(
        [2] * n, unaries, edges, table_ids=(weights < 0).astype(np.int32), tables=tables, weights=np.abs(weights)
    )


class IdleMember(Worker):
    """A member that does what it owes in no time and finds nothing."""

    name, score, bound = "idle", -np.inf, np.inf
    owed = most = 0.0

    def __init__(self) -> None:
        self.account = Account(self.name)

    @classmethod
    def make(cls, team: View) -> None:
        return None

    def labels(self) -> None:
        return None

    def owe(self, work: float) -> None:
        self.owed = work
        self.most = max(self.most, work)

    @property
    def busy(self) -> bool:
        return self.owed > 0

    def work_off(self, deadline: float) -> None:
        self.owed = 0.0


def test_a_million_rounds() -> None:
    graph = grid(2)
    state = Team(graph.snapshot(), None, Settings("auto"), 1e9)
    state.offer(np.zeros(4, np.int32), graph.score(np.zeros(4, np.int32)))
    member = IdleMember()
    state.members = [member]
    engine: Any = SimpleNamespace(aside=lambda job: iter(()))
    for begin in (0, 10**6 - 1000):  # those between are skipped, since nothing else depends on the number
        state.round = begin
        for _ in range(2000):
            for _ in state.begin_round(engine):
                pass
            member.work_off(np.inf)
            state.end_round()
    assert state.running
    assert member.most == Rules.longest_round == work_of_round(10**12, Rules())


def test_auto_works_for_as_long_as_a_fake_clock_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a thousand rounds in which nothing happens: members that have ended their work, time that flies."""
    graph = grid(30, labels=4)
    solver = Solver(graph, "auto", gap=0.0)
    solver.run(iterations=1)
    best = solver.progress().score
    monkeypatch.setattr(Member, "work_off", lambda self, deadline: setattr(self, "owed", 0.0))
    time_flies = itertools.count(clock.now(), 0.01)
    monkeypatch.setattr(clock, "now", lambda: next(time_flies))
    assert solver.run(seconds=200.0) == "running"
    result = solver.result()
    assert result.status == "time_limit"
    assert result.iterations > 1100
    assert result.score == best == graph.score(result.labels)


def failing(engine: Any, at: int, error: Exception) -> Any:
    """engine.run, which fails at the call with this number."""
    calls = [0]
    run = engine.run

    def fails(self: Any, seconds: float, iterations: int) -> Any:
        calls[0] += 1
        if calls[0] >= at:
            raise error
        return run(self, seconds, iterations)

    return fails


@pytest.mark.parametrize("error", [OverflowError("1025"), MemoryError("none"), RuntimeError("a bug")])
@pytest.mark.parametrize("method", ["auto", "trws"])
def test_a_failure_loses_nothing(method: str, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = grid(40)
    engine = auto.AutoEngine if method == "auto" else NativeEngine
    monkeypatch.setattr("fginfer.solver.SLICE", 0.001)
    monkeypatch.setattr(engine, "run", failing(engine, 20, error))
    with pytest.warns(RuntimeWarning, match="failed"):
        result = solve(graph, method, time_limit=60, gap=0.0)
    assert result.status == "failed"
    assert result.score == graph.score(result.labels)
    assert result.bound is not None
    assert result.bound >= result.score


def test_a_failure_before_anything_is_found_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NativeEngine, "run", failing(NativeEngine, 1, RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        solve(grid(4), "trws")


def test_an_error_of_the_callback_is_the_callers() -> None:
    def callback(progress: object) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError):
        solve(grid(14), "trws", callback=callback)


def test_a_member_that_runs_out_of_memory_leaves_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    run = NativeEngine.run

    def fails(self: NativeEngine, seconds: float, iterations: int) -> str:
        if self.settings.method == "search":
            raise MemoryError("no memory for a search")
        return run(self, seconds, iterations)

    monkeypatch.setattr(NativeEngine, "run", fails)
    result = solve(grid(8), "auto", gap=0.0, time_limit=60)
    assert result.status == "optimal"


REFUSE_IT = {"assignment", "sdp", "slabs", "triples"}


@pytest.mark.parametrize("method", sorted(set(available_methods()) - REFUSE_IT))
def test_a_large_model_keeps_its_limit(method: str) -> None:
    """Generous, since the machine may be busy: the point is that no call goes on for minutes."""
    graph = sparse(60_000, 180_000)
    began = time.perf_counter()
    result = solve(graph, method, time_limit=0.3, dual=False)
    assert time.perf_counter() - began < 5.0
    assert result.status in ("time_limit", "converged", "optimal", "gap_reached")


def test_time_for_the_copy_of_the_messages_is_part_of_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of minutes, of which two iterations take no part, however busy the machine."""
    graph, seconds = sparse(1000, 3000), []
    size = len(solve(graph, "trws", max_iterations=1).messages)
    monkeypatch.setattr("fginfer.solver.COPY_SECONDS", 10.0 / size)
    run = Solver.run
    monkeypatch.setattr(Solver, "run", lambda self, left, *rest: (seconds.append(left), run(self, left, *rest))[1])
    solve(graph, "trws", time_limit=200.0, gap=0.0, max_iterations=2)
    solve(graph, "trws", time_limit=200.0, gap=0.0, max_iterations=2, dual=False)
    solve(graph, "trws", time_limit=20.0, gap=0.0, max_iterations=2)
    assert seconds[0] < 190.0
    assert 190.0 < seconds[1] <= 200.0
    assert seconds[2] > 0.8 * 20.0 - 10.0  # never more than a fifth of it
    monkeypatch.setattr("fginfer.solver.COPY_SECONDS", 300.0 / size)
    late = solve(graph, "trws", time_limit=200.0, gap=0.0, max_iterations=2)
    assert late.messages is None  # their copy would miss the limit
    assert solve(graph, "trws", gap=0.0, max_iterations=2).messages is not None


@pytest.mark.parametrize("method", ["trws", "auto"])
def test_time_for_what_was_not_found_is_part_of_the_limit(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, seconds = sparse(1000, 3000), []
    monkeypatch.setattr("fginfer.engine.SCORE_SECONDS", 30.0 / graph.snapshot().n_factors)
    monkeypatch.setattr("fginfer.engine.BOUND_SECONDS", 50.0 / graph.snapshot().n_factors)
    run = Solver.run
    monkeypatch.setattr(Solver, "run", lambda self, left, *rest: (seconds.append(left), run(self, left, *rest))[1])
    solve(graph, method, time_limit=200.0, max_iterations=2)
    assert seconds[0] < 120.0
    solve(graph, method, time_limit=60.0, max_iterations=2)
    assert len(seconds) == 1  # nothing but labels by the unaries and the bound of no messages


def test_a_dense_binary_model_has_a_bound_before_the_search_takes_its_time() -> None:
    rules = {"many_factors": 40_000, "many_binary": 1_000}
    n = 300
    rng = np.random.default_rng(0)
    edges = np.stack(np.triu_indices(n, 1), 1).astype(np.int32)
    weights = rng.normal(0.0, 0.03, len(edges))
    tables = np.array([[[0.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, -1.0]]])
    kinds = (weights < 0).astype(np.int32)
    unaries = np.stack([np.zeros(n), rng.normal(-1.0, 2.0, n)], 1)
    graph = FactorGraph.from_arrays(
        np.full(n, 2), unaries, edges, table_ids=kinds, tables=tables, weights=np.abs(weights)
    )
    sweeps = solve(graph, "trws", max_iterations=4, gap=0.0, dual=False)
    size = Size(graph.snapshot(), Rules.changed(rules))
    assert size.is_huge
    assert (size.relaxation, size.search_is_due) == ("trws", 4)
    with Solver(graph, "auto", gap=0.0, rules=rules) as solver:
        while (bound := solver.progress().bound) is None or bound > sweeps.bound * (1 + 1e-12):
            solver.run(iterations=1)
        while solver.progress().score <= sweeps.score:
            solver.run(iterations=1)


def test_gdmm_on_sparse_graphs_activates_in_linear_time() -> None:
    """Every variable on and few factors each: what is done per variable must not grow with their number."""
    result = solve(sparse(20_000, 60_000), "gdmm", formulation="binary", gap=1e-3, max_iterations=400)
    assert result.status == "gap_reached"


@pytest.mark.parametrize("arity", [2, 3])
def test_trws_has_a_labeling_at_once(arity: int) -> None:
    """Also where hard constraints forbid what the unaries say, and there is little time."""
    rng = np.random.default_rng(0)
    graph = FactorGraph([3] * 60)
    for i in range(60):
        graph.add_factor([i], rng.normal(size=3))
    for i in range(60 - arity):
        table = np.zeros((3,) * arity)
        table[(0,) * arity] = table[(1,) * arity] = table[(2,) * arity] = -np.inf
        graph.add_factor(list(range(i, i + arity)), table)
    solver = Solver(graph, "trws", gap=0.0)
    solver.run(seconds=0.001)
    found = solver.result()
    assert found.score == graph.score(found.labels) > -np.inf


def test_trws_that_finds_a_contradiction_says_so() -> None:
    graph = FactorGraph([2, 2, 2])
    for pair in ([0, 1], [1, 2], [0, 2]):
        graph.add_factor(pair, [[-np.inf, 0.0], [0.0, -np.inf]])  # an odd cycle: no relaxation sees it
    assert solve(graph, "trws").status == "infeasible"


@pytest.mark.parametrize("threads", [1, 3])
def test_the_set_up_of_gdmm_is_in_pieces(threads: int) -> None:
    """However short the slices: each does a piece, many of them make the set-up, and the answer is that of one run."""
    graph = grid(250, labels=2)
    whole = solve(graph, "gdmm", max_iterations=2, gap=0.0)
    solver = Solver(graph, "gdmm", max_iterations=2, gap=0.0, threads=threads)
    slices = 0
    while solver.progress().score is None:
        assert solver.run(seconds=1e-6) == "running"
        slices += 1
    assert slices > 10
    while solver.run(seconds=1e-6) == "running":
        pass
    result = solver.result()
    assert (result.score, result.bound, result.iterations) == (whole.score, whole.bound, whole.iterations)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_limit_that_is_over_at_once_leaves_a_labeling_and_a_bound(threads: int) -> None:
    """A model too large for a first ascent: what one look at the unaries and one at the factors say."""
    graph, rules = grid(60), {"many_factors": 1000}
    with Solver(graph, threads=threads, rules=rules) as solver:
        solver.run(seconds=0.0)
        early = solver.result()
        assert early.labels is not None
        assert early.bound is not None
        assert early.score == graph.score(early.labels)
        assert early.bound >= early.score
        solver.run(iterations=4)
        later = solver.result()
    with Solver(
        graph, threads=threads, rules=rules
    ) as solver:  # a result that was asked for in between changes nothing
        solver.run(iterations=4)
        other = solver.result()
    assert later.score is not None
    assert early.score <= later.score <= later.bound <= early.bound
    assert (later.score, later.bound) == (other.score, other.bound)


@pytest.mark.parametrize("method", sorted(set(available_methods()) - {"assignment"}))  # which refuses it
def test_every_method_has_a_labeling_and_a_bound_when_there_was_no_time(method: str) -> None:
    graph = grid(12)
    result = solve(graph, method, time_limit=0.0)
    assert result.labels is not None
    assert result.bound is not None
    assert result.score == graph.score(result.labels)
    assert result.bound >= result.score
    assert (result.trace[-1].score, result.trace[-1].bound) == (result.score, result.bound)
    cutoff = result.score + 1.0  # a labeling that is not wanted is none
    assert solve(graph, method, time_limit=0.0, cutoff=cutoff).labels is None
