"""The keeper of the core against enumeration: after any changes its score is that of its labels, and its bound one."""

from __future__ import annotations

from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Potts, Solver, SqDiff, solve
from fginfer.core.keeper import Keeper, KeptFactor
from fginfer.core.model import Model
from fginfer.errors import ModelError, SettingsError, SolverError


def random_graph(rng: np.random.Generator, forbid: float) -> FactorGraph:
    """A few variables, factors over two or three of them, some states forbidden, none of all zeros."""
    cards = rng.integers(2, 4, size=rng.integers(2, 6))
    graph = FactorGraph(cards)
    for i, card in enumerate(cards):
        graph.add_factor([i], rng.normal(size=card))
    for _ in range(rng.integers(1, 2 * len(cards))):
        scope = rng.choice(len(cards), size=min(len(cards), int(rng.integers(2, 4))), replace=False)
        kind = rng.integers(4)
        if len(scope) == 2 and kind < 2:
            table = Potts(0, float(rng.normal())) if kind else SqDiff(abs(float(rng.normal())), 2)
            graph.add_factor(scope, table, weight=float(rng.uniform(0.5, 2)))
            continue
        scores = rng.normal(size=cards[scope])
        scores[rng.random(scores.shape) < forbid] = -inf
        scores.flat[0] = 0.0
        graph.add_factor(scope, graph.add_table(scores), weight=float(rng.choice([1.0, 2.0, 0.5])))
    return graph


def optimum(model: Model) -> float:
    labelings = product(*(range(int(card)) for card in model.cards))
    return max(model.score(np.array(labels, np.int32)) for labels in labelings)


def check(keeper: Keeper) -> str:
    """What it says, against the model as it says it is."""
    said, model = keeper.run(0.0, 1e5), keeper.model()
    best, info = optimum(model), keeper.info
    assert info.score == model.score(keeper.labels())
    assert info.bound >= best >= info.score
    assert info.unit == model.unit
    if said == "done":
        assert info.score == pytest.approx(best, rel=1e-9, abs=1e-9)
    return said


def feasible(model: Model) -> np.ndarray | None:
    labelings = (np.array(labels, np.int32) for labels in product(*(range(int(card)) for card in model.cards)))
    return next((labels for labels in labelings if model.score(labels) > -inf), None)


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.3]))
@settings(max_examples=60, deadline=None)
def test_changes(seed: int, forbid: float) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, forbid)
    model, cards = graph.snapshot(), graph.cards
    start = feasible(model)
    if start is None:
        return
    keeper = Keeper(model, None, start)
    check(keeper)
    alive, n = list(range(model.n_factors)), len(cards)
    for _ in range(6):
        what = rng.integers(5)
        if what == 0:
            which = np.sort(rng.choice(n, size=int(rng.integers(1, n + 1)), replace=False)).astype(np.int32)
            scores = [rng.normal(size=int(cards[v])) for v in which]
            if forbid and rng.random() < 0.3:
                scores[0][0] = -inf
            keeper.set_unary(which, np.concatenate(scores))
        elif what == 1 and alive:
            keeper.remove_factor(alive.pop(int(rng.integers(len(alive)))))
        elif what == 2:
            scope = rng.choice(n, size=int(rng.integers(2, min(n, 3) + 1)), replace=False).astype(np.int32)
            alive.append(keeper.add_factor(KeptFactor(scope, values=rng.normal(size=int(np.prod(cards[scope]))))))
        elif what == 3:
            pair = rng.choice(n, size=2, replace=False).astype(np.int32)
            alive.append(keeper.add_factor(KeptFactor(pair, 1, None, (0.0, float(rng.normal())), 1.5)))
        else:
            keeper.set_constant(float(rng.normal()))
        check(keeper)


@given(st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_tables_and_all_unaries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 0.0)
    keeper = Keeper(graph.snapshot(), None, np.zeros(graph.n_variables, np.int32))
    dense = np.flatnonzero(graph.table_arrays().is_dense()).astype(np.int32)
    for table in dense:
        graph.set_table(int(table), rng.normal(size=graph.table(int(table)).shape))  # type: ignore[union-attr]
    graph.set_unaries(rng.normal(size=int(graph.cards.sum())))
    keeper.take_tables(graph.model, dense)
    keeper.take_unary(graph.model)
    check(keeper)
    assert keeper.model().score(keeper.labels()) == graph.score(keeper.labels())


def test_trees_are_proven() -> None:
    """On a tree the relaxation is tight, so that a keeper always gets to the end."""
    rng = np.random.default_rng(5)
    n = 60
    parents = [int(rng.integers(i)) for i in range(1, n)]
    graph = FactorGraph([3] * n)
    for child, parent in enumerate(parents, 1):
        graph.add_factor([parent, child], rng.normal(size=(3, 3)))
    keeper = Keeper(graph.snapshot(), None, np.zeros(n, np.int32))
    assert keeper.run(0.0, 1e8) == "done"
    for _ in range(20):
        which = rng.choice(n, size=2, replace=False).astype(np.int32)
        keeper.set_unary(which, rng.normal(size=6))
        assert keeper.run(0.0, 1e8) == "done"
        model = keeper.model()
        assert keeper.info.score == pytest.approx(FactorGraph.from_model(model).score(keeper.labels()))


def test_a_changed_label_costs_little() -> None:
    """Work follows the change, not the size of the model."""
    rng = np.random.default_rng(0)
    work = []
    for n in (1000, 4000):
        graph = FactorGraph.from_arrays(
            [2] * n, rng.normal(size=(n, 2)), [[i, i + 1] for i in range(n - 1)], tables=[Potts(0, -0.3)]
        )
        keeper = Keeper(graph.snapshot(), None, np.zeros(n, np.int32))
        assert keeper.run(0.0, 1e9) == "done"
        before = keeper.info.work
        keeper.set_unary(np.array([n // 2], np.int32), np.array([3.0, 0.0]))
        assert keeper.run(0.0, 1e9) == "done"
        work.append(keeper.info.work - before)
    assert max(work) < 5000


def test_what_is_refused() -> None:
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], [[1.0, 0.0], [0.0, 1.0]])
    keeper = Keeper(graph.snapshot(), None, np.zeros(2, np.int32))
    one = np.array([0], np.int32)
    for scores, error in ((np.array([np.nan, 0.0]), ModelError), (np.array([1e9, 0.0]), SolverError)):
        with pytest.raises(error):
            keeper.set_unary(one, scores)
    with pytest.raises(SettingsError, match="no variable 7"):
        keeper.set_unary(np.array([7], np.int32), np.zeros(2))
    with pytest.raises(ModelError, match="NaN"):
        keeper.add_factor(KeptFactor(np.array([0, 1], np.int32), values=np.array([0.0, np.nan, 0.0, 0.0])))
    with pytest.raises(SettingsError, match="twice"):
        keeper.add_factor(KeptFactor(np.array([1, 1], np.int32), values=np.zeros(4)))
    with pytest.raises(SettingsError, match="no factor 3"):
        keeper.remove_factor(3)
    assert check(keeper) == "done"
    with pytest.raises(SettingsError, match="out of range"):
        Keeper(graph.snapshot(), None, np.full(2, 5, np.int32))


@pytest.mark.parametrize("change", ["one", "all", "factor"])
def test_what_is_said_before_a_run_is_about_the_model_as_it_is_now(change: str) -> None:
    rng = np.random.default_rng(5)
    graph = FactorGraph.grid((12, 12), 2 * rng.normal(size=(12, 12, 3)), Potts(0, -0.3))
    solver = Solver(graph, rules={"tiny_states": 0, "few_factors": -1})  # as models are solved that are larger
    solver.run()
    for _ in range(3):
        if change == "one":
            graph.set_unary(int(rng.integers(144)), 4 * rng.normal(size=3))
        elif change == "all":
            graph.set_unaries(2 * rng.normal(size=(144, 3)))
        else:
            graph.add_factor(rng.choice(144, 2, replace=False), rng.normal(size=(3, 3)))
        solver.update()
        solver.run(iterations=0)
        for said in (solver.result(), solver.progress()):
            assert said.score is None or abs(said.score - graph.score(solver.result().labels)) < 1e-9
            best = solve(graph).score
            assert said.bound is None or (best is not None and said.bound >= best - 1e-9)
        solver.run()
        assert (solver.result().status, solver.result().proved_by) == ("optimal", "again")
