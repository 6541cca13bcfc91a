"""What each kind of constraint means, written down from its definition in exact rationals, and how a graph is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import inf
from typing import Any, NamedTuple

from fginfer import Automaton, FactorGraph

Labels = Sequence[int]
Exact = Fraction | float  # a float is -inf
Literal = tuple[Any, ...]
LIMITS = {"exactly_one": 0, "at_most": 1, "at_least": 1, "between": 2}  # and how many numbers each takes
LOGIC = ("clause", "xor", "implication", "or_output", "and_output")


class Said(NamedTuple):
    """A constraint: how it is added to a graph, and what a labeling scores by it."""

    text: str
    add: Callable[[FactorGraph], Any]
    score: Callable[[Labels], Exact]


def holds(literal: Literal, x: Labels) -> bool:
    return bool((x[literal[0]] == literal[1]) == (literal[2] if len(literal) > 2 else True))


def exact(value: float) -> Fraction:
    """Weights are the decimals that they print."""
    return Fraction(repr(value))


def valued(value: float) -> Exact:
    return value if value == -inf else Fraction(value)


def price(violation: Fraction, penalty: float | None, per_unit: bool) -> Exact:
    if violation <= 0:
        return Fraction(0)
    if penalty is None:
        return -inf
    return -Fraction(penalty) * (violation if per_unit else 1)


def linear(
    some: list[Literal],
    by: list[float],
    low: float | None,
    high: float | None,
    penalty: float | None = None,
    per_unit: bool = False,
    when: Literal | None = None,
) -> Said:
    def score(x: Labels) -> Exact:
        if when is not None and not holds(when, x):
            return Fraction(0)
        total = sum((exact(w) for literal, w in zip(some, by, strict=True) if holds(literal, x)), Fraction(0))
        below = Fraction(0) if low is None else exact(low) - total
        above = Fraction(0) if high is None else total - exact(high)
        return price(max(below, above), penalty, per_unit)

    def add(g: FactorGraph) -> Any:
        return g.add_linear(some, by, low, high, penalty=penalty, per_unit=per_unit, when=when)

    return Said(f"linear {some} {by} {low} {high} {penalty} {per_unit} {when}", add, score)


def counted(kind: str, k: int, some: list[Literal], penalty: float | None = None, per_unit: bool = False) -> Said:
    """exactly one, at most, at least, between, by the number of true literals."""
    low, high = {"exactly_one": (1, 1), "at_most": (0, k), "at_least": (k, 99), "between": (k, k + 1)}[kind]
    first = [k, k + 1][: LIMITS[kind]]

    def score(x: Labels) -> Exact:
        count = sum(holds(literal, x) for literal in some)
        return price(Fraction(max(low - count, count - high)), penalty, per_unit)

    def add(g: FactorGraph) -> Any:
        return getattr(g, f"add_{kind}")(*first, some, penalty=penalty, per_unit=per_unit)

    return Said(f"{kind} {first} {some} {penalty} {per_unit}", add, score)


def cardinality(some: list[Literal], values: list[float], when: Literal | None = None) -> Said:
    def score(x: Labels) -> Exact:
        if when is not None and not holds(when, x):
            return Fraction(0)
        return valued(values[sum(holds(literal, x) for literal in some)])

    return Said(f"cardinality {some} {values} {when}", lambda g: g.add_cardinality(some, values, when=when), score)


def logic(kind: str, some: list[Literal], out: Literal, penalty: float | None = None) -> Said:
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


def occurrences(scope: Sequence[int], low: list[int], high: list[int], cost: float | None, different: bool) -> Said:
    """Each label occurs from low to high times; `different` is low 0 and high 1, said in other words."""

    def score(x: Labels) -> Exact:
        count = [sum(x[v] == k for v in scope) for k in range(len(low))]
        off = sum(max(0, low[k] - n, n - high[k]) for k, n in enumerate(count))
        return price(Fraction(off), cost, True)

    def add(g: FactorGraph) -> Any:
        if different:
            return g.add_all_different(scope, price=cost)
        return g.add_global_cardinality(scope, dict(enumerate(low)), high, price=cost)

    return Said(f"occurrences {scope} {low} {high} {cost} {different}", add, score)


def regular(scope: Sequence[int], moves: list[tuple[int, int, int, float]], final: Mapping[int, float]) -> Said:
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


def sparse(scope: Sequence[int], states: list[tuple[int, ...]], values: list[float], default: float) -> Said:
    def score(x: Labels) -> Exact:
        return valued(dict(zip(states, values, strict=True)).get(tuple(x[v] for v in scope), default))

    return Said(
        f"sparse {scope} {states} {values} {default}", lambda g: g.add_sparse(scope, states, values, default), score
    )
