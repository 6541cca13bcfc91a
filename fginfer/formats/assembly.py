"""What readers and writers of table-by-table formats share: collecting factors into a model, and going through one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import ABSDIFF, DENSE, POTTS, SQDIFF, ModelArrays, begins
from fginfer.folding import CONSTANT, Leftovers
from fginfer.graph import FactorGraph
from fginfer.tables import AbsDiff, ImplicitTable, Potts, SqDiff, expand

MOST_VARIABLES = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32  # axes of an array
_BLOCK = 1 << 16  # factors or tables that are looked at together
_MOST_AXES = 32  # axes of an array in every version of numpy, and of a dataset of HDF5
_KINDS = {Potts: POTTS, AbsDiff: ABSDIFF, SqDiff: SQDIFF}


class Stored(NamedTuple):
    """A table of an Assembly, seen as it is or transposed."""

    table: int
    transposed: bool = False


# What a function of a file becomes: a stored table, or its scores if it has fewer than two variables.
Function = Stored | NDArray[np.float64]


class Assembly:
    """Collects tables and factors of any arity. Equal tables are stored once; arity 0 and 1 are folded."""

    def __init__(self, cards: NDArray[np.int32]) -> None:
        self.cards = cards
        self.given = 0  # factors of every arity
        self._leftovers = Leftovers()
        self._constant: NDArray[np.float64] | None = None
        self._unary: dict[int, NDArray[np.float64]] = {}
        self._ids: dict[object, int] = {}
        self._kind: list[int] = []
        self._arity: list[int] = []
        self._dims: list[int] = []
        self._params: list[float] = []
        self._values: list[NDArray[np.float64]] = []
        self._factor_table: list[int] = []
        self._factor_arity: list[int] = []
        self._transposed: list[bool] = []
        self._vars: list[int] = []

    def function(self, scores: NDArray[np.float64]) -> Function:
        """A table with one axis per variable. An equal table, or one that is equal when transposed, is found."""
        if scores.ndim < 2:
            return scores
        dense = np.ascontiguousarray(scores, np.float64)
        key = _digest(dense)
        if key in self._ids:
            return Stored(self._ids[key])
        if dense.ndim == 2:
            flipped = _digest(np.ascontiguousarray(dense.T))
            if flipped in self._ids:
                return Stored(self._ids[flipped], transposed=True)
        self._ids[key] = self._new(DENSE, dense.ndim, (0.0, 0.0))
        self._dims.extend(dense.shape)
        self._values.append(dense.reshape(-1))
        return Stored(self._ids[key])

    def implicit(self, table: ImplicitTable) -> Stored:
        """A table that is never expanded."""
        found = self._ids.get(table)
        if found is None:
            p0, p1 = (table.same, table.different) if isinstance(table, Potts) else (table.weight, table.truncation)
            found = self._ids[table] = self._new(_KINDS[type(table)], 2, (p0, p1))
        return Stored(found)

    def _new(self, kind: int, arity: int, params: tuple[float, float]) -> int:
        self._kind.append(kind)
        self._arity.append(arity)
        self._params.extend(params)
        return len(self._kind) - 1

    def add(self, variables: Sequence[int], function: Function) -> None:
        """A factor of any arity."""
        self.given += 1
        if isinstance(function, Stored):
            self._factor_table.append(function.table)
            self._transposed.append(function.transposed)
            self._factor_arity.append(len(variables))
            self._vars.extend(variables)
        elif not len(variables):
            value = np.array(function, np.float64).reshape(-1)
            if self._constant is not None:
                value = self._leftovers.add(CONSTANT, self._constant, value, "the constant")
            self._constant = value
        elif variables[0] in self._unary:
            i = variables[0]
            self._unary[i] = self._leftovers.add(i, self._unary[i], function, f"variable {i}")
        else:
            self._unary[variables[0]] = np.array(function, np.float64)

    def graph(self) -> FactorGraph:
        unary = np.zeros(int(self.cards.sum(dtype=np.int64)))
        begin = begins(self.cards)
        for variable, scores in self._unary.items():
            unary[begin[variable] : begin[variable + 1]] = scores
        pairwise = all(arity == 2 for arity in self._factor_arity)
        dense = all(kind == DENSE for kind in self._kind)
        arrays = ModelArrays(
            cards=self.cards,
            unary=unary,
            constant=0.0 if self._constant is None else float(self._constant[0]),
            table_kind=None if dense else np.array(self._kind, np.int32),
            table_arity=np.array(self._arity, np.int32),
            dims=np.array(self._dims, np.int32),
            params=None if dense else np.array(self._params, np.float64),
            values=np.concatenate(self._values) if self._values else np.zeros(0),
            factor_table=np.array(self._factor_table, np.int32),
            factor_transposed=np.array(self._transposed, np.uint8) if any(self._transposed) else None,
            var_begin=None if pairwise else begins(np.array(self._factor_arity, np.int64)),
            vars=np.array(self._vars, np.int32),
        )
        self._values.clear()
        self._leftovers.put(arrays)
        return FactorGraph.from_model_arrays(arrays, self.given)


def _digest(dense: NDArray[np.float64]) -> tuple[tuple[int, ...], bytes]:
    return dense.shape, blake2b(dense.data, digest_size=16).digest()


def _range(scores: NDArray[np.float64]) -> tuple[float, float]:
    finite = scores[np.isfinite(scores)]
    return (float(finite.min()), float(finite.max())) if finite.size else (np.inf, -np.inf)


def _lean(scope: tuple[int, ...], cards: list[int]) -> tuple[int, ...]:
    """The variables with several labels, in their order; two variables at least."""
    proper = [v for v in scope if cards[v] > 1]
    spare = [v for v in scope if cards[v] == 1][: max(0, 2 - len(proper))]
    return tuple(v for v in scope if cards[v] > 1 or v in spare)


Key = tuple[int, float, tuple[int, ...]]  # table, weight, label counts


class WrittenFactor(NamedTuple):
    """A factor as a file lists it. Factors with equal keys have equal scores over the same label counts."""

    variables: tuple[int, ...]
    key: Key


class Factors:
    """The factors of a graph in the order in which writers list them: constant, unary scores, all others."""

    def __init__(self, graph: FactorGraph, beside_rules: bool = False) -> None:
        """With `beside_rules` a graph may have constraints, which are not listed."""
        self.arrays = graph.table_arrays() if beside_rules else graph.to_arrays()
        self.cards = self.arrays.cards
        self._left = Leftovers(self.arrays).rows
        self._values_begin = self.arrays.values_begin()
        self._dense = self.arrays.is_dense()
        self._is_dense: list[bool] = self._dense.tolist()
        self._implicit_ranges: dict[tuple[int, tuple[int, ...]], tuple[float, float]] = {}

    def constants(self) -> list[float]:
        """The constant score, if there is one, and what rounding took from it: they add up."""
        value = float(self.arrays.constant)
        return [value] * (value != 0.0) + [float(row[0]) for row in self._left.get(CONSTANT, ())]

    def unaries(self) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Variables with unary scores, and these; a variable comes again for each row that rounding took from it."""
        begin, unary = begins(self.cards), self.arrays.unary
        assert unary is not None
        for variable in range(len(self.cards)):
            scores = unary[begin[variable] : begin[variable + 1]]
            if scores.any():
                yield variable, scores
            for row in self._left.get(variable, ()):
                yield variable, row

    def __iter__(self) -> Iterator[WrittenFactor]:
        """Factors over two or more variables; a transposed one lists its variables the other way round, and one over
        more than numpy has axes leaves out those with one label."""
        a = self.arrays
        if a.var_begin is None:
            yield from self._pairs()
            return
        begin, variables, cards = a.factor_begin().tolist(), a.vars.tolist(), self.cards.tolist()
        for f, table in enumerate(a.factor_table.tolist()):
            scope = tuple(variables[begin[f] : begin[f + 1]])
            if a.factor_transposed is not None and a.factor_transposed[f]:
                scope = scope[::-1]
            if len(scope) > _MOST_AXES:
                scope = _lean(scope, cards)
            weight = 1.0 if a.factor_weight is None else float(a.factor_weight[f])
            yield WrittenFactor(scope, (table, weight, tuple(cards[v] for v in scope)))

    def _pairs(self) -> Iterator[WrittenFactor]:
        """The same where all factors have two variables."""
        a = self.arrays
        scopes = a.vars.reshape(-1, 2)
        if a.factor_transposed is not None:
            scopes = np.where(a.factor_transposed[:, None] != 0, scopes[:, ::-1], scopes)
        weights = np.ones(len(scopes)) if a.factor_weight is None else a.factor_weight
        for begin in range(0, len(scopes), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            some, shapes = scopes[block], self.cards[scopes[block]]
            columns = some[:, 0], some[:, 1], a.factor_table[block], weights[block], shapes[:, 0], shapes[:, 1]
            for i, j, table, weight, rows, cols in zip(*(c.tolist() for c in columns), strict=True):
                yield WrittenFactor((i, j), (table, weight, (rows, cols)))

    def is_listed(self, key: Key) -> bool:
        """Whether the scores of the factors with this key stand in `arrays.values` as they are."""
        return key[1] == 1.0 and self._is_dense[key[0]]

    def range(self, key: Key) -> tuple[float, float]:
        """The smallest and the largest of the finite scores of factors with this key; (inf, -inf): there is none."""
        table, weight, shape = key
        if self._is_dense[table]:
            low, high = self._ranges[table]
        else:
            found = self._implicit_ranges.get((table, shape))
            if found is None:
                found = self._implicit_ranges[table, shape] = _range(self.scores((table, 1.0, shape)))
            low, high = found
        return weight * low, weight * high  # weights are positive, and rounding keeps the order

    @cached_property
    def _ranges(self) -> list[tuple[float, float]]:
        """The least and the largest score of every dense table."""
        begin, values = self._values_begin, self.arrays.values
        dense = np.flatnonzero(self._dense)
        low, high = np.full(len(self._dense), np.inf), np.full(len(self._dense), -np.inf)
        for first in range(0, len(dense), _BLOCK):
            some = dense[first : first + _BLOCK]
            start, end = int(begin[some[0]]), int(begin[some[-1] + 1])  # the others have no entries
            entries, at = values[start:end], begin[some] - start
            low[some] = np.minimum.reduceat(np.where(entries == -np.inf, np.inf, entries), at)
            high[some] = np.maximum.reduceat(entries, at)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def implicit(self, table: int) -> ImplicitTable | None:
        """A table that is never expanded; None for a dense one."""
        if self._is_dense[table]:
            return None
        assert self.arrays.table_kind is not None
        assert self.arrays.params is not None
        kinds: dict[int, type[Potts] | type[AbsDiff] | type[SqDiff]] = {k: t for t, k in _KINDS.items()}
        kind = kinds[int(self.arrays.table_kind[table])]
        p0, p1 = self.arrays.params[2 * table : 2 * table + 2].tolist()
        return kind(p0, p1)

    def scores(self, key: Key) -> NDArray[np.float64]:
        """The scores of the factors with this key, one axis per variable."""
        table, weight, shape = key
        implicit = self.implicit(table)
        if implicit is not None:
            entries = expand(implicit, shape[0], shape[1])
        else:
            entries = self.arrays.values[self._values_begin[table] : self._values_begin[table + 1]].reshape(shape)
        return entries if weight == 1.0 else weight * entries
