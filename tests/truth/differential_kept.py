"""A model that is kept beside a graph, in plain lists and exact numbers, and random changes of both; some are refused.

Numbers are small multiples of 1/4, so that sums of doubles are exact, but for what constraints add.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import inf
from typing import Any

import numpy as np
from differential_refusals import bad_call
from differential_rules import random_rule
from numpy.typing import NDArray

from fginfer import AbsDiff, FactorGraph, ModelError, Potts, SqDiff

MOST_LABELINGS = 300
Scores = NDArray[np.float64]
WEIGHTS = (1.0, 1.0, 2.0, 0.5, -1.0, 0.0)
POSITIVE = (1.0, 2.0, 0.5, 0.0)


@dataclass
class Term:
    """A factor or a constraint, with what it is called by."""

    key: int
    scope: tuple[int, ...]
    table: int  # among the tables that are kept; -1: a constraint, or a table of its own
    scores: Any  # the array over the scope, or what a constraint says
    weight: float

    def value(self, x: tuple[int, ...], tables: dict[int, Scores]) -> Any:
        if self.weight == 0:
            return Fraction(0)
        if callable(self.scores):
            value = self.scores(x)
        else:
            value = float((self.scores if self.table < 0 else tables[self.table])[tuple(x[v] for v in self.scope)])
        return -inf if value == -inf else Fraction(value) * Fraction(self.weight)


@dataclass
class Model:
    cards: list[int]
    base: list[Scores]
    terms: dict[int, Term] = field(default_factory=dict)
    tables: dict[int, Scores] = field(default_factory=dict)
    cutoff: float = -inf
    fixed: dict[int, int] = field(default_factory=dict)

    def score(self, x: tuple[int, ...]) -> Any:
        total: Any = Fraction(0)
        for v, label in enumerate(x):
            value = float(self.base[v][label]) if self.fixed.get(v, label) == label else -inf
            if value == -inf:
                return -inf
            total += Fraction(value)
        for term in self.terms.values():
            value = term.value(x, self.tables)
            if value == -inf:
                return -inf
            total += value
        return total

    def scores(self) -> dict[tuple[int, ...], Any]:
        return {x: self.score(x) for x in product(*map(range, self.cards))}


class Falsehood(Exception):
    """The graph and what is kept beside it have come apart."""


class Kept:
    """A graph, the model that it should be, and the story of how both came to be."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        cards = rng.integers(1, 4, int(rng.integers(1, 6))).tolist()
        self.graph = FactorGraph(cards)
        self.model = Model(cards, [np.zeros(k) for k in cards])
        self.handles: dict[int, Any] = {}  # those of terms that are gone, too
        self.refs: dict[int, Any] = {}
        self.pushed: list[Model] = []
        self.story: list[str] = []
        self.watchers: list[Any] = []  # solvers: a copy of the graph is not theirs

    # -- drawing -----------------------------------------------------------------------------------------------

    def pick(self, values: Any) -> Any:
        values = list(values)
        return values[int(self.rng.integers(len(values)))]

    def draw(self, shape: Any, forbid: float = 0.15) -> Scores:
        out: Scores = self.rng.integers(-8, 9, shape) / 4.0
        if self.rng.random() < 0.4:
            out = np.where(self.rng.random(shape) < forbid, -inf, out)
        return out

    def scope(self, least: int, most: int) -> tuple[int, ...]:
        n = len(self.model.cards)
        size = int(self.rng.integers(min(least, n), min(most, n) + 1))
        return tuple(self.rng.permutation(n)[:size].tolist())

    def shape(self, scope: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.model.cards[v] for v in scope)

    # -- one step ----------------------------------------------------------------------------------------------

    def step(self) -> None:
        change = self.pick(CHANGES)
        text, act, apply = change(self)
        if act is None:
            return
        self.story.append(text)
        try:
            act()
        except ModelError as error:
            self.story[-1] += f"  -> refused: {error}"
            if apply is not None:
                raise Falsehood(f"a good change is refused: {error}") from None
            return
        if apply is None:
            raise Falsehood("a bad change is taken")
        apply()

    def compare(self) -> dict[tuple[int, ...], Any]:
        """All scores of the graph beside those of the model; and those of the model."""
        truth = self.model.scores()
        for x, meant in truth.items():
            if not same(found := self.graph.score(x), meant):
                raise Falsehood(f"the score of {x} is {found}, not {meant}")
        if self.graph.cutoff != self.model.cutoff or self.graph.cards.tolist() != self.model.cards:
            raise Falsehood("another cutoff or other label counts")
        return truth


def same(found: float, meant: Any) -> bool:
    return found == meant or (meant > -inf and found > -inf and abs(Fraction(found) - meant) <= Fraction(1e-9))


# -- changes: what to write down, what to do to the graph, and what to do to the model (None: a refusal) --------------

Change = tuple[str, Callable[[], Any] | None, Callable[[], Any] | None]


def _keep(kept: Kept, handle: Any, scope: tuple[int, ...], table: int, scores: Any, weight: float) -> None:
    key = len(kept.handles)
    kept.handles[key] = handle
    kept.model.terms[key] = Term(key, scope, table, scores, weight)


def _adding(
    kept: Kept, text: str, call: Callable[[], Any], scope: Any, table: int, scores: Any, weight: float
) -> Change:
    made: list[Any] = []
    return text, lambda: made.append(call()), lambda: _keep(kept, made[0], scope, table, scores, weight)


def add_array(kept: Kept) -> Change:
    scope, weight = kept.scope(0, 4), kept.pick(WEIGHTS)
    scores = kept.draw(kept.shape(scope))
    transposed = len(scope) == 2 and bool(kept.rng.random() < 0.3)
    given = scores.T.copy() if transposed else scores
    bad = (weight < 0 and (scores == -inf).any()) or (len(scope) == 1 and scope[0] in kept.model.fixed)
    if not scope and (scores == -inf).any():
        return "", None, None
    graph = kept.graph
    text = f"add_factor({scope}, {given.tolist()}, weight={weight}, transposed={transposed})"
    change = _adding(
        kept,
        text,
        lambda: graph.add_factor(scope, given, weight=weight, transposed=transposed),
        scope,
        -1,
        scores,
        weight,
    )
    return (change[0], change[1], None) if bad else change


def add_implicit(kept: Kept) -> Change:
    scope = kept.scope(2, 2)
    if len(scope) < 2 or kept.shape(scope) == (1, 1):  # there a rule's "different" forbids nothing
        return "", None, None
    table = kept.pick(
        [Potts(0.5, -1.0), Potts(0.0, -inf), AbsDiff(0.75), AbsDiff(1.0, 1.0), SqDiff(0.25), SqDiff(-0.5)]
    )
    weight = kept.pick(POSITIVE)
    d = np.abs(np.subtract.outer(*map(np.arange, kept.shape(scope)))).astype(float)
    if isinstance(table, Potts):
        scores = np.where(d == 0, table.same, table.different)
    else:
        scores = -table.weight * np.minimum(d if isinstance(table, AbsDiff) else d * d, table.truncation)
    graph = kept.graph
    text = f"add_factor({scope}, {table}, weight={weight})"
    return _adding(kept, text, lambda: graph.add_factor(scope, table, weight=weight), scope, -1, scores, weight)


def add_table(kept: Kept) -> Change:
    scope = kept.scope(2, 3)
    if len(scope) < 2:
        return "", None, None
    scores, made, number = kept.draw(kept.shape(scope)), [], len(kept.refs)

    def apply() -> None:
        kept.refs[number] = made[0]
        kept.model.tables[number] = scores

    return f"t{number} = add_table({scores.tolist()})", lambda: made.append(kept.graph.add_table(scores)), apply


def add_shared(kept: Kept) -> Change:
    fitting = [(t, s) for t, s in kept.model.tables.items() for _ in (0,) if s.ndim <= len(kept.model.cards)]
    if not fitting:
        return "", None, None
    number, scores = kept.pick(fitting)
    scope, weight = kept.scope(scores.ndim, scores.ndim), kept.pick(WEIGHTS)
    graph, ref = kept.graph, kept.refs[number]
    text = f"add_factor({scope}, t{number}, weight={weight})"
    change = _adding(kept, text, lambda: graph.add_factor(scope, ref, weight=weight), scope, number, None, weight)
    bad = kept.shape(scope) != scores.shape or (weight < 0 and (scores == -inf).any())
    return (change[0], change[1], None) if bad else change


def add_rule(kept: Kept) -> Change:
    said = random_rule(kept.rng, kept.model.cards)
    return _adding(kept, said.text, lambda: said.add(kept.graph), (), -1, said.score, 1.0)


def set_table(kept: Kept) -> Change:
    if not kept.model.tables:
        return "", None, None
    number = kept.pick(kept.model.tables)
    scores = kept.draw(kept.model.tables[number].shape)
    negative = any(t.table == number and t.weight < 0 for t in kept.model.terms.values())
    text = f"set_table(t{number}, {scores.tolist()})"
    bad = negative and (scores == -inf).any()
    graph, ref, tables = kept.graph, kept.refs[number], kept.model.tables
    return text, lambda: graph.set_table(ref, scores), None if bad else lambda: tables.__setitem__(number, scores)


def _replace_unary(kept: Kept, v: int, scores: Scores) -> None:
    kept.model.base[v] = scores
    for key in [key for key, t in kept.model.terms.items() if t.scope == (v,)]:
        del kept.model.terms[key]


def set_unary(kept: Kept) -> Change:
    v = int(kept.rng.integers(len(kept.model.cards)))
    scores, bad = kept.draw(kept.model.cards[v]), v in kept.model.fixed
    text = f"set_unary({v}, {scores.tolist()})"
    graph = kept.graph
    return text, lambda: graph.set_unary(v, scores), None if bad else lambda: _replace_unary(kept, v, scores)


def set_unaries(kept: Kept) -> Change:
    every = tuple(range(len(kept.model.cards)))
    which = every if kept.rng.random() < 0.5 else kept.scope(1, len(every))
    rows = [kept.draw(kept.model.cards[v]) for v in which]
    given = None if which == every and kept.rng.random() < 0.5 else which
    text = f"set_unaries({[r.tolist() for r in rows]}, {given})"
    graph = kept.graph
    bad = any(v in kept.model.fixed for v in which)

    def apply() -> None:
        for v, scores in zip(which, rows, strict=True):
            _replace_unary(kept, v, scores)

    return text, lambda: graph.set_unaries(rows, given), None if bad else apply


def set_weight(kept: Kept) -> Change:
    if not kept.handles:
        return "", None, None
    key = kept.pick(kept.handles)
    term, weight = kept.model.terms.get(key), kept.pick(WEIGHTS)
    graph, handle = kept.graph, kept.handles[key]
    bad = term is None
    if term is not None:
        scores = kept.model.tables.get(term.table, term.scores)
        forbids = callable(scores) or bool((np.asarray(scores) == -inf).any())
        bad = (weight < 0 and forbids) or (len(term.scope) == 1 and term.scope[0] in kept.model.fixed)
    text = f"set_weight(#{key}, {weight})"
    return text, lambda: graph.set_weight(handle, weight), None if bad else lambda: setattr(term, "weight", weight)


def remove(kept: Kept) -> Change:
    if not kept.handles:
        return "", None, None
    key = kept.pick(kept.handles)
    term, graph, handle = kept.model.terms.get(key), kept.graph, kept.handles[key]
    bad = term is None or (len(term.scope) == 1 and term.scope[0] in kept.model.fixed and not callable(term.scores))
    text = f"remove_factor(#{key})"
    return text, lambda: graph.remove_factor(handle), None if bad else lambda: kept.model.terms.pop(key)


def fix(kept: Kept) -> Change:
    v = int(kept.rng.integers(len(kept.model.cards)))
    label = int(kept.rng.integers(kept.model.cards[v]))
    graph, fixed = kept.graph, kept.model.fixed
    return f"fix({v}, {label})", lambda: graph.fix(v, label), lambda: fixed.__setitem__(v, label)


def free(kept: Kept) -> Change:
    graph, fixed = kept.graph, kept.model.fixed
    if kept.rng.random() < 0.4:
        return "free()", lambda: graph.free(), fixed.clear
    v = int(kept.rng.integers(len(kept.model.cards)))
    return f"free({v})", lambda: graph.free(v), (lambda: fixed.pop(v)) if v in fixed else None


def push(kept: Kept) -> Change:
    return "push()", kept.graph.push, lambda: kept.pushed.append(deepcopy(kept.model))


def pop(kept: Kept) -> Change:
    if not kept.pushed:
        return "pop()", kept.graph.pop, None
    return "pop()", kept.graph.pop, lambda: setattr(kept, "model", kept.pushed.pop())


def add_variable(kept: Kept) -> Change:
    labels = int(kept.rng.integers(1, 4))
    if np.prod(kept.model.cards) * labels > MOST_LABELINGS:
        return "", None, None

    def apply() -> None:
        kept.model.cards.append(labels)
        kept.model.base.append(np.zeros(labels))

    return f"add_variable({labels})", lambda: kept.graph.add_variable(labels), apply


def cutoff(kept: Kept) -> Change:
    score = kept.pick([-inf, -inf, -2.125, 0.125, 3.125])
    graph, model = kept.graph, kept.model
    return f"cutoff = {score}", lambda: setattr(graph, "cutoff", score), lambda: setattr(model, "cutoff", score)


def copied(kept: Kept) -> Change:
    """Solvers follow the graph that they were given, so there is none in what follows."""
    if kept.watchers:
        return "", None, None
    how: Callable[[Any], Any] = kept.pick([lambda g: g.copy(), lambda g: pickle.loads(pickle.dumps(g))])

    def apply() -> None:
        kept.pushed = []

    return "copy", lambda: setattr(kept, "graph", how(kept.graph)), apply


def built(kept: Kept) -> Change:
    return "build", lambda: kept.graph.score([0] * len(kept.model.cards)), lambda: None


def bad(kept: Kept) -> Change:
    text, act = bad_call(kept.rng, kept.graph, list(kept.handles.values()))
    return text, act, None


CHANGES = (
    *(add_array, add_array, add_array, add_implicit, add_table, add_shared, add_shared, add_rule),
    *(set_table, set_unary, set_unaries, set_weight, set_weight, remove, remove, fix, free, push, pop),
    *(add_variable, cutoff, copied, built, bad, bad, bad, bad),
)
