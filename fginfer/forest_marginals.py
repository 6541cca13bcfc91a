"""Marginals of a forest of pairwise factors, by the sum-product oracle of the core that random fields train with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import begins
from fginfer.core.crf import CrfLoss
from fginfer.core.learn import Edges, Kind

Reals = NDArray[np.float64]
Factors = Sequence[tuple[tuple[int, ...], Reals]]

PADDING = 4  # the oracle has square tables: so many times the entries of the model may they have


def forest_marginals(factors: Factors, cards: NDArray[np.int32], memory: float) -> tuple[float, list[Reals]] | None:
    """(log Z, marginals of the variables); None where the factors (with their scopes) are no forest of pairs, or square
    tables for all of them would need too much memory. A log Z of -inf comes without marginals."""
    n, k = len(cards), int(cards.max(initial=0))
    if k < 2:
        return None
    unary = np.zeros((n, k))
    pairs: dict[tuple[int, int], Reals] = {}
    entries = 0
    for scope, table in factors:
        if len(scope) == 1:
            unary[scope[0], : len(table)] += table
        elif len(scope) == 2 and scope[0] != scope[1]:
            entries += table.size
            (u, v), own = (scope, table) if scope[0] < scope[1] else (scope[::-1], table.T)
            pairs[u, v] = pairs[u, v] + own if (u, v) in pairs else own
        elif len(scope):
            return None
    if 24 * len(pairs) * k * k > memory or len(pairs) * k * k > PADDING * entries or not _is_forest(n, list(pairs)):
        return None
    tables = np.zeros((len(pairs), k, k))
    for square, table in zip(tables, pairs.values(), strict=True):
        square[: table.shape[0], : table.shape[1]] = table
    begin = begins(cards)
    ends = np.array(list(pairs), np.int32).reshape(-1, 2)
    loss = CrfLoss(_one_example(n, k, begin, ends))
    log_z, _, cells, _ = loss.marginals(np.concatenate([unary.ravel(), tables.ravel()]))
    assert cells is not None
    if log_z[0] == -np.inf:
        return -np.inf, []
    return float(log_z[0]), [p / p.sum() for p in np.split(cells, begin[1:-1])]


def _one_example(n: int, k: int, begin: NDArray[np.int64], ends: NDArray[np.int32]) -> dict[str, Any]:
    """The fields of fgi_learn_data: a token for each variable, with a feature and candidates of its own, and a kind for
    each edge, so that weights are scores."""
    e = len(ends)
    return {
        "kind": Kind.LABELS, "edges": Edges.LIST if e else Edges.NONE, "n_examples": 1, "n_features": n, "n_labels": k,
        "n_edge_features": e, "token_begin": np.array([0, n], np.int64), "row_begin": np.arange(n + 1, dtype=np.int64),
        "feature": np.arange(n, dtype=np.int32), "truth": np.zeros(n, np.int32), "choice_begin": begin,
        "choice": (np.arange(begin[-1]) - np.repeat(begin[:-1], np.diff(begin))).astype(np.int32),
        "edge_begin": np.array([0, e], np.int64), "edge_u": np.ascontiguousarray(ends[:, 0]),
        "edge_v": np.ascontiguousarray(ends[:, 1]), "edge_row": np.arange(e + 1, dtype=np.int64),
        "edge_feature": np.arange(e, dtype=np.int32),
    }  # fmt: skip


def _is_forest(n: int, edges: list[tuple[int, int]]) -> bool:
    above = list(range(n))
    for u, v in edges:
        for _ in range(2):
            while above[u] != u:
                above[u] = u = above[above[u]]
            u, v = v, u
        if u == v:
            return False
        above[u] = v
    return True
