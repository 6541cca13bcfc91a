"""ICM through solve() and Solver: what every method shares is tested here, with the simplest of them."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, Potts, SettingsError, Solver, SolverError, solve, solve_many


def grid(side=12, labels=3, seed=0):
    rng = np.random.default_rng(seed)
    index = np.arange(side * side).reshape(side, side)
    edges = np.concatenate(
        [
            np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], 1),
            np.stack([index[:-1].ravel(), index[1:].ravel()], 1),
        ]
    )
    unaries = rng.normal(size=(side * side, labels))
    return FactorGraph.from_arrays(
        np.full(side * side, labels), unaries, edges, tables=[Potts(1, 0)], weights=rng.normal(size=len(edges))
    )


def test_result_is_scored_from_the_tables():
    graph = grid()
    result = solve(graph, "icm", max_iterations=20)
    assert result.status == "iteration_limit"
    assert result.iterations == 20
    assert result.score == graph.score(result.labels)
    assert result.bound >= result.score
    assert result.energy == -result.score
    assert result.gap == pytest.approx((result.bound - result.score) / max(1, abs(result.score)))
    trace = list(result.trace)
    assert trace[-1].score == result.score
    assert [p.seconds for p in trace] == sorted(p.seconds for p in trace)
    known = [p.score for p in trace if p.score is not None]
    assert known == sorted(known)
    assert result.trace[0] == trace[0]


def test_slices_and_seeds():
    graph = grid()
    whole = solve(graph, "icm", max_iterations=30, seed=5)
    stepwise = Solver(graph, "icm", seed=5)
    for _ in range(30):
        stepwise.run(iterations=1)
    parts = stepwise.result()
    assert parts.status == "iteration_limit"
    assert parts.score == whole.score
    assert parts.labels.tolist() == whole.labels.tolist()


def test_models_without_interactions_are_proven_optimal():
    graph = FactorGraph.from_arrays([3, 2], [[0.0, 2.0, 1.0], [1.0, 0.5]])
    result = solve(graph, "icm")
    assert (result.status, result.labels.tolist(), result.score) == ("optimal", [1, 0], 3.0)
    assert solve(FactorGraph([]), "icm").status == "optimal"


def test_ends_by_itself_when_nothing_gets_better():
    result = solve(grid(4), "icm")
    assert (result.status, result.gap > 0) == ("converged", True)


def test_time_limit_returns_what_there_is():
    graph = grid(40)
    result = solve(graph, "icm", time_limit=0.05)
    assert result.status == "time_limit"
    assert result.score == graph.score(result.labels)
    nothing = solve(graph, "icm", time_limit=0)
    assert nothing.status == "time_limit"
    unaries = np.random.default_rng(0).normal(size=(1600, 3))  # the grid's: all there was time for
    np.testing.assert_array_equal(nothing.labels, unaries.argmax(1))
    assert nothing.score == graph.score(nothing.labels) <= nothing.bound


@pytest.mark.parametrize("forbid", ["constant", "unary", "table"])
def test_infeasible_models(forbid):
    graph = FactorGraph([2, 2])
    if forbid == "constant":
        graph.add_factor([], -np.inf)
    elif forbid == "unary":
        graph.add_factor([1], [-np.inf, -np.inf])
    else:
        graph.add_factor([0, 1], np.full((2, 2), -np.inf))
    result = solve(graph, "icm")
    assert (result.status, result.score, result.labels) == ("infeasible", None, None)


def test_callback_sees_progress_and_can_stop():
    seen = []
    result = solve(grid(60), "icm", callback=lambda p: seen.append(p) or len(seen) == 2)
    assert result.status == "interrupted"
    assert len(seen) == 2
    assert seen[-1].iterations == result.iterations
    assert seen[-1].gap == pytest.approx(result.gap)


def test_warm_start_and_offers():
    graph = grid()
    first = solve(graph, "icm", max_iterations=200)
    again = solve(graph, "icm", max_iterations=1, warm_start=first)
    assert again.score >= first.score
    assert solve(graph, "icm", max_iterations=1, warm_start=first.labels).score >= first.score
    solver = Solver(graph, "icm")
    solver.offer(first.labels)
    assert solver.result().score == first.score
    with pytest.raises(fginfer.ModelError, match="out of range"):
        solver.offer(np.full(graph.n_variables, 9))


def test_running_solvers_keep_their_numbers_until_updated():
    graph = FactorGraph.from_arrays([2, 2], [[0.0, 1.0], [0.0, 1.0]], [[0, 1]], tables=[np.eye(2)])
    solver = Solver(graph, "icm")
    graph.set_unary(0, [5.0, 0.0])
    graph.set_table(0, [[0.0, 3.0], [0.0, 0.0]])
    solver.run(iterations=5)
    assert solver.result().score == 3.0
    solver.update()
    assert solver.result().score == graph.score([1, 1])  # the old labeling, scored with the new numbers
    solver.run(iterations=20)
    assert solver.result().score == graph.score([0, 1]) == 9.0
    graph.add_factor([0, 1], 20.0 * np.eye(2))
    solver.update()  # factors may come and go, too
    solver.run(iterations=20)
    assert solver.result().score == graph.score(solver.result().labels)
    assert solver.result().score > 20.0


def test_many_graphs_on_threads_equal_one_by_one():
    graphs = [grid(8, seed=s) for s in range(12)]
    many = solve_many(graphs, "icm", workers=4, max_iterations=25)
    for graph, result in zip(graphs, many, strict=True):
        assert result.labels.tolist() == solve(graph, "icm", max_iterations=25).labels.tolist()


def test_one_graph_changed_and_solved_by_many_threads():
    graph, failures = grid(10), []
    before = solve(graph, "icm", max_iterations=10)

    def work(k):
        try:
            for _ in range(20):
                solver = Solver(graph, "icm")
                graph.set_unary(k, [float(k)] * 3)
                solver.run(iterations=2)
                solver.result()
                graph.score(before.labels)
        except Exception as error:  # reported below
            failures.append(error)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not failures
    assert [graph.unary(k).tolist() for k in range(6)] == [[float(k)] * 3 for k in range(6)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "none"}, "no method 'none'; this build has .*icm"),
        ({"method": "icm", "threads": 0}, "threads"),
        ({"method": "icm", "gap": -1}, "gap"),
        ({"method": "icm", "gap": float("nan")}, "gap"),
        ({"method": "icm", "seed": -1}, "seed must be from 0"),
        ({"method": "icm", "time_limit": -1}, "time_limit"),
        ({"method": "icm", "time_limit": float("nan")}, "time_limit"),
        ({"method": "icm", "speed": 3}, "unknown option 'speed'"),
        ({"method": "icm", "max_iterations": 2.5}, "max_iterations must be a whole number"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(SettingsError, match=message):
        solve(grid(3), **settings)


@pytest.fixture
def ctrl_c_soon():
    """Called, it is Ctrl-C a moment from then, as far as this thread can tell."""

    def press(*_):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, press)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.2)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


def test_ctrl_c_propagates_and_the_solver_keeps_what_it_found(ctrl_c_soon):
    graph = grid(150)
    solver = Solver(graph, "icm")
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        ctrl_c_soon()
        solver.run()
    result = solver.result()
    assert result.status == "interrupted"
    assert result.score is None or result.score == graph.score(result.labels)
    solver.run(iterations=1)  # and it can go on
    assert solver.result().score is not None


def test_ctrl_c_ends_solve_many(ctrl_c_soon):
    graphs = [grid(150, seed=s) for s in range(4)]
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        ctrl_c_soon()
        solve_many(graphs, "icm", workers=2)


def test_closed_solvers_say_so():
    with Solver(grid(3), "icm") as solver:
        solver.run(iterations=1)
    with pytest.raises(SolverError, match="closed"):
        solver.run()
