"""Encoding: a graph as a program. A label is a literal, tables are clauses and costs, sums are linear constraints."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from fginfer.conflicts.program import FALSE, TRUE, Program, Term, TooLarge
from fginfer.core.arrays import ModelArrays, begins
from fginfer.formats.assembly import Factors
from fginfer.graph import FactorGraph
from fginfer.rules import Chain, Occurrences, Rule, SumRule
from fginfer.rules.rule import Star
from fginfer.rules.steps import Piece

MOST_ENTRIES = 60_000  # scores of all tables that are looked at: a third of a second (chosen)
MOST_LABELS = 300_000  # labels of all variables (chosen)
MOST_LEVELS = 8  # different scores of a table that are said one below the other; more get a Boolean each (chosen)
MOST_TERMS = 50_000  # literals of the linear constraints that say one rule; more are said by its chain (chosen)

Literals = Sequence[int]
Floats = NDArray[np.float64]


class Encoding:
    """`labels[v][a]` is the literal that says: variable v has label a."""

    def __init__(self, graph: FactorGraph, rules: Sequence[Rule], allowed: NDArray[np.bool_]) -> None:
        self.program, self._entries = Program(), 0
        factors = Factors(graph, beside_rules=True)
        arrays = factors.arrays
        if graph.table_snapshot().states > MOST_ENTRIES or len(allowed) > MOST_LABELS:
            raise TooLarge
        self.labels = self._domains(arrays, allowed)
        self.program.tops += factors.constants()
        for v, scores in factors.unaries():
            self.table([self.labels[v]], scores)
        for factor in factors:
            shape = tuple(len(self.labels[v]) for v in factor.variables)
            self._count(prod(shape))
            self.table([self.labels[v] for v in factor.variables], np.asarray(factors.scores(factor.key)))
        for rule in rules:
            self.rule(rule)

    def _count(self, entries: float) -> None:
        self._entries += int(entries)
        if self._entries > MOST_ENTRIES:
            raise TooLarge

    def _domains(self, arrays: ModelArrays, allowed: NDArray[np.bool_]) -> list[list[int]]:
        begin, out = begins(arrays.cards).tolist(), []
        assert arrays.unary is not None
        for v in range(len(arrays.cards)):
            mask, unary = allowed[begin[v] : begin[v + 1]], arrays.unary[begin[v] : begin[v + 1]]
            left = np.flatnonzero(mask & (unary > -inf)).tolist()
            literals = [FALSE] * len(mask)
            if not left:
                self.program.clause([])
            else:
                for a, x in zip(left, self.program.one_of(len(left)), strict=True):
                    literals[a] = x
            out.append(literals)
        return out

    def first_values(self, arrays: ModelArrays) -> tuple[NDArray[np.uint8], Floats]:
        """The best labels by unary scores first, and variables that meet many others before those that do not."""
        values, activity = np.zeros(self.program.n, np.uint8), np.zeros(self.program.n)
        begin, degree = begins(arrays.cards).tolist(), np.bincount(arrays.vars, minlength=len(arrays.cards))
        degree = 1e-3 * degree / (degree.max(initial=0) + 1)
        assert arrays.unary is not None
        for v, literals in enumerate(self.labels):
            own = arrays.unary[begin[v] : begin[v + 1]]
            best = int(np.where(np.array(literals) != FALSE, own, -inf).argmax())
            for a, x in enumerate(literals):
                values[x >> 1] = (a == best) ^ (x & 1)
                activity[x >> 1] = degree[v]
        values[0] = 1
        return values, activity

    # -- tables ------------------------------------------------------------------------------------------------

    def table(self, axes: Sequence[Literals], scores: Floats) -> None:
        """Scores by the one literal of each axis that is true."""
        kept = [[k for k, x in enumerate(axis) if x != FALSE] for axis in axes]
        scores = scores[np.ix_(*kept)]
        axes = [[axis[k] for k in own] for axis, own in zip(axes, kept, strict=True)]
        top = float(scores.max(initial=-inf))
        if top == -inf:
            self.program.clause([])
            return
        self.program.tops.append(top)
        if scores.ndim == 1:
            self._unary(axes[0], scores, top)
            return
        self._forbid(axes, np.isneginf(scores))
        if scores.ndim == 2:
            self._support(axes[0], axes[1], np.isneginf(scores.T))
        self._charge(axes, scores, top)

    def _unary(self, literals: Literals, scores: Floats, top: float) -> None:
        for x, score in zip(literals, scores.tolist(), strict=True):
            if score == -inf:
                self.program.clause([x ^ 1])
            else:
                self.program.cost(x, top, score)

    def _forbid(self, axes: Sequence[Literals], forbidden: NDArray[np.bool_]) -> None:
        """Row by row: what the last axis may not be, or what it may be if that is shorter."""
        rows, last = forbidden.reshape(-1, forbidden.shape[-1]), axes[-1]
        for row in np.flatnonzero(rows.any(axis=1)).tolist():
            place = np.unravel_index(row, forbidden.shape[:-1])
            given = [axis[int(k)] ^ 1 for axis, k in zip(axes, place, strict=False)]
            wrong, right = np.flatnonzero(rows[row]).tolist(), np.flatnonzero(~rows[row]).tolist()
            if len(right) < len(wrong):
                self.program.clause([*given, *(last[k] for k in right)])
                continue
            for k in wrong:
                self.program.clause([*given, last[k] ^ 1])

    def _support(self, first: Literals, last: Literals, forbidden: NDArray[np.bool_]) -> None:
        """The same the other way round, where it says more: a label needs one of the few that go with it."""
        for k in np.flatnonzero(2 * forbidden.sum(axis=1) > len(first)).tolist():
            self.program.clause([last[k] ^ 1, *(first[a] for a in np.flatnonzero(~forbidden[k]).tolist())])

    def _charge(self, axes: Sequence[Literals], scores: Floats, top: float) -> None:
        """A Boolean for each score below the best that is reached, or for each state where there are many."""
        soft = np.argwhere((scores > -inf) & (scores < top)).tolist()
        levels = sorted({float(scores[tuple(place)]) for place in soft}, reverse=True)
        pays: dict[float, int] = {}
        if len(levels) <= MOST_LEVELS:
            for above, level in pairwise([top, *levels]):
                pays[level] = self.program.new()
                self.program.cost(pays[level], above, level)
                if above < top:
                    self.program.clause([pays[level] ^ 1, pays[above]])
        for place in soft:
            level = float(scores[tuple(place)])
            x = pays.get(level)
            if x is None:
                x = self.program.new()
                self.program.cost(x, top, level)
            self.program.clause([*(axis[k] ^ 1 for axis, k in zip(axes, place, strict=True)), x])

    # -- rules -------------------------------------------------------------------------------------------------

    def rule(self, rule: Rule) -> None:
        if not rule.variables:
            score = rule.score([])
            self.program.tops.append(score) if score > -inf else self.program.clause([])
            return
        if isinstance(rule, Occurrences):
            self._occurrences(rule)
        elif isinstance(rule, SumRule) and not rule.modulus and self._sum(rule):
            pass
        else:
            self._parts(rule)

    def _occurrences(self, rule: Occurrences) -> None:
        hard = rule.price == inf
        self.program.tops.append(0.0)
        for k, (low, high) in enumerate(zip(rule.low, rule.high, strict=True)):
            own = [self.labels[v][k] for v, card in zip(rule.variables, rule.cards, strict=True) if k < card]
            terms: list[Term] = [(x, 1) for x in own if x != FALSE]
            spare, short = max(0, len(terms) - max(0, high)), max(0, low)
            over = [] if hard else self.program.amount(spare + max(0, -high), Fraction(rule.price))
            under = [] if hard else self.program.amount(short, Fraction(rule.price))
            self.program.at_most([*terms, *((x, -w) for x, w in over)], high)
            self.program.at_least([*terms, *under], low)

    def _sum(self, rule: SumRule) -> bool:
        """As linear constraints, one for each piece of its score; False: these would be too many."""
        terms = [(self.labels[v][a], w) for v, add in zip(rule.variables, rule.adds, strict=True)
                 for a, w in enumerate(add) if w and self.labels[v][a] != FALSE]  # fmt: skip
        own = [[w for a, w in enumerate(add) if self.labels[v][a] != FALSE]
               for v, add in zip(rule.variables, rule.adds, strict=True)]  # fmt: skip
        if not all(own):
            return True  # a variable without labels: that is said already
        low, high = sum(map(min, own)), sum(map(max, own))
        pieces = _clipped(rule.steps.pieces, low, high)
        if len(pieces) > 2 and len(pieces) * len(terms) > MOST_TERMS:
            return False
        if not pieces:
            self.program.clause([])
            return True
        best = [max(_at(p, first), _at(p, last)) for p, first, last in pieces]
        self.program.tops.append(max(best))
        for (piece, first, last), on, score in zip(pieces, self._choices(len(pieces)), best, strict=True):
            self.program.cost(on, max(best), score)
            self._between(terms, on, (first, last), (low, high))
            if piece.slope < 0:  # each unit above the first costs
                more = self.program.amount(last - first, -Fraction(piece.slope))
                self._between([*terms, *((x, -w) for x, w in more)], on, (None, first), (low, high))
            elif piece.slope > 0:
                more = self.program.amount(last - first, Fraction(piece.slope))
                self._between([*terms, *more], on, (last, None), (low, high))
        return True

    def _choices(self, n: int) -> list[int]:
        """Literals one of which is true at least."""
        if n <= 2:
            return self.program.one_of(n)
        found = [self.program.new() for _ in range(n)]
        self.program.clause(found)
        return found

    def _between(
        self, terms: list[Term], on: int, limits: tuple[int | None, int | None], ends: tuple[int, int]
    ) -> None:
        """Limits of a total that lies between `ends` in any case, if a literal is true."""
        first, last = limits
        if first is not None and first > ends[0]:
            self.program.at_least([*terms, (on, ends[0] - first)], ends[0])
        if last is not None and last < ends[1]:
            self.program.at_most([*terms, (on, ends[1] - last)], ends[1])

    def _parts(self, rule: Rule) -> None:
        """By its chains, with a literal for each state between two layers."""
        masks = [np.array(self.labels[v]) != FALSE for v in rule.variables]
        self._count(rule.entries())
        for part in rule.parts(masks):
            if isinstance(part, Chain):
                self._chain(part)
            elif isinstance(part, Star):
                self._star(part)
            else:
                scores = np.asarray(part.scores)
                self.table([self.labels[v] for v in part.variables], scores)

    def _chain(self, chain: Chain) -> None:
        if chain.is_broken:
            self.program.clause([])
            return
        before = [TRUE]
        for k, (v, scores) in enumerate(zip(chain.variables, chain.tables, strict=True)):
            self._count(scores.size)
            after = [TRUE] if k == len(chain.tables) - 1 else self.program.one_of(scores.shape[-1])
            self.table([before, self.labels[v], after], scores)
            before = after

    def _star(self, star: Star) -> None:
        choice = self.program.one_of(len(star.scores))
        self.table([choice], star.scores)
        for v, scores in zip(star.variables, star.tables, strict=True):
            self._count(scores.size)
            self.table([choice, self.labels[v]], scores)


def _clipped(pieces: Sequence[Piece], low: int, high: int) -> list[tuple[Piece, int, int]]:
    """Those that allow totals from low to high, with their first and last ones; equal neighbours are one."""
    out: list[tuple[Piece, int, int]] = []
    ends = [*(p.start - 1 for p in pieces[1:]), high]
    for piece, end in zip(pieces, ends, strict=True):
        first, last = max(piece.start, low), min(end, high)
        if piece.base == -inf or first > last:
            continue
        if out and out[-1][2] == first - 1 and out[-1][0].slope == piece.slope == 0 and out[-1][0].base == piece.base:
            out[-1] = (piece, out[-1][1], last)
        else:
            out.append((piece, first, last))
    return out


def _at(piece: Piece, total: int) -> Fraction:
    return Fraction(piece.base) + Fraction(piece.slope) * (total - piece.anchor)
