"""Regular: a sequence of variables that a weighted automaton reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, inf
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.rules import RuleHandle, automaton_rule
from fginfer.errors import ModelError
from fginfer.rules.chain import Chain
from fginfer.rules.rule import Gains, Masks, Part, Rule, scaled
from fginfer.rules.steps import smallest, sums_are_exact


@dataclass(frozen=True)
class Automaton:
    """A weighted automaton over labels: from state 0 on, a label leads from a state to a state and has a score.

    transitions  (state, label, next state) or (state, label, next state, score); several may leave a state by one label
    final        the states that may end a sequence: a list, or a dict with the score of ending there

    A sequence has the score of its best path, and is forbidden if it has none.

    >>> no_two_ones = Automaton([(0, 0, 0), (0, 1, 1), (1, 0, 0)], final=[0, 1])
    >>> no_two_ones.n_states
    2
    """

    transitions: tuple[tuple[int, int, int, float], ...]
    final: tuple[tuple[int, float], ...]

    def __init__(self, transitions: Any, final: Any) -> None:
        try:
            moves = tuple((index(s), index(x), index(t), *map(float, rest or [0.0])) for s, x, t, *rest in transitions)
            last = list(final.items()) if isinstance(final, Mapping) else [(state, 0.0) for state in final]
            ends = tuple((index(state), float(score)) for state, score in last)
        except (TypeError, ValueError):
            raise ModelError(
                "an Automaton takes transitions (state, label, next state, score) and final states"
            ) from None
        numbers = [n for move in moves for n in move[:3]] + [state for state, _ in ends]
        scores = [score for move in moves for score in move[3:]] + [score for _, score in ends]
        if min(numbers, default=0) < 0 or max(map(len, moves), default=4) > 4:
            raise ModelError("the states and labels of an Automaton are 0 or more")
        if not all(score < inf for score in scores):
            raise ModelError("the scores of an Automaton must be finite or -inf")
        object.__setattr__(self, "transitions", moves)
        object.__setattr__(self, "final", ends)

    @property
    def n_states(self) -> int:
        """One more than the largest state that is named."""
        named = [s for move in self.transitions for s in (move[0], move[2])]
        return 1 + max([0, *named, *(state for state, _ in self.final)])

    @cached_property
    def by_label(self) -> dict[int, list[tuple[int, int, float]]]:
        """State, next state and score of the transitions by each label."""
        out: dict[int, list[tuple[int, int, float]]] = {}
        for state, label, to, score in self.transitions:
            out.setdefault(label, []).append((state, to, score))
        return out

    def table(self, card: int) -> NDArray[np.float64]:
        """The scores [state, label, next state] for a variable with so many labels."""
        out = np.full((self.n_states, card, self.n_states), -inf)
        for s, x, t, score in self.transitions:
            if x < card:
                out[s, x, t] = max(out[s, x, t], score)
        return out


@dataclass(frozen=True)
class Regular(Rule):
    """The automaton reads the labels of `variables`; given[i] is the label of a position that is fixed, or -1.

    >>> rule = Regular("regular", (4, 7), (2, 2), Automaton([(0, 0, 0), (0, 1, 1), (1, 0, 0)], [0, 1]), (-1, -1))
    >>> rule.score([1, 1]), rule.score([1, 0])
    (-inf, 0.0)
    """

    kind: str
    variables: tuple[int, ...]
    cards: tuple[int, ...]
    automaton: Automaton
    given: tuple[int, ...]  # the label of every position, -1 where it is free; the cards are those of the free ones

    def score(self, labels: Sequence[int]) -> float:
        """The best path, its scores added up in its order."""
        free, value = iter(labels), {0: 0.0}
        for fixed in self.given:
            after: dict[int, float] = {}
            for state, to, score in self.automaton.by_label.get(next(free) if fixed < 0 else fixed, ()):
                if state in value:
                    after[to] = max(after.get(to, -inf), value[state] + score)
            value = after
        return max((value[state] + score for state, score in self.automaton.final if state in value), default=-inf)

    @cached_property
    def chain(self) -> Chain:
        """The automaton unrolled: each layer has the states that a path from the start to an end can use."""
        steps, cards = [], iter(self.cards)
        memory: dict[int, NDArray[np.float64]] = {}
        for label in self.given:
            card = next(cards) if label < 0 else 1 + label
            table = memory.setdefault(card, self.automaton.table(card))
            steps.append((table if label < 0 else table[:, label : label + 1], label < 0))
        return Chain(self.variables, _joined(steps, self.automaton), deterministic=False)

    def best(self, gains: Gains) -> tuple[list[int], float] | None:
        found = self.chain.best(gains)
        if found is None:
            return None
        value = self.score(found[0]) + fsum(float(g[x]) for g, x in zip(gains, found[0], strict=True))
        return found[0], value

    def propagate(self, allowed: Masks) -> list[NDArray[np.bool_]]:
        return self.chain.supported(allowed)

    def parts(self, allowed: Masks | None = None) -> list[Part]:
        return [self.chain]

    def restricted(self, fixed: Mapping[int, int], numbers: Mapping[int, int]) -> Rule | float:
        free = iter(self.variables)
        given = tuple(fixed.get(next(free), -1) if label < 0 else label for label in self.given)
        left = [(numbers[v], card) for v, card in zip(self.variables, self.cards, strict=True) if v not in fixed]
        if not left:
            return self.score([fixed[v] for v in self.variables])
        return Regular(self.kind, tuple(v for v, _ in left), tuple(c for _, c in left), self.automaton, given)

    def native(self) -> RuleHandle:
        end = [-inf] * self.automaton.n_states
        for state, score in self.automaton.final:
            end[state] = max(end[state], score)
        return automaton_rule(self.cards, len(end), self.automaton.transitions, end, self.given)

    def weighted(self, weight: float) -> Regular:
        moves = [(s, x, t, scaled(weight, score)) for s, x, t, score in self.automaton.transitions]
        return replace(
            self, automaton=Automaton(moves, {s: scaled(weight, score) for s, score in self.automaton.final})
        )

    def unit(self) -> float:
        moves, ends = self.automaton.transitions, self.automaton.final
        return smallest([*(move[3] for move in moves), *(score for _, score in ends)])

    def rounding(self) -> float:
        scores = [abs(move[3]) for move in self.automaton.transitions] + [
            abs(score) for _, score in self.automaton.final
        ]
        finite = [score for score in scores if score < inf]
        # A fixed position adds its score to a neighbour's, and the last layer has the score of its end.
        exact = sums_are_exact(finite, len(self.given) + 1)
        return 0.0 if exact else (len(self.given) + 2) ** 2 * 2.0**-52 * max(finite, default=0.0)

    def check(self, cards: Sequence[int]) -> None:
        self.check_scope(cards, self.cards)
        if self.given.count(-1) != len(self.variables) or min(self.given) < -1 or not self.variables:
            raise ValueError("positions that are none")

    def forbids(self) -> bool:
        return any((table == -inf).all(axis=2).any() for table in self.chain.tables)

    def saved(self) -> dict[str, Any]:
        return {
            "type": "regular",
            "kind": self.kind,
            "variables": list(self.variables),
            "cards": list(self.cards),
            "transitions": [list(move) for move in self.automaton.transitions],
            "final": [list(end) for end in self.automaton.final],
            "given": list(self.given),
        }

    @classmethod
    def load(cls, saved: Mapping[str, Any]) -> Regular:
        """The rule that `saved` wrote."""
        automaton = Automaton(saved["transitions"], {int(s): float(score) for s, score in saved["final"]})
        variables, cards, given = (tuple(map(int, saved[name])) for name in ("variables", "cards", "given"))
        return cls(str(saved["kind"]), variables, cards, automaton, given)


def _joined(steps: list[tuple[NDArray[np.float64], bool]], automaton: Automaton) -> tuple[NDArray[np.float64], ...]:
    """Layers of the free positions: fixed ones join their neighbours, and states that no path uses are left out."""
    end = np.full(automaton.n_states, -inf)
    for state, score in automaton.final:
        end[state] = max(end[state], score)
    layers: list[NDArray[np.float64]] = []
    start = np.full((1, automaton.n_states), -inf)
    start[0, 0] = 0.0
    for table, is_free in steps:
        if is_free:
            layers.append(table if layers else _through(start, table))
        elif layers:
            layers[-1] = (layers[-1][..., None] + table[None, None, :, 0, :]).max(axis=2)
        else:
            start = (start[:, :, None] + table[None, :, 0, :]).max(axis=1)
    layers[-1] = (layers[-1] + end).max(axis=2, keepdims=True)
    return _trimmed(layers)


def _through(before: NDArray[np.float64], table: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([(before[:, :, None] + table[None, :, x, :]).max(axis=1) for x in range(table.shape[1])], axis=1)


def _trimmed(layers: list[NDArray[np.float64]]) -> tuple[NDArray[np.float64], ...]:
    reach = [np.ones(1, bool)]
    for table in layers:
        reach.append(np.asarray((table[reach[-1]] > -inf).any(axis=(0, 1))))
    useful = [np.ones(1, bool)]
    for table in reversed(layers):
        useful.append(np.asarray((table[:, :, useful[-1]] > -inf).any(axis=(1, 2))))
    keep = [np.flatnonzero(a & b) for a, b in zip(reach, reversed(useful), strict=True)]
    keep[0] = keep[-1] = np.zeros(1, np.int64)
    keep = [k if len(k) else np.zeros(1, np.int64) for k in keep]  # lists of a rule that forbids everything
    made: dict[object, NDArray[np.float64]] = {}
    out = []
    for table, a, b in zip(layers, keep, keep[1:], strict=False):
        key = (id(table), a.tobytes(), b.tobytes())
        out.append(made.setdefault(key, table[a][:, :, b]))
    return tuple(out)
