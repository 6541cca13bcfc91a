"""A graph that is changed in any order, with refusals in between, is the graph that is built at once."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fginfer import AbsDiff, FactorGraph, ModelError, Potts, SqDiff, TableRef, solve

CARDS = (2, 3, 2)
LABELINGS = list(product(*map(range, CARDS)))
SCORES = st.integers(-3, 3).map(float)
WEIGHTS = st.sampled_from([1.0, -1.0, 2.0, -0.5, 0.0])
PAIRS = ((0, 1), (2, 1))


@dataclass
class Table:
    """What a table should hold. Factors refer to it, so that a change is seen by all of them."""

    rows: list[list[float]]


@dataclass
class Wanted:
    """What the graph should be, in plain lists."""

    constant: float = 0.0
    unary: list[list[float]] = field(default_factory=lambda: [[0.0] * k for k in CARDS])
    factors: list[tuple[tuple[int, int], Any, float, bool]] = field(default_factory=list)
    cutoff: float = -inf

    def score(self, x: tuple[int, ...]) -> Any:
        total: Any = Fraction(self.constant)
        for i, a in enumerate(x):
            total = add(total, self.unary[i][a], 1.0)
        for (i, j), table, weight, transposed in self.factors:
            a, b = (x[j], x[i]) if transposed else (x[i], x[j])
            total = add(total, table.rows[a][b] if isinstance(table, Table) else implicit(table, a, b), weight)
        return total

    def built(self) -> FactorGraph:
        graph = FactorGraph(CARDS)
        graph.add_factor([], self.constant)
        for i, row in enumerate(self.unary):
            graph.add_factor([i], row)
        for scope, table, weight, transposed in self.factors:
            given = np.array(table.rows) if isinstance(table, Table) else table
            graph.add_factor(scope, given, weight=weight, transposed=transposed)
        graph.cutoff = self.cutoff
        return graph


def add(total: Any, entry: float, weight: float) -> Any:
    if weight == 0:
        return total
    return -inf if -inf in (total, entry) else total + Fraction(entry) * Fraction(weight)


def implicit(table: Any, a: int, b: int) -> float:
    if isinstance(table, Potts):
        return table.same if a == b else table.different
    distance = abs(a - b) if isinstance(table, AbsDiff) else (a - b) ** 2
    return -table.weight * min(distance, table.truncation)


class Changes(RuleBasedStateMachine):
    """Every rule is a change, or a call that is refused; after each of them all labelings have the right score."""

    def __init__(self) -> None:
        super().__init__()
        self.graph, self.wanted = FactorGraph(CARDS), Wanted()
        self.named: list[tuple[TableRef | int, Table]] = []

    @initialize(bulk=st.booleans(), scores=st.lists(SCORES, min_size=6, max_size=6), weight=WEIGHTS)
    def begin(self, bulk: bool, scores: list[float], weight: float) -> None:
        if not bulk:
            return
        table = Table([scores[:3], scores[3:]])
        self.graph = FactorGraph.from_arrays(CARDS, edges=[[0, 1]], tables=[np.array(table.rows)], weights=[weight])
        self.wanted.factors.append(((0, 1), table, weight, False))
        self.named.append((0, table))

    # -- changes -----------------------------------------------------------------------------------------------

    @rule(scores=st.lists(SCORES, min_size=6, max_size=6))
    def add_table(self, scores: list[float]) -> None:
        table = Table([scores[:3], scores[3:]])
        self.named.append((self.graph.add_table(table.rows), table))

    @precondition(lambda self: any(isinstance(ref, TableRef) for ref, _ in self.named))
    @rule(data=st.data(), weight=WEIGHTS, scope=st.sampled_from(PAIRS), flip=st.booleans())
    def add_named(self, data: Any, weight: float, scope: tuple[int, int], flip: bool) -> None:
        ref, table = data.draw(st.sampled_from([pair for pair in self.named if isinstance(pair[0], TableRef)]))
        if flip:
            scope = scope[::-1]
        if weight < 0 and any(-inf in row for row in table.rows):
            with pytest.raises(ModelError, match="negative weight"):
                self.graph.add_factor(scope, ref, weight=weight, transposed=flip)
            return
        self.graph.add_factor(scope, ref, weight=weight, transposed=flip)
        self.wanted.factors.append((scope, table, weight, flip))

    @rule(
        data=st.data(), scores=st.lists(SCORES, min_size=6, max_size=6), weight=WEIGHTS, sign=st.sampled_from([1, -1])
    )
    def add_array(self, data: Any, scores: list[float], weight: float, sign: int) -> None:
        """Often equal to a table that has a name, or to its negative: it is private all the same."""
        known = [table.rows for _, table in self.named if all(-inf not in row for row in table.rows)]
        rows = data.draw(st.sampled_from([[scores[:3], scores[3:]], *known]))
        table = Table([[sign * v for v in row] for row in rows])
        self.graph.add_factor((0, 1), np.array(table.rows), weight=weight)
        self.wanted.factors.append(((0, 1), table, weight, False))

    @rule(weight=WEIGHTS, table=st.sampled_from([Potts(1.0, -2.0), AbsDiff(2.0, 1.0), SqDiff(0.5), AbsDiff(-1.0)]))
    def add_implicit(self, weight: float, table: Any) -> None:
        self.graph.add_factor((2, 1), table, weight=weight)
        self.wanted.factors.append(((2, 1), table, weight, False))

    @rule(i=st.integers(0, 2), scores=st.lists(SCORES, min_size=3, max_size=3), forbid=st.booleans(), put=st.booleans())
    def unary(self, i: int, scores: list[float], forbid: bool, put: bool) -> None:
        row = scores[: CARDS[i]]
        row[-1] = -inf if forbid else row[-1]
        if put:
            self.graph.set_unary(i, row)
            self.wanted.unary[i] = row
        else:
            self.graph.add_factor([i], row)
            self.wanted.unary[i] = [a + b for a, b in zip(self.wanted.unary[i], row, strict=True)]

    @rule(scores=st.lists(SCORES, min_size=7, max_size=7), constant=SCORES)
    def all_unaries(self, scores: list[float], constant: float) -> None:
        self.graph.set_unaries(scores)
        self.graph.add_factor([], constant)
        self.wanted.unary = [scores[:2], scores[2:5], scores[5:]]
        self.wanted.constant += constant

    @precondition(lambda self: self.named)
    @rule(data=st.data(), scores=st.lists(SCORES | st.just(-inf), min_size=6, max_size=6))
    def set_table(self, data: Any, scores: list[float]) -> None:
        ref, table = data.draw(st.sampled_from(self.named))
        if -inf in scores and any(t is table and weight < 0 for _, t, weight, _ in self.wanted.factors):
            with pytest.raises(ModelError, match="negative weight"):
                self.graph.set_table(ref, scores)
        else:
            self.graph.set_table(ref, scores)
            table.rows = [scores[:3], scores[3:]]

    @rule(cutoff=st.sampled_from([-inf, -4.0, 0.0, 2.5]))
    def cutoff(self, cutoff: float) -> None:
        self.graph.cutoff = self.wanted.cutoff = cutoff

    @rule(how=st.sampled_from(["copy", "pickle", "build"]))
    def replaced(self, how: str) -> None:
        if how == "build":
            self.graph.snapshot()
        else:
            self.graph = self.graph.copy() if how == "copy" else pickle.loads(pickle.dumps(self.graph))

    # -- refusals ----------------------------------------------------------------------------------------------

    @rule(
        bad=st.sampled_from(
            [
                lambda g: g.add_factor([0, 1], [0, 0, 0, 0, 0, nan]),
                lambda g: g.add_factor([0, 1], np.full((2, 3), -inf), weight=-1),
                lambda g: g.add_factor([0, 1], np.full((2, 3), 1e308), weight=1e10),
                lambda g: g.add_factor([0, 1], SqDiff(1e308), weight=1e10),
                lambda g: g.add_factor([0, 1], np.zeros((3, 2))),
                lambda g: g.add_factor([0, 1], Potts(0, 1), weight=nan),
                lambda g: g.add_factor([0, 1, 2], AbsDiff(1.0)),
                lambda g: g.add_factor([0, 1], FactorGraph(CARDS).add_table(np.zeros((2, 3)))),
                lambda g: g.add_factor([], nan),
                lambda g: g.add_table([[0, inf]]),
                lambda g: g.set_unary(1, [0, 0, nan]),
                lambda g: g.set_unaries([0, 0, 0, 0, 0, 0, nan]),
                lambda g: g.set_table(99, np.zeros((2, 3))),
                lambda g: g.name(0, "a", ["x", "x"]),
                lambda g: g.condition({0: 0, 1: 9}),
                lambda g: setattr(g, "cutoff", nan),
            ]
        )
    )
    def refused(self, bad: Any) -> None:
        before = self.graph.n_factors
        with pytest.raises(ModelError):
            bad(self.graph)
        assert self.graph.n_factors == before

    @precondition(lambda self: self.named)
    @rule(data=st.data(), scores=st.sampled_from([[0, 0, 0, 0, 0, nan], [0] * 5, [[0, 0]] * 3, "abcdef"]))
    def refused_table(self, data: Any, scores: Any) -> None:
        ref, _ = data.draw(st.sampled_from(self.named))
        with pytest.raises(ModelError):
            self.graph.set_table(ref, scores)

    # -- what must hold ----------------------------------------------------------------------------------------

    @invariant()
    def scores_are_right(self) -> None:
        graph = self.graph.copy()  # looking must not build the graph at hand
        for x in LABELINGS:
            assert graph.score(x) == self.wanted.score(x)

    def teardown(self) -> None:
        fresh, best = self.wanted.built(), max(self.wanted.score(x) for x in LABELINGS)
        assert [fresh.score(x) for x in LABELINGS] == [self.graph.score(x) for x in LABELINGS]
        for graph in (self.graph, fresh):
            result = solve(graph)
            if best <= self.wanted.cutoff:
                assert result.status == "infeasible"
            else:
                assert (result.status, result.score) == ("optimal", best)


TestChanges = Changes.TestCase
TestChanges.settings = settings(deadline=None, max_examples=40, stateful_step_count=20)
