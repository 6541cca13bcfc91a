"""The linear program over the local polytope (docs/mathematics.md, section 2), for SciPy's HiGHS."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog  # type: ignore[import-untyped, unused-ignore]
from scipy.sparse import csr_array  # type: ignore[import-untyped, unused-ignore]

from fginfer.core.arrays import begins, owners
from fginfer.graph import FactorGraph
from fginfer.labelings import Factor
from fginfer.tables import expand


@dataclass(frozen=True)
class LocalPolytope:
    """max scores.z over z >= 0 with equalities.z = right; z holds x_i (by variable), then y_f (by factor)."""

    scores: NDArray[np.float64]  # 0 where forbidden
    forbidden: NDArray[np.bool_]
    equalities: csr_array
    right: NDArray[np.float64]
    cards: NDArray[np.int32]
    constant: float

    def solve(self, seconds: float) -> tuple[NDArray[np.int32], float] | str:
        """Rounded labels and the value of the relaxation; or why there are none: infeasible, time_limit, failed."""
        upper = np.where(self.forbidden, 0.0, np.inf)
        answer = linprog(
            -self.scores,
            A_eq=self.equalities,
            b_eq=self.right,
            bounds=np.stack([np.zeros_like(upper), upper], 1),
            method="highs",
            options={"time_limit": seconds},
        )
        if answer.status != 0:  # SciPy: 1 a limit, 2 infeasible, 3 unbounded, 4 numerical trouble
            return {1: "time_limit", 2: "infeasible"}.get(answer.status, "failed")
        begin = begins(self.cards)
        labels = [int(np.argmax(answer.x[begin[i] : begin[i + 1]])) for i in range(len(self.cards))]
        return np.array(labels, np.int32), float(-answer.fun) + self.constant


def _dense(graph: FactorGraph, factor: Factor) -> NDArray[np.float64]:
    """The factor's own scores, whatever it shares."""
    stored = graph.table(factor.table)
    shape = [int(graph.cards[i]) for i in factor.variables]
    if not isinstance(stored, np.ndarray):
        return factor.weight * expand(stored, shape[0], shape[1])
    return np.asarray(factor.weight * (stored.T if factor.transposed else stored))


def local_polytope(graph: FactorGraph, max_columns: int) -> LocalPolytope | None:
    """The LP of a graph; None if it would have more than max_columns columns."""
    cards = graph.cards
    n_unary = int(cards.sum(dtype=np.int64))
    factors = graph.factors()
    columns = n_unary + sum(int(np.prod([cards[i] for i in f.variables], dtype=np.float64)) for f in factors)
    if columns > max_columns:
        return None
    begin = begins(cards)
    scores = [np.concatenate([graph.unary(i) for i in range(len(cards))])] if len(cards) else []
    rows, cols, data, right = [owners(begin)], [np.arange(n_unary)], [np.ones(n_unary)], []
    right.append(np.ones(len(cards)))
    row, at = len(cards), n_unary
    for factor in factors:
        table = _dense(graph, factor)
        index = at + np.arange(table.size).reshape(table.shape)
        scores.append(table.ravel())
        for axis, variable in enumerate(factor.variables):
            k = table.shape[axis]
            sums = np.moveaxis(index, axis, 0).reshape(k, -1)
            rows += [np.repeat(row + np.arange(k), sums.shape[1]), row + np.arange(k)]
            cols += [sums.ravel(), begin[variable] + np.arange(k)]
            data += [np.ones(sums.size), -np.ones(k)]
            right.append(np.zeros(k))
            row += k
        at += table.size
    flat = np.concatenate(scores) if scores else np.zeros(0)
    forbidden = np.isneginf(flat)
    matrix = csr_array((np.concatenate(data), (np.concatenate(rows), np.concatenate(cols))), shape=(row, at))
    return LocalPolytope(
        np.where(forbidden, 0.0, flat), forbidden, matrix, np.concatenate(right), cards, graph.constant
    )
