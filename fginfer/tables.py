"""Score tables: pairwise ones that are never expanded, and handles to tables that factors share on purpose."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Potts:
    """`same` if both labels are equal, else `different`. An energy of beta for a change is Potts(0, -beta)."""

    same: float
    different: float


@dataclass(frozen=True)
class AbsDiff:
    """-weight * min(|a - b|, truncation)."""

    weight: float
    truncation: float = inf


@dataclass(frozen=True)
class SqDiff:
    """-weight * min((a - b)**2, truncation)."""

    weight: float
    truncation: float = inf


ImplicitTable = Potts | AbsDiff | SqDiff


@dataclass(frozen=True)
class TableRef:
    """A table of one graph, from FactorGraph.add_table: factors given the same handle share it, others never do.

    The graph that made it takes it, and so do copies and pickles of that graph made later. Other graphs refuse it.
    """

    index: int
    key: str = field(default="", repr=False)


def expand(table: ImplicitTable, rows: int, cols: int) -> NDArray[np.float64]:
    """The table written out for `rows` and `cols` labels, entry for entry what the core computes."""
    if isinstance(table, Potts):
        out = np.full((rows, cols), float(table.different))
        np.fill_diagonal(out, table.same)
        return out
    d = np.arange(rows, dtype=np.float64)[:, None] - np.arange(cols, dtype=np.float64)
    d = np.abs(d) if isinstance(table, AbsDiff) else d * d
    scores: NDArray[np.float64] = -table.weight * np.minimum(d, table.truncation) + 0.0
    return scores


def negated(table: ImplicitTable) -> ImplicitTable:
    """The table with the opposite scores."""
    if isinstance(table, Potts):
        return Potts(-table.same, -table.different)
    return type(table)(-table.weight, table.truncation)
