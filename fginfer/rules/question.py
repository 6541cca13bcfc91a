"""The best state of a rule under scores of labels, with a bound, whatever the size of its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp, inf, ldexp, nextafter

import numpy as np
from numpy.typing import NDArray

from fginfer.core.rules import RuleHandle
from fginfer.errors import ModelError, SolverError
from fginfer.rules.coarse import coarse
from fginfer.rules.occurrences import Occurrences
from fginfer.rules.rule import Rule
from fginfer.rules.sums import SumRule


@dataclass(frozen=True)
class Best:
    """A state, and how much better another one may be. No labels: every state is forbidden, or, where `above` is
    infinite, none was found."""

    labels: NDArray[np.int32] | None
    above: float


class Question:
    """A rule in the core. Where its numbers are too large for that, two coarser ones stand for it."""

    def __init__(self, rule: Rule) -> None:
        self.rule = self.own = rule  # own: what the core holds, which allows nothing that the rule forbids
        self.wide: RuleHandle | None = None
        try:
            self.handle = rule.native()
        except ModelError:
            both = coarse(rule) if isinstance(rule, SumRule) else None
            if both is None:
                raise
            self.own = both[0]
            self.handle, self.wide = self.own.native(), both[1].native()

    def best(self, gains: NDArray[np.float64]) -> Best:
        """The best state under gains, flat by label; -inf forbids."""
        try:
            labels, above, _ = self.handle.best(gains)
        except SolverError:  # a search was cut off before it had a state
            return Best(None, inf)
        if self.wide is not None:
            return self._of_two(labels, gains)
        if labels is None or above == 0:
            return Best(labels, above)
        return Best(labels, 0.0 if above < _lattice(self.rule, gains) else above)

    def _of_two(self, labels: NDArray[np.int32] | None, gains: NDArray[np.float64]) -> Best:
        assert self.wide is not None
        upper, above, _ = self.wide.best(gains)
        if upper is None:
            return Best(None, 0.0)
        if labels is None:
            labels = upper if self.rule.score(upper.tolist()) > -inf else None
        if labels is None:
            return Best(None, inf)
        begin = self.handle.begin[:-1]
        most = self.wide.score(upper) + float(gains[begin + upper].sum())
        value = self.rule.score(labels.tolist()) + float(gains[begin + labels].sum())
        return Best(labels, max(0.0, nextafter(most - value, inf)) + above)


def _lattice(rule: Rule, gains: NDArray[np.float64]) -> float:
    """A step such that the values of all states are multiples of it; 0: there is none. A state cannot be better by less
    than that."""
    scores = numbers_of(rule)
    if scores is None:
        return 0.0
    return common_step(np.concatenate((gains[gains > -inf], scores)), len(rule.variables) + 2)


def common_step(numbers: NDArray[np.float64], terms: int) -> float:
    """The largest number of which all of these are multiples, if sums of so many of them are exact; else 0."""
    numbers = np.abs(numbers)
    size = float(numbers.max(initial=0.0)) * terms
    if size == 0:
        return inf
    step = ldexp(1.0, frexp(size)[1] - 52)
    if not 1e-290 < step < 1e290:
        return 0.0
    scaled = numbers / step
    if bool((scaled != np.floor(scaled)).any()):
        return 0.0
    return step * float(np.gcd.reduce(scaled.astype(np.int64)))


def numbers_of(rule: Rule) -> NDArray[np.float64] | None:
    """Numbers of which all scores of a rule are multiples, the largest score among them."""
    if isinstance(rule, Occurrences):
        most = 2.0 * len(rule.variables) * len(rule.high)
        return np.array([] if rule.price == inf else [rule.price, rule.price * most])
    if isinstance(rule, SumRule):
        pieces = rule.steps.pieces
        bases = [p.base for p in pieces if p.base > -inf]
        return np.array([*bases, *(p.slope for p in pieces), rule.steps.largest()])
    return None
