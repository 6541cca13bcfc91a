"""From the functions and factors of an OpenGM file to a model: equal tables are stored once, differences and Potts are
never expanded, functions of no variable or one are added up."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.core.arrays import ABSDIFF, DENSE, SQDIFF, ModelArrays, begins
from fginfer.core.arrays import POTTS as POTTS_TABLE
from fginfer.folding import CONSTANT, Leftovers
from fginfer.formats.equal_tables import EqualShapes

EXPLICIT, ABSOLUTE, TRUNCATED_ABSOLUTE, SQUARED, TRUNCATED_SQUARED, POTTS, POTTS_N = (
    16000,
    16002,
    16003,
    16004,
    16005,
    16006,
    16007,
)
PARAMETERS = {ABSOLUTE: 1, TRUNCATED_ABSOLUTE: 2, SQUARED: 1, TRUNCATED_SQUARED: 2, POTTS: 2, POTTS_N: 2}


class Functions(NamedTuple):
    """All functions of a file, one after the other: of each its type, its shape and where its values are."""

    kind: NDArray[np.int64]  # type of function
    arity: NDArray[np.int64]
    shape_begin: NDArray[np.int64]  # in `shapes`
    shapes: NDArray[np.int64]
    begin: NDArray[np.int64]  # in `energies`
    energies: NDArray[np.float64]

    def shape(self, function: int) -> tuple[int, ...]:
        at = int(self.shape_begin[function])
        return tuple(self.shapes[at : at + int(self.arity[function])].tolist())


class ListedFactors(NamedTuple):
    """The factors of a file: of each its function, the number of its variables, and where in `numbers` these are."""

    function: NDArray[np.int64]
    arity: NDArray[np.int64]
    begin: NDArray[np.int64]
    numbers: NDArray[np.int64]


def stretches(begin: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """begin[0], begin[0] + 1, ... (lengths[0] of them), begin[1], ..."""
    starts = begins(lengths)
    return np.repeat(begin - starts[:-1], lengths) + np.arange(int(starts[-1]))


class Collector:
    """The tables that factors use, numbered in the order of their first use."""

    def __init__(self, functions: Functions, factors: ListedFactors, budget: Budget) -> None:
        self.functions, self.factors, self.budget = functions, factors, budget
        functions.energies[...] += 0.0  # no negative zeros: equal numbers have equal bits
        used, first = np.unique(factors.function[factors.arity >= 2], return_index=True)
        self._used = used[np.argsort(first)]
        n = len(self._used)
        self._leader = np.arange(n)  # the first that has the same table, or its transpose
        self._transposed = np.zeros(n, bool)
        self._kind, self._params = np.full(n, DENSE, np.int32), np.zeros((n, 2))
        self._groups: list[tuple[EqualShapes, NDArray[np.int64], NDArray[np.bool_]]] = []
        self._expanded: dict[int, NDArray[np.float64]] = {}

    def arrays(self, cards: NDArray[np.int32]) -> ModelArrays:
        f = self.factors
        self._find_equal_explicit()
        self._find_equal_implicit()
        self._expand_others()
        tables = np.flatnonzero(self._leader == np.arange(len(self._used)))
        number = np.full(len(self._used), -1)
        number[tables] = np.arange(len(tables))
        place = np.zeros(len(self.functions.kind), np.int64)
        place[self._used] = np.arange(len(self._used))
        own = np.flatnonzero(f.arity >= 2)
        use = place[f.function[own]]
        transposed, dense = self._transposed[use], bool((self._kind[tables] == DENSE).all())
        unary, constant, leftovers = self._fold(cards)
        pairwise = bool((f.arity[own] == 2).all())
        shaped = self._used[tables[self._kind[tables] == DENSE]]
        at = stretches(self.functions.shape_begin[shaped], self.functions.arity[shaped])
        arrays = ModelArrays(
            cards=cards,
            unary=unary,
            constant=constant,
            table_kind=None if dense else self._kind[tables],
            table_arity=self.functions.arity[self._used[tables]].astype(np.int32),
            dims=self.functions.shapes[at].astype(np.int32),
            params=None if dense else self._params[tables].reshape(-1),
            values=self._values(tables),
            factor_table=number[self._leader[use]].astype(np.int32),
            factor_transposed=transposed.astype(np.uint8) if transposed.any() else None,
            var_begin=None if pairwise else begins(f.arity[own]),
            vars=f.numbers[stretches(f.begin[own], f.arity[own])].astype(np.int32),
        )
        leftovers.put(arrays)
        return arrays

    # -- tables ------------------------------------------------------------------------------------------------

    def _find_equal_explicit(self) -> None:
        fn = self.functions
        explicit = np.flatnonzero(fn.kind[self._used] == EXPLICIT)
        arity = fn.arity[self._used[explicit]]
        for n in np.unique(arity).tolist():
            which = explicit[arity == n]
            shapes = fn.shapes[fn.shape_begin[self._used[which]][:, None] + np.arange(n)]
            # Pairs are looked at with the fewer labels first. OpenGM lists the first variable fastest, so that a table
            # with more labels first is, as it is listed, its transpose in our order.
            turned = shapes[:, 0] > shapes[:, 1] if n == 2 else np.zeros(len(which), bool)
            shapes = np.sort(shapes, axis=1) if n == 2 else shapes
            distinct, group = np.unique(shapes, axis=0, return_inverse=True)
            order = np.argsort(group.reshape(-1), kind="stable")
            sizes = np.bincount(group.reshape(-1), minlength=len(distinct))
            for shape, members in zip(distinct.tolist(), np.split(order, np.cumsum(sizes)[:-1]), strict=True):
                mine, flip = which[members], turned[members]
                same = EqualShapes(tuple(shape), fn.energies, fn.begin[self._used[mine]], ~flip)
                leader, transposed = same.first_of_equals()
                self._leader[mine] = mine[leader]
                self._transposed[mine] = transposed | (flip != flip[leader])
                self._groups.append((same, mine, flip))

    def _find_equal_implicit(self) -> None:
        fn = self.functions
        pairs = np.flatnonzero((fn.kind[self._used] != EXPLICIT) & (fn.arity[self._used] == 2))
        if not len(pairs):
            return
        kind, begin = fn.kind[self._used[pairs]], fn.begin[self._used[pairs]]
        first = fn.energies[begin]
        last = fn.energies[begin + np.where(np.isin(kind, (ABSOLUTE, SQUARED)), 0, 1)]
        potts = np.isin(kind, (POTTS, POTTS_N))
        truncated = np.isin(kind, (TRUNCATED_ABSOLUTE, TRUNCATED_SQUARED))
        truncation = np.where(truncated, first, np.inf)
        fits = potts | ((last >= 0.0) & (last < np.inf) & (truncation > 0.0))
        absolute = np.isin(kind, (ABSOLUTE, TRUNCATED_ABSOLUTE))
        table = np.where(potts, POTTS_TABLE, np.where(absolute, ABSDIFF, SQDIFF))
        params = np.where(potts[:, None], 0.0 - np.stack([first, last], 1), np.stack([last, truncation], 1))
        which = pairs[fits]
        self._kind[which], self._params[which] = table[fits], params[fits]
        rows = np.column_stack([table[fits], params[fits]])
        _, index, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        self._leader[which] = which[index[group.reshape(-1)]]

    def _expand_others(self) -> None:
        """Functions with parameters that no table of ours has: expanded, and compared with each other."""
        known: dict[tuple[tuple[int, ...], bytes], int] = {}
        explicit = self.functions.kind[self._used] == EXPLICIT
        for k in np.flatnonzero(~explicit & (self._kind == DENSE)).tolist():
            scores = self._scores(int(self._used[k]))
            self._leader[k] = known.setdefault((scores.shape, scores.tobytes()), k)
            if self._leader[k] == k:
                self._expanded[k] = scores

    def _scores(self, function: int) -> NDArray[np.float64]:
        """The table of one function, one axis a variable."""
        fn, shape = self.functions, self.functions.shape(function)
        kind, begin, size = int(fn.kind[function]), int(fn.begin[function]), math.prod(shape)
        if kind == EXPLICIT:
            listed = fn.energies[begin : begin + size]
            return np.ascontiguousarray(0.0 - listed.reshape(shape, order="F"))
        self.budget.take_unlisted(8.0 * size, f"a function of type {kind} with {size} entries")
        return 0.0 - expanded(kind, shape, fn.energies[begin : begin + PARAMETERS[kind]])

    def _values(self, tables: NDArray[np.int64]) -> NDArray[np.float64]:
        """The entries of the dense tables, one table after the other."""
        sizes = np.zeros(len(self._used), np.int64)
        for same, mine, _ in self._groups:
            sizes[mine] = same.size
        for k, scores in self._expanded.items():
            sizes[k] = scores.size
        place = np.zeros(len(self._used), np.int64)
        begin = begins(sizes[tables])
        place[tables] = begin[:-1]
        values = np.empty(int(begin[-1]))
        for same, mine, flip in self._groups:
            own = np.flatnonzero(self._leader[mine] == mine)
            for transposed in (False, True):
                for block in same.blocks(own[flip[own] == transposed]):
                    energies = same.rows(block, transposed).view(np.float64)
                    values[place[mine[block]][:, None] + np.arange(same.size)] = 0.0 - energies
        for k, scores in self._expanded.items():
            values[place[k] : place[k] + scores.size] = scores.reshape(-1)
        return values

    # -- constants and unary scores ----------------------------------------------------------------------------

    def _fold(self, cards: NDArray[np.int32]) -> tuple[NDArray[np.float64], float, Leftovers]:
        f, fn = self.factors, self.functions
        constant: NDArray[np.float64] | None = None
        left = Leftovers()
        for function in f.function[f.arity == 0].tolist():
            value = self._scores(function).reshape(-1)
            constant = value if constant is None else left.add(CONSTANT, constant, value, "the constant")
        unary, begin = np.zeros(int(cards.sum(dtype=np.int64))), begins(cards)
        function, variable = f.function[f.arity == 1], f.numbers[f.begin[f.arity == 1]]
        counts = np.bincount(variable, minlength=len(cards))
        once = (counts[variable] == 1) & (fn.kind[function] == EXPLICIT)
        to, lengths = begin[variable[once]], cards[variable[once]].astype(np.int64)
        unary[stretches(to, lengths)] = 0.0 - fn.energies[stretches(fn.begin[function[once]], lengths)]
        seen: set[int] = set()
        for v, one in zip(variable[~once].tolist(), function[~once].tolist(), strict=True):
            mine, scores = unary[begin[v] : begin[v + 1]], self._scores(one)
            mine[...] = left.add(v, mine, scores, f"variable {v}") if v in seen else scores
            seen.add(v)
        return unary, 0.0 if constant is None else float(constant[0]), left


def expanded(kind: int, shape: tuple[int, ...], parameters: NDArray[np.float64]) -> NDArray[np.float64]:
    """The energies of a function that is given by parameters."""
    if kind in (POTTS, POTTS_N):
        out = np.full(shape, parameters[1])
        same = np.arange(min(shape, default=1))
        out[tuple(same for _ in shape)] = parameters[0]
        return out
    d = np.abs(np.subtract.outer(np.arange(shape[0], dtype=float), np.arange(shape[1], dtype=float)))
    d = d if kind in (ABSOLUTE, TRUNCATED_ABSOLUTE) else d * d
    weight = parameters[-1]
    if kind in (TRUNCATED_ABSOLUTE, TRUNCATED_SQUARED):
        d = np.where(d > parameters[0], parameters[0], d)
    energies_of_pairs: NDArray[np.float64] = d * weight
    return energies_of_pairs
