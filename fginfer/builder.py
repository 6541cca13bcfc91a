"""Builder: collects factors one by one into ModelArrays; equal tables are stored once.

It also brings what callers may write into what the core takes: weights become positive (a negative weight uses the
negated table), a zero weight becomes a table of zeros, and difference tables that reward distance are written out.
Every addition happens whole or not at all, and costs what it adds, not what is there already.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.arrays import DENSE, POTTS, ModelArrays, begins
from fginfer.errors import ModelError
from fginfer.folding import CONSTANT, Leftovers
from fginfer.growing import Growing
from fginfer.names import Names, variable_text, variables_text
from fginfer.table_roles import TableRoles
from fginfer.table_values import (
    KINDS,
    ZERO,
    Dense,
    HeldTable,
    StoredTables,
    arity_of,
    check_dense,
    check_implicit,
    implicit_params,
    is_reward,
    negate_held,
    numbers,
    size_of,
    table_key,
    weigh,
)
from fginfer.tables import AbsDiff, ImplicitTable, Potts, SqDiff, TableRef, expand

# Sums below the first cannot overflow, and products above the second lose no digits: the core need not be asked.
_MODEST, _NORMAL = 2.0**950, 2.0**-1022


@dataclass
class Remembered:
    """What a builder knows about a model and the next one need not find out again."""

    largest: float  # no sum of scores is larger
    least: float  # no weighted score but 0 is smaller
    ids: dict[Any, int] | None = None  # numbers of tables that equal arrays share, by their keys

    def see(self, scores: NDArray[np.float64]) -> None:
        """Unary scores that come without a builder."""
        largest, least = size_of(Dense(scores, scores.shape), 1)
        self.largest, self.least = self.largest + len(scores) * largest, min(self.least, least)


class Builder:
    """The growing part of a FactorGraph. `base` is what is in place already; new tables and factors come after it.

    Every factor has a place: its number while nothing is removed. The place of a removed one stays empty until the
    arrays are made.
    """

    def __init__(self, base: ModelArrays, roles: TableRoles, remembered: Remembered | None = None) -> None:
        self.base = base
        self.names: Names | None = None  # how errors call variables
        self.stored = StoredTables(base)
        self.roles = roles
        self._cards = Growing(base.cards)
        self._max_card = int(base.cards.max(initial=1))
        self._begin: Growing[np.int64] | None = None  # once it is asked for
        self._unary: Growing[np.float64] | None = None  # once it is written to
        self.constant = base.constant
        self.leftovers = Leftovers(base)
        self.tables: list[HeldTable] = []
        self.factors: list[tuple[int, float, bool, tuple[int, ...]]] = []
        self._replaced: dict[int, tuple[int, float, bool]] = {}  # by place in the base: table, weight, transposed
        self.removed: set[int] = set()  # places
        self.remembered = Remembered(*_extent(base)) if remembered is None else remembered

    # -- variables ---------------------------------------------------------------------------------------------

    @property
    def cards(self) -> NDArray[np.int32]:
        """Labels per variable."""
        return self._cards.values

    @property
    def begin(self) -> NDArray[np.int64]:
        """Where the unary scores of each variable begin."""
        if self._begin is None:
            self._begin = Growing(begins(self.cards))
        return self._begin.values

    @property
    def unary(self) -> NDArray[np.float64]:
        """All unary scores, to be read only."""
        return self._own_unary().values if self.base.unary is None or self._unary is not None else self.base.unary

    def _own_unary(self) -> Growing[np.float64]:
        if self._unary is None:
            n = int(self.base.cards.sum(dtype=np.int64))
            self._unary = Growing(np.zeros(n) if self.base.unary is None else np.array(self.base.unary))
        return self._unary

    def add_variable(self, card: int) -> None:
        """One more variable, behind all others."""
        end = self.begin[-1] + card
        self._own_unary().append(np.zeros(card))
        self._cards.append(np.array([card], np.int32))
        self._max_card = max(self._max_card, card)
        assert self._begin is not None
        self._begin.append(np.array([end]))

    # -- tables ------------------------------------------------------------------------------------------------

    @property
    def n_tables(self) -> int:
        return self.base.n_tables + len(self.tables)

    @property
    def n_places(self) -> int:
        """Places of factors, empty ones among them."""
        return self.base.n_factors + len(self.factors)

    def table_of(self, place: int) -> int:
        """The number of the table that a factor reads."""
        base = self.base.n_factors
        if place >= base:
            return self.factors[place - base][0]
        return self._replaced[place][0] if place in self._replaced else int(self.base.factor_table[place])

    def sum_at(self, scope: tuple[int, ...]) -> NDArray[np.float64]:
        """A copy of what factors over one variable, or none, have added up to: rows, for `put`."""
        own = self.unary[self.begin[scope[0]] : self.begin[scope[0] + 1]] if scope else [self.constant]
        return np.array([own, *self.leftovers.rows.get(scope[0] if scope else CONSTANT, ())])

    def table(self, index: int) -> HeldTable:
        """A table as it was given."""
        if index in self.roles.rewards:
            return self.roles.rewards[index]
        return self.tables[index - self.base.n_tables] if index >= self.base.n_tables else self.stored.held(index)

    def _add_table(self, table: HeldTable) -> int:
        self.tables.append(table)
        return self.n_tables - 1

    def add_own_table(self, given: ArrayLike | ImplicitTable) -> TableRef:
        """A table that factors share by its handle only: set_table may change it, so that no equal array joins."""
        name = f"table {self.n_tables}"
        if isinstance(given, Potts | AbsDiff | SqDiff):
            table = check_implicit(name, given)
            index = self._add_table(ZERO if is_reward(table) else table)
            if is_reward(table):
                self.roles.rewards[index] = table
            return self.roles.named(index)
        shape = numbers(f"{name}: its table", given).shape
        dense = check_dense(name, given, shape, ())
        if len(shape) < 2:
            raise ModelError(f"{name} has {len(shape)} dimensions; tables to share have two or more")
        return self.roles.named(self._add_table(_own(dense)))

    def share(self, table: HeldTable) -> int:
        """The id of an equal table that nobody named, added now if there is none."""
        known = self.remembered
        if known.ids is None:
            implicit = np.flatnonzero(~self.base.is_dense()).tolist()
            joined = [k for k in (*implicit, *sorted(self.roles.shared)) if k not in self.roles.rewards]
            known.ids = {table_key(self.table(k)): k for k in reversed(joined)}
        key = table_key(table)
        found = known.ids.get(key)
        if found is None:
            found = known.ids[key] = self._add_table(_own(table) if isinstance(table, Dense) else table)
            self.roles.shared.add(found)
        return found

    # -- factors -----------------------------------------------------------------------------------------------

    def add_factor(
        self,
        name: str,
        variables: Sequence[int],
        table: ArrayLike | ImplicitTable | TableRef,
        weight: float,
        transposed: bool,
    ) -> None:
        """One factor; see FactorGraph.add_factor. `name` is how errors call it."""
        scope = self.scope(name, variables)
        if not isfinite(weight):
            raise ModelError(f"{name}: the weight is {weight}; it must be finite")
        named, held = self._given(name, scope, table, transposed)
        if len(scope) < 2 and named is None:
            return self._fold(scope, held, weight, name)
        transposed = transposed and isinstance(held, Dense)  # the others are symmetric
        self._check_fit(name, scope, held, transposed)
        if weight == 0:
            return self._place(None, self._zeros(scope), 1.0, False, scope)
        meant = held if weight > 0 else negate_held(held, name)
        if isinstance(meant, AbsDiff | SqDiff) and is_reward(meant):
            shape = self._shape(scope, False)
            return self._place(None, Dense(expand(meant, *shape).reshape(-1), shape), abs(weight), False, scope)
        if not isinstance(meant, Dense) and weight < 0:
            named = None
        return self._place(named, meant, weight, transposed, scope)

    def remove(self, place: int) -> None:
        """The place stays empty."""
        self.removed.add(place)

    def replace(self, place: int) -> None:
        """The factor that was added last, over the same variables, goes to this place."""
        table, weight, transposed, scope = self.factors.pop()
        if place < self.base.n_factors:
            self._replaced[place] = table, weight, transposed
        else:
            self.factors[place - self.base.n_factors] = table, weight, transposed, scope

    def _given(
        self, name: str, scope: tuple[int, ...], table: ArrayLike | ImplicitTable | TableRef, transposed: bool
    ) -> tuple[int | None, HeldTable]:
        """The number behind a handle, and the table as it was given, checked."""
        if isinstance(table, TableRef):
            index = self.roles.index(table, name)
            return index, self.table(index)
        if isinstance(table, Potts | AbsDiff | SqDiff):
            return None, check_implicit(name, table)
        return None, check_dense(name, table, self._shape(scope, transposed), scope, self.names)

    def _place(
        self, named: int | None, meant: HeldTable, weight: float, transposed: bool, scope: tuple[int, ...]
    ) -> None:
        """Adds the factor with the scores |weight| * meant."""

        def add() -> None:
            if named is None:
                index = self.share(meant)
            elif weight > 0:
                index = named
            else:
                if named not in self.roles.negatives:
                    self.roles.pair(named, self._add_table(meant))
                index = self.roles.negatives[named]
            self.factors.append((index, abs(weight), transposed, scope))

        largest, least = size_of(meant, self._max_card)
        self._change(add, abs(weight) * largest, abs(weight) * least)

    def _fold(self, scope: tuple[int, ...], table: HeldTable, weight: float, name: str) -> None:
        if not isinstance(table, Dense):
            raise ModelError(f"{name}: {type(table).__name__} is pairwise, the factor has {len(scope)} variables")
        with np.errstate(over="ignore"):
            scores = weigh(table.values, weight, name)
        variable = scope[0] if scope else CONSTANT
        old = self.unary[self.begin[variable] : self.begin[variable + 1]] if scope else np.array([self.constant])
        self.put(scope, *self.leftovers.folded(variable, old, scores, name))

    def put(self, scope: tuple[int, ...], scores: NDArray[np.float64], *rest: NDArray[np.float64]) -> None:
        """New unary scores of a variable, or a new constant; `rest` is what rounding took from them, row by row."""

        def put() -> None:
            if scope:
                self._own_unary().values[self.begin[scope[0]] : self.begin[scope[0] + 1]] = scores
            else:
                self.constant = float(scores[0])
            self.leftovers.keep(scope[0] if scope else CONSTANT, rest)

        self._change(put, size_of(Dense(scores, scores.shape), 1)[0], inf)

    def _change(self, change: Callable[[], None], size: float, least: float) -> None:
        """Makes a change that adds at most `size` to a score. Where scores get extreme, the core is asked whether it
        takes the model, and if it does not, nothing has changed."""
        known = self.remembered
        total, smallest = known.largest + size, min(known.least, least)
        if total < _MODEST and smallest >= _NORMAL:
            change()
        else:
            self._try(change)
        known.largest, known.least = total, smallest

    def _try(self, change: Callable[[], None]) -> None:
        roles, n_tables, n_factors = self.roles.copy(), len(self.tables), len(self.factors)
        unary, constant, leftovers = np.array(self.unary), self.constant, self.leftovers.copy()
        try:
            change()
            self.arrays().build()
        except BaseException:
            self.roles.restore(roles)
            del self.tables[n_tables:], self.factors[n_factors:]
            self._unary, self.constant, self.leftovers, self.remembered.ids = Growing(unary), constant, leftovers, None
            raise

    def scope(self, name: str, variables: Sequence[int]) -> tuple[int, ...]:
        try:
            scope = tuple(map(_index, variables))
        except TypeError:
            raise ModelError(f"{name}: variables must be a list of integers, not {variables!r}") from None
        seen: set[int] = set()
        for i in scope:
            if not 0 <= i < len(self.cards):
                raise ModelError(f"{name} refers to variable {i}; there are {len(self.cards)}")
            if i in seen:
                raise ModelError(f"{name} names {variable_text(self.names, i)} twice")
            seen.add(i)
        return scope

    def _shape(self, scope: tuple[int, ...], transposed: bool) -> tuple[int, ...]:
        cards = self.cards
        shape = tuple(int(cards[i]) for i in scope)
        return shape[::-1] if transposed else shape

    def _check_fit(self, name: str, scope: tuple[int, ...], table: HeldTable, transposed: bool) -> None:
        if len(scope) != arity_of(table):
            raise ModelError(f"{name} has {len(scope)} variables, its table has arity {arity_of(table)}")
        if transposed and len(scope) != 2:
            raise ModelError(f"{name}: only a pairwise table can be transposed")
        needed = self._shape(scope, transposed)
        if isinstance(table, Dense) and table.shape != needed:
            those = variables_text(self.names, scope)
            raise ModelError(f"{name}: {those} need a table of shape {needed}, not {table.shape}")

    def _zeros(self, scope: tuple[int, ...]) -> HeldTable:
        shape = self._shape(scope, False)
        return ZERO if len(shape) == 2 else Dense(np.zeros(prod(shape)), shape)

    # -- the whole ---------------------------------------------------------------------------------------------

    def arrays(self) -> ModelArrays:
        """Base and additions as one set of arrays."""
        base, tables, factors = self.base, self.tables, self.factors
        dense = [t for t in tables if isinstance(t, Dense)]
        out = ModelArrays(cards=self.cards, unary=self.unary, constant=self.constant)
        out.table_arity = _joined(base.table_arity, [arity_of(t) for t in tables], np.int32)
        out.dims = _joined(base.dims, [d for t in dense for d in t.shape], np.int32)
        out.values = np.concatenate([base.values, *(t.values for t in dense)]) if dense else base.values
        if base.params is not None or len(dense) < len(tables):
            kinds = [KINDS.get(type(t), DENSE) for t in tables]
            out.table_kind = _joined(_or(base.table_kind, base.n_tables, 0, np.int32), kinds, np.int32)
            params = [v for t in tables for v in ((0.0, 0.0) if isinstance(t, Dense) else implicit_params(t))]
            out.params = _joined(_or(base.params, 2 * base.n_tables, 0, np.float64), params, np.float64)
        out.factor_table = _joined(base.factor_table, [f[0] for f in factors], np.int32)
        if base.factor_weight is not None or any(f[1] != 1 for f in factors):
            weights = [f[1] for f in factors]
            out.factor_weight = _joined(_or(base.factor_weight, base.n_factors, 1, np.float64), weights, np.float64)
        if base.factor_transposed is not None or any(f[2] for f in factors):
            flags = [int(f[2]) for f in factors]
            out.factor_transposed = _joined(_or(base.factor_transposed, base.n_factors, 0, np.uint8), flags, np.uint8)
        if base.var_begin is not None or any(len(f[3]) != 2 for f in factors):
            before, sizes = base.factor_begin(), np.fromiter((len(f[3]) for f in factors), np.int64, len(factors))
            out.var_begin = np.concatenate((before, before[-1] + np.cumsum(sizes)))
        out.vars = _joined(base.vars, [i for f in factors for i in f[3]], np.int32)
        self.leftovers.put(out)
        self._put_replaced(out)
        return out.without(list(self.removed)) if self.removed else out

    def _put_replaced(self, out: ModelArrays) -> None:
        if not self._replaced:
            return
        places, n = np.array(list(self._replaced)), len(out.factor_table)
        tables, weights, flags = zip(*self._replaced.values(), strict=True)
        out.factor_table = np.array(out.factor_table)
        out.factor_table[places] = tables
        out.factor_weight = np.array(_or(out.factor_weight, n, 1, np.float64))
        out.factor_weight[places] = weights
        out.factor_transposed = np.array(_or(out.factor_transposed, n, 0, np.uint8))
        out.factor_transposed[places] = flags


def _index(i: Any) -> int:
    return operator.index(i)


def _own(table: Dense) -> Dense:
    """With scores that are ours: the caller may reuse the array."""
    return Dense(np.array(table.values), table.shape)


def _extent(base: ModelArrays) -> tuple[float, float]:
    """What no sum of the scores exceeds, and what no weighted score but 0 is below."""
    weights = np.ones(1) if base.factor_weight is None or not base.n_factors else base.factor_weight
    unary = 0.0 if base.unary is None else size_of(Dense(base.unary, base.unary.shape), 1)[0]
    largest, least = size_of(Dense(base.values, base.values.shape), 1)
    if base.params is not None and base.table_kind is not None:
        p, kind = np.abs(base.params.reshape(-1, 2)), base.table_kind
        far = float(base.cards.max(initial=1)) ** 2  # no difference is larger, squared or not
        steps = p[kind > POTTS, 0] * np.minimum(1.0, p[kind > POTTS, 1])
        for scores in (p[kind == POTTS].reshape(-1), p[kind > POTTS, 0] * far, steps):
            size = size_of(Dense(scores, scores.shape), 1)
            largest, least = max(largest, size[0]), min(least, size[1])
    factors = base.n_factors * largest * float(weights.max())
    constant = abs(base.constant) if base.constant > -inf else 0.0
    return constant + len(base.cards) * unary + factors, least * float(weights.min())


def _joined(base: NDArray[Any], more: list[Any], dtype: Any) -> NDArray[Any]:
    return np.concatenate((base, np.array(more, dtype))) if more else base


def _or(array: NDArray[Any] | None, n: int, fill: float, dtype: Any) -> NDArray[Any]:
    return np.full(n, fill, dtype) if array is None else array
