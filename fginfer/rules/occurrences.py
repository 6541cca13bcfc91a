"""Occurrences: how often variables may have each label. All different means at most once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import fsum, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.rules import RuleHandle, occurrence_rule
from fginfer.rules.rule import Gains, Masks, Part, Rule, Table, scaled
from fginfer.rules.steps import Steps, significant_bits, smallest
from fginfer.rules.sums import SumRule
from fginfer.tables import Potts


@dataclass(frozen=True)
class Occurrences(Rule):
    """Label k occurs between low[k] and high[k] times among the variables, or costs `price` for each too many or few.

    `price` is inf for a hard rule. Variables may have fewer labels than there are limits.

    >>> rule = Occurrences("all different", (0, 1), (2, 2), (0, 0), (1, 1), inf)
    >>> rule.score([1, 1]), rule.score([1, 0])
    (-inf, 0.0)
    """

    kind: str
    variables: tuple[int, ...]
    cards: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    price: float

    def score(self, labels: Sequence[int]) -> float:
        count = Counter(labels)
        off = sum(
            max(0, low - count[k], count[k] - high)
            for k, (low, high) in enumerate(zip(self.low, self.high, strict=True))
        )
        return -self.price * off if off else 0.0

    def change(self, labels: Sequence[int], moves: Mapping[int, int]) -> float:
        return super().change(labels, moves)

    # -- best state: an assignment of variables to places --------------------------------------------------------

    def _places(self) -> tuple[list[int], list[float], list[bool]]:
        """For each label its places: the label, what taking one more scores, and whether it must be taken."""
        labels, scores, needed = [], [], []
        n, hard = len(self.variables), self.price == inf
        for k, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            for place in range(min(n, high) if hard else n):
                labels.append(k)
                scores.append(0.0 if hard else self.price * (int(place < low) - int(place >= high)))
                needed.append(hard and place < low)
        return labels, scores, needed

    def best(self, gains: Gains) -> tuple[list[int], float] | None:
        from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped, unused-ignore]

        n = len(self.variables)
        labels, scores, needed = self._places()
        if len(labels) < n or (self.price == inf and any(low > n for low in self.low)):
            return None
        cost = np.full((len(labels), len(labels)), inf)
        for i, gain in enumerate(gains):
            for place, (k, score) in enumerate(zip(labels, scores, strict=True)):
                if k < self.cards[i]:
                    cost[i, place] = -(float(gain[k]) + score)
        cost[n:, [not must for must in needed]] = 0.0
        try:
            _, chosen = linear_sum_assignment(cost)
        except ValueError:  # no finite assignment
            return None
        state = [labels[place] for place in chosen[:n]]
        value = self.score(state) + fsum(float(g[x]) for g, x in zip(gains, state, strict=True))
        return (state, value) if value > -inf else None

    # -- labels without support ----------------------------------------------------------------------------------

    def propagate(self, allowed: Masks) -> list[NDArray[np.bool_]]:
        """Every label of an all-different rule that is left is in a matching; other rules count label by label."""
        masks = [np.array(mask) for mask in allowed]
        if self.price < inf:
            return masks
        if max(self.low, default=0) <= 0 and max(self.high, default=0) <= 1:
            return self._matched(masks)
        while True:
            before = sum(int(mask.sum()) for mask in masks)
            for rule in self._label_rules():
                at = {v: i for i, v in enumerate(self.variables)}
                inside = [at[v] for v in rule.variables]
                for i, mask in zip(inside, rule.propagate([masks[i] for i in inside]), strict=True):
                    masks[i] = mask
            if sum(int(mask.sum()) for mask in masks) == before:
                return masks

    def _matched(self, masks: list[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
        """Labels in some maximum matching: matched, or on an alternating cycle or a path to a free label."""
        from scipy.sparse import csr_matrix  # type: ignore[import-untyped, unused-ignore]
        from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching  # type: ignore[import-untyped, unused-ignore]

        n, m = len(self.variables), len(self.high)
        edges = np.zeros((n, m), bool)
        for i, mask in enumerate(masks):
            edges[i, : len(mask)] = mask & (np.array(self.high[: len(mask)]) > 0)
        match = maximum_bipartite_matching(csr_matrix(edges), perm_type="column")
        if (match < 0).any():
            return [np.zeros_like(mask) for mask in masks]
        # Nodes: variables, labels, and one sink. Matched edges lead to the variable, others to the label; the sink
        # joins free labels with matched ones, so that a path to a free label is a cycle through it.
        taken = np.zeros(m, bool)
        taken[match] = True
        graph = np.zeros((n + m + 1, n + m + 1), bool)
        graph[:n, n : n + m] = edges
        graph[np.arange(n), n + match] = False
        graph[n + match, np.arange(n)] = True
        graph[n : n + m, n + m] = ~taken
        graph[n + m, n : n + m] = taken
        _, part = connected_components(csr_matrix(graph), directed=True, connection="strong")
        keep = edges & (part[:n, None] == part[None, n : n + m])
        keep[np.arange(n), match] = True
        return [keep[i, : len(mask)] for i, mask in enumerate(masks)]

    # -- smaller rules -------------------------------------------------------------------------------------------

    def _label_rules(self, masks: list[NDArray[np.bool_]] | None = None) -> list[SumRule]:
        """A count of each label that has a limit; with masks, among the variables that may have it."""
        rules = []
        for k, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            scope = [
                (v, card)
                for i, (v, card) in enumerate(zip(self.variables, self.cards, strict=True))
                if k < card and (masks is None or masks[i][k])
            ]
            if low <= 0 and high >= len(scope):
                continue
            add_of = {card: tuple(int(label == k) for label in range(card)) for card in {card for _, card in scope}}
            adds = tuple(add_of[card] if card > 1 else (0,) for _, card in scope)  # one label: see below
            always = sum(1 for _, card in scope if card == 1)
            hard = self.price == inf
            once, unit = (-inf, 0.0) if hard else (0.0, -self.price)
            steps = Steps.between(low, high, len(scope), once, unit).moved(always, len(scope) - always)
            rules.append(SumRule(f"{self.kind}, label {k}", tuple(v for v, _ in scope), adds, steps))
        return rules

    def parts(self, allowed: Masks | None = None) -> list[Part]:
        if self.price == inf and self._hopeless():
            return [Table(self.variables[:1], np.full(self.cards[:1], -inf))]
        masks = [np.ones(card, bool) for card in self.cards] if allowed is None else list(allowed)
        found: list[Part] = []
        different = self.price == inf and set(self.low) <= {0} and set(self.high) == {1}
        full = len(self.variables) == len(self.high)
        if different and len(set(self.cards)) == 1:
            found += self._pairs(masks)
            if not full:
                return found
            exact = Occurrences(self.kind, self.variables, self.cards, self.high, self.high, inf)
            return found + [rule.chain for rule in exact._label_rules(masks) if rule.variables]
        found += [rule.chain for rule in self._label_rules() if rule.variables]
        for k, (low, _) in enumerate(zip(self.low, self.high, strict=True)):
            if low > 0 and not any(k < card for card in self.cards):  # nobody can have it
                found.append(Table((), np.array(-self.price * low)))
        return found

    def _pairs(self, masks: list[NDArray[np.bool_]]) -> list[Part]:
        """Two variables that differ, unless they share no label."""
        share = np.array(masks, np.float64) @ np.array(masks, np.float64).T > 0
        pairs = combinations(range(len(masks)), 2)
        return [Table((self.variables[i], self.variables[j]), Potts(-inf, 0.0)) for i, j in pairs if share[i, j]]

    def _hopeless(self) -> bool:
        """Whether a count of places shows that no labeling obeys the rule, as of more pigeons than holes."""
        n = len(self.variables)
        reach = [sum(1 for card in self.cards if k < card) for k in range(len(self.high))]
        places = sum(min(high, r) for high, r in zip(self.high, reach, strict=True))
        short = any(low > min(r, high) for low, high, r in zip(self.low, self.high, reach, strict=True))
        return places < n or sum(max(0, low) for low in self.low) > n or short

    def restricted(self, fixed: Mapping[int, int], numbers: Mapping[int, int]) -> Rule | float:
        count = Counter(fixed[v] for v in self.variables if v in fixed)
        left = [(numbers[v], card) for v, card in zip(self.variables, self.cards, strict=True) if v not in fixed]
        low = tuple(k - count[label] for label, k in enumerate(self.low))
        high = tuple(k - count[label] for label, k in enumerate(self.high))
        rule = Occurrences(self.kind, tuple(v for v, _ in left), tuple(c for _, c in left), low, high, self.price)
        return rule if left else rule.score([])

    def native(self) -> RuleHandle:
        most = 2**40  # nothing occurs so often
        low, high = ([min(max(k, -most), most) for k in limits] for limits in (self.low, self.high))
        return occurrence_rule(self.cards, low, high, self.price)

    def weighted(self, weight: float) -> Occurrences:
        return replace(self, price=scaled(weight, self.price))

    def excess(self) -> Rule | None:
        return replace(self, price=1.0) if self.price == inf else None

    def entries(self) -> float:
        """Those of its chains; all-different rules are pairs."""
        different = self.price == inf and set(self.low) <= {0} and set(self.high) == {1} and len(set(self.cards)) == 1
        return 0.0 if different else sum(rule.entries() for rule in self._label_rules())

    def unit(self) -> float:
        return smallest([self.price])

    def rounding(self) -> float:
        n = len(self.variables)
        exact = self.price == inf or significant_bits(self.price) + (2 * n).bit_length() + 1 <= 53
        return 0.0 if exact else (n + 2) * len(self.high) * 2.0**-52 * self.price * 2 * n

    def check(self, cards: Sequence[int]) -> None:
        self.check_scope(cards, self.cards)
        pairs = zip(self.low, self.high, strict=True)
        if any(low > high for low, high in pairs) or max(self.cards, default=0) > len(self.low) or not self.price >= 0:
            raise ValueError("limits that are none")

    def forbids(self) -> bool:
        return self.price == inf

    def saved(self) -> dict[str, Any]:
        return {
            "type": "occurrences",
            "kind": self.kind,
            "variables": list(self.variables),
            "cards": list(self.cards),
            "low": list(self.low),
            "high": list(self.high),
            "price": self.price,
        }

    @classmethod
    def load(cls, saved: Mapping[str, Any]) -> Occurrences:
        """The rule that `saved` wrote."""
        variables, cards, low, high = (tuple(map(int, saved[name])) for name in ("variables", "cards", "low", "high"))
        return cls(str(saved["kind"]), variables, cards, low, high, float(saved["price"]))
