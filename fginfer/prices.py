"""Prices: what a constraint that stays apart from the tables and the tables pay each other for labels.

Tables get `prices` on top of their unary scores, the constraint gets them taken off its own: whatever they are, the
best of both sums is no less than the best of all. A sum has one price per unit, a rule about occurrences one per label,
and any other rule one for each label of each variable.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.rules import Occurrences, Rule, SumRule
from fginfer.rules.question import Question

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]


class Priced:
    """A constraint, its prices, and the best that it has under them."""

    def __init__(self, rule: Rule, unary: Floats, begin: NDArray[np.int64]) -> None:
        self.rule, self.question = rule, Question(rule)
        variables = np.array(rule.variables, np.int64)
        counts = begin[variables + 1] - begin[variables]
        self.first = np.concatenate(([0], np.cumsum(counts)))[:-1]  # where each variable begins among the labels
        self.variables = variables
        self.places = np.repeat(begin[variables] - self.first, counts) + np.arange(counts.sum())
        self.forbidden = unary[self.places] == -inf
        self.slot, self.factor = self._slots(counts)  # which price each label pays, and how many times
        self.prices = np.zeros(int(self.slot.max(initial=-1)) + 1)
        self.bound = inf
        self.used: Floats | None = None  # how many times the constraint itself uses each price; None: unknown

    def _slots(self, counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats]:
        n = int(counts.sum())
        if isinstance(self.rule, Occurrences):
            return np.arange(n) - np.repeat(self.first, counts), np.ones(n)
        return np.arange(n), np.ones(n)

    def pay(self, unary: Floats) -> None:
        """Adds the prices to unary scores."""
        np.add.at(unary, self.places, self.factor * self.prices[self.slot])

    def uses(self, labels: Labels) -> Floats:
        """How many times labels of all variables use each price."""
        return self._counted(self.first + labels[self.variables].astype(np.int64))

    def disagreement(self, labels: Labels) -> Floats:
        """How much more often labels of all variables use each price than the constraint does."""
        used = self.uses(labels)
        return used - (used if self.used is None else self.used)

    def _counted(self, at: NDArray[np.int64]) -> Floats:
        return np.asarray(np.bincount(self.slot[at], self.factor[at], len(self.prices)), np.float64)

    def ask(self, labels: Labels) -> bool:
        """Finds the best under the prices, near these labels where several are best; False: nothing is allowed."""
        gains = np.where(self.forbidden, -inf, -self.factor * self.prices[self.slot])
        best = self.question.best(gains)
        self.bound, self.used = inf, None
        if best.labels is None:
            return best.above > 0
        at = self.first + best.labels.astype(np.int64)
        paid = gains[at]
        rounding = float(np.abs(paid).sum()) * (len(paid) + 4) * 2.0**-52
        self.bound = self.rule.score(best.labels.tolist()) + float(paid.sum()) + best.above + rounding
        self.used = self._counted(at)
        return True


class PricedSum(Priced):
    """A sum with one price: its best is a total, at one end of a piece of its score."""

    rule: SumRule

    def _slots(self, counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats]:
        adds = self.rule.adds
        self.unit = max(1, *map(max, adds))
        allowed = np.split(~self.forbidden, self.first[1:])
        pairs = zip(adds, allowed, strict=True)
        some = [[a for a, ok in zip(add, mask, strict=True) if ok] or [0] for add, mask in pairs]
        self.least, self.most = sum(map(min, some)), sum(map(max, some))  # totals that can occur
        factor = np.array([a / self.unit for add in adds for a in add])
        return np.zeros(len(factor), np.int64), factor

    def ask(self, labels: Labels) -> bool:
        price, total = float(self.prices[0]), self.rule.total(labels[self.variables].tolist())
        pieces = self.rule.steps.pieces
        ends = [*(p.start - 1 for p in pieces[1:]), self.most]
        top, at, size = -inf, 0, 0.0
        for piece, end in zip(pieces, ends, strict=True):
            low, high = max(piece.start, self.least), min(end, self.most)
            if piece.base == -inf or low > high:
                continue
            both = [piece(t) - price * (t / self.unit) for t in (low, high)]
            size = max(size, *(abs(piece(t)) + abs(price * (t / self.unit)) for t in (low, high)))
            near = min(max(total, low), high) if both[0] == both[1] else low if both[0] > both[1] else high
            if max(both) > top or (max(both) == top and abs(near - total) < abs(at - total)):
                top, at = max(both), near
        self.bound, self.used = top + size * 2.0**-48, np.array([at / self.unit])
        return top > -inf


def priced(rule: Rule, unary: Floats, begin: NDArray[np.int64]) -> Priced:
    """The constraint with prices that suit its kind."""
    is_sum = isinstance(rule, SumRule) and not rule.modulus
    return (PricedSum if is_sum else Priced)(rule, unary, begin)
