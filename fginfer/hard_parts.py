"""What a graph forbids, as groups of clauses that can be switched off one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.graph import FactorGraph
from fginfer.lowering import Lowering
from fginfer.tables import Potts, expand


@dataclass(frozen=True)
class Group:
    """One thing that can be to blame: a factor or constraint, the forbidden labels of a variable, or an observation.

    `kind` is "factor" (a table, by its place among `graph.factors()`), "rule" (a constraint, by its place among
    `graph.rules`), "labels", "evidence" (both by variable) or "constant".
    """

    kind: str
    at: int


@dataclass
class HardParts:
    """Clauses over a boolean for each label (the label is taken) and one for each group (the group counts)."""

    cards: list[int]
    groups: list[Group] = field(default_factory=list)
    clauses: list[list[int]] = field(default_factory=list)
    # The tables of each group
    tables: list[list[tuple[tuple[int, ...], NDArray[np.float64]]]] = field(default_factory=list)
    _single: set[int] = field(default_factory=set)  # variables that may take one label only

    def finish(self) -> int:
        """Adds what holds for all variables; returns the number of booleans. Groups come first."""
        begin = self.begin()
        for v, card in enumerate(self.cards):
            self.clauses.append([2 * (begin[v] + a) for a in range(card)])
            if v in self._single:
                for a in range(card):
                    self.clauses += [[2 * (begin[v] + a) + 1, 2 * (begin[v] + b) + 1] for b in range(a)]
        return begin[-1]

    def begin(self) -> list[int]:
        """Where the booleans of each variable begin."""
        first = len(self.groups)
        return [first, *(first + int(x) for x in np.cumsum(self.cards))]

    def write(self) -> None:
        """The clauses of all groups; the number of groups is known by now."""
        begin = self.begin()
        for g, tables in enumerate(self.tables):
            for scope, scores in tables:
                self._forbid(2 * g + 1, [begin[v] for v in scope], scope, scores == -inf)

    def _forbid(self, off: int, begin: list[int], scope: tuple[int, ...], forbidden: NDArray[np.bool_]) -> None:
        """A clause for each forbidden state, or, where a row has several, one for those it allows."""
        if forbidden.ndim == 0:
            if forbidden:
                self.clauses.append([off])
            return
        for row in np.argwhere(forbidden.any(axis=-1)).tolist():
            last = forbidden[tuple(row)]
            clause = [off, *(2 * (b + a) + 1 for b, a in zip(begin, row, strict=False))]
            n = int(last.sum())
            if n == len(last):
                self.clauses.append(clause)
            elif n == 1:
                self.clauses.append([*clause, 2 * (begin[-1] + int(last.argmax())) + 1])
            else:
                self._single.add(scope[-1])
                self.clauses.append([*clause, *(2 * (begin[-1] + int(a)) for a in np.flatnonzero(~last))])


def hard_parts(graph: FactorGraph, evidence: dict[int, int]) -> HardParts:
    """All groups of the graph that forbid anything."""
    with graph.lock:
        arrays, rules, factors = graph.table_arrays(), graph.rules, graph.factors()
    cards = [int(c) for c in arrays.cards]
    lowering = Lowering(cards, np.ones(sum(cards), bool))  # a constraint stands for itself, whatever others forbid
    out = HardParts(cards)

    def add(kind: str, at: int, tables: list[tuple[tuple[int, ...], Any]]) -> None:
        kept = [(tuple(scope), np.asarray(scores, float)) for scope, scores in tables]
        if any((scores == -inf).any() for _, scores in kept):
            out.groups.append(Group(kind, at))
            out.tables.append(kept)

    if graph.constant == -inf:
        add("constant", 0, [((), np.array(-inf))])
    for v in range(len(cards)):
        add("labels", v, [((v,), graph.unary(v))])
    for f, factor in enumerate(factors):
        scope = tuple(int(v) for v in factor.variables)
        shape = [cards[v] for v in scope]
        stored = graph.table(factor.table)
        table = stored if isinstance(stored, np.ndarray) else expand(stored, shape[0], shape[1])
        if factor.weight and np.isneginf(table).any():
            add("factor", f, [(scope, table.T if factor.transposed else table.reshape(shape))])
    for r, rule in enumerate(rules):
        first = len(lowering.factors)
        lowering.rule(rule)
        added = lowering.factors[first:]
        shapes = [[lowering.cards[v] for v in scope] for scope, _ in added]
        dense = [expand(t, *s) if isinstance(t, Potts) else t for (_, t), s in zip(added, shapes, strict=True)]
        add("rule", r, [(scope, t) for (scope, _), t in zip(added, dense, strict=True)])
    out.cards = list(lowering.cards)
    for v, label in evidence.items():
        add("evidence", v, [((v,), np.where(np.arange(cards[v]) == label, 0.0, -inf))])
    return out
