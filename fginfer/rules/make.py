"""Rules from literals: what is said about them becomes adds of variables and a score of their sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor, gcd, inf, isfinite, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import ModelError
from fginfer.options import is_flag
from fginfer.rules.literals import Literal, exact_number
from fginfer.rules.steps import Piece, Steps
from fginfer.rules.sums import SumRule

Adds = dict[int, tuple[int, ...]]
Cards = Sequence[int] | NDArray[np.int32]


def check_penalty(name: str, penalty: Any, what: str = "penalty") -> float | None:
    """The price of a violation: None for a hard rule, or a finite number >= 0."""
    if penalty is None:
        return None
    try:
        price = float(penalty)
    except (TypeError, ValueError):
        raise ModelError(f"{name}: the {what} must be a number >= 0, not {penalty!r}") from None
    if not 0 <= price < inf:
        raise ModelError(f"{name}: the {what} must be finite and >= 0, not {penalty!r}")
    return price


def _adds(literals: Sequence[Literal], weights: Sequence[int], cards: Cards) -> tuple[Adds, int]:
    """What each variable adds by its label, least 0; and what is added in any case. Equal lists are one object."""
    by_variable: dict[int, dict[int, int]] = {}
    in_any_case = 0
    for literal, weight in zip(literals, weights, strict=True):
        change = by_variable.setdefault(literal.variable, {})
        change[literal.label] = change.get(literal.label, 0) + (weight if literal.positive else -weight)
        in_any_case += 0 if literal.positive else weight
    adds: Adds = {}
    same: dict[tuple[int, ...], tuple[int, ...]] = {}
    for variable, change in by_variable.items():
        full = len(change) == cards[variable]
        least = min(change.values()) if full else min(0, *change.values())
        in_any_case += least
        row = [-least] * int(cards[variable])
        for label, weight in change.items():
            row[label] = weight - least
        if any(row):
            adds[variable] = same.setdefault(tuple(row), tuple(row))
    return adds, in_any_case


def _rule(
    kind: str, adds: Adds, steps: Callable[[int], Steps], when: Literal | None, cards: Cards, modulus: int = 0
) -> SumRule:
    """The rule over what the variables add; `steps` makes the score from the largest total."""
    most = sum(max(add) for add in adds.values())
    score = steps(most)
    if when is not None:
        # A false condition adds more than all others can: these totals have the score 0.
        off = [0 if (label == when.label) == when.positive else most + 1 for label in range(int(cards[when.variable]))]
        inside = adds.get(when.variable, (0,) * len(off))
        first = {when.variable: tuple(a + b for a, b in zip(inside, off, strict=True))}
        adds = first | {v: add for v, add in adds.items() if v != when.variable}
        most_of_all = sum(max(add) for add in adds.values())
        score = Steps((*score.pieces, Piece(most + 1, 0.0)), max(most_of_all, most + 1))
    return SumRule(kind, tuple(adds), tuple(adds.values()), score, modulus)


def linear_rule(
    name: str,
    kind: str,
    literals: Sequence[Literal],
    weights: Sequence[Any],
    limits: tuple[Any, Any],
    penalty: Any,
    per_unit: bool,
    when: Literal | None,
    cards: Cards,
) -> SumRule:
    """low <= sum of the weights of true literals <= high."""
    price = check_penalty(name, penalty)
    if not is_flag(per_unit):
        raise ModelError(f"{name}: per_unit must be True or False, not {per_unit!r}")
    if per_unit and price is None:
        raise ModelError(f"{name}: per_unit=True needs a penalty")
    if len(weights) != len(literals):
        raise ModelError(f"{name}: {len(literals)} literals need as many weights, not {len(weights)}")
    exact = [exact_number(name, "a weight", w) for w in weights]
    low, high = (_limit(name, k) for k in limits)
    if low is not None and high is not None and low > high:
        raise ModelError(f"{name}: the lower limit {limits[0]} is above the upper limit {limits[1]}")
    bounds = [b for b in (low, high) if b is not None]
    scale = lcm(1, *(w.denominator for w in exact), *((b.denominator for b in bounds) if per_unit else ()))
    adds, always = _adds(literals, [int(w * scale) for w in exact], cards)
    least = None if low is None else low * scale - always
    most = None if high is None else high * scale - always
    unit = gcd(*(a for add in adds.values() for a in set(add)))
    if per_unit:
        unit = gcd(unit, *(int(b) for b in (least, most) if b is not None))
    unit = unit or 1
    adds = {v: tuple(a // unit for a in add) for v, add in adds.items()} if unit > 1 else adds
    slope = -float(Fraction(unit, scale)) * price if per_unit and price is not None else 0.0
    once = 0.0 if per_unit else -inf if price is None else -price
    if per_unit:
        top = sum(max(add) for add in adds.values())
        worst = max(0, *(abs(int(b) // unit) + top for b in (least, most) if b is not None), 0)
        if not isfinite(slope * float(min(worst, 10**308))) or worst > 10**300:
            raise ModelError(f"{name}: the penalty of the largest violation overflows")
    from_least = None if least is None else ceil(least / unit)
    to_most = None if most is None else floor(most / unit)
    return _rule(kind, adds, lambda total: Steps.between(from_least, to_most, total, once, slope), when, cards)


def _limit(name: str, given: Any) -> Fraction | None:
    """A limit without rounding; None and infinities are no limit."""
    if given is None or (isinstance(given, float) and given in (inf, -inf)):
        return None
    return exact_number(name, "a limit", given)


def count_rule(
    name: str, kind: str, literals: Sequence[Literal], scores: Sequence[float], when: Literal | None, cards: Cards
) -> SumRule:
    """scores[c] where c of the literals are true."""
    if len(scores) != len(literals) + 1:
        raise ModelError(f"{name}: {len(literals)} literals need {len(literals) + 1} scores, for 0 and more true ones")
    adds, always = _adds(literals, [1] * len(literals), cards)
    return _rule(kind, adds, Steps.listed(scores).moved_to(always), when, cards)


def parity_rule(kind: str, literals: Sequence[Literal], price: float | None, cards: Cards) -> SumRule:
    """An odd number of the literals is true."""
    adds, always = _adds(literals, [1] * len(literals), cards)
    odd = {v: tuple(a % 2 for a in add) for v, add in adds.items()}
    odd = {v: add for v, add in odd.items() if any(add)}
    even = -inf if price is None else -price
    return _rule(kind, odd, lambda _: Steps.listed([0.0, even] if always % 2 else [even, 0.0]), None, cards, 2)


def constant_rule(kind: str, score: float) -> SumRule:
    """A rule about no variable: evidence has decided it, or its weight is 0."""
    return SumRule(kind, (), (), Steps.listed([score]))


def output_rule(kind: str, output: Literal, literals: Sequence[Literal], price: float | None, cards: Cards) -> SumRule:
    """The output is true exactly if one of the literals is: it weighs more than all of them."""
    n, wrong = len(literals), -inf if price is None else -price
    adds, always = _adds([output, *literals], [n + 1] + [1] * n, cards)
    steps = Steps((Piece(0, 0.0), Piece(1, wrong), Piece(n + 2, 0.0)), 2 * n + 1)
    return _rule(kind, adds, steps.moved_to(always), None, cards)
