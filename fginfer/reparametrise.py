"""A graph with its scores moved by messages: every labeling keeps its score, and local maxima say more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import ModelArrays, begins
from fginfer.core.model import Model
from fginfer.graph import FactorGraph
from fginfer.table_values import StoredTables
from fginfer.tables import expand

Reals = NDArray[np.float64]

UNIT = 2.0**-52  # twice the relative error of one operation


class Reparametrised:
    """Unary scores plus messages, factors minus them, each factor's maximum moved into the constant.

    `error`: no sum of these scores is further from the score of the graph than this.
    """

    def __init__(self, graph: FactorGraph, messages: Reals | None) -> None:
        cards = graph.cards
        self.cards = cards
        arrays = graph.table_arrays()
        assert arrays.unary is not None
        self.unary = np.split(arrays.unary, np.cumsum(cards)[:-1]) if len(cards) else []
        stored_tables = StoredTables(arrays)
        self.constant = graph.constant
        self.scopes: list[tuple[int, ...]] = []
        self.tables: list[Reals] = []
        size, terms, at = abs(graph.constant), 1 + graph.n_variables, 0
        for factor in graph.factors():
            scope = tuple(int(v) for v in factor.variables)
            shape = [int(cards[v]) for v in scope]
            stored = stored_tables[factor.table]
            table = stored if isinstance(stored, np.ndarray) else expand(stored, shape[0], shape[1])
            dense = factor.weight * (table.T if factor.transposed else table.reshape(shape))
            for k, v in enumerate(scope):
                if messages is None:
                    break
                moved = messages[at : at + shape[k]]
                at += shape[k]
                self.unary[v] = self.unary[v] + moved
                dense = dense - moved.reshape([-1 if j == k else 1 for j in range(len(scope))])
                size += float(np.abs(moved).max())
            top = float(dense.max())
            if top > -np.inf:
                dense = dense - top
                self.constant += top
                size += abs(top) + float(np.abs(dense[dense > -np.inf]).max())
            else:
                self.constant = -np.inf
            terms += 2 + len(scope)
            self.scopes.append(scope)
            self.tables.append(dense)
        size += sum(float(np.abs(u[u > -np.inf]).max(initial=0.0)) for u in self.unary)
        self.error = UNIT * terms * size

    def label_bounds(self) -> Reals:
        """For each label its own score and what its factors have at best with it, all others at their maxima."""
        best = [float(u.max()) for u in self.unary]
        total = self.constant + sum(best)
        with np.errstate(invalid="ignore"):
            out = [total - top + u if total > -np.inf else u - np.inf for u, top in zip(self.unary, best, strict=True)]
        for scope, table in zip(self.scopes, self.tables, strict=True):
            for k, v in enumerate(scope):
                out[v] = out[v] + table.max(axis=tuple(j for j in range(table.ndim) if j != k))
        return np.concatenate([np.zeros(0), *out]) + self.error

    def part(self, factors: list[int]) -> Model:
        """All variables with these factors: its maxima are bounds, for those left out are nowhere above 0."""
        scopes = [self.scopes[f] for f in factors]
        tables = [self.tables[f] for f in factors]
        return ModelArrays(
            cards=self.cards,
            unary=np.concatenate([np.zeros(0), *self.unary]),
            constant=self.constant,
            table_arity=np.array([len(scope) for scope in scopes], np.int32),
            dims=np.array([k for table in tables for k in table.shape], np.int32),
            values=np.concatenate([np.zeros(0), *(table.reshape(-1) for table in tables)]),
            factor_table=np.arange(len(factors), dtype=np.int32),
            var_begin=begins([len(scope) for scope in scopes]),
            vars=np.array([v for scope in scopes for v in scope], np.int32),
        ).build()
