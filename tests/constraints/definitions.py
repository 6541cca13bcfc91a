"""Random constraints, each with its meaning written down from the definition, in exact rationals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import inf
from typing import Any, NamedTuple

from hypothesis import strategies as st

from fginfer import Automaton, FactorGraph

Labels = Sequence[int]
Exact = Fraction | float  # a float is -inf


class Said(NamedTuple):
    """A constraint: how it is added to a graph, and what a labeling scores by it."""

    text: str
    add: Callable[[FactorGraph], Any]
    score: Callable[[Labels], Exact]


def holds(literal: tuple[Any, ...], x: Labels) -> bool:
    return (x[literal[0]] == literal[1]) == (literal[2] if len(literal) > 2 else True)


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


def exact(value: float) -> Fraction:
    """Weights are the decimals that they print."""
    return Fraction(repr(value))


def price(violation: Fraction, penalty: float | None, per_unit: bool) -> Exact:
    if violation <= 0:
        return Fraction(0)
    if penalty is None:
        return -inf
    return -Fraction(penalty) * (violation if per_unit else 1)


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
    when = draw(st.one_of(st.none(), one_literal(cards)))

    def score(x: Labels) -> Exact:
        if when is not None and not holds(when, x):
            return Fraction(0)
        total = sum((exact(w) for literal, w in zip(some, by, strict=True) if holds(literal, x)), Fraction(0))
        below = Fraction(0) if low is None else exact(low) - total
        above = Fraction(0) if high is None else total - exact(high)
        return price(max(below, above), penalty, per_unit)

    options = {"penalty": penalty, "per_unit": per_unit, "when": when}
    return Said(
        f"linear {some} {by} {low} {high} {options}", lambda g: g.add_linear(some, by, low, high, **options), score
    )


@st.composite
def counted(draw: Any, cards: Sequence[int]) -> Said:
    """exactly one, at most, at least, between, by the number of true literals."""
    some, penalty = draw(literals(cards)), draw(penalties)
    per_unit = penalty is not None and draw(st.booleans())
    kind, k = draw(st.sampled_from(["exactly_one", "at_most", "at_least", "between"])), draw(st.integers(0, 4))
    low, high = {"exactly_one": (1, 1), "at_most": (0, k), "at_least": (k, 99), "between": (k, k + 1)}[kind]
    first = {"exactly_one": [], "at_most": [k], "at_least": [k], "between": [k, k + 1]}[kind]

    def score(x: Labels) -> Exact:
        count = sum(holds(literal, x) for literal in some)
        return price(Fraction(max(low - count, count - high)), penalty, per_unit)

    def add(g: FactorGraph) -> Any:
        return getattr(g, f"add_{kind}")(*first, some, penalty=penalty, per_unit=per_unit)

    return Said(f"{kind} {first} {some} {penalty} {per_unit}", add, score)


scores = st.sampled_from([0.0, 1.0, -2.5, 0.1, -inf, 4.0])


@st.composite
def cardinality(draw: Any, cards: Sequence[int]) -> Said:
    some = draw(literals(cards))
    values = [draw(scores) for _ in range(len(some) + 1)]
    when = draw(st.one_of(st.none(), one_literal(cards)))

    def score(x: Labels) -> Exact:
        if when is not None and not holds(when, x):
            return Fraction(0)
        value = values[sum(holds(literal, x) for literal in some)]
        return value if value == -inf else Fraction(value)

    return Said(f"cardinality {some} {values} {when}", lambda g: g.add_cardinality(some, values, when=when), score)


@st.composite
def logic(draw: Any, cards: Sequence[int]) -> Said:
    some, out, penalty = draw(literals(cards)), draw(one_literal(cards)), draw(penalties)
    kind = draw(st.sampled_from(["clause", "xor", "implication", "or_output", "and_output"]))
    truth: dict[str, Callable[[Labels], bool]] = {
        "clause": lambda x: any(holds(a, x) for a in some),
        "xor": lambda x: sum(holds(a, x) for a in some) % 2 == 1,
        "implication": lambda x: not all(holds(a, x) for a in some) or holds(out, x),
        "or_output": lambda x: holds(out, x) == any(holds(a, x) for a in some),
        "and_output": lambda x: holds(out, x) == all(holds(a, x) for a in some),
    }
    given = {"clause": [some], "xor": [some], "implication": [some, out]}.get(kind, [out, some])
    return Said(
        f"{kind} {given} {penalty}",
        lambda g: getattr(g, f"add_{kind}")(*given, penalty=penalty),
        lambda x: price(Fraction(not truth[kind](x)), penalty, False),
    )


@st.composite
def occurrences(draw: Any, cards: Sequence[int]) -> Said:
    scope = draw(st.permutations(range(len(cards))))[: draw(st.integers(1, len(cards)))]
    n, cost = max(cards[v] for v in scope), draw(penalties)
    different = draw(st.booleans())
    low = [0] * n if different else [draw(st.integers(0, 2)) for _ in range(n)]
    high = [1] * n if different else [least + draw(st.integers(0, 3)) for least in low]

    def score(x: Labels) -> Exact:
        count = [sum(x[v] == k for v in scope) for k in range(n)]
        off = sum(max(0, low[k] - count[k], count[k] - high[k]) for k in range(n))
        return price(Fraction(off), cost, True)

    def add(g: FactorGraph) -> Any:
        if different:
            return g.add_all_different(scope, price=cost)
        return g.add_global_cardinality(scope, dict(enumerate(low)), high, price=cost)

    return Said(f"occurrences {scope} {low} {high} {cost}", add, score)


@st.composite
def regular(draw: Any, cards: Sequence[int]) -> Said:
    scope = draw(st.permutations(range(len(cards))))[: draw(st.integers(1, len(cards)))]
    state, label = st.integers(0, 2), st.integers(0, 2)
    moves = draw(st.lists(st.tuples(state, label, state, scores), max_size=12))
    final = draw(st.dictionaries(state, scores, max_size=3))

    def score(x: Labels) -> Exact:
        ways: dict[int, Exact] = {0: Fraction(0)}
        for v in scope:
            after: dict[int, Exact] = {}
            for s, a, t, value in moves:
                if s in ways and a == x[v] and value > -inf:
                    after[t] = max(after.get(t, -inf), ways[s] + Fraction(value))
            ways = after
        ends = [value + Fraction(final[s]) for s, value in ways.items() if final.get(s, -inf) > -inf]
        return max(ends, default=-inf)

    return Said(f"regular {scope} {moves} {final}", lambda g: g.add_regular(scope, Automaton(moves, final)), score)


@st.composite
def sparse(draw: Any, cards: Sequence[int]) -> Said:
    scope = draw(st.permutations(range(len(cards))))[: draw(st.integers(1, len(cards)))]
    every = list(product(*(range(cards[v]) for v in scope)))
    states = draw(st.lists(st.sampled_from(every), unique=True, max_size=6))
    values, default = [draw(scores) for _ in states], draw(scores)

    def score(x: Labels) -> Exact:
        value = dict(zip(states, values, strict=True)).get(tuple(x[v] for v in scope), default)
        return value if value == -inf else Fraction(value)

    return Said(
        f"sparse {scope} {states} {values} {default}", lambda g: g.add_sparse(scope, states, values, default), score
    )


def constraints(cards: Sequence[int]) -> Any:
    kinds = linear, counted, cardinality, logic, occurrences, regular, sparse
    return st.one_of(*(kind(cards) for kind in kinds))
