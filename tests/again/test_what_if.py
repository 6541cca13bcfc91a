"""fix, free, push and pop; and factors that come and go under a solver that follows."""

from __future__ import annotations

import pickle
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, ModelError, Potts, Solver, solve
from tests.again.test_following import RULES, again, check_as_fresh, image


def numbers(graph: FactorGraph) -> tuple[object, ...]:
    arrays = graph.table_arrays()
    assert arrays.unary is not None
    shapes = [(f.variables, f.table, f.weight) for f in graph.factors()]
    return arrays.unary.tolist(), arrays.values.tolist(), arrays.constant, str(shapes), graph.n_factors, graph.cutoff


def test_fix_and_free() -> None:
    graph = FactorGraph(variables={"rain": ["no", "yes"], "floor": 3})
    prior = graph.add_factor(["floor"], [0.1, 0.2, 0.3])
    graph.add_factor(["floor"], [1e16, 1.0, -1e16])  # what rounding takes comes back, too
    before = graph.score([0, 0])
    graph.fix("floor", 1)
    graph.fix("rain", "yes")
    assert graph.fixed == {0: 1, 1: 1}
    assert solve(graph).labels.tolist() == [1, 1]  # type: ignore[union-attr]
    assert graph.score([0, 1]) == -inf
    assert graph.score([1, 1]) == 1.2
    graph.fix("floor", 2)
    assert graph.score([1, 1]) == -inf
    for refused in (
        lambda: graph.set_unary(1, [0.0] * 3),
        lambda: graph.set_unaries([0.0] * 5),
        lambda: graph.set_unaries([[0.0] * 3], [1]),
        lambda: graph.add_factor([1], [0.0] * 3),
        lambda: graph.set_weight(prior, 2.0),
        lambda: graph.remove_factor(prior),
    ):
        with pytest.raises(ModelError, match="fixed"):
            refused()
    twin = pickle.loads(pickle.dumps(graph.copy()))
    twin.free()
    graph.free("floor")
    graph.free()
    assert twin.score([0, 0]) == graph.score([0, 0]) == before
    with pytest.raises(ModelError, match="not fixed"):
        graph.free(0)
    with pytest.raises(ModelError):
        graph.fix(0, 2)
    graph.set_weight(prior, 2.0)
    assert graph.score([0, 1]) == 1.4


@given(st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_pop_brings_everything_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = FactorGraph([2] * 5)
    handles = [graph.add_factor([i, i + 1], graph.add_table(rng.normal(size=(2, 2)))) for i in range(4)]
    own = graph.add_table(rng.normal(size=(2, 2)))
    graph.add_factor([0, 4], own)
    with Solver(graph, rules=RULES) as solver:
        solver.run()
        for _ in range(4):
            before = numbers(graph)
            graph.push()
            for _ in range(rng.integers(1, 4)):
                what = rng.integers(6)
                if what == 0:
                    graph.set_unary(int(rng.integers(5)), rng.normal(size=2))
                elif what == 1:
                    graph.set_table(own, rng.normal(size=(2, 2)))
                elif what == 2:
                    graph.add_factor([1, 3], rng.normal(size=(2, 2)))
                elif what == 3:
                    graph.set_weight(handles[int(rng.integers(4))], float(rng.uniform(0, 2)))
                elif what == 4:
                    graph.add_factor([], [float(rng.normal())])
                else:
                    graph.cutoff = -100.0
                if rng.random() < 0.5:
                    check_as_fresh(graph, again(solver))
                graph.free()
            graph.fix(2, 1)
            check_as_fresh(graph, again(solver))
            graph.pop()
            assert numbers(graph) == before
            check_as_fresh(graph, again(solver))
    with pytest.raises(ModelError, match="no push"):
        graph.pop()


@given(st.integers(0, 2**32))
@settings(max_examples=8, deadline=None)
def test_factors_come_and_go(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = image(rng, (9, 9), 3)
    handles = []
    with Solver(graph, rules=RULES) as solver:
        solver.run()
        for _ in range(6):
            what = rng.integers(4)
            if what < 2 or not handles:
                scope = rng.choice(81, size=2, replace=False)
                table = rng.normal(size=(3, 3)) if what else Potts(0, float(rng.normal()))
                handles.append(graph.add_factor(scope, table, weight=float(rng.choice([1.0, -0.5, 0.0]))))
            elif what == 2:
                graph.remove_factor(handles.pop(int(rng.integers(len(handles)))))
            else:
                graph.set_weight(handles[int(rng.integers(len(handles)))], float(rng.choice([0.0, 2.0, -1.0])))
            graph.add_factor([int(rng.integers(81))], [0.5, 0.0, 0.25])
            check_as_fresh(graph, again(solver))


def test_one_factor_more_is_followed_by_the_keeper() -> None:
    graph = image(np.random.default_rng(1), (30, 30), 3)
    with Solver(graph, rules=RULES) as solver:
        solver.run()
        for _ in range(3):
            handle = graph.add_factor([5, 400], 0.5 * np.eye(3))
            assert again(solver).proved_by == "again"
            graph.set_weight(handle, 2.0)
            check_as_fresh(graph, again(solver))
            graph.remove_factor(handle)
            assert again(solver).proved_by == "again"
            with pytest.raises(ModelError, match="no longer"):
                graph.set_weight(handle, 1.0)
            check_as_fresh(graph, again(solver))


@given(st.integers(0, 2**32))
@settings(max_examples=8, deadline=None)
def test_what_is_taken_back_is_followed_too(seed: int) -> None:
    """Factors that came, went or were weighed anew are taken back one by one, in whatever order they changed."""
    rng = np.random.default_rng(seed)
    graph = image(rng, (12, 12), 3, smooth=0.3)
    handles = [graph.add_factor([i, i + 13], 0.1 * rng.normal(size=(3, 3)), name=f"f{i}") for i in range(0, 120, 10)]
    with Solver(graph, rules=RULES) as solver:
        solver.run()
        for _ in range(3):
            before, now = numbers(graph), list(handles)
            graph.push()
            for _ in range(rng.integers(1, 6)):
                what = rng.integers(4)
                if what == 0:
                    now.append(graph.add_factor(rng.choice(144, size=2, replace=False), 0.1 * rng.normal(size=(3, 3))))
                elif what == 1:
                    graph.remove_factor(now.pop(int(rng.integers(len(now)))))
                elif what == 2:
                    graph.set_weight(now[int(rng.integers(len(now)))], float(rng.uniform(0, 2)))
                else:
                    graph.add_factor([], [float(rng.normal())])
                if rng.random() < 0.3:
                    solver.update()
                    solver.run()
            graph.pop()
            found = again(solver)
            assert numbers(graph) == before
            check_as_fresh(graph, found)
            graph.set_weight("f50", 1.5)  # the places of factors are known as before
            check_as_fresh(graph, again(solver))


def test_pop_needs_no_new_start() -> None:
    graph = image(np.random.default_rng(1), (30, 30), 3)
    tie = graph.add_factor([0, 400], 0.2 * np.eye(3))
    with Solver(graph, rules=RULES) as solver:
        solver.run()
        for _ in range(3):
            graph.push()
            graph.set_weight(tie, 2.0)
            graph.remove_factor(graph.add_factor([7, 600], np.eye(3)))
            graph.add_factor([5, 500], 0.2 * np.eye(3))
            assert again(solver).proved_by == "again"
            graph.pop()
            assert again(solver).proved_by == "again"
        check_as_fresh(graph, again(solver))
