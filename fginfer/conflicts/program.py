"""Program: clauses and linear constraints over Booleans, and costs of literals, in a normal form.

Literal 2 v says that Boolean v is true, 2 v + 1 that it is false. Boolean 0 is true, so that constants are literals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import floor, frexp, gcd, ldexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.rules import ConflictsHandle

TRUE, FALSE = 0, 1
MOST_SUM = 1 << 60  # sum of the weights of a constraint: the core counts in 64 bits
MOST_LITERALS = 1_000_000  # literals in all that is said: half a second to say it (chosen)

Term = tuple[int, int]  # a literal and its weight
Number = float | Fraction


class TooLarge(Exception):
    """It cannot be said in this language, or would take too long to say."""


class Program:
    """What is to be satisfied, and what literals cost."""

    def __init__(self) -> None:
        self.n = 1
        self.clauses: list[list[int]] = [[TRUE]]
        self.linears: list[tuple[list[int], list[int], int]] = []
        self.tops: list[Number] = []  # their sum is the score of a solution without costs
        self._costs: list[tuple[int, Number, Number]] = []  # literal; a score, and the lower one in its place
        self._size = 0

    def new(self) -> int:
        """The literal of another Boolean."""
        self.n += 1
        return 2 * (self.n - 1)

    def _take(self, literals: int) -> None:
        self._size += literals
        if self._size > MOST_LITERALS:
            raise TooLarge

    def clause(self, literals: Iterable[int]) -> None:
        """One of them is true."""
        left = {x for x in literals if x != FALSE}
        if TRUE in left or any(x ^ 1 in left for x in left):
            return
        self._take(len(left))
        self.clauses.append(sorted(left))

    def at_most(self, terms: Iterable[Term], limit: int) -> None:
        """The weights of the true ones, of any sign, add up to the limit or less."""
        found, limit = _normal(terms, limit)
        total = sum(w for _, w in found)
        if total <= limit:
            return
        if limit < 0:
            self.clause([])
            return
        found = [(x, min(w, limit + 1)) for x, w in found]
        total = sum(w for _, w in found)
        self._take(len(found))
        if total >= MOST_SUM:
            raise TooLarge
        if total - min(w for _, w in found) <= limit:
            self.clause(x ^ 1 for x, _ in found)
            return
        shared = gcd(*(w for _, w in found))
        self.linears.append(([x for x, _ in found], [w // shared for _, w in found], limit // shared))

    def at_least(self, terms: Iterable[Term], limit: int) -> None:
        self.at_most([(x, -w) for x, w in terms], -limit)

    def one_of(self, n: int) -> list[int]:
        """Literals of which exactly one is true."""
        if n == 1:
            return [TRUE]
        if n == 2:
            x = self.new()
            return [x, x ^ 1]
        found = [self.new() for _ in range(n)]
        self.clause(found)
        self.at_most([(x, 1) for x in found], 1)
        return found

    def amount(self, most: int, unit: Fraction) -> list[Term]:
        """Terms that add up to any number from 0 to `most` or more, each unit of which costs so much."""
        bits = [(self.new(), 1 << k) for k in range(most.bit_length())]
        for x, w in bits:
            self.cost(x, unit * w, 0.0)
        return bits

    def cost(self, literal: int, instead_of: Number, score: Number) -> None:
        """If the literal is true there is this score instead of that larger one."""
        if literal != FALSE and score < instead_of:
            self._take(1)
            self._costs.append((literal, instead_of, score))

    def objective(self) -> Objective:
        return Objective(self.tops, self._costs)

    def handle(self, values: NDArray[np.uint8], activity: NDArray[np.float64]) -> ConflictsHandle:
        """The search for it, with the values that are tried first."""
        made = ConflictsHandle(self.n)
        made.add(self.clauses)
        made.prefer(values, activity)
        for literals, weights, limit in self.linears:
            made.linear(literals, weights, limit)
        return made


class Objective:
    """Whole costs of literals in units of `step`, no more than those that were said, and the score without costs."""

    def __init__(self, tops: Sequence[Number], costs: Sequence[tuple[int, Number, Number]]) -> None:
        self.top = sum((Fraction(score) for score in tops), Fraction(0))
        by, exponent = _whole(costs)
        found, more = _normal(by, 0)
        shared = gcd(*(w for _, w in found)) if found else 1
        self.step = Fraction(2) ** exponent * shared
        self.literals, self.weights = [x for x, _ in found], [w // shared for _, w in found]
        self.top += self.step * Fraction(more, shared)  # what has to be paid in any case
        self.total = sum(self.weights)

    def limit_above(self, score: float) -> int:
        """Solutions with a larger score cost no more than this."""
        return min(self.total, -floor((Fraction(score) - self.top) / self.step) - 1)

    def cost_of(self, values: NDArray[np.uint8]) -> int:
        """What the true literals of a solution cost."""
        pairs = zip(self.literals, self.weights, strict=True)
        return sum(w for x, w in pairs if values[x >> 1] != (x & 1))

    def bound_below(self, limit: int) -> Fraction:
        """No solution scores more if none costs this much or less."""
        return self.top - self.step * (limit + 1)


def _whole(costs: Sequence[tuple[int, Number, Number]]) -> tuple[list[Term], int]:
    """Costs in units of a power of two: exact where numbers are multiples of it, else rounded down."""
    size = max((abs(float(number)) for _, high, low in costs for number in (high, low)), default=0.0)
    if size == 0:
        return [], 0
    exponent = frexp(size)[1] - min(52, 58 - len(costs).bit_length())
    if not -1000 < exponent < 900:
        raise TooLarge
    return [(x, _floor(high, exponent) + _floor(-low, exponent)) for x, high, low in costs], exponent


def _floor(number: Number, exponent: int) -> int:
    if isinstance(number, Fraction):
        return floor(number / Fraction(2) ** exponent)
    return floor(ldexp(number, -exponent))


def _normal(terms: Iterable[Any], limit: int) -> tuple[list[Term], int]:
    """Terms with weights above 0, each Boolean once, and the limit that is left for them."""
    by: dict[int, int] = {}
    for x, w in terms:
        if x & 1:  # a false Boolean: its weight less that of the true one
            limit -= w
            w = -w
        by[x >> 1] = by.get(x >> 1, 0) + w
    limit -= by.pop(0, 0)
    found = []
    for v, w in by.items():
        if w > 0:
            found.append((2 * v, w))
        elif w < 0:
            found.append((2 * v + 1, -w))
            limit -= w
    return found, limit
