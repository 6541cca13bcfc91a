"""Joining: the labels of parts near to their separators are chosen again, given those of all other variables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import DENSE, ModelArrays, begins
from fginfer.core.solver import NativeSolver, native_settings
from fginfer.parts.part import Labels, Piece
from fginfer.parts.rules import RULES
from fginfer.parts.shard import ragged


def merged(pieces: list[Piece]) -> tuple[NDArray[np.int64], ModelArrays, Labels]:
    """The strips of all parts as one model: the numbers of its variables, the model, the labels at hand."""
    numbers = np.unique(np.concatenate([np.zeros(0, np.int64), *(p.variables for p in pieces)]))
    cards, labels = np.zeros(len(numbers), np.int32), np.zeros(len(numbers), np.int32)
    rows = [np.searchsorted(numbers, p.variables) for p in pieces]
    for at, p in zip(rows, pieces, strict=True):
        cards[at], labels[at] = p.arrays.cards, p.labels
    begin = begins(cards)
    unary = np.zeros(int(begin[-1]))
    for at, p in zip(rows, pieces, strict=True):
        assert p.arrays.unary is not None
        unary[ragged(begin, at)] += p.arrays.unary
    out = _concatenated([p.arrays for p in pieces])
    out.cards, out.unary = cards, unary
    scopes = [at[p.arrays.vars].astype(np.int32) for at, p in zip(rows, pieces, strict=True)]
    out.vars = np.concatenate([np.zeros(0, np.int32), *scopes])
    return numbers, out, labels


def _concatenated(models: list[ModelArrays]) -> ModelArrays:
    """All tables and factors, one model after the other."""
    models = [a for a in models if a.n_tables]
    out = ModelArrays(np.zeros(0, np.int32))
    if not models:
        return out
    n = [a.n_tables for a in models]
    first = np.cumsum([0, *n])
    kinds = [
        np.zeros(k, np.int32) + DENSE if a.table_kind is None else a.table_kind for a, k in zip(models, n, strict=True)
    ]
    params = [np.zeros(2 * k) if a.params is None else a.params for a, k in zip(models, n, strict=True)]
    out.table_kind, out.params = np.concatenate(kinds), np.concatenate(params)
    out.table_arity = np.concatenate([a.table_arity for a in models])
    out.dims, out.values = np.concatenate([a.dims for a in models]), np.concatenate([a.values for a in models])
    tables = [a.factor_table + int(k) for a, k in zip(models, first[:-1], strict=True)]
    out.factor_table = np.concatenate(tables).astype(np.int32)
    if any(a.factor_weight is not None for a in models):
        out.factor_weight = np.concatenate([_or(a.factor_weight, a.n_factors, 1.0, np.float64) for a in models])
    if any(a.factor_transposed is not None for a in models):
        out.factor_transposed = np.concatenate([_or(a.factor_transposed, a.n_factors, 0, np.uint8) for a in models])
    if any(a.var_begin is not None for a in models):
        out.var_begin = begins(np.concatenate([np.diff(a.factor_begin()) for a in models]))
    return out


def _or(given: NDArray[np.generic] | None, n: int, value: float, kind: type) -> NDArray[np.generic]:
    return np.full(n, value, kind) if given is None else given


def relabel(arrays: ModelArrays, labels: Labels, seed: int) -> Iterator[Labels | None]:
    """Labels that are no worse than these, with pauses (None) on the way, the labels last. The work is counted, so that
    time changes nothing."""
    model = arrays.build()
    for method, iterations in (("trws", RULES.strip_sweeps), ("search", RULES.strip_search)):
        if model.n_factors == 0 and method == "search":
            continue
        solver = NativeSolver(model, native_settings(method, seed=seed, gap=0.0, max_iterations=iterations))
        solver.offer(labels)
        while solver.status == "running":
            solver.run(RULES.slice_seconds, -1)
            yield None
        found = solver.labels()
        labels = labels if found is None else found
        if solver.status == "optimal":
            break
    yield labels
