"""Networks of pgmpy in and out, and fginfer as its inference class, against pgmpy's own elimination."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fginfer import FactorGraph, ModelError, SettingsError, marginals, solve

pytest.importorskip("pgmpy")

from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

from fginfer.interop import PgmpyInference, from_pgmpy, to_pgmpy

STATES = {"a": ["no", "yes"], "b": [0, 1, 2], "c": ["low", "mid", "high"], "d": [1, 0]}


def bayes(seed: int) -> DiscreteBayesianNetwork:
    rng = np.random.default_rng(seed)
    model = DiscreteBayesianNetwork([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    for child, parents in (("a", []), ("b", ["a"]), ("c", ["a"]), ("d", ["b", "c"])):
        shape = [len(STATES[p]) for p in parents]
        rows = rng.dirichlet(np.ones(len(STATES[child])), int(np.prod(shape)))
        names = {v: STATES[v] for v in (child, *parents)}
        model.add_cpds(TabularCPD(child, len(STATES[child]), rows.T, parents, shape, state_names=names))
    return model


def markov(seed: int) -> DiscreteMarkovNetwork:
    rng = np.random.default_rng(seed)
    model = DiscreteMarkovNetwork([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    for u, v in model.edges():
        shape = [len(STATES[u]), len(STATES[v])]
        names = {u: STATES[u], v: STATES[v]}
        model.add_factors(DiscreteFactor([u, v], shape, rng.random(shape) + 0.01, state_names=names))
    return model


@pytest.mark.parametrize("make", [bayes, markov])
@pytest.mark.parametrize("seed", range(4))
def test_the_answers_are_those_of_elimination(make, seed: int) -> None:
    model = make(seed)
    ours, theirs = PgmpyInference(model), VariableElimination(model)
    for evidence in (None, {"a": "yes"}, {"b": 2, "c": "mid"}, {"d": 0}):
        free = [v for v in "abcd" if v not in (evidence or {})]
        for asked in (free[:1], free[:2], free[::-1]):
            mine, yours = (x.query(asked, evidence, show_progress=False) for x in (ours, theirs))
            assert np.allclose(mine.values, _normalised(yours, mine), atol=1e-9)
            assert mine.state_names == {v: STATES[v] for v in asked}
            mine, yours = (x.map_query(asked, evidence, show_progress=False) for x in (ours, theirs))
            assert mine == yours
        apart = ours.query(free, evidence, joint=False)
        for v in free:
            assert np.allclose(apart[v].values, _normalised(theirs.query([v], evidence, show_progress=False), apart[v]))
        assert set(ours.map_query(evidence=evidence)) == set(free)


def _normalised(theirs, ours):
    """The values of theirs, which add up to 1, with the axes and states of ours."""
    order = [theirs.variables.index(v) for v in ours.variables]
    values = np.transpose(theirs.values, order)
    for axis, v in enumerate(ours.variables):
        values = np.take(values, [theirs.state_names[v].index(s) for s in ours.state_names[v]], axis)
    return values / values.sum()  # pgmpy leaves those of Markov networks as they come


def test_uncertain_evidence() -> None:
    model = bayes(1)
    seen = [TabularCPD("b", 3, [[0.1], [0.3], [0.6]], state_names={"b": STATES["b"]})]
    mine = PgmpyInference(model).query(["c"], virtual_evidence=seen)
    graph = from_pgmpy(model)
    graph.add_factor(["b"], np.log([0.1, 0.3, 0.6]))
    assert np.allclose(mine.values, marginals(graph).variables[list(graph.names.named([0] * 4)).index("c")])


@pytest.mark.parametrize(("make", "kind"), [(bayes, "bayes"), (bayes, "markov"), (markov, "markov")])
def test_models_come_back(make, kind: str) -> None:
    graph = from_pgmpy(make(3))
    back = from_pgmpy(to_pgmpy(graph, kind))
    names, other = (list(g.names.named([0] * 4)) for g in (graph, back))
    assert sorted(names) == sorted(other)
    for labels in itertools.product(*(range(k) for k in graph.cards)):
        moved = [labels[names.index(v)] for v in other]
        assert back.score(moved) == pytest.approx(graph.score(labels), abs=1e-9)


def test_names_of_states() -> None:
    graph = from_pgmpy(bayes(0))
    assert graph.names.labels(0) == ("no", "yes")
    assert solve(graph, evidence={"a": "yes", "d": "0"}).named()["d"] == "0"
    assert PgmpyInference(bayes(0)).map_query(evidence={"a": "yes"}).keys() == {"b", "c", "d"}


def test_states_may_stand_in_any_order() -> None:
    model = DiscreteMarkovNetwork([("a", "b")])
    model.add_factors(
        DiscreteFactor(["a", "b"], [2, 2], [1, 2, 3, 4], state_names={"a": ["x", "y"], "b": [0, 1]}),
        DiscreteFactor(["a"], [2], [10, 1], state_names={"a": ["y", "x"]}),
    )
    graph = from_pgmpy(model)
    assert [graph.score(x) for x in ([0, 0], [1, 1])] == pytest.approx([np.log(1), np.log(40)])


def test_bad_questions() -> None:
    ask = PgmpyInference(bayes(0))
    for call, said in (
        (lambda: ask.query(["e"]), "no variable 'e'"),
        (lambda: ask.query("abc"), "list of names"),
        (lambda: ask.query([]), "one variable or more"),
        (lambda: ask.query(["a"], {"a": "no"}), "given as evidence"),
        (lambda: ask.map_query(evidence={"a": "perhaps"}), "no state 'perhaps'"),
        (lambda: from_pgmpy(3), "discrete model"),
        (lambda: from_pgmpy(DiscreteBayesianNetwork([("a", "b")])), "no complete discrete model"),
        (lambda: to_pgmpy(FactorGraph([2]), "tree"), "kind"),
        (lambda: to_pgmpy(from_pgmpy(markov(0)), "bayes"), "not a Bayesian network"),
    ):
        with pytest.raises((ModelError, SettingsError), match=said):
            call()
    graph = FactorGraph([2])
    graph.add_factor([0], [0.0, -2000.0])
    with pytest.raises(ModelError, match="no double"):
        to_pgmpy(graph)


def test_impossible_evidence() -> None:
    model = DiscreteMarkovNetwork([("a", "b")])
    model.add_factors(DiscreteFactor(["a", "b"], [2, 2], [1, 1, 0, 0]))
    with pytest.raises(ModelError, match="no "):
        PgmpyInference(model).map_query(evidence={"a": 1})
    with pytest.raises(ModelError, match="impossible"):
        PgmpyInference(model).query(["b"], {"a": 1})
