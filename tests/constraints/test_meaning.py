"""Every constraint means what it says: its score, its tables, its four functions, in exact rationals."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, read, write
from tests.constraints.definitions import constraints

some_cards = st.lists(st.integers(1, 3), min_size=1, max_size=4)
# A per-unit penalty and the scores of an automaton are rounded once for each step.
NEAR = Fraction(1, 10**12)


def near(found: float, meant: Fraction | float) -> bool:
    return found == meant if meant == -inf or found == -inf else abs(Fraction(found) - meant) <= NEAR


@st.composite
def said_graphs(draw: Any) -> Any:
    cards = draw(some_cards)
    said = draw(constraints(cards))
    graph = FactorGraph(cards)
    said.add(graph)
    return graph, said


def labelings(graph: FactorGraph) -> Any:
    return product(*(range(int(k)) for k in graph.cards))


@settings(max_examples=400, deadline=None)
@given(said_graphs())
def test_scores_are_the_definition_and_tables_say_the_same(case: Any) -> None:
    graph, said = case
    lowered = graph.lowered()
    for x in labelings(graph):
        assert near(graph.score(x), said.score(x)), said.text
        whole = lowered.complete(x)
        assert whole[: len(x)].tolist() == list(x)
        assert near(lowered.graph.score(whole), said.score(x)), said.text


@settings(max_examples=150, deadline=None)
@given(said_graphs())
def test_no_labels_of_auxiliary_variables_score_more(case: Any) -> None:
    graph, said = case
    tables = graph.lowered().graph
    if float(np.prod(tables.cards.astype(float))) > 3000:
        return
    n = graph.n_variables
    best = dict.fromkeys(labelings(graph), -inf)
    for y in product(*(range(int(k)) for k in tables.cards)):
        best[y[:n]] = max(best[y[:n]], tables.score(y))
    for x, score in best.items():
        assert near(score, said.score(x)), said.text


@settings(max_examples=200, deadline=None)
@given(said_graphs(), st.integers(0, 2**32 - 1))
def test_best_state_supports_and_moves_of_a_rule(case: Any, seed: int) -> None:
    graph, said = case
    (rule,) = graph.rules
    rng = np.random.default_rng(seed)
    cards = [int(graph.cards[v]) for v in rule.variables]
    states = list(product(*map(range, cards)))
    whole = [0] * graph.n_variables

    def meant(state: tuple[int, ...]) -> Fraction | float:
        for v, label in zip(rule.variables, state, strict=True):
            whole[v] = label
        return said.score(whole)

    gains = [rng.integers(-4, 5, k) / 4 for k in cards]
    values = {
        s: meant(s) + sum((Fraction(float(g[a])) for g, a in zip(gains, s, strict=True)), Fraction(0)) for s in states
    }
    found = rule.best(gains)
    top = max(values.values())
    assert (found is None) == (top == -inf), said.text
    if found is not None:
        assert near(found[1], top), said.text
        assert near(found[1], values[tuple(found[0])]), said.text
    allowed = [rng.random(k) < 0.7 for k in cards]
    open_states = [s for s in states if all(m[a] for m, a in zip(allowed, s, strict=True)) and meant(s) > -inf]
    kept = rule.propagate(allowed)
    for i, mask in enumerate(kept):
        supported = {s[i] for s in open_states}
        assert supported <= set(np.flatnonzero(mask).tolist()) <= set(np.flatnonzero(allowed[i]).tolist()), said.text
        if rule.forbids() and "global" not in rule.kind:
            assert supported == set(np.flatnonzero(mask).tolist()), said.text
    assert rule.forbids() == any(meant(s) == -inf for s in states) or rule.forbids()
    a, b = (states[k] for k in rng.integers(0, len(states), 2))
    change = rule.change(a, {i: label for i, label in enumerate(b) if label != a[i]})
    if meant(a) > -inf and meant(b) > -inf:
        assert near(change, meant(b) - meant(a)), said.text
    else:
        assert (change == inf) == (meant(b) > -inf) or np.isnan(change)


@settings(max_examples=200, deadline=None)
@given(said_graphs(), st.integers(0, 2**32 - 1))
def test_evidence_leaves_the_same_scores(case: Any, seed: int) -> None:
    graph, said = case
    rng = np.random.default_rng(seed)
    fixed = {v: int(rng.integers(graph.cards[v])) for v in range(graph.n_variables) if rng.random() < 0.5}
    given = graph.condition(fixed)
    for x in labelings(given.graph):
        assert near(given.graph.score(x), said.score(given.expand(x).tolist())), said.text


@settings(max_examples=100, deadline=None)
@given(case=said_graphs())
def test_files_pickles_and_copies_keep_constraints(case: Any, tmp_path_factory: Any) -> None:
    graph, said = case
    path = Path(tmp_path_factory.mktemp("npz")) / "model.npz"
    write(graph, path)
    for other in (read(path), pickle.loads(pickle.dumps(graph)), graph.copy()):
        assert other.rules == graph.rules
        for x in labelings(graph):
            assert other.score(x) == graph.score(x), said.text
