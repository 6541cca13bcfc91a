"""The factors of a model in groups of one shape, so that numpy does the same to all of a group at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import ModelArrays
from fginfer.table_values import Dense, StoredTables
from fginfer.tables import expand

Reals = NDArray[np.float64]
Whole = NDArray[np.int64]


class Alike(NamedTuple):
    """Factors whose variables have the same label counts, place by place."""

    factors: Whole
    variables: Whole  # a row a factor
    tables: Reals  # scores times weight, a table a factor


def factors_by_shape(arrays: ModelArrays) -> list[Alike]:
    """All factors that have variables."""
    begin, arity = arrays.factor_begin(), np.diff(arrays.factor_begin())
    stored, cards, out = StoredTables(arrays), arrays.cards.astype(np.int64), list[Alike]()
    for n in np.unique(arity[arity > 0]).tolist():
        factors = np.flatnonzero(arity == n)
        scopes = arrays.vars[begin[factors][:, None] + np.arange(n)].astype(np.int64)
        shapes, which = np.unique(cards[scopes], axis=0, return_inverse=True)
        for k, shape in enumerate(shapes.tolist()):
            mine = which.reshape(-1) == k
            out.append(Alike(factors[mine], scopes[mine], _tables(stored, factors[mine], tuple(shape))))
    return out


def _tables(stored: StoredTables, factors: Whole, shape: tuple[int, ...]) -> Reals:
    arrays, size = stored.arrays, int(np.prod(shape))
    distinct, which = np.unique(arrays.factor_table[factors], return_inverse=True)
    which = which.reshape(-1)
    flat, is_listed = np.empty((len(distinct), size)), np.ones(len(distinct), bool)
    for k, table in enumerate(distinct.tolist()):
        held = stored.held(table)
        is_listed[k] = isinstance(held, Dense)
        flat[k] = held.values if isinstance(held, Dense) else expand(held, shape[0], shape[1]).reshape(-1)
    out: Reals = flat[which].reshape(len(factors), *shape)
    if arrays.factor_transposed is not None:
        turned = arrays.factor_transposed[factors].astype(bool) & is_listed[which]  # the others are symmetric
        if turned.any():
            out[turned] = np.swapaxes(flat[which[turned]].reshape(-1, shape[1], shape[0]), 1, 2)
    if arrays.factor_weight is not None:
        weight = arrays.factor_weight[factors]
        out[weight == 0] = 0.0  # nothing is forbidden either
        out *= weight.reshape(-1, *(1 for _ in shape))
    return out
