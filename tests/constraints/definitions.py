"""Random constraints, drawn by hypothesis; meanings.py says what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf
from typing import Any

from hypothesis import strategies as st

from tests.constraints import meanings
from tests.constraints.meanings import LIMITS, LOGIC, Said, exact


def one_literal(cards: Sequence[int]) -> Any:
    return st.integers(0, len(cards) - 1).flatmap(
        lambda v: st.one_of(
            st.tuples(st.just(v), st.integers(0, cards[v] - 1)),
            st.tuples(st.just(v), st.integers(0, cards[v] - 1), st.booleans()),
        )
    )


def literals(cards: Sequence[int]) -> Any:
    """They may repeat, contradict and share variables."""
    return st.lists(one_literal(cards), max_size=6)


penalties = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0, 0.1, 3.7]))
weights = st.one_of(st.integers(-4, 4), st.sampled_from([0.1, 0.25, -0.3, 1.5]))
scores = st.sampled_from([0.0, 1.0, -2.5, 0.1, -inf, 4.0])


@st.composite
def linear(draw: Any, cards: Sequence[int]) -> Said:
    some = draw(literals(cards))
    by = [draw(weights) for _ in some]
    limits = [draw(st.one_of(st.none(), weights)) for _ in range(2)]
    if limits == [None, None]:
        limits[1] = 1
    low, high = limits
    if low is not None and high is not None and exact(low) > exact(high):
        low, high = high, low
    penalty = draw(penalties)
    per_unit = penalty is not None and draw(st.booleans())
    return meanings.linear(some, by, low, high, penalty, per_unit, draw(st.one_of(st.none(), one_literal(cards))))


@st.composite
def counted(draw: Any, cards: Sequence[int]) -> Said:
    some, penalty = draw(literals(cards)), draw(penalties)
    per_unit = penalty is not None and draw(st.booleans())
    return meanings.counted(draw(st.sampled_from(list(LIMITS))), draw(st.integers(0, 4)), some, penalty, per_unit)


@st.composite
def cardinality(draw: Any, cards: Sequence[int]) -> Said:
    some = draw(literals(cards))
    values = [draw(scores) for _ in range(len(some) + 1)]
    return meanings.cardinality(some, values, draw(st.one_of(st.none(), one_literal(cards))))


@st.composite
def logic(draw: Any, cards: Sequence[int]) -> Said:
    some, out, penalty = draw(literals(cards)), draw(one_literal(cards)), draw(penalties)
    return meanings.logic(draw(st.sampled_from(LOGIC)), some, out, penalty)


def scope_of(draw: Any, cards: Sequence[int]) -> Any:
    return draw(st.permutations(range(len(cards))))[: draw(st.integers(1, len(cards)))]


@st.composite
def occurrences(draw: Any, cards: Sequence[int]) -> Said:
    scope = scope_of(draw, cards)
    n, cost = max(cards[v] for v in scope), draw(penalties)
    different = draw(st.booleans())
    low = [0] * n if different else [draw(st.integers(0, 2)) for _ in range(n)]
    high = [1] * n if different else [least + draw(st.integers(0, 3)) for least in low]
    return meanings.occurrences(scope, low, high, cost, different)


@st.composite
def regular(draw: Any, cards: Sequence[int]) -> Said:
    scope = scope_of(draw, cards)
    state, label = st.integers(0, 2), st.integers(0, 2)
    moves = draw(st.lists(st.tuples(state, label, state, scores), max_size=12))
    return meanings.regular(scope, moves, draw(st.dictionaries(state, scores, max_size=3)))


@st.composite
def sparse(draw: Any, cards: Sequence[int]) -> Said:
    scope = scope_of(draw, cards)
    every = list(product(*(range(cards[v]) for v in scope)))
    states = draw(st.lists(st.sampled_from(every), unique=True, max_size=6))
    return meanings.sparse(scope, states, [draw(scores) for _ in states], draw(scores))


def constraints(cards: Sequence[int]) -> Any:
    kinds = linear, counted, cardinality, logic, occurrences, regular, sparse
    return st.one_of(*(kind(cards) for kind in kinds))
