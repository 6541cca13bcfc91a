"""A solver that follows a graph through changes says what a fresh one does: as good, as proven, every time."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, ModelError, Potts, Result, Solver, solve

RULES = {"tiny_states": 0.0}  # small models would be solved before any sweep


def image(rng: np.random.Generator, shape: tuple[int, int], labels: int, smooth: float = 0.6) -> FactorGraph:
    truth = np.kron(rng.integers(labels, size=(shape[0] // 4 + 1, shape[1] // 4 + 1)), np.ones((4, 4), int))
    unary = (truth[: shape[0], : shape[1], None] == np.arange(labels)) + 0.5 * rng.normal(size=(*shape, labels))
    return FactorGraph.grid(shape, unary, Potts(0, -smooth))


def again(solver: Solver) -> Result:
    solver.update()
    solver.run()
    return solver.result()


def check_as_fresh(graph: FactorGraph, found: Result, **options: object) -> None:
    fresh = solve(graph, rules=RULES, **options)
    if found.status != fresh.status:  # the bound that follows may be rounded less
        assert (found.status, fresh.status) == ("optimal", "gap_reached")
    assert found.score == pytest.approx(fresh.score, rel=1e-9)
    assert found.unit == fresh.unit
    if found.score is not None and found.bound is not None:
        assert found.labels is not None
        assert found.score == graph.score(found.labels)
        assert found.bound >= fresh.score - 1e-9 * abs(fresh.score)


def change(rng: np.random.Generator, graph: FactorGraph) -> None:
    """One random change, or one that is refused."""
    n, labels = graph.n_variables, graph.max_labels
    what = rng.integers(6)
    if what == 0:
        graph.set_unary(int(rng.integers(n)), rng.normal(size=labels))
    elif what == 1:
        which = rng.choice(n, size=5, replace=False)
        graph.set_unaries(rng.normal(size=(5, labels)), which)
    elif what == 2:
        graph.set_unaries(graph.table_arrays().unary + 0.05 * rng.normal(size=n * labels))
    elif what == 3:
        with pytest.raises(ModelError):
            graph.set_unaries([[1.0] * labels, [np.nan] * labels], [0, 1])
    elif what == 4:
        with pytest.raises(ModelError):
            graph.set_unary(n, [0.0] * labels)
    else:
        scores = rng.normal(size=labels)
        scores[0] = -inf
        graph.set_unary(int(rng.integers(n)), scores)


@given(st.integers(0, 2**32), st.integers(2, 4))
@settings(max_examples=12, deadline=None)
def test_sequences_of_changes(seed: int, labels: int) -> None:
    rng = np.random.default_rng(seed)
    graph = image(rng, (9, 8), labels)
    with Solver(graph, rules=RULES) as solver:
        solver.run()
        for _ in range(5):
            for _ in range(rng.integers(1, 3)):
                change(rng, graph)
            check_as_fresh(graph, again(solver))


@given(st.integers(0, 2**32))
@settings(max_examples=8, deadline=None)
def test_shared_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = FactorGraph([3] * 30)
    tie = graph.add_table(0.5 * np.eye(3))
    for i in range(30):
        graph.add_factor([i], rng.normal(size=3))
    for i in range(25):
        graph.add_factor([i, i + 5], tie)
    for i in range(29):
        graph.add_factor([i, i + 1], graph.add_table(rng.normal(size=(3, 3))))
    with Solver(graph, rules=RULES) as solver:
        solver.run()
        for _ in range(4):
            graph.set_table(tie, rng.uniform(0, 1) * np.eye(3))
            graph.set_unary(3, rng.normal(size=3))
            check_as_fresh(graph, again(solver))


def test_small_changes_are_followed_by_the_keeper() -> None:
    rng = np.random.default_rng(3)
    graph = image(rng, (30, 30), 3)
    with Solver(graph, rules=RULES) as solver:
        solver.run()
        for _ in range(5):
            graph.set_unary(int(rng.integers(900)), rng.normal(size=3))
            found = again(solver)
            assert (found.proved_by, found.status) == ("again", "optimal")
            assert len(found.trace) == 1
            check_as_fresh(graph, found)
        assert again(solver).status == "optimal"  # nothing has changed


def test_slices_and_offers() -> None:
    """Pauses change nothing, and a better labeling from elsewhere is taken."""
    results = []
    for seconds in (None, 1e-4):
        rng = np.random.default_rng(4)
        graph = image(rng, (20, 20), 3)
        with Solver(graph, rules=RULES | {"again_slice": 100.0}) as solver:
            solver.run()
            graph.set_unaries(rng.normal(size=(40, 3)), np.arange(40))
            solver.update()
            while solver.run(seconds) == "running":
                solver.progress()
                solver.offer(np.zeros(400, np.int32))
            results.append(solver.result())
    assert results[0].status == results[1].status == "optimal"
    assert np.array_equal(results[0].labels, results[1].labels)  # type: ignore[arg-type]


def test_the_numbers_of_the_last_update_count() -> None:
    """What changes after an update waits for the next one, whoever works on it."""
    rng = np.random.default_rng(5)
    graph = image(rng, (12, 12), 3)
    for allowed in (6.0, 0.0):  # with no work allowed the portfolio starts anew
        with Solver(graph, rules=RULES | {"again_sweeps": allowed}) as solver:
            solver.run()
            graph.set_unaries(rng.normal(size=(20, 3)), np.arange(20))
            solver.update()
            copy = graph.copy()
            graph.set_unaries(rng.normal(size=(20, 3)), np.arange(20))
            solver.run()
            check_as_fresh(copy, solver.result())


@pytest.mark.parametrize("method", [None, "trws", "gdmm", "icm"])
def test_structure_may_change(method: str | None) -> None:
    rng = np.random.default_rng(6)
    graph = image(rng, (8, 8), 3)
    with Solver(graph, method) as solver:
        solver.run(iterations=20)
        first = graph.add_factor([0, 63], [[0.0] * 3, [0.0] * 3, [4.0, 0.0, 0.0]])
        new = graph.add_variable(2)
        graph.add_factor([new, 5], [[0.0] * 3, [3.0] * 3])
        solver.update()
        solver.run(iterations=50)
        found = solver.result()
        assert found.labels is not None
        assert found.score == graph.score(found.labels)
        assert found.labels[new] == 1
        graph.remove_factor(first)
        solver.update()
        solver.run(iterations=50)
        found = solver.result()
        assert found.labels is not None
        assert found.score == graph.score(found.labels)


def test_constraints_may_come_and_go() -> None:
    rng = np.random.default_rng(7)
    graph = FactorGraph([2] * 6)
    graph.set_unaries(rng.uniform(0.5, 1, size=(6, 1)) * [0.0, 1.0])
    with Solver(graph) as solver:
        solver.run()
        assert solver.result().labels is not None
        rule = graph.add_at_most(2, [(i, 1) for i in range(6)])
        found = again(solver)
        assert found.labels is not None
        assert found.labels.sum() == 2
        assert found.status == "optimal"
        graph.remove_factor(rule)
        found = again(solver)
        assert found.labels is not None
        assert found.labels.sum() == 6


def test_refused_changes_leave_everything_as_it_was() -> None:
    graph = FactorGraph([2, 2, 3])
    graph.set_unaries([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    before = graph.to_arrays().unary
    for scores, which, match in (
        ([[1.0, 2.0], [3.0, np.nan]], [0, 1], "NaN"),
        ([[1.0, 2.0]], [0, 1], "unar"),
        ([[1.0, 2.0], [3.0, 4.0]], [0, 0], "twice"),
        ([[1.0, 2.0]], [3], "variable 3"),
        ([[1.0, 2.0]], "ab", "list of variables"),
        ([[1.7e308, 0.0], [1.7e308, 0.0]], [0, 1], "overflow"),
    ):
        with pytest.raises(ModelError, match=match):
            graph.set_unaries(scores, which)  # type: ignore[arg-type]
        assert np.array_equal(graph.to_arrays().unary, before)  # type: ignore[arg-type]
    graph.set_unaries([[9.0, 8.0], [7.0, 6.0]], np.array([1, 0]))
    assert graph.unary(0).tolist() == [7.0, 6.0]
    assert graph.unary(1).tolist() == [9.0, 8.0]
