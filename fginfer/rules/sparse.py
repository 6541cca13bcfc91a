"""Sparse: a large table of which only some states are listed; all others have one score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush
from math import fsum, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.rules import RuleHandle, sparse_rule
from fginfer.errors import SolverError
from fginfer.rules.chain import Chain
from fginfer.rules.rule import Gains, Masks, Part, Rule, Star, scaled
from fginfer.rules.sums_chain import MOST_ENTRIES


@dataclass(frozen=True)
class Sparse(Rule):
    """states[j] has the score scores[j]; every other state has `default`.

    >>> rule = Sparse("sparse", (0, 1), (2, 2), ((0, 1), (1, 0)), (1.0, 2.0), -inf)
    >>> rule.score([1, 0]), rule.score([1, 1])
    (2.0, -inf)
    """

    kind: str
    variables: tuple[int, ...]
    cards: tuple[int, ...]
    states: tuple[tuple[int, ...], ...]
    scores: tuple[float, ...]
    default: float

    @cached_property
    def listed(self) -> dict[tuple[int, ...], float]:
        """The listed states with their scores."""
        return dict(zip(self.states, self.scores, strict=True))

    def score(self, labels: Sequence[int]) -> float:
        return self.listed.get(tuple(map(int, labels)), self.default)

    def best(self, gains: Gains) -> tuple[list[int], float] | None:
        def value(state: Sequence[int]) -> float:
            return self.score(state) + fsum(float(g[x]) for g, x in zip(gains, state, strict=True))

        found = [(value(state), state) for state in self.states]
        if self.default > -inf:
            found += [(value(s), s) for s in _best_first(gains, len(self.states) + 1) if s not in self.listed][:1]
        best = max(found, key=lambda pair: pair[0], default=(-inf, ()))
        return (list(best[1]), best[0]) if best[0] > -inf else None

    def propagate(self, allowed: Masks) -> list[NDArray[np.bool_]]:
        masks = [np.array(mask) for mask in allowed]
        if not self.forbids():
            return masks
        if self.default > -inf:
            return self.chain.supported(masks)
        kept = [np.zeros_like(mask) for mask in masks]
        for state, score in zip(self.states, self.scores, strict=True):
            if score > -inf and all(mask[x] for mask, x in zip(masks, state, strict=True)):
                for mask, x in zip(kept, state, strict=True):
                    mask[x] = True
        return kept

    def unit(self) -> float:
        best, *others = sorted({self.default, *self.scores} | {-inf}, reverse=True)
        return best - others[0] if others and others[0] > -inf else 0.0

    def parts(self, allowed: Masks | None = None) -> list[Part]:
        """One variable that chooses a listed state where these are no worse than the default; else a chain."""
        if any(score < self.default for score in self.scores):
            return [self.chain]
        return [self._star()]

    def _star(self) -> Star:
        rows = list(zip(self.states, self.scores, strict=True))
        extra = [self.default] if self.default > -inf or not rows else []
        scores = np.array([score for _, score in rows] + extra)
        tables = []
        for i, card in enumerate(self.cards):
            table = np.full((len(scores), card), -inf)
            table[np.arange(len(rows)), [state[i] for state, _ in rows]] = 0.0
            table[len(rows) :] = 0.0
            tables.append(table)
        return Star(self.variables, scores, tuple(tables))

    @cached_property
    def chain(self) -> Chain:
        """A tree of the listed states whose equal ends are merged, with one state for everything else."""
        ids: dict[tuple[int, ...], Any] = dict(self.listed)
        layers: list[list[tuple[dict[int, Any], Any]]] = []
        other: Any = self.default
        for depth in range(len(self.variables) - 1, -1, -1):
            nodes: dict[tuple[int, ...], dict[int, Any]] = {}
            for prefix, node in ids.items():
                nodes.setdefault(prefix[:depth], {})[prefix[depth]] = node
            merged: dict[Any, int] = {}
            rows: list[tuple[dict[int, Any], Any]] = []
            ids = {}
            for prefix, branches in nodes.items():
                key = frozenset(branches.items())
                if key not in merged:
                    merged[key] = len(rows)
                    rows.append((branches, other))
                ids[prefix] = merged[key]
            rows.append(({}, other))
            other = len(rows) - 1
            layers.append(rows)
        return Chain(self.variables, self._tables(layers[::-1], ids.get((), other)))

    def _tables(self, layers: list[list[tuple[dict[int, Any], Any]]], first: int) -> tuple[NDArray[np.float64], ...]:
        out, entries = [], 0
        for depth, rows in enumerate(layers):
            last = depth == len(layers) - 1
            rows = [rows[first]] if depth == 0 else rows
            after = 1 if last else len(layers[depth + 1])
            entries += len(rows) * self.cards[depth] * after
            if entries > MOST_ENTRIES:
                raise SolverError(f"{self.kind}: {len(self.states)} listed states need too large tables")
            table = np.full((len(rows), self.cards[depth], after), -inf)
            for k, (branches, other) in enumerate(rows):
                for label in range(self.cards[depth]):
                    to = branches.get(label, other)
                    table[k, label, 0 if last else to] = to if last else 0.0
            out.append(table)
        return tuple(out)

    def restricted(self, fixed: Mapping[int, int], numbers: Mapping[int, int]) -> Rule | float:
        left = [i for i, v in enumerate(self.variables) if v not in fixed]
        gone = [(i, fixed[v]) for i, v in enumerate(self.variables) if v in fixed]
        rows = [(s, score) for s, score in self.listed.items() if all(s[i] == label for i, label in gone)]
        states = tuple(tuple(s[i] for i in left) for s, _ in rows)
        variables, cards = tuple(numbers[self.variables[i]] for i in left), tuple(self.cards[i] for i in left)
        rule = Sparse(self.kind, variables, cards, states, tuple(score for _, score in rows), self.default)
        return rule if left else rule.score([])

    def native(self) -> RuleHandle:
        return sparse_rule(self.cards, self.states, self.scores, self.default)

    def weighted(self, weight: float) -> Sparse:
        return replace(self, scores=tuple(scaled(weight, s) for s in self.scores), default=scaled(weight, self.default))

    def check(self, cards: Sequence[int]) -> None:
        self.check_scope(cards, self.cards)
        for state in self.states:
            if any(not 0 <= x < card for x, card in zip(state, self.cards, strict=True)):
                raise ValueError("a state that is none")
        if len(self.scores) != len(self.states) or not all(s < inf for s in (*self.scores, self.default)):
            raise ValueError("scores that are none")

    def forbids(self) -> bool:
        return self.default == -inf or -inf in self.scores

    def saved(self) -> dict[str, Any]:
        return {
            "type": "sparse",
            "kind": self.kind,
            "variables": list(self.variables),
            "cards": list(self.cards),
            "states": [list(state) for state in self.states],
            "scores": list(self.scores),
            "default": self.default,
        }

    @classmethod
    def load(cls, saved: Mapping[str, Any]) -> Sparse:
        """The rule that `saved` wrote."""
        variables, cards = tuple(map(int, saved["variables"])), tuple(map(int, saved["cards"]))
        states = tuple(tuple(map(int, state)) for state in saved["states"])
        return cls(
            str(saved["kind"]), variables, cards, states, tuple(map(float, saved["scores"])), float(saved["default"])
        )


def _best_first(gains: Gains, most: int) -> Iterator[tuple[int, ...]]:
    """States by their sum of gains, best first; no more than `most`. A heap holds one step down from those given."""
    order = [np.argsort(-np.asarray(g), kind="stable") for g in gains]
    lost = [
        [float(g[o[0]]) - float(g[x]) if g[x] > -inf else inf for x in o] for g, o in zip(gains, order, strict=True)
    ]
    heap: list[tuple[float, tuple[int, ...]]] = [(0.0, (0,) * len(order))]
    seen = {heap[0][1]}
    for _ in range(most):
        if not heap:
            return
        loss, ranks = heappop(heap)
        yield tuple(int(o[r]) for o, r in zip(order, ranks, strict=True))
        for i, r in enumerate(ranks):
            after = (*ranks[:i], r + 1, *ranks[i + 1 :])
            if r + 1 < len(order[i]) and after not in seen and lost[i][r + 1] < inf:
                seen.add(after)
                heappush(heap, (loss - lost[i][r] + lost[i][r + 1], after))
