"""Builder: collects factors one by one, or in bulk, into ModelArrays; equal tables are stored once.

It also brings what callers may write into what the core takes: weights become positive (a negative weight uses the
negated table), a zero weight becomes a table of zeros, and difference tables that reward distance are written out.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Sequence
from math import inf, isfinite, isnan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.arrays import ABSDIFF, DENSE, POTTS, SQDIFF, ModelArrays, begins
from fginfer.errors import ModelError
from fginfer.tables import AbsDiff, ImplicitTable, Potts, SqDiff, TableRef, expand, negated

KINDS: dict[type[Any], int] = {Potts: POTTS, AbsDiff: ABSDIFF, SqDiff: SQDIFF}
_IMPLICIT: dict[int, type[ImplicitTable]] = {POTTS: Potts, ABSDIFF: AbsDiff, SQDIFF: SqDiff}
AnyTable = NDArray[np.float64] | ImplicitTable
ZERO = Potts(0.0, 0.0)


def table_key(table: AnyTable) -> Any:
    """Equal for tables that are the same bit for bit (0.0 and -0.0 differ, as they do in a file)."""
    if not isinstance(table, np.ndarray):
        return (type(table), *(float.hex(float(v)) for v in implicit_params(table)))
    data = table.tobytes()
    return table.shape, data if len(data) <= 64 else hashlib.blake2b(data, digest_size=20).digest()


def implicit_params(table: ImplicitTable) -> tuple[float, float]:
    if isinstance(table, Potts):
        return float(table.same), float(table.different)
    return float(table.weight), float(table.truncation)


class Builder:
    """The growing part of a FactorGraph. `base` is what is in place already; new tables and factors come after it."""

    def __init__(self, base: ModelArrays, private: set[int], negatives: dict[int, int]) -> None:
        self.base = base
        self.stored = StoredTables(base)
        self.private = private  # tables that are shared through their handle only
        self.negatives = negatives  # table -> the table with the opposite scores
        self.cards = base.cards.tolist()
        self.begin = begins(base.cards)
        self.unary = np.zeros(int(self.begin[-1])) if base.unary is None else np.array(base.unary)
        self.constant = base.constant
        self.tables: list[AnyTable] = []
        self.factors: list[tuple[int, float, bool, tuple[int, ...]]] = []
        self._ids: dict[Any, int] | None = None

    # -- tables ------------------------------------------------------------------------------------------------

    @property
    def n_tables(self) -> int:
        return self.base.n_tables + len(self.tables)

    @property
    def n_factors(self) -> int:
        return self.base.n_factors + len(self.factors)

    def table(self, index: int) -> AnyTable:
        """A stored table."""
        if index >= self.base.n_tables:
            return self.tables[index - self.base.n_tables]
        return self.stored[index]

    def add_table(self, table: AnyTable) -> int:
        """A new table, whether or not an equal one exists."""
        self.tables.append(table)
        return self.n_tables - 1

    def add_own_table(self, given: ArrayLike | ImplicitTable) -> int:
        """A table that factors share by its id only; arrays may be changed later, so that none equal to it joins."""
        name = f"table {self.n_tables}"
        if isinstance(given, Potts | AbsDiff | SqDiff):
            return self.add_table(check_implicit(name, given))
        values = check_dense(name, given, np.shape(given), ())
        if values.ndim < 2:
            raise ModelError(f"{name} has {values.ndim} dimensions; tables to share have two or more")
        index = self.add_table(np.array(values))
        self.private.add(index)
        return index

    def share(self, table: AnyTable) -> int:
        """The id of an equal table, added now if there is none."""
        if self._ids is None:
            self._ids = {}
            for index in range(self.base.n_tables):
                if index not in self.private:
                    self._ids.setdefault(table_key(self.stored[index]), index)
        key = table_key(table)
        found = self._ids.get(key)
        if found is None:
            if isinstance(table, np.ndarray):
                table = np.array(table)  # ours: the caller may reuse the array
            found = self._ids[key] = self.add_table(table)
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
        scope = self._scope(name, variables)
        if not isfinite(weight):
            raise ModelError(f"{name}: the weight is {weight}; it must be finite")
        if isinstance(table, TableRef):
            if not 0 <= table.index < self.n_tables:
                raise ModelError(f"{name}: there is no table {table.index}")
            transposed = transposed and isinstance(self.table(table.index), np.ndarray)
            index = self._signed(name, scope, table.index, weight)
        else:
            ready: AnyTable
            if isinstance(table, Potts | AbsDiff | SqDiff):
                ready, transposed = check_implicit(name, table), False  # symmetric
            else:
                ready = check_dense(name, table, self._shape(scope, transposed), scope)
            if len(scope) < 2:
                return self._fold(scope, ready, weight, name)
            if weight < 0:
                ready = negate(ready, name)
            index = self.share(self._storable(ready, scope, weight))
        stored = self.table(index)
        arity = stored.ndim if isinstance(stored, np.ndarray) else 2
        if len(scope) != arity:
            raise ModelError(f"{name} has {len(scope)} variables, its table has arity {arity}")
        if transposed and arity != 2:
            raise ModelError(f"{name}: only a pairwise table can be transposed")
        if isinstance(stored, np.ndarray) and stored.shape != self._shape(scope, transposed):
            needed = self._shape(scope, transposed)
            raise ModelError(f"{name}: variables {list(scope)} need a table of shape {needed}, not {stored.shape}")
        self.factors.append((index, abs(weight) or 1.0, transposed, scope))
        return None

    def _scope(self, name: str, variables: Sequence[int]) -> tuple[int, ...]:
        try:
            scope = tuple(map(_index, variables))
        except TypeError:
            raise ModelError(f"{name}: variables must be a list of integers, not {variables!r}") from None
        for position, i in enumerate(scope):
            if not 0 <= i < len(self.cards):
                raise ModelError(f"{name} refers to variable {i}; there are {len(self.cards)}")
            if i in scope[:position]:
                raise ModelError(f"{name} names variable {i} twice")
        return scope

    def _shape(self, scope: tuple[int, ...], transposed: bool) -> tuple[int, ...]:
        shape = tuple(self.cards[i] for i in scope)
        return shape[::-1] if transposed else shape

    def _fold(self, scope: tuple[int, ...], table: AnyTable, weight: float, name: str) -> None:
        if not isinstance(table, np.ndarray):
            raise ModelError(f"{name}: {type(table).__name__} is pairwise, the factor has {len(scope)} variables")
        with np.errstate(over="ignore"):
            scores = weigh(table, weight, name)
            old = self.unary[self.begin[scope[0]] : self.begin[scope[0] + 1]] if scope else np.array(self.constant)
            new = old + scores
        if not bool(((new > -inf) | (old == -inf) | (scores == -inf)).all()) or bool((new == inf).any()):
            raise ModelError(f"{name}: the sum of the scores folded so far overflows")
        if scope:
            old[:] = new
        else:
            self.constant = float(new)

    def _storable(self, table: AnyTable, scope: tuple[int, ...], weight: float) -> AnyTable:
        if weight == 0:
            return ZERO if len(scope) == 2 else np.zeros(tuple(self.cards[i] for i in scope))
        if isinstance(table, AbsDiff | SqDiff) and table.weight < 0 and len(scope) == 2:
            return expand(table, self.cards[scope[0]], self.cards[scope[1]])
        return table

    def _signed(self, name: str, scope: tuple[int, ...], index: int, weight: float) -> int:
        """The id of the table a weighted factor reads: the one meant, its negative, or zeros."""
        if weight > 0:
            return index
        if weight == 0:
            return self.share(self._storable(ZERO, scope, weight))
        opposite = negate(self.table(index), name)
        if not isinstance(opposite, np.ndarray):
            return self.share(self._storable(opposite, scope, weight))
        if index not in self.negatives:
            self.negatives[index] = self.add_table(opposite)
            self.private.add(self.negatives[index])
        return self.negatives[index]

    # -- the whole ---------------------------------------------------------------------------------------------

    def arrays(self) -> ModelArrays:
        """Base and additions as one set of arrays."""
        base, tables, factors = self.base, self.tables, self.factors
        dense = [t for t in tables if isinstance(t, np.ndarray)]
        out = ModelArrays(cards=base.cards, unary=self.unary, constant=self.constant)
        arity = [t.ndim if isinstance(t, np.ndarray) else 2 for t in tables]
        out.table_arity = _joined(base.table_arity, arity, np.int32)
        out.dims = _joined(base.dims, [d for t in dense for d in t.shape], np.int32)
        out.values = np.concatenate([base.values, *(t.ravel() for t in dense)]) if dense else base.values
        if base.params is not None or len(dense) < len(tables):
            kinds = [KINDS.get(type(t), DENSE) for t in tables]
            out.table_kind = _joined(_or(base.table_kind, base.n_tables, 0, np.int32), kinds, np.int32)
            params = [v for t in tables for v in ((0.0, 0.0) if isinstance(t, np.ndarray) else implicit_params(t))]
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
        return out


def _index(i: Any) -> int:
    return operator.index(i)


def _joined(base: NDArray[Any], more: list[Any], dtype: Any) -> NDArray[Any]:
    return np.concatenate((base, np.array(more, dtype))) if more else base


def _or(array: NDArray[Any] | None, n: int, fill: float, dtype: Any) -> NDArray[Any]:
    return np.full(n, fill, dtype) if array is None else array


class StoredTables:
    """The tables of a model one by one: an array (a view), or the implicit table it stands for."""

    def __init__(self, arrays: ModelArrays) -> None:
        self.arrays = arrays
        self.dims_begin, self.values_begin = arrays.dims_begin(), arrays.values_begin()

    def __len__(self) -> int:
        return self.arrays.n_tables

    def __getitem__(self, index: int) -> AnyTable:
        a = self.arrays
        kind = DENSE if a.table_kind is None else int(a.table_kind[index])
        if kind != DENSE:
            assert a.params is not None
            p0, p1 = map(float, a.params[2 * index : 2 * index + 2])
            return _IMPLICIT[kind](p0, p1)
        shape = a.dims[self.dims_begin[index] : self.dims_begin[index + 1]]
        values: NDArray[np.float64] = a.values[self.values_begin[index] : self.values_begin[index + 1]]
        return values.reshape(tuple(shape))


def check_implicit(name: str, table: ImplicitTable) -> ImplicitTable:
    """Refuses parameters that would give NaN or +inf."""
    p0, p1 = implicit_params(table)
    if isinstance(table, Potts):
        if isnan(p0) or isnan(p1) or inf in (p0, p1):
            raise ModelError(f"{name}: Potts scores must be finite or -inf, not {p0} and {p1}")
    elif not isfinite(p0) or not p1 > 0:
        raise ModelError(
            f"{name}: {type(table).__name__} needs a finite weight and a truncation > 0, not {p0} and {p1}"
        )
    return table


def check_dense(name: str, table: ArrayLike, shape: tuple[int, ...], scope: tuple[int, ...]) -> NDArray[np.float64]:
    """The table as float64 in the shape its variables need; a flat table of the right size will do."""
    try:
        values = np.ascontiguousarray(table, np.float64)
        if table is None:  # which numpy takes for a NaN
            raise TypeError
    except (TypeError, ValueError):
        raise ModelError(f"{name}: its table is not an array of numbers") from None
    size = 1
    for k in shape:
        size *= k  # Python integers: no overflow
    if values.size != size or (values.shape != shape and values.ndim > 1):
        of = f"variables {list(scope)} need a table" if scope else "it must be a table"
        raise ModelError(f"{name}: {of} of shape {shape}, that is {size} entries, not {values.shape}")
    values = values.reshape(shape)
    if not bool((values < inf).all()):
        at = tuple(map(int, np.argwhere(~(values < inf))[0]))
        what = "NaN" if isnan(values[at]) else "+inf"
        raise ModelError(f"{name}: entry {at} is {what}; scores must be finite or -inf")
    return values


def negate(table: AnyTable, name: str) -> AnyTable:
    """The opposite scores; a forbidden state has none."""
    if isinstance(table, np.ndarray):
        if bool((table == -inf).any()):
            raise ModelError(f"{name}: a negative weight cannot be applied to a table with forbidden states (-inf)")
        return 0.0 - table
    if isinstance(table, Potts) and -inf in (table.same, table.different):
        raise ModelError(f"{name}: a negative weight cannot be applied to a table with forbidden states (-inf)")
    return negated(table)


def weigh(table: NDArray[np.float64], weight: float, name: str) -> NDArray[np.float64]:
    """weight * table, where a weight of zero gives zeros even for forbidden states."""
    if weight == 1:
        return table
    if weight == 0:
        return np.zeros_like(table)
    if weight < 0:
        negate(table, name)
    scores: NDArray[np.float64] = weight * table
    if not bool(np.isfinite(scores[table > -inf]).all()):
        raise ModelError(f"{name}: weight {weight:g} times its table overflows")
    return scores
