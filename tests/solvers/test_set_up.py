"""Set-up is in pieces: a run whose time is over does one of them, and the answer is that of a run in one go."""

from __future__ import annotations

import numpy as np
import pytest

from fginfer import FactorGraph, Potts, Solver, SolverError, solve
from fginfer.core import clock
from fginfer.engine import NativeEngine, Settings

PIECES = "trws", "bp", "mplp", "ad3", "psdd", "gdmm", "bnb"  # whose set-up takes more than a pass or two
METHODS = (*PIECES, "clauses", "icm", "search", "slabs")


def sparse(n: int, seed: int = 0) -> FactorGraph:
    """Three edges a variable, anywhere."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n, (3 * n, 2)).astype(np.int32)
    edges = edges[edges[:, 0] != edges[:, 1]]
    weights = rng.integers(1, 4, len(edges)).astype(float)
    unary = rng.normal(size=(n, 3))
    return FactorGraph.from_arrays(np.full(n, 3), unary, edges, tables=[Potts(0.0, -0.5)], weights=weights)


def pieces(method: str, n: int) -> int:
    """Runs without time until the first iteration is over."""
    engine = NativeEngine(sparse(n).snapshot(), Settings(method, start_time=clock.now()))
    runs = 0
    while engine.info.iterations + engine.info.sweeps == 0:
        assert engine.run(0.0, -1) == "running"
        runs += 1
    return runs


@pytest.mark.parametrize("method", PIECES)
def test_a_run_without_time_does_a_piece_whatever_the_size(method: str) -> None:
    few, many = pieces(method, 10000), pieces(method, 40000)
    assert few > 10
    assert many > 2.5 * few


@pytest.mark.parametrize("method", METHODS)
def test_pieces_make_the_same_answer(method: str) -> None:
    graph = sparse(300 if method == "slabs" else 4000, seed=1)
    if method == "slabs":  # a strip
        graph = FactorGraph.grid((4, 60), np.random.default_rng(2).normal(size=(4, 60, 2)), Potts(0.0, 0.5))
    whole = NativeEngine(graph.snapshot(), Settings(method, max_iterations=3, start_time=clock.now()))
    whole.run(-1.0, -1)
    cut = NativeEngine(graph.snapshot(), Settings(method, max_iterations=3, start_time=clock.now()))
    while cut.status == "running":
        cut.run(0.0, -1)
    one, other = whole.result(dual=False), cut.result(dual=False)
    assert (one.score, one.bound, one.status, one.iterations) == (
        other.score,
        other.bound,
        other.status,
        other.iterations,
    )
    assert one.labels is not None
    np.testing.assert_array_equal(one.labels, other.labels)


@pytest.mark.parametrize("method", ["bnb", "mplp", "psdd", "ad3"])
def test_messages_before_the_set_up_is_done(method: str) -> None:
    """Whoever brings messages does not wait for pieces, and may bring them between two."""
    graph = sparse(2000, seed=3)
    given = solve(graph, "mplp", max_iterations=2).messages
    assert given is not None
    answers = []
    for runs in (0, 1):
        engine = NativeEngine(graph.snapshot(), Settings(method, max_iterations=2, start_time=clock.now()))
        for _ in range(runs):
            engine.run(0.0, -1)
        assert engine.warm_start(given)
        engine.run(-1.0, -1)
        answers.append((engine.info.score, engine.info.bound))
    assert answers[0] == answers[1]


def test_results_of_an_unfinished_set_up() -> None:
    graph = sparse(20000)
    for method in PIECES:
        with Solver(graph, method) as solver:
            solver.run(seconds=1e-9)
            early = solver.result()
        assert early.labels is not None
        assert early.bound is not None
        assert early.score == graph.score(early.labels) <= early.bound


def test_slabs_refuse_what_no_order_is_looked_for() -> None:
    """Before layers and copies are made, which take seconds."""
    n = 380000
    edges = np.stack([np.arange(n), np.arange(1, n + 1)], 1).astype(np.int32)
    chain = FactorGraph.from_arrays(np.full(n + 1, 2), np.zeros((n + 1, 2)), edges, tables=[Potts(0.0, -1.0)])
    with pytest.raises(SolverError, match="too large"):
        Solver(chain, "slabs")


@pytest.mark.parametrize("method", ["trws", "gdmm", "icm", "search"])
def test_large_models_begin_with_the_labels_of_the_unaries(method: str) -> None:
    """And with the bound of no messages: all else takes long."""
    unary = np.random.default_rng(0).random((40, 250_000))
    graph = FactorGraph.grid((8, 5), unary.reshape(8, 5, -1), Potts(0.0, -0.5))
    engine = NativeEngine(graph.snapshot(), Settings(method, start_time=clock.now()))
    engine.run(0.0, -1)
    first, second = engine.native.events()[:2]
    assert first["score"] == graph.score(unary.argmax(1))
    assert second["bound"] == pytest.approx(unary.max(1).sum())


def test_large_models_begin_with_what_is_offered() -> None:
    graph = FactorGraph.from_arrays([5_000_000] * 2, np.zeros((2, 5_000_000)), [[0, 1]], tables=[Potts(1.0, 0.0)])
    engine = NativeEngine(graph.snapshot(), Settings("gdmm", start_time=clock.now()))
    engine.offer(np.array([7, 8], np.int32))
    engine.run(0.0, -1)
    assert engine.native.events()["score"].tolist() == [0.0]
