"""A lower bound on log Z: some variables independent of each other and of the rest, which elimination sums.

For every distribution q, log Z is at least the mean score under q plus its entropy. Here q is a product over the
variables outside of a block, times the best distribution of the block given them (structured mean field): scores are
averaged over what is outside, and the block is summed. Each choice of the outer probabilities gives a bound.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.beliefs import SLICE
from fginfer.by_shape import factors_by_shape
from fginfer.core import clock
from fginfer.core.arrays import ModelArrays, begins
from fginfer.core.beliefs import Beliefs
from fginfer.errors import SolverError
from fginfer.graph import FactorGraph

Reals = NDArray[np.float64]

MEMORY = 1.6e7  # bytes for the tables of the block (chosen)
EFFORT = 2e6  # work of the search for its order (chosen)
STAYS = 0.5  # the part of an old probability that stays (chosen)
PATIENCE = 4  # choices in a row that are no better before no more are tried (chosen)
UNIT = 2.0**-50  # part of the scores: a bound on what rounding does to the averages and the sum


class Below:
    """`bound` is no more than log Z; `run` raises it."""

    def __init__(self, graph: FactorGraph, outside: NDArray[np.int32], p: Reals) -> None:
        self._arrays, self.bound = graph.table_arrays(), -inf
        self._cards, self._begin = graph.cards, begins(graph.cards)
        self._alike = factors_by_shape(self._arrays)
        self._is_outside = np.zeros(graph.n_variables, bool)
        self._is_outside[outside] = True
        self._mine = np.repeat(self._is_outside, self._cards)  # labels of variables outside
        assert self._arrays.unary is not None
        self._unary, self._p = np.array(self._arrays.unary), np.array(p)

    def run(self, rounds: int, end: float = inf) -> None:
        """So many choices of the outer probabilities at most, or until the clock says `end`."""
        idle = 0
        for _ in range(rounds):
            before = self.bound
            if clock.now() >= end or idle >= PATIENCE or not self._look(end):
                return
            idle = 0 if self.bound > before else idle + 1
            self._move()

    def _weights(self, variables: NDArray[np.int64], card: int) -> Reals:
        out: Reals = self._p[self._begin[variables][:, None] + np.arange(card)]
        return out

    def _look(self, end: float) -> bool:
        """The bound with these probabilities, and those of the block; False where there is none."""
        unary = np.where(self._mine, -inf, self._unary)
        unary[self._begin[:-1][self._is_outside]] = 0.0  # a label for each that has been averaged
        p = self._p[self._mine]
        terms = [_mean(p, self._unary[self._mine]), -p * np.log(np.where(p > 0, p, 1.0))]
        scopes, tables = list[NDArray[np.int64]](), list[Reals]()
        for _, variables, scores in self._alike:
            kinds, which = np.unique(self._is_outside[variables], axis=0, return_inverse=True)
            for k, kind in enumerate(kinds):
                mine = which.reshape(-1) == k
                scope, left = variables[mine], scores[mine]
                for at in np.flatnonzero(kind)[::-1].tolist():
                    left = _average(left, self._weights(scope[:, at], left.shape[at + 1]), at + 1)
                scope = scope[:, ~kind]
                if left.ndim == 1:
                    terms.append(left)
                elif left.ndim == 2:
                    np.add.at(unary, self._begin[scope[:, 0]][:, None] + np.arange(left.shape[1]), left)
                else:
                    scopes += list(scope)
                    tables += list(left.reshape(len(left), -1))
        constant = self._arrays.constant + float(sum(part.sum() for part in terms))
        if constant == -inf:
            return False
        return self._sum(unary, constant, terms, scopes, tables, end)

    def _sum(
        self, unary: Reals, constant: float, terms: list[Reals], scopes: list[NDArray[np.int64]], tables: list[Reals],
        end: float,
    ) -> bool:  # fmt: skip
        arity = np.array([len(scope) for scope in scopes], np.int64)
        variables = np.concatenate([np.zeros(0, np.int64), *scopes])
        model = ModelArrays(
            cards=self._cards,
            unary=unary,
            table_arity=arity.astype(np.int32),
            dims=self._cards[variables],
            values=np.concatenate([np.zeros(0), *tables]),
            factor_table=np.arange(len(scopes), dtype=np.int32),
            var_begin=begins(arity),
            vars=variables.astype(np.int32),
        ).build()
        try:
            block = Beliefs(model, False, MEMORY, EFFORT)
        except SolverError:
            return False
        if block.runs > 1:
            return False
        while not block.run(SLICE):
            if clock.now() >= end:
                return False
        if block.value == -inf:
            return False
        finite = [np.abs(part[part > -inf]) for part in (self._unary, *(scores for _, _, scores in self._alike))]
        size = 1.0 + abs(self._arrays.constant) + len(self._p) + float(sum(part.sum() for part in finite))
        self.bound = max(self.bound, constant + block.value - UNIT * size * (1 + len(self._cards) + len(scopes)))
        self._p = np.where(self._mine, self._p, block.labels())
        return True

    def _move(self) -> None:
        """Outer probabilities nearer to those that suit the mean of all that is beside them."""
        total = np.array(self._unary)
        for _, variables, scores in self._alike:
            for k, card in enumerate(scores.shape[1:]):
                left = scores
                for at in range(scores.ndim - 2, -1, -1):
                    if at != k:
                        left = _average(left, self._weights(variables[:, at], scores.shape[at + 1]), at + 1)
                np.add.at(total, self._begin[variables[:, k]][:, None] + np.arange(card), left)
        best = np.repeat(np.maximum.reduceat(total, self._begin[:-1]), self._cards)
        with np.errstate(invalid="ignore"):
            new = np.where(best > -inf, np.exp(total - best), self._p)
        new /= np.repeat(np.add.reduceat(new, self._begin[:-1]), self._cards)
        moved = np.where(self._p > 0, STAYS * self._p + (1 - STAYS) * new, new)
        self._p = np.where(self._mine, moved, self._p)
        self._p /= np.repeat(np.add.reduceat(self._p, self._begin[:-1]), self._cards)


def _mean(p: Reals, scores: Reals) -> Reals:
    """p times scores, where what is impossible does not count."""
    with np.errstate(invalid="ignore"):
        out: Reals = np.where(p > 0, p * scores, 0.0)
    return out


def _average(tables: Reals, weights: Reals, axis: int) -> Reals:
    """Tables averaged over one axis, with weights a row a table."""
    shape = [len(weights), *(weights.shape[1] if j == axis else 1 for j in range(1, tables.ndim))]
    out: Reals = _mean(np.broadcast_to(weights.reshape(shape), tables.shape), tables).sum(axis=axis)
    return out
