"""log Z and marginals of a factor graph, exactly, by bucket elimination where it fits into memory.

P(x) = exp(score(x)) / Z. Forests of pairwise factors go to the sum-product oracle of the core
(:mod:`fginfer.forest_marginals`). For the others there is the sum-product twin of the elimination that solves for the
best labeling: buckets send their sums to the bucket of their first later variable, and beliefs come back the same way.
All in logs; -inf forbids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from fginfer.condition import Conditioned
from fginfer.errors import ModelError, SettingsError, SolverError
from fginfer.forest_marginals import forest_marginals
from fginfer.graph import FactorGraph
from fginfer.options import check_number
from fginfer.tables import expand

__all__ = ["Marginals", "marginals"]

Reals = NDArray[np.float64]

NOTHING = "no labeling is allowed: the probabilities do not exist"


@dataclass(frozen=True)
class Marginals:
    """log Z, and P(variable = label) as one array a variable."""

    log_z: float
    variables: list[Reals]


@dataclass
class _Bucket:
    """What is summed when `variable` goes: its scope (the variable first), the tables in it, the message it sent."""

    variable: int
    scope: tuple[int, ...]
    table: Reals
    parent: int | None = None
    message: Reals | None = None


def marginals(graph: FactorGraph, memory: float = 1 << 30, *, evidence: Mapping[int, int] | None = None) -> Marginals:
    """log Z and the marginals of all variables; SolverError, before anything is summed, where tables of more than
    `memory` bytes would be needed, and ModelError where no labeling is allowed.

    With evidence ({variable: label}) the marginals are those given what was seen, and Z sums over the labelings that
    agree with it: log P(evidence) is this log_z minus the one without evidence.

    >>> from fginfer import FactorGraph, marginals
    >>> graph = FactorGraph([2, 2])
    >>> graph.add_factor([0, 1], [[1.0, 0.0], [0.0, 1.0]])
    >>> found = marginals(graph)
    >>> round(found.log_z, 6), found.variables[0].tolist()
    (2.006409, [0.5, 0.5])
    """
    if not isinstance(graph, FactorGraph):
        raise SettingsError(f"marginals takes a FactorGraph, not {type(graph).__name__}; fginfer.read reads a file")
    check_number("memory", memory, "a positive number of bytes")
    if memory <= 0:
        raise SettingsError(f"memory must be a positive number of bytes, not {memory!r}")
    if evidence is not None:
        return _given(graph.condition(evidence), graph.cards, memory)
    cards = graph.cards
    factors = [(tuple(range(i, i + 1)), graph.unary(i)) for i in range(graph.n_variables)]
    for factor in graph.factors():
        scope = tuple(int(v) for v in (factor.variables[::-1] if factor.transposed else factor.variables))
        table = graph.table(factor.table)
        dense = table if isinstance(table, np.ndarray) else expand(table, *(int(cards[v]) for v in scope))
        factors.append((scope, factor.weight * dense if factor.weight != 1.0 else dense))
    forest = forest_marginals(factors, cards, memory)
    if forest is not None:
        log_z = graph.constant + forest[0]
        if log_z == -inf:
            raise ModelError(NOTHING)
        return Marginals(log_z, forest[1])
    order = _order([scope for scope, _ in factors], cards, memory)
    buckets = _upward(factors, order, cards)
    log_z = graph.constant
    for bucket in buckets:
        if bucket.parent is None:
            log_z += float(_log_sum(bucket.table, 0))
    if log_z == -inf:
        raise ModelError(NOTHING)
    return Marginals(log_z, _downward(buckets, cards))


def _given(given: Conditioned, cards: NDArray[np.int32], memory: float) -> Marginals:
    """Marginals of all variables from those that are free: the others have the label that was seen."""
    rest = marginals(given.graph, memory)
    variables = [np.zeros(card) for card in cards]
    for variable, label in given.evidence.items():
        variables[variable][label] = 1.0
    for variable, p in zip(given.free.tolist(), rest.variables, strict=True):
        variables[variable] = p
    return Marginals(rest.log_z, variables)


def _order(scopes: Sequence[tuple[int, ...]], cards: NDArray[np.int32], memory: float) -> list[int]:
    """Variables by least table first, as they are eliminated."""
    beside: list[set[int]] = [set() for _ in cards]
    for scope in scopes:
        for v in scope:
            beside[v].update(scope)
    for v, others in enumerate(beside):
        others.discard(v)

    def size(v: int) -> float:
        return float(prod(float(cards[u]) for u in (v, *beside[v])))

    sizes = [size(v) for v in range(len(cards))]
    queue = [(size, v) for v, size in enumerate(sizes)]  # also of sizes that have changed since: those are passed over
    heapify(queue)
    gone, order, total = set[int](), list[int](), 0.0
    while queue:
        least, v = heappop(queue)
        if v in gone or least != sizes[v]:
            continue
        total += 16 * least
        if total > memory:
            raise SolverError(f"exact marginals need tables of {total:.3g} bytes and more, the limit is {memory:.3g}")
        order.append(v)
        gone.add(v)
        for u in beside[v]:
            beside[u].discard(v)
            beside[u].update(w for w in beside[v] if w != u)
        for u in beside[v]:
            sizes[u] = size(u)
            heappush(queue, (sizes[u], u))
    return order


def _upward(
    factors: list[tuple[tuple[int, ...], Reals]], order: list[int], cards: NDArray[np.int32]
) -> list[_Bucket]:  # fmt: skip
    place = {v: k for k, v in enumerate(order)}
    waiting: list[list[tuple[tuple[int, ...], Reals]]] = [[] for _ in order]
    for scope, table in factors:
        waiting[min(place[v] for v in scope)].append((scope, table))
    buckets: list[_Bucket] = []
    for k, v in enumerate(order):
        later = sorted({u for scope, _ in waiting[k] for u in scope if u != v}, key=lambda u: place[u])
        scope = (v, *later)
        table = np.zeros([int(cards[u]) for u in scope])
        for own, part in waiting[k]:
            table = table + _spread(part, own, scope)
        bucket = _Bucket(v, scope, table)
        if later:
            bucket.message = _log_sum(table, 0)
            bucket.parent = place[later[0]]
            waiting[bucket.parent].append((tuple(later), bucket.message))
        buckets.append(bucket)
    return buckets


def _downward(buckets: list[_Bucket], cards: NDArray[np.int32]) -> list[Reals]:
    """Beliefs from the last bucket back: a bucket's table, times what its parent believes over what it sent."""
    out: list[Reals] = [np.zeros(int(card)) for card in cards]
    for bucket in reversed(buckets):
        belief = bucket.table
        if bucket.parent is not None:
            parent, rest = buckets[bucket.parent], bucket.scope[1:]
            assert bucket.message is not None
            gone = tuple(k for k, u in enumerate(parent.scope) if u not in rest)
            kept = tuple(u for u in parent.scope if u in rest)
            above = _spread(_log_sum(parent.table, gone), kept, rest)
            with np.errstate(invalid="ignore"):
                belief = belief + np.where(above == -inf, -inf, above - bucket.message)
        bucket.table = belief
        own = _log_sum(belief, tuple(range(1, belief.ndim)))
        p = np.exp(own - own.max())
        out[bucket.variable] = p / p.sum()
    return out


def _spread(table: Reals, scope: tuple[int, ...], into: tuple[int, ...]) -> Reals:
    """The table with its axes where `into` has them, others of size one."""
    axes = sorted(range(len(scope)), key=lambda k: into.index(scope[k]))
    shape = [1] * len(into)
    for k in axes:
        shape[into.index(scope[k])] = table.shape[k]
    return table.transpose(axes).reshape(shape)


def _log_sum(table: Reals, axes: int | tuple[int, ...]) -> Reals:
    top = table.max(axis=axes, keepdims=True) if axes != () else table
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        out: Reals = np.log(np.exp(table - safe).sum(axis=axes)) + safe.squeeze(axes)
    return out
