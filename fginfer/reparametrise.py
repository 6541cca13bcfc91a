"""A graph with its scores moved by messages: every labeling keeps its score, and local maxima say more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fginfer.by_shape import factors_by_shape
from fginfer.core.arrays import ModelArrays, begins
from fginfer.core.model import Model
from fginfer.graph import FactorGraph

Reals = NDArray[np.float64]

UNIT = 2.0**-52  # twice the relative error of one operation


class Reparametrised:
    """Unary scores plus messages, factors minus them, each factor's maximum moved into the constant.

    `error`: no sum of these scores is further from the score of the graph than this.
    """

    def __init__(self, graph: FactorGraph, messages: Reals | None) -> None:
        arrays = graph.table_arrays()
        assert arrays.unary is not None
        self.cards, self.unary, self.constant = graph.cards, np.array(arrays.unary), graph.constant
        self._begin, self._vars, self._var_begin = begins(self.cards), arrays.vars, arrays.factor_begin()
        told = begins(self.cards[self._vars])[self._var_begin]  # where the messages of a factor begin
        self._alike = factors_by_shape(arrays)
        size = abs(self.constant)
        for factors, variables, tables in self._alike:
            at, axes = told[factors], tuple(range(1, tables.ndim))
            for k, card in enumerate(tables.shape[1:]):
                if messages is None:
                    break
                moved = messages[at[:, None] + np.arange(card)]
                at = at + card
                np.add.at(self.unary, self._begin[variables[:, k]][:, None] + np.arange(card), moved)
                tables -= moved.reshape(len(moved), *(card if j == k else 1 for j in range(len(axes))))
                size += float(np.abs(moved).max(axis=1).sum())
            top = tables.max(axis=axes)
            finite = np.where(top > -np.inf, top, 0.0)
            tables -= finite.reshape(-1, *(1 for _ in axes))
            self.constant += float(top.sum())
            largest = np.abs(np.where(tables > -np.inf, tables, 0.0)).max(axis=axes)
            size += float(np.abs(finite).sum() + largest.sum())
        size += float(np.abs(np.where(self.unary > -np.inf, self.unary, 0.0)).sum())
        terms = 1 + graph.n_variables + 2 * arrays.n_factors + len(self._vars)
        self.error = UNIT * terms * size
        self._lay_out(arrays.n_factors)

    def _lay_out(self, n_factors: int) -> None:
        """All tables one after the other, in the order of the factors."""
        self._sizes = np.ones(n_factors, np.int64)
        for factors, _, tables in self._alike:
            self._sizes[factors] = tables[0].size
        self._values_begin = begins(self._sizes)
        self._values = np.zeros(int(self._sizes.sum()))
        for factors, _, tables in self._alike:
            flat = tables.reshape(len(tables), -1)
            self._values[self._values_begin[factors][:, None] + np.arange(flat.shape[1])] = flat

    def label_bounds(self) -> Reals:
        """For each label its own score and what its factors have at best with it, all others at their maxima."""
        if not len(self.unary):
            return self.unary
        best = np.maximum.reduceat(self.unary, self._begin[:-1])
        total = self.constant + float(best.sum())
        if total == -np.inf:
            return np.full(len(self.unary), -np.inf)
        out: Reals = total - np.repeat(best, self.cards) + self.unary
        for _, variables, tables in self._alike:
            for k, card in enumerate(tables.shape[1:]):
                others = tuple(j for j in range(1, tables.ndim) if j != k + 1)
                np.add.at(out, self._begin[variables[:, k]][:, None] + np.arange(card), tables.max(axis=others))
        return out + self.error

    def part(self, factors: Sequence[int] | NDArray[np.int64]) -> Model:
        """All variables with these factors: its maxima are bounds, for those left out are nowhere above 0."""
        chosen = np.asarray(factors, np.int64)
        arity = np.diff(self._var_begin)[chosen]
        variables = self._vars[_lines(self._var_begin[chosen], arity)]
        return ModelArrays(
            cards=self.cards,
            unary=self.unary,
            constant=self.constant,
            table_arity=arity.astype(np.int32),
            dims=self.cards[variables],
            values=self._values[_lines(self._values_begin[chosen], self._sizes[chosen])],
            factor_table=np.arange(len(chosen), dtype=np.int32),
            var_begin=begins(arity),
            vars=variables,
        ).build()


def _lines(first: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places first, first + 1, ... of lines of so many entries."""
    out: NDArray[np.int64] = np.repeat(first - begins(sizes)[:-1], sizes) + np.arange(int(sizes.sum()))
    return out
