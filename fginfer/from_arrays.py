"""Models from arrays without a Python loop over factors: what FactorGraph.from_arrays does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.arrays import DENSE, ModelArrays
from fginfer.errors import ModelError
from fginfer.names import Names, variable_text
from fginfer.options import is_number
from fginfer.table_roles import TableRoles
from fginfer.table_values import KINDS, ZERO, AnyTable, check_implicit, implicit_params, is_reward, negate, numbers
from fginfer.tables import AbsDiff, ImplicitTable, Potts, SqDiff, expand


def bulk_arrays(
    cards: NDArray[np.int32],
    unaries: ArrayLike | Sequence[ArrayLike] | None,
    edges: ArrayLike | None,
    table_ids: ArrayLike | None,
    tables: ArrayLike | Sequence[ArrayLike | ImplicitTable] | ImplicitTable | None,
    weights: ArrayLike | None,
    transposed: ArrayLike | None,
    constant: float,
) -> tuple[ModelArrays, TableRoles]:
    """The arrays, and what is to be known about their tables: which is the negative of which. None is shared."""
    if not is_number(constant):
        raise ModelError(f"the constant must be a number, not {constant!r}")
    unary = None if unaries is None else unary_array(cards, unaries)
    out = ModelArrays(cards=cards, unary=unary, constant=float(constant))
    if edges is None:
        if any(given is not None for given in (table_ids, tables, weights, transposed)):
            raise ModelError("tables, table_ids, weights and transposed need edges")
        return out, TableRoles()
    scopes = _integers(edges, "edges")
    if scopes.size == 0:
        scopes = scopes.reshape(0, scopes.shape[1] if scopes.ndim == 2 and scopes.shape[1] >= 2 else 2)
    if scopes.ndim != 2 or scopes.shape[1] < 2:
        raise ModelError(f"edges must have one row of two or more variables per factor, not shape {scopes.shape}")
    n, arity = scopes.shape
    _check_range(scopes, len(cards), "variable")
    out.vars = scopes.astype(np.int32, copy=False).reshape(-1)
    if arity != 2:
        out.var_begin = np.arange(n + 1, dtype=np.int64) * arity
    store = _Store(tables)
    out.factor_table = _table_ids(table_ids, n, len(store))
    if transposed is not None:
        flags = np.asarray(transposed)
        if flags.shape != (n,):
            raise ModelError(f"transposed must have {n} entries, not shape {flags.shape}")
        if flags.size and flags.dtype.kind not in "biu":
            raise ModelError(f"transposed must be True or False for each factor, not of type {flags.dtype}")
        out.factor_transposed = flags.astype(bool).astype(np.uint8)
    if weights is not None:
        _weigh(out, store, weights, scopes)
    _expand_rewards(out, store, scopes)
    store.into(out)
    return out, store.roles


class _Store:
    """Tables as given: one stacked array stays one array; only tables that are added are handled one by one."""

    def __init__(self, tables: Any) -> None:
        self.stacked: NDArray[np.float64] | None = None
        self.added: list[AnyTable] = []
        self.roles = TableRoles()
        if tables is None:
            raise ModelError("edges need tables")
        if isinstance(tables, Potts | AbsDiff | SqDiff):
            self.added = [check_implicit("table 0", tables)]
        elif isinstance(tables, np.ndarray) and tables.dtype != object:
            if tables.ndim < 3:
                raise ModelError(
                    f"tables must be a list, or an array (tables, labels, labels), not of shape {tables.shape}"
                )
            self.stacked = numbers("tables", tables)
        else:
            try:
                listed = list(tables)
            except TypeError:
                raise ModelError(f"tables must be a list of tables, not {tables!r}") from None
            self.added = [_table(t, k) for k, t in enumerate(listed)]

    def __len__(self) -> int:
        return (0 if self.stacked is None else len(self.stacked)) + len(self.added)

    def __getitem__(self, index: int) -> AnyTable:
        if self.stacked is None:
            return self.added[index]
        return self.stacked[index] if index < len(self.stacked) else self.added[index - len(self.stacked)]

    def add(self, table: AnyTable) -> int:
        self.added.append(table)
        return len(self) - 1

    def into(self, out: ModelArrays) -> None:
        """Writes the tables into the arrays."""
        stacked = np.zeros((0, 1, 1)) if self.stacked is None else self.stacked
        t, dense = len(stacked), [x for x in self.added if isinstance(x, np.ndarray)]
        arity = [x.ndim if isinstance(x, np.ndarray) else 2 for x in self.added]
        out.table_arity = np.concatenate((np.full(t, stacked.ndim - 1, np.int32), np.array(arity, np.int32)))
        shape, shapes = np.array(stacked.shape[1:], np.int32), [d for x in dense for d in x.shape]
        out.dims = np.concatenate((np.tile(shape, t), np.array(shapes, np.int32)))
        filled = [x.reshape(-1) for x in (stacked, *dense) if x.size]
        out.values = filled[0] if len(filled) == 1 else np.concatenate([np.zeros(0), *filled])  # one alone: no copy
        if len(dense) < len(self.added):
            out.table_kind = np.zeros(len(self), np.int32)
            out.table_kind[t:] = [KINDS.get(type(x), DENSE) for x in self.added]
            out.params = np.zeros(2 * len(self))
            pairs = ((0.0, 0.0) if isinstance(x, np.ndarray) else implicit_params(x) for x in self.added)
            out.params[2 * t :] = [v for pair in pairs for v in pair]


def _table(table: Any, index: int) -> AnyTable:
    if isinstance(table, Potts | AbsDiff | SqDiff):
        return check_implicit(f"table {index}", table)
    return numbers(f"table {index}", table)


def _integers(given: ArrayLike, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(given)
    except ValueError:
        raise ModelError(f"{name} must be an array of integers; its rows differ in length") from None
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ModelError(f"{name} must be integers (the numbers of variables, tables ...), not {array.dtype}")
    return array


def _check_range(ids: NDArray[Any], n: int, what: str) -> None:
    if ids.size and (ids.min() < 0 or ids.max() >= n):
        factor = int(np.argwhere((ids < 0) | (ids >= n))[0][0])
        bad = np.atleast_1d(ids[factor])
        raise ModelError(f"factor {factor} refers to {what} {int(bad[(bad < 0) | (bad >= n)][0])}; there are {n}")


def unary_array(
    cards: NDArray[np.int32], unaries: Any, names: Names | None = None, variables: NDArray[np.int32] | None = None
) -> NDArray[np.float64]:
    """All unary scores one after the other; see FactorGraph.from_arrays for the ways to give them.

    `cards` are those of `variables`, or of all.
    """
    if not isinstance(unaries, np.ndarray) and isinstance(unaries, Sequence) and not isinstance(unaries, str):
        rows = [numbers(f"unary table {i}", row) for i, row in enumerate(unaries)]
        if any(row.ndim == 1 for row in rows):
            if len(rows) != len(cards):
                raise ModelError(f"{len(rows)} unary tables are given for {len(cards)} variables")
            for i, row in enumerate(rows):
                if row.shape != (cards[i],):
                    who = variable_text(names, i if variables is None else int(variables[i]))
                    raise ModelError(f"{who} has {cards[i]} labels, its unary table has shape {row.shape}")
            return np.concatenate(rows)
    flat = numbers("unaries", unaries)
    total, labels = int(cards.sum(dtype=np.int64)), int(cards[0]) if len(cards) else 0
    uniform = bool((cards == labels).all())
    if flat.shape != (total,) and not (uniform and flat.shape == (len(cards), labels)):
        or_rows = f" or {(len(cards), labels)}" if uniform else ""
        raise ModelError(
            f"unaries must hold one score per label, {total} in all, in the shape ({total},){or_rows}, not {flat.shape}"
        )
    return flat.reshape(-1)


def variables_array(variables: Any, n: int, number: Callable[[Any], int]) -> NDArray[np.int32]:
    """Numbers of n variables, each named once; `number` finds that of one that may be called by its name."""
    if isinstance(variables, str):
        raise ModelError(f"variables must be a list of variables, not {variables!r}")
    if isinstance(variables, np.ndarray) and variables.dtype.kind in "iu" and variables.ndim == 1:
        which = variables.astype(np.int64)
    else:
        which = np.array([number(v) for v in variables], np.int64)
    if len(which) and not 0 <= which.min() <= which.max() < n:
        wrong = which.min() if which.min() < 0 else which.max()
        raise ModelError(f"there is no variable {wrong}; there are {n}")
    if len(np.unique(which)) < len(which):
        raise ModelError("a variable is listed twice")
    return which.astype(np.int32)


def _table_ids(table_ids: ArrayLike | None, n: int, n_tables: int) -> NDArray[np.int32]:
    if table_ids is None:
        if n_tables == 1:
            return np.zeros(n, np.int32)
        if n_tables != n:
            raise ModelError(f"{n_tables} tables for {n} factors: say which factor reads which table with table_ids")
        return np.arange(n, dtype=np.int32)
    ids = _integers(table_ids, "table_ids")
    if ids.shape != (n,):
        raise ModelError(f"table_ids must have {n} entries, not shape {ids.shape}")
    _check_range(ids, n_tables, "table")
    return ids.astype(np.int32)


def _weigh(out: ModelArrays, store: _Store, weights: ArrayLike, scopes: NDArray[Any]) -> None:
    """Positive weights as they are; negative ones on negated tables; zero ones on a table of zeros."""
    n, arity = scopes.shape
    w = numbers("weights", weights)
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.shape != (n,):
        raise ModelError(f"weights must have {n} entries, not shape {w.shape}")
    if n and not bool(np.isfinite(w).all()):
        factor = int(np.argmin(np.isfinite(w)))
        raise ModelError(f"factor {factor} has weight {w[factor]}; it must be finite")
    negative = w < 0
    if negative.any():
        used = np.unique(out.factor_table[negative])
        remap = np.zeros(len(store), np.int32)
        for t in used.tolist():
            remap[t] = store.add(negate(store[t], f"table {t}"))
            store.roles.pair(t, int(remap[t]))
        out.factor_table = np.where(negative, remap[out.factor_table], out.factor_table)
    zero = w == 0
    if zero.any():
        if arity == 2:
            out.factor_table[zero] = store.add(ZERO)
        else:
            shapes = {tuple(out.cards[row].tolist()) for row in scopes[zero]}
            ids = {shape: store.add(np.zeros(shape)) for shape in shapes}
            out.factor_table[zero] = [ids[tuple(out.cards[row].tolist())] for row in scopes[zero]]
    if bool((w != 1).any()):
        out.factor_weight = np.where(zero, 1.0, np.abs(w))


def _expand_rewards(out: ModelArrays, store: _Store, scopes: NDArray[Any]) -> None:
    """A difference table with a negative weight rewards distance; it is written out once per pair of label counts."""
    first = 0 if store.stacked is None else len(store.stacked)
    rewards = [t for t in range(first, len(store)) if is_reward(store[t])]
    for t in rewards:
        table = store[t]
        users = np.flatnonzero(out.factor_table == t)
        shapes = out.cards[scopes[users]]
        if out.factor_transposed is not None:
            out.factor_transposed[users] = 0  # symmetric
        assert isinstance(table, AbsDiff | SqDiff)
        store.added[t - first], store.roles.rewards[t] = ZERO, table  # keeps the ids in place
        distinct, which = np.unique(shapes, axis=0, return_inverse=True)
        ids = np.array([store.add(expand(table, int(r), int(c))) for r, c in distinct.tolist()], np.int32)
        out.factor_table[users] = ids[which.reshape(-1)]


def grid_arrays(
    shape: tuple[int, ...],
    unary: ArrayLike,
    pairwise: ArrayLike | ImplicitTable,
    weights: Sequence[ArrayLike] | None,
) -> dict[str, Any]:
    """What from_arrays is given for FactorGraph.grid."""
    if isinstance(shape, Integral):
        raise ModelError(f"grid takes a shape such as (480, 640), not {shape}; a chain of {shape} has shape ({shape},)")
    try:
        size = tuple(int(n) for n in shape)
        scores = np.asarray(unary, np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"grid takes a shape such as (480, 640), then unary scores as one array: {error}") from None
    if not size or min(size) < 1:
        raise ModelError(f"a grid needs a shape of positive numbers, not {shape!r}")
    if scores.shape[:-1] != size or scores.shape[-1] < 1:
        raise ModelError(f"unary must have the shape ({', '.join(map(str, size))}, labels), not {scores.shape}")
    if not isinstance(pairwise, ImplicitTable) and np.ndim(pairwise) != 2:
        raise ModelError("pairwise must be a table (labels, labels), or an implicit one such as Potts(0, -1)")
    if weights is not None and len(weights) != len(size):
        raise ModelError(f"weights must hold one array per axis, {len(size)} in all, not {len(weights)}")
    pixel = np.arange(int(np.prod(size))).reshape(size)
    edges, factors = [], []
    for axis in range(len(size)):
        first = np.delete(pixel, -1, axis).reshape(-1)
        edges.append(np.stack([first, np.delete(pixel, 0, axis).reshape(-1)], 1))
        if weights is not None:
            wanted = tuple(n - (k == axis) for k, n in enumerate(size))
            given = np.asarray(weights[axis], np.float64)
            if given.ndim and given.shape != wanted:
                raise ModelError(f"weights of axis {axis} must have the shape {wanted}, not {given.shape}")
            factors.append(np.broadcast_to(given, wanted).reshape(-1))
    labels = scores.shape[-1]
    return {
        "cards": np.full(pixel.size, labels),
        "unaries": scores.reshape(-1, labels),
        "edges": np.concatenate(edges),
        "tables": [pairwise],
        "weights": None if weights is None else np.concatenate(factors),
    }
