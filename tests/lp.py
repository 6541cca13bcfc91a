"""The LP relaxation over the local polytope, solved by HiGHS: the reference for every dual bound."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf
from typing import Protocol

import highspy
import numpy as np
from numpy.typing import NDArray


class FactorLike(Protocol):
    variables: tuple[int, ...]
    table: NDArray[np.float64]


def local_polytope_optimum(
    cards: Sequence[int], unary: Sequence[NDArray[np.float64]], factors: Sequence[FactorLike], constant: float = 0.0
) -> float:
    """max sum theta.x + sum theta.y subject to M y = x; -inf when infeasible. Forbidden states get no column."""
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    begin = np.concatenate(([0], np.cumsum(cards)))
    for i, k in enumerate(cards):  # maximised as min of the negative
        for a in range(k):
            finite = unary[i][a] > -inf
            h.addCol(-float(unary[i][a]) if finite else 0.0, 0.0, 1.0 if finite else 0.0, 0, [], [])
        h.addRow(1.0, 1.0, k, list(range(begin[i], begin[i] + k)), [1.0] * k)
    n = int(begin[-1])
    for f in factors:
        rows: list[list[list[int]]] = [[[] for _ in range(cards[v])] for v in f.variables]
        for state in product(*(range(cards[v]) for v in f.variables)):
            value = float(f.table[state])
            if value == -inf:
                continue
            h.addCol(-value, 0.0, inf, 0, [], [])
            for k, a in enumerate(state):
                rows[k][a].append(n)
            n += 1
        for k, v in enumerate(f.variables):
            for a in range(cards[v]):
                index = [*rows[k][a], int(begin[v]) + a]
                h.addRow(0.0, 0.0, len(index), index, [1.0] * len(rows[k][a]) + [-1.0])
    h.run()
    if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return -inf
    return constant - float(h.getInfo().objective_function_value)
