"""A plain numpy model: the graph is checked against it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.tables import AbsDiff, Potts


def dense(table: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """An implicit table written out by its definition, entry by entry."""
    if isinstance(table, np.ndarray):
        return table
    out = np.zeros(shape)
    for a in range(shape[0]):
        for b in range(shape[1]):
            if isinstance(table, Potts):
                out[a, b] = table.same if a == b else table.different
            else:
                d = abs(a - b) if isinstance(table, AbsDiff) else (a - b) ** 2
                out[a, b] = -table.weight * min(d, table.truncation)
    return out


@dataclass
class Reference:
    cards: list[int]
    factors: list[tuple[tuple[int, ...], NDArray[np.float64]]] = field(default_factory=list)

    def add(self, scope: tuple[int, ...], table: Any, weight: float = 1.0, transposed: bool = False) -> None:
        shape = tuple(self.cards[i] for i in scope)
        full = dense(table, shape[::-1] if transposed else shape)
        if transposed:
            full = full.T
        self.factors.append((scope, np.zeros(shape) if weight == 0 else weight * full))

    def score(self, labels: Any) -> float:
        return float(sum(table[tuple(labels[i] for i in scope)] for scope, table in self.factors))
