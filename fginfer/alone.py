"""Constraints that stand alone: of variables with unary scores only, one constraint each. The oracle of the constraint
answers such a part of a model at once, whatever its size, so that nothing is left for a method to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import ModelArrays, begins
from fginfer.errors import ModelError
from fginfer.rules import Occurrences, Rule
from fginfer.rules.question import Best, Question
from fginfer.rules.steps import smallest

MOST_PLACES = 2e9  # variables times variables times labels of a rule about occurrences: some ten seconds (chosen)


@dataclass(frozen=True, eq=False)
class Settled:
    """Variables that constraints alone have decided, their labels, and the score of these constraints; without labels
    nothing is allowed."""

    rules: frozenset[int]  # numbers of the constraints
    variables: NDArray[np.int64]
    labels: NDArray[np.int32]
    scores: tuple[float, ...]
    rounding: float  # how much more these variables might have got
    unit: float = 0.0  # the smallest that one of these constraints has

    @property
    def is_broken(self) -> bool:
        return len(self.labels) < len(self.variables)


NOTHING = Settled(frozenset(), np.zeros(0, np.int64), np.zeros(0, np.int32), (), 0.0)


def settle(arrays: ModelArrays, rules: Sequence[Rule]) -> Settled:
    """Asks the constraints that stand alone."""
    uses = Counter(v for rule in rules for v in rule.variables)
    joined = np.zeros(len(arrays.cards), bool)
    joined[arrays.vars] = True
    begin = begins(arrays.cards)
    found: list[tuple[int, Rule, Best]] = []
    for k, rule in enumerate(rules):
        if not rule.variables or any(uses[v] > 1 or joined[v] for v in rule.variables) or not _is_quick(rule):
            continue
        best = _ask(arrays, rule, begin)
        if best is not None:
            found.append((k, rule, best))
    if not found:
        return NOTHING
    variables = np.array([v for _, rule, _ in found for v in rule.variables], np.int64)
    numbers = frozenset(k for k, _, _ in found)
    if any(best.labels is None for _, _, best in found):
        return Settled(numbers, variables, np.zeros(0, np.int32), (-inf,), 0.0)
    labels = [best.labels for _, _, best in found if best.labels is not None]
    scores = tuple(rule.score(x.tolist()) for (_, rule, _), x in zip(found, labels, strict=True))
    lost = 2 * float(np.abs(arrays.leftover[arrays.leftover > -inf]).sum())
    return Settled(numbers, variables, np.concatenate(labels), scores, sum(b.above for _, _, b in found) + lost,
                   smallest(rule.unit() for _, rule, _ in found))  # fmt: skip


def _is_quick(rule: Rule) -> bool:
    n = len(rule.variables)
    return not isinstance(rule, Occurrences) or n * n * len(rule.high) <= MOST_PLACES


def _ask(arrays: ModelArrays, rule: Rule, begin: NDArray[np.int64]) -> Best | None:
    """The best state under the unary scores; None where the oracle has no answer that is worth having."""
    assert arrays.unary is not None
    gains = np.concatenate([arrays.unary[begin[v] : begin[v + 1]] for v in rule.variables])
    try:
        best = Question(rule).best(gains)
    except ModelError:  # numbers that are too large for the core: tables may hold them
        return None
    return best if best.above < inf else None
