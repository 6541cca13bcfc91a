"""SumRule: a score that depends on a sum of literals alone: at most, exactly one, budgets, clauses, parity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.rules import RuleHandle, sum_rule
from fginfer.errors import ModelError
from fginfer.rules.chain import Chain
from fginfer.rules.rule import Gains, Masks, Part, Rule
from fginfer.rules.steps import Piece, Steps, smallest
from fginfer.rules.sums_chain import sum_chain


@dataclass(frozen=True)
class SumRule(Rule):
    """The score is steps(total), where the total adds adds[i][label] >= 0 of each variable i, modulo `modulus` if > 0.

    The least add of a variable is 0. A literal that the rule depends on (when=) is an add so large that the total lies
    on a piece of its own.

    >>> rule = SumRule("at most 1", (0, 1), ((0, 1), (0, 1)), Steps.between(None, 1, 2, -inf, 0.0))
    >>> rule.score([1, 1]), rule.best([np.array([0.0, 2.0]), np.array([0.0, 3.0])])
    (-inf, ([0, 1], 3.0))
    """

    kind: str
    variables: tuple[int, ...]
    adds: tuple[tuple[int, ...], ...]
    steps: Steps
    modulus: int = 0

    def total(self, labels: Sequence[int]) -> int:
        """The sum for labels of its variables."""
        total = sum(add[x] for add, x in zip(self.adds, labels, strict=True))
        return total % self.modulus if self.modulus else total

    def score(self, labels: Sequence[int]) -> float:
        return self.steps(self.total(labels))

    def change(self, labels: Sequence[int], moves: Mapping[int, int]) -> float:
        total = self.total(labels)
        after = total + sum(self.adds[i][x] - self.adds[i][labels[i]] for i, x in moves.items())
        old, new = self.steps(total), self.steps(after % self.modulus if self.modulus else after)
        return float("nan") if old == new == -inf else new - old

    @cached_property
    def chain(self) -> Chain:
        """Its layers; SolverError if they are too large for any memory."""
        return sum_chain(self.kind, self.variables, self.adds, self.steps, self.modulus)

    def best(self, gains: Gains) -> tuple[list[int], float] | None:
        if self.modulus or max((max(add) for add in self.adds), default=0) > 1:
            found = self.chain.best(gains) if self.variables else ([], 0.0)
            labels = None if found is None else found[0]
        else:
            labels = self._best_by_count(gains)
        if labels is None:
            return None
        value = self.score(labels) + fsum(float(g[x]) for g, x in zip(gains, labels, strict=True))
        return (labels, value) if value > -inf else None

    def _best_by_count(self, gains: Gains) -> list[int] | None:
        """The largest gains first: prefix sums of the sorted gains, plus the score of each count."""
        off = [_best_label(add, 0, gain) for add, gain in zip(self.adds, gains, strict=True)]
        on = [_best_label(add, 1, gain) for add, gain in zip(self.adds, gains, strict=True)]
        if any(a[0] == b[0] == -inf for a, b in zip(off, on, strict=True)):
            return None
        forced = [i for i, (a, _) in enumerate(off) if a == -inf]
        free = [i for i, (a, b) in enumerate(zip(off, on, strict=True)) if a[0] > -inf and b[0] > -inf]
        free.sort(key=lambda i: off[i][0] - on[i][0])
        prefix = np.cumsum([0.0, *(on[i][0] - off[i][0] for i in free)])
        by_count = prefix + [self.steps(len(forced) + count) for count in range(len(free) + 1)]
        count = int(by_count.argmax())
        if by_count[count] == -inf:
            return None
        labels = [label for _, label in off]
        for i in (*forced, *free[:count]):
            labels[i] = on[i][1]
        return labels

    def propagate(self, allowed: Masks) -> list[NDArray[np.bool_]]:
        return self.chain.supported(allowed) if self.variables else []

    def parts(self, allowed: Masks | None = None) -> list[Part]:
        return [self.chain]

    def restricted(self, fixed: Mapping[int, int], numbers: Mapping[int, int]) -> Rule | float:
        given = sum(add[fixed[v]] for v, add in zip(self.variables, self.adds, strict=True) if v in fixed)
        left = [(numbers[v], add) for v, add in zip(self.variables, self.adds, strict=True) if v not in fixed]
        if self.modulus:
            m = self.modulus
            steps = Steps.listed([self.steps((t + given) % m) for t in range(m)])
        else:
            steps = self.steps.moved(given, sum(max(add) for _, add in left))
        if not left:
            return steps(0)
        return SumRule(self.kind, tuple(v for v, _ in left), tuple(add for _, add in left), steps, self.modulus)

    def native(self) -> RuleHandle:
        pieces = [(p.start, p.base, p.slope, p.anchor) for p in self.steps.pieces]
        try:
            flat = np.array([a for add in self.adds for a in add], np.int64)
            return sum_rule([len(add) for add in self.adds], flat, pieces, self.modulus)
        except OverflowError:
            raise ModelError(f"{self.kind}: its whole numbers do not fit into 64 bits") from None

    def weighted(self, weight: float) -> SumRule:
        return replace(self, steps=self.steps.weighted(weight))

    def excess(self) -> Rule | None:
        if not self.forbids():
            return None
        if self.modulus:
            wrong = [0.0 if self.steps(total) > -inf else -1.0 for total in range(self.modulus)]
            return replace(self, steps=Steps.listed(wrong))
        return replace(self, steps=self.steps.excess(1 / max(1, max(map(max, self.adds), default=1))))

    def entries(self) -> float:
        """Layer by layer: as many states as there are totals so far, or totals that what follows can tell apart."""
        out, states, so_far = 0.0, 1.0, 0
        rest = sum(max(add) for add in self.adds)
        for add in self.adds:
            most, kinds = max(add), len(set(add))
            so_far, rest = so_far + most, rest - most
            reach = min(states * kinds, so_far + 1, self.steps.last + 2, (rest + 2) * len(self.steps.pieces))
            after = float(min(reach, self.modulus or reach))
            out, states = out + states * len(add) * after, after
        return out

    def unit(self) -> float:
        return smallest(x for piece in self.steps.pieces for x in (piece.base, piece.slope))

    def rounding(self) -> float:
        return self.steps.rounding(len(self.variables))

    def check(self, cards: Sequence[int]) -> None:
        self.check_scope(cards, [len(add) for add in self.adds])
        starts = [p.start for p in self.steps.pieces]
        if starts[:1] != [0] or starts != sorted(set(starts)) or min((min(add) for add in self.adds), default=0) < 0:
            raise ValueError("a sum that is none")
        if any(not p.base < inf or not abs(p.slope) < inf for p in self.steps.pieces) or self.modulus < 0:
            raise ValueError("a score that is none")

    def forbids(self) -> bool:
        return self.steps.forbids()

    def saved(self) -> dict[str, Any]:
        pieces = [[p.start, p.base, p.slope, p.anchor] for p in self.steps.pieces]
        return {
            "type": "sum",
            "kind": self.kind,
            "variables": list(self.variables),
            "adds": [list(add) for add in self.adds],
            "pieces": pieces,
            "most": self.steps.most,
            "modulus": self.modulus,
        }

    @classmethod
    def load(cls, saved: Mapping[str, Any]) -> SumRule:
        """The rule that `saved` wrote."""
        steps = Steps(tuple(Piece(int(s), float(b), float(k), int(a)) for s, b, k, a in saved["pieces"]), saved["most"])
        adds = tuple(tuple(map(int, add)) for add in saved["adds"])
        return cls(str(saved["kind"]), tuple(map(int, saved["variables"])), adds, steps, int(saved["modulus"]))


def _best_label(add: tuple[int, ...], wanted: int, gain: NDArray[np.float64]) -> tuple[float, int]:
    """The largest gain of a label that adds what is wanted, and the label; -inf if there is none."""
    best, at = -inf, -1
    for label, a in enumerate(add):
        if a == wanted and (at < 0 or gain[label] > best):
            best, at = float(gain[label]), label
    return best, at
