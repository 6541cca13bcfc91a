"""Learner: ever better labelings of a graph with constraints, until it is proved that there is no better one."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, inf, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.conflicts.encode import Encoding
from fginfer.conflicts.program import FALSE, TooLarge
from fginfer.core.arrays import begins
from fginfer.graph import FactorGraph
from fginfer.lower import Lowered
from fginfer.rules import Rule
from fginfer.rules.scores import score_with_rules

SURROGATE_BITS = 40  # bits of the largest weight of a constraint that prices give (chosen)


class Learner:
    """A search that learns from conflicts, with the costs of labels and states as one more linear constraint: each
    labeling that it finds lowers the limit of that one (Een and Sorensson 2006).

    `allowed` are the labels that may be looked at; `rules` may leave out some of `every` that these labels decide,
    whose scores are `decided` then.
    `score` and `labels` are the best that it knows, and nothing above `bound` exists.
    """

    def __init__(
        self,
        graph: FactorGraph,
        every: Sequence[Rule],
        rules: Sequence[Rule],
        allowed: NDArray[np.bool_],
        cutoff: float = -inf,
        decided: Sequence[float] = (),
    ) -> None:
        self._model, self._rules = graph.table_snapshot(), tuple(every)
        coding = Encoding(graph, rules, allowed)
        coding.program.tops += decided
        self._literals, self._cards = coding.labels, self._model.cards
        arrays = graph.table_arrays()
        self._begin = begins(arrays.cards)
        self._objective, self.n = coding.program.objective(), coding.program.n
        self._error = sum((Fraction(rule.rounding()) for rule in rules), Fraction(0))
        self._handle = coding.program.handle(*coding.first_values(arrays))
        self._limit, self._costs = self._objective.total, -1
        self._surrogate: tuple[float, NDArray[np.float64], int] | None = None
        self.labels: NDArray[np.int32] | None = None
        self.score, self.bound, self.status = cutoff, inf, "running"
        if self._objective.literals:
            own = self._objective
            self._costs = self._handle.linear(own.literals, own.weights, own.total)
        self._lower_limits()

    @classmethod
    def made(cls, graph: FactorGraph, *given: Any) -> Learner | None:
        """One, or None where the graph cannot be said as clauses and linear constraints of some million literals."""
        try:
            return cls(graph, *given)
        except (TooLarge, MemoryError):
            return None

    @property
    def work(self) -> int:
        return self._handle.work

    @property
    def memory(self) -> int:
        return self._handle.memory()

    def run(self, work: int) -> bool:
        """Works for about so much; True: it has a better labeling now, with a limit of its own, or has ended."""
        if self.status != "running":
            return False
        said = self._handle.run(work)
        if said == "none":
            self.status = "proved"
            bound = self._objective.bound_below(self._limit) + self._error
            is_limited = self._limit < self._objective.total
            self.bound = max(self.score, _above(bound)) if is_limited else -inf
        elif said == "satisfied":
            values = self._handle.values()
            labels = self._read(values)
            score = score_with_rules(self._model, self._rules, labels)
            if score > self.score:
                self.labels, self.score = labels, score
            self._limit = min(
                self._limit, self._objective.cost_of(values) - 1
            )  # costs are rounded: it might come again
            self._lower_limits()
        return said != "running"

    def offer(self, labels: NDArray[np.int32]) -> None:
        """A labeling that somebody else has found: better ones alone are looked for, near it first."""
        score = score_with_rules(self._model, self._rules, np.array(labels, np.int32))
        if score <= self.score or self.status != "running":
            return
        self.labels, self.score = np.array(labels, np.int32), score
        self.look_near(labels)
        self._lower_limits()

    def look_near(self, labels: NDArray[np.int32]) -> None:
        """These labels are tried first."""
        values = np.zeros(self.n, np.uint8)
        values[0] = 1
        for literals, a in zip(self._literals, labels.tolist(), strict=True):
            for b, x in enumerate(literals):
                if x > 1:
                    values[x >> 1] = (a == b) ^ (x & 1)
        self._handle.prefer(values)

    def _read(self, values: NDArray[np.uint8]) -> NDArray[np.int32]:
        out = np.zeros(len(self._literals), np.int32)
        for v, literals in enumerate(self._literals):
            out[v] = next(a for a, x in enumerate(literals) if x != FALSE and values[x >> 1] != (x & 1))
        return out

    def _lower_limits(self) -> None:
        """Nothing but better labelings is looked for."""
        if self.score > -inf:
            self._limit = min(self._limit, self._objective.limit_above(self.score))
        if self._costs >= 0:
            self._handle.limit(self._costs, self._limit)
        elif self._limit < 0:  # there are no costs: all labelings have the same score
            self._costs = self._handle.linear([], [], -1)
        self._say_surrogate()

    # -- prices ------------------------------------------------------------------------------------------------

    def take_prices(self, bound: float, gains: NDArray[np.float64]) -> None:
        """No labeling x scores more than `bound` less what its labels miss: gains[v, x_v] below the best of v.

        Such gains come from Lagrangian relaxations. They are another linear constraint, which sees what no single
        constraint does: labels that miss too much go, and with each label that is fixed the others may miss less.
        """
        missed = np.maximum.reduceat(gains, self._begin[:-1])
        loss = np.repeat(missed, self._cards) - gains
        number = -1 if self._surrogate is None else self._surrogate[2]
        self._surrogate = bound, loss, number
        self._say_surrogate()

    def _say_surrogate(self) -> None:
        if self._surrogate is None or self.score == -inf or self.status != "running":
            return
        bound, loss, number = self._surrogate
        lowest = self._objective.top - self._objective.step * self._limit  # scores of interest are this or more
        room = Fraction(bound) - max(lowest, Fraction(self.score))
        most = max(float(room), float(np.where(loss < inf, loss, 0.0).max(initial=0.0)))
        if most <= 0 or not most < inf:
            return
        unit = most / 2**SURROGATE_BITS
        limit = floor(room / Fraction(unit)) + 1
        literals, weights = [], []
        for v, own in enumerate(self._literals):
            for x, missed in zip(own, loss[self._begin[v] : self._begin[v + 1]].tolist(), strict=True):
                weight = limit + 1 if missed == inf else min(int(missed / unit * (1 - 2**-40)), max(limit, 0) + 1)
                if x > 1 and weight > 0:
                    literals.append(x)
                    weights.append(weight)
        made = _merged(literals, weights, limit)
        number = self._handle.linear(*made, number)
        self._surrogate = bound, loss, number


def learner_of(lowered: Lowered, cutoff: float = -inf) -> Learner | None:
    """One for the graph that was lowered; None where it cannot be said in this way."""
    rules, scores, allowed = lowered.unsettled()
    graph = FactorGraph.from_model(lowered.tables)
    return Learner.made(graph, lowered.rules, rules, allowed, cutoff, scores)


def _merged(literals: list[int], weights: list[int], limit: int) -> tuple[list[int], list[int], int]:
    """Both literals of a Boolean: one of them is paid in any case."""
    by: dict[int, int] = dict(zip(literals, weights, strict=True))
    for x in literals:
        if x ^ 1 in by:
            paid = min(by[x], by[x ^ 1])
            limit -= paid
            by[x] -= paid
            by[x ^ 1] -= paid
    left = {x: w for x, w in by.items() if w > 0}
    return list(left), list(left.values()), limit


def _above(number: Fraction) -> float:
    """The float that is no less."""
    near = float(number)
    return near if Fraction(near) >= number else nextafter(near, inf)
