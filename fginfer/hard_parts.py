"""What a graph forbids, as groups of clauses that can be switched off one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import begins
from fginfer.errors import SolverError
from fginfer.graph import FactorGraph
from fginfer.lowering import Lowering
from fginfer.table_values import StoredTables
from fginfer.tables import Potts, expand

MOST_BOOLEANS = 2**30  # literals are 32-bit numbers


@dataclass(frozen=True)
class Group:
    """One thing that can be to blame: a factor or constraint, the forbidden labels of a variable, or an observation.

    `kind` is "factor" (a table, by its place among `graph.factors()`), "rule" (a constraint, by its place among
    `graph.rules`), "labels", "evidence" (both by variable) or "constant".
    """

    kind: str
    at: int


class _Clauses:
    """Many clauses of one form: literals are offsets from where the booleans of a place begin."""

    def __init__(self, forbidden: NDArray[np.bool_]) -> None:
        """Places are the switch of a group, then the variables of a table. A clause for each forbidden state, or, where
        a row has several, one for those it allows; then the last variable may take one label only (`is_single`)."""
        card = forbidden.shape[-1] if forbidden.ndim else 1
        rows = forbidden.reshape(-1, card)
        found = np.flatnonzero(rows.any(axis=1))
        last, n = rows[found], rows[found].sum(axis=1)
        is_one = (n == 1) & (card > 1)
        tail = np.where(is_one[:, None], last, ~last)
        leading = forbidden.shape[:-1]
        first = np.stack(np.unravel_index(found, leading), axis=1) if leading else np.zeros((len(found), 0), np.int64)
        head = np.concatenate([np.zeros((len(found), 1), np.int64), 2 * first + 1], axis=1)
        ends = 2 * np.arange(card)[None, :] + is_one[:, None]
        kept = np.concatenate([np.ones(head.shape, bool), tail], axis=1)
        places = np.minimum(np.arange(kept.shape[1]), forbidden.ndim)
        self.sizes = kept.sum(axis=1)
        self.places = np.broadcast_to(places, kept.shape)[kept]
        self.offsets = np.concatenate([head, ends], axis=1)[kept]
        self.is_single = bool(((n > 1) & (n < card)).any())

    def at(self, begins: list[int]) -> NDArray[np.int64]:
        """The literals, where the booleans of the places begin there (doubled)."""
        out: NDArray[np.int64] = np.array(begins, np.int64)[self.places] + self.offsets
        return out


@dataclass
class HardParts:
    """Clauses over a boolean for each label (the label is taken) and one for each group (the group counts)."""

    cards: list[int]
    groups: list[Group] = field(default_factory=list)
    # The tables of each group
    tables: list[list[tuple[tuple[int, ...], NDArray[np.float64]]]] = field(default_factory=list)

    def clauses(self) -> tuple[int, NDArray[np.int64], NDArray[np.int32]]:
        """The number of booleans (groups come first, then labels), and sizes and literals of all clauses."""
        begin = [len(self.groups), *(len(self.groups) + np.cumsum(self.cards, dtype=np.int64)).tolist()]
        known: dict[tuple[tuple[int, ...], bytes], _Clauses] = {}
        sizes, literals = list[NDArray[np.int64]](), list[NDArray[np.int64]]()
        singles, n = set[int](), begin[-1]
        for g, tables in enumerate(self.tables):
            for scope, scores in tables:
                forbidden = scores == -inf
                key = forbidden.shape, np.packbits(forbidden).tobytes()
                if key not in known:
                    known[key] = _Clauses(forbidden)
                form = known[key]
                sizes.append(form.sizes)
                literals.append(form.at([2 * g + 1, *(2 * begin[v] for v in scope)]))
                if form.is_single:
                    singles.add(scope[-1])
        for v, card in enumerate(self.cards):
            labels = 2 * np.arange(begin[v], begin[v] + card)
            pairs = _one_at_most(labels, 2 * np.arange(n, n + card - 1)) if v in singles else np.zeros((0, 2), np.int64)
            n += card - 1 if v in singles else 0
            sizes += [np.array([card]), np.full(len(pairs), 2)]
            literals += [labels, pairs.reshape(-1)]
        if n >= MOST_BOOLEANS:
            raise SolverError(f"the labels of this model are too many to say why it is infeasible: {n} booleans")
        every = np.concatenate([np.zeros(0, np.int64), *literals]).astype(np.int32)
        return n, np.concatenate([np.zeros(0, np.int64), *sizes]), every


def _one_at_most(labels: NDArray[np.int64], before: NDArray[np.int64]) -> NDArray[np.int64]:
    """Clauses of two literals: one of the labels is taken at most. `before` are booleans that say whether this one or
    one before it is, so that the clauses are as many as the labels (Sinz 2005)."""
    return np.concatenate(
        [
            np.stack([labels[:-1] + 1, before], axis=1),
            np.stack([before[:-1] + 1, before[1:]], axis=1),
            np.stack([labels[1:] + 1, before + 1], axis=1),
        ]
    )


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
    assert arrays.unary is not None
    begin, stored_tables = begins(arrays.cards), StoredTables(arrays)
    for v in range(len(cards)):
        add("labels", v, [((v,), arrays.unary[begin[v] : begin[v + 1]])])
    for f, factor in enumerate(factors):
        scope = tuple(int(v) for v in factor.variables)
        shape = [cards[v] for v in scope]
        stored = stored_tables[factor.table]
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
