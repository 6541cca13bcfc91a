"""describe(): what kind of model a graph is, found by passes over its arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix  # type: ignore[import-untyped, unused-ignore]
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped, unused-ignore]

from fginfer.core.arrays import POTTS, ModelArrays
from fginfer.html import html_table
from fginfer.rules import Rule

if TYPE_CHECKING:
    from fginfer.graph import FactorGraph


@dataclass(frozen=True)
class Description:
    """Sizes and properties of a model. Factors over one or no variable are folded and show in `factors` only."""

    variables: int
    factors: int  # as given
    interactions: int  # factors over two or more variables
    tables: int  # distinct tables that they share
    implicit_tables: int  # how many of these are Potts and (truncated) differences, which are never expanded
    table_entries: int  # distinct scores stored
    max_labels: int
    max_arity: int
    arities: dict[int, int]  # arity -> interactions
    labels: dict[int, int]  # label count -> variables
    components: int
    forest: bool  # no cycles: solvable exactly in one sweep (factors over the same variables count once)
    forbidden_labels: int  # unary scores that are -inf
    constraints: int  # interactions and rules that forbid a state
    binary: bool  # at most two labels everywhere
    submodular: (
        bool | None
    )  # binary and solvable by one max-flow; None where some interaction has three variables or more
    memory: int  # bytes held by the model
    rules: dict[str, int] = field(default_factory=dict)  # kind of constraint that was said in words -> how many

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _repr_html_(self) -> str:
        return html_table("Description", {name.replace("_", " "): value for name, value in asdict(self).items()})


def describe(graph: FactorGraph) -> Description:
    """See FactorGraph.describe."""
    a, rules = graph.table_arrays(), graph.rules
    arity = np.diff(a.factor_begin())
    components, forest = _shape(a, arity, rules)
    binary = graph.max_labels <= 2
    assert a.unary is not None
    return Description(
        variables=graph.n_variables,
        factors=graph.n_factors,
        interactions=a.n_factors,
        tables=a.n_tables,
        implicit_tables=int((~a.is_dense()).sum()),
        table_entries=graph.table_entries,
        max_labels=graph.max_labels,
        max_arity=max(int(arity.max(initial=0)), *(len(rule.variables) for rule in rules), 0),
        arities=_histogram(arity),
        labels=_histogram(a.cards),
        components=components,
        forest=forest,
        forbidden_labels=int((a.unary == -np.inf).sum()),
        constraints=int(_forbids(a)[a.factor_table].sum()) + sum(rule.forbids() for rule in rules),
        binary=binary,
        submodular=(None if rules else _submodular(a, arity)) if binary else False,
        memory=graph.table_snapshot().memory,
        rules=dict(Counter(rule.kind for rule in rules)),
    )


def _histogram(values: NDArray[Any]) -> dict[int, int]:
    kinds, counts = np.unique(values, return_counts=True)
    return dict(zip(kinds.tolist(), counts.tolist(), strict=True))


def _shape(a: ModelArrays, arity: NDArray[Any], rules: Sequence[Rule] = ()) -> tuple[int, bool]:
    """Components, and whether there are no cycles, of the bipartite graph of variables and distinct scopes."""
    n, begin = len(a.cards), a.factor_begin()
    rows, cols, at = [], [], n
    for k in np.unique(arity).tolist():
        members = np.flatnonzero(arity == k)
        scopes = np.sort(a.vars[begin[members][:, None] + np.arange(k)], axis=1)
        if k == 2:  # one key sorts faster than rows
            keys = np.unique(scopes[:, 0].astype(np.int64) * n + scopes[:, 1])
            scopes = np.stack([keys // n, keys % n], axis=1)
        else:
            scopes = np.unique(scopes, axis=0)
        rows.append(np.repeat(np.arange(at, at + len(scopes)), k))
        cols.append(scopes.reshape(-1))
        at += len(scopes)
    for rule in (r for r in rules if r.variables):
        rows.append(np.full(len(rule.variables), at))
        cols.append(np.array(rule.variables, np.int64))
        at += 1
    if not rows:
        return n, True
    r, c = np.concatenate(rows), np.concatenate(cols)
    count, _ = connected_components(coo_matrix((np.ones(len(r), np.int8), (r, c)), shape=(at, at)), directed=False)
    return int(count), len(r) == at - int(count)


def _forbids(a: ModelArrays) -> NDArray[np.bool_]:
    """Which tables have a forbidden state."""
    out = np.zeros(a.n_tables, bool)
    bad = np.flatnonzero(a.values == -np.inf)
    out[np.searchsorted(a.values_begin(), bad, side="right") - 1] = True
    if a.params is not None:
        out |= (a.params.reshape(-1, 2) == -np.inf).any(axis=1)
    return out


def _submodular(a: ModelArrays, arity: NDArray[Any]) -> bool | None:
    """For a binary model: th(0,0) + th(1,1) >= th(0,1) + th(1,0) in every pairwise table."""
    if len(arity) and arity.max() > 2:
        return None
    dense, good = a.is_dense(), np.ones(a.n_tables, bool)
    begin, size = a.values_begin()[:-1], np.diff(a.values_begin())
    square = np.flatnonzero(dense & (size == 4))
    th = a.values[begin[square][:, None] + np.arange(4)]
    good[square] = th[:, 0] + th[:, 3] >= th[:, 1] + th[:, 2]
    if a.params is not None and a.table_kind is not None:
        p = a.params.reshape(-1, 2)
        potts = a.table_kind == POTTS
        good[potts] = p[potts, 0] >= p[potts, 1]
    one_label = (a.cards[a.vars.reshape(-1, 2)] < 2).any(axis=1) if len(a.vars) else np.zeros(0, bool)
    return bool((good[a.factor_table] | one_label).all())
