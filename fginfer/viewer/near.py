"""Near: what a graph has around a variable or a factor, found by index after one pass over the model."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix  # type: ignore[import-untyped, unused-ignore]
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped, unused-ignore]

from fginfer.core.arrays import owners
from fginfer.graph import FactorGraph
from fginfer.table_values import AnyTable, StoredTables
from fginfer.tables import AbsDiff, Potts, SqDiff, expand

Ints = NDArray[np.int64]
MOST_STATES = 4096  # states of a factor's states with one variable free that a margin looks at


class Near:
    """The graph as it is now."""

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph
        self.arrays = graph.table_arrays()
        self.begin = self.arrays.factor_begin()
        self.n, self.n_factors = graph.n_variables, self.arrays.n_factors
        self.stored = StoredTables(self.arrays)
        slots = self.arrays.vars
        order = np.argsort(slots, kind="stable")
        self._factors = owners(self.begin)[order]
        self._of = np.searchsorted(slots[order], np.arange(self.n + 1))
        self.degree = np.diff(self._of)
        self._unary_begin = np.concatenate(([0], np.cumsum(graph.cards, dtype=np.int64)))
        self._in_rule = np.zeros(self.n, bool)
        for rule in graph.rules:
            self._in_rule[list(rule.variables)] = True

    def factors_of(self, v: int) -> list[int]:
        found: list[int] = self._factors[self._of[v] : self._of[v + 1]].tolist()
        return found

    def scope(self, f: int) -> list[int]:
        found: list[int] = self.arrays.vars[self.begin[f] : self.begin[f + 1]].tolist()
        return found

    def unary(self, v: int) -> NDArray[np.float64]:
        assert self.arrays.unary is not None
        return self.arrays.unary[self._unary_begin[v] : self._unary_begin[v + 1]]

    def table_of(self, f: int) -> int:
        return int(self.arrays.factor_table[f])

    def weight(self, f: int) -> float:
        return 1.0 if self.arrays.factor_weight is None else float(self.arrays.factor_weight[f])

    def turned(self, f: int) -> bool:
        return self.arrays.factor_transposed is not None and bool(self.arrays.factor_transposed[f])

    @cached_property
    def _table_forbids(self) -> NDArray[np.bool_]:
        out = np.zeros(self.arrays.n_tables, bool)
        bad = np.flatnonzero(np.isneginf(self.arrays.values))
        out[np.searchsorted(self.arrays.values_begin(), bad, side="right") - 1] = True
        for t in np.flatnonzero(~self.arrays.is_dense()).tolist():
            table = self.stored[t]
            out[t] = isinstance(table, Potts) and -np.inf in (table.same, table.different)
        return out

    def forbids(self, f: int) -> bool:
        return bool(self._table_forbids[self.table_of(f)])

    def violated(self, x: NDArray[np.int32] | None) -> Ints:
        """Factors that forbid what a labeling does."""
        if x is None or not self.n_factors:
            return np.zeros(0, np.int64)
        return np.flatnonzero(np.isneginf(self.graph.factor_scores(x)))

    # -- scores ------------------------------------------------------------------------------------------------

    def _entry(self, table: AnyTable, shape: tuple[int, ...], labels: tuple[int, ...]) -> float:
        if isinstance(table, Potts | AbsDiff | SqDiff):
            a, b = labels
            if isinstance(table, Potts):
                return table.same if a == b else table.different
            return float(expand(table, a + 1, b + 1)[a, b])
        return float(np.reshape(table, shape)[labels])

    def score(self, f: int, x: NDArray[np.int32], v: int = -1, label: int = 0) -> float:
        """The score of a factor, with variable v at another label."""
        scope = self.scope(f)
        labels = tuple(label if u == v else int(x[u]) for u in scope)
        shape = tuple(int(self.graph.cards[u]) for u in scope)
        if self.turned(f):
            labels, shape = labels[::-1], shape[::-1]
        value = self._entry(self.stored[self.table_of(f)], shape, labels)
        return value if value == -np.inf else self.weight(f) * value

    def margin(self, v: int, x: NDArray[np.int32]) -> float | None:
        """By how much its label scores above the next best one, all others as they are; None: that is not known."""
        card, factors = int(self.graph.cards[v]), self.factors_of(v)
        if card < 2 or card * (len(factors) + 1) > MOST_STATES or self._in_rule[v]:
            return None
        scores = self.unary(v).copy()
        for f in factors:
            scores += [self.score(f, x, v, label) for label in range(card)]
        own, others = scores[x[v]], np.delete(scores, x[v]).max()
        return None if own == -np.inf else float(own - others)

    def block(self, f: int, most: int) -> tuple[NDArray[np.float64], tuple[int, ...]]:
        """The first rows and columns of its table as stored, later axes laid out as columns; and the table's shape."""
        shape = tuple(int(self.graph.cards[u]) for u in self.scope(f))
        if self.turned(f):
            shape = shape[::-1]
        table = self.stored[self.table_of(f)]
        if isinstance(table, Potts | AbsDiff | SqDiff):
            return expand(table, min(shape[0], most), min(shape[1], most)), shape
        flat = np.reshape(table, (shape[0], -1))
        return np.asarray(flat[:most, :most], np.float64), shape

    # -- the shape of it all -----------------------------------------------------------------------------------

    def components(self) -> dict[str, Any]:
        """How many, and the sizes of the largest."""
        rows, cols, size = owners(self.begin), self.arrays.vars.astype(np.int64), self.n + self.n_factors
        for k, rule in enumerate(self.graph.rules):
            rows = np.concatenate([rows, np.full(len(rule.variables), self.n_factors + k)])
            cols = np.concatenate([cols, np.array(rule.variables, np.int64)])
        size += len(self.graph.rules)
        links = coo_matrix((np.ones(len(rows), np.int8), (rows + self.n, cols)), shape=(size, size))
        _, which = connected_components(links, directed=False)
        sizes = np.sort(np.bincount(which[: self.n]))[::-1] if self.n else np.zeros(0, int)
        sizes = sizes[sizes > 0]
        return {"count": len(sizes), "largest": sizes[:12].tolist()}

    def degrees(self) -> list[list[int]]:
        """[factors, variables that have so many], in at most twelve classes."""
        if not self.n:
            return []
        most = int(self.degree.max())
        edges = np.unique(np.linspace(0, most + 1, min(12, most + 2)).astype(int))
        counts, _ = np.histogram(self.degree, edges)
        return [[int(a), int(c)] for a, c in zip(edges[:-1], counts, strict=True)]
